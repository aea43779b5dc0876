"""The HTTP of a remote engine: its statuses, bodies and streams, and its failures with their names."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from app.remote import error as remote_error
from app.remote.address import RemoteAddress
from app.remote.wire import error_words
from inference.errors import InferenceError

if TYPE_CHECKING:
    import httpx2

MAX_ERROR_BYTES = 64 << 10
MAX_BODY_BYTES = 4 << 20


def open_client(connect_s: float, answer_s: float) -> httpx2.AsyncClient:
    """A client of the library. Imports it, so call it on the thread that is to pay for that.

    Args:
        connect_s, answer_s: seconds of silence after which a server is given up.
    """
    import httpx2

    # A proxy of the environment is for other machines; a redirect would carry text and key elsewhere.
    direct = {f"all://{host}": None for host in ("localhost", "127.0.0.1", "[::1]")}
    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(answer_s, connect=connect_s), follow_redirects=False, mounts=direct
    )


class NamedFailures:
    """Gives the library's errors their names."""

    def __init__(self, address: RemoteAddress, connect_s: float, answer_s: float) -> None:
        self._host, self._connect_s, self._answer_s = address.host, connect_s, answer_s

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        import httpx2

        if error is None or isinstance(error, InferenceError):
            return
        if isinstance(error, httpx2.ConnectTimeout):
            raise remote_error.timed_out(self._host, self._connect_s) from error
        if isinstance(error, httpx2.TimeoutException):
            raise remote_error.timed_out(self._host, self._answer_s) from error
        if isinstance(error, (httpx2.ConnectError, httpx2.ProxyError)):
            raise remote_error.unreachable(self._host, str(error) or type(error).__name__) from error
        if isinstance(error, (httpx2.SSEError, httpx2.DecodingError, httpx2.LocalProtocolError)):
            raise remote_error.not_openai(self._host, str(error)) from error
        if isinstance(error, httpx2.TransportError):
            raise remote_error.broken_off(self._host) from error
        if isinstance(error, (httpx2.InvalidURL, UnicodeError)):
            raise remote_error.unreachable(self._host, str(error)) from error


async def read_body(response: httpx2.Response, limit: int) -> str:
    """The body as text; what is behind the limit is left."""
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        parts.append(part)
        size += len(part)
        if size > limit:
            break
    return b"".join(parts)[:limit].decode("utf-8", "replace")


async def check_status(response: httpx2.Response, address: RemoteAddress) -> None:
    """Raises RemoteError for anything but 200."""
    if response.status_code != 200:
        words, is_openai = error_words(await read_body(response, MAX_ERROR_BYTES))
        words = words or response.headers.get("location", "")
        raise remote_error.refusal(address.host, address.model, response.status_code, words, is_openai)


async def event_data(response: httpx2.Response, address: RemoteAddress) -> AsyncIterator[str]:
    """The data of each event, up to the last; of a server that does not stream, its whole answer."""
    import httpx2

    if response.headers.get("content-type", "").startswith("application/json"):
        yield await read_body(response, MAX_BODY_BYTES)
        return
    async for event in httpx2.EventSource(response):
        if event.data == "[DONE]":
            return
        if event.data:
            yield event.data
