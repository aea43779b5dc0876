"""The doctor's page: whole on a healthy machine, useful on a broken one, and without anything private."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.diagnostics import doctor
from app.diagnostics.doctor import SECTIONS, page, shorten_home
from app.engine_setup import load_settings
from app.instance.instance import InstanceServer, Message, Reply
from app.memory.vram import GpuReading, GpuUnreadableError
from app.paths import config_dir
from app.translation import Translator
from inference.engine.gpu_report import GpuReport
from inference.errors import BackendUnavailableError


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the section that builds a backend."""
    monkeypatch.setattr(doctor, "SECTIONS", {name: each for name, each in SECTIONS.items() if name != "Engine"})


@pytest.mark.usefixtures("quick")
def test_page_has_every_section_and_no_failure() -> None:
    text = page()
    for title in doctor.SECTIONS:
        assert f"{title}:\n  " in text
    assert "could not be completed" not in text
    assert "PySide6-Essentials 6." in text


@pytest.mark.usefixtures("quick")
def test_broken_settings_and_actions_are_named() -> None:
    (config_dir() / "actions").mkdir(parents=True)
    (config_dir() / "actions" / "mine.toml").write_text("order = ")
    (config_dir() / "settings.toml").write_text('[engine]\nthreads = "many"\n')
    text = page()
    assert "PROBLEM: mine.toml" in text
    assert "engine.threads is 'many'" in text


@pytest.mark.usefixtures("quick")
def test_a_settings_file_that_is_no_toml_is_named_though_each_section_reads_it() -> None:
    config_dir().mkdir(parents=True, exist_ok=True)
    (config_dir() / "settings.toml").write_text("[engine", encoding="utf-8")
    assert "set aside as" in page()


def test_a_backend_that_cannot_work_here_is_told_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(options: object) -> None:
        raise BackendUnavailableError("cuda", "no NVIDIA driver was found")

    settings = load_settings()
    settings.set("engine.backend", "cuda")
    settings.save()
    monkeypatch.setattr("inference.engine.loader.choose_backend", fails)
    line = list(doctor.engine())[-1]
    assert line.startswith("PROBLEM: The backend 'cuda' is not available: no NVIDIA driver was found. Or set engine.")


def test_a_section_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Iterator[str]:
        yield "half"
        raise OSError("disk gone")

    monkeypatch.setattr(doctor, "SECTIONS", {"One": broken, "Two": lambda: iter(["fine"])})
    assert page().splitlines() == [
        "One:",
        "  half",
        "  PROBLEM: this section could not be completed (OSError: disk gone)",
        "Two:",
        "  fine",
    ]


def test_home_is_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: Path("/srv/people/jane"))
    assert shorten_home("at /srv/people/jane/x") == "at ~/x"
    monkeypatch.setattr(Path, "home", lambda: Path("/"))
    assert shorten_home("/usr") == "/usr"


@pytest.mark.slow
def test_engine_section_names_kernels_and_backend() -> None:
    lines = list(doctor.engine())
    assert any(line.startswith("chosen: ") for line in lines)
    assert any("kernels" in line for line in lines)


@pytest.fixture
def one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    reading = GpuReading("Card", (8, 6), 4 << 30, 3 << 30, "580.1")
    monkeypatch.setattr("app.diagnostics.machine.read_gpus", lambda: [reading])


@pytest.mark.usefixtures("one_gpu")
def test_a_gpu_that_cuda_can_use(monkeypatch: pytest.MonkeyPatch) -> None:
    report = GpuReport("Card", (8, 6), 4 << 30, 3 << 30, 300 << 20, 16, (13, 0), (12, 9), "sm_86")
    monkeypatch.setattr("inference.engine.gpu_report.gpu_report", lambda: report)
    assert list(doctor.gpus()) == [
        "Card, SM86, 4.00 GB, 3.00 GB free, driver 580.1",
        "CUDA: Card, compute capability 8.6, 16 multiprocessors",
        "memory: 4.00 GB, 3.00 GB free, 300 MB for the context",
        "driver for CUDA 13.0, compiler NVRTC 12.9, kernels for sm_86",
    ]


@pytest.mark.usefixtures("one_gpu")
def test_a_gpu_that_cuda_cannot_use(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> GpuReport:
        raise BackendUnavailableError("cuda", "no memory. Close other programs.")

    monkeypatch.setattr("inference.engine.gpu_report.gpu_report", fails)
    assert list(doctor.gpus())[1:] == ["PROBLEM: CUDA is not used: no memory. Close other programs."]


def test_a_gpu_that_sleeps_is_left_asleep(monkeypatch: pytest.MonkeyPatch) -> None:
    def asleep() -> list[GpuReading]:
        raise GpuUnreadableError("asleep")

    monkeypatch.setattr("app.diagnostics.machine.read_gpus", asleep)
    monkeypatch.setattr("inference.engine.gpu_report.gpu_report", lambda: pytest.fail("it was woken"))
    assert next(doctor.gpus()) == "asleep"


def test_settings_of_a_fresh_user_have_no_problem() -> None:
    assert load_settings().problems == []


@pytest.fixture
def empty_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A user without any model."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "deskinfer" / "models"


@pytest.mark.skipif(sys.platform != "linux", reason="the folder is chosen by an XDG variable")
def test_missing_and_cut_models_are_problems_with_a_cure(empty_store: Path) -> None:
    half = empty_store / ".partial" / "smollm2-135m-instruct"
    half.mkdir(parents=True)
    (half / "part").write_bytes(b"x" * 2_000_000)
    lines = list(doctor.models())
    assert lines[0].startswith("PROBLEM: The model qwen2.5-coder-")
    assert "deskinfer models pull" in lines[0]
    assert lines[1] == "PROBLEM: smollm2-135m-instruct: only 1.9 MB; go on: deskinfer models pull smollm2-135m-instruct"


class RunningApp:
    """Answers the doctor as the running app does."""

    def __init__(self, answer: Message) -> None:
        self.server = InstanceServer(self._answer)
        self._told = answer

    def _answer(self, command: Message, reply: Reply) -> None:
        assert command == {"command": "hotkeys"}
        reply.send(self._told)
        reply.close()


HOTKEYS = [
    {"hotkey": "Ctrl+Shift+1", "title": "Summarize", "state": "registered"},
    {"hotkey": "Ctrl+Shift+2", "title": "Translate", "state": "taken", "reason": "another program uses it"},
    {"hotkey": "Ctrl+Shift+3", "title": "Rewrite", "state": "impossible", "reason": "bind the command yourself"},
]


def test_the_running_app_is_asked_which_hotkeys_it_has() -> None:
    app = RunningApp({"hotkeys": HOTKEYS})
    try:
        lines = list(doctor.desktop())
    finally:
        app.server.close()
    assert "the app runs" in lines
    assert "Ctrl+Shift+1 for Summarize: works" in lines
    assert "Ctrl+Shift+2 for Translate: PROBLEM: another program uses it" in lines
    assert "Ctrl+Shift+3 for Rewrite: bind the command yourself" in lines


def test_the_page_is_in_english_whatever_the_windows_speak() -> None:
    tr = Translator("zh").tr
    names = {
        "总结": "Summarize",
        tr("{action} (clipboard)", action="总结"): "Summarize (clipboard)",
        tr("Go to the answer"): "Go to the answer",
        tr("Open the chat"): "Open the chat",
    }
    told = [{"hotkey": "F1", "title": title, "state": "registered"} for title in [*names, "自己的"]]
    app = RunningApp({"hotkeys": told})
    try:
        lines = [line for line in doctor.desktop() if line.startswith("F1 ")]
    finally:
        app.server.close()
    assert lines == [f"F1 for {name}: works" for name in [*names.values(), "自己的"]]


def test_a_running_app_that_does_not_tell_is_named() -> None:
    app = RunningApp({"error": "no such command"})
    try:
        assert "PROBLEM: the running app does not tell its hotkeys" in "\n".join(doctor.desktop())
    finally:
        app.server.close()
