"""Where a remote engine is: the address of an OpenAI-compatible server and the model there. Pure."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from app.translation import UserText

REMOTE_PREFIX = "remote:"
"""Begins the name of a model that runs elsewhere: remote:HOST/MODEL."""
_ENDINGS = ("/chat/completions", "/completions", "/models")


class RemoteAddressError(ValueError):
    """A text is no address of a server, or one that is not allowed.

    Attributes:
        text: value, limit and cure, for the user.
    """

    def __init__(self, text: UserText) -> None:
        self.text = text
        super().__init__(str(text))


@dataclass(frozen=True, slots=True)
class RemoteAddress:
    """A server and a model.

    Attributes:
        url: up to and with "/v1".
        model: as the server calls it; "" for its first.
        context_tokens: what prompt and answer may have together; 0 for what the server states.
    """

    url: str
    model: str = ""
    context_tokens: int = 0

    @property
    def host(self) -> str:
        """Name and port, as people tell servers apart."""
        return urlsplit(self.url).netloc

    @property
    def id(self) -> str:
        """The name of its model among ours."""
        return f"{REMOTE_PREFIX}{self.host}/{self.model}"

    @property
    def is_this_machine(self) -> bool:
        """Whether the server runs here, so that nothing leaves the machine."""
        return is_this_machine(self.host)


def is_remote(model: str) -> bool:
    """Whether a model's name is that of a remote one."""
    return model.startswith(REMOTE_PREFIX)


def remote_parts(model: str) -> tuple[str, str]:
    """(host, model) of a remote model's name; ("", model) of any other."""
    if not is_remote(model):
        return "", model
    host, _, name = model.removeprefix(REMOTE_PREFIX).partition("/")
    return host, name


def is_this_machine(host: str) -> bool:
    """Whether a server, "name:port", runs here, so that nothing leaves the machine."""
    return is_loopback(urlsplit(f"//{host}").hostname or "")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by its very name."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def server_url(text: str) -> str:
    """The address of a server as it was typed, in its normal form: scheme, host, path up to "/v1".

    Raises:
        RemoteAddressError: no address, or one that holds a key or a query.
    """
    typed = text.strip()
    if "://" not in typed and typed:
        first = typed.split("/")[0].split(":")[0]
        typed = f"{'http' if is_loopback(first) else 'https'}://{typed}"
    try:
        parts = urlsplit(typed)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    if parts.scheme not in ("http", "https") or not host or any(character.isspace() for character in typed):
        raise RemoteAddressError(
            UserText('"{value}" is not the address of a server. Write it like http://localhost:11434.', value=text)
        )
    if parts.username is not None or parts.query or parts.fragment:
        raise RemoteAddressError(
            UserText(
                "The address of the server holds a name, a key or a question mark. Leave them out; the key has a field "
                "of its own."
            )
        )
    path = parts.path.rstrip("/")
    for ending in _ENDINGS:
        path = path.removesuffix(ending)
    if not path.endswith("/v1"):
        path += "/v1"
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{f':{port}' if port else ''}{path}"


def remote_address(url: str, model: str, *, allows_plain: bool, context_tokens: int = 0) -> RemoteAddress:
    """A server that may be asked.

    Args:
        allows_plain: whether the user has agreed to unencrypted connections.

    Raises:
        RemoteAddressError: no address; or unencrypted, and over a network.
    """
    address = RemoteAddress(server_url(url), model.strip(), context_tokens)
    if address.url.startswith("http://") and not address.is_this_machine and not allows_plain:
        raise RemoteAddressError(
            UserText(
                "The connection to {host} would not be encrypted: everyone on the way could read your text. Use "
                'https, or allow it by "Allow unencrypted connections".',
                host=address.host,
            )
        )
    return address
