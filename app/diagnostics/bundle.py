"""The diagnostics bundle: what helps to find a fault, and no text of the user's.

Nothing is filtered out of it: every line is built from what cannot hold a user's text. That is: versions, numbers,
names that we or the system gave (states, catalog ids, built-in actions, CPU, GPU), and a log that was written without
content (content_free_log.py). Paths, prompts, selections, answers, clipboard, history, keys, hotkeys of the user's own
actions, and values of settings that are texts are not in it; of those it only says whether they are set.
"""

from __future__ import annotations

import datetime
import platform
import zipfile
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from app.actions.registry import ActionRegistry
from app.diagnostics.doctor import LIBRARIES, version_text
from app.diagnostics.machine import gpu_lines, processor_lines
from app.diagnostics.serving import serving_lines
from app.paths import assets_dir, log_dir
from app.settings.settings import Setting, Settings, Value
from inference.errors import InferenceError
from inference.request import EngineReading, Usage

EVENT_LOG = "events.log"
LOG_TAIL_LINES = 400
KEPT_ANSWERS = 50
_SHOWN_KINDS = ("flag", "integer", "number", "choice")


@dataclass(frozen=True, slots=True)
class DiagnosticFile:
    """A file of the bundle."""

    name: str
    text: str


class Timings:
    """What the last answers cost, without what they said. For one thread."""

    def __init__(self) -> None:
        self._usages: deque[Usage] = deque(maxlen=KEPT_ANSWERS)

    def add(self, usage: Usage) -> None:
        """Keeps the numbers of an answer that has ended."""
        self._usages.append(usage)

    def all(self) -> tuple[Usage, ...]:
        """The oldest first."""
        return tuple(self._usages)


@dataclass(frozen=True, slots=True)
class AppState:
    """What only the running app knows.

    Attributes:
        session: kind of the desktop session: "x11", "wayland", "windows", "none".
        has_tray: whether the desktop shows tray icons.
        hotkey_states: the state of each hotkey by its setting's key.
    """

    session: str = "none"
    has_tray: bool = False
    hotkey_states: Mapping[str, str] = field(default_factory=dict)
    reading: EngineReading = field(default_factory=EngineReading)
    usages: tuple[Usage, ...] = ()


def bundle(settings: Settings, actions: ActionRegistry, state: AppState) -> list[DiagnosticFile]:
    """Every file of the bundle. Takes a second or two, since it lets the CPU kernels check themselves; any thread."""
    sections: dict[str, Callable[[], Iterable[str]]] = {
        "program.txt": _program,
        "machine.txt": _machine,
        "engine.txt": lambda: _engine(state.reading),
        "timings.csv": lambda: _timings(state.usages),
        "settings.txt": lambda: _settings(settings, actions),
        "desktop.txt": lambda: _desktop(state, settings, actions),
        "models.txt": _models,
        "gateway.txt": lambda: serving_lines(settings, _model_name),
        "events.log": _log_tail,
    }
    files = [DiagnosticFile(name, "\n".join([*_guarded(lines), ""])) for name, lines in sections.items()]
    return [DiagnosticFile("README.txt", _readme(files)), *files]


def save_bundle(path: Path, files: Sequence[DiagnosticFile]) -> None:
    """Writes the bundle as a zip file. Raises OSError."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.writestr(file.name, file.text)


def bundle_name(now: datetime.datetime | None = None) -> str:
    """A file name that sorts by time."""
    return f"deskinfer-diagnostics-{now or datetime.datetime.now():%Y%m%d-%H%M}.zip"


def _guarded(lines: Callable[[], Iterable[str]]) -> list[str]:
    """The lines up to where they fail; of the failure only its kind, since an error may quote a path."""
    found: list[str] = []
    try:
        found.extend(lines())
    except (OSError, ImportError, ValueError, LookupError, AttributeError, RuntimeError, InferenceError) as error:
        found.append(f"not complete: {type(error).__name__}")
    return found


def _readme(files: Sequence[DiagnosticFile]) -> str:
    # A paragraph is one line, which whoever shows it breaks at its own width.
    paragraphs = (
        "Diagnostics of DeskInfer, for a report of a fault.",
        f"In it: {', '.join(file.name for file in files)}.",
        "Not in it: prompts, selections, answers, clipboard, history, names of files and folders, keys, and values of "
        "settings that are texts.",
        "Every file is plain text: look through it before you pass it on.",
    )
    return "\n\n".join(paragraphs) + "\n"


def _program() -> Iterable[str]:
    yield f"deskinfer {version_text('deskinfer')}"
    yield f"Python {platform.python_version()} ({platform.python_implementation()})"
    yield f"{platform.system()} {platform.release()}, {platform.machine()}"
    yield from (f"{name} {version_text(name)}" for name in LIBRARIES)


def _machine() -> Iterable[str]:
    yield from processor_lines()
    yield from (f"GPU: {line}" for line in gpu_lines())


def _engine(reading: EngineReading) -> Iterable[str]:
    for each in fields(EngineReading):
        value = getattr(reading, each.name)
        if each.name == "model":
            value = _model_name(value)
        yield f"{each.name} {getattr(value, 'value', value)}"
    yield from _kernels()


def _kernels() -> Iterable[str]:
    from inference.engine.loader import choose_backend
    from inference.engine.options import EngineOptions

    chosen = choose_backend(EngineOptions(backend="cpu"))
    chosen.backend.close()
    yield "CPU kernels: self-check passed"


def _timings(usages: Iterable[Usage]) -> Iterable[str]:
    yield ",".join([*(each.name for each in fields(Usage)), "decode_tok_s"])
    for usage in usages:
        yield ",".join(f"{number:g}" for number in [*asdict(usage).values(), usage.decode_tok_s])


def _built_in(actions: ActionRegistry) -> set[str]:
    """Ids of actions that come with the app; those of the user's own are the user's words."""
    own = {path.stem for path in actions.user_dir.glob("*.toml")} if actions.user_dir.is_dir() else set()
    return {path.stem for path in assets_dir("actions").glob("*.toml")} - own


def _settings(settings: Settings, actions: ActionRegistry) -> Iterable[str]:
    built_in = _built_in(actions)
    for setting in settings.registry.values():
        if _is_ours(setting.key, built_in, settings):
            yield f"{setting.key} = {_value(setting, settings.get(setting.key))}"
    yield f"settings that need a correction: {len(settings.problems)}"
    yield f"actions of the user's own: {len(actions.all()) - len(built_in & {each.id for each in actions.all()})}"
    yield f"actions that need a correction: {len(actions.problems)}"


def _is_ours(key: str, built_in: set[str], settings: Settings) -> bool:
    """Whether a key is a name of ours; those of hotkeys hold the ids of actions, which a user may have chosen."""
    if not key.startswith("hotkey."):
        return True
    start = key.removesuffix(".clipboard")
    is_action = f"{start}.clipboard" in settings.registry
    return not is_action or start.removeprefix("hotkey.") in built_in


def _value(setting: Setting, value: Value) -> str:
    if setting.kind in _SHOWN_KINDS:
        return str(value)
    if setting.kind == "model":
        return _model_name(str(value)) or "(chosen by memory)"
    if setting.kind == "hotkey":
        return str(value) or "(none)"
    return "(default)" if value == setting.default else "(set)"


def _model_name(name: str) -> str:
    """A model of the catalog by its id; the name of a file is the user's."""
    from inference.store.catalog import load_catalog

    if not name:
        return ""
    return name if name in load_catalog().entries else "(a file of the user's)"


def _desktop(state: AppState, settings: Settings, actions: ActionRegistry) -> Iterable[str]:
    yield f"session {state.session}, tray {'yes' if state.has_tray else 'no'}"
    built_in = _built_in(actions)
    for key, told in state.hotkey_states.items():
        if _is_ours(key, built_in, settings):
            yield f"{key}: {told}"


def _models() -> Iterable[str]:
    from inference.store.model_store import ModelStore

    for stored in ModelStore().list():
        here = "here" if stored.path is not None else "partly here" if stored.partial_bytes else "not here"
        yield f"{stored.entry.id}: {here}, {stored.num_bytes + stored.partial_bytes} bytes"


def _log_tail() -> Iterable[str]:
    try:
        lines = (log_dir() / EVENT_LOG).read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return ["nothing was logged"]
    return lines[-LOG_TAIL_LINES:]
