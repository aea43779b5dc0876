"""The rules of the house, executed: directions of imports, names in the documentation, sizes, declared libraries."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("app", "inference", "kernels")

MAX_FILE_LINES = 400
# A test file mirrors one file, however many cases that has.
MAX_TEST_FILE_LINES = 800
MAX_FUNCTION_LINES = 50
# A folder with more files than this holds two rooms.
MAX_ROOM_FILES = 20
# "file" or "file::function" -> the reason why it may be longer.
LONGER: dict[str, str] = {
    "app/settings/registry.py::_model_settings": "a list of data",
    "app/settings/remote_settings.py::remote_settings": "a list of data",
    "app/qt/look/theme.py::style_sheet": "one style sheet",
}

# Files that may catch Exception -> why.
BROAD_HANDLERS = {
    "inference/engine/worker.py": "the worker loop: a request that fails must not end the thread",
    "app/qt/bridge.py": "the excepthook of the windows",
    "inference/engine/plan_queue.py": "a part of the worker loop: a question about a model must not harm a request",
    "inference/engine/count_queue.py": "a part of the worker loop: counting a text must not harm a request",
    "app/remote/client.py": "the loop of the remote engine's thread, which must not end for the other requests",
    "inference/gateway/fence.py": "the gateway's outermost handler: whatever a request meets, the server goes on",
    "inference/text/text_encoder.py": "the tokenizers library raises nothing narrower; becomes a ModelFormatError",
}

# Distribution -> import name, where they differ.
IMPORT_NAMES = {
    "cuda-bindings": "cuda",
    "pyside6-essentials": "PySide6",
    "huggingface-hub": "huggingface_hub",
    "nvidia-ml-py": "pynvml",
    "jinja2": "jinja2",
    "markdown-it-py": "markdown_it",
    "import-linter": "importlinter",
    "pytest-qt": "pytestqt",
}
# Declared though no file imports them -> why.
TOOLS = {
    "mypy": "run by the test command",
    "ruff": "run by the test command",
    "import-linter": "run by the test command",
    "pytest-timeout": "plug-in",
    "pytest-xvfb": "plug-in",
    "nvidia-cuda-nvrtc-cu12": "loaded by cuda-bindings",
    "linkify-it-py": "asked for by name by markdown-it-py",
    "ziglang": "run as a command by the compiler of the kernels",
}


def python_files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


# -- directions -------------------------------------------------------------------------------------------------------


@pytest.mark.timeout(120)
def test_import_contracts() -> None:
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_package_has_an_init_file() -> None:
    """Without one, import-linter does not see what is in it, and installed resources are not found."""
    folders = {path.parent for path in python_files(*PACKAGES)} | {ROOT / "assets"}
    assert [name_of(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


IMPORT_ALL = """
import importlib, sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("PySide6", "shiboken6", "cuda", "torch"):
            raise ImportError(f"{name} is blocked")
sys.meta_path.insert(0, Block())
failed = []
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ImportError as error:
        failed.append(f"{name}: {error}")
sys.exit("\\n".join(failed) or 0)
"""
NOT_PURE = ("app.qt", "app.__main__", "inference.backends.torch_backend")
# Files that only exist on one system's Python.
OTHER_SYSTEM = {"linux": (), "win32": ("app.platform.x11",)}


def test_everything_else_imports_without_qt_cuda_and_torch() -> None:
    modules = []
    for path in python_files(*PACKAGES):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if not name.startswith((*NOT_PURE, *OTHER_SYSTEM.get(sys.platform, ()))):
            modules.append(name)
    assert len(modules) > 20
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, *modules], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_command_line_help_needs_nothing_heavy() -> None:
    code = "import sys, app.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"torch", "numpy", "PySide6", "huggingface_hub", "tokenizers"} & set(done.stdout.split())


# -- libraries --------------------------------------------------------------------------------------------------------


def imported(*folders: str) -> set[str]:
    """Top-level names of third-party modules that the files below these folders import, inside functions too."""
    found = set()
    for path in python_files(*folders):
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                found.add((node.module or "").partition(".")[0])
            elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("pytest.importorskip", "import_module"):
                found |= {str(a.value).partition(".")[0] for a in node.args if isinstance(a, ast.Constant)}
    return found - set(sys.stdlib_module_names) - {*PACKAGES, "assets", "installer", "tests", ""}


def declared(entries: list[str]) -> dict[str, str]:
    """{distribution: import name} of requirements."""
    names = [re.split(r"[<>=!;\[ ]", entry)[0].lower() for entry in entries]
    return {name: IMPORT_NAMES.get(name, name.replace("-", "_")) for name in names}


def test_imports_are_declared_and_declarations_used() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    runtime = declared(project["dependencies"])
    dev = declared(project["optional-dependencies"]["dev"])
    cuda = declared(project["optional-dependencies"]["cuda"])
    used = imported(*PACKAGES)
    used_by_tests = imported("tests")
    assert used - set(runtime.values()) - set(cuda.values()) == set()
    assert used_by_tests - set(runtime.values()) - set(dev.values()) - {"conftest"} == set()
    assert {d for d, name in runtime.items() if name not in used} - set(TOOLS) == set()
    assert {d for d, name in dev.items() if name not in used_by_tests} - set(TOOLS) == set()
    assert imported("installer") == set()


# -- documentation ----------------------------------------------------------------------------------------------------


def defines(body: list[ast.stmt], name: str) -> ast.AST | None:
    """The statement of a module or class that defines a name."""
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return node
        if isinstance(node, ast.Assign) and name in {ast.unparse(target) for target in node.targets}:
            return node
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name:
            return node
    return None


def exists(dotted: str) -> bool:
    """Whether package.module.Class.method (or any shorter form) is defined, read from the sources."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        base = ROOT.joinpath(*parts[:count])
        path = base.with_suffix(".py")
        if not path.is_file():
            path = base / "__init__.py"
        if not path.is_file():
            continue
        body: list[ast.stmt] = tree_of(path).body
        for name in parts[count:]:
            node = defines(body, name)
            if node is None:
                return False
            body = list(getattr(node, "body", []))
        return True
    return False


def chain_names() -> list[str]:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```chain\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) == 4, "docs/architecture.md holds three call chains, and that of the gateway"
    return [name for block in blocks for name in re.findall(r"\b(?:app|inference|kernels)(?:\.\w+)+", block)]


def test_names_of_the_call_chains_exist() -> None:
    names = chain_names()
    assert len(names) >= 14
    assert [name for name in names if not exists(name)] == []


def test_a_wrong_name_would_be_seen() -> None:
    assert exists("app.engine_client.EngineClient.submit")
    assert not exists("app.engine_client.EngineClient.submitt")
    assert not exists("app.no_such_file.EngineClient")


def tracked_texts(*suffixes: str) -> Iterator[Path]:
    for folder in (".", "docs"):
        yield from (path for path in sorted((ROOT / folder).glob("*.*")) if path.suffix in suffixes)
    for folder in (*PACKAGES, "installer", "tests", "assets"):
        yield from (path for path in sorted((ROOT / folder).rglob("*.*")) if path.suffix in suffixes)


def test_no_path_of_one_machine() -> None:
    pattern = re.compile(r"(?<![\w.~])/(?:root|work|tmp/lab|opt|home/\w\w+|Users/\w\w+)/[\w.]")
    found = []
    for path in tracked_texts(".md", ".py", ".c", ".h", ".cu", ".cuh", ".toml"):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if pattern.search(line):
                found.append(f"{name_of(path)}:{number}: {line.strip()}")
    assert found == []


def test_links_between_documents_lead_somewhere() -> None:
    broken = []
    for path in tracked_texts(".md"):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
            if not (path.parent / target).exists():
                broken.append(f"{name_of(path)}: {target}")
    assert broken == []


# -- sizes and handlers -----------------------------------------------------------------------------------------------


def kernel_sources() -> Iterator[Path]:
    yield from (path for path in sorted((ROOT / "kernels").rglob("*")) if path.suffix in (".c", ".h", ".cu", ".cuh"))


def limit_of(name: str) -> int:
    return MAX_TEST_FILE_LINES if name.startswith("tests/") else MAX_FILE_LINES


def test_file_lengths() -> None:
    sizes = {
        name_of(path): len(path.read_text(encoding="utf-8").splitlines())
        for path in (*python_files(*PACKAGES, "installer", "tests"), *kernel_sources())
    }
    assert {name: n for name, n in sizes.items() if n > limit_of(name) and name not in LONGER} == {}


def test_rooms_are_small_enough_to_know() -> None:
    sizes = Counter(name_of(path.parent) for path in python_files(*PACKAGES) if path.name != "__init__.py")
    assert {name: n for name, n in sizes.items() if n > MAX_ROOM_FILES} == {}


def code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function from its `def`, its docstring left out."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function, clean=False) is not None:
        first = function.body[0]
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_function_lengths() -> None:
    long = {}
    for path in python_files(*PACKAGES, "installer", "tests"):
        for function in functions(path):
            name = f"{name_of(path)}::{function.name}"
            if code_lines(function) > MAX_FUNCTION_LINES and name not in LONGER:
                long[name] = code_lines(function)
    assert long == {}


def test_reasons_for_length_are_still_needed() -> None:
    needed = set()
    for path in (*python_files(*PACKAGES, "installer", "tests"), *kernel_sources()):
        if len(path.read_text(encoding="utf-8").splitlines()) > limit_of(name_of(path)):
            needed.add(name_of(path))
        if path.suffix == ".py":
            long = (f for f in functions(path) if code_lines(f) > MAX_FUNCTION_LINES)
            needed |= {f"{name_of(path)}::{f.name}" for f in long}
    assert set(LONGER) - needed == set()


def test_exception_is_caught_in_few_places() -> None:
    found = set()
    for path in python_files(*PACKAGES, "installer"):
        for node in ast.walk(tree_of(path)):
            # A handler that ends in a bare `raise` only cleans up.
            if isinstance(node, ast.ExceptHandler) and ast.unparse(node.body[-1]) != "raise":
                caught = "BaseException" if node.type is None else ast.unparse(node.type)
                if re.search(r"\b(?:Base)?Exception\b", caught):
                    found.add(name_of(path))
    assert found - set(BROAD_HANDLERS) == set()


def test_user_text_reaches_no_log() -> None:
    """Log calls may not name what users wrote or models answered."""
    secret = re.compile(r"\b(?:prompt|selection|answer|text|content|messages)\b")
    found = []
    for path in python_files(*PACKAGES):
        for node in ast.walk(tree_of(path)):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            if node.func.attr not in ("debug", "info", "warning", "error", "exception", "critical"):
                continue
            if not re.search(r"\blog(?:ger|ging)?\b", ast.unparse(node.func.value), flags=re.IGNORECASE):
                continue
            names = {n.id for arg in node.args for n in ast.walk(arg) if isinstance(n, ast.Name)}
            names |= {n.attr for arg in node.args for n in ast.walk(arg) if isinstance(n, ast.Attribute)}
            if any(secret.fullmatch(name) for name in names):
                found.append(f"{name_of(path)}:{node.lineno}")
    assert found == []
