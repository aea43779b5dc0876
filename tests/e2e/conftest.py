"""The end-to-end tests: a display, a window manager and a tray, programs with text in them, and the running app."""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.x_display import XDisplay, end, need, wait_for, x_display

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
ANSWER_TIMEOUT_S = 20.0
PASSWORD_MARK = {"x-kde-passwordManagerHint": b"secret"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test here drives real windows; a hanging one is ended."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(90))


class PipedProgram:
    """A program of the tests that answers commands over its pipes (pipe_commands.py)."""

    def __init__(self, display: XDisplay, command: list[str], log: Path) -> None:
        self.display = display
        self.log = log
        with log.open("ab") as errors:
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                command,
                env=display.environment,
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        self._rest = b""

    def ask(self, do: str, **values: Any) -> Any:
        """Sends a command and returns its answer."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps({"do": do, **values}).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pytest.fail(f"the program has ended: {self.log.read_text()[-3000:]}")
        return json.loads(self._line())

    def _line(self) -> bytes:
        assert self.process.stdout is not None
        output, deadline = self.process.stdout.fileno(), time.monotonic() + ANSWER_TIMEOUT_S
        while b"\n" not in self._rest:
            ready, _, _ = select.select([output], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(output, 1 << 16) if ready else b""
            if not data:
                pytest.fail(f"no answer from the program: {self.log.read_text()[-3000:]}")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def close(self) -> None:
        """Ends the program."""
        end(self.process)


class Editor(PipedProgram):
    """A program with a text in it (editor.py)."""

    def __init__(self, display: XDisplay, log: Path, title: str = "Editor") -> None:
        super().__init__(display, [sys.executable, "-m", "tests.e2e.editor", title], log)
        self.window_id: int = self.ask("state")["window_id"]
        self.focus()

    def focus(self) -> None:
        """Waits until the keys go to this window, and asks for it."""
        self.display.run("xdotool", "windowactivate", str(self.window_id))
        wait_for(lambda: self.ask("state")["active"] and self.display.focus() == self.window_id, "the editor's focus")

    def select_all(self, text: str) -> None:
        """Holds this text and selects all of it, by keys."""
        self.ask("set_text", text=text)
        self.display.tap("ctrl+a")
        wait_for(lambda: len(self.ask("state")["selected"]) == len(text), "the selection")
        self.ask("forget_keys")

    def put_on_clipboard(self, **formats: bytes) -> None:
        """Copies content in several formats, by MIME type."""
        self.ask("put", formats={name: base64.b64encode(data).decode() for name, data in formats.items()})

    def clipboard(self) -> dict[str, bytes]:
        """What a program finds on the clipboard."""
        return {name: base64.b64decode(data) for name, data in self.ask("clipboard").items()}

    @property
    def text(self) -> str:
        return str(self.ask("state")["text"])


class App(PipedProgram):
    """The running app, with its windows told over the pipe (observed_app.py)."""

    def __init__(self, display: XDisplay, log: Path, *arguments: str) -> None:
        super().__init__(display, [sys.executable, "-m", "tests.e2e.observed_app", *arguments], log)

    @property
    def popup(self) -> dict[str, Any]:
        """What the popup shows."""
        return dict(self.ask("popup"))

    @property
    def sent_texts(self) -> list[str]:
        """The user messages that reached the engine."""
        return list(self.ask("sent"))

    def wait_for_popup(self, state: str, timeout_s: float = ANSWER_TIMEOUT_S) -> dict[str, Any]:
        """Waits until the popup is open and in this state; a message that nobody waits for fails the test at once."""
        found: dict[str, Any] = {}

        def is_there() -> bool:
            found.update(self.popup)
            return bool(found["visible"]) and found["state"] in (state, "notice")

        wait_for(is_there, lambda: f"the popup to be {state}; it is {found}", timeout_s)
        assert found["state"] == state, found
        return found

    def click(self, button: str) -> None:
        """Clicks a visible button of the popup with the mouse."""
        x, y = wait_for(lambda: self.popup["buttons"].get(button), f"the button {button}")
        self.display.click(x, y)


@pytest.fixture
def bare_display(tmp_path: Path) -> Iterator[XDisplay]:
    """A display with a window manager, but without a tray."""
    need("xdotool")
    with x_display(tmp_path) as display:
        display.start_window_manager()
        yield display


@pytest.fixture
def display(bare_display: XDisplay) -> XDisplay:
    """A display with a window manager and a tray."""
    need("trayer")
    bare_display.start("trayer", "--edge", "bottom", "--align", "right", "--width", "20", "--height", "32")
    wait_for(bare_display.tray_owner, "the tray")
    return bare_display


@pytest.fixture
def start_editor(bare_display: XDisplay, tmp_path: Path) -> Iterator[Callable[..., Editor]]:
    """Starts editors."""
    editors: list[Editor] = []

    def start(title: str = "Editor") -> Editor:
        editors.append(Editor(bare_display, tmp_path / f"{title}.log", title))
        return editors[-1]

    yield start
    for editor in editors:
        editor.close()


@pytest.fixture
def editor(start_editor: Callable[..., Editor]) -> Editor:
    """An editor with the focus."""
    return start_editor()


@pytest.fixture
def start_app(bare_display: XDisplay, tmp_path: Path) -> Iterator[Callable[..., App]]:
    """Starts the app with the options of observed_app.py and waits until it has its hotkeys."""
    apps: list[App] = []

    def start(*arguments: str) -> App:
        app = App(bare_display, tmp_path / "app.log", *arguments)
        apps.append(app)
        wait_for(lambda: app.ask("started"), "the app", timeout_s=ANSWER_TIMEOUT_S)
        return app

    yield start
    for app in apps:
        app.close()
