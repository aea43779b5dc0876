"""Where the text of a command comes from: words, a pipe, a file, the clipboard, and which of them are read."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyperclip
import pytest

from app.terminal import given_text
from app.terminal.errors import UsageError
from app.terminal.given_text import GivenText, read_given


class Input(io.StringIO):
    """Standard input with bytes behind it."""

    def __init__(self, data: bytes, is_terminal: bool = False) -> None:
        super().__init__()
        self._data = data
        self._is_terminal = is_terminal

    @property
    def buffer(self) -> io.BytesIO:
        return io.BytesIO(self._data)

    def isatty(self) -> bool:
        return self._is_terminal


Feed = Callable[..., None]


@pytest.fixture
def feed(monkeypatch: pytest.MonkeyPatch) -> Feed:
    def feed(data: bytes, is_terminal: bool = False) -> None:
        monkeypatch.setattr(sys, "stdin", Input(data, is_terminal))

    return feed


@pytest.mark.parametrize("words", [[], ["-"]])
def test_without_words_standard_input_is_read_as_utf_8(words: list[str], feed: Feed) -> None:
    feed("\ufeff你好\n".encode())
    assert read_given(words, clipboard=False) == GivenText("", "你好\n")


def test_what_is_piped_beside_words_is_read(feed: Feed) -> None:
    feed(b"one\ntwo\n\n")
    given = read_given(["which", "is", "first?"], clipboard=False)
    assert given.as_request() == "one\ntwo\n\nwhich is first?"
    with pytest.raises(UsageError, match="standard input"):
        given.as_one_text()


@pytest.mark.parametrize("data", [b"", b" \n"])
def test_an_empty_pipe_beside_words_is_nothing(data: bytes, feed: Feed) -> None:
    feed(data)
    given = read_given(["why?"], clipboard=False)
    assert given.as_request() == given.as_one_text() == "why?"


def test_a_terminal_is_read_only_where_that_is_asked_for(feed: Feed) -> None:
    feed(b"typed", is_terminal=True)
    assert read_given(["a", "-", "b"], clipboard=False) == GivenText("a - b")
    assert read_given(["why?", "-"], clipboard=False) == GivenText("why?", "typed")
    assert read_given(["-"], clipboard=False) == GivenText("", "typed")
    with pytest.raises(UsageError, match="--clipboard"):
        read_given([], clipboard=False)


def test_input_that_is_no_text(feed: Feed) -> None:
    feed(b"ok \xff\xfe")
    with pytest.raises(UsageError, match="UTF-8"):
        read_given(["-"], clipboard=False)


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The end of a pipe that leads to standard input."""
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        yield write_end


def test_a_pipe_is_read_to_its_end(piped: int) -> None:
    os.write(piped, b"material")
    os.close(piped)
    assert read_given(["why?"], clipboard=False) == GivenText("why?", "material")


def test_a_pipe_that_does_not_end_is_named(
    piped: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Notes(io.StringIO):
        def flush(self) -> None:
            os.close(piped)  # only now the reader goes on

    monkeypatch.setattr(given_text, "_PATIENCE_S", 0.01)
    notes = Notes()
    monkeypatch.setattr(sys, "stderr", notes)
    assert read_given(["why?"], clipboard=False) == GivenText("why?")
    assert "standard input is a pipe that has not ended" in notes.getvalue()


def test_a_file_is_read_and_the_null_device_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("material", encoding="utf-8")
    for path, material in ((file, "material"), (Path(os.devnull), "")):
        with path.open(encoding="utf-8") as stream:
            monkeypatch.setattr(sys, "stdin", stream)
            assert read_given(["why?"], clipboard=False) == GivenText("why?", material)
    assert read_given(["why?"], clipboard=False) == GivenText("why?"), "it is closed"


def test_the_name_of_a_file_is_refused_as_a_text(tmp_path: Path, feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my letter.txt").touch()
    feed(b"", is_terminal=True)
    for words in (["letter.text"], ["read", "my letter.txt"], ["x" * 9000], ["."]):
        assert read_given(words, clipboard=False).words == " ".join(words)
    for data, is_terminal in ((b"", True), (b" \n", False)):
        feed(data, is_terminal)
        for words in (["my letter.txt"], ["my letter.txt", "-"]):
            with pytest.raises(UsageError) as raised:
                read_given(words, clipboard=False)
            assert "< 'my letter.txt' in place of the name" in str(raised.value)
            assert "echo 'my letter.txt' | deskinfer ask" in str(raised.value)
            assert raised.value.status == 2


def test_the_name_of_a_file_may_be_piped_or_say_what_to_do_with_a_text(
    tmp_path: Path, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "explain").touch()
    feed(b"explain\n")
    assert read_given([], clipboard=False) == GivenText("", "explain\n")
    feed(b"a text")
    assert read_given(["explain"], clipboard=False) == GivenText("explain", "a text")
    monkeypatch.setattr(pyperclip, "paste", lambda: "copied")
    assert read_given(["explain"], clipboard=True).as_request() == "copied\n\nexplain"


def test_the_clipboard_is_material_too(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    feed(b"never read")
    monkeypatch.setattr(pyperclip, "paste", lambda: "copied")
    assert read_given([], clipboard=True).as_one_text() == "copied"
    given = read_given(["what", "is", "this?"], clipboard=True)
    assert given.as_request() == "copied\n\nwhat is this?"
    with pytest.raises(UsageError, match="the words and the clipboard's"):
        given.as_one_text()
    with pytest.raises(UsageError, match="not both"):
        read_given(["what?", "-"], clipboard=True)


@pytest.mark.parametrize("text", ["", " \n"])
def test_empty_clipboard(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyperclip, "paste", lambda: text)
    with pytest.raises(UsageError, match="holds no text"):
        read_given([], clipboard=True)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing has to be installed for it")
@pytest.mark.parametrize(
    ("displays", "cure", "no_cure"),
    [
        ({}, "neither DISPLAY nor WAYLAND_DISPLAY is set", "nstall"),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "Install wl-clipboard", "xclip"),
        ({"DISPLAY": ":0"}, "Install xclip", "is set"),
    ],
)
def test_clipboard_that_cannot_be_read(
    displays: dict[str, str], cure: str, no_cure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def paste() -> str:
        raise pyperclip.PyperclipException("no mechanism")

    monkeypatch.setattr(pyperclip, "paste", paste)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in displays.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError) as raised:
        read_given([], clipboard=True)
    assert cure in str(raised.value)
    assert "pipe" in str(raised.value)
    assert no_cure not in str(raised.value)


def test_a_pipe_that_never_ends_is_not_read_until_the_memory_is_full(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(given_text, "MOST_INPUT_BYTES", 5)
    feed(b"12345")
    assert read_given([], clipboard=False).material == "12345"
    feed(b"123456")
    with pytest.raises(UsageError, match="a part of it"):
        read_given([], clipboard=False)
