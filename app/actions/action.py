"""One action: what it asks of the model, how, and what becomes of the answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from app.actions.long_text import PART_TOKENS, PlanKind
from app.language import UNKNOWN, Languages, detect, other_language
from app.text.checks import REWRITE_CHECKS, SUMMARY_CHECKS, TRANSLATION_CHECKS, CheckName
from app.todos.prompt import example_answer, todo_grammar
from inference.errors import InvalidRequestError
from inference.request import GenerationRequest, Grammar, Message, Priority, SamplingParams

OutputKind = Literal["text", "changes", "todos"]
RequestKind = Literal["text", "part", "join"]
TODO_GROWTH = 3.0
"""The answer quotes how each sentence begins."""


@dataclass(frozen=True, slots=True)
class Example:
    """A text and the answer that the model should have given; small models follow examples better than words.

    Attributes:
        target: code of the target language that the answer is meant for, "" where it does not matter.
    """

    text: str
    answer: str
    target: str = ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model is told, in one language.

    Attributes:
        system: may hold {target_language}.
        user: holds {text}, the user's text, and may hold {target_language}.
        examples: earlier turns of the chat, so that what they say is not mixed up with the user's text.
        part: in place of `user` for a part of a text that is too long for one request, "" where `user` does as well.
        join: in place of `user` where the answers to the parts are put together.
    """

    system: str
    user: str
    examples: tuple[Example, ...] = ()
    part: str = ""
    join: str = ""


_LONG_CHARS = 1500


@dataclass(frozen=True, slots=True)
class FramedAction:
    """An action whose languages are settled: those of a whole text hold for each of its parts.

    Attributes:
        prompt: its examples are those that are meant for the target.
        language: of the answer, as the prompt calls it.
        target: code of that language.
        output: as Action has it. To-dos come in a form of their own, which `app.todos.todo` reads.
        pattern: as Action has it.
    """

    prompt: Prompt
    sampling: SamplingParams
    language: str
    target: str
    output: OutputKind = "text"
    pattern: str = ""

    def request(self, text: str, kind: RequestKind = "text", earlier: Sequence[Example] = ()) -> GenerationRequest:
        """The request for a text; its placeholders are filled in one pass, so braces in the text stay braces.

        Args:
            kind: the whole text, a part of it, or answers that are to be put together.
            earlier: how earlier parts came out, as further examples.
        """
        asks_todos = self.output == "todos"
        template = {"text": "", "part": self.prompt.part, "join": self.prompt.join}[kind] or self.prompt.user

        def filled(template: str, text: str = "") -> str:
            return _fill(template, {"text": text.strip("\r\n"), "target_language": self.language})

        messages = [Message("system", filled(self.prompt.system))] if self.prompt.system else []
        # Behind short examples the 1.5B summed up the examples as well; the pattern holds the form without them.
        is_long = bool(self.pattern) and len(text) > _LONG_CHARS
        for example in (*(() if is_long else self.prompt.examples), *earlier):
            turn = Message("user", filled(self.prompt.user, example.text))
            answer = example_answer(example.text, example.answer) if asks_todos else example.answer
            messages += [turn, Message("assistant", answer)]
        messages.append(Message("user", filled(template, text)))
        grammar = Grammar("regex", self.pattern, is_wish=True) if self.pattern else None
        if asks_todos:
            grammar = todo_grammar(text)
        return GenerationRequest(tuple(messages), self.sampling, Priority.ACTION, grammar=grammar)

    def without_examples(self, count: int) -> FramedAction:
        """The same without its first examples: a small context has no room for all."""
        return replace(self, prompt=replace(self.prompt, examples=self.prompt.examples[count:]))


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that the app does with a text.

    Attributes:
        id: names the command "action.<id>" and the settings "hotkey.<id>" and "hotkey.<id>.clipboard".
        titles: by language, "en" always there.
        descriptions: by language, may be empty.
        prompts: by language, at least one.
        hotkey: default for the selection, "" for none.
        clipboard_hotkey: default for the clipboard's text, "" for none.
        output: "text"; "changes" for the same text in other words, shown as changes to take or leave; "todos" for a
            list that the popup shows as one.
        replaces: whether the answer is meant to take the place of the selection.
        order: place in menus; ties go by id.
        own_checks: what of the source is looked for in the answer; None for what fits the kind of action.
        own_plan: what is done with a text that is too long for one request; None for what fits the kind of action.
        own_part_tokens: most tokens of a part of such a text; None for what small models do well with.
        speaks_target: the prompt is in the language of the answer, not in that of the text.
        pattern: a regular expression that the whole answer follows, "" for none.
    """

    id: str
    titles: Mapping[str, str]
    descriptions: Mapping[str, str]
    prompts: Mapping[str, Prompt]
    sampling: SamplingParams
    hotkey: str = ""
    clipboard_hotkey: str = ""
    output: OutputKind = "text"
    replaces: bool = False
    order: int = 100
    own_checks: tuple[CheckName, ...] | None = None
    own_plan: PlanKind | None = None
    own_part_tokens: int | None = None
    speaks_target: bool = False
    pattern: str = ""

    @property
    def plan(self) -> PlanKind:
        """What is done with a text that is too long for one request."""
        if self.own_plan is not None:
            return self.own_plan
        if self.output == "todos":
            return "merge"
        return "part_by_part" if self.replaces or self.output == "changes" or self.is_translation else "map_reduce"

    @property
    def part_tokens(self) -> int:
        """Most tokens of a part of such a text."""
        return self.own_part_tokens or PART_TOKENS[self.plan]

    @property
    def growth(self) -> float:
        """Tokens that an answer may have for each token of the text, 0 where it does not grow with the text."""
        if self.output == "todos":
            return TODO_GROWTH
        if self.plan != "part_by_part":
            return 0.0
        return 2.0 if self.is_translation else 1.3

    @property
    def is_translation(self) -> bool:
        """Whether the answer is in another language than the text."""
        return any("{target_language}" in prompt.system + prompt.user for prompt in self.prompts.values())

    @property
    def checks(self) -> tuple[CheckName, ...]:
        """What of the source is looked for in the answer."""
        if self.own_checks is not None:
            return self.own_checks
        if self.is_translation:
            return TRANSLATION_CHECKS
        if self.output == "text":
            return REWRITE_CHECKS if self.replaces else SUMMARY_CHECKS
        return REWRITE_CHECKS if self.output == "changes" else ()

    def title(self, ui_language: str) -> str:
        """The name in menus and windows."""
        return self.titles.get(ui_language) or self.titles["en"]

    def description(self, ui_language: str) -> str:
        """One sentence for settings and tooltips, "" where the action has none."""
        return self.descriptions.get(ui_language) or self.descriptions.get("en", "")

    def prompt_language(self, text: str, languages: Languages, ui_language: str) -> str:
        """Which of the prompts fits a text.

        A small model tends to answer in the language of its instructions, so a Chinese text gets the Chinese prompt
        and any other the English one. A text without letters goes by the language of the windows. Translations come
        out better where the prompt is in their language.
        """
        if self.speaks_target:
            wanted = other_language(text, languages.first, languages.second).code
        else:
            language = detect(text, (languages.first, languages.second))
            wanted = ui_language if language is UNKNOWN else language.code
        code = "zh" if wanted == "zh" else "en"
        return code if code in self.prompts else next(iter(self.prompts))

    def request(self, text: str, languages: Languages, ui_language: str = "en") -> GenerationRequest:
        """Builds the request for a text that fits one.

        Raises:
            InvalidRequestError: the text is empty or white space.
        """
        return self.framed(text, languages, ui_language).request(text)

    def framed(self, text: str, languages: Languages, ui_language: str = "en") -> FramedAction:
        """Settles the languages for a text.

        Raises:
            InvalidRequestError: the text is empty or white space.
        """
        if not text.strip():
            raise InvalidRequestError("The text is empty, but an action needs some. Select a text first.")
        code = self.prompt_language(text, languages, ui_language)
        target = other_language(text, languages.first, languages.second)
        language = target.chinese if code == "zh" else target.english
        prompt = self.prompts[code]
        examples = tuple(example for example in prompt.examples if example.target in ("", target.code))
        prompt = replace(prompt, examples=examples)
        return FramedAction(prompt, self.sampling, language, target.code, self.output, self.pattern)


def _fill(template: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: values[match[1]], template)
