"""Free memory of the machine and of a container."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from inference.engine.host_memory import available_bytes

GIB = 1024**3


def write(directory: Path, **files: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name.replace("__", ".")).write_text(text, encoding="ascii")
    return directory


def test_without_a_container_it_is_the_machines(tmp_path: Path) -> None:
    found = available_bytes(cgroups=tmp_path)
    assert 0 < found <= psutil.virtual_memory().total
    assert found == pytest.approx(psutil.virtual_memory().available, abs=GIB)


def test_a_container_with_less_counts(tmp_path: Path) -> None:
    stat = "anon 5\ninactive_file 1000000\nfile 7\n"
    write(tmp_path, memory__max="50000000\n", memory__current="30000000\n", memory__stat=stat)
    assert available_bytes(cgroups=tmp_path) == 21_000_000


def test_a_full_container_has_nothing(tmp_path: Path) -> None:
    write(tmp_path, memory__max="1000\n", memory__current="5000\n", memory__stat="inactive_file 0\n")
    assert available_bytes(cgroups=tmp_path) == 0


def test_a_container_without_a_limit_does_not_count(tmp_path: Path) -> None:
    write(tmp_path, memory__max="max\n", memory__current="5000\n", memory__stat="inactive_file 0\n")
    assert available_bytes(cgroups=tmp_path) > 5000


def test_the_older_control_groups_count_too(tmp_path: Path) -> None:
    write(
        tmp_path / "memory",
        memory__limit_in_bytes="40000000\n",
        memory__usage_in_bytes="30000000\n",
        memory__stat="total_inactive_file 500\n",
    )
    assert available_bytes(cgroups=tmp_path) == 10_000_500
