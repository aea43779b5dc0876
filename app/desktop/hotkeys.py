"""Hotkeys as people write them: parse, normalise, warn and find conflicts. Knows no operating system.

Keys are named by what they print on a US keyboard or by their function; app/platform maps the names to key codes.

The actions' defaults (assets/actions) are Ctrl+Shift+1 to 5 for the selection and Ctrl+Shift+F1 to F5, the keys above
them, for the clipboard. Ctrl+Alt would be AltGr, Alt+Shift switches keyboard layouts, Meta belongs to the desktop, and
browsers and terminals use many letters with Ctrl+Shift. Known losers: Windows Terminal (opens the profile of that
number) and Excel (number formats).
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from app.desktop.protocols import Hotkey, Modifier
from app.translation import UserText

_MODIFIER_NAMES: dict[str, Modifier] = {
    "ctrl": Modifier.CTRL,
    "control": Modifier.CTRL,
    "strg": Modifier.CTRL,
    "alt": Modifier.ALT,
    "option": Modifier.ALT,
    "shift": Modifier.SHIFT,
    "umschalt": Modifier.SHIFT,
    "meta": Modifier.META,
    "super": Modifier.META,
    "win": Modifier.META,
    "windows": Modifier.META,
    "cmd": Modifier.META,
    "command": Modifier.META,
}

NAMED_KEYS: tuple[str, ...] = (
    *("SPACE", "TAB", "RETURN", "BACKSPACE", "ESCAPE", "INSERT", "DELETE", "HOME", "END", "PAGEUP", "PAGEDOWN"),
    *("UP", "DOWN", "LEFT", "RIGHT", "PRINT", "PAUSE", "MENU"),
    *("MINUS", "EQUAL", "COMMA", "PERIOD", "SLASH", "BACKSLASH", "SEMICOLON", "APOSTROPHE", "GRAVE"),
    *("BRACKETLEFT", "BRACKETRIGHT"),
)
FUNCTION_KEYS: tuple[str, ...] = tuple(f"F{number}" for number in range(1, 25))
KEY_NAMES: tuple[str, ...] = (*"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", *FUNCTION_KEYS, *NAMED_KEYS)

_KEY_ALIASES: dict[str, str] = {
    **{"ENTER": "RETURN", "ESC": "ESCAPE", "INS": "INSERT", "DEL": "DELETE", "PGUP": "PAGEUP", "PGDOWN": "PAGEDOWN"},
    **{"PGDN": "PAGEDOWN", "PRTSC": "PRINT", "PRINTSCREEN": "PRINT", "BREAK": "PAUSE", "ENTF": "DELETE"},
    **{"EINFG": "INSERT", "POS1": "HOME", "ENDE": "END", "LEERTASTE": "SPACE", "BACK": "BACKSPACE"},
    **{"-": "MINUS", "=": "EQUAL", ",": "COMMA", ".": "PERIOD", "/": "SLASH", "\\": "BACKSLASH", ";": "SEMICOLON"},
    **{"'": "APOSTROPHE", "`": "GRAVE", "[": "BRACKETLEFT", "]": "BRACKETRIGHT"},
}

# Combinations that most programs use; taking them from all programs would hurt more than it helps.
_WELL_KNOWN: dict[str, UserText] = {
    "Ctrl+C": UserText("copies in nearly every program"),
    "Ctrl+X": UserText("cuts in nearly every program"),
    "Ctrl+V": UserText("pastes in nearly every program"),
    "Ctrl+Z": UserText("undoes in nearly every program"),
    "Ctrl+Y": UserText("redoes in many programs"),
    "Ctrl+A": UserText("selects all in nearly every program"),
    "Ctrl+S": UserText("saves in nearly every program"),
    "Ctrl+F": UserText("searches in nearly every program"),
    "Ctrl+P": UserText("prints in nearly every program"),
    "Ctrl+T": UserText("opens a tab in browsers"),
    "Ctrl+W": UserText("closes the tab or window"),
    "Ctrl+N": UserText("opens a new window or document"),
    "Ctrl+O": UserText("opens a file"),
    "Ctrl+Space": UserText("switches the input method for Chinese"),
    "Ctrl+Insert": UserText("copies in nearly every program"),
    "Shift+Insert": UserText("pastes in nearly every program"),
    "Ctrl+Shift+C": UserText("copies in terminals"),
    "Ctrl+Shift+V": UserText("pastes in terminals, and without formatting elsewhere"),
    "Ctrl+Shift+Z": UserText("redoes in many programs"),
    "Ctrl+Shift+S": UserText("is 'save as' in many programs"),
    "Ctrl+Shift+T": UserText("reopens a tab in browsers"),
    "Ctrl+Shift+N": UserText("opens a private window or a folder"),
    "Ctrl+Shift+P": UserText("opens a private window or the command palette"),
    "Ctrl+Shift+I": UserText("opens the developer tools of browsers"),
    "Ctrl+Shift+R": UserText("reloads without cache in browsers"),
    "Ctrl+Shift+U": UserText("types a character by its code on Linux"),
    "Ctrl+Shift+Escape": UserText("opens the task manager of Windows"),
    "Ctrl+Shift+0": UserText("is kept by Windows for switching input languages"),
    "Alt+F4": UserText("closes the window"),
    "Alt+Tab": UserText("switches windows"),
    "Alt+Space": UserText("opens the window menu"),
    "Meta+L": UserText("locks the screen"),
    "Meta+D": UserText("shows the desktop"),
    "Meta+Space": UserText("switches the input language of Windows"),
}


class HotkeyFormatError(ValueError):
    """A text is not a hotkey.

    Attributes:
        text: what is wrong and how to write it, for the user.
    """

    def __init__(self, text: UserText) -> None:
        self.text = text
        super().__init__(str(text))


def _split(text: str) -> list[str]:
    """Cuts at "+" and spaces around it; a last "+" is refused later, since "+" needs Shift and is the key EQUAL."""
    return [part.strip() for part in re.split(r"\s*\+\s*", text.strip())]


def _key_of(name: str, text: str) -> str:
    upper = re.sub(r"[\s_]", "", name).upper()
    key = _KEY_ALIASES.get(upper, upper)
    if key in KEY_NAMES:
        return key
    known = [*KEY_NAMES, *_KEY_ALIASES, *(modifier.upper() for modifier in _MODIFIER_NAMES)]
    near = difflib.get_close_matches(key, known, n=1)
    if near and not re.fullmatch(r"F\d+", key):
        raise HotkeyFormatError(
            UserText(
                'There is no key "{name}" in the hotkey "{text}". Did you mean {near}?',
                name=name,
                text=text,
                near=near[0].capitalize(),
            )
        )
    raise HotkeyFormatError(
        UserText(
            'There is no key "{name}" in the hotkey "{text}". Use a letter, a digit, F1 to F24, or a name '
            "such as Space, Insert, PageUp or Comma.",
            name=name,
            text=text,
        )
    )


def parse(text: str) -> Hotkey:
    """Reads "Ctrl+Shift+1", "control + shift+s", "Strg+Umschalt+F5", "Win+Space" ... in any case and order.

    Raises:
        HotkeyFormatError: an unknown name, no key or two, or no modifier on a key that people type with.
    """
    parts = _split(text)
    if parts == [""]:
        raise HotkeyFormatError(UserText("The hotkey is empty. Write it like Ctrl+Shift+1."))
    modifiers: set[Modifier] = set()
    keys: list[str] = []
    for part in parts:
        modifier = _MODIFIER_NAMES.get(part.lower())
        if modifier is not None:
            modifiers.add(modifier)
        elif part == "":
            raise HotkeyFormatError(
                UserText('A key is missing beside "+" in the hotkey "{text}". Write it like Ctrl+Shift+1.', text=text)
            )
        else:
            keys.append(_key_of(part, text))
    if len(keys) != 1:
        raise HotkeyFormatError(
            UserText(
                'The hotkey "{text}" has {count} keys beside its modifiers, but it must have one, like Ctrl+Shift+1.',
                text=text,
                count=len(keys),
            )
        )
    hotkey = Hotkey(frozenset(modifiers), keys[0])
    if hotkey.key not in FUNCTION_KEYS and not modifiers - {Modifier.SHIFT}:
        raise HotkeyFormatError(
            UserText(
                'The hotkey "{text}" would take a key that people type with. '
                "Add Ctrl, Alt or Meta, like Ctrl+Shift+{key}.",
                text=text,
                key=hotkey.key.capitalize(),
            )
        )
    return hotkey


def format(hotkey: Hotkey) -> str:
    """The normal form, e.g. "Ctrl+Shift+1"; `parse` reads it back to the same hotkey."""
    return str(hotkey)


def warnings(hotkey: Hotkey) -> list[UserText]:
    """What speaks against a combination that can be grabbed all the same."""
    found = []
    text = str(hotkey)
    if {Modifier.CTRL, Modifier.ALT} <= hotkey.modifiers and Modifier.META not in hotkey.modifiers:
        found.append(
            UserText(
                "{hotkey}: Ctrl+Alt is AltGr on many keyboards, so a character such as @, € or ł may no "
                "longer be typed. Ctrl+Shift is safer.",
                hotkey=text,
            )
        )
    if text in _WELL_KNOWN:
        found.append(
            UserText(
                "{hotkey} {purpose}. While the app runs, no other program gets it.",
                hotkey=text,
                purpose=_WELL_KNOWN[text],
            )
        )
    elif hotkey.modifiers == {Modifier.CTRL} and len(hotkey.key) == 1:
        found.append(
            UserText(
                "{hotkey} is a shortcut in many programs. While the app runs, no other program gets it.", hotkey=text
            )
        )
    return found


@dataclass(frozen=True, slots=True)
class Conflict:
    """One combination that several bindings ask for.

    Attributes:
        names: of the bindings, in the order given; the first one keeps the combination.
    """

    hotkey: Hotkey
    names: tuple[str, ...]


def conflicts(bindings: Mapping[str, Hotkey]) -> list[Conflict]:
    """Finds combinations that are bound more than once."""
    names: defaultdict[Hotkey, list[str]] = defaultdict(list)
    for name, hotkey in bindings.items():
        names[hotkey].append(name)
    return [Conflict(hotkey, tuple(owners)) for hotkey, owners in names.items() if len(owners) > 1]
