"""pool.c: every chunk of every job runs exactly once, whatever the helpers do."""

from __future__ import annotations

import time

import numpy as np
import pytest

from kernels.cpu import library as lib


@pytest.fixture
def library():
    return lib.load_library()


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("chunks", [1, 2, 7, 100])
def test_every_chunk_runs_once_in_each_job(library, threads, chunks):
    pool = library.pool_create(threads)
    counts = np.zeros(chunks + 1, np.int32)
    library.pool_count(pool, counts.ctypes.data, chunks, 500)
    library.pool_destroy(pool)
    assert (counts[:-1] == 500).all()
    assert counts[-1] == 0


def test_helpers_that_sleep_wake_up(library):
    pool = library.pool_create(3)
    counts = np.zeros(64, np.int32)
    for _ in range(5):
        time.sleep(0.01)  # far longer than they spin
        library.pool_count(pool, counts.ctypes.data, 64, 1)
    library.pool_destroy(pool)
    assert (counts == 5).all()


def test_pools_come_and_go(library):
    for threads in (2, 4, 2, 4) * 10:
        pool = library.pool_create(threads)
        assert library.pool_threads(pool) == threads
        library.pool_destroy(pool)


def test_sizes_are_held_to_their_limits(library):
    for asked, given in ((0, 1), (-3, 1), (1000, 64)):
        pool = library.pool_create(asked)
        assert library.pool_threads(pool) == given
        library.pool_destroy(pool)
