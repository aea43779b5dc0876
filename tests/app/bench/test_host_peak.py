"""The memory that a run watches."""

from __future__ import annotations

from app.bench.host_peak import PeakMemory


def test_peak_memory_sees_a_large_block() -> None:
    with PeakMemory() as before:
        pass
    with PeakMemory() as memory:
        block = bytearray(64 << 20)
        block[::4096] = b"x" * len(block[::4096])
    assert memory.peak_bytes >= before.peak_bytes
    assert memory.peak_bytes > len(block)
