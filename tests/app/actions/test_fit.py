"""Actions in small contexts: examples give way to the text, and whatever is sent fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from app.actions.action import Action, Example, FramedAction
from app.actions.action_file import parse_action
from app.actions.fit import ENOUGH_PART_TOKENS, fit, fits_one, frame_texts
from app.actions.registry import ActionRegistry
from app.actions.text_task import TextTask
from app.engine_client import CountListener, FakeClient, RequestListener, ScriptedAnswer
from app.language import LANGUAGES, Languages
from app.remote.wire import estimated_tokens
from inference.errors import ContextOverflowError
from inference.formats.model_file import open_model
from inference.request import DoneEvent, FailedEvent, GenerationRequest, Message, RequestEvent, TokenCounts
from inference.store.model_store import ModelStore
from inference.text.tokenizer import Tokenizer

LANGUAGE_PAIR = Languages(LANGUAGES["en"], LANGUAGES["zh"])
ACTIONS = [action.id for action in ActionRegistry().all()]
SHORT = {"en": "Hi Tom, please call Ann by Friday. Thanks, Eve", "zh": "小王你好，请在周五之前给安娜打电话。谢谢，伊娃"}
Count = Callable[[str], int]
CountChat = Callable[[Sequence[Message]], int]


def estimated_chat(messages: Sequence[Message]) -> int:
    """As ChatML has it around a message: two control tokens, the role, two line ends."""
    return sum(estimated_tokens(message.content) + 5 for message in messages) + 3


@pytest.fixture(scope="module", params=["estimate", "smollm2-135m-instruct", "qwen2.5-coder-0.5b-instruct"])
def counters(request: pytest.FixtureRequest) -> tuple[Count, CountChat]:
    """Tokens of a text and of a rendered chat, of real models where they have been fetched."""
    if request.param == "estimate":
        return estimated_tokens, estimated_chat
    path = ModelStore().where(request.param)
    if not path.exists():
        pytest.skip(f"{request.param} is not in the model store; fetch it: deskinfer models pull {request.param}")
    source = open_model(path)
    try:
        tokenizer = Tokenizer.from_data(source.tokenizer_data())
    finally:
        source.close()
    return lambda text: len(tokenizer.encode_text(text)), lambda messages: len(tokenizer.encode_chat(messages))


class SmallClient(FakeClient):
    """An engine that counts as a model does, and refuses what does not fit together with its answer."""

    def __init__(self, count: Count, count_chat: CountChat, context_tokens: int) -> None:
        super().__init__(ScriptedAnswer("- A point."))
        self._count, self._count_chat = count, count_chat
        self.context_tokens = context_tokens
        self.load("fake")
        self.play()

    def count_tokens(self, texts: Sequence[str], listener: CountListener) -> None:
        counts = TokenCounts(tuple(map(self._count, texts)), self.context_tokens)
        super().count_tokens((), lambda _: listener(counts))

    def submit(self, request: GenerationRequest, listener: RequestListener) -> None:
        prompt = self._count_chat(request.messages)
        # The engine cuts an answer to the room that there is; a summary does well with a quarter of these contexts.
        answer = min(request.sampling.max_new_tokens or 32, self.context_tokens // 4)
        if prompt + answer > self.context_tokens:
            self._answers = [ScriptedAnswer(error=ContextOverflowError(prompt, self.context_tokens))]
        super().submit(request, listener)


def run(client: FakeClient, action_id: str, text: str) -> list[RequestEvent]:
    events: list[object] = []
    TextTask(client, ActionRegistry().get(action_id), text, LANGUAGE_PAIR).run(events.append)
    client.play()
    return [event for event in events if isinstance(event, DoneEvent | FailedEvent)]


@pytest.mark.parametrize("context_tokens", [512, 1024])
@pytest.mark.parametrize("code", ["en", "zh"])
@pytest.mark.parametrize("action_id", ACTIONS)
def test_every_action_takes_a_short_text_in_a_small_context(
    counters: tuple[Count, CountChat], action_id: str, code: str, context_tokens: int
) -> None:
    client = SmallClient(*counters, context_tokens)
    (end,) = run(client, action_id, SHORT[code])
    assert isinstance(end, DoneEvent), end
    assert len(client.submitted) == 1


@pytest.mark.parametrize("code", ["en", "zh"])
@pytest.mark.parametrize("action_id", ACTIONS)
def test_every_action_takes_a_long_text_in_a_small_context(
    counters: tuple[Count, CountChat], action_id: str, code: str
) -> None:
    client = SmallClient(*counters, 1024)
    (end,) = run(client, action_id, SHORT[code] * 60)
    assert isinstance(end, DoneEvent), end
    assert 2 < len(client.submitted) < 80


def framed_with(examples: int, action: Action) -> FramedAction:
    found = action.framed("Some text.", LANGUAGE_PAIR)
    shown = tuple(Example(f"{number}", "x") for number in range(examples))
    return replace(found, prompt=replace(found.prompt, examples=shown))


OWN = parse_action('long = "part_by_part"\nreplaces = true\n[prompt.en]\nsystem = "S"\nuser = "{text}"', "own")
SYSTEM, EXAMPLE, USER = 20, 100, 10


def fit_of(text_tokens: int, context_tokens: int, action: Action = OWN, examples: int = 3) -> tuple[int, int | None]:
    """How many examples are left, and how long parts may be."""
    framed = framed_with(examples, action)
    counts = [SYSTEM, *[EXAMPLE] * (2 * examples), USER, 0, 0]
    assert len(counts) == len(frame_texts(framed))
    found = fit(action, framed, counts, text_tokens, context_tokens)
    assert fits_one(action, framed, counts, text_tokens, context_tokens) is (
        found.budget is None and len(found.framed.prompt.examples) == examples
    )
    left = found.framed.prompt.examples
    assert left == framed.prompt.examples[examples - len(left) :], "the first ones go first"
    return len(left), None if found.budget is None else found.budget.part_tokens


def test_examples_stay_where_there_is_room() -> None:
    assert fit_of(50, 4096) == (3, None)
    assert fit_of(9000, 4096) == (3, 600)


def test_examples_give_way_to_the_text_and_to_parts_of_some_length() -> None:
    assert fit_of(50, 890) == (2, None)
    left, part = fit_of(5000, 890)
    assert left == 2
    assert part is not None
    assert part >= ENOUGH_PART_TOKENS
    assert fit_of(20, 250) == (0, None)


def test_an_action_of_short_parts_needs_no_more_room() -> None:
    own = parse_action(
        'long = "part_by_part"\npart_tokens = 40\nreplaces = true\n[prompt.en]\nsystem = "S"\nuser = "{text}"', "own"
    )
    assert fit_of(5000, 900, own) == (3, 40)


def test_where_no_part_is_of_some_length_the_longest_is_taken() -> None:
    left, part = fit_of(5000, 250)
    assert left == 0
    assert part is not None
    assert 32 <= part < ENOUGH_PART_TOKENS


def test_what_is_refused_says_value_limit_and_cure() -> None:
    with pytest.raises(ContextOverflowError) as raised:
        fit_of(5000, 150)
    least = SYSTEM + USER + 4 * 12
    assert (raised.value.prompt_tokens, raised.value.context_tokens) == (least + 5000, 150)
    assert all(word in str(raised.value) for word in (str(least + 5000), "150", "larger context"))
