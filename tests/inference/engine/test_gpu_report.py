"""gpu_report.py: what people are told of the GPU, or why it is not used."""

from __future__ import annotations

import pytest

from inference.engine.gpu_report import GpuReport, gpu_report
from inference.errors import BackendUnavailableError
from kernels.compile import compiler
from kernels.errors import CompileError, DeviceError


class FakeDevice:
    name = "Card"
    capability = (8, 6)
    total_bytes = 4 << 30
    context_bytes = 300 << 20
    sm_count = 16
    driver_version = 12080
    closed = 0

    def free_bytes(self) -> int:
        return 3 << 30

    def close(self) -> None:
        FakeDevice.closed += 1


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> type[FakeDevice]:
    monkeypatch.setattr(FakeDevice, "closed", 0)
    monkeypatch.setattr("kernels.device.driver.Device", FakeDevice)
    return FakeDevice


def test_the_gpu_is_described_and_closed(card: type[FakeDevice]) -> None:
    version = compiler.nvrtc_version()
    assert gpu_report() == GpuReport("Card", (8, 6), 4 << 30, 3 << 30, 300 << 20, 16, (12, 8), version, "sm_86")
    assert card.closed == 1


def test_a_gpu_that_cannot_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise DeviceError("the driver is too old. Update it")

    monkeypatch.setattr("kernels.device.driver.Device", fails)
    with pytest.raises(BackendUnavailableError) as caught:
        gpu_report()
    assert (caught.value.backend, caught.value.reason) == ("cuda", "the driver is too old. Update it")


def test_a_compiler_that_is_missing(card: type[FakeDevice], monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> tuple[int, int]:
        raise CompileError("The compiler is missing.")

    monkeypatch.setattr(compiler, "nvrtc_version", missing)
    with pytest.raises(BackendUnavailableError, match="compiler is missing"):
        gpu_report()
    assert card.closed == 1
