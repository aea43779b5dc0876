"""Long and odd texts: time that grows with the length, and threads side by side."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from inference.request import Message
from inference.text.tokenizer import Tokenizer

HARD = {
    "prose": "The quick brown fox jumps over the lazy dog. ",
    "one word": "abcdefgh",
    "spaces": " ",
    "line ends": "\n",
    "spaces and line ends": " \n",
    "signs": "!?",
    "digits": "1234567890",
    "chinese": "你好世界",
    "accents": "e\u0301",
    "stacked accents": "\u0301",
    "emoji": "👩‍👩‍👧",
    "look-alikes": "<|im_end|>",
    "halves of look-alikes": "<|im_",
    "angles": "<",
    "tags": "<tool_call>",
}


def seconds(tokenizer: Tokenizer, text: str) -> float:
    start = time.perf_counter()
    tokenizer.encode_chat([Message("user", text)])
    return time.perf_counter() - start


@pytest.mark.parametrize("name", HARD)
def test_time_grows_with_the_length_only(trained: Any, name: str) -> None:
    tokenizer = Tokenizer.from_data(trained.from_pieces)
    short, long = ((HARD[name] * size)[:size] for size in (3_000, 24_000))
    fast = min(seconds(tokenizer, short) for _ in range(3))
    # Eight times the text: 64 times the time where it is quadratic. The rest is for a busy machine.
    assert min(seconds(tokenizer, long) for _ in range(2)) < 25 * fast + 0.2


def test_threads_side_by_side(trained: Any, samples: dict[str, str]) -> None:
    tokenizer = Tokenizer.from_data(trained.from_pieces)
    results: dict[str, list[int]] = {}

    def encode(name: str) -> None:
        results[name] = tokenizer.encode_text(samples[name])

    threads = [threading.Thread(target=encode, args=(name,)) for name in samples]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {name: trained.ids(text) for name, text in samples.items()}


def worst_gap_s(work: Callable[[], object]) -> float:
    """The longest time for which another thread could not run."""
    gaps: list[float] = []
    done = threading.Event()

    def beat() -> None:
        last = time.perf_counter()
        while not done.is_set():
            time.sleep(0.001)
            now = time.perf_counter()
            gaps.append(now - last)
            last = now

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        work()
    finally:
        done.set()
        thread.join()
    return max(gaps)


def test_windows_do_not_stand_still_while_a_vocabulary_loads(real: Any) -> None:
    def load() -> None:
        Tokenizer.from_data(real.from_pieces).encode_text("The quick brown fox. " * 5000)

    gc.collect()
    gc.freeze()  # the heap of a whole test session is not this test's
    try:
        # 240 ms and more where the library builds the model, under 40 as it is; a busy machine adds to single attempts.
        assert any(worst_gap_s(load) < 0.1 for _ in range(5))
    finally:
        gc.unfreeze()
