"""KeyboardMap on maps written by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.desktop import hotkeys
from app.desktop.protocols import Modifier

pytest.importorskip("xcffib", exc_type=ImportError)
from app.platform.x11_keyboard import KeyboardMap, keysym

SHIFT_L, CONTROL_L, ALT_L, SUPER_L, NUM_LOCK, ALT_GR = 0xFFE1, 0xFFE3, 0xFFE9, 0xFFEB, 0xFF7F, 0xFE03
MODIFIER_KEYS = {
    50: ((SHIFT_L,),),
    37: ((CONTROL_L,),),
    64: ((ALT_L,),),
    133: ((SUPER_L,),),
    77: ((NUM_LOCK,),),
    108: ((ALT_GR,),),
}
ROWS = tuple(map(frozenset, ({50}, {66}, {37}, {64}, {77}, {108}, {133}, set())))
LATIN = {38: ((ord("a"), ord("A")),), 24: ((ord("q"), ord("Q")),), 16: ((ord("7"), ord("&")),)}
RUSSIAN = {38: ((0x6C6, 0x6E6),), 24: ((0x6CA, 0x6EA),), 16: ((ord("7"), ord("?")),)}
FRENCH = {38: ((ord("q"), ord("Q")),), 24: ((ord("a"), ord("A")),), 16: ((0xE8, ord("7")),)}


def keyboard(*layouts: dict[int, tuple[tuple[int, ...], ...]], group: int = 0) -> KeyboardMap:
    keys = {code: tuple(layout[code][0] for layout in layouts) for code in (16, 24, 38)}
    return KeyboardMap({**keys, **MODIFIER_KEYS, 118: ((0xFF63,),)}, group, ROWS)


def test_every_key_name_of_the_app_has_a_keysym() -> None:
    named = [key for key in hotkeys.KEY_NAMES if keysym(key) is None]
    assert named == []
    assert len({keysym(key) for key in hotkeys.KEY_NAMES}) == len(hotkeys.KEY_NAMES)
    assert keysym("NOSUCHKEY") is keysym("F36") is keysym("é") is None


@pytest.mark.parametrize(
    ("layouts", "group", "key", "keycode"),
    [
        ((LATIN,), 0, "A", 38),
        ((LATIN, RUSSIAN), 1, "A", 38),
        ((RUSSIAN, LATIN), 0, "A", 38),
        ((LATIN, FRENCH), 1, "A", 24),
        ((LATIN, FRENCH), 0, "A", 38),
        ((FRENCH,), 0, "7", 16),
        ((RUSSIAN,), 0, "Q", 24),
        ((RUSSIAN,), 0, "Z", None),
        ((LATIN, RUSSIAN), 1, "INSERT", 118),
        ((LATIN,), 0, "F35", None),
        ((LATIN,), 0, "NOSUCHKEY", None),
    ],
)
def test_keycode(
    layouts: tuple[dict[int, tuple[tuple[int, ...], ...]], ...], group: int, key: str, keycode: int | None
) -> None:
    assert keyboard(*layouts, group=group).keycode(key) == keycode


def test_masks_follow_the_modifier_mapping() -> None:
    usual = keyboard(LATIN)
    assert usual.mask(frozenset(Modifier)) == 1 | 4 | 8 | 64
    swapped = replace(usual, modifiers=tuple(map(frozenset, ({50}, {66}, {37}, {133}, {64}, set(), set(), {77}))))
    assert swapped.mask(frozenset({Modifier.ALT})) == 16
    assert swapped.mask(frozenset({Modifier.META})) == 8
    assert swapped.lock_masks() == (0, 2, 128, 130)


def test_lock_masks() -> None:
    usual = keyboard(LATIN)
    assert usual.lock_masks() == (0, 2, 16, 18)
    assert usual.without_locks(2 | 16 | 4 | 1 | 0x2000) == 5
    no_num_lock = replace(usual, modifiers=(*ROWS[:4], frozenset(), *ROWS[5:]))
    assert no_num_lock.lock_masks() == (0, 2)


def test_held() -> None:
    keymap = bytearray(32)
    for keycode in (37, 108, 38):
        keymap[keycode // 8] |= 1 << keycode % 8
    # Alt Gr counts as Alt: it would change a sent keystroke just the same.
    assert keyboard(LATIN).held(bytes(keymap)) == {Modifier.CTRL, Modifier.ALT}
