"""A log that cannot hold a user's text: of each record only what our own source says about it is written.

Our messages are constants with places for values. The constant is kept; of the values numbers, names of errors and
places in our code are, and everything else becomes "…". Of other programs' records only time, level and logger stay.
"""

from __future__ import annotations

import logging
import re
import traceback
from pathlib import Path
from types import TracebackType

OURS = ("app", "inference", "kernels", "__main__")
_PLACE = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_ERROR_NAME = re.compile(r"[A-Za-z_]{1,60}(?:Error|Exception|Warning|Interrupt|Exit)")
_ROOT = Path(__file__).resolve().parents[2]
_HIDDEN = "…"


class ContentFreeFormatter(logging.Formatter):
    """Writes time, level, logger, and of the message what is no content."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and one more for each place of a traceback."""
        head = f"{self.formatTime(record)} {record.levelname} {record.name}"
        if record.name.partition(".")[0] not in OURS:
            return f"{head}: {_HIDDEN}"
        lines = [f"{head}: {_message(record)}"]
        if record.exc_info and record.exc_info[0] is not None:
            kind, _, trace = record.exc_info
            lines += [kind.__name__, *_places_of(trace)]
        return "\n".join(lines)


def _message(record: logging.LogRecord) -> str:
    values = record.args if isinstance(record.args, tuple) else (record.args,) if record.args else ()
    shown = tuple(value if isinstance(value, int | float) else _shown(str(value)) for value in values)
    try:
        return str(record.msg) % shown if shown else str(record.msg)
    except (TypeError, ValueError):
        return str(record.msg)


def _shown(value: str) -> str:
    places = [_place(*found) for found in _PLACE.findall(value)]
    if places:
        return "\n".join(["", *places])
    return value if _ERROR_NAME.fullmatch(value) else _HIDDEN


def _places_of(trace: TracebackType | None) -> list[str]:
    return [_place(frame.filename, str(frame.lineno), frame.name) for frame in traceback.extract_tb(trace)]


def _place(path: str, line: str, function: str) -> str:
    """A place in our code; a folder of the user's may have any name, so other files remain unnamed."""
    try:
        inside = Path(path).relative_to(_ROOT)
    except ValueError:
        return f"  {_HIDDEN}"
    is_ours = inside.parts[0] in OURS
    return f"  {inside.as_posix()}:{line} {function}" if is_ours else f"  {_HIDDEN}"
