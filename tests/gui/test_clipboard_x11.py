"""The clipboard between real programs on a real X display."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not os.environ.get("DISPLAY"), reason="needs an X display; pytest-xvfb starts one"),
]


class Program:
    """A peer process that does what it is told."""

    def __init__(self, root: Path) -> None:
        environment = {**os.environ, "QT_QPA_PLATFORM": "xcb", "PYTHONPATH": str(root)}
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("clipboard_peer.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.ask("serial")  # answers once it runs

    def ask(self, command: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{command}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def sees(self, command: str, expected: str) -> bool:
        """Whether the answer comes to contain what is expected: news of a change takes a moment."""
        deadline = time.monotonic() + 3
        while expected not in (answer := self.ask(command)) and time.monotonic() < deadline:
            time.sleep(0.02)
        return expected in answer

    def end(self) -> int:
        if self.process.poll() is None:
            self.ask("quit")
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        code = self.process.wait(10)
        self.process.stdin.close()
        self.process.stdout.close()
        return code


@pytest.fixture(scope="module")
def other(project_root: Path) -> Iterator[Program]:
    program = Program(project_root)
    yield program
    program.end()


@pytest.fixture
def ours(project_root: Path) -> Iterator[Program]:
    program = Program(project_root)
    yield program
    program.end()


def test_all_formats_of_another_program_come_back(ours: Program, other: Program):
    other.ask("put")
    before = other.ask("digest")
    assert ours.sees("digest", before)
    ours.ask("snapshot")
    ours.ask("offer")
    assert other.sees("text", "answer")
    ours.ask("restore")
    assert other.sees("digest", before)


def test_asking_for_the_formats_is_no_receipt_and_fetching_the_text_is_one(ours: Program, other: Program):
    ours.ask("offer")
    assert other.sees("formats", "x-kde-passwordManagerHint")
    assert other.ask("secret") == "True"
    assert ours.ask("receipts") == "0"
    assert ours.ask("text") == "answer"
    assert other.sees("text", "answer")
    assert int(ours.ask("receipts")) >= 1


def test_a_change_by_another_program_is_noticed(ours: Program, other: Program):
    before = int(ours.ask("serial"))
    other.ask("put")
    assert ours.sees("text", "plain")
    assert int(ours.ask("serial")) > before


def test_the_program_ends_cleanly_while_its_offer_lies_on_the_clipboard(ours: Program, other: Program):
    ours.ask("offer")
    assert other.sees("text", "answer")
    assert ours.end() == 0
