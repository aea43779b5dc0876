"""The program as a whole: start, second start, commands from outside, and an end in time."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.__main__ import has_display, main, options_after_change, parse, put_in_force
from app.engine_setup import EngineChoice
from app.instance import ask_channel
from app.instance.instance import is_running, send_to_running
from app.settings.registry import setting_registry
from app.settings.settings import Settings
from inference.request import DoneEvent, GenerationRequest, Message, TokenEvent

pytestmark = [
    pytest.mark.gui,
    pytest.mark.skipif(sys.platform != "linux", reason="signals and sockets of Linux"),
]

SCRIPT = Path(__file__).with_name("scripted_app.py")
START_LIMIT_S = 20.0
END_LIMIT_S = 3.0
# Interpreter start and end on a machine that is busy with other tests.
SLACK_S = 1.0

Start = Callable[..., "subprocess.Popen[str]"]


def _environment(root: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(root), "QT_QPA_PLATFORM": "offscreen", "LC_ALL": "C.UTF-8"}


@pytest.fixture
def start(project_root: Path) -> Iterator[Start]:
    processes: list[subprocess.Popen[str]] = []

    def start(kind: str, *arguments: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), kind, *arguments],
            env=_environment(project_root),
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _wait_until(condition: Callable[[], object], limit_s: float = START_LIMIT_S) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


def _started(start: Start, kind: str = "answers") -> "subprocess.Popen[str]":
    process = start(kind)
    _wait_until(lambda: process.poll() is not None or is_running())
    # Waits until the windows are there as well.
    _wait_until(lambda: (send_to_running({"command": "show"}, START_LIMIT_S) or {}).get("ok"))
    return process


def _end_s(process: "subprocess.Popen[str]") -> float:
    began = time.monotonic()
    assert process.wait(END_LIMIT_S + SLACK_S + 5) == 0
    return time.monotonic() - began


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(start: Start, number: signal.Signals):
    process = _started(start)
    process.send_signal(number)
    assert _end_s(process) < END_LIMIT_S
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()


def test_a_second_start_reaches_the_first(start: Start):
    first = _started(start)
    second = start("answers")
    assert second.wait(START_LIMIT_S) == 0
    assert first.poll() is None


def test_an_action_that_does_not_exist_is_named(start: Start):
    _started(start)
    second = start("answers", "--action", "sumarize")
    assert second.wait(START_LIMIT_S) == 1
    assert second.stderr is not None
    assert "Did you mean summarize" in second.stderr.read()


def test_another_process_gets_its_answer_streamed(start: Start):
    _started(start)
    events = list(ask_channel.ask_running(GenerationRequest((Message("user", "hello"),))) or [])
    assert "".join(event.text for event in events if isinstance(event, TokenEvent)) == "One two."
    assert isinstance(events[-1], DoneEvent)


def test_commands_that_make_no_sense_are_answered(start: Start):
    _started(start)
    assert "must be one of" in (send_to_running({"command": "explode"}) or {})["error"]
    assert "must be an id" in (send_to_running({"command": "action", "action": 3}) or {})["error"]


def test_it_ends_in_time_while_answers_are_written(start: Start):
    process = _started(start, "never ends")
    messages = ask_channel.ask_running(GenerationRequest((Message("user", "hello"),)))
    assert messages is not None
    first = next(event for event in messages if isinstance(event, TokenEvent))
    assert first.text == "word "
    assert send_to_running({"command": "quit"}) == {"ok": True}
    assert _end_s(process) < END_LIMIT_S + SLACK_S
    messages.close()


def test_it_ends_in_time_when_the_engine_does_not(start: Start):
    process = _started(start, "hangs")
    assert send_to_running({"command": "quit"}) == {"ok": True}
    assert _end_s(process) < END_LIMIT_S + SLACK_S


def test_the_lock_is_free_after_the_end(start: Start):
    process = _started(start)
    send_to_running({"command": "quit"})
    _end_s(process)
    assert not is_running()
    _started(start)


def test_after_restart_now_the_settings_come_back(project_root: Path, tmp_path: Path):
    told = tmp_path / "told.txt"
    code = f"""
import os, sys
from PySide6.QtCore import QTimer
import app.__main__ as composition
from app.engine_client import FakeClient
from app.qt.application import Application

class Watched(Application):
    def start(self, session):
        super().start(session)
        QTimer.singleShot(300, self, self.tell)

    def tell(self):
        dialog = self.settings_owner.dialog
        with open({str(told)!r}, "a") as file:
            file.write("settings\\n" if dialog is not None and dialog.isVisible() else "nothing\\n")
        first = sum(1 for _ in open({str(told)!r})) == 1
        self.restart() if first else self.quit()

composition.Application = Watched
sys.exit(composition.main([], lambda _settings: (FakeClient(), lambda: "scripted")))
"""
    subprocess.run([sys.executable, "-c", code], env=_environment(project_root), timeout=START_LIMIT_S, check=True)
    _wait_until(lambda: len(told.read_text().splitlines()) == 2)
    assert told.read_text().splitlines() == ["nothing", "settings"]
    _wait_until(lambda: not is_running())


def test_heavy_libraries_are_not_imported_before_the_tray(project_root: Path):
    code = (
        "import sys, app.__main__, inference.engine.worker;"
        "sys.exit(str([n for n in ('numpy', 'torch', 'tokenizers', 'jinja2', 'huggingface_hub') if n in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=_environment(project_root), capture_output=True, text=True, check=False
    )
    assert done.stderr.strip() == "[]"


def test_without_a_display_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    assert main([]) == 2
    assert "deskinfer ask" in capsys.readouterr().err


def test_what_the_command_line_says_of_the_engine_is_shown_and_can_be_changed(tmp_path: Path):
    settings = Settings.load(tmp_path / "settings.toml", setting_registry([]))
    choice = EngineChoice("cuda", 3 << 30)
    put_in_force(settings, choice)
    assert settings.text("engine.backend") == "cuda"
    given = options_after_change(settings, choice)
    assert (given.backend, given.vram_bytes) == ("cuda", 3 << 30)
    for backend, vram_bytes in (("auto", 3 << 30), ("cpu", None)):
        settings.set("engine.backend", backend)
        changed = options_after_change(settings, choice)
        assert (changed.backend, changed.vram_bytes) == (backend, vram_bytes)


def test_a_backend_of_no_known_name_and_none_leave_the_settings_alone(tmp_path: Path):
    settings = Settings.load(tmp_path / "settings.toml", setting_registry([]))
    for choice in (EngineChoice("gpu9"), EngineChoice("", 3 << 30)):
        put_in_force(settings, choice)
        assert settings.text("engine.backend") == "auto"
    (tmp_path / "settings.toml").write_text('[engine]\nbackend = "cpu"\n', encoding="utf-8")
    settings.reload_if_changed()
    assert settings.text("engine.backend") == "cpu"


def test_what_contradicts_itself_on_the_command_line_is_said_in_a_line(project_root: Path):
    done = subprocess.run(
        [sys.executable, "-c", "from app.cli import main; main()", "run", "--backend", "cpu", "--vram", "3GB"],
        env={**_environment(project_root), "DISPLAY": ":none"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("--vram limits the memory of a GPU")
    assert len(done.stderr.splitlines()) == 1


def test_displays():
    assert has_display({"WAYLAND_DISPLAY": "wayland-0"}, "linux")
    assert not has_display({"DISPLAY": ""}, "linux")
    assert has_display({}, "win32")


def test_arguments():
    assert parse([]) == {"command": "show"}
    assert parse(["--action", "translate"]) == {"command": "action", "action": "translate", "source": "selection"}
    assert parse(["--action", "translate", "--clipboard"])["source"] == "clipboard"
