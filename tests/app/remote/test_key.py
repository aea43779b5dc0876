"""Keys lie in the keyring; without one they last as long as the process."""

from __future__ import annotations

from collections.abc import Iterator

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends import fail
from keyring.errors import KeyringLocked, PasswordDeleteError

from app.remote.key import SERVICE, RemoteKeys

URL = "https://box/v1"


class Ring(KeyringBackend):
    """A keyring in memory."""

    priority = 1  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.held: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.held.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.held[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.held.pop((service, username), None) is None:
            raise PasswordDeleteError


class LockedRing(Ring):
    """Its user does not open it."""

    def get_password(self, service: str, username: str) -> str | None:
        raise KeyringLocked

    def set_password(self, service: str, username: str, password: str) -> None:
        raise KeyringLocked


@pytest.fixture
def ring() -> Iterator[Ring]:
    before, ring = keyring.get_keyring(), Ring()
    keyring.set_keyring(ring)
    yield ring
    keyring.set_keyring(before)


def test_a_key_outlives_the_process(ring: Ring) -> None:
    assert RemoteKeys().get(URL) == ""
    assert RemoteKeys().set(URL, " sk-1 ")
    assert ring.held == {(SERVICE, URL): "sk-1"}
    assert RemoteKeys().get(URL) == "sk-1"


def test_a_key_is_forgotten(ring: Ring) -> None:
    keys = RemoteKeys()
    keys.set(URL, "sk-1")
    assert keys.set(URL, "")
    assert not ring.held
    assert keys.get(URL) == ""
    assert keys.set(URL, "")


@pytest.mark.parametrize("backend", [fail.Keyring, LockedRing])
def test_without_a_keyring_a_key_lasts_as_long_as_the_process(
    ring: Ring, backend: type[KeyringBackend], caplog: pytest.LogCaptureFixture
) -> None:
    keyring.set_keyring(backend())
    keys = RemoteKeys()
    assert (keys.trouble, keys.get(URL)) == ("", "")
    assert keys.trouble in ("NoKeyringError", "KeyringLocked")
    assert caplog.records == [], "no key may be needed, and then nobody wants to hear of it"
    assert not keys.set(URL, "sk-1")
    assert keys.get(URL) == "sk-1"
    assert RemoteKeys().get(URL) == ""
