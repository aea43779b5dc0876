"""Errors of the engine as the popup shows them: what happened and what to do, in the user's language."""

from __future__ import annotations

from dataclasses import replace

from app.actions.text_task import Coverage
from app.qt.error_words import translated
from app.qt.look.notice import Notice
from app.remote.error import RemoteError
from app.translation import Translator, UserText
from inference.byte_size import size_text
from inference.errors import (
    BackendUnavailableError,
    ContextOverflowError,
    DownloadError,
    EngineStoppedError,
    InferenceError,
    InvalidRequestError,
    ModelFormatError,
    ModelNotFoundError,
    ModelResidentError,
    OutOfMemoryError,
    UnsupportedModelError,
)

_HEADINGS: dict[type[InferenceError], tuple[UserText, UserText]] = {
    InvalidRequestError: (
        UserText("This cannot be run"),
        UserText("Select some text and try again."),
    ),
    ModelFormatError: (
        UserText("The model file is damaged"),
        UserText("Run `deskinfer models verify`, or download the model again."),
    ),
    UnsupportedModelError: (
        UserText("This model is not supported"),
        UserText("Choose another model in the settings."),
    ),
    ModelNotFoundError: (
        UserText("The model was not found"),
        UserText("Run `deskinfer models pull`, or correct the model in the settings."),
    ),
    DownloadError: (
        UserText("The model could not be downloaded"),
        UserText("Check the network and the free disk space, then try again; the download goes on where it stopped."),
    ),
    ModelResidentError: (
        UserText("Another program holds the model"),
        UserText("End the other program, or unload its model, then try again."),
    ),
    BackendUnavailableError: (
        UserText("The engine cannot work on this machine"),
        UserText("Choose the engine “Fastest that works here” in the settings: what works here is then taken."),
    ),
    EngineStoppedError: (
        UserText("The engine has stopped"),
        UserText("End the program and start it again."),
    ),
}
_NOTHING_WORKS = UserText("Run `deskinfer doctor`; it tells what is missing.")
_LAST_RESORT = "torch"
"""The backend that is tried when all others have failed, so its failure leaves none to choose."""
_UNKNOWN = (UserText("The engine failed"), UserText("Try again. If it happens again, run `deskinfer doctor`."))


def error_notice(error: InferenceError, translator: Translator, coverage: Coverage | None = None) -> Notice:
    """An error in its own words or their translation; where there is none, the cure stands before them.

    A backend tells why it does not work and cannot know that others do, so there the cure stands behind its words.

    Args:
        coverage: what of a long text was done before.
    """
    notice = _notice(error, translator)
    if coverage is None or not coverage.done_parts:
        return notice
    kept = translator.tr(
        "{done} of {parts} parts are done and kept; “Try again” goes on behind them.",
        done=coverage.done_parts,
        parts=coverage.parts,
    )
    return replace(notice, text=f"{notice.text}\n{kept}")


def _notice(error: InferenceError, translator: Translator) -> Notice:
    tr = translator.tr
    if isinstance(error, ContextOverflowError):
        text = tr(
            "The text is {prompt} tokens long, but the model can hold {context} together with the answer. "
            "Select a shorter text, or raise the context in the settings.",
            prompt=f"{error.prompt_tokens:,}",
            context=f"{error.context_tokens:,}",
        )
        return Notice(tr("The text is too long"), text, is_error=True)
    if isinstance(error, RemoteError):
        return Notice(tr(error.fault.value), tr(error.text), is_error=True)
    heading, cure = _heading_and_cure(error)
    if isinstance(error, OutOfMemoryError):
        heading = UserText("There is not enough memory for the model")
        cure = UserText(
            "It needs {needed}, and {free} are free. Close other programs, or choose a smaller model or context.",
            needed=size_text(error.needed_bytes),
            free=size_text(error.free_bytes),
        )
    text = _in_users_language(error, cure, translator)
    if isinstance(error, BackendUnavailableError):
        cure = _NOTHING_WORKS if error.backend == _LAST_RESORT else cure
        text = "\n".join((text, tr(cure)))
    return Notice(tr(heading), text, is_error=True)


def _in_users_language(error: InferenceError, cure: UserText, translator: Translator) -> str:
    tr, words = translator.tr, str(error) or type(error).__name__
    if translator.language == "en":
        return words
    known = tr(cure) if isinstance(error, OutOfMemoryError) else translated(words, translator)
    if known:
        return known
    own = tr("In the engine's own words: {words}", words=words)
    return own if isinstance(error, BackendUnavailableError) else "\n".join((tr(cure), own))


def _heading_and_cure(error: InferenceError) -> tuple[UserText, UserText]:
    for kind in type(error).__mro__:
        if kind in _HEADINGS:
            return _HEADINGS[kind]
    return _UNKNOWN
