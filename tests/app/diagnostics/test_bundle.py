"""The diagnostics bundle: useful, and without a word of the user's, wherever one was planted."""

from __future__ import annotations

import logging
import zipfile
from pathlib import Path

import pytest

from app.actions.registry import ActionRegistry
from app.diagnostics.bundle import EVENT_LOG, AppState, DiagnosticFile, Timings, bundle, bundle_name, save_bundle
from app.diagnostics.content_free_log import ContentFreeFormatter
from app.gateway.running import Health, announced
from app.history.history import History
from app.paths import config_dir, data_dir, history_file, log_dir
from app.settings.registry import setting_registry
from app.settings.settings import Settings
from inference.request import EngineReading, ModelState, Usage

SECRET = "xyzzyplugh"
USER_ACTION = f"""
order = 5
hotkey = "Ctrl+Shift+9"
[title]
en = "{SECRET} title"
[prompt.en]
system = "{SECRET} system"
user = "{{text}} {SECRET}"
"""


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the self-check of the kernels, which takes a second."""
    monkeypatch.setattr("app.diagnostics.bundle._kernels", lambda: ["CPU kernels: self-check passed"])


def texts(files: list[DiagnosticFile]) -> dict[str, str]:
    return {file.name: file.text for file in files}


def plant(tmp_path: Path) -> tuple[Settings, ActionRegistry, AppState]:
    """Secrets wherever a user's words can lie."""
    actions_dir = config_dir() / "actions"
    actions_dir.mkdir(parents=True)
    (actions_dir / f"{SECRET}.toml").write_text(USER_ACTION)
    (actions_dir / f"{SECRET}-broken.toml").write_text(f"order = [ {SECRET}")
    actions = ActionRegistry(user_dir=actions_dir)
    lines = [
        f'unknown_{SECRET} = "{SECRET}"',
        f'[hotkey]\n{SECRET} = "Ctrl+Shift+8"',
        f'[model]\ndefault = "/home/{SECRET}/{SECRET}.gguf"',
        f'[engine]\nthreads = "{SECRET}"',
        f'[hub]\nendpoint = "https://{SECRET}.example.org"',
        f'[privacy]\nleave_alone = "{SECRET}"',
        f'[remote]\nurl = "http://{SECRET}.example.org/v1"\nmodel = "{SECRET}"\nkey = "sk-{SECRET}"',
    ]
    path = config_dir() / "settings.toml"
    path.write_text("\n".join(lines))
    settings = Settings.load(path, setting_registry(actions.all()))
    assert settings.text("model.default").count(SECRET) == 2
    history = History(history_file())
    chat = history.new_conversation(title=SECRET, system=SECRET, model=SECRET)
    history.append(chat, "user", f"{SECRET} prompt")
    history.add_result("summarize", f"{SECRET} clipboard", f"{SECRET} answer", SECRET)
    history.close()
    (data_dir() / f"{SECRET}.gguf").write_text(SECRET)
    _log_secrets()
    state = AppState(
        session="x11",
        has_tray=True,
        hotkey_states={"hotkey.summarize": "registered", f"hotkey.{SECRET}": "taken", "hotkey.popup": "taken"},
        reading=EngineReading(ModelState.READY, f"/home/{SECRET}/m.gguf", "cpu", 4096),
        usages=(Usage(prompt_tokens=120, new_tokens=31, decode_ms=1000.0),),
    )
    return settings, actions, state


def _log_secrets() -> None:
    log_dir().mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(log_dir() / EVENT_LOG, encoding="utf-8")
    handler.setFormatter(ContentFreeFormatter())
    for name in ("app.planted", "some.library"):
        log = logging.getLogger(name)
        log.addHandler(handler)
        log.propagate = False
        try:
            log.warning("no file %s", f"/home/{SECRET}/x")
            raise ValueError(SECRET)
        except ValueError:
            log.exception("failed at %s", SECRET)
        finally:
            log.removeHandler(handler)
            log.propagate = True
    handler.close()


@pytest.mark.usefixtures("quick")
def test_no_word_of_the_user_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / bundle_name()
    save_bundle(path, bundle(*plant(tmp_path)))
    assert SECRET.encode() not in path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            assert SECRET not in name
            assert SECRET not in archive.read(name).decode().lower(), name
            assert str(Path.home()) not in archive.read(name).decode() or str(Path.home()) == "/", name


@pytest.mark.usefixtures("quick")
def test_of_a_server_that_runs_its_port_is_told_and_no_name_that_a_user_gave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.diagnostics.serving.ask_health", lambda *_: Health(True, "ready", f"{SECRET}.gguf"))
    with announced(f"{SECRET}.example.org", 18055):
        found = texts(bundle(*plant(tmp_path)))["gateway.txt"]
    assert "port 18055: (a file of the user's), ready" in found
    assert SECRET not in found


@pytest.mark.usefixtures("quick")
def test_what_helps_is_in_it(tmp_path: Path) -> None:
    found = texts(bundle(*plant(tmp_path)))
    assert "deskinfer" in found["program.txt"]
    assert "numpy" in found["program.txt"]
    assert "memory" in found["machine.txt"]
    assert "state ready" in found["engine.txt"]
    assert "model (a file of the user's)" in found["engine.txt"]
    assert "self-check passed" in found["engine.txt"]
    assert found["timings.csv"].splitlines()[1].startswith("120,0,31,")
    assert "model.context_tokens = 4096" in found["settings.txt"]
    assert "hub.endpoint = (set)" in found["settings.txt"]
    assert "engine.vram = (default)" in found["settings.txt"]
    assert "hotkey.summarize = Ctrl+Shift+1" in found["settings.txt"]
    assert "actions of the user's own: 1" in found["settings.txt"]
    assert "hotkey.popup: taken" in found["desktop.txt"]
    assert "qwen" in found["models.txt"]
    assert "deskinfer serve: does not run" in found["gateway.txt"]
    assert "app.planted: no file …" in found["events.log"]
    assert all(name in found["README.txt"] for name in found if name != "README.txt")
    assert [part for part in found["README.txt"].split("\n\n") if len(part.splitlines()) != 1] == []


def test_the_kernels_check_themselves(tmp_path: Path) -> None:
    actions = ActionRegistry(user_dir=tmp_path)
    settings = Settings.load(tmp_path / "settings.toml", setting_registry(actions.all()))
    found = texts(bundle(settings, actions, AppState()))
    assert "self-check passed" in found["engine.txt"] or "not complete: Backend" in found["engine.txt"]
    assert found["events.log"] == "nothing was logged\n"


@pytest.mark.usefixtures("quick")
def test_a_part_that_fails_names_only_the_kind_of_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> list[str]:
        raise OSError(f"/home/{SECRET}")

    monkeypatch.setattr("app.diagnostics.bundle._machine", fail)
    found = texts(bundle(*plant(tmp_path)))
    assert found["machine.txt"] == "not complete: OSError\n"


def test_only_the_last_answers_are_kept() -> None:
    timings = Timings()
    for tokens in range(60):
        timings.add(Usage(new_tokens=tokens))
    assert [usage.new_tokens for usage in timings.all()] == list(range(10, 60))
