"""Commands, settings and the desktop: hotkeys follow all three, and their state is told once."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from app.actions.commands import Command, CommandRegistry
from app.actions.registry import ActionRegistry
from app.desktop.fake_desktop import FakeDesktop
from app.desktop.protocols import DesktopSession
from app.qt.bridge import Bridge
from app.qt.hotkeys.desk import HotkeyDesk
from app.settings.registry import setting_registry
from app.settings.settings import Settings
from app.translation import Translator, UserText
from tests.gui.rig import FakeGrabber

pytestmark = pytest.mark.gui


def _command(action: str) -> Command:
    return Command(f"action.{action}", action, lambda: None, f"hotkey.{action}", group="action")


@dataclass
class Bench:
    """A desk with two commands on a desktop that holds what `grabber.taken` names."""

    folder: Path
    limits: tuple[UserText, ...] = ()
    grabber: FakeGrabber = field(default_factory=FakeGrabber)
    told: list[tuple[str, str]] = field(default_factory=list)
    mended: list[bool] = field(default_factory=list)
    limits_told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.settings = Settings.load(
            self.folder / "settings.toml", setting_registry(ActionRegistry(user_dir=self.folder).all())
        )
        self.commands = CommandRegistry([_command("summarize"), _command("translate")])
        session = DesktopSession("x11", FakeDesktop(None), self.grabber, self.limits)
        self.bridge = Bridge()
        self.desk = HotkeyDesk(session, self.commands, self.settings, Translator("en"), self.bridge)
        self.desk.failed.connect(lambda title, text: self.told.append((title, text)))
        self.desk.mended.connect(lambda: self.mended.append(True))
        self.desk.bound.connect(lambda _statuses, limits: self.limits_told.extend(limits))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_the_settings_say_which_combination_runs_a_command(bench: Bench) -> None:
    bench.settings.set("hotkey.translate", "Ctrl+Shift+F9")
    bench.desk.bind()
    assert bench.desk.working() == {"action.summarize": "Ctrl+Shift+1", "action.translate": "Ctrl+Shift+F9"}
    assert set(bench.grabber.held) == {"Ctrl+Shift+1", "Ctrl+Shift+F9"}
    assert bench.told == []


def test_commands_that_come_and_go_take_their_hotkeys_along(bench: Bench) -> None:
    bench.desk.bind()
    bench.commands.replace_group("action", [_command("rewrite")])
    assert bench.desk.working() == {"action.rewrite": "Ctrl+Shift+3"}
    bench.commands.replace_group("action", [_command("of no setting")])
    assert bench.grabber.held == {}


def test_what_fails_is_told_and_its_end_once(bench: Bench) -> None:
    bench.grabber.taken.add("Ctrl+Shift+2")
    bench.desk.bind()
    [(title, text)] = bench.told
    assert title == "Not all hotkeys work"
    assert text.startswith("Ctrl+Shift+2 (translate): ")
    assert [line["state"] for line in bench.desk.report()] == ["registered", "taken"]
    bench.grabber.taken.clear()
    for _ in range(2):
        bench.desk.bind()
    assert (len(bench.told), bench.mended) == (1, [True])


def test_where_none_can_work_the_desktops_limits_are_told_instead(tmp_path: Path) -> None:
    bench = Bench(tmp_path, (UserText("Bind the command yourself."),))
    bench.desk.bind()
    assert (bench.told, bench.limits_told) == ([], ["Bind the command yourself."])
    bench.grabber.taken |= {"Ctrl+Shift+1", "Ctrl+Shift+2"}
    bench.desk.pause(True)
    bench.desk.bind()
    assert bench.told == [("Not all hotkeys work", "Bind the command yourself.")]


def test_they_are_free_while_others_are_pressed_in(bench: Bench) -> None:
    bench.desk.bind()
    bench.desk.pause(True)
    assert bench.grabber.held == {}
    bench.desk.pause(False)
    assert set(bench.grabber.held) == {"Ctrl+Shift+1", "Ctrl+Shift+2"}


def test_nothing_is_bound_once_it_is_closed(bench: Bench) -> None:
    bench.desk.close()
    bench.desk.bind()
    bench.commands.replace_group("action", [_command("rewrite")])
    assert bench.grabber.held == {}
