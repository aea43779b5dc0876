"""What goes wrong, as OpenAI's clients expect it: a status, and a JSON object with message, type, param and code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from inference.errors import (
    ContextOverflowError,
    InferenceError,
    InvalidRequestError,
    ModelFormatError,
    ModelNotFoundError,
    ModelResidentError,
    OutOfMemoryError,
    UnsupportedModelError,
)

RETRY_AFTER_S = 2
_OF_MODELS = (ModelFormatError, ModelNotFoundError, ModelResidentError, UnsupportedModelError)
_FOLDERS = re.compile(r"""(?<![^\s'"(])(?:~|[A-Za-z]:)?[\\/](?:[^\\/\s'"]+[\\/])*(?=[^\\/\s'"])""")


class ApiError(Exception):
    """A request that is answered with an error.

    Attributes:
        status: of HTTP.
        code: for programs.
        param: the field that is meant, "" for none.
        retry_after_s: when it makes sense to try again; None for never.
    """

    def __init__(self, status: int, message: str, code: str, param: str = "", retry_after_s: int | None = None) -> None:
        self.status, self.message, self.code, self.param = status, message, code, param
        self.retry_after_s = retry_after_s
        super().__init__(message)

    @property
    def body(self) -> dict[str, Any]:
        """The JSON object."""
        kind = "server_error" if self.status >= 500 else _TYPES.get(self.status, "invalid_request_error")
        message, param = _printable(self.message), _printable(self.param)
        return {"error": {"message": message, "type": kind, "param": param or None, "code": self.code}}

    @property
    def headers(self) -> dict[str, str]:
        """Of the answer."""
        headers = {} if self.retry_after_s is None else {"Retry-After": str(self.retry_after_s)}
        return headers | ({"WWW-Authenticate": "Bearer"} if self.status == 401 else {})


_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


def _printable(text: str) -> str:
    """What a client has sent may hold halves of characters, which no answer can carry."""
    return text.encode("utf-8", "replace").decode()


def unsupported(field: str, what: str = "") -> ApiError:
    """A field, or a value of it, that this server does not have; nothing is silently ignored."""
    said = what or f"{field} is not supported by this server. Leave it out."
    return ApiError(400, said, "unsupported_parameter", field)


def api_error(error: InferenceError) -> ApiError:
    """The engine's error in the API's words. Of files only their names are told, as of models."""
    text = str(error).replace(str(Path.home()), "~")
    if isinstance(error, _OF_MODELS):
        text = _FOLDERS.sub("", text)
    match error:
        case ContextOverflowError():
            return ApiError(400, text, "context_length_exceeded", "messages")
        case InvalidRequestError():
            return ApiError(400, text, "invalid_value")
        case ModelNotFoundError():
            return ApiError(404, text, "model_not_found", "model")
        case OutOfMemoryError():
            return ApiError(503, text, "insufficient_memory", "model")
        case ModelFormatError() | UnsupportedModelError():
            return ApiError(400, text, "unsupported_model", "model")
        case _:
            return ApiError(503, text, "engine_unavailable", retry_after_s=RETRY_AFTER_S)
