"""The small words around an answer: what is waited for, speed and times, the pair of languages. Holds no widget."""

from __future__ import annotations

from app.actions.action import Action
from app.actions.text_task import Coverage, PartEvent
from app.language import UNKNOWN, Language, Languages, detect, other_language
from app.qt.status import model_name
from app.translation import Translator
from inference.request import DoneEvent, ModelEvent, ModelState, PrefillEvent


def prefill_progress(event: PrefillEvent, translator: Translator) -> tuple[str, float]:
    """Words and share for a prompt that is being read."""
    total = max(1, event.prompt_tokens)
    text = translator.tr("Reading {done} of {total} tokens", done=f"{event.done_tokens:,}", total=f"{total:,}")
    return text, event.done_tokens / total


def part_progress(event: PartEvent, translator: Translator) -> tuple[str, float]:
    """Words and share for a text that is done in parts."""
    if event.joins:
        text = translator.tr("Putting the answers together")
        if event.of > 1:
            text = translator.tr("Putting the answers together: {number} of {of}", number=event.number, of=event.of)
    else:
        text = translator.tr("The text is longer than the model can hold at once, so it is done in parts.")
    return text, event.share


def coverage_text(coverage: Coverage, translator: Translator) -> str:
    """What of a long text an answer is of: proof that nothing was left out, or how far it came."""
    tr = translator.tr
    if coverage.answer_parts < coverage.done_parts:
        return tr("{done} of {parts} parts read, not yet put together", done=coverage.done_parts, parts=coverage.parts)
    if not coverage.is_complete:
        return tr("{done} of {parts} parts done", done=coverage.done_parts, parts=coverage.parts)
    return tr(
        "about {tokens} tokens, all of them, in {parts} parts"
        if coverage.estimated
        else "all {tokens} tokens in {parts} parts",
        tokens=f"{coverage.tokens:,}",
        parts=coverage.parts,
    )


def load_progress(event: ModelEvent, translator: Translator) -> tuple[str, float | None]:
    """Words and share for a model that is on its way."""
    if event.state is ModelState.LOADING:
        percent = int(100 * event.progress)
        text = translator.tr("Loading {model}: {percent} %", model=model_name(event.model), percent=percent)
        return text, event.progress
    if event.state is ModelState.READY:
        return translator.tr("Reading the text"), None
    return translator.tr("Waiting for the model"), None


def small_print(event: DoneEvent, model: str, translator: Translator, coverage: Coverage | None = None) -> str:
    """Two short lines under an answer: how it ended and the model; of a long text what it covers, else speed and time
    to the first token."""
    tr, usage = translator.tr, event.usage
    ends = {"cancelled": tr("Stopped"), "length": tr("Ended at the length limit")}
    if coverage is not None and coverage.cut_parts:
        numbers = ", ".join(map(str, coverage.cut_parts))
        ends["length"] = tr("Length limit in parts {numbers}", numbers=numbers)
    first = " · ".join(part for part in (ends.get(event.finish_reason, ""), model_name(model)) if part)
    second = []
    if coverage is not None:
        return "\n".join((first, coverage_text(coverage, translator)))
    if usage.decode_tok_s > 0:
        second.append(tr("{speed} tokens/s", speed=f"{usage.decode_tok_s:.1f}"))
    if usage.new_tokens > 0:
        second.append(tr("first after {seconds} s", seconds=f"{usage.time_to_first_token_ms / 1000:.1f}"))
    return "\n".join(part for part in (first, " · ".join(second)) if part)


def details(event: DoneEvent, translator: Translator) -> str:
    """The tool tip of the small print: what was read and written."""
    usage = event.usage
    return translator.tr(
        "{prompt} tokens read, {cached} of them already known; {new} tokens written",
        prompt=f"{usage.prompt_tokens:,}",
        cached=f"{usage.cached_tokens:,}",
        new=f"{usage.new_tokens:,}",
    )


def language_pair(action: Action, text: str, languages: Languages, translator: Translator) -> str:
    """ "English → Chinese" for an action that translates, "" for the others."""
    if not any("{target_language}" in prompt.system + prompt.user for prompt in action.prompts.values()):
        return ""
    source = detect(text, (languages.first, languages.second))
    target = other_language(text, languages.first, languages.second)
    target_name = _name(target, translator)
    return target_name if source is UNKNOWN else f"{_name(source, translator)} → {target_name}"


def _name(language: Language, translator: Translator) -> str:
    return language.chinese if translator.language == "zh" else language.english
