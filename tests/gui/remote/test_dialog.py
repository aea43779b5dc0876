"""The dialog of the server, and the sign that text leaves the machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from app.qt.bridge import Bridge
from app.qt.look.icons import tray_icon
from app.qt.remote.badge import RemoteBadge
from app.qt.remote.dialog import RemoteChoice, RemoteDialog
from app.qt.status import Status, TrayState
from app.remote.key import RemoteKeys
from app.translation import Translator
from inference.request import ModelEvent, ModelState
from tests.app.remote.remote_server import Script, serve


class Keys(RemoteKeys):
    """A keyring in memory, or none."""

    def __init__(self, keeps: bool = True) -> None:
        super().__init__()
        self.keeps = keeps
        self.held = {"http://localhost:1/v1": "sk-kept"}

    def get(self, url: str) -> str:
        return self.held.get(url, "")

    def set(self, url: str, key: str) -> bool:
        self.held[url] = key
        return self.keeps


@pytest.fixture
def script() -> Iterator[Script]:
    with serve(Script()) as script:
        yield script


def open_dialog(
    qtbot: QtBot, url: str = "", keys: RemoteKeys | None = None, language: str = "en", plain: bool = False
) -> RemoteDialog:
    bridge = Bridge()
    dialog = RemoteDialog(RemoteChoice(url, "", plain), keys or Keys(), Translator(language), bridge.post_call)
    dialog.bridge = bridge  # type: ignore[attr-defined]
    qtbot.addWidget(dialog)
    dialog.show()
    return dialog


def test_a_server_is_tried_and_its_models_are_offered(qtbot: QtBot, script: Script) -> None:
    dialog = open_dialog(qtbot, script.url)
    dialog.key.setText("sk-typed")
    dialog.try_button.click()
    qtbot.waitUntil(lambda: "✓" in dialog.result_line.text())
    assert [dialog.model.itemText(index) for index in range(dialog.model.count())] == ["small", "large"]
    assert dialog.model.currentText() == "small"
    assert script.seen[0].headers["Authorization"] == "Bearer sk-typed"
    dialog.reject()


def test_what_is_wrong_is_said_in_the_dialog(qtbot: QtBot, script: Script) -> None:
    script.models = lambda exchange: exchange.reply(401, {"error": {"message": "no key"}})
    dialog = open_dialog(qtbot, script.url)
    dialog.try_button.click()
    qtbot.waitUntil(lambda: "wants another key" in dialog.result_line.text())
    dialog.url.setText("not an address at all")
    dialog.use_button.click()
    assert "is not the address of a server" in dialog.result_line.text()
    dialog.url.setText("http://192.0.2.1")
    dialog.use_button.click()
    assert "not be encrypted" in dialog.result_line.text()
    dialog.reject()


def test_what_is_chosen_is_handed_over_with_its_key_in_the_keyring(qtbot: QtBot) -> None:
    keys = Keys()
    dialog = open_dialog(qtbot, "http://localhost:1/v1", keys)
    qtbot.waitUntil(lambda: dialog.key.text() == "sk-kept")
    dialog.model.setCurrentText("big")
    qtbot.keyClicks(dialog.key, "-2")
    with qtbot.waitSignal(dialog.chosen) as chosen:
        dialog.use_button.click()
    assert chosen.args == [RemoteChoice("http://localhost:1/v1", "big", False)]
    assert keys.held["http://localhost:1/v1"].endswith("-2")


def test_without_a_keyring_it_says_so_first(qtbot: QtBot) -> None:
    dialog = open_dialog(qtbot, "http://localhost:2", Keys(keeps=False))
    qtbot.keyClicks(dialog.key, "sk")
    dialog.use_button.click()
    qtbot.waitUntil(lambda: "no keyring" in dialog.result_line.text())
    assert dialog.isVisible()
    with qtbot.waitSignal(dialog.chosen):
        dialog.use_button.click()


def test_unencrypted_connections_are_a_choice(qtbot: QtBot) -> None:
    dialog = open_dialog(qtbot, "http://192.0.2.1:8000", plain=True)
    with qtbot.waitSignal(dialog.chosen) as chosen:
        dialog.use_button.click()
    assert chosen.args == [RemoteChoice("http://192.0.2.1:8000/v1", "", True)]


def test_chinese_has_every_word(qtbot: QtBot) -> None:
    dialog = open_dialog(qtbot, language="zh")
    assert "文字会离开本机" in dialog.warning.text()
    dialog.reject()


def test_the_badge_follows_the_engine(qtbot: QtBot, translator: Translator) -> None:
    bridge, badge = Bridge(tick_ms=1), RemoteBadge(translator)
    qtbot.addWidget(badge)
    badge.follow(bridge, "remote:box:1/big")
    assert badge.host == "box:1"
    assert badge.accessibleName() == "Text leaves this machine: it is sent to box:1."
    badge.set_host("127.0.0.1:8000")
    assert badge.toolTip() == "Text is given to another program on this machine, 127.0.0.1:8000."
    bridge.post_event(ModelEvent(ModelState.LOADING, "mine"))
    qtbot.waitUntil(lambda: badge.host == "")
    assert badge.isHidden()
    bridge.post_event(ModelEvent(ModelState.READY, f"remote:{'x' * 60}.example.org/big"))
    qtbot.waitUntil(lambda: badge.text().endswith("…"))
    bridge.post_event(ModelEvent(ModelState.EMPTY))
    qtbot.wait(10)
    assert badge.host


def test_the_status_and_its_icon_say_it(translator: Translator) -> None:
    status = Status(ModelState.READY, "remote:box:1/org/big")
    assert status.remote_host == "box:1"
    assert status.sentence(translator) == "Text leaves this machine, to box:1: org/big"
    assert Status(ModelState.READY, "mine").remote_host == ""
    here = Status(ModelState.READY, "remote:localhost:1/big")
    assert here.sentence(translator) == "Another program here, localhost:1: big"
    for state in TrayState:
        plain, marked = (tray_icon(state, leaves).pixmap(22, 22).toImage() for leaves in (False, True))
        assert plain != marked
