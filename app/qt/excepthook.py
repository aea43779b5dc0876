"""Errors of ours that nobody caught: written to the log and shown, and the app goes on."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Callable
from types import TracebackType

_log = logging.getLogger(__name__)


def describe(kind: type[BaseException], trace: TracebackType | None) -> str:
    """Kind and place of an error. Its message is left out: it may hold a piece of the user's text."""
    places = "".join(traceback.format_tb(trace))
    return f"{kind.__name__}\n{places}"


def install(show: Callable[[str], None]) -> Callable[[], None]:
    """Takes over the hooks of the interpreter and its threads.

    Args:
        show: gets the kind of the error; called on the thread where the error happened.

    Returns:
        Puts the old hooks back.
    """
    before, before_threads = sys.excepthook, threading.excepthook

    def report(kind: type[BaseException], trace: TracebackType | None) -> None:
        _log.error("unexpected error: %s", describe(kind, trace))
        try:
            show(kind.__name__)
        except RuntimeError as error:  # Qt's objects are gone already, while the app ends
            _log.warning("the error could not be shown: %s", error)

    def on_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, (KeyboardInterrupt, SystemExit)):
            before(kind, error, trace)
        else:
            report(kind, trace)

    def on_thread_error(args: threading.ExceptHookArgs) -> None:
        if not issubclass(args.exc_type, SystemExit):
            report(args.exc_type, args.exc_traceback)

    def restore() -> None:
        sys.excepthook, threading.excepthook = before, before_threads

    sys.excepthook, threading.excepthook = on_error, on_thread_error
    return restore
