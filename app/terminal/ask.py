"""`deskinfer ask`: a text, a request or an action on it, and the answer of the running app or of our own engine."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, get_args

from app.actions.action import Action
from app.actions.answer_review import Subject
from app.actions.registry import ActionRegistry
from app.actions.text_task import TextEngine, TextTask
from app.engine_client import EngineClient
from app.engine_setup import EngineChoice, ServerEngine, load_settings, open_worker, user_languages
from app.gateway.running import ask_health, running_servers
from app.instance.ask_channel import ask_running, tell_where
from app.instance.instance import InstanceError, is_running
from app.instance.running_app import RunningApp, app_events
from app.language import Languages
from app.remote.address import RemoteAddressError, remote_address
from app.remote.error import RemoteError, RemoteFault
from app.terminal.answer_printer import (
    AnswerPrinter,
    Events,
    Show,
    TodoShow,
    engine_events,
    is_data,
    shown_as,
    task_events,
)
from app.terminal.errors import UsageError
from app.terminal.given_text import GivenText
from app.todos.todo import TodoForm
from inference.errors import ContextOverflowError, InferenceError, ModelResidentError
from inference.request import DoneEvent, GenerationRequest, Message, ModelState, Priority, SamplingParams

OpenEngine = Callable[[], EngineClient]

_MORE_CONTEXT = "The context is model.context_tokens in the settings; --action takes texts of any length."


def build_request(text: str, system: str, sampling: Mapping[str, Any]) -> GenerationRequest:
    """A request of the text as it is.

    Args:
        system: what the model is told first, "" for nothing.
        sampling: fields of SamplingParams that differ from the defaults.

    Raises:
        InvalidRequestError: a value is out of its range.
        UsageError: the text is empty.
    """
    messages = [Message("user", text)]
    if system:
        messages.insert(0, Message("system", system))
    if not text.strip():
        raise UsageError("The text is empty.")
    return GenerationRequest(tuple(messages), SamplingParams(**sampling), Priority.CHAT)


@dataclass(frozen=True, slots=True)
class ActionOnText:
    """An action, the text that it is for, and fields of SamplingParams that differ from the action's.

    Attributes:
        form: how to-dos are printed.
    """

    action: Action
    text: str
    languages: Languages
    sampling: Mapping[str, Any]
    form: TodoForm = "markdown"

    def task(self, engine: TextEngine) -> TextTask:
        """The task for an engine. Raises InvalidRequestError: the text is empty, or a value is out of its range."""
        return TextTask(engine, self.action, self.text, self.languages, sampling=self.sampling)


def find_action(text: str, action: str, system: str, sampling: Mapping[str, Any], form: str = "") -> ActionOnText:
    """An action by its id, for a text.

    Args:
        form: how to-dos are printed; "" for the usual one.

    Raises:
        InvalidRequestError: the text is empty, or a value is out of its range.
        UnknownActionError: there is no such action.
        UsageError: a system prompt as well, or a form that is none or not for this action.
    """
    if system:
        raise UsageError("An action says itself what the model is told: give --action or --system, not both.")
    actions = ActionRegistry()
    for problem in actions.problems:
        sys.stderr.write(f"deskinfer: {problem}\n")
    found = actions.get(action)
    if form and found.output != "todos":
        raise UsageError(f"--format is for to-dos, and {action} gives none. Leave it out.")
    known = next((each for each in get_args(TodoForm) if each == (form or "markdown")), None)
    if known is None:
        raise UsageError(f"--format is {form!r}, but it must be {', '.join(get_args(TodoForm))}.")
    chosen = ActionOnText(found, text, user_languages(load_settings()), sampling, known)
    chosen.task(RunningApp())  # what is wrong with it is told before a model is loaded
    return chosen


def chosen_engine(model: str, choice: EngineChoice | None, server: str, server_model: str) -> OpenEngine | None:
    """What opens the engine that the command line asks for; None where it leaves that to us.

    Raises:
        UsageError: it asks for two, or the address of the server is none.
    """
    if not server:
        if server_model:
            raise UsageError("--server-model is for a server: give --server URL as well.")
        return None if choice is None else partial(open_worker, model, choice)
    if model or choice is not None:
        raise UsageError("A server has models and an engine of its own: leave --model, --backend and --vram out.")
    try:
        address = remote_address(server, server_model, allows_plain=load_settings().flag("remote.allow_http"))
    except RemoteAddressError as error:
        raise UsageError(str(error)) from error
    return ServerEngine(address)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line wants done with a text.

    Attributes:
        action: the id of an action, "" for a question.
        system: what the model is told first.
        sampling: fields of SamplingParams that are given.
        form: how to-dos are printed, "" for the usual one.
    """

    action: str = ""
    system: str = ""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    form: str = ""


def answer_given(given: GivenText, wanted: Wanted, model: str, stats: bool, opened: OpenEngine | None = None) -> None:
    """Prints the answer to what was given, and where it comes from if that is not this machine.

    Raises:
        InvalidRequestError, UnknownActionError, UsageError: it makes no sense.
        InferenceError: see `answer`.
    """
    if opened is None:
        tell_where(sys.stderr)
    if wanted.action:
        found = find_action(given.as_one_text(), wanted.action, wanted.system, wanted.sampling, wanted.form)
        answer_action(found, model, stats, opened)
    elif wanted.form:
        raise UsageError("--format is for to-dos: give --action todos as well.")
    else:
        try:
            answer(build_request(given.as_request(), wanted.system, wanted.sampling), model, stats, opened)
        except ContextOverflowError as error:
            raise UsageError(f"{error} {_MORE_CONTEXT}") from error


def answer(request: GenerationRequest, model: str, stats: bool, opened: OpenEngine | None = None) -> None:
    """Prints the answer of the running app, or where none runs of an engine of this process.

    Args:
        model: "" for the running app's, or the default.
        opened: opens the engine that is to answer; the running app is then not asked.

    Raises:
        InferenceError: see AnswerPrinter.print_answer.
        UsageError: the running app could not be asked.
    """
    printer = AnswerPrinter(sys.stdout, sys.stderr)
    try:
        events = ask_running(request, model) if opened is None else None
        done = printer.print_answer(events) if events is not None else None
    except InstanceError as error:
        raise UsageError(str(error)) from error
    if done is None:
        with _own_engine(model, opened) as worker:
            done = printer.print_answer(engine_events(worker, request))
    _print_end(printer, done, stats)
    if done.finish_reason == "length":
        _print_cut_note(request.sampling.max_new_tokens)


def answer_action(chosen: ActionOnText, model: str, stats: bool, opened: OpenEngine | None = None) -> None:
    """The same for an action, on a text of any length.

    What is to be checked, and what of a long text the answer covers, is told at the end.

    Raises:
        InferenceError: see AnswerPrinter.print_answer.
        UsageError: the running app could not be asked.
    """
    printer = AnswerPrinter(sys.stdout, sys.stderr)
    show = shown_as(chosen.action, chosen.text, chosen.form)
    app = RunningApp(model)
    try:
        if opened is None and app.connect():
            task = chosen.task(app)
            done = _print_task(printer, app_events(app, task), task, show)
        else:
            with _own_engine(model, opened) as worker:
                task = chosen.task(worker)
                done = _print_task(printer, task_events(worker, task), task, show)
    except InstanceError as error:
        raise UsageError(str(error)) from error
    if show is not None:
        _end_todos(show, printer.answer, chosen.form)
    else:
        printer.print_review(Subject.of(chosen.action, chosen.text, chosen.languages), done)
    _print_end(printer, done, stats)
    if task.coverage is not None:
        printer.print_coverage(task.coverage)
    if done.finish_reason == "length" and not (task.coverage is not None and task.coverage.cut_parts):
        _print_cut_note(chosen.sampling.get("max_new_tokens", chosen.action.sampling.max_new_tokens))


def _end_todos(show: TodoShow, answer: str, form: TodoForm) -> None:
    """What is printed of to-dos at the end; where the model wrote no data, its text. Raises UsageError."""
    if not show.todos and answer.strip() and not is_data(answer):
        if form != "markdown":
            raise UsageError(f"The model wrote a text, which cannot be made {form}. Leave --format out to read it.")
        sys.stdout.write(f"{answer.strip()}\n")
        sys.stdout.flush()
        sys.stderr.write("deskinfer: the model gave no list of to-dos; this is the text that it wrote.\n")
        return
    sys.stdout.write(show.end())
    sys.stdout.flush()
    if not show.todos:
        sys.stderr.write("deskinfer: no to-dos were found.\n")


def _print_task(printer: AnswerPrinter, events: Events, task: TextTask, show: Show | None) -> DoneEvent:
    try:
        return printer.print_answer(events, show)
    except InferenceError:
        if task.coverage is not None:
            printer.print_coverage(task.coverage)
        raise


@contextlib.contextmanager
def _own_engine(model: str, opened: OpenEngine | None) -> Iterator[EngineClient]:
    worker = open_worker(model) if opened is None else opened()
    try:
        yield worker
    except ModelResidentError as error:
        raise UsageError(f"{error} {_who_answers()}") from error
    except RemoteError as error:
        if error.fault is not RemoteFault.KEY or not isinstance(opened, ServerEngine):
            raise
        raise UsageError(f"{error} {opened.key_cure()}") from error
    finally:
        worker.close()


def _who_answers() -> str:
    """What else can be done where another process holds the model."""
    if is_running():
        return "Or leave --backend and --vram out: the running app answers with the model that it has."
    for server in running_servers():
        health = ask_health(server.port, server.reached_at)
        if health is not None and health.state == ModelState.READY.value:
            return f"deskinfer serve has it and answers as well: --server {server.address} asks it."
    return "Where that is deskinfer serve, it answers as well: give --server with its address."


def _print_end(printer: AnswerPrinter, done: DoneEvent, stats: bool) -> None:
    if stats:
        printer.print_usage(done.usage)
    if not done.usage.new_tokens and done.finish_reason == "stop":
        sys.stderr.write("deskinfer: the model ended its answer at once and said nothing. Ask in other words.\n")


def _print_cut_note(limit: int | None) -> None:
    """Says that an answer was not finished, and how it can be."""
    reason = f"after {limit} tokens (--max-new-tokens)" if limit is not None else "at the end of the context"
    sys.stderr.write(f"deskinfer: the answer was cut {reason}.\n")
