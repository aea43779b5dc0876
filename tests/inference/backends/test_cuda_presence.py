"""Whether there is an NVIDIA GPU, by files alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from inference.backends.cuda_presence import has_nvidia_gpu

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")


def add_device(devices: Path, name: str, vendor: str, of_class: str) -> None:
    (devices / name).mkdir(parents=True)
    (devices / name / "vendor").write_text(f"{vendor}\n")
    (devices / name / "class").write_text(f"{of_class}\n")


def test_a_driver_or_a_display_device_of_nvidia_counts(tmp_path: Path) -> None:
    devices, driver = tmp_path / "devices", tmp_path / "nvidiactl"
    assert not has_nvidia_gpu((str(driver),), devices)
    add_device(devices, "0000:00:02.0", "0x8086", "0x030000")
    add_device(devices, "0000:01:00.1", "0x10de", "0x040300")
    (devices / "0000:00:1f.0").mkdir()
    assert not has_nvidia_gpu((str(driver),), devices), "another maker's display, and a sound device"
    add_device(devices, "0000:01:00.0", "0x10de", "0x030200")
    assert has_nvidia_gpu((str(driver),), devices)
    driver.touch()
    assert has_nvidia_gpu((str(driver),), tmp_path / "none")
