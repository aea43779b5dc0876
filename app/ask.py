"""`deskinfer ask`: a text, a request, and its answer from the running app or from an engine of our own."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from app.actions import ActionRegistry
from app.answer_printer import AnswerPrinter, engine_events
from app.ask_channel import ask_running
from app.engine_setup import EngineChoice, load_settings, open_worker, user_languages
from app.instance import InstanceError
from app.terminal_errors import UsageError
from inference.request import GenerationRequest, Message, Priority, SamplingParams


def read_text(words: Sequence[str], clipboard: bool) -> str:
    """The text of a command: its words, the clipboard, or standard input.

    Raises:
        UsageError: there is none, or it comes from two places.
    """
    if clipboard:
        if words:
            raise UsageError("Give a text or --clipboard, not both.")
        return _clipboard_text()
    if words and list(words) != ["-"]:
        return " ".join(words)
    if not words and sys.stdin.isatty():
        raise UsageError('There is no text. Write it behind the command, or use --clipboard, or "-" and a pipe.')
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"Standard input is not UTF-8 text ({error.reason} at byte {error.start}).") from error


def _clipboard_text() -> str:
    import pyperclip

    try:
        text = str(pyperclip.paste())
    except pyperclip.PyperclipException as error:
        raise UsageError(
            "The clipboard cannot be read here. Install xclip, xsel or wl-clipboard, or use a pipe."
        ) from error
    if not text.strip():
        raise UsageError("The clipboard holds no text.")
    return text


def build_request(text: str, action: str, system: str, sampling: Mapping[str, Any]) -> GenerationRequest:
    """A request of an action, or of the text as it is.

    Args:
        action: its id; "" for none.
        system: what the model is told first; not with an action, which says that itself.
        sampling: fields of SamplingParams that differ from the action's or the defaults.

    Raises:
        InvalidRequestError: the text is empty, or a value is out of its range.
        UnknownActionError: there is no such action.
        UsageError: action and system.
    """
    if not action:
        messages = [Message("user", text)]
        if system:
            messages.insert(0, Message("system", system))
        if not text.strip():
            raise UsageError("The text is empty.")
        return GenerationRequest(tuple(messages), SamplingParams(**sampling), Priority.CHAT)
    if system:
        raise UsageError("An action says itself what the model is told: give --action or --system, not both.")
    actions = ActionRegistry()
    for problem in actions.problems:
        sys.stderr.write(f"deskinfer: {problem}\n")
    request = actions.get(action).request(text, user_languages(load_settings()))
    return dataclasses.replace(request, sampling=dataclasses.replace(request.sampling, **sampling))


def answer(request: GenerationRequest, model: str, stats: bool, choice: EngineChoice | None = None) -> None:
    """Prints the answer of the running app, or where none runs of an engine of this process.

    Args:
        model: "" for the running app's, or the default.
        choice: how the engine is to be built; the running app, whose engine is there, is then not asked.

    Raises:
        InferenceError: see AnswerPrinter.print_answer.
        UsageError: the running app could not be asked.
    """
    printer = AnswerPrinter(sys.stdout, sys.stderr)
    try:
        events = ask_running(request, model) if choice is None else None
        done = printer.print_answer(events) if events is not None else None
    except InstanceError as error:
        raise UsageError(str(error)) from error
    if done is None:
        worker = open_worker(model) if choice is None else open_worker(model, choice)
        try:
            done = printer.print_answer(engine_events(worker, request))
        finally:
            worker.close()
    if stats:
        printer.print_usage(done.usage)
    if not done.usage.new_tokens and done.finish_reason == "stop":
        sys.stderr.write("deskinfer: the model ended its answer at once and said nothing. Ask in other words.\n")
    if done.finish_reason == "length":
        _print_cut_note(request)


def _print_cut_note(request: GenerationRequest) -> None:
    """Says that an answer was not finished, and how it can be."""
    limit = request.sampling.max_new_tokens
    reason = f"after {limit} tokens (--max-new-tokens)" if limit is not None else "at the end of the context"
    sys.stderr.write(f"deskinfer: the answer was cut {reason}.\n")
