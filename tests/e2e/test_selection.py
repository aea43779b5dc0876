"""From a selection in another program to an answer beside it, with real key presses."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.conftest import PASSWORD_MARK, App, Editor
from tests.x_display import XDisplay, need, wait_for

TEXT = "The meeting moves to Tuesday. Anna brings the plans."
OLD = b"yesterday's clipboard"
HOTKEY = "ctrl+shift+1"
CLIPBOARD_HOTKEY = "ctrl+shift+f1"
PIECES = json.dumps(["A ", "short ", "answer."])


@pytest.fixture
def app(display: XDisplay, start_app: Callable[..., App]) -> App:
    return start_app("--pieces", PIECES)


def test_hotkey_shows_the_streamed_answer(display: XDisplay, editor: Editor, app: App) -> None:
    editor.select_all(TEXT)
    display.tap(HOTKEY)
    popup = app.wait_for_popup("finished")
    assert popup["title"] == "Summarize"
    assert popup["text"] == "A short answer."
    assert popup["active"] is False
    assert len(app.sent_texts) == 1
    assert TEXT in app.sent_texts[0]
    assert editor.text == TEXT
    assert editor.ask("state")["active"]


@pytest.mark.parametrize("held", [("ctrl", "shift"), ("ctrl",), ("shift",)])
def test_held_modifiers_do_no_harm(display: XDisplay, editor: Editor, app: App, held: tuple[str, ...]) -> None:
    """The user lets the keys go late. The selection is neither deleted nor typed over."""
    editor.select_all(TEXT)
    display.press("ctrl", "shift", "1")
    display.release("1", *({"ctrl", "shift"} - set(held)))
    time.sleep(0.6)
    assert editor.text == TEXT
    display.release(*held)
    app.wait_for_popup("finished")
    assert TEXT in app.sent_texts[0]
    assert editor.text == TEXT


def test_held_modifiers_without_primary(display: XDisplay, start_editor: Callable[..., Editor], app: App) -> None:
    """Where PRIMARY belongs to another program, the copy keystroke waits for the keys."""
    other, editor = start_editor("Other"), start_editor()
    editor.select_all(TEXT)
    other.focus()
    other.select_all("something else")
    editor.focus()
    editor.ask("forget_keys")
    display.press("ctrl", "shift", "1")
    time.sleep(0.4)
    assert "Key_Insert" not in editor.ask("state")["keys"]
    display.release("shift", "ctrl")
    time.sleep(0.3)
    assert editor.text == TEXT
    display.release("1")
    app.wait_for_popup("finished")
    assert TEXT in app.sent_texts[0]
    assert editor.text == TEXT


@pytest.mark.parametrize(("caps", "num"), [(True, False), (False, True), (True, True)])
def test_lock_keys(display: XDisplay, editor: Editor, app: App, caps: bool, num: bool) -> None:
    editor.select_all(TEXT)
    display.set_locks(caps=caps, num=num)
    display.tap(HOTKEY)
    app.wait_for_popup("finished")
    assert TEXT in app.sent_texts[0]
    assert editor.text == TEXT


@pytest.mark.parametrize("layouts", ["us,ru", "us,gr"])
def test_second_layout(display: XDisplay, start_editor: Callable[..., Editor], app: App, layouts: str) -> None:
    """Hotkey and copy keystroke both work while a layout without Latin letters is active."""
    other, editor = start_editor("Other"), start_editor()
    editor.select_all(TEXT)
    other.focus()
    other.select_all("something else")
    editor.focus()
    display.set_layouts(layouts, active=1)
    time.sleep(0.2)
    display.tap(HOTKEY)
    app.wait_for_popup("finished")
    assert TEXT in app.sent_texts[0]
    assert editor.text == TEXT


def test_nothing_selected(display: XDisplay, editor: Editor, app: App) -> None:
    """The old clipboard is offered, not sent."""
    editor.ask("set_text", text=TEXT)
    editor.put_on_clipboard(**{"text/plain": OLD})
    display.tap(HOTKEY)
    popup = app.wait_for_popup("notice")
    assert "Nothing is selected" in popup["notice"]
    assert any(OLD.decode() in line for line in popup["notice"])
    assert app.sent_texts == []
    app.click("Use this text")
    wait_for(lambda: app.sent_texts, "the request")
    app.wait_for_popup("finished")
    assert OLD.decode() in app.sent_texts[0]


def test_selection_given_up_is_not_sent(display: XDisplay, editor: Editor, app: App) -> None:
    """PRIMARY still holds what was selected a moment ago, but nothing is selected now: it is offered at most."""
    editor.put_on_clipboard(**{"text/plain": OLD})
    editor.select_all(TEXT)
    display.tap("right")
    wait_for(lambda: not editor.ask("state")["selected"], "the end of the selection")
    display.tap(HOTKEY)
    popup = app.wait_for_popup("notice")
    assert "Nothing is selected" in popup["notice"]
    assert any(TEXT in line for line in popup["notice"])
    assert app.sent_texts == []
    app.click("Use this text")
    wait_for(lambda: app.sent_texts, "the request")
    assert TEXT in app.sent_texts[0]
    assert editor.clipboard()["text/plain"] == OLD


def test_popup_waits_for_held_keys_without_the_focus(display: XDisplay, editor: Editor, app: App) -> None:
    """It is there while the keys are still down, says what it waits for, and leaves the keyboard where it is."""
    editor.select_all(TEXT)
    display.press("ctrl", "shift", "1")
    popup = app.wait_for_popup("waiting")
    assert popup["waiting_for"] == "Reading the selection…"
    assert popup["active"] is False
    assert editor.ask("state")["active"]
    display.release("1", "shift", "ctrl")
    app.wait_for_popup("finished")
    assert TEXT in app.sent_texts[0]


def test_close_while_keys_are_held_reads_nothing(display: XDisplay, editor: Editor, app: App) -> None:
    editor.put_on_clipboard(**{"text/plain": OLD})
    editor.select_all(TEXT)
    display.press("ctrl", "shift", "1")
    app.wait_for_popup("waiting")
    app.ask("close_popup")
    display.release("1", "shift", "ctrl")
    time.sleep(0.5)
    assert app.sent_texts == []
    assert app.popup["visible"] is False
    assert editor.clipboard()["text/plain"] == OLD
    assert "Key_Insert" not in editor.ask("state")["keys"]
    display.tap(HOTKEY)
    app.wait_for_popup("finished")


def test_escape_in_the_clicked_popup_ends_the_reading(display: XDisplay, editor: Editor, app: App) -> None:
    """A hung program answers the copy keystroke late: the clipboard comes back all the same."""
    editor.put_on_clipboard(**{"text/plain": OLD})
    editor.select_all(TEXT)
    editor.ask("answer_copies_after", ms=400)
    display.tap(HOTKEY)
    left, top, width, _ = app.wait_for_popup("waiting")["rect"]
    wait_for(lambda: "Key_Insert" in editor.ask("state")["keys"], "the copy keystroke")
    display.click(left + width // 2, top + 20)
    # A person sees the popup come to the front before pressing the next key; openbox takes a moment for it.
    wait_for(lambda: app.popup["active"], "the keyboard in the popup")
    display.tap("esc")
    wait_for(lambda: not app.popup["visible"], "the popup's end")
    time.sleep(0.8)
    assert app.sent_texts == []
    assert editor.clipboard()["text/plain"] == OLD


def test_clipboard_by_choice(display: XDisplay, editor: Editor, app: App) -> None:
    editor.put_on_clipboard(**{"text/plain": OLD})
    display.tap(CLIPBOARD_HOTKEY)
    app.wait_for_popup("finished")
    assert OLD.decode() in app.sent_texts[0]


def test_password_is_refused(display: XDisplay, start_editor: Callable[..., Editor], app: App) -> None:
    editor = start_editor()
    editor.put_on_clipboard(**{"text/plain": b"hunter2", **PASSWORD_MARK})
    display.tap(CLIPBOARD_HOTKEY)
    popup = app.wait_for_popup("notice")
    assert "This is a password" in popup["notice"]
    assert not any("hunter2" in line for line in popup["notice"])
    app.click("Close") if "Close" in popup["buttons"] else None
    # Nothing selected either: what lies on the clipboard is not even shown.
    display.tap(HOTKEY)
    wait_for(lambda: "Nothing is selected" in app.popup["notice"], "the answer")
    assert not any("hunter2" in line for line in app.popup["notice"])
    assert app.sent_texts == []


def test_ten_presses_in_a_second(display: XDisplay, editor: Editor, app: App) -> None:
    """The text stays, the popup shows one answer, and the app still works."""
    editor.select_all(TEXT)
    for _ in range(10):
        display.tap(HOTKEY, hold_s=0.03)
        time.sleep(0.05)
    popup = app.wait_for_popup("finished")
    assert popup["text"] == "A short answer."
    assert editor.text == TEXT
    assert len(app.sent_texts) == 1
    assert TEXT in app.sent_texts[0]
    time.sleep(0.6)
    display.tap(HOTKEY)
    wait_for(lambda: len(app.sent_texts) == 2, "one more answer")


def test_terminal_gets_no_copy_keystroke(display: XDisplay, app: App, tmp_path: Path) -> None:
    """What runs in it goes on, and its own selection works."""
    need("xterm")
    written = tmp_path / "written"
    # Three clicks are one triple click, however busy the machine is.
    script = f"echo one two three; touch {written}; exec sleep 300"
    terminal = display.start("xterm", "-xrm", "*multiClickTime: 5000", "-e", "sh", "-c", script)
    wait_for(lambda: display.active_class() == "XTerm", "the terminal")
    wait_for(written.exists, "the terminal's text")
    time.sleep(0.3)
    display.tap(HOTKEY)
    popup = app.wait_for_popup("notice")
    assert "Nothing is selected" in popup["notice"]
    assert terminal.poll() is None
    # A triple click marks the line.
    left, top, _, _ = display.geometry(display.active_window())
    for _ in range(3):
        display.click(left + 20, top + 8)
    wait_for(lambda: display.selection_owner("PRIMARY"), "a selection in the terminal")
    display.tap(HOTKEY)
    # Until then the popup still shows the notice of the first press.
    wait_for(lambda: app.sent_texts, "the selection")
    app.wait_for_popup("finished")
    assert "one two three" in app.sent_texts[0]
    assert terminal.poll() is None
