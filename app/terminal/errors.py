"""How a command in the terminal ends when it cannot go on: one line on standard error and an exit status."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from inference.errors import BackendUnavailableError, InferenceError, ModelNotFoundError

if TYPE_CHECKING:
    from app.engine_setup import EngineChoice

FAILED = 1
MISTAKEN = 2
INTERRUPTED = 130


class UsageError(Exception):
    """What was asked for cannot be done as it was asked; the message says how it can.

    Attributes:
        status: the exit status of the command.
    """

    def __init__(self, message: str, status: int = FAILED) -> None:
        super().__init__(message)
        self.status = status


@contextlib.contextmanager
def errors_on_terminal() -> Iterator[None]:
    """Turns expected errors into a line and an exit status; Ctrl+C and a reader that leaves end quietly with 130."""
    try:
        yield
    except BrokenPipeError:
        # Python flushes standard output once more at its end, and nobody is there to read it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(INTERRUPTED) from None
    except KeyboardInterrupt:
        typer.echo(err=True)
        raise typer.Exit(INTERRUPTED) from None
    except (InferenceError, UsageError, LookupError, OSError) as error:
        typer.echo(f"deskinfer: {_text(error)}", err=True)
        raise typer.Exit(error.status if isinstance(error, UsageError) else FAILED) from None


@contextlib.contextmanager
def engine_errors(choice: EngineChoice | None) -> Iterator[None]:
    """Adds what helps to the error of an engine that cannot work here, or of a model that is not here.

    Args:
        choice: what the command line says about the engine.
    """
    try:
        yield
    except (BackendUnavailableError, ModelNotFoundError) as error:
        from app.engine_setup import error_with_cure, load_settings

        raise UsageError(error_with_cure(error, load_settings(), choice)) from error


def _text(error: Exception) -> str:
    # str() of a KeyError is its repr.
    return str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
