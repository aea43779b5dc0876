"""One model for all processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from inference.engine.device_lock import DeviceLock, DeviceLocks
from inference.errors import InferenceError, ModelResidentError

HOLD = """
import sys
from pathlib import Path
from inference.engine.device_lock import DeviceLock
lock = DeviceLock(Path(sys.argv[1]))
lock.acquire("some model")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_holder_is_told_who_has_it_and_what_to_do(tmp_path: Path) -> None:
    first, second = DeviceLock(tmp_path / "new"), DeviceLock(tmp_path / "new")
    first.acquire("model A")
    with pytest.raises(ModelResidentError, match=rf"process {os.getpid()}\).*model A.*Unload the model"):
        second.acquire("model B")
    assert first.is_held
    assert not second.is_held
    first.acquire("model C")
    assert json.loads((tmp_path / "new" / "cpu.json").read_text()) == {"pid": os.getpid(), "model": "model C"}
    first.release()
    first.release()
    second.acquire("model B")
    second.release()


def test_devices_do_not_exclude_each_other(tmp_path: Path) -> None:
    locks = [DeviceLock(tmp_path, device) for device in ("cpu", "gpu-0")]
    for lock in locks:
        lock.acquire("m")
    assert all(lock.is_held for lock in locks)
    for lock in locks:
        lock.release()


def test_another_process_holds_it_until_it_dies(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        lock = DeviceLock(tmp_path)
        with pytest.raises(ModelResidentError, match=rf"process {process.pid}\).*some model"):
            lock.acquire("mine")
        # It has no chance to clean up.
        process.kill()
        assert process.wait() in (-signal.SIGTERM, -getattr(signal, "SIGKILL", 9), 1)
        lock.acquire("mine")
        lock.release()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x", "model": 1}', '{"model": "m"}'])
def test_a_damaged_note_beside_the_lock_does_no_harm(tmp_path: Path, text: str) -> None:
    first, second = DeviceLock(tmp_path), DeviceLock(tmp_path)
    first.acquire("m")
    (tmp_path / "cpu.json").write_text(text, encoding="utf-8")
    with pytest.raises(ModelResidentError, match="Another process holds a model"):
        second.acquire("n")
    first.release()


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    lock = DeviceLock(tmp_path / "file")
    with pytest.raises(InferenceError, match="Make that directory writable"):
        lock.acquire("m")
    assert not lock.is_held


def test_a_model_on_a_gpu_is_in_nobodys_way_on_the_host(tmp_path: Path) -> None:
    first, second = DeviceLocks(tmp_path), DeviceLocks(tmp_path)
    first.acquire("A")
    with pytest.raises(ModelResidentError, match="model A on the cpu"):
        second.acquire("B")
    first.settle("A", "gpu0")
    second.acquire("B")
    with pytest.raises(ModelResidentError, match="model A on the gpu0"):
        second.settle("B", "gpu0")
    # What was refused holds nothing; another model in the first one's place keeps the GPU's lock.
    first.acquire("C")
    second.acquire("B")
    second.settle("B", "cpu")
    with pytest.raises(ModelResidentError, match="model C on the gpu0"):
        second.settle("B", "gpu0")
    first.release()
    second.acquire("B")
    second.settle("B", "gpu0")
    second.release()
