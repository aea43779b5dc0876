"""Hotkeys as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.desktop import hotkeys
from app.desktop.hotkeys import FUNCTION_KEYS, KEY_NAMES, Conflict, HotkeyFormatError, conflicts, parse
from app.desktop.protocols import Hotkey, Modifier

CTRL_SHIFT = frozenset({Modifier.CTRL, Modifier.SHIFT})


@pytest.mark.parametrize(
    "text",
    [
        *("Ctrl+Shift+S", "ctrl + shift+s", "Control+SHIFT+s", "Strg+Umschalt+S", "shift+ctrl+s", "  Ctrl+Shift+S "),
        "Ctrl+Ctrl+Shift+S",
    ],
)
def test_one_combination_however_it_is_written(text: str) -> None:
    assert parse(text) == Hotkey(CTRL_SHIFT, "S")


@pytest.mark.parametrize("name", ["Win", "windows", "Super", "Cmd", "command", "Meta"])
def test_the_system_key_has_many_names(name: str) -> None:
    assert parse(f"{name}+Space") == Hotkey(frozenset({Modifier.META}), "SPACE")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        *(("Enter", "RETURN"), ("Esc", "ESCAPE"), ("Ins", "INSERT"), ("Page Up", "PAGEUP"), ("page_down", "PAGEDOWN")),
        *(
            ("PgDn", "PAGEDOWN"),
            ("Entf", "DELETE"),
            ("-", "MINUS"),
            ("=", "EQUAL"),
            ("[", "BRACKETLEFT"),
            (",", "COMMA"),
        ),
        *(("f12", "F12"), ("1", "1"), ("z", "Z")),
    ],
)
def test_keys_by_other_names(text: str, key: str) -> None:
    assert parse(f"Ctrl+{text}").key == key


@given(
    st.frozensets(st.sampled_from(list(Modifier)), min_size=1).filter(lambda found: found != {Modifier.SHIFT}),
    st.sampled_from(KEY_NAMES),
)
def test_the_normal_form_reads_back_to_the_same_hotkey(modifiers: frozenset[Modifier], key: str) -> None:
    hotkey = Hotkey(modifiers, key)
    assert parse(hotkeys.format(hotkey)) == hotkey
    assert parse(hotkeys.format(hotkey).lower()) == hotkey


@given(st.text(max_size=30))
def test_any_text_is_a_hotkey_or_an_error_that_quotes_it(text: str) -> None:
    try:
        key, message = parse(text).key, ""
    except HotkeyFormatError as error:
        key, message = "", str(error)
    assert key in KEY_NAMES or text in message or not text.strip()


@pytest.mark.parametrize("key", ["F1", "F24"])
def test_function_keys_need_no_modifier(key: str) -> None:
    assert parse(key) == Hotkey(frozenset(), key)
    assert parse(f"Shift+{key}") == Hotkey(frozenset({Modifier.SHIFT}), key)


@pytest.mark.parametrize("text", ["a", "7", "Shift+A", "Space", "Shift+Insert", "Escape"])
def test_keys_that_people_type_with_need_a_modifier(text: str) -> None:
    with pytest.raises(HotkeyFormatError, match="Add Ctrl, Alt or Meta"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Write it like"),
        ("Ctrl+", "A key is missing beside"),
        ("Ctrl++", "A key is missing beside"),
        ("Ctrl+Shift", "has 0 keys"),
        ("Ctrl+A+B", "has 2 keys"),
        ("Ctrl+Insrt", "Did you mean Insert"),
        ("Ctrl+Shfit+A", "Did you mean Shift"),
        ("Ctrl+总", "Use a letter"),
        ("Ctrl+F25", "F1 to F24"),
    ],
)
def test_errors_name_the_text_and_the_cure(text: str, message: str) -> None:
    with pytest.raises(HotkeyFormatError, match=message):
        parse(text)


def test_alt_gr_is_warned_of() -> None:
    assert "AltGr" in str(hotkeys.warnings(parse("Ctrl+Alt+Q"))[0])
    assert hotkeys.warnings(parse("Ctrl+Alt+Meta+Q")) == []


@pytest.mark.parametrize(
    ("text", "purpose"),
    [("Ctrl+C", "copies"), ("Ctrl+Shift+T", "reopens a tab"), ("Alt+F4", "closes"), ("Ctrl+K", "many")],
)
def test_well_known_combinations_are_warned_of(text: str, purpose: str) -> None:
    (warning,) = hotkeys.warnings(parse(text))
    assert text in str(warning)
    assert purpose in str(warning)


def test_a_free_combination_is_not_warned_of() -> None:
    assert hotkeys.warnings(parse("Ctrl+Shift+1")) == []
    assert all(hotkeys.warnings(parse(f"Ctrl+Shift+{key}")) == [] for key in FUNCTION_KEYS)


def test_conflicts_name_every_binding_of_a_combination() -> None:
    bindings = {
        "a": parse("Ctrl+Shift+1"),
        "b": parse("shift+ctrl+1"),
        "c": parse("Ctrl+Shift+2"),
        "d": parse("Ctrl+Shift+1"),
    }
    assert conflicts(bindings) == [Conflict(Hotkey(CTRL_SHIFT, "1"), ("a", "b", "d"))]
    assert conflicts({"a": parse("F5"), "b": parse("F6")}) == []
