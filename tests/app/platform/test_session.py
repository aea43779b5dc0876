"""Which desktop is opened under which environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.desktop.protocols import Hotkey, HotkeyError, Modifier, Window
from app.platform.session import open_session
from tests.x_display import x_display

HOTKEY = Hotkey(frozenset({Modifier.CTRL, Modifier.SHIFT}), "1")


@pytest.mark.e2e
def test_x11(tmp_path: Path) -> None:
    with x_display(tmp_path) as display:
        session = open_session("linux", {"DISPLAY": display.name, "XDG_SESSION_TYPE": "x11"})
        assert session.kind == "x11"
        assert session.limits == ()
        session.grabber.grab(HOTKEY, lambda: None)
        assert session.desktop.foreground_window() is None
        session.grabber.close()
        session.desktop.close()


@pytest.mark.parametrize(
    ("platform", "environment", "kind", "limit"),
    [
        ("linux", {"WAYLAND_DISPLAY": "wayland-0", "DISPLAY": ":0"}, "wayland", "deskinfer --action summarize"),
        ("linux", {"XDG_SESSION_TYPE": "wayland"}, "wayland", "deskinfer --action summarize"),
        ("linux", {}, "none", "There is no display here"),
        ("linux", {"DISPLAY": ""}, "none", "There is no display here"),
        ("linux", {"DISPLAY": ":4711"}, "none", "The display :4711 cannot be opened"),
        ("darwin", {}, "none", "no hotkeys on macOS"),
    ],
)
def test_where_nothing_can_be_grabbed(platform: str, environment: dict[str, str], kind: str, limit: str) -> None:
    if platform == "linux":
        pytest.importorskip("xcffib", exc_type=ImportError)
    session = open_session(platform, environment)
    assert session.kind == kind
    assert limit in str(session.limits[0])
    with pytest.raises(HotkeyError) as caught:
        session.grabber.grab(HOTKEY, lambda: None)
    assert limit in str(caught.value)
    session.grabber.release(HOTKEY)
    desktop = session.desktop
    assert desktop.foreground_window() is None
    assert desktop.held_modifiers() == frozenset()
    assert desktop.any_key_held() is False
    assert desktop.owns_primary(Window(1)) is False
    desktop.activate(Window(1))
    desktop.send_copy()
    desktop.send_paste()
    desktop.close()
    session.grabber.close()


def test_missing_xcb(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "app.platform.x11", None)
    session = open_session("linux", {"DISPLAY": ":0"})
    assert session.kind == "none"
    assert "apt install libxcb1" in str(session.limits[0])
