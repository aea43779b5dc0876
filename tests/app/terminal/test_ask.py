"""`deskinfer ask`: where its text comes from, what it asks, and whose model answers."""

from __future__ import annotations

from typing import Literal

import pytest

from app.actions.registry import UnknownActionError
from app.engine_client import FakeClient, ScriptedAnswer
from app.gateway.running import Health, announced
from app.instance.instance import InstanceError
from app.paths import config_dir
from app.terminal import ask
from app.terminal.ask import answer, answer_action, build_request, find_action
from app.terminal.errors import UsageError
from inference.errors import InvalidRequestError, ModelNotFoundError, ModelResidentError
from inference.request import DoneEvent, GenerationRequest, Message, Priority, SamplingParams, TokenEvent, Usage


def test_plain_request() -> None:
    request = build_request("hi", "be kind", {"temperature": 0.5, "max_new_tokens": 3})
    assert request.messages == (Message("system", "be kind"), Message("user", "hi"))
    assert request.sampling == SamplingParams(temperature=0.5, max_new_tokens=3)
    assert request.priority is Priority.CHAT


def test_a_broken_action_of_the_users_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    file = config_dir() / "actions" / "formal.toml"
    file.parent.mkdir(parents=True)
    file.write_text("order = [", encoding="utf-8")
    with pytest.raises(UnknownActionError):
        find_action("hi", "formal", "", {})
    assert "formal.toml, line 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "action", "system", "sampling", "error"),
    [
        ("hi", "sumarize", "", {}, UnknownActionError),
        ("hi", "summarize", "be kind", {}, UsageError),
        (" ", "", "", {}, UsageError),
        (" ", "summarize", "", {}, InvalidRequestError),
        ("hi", "", "", {"temperature": -1.0}, InvalidRequestError),
        ("hi", "summarize", "", {"top_p": 2.0}, InvalidRequestError),
    ],
)
def test_requests_that_make_no_sense(
    text: str, action: str, system: str, sampling: dict[str, float], error: type[Exception]
) -> None:
    def build() -> object:
        return find_action(text, action, system, sampling) if action else build_request(text, system, sampling)

    with pytest.raises(error):
        build()


REQUEST = GenerationRequest((Message("user", "hello"),))


class OwnEngine(FakeClient):
    """An engine of this process that plays at once."""

    closed = False

    def submit(self, request, listener) -> None:
        super().submit(request, listener)
        self.play()

    def count_tokens(self, texts, listener) -> None:
        super().count_tokens(texts, listener)
        self.play()

    def close(self) -> None:
        super().close()
        self.closed = True


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> OwnEngine:
    """No app runs, and the engine of this process says "Own"."""
    engine = OwnEngine(ScriptedAnswer("Own"))
    monkeypatch.setattr(ask, "ask_running", lambda request, model: None)
    monkeypatch.setattr(ask.RunningApp, "connect", lambda self: False)
    monkeypatch.setattr(ask, "open_worker", lambda model: engine)
    return engine


def test_own_engine_answers_where_no_app_runs(own: OwnEngine, capsys: pytest.CaptureFixture[str]) -> None:
    answer(REQUEST, "", stats=False)
    assert capsys.readouterr() == ("Own\n", "")
    assert own.closed


def test_own_engine_is_closed_after_a_failure(own: OwnEngine) -> None:
    own.load_error = ModelNotFoundError("none")
    with pytest.raises(ModelNotFoundError):
        answer(REQUEST, "", stats=False)
    assert own.closed


@pytest.mark.parametrize(("runs", "cure"), [(True, "leave --backend and --vram out"), (False, "give --server")])
def test_where_another_process_holds_the_model_it_says_who_answers(
    own: OwnEngine, monkeypatch: pytest.MonkeyPatch, runs: bool, cure: str
) -> None:
    monkeypatch.setattr(ask, "is_running", lambda: runs)
    own.load_error = ModelResidentError("Another one holds it.")
    with pytest.raises(UsageError, match=rf"Another one holds it\. .*{cure}"):
        answer(REQUEST, "", stats=False)
    assert own.closed


@pytest.mark.parametrize(
    ("state", "cure"),
    [
        ("ready", "deskinfer serve has it and answers as well: --server http://127.0.0.1:18055 asks it"),
        ("empty", "Where"),
    ],
)
def test_where_a_server_of_ours_holds_the_model_its_address_is_told(
    own: OwnEngine, monkeypatch: pytest.MonkeyPatch, state: str, cure: str
) -> None:
    monkeypatch.setattr(ask, "ask_health", lambda port, host: Health(True, state, "one"))
    own.load_error = ModelResidentError("Another one holds it.")
    with announced("0.0.0.0", 18055), pytest.raises(UsageError, match=rf"Another one holds it\. {cure}"):
        answer(REQUEST, "", stats=False)


def test_running_app_answers(own: OwnEngine, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    def events():
        yield TokenEvent("r", "Theirs")
        yield DoneEvent("r", "stop", Usage(prompt_tokens=4, new_tokens=1))

    monkeypatch.setattr(ask, "ask_running", lambda request, model: events())
    answer(REQUEST, "", stats=True)
    out, err = capsys.readouterr()
    assert out == "Theirs\n"
    assert "4 prompt tokens" in err
    assert own.submitted == []


def test_running_app_that_cannot_be_asked(own: OwnEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(request: GenerationRequest, model: str):
        raise InstanceError("Quit it and start it again.")

    monkeypatch.setattr(ask, "ask_running", fail)
    with pytest.raises(UsageError, match="start it again"):
        answer(REQUEST, "", stats=False)


def test_cut_answer_is_said(own: OwnEngine, capsys: pytest.CaptureFixture[str]) -> None:
    own._answers = [ScriptedAnswer("Half", finish_reason="length")]
    limited = GenerationRequest(REQUEST.messages, SamplingParams(max_new_tokens=1))
    answer(limited, "", stats=False)
    assert "cut after 1 tokens" in capsys.readouterr().err


def test_an_answer_of_nothing_is_said(
    own: OwnEngine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def events():
        yield DoneEvent("r", "stop", Usage(prompt_tokens=4, new_tokens=0))

    monkeypatch.setattr(ask, "ask_running", lambda request, model: events())
    answer(REQUEST, "", stats=False)
    out, err = capsys.readouterr()
    assert out == ""
    assert "said nothing" in err


LONG = "This paragraph has as many words as each other paragraph.\n\n" * 200
"""2,000 tokens of the scripted engine, which counts words."""


def test_an_action_with_other_sampling(own: OwnEngine, capsys: pytest.CaptureFixture[str]) -> None:
    answer_action(find_action("The meeting is on Monday.", "summarize", "", {"max_new_tokens": 3}), "", stats=True)
    (request,) = own.submitted
    assert "The meeting is on Monday." in request.messages[-1].content
    assert request.sampling.max_new_tokens == 3
    assert request.priority is Priority.ACTION
    out, err = capsys.readouterr()
    assert out == "Own\n"
    assert "prompt tokens" in err
    assert own.closed


def test_an_action_that_is_cut_says_at_which_limit(own: OwnEngine, capsys: pytest.CaptureFixture[str]) -> None:
    own._answers = [ScriptedAnswer("Half", finish_reason="length")]
    answer_action(find_action("The meeting is on Monday.", "summarize", "", {"max_new_tokens": 3}), "", stats=False)
    assert "cut after 3 tokens" in capsys.readouterr().err


LETTER = "Dear Ms Lopez,\n\nwe meet at 14:30 in room 217. Bring 2,450 euros, and call at 14:30.\n"


def test_what_an_action_changed_or_lost_is_named_beside_the_answer(
    own: OwnEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    letter = "Dear Ms Lopez,\n\nWe meet at 13:30 in room 217. Bring cash, and call at 13:30."
    said = f"Sure, here is the rewritten text:\n\n{letter}"
    own._answers = [ScriptedAnswer(said[:40], said[40:])]
    answer_action(find_action(LETTER, "rewrite", "", {}), "", stats=False)
    out, err = capsys.readouterr()
    assert out == said + "\n"
    assert err == (
        "deskinfer: please check:\n  14:30 → 13:30 (2×)\n  Missing: 2,450\n"
        "deskinfer: the model says this about its text, it is no part of it: Sure, here is the rewritten text:\n"
    )


def test_many_losses_are_counted(own: OwnEngine, capsys: pytest.CaptureFixture[str]) -> None:
    answer_action(find_action(", ".join(map(str, range(100, 130))), "rewrite", "", {}), "", stats=False)
    lines = capsys.readouterr().err.splitlines()
    assert (len(lines), lines[1], lines[-1]) == (18, "  Missing: 100", "  14 more")


@pytest.mark.parametrize("reason", ["length", "cancelled"])
def test_an_answer_that_was_cut_off_is_not_checked(
    own: OwnEngine, capsys: pytest.CaptureFixture[str], reason: Literal["length", "cancelled"]
) -> None:
    own._answers = [ScriptedAnswer("Dear", finish_reason=reason)]
    answer_action(find_action(LETTER, "rewrite", "", {}), "", stats=False)
    assert "check" not in capsys.readouterr().err


def test_a_sound_answer_gets_no_note(own: OwnEngine, capsys: pytest.CaptureFixture[str]) -> None:
    own._answers = [ScriptedAnswer(LETTER.strip())]
    answer_action(find_action(LETTER, "proofread", "", {}), "", stats=False)
    assert capsys.readouterr() == (LETTER, "")


def test_an_answer_to_a_question_has_no_source_to_be_checked_against(
    own: OwnEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    own._answers = [ScriptedAnswer("Sure, here is the text:\n\n42")]
    answer(build_request("What is 6 times 7?", "", {}), "", stats=False)
    assert capsys.readouterr().err == ""


def long_answers(own: OwnEngine, *answers: ScriptedAnswer) -> None:
    own.context_tokens, own._answers = 1000, list(answers)
    own.load("fake")
    own.play()


def test_a_long_text_is_translated_in_parts_and_what_is_covered_is_told(
    own: OwnEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    long_answers(own, *(ScriptedAnswer(f"{number}.") for number in range(40)))
    answer_action(find_action(LONG, "translate", "", {}), "", stats=False)
    out, err = capsys.readouterr()
    parts = len(own.submitted)
    assert parts > 2
    assert out == "\n\n".join(f"{number}." for number in range(parts)) + "\n"
    assert err == f"deskinfer: all 2,000 tokens in {parts} parts.\n"


def test_an_error_in_a_long_text_says_how_far_it_came(own: OwnEngine, capsys: pytest.CaptureFixture[str]) -> None:
    long_answers(own, ScriptedAnswer("Zero."), ScriptedAnswer(error=ModelNotFoundError("gone")))
    with pytest.raises(ModelNotFoundError):
        answer_action(find_action(LONG, "translate", "", {}), "", stats=False)
    assert "1 of " in capsys.readouterr().err
    assert own.closed


def test_an_error_while_answers_are_put_together_does_not_call_them_done(
    own: OwnEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    points = [ScriptedAnswer(f"Point {number}.") for number in range(4)]
    long_answers(own, *points, ScriptedAnswer(error=ModelNotFoundError("gone")))
    with pytest.raises(ModelNotFoundError):
        answer_action(find_action(LONG, "summarize", "", {}), "", stats=False)
    parts = len(own.submitted) - 1
    assert capsys.readouterr().err == (
        f"deskinfer: {parts} of {parts} parts (2,000 tokens in all) are read, but not yet put together.\n"
    )


def test_a_cut_while_answers_are_put_together_is_said(own: OwnEngine, capsys: pytest.CaptureFixture[str]) -> None:
    long_answers(own, *[ScriptedAnswer("Point.")] * 4, ScriptedAnswer("Half", finish_reason="length"))
    answer_action(find_action(LONG, "summarize", "", {}), "", stats=False)
    err = capsys.readouterr().err
    assert "deskinfer: all 2,000 tokens" in err
    assert "deskinfer: the answer was cut after" in err


def test_a_cut_in_a_part_is_said_once(own: OwnEngine, capsys: pytest.CaptureFixture[str]) -> None:
    long_answers(own, ScriptedAnswer("Half", finish_reason="length"), *[ScriptedAnswer("Whole.")] * 20)
    answer_action(find_action(LONG, "translate", "", {}), "", stats=False)
    err = capsys.readouterr().err
    assert "(--max-new-tokens): 1.\n" in err
    assert "was cut" not in err


def test_todos_are_printed_as_a_checklist(own: OwnEngine, capsys: pytest.CaptureFixture[str]) -> None:
    own._answers = [ScriptedAnswer('[{"n": 1, "task": "Call Ann", "ow', 'ner": "Bob", "due": "Friday"}]')]
    answer_action(find_action("Bob calls Ann on Friday.", "todos", "", {}), "", stats=False)
    assert capsys.readouterr().out == "- [ ] Call Ann (Bob, Friday)\n"


@pytest.mark.parametrize(
    ("form", "begins"), [("json", '[\n  {\n    "task": "Call Ann",'), ("ics", "BEGIN:VCALENDAR\r\n")]
)
def test_todos_are_printed_as_a_file(
    own: OwnEngine, capsys: pytest.CaptureFixture[str], form: str, begins: str
) -> None:
    own._answers = [ScriptedAnswer('[{"task": "Call Ann", "ow', 'ner": "Bob"}, {"task": "Go"}]')]
    answer_action(find_action("Bob calls Ann. Go.", "todos", "", {}, form), "", stats=False)
    out = capsys.readouterr().out
    assert out.startswith(begins)
    assert out.count("Call Ann") == 1
    assert out.endswith("\n")


def test_a_text_without_todos_is_told(own: OwnEngine, capsys: pytest.CaptureFixture[str]) -> None:
    own._answers = [ScriptedAnswer("[]")]
    answer_action(find_action("It rained.", "todos", "", {}), "", stats=False)
    out, err = capsys.readouterr()
    assert (out, err) == ("", "deskinfer: no to-dos were found.\n")


@pytest.mark.parametrize("said", ["[]", "{}", "```json\n[]\n```", "\n []"])
def test_data_without_todos_is_none_in_any_dress(own: OwnEngine, capsys: pytest.CaptureFixture[str], said: str) -> None:
    own._answers = [ScriptedAnswer(said)]
    answer_action(find_action("It rained.", "todos", "", {}), "", stats=False)
    assert capsys.readouterr() == ("", "deskinfer: no to-dos were found.\n")


def test_a_text_in_place_of_todos_is_not_lost(own: OwnEngine, capsys: pytest.CaptureFixture[str]) -> None:
    own._answers = [ScriptedAnswer("Bob should ", "call Ann.")]
    answer_action(find_action("Bob calls Ann.", "todos", "", {}), "", stats=False)
    out, err = capsys.readouterr()
    assert out == "Bob should call Ann.\n"
    assert "gave no list of to-dos" in err


@pytest.mark.parametrize("form", ["json", "ics"])
def test_a_text_in_place_of_todos_is_no_file(own: OwnEngine, capsys: pytest.CaptureFixture[str], form: str) -> None:
    own._answers = [ScriptedAnswer("Bob should call Ann.")]
    with pytest.raises(UsageError, match=f"cannot be made {form}"):
        answer_action(find_action("Bob calls Ann.", "todos", "", {}, form), "", stats=False)
    assert capsys.readouterr().out == ""


def test_a_form_is_checked_before_anything_runs(own: OwnEngine) -> None:
    with pytest.raises(UsageError, match="markdown, json, ics"):
        find_action("Some text.", "todos", "", {}, "xml")
    with pytest.raises(UsageError, match="summarize gives none"):
        find_action("Some text.", "summarize", "", {}, "json")


def test_a_running_app_that_goes_away_in_a_task(own: OwnEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask.RunningApp, "connect", lambda self: True)
    with pytest.raises(UsageError, match="has ended meanwhile"):
        answer_action(find_action("Some text.", "summarize", "", {}), "", stats=False)
