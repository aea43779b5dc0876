"""Who may come in: hosts and origins (DNS rebinding, foreign web pages), the key, the size of a body, slow clients."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from inference.gateway.errors import ApiError
from inference.gateway.options import GatewayOptions, is_loopback

_OPEN_PATHS = ("/health",)
"""Need no key: they tell nothing but that the server is there."""


class Fence:
    """ASGI middleware around everything else."""

    def __init__(self, app: ASGIApp, options: GatewayOptions) -> None:
        self._app, self._options = app, options

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets a request in or answers it with an error."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        guarded = _Guarded(receive, send, self._options)
        try:
            self._check(scope, headers)
        except ApiError as error:
            await _refusal(error)(scope, receive, guarded.send)
            return
        origin = headers.get("origin", "")
        guarded.origin = origin
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await _preflight()(scope, receive, guarded.send)
            return
        try:
            await self._app(scope, guarded.receive, guarded.send)
        except ApiError as error:
            if guarded.has_begun:
                raise
            await _refusal(error)(scope, receive, guarded.send)

    def _check(self, scope: Scope, headers: Headers) -> None:
        host = _name_of(headers.get("host", ""))
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


def _refusal(error: ApiError) -> Response:
    return JSONResponse(error.body, error.status, error.headers)


def _preflight() -> Response:
    headers = {
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Allow-Headers": "Authorization, Content-Type",
        "Access-Control-Max-Age": "600",
    }
    return Response(status_code=204, headers=headers)


class _Guarded:
    """The connection of one request, with a limit on its body and on its silence."""

    def __init__(self, receive: Receive, send: Send, options: GatewayOptions) -> None:
        self._receive, self._send, self._options = receive, send, options
        self._received_bytes, self._has_body = 0, False
        self.origin = ""
        self.has_begun = False

    async def receive(self) -> Message:
        """The next part of the body; behind it only the hanging up, for which there is no limit of time."""
        limit = None if self._has_body else self._options.silence_s
        try:
            message = await asyncio.wait_for(self._receive(), limit)
        except TimeoutError as error:
            raise ApiError(408, f"Nothing came for {limit:g} s. Send the request again.", "too_slow") from error
        if message["type"] == "http.request":
            self._received_bytes += len(message.get("body", b""))
            if self._received_bytes > self._options.max_body_bytes:
                raise too_large(self._options.max_body_bytes)
            self._has_body = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        """Gives a part of the answer to a client that takes it in time."""
        if message["type"] == "http.response.start":
            self.has_begun = True
            if self.origin:
                allowed = [
                    (b"access-control-allow-origin", self.origin.encode("latin-1", "replace")),
                    (b"vary", b"Origin"),
                ]
                message = {**message, "headers": [*message.get("headers", []), *allowed]}
        await asyncio.wait_for(self._send(message), self._options.silence_s)
