"""What a command is given to work on: words behind it, and the text of standard input or of the clipboard."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import stat
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.terminal.errors import MISTAKEN, UsageError

STANDARD_INPUT = "-"
MOST_INPUT_BYTES = 256 << 20
"""More than a model reads in a month; without a limit a pipe that never ends takes the memory of the whole machine."""
_PATIENCE_S = 2.0
_WAITS = (
    "deskinfer: standard input is a pipe that has not ended, and its text is waited for. "
    "Write </dev/null behind the command to leave it out.\n"
)


@dataclass(frozen=True, slots=True)
class GivenText:
    """Words, material, or both.

    Attributes:
        words: of the command line.
        material: of standard input or the clipboard.
        is_copied: it is the clipboard's.
    """

    words: str = ""
    material: str = ""
    is_copied: bool = False

    def as_request(self) -> str:
        """The material, then what is to be done with it: small models do what is said last."""
        if not self.words or not self.material.strip():
            return self.words or self.material
        return f"{self.material.rstrip()}\n\n{self.words}"

    def as_one_text(self) -> str:
        """The text of an action. Raises UsageError where there are two."""
        if self.words and self.material.strip():
            place = "the clipboard's" if self.is_copied else "that of standard input (</dev/null leaves it out)"
            raise UsageError(f"An action works on one text, but here are two: the words and {place}. Give one of them.")
        return self.words or self.material


def read_given(words: Sequence[str], clipboard: bool) -> GivenText:
    """Reads what a command is given.

    A pipe or a file at standard input is read beside the words; a terminal where there are none but "-" at their end.

    Args:
        clipboard: take the clipboard's text, and leave standard input alone.

    Raises:
        UsageError: there is nothing, it is no text, it is the name of a file and nothing else, or both standard input
            and the clipboard are asked for.
    """
    given = _read(words, clipboard)
    if given.words and not given.material.strip() and given.words in words and _is_file(given.words):
        # A model told the name makes up what the file may say.
        name = shlex.quote(given.words)
        raise UsageError(
            f"{given.words} is the name of a file. For what the file says, write < {name} in place of the name; "
            f"for the name itself, put it into a pipe: echo {name} | deskinfer ask ...",
            MISTAKEN,
        )
    return given


def _read(words: Sequence[str], clipboard: bool) -> GivenText:
    asks_input = bool(words) and words[-1] == STANDARD_INPUT
    said = " ".join(words[:-1] if asks_input else words)
    if clipboard:
        if asks_input:
            raise UsageError('Give "-" or --clipboard, not both.')
        return GivenText(said, _clipboard_text(), is_copied=True)
    if asks_input or not said:
        if not asks_input and sys.stdin.isatty():
            raise UsageError('There is no text. Write it behind the command, or use --clipboard, or "-" and a pipe.')
        return GivenText(said, _input_text())
    if not _is_fed():
        return GivenText(said)
    with _note_when_slow():
        return GivenText(said, _input_text())


def _is_file(word: str) -> bool:
    try:
        return Path(word).is_file()
    except (OSError, ValueError):  # too long for a name
        return False


def _is_fed() -> bool:
    """Whether something was put into standard input: a pipe or a file, no terminal and no /dev/null."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except io.UnsupportedOperation:
        return not sys.stdin.isatty()
    except (OSError, ValueError):  # it is closed
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


@contextlib.contextmanager
def _note_when_slow() -> Iterator[None]:
    """Some programs start others with a pipe that they never close: who waits there should see for what."""

    def tell() -> None:
        sys.stderr.write(_WAITS)
        sys.stderr.flush()

    timer = threading.Timer(_PATIENCE_S, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _input_text() -> str:
    read = sys.stdin.buffer.read(MOST_INPUT_BYTES + 1)
    if len(read) > MOST_INPUT_BYTES:
        raise UsageError(f"Standard input has more than {MOST_INPUT_BYTES >> 20} MB of text. Give a part of it.")
    try:
        return read.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"Standard input is not UTF-8 text ({error.reason} at byte {error.start}).") from error


def _clipboard_text() -> str:
    import pyperclip

    try:
        text = str(pyperclip.paste())
    except pyperclip.PyperclipException as error:
        raise UsageError(f"The clipboard cannot be read here. {_clipboard_cure()}") from error
    if not text.strip():
        raise UsageError("The clipboard holds no text.")
    return text


def _clipboard_cure() -> str:
    """X11's programs cannot read without a display, and a clipboard of Wayland alone only wl-clipboard reads."""
    if sys.platform in ("win32", "darwin"):
        return "Try again, or use a pipe."
    if os.environ.get("DISPLAY"):
        return "Install xclip, xsel or wl-clipboard, or use a pipe."
    if os.environ.get("WAYLAND_DISPLAY"):
        return "Install wl-clipboard, or use a pipe."
    return "There is no display here: neither DISPLAY nor WAYLAND_DISPLAY is set. Use a pipe."
