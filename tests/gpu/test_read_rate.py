"""The rate of reads on a real GPU."""

from __future__ import annotations

import pytest

from kernels.device.driver import Device
from kernels.measure.read_rate import gpu_read_rate


def test_a_gpu_reads_at_a_rate_that_can_be(device: Device) -> None:
    """From the slowest laptop card to what no card of today reaches, so that no cache has answered."""
    first, again = gpu_read_rate(device), gpu_read_rate(device)
    assert 50e9 < first < 12e12
    assert again == pytest.approx(first, rel=0.15)
