"""Killed at any moment (SIGKILL, on Windows TerminateProcess): the next start finds all that was told as done."""

from __future__ import annotations

import hashlib
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from app.history.history import History
from app.settings.registry import setting_registry
from app.settings.settings import Settings
from inference.store.catalog import HubSource
from tests.app.history.kill_target import operate
from tests.inference.store.fake_hub import FakeHub, entry_of, store_of

ROOT = Path(__file__).parents[3]
HISTORY_KILLS = 50
SETTINGS_KILLS = 15
DOWNLOAD_KILLS = 5
# Most kills come while a writer is at work, some during its first steps.
MAX_STEPS = 25
MAX_DELAY_S = 0.02
TIMEOUT_S = 60.0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """When to kill; the seed is printed, and KILL_SEED repeats it."""
    seed = int(os.environ.get("KILL_SEED", random.SystemRandom().randrange(1 << 31)))
    print(f"{request.node.name}: KILL_SEED={seed}")  # noqa: T201 - shown where the test fails
    return random.Random(seed)


class Target:
    """A running kill_target.py."""

    def __init__(self, *arguments: object) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.app.history.kill_target", *map(str, arguments)],
            cwd=ROOT,
            env=os.environ | {"HF_HUB_OFFLINE": "0"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        self._output = self._process.stdout

    def line(self) -> str:
        """The next line; fails where the program has ended by itself."""
        line = self._output.readline().decode().strip()
        assert line, f"it ended by itself: {self._process.wait(TIMEOUT_S)}"
        return line

    def kill(self) -> list[str]:
        """Kills it in whatever it does; the lines that it had said meanwhile."""
        self._process.kill()
        rest = self._output.read().decode().split()
        self._process.wait(TIMEOUT_S)
        self._output.close()
        return rest


def kill_after_steps(target: Target, chance: random.Random) -> list[str]:
    """Lets it do some steps, waits a random moment, kills it; everything that it said was done."""
    done = [target.line() for _ in range(chance.randint(0, MAX_STEPS))]
    time.sleep(chance.uniform(0, MAX_DELAY_S))  # the moment is what is tried
    return done + target.kill()


def check_whole(path: Path) -> None:
    """The database and both of its indices are sound."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        for index in ("message_index", "result_index"):
            connection.execute(f"INSERT INTO {index} ({index}, rank) VALUES ('integrity-check', 1)")


def test_history(tmp_path: Path, chance: random.Random) -> None:
    """The file equals a history in memory after the same operations: all that were told as done, or one more."""
    path = tmp_path / "history" / "history.db"
    seed = chance.randrange(1 << 31)
    expected = History(tmp_path / "none.db", keeps=False, now=lambda: 0.0)
    number, found_one_more = 0, 0
    for kill in range(HISTORY_KILLS):
        target = Target("history", path, seed, number)
        assert target.line() == "open", f"start {kill}"
        for done in kill_after_steps(target, chance):
            assert int(done) == number
            operate(expected, seed, number)
            number += 1
        after = History(path, now=lambda: 0.0)
        assert after.problem is None
        document = after.export_json()
        after.close()
        check_whole(path)
        if document != expected.export_json():
            operate(expected, seed, number)
            number += 1
            found_one_more += 1
            assert document == expected.export_json(), f"kill {kill}, after operation {number - 1}"
    expected.close()
    print(f"{number} operations, {found_one_more} of them done but not told")  # noqa: T201
    assert number > 5 * HISTORY_KILLS


def test_settings(tmp_path: Path, chance: random.Random) -> None:
    path = tmp_path / "settings" / "settings.toml"
    value = 0
    for _ in range(SETTINGS_KILLS):
        target = Target("settings", path)
        assert target.line() == "open"
        for done in kill_after_steps(target, chance):
            value = int(done)
        settings = Settings.load(path, setting_registry([]))
        assert settings.problems == []
        found = settings.integer("engine.threads")
        assert found in (value, (value + 1) % 256)
        value = found


@contextmanager
def serving(hub: FakeHub) -> Iterator[FakeHub]:
    thread = threading.Thread(target=hub.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        thread.join()
        hub.server_close()


def test_download(tmp_path: Path, chance: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed again and again, it goes on from what is there, and the whole file is the right one."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    data = random.Random(0).randbytes(6 << 20)
    sha256 = hashlib.sha256(data).hexdigest()
    part = tmp_path / ".partial" / "tiny" / "tiny.gguf.part"
    sizes = [0]
    with serving(FakeHub()) as hub:
        hub.files["o/tiny", "tiny.gguf"] = data
        hub.pause_s = 0.005
        for _ in range(DOWNLOAD_KILLS):
            target = Target("pull", tmp_path, hub.endpoint, len(data), sha256)
            wanted = sizes[-1] + chance.randrange(len(data) // (2 * DOWNLOAD_KILLS))
            while (told := int(target.line())) <= wanted:
                pass
            rest = target.kill()
            told = int(rest[-1]) if rest else told
            assert told < len(data), "it was killed too late to try anything"
            sizes.append(part.stat().st_size)
            assert sizes[-1] >= told, "what was told as done is there"
            assert part.read_bytes() == data[: sizes[-1]]
        hub.pause_s = 0.0
        import huggingface_hub

        store = store_of(tmp_path, entry_of(HubSource("o/tiny"), data=data), endpoint=hub.endpoint)
        assert store.list()[0].path is None, "half a model is no model"
        assert hashlib.sha256(store.pull("tiny").read_bytes()).hexdigest() == sha256
        huggingface_hub.close_session()
        ranges = hub.ranges()
    assert ranges[-1] == f"bytes={sizes[-1]}-", "the last run fetched only what was missing"
