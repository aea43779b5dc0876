"""The two commands of the installer as sequences of steps; the product's own code runs inside the environment."""

from __future__ import annotations

from pathlib import Path

from installer.environment import Environment, has_nvidia_driver
from installer.shell import SetupError
from installer.system_packages import check_desktop_libraries, check_test_programs

# The smallest of each family: one answers in the end-to-end tests, of the other the vocabulary and template are tested.
TEST_MODELS = ("smollm2-135m-instruct", "qwen2.5-coder-0.5b-instruct")


def run(environment: Environment, *, model: str | None, assume_yes: bool, has_display: bool) -> int:
    """Sets up what is missing and starts the app; returns its exit status. Raises SetupError."""
    with_gpu = has_nvidia_driver(environment.shell)
    environment.prepare(("cuda",) if with_gpu else ())
    if not environment.read_stamp().get("system_checked") or has_display:
        check_desktop_libraries(environment.shell, has_display=has_display)
        environment.update_stamp(system_checked=True)
    build_kernels(environment)
    if with_gpu:
        build_gpu_kernels(environment)
    fetch_model(environment, model, assume_yes=assume_yes)
    command = [*_deskinfer(environment), "run"]
    if model is not None:
        command += ["--model", model]
    if has_display:
        environment.shell.say(
            "Starting DeskInfer: its icon appears in the tray; without a tray, or if it runs already, its window opens."
        )
    return environment.shell.become(command)


def test(environment: Environment, pytest_arguments: list[str]) -> int:
    """Sets up the test tools and runs every check; returns 0 where all pass. Raises SetupError."""
    shell = environment.shell
    environment.prepare(("dev",))
    check_test_programs(shell)
    build_kernels(environment)
    for model in TEST_MODELS:
        fetch_model(environment, model, assume_yes=True)
    python = str(environment.python)
    checks = {
        "ruff": [python, "-m", "ruff", "check", "."],
        "mypy": [python, "-m", "mypy"],
        "import-linter": [python, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        "pytest": [python, "-m", "pytest", *pytest_arguments],
    }
    status = 0
    for name, command in checks.items():
        shell.say(f"Check: {name}.")
        if shell.call(command, environment.root) != 0:
            status = 1
            if name != "pytest":  # its own summary is the last line
                shell.say(f"Check: {name} FAILED.")
    return status


def _deskinfer(environment: Environment) -> list[str]:
    # -P: a folder "app" where the user stands must not be taken for ours.
    return [str(environment.python), "-P", "-m", "app.cli"]


def build_kernels(environment: Environment) -> None:
    """Compiles the CPU kernels once; where that fails the slower fallback is used, and this says so."""
    shell = environment.shell
    stamp = environment.read_stamp()
    if Path(stamp.get("kernels", "-")).exists():
        return
    shell.say("Kernels: compiling for this CPU.")
    code = "from kernels.cpu.compiler import build; print(build())"
    result = shell.capture([str(environment.python), "-P", "-c", code])
    if result.code == 0 and result.last_line:
        environment.update_stamp(kernels=result.last_line)
        return
    shell.say(f"Kernels: could not be built ({result.last_line}). DeskInfer works without them, but answers slower.")


def build_gpu_kernels(environment: Environment) -> None:
    """Compiles the CUDA kernels once; where the GPU cannot be used the CPU is, and this says why."""
    shell = environment.shell
    if environment.read_stamp().get("gpu_kernels"):
        return
    shell.say("Kernels: compiling for the GPU (up to a minute, once).")
    result = shell.capture([str(environment.python), "-P", "-m", "kernels.shipped.resource_table", "--here"])
    if result.code == 0:
        environment.update_stamp(gpu_kernels=result.last_line)
        return
    shell.say(f"Kernels: the GPU is not used: {result.last_line}")


def fetch_model(environment: Environment, model: str | None, *, assume_yes: bool) -> None:
    """Fetches the model by the product's own downloader unless the file is there already. Raises SetupError."""
    shell = environment.shell
    models = environment.read_stamp().get("models", {})
    known = models.get(model or "", {})
    file = Path(known.get("path", "-"))
    if file.is_file() and file.stat().st_size == known.get("bytes"):
        shell.say("Model: ready.")
        return
    names = [model] if model else []
    options = ["--yes"] if assume_yes or not shell.is_terminal else []
    code = shell.call([*_deskinfer(environment), "models", "pull", *options, *names])
    if code == 130:
        raise KeyboardInterrupt
    if code != 0:
        raise SetupError(
            "The model could not be fetched.",
            "see the message above",
            "Start again: the download goes on where it stopped.",
        )
    where = shell.capture([*_deskinfer(environment), "models", "where", *names])
    path = Path(where.last_line)
    if where.code == 0 and path.exists():
        entry = {"path": str(path), "bytes": path.stat().st_size}
        environment.update_stamp(models={**models, model or "": entry})
