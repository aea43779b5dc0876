"""The floor of decoding: bytes that a token must read, and how fast this device reads."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from inference.request import EngineReading

_BLOCK_BYTES = 256 << 20
_REPEATS = 5


@dataclass(frozen=True, slots=True)
class Roofline:
    """Bytes per token against the measured rate of reads.

    Attributes:
        weight_bytes: read once a token.
        kv_token_bytes: keys and values of one token, over all layers.
        read_bytes_s: bytes per second that the device reads; 0 where it was not measured.
    """

    weight_bytes: int
    kv_token_bytes: float
    read_bytes_s: float

    @classmethod
    def of(cls, reading: EngineReading, read_bytes_s: float) -> Roofline:
        """From what the memory plan has allocated."""
        return cls(reading.weight_bytes, reading.kv_bytes / max(1, reading.context_tokens), read_bytes_s)

    def token_bytes(self, context: float) -> float:
        """Bytes that a token reads with so many tokens in the cache."""
        return self.weight_bytes + self.kv_token_bytes * context

    def floor_tok_s(self, context: float) -> float:
        """Most tokens per second; 0 where the rate is not known."""
        return self.read_bytes_s / self.token_bytes(context) if self.token_bytes(context) else 0.0


def host_read_rate(threads: int) -> float:
    """Bytes per second at which `threads` threads read memory that no cache holds: the best of a few passes."""
    words = np.ones(_BLOCK_BYTES // 8, dtype=np.uint64)
    parts = np.array_split(words, threads)
    best = 0.0
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(_REPEATS):
            start = time.perf_counter()
            list(pool.map(np.bitwise_or.reduce, parts))
            best = max(best, words.nbytes / (time.perf_counter() - start))
    return best


def read_rate(backend: str, threads: int) -> float:
    """The rate of the device of a backend; 0 where its GPU cannot be opened any more."""
    if backend != "cuda":
        return host_read_rate(threads)
    from kernels.errors import KernelError
    from kernels.measure.read_rate import gpu_read_rate

    try:
        return gpu_read_rate()
    except KernelError:
        return 0.0
