"""The X keyboard: which keycode a key name has under the current layout, which bit a modifier has, what is held."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import xcffib
import xcffib.xkb
import xcffib.xproto

from app.desktop.protocols import Modifier

# X keysyms (X11/keysymdef.h). Letters and digits are their Latin-1 codes; F1 is 0xffbe.
_NAMED_KEYSYMS: Mapping[str, int] = {
    "SPACE": 0x20,
    "BACKSPACE": 0xFF08,
    "TAB": 0xFF09,
    "ENTER": 0xFF0D,
    "RETURN": 0xFF0D,
    "PAUSE": 0xFF13,
    "SCROLLLOCK": 0xFF14,
    "ESC": 0xFF1B,
    "ESCAPE": 0xFF1B,
    "HOME": 0xFF50,
    "LEFT": 0xFF51,
    "UP": 0xFF52,
    "RIGHT": 0xFF53,
    "DOWN": 0xFF54,
    "PAGEUP": 0xFF55,
    "PAGEDOWN": 0xFF56,
    "END": 0xFF57,
    "PRINT": 0xFF61,
    "INSERT": 0xFF63,
    "MENU": 0xFF67,
    "DELETE": 0xFFFF,
    "APOSTROPHE": 0x27,
    "COMMA": 0x2C,
    "MINUS": 0x2D,
    "PERIOD": 0x2E,
    "SLASH": 0x2F,
    "SEMICOLON": 0x3B,
    "EQUAL": 0x3D,
    "BRACKETLEFT": 0x5B,
    "BACKSLASH": 0x5C,
    "BRACKETRIGHT": 0x5D,
    "GRAVE": 0x60,
}
_CONTROL_L, _SHIFT_L = 0xFFE3, 0xFFE1
_ALT_KEYSYMS = frozenset({0xFFE9, 0xFFEA})  # Alt_L, Alt_R
_META_KEYSYMS = frozenset({0xFFEB, 0xFFEC})  # Super_L, Super_R
_LEVEL3_KEYSYM = 0xFE03  # ISO_Level3_Shift, the key that says "Alt Gr"
_NUM_LOCK_KEYSYM = 0xFF7F

# Bits of a key event's state, and the rows of the modifier mapping.
SHIFT_MASK, LOCK_MASK, CONTROL_MASK, MOD1_MASK, MOD4_MASK = 1, 2, 4, 8, 64
_ALL_MODIFIERS_MASK = 0xFF

# Keycodes of the Latin letters and digits on a US keyboard (evdev, and the older xfree86 alike): where a layout has no
# Latin letters at all, a combination means the key on which a US keyboard has the letter.
_US_ROWS = ((10, "1234567890"), (24, "QWERTYUIOP"), (38, "ASDFGHJKL"), (52, "ZXCVBNM"))
_US_KEYCODES: Mapping[str, int] = {key: first + column for first, keys in _US_ROWS for column, key in enumerate(keys)}

_USE_CORE_KEYBOARD = 0x100


def keysym(key: str) -> int | None:
    """The keysym that a key makes without modifiers, None for an unknown name.

    Args:
        key: as in Hotkey.key: "A", "7", "F5", "SPACE", or a single ASCII character.
    """
    if key in _NAMED_KEYSYMS:
        return _NAMED_KEYSYMS[key]
    if len(key) == 1 and 0x21 <= ord(key) <= 0x7E:
        return ord(key.lower())
    if key.startswith("F") and key[1:].isdecimal() and 1 <= int(key[1:]) <= 35:
        return 0xFFBE + int(key[1:]) - 1
    return None


@dataclass(frozen=True, slots=True)
class KeyboardMap:
    """A snapshot of the keyboard.

    Attributes:
        symbols: keycode to its keysyms, by layout (group) and shift level.
        group: the layout that is active now, from 0.
        modifiers: the eight rows of the modifier mapping (Shift, Lock, Control, Mod1 to Mod5), each the keycodes in it.
    """

    symbols: Mapping[int, tuple[tuple[int, ...], ...]]
    group: int
    modifiers: tuple[frozenset[int], ...]

    def keycode(self, key: str) -> int | None:
        """The key to press for a name: in the active layout, else the first one that has it, else by US position."""
        wanted = keysym(key)
        if wanted is None:
            return None
        for group in (self.group, *range(4)):
            for level in range(2):
                found = self._find(wanted, group, level)
                if found is not None:
                    return found
        position = _US_KEYCODES.get(key)
        return position if position in self.symbols else None

    def _find(self, wanted: int, group: int, level: int) -> int | None:
        for keycode, groups in self.symbols.items():
            # A key with fewer layouts than the keyboard repeats them.
            levels = groups[group % len(groups)] if groups else ()
            if level < len(levels) and levels[level] == wanted:
                return keycode
        return None

    def mask(self, modifiers: frozenset[Modifier]) -> int:
        """The state bits of a set of modifiers."""
        return sum(self._bit(modifier) for modifier in modifiers)

    def _bit(self, modifier: Modifier) -> int:
        match modifier:
            case Modifier.SHIFT:
                return SHIFT_MASK
            case Modifier.CTRL:
                return CONTROL_MASK
            case Modifier.ALT:
                return self._bit_of(_ALT_KEYSYMS) or MOD1_MASK
            case Modifier.META:
                return self._bit_of(_META_KEYSYMS) or MOD4_MASK

    def _bit_of(self, keysyms: frozenset[int]) -> int:
        """The bit of the first Mod1 to Mod5 row that holds a key with one of these keysyms, 0 where none does."""
        for row in range(3, 8):
            if any(self._base(keycode) in keysyms for keycode in self.modifiers[row]):
                return 1 << row
        return 0

    def _base(self, keycode: int) -> int:
        groups = self.symbols.get(keycode, ())
        return groups[0][0] if groups and groups[0] else 0

    def lock_masks(self) -> tuple[int, ...]:
        """State bits that may be set without meaning anything: none, Caps Lock, Num Lock, both."""
        num_lock = self._bit_of(frozenset({_NUM_LOCK_KEYSYM}))
        return tuple(sorted({0, LOCK_MASK, num_lock, LOCK_MASK | num_lock}))

    def without_locks(self, state: int) -> int:
        """The modifier bits of an event's state, lock keys and layout left out."""
        return state & _ALL_MODIFIERS_MASK & ~max(self.lock_masks())

    def held(self, keymap: bytes) -> frozenset[Modifier]:
        """The modifiers that are down.

        Args:
            keymap: 32 bytes, one bit a keycode, as QueryKeymap answers.
        """
        rows: dict[Modifier, frozenset[int]] = {Modifier.SHIFT: self.modifiers[0], Modifier.CTRL: self.modifiers[2]}
        rows[Modifier.ALT] = self._keycodes_with(_ALT_KEYSYMS | {_LEVEL3_KEYSYM})
        rows[Modifier.META] = self._keycodes_with(_META_KEYSYMS)
        down = frozenset(_pressed(keymap))
        return frozenset(modifier for modifier, keycodes in rows.items() if keycodes & down)

    def _keycodes_with(self, keysyms: frozenset[int]) -> frozenset[int]:
        return frozenset(keycode for row in self.modifiers for keycode in row if self._base(keycode) in keysyms)

    def modifier_keycode(self, modifier: Modifier) -> int | None:
        """The key to press for Ctrl or Shift."""
        row, wanted = (self.modifiers[2], _CONTROL_L) if modifier is Modifier.CTRL else (self.modifiers[0], _SHIFT_L)
        return min((k for k in row if self._base(k) == wanted), default=min(row, default=None))


def _pressed(keymap: bytes) -> Iterator[int]:
    for index, byte in enumerate(keymap):
        for bit in range(8):
            if byte & (1 << bit):
                yield index * 8 + bit


class X11Keyboard:
    """The keyboard map of one connection, kept current. Not thread-safe.

    The connection's owner hands every event to `is_change` and calls `refresh` when it answers True.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._xkb: Any = connection(xcffib.xkb.key)
        self._xkb.UseExtension(1, 0).reply()
        event = xcffib.xkb.EventType
        whole = event.NewKeyboardNotify | event.MapNotify
        # Of the state only the layout is of interest: an event for each press of Shift would be noise.
        group = xcffib.xkb.StatePart.GroupState
        map_parts = xcffib.xkb.MapPart.KeySyms | xcffib.xkb.MapPart.ModifierMap
        self._xkb.SelectEvents(
            _USE_CORE_KEYBOARD, whole | event.StateNotify, 0, whole, map_parts, map_parts, [group, group]
        )
        self.map = self._read()

    def report_repeats_as_presses(self) -> None:
        """Lets a held key send presses only, so that a real release can be told from autorepeat."""
        flag = xcffib.xkb.PerClientFlag.DetectableAutoRepeat
        self._xkb.PerClientFlags(_USE_CORE_KEYBOARD, flag, flag, 0, 0, 0).reply()

    @staticmethod
    def is_change(event: Any) -> bool:
        """Whether an event says that mapping or layout changed. (All of XKB's events share one code.)"""
        return isinstance(event, xcffib.xproto.MappingNotifyEvent | xcffib.xkb.NewKeyboardNotifyEvent)

    def refresh(self) -> None:
        """Reads the map again."""
        self.map = self._read()

    def _read(self) -> KeyboardMap:
        setup = self._connection.get_setup()
        first, count = setup.min_keycode, setup.max_keycode - setup.min_keycode + 1
        parts = xcffib.xkb.MapPart.KeySyms
        symbols = self._xkb.GetMap(_USE_CORE_KEYBOARD, 0, parts, 0, 0, first, count, *[0] * 11)
        modifiers = self._connection.core.GetModifierMapping()
        state = self._xkb.GetState(_USE_CORE_KEYBOARD)
        return KeyboardMap(
            symbols=_symbols(symbols.reply()), group=state.reply().group, modifiers=_rows(modifiers.reply())
        )


def _symbols(reply: Any) -> dict[int, tuple[tuple[int, ...], ...]]:
    symbols: dict[int, tuple[tuple[int, ...], ...]] = {}
    for offset, key in enumerate(reply.syms_rtrn):
        groups, width, syms = key.groupInfo & 0x0F, key.width, tuple(key.syms)
        if groups:
            symbols[reply.firstKeySym + offset] = tuple(syms[g * width : (g + 1) * width] for g in range(groups))
    return symbols


def _rows(reply: Any) -> tuple[frozenset[int], ...]:
    per_row, keycodes = reply.keycodes_per_modifier, list(reply.keycodes)
    return tuple(frozenset(keycodes[r * per_row : (r + 1) * per_row]) - {0} for r in range(8))
