"""Where the line to the running app is: a socket in a private directory, or a named pipe on Windows."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from pathlib import Path

# sockaddr_un holds 108 bytes with the final zero on Linux and 104 on BSDs.
_MAX_SOCKET_PATH_BYTES = 100


class InstanceError(Exception):
    """The line to the running app broke, or its directory is not private; the message names the cure."""


def address_in(directory: Path) -> str:
    """The address for a directory; where its path is too long for a socket, one in the temporary directory."""
    digest = hashlib.sha256(str(directory).encode()).hexdigest()[:16]
    if sys.platform == "win32":
        return rf"\\.\pipe\deskinfer-{digest}"
    path = str(directory / "app.socket")
    if len(os.fsencode(path)) <= _MAX_SOCKET_PATH_BYTES:
        return path
    short = private_directory(Path(tempfile.gettempdir()) / f"deskinfer-{os.getuid()}-{digest}")
    return str(short / "app.socket")


def private_directory(path: Path) -> Path:
    """Makes a directory that only this user may enter, or checks one.

    Raises:
        InstanceError: it or its parent belongs to another user, or it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if sys.platform != "win32":
            state = path.lstat()
            if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.getuid():
                raise InstanceError(f"{path} belongs to another user or is a link. Remove it, then start again.")
            if path.parent.stat().st_uid not in (os.getuid(), 0):
                raise InstanceError(
                    f"{path.parent} belongs to another user. Set XDG_RUNTIME_DIR to a directory of yours."
                )
            if stat.S_IMODE(state.st_mode) & 0o077:
                path.chmod(0o700)
    except OSError as error:
        raise InstanceError(f"{path} cannot be made or read ({error.strerror}). Correct its rights.") from error
    return path
