"""The key of a remote engine: in the system's keyring, and nowhere else that outlives the process."""

from __future__ import annotations

import logging
import threading

SERVICE = "deskinfer"

log = logging.getLogger(__name__)


class RemoteKeys:
    """Keys by the address of their server. Any thread; a keyring may ask its user and wait for the answer.

    Where the system has no keyring, keys are kept until the process ends.

    Attributes:
        trouble: the kind of error with which the keyring last refused to answer, "" where it did not. Most servers need
            no key, so this is worth a word only where one does.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, str] = {}
        self.trouble = ""

    def get(self, url: str) -> str:
        """The key of a server, "" for none."""
        with self._lock:
            if url not in self._known:
                self._known[url], self.trouble = _from_keyring(url)
            return self._known[url]

    def set(self, url: str, key: str) -> bool:
        """Keeps a key, or forgets it where it is ""; whether that outlives this process."""
        key = key.strip()
        with self._lock:
            self._known[url] = key
            return _to_keyring(url, key)


def _from_keyring(url: str) -> tuple[str, str]:
    """The key, and the kind of error in place of one."""
    # Costs a quarter of a second, which only users of a server should pay.
    import keyring
    from keyring.errors import KeyringError

    try:
        return keyring.get_password(SERVICE, url) or "", ""
    except (KeyringError, OSError, RuntimeError) as error:
        log.info("The keyring does not answer: %s", type(error).__name__)
        return "", type(error).__name__


def _to_keyring(url: str, key: str) -> bool:
    import keyring
    from keyring.errors import KeyringError, PasswordDeleteError

    try:
        if key:
            keyring.set_password(SERVICE, url, key)
            return keyring.get_password(SERVICE, url) == key
        keyring.delete_password(SERVICE, url)
    except PasswordDeleteError:
        return True  # there was none
    except (KeyringError, OSError, RuntimeError) as error:
        log.warning("The keyring takes no key: %s", type(error).__name__)
        return not key
    return True
