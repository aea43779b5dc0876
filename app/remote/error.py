"""What can go wrong with a remote engine, each with a name, its cause and its cure."""

from __future__ import annotations

import enum

from app.translation import UserText
from inference.errors import InferenceError

LONGEST_DETAIL = 300


class RemoteFault(enum.Enum):
    """What kind of thing went wrong, and its heading."""

    NOT_SET_UP = UserText("The server is not set up")
    UNREACHABLE = UserText("The server cannot be reached")
    KEY = UserText("The server refuses the key")
    MODEL = UserText("The server does not have this model")
    TIMEOUT = UserText("The server does not answer")
    NOT_OPENAI = UserText("This is not a server for language models")
    BROKEN_OFF = UserText("The connection broke off")
    REFUSED = UserText("The server refuses this request")
    BUSY = UserText("The server has too much to do")
    SERVER = UserText("The server failed")
    LOCAL_ONLY = UserText("This works only with a model on this machine")


class RemoteError(InferenceError):
    """A remote engine could not answer.

    Attributes:
        fault: what kind of failure it is.
        text: what happened and what to do, for the user.
    """

    def __init__(self, fault: RemoteFault, text: UserText) -> None:
        self.fault = fault
        self.text = text
        super().__init__(str(text))


def not_set_up() -> RemoteError:
    """There is no address to ask."""
    text = UserText("No server has been set up. Enter its address in the window of models, or choose a local model.")
    return RemoteError(RemoteFault.NOT_SET_UP, text)


def unreachable(host: str, reason: str) -> RemoteError:
    """Nobody listens, no such name, no network, or a certificate that is not trusted."""
    text = UserText(
        "{host} cannot be reached ({reason}). Check the address, that the server runs, and the network; or choose a "
        "local model.",
        host=host,
        reason=_short(reason),
    )
    return RemoteError(RemoteFault.UNREACHABLE, text)


def timed_out(host: str, seconds: float) -> RemoteError:
    """It accepts the connection, or has begun an answer, and then says nothing more."""
    text = UserText(
        "{host} has said nothing for {seconds} seconds. It may be loading its model or be busy: try again, or choose a "
        "local model.",
        host=host,
        seconds=f"{seconds:g}",
    )
    return RemoteError(RemoteFault.TIMEOUT, text)


def broken_off(host: str) -> RemoteError:
    """The answer ended in its middle."""
    text = UserText("{host} broke off its answer. What has come so far is kept; try again for the rest.", host=host)
    return RemoteError(RemoteFault.BROKEN_OFF, text)


def not_openai(host: str, reason: str) -> RemoteError:
    """What answers speaks something else."""
    text = UserText(
        "{host} answers, but not as a server for language models does ({reason}). Check the address and its port; it "
        "usually ends in /v1.",
        host=host,
        reason=_short(reason),
    )
    return RemoteError(RemoteFault.NOT_OPENAI, text)


def no_model(host: str, model: str, known: tuple[str, ...] = ()) -> RemoteError:
    """The model is not there; what is there is named where it is known."""
    if not model:
        text = UserText("{host} has no model yet. Load one there, then try again.", host=host)
    elif known:
        text = UserText(
            '{host} has no model "{model}". It has {known}. Choose one of them.',
            host=host,
            model=model,
            known=", ".join(known[:5]) + ("…" if len(known) > 5 else ""),
        )
    else:
        text = UserText('{host} has no model "{model}". Choose one that it has.', host=host, model=model)
    return RemoteError(RemoteFault.MODEL, text)


def refusal(host: str, model: str, status: int, detail: str, is_openai: bool) -> RemoteError:
    """An answer with an error status.

    Args:
        detail: the server's own words.
        is_openai: whether the words came in the form that these servers use.
    """
    words = _short(detail) or f"HTTP {status}"
    if status in (401, 403):
        text = UserText(
            "{host} wants another key ({reason}). Enter the key of this server anew.", host=host, reason=words
        )
        return RemoteError(RemoteFault.KEY, text)
    if status == 404 and is_openai:
        return no_model(host, model)
    if status in (301, 302, 303, 307, 308, 404, 405):
        return not_openai(host, words)
    if status in (429, 503):
        text = UserText("{host} has too much to do ({reason}). Try again in a moment.", host=host, reason=words)
        return RemoteError(RemoteFault.BUSY, text)
    if status >= 500:
        text = UserText("{host} failed ({reason}). Try again; its own log says more.", host=host, reason=words)
        return RemoteError(RemoteFault.SERVER, text)
    text = UserText(
        "{host} refuses the request ({reason}). Select a shorter text, or choose another model.",
        host=host,
        reason=words,
    )
    return RemoteError(RemoteFault.REFUSED, text)


def local_only(what: UserText) -> RemoteError:
    """What no server of this kind can do."""
    text = UserText("{what} Choose a model on this machine for it.", what=what)
    return RemoteError(RemoteFault.LOCAL_ONLY, text)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return (line if len(line) <= LONGEST_DETAIL else line[:LONGEST_DETAIL] + "…").rstrip(".")
