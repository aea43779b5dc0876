"""Shortcuts of desktops, out of files as those desktops write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.desktop.hotkeys import parse
from app.platform import desktop_shortcuts
from app.platform.desktop_shortcuts import Shortcut, known_shortcuts

XFCE = """<?xml version="1.0" encoding="UTF-8"?>
<channel name="xfce4-keyboard-shortcuts" version="1.0">
  <property name="commands" type="empty">
    <property name="default" type="empty">
      <property name="&lt;Primary&gt;&lt;Shift&gt;1" type="string" value="old-tool"/>
    </property>
    <property name="custom" type="empty">
      <property name="&lt;Primary&gt;&lt;Shift&gt;1" type="string" value="xfce4-screenshooter"/>
      <property name="XF86AudioPlay" type="string" value="player"/>
      <property name="override" type="bool" value="true"/>
    </property>
  </property>
</channel>
"""
KDE = """[kwin]
_k_friendly_name=KWin
Show Desktop=Ctrl+Shift+2\\tMeta+D,Meta+D,Peek at Desktop
Unbound=none,none,Nothing
"""
OPENBOX = """<openbox_config xmlns="http://openbox.org/3.4/rc"><keyboard>
<keybind key="C-S-3"><action name="Execute"><command>xterm</command></action></keybind>
<keybind key="A-F4"><action name="Close"/></keybind>
</keyboard></openbox_config>
"""
GNOME = """org.gnome.desktop.wm.keybindings close ['<Alt>F4']
org.gnome.desktop.wm.keybindings switch-to-workspace-1 ['<Control><Shift>4', '<Super>Home']
org.gnome.desktop.wm.keybindings always-on-top @as []
"""


def shortcuts(tmp_path: Path, desktop: str) -> dict[str, Shortcut]:
    environment = {"XDG_CURRENT_DESKTOP": desktop, "XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}
    return {str(hotkey): shortcut for hotkey, shortcut in known_shortcuts(environment).items()}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_xfce(tmp_path: Path) -> None:
    write(tmp_path / "xfce4" / "xfconf" / "xfce-perchannel-xml" / "xfce4-keyboard-shortcuts.xml", XFCE)
    assert shortcuts(tmp_path, "XFCE") == {"Ctrl+Shift+1": Shortcut("Xfce", "xfce4-screenshooter")}


def test_kde(tmp_path: Path) -> None:
    write(tmp_path / "kglobalshortcutsrc", KDE)
    found = shortcuts(tmp_path, "KDE")
    assert found["Ctrl+Shift+2"] == found["Meta+D"] == Shortcut("KDE", "Peek at Desktop")
    assert len(found) == 2


def test_openbox(tmp_path: Path) -> None:
    write(tmp_path / "openbox" / "rc.xml", OPENBOX)
    found = shortcuts(tmp_path, "LXDE")
    assert found == {"Ctrl+Shift+3": Shortcut("Openbox", "Execute"), "Alt+F4": Shortcut("Openbox", "Close")}


def test_gnome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desktop_shortcuts, "_gsettings", lambda schema: GNOME if "wm" in schema else "")
    found = shortcuts(tmp_path, "ubuntu:GNOME")
    assert found["Ctrl+Shift+4"] == Shortcut("GNOME", "switch to workspace 1")
    assert parse("Meta+Home") in known_shortcuts({"XDG_CURRENT_DESKTOP": "GNOME", "HOME": str(tmp_path)})


@pytest.mark.parametrize("desktop", ["XFCE", "KDE", "LXDE", "GNOME", "sway", ""])
@pytest.mark.parametrize("content", ["<broken", "[broken\n=="])
def test_what_cannot_be_read_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, desktop: str, content: str
) -> None:
    monkeypatch.setattr(desktop_shortcuts, "_gsettings", lambda schema: content)
    for path in (
        "xfce4/xfconf/xfce-perchannel-xml/xfce4-keyboard-shortcuts.xml",
        "kglobalshortcutsrc",
        "openbox/rc.xml",
    ):
        write(tmp_path / path, content)
    assert shortcuts(tmp_path, desktop) == {}
