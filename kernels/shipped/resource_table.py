"""What every shipped kernel needs of an SM, on each architecture: cuda/resources.toml, and the gate that holds to it.

    python -m kernels.shipped.resource_table            builds all variants and compares them with the table
    python -m kernels.shipped.resource_table --write    builds them and writes the table
    python -m kernels.shipped.resource_table --here     builds what most models need on this machine's GPU

No GPU is needed, except for the last.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from kernels.compile import compiler
from kernels.errors import KernelError
from kernels.shipped.build_pool import BuildPool, Job
from kernels.shipped.variants import SHARED_BYTES, SMALLEST, VARIANTS, Target, common_target, table_target, variants

TABLE = compiler.SOURCE_DIR / "resources.toml"

_HEAD = """\
# Registers of a thread, bytes of static shared memory of a block, bytes that each thread spills and reloads.
# Written by: python -m kernels.shipped.resource_table --write
"""


class Needs(NamedTuple):
    """One entry of the table."""

    registers: int
    shared_bytes: int
    spill_bytes: int


Table = dict[str, dict[str, Needs]]
"""{"matvec.cu BITS=4: matvec": {"sm_86": needs}}."""


def compiler_version() -> str:
    """The compiler's version, as exact as can be told."""
    try:
        return importlib.metadata.version("nvidia-cuda-nvrtc-cu12")
    except importlib.metadata.PackageNotFoundError:
        return ".".join(str(part) for part in compiler.nvrtc_version())


def jobs(targets: Iterable[Target]) -> list[Job]:
    """All variants for these targets."""
    return [
        Job(source, defines, target.arch)
        for target in targets
        for source in VARIANTS
        for defines in variants(source, target)
    ]


def table_jobs() -> list[Job]:
    """All that the table must hold."""
    return jobs(table_target(arch) for arch in SHARED_BYTES)


def build_all(wanted: list[Job]) -> Table:
    """Builds in as many processes as there are cores what the cache lacks.

    Raises:
        CompileError: the compiler is missing or refuses a source.
    """
    BuildPool(wanted).wait()
    table: Table = {}
    for job in wanted:
        module = compiler.build(job.source, job.arch, job.defines)
        variant = "".join(f" {name}={value}" for name, value in sorted(job.defines.items()))
        for kernel, needs in module.resources.items():
            entry = Needs(needs.registers, needs.shared_bytes, needs.spill_bytes)
            table.setdefault(f"{job.source}{variant}: {kernel}", {})[job.arch] = entry
    return table


def write_table(table: Table, path: Path) -> None:
    """Writes the table, one kernel a line."""
    lines = [_HEAD + f'nvrtc = "{compiler_version()}"\n', "[kernels]"]
    for name in sorted(table):
        entries = ", ".join(f"{arch} = {list(needs)}" for arch, needs in table[name].items())
        lines.append(f'"{name}" = {{ {entries} }}')
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def read_table(path: Path) -> tuple[str, Table]:
    """(version of the compiler that it was made with, table)."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    kernels = content["kernels"].items()
    return content["nvrtc"], {
        name: {arch: Needs(*needs) for arch, needs in entries.items()} for name, entries in kernels
    }


def spills(table: Table, arch: str = SMALLEST) -> list[str]:
    """Kernels that spill registers there."""
    return [name for name, entries in table.items() if arch in entries and entries[arch].spill_bytes]


def differences(built: Table, committed: Table, same_compiler: bool) -> list[str]:
    """What the committed table has wrong. Another version of the compiler may need other numbers."""
    found = [f"{name} is not in the table" for name in sorted(built.keys() - committed.keys())]
    found += [f"{name} is in the table but does not ship" for name in sorted(committed.keys() - built.keys())]
    if same_compiler:
        for name in sorted(built.keys() & committed.keys()):
            for arch, needs in built[name].items():
                if needs != committed[name].get(arch):
                    found.append(f"{name}, {arch}: {needs}; the table has {committed[name].get(arch)}")
    return found


def main(arguments: list[str]) -> int:
    """Returns the exit status: 1 where the table is wrong, a kernel spills, or nothing can be built."""
    parser = argparse.ArgumentParser(prog="python -m kernels.shipped.resource_table", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table instead of comparing with it")
    parser.add_argument("--here", action="store_true", help="build what most models need on this machine's GPU")
    options = parser.parse_args(arguments)
    try:
        if options.here:
            return _build_here()
        built = build_all(table_jobs())
        version, committed = read_table(TABLE) if TABLE.exists() else ("", {})
        problems = [f"{name} spills registers on {SMALLEST}" for name in spills(built)]
        if options.write:
            write_table(built, TABLE)
        else:
            problems += differences(built, committed, version == compiler_version())
    except KernelError as error:
        problems = [str(error)]
    sys.stdout.write("".join(f"{problem}\n" for problem in problems) or "All kernels are as they should be.\n")
    return 1 if problems else 0


def _build_here() -> int:
    from kernels.device.driver import Device

    device = Device()
    try:
        arch = compiler.arch_for(device.capability)
        wanted = jobs([common_target(arch, device.shared_bytes_per_block)])
        name = device.name
    finally:
        device.close()
    build_all(wanted)
    sys.stdout.write(f"{len(wanted)} modules are built for {name}.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
