"""Errors that nobody foresaw: what of them may be logged, and what a user is told."""

from __future__ import annotations

import logging
import traceback

from inference.errors import InferenceError

log = logging.getLogger(__name__)


def log_error(who: str, error: Exception) -> None:
    """Logs type and place only: what an error says may quote a text."""
    log.error("%s met %s.\n%s", who, type(error).__name__, "".join(traceback.format_tb(error.__traceback__)))


def unforeseen(what: str, error: Exception) -> InferenceError:
    """The error for the user; `what` is what the engine was doing."""
    failure = InferenceError(
        f"The engine failed at {what} ({type(error).__name__}: {error})."
        " Try again; if it happens again, restart the app and report it."
    )
    failure.__cause__ = error
    return failure
