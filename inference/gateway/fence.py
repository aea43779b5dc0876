"""Who may come in: hosts and origins (DNS rebinding, foreign web pages), the key, the size of a body, slow clients."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from inference.engine.unforeseen import log_error
from inference.gateway.errors import ApiError
from inference.gateway.options import MAX_HEADER_BYTES, GatewayOptions, is_loopback

_OPEN_PATHS = ("/health",)
"""Need no key: they tell nothing but that the server is there."""
_SLASHES = re.compile("/{2,}")
_WHOLE_URL = re.compile(r"https?://([^/]*)", re.IGNORECASE)
_HEADER_NAMES = re.compile(r"[A-Za-z0-9-]{1,64}( ?, ?[A-Za-z0-9-]{1,64}){0,63}")


class Fence:
    """ASGI middleware around everything else; what nobody foresaw ends here.

    Args:
        refused: takes note of the code of each error that is answered here.
    """

    def __init__(self, app: ASGIApp, options: GatewayOptions, refused: Callable[[str], None]) -> None:
        self._app, self._options, self._refused = app, options, refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets a request in or answers it with an error."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Clients that take this server for a proxy ask for a whole URL, which is right as long as it is one of ours.
        url = _WHOLE_URL.match(scope["path"])
        path = scope["path"][url.end() :] if url else scope["path"]
        # Some clients write a slash too many between the base URL and a path, or behind it.
        scope["path"] = _SLASHES.sub("/", path).rstrip("/") or "/"
        headers = Headers(scope=scope)
        guarded = _Guarded(receive, send, self._options)
        try:
            self._check_origin(scope, headers, [headers.get("host", ""), *([url[1]] if url else [])])
            guarded.origin = headers.get("origin", "")  # a page may read what is wrong from here on
            self._check(scope, headers)
            if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
                await _preflight(headers)(scope, receive, guarded.send)
            else:
                await self._app(scope, guarded.receive, guarded.send)
        except ClientDisconnect:
            return
        except ApiError as error:
            await self._refuse(error, scope, guarded)
        except Exception as error:  # noqa: BLE001 - whatever a request meets, the server goes on for the others
            log_error("The gateway", error)
            failure = ApiError(503, "The server failed at this request. Its log says more.", "internal_error")
            await self._refuse(failure, scope, guarded)

    async def _refuse(self, error: ApiError, scope: Scope, guarded: _Guarded) -> None:
        self._refused(error.code)
        if not guarded.has_begun:  # else the connection is closed in the middle, which the client notices
            response = JSONResponse(error.body, error.status, error.headers)
            await response(scope, guarded.receive, guarded.send)

    def _check_origin(self, scope: Scope, headers: Headers, hosts: Iterable[str]) -> None:
        if sum(len(name) + len(value) for name, value in headers.raw) + len(scope["raw_path"]) > MAX_HEADER_BYTES:
            raise ApiError(
                431, f"Path and headers are over {MAX_HEADER_BYTES} bytes long. Send less.", "head_too_large"
            )
        for host in map(_name_of, hosts):
            if not self._is_known_host(host):
                raise ApiError(
                    403, f"The host {host[:100]!r} is not one of this server's. Call it by its address.", "unknown_host"
                )
        origin = headers.get("origin")
        if origin is not None and not self._is_allowed_origin(origin):
            raise ApiError(
                403,
                f"Pages of {origin[:100]!r} may not call this server. Add the origin to the gateway's settings.",
                "unknown_origin",
            )

    def _check(self, scope: Scope, headers: Headers) -> None:
        key = self._options.api_key
        preflight = scope["method"] == "OPTIONS"
        if key and not preflight and scope["path"] not in _OPEN_PATHS and not _has_key(headers, key):
            raise ApiError(401, "The API key is missing or wrong. Send it as Authorization: Bearer.", "invalid_api_key")
        length = headers.get("content-length", "0")
        if length.isascii() and length.isdigit() and int(length) > self._options.max_body_bytes:
            raise too_large(self._options.max_body_bytes)

    def _is_known_host(self, host: str) -> bool:
        if is_loopback(host) or host == self._options.host:
            return True
        try:  # only names can be made to mean another address
            ipaddress.ip_address(host.strip("[]"))
        except ValueError:
            return False
        return not is_loopback(self._options.host)

    def _is_allowed_origin(self, origin: str) -> bool:
        if origin in self._options.origins:
            return True
        try:
            parts = urlsplit(origin)
            return parts.scheme in ("http", "https") and is_loopback(parts.hostname or "")
        except ValueError:
            return False


def too_large(limit: int) -> ApiError:
    """A body over the limit."""
    return ApiError(413, f"The body is over {limit} bytes long. Send less.", "body_too_large")


def _name_of(host: str) -> str:
    """A Host header without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0].lower()


def _has_key(headers: Headers, key: str) -> bool:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    same = hmac.compare_digest(given.strip().encode("utf-8", "replace"), key.encode())
    return scheme.lower() == "bearer" and same


def _preflight(asked: Headers) -> Response:
    """A browser's question before it sends a page's request; clients' libraries add headers of their own."""
    wanted = asked.get("access-control-request-headers", "")
    headers = {
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Allow-Headers": wanted if _HEADER_NAMES.fullmatch(wanted) else "Authorization, Content-Type",
        "Access-Control-Max-Age": "600",
    }
    if asked.get("access-control-request-private-network") == "true":
        headers["Access-Control-Allow-Private-Network"] = "true"
    return Response(status_code=204, headers=headers)


class _Guarded:
    """The connection of one request, with limits on the size of its body and on the time that it takes."""

    def __init__(self, receive: Receive, send: Send, options: GatewayOptions) -> None:
        self._receive, self._send, self._options = receive, send, options
        self._received_bytes, self._has_body = 0, False
        self._deadline = asyncio.get_running_loop().time() + options.silence_s
        self.origin = ""
        self.has_begun = False

    async def receive(self) -> Message:
        """The next part of the body; behind it only the hanging up, for which there is no limit of time."""
        try:
            async with asyncio.timeout_at(None if self._has_body else self._deadline):
                message = await self._receive()
        except TimeoutError as error:
            limit = self._options.silence_s
            raise ApiError(408, f"The body took over {limit:g} s. Send the request again.", "too_slow") from error
        if message["type"] == "http.request":
            self._received_bytes += len(message.get("body", b""))
            if self._received_bytes > self._options.max_body_bytes:
                raise too_large(self._options.max_body_bytes)
            self._has_body = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        """Gives a part of the answer to the client; one that takes nothing is hung up on by its connection."""
        if message["type"] == "http.response.start":
            self.has_begun = True
            if self.origin:
                allowed = [
                    (b"access-control-allow-origin", self.origin.encode("latin-1", "replace")),
                    (b"access-control-expose-headers", b"Retry-After"),
                    (b"vary", b"Origin"),
                ]
                message = {**message, "headers": [*message.get("headers", []), *allowed]}
        await self._send(message)
