"""The error tree of the engine. Every message carries the value, the limit and the cure.

    InferenceError
    ├── InvalidRequestError        a field of a request is out of its range
    ├── ContextOverflowError       prompt and answer do not fit the context
    ├── ModelFormatError           a file is truncated, hostile or not what it claims
    ├── UnsupportedModelError      a sound file of a kind that this engine does not run
    ├── ModelNotFoundError         no model of that name or path
    ├── DownloadError              network, disk or checksum, while fetching a model
    │   └── DownloadCancelledError the user stopped it
    ├── QuantizeError              a checkpoint cannot be written, or not as it was asked for
    ├── OutOfMemoryError           a load refused before anything was allocated
    ├── ModelResidentError         another process holds the one resident model
    ├── BackendUnavailableError    a backend cannot work on this machine
    ├── DeviceFailedError          the GPU failed in the middle of its work
    └── EngineStoppedError         the worker has been closed

Cancelling is not an error: it is a DoneEvent with finish_reason "cancelled".
"""

from __future__ import annotations

from inference.byte_size import size_text


class InferenceError(Exception):
    """Base of all errors that the engine raises on purpose; str() is fit to be shown to a user."""


class InvalidRequestError(InferenceError):
    """A field of a request is out of its range."""


class ContextOverflowError(InferenceError):
    """The prompt does not fit the context.

    Attributes:
        prompt_tokens: tokens of the rendered prompt; of a hopelessly long one an estimate.
        context_tokens: tokens that the resident model can hold.
    """

    def __init__(self, prompt_tokens: int, context_tokens: int, is_estimate: bool = False) -> None:
        self.prompt_tokens = prompt_tokens
        self.context_tokens = context_tokens
        super().__init__(
            f"The text is {'about ' if is_estimate else ''}{prompt_tokens} tokens long, but the model's context holds"
            f" {context_tokens} together with the answer. Select a shorter text, or load the model with a"
            " larger context."
        )


class ModelFormatError(InferenceError):
    """A model file is truncated, hostile or not what it claims to be."""


class UnsupportedModelError(InferenceError):
    """A sound model file of an architecture or tensor type that this engine does not run."""


class ModelNotFoundError(InferenceError):
    """No catalog entry, directory or file of that name."""


class DownloadError(InferenceError):
    """A model could not be fetched: network, disk or checksum. What was fetched so far is kept apart."""


class DownloadCancelledError(DownloadError):
    """The user stopped a download: by Ctrl+C, or by the `cancelled` callback. It can go on from what is there."""


class QuantizeError(InferenceError):
    """A checkpoint cannot be written: the disk, the directory, or what was asked for. What is finished is kept."""


class OutOfMemoryError(InferenceError):
    """A load was refused before it allocated anything.

    Attributes:
        needed_bytes: what the memory plan asks for.
        free_bytes: what is free, counting what the resident model would give back.
    """

    def __init__(self, needed_bytes: int, free_bytes: int, cure: str, place: str = "") -> None:
        self.needed_bytes = needed_bytes
        self.free_bytes = free_bytes
        needed, free = size_text(needed_bytes), size_text(free_bytes)
        super().__init__(f"The model needs {needed}{place and ' ' + place}, but {free} are free. {cure}")


class ModelResidentError(InferenceError):
    """Another process holds the one resident model; the message names it and how to free it."""


class BackendUnavailableError(InferenceError):
    """A backend cannot work on this machine; the message says why.

    Attributes:
        reason: one line fit for the doctor's page.
    """

    def __init__(self, backend: str, reason: str) -> None:
        self.backend = backend
        self.reason = reason
        super().__init__(f"The backend {backend!r} is not available: {reason.removesuffix('.')}.")


class DeviceFailedError(InferenceError):
    """The GPU failed in the middle of its work, and what lay in its memory is lost: the model must be loaded again."""


class EngineStoppedError(InferenceError):
    """The worker has been closed; start it again to go on."""
