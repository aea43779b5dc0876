"""The command line as a user types it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app import cli, engine_setup
from app.actions.registry import ActionRegistry
from app.cli import app
from app.engine_client import FakeClient, ScriptedAnswer
from app.instance.instance import InstanceServer
from app.paths import config_dir
from app.terminal import ask
from inference.errors import BackendUnavailableError, ContextOverflowError, ModelNotFoundError

runner = CliRunner()


class Engine(FakeClient):
    """Plays at once what is submitted."""

    def submit(self, request, listener) -> None:
        super().submit(request, listener)
        self.play()


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    made = Engine(ScriptedAnswer("An ", "answer."))
    monkeypatch.setattr(ask, "open_worker", lambda model: made)
    return made


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["ask", "--help"], ["models", "pull", "--help"]])
def test_help(arguments: list[str]) -> None:
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0
    assert "Usage: " in result.output


def test_help_lists_what_most_users_need_first_and_cuts_nothing() -> None:
    top, models = (runner.invoke(app, words).stdout for words in (["--help"], ["models", "--help"]))
    assert "..." not in f"{top}{models}".replace("[ARGS]...", "")
    names = [line.split()[0] for line in top.partition("Commands:\n")[2].splitlines() if line.strip()]
    assert names == ["run", "ask", "models", "doctor", "serve", "bench", "quantize"]


def test_the_clipboard_of_nothing_is_no_command() -> None:
    for words in (["--clipboard"], ["--clipboard", "ask", "why?"]):
        result = runner.invoke(app, words)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "--clipboard is for --action" in result.stderr


def test_version(project_root: Path) -> None:
    result = runner.invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.output.startswith("deskinfer 0.")


def test_ask_streams_to_standard_output(engine: Engine) -> None:
    result = runner.invoke(app, ["ask", "--temperature", "0.5", "--max-new-tokens", "7", "why", "not?"])
    assert (result.exit_code, result.stdout) == (0, "An answer.\n")
    (request,) = engine.submitted
    assert request.messages[-1].content == "why not?"
    assert (request.sampling.temperature, request.sampling.max_new_tokens) == (0.5, 7)


def test_ask_tells_what_is_wrong_with_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "settings.toml"
    monkeypatch.setattr(ask, "open_worker", lambda model: Engine(ScriptedAnswer("An ", "answer.")))
    monkeypatch.setattr(engine_setup, "settings_file", lambda: file)
    file.write_text("[engine]\nthreads = -5\n")
    result = runner.invoke(app, ["ask", "why?"])
    assert (result.exit_code, result.stdout) == (0, "An answer.\n")
    assert result.stderr.startswith("deskinfer: engine.threads is -5")
    file.write_text("threads = ")
    assert "were set aside" in runner.invoke(app, ["ask", "-a", "summarize", "why?"]).stderr
    assert runner.invoke(app, ["ask", "why?"]).stderr == ""


def test_ask_with_an_action_reads_standard_input(engine: Engine) -> None:
    result = runner.invoke(app, ["ask", "-a", "summarize", "-"], input="The shop opens on Monday.")
    assert result.exit_code == 0
    assert "The shop opens on Monday." in engine.submitted[0].messages[-1].content


@pytest.mark.parametrize(
    ("arguments", "piped", "asked"),
    [
        (["Which", "room?"], "Room 217.\n", "Room 217.\n\nWhich room?"),
        (["Which", "room?"], "", "Which room?"),
        (["Which", "room?"], " \n", "Which room?"),
        (["Which", "room?", "-"], "Room 217.", "Room 217.\n\nWhich room?"),
        ([], "Room 217.\n", "Room 217.\n"),
        (["-"], "Room 217.\n", "Room 217.\n"),
    ],
)
def test_ask_puts_what_is_piped_before_the_question(
    engine: Engine, arguments: list[str], piped: str, asked: str
) -> None:
    result = runner.invoke(app, ["ask", *arguments], input=piped)
    assert (result.exit_code, result.stderr) == (0, "")
    assert engine.submitted[0].messages[-1].content == asked


def test_an_action_with_two_texts_is_refused(engine: Engine) -> None:
    result = runner.invoke(app, ["ask", "-a", "summarize", "Which", "room?"], input="Room 217.\n")
    assert (result.exit_code, result.stdout, engine.submitted) == (1, "", [])
    assert "two: the words and that of standard input (</dev/null leaves it out)" in result.stderr
    assert runner.invoke(app, ["ask", "-a", "summarize", "Room", "217."], input="").exit_code == 0


@pytest.mark.parametrize("options", [[], ["--action", "summarize"]])
def test_the_name_of_a_file_is_not_sent_to_the_model(engine: Engine, options: list[str], tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("Room 217.", encoding="utf-8")
    result = runner.invoke(app, ["ask", *options, str(file)], input="")
    assert result.exit_code == 2
    assert f"< {file}" in result.stderr
    assert f"echo {file} |" in result.stderr
    assert engine.submitted == []


def test_the_help_of_ask_names_every_action() -> None:
    told = " ".join(runner.invoke(app, ["ask", "--help"]).stdout.split())
    names = [action.id for action in ActionRegistry(user_dir=Path("no-such-folder")).all()]
    assert f"{', '.join(names)}, or one of yours." in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ask", "-a", "sumarize", "x"], "Did you mean summarize?"),
        (["ask", "--temperature", "99", "x"], "0 or from 0.00001 to 10"),
        (["models", "where", "no-such-model"], "There is no model 'no-such-model'"),
        (["models", "verify", "no-such-model"], "There is no model 'no-such-model'"),
        (["models", "remove", "no-such-model"], "There is no model 'no-such-model'"),
        (["models", "pull", "no-such-model"], "There is no model 'no-such-model'"),
        (["bench", "--prompt", "many"], "no list of whole numbers"),
        (["--action", "summarize"], "DeskInfer does not run. Start it first: deskinfer run"),
    ],
)
def test_failures_are_one_line_and_a_status(engine: Engine, arguments: list[str], message: str) -> None:
    result = runner.invoke(app, arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert result.stderr.startswith("deskinfer: ")


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["--action", "translate"], {"command": "action", "action": "translate", "source": "selection"}),
        (["--action", "todos", "--clipboard"], {"command": "action", "action": "todos", "source": "clipboard"}),
    ],
)
def test_action_reaches_the_running_app(arguments: list[str], command: dict[str, str]) -> None:
    received = []

    def handle(message, reply) -> None:
        received.append(message)
        reply.send({"ok": True})
        reply.close()

    server = InstanceServer(handle)
    try:
        result = runner.invoke(app, arguments)
    finally:
        server.close()
    assert result.exit_code == 0
    assert received == [command]


def test_another_model_for_the_running_app_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    server = InstanceServer(lambda message, reply: reply.close())
    try:
        result = runner.invoke(app, ["run", "--model", "smollm2-135m-instruct"])
    finally:
        server.close()
    assert result.exit_code == 1
    assert "Quit it first" in result.stderr


def test_refusal_of_the_running_app_is_shown() -> None:
    def handle(message, reply) -> None:
        raise LookupError("There is no action 'x'.")

    server = InstanceServer(handle)
    try:
        result = runner.invoke(app, ["--action", "x"])
    finally:
        server.close()
    assert result.exit_code == 1
    assert "There is no action 'x'." in result.stderr


def test_run_without_a_display_shows_the_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Engine(ScriptedAnswer("An answer."))
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr(cli.sys, "platform", "linux")
    monkeypatch.setattr("app.engine_setup.open_worker", lambda model: made)
    result = runner.invoke(app, ["run"])
    assert result.exit_code == 0
    for title in ("Summarize", "Translate", "Rewrite", "To-dos", "总结", "翻译"):
        assert f"== {title} ==" in result.stdout
    assert result.stdout.count("An answer.") == 6, "of seven actions; to-dos are data, and this is none"
    assert "no display" in result.stderr
    assert "deskinfer: please check:\n" in result.stderr, "an answer that has none of a sample's numbers"


def test_models_list_names_every_model_and_its_license() -> None:
    result = runner.invoke(app, ["models", "list"])
    assert result.exit_code == 0
    assert "qwen2.5-coder-1.5b-instruct" in result.stdout
    assert "Qwen Research License" in result.stdout
    assert "non-commercial" in result.stdout


PIPE = """
import sys
from app import cli
from app.paths import config_dir
from app.terminal import ask
from inference.errors import BackendUnavailableError, ContextOverflowError, ModelNotFoundError
from app.engine_client import FakeClient, ScriptedAnswer
class Engine(FakeClient):
    def submit(self, request, listener):
        super().submit(request, listener)
        self.play()
ask.open_worker = lambda model: Engine(ScriptedAnswer(*["a line of text\\n"] * 20000))
sys.argv = ["deskinfer", "ask", "x"]
cli.main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="pipes end otherwise there")
def test_reader_that_leaves_ends_the_answer_quietly(project_root: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PIPE],
        cwd=project_root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"a line of text\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(20) == 130


CLOSED = """
from app import cli
from app.paths import config_dir
from app.terminal import ask
from inference.errors import BackendUnavailableError, ContextOverflowError, ModelNotFoundError
from app.engine_client import FakeClient, ScriptedAnswer

class Engine(FakeClient):
    def submit(self, request, listener):
        super().submit(request, listener)
        self.play()

ask.open_worker = lambda model: Engine(ScriptedAnswer("An ", "answer."))
cli.main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell that closes streams")
@pytest.mark.parametrize(
    ("words", "status", "left"),
    [
        ("ask <&-", 1, b"deskinfer: The text is empty.\n"),
        ("ask why >&-", 0, b""),
        ("ask why --stats 2>&-", 0, b"An answer.\n"),
    ],
)
def test_closed_streams_are_no_crash(project_root: Path, tmp_path: Path, words: str, status: int, left: bytes) -> None:
    (tmp_path / "closed.py").write_text(CLOSED)
    environment = {**os.environ, "PYTHONPATH": str(project_root)}
    result = subprocess.run(
        ["/bin/sh", "-c", f'"{sys.executable}" "{tmp_path / "closed.py"}" {words}'],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stdout + result.stderr) == (status, left)


def test_a_backend_and_a_size_of_the_command_line_reach_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def open_worker(model: str, choice: engine_setup.EngineChoice) -> Engine:
        made.append(choice)
        return Engine(ScriptedAnswer("An ", "answer."))

    monkeypatch.setattr(ask, "open_worker", open_worker)
    result = runner.invoke(app, ["ask", "--backend", "cuda", "--vram", "3.237GiB", "why?"])
    assert (result.exit_code, result.stdout) == (0, "An answer.\n")
    options = engine_setup.engine_options(engine_setup.load_settings(), made[0])
    assert (options.backend, options.vram_bytes) == ("cuda", int(3.237 * 1024**3))


def test_what_is_no_size_of_memory_is_refused() -> None:
    result = runner.invoke(app, ["ask", "--vram", "much", "why?"])
    assert result.exit_code == 1
    assert "no size of memory" in result.stderr


NO_GPU = BackendUnavailableError("cuda", "there is no driver")
OPTION_CURE = "Or give --backend auto: what works here is then taken."
SETTING_CURE = "Or set engine.backend to auto in the settings: what works here is then taken."


@pytest.mark.parametrize("words", [["ask", "why?"], ["ask", "-a", "summarize", "A text."], ["run"]])
@pytest.mark.parametrize(
    ("options", "setting", "cure"),
    [
        (["--backend", "cuda"], "auto", OPTION_CURE),
        (["--backend", "cuda"], "cuda", OPTION_CURE),
        ([], "cuda", SETTING_CURE),
        (["--vram", "2GB"], "cuda", SETTING_CURE),
        ([], "auto", "`deskinfer doctor` tells more."),
        (["--backend", "auto"], "cuda", "`deskinfer doctor` tells more."),
    ],
)
def test_a_backend_that_cannot_work_here_is_told_with_the_cure_of_who_asked_for_it(
    monkeypatch: pytest.MonkeyPatch, words: list[str], options: list[str], setting: str, cure: str
) -> None:
    def open_worker(model: str, choice: engine_setup.EngineChoice | None = None) -> Engine:
        made = Engine()
        made.load_error = NO_GPU
        return made

    config_dir().mkdir(parents=True, exist_ok=True)
    (config_dir() / "settings.toml").write_text(f'[engine]\nbackend = "{setting}"\n', encoding="utf-8")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr(cli.sys, "platform", "linux")
    monkeypatch.setattr(ask, "open_worker", open_worker)
    monkeypatch.setattr("app.engine_setup.open_worker", open_worker)
    result = runner.invoke(app, [words[0], *options, *words[1:]])
    assert result.exit_code == 1
    assert result.stderr.endswith(f"deskinfer: {NO_GPU} {cure}\n")


@pytest.mark.skipif(sys.platform != "linux", reason="the folder is chosen by an XDG variable")
@pytest.mark.parametrize("here", [False, True])
def test_where_a_model_is_missing_those_that_are_here_are_named(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, here: bool
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    folder = tmp_path / "deskinfer" / "models"
    folder.mkdir(parents=True)
    if here:
        (folder / "mine.gguf").write_bytes(b"GGUF")
    engine.load_error = ModelNotFoundError("It is not on this machine. Fetch it: deskinfer models pull it")
    result = runner.invoke(app, ["ask", "why?"])
    assert result.exit_code == 1
    cure = "; or choose one that is here with --model: mine.gguf." if here else ""
    assert result.stderr == f"deskinfer: {engine.load_error}{cure}\n"


def test_a_question_that_is_too_long_is_told_what_helps_in_the_terminal(engine: Engine) -> None:
    engine._answers = [ScriptedAnswer(error=ContextOverflowError(9000, 4096))]
    result = runner.invoke(app, ["ask", "why?"])
    assert result.exit_code == 1
    assert "model.context_tokens in the settings; --action takes texts of any length" in result.stderr
    assert "model.context_tokens" in engine_setup.load_settings().registry


def test_so_it_is_where_a_measurement_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_bench(*_: object) -> None:
        raise NO_GPU

    monkeypatch.setattr("app.bench.run.run_bench", run_bench)
    result = runner.invoke(app, ["bench", "--backend", "cuda"])
    assert (result.exit_code, result.stderr) == (1, f"deskinfer: {NO_GPU} {OPTION_CURE}\n")
