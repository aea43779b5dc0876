"""`deskinfer doctor`: one page on what this machine can do and what is wrong, fit for a bug report.

No text of the user's is on it, and the home directory is shortened to ~. Each section stands alone: one that fails says
why and leaves the others whole.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from app.actions.registry import ActionRegistry
from app.desktop.protocols import DesktopSession, Hotkey, HotkeyError
from app.diagnostics.machine import gpu_lines, processor_lines
from app.diagnostics.serving import serving_lines
from app.engine_setup import backend_cure, chosen_model, engine_options, load_settings
from app.paths import cache_dir, config_dir, data_dir, log_dir
from app.version import installed_version
from inference.byte_size import size_text
from inference.errors import BackendUnavailableError, InferenceError

LIBRARIES = (
    "PySide6-Essentials",
    "numpy",
    "torch",
    "tokenizers",
    "jinja2",
    "huggingface-hub",
    "ziglang",
    "xcffib",
    "jeepney",
    "cuda-bindings",
    "nvidia-cuda-nvrtc-cu12",
)
Lines = Iterator[str]
_FILES = "Your files"


def page() -> str:
    """All sections. Never fails; takes a second or two, since it builds a backend to try it."""
    # The first reading of a broken settings file sets it aside; the next one finds no fault.
    first = {title: _guarded(section) for title, section in SECTIONS.items() if title == _FILES}
    lines: list[str] = []
    for title, section in SECTIONS.items():
        lines.append(f"{title}:")
        lines += [f"  {line}" for line in first.get(title) or _guarded(section)]
    return shorten_home("\n".join(lines))


def shorten_home(text: str) -> str:
    """Replaces the home directory by ~, since it often holds a person's name."""
    home = str(Path.home())
    return text if home in ("/", "") else text.replace(home, "~")


def _guarded(section: Callable[[], Lines]) -> list[str]:
    """The lines of a section, up to the point where it fails and why."""
    lines: list[str] = []
    try:
        lines.extend(section())
    except (OSError, ImportError, ValueError, LookupError, AttributeError, RuntimeError, InferenceError) as error:
        lines.append(f"PROBLEM: this section could not be completed ({type(error).__name__}: {error})")
    return lines


def program() -> Lines:
    """Versions, system, paths."""
    yield f"deskinfer {version_text('deskinfer')}, Python {platform.python_version()} ({sys.executable})"
    yield f"{_system_name()}, {platform.machine()}"
    yield f"settings {config_dir()}, models {data_dir()}"
    yield f"cache {cache_dir()}, logs {log_dir()}"


def version_text(distribution: str) -> str:
    """The version of a Python distribution, or that there is none."""
    return installed_version(distribution) or "not installed"


def _system_name() -> str:
    kernel = platform.platform(terse=True)
    try:
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']} ({kernel})"
    except (OSError, KeyError):
        return kernel


def desktop() -> Lines:
    """Session, tray, hotkeys, and whether the app runs."""
    from app.desktop.tray_host import tray_host
    from app.instance.instance import is_running
    from app.platform.session import open_session

    runs = is_running()
    yield "the app runs" if runs else "the app does not run"
    session = open_session()
    try:
        name = os.environ.get("XDG_CURRENT_DESKTOP", "unknown desktop")
        yield f"session {session.kind}, {name}"
        yield from (f"LIMIT: {limit}" for limit in session.limits)
        host = tray_host()
        yield f"tray icons: shown by {host}" if host else "LIMIT: no tray here; the app shows a window instead"
        yield from _hotkeys_of_the_app() if runs else _hotkeys(session)
    finally:
        session.grabber.close()


def _hotkeys_of_the_app() -> Lines:
    """What the running app says of its hotkeys: only it knows which of them it could not have."""
    from app.instance.instance import InstanceError, send_to_running

    try:
        told = (send_to_running({"command": "hotkeys"}) or {}).get("hotkeys")
    except InstanceError as error:
        yield f"PROBLEM: {error}"
        return
    if not isinstance(told, list):
        yield "PROBLEM: the running app does not tell its hotkeys: it is an older one. Quit it and start it again."
        return
    # The app calls them what its windows call them; this page is in English for whoever reads a bug report.
    english = {
        title: setting.title["en"]
        for setting in load_settings().registry.values()
        if setting.kind == "hotkey"
        for title in setting.title.values()
    }
    for line in told:
        reason = line.get("reason", "")
        works = {"registered": ": works", "taken": ": PROBLEM: ", "invalid": ": PROBLEM: "}.get(line["state"], ": ")
        yield f"{line['hotkey']} for {english.get(line['title'], line['title'])}{works}{reason}"


def _hotkeys(session: DesktopSession) -> Lines:
    """Every hotkey that is set, and whether it can be had now."""
    from app.desktop.hotkeys import parse

    settings = load_settings()
    for setting in settings.registry.values():
        text = settings.text(setting.key) if setting.kind == "hotkey" else ""
        if text:
            state = _hotkey_state(session, parse(text)) if session.kind in ("x11", "windows") else ""
            yield f"{text} for {setting.key.removeprefix('hotkey.')}{state}"


def _hotkey_state(session: DesktopSession, hotkey: Hotkey) -> str:
    try:
        session.grabber.grab(hotkey, lambda: None)
    except HotkeyError as error:
        return f": PROBLEM: {error.reason}"
    session.grabber.release(hotkey)
    return ": free"


def files() -> Lines:
    """What is wrong with the user's settings and actions."""
    settings, actions = load_settings(), ActionRegistry()
    problems = [*settings.problems, *actions.problems]
    yield from (f"PROBLEM: {problem}" for problem in problems)
    if not problems:
        yield f"settings and {len(actions.all())} actions: no problem"


def engine() -> Lines:
    """The CPU kernels, the backend that is chosen, and why not another."""
    yield from _kernels()
    from inference.engine.loader import choose_backend

    settings = load_settings()
    threads = settings.integer("engine.threads") or "one a core"
    yield f"wanted: backend {settings.text('engine.backend')}, threads {threads}"
    try:
        chosen = choose_backend(engine_options(settings))
    except BackendUnavailableError as error:
        yield f"PROBLEM: {error} {backend_cure(settings)}"
        return
    try:
        yield f"chosen: {chosen.backend.name}; its self-check passed"
        if chosen.fallback_reason:
            yield f"PROBLEM: the faster backend does not work here: {chosen.fallback_reason}"
    finally:
        chosen.backend.close()


def _kernels() -> Lines:
    from kernels.cpu.compiler import VARIANTS, best_variant, build, cpu_level
    from kernels.errors import KernelError

    try:
        level, best = cpu_level(), best_variant()
        able = ", ".join(variant.name for variant in VARIANTS if variant.level <= level)
        yield f"this CPU runs the kernels {able}; used: {best.name}"
        yield f"compiled: {build(best).name}"
    except KernelError as error:
        yield f"PROBLEM: the CPU kernels cannot be built: {error}"


def models() -> Lines:
    """The model that is meant, and what is here; sizes are compared, `deskinfer models verify` compares every byte."""
    from inference.store.model_store import ModelStore

    store = ModelStore()
    name = chosen_model(load_settings())
    try:
        store.resolve(name)
        yield f"chosen: {name}, here"
    except InferenceError as error:
        yield f"PROBLEM: {error}"
    for stored in store.list():
        if stored.path is not None:
            yield f"{stored.entry.id}: {size_text(stored.num_bytes)}, size right"
        elif stored.num_bytes or stored.partial_bytes:
            size = size_text(stored.num_bytes + stored.partial_bytes)
            yield f"PROBLEM: {stored.entry.id}: only {size}; go on: deskinfer models pull {stored.entry.id}"


def gateway() -> Lines:
    """Whether other programs are served."""
    yield from serving_lines(load_settings())


def gpus() -> Lines:
    """NVIDIA GPUs, and whether our kernels can use them; a sleeping one stays asleep."""
    if (yield from gpu_lines()):
        yield from _cuda()


def _cuda() -> Lines:
    """Whether our kernels can use the GPU, else why not. Opens it, which wakes it."""
    from inference.engine.gpu_report import gpu_report

    try:
        gpu = gpu_report()
    except BackendUnavailableError as error:
        yield f"PROBLEM: CUDA is not used: {error.reason}"
        return
    major, minor = gpu.compute_capability
    yield f"CUDA: {gpu.name}, compute capability {major}.{minor}, {gpu.sm_count} multiprocessors"
    total, free, context = (size_text(size) for size in (gpu.total_bytes, gpu.free_bytes, gpu.context_bytes))
    yield f"memory: {total}, {free} free, {context} for the context"
    driver, compiler = (".".join(str(part) for part in version) for version in (gpu.driver, gpu.compiler))
    yield f"driver for CUDA {driver}, compiler NVRTC {compiler}, kernels for {gpu.architecture}"


def libraries() -> Lines:
    """Versions of what matters."""
    yield ", ".join(f"{name} {version_text(name)}" for name in LIBRARIES)


SECTIONS: dict[str, Callable[[], Lines]] = {
    "Program": program,
    "Desktop": desktop,
    "CPU": processor_lines,
    "Engine": engine,
    "Models": models,
    "GPU": gpus,
    "Gateway": gateway,
    _FILES: files,
    "Libraries": libraries,
}
