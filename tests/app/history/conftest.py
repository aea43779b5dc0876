"""A history in a folder of its own, whose clock moves by a second with each look."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.history.history import History


class Clock:
    """Seconds that only grow when they are asked for."""

    def __init__(self) -> None:
        self.now_s = 1_800_000_000.0

    def __call__(self) -> float:
        self.now_s += 1
        return self.now_s


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "history" / "history.db"


@pytest.fixture
def history(path: Path) -> Iterator[History]:
    opened = History(path, now=Clock())
    assert opened.problem is None
    yield opened
    opened.close()
