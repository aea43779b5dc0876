"""The primary selection of X11 beside the copy that a capture asks for."""

from __future__ import annotations

import pytest

from app.capture.capture import (
    NothingSelected,
    Selected,
    TextOrigin,
)
from app.desktop.fake_desktop import EDITOR
from app.desktop.protocols import Window
from tests.app.capture.bench import OLD, OTHER, TERMINAL, Bench, old_offer


@pytest.mark.parametrize("primary", ["selected", "given up", ""])
def test_what_the_copy_brings_counts_whatever_primary_holds(primary: str) -> None:
    bench = Bench()
    bench.desktop.primary_owner, bench.clipboard.primary = EDITOR, primary
    bench.start()
    bench.run(0.1)
    assert bench.result == Selected("selected", EDITOR)
    assert bench.desktop.sent == ["copy"]
    assert bench.clipboard.formats == OLD


@pytest.mark.parametrize("copied", [None, "", " \n"])
def test_a_primary_selection_that_was_given_up_is_offered_before_the_clipboard(copied: str | None) -> None:
    bench = Bench(copied)
    bench.desktop.primary_owner, bench.clipboard.primary = EDITOR, "given up"
    bench.start()
    bench.run(2.0)
    assert bench.result == NothingSelected(EDITOR, Selected("given up", EDITOR, TextOrigin.LAST_SELECTION))
    assert bench.clipboard.formats == OLD


@pytest.mark.parametrize(("owner", "primary"), [(OTHER, "of another window"), (EDITOR, " \n")])
def test_a_foreign_or_empty_primary_selection_is_not_offered(owner: Window, primary: str) -> None:
    bench = Bench(selection=None)
    bench.desktop.primary_owner, bench.clipboard.primary = owner, primary
    bench.start()
    bench.run(2.0)
    assert bench.result == NothingSelected(EDITOR, old_offer(EDITOR))


def test_a_terminal_gives_its_primary_selection() -> None:
    bench = Bench()
    bench.desktop.window = bench.desktop.primary_owner = TERMINAL
    bench.clipboard.primary = "ls -l"
    bench.start()
    bench.run()
    assert bench.result == Selected("ls -l", TERMINAL)
