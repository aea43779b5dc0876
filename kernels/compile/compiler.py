"""Builds the CUDA kernels with NVRTC and keeps them in the user's cache; needs no GPU.

A source and its defines make one cubin for one architecture, named by a hash of the source, all headers, the options
and the compiler's version: a new version of a source builds anew, an old one is found again, a damaged one is built
again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kernels.cpu.compiler import cache_dir
from kernels.errors import CompileError

SOURCE_DIR = Path(__file__).parent.parent / "cuda"
OLDEST_ARCH = 75
"""Turing: the first with the 8-bit integer tensor-core instructions that the kernels use."""

_OPTIONS = ("-std=c++17", "--ptxas-options=-v")
_CURE = "Install the compiler with: pip install 'deskinfer[cuda]'."


@dataclass(frozen=True, slots=True)
class Resources:
    """What one kernel needs for each thread (registers, spills, stack) and each block (static shared memory)."""

    registers: int
    spill_bytes: int
    stack_bytes: int
    shared_bytes: int


@dataclass(frozen=True, slots=True)
class CompiledModule:
    """One built source.

    Attributes:
        image: a cubin, or PTX where the GPU is newer than the compiler.
        arch: "sm_86", "compute_120".
        resources: {kernel: what it needs}; empty for PTX, which the driver compiles.
        path: where the cache has it.
    """

    image: bytes
    arch: str
    resources: dict[str, Resources]
    path: Path


@cache
def _nvrtc() -> Any:
    """The bindings of NVRTC, once they are known to work."""
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise CompileError(f"The compiler of the CUDA kernels is missing ({error}). {_CURE}") from error
    try:
        nvrtc.nvrtcVersion()
    except (RuntimeError, OSError) as error:  # the library is not there or cannot be loaded
        raise CompileError(f"The compiler of the CUDA kernels cannot be loaded ({error}). {_CURE}") from error
    return nvrtc


@cache
def nvrtc_version() -> tuple[int, int]:
    """Major and minor version of the compiler. Raises CompileError where it is missing."""
    _, major, minor = _nvrtc().nvrtcVersion()
    return int(major), int(minor)


@cache
def known_archs() -> tuple[int, ...]:
    """The architectures that this compiler builds for, as 75, 86, ..., oldest first."""
    _, archs = _nvrtc().nvrtcGetSupportedArchs()
    return tuple(sorted(int(arch) for arch in archs))


def arch_for(capability: tuple[int, int]) -> str:
    """The best target for a GPU: its own "sm_XY", else PTX of the newest one that the compiler knows below it."""
    wanted = capability[0] * 10 + capability[1]
    if wanted < OLDEST_ARCH:
        raise CompileError(
            f"The GPU has compute capability {capability[0]}.{capability[1]}; the kernels need 7.5 (Turing) or newer."
        )
    if wanted in known_archs():
        return f"sm_{wanted}"
    older = [arch for arch in known_archs() if OLDEST_ARCH <= arch < wanted]
    if not older:
        raise CompileError(f"NVRTC {nvrtc_version()} knows no architecture for this GPU (sm_{wanted}). {_CURE}")
    return f"compute_{older[-1]}"


def build(source: str | Path, arch: str, defines: Mapping[str, int] | None = None) -> CompiledModule:
    """Builds a source unless the cache has it. Safe to call from several processes at once.

    Args:
        source: a name in kernels/cuda, or a path.
        arch: "sm_86" for a cubin, "compute_86" for PTX.
        defines: {name: value} of the macros that choose the variant.

    Raises:
        CompileError: the compiler is missing, refuses the source, or the cache cannot be written; with its log.
    """
    try:
        path, flags, target = _target(source, arch, defines or {})
        found = _cached(target, arch)
        if found is None:
            target.parent.mkdir(parents=True, exist_ok=True)
            found = _compile(path, flags, target, arch)
    except OSError as error:
        raise CompileError(f"The CUDA kernels could not be read or written: {error}.") from error
    return found


def find(source: str | Path, arch: str, defines: Mapping[str, int] | None = None) -> CompiledModule | None:
    """What `build` would find in the cache, None where it would have to compile."""
    return _cached(_target(source, arch, defines or {})[2], arch)


def _target(source: str | Path, arch: str, defines: Mapping[str, int]) -> tuple[Path, list[str], Path]:
    """(source, flags, where the cache has or will have what they make)."""
    path = SOURCE_DIR / source
    flags = [*_OPTIONS, f"--gpu-architecture={arch}"]
    flags += [f"-D{name}={int(value)}" for name, value in sorted(defines.items())]
    return path, flags, cache_dir() / f"{path.stem}-{arch}-{_key(path, flags)}{_suffix(arch)}"


def _suffix(arch: str) -> str:
    return ".ptx" if arch.startswith("compute") else ".cubin"


def _key(path: Path, flags: list[str]) -> str:
    key = hashlib.sha256("\0".join((path.name, str(nvrtc_version()), *flags)).encode())
    key.update(path.read_bytes())
    for header in sorted(SOURCE_DIR.glob("*.cuh")):
        key.update(header.name.encode() + b"\0" + header.read_bytes())
    return key.hexdigest()[:20]


def _sidecar(target: Path) -> Path:
    return target.with_name(target.name + ".json")


def _cached(target: Path, arch: str) -> CompiledModule | None:
    """What the cache has under that name, None where it is missing or not whole."""
    try:
        image = target.read_bytes()
        sidecar = json.loads(_sidecar(target).read_text(encoding="ascii"))
        if sidecar["sha256"] != hashlib.sha256(image).hexdigest():
            return None
        resources = {name: Resources(**values) for name, values in sidecar["resources"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return CompiledModule(image, arch, resources, target)


def _compile(path: Path, flags: list[str], target: Path, arch: str) -> CompiledModule:
    image, log = _run_nvrtc(path.name, path.read_bytes(), [*flags, f"-I{SOURCE_DIR}"], arch)
    resources = parse_resources(log)
    sidecar = {
        "sha256": hashlib.sha256(image).hexdigest(),
        "resources": {kernel: asdict(needs) for kernel, needs in resources.items()},
    }
    _write_whole(_sidecar(target), json.dumps(sidecar).encode("ascii"))
    _write_whole(target, image)
    return CompiledModule(image, arch, resources, target)


def _write_whole(target: Path, content: bytes) -> None:
    """Under a name of its own first: another process never reads half a file."""
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix="build-", delete=False) as file:
        file.write(content)
    try:
        os.replace(file.name, target)
    except PermissionError:  # Windows: another process has just put it there and reads it
        if not target.exists():
            raise
    finally:
        with contextlib.suppress(FileNotFoundError, PermissionError):
            os.unlink(file.name)


def _run_nvrtc(name: str, text: bytes, flags: list[str], arch: str) -> tuple[bytes, str]:
    """(image, log)."""
    nvrtc = _nvrtc()
    program = _checked(nvrtc, "nvrtcCreateProgram", text, name.encode(), 0, [], [])
    try:
        options = [flag.encode() for flag in flags]
        status = nvrtc.nvrtcCompileProgram(program, len(options), options)[0]
        log = _bytes_of(nvrtc, "Log", program, "ProgramLog").rstrip(b"\0").decode("utf-8", "replace")
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            options_text = " ".join(flag for flag in flags if not flag.startswith("-I"))
            raise CompileError(f"NVRTC refused {name} ({options_text}): {_text(nvrtc, status)}.", log)
        if arch.startswith("compute"):
            return _bytes_of(nvrtc, "PTX", program, "PTX"), log
        return _bytes_of(nvrtc, "CUBIN", program, "CUBIN"), log
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _bytes_of(nvrtc: Any, what: str, program: Any, name: str) -> bytes:
    """The log, cubin or PTX of a program: its size is asked for first."""
    size = _checked(nvrtc, f"nvrtcGet{name}Size", program)
    content = b"\0" * int(size)
    _checked(nvrtc, f"nvrtcGet{name}", program, content)
    if not content and what != "Log":
        raise CompileError(f"NVRTC made no {what}.")
    return content


def _checked(nvrtc: Any, function: str, *arguments: Any) -> Any:
    """Calls NVRTC; returns what it gives besides the status."""
    status, *results = getattr(nvrtc, function)(*arguments)
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise CompileError(f"{function} failed: {_text(nvrtc, status)}.")
    return results[0] if results else None


def _text(nvrtc: Any, status: Any) -> str:
    return bytes(nvrtc.nvrtcGetErrorString(status)[1]).decode("ascii", "replace")


_ENTRY = re.compile(r"Compiling entry function '(\w+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


def parse_resources(log: str) -> dict[str, Resources]:
    """Reads ptxas' report on each kernel; lines on other functions do not count."""
    found: dict[str, Resources] = {}
    name, stack, spill = "", 0, 0
    for line in log.splitlines():
        if entry := _ENTRY.search(line):
            name, stack, spill = entry.group(1), 0, 0
        elif frame := _STACK.search(line):
            stack, spill = int(frame.group(1)), int(frame.group(2)) + int(frame.group(3))
        elif (used := _REGISTERS.search(line)) and name:
            shared = _SHARED.search(line)
            found[name] = Resources(int(used.group(1)), spill, stack, int(shared.group(1)) if shared else 0)
            name = ""
    return found
