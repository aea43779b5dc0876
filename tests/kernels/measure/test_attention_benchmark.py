"""The benchmark of attention among its neighbours, on an emulated GPU: what it queues, and its table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from kernels.measure import attention_benchmark
from kernels.measure.attention_benchmark import Chain, report
from kernels.measure.gpu_benchmark import Bench, model
from tests.inference.backends.emulated_gpu import EmulatedGpu

SMALL = model("small", 2, 256, 384, 768, 1000, "w4g128", "w3g128")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(EmulatedGpu, "total_bytes", 256 << 20)
    return Bench(EmulatedGpu(), tokens=2)  # type: ignore[arg-type]


def test_a_layer_is_four_products_and_attention_between_them(bench: Bench) -> None:
    chain = Chain(bench, SMALL, (2, 2), most_context=256)
    gpu = bench.device
    for context, attention in ((1, False), (1, True), (200, True)):
        chain.set_context(context)
        gpu.launched.clear()  # type: ignore[attr-defined]
        chain.queue(attention)
        layer = ["matvec", *["attention_decode"] * attention, "matvec", "matvec", "matvec"]
        assert gpu.launched == layer * 2  # type: ignore[attr-defined]
    chain.close()


def test_the_table_has_what_attention_adds(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def milliseconds(queue: Callable[[], None]) -> float:
        bench.device.launched.clear()  # type: ignore[attr-defined]
        queue()
        launched = Counter(bench.device.launched)  # type: ignore[attr-defined]
        return 0.002 * launched["matvec"] + 0.005 * launched["attention_decode"]

    monkeypatch.setattr(bench, "milliseconds", milliseconds)
    monkeypatch.setattr(attention_benchmark, "CONTEXTS", (64, 130))
    monkeypatch.setitem(attention_benchmark.HEADS, "small", (2, 2))
    lines: list[str] = []
    report(bench, lines.append, (SMALL,))
    assert lines[-1].split() == ["small", "8.00", "+5.00", "+5.00"]
