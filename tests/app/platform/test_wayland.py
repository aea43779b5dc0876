"""The advice that a Wayland desktop's user gets."""

from __future__ import annotations

import pytest

from app.platform.wayland import binding_advice, open_wayland


@pytest.mark.parametrize(
    ("current_desktop", "place"),
    [
        ("GNOME", "View and Customize Shortcuts"),
        ("ubuntu:GNOME", "View and Customize Shortcuts"),
        ("KDE", "System Settings > Keyboard > Shortcuts"),
        ("sway", "bindsym Ctrl+Shift+1 exec deskinfer --action summarize"),
        ("Hyprland", "bind = CTRL SHIFT, 1, exec, deskinfer --action summarize"),
        ("niri", '{ spawn "deskinfer" "--action" "summarize"; }'),
        ("", "GNOME: Settings"),
        ("SomethingNew", "in your desktop's keyboard settings"),
    ],
)
def test_place_is_named(current_desktop: str, place: str) -> None:
    advice = str(binding_advice(current_desktop))
    assert advice.startswith("Wayland lets no program take a hotkey for itself.")
    assert "`deskinfer --action summarize`" in advice
    assert place in advice
    assert "{" not in advice.replace('{ spawn "deskinfer"', "")


def test_session_says_what_does_not_work() -> None:
    session = open_wayland("KDE")
    assert session.kind == "wayland"
    assert [str(limit).split()[0] for limit in session.limits] == ["Wayland", "Wayland"]
    assert "Ctrl+C" in str(session.limits[1])
