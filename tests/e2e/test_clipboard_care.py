"""The clipboard comes back with all that was on it, and answers go into the right window only."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable

import pytest

from tests.e2e.conftest import PASSWORD_MARK, App, Editor
from tests.x_display import XDisplay, wait_for

TEXT = "The meeting moves to Tuesday. Anna brings the plans."
HOTKEY = "ctrl+shift+1"
ANSWER = "A short answer."


def png() -> bytes:
    """A picture of 2 by 1 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 2, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0" + bytes((255, 0, 0, 0, 0, 255)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


OLD = {
    "text/plain": "yesterday's clipboard, with ü and 漢字".encode(),
    "text/html": b"<b>yesterday's</b> clipboard",
    "image/png": png(),
    "application/x-deskinfer-test": bytes(range(256)),
}


@pytest.fixture
def app(display: XDisplay, start_app: Callable[..., App]) -> App:
    return start_app("--pieces", json.dumps(["A ", "short ", "answer."]))


@pytest.fixture
def other(display: XDisplay, start_editor: Callable[..., Editor]) -> Editor:
    """A program that owns the clipboard and PRIMARY."""
    other = start_editor("Other")
    other.put_on_clipboard(**OLD)
    other.select_all("something else")
    return other


@pytest.fixture
def selecting_editor(other: Editor, start_editor: Callable[..., Editor]) -> Editor:
    """An editor with a selection that PRIMARY does not hold, so that capture has to copy it."""
    editor = start_editor()
    editor.select_all(TEXT)
    other.focus()
    other.select_all("something else")
    editor.focus()
    return editor


def test_all_formats_come_back_after_a_capture(
    display: XDisplay, selecting_editor: Editor, other: Editor, app: App
) -> None:
    display.tap(HOTKEY)
    app.wait_for_popup("finished")
    assert TEXT in app.sent_texts[0]
    wait_for(lambda: OLD.items() <= other.clipboard().items(), lambda: f"all formats; there are {other.clipboard()}")
    assert TEXT.encode() not in other.clipboard().values()


def test_password_copied_by_the_keystroke_is_refused(
    display: XDisplay, start_editor: Callable[..., Editor], app: App
) -> None:
    """A password manager marks what it copies; the clipboard comes back, the password goes nowhere."""
    manager = start_editor("Passwords")
    manager.ask("copy_as_secret", text="hunter2")
    display.tap("ctrl+a")
    owner = start_editor("Owner")
    owner.put_on_clipboard(**OLD)
    owner.select_all("something else")
    manager.focus()
    display.tap(HOTKEY)
    popup = app.wait_for_popup("notice")
    assert "This is a password" in popup["notice"]
    assert app.sent_texts == []
    wait_for(lambda: OLD.items() <= owner.clipboard().items(), "all formats")
    assert PASSWORD_MARK.keys().isdisjoint(owner.clipboard())


def test_replace_in_place(display: XDisplay, other: Editor, start_editor: Callable[..., Editor], app: App) -> None:
    editor = start_editor()
    editor.select_all(TEXT)
    display.tap(HOTKEY)
    app.wait_for_popup("finished")
    app.click("Replace")
    wait_for(lambda: editor.text == ANSWER, lambda: f"the replacement; the text is {editor.text!r}")
    wait_for(lambda: not app.popup["visible"], "the popup's end")
    wait_for(lambda: OLD.items() <= other.clipboard().items(), "all formats")
    assert other.text == "something else"


def test_replace_goes_back_to_the_window_it_came_from(
    display: XDisplay, other: Editor, start_editor: Callable[..., Editor], app: App
) -> None:
    """The user works elsewhere when the answer is there: nothing is pasted into that window."""
    editor = start_editor()
    editor.select_all(TEXT)
    display.tap(HOTKEY)
    app.wait_for_popup("finished")
    other.focus()
    app.click("Replace")
    wait_for(lambda: editor.text == ANSWER, lambda: f"the replacement; the text is {editor.text!r}")
    assert other.text == "something else"


def test_replace_without_its_window_keeps_the_answer(
    display: XDisplay, other: Editor, start_editor: Callable[..., Editor], app: App
) -> None:
    editor = start_editor()
    editor.select_all(TEXT)
    display.tap(HOTKEY)
    app.wait_for_popup("finished")
    other.focus()
    editor.close()
    app.click("Replace")
    popup = app.wait_for_popup("notice")
    assert "The text was not replaced" in " ".join(popup["notice"])
    assert popup["text"] == ANSWER
    assert other.text == "something else"
    assert OLD.items() <= other.clipboard().items()


def test_copy_button(display: XDisplay, other: Editor, start_editor: Callable[..., Editor], app: App) -> None:
    editor = start_editor()
    editor.select_all(TEXT)
    display.tap(HOTKEY)
    app.wait_for_popup("finished")
    app.click("Copy")
    wait_for(lambda: other.clipboard().get("text/plain") == ANSWER.encode(), "the answer on the clipboard")
