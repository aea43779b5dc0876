"""Sets DeskInfer up and starts it, or tests it, with nothing but a Python of version 3.11 to 3.13:

    python3 installer/bootstrap.py run [--model ID] [--yes]
    python3 installer/bootstrap.py test [pytest arguments]

Each step says one line. A step that fails says what, why and the cure, and the exit status is not 0.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

# Annotations are strings: a Python that is too old must get as far as the message that says so.
ROOT = Path(__file__).resolve().parent.parent
OLDEST, NEWEST = (3, 11), (3, 13)


def find_other_python() -> "str | None":
    """Path of a Python of a version that fits, None where there is none. Runs on old Pythons too."""
    import shutil

    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        path = shutil.which(f"python3.{minor}")
        # Version managers leave names behind that only print an error.
        if path and subprocess.call([path, "-c", ""], stderr=subprocess.DEVNULL) == 0:
            return path
    return None


def check_python() -> "int | None":
    """None where this Python fits; else the exit status of a fitting one, or 1 with an explanation."""
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        return None
    have = "{}.{}".format(*sys.version_info[:2])
    wanted = "{}.{} to {}.{}".format(*OLDEST, *NEWEST)
    other = find_other_python()
    if other:
        print(f"Python {have} does not fit; going on with {other}.", flush=True)
        return subprocess.call([other, str(Path(__file__).resolve()), *sys.argv[1:]])
    print(f"DeskInfer needs Python {wanted}, and this is {have}.", file=sys.stderr)
    print(
        "  Cure: install one of them and start this file with it, for example: python3.12 installer/bootstrap.py run",
        file=sys.stderr,
    )
    return 1


def has_display() -> bool:
    """Whether windows can be shown."""
    return sys.platform in ("win32", "darwin") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def parse(arguments: "list[str]") -> argparse.Namespace:
    """The two commands and their options."""
    parser = argparse.ArgumentParser(prog="bootstrap.py", description="Sets DeskInfer up and starts or tests it.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="install what is missing, fetch the model, start the tray app")
    run.add_argument("--model", metavar="ID", help="a model instead of the default; see: deskinfer models list")
    run.add_argument("--yes", action="store_true", help="do not ask before a large download")
    # What stands behind `test` is pytest's: argparse would take options at the front for its own.
    tests = arguments[:1] == ["test"] and arguments[1:] not in (["-h"], ["--help"])
    own, others = (arguments[:1], arguments[1:]) if tests else (arguments, [])
    commands.add_parser("test", help="install the test tools, run all checks and tests; more arguments go to pytest")
    options = parser.parse_args(own)
    options.pytest = others
    return options


def main(arguments: "list[str]") -> int:
    """Returns the exit status."""
    sys.path.insert(0, str(ROOT))
    from installer.environment import Environment
    from installer.shell import SetupError, Shell
    from installer.steps import run, test
    from installer.system_packages import check_venv_support

    options = parse(arguments)
    shell = Shell()
    environment = Environment(ROOT, shell)
    try:
        check_venv_support(shell, has_ensurepip=importlib.util.find_spec("ensurepip") is not None)
        if options.command == "test":
            return test(environment, options.pytest)
        return run(environment, model=options.model, assume_yes=options.yes, has_display=has_display())
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted. Start again at any time: what is done already is kept.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    status = check_python()
    sys.exit(main(sys.argv[1:]) if status is None else status)
