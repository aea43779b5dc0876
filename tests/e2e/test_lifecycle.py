"""Start, second start, commands from outside, end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, App, Editor
from tests.x_display import XDisplay, end, wait_for

TEXT = "The meeting moves to Tuesday. Anna brings the plans."
HOTKEY = "ctrl+shift+1"
SHORT = ("--pieces", json.dumps(["A ", "short ", "answer."]))
ENDLESS = ("--pieces", json.dumps(["word "] * 5000), "--piece-ms", "20")
TRAY_LIMIT_S = 1.0
POPUP_LIMIT_MS = 100.0
QUIT_LIMIT_S = 3.0
# Other work on the machine may spoil a measurement; the best of several is the program's own time.
ATTEMPTS = 10


def run_command(display: XDisplay, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=display.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.fixture
def start_plain_app(display: XDisplay, tmp_path: Path) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """Starts `python -m app`, as a user does."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        with (tmp_path / "plain.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "app"],
                cwd=ROOT,
                env=display.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        started.append(process)
        return process

    yield start
    for process in started:
        end(process)


def test_tray_icon_within_a_second_of_a_warm_start(
    display: XDisplay, start_plain_app: Callable[[], subprocess.Popen[bytes]]
) -> None:
    seconds = []
    for _ in range(ATTEMPTS):
        begin = time.monotonic()
        process = start_plain_app()
        wait_for(lambda: display.tray_icons() == 1, "the tray icon")
        seconds.append(time.monotonic() - begin)
        time.sleep(0.5)
        # The engine is imported by now; torch is not among it.
        assert "libtorch" not in Path(f"/proc/{process.pid}/maps").read_text()
        end(process)
        wait_for(lambda: display.tray_icons() == 0, "the icon's end")
        if len(seconds) > 1 and min(seconds) < TRAY_LIMIT_S:
            break
    print(f"tray icon after {[round(s, 2) for s in seconds]} s")  # noqa: T201 - shown by pytest -s
    assert min(seconds) < TRAY_LIMIT_S


def test_popup_within_100_ms_of_the_hotkey(display: XDisplay, editor: Editor, start_app: Callable[..., App]) -> None:
    """From the press of the last key to the popup's window on the screen, while the keys are still held."""
    app = start_app(*SHORT)
    editor.focus()
    editor.select_all(TEXT)
    milliseconds = []
    for _ in range(ATTEMPTS):
        milliseconds.append(display.time_to_next_window("ctrl+shift+1", hold_s=0.15))
        app.wait_for_popup("finished")
        app.ask("close_popup")
        wait_for(lambda: not app.popup["visible"], "the popup's end")
        time.sleep(0.1)
    milliseconds.sort()
    print(f"popup: best {milliseconds[0]:.0f} ms, median {milliseconds[len(milliseconds) // 2]:.0f} ms")  # noqa: T201
    assert milliseconds[0] < POPUP_LIMIT_MS
    assert len(app.sent_texts) == ATTEMPTS


def test_popup_grows_with_the_answer_and_keeps_a_size_of_the_users(
    display: XDisplay, editor: Editor, start_app: Callable[..., App]
) -> None:
    lines = [f"Line {number} of a long answer.\n" for number in range(60)]
    app = start_app("--pieces", json.dumps(lines), "--piece-ms", "15")
    editor.focus()
    editor.select_all(TEXT)
    display.move_mouse(200, 100)
    heights = []
    display.tap(HOTKEY)
    app.wait_for_popup("waiting")
    while app.popup["state"] != "finished":
        heights.append(app.popup["rect"][3])
        time.sleep(0.03)
    left, top, width, height = app.popup["rect"]
    assert heights == sorted(heights)
    assert heights[0] < 240 < 400 < height < 500
    # The lower right corner is pulled up.
    corner = left + width - 3, top + height - 3
    display.drag(corner, (corner[0] - 20, corner[1] - 100))
    wait_for(lambda: app.popup["rect"][3] < height - 50, "the smaller size")
    time.sleep(0.3)
    size = app.popup["rect"][2:]
    app.ask("close_popup")
    editor.focus()
    display.tap(HOTKEY)
    app.wait_for_popup("finished")
    assert app.popup["rect"][2:] == size


def test_second_start_reaches_the_first(display: XDisplay, start_app: Callable[..., App]) -> None:
    app = start_app(*SHORT)
    assert app.ask("window")["visible"] is False
    done = run_command(display, "-m", "app")
    assert (done.returncode, done.stderr) == (0, "")
    wait_for(lambda: app.ask("window")["visible"], "the window")
    assert app.process.poll() is None


@pytest.mark.parametrize("module", ["app", "app.cli"])
def test_action_from_the_command_line(
    display: XDisplay, editor: Editor, start_app: Callable[..., App], module: str
) -> None:
    app = start_app(*SHORT)
    editor.focus()
    editor.select_all(TEXT)
    done = run_command(display, "-m", module, "--action", "summarize")
    assert (done.returncode, done.stderr) == (0, "")
    app.wait_for_popup("finished")
    assert TEXT in app.sent_texts[0]


def test_unknown_action_from_the_command_line(display: XDisplay, start_app: Callable[..., App]) -> None:
    app = start_app(*SHORT)
    done = run_command(display, "-m", "app", "--action", "sumarize")
    assert done.returncode == 1
    assert "Did you mean summarize" in done.stderr
    assert app.sent_texts == []


def test_stop_ends_the_answer(display: XDisplay, editor: Editor, start_app: Callable[..., App]) -> None:
    app = start_app(*ENDLESS)
    editor.select_all(TEXT)
    display.tap(HOTKEY)
    app.wait_for_popup("streaming")
    app.click("Stop")
    text = app.wait_for_popup("finished")["text"]
    assert text
    time.sleep(0.2)
    assert app.popup["text"] == text


@pytest.mark.parametrize("how", ["command", "signal"])
def test_quit_during_generation(display: XDisplay, editor: Editor, start_app: Callable[..., App], how: str) -> None:
    app = start_app(*ENDLESS)
    editor.select_all(TEXT)
    display.tap(HOTKEY)
    app.wait_for_popup("streaming")
    children = _children(app.process.pid)
    begin = time.monotonic()
    if how == "signal":
        app.process.send_signal(signal.SIGTERM)
    else:
        code = "from app.instance.instance import send_to_running; print(send_to_running({'command': 'quit'}))"
        assert run_command(display, "-c", code).stdout.strip() == "{'ok': True}"
    assert app.process.wait(QUIT_LIMIT_S + 5) == 0
    assert time.monotonic() - begin < QUIT_LIMIT_S
    assert not [child for child in children if Path(f"/proc/{child}").exists()]
    wait_for(lambda: display.tray_icons() == 0, "the icon's end")
    # The next start finds nothing in its way.
    again = start_app(*SHORT)
    assert again.process.poll() is None


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in listed]


def test_killed_app_leaves_nothing_in_the_way(display: XDisplay, editor: Editor, start_app: Callable[..., App]) -> None:
    first = start_app(*SHORT)
    first.process.send_signal(signal.SIGKILL)
    first.process.wait(5)
    app = start_app(*SHORT)
    editor.focus()
    editor.select_all(TEXT)
    display.tap(HOTKEY)
    assert app.wait_for_popup("finished")["text"] == "A short answer."


def test_without_a_tray_there_is_a_window(
    bare_display: XDisplay, start_editor: Callable[..., Editor], start_app: Callable[..., App]
) -> None:
    editor = start_editor()
    app = start_app(*SHORT)
    wait_for(lambda: app.ask("window")["visible"], "the window")
    assert any("tray" in text.lower() for text in app.ask("window")["texts"])
    # Who types is not disturbed by it; who asks for it gets it.
    time.sleep(0.3)
    assert editor.ask("state")["active"]
    assert bare_display.focus() == editor.window_id
    run_command(bare_display, "-m", "app")
    wait_for(lambda: app.ask("window")["active"], "the window in front")


def test_without_a_tray_the_hotkeys_go_on_when_the_window_is_closed(
    bare_display: XDisplay, start_editor: Callable[..., Editor], start_app: Callable[..., App]
) -> None:
    editor = start_editor()
    app = start_app(*SHORT)
    run_command(bare_display, "-m", "app")
    wait_for(lambda: app.ask("window")["active"], "the window")
    app.ask("close_window")
    wait_for(lambda: not app.ask("window")["visible"], "the window's end")
    # What is told about that is still open.
    editor.focus()
    editor.select_all(TEXT)
    bare_display.tap(HOTKEY)
    assert app.wait_for_popup("finished")["text"] == "A short answer."
    run_command(bare_display, "-m", "app")
    wait_for(lambda: app.ask("window")["active"], "the window in front")


def test_taken_hotkey_is_named(bare_display: XDisplay, start_app: Callable[..., App]) -> None:
    """Another program has Ctrl+Shift+1 already: the window says which combination, and for what."""
    from app.desktop.protocols import Hotkey, Modifier
    from app.platform.x11 import connect
    from app.platform.x11_grabber import X11HotkeyGrabber

    grabber = X11HotkeyGrabber(connect(bare_display.name))
    grabber.grab(Hotkey(frozenset({Modifier.CTRL, Modifier.SHIFT}), "1"), lambda: None)
    app = start_app(*SHORT)
    wait_for(lambda: app.ask("window")["visible"], "the window")
    texts = " ".join(app.ask("window")["texts"])
    assert "Ctrl+Shift+1" in texts
    assert "another program uses this combination" in texts
    grabber.close()


def test_nothing_is_written_to_the_log(display: XDisplay, editor: Editor, start_app: Callable[..., App]) -> None:
    """Neither selection nor answer."""
    app = start_app(*SHORT)
    editor.select_all(TEXT)
    display.tap(HOTKEY)
    app.wait_for_popup("finished")
    app.process.send_signal(signal.SIGTERM)
    app.process.wait(5)
    logs = [path for path in Path(os.environ["XDG_STATE_HOME"]).rglob("*.log*") if path.is_file()]
    assert logs
    for path in logs:
        content = path.read_text()
        assert "Anna" not in content
        assert "short answer" not in content
