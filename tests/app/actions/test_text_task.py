"""Actions over texts of any length, with a scripted engine."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from app.actions.action import Action
from app.actions.action_file import parse_action
from app.actions.text_task import Coverage, PartEvent, TaskEvent, TextTask
from app.engine_client import FakeClient, ScriptedAnswer
from app.language import LANGUAGES, Languages
from app.todos.todo import Todo, parse_todos, to_lines
from inference.errors import ContextOverflowError, EngineStoppedError, InferenceError, InvalidRequestError
from inference.request import (
    DoneEvent,
    FailedEvent,
    GenerationRequest,
    PrefillEvent,
    Priority,
    TokenCounts,
    TokenEvent,
    Usage,
)

LANGUAGE_PAIR = Languages(LANGUAGES["en"], LANGUAGES["zh"])
TEXT = "".join(f"Paragraph {number} has exactly ten words in all of it.\n\n" for number in range(60))
"""600 tokens of the scripted engine, which counts words."""


def action(plan: str, part_tokens: int = 100, user: str = "{text}", more: str = "") -> Action:
    source = f'long = "{plan}"\npart_tokens = {part_tokens}\n[prompt.en]\nuser = """{user}"""\n{more}'
    return parse_action(source, "own")


class Run:
    """A task and what came of it."""

    def __init__(self, client: FakeClient, action: Action, text: str = TEXT, at_once: int = 1) -> None:
        self.client = client
        client.context_tokens = 500
        client.load("fake")
        client.play()
        self.task = TextTask(client, action, text, LANGUAGE_PAIR, at_once=at_once)
        self.events: list[TaskEvent] = []

    def start(self) -> Run:
        self.events = []
        self.task.run(self.events.append)
        return self

    def play(self) -> Run:
        self.client.play()
        return self

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, TokenEvent))

    @property
    def end(self) -> DoneEvent | FailedEvent:
        ends = [event for event in self.events if isinstance(event, DoneEvent | FailedEvent)]
        assert ends == self.events[-1:], "exactly one, at the end"
        return ends[0]

    @property
    def parts(self) -> list[tuple[int, int, bool]]:
        return [(event.number, event.of, event.joins) for event in self.events if isinstance(event, PartEvent)]

    def sent(self) -> list[str]:
        return [request.messages[-1].content for request in self.client.submitted]


def test_a_text_that_fits_is_one_request_exactly_as_without_a_task() -> None:
    own = action("part_by_part")
    run = Run(FakeClient(), own, "A few words.").start()
    assert len(run.client.submitted) == 1, "nothing needed to be counted"
    sent, plain = run.client.submitted[0], own.request("A few words.", LANGUAGE_PAIR)
    assert (sent.messages, sent.sampling, sent.priority) == (plain.messages, plain.sampling, Priority.ACTION)
    assert sent.request_id == run.task.request_id
    run.play()
    assert run.text == "A few words."
    assert run.end == DoneEvent(run.task.request_id, "stop", Usage(8, new_tokens=3, decode_ms=30.0))
    assert isinstance(run.events[0], PrefillEvent)
    assert run.task.coverage is None


def test_a_text_whose_bytes_do_not_tell_is_counted_and_sent_whole() -> None:
    run = Run(FakeClient(), action("merge"), TEXT[:530]).start()
    assert run.client.submitted == []
    run.play()
    assert len(run.client.submitted) == 1
    assert run.text == TEXT[:530].rstrip()


def test_part_by_part_gives_back_every_part_in_order_with_its_breaks() -> None:
    run = Run(FakeClient(), action("part_by_part")).start().play()
    assert run.text == TEXT.rstrip()
    assert run.parts == [(number, 6, False) for number in range(1, 7)]
    assert run.task.coverage == Coverage(600, 6, 6, 6)
    assert run.task.coverage.is_complete
    assert isinstance(run.end, DoneEvent)
    assert run.end.finish_reason == "stop"
    assert run.end.usage.new_tokens > 0
    shares = [event.share for event in run.events if isinstance(event, PartEvent)]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(5 / 6)
    assert {event.request_id for event in run.events} == {run.task.request_id}
    assert {request.priority for request in run.client.submitted} == {Priority.CHAT}, "hotkeys go first"


def test_parts_stream_and_come_one_after_another() -> None:
    run = Run(FakeClient(), action("part_by_part")).start()
    while len(run.client.submitted) < 2:
        assert run.client.step()
    assert run.text.count("Paragraph") == 10
    run.client.step()
    run.client.step()
    assert run.text.count("Paragraph") == 11


def test_a_part_knows_how_the_terms_of_earlier_ones_came_out() -> None:
    text = "The Frobnicator hums. " + "Words without any meaning here. " * 500 + "Repair the Frobnicator now."
    run = Run(FakeClient(), action("part_by_part", 300), text)
    run.client.context_tokens = 2000
    run.start().play()
    assert run.text == text
    assert [message.content for message in run.client.submitted[-1].messages[:2]] == ["The Frobnicator hums."] * 2
    assert len(run.client.submitted[0].messages) == 1
    small = Run(FakeClient(), action("part_by_part", 300), text).start().play()
    assert {len(request.messages) for request in small.client.submitted} == {1}, "there is no room for it"


def test_map_reduce_puts_the_answers_together_and_streams_only_the_last() -> None:
    answers = [ScriptedAnswer(f"Point {number}.") for number in range(6)] + [ScriptedAnswer("All ", "of it.")]
    own = action("map_reduce", user="Sum: {text}", more='part = "Part: {text}"\njoin = "Join: {text}"\n')
    run = Run(FakeClient(*answers), own).start().play()
    assert run.text == "All of it."
    assert run.parts == [(number, 6, False) for number in range(1, 7)] + [(1, 1, True)]
    sent = run.sent()
    assert all(text.startswith("Part: ") for text in sent[:6])
    assert "".join(text.removeprefix("Part: ") + "\n\n" for text in sent[:6]) == TEXT
    assert sent[6] == "Join: " + "\n".join(f"Point {number}." for number in range(6))
    assert run.task.coverage == Coverage(600, 6, 6, 6)


@pytest.mark.parametrize("error", [None, InferenceError("The engine failed.")])
def test_parts_that_are_read_are_not_in_the_answer_before_they_are_put_together(error: InferenceError | None) -> None:
    points = [ScriptedAnswer(f"Point {number}.") for number in range(6)]
    joined = [ScriptedAnswer("All ", "of ", error=error), ScriptedAnswer("All ", "of it.")]
    run = Run(FakeClient(*points, *joined), action("map_reduce")).start()
    while run.text != "All of":
        assert run.client.step()
    if error is None:
        run.task.cancel()
    run.play()
    assert isinstance(run.end, DoneEvent if error is None else FailedEvent)
    assert run.task.coverage == Coverage(600, 6, 6, 0)
    assert not run.task.coverage.is_complete
    run.start().play()
    assert run.text == "All of it."
    assert run.task.coverage == Coverage(600, 6, 6, 6)


def test_of_a_list_the_parts_behind_a_missing_one_are_not_in_it() -> None:
    failing = ScriptedAnswer(error=InferenceError("The engine failed."))
    lists = [ScriptedAnswer(f"- {number}\n") for number in range(6)]
    run = Run(FakeClient(lists[0], failing, *lists[2:]), action("merge"), at_once=3)
    run.start().play()
    coverage = run.task.coverage
    assert coverage is not None
    assert (run.text.split("\n"), coverage.answer_parts) == (["- 0"], 1)
    assert coverage.done_parts >= coverage.answer_parts
    assert not coverage.is_complete


def test_map_reduce_takes_several_levels_where_the_answers_are_many() -> None:
    words = ScriptedAnswer(*["word "] * 40)
    run = Run(FakeClient(words), action("map_reduce", 100), TEXT * 3).start().play()
    levels = [of for _, of, joins in run.parts if joins]
    assert run.parts[17] == (18, 18, False)
    assert levels[0] > 1
    assert levels[-1] == 1
    assert run.text.split() == ["word"] * 40


def test_merged_lists_have_no_doubles_and_stream_by_line() -> None:
    answers = [
        ScriptedAnswer("- [ ] Buy soil\n", "- [ ] Call ", "Ann\n"),
        ScriptedAnswer("No to-dos found."),
        ScriptedAnswer("- [ ] buy  soil.\n- [ ] Pay the fee"),
        ScriptedAnswer("No to-dos found."),
    ]
    run = Run(FakeClient(*answers), action("merge")).start()
    while not run.text:
        assert run.client.step()
    assert run.text == "- [ ] Buy soil"
    run.play()
    assert run.text == "- [ ] Buy soil\n- [ ] Call Ann\n- [ ] Pay the fee"


def test_lists_with_nothing_in_them_say_so_once() -> None:
    run = Run(FakeClient(ScriptedAnswer("No to-dos found.")), action("merge")).start().play()
    assert run.text == "No to-dos found."


def test_todos_are_merged_with_their_sentences() -> None:
    own = parse_action('output = "todos"\npart_tokens = 100\n[prompt.en]\nuser = "{text}"\n', "own")
    soil, call = Todo("Buy soil", source="Paragraph 0"), Todo("Call Ann", "Bob", "Friday", "Paragraph 1")
    answers = [
        ScriptedAnswer(to_lines([soil]), to_lines([call])),
        ScriptedAnswer("[]"),
        ScriptedAnswer(to_lines([Todo("buy  soil.", source="Paragraph 30")])),
        ScriptedAnswer("[]"),
    ]
    run = Run(FakeClient(*answers), own, TEXT.replace("Paragraph 5 has", "Bob on Friday")).start()
    while not run.text:
        assert run.client.step()
    assert parse_todos(run.text) == [soil]
    run.play()
    assert parse_todos(run.text) == [soil, call]
    assert run.client.submitted[1].grammar is not None


@pytest.mark.parametrize("at_once", [1, 3])
def test_several_parts_at_once_give_the_same(at_once: int) -> None:
    run = Run(FakeClient(), action("merge", user="- {text}"), at_once=at_once).start()
    while not run.client.submitted:
        assert run.client.step()
    assert len(run.client.submitted) == at_once
    run.play()
    assert run.text.count("- Paragraph") == 6
    assert run.task.coverage == Coverage(600, 6, 6, 6)


@pytest.mark.parametrize("at_once", [1, 3])
def test_cancel_ends_at_once_and_the_next_run_goes_on(at_once: int) -> None:
    run = Run(FakeClient(), action("merge", user="- {text}"), at_once=at_once).start()
    while len(run.client.submitted) < at_once + 1:
        assert run.client.step()
    run.client.step()
    seen = len(run.events)
    run.task.cancel()
    run.play()
    assert isinstance(run.end, DoneEvent)
    assert run.end.finish_reason == "cancelled"
    assert len(run.events) - seen <= 1, "no token after it"
    assert run.task.coverage == Coverage(600, 6, 1, 1)
    assert not run.task.coverage.is_complete
    sent, first_text = len(run.client.submitted), run.text
    run.start().play()
    assert run.text.startswith(first_text)
    assert run.text.count("- Paragraph") == 6
    assert len(run.client.submitted) - sent == 5, "the finished part is not computed again"


def test_cancel_while_the_text_is_counted_ends_at_once() -> None:
    run = Run(FakeClient(), action("merge")).start()
    run.task.cancel()
    assert isinstance(run.end, DoneEvent)
    run.play()
    assert run.client.submitted == []
    assert len(run.events) == 1
    run.task.cancel()
    assert run.start().play().task.coverage == Coverage(600, 6, 6, 6)


def test_after_an_error_finished_parts_are_kept() -> None:
    error = InferenceError("The engine failed.")
    later = [ScriptedAnswer(f"{number}.") for number in range(2, 7)]
    run = Run(FakeClient(ScriptedAnswer("One.\n"), ScriptedAnswer("Tw", error=error), *later), action("part_by_part"))
    run.start().play()
    assert run.end == FailedEvent(run.task.request_id, error)
    assert run.text == "One.\n\nTw"
    first_id = run.task.request_id
    run.start().play()
    assert run.task.request_id != first_id
    assert run.text == "One.\n\n2.\n\n3.\n\n4.\n\n5.\n\n6."
    assert run.parts[0] == (2, 6, False)
    assert len(run.client.submitted) == 7


def test_a_finished_task_starts_anew() -> None:
    run = Run(FakeClient(), action("part_by_part")).start().play()
    run.start().play()
    assert len(run.client.submitted) == 12
    assert run.text == TEXT.rstrip()


def test_events_of_an_earlier_run_are_nobodys() -> None:
    run = Run(FakeClient(), action("part_by_part")).start()
    while not run.text:
        assert run.client.step()
    run.task.cancel()
    run.start().play()
    assert run.text == TEXT.rstrip()
    assert isinstance(run.end, DoneEvent)


def test_an_answer_at_the_length_limit_is_told_with_its_part() -> None:
    answers = [ScriptedAnswer("One."), ScriptedAnswer("Two", finish_reason="length"), ScriptedAnswer("Three.")]
    run = Run(FakeClient(*answers), action("part_by_part")).start().play()
    assert isinstance(run.end, DoneEvent)
    assert run.end.finish_reason == "length"
    assert run.task.coverage == Coverage(600, 6, 6, 6, cut_parts=(2,))


class Shrinking(FakeClient):
    """A model with less context than it had when the text was counted."""

    most_words = 10**9

    def _next_answer(self, request: GenerationRequest) -> ScriptedAnswer:
        words = len(request.messages[-1].content.split())
        if words > self.most_words:
            return ScriptedAnswer(error=ContextOverflowError(words, self.most_words))
        return super()._next_answer(request)


def test_parts_that_do_not_fit_after_all_are_cut_again() -> None:
    client = Shrinking()
    client.most_words = 60
    run = Run(client, action("part_by_part"))
    run.start().play()
    assert run.text == TEXT.rstrip()
    assert run.task.coverage == Coverage(600, 12, 12, 12)


def test_a_single_request_that_does_not_fit_after_all_is_cut() -> None:
    client = Shrinking()
    run = Run(client, action("part_by_part", 50), "A few words. " * 30)
    client.context_tokens, client.most_words = 5000, 60
    run.start()
    assert len(run.client.submitted) == 1
    run.client.context_tokens = 300
    run.play()
    assert run.text == ("A few words. " * 30).strip()
    assert run.task.coverage == Coverage(90, 2, 2, 2)


def test_a_context_that_holds_no_part_is_an_error_with_both_numbers() -> None:
    run = Run(FakeClient(), action("merge", user="word " * 490 + "{text}")).start().play()
    assert isinstance(run.end, FailedEvent)
    assert isinstance(run.end.error, ContextOverflowError)
    assert run.end.error.context_tokens == 500


def test_a_model_that_cannot_be_loaded_fails_the_task() -> None:
    client = FakeClient()
    client.load_error = InferenceError("There is no model.")
    task = TextTask(client, action("merge"), TEXT * 3, LANGUAGE_PAIR)
    events: list[TaskEvent] = []
    task.run(events.append)
    client.play()
    assert events == [FailedEvent(task.request_id, client.load_error)]


def test_an_engine_that_is_closed_meanwhile_fails_the_task() -> None:
    run = Run(FakeClient(), action("part_by_part")).start()
    while not run.text:
        assert run.client.step()
    run.client.close()
    assert isinstance(run.end, DoneEvent | FailedEvent)
    with pytest.raises(EngineStoppedError):
        run.start()


def test_an_empty_text_and_a_wrong_value_are_refused_before_anything_is_sent() -> None:
    with pytest.raises(InvalidRequestError):
        TextTask(FakeClient(), action("merge"), " \n", LANGUAGE_PAIR)
    with pytest.raises(InvalidRequestError):
        TextTask(FakeClient(), action("merge"), "x", LANGUAGE_PAIR, sampling={"temperature": -1.0})


def test_values_of_the_caller_go_into_every_request() -> None:
    client = FakeClient()
    client.context_tokens = 500
    client.load("fake")
    client.play()
    TextTask(client, action("merge"), TEXT, LANGUAGE_PAIR, sampling={"temperature": 0.5}).run(lambda event: None)
    client.play()
    assert {request.sampling.temperature for request in client.submitted} == {0.5}
    assert all(request.sampling.max_new_tokens for request in client.submitted), "no loop takes the whole context"


class Guessing(FakeClient):
    """An engine that cannot count."""

    def count_tokens(self, texts: Sequence[str], listener: object) -> None:
        def guess(counts: TokenCounts | InferenceError) -> None:
            assert isinstance(counts, TokenCounts)
            assert callable(listener)
            listener(TokenCounts(counts.counts, counts.context_tokens, estimated=True))

        super().count_tokens(texts, guess)


def test_guessed_tokens_are_called_so() -> None:
    run = Run(Guessing(), action("merge")).start().play()
    assert run.task.coverage == Coverage(600, 6, 6, 6, estimated=True)


def test_chinese_parts_are_joined_without_spaces() -> None:
    text = "这里有十个汉字的句子。" * 60
    run = Run(FakeClient(), action("part_by_part"), text).start().play()
    assert run.text == text
