"""How the gateway is set up. Pure data."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from inference.errors import InvalidRequestError

DEFAULT_PORT = 18000
MAX_HEADER_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """Choices of the user.

    Attributes:
        host: address to listen on; beyond the loopback a key is needed.
        port: 0 takes any that is free.
        api_key: what clients send as "Authorization: Bearer ..."; "" for none.
        origins: web pages that may call, as "https://example.org"; those of this machine always may.
        max_waiting: requests that may wait; more are told to come later.
        max_body_bytes: of a request.
        silence_s: how long a client may take to send a request's head, then its body, or to take what waits for it;
            and how long a connection is kept between two requests.
    """

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    api_key: str = ""
    origins: tuple[str, ...] = ()
    max_waiting: int = 64
    max_body_bytes: int = 4 << 20
    silence_s: float = 30.0

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise InvalidRequestError(f"The port is {self.port}, but it must be between 0 and 65535.")
        if not is_loopback(self.host) and not self.api_key:
            raise InvalidRequestError(
                f"The address {self.host} can be reached from other machines, so an API key is needed. Set one, or"
                " listen on 127.0.0.1."
            )


def is_loopback(host: str) -> bool:
    """Whether only programs of this machine reach the address."""
    if host.lower() in ("localhost", "localhost."):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
