"""Answers on a terminal: text and notes apart, progress, and each way an answer can end."""

from __future__ import annotations

import io
import threading

import pytest

from app.actions.registry import ActionRegistry
from app.engine_client import FakeClient, ScriptedAnswer
from app.terminal.answer_printer import AnswerPrinter, as_text, engine_events
from inference.errors import InferenceError, ModelNotFoundError
from inference.request import GenerationRequest, Message, TokenEvent, Usage

REQUEST = GenerationRequest((Message("user", "hello"),))


class Terminal(io.StringIO):
    """A stream that says that somebody looks."""

    def isatty(self) -> bool:
        return True


class PlayingClient(FakeClient):
    """Plays what was submitted at once, on a thread as the engine has one."""

    def submit(self, request, listener) -> None:
        super().submit(request, listener)
        thread = threading.Thread(target=self.play)
        thread.start()
        thread.join()


def print_answer(client: FakeClient, out: io.StringIO, notes: io.StringIO):
    return AnswerPrinter(out, notes).print_answer(engine_events(client, REQUEST))


def test_text_alone_on_the_output_and_nothing_on_a_piped_notes_stream() -> None:
    out, notes = io.StringIO(), io.StringIO()
    done = print_answer(PlayingClient(ScriptedAnswer("Guten ", "Tag")), out, notes)
    assert out.getvalue() == "Guten Tag\n"
    assert notes.getvalue() == ""
    assert done.finish_reason == "stop"


def test_no_second_line_break() -> None:
    out = io.StringIO()
    print_answer(PlayingClient(ScriptedAnswer("- a\n", "- b\n")), out, io.StringIO())
    assert out.getvalue() == "- a\n- b\n"


def test_empty_answer_prints_nothing() -> None:
    out = io.StringIO()
    print_answer(PlayingClient(ScriptedAnswer()), out, io.StringIO())
    assert out.getvalue() == ""


def test_progress_on_a_terminal_is_wiped_before_the_text() -> None:
    notes = Terminal()
    print_answer(PlayingClient(ScriptedAnswer("x", prompt_tokens=12), model="tiny"), io.StringIO(), notes)
    assert "loading tiny  50%" in notes.getvalue()
    assert "reading 12 of 12 tokens" in notes.getvalue()
    assert notes.getvalue().endswith("\r\x1b[K")


def test_failure_is_raised() -> None:
    client = PlayingClient(ScriptedAnswer("half", error=ModelNotFoundError("no such model")))
    with pytest.raises(ModelNotFoundError, match="no such model"):
        print_answer(client, io.StringIO(), io.StringIO())


@pytest.mark.parametrize("error", [BrokenPipeError, KeyboardInterrupt])
def test_broken_pipe_and_interrupt_cancel(error: type[BaseException]) -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise error

    client = PlayingClient(ScriptedAnswer("a", "b"))
    with pytest.raises(error):
        print_answer(client, Closed(), io.StringIO())
    assert client.cancelled == [REQUEST.request_id]
    assert client._model_listeners == []


def test_events_without_a_result_are_an_error() -> None:
    def events():
        yield TokenEvent("r", "half")

    with pytest.raises(InferenceError, match="without a result"):
        AnswerPrinter(io.StringIO(), io.StringIO()).print_answer(events())


def test_listener_is_removed() -> None:
    client = PlayingClient()
    print_answer(client, io.StringIO(), io.StringIO())
    assert client._model_listeners == []


def test_usage_line() -> None:
    notes = io.StringIO()
    usage = Usage(prompt_tokens=10, cached_tokens=4, new_tokens=5, time_to_first_token_ms=250, decode_ms=400)
    AnswerPrinter(io.StringIO(), notes).print_usage(usage)
    expected = "[10 prompt tokens, 4 of them cached; 5 new tokens; first after 0.25 s, then 10.0 tok/s]\n"
    assert notes.getvalue() == expected


def test_an_answer_as_people_read_it() -> None:
    todos, summary = ActionRegistry().get("todos"), ActionRegistry().get("summarize")
    assert as_text(summary, "Text.", "[an answer]") == "[an answer]"
    assert as_text(todos, "Go, Ann.", '[{"task": "Go", "owner": "Ann"}]') == "- [ ] Go (Ann)\n"
    assert as_text(todos, "Go, Ann.", "[]") == ""
    assert as_text(todos, "Go, Ann.", "- [ ] Go") == "- [ ] Go"
