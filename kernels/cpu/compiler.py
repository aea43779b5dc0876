"""Builds the CPU kernels with the clang of the `ziglang` package and keeps them in the user's cache.

One shared library for each instruction set, named by a hash of its sources and flags: a new version of the sources
builds anew, an old one is found again, a damaged one is built again. Building takes some seconds once; loading takes
milliseconds.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from kernels.errors import CompileError

SOURCE_DIR = Path(__file__).parent
SOURCES = (
    "pool.c", "quantize.c", "linear.c", "dense.c", "elementwise.c", "attention.c", "program.c", "pack.c", "head.c",
    "round_groups.c",
)  # fmt: skip
_FLAGS = (
    "-O3", "-std=gnu11", "-shared", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-fno-sanitize=undefined",
    "-Wall", "-Wextra", "-s",
)  # fmt: skip
_BUILD_LIMIT_S = 600


@dataclass(frozen=True, slots=True)
class CpuVariant:
    """One instruction set that the kernels are built for.

    Attributes:
        level: what `cpu_level` must at least say.
        macro: chooses the header of vector operations.
        cpu: clang's name of the oldest CPU that has it; "" is the machine's own.
    """

    name: str
    level: int
    macro: str
    cpu: str


VARIANTS = (
    CpuVariant("avx512", 2, "KERNELS_AVX512", "x86_64_v4+avx512vnni"),
    CpuVariant("avx2", 1, "KERNELS_AVX2", "x86_64_v3"),
    CpuVariant("plain", 0, "KERNELS_PLAIN", ""),
)


def cache_dir() -> Path:
    """Where built kernels are kept."""
    return platformdirs.user_cache_path("deskinfer", appauthor=False) / "kernels"


def variant(name: str) -> CpuVariant:
    """The variant of that name."""
    for candidate in VARIANTS:
        if candidate.name == name:
            return candidate
    raise CompileError(f"There is no variant {name!r}; there are {', '.join(v.name for v in VARIANTS)}.")


@functools.lru_cache(maxsize=1)
def cpu_level() -> int:
    """2 where the CPU and its system run AVX-512 with VNNI, 1 where they run AVX2, else 0."""
    path = _build_once("probe", ("probe.c",), ())
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise CompileError(f"The built probe at {path} could not be loaded: {error}. Delete that file.") from error
    library.cpu_level.restype = ctypes.c_int
    return int(library.cpu_level())


def best_variant() -> CpuVariant:
    """The fastest variant that this CPU runs; ATEN_CPU_CAPABILITY (avx2, default) lowers it as it does for torch."""
    level = cpu_level()
    wanted = os.environ.get("ATEN_CPU_CAPABILITY", "").lower()
    level = min(level, {"avx2": 1, "default": 0}.get(wanted, level))
    return next(v for v in VARIANTS if v.level <= level)


def build(chosen: CpuVariant | None = None) -> Path:
    """Builds a variant, the best one by default, unless the cache has it; returns the shared library.

    Safe to call from several processes at once: each builds under a name of its own and renames it at the end.

    Raises:
        CompileError: the compiler is not installed, the cache cannot be written, or the build failed; with its log.
    """
    chosen = chosen or best_variant()
    flags = [f"-D{chosen.macro}"]
    if chosen.cpu:
        flags.append(f"-mcpu={chosen.cpu}")
    return _build_once(f"cpu_{chosen.name}", SOURCES, tuple(flags))


def _build_once(name: str, sources: tuple[str, ...], flags: tuple[str, ...]) -> Path:
    flags = _FLAGS + flags + (() if sys.platform == "win32" else ("-lpthread", "-lm"))
    key = hashlib.sha256("\0".join((sys.platform, *flags)).encode())
    for path in sorted(SOURCE_DIR.iterdir()):
        if path.suffix == ".h" or path.name in sources:
            key.update(path.name.encode() + b"\0" + path.read_bytes())
    suffix = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
    target = cache_dir() / f"{name}-{key.hexdigest()[:20]}{suffix}"
    if not _is_whole(target):
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            _compile([str(SOURCE_DIR / source) for source in sources], flags, target)
        except OSError as error:
            raise CompileError(f"The kernels could not be written to {target.parent}: {error}.") from error
    return target


def _checksum_file(target: Path) -> Path:
    return target.with_name(target.name + ".sha256")


def _is_whole(target: Path) -> bool:
    """The file is what was built: loading one that a crash or a full disk has cut would kill the process."""
    try:
        return _checksum_file(target).read_text(encoding="ascii") == hashlib.sha256(target.read_bytes()).hexdigest()
    except (OSError, UnicodeDecodeError):
        return False


def _compile(sources: list[str], flags: tuple[str, ...], target: Path) -> None:
    if importlib.util.find_spec("ziglang") is None:
        raise CompileError("The C compiler is missing: install the Python package ziglang.")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-", ignore_cleanup_errors=True) as folder:
        built = Path(folder) / target.name
        command = [sys.executable, "-m", "ziglang", "cc", *sources, *flags, "-o", str(built)]
        environment = {
            **os.environ,
            "ZIG_GLOBAL_CACHE_DIR": str(target.parent / "compiler"),
            "ZIG_LOCAL_CACHE_DIR": folder,
        }
        try:
            result = subprocess.run(
                command, env=environment, capture_output=True, text=True, errors="replace", timeout=_BUILD_LIMIT_S
            )
        except subprocess.TimeoutExpired as error:
            raise CompileError(f"The compiler did not finish within {_BUILD_LIMIT_S} s.") from error
        if result.returncode != 0 or not built.exists():
            raise CompileError(f"The compiler failed with status {result.returncode}.", result.stdout + result.stderr)
        checksum = _checksum_file(built)
        checksum.write_text(hashlib.sha256(built.read_bytes()).hexdigest(), encoding="ascii")
        try:
            os.replace(built, target)
            os.replace(checksum, _checksum_file(target))
        except PermissionError:  # Windows: another process has just put it there and loaded it
            if not target.exists():
                raise
