"""Bytes of a token and the rate of reads."""

from __future__ import annotations

import pytest

from app.bench.roofline import Roofline, host_read_rate, read_rate
from inference.request import EngineReading


def test_a_token_reads_the_weights_and_what_is_in_the_cache() -> None:
    reading = EngineReading(weight_bytes=1_000_000, kv_bytes=409_600, context_tokens=4096)
    roofline = Roofline.of(reading, 2e9)
    assert roofline.token_bytes(0) == 1_000_000
    assert roofline.token_bytes(1000) == 1_100_000
    assert roofline.floor_tok_s(1000) == pytest.approx(2e9 / 1.1e6)


def test_a_reading_without_anything_divides_by_nothing() -> None:
    assert Roofline.of(EngineReading(), 1e9).floor_tok_s(0) == 0


def test_host_memory_has_a_rate() -> None:
    assert 1e8 < host_read_rate(1) < 1e12


def test_a_gpu_that_is_gone_has_no_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    from kernels.errors import KernelError
    from kernels.measure import read_rate as module

    def gone() -> float:
        raise KernelError("gone")

    monkeypatch.setattr(module, "gpu_read_rate", gone)
    assert read_rate("cuda", 1) == 0.0
