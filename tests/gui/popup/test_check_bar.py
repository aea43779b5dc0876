"""The bar that says what an answer lost."""

import pytest
from PySide6.QtWidgets import QToolButton
from pytestqt.qtbot import QtBot

from app.qt.popup.check_bar import CheckBar
from app.text.checks import Loss
from app.translation import Translator

pytestmark = pytest.mark.gui


@pytest.fixture
def bar(qtbot: QtBot) -> CheckBar:
    bar = CheckBar(Translator("en"))
    qtbot.addWidget(bar)
    bar.resize(400, 100)
    return bar


def _entries(bar: CheckBar) -> list[QToolButton]:
    widgets = [item.widget() for item in bar._layout.items]
    return [widget for widget in widgets if isinstance(widget, QToolButton)]


def test_it_is_hidden_while_there_is_nothing_to_say(bar: CheckBar):
    bar.show_losses([Loss("numbers", "1", "2")])
    assert bar.isVisible()
    bar.show_losses([])
    assert not bar.isVisible()


def test_each_loss_in_a_few_words(bar: CheckBar):
    losses = [
        Loss("numbers", "14:30", "13:30"),
        Loss("urls", "https://example.org/" + "x" * 80),
        Loss("invented", "", "2027"),
        Loss("line_breaks", "6", "1"),
    ]
    bar.show_losses(losses, "Sure, here\nis it:\n")
    assert [entry.text() for entry in _entries(bar)] == [
        "14:30 → 13:30",
        "Missing: https://example.org/…" + "x" * 20,
        "Not in your text: 2027",
        "Line breaks: 6 → 1",
        "Left out: Sure, here is it:",
    ]
    assert bar.accessibleDescription().startswith("14:30 → 13:30; Missing")


def test_entries_lead_to_their_place(bar: CheckBar, qtbot: QtBot):
    losses = [Loss("numbers", "1", "2", (0, 1)), Loss("names", "Li"), Loss("numbers", "1", "2", (8, 9))]
    bar.show_losses(losses, "left out")
    first, second, left_out = _entries(bar)
    assert first.text() == "1 → 2 (2×)"
    places = []
    bar.loss_chosen.connect(places.append)
    for _ in range(3):
        first.click()
    second.click()
    assert places == [losses[0], losses[2], losses[0], losses[1]]
    with qtbot.waitSignal(bar.show_all_requested):
        left_out.click()


def test_many_losses_do_not_fill_the_window(bar: CheckBar, qtbot: QtBot):
    bar.show_losses([Loss("numbers", str(number)) for number in range(10, 100)])
    entries = _entries(bar)
    assert [entry.text() for entry in entries][-2:] == ["Missing: 13", "86 more"]
    with qtbot.waitSignal(bar.grown):
        entries[-1].click()
    assert [entry.text() for entry in _entries(bar)][-2:] == ["Missing: 25", "74 more"]
    assert not _entries(bar)[-1].isEnabled()


def test_the_narrower_the_higher(bar: CheckBar, qtbot: QtBot):
    bar.show_losses([Loss("numbers", "1234567", "7654321")] * 2 + [Loss("names", "Maria Lopez")])
    assert bar.heightForWidth(200) > bar.heightForWidth(600)
    for entry in _entries(bar):
        assert entry.height() >= entry.sizeHint().height()
