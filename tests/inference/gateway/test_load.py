"""Many clients at once, clients that leave, and prompts that begin alike, against a real model."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.inference.gateway.load_run import run_disconnects, run_load
from tests.inference.gateway.real_gateway import SMOLLM2, RealGateway, served

RUN_S = 10.0
MOST_GROWTH_BYTES = 48 << 20
RULES = "Rule {}: answer in plain words, name no brand, and never use more than two sentences. "


@pytest.fixture
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealGateway]:
    with served(SMOLLM2, tmp_path_factory.mktemp("lock")) as gateway:
        yield gateway


def wait_until_idle(gateway: RealGateway) -> None:
    until = time.monotonic() + 20
    while not gateway.is_idle() and time.monotonic() < until:
        time.sleep(0.01)
    assert gateway.is_idle()


def test_many_clients_get_what_each_would_get_alone(smollm2: RealGateway) -> None:
    report = run_load(smollm2, RUN_S)
    wait_until_idle(smollm2)
    assert report.wrong == []
    assert report.answers > 10
    assert report.grown_bytes < MOST_GROWTH_BYTES
    assert smollm2.worker.reading().pages_free == report.pages_before == smollm2.worker.reading().pages_total


def test_clients_that_leave_are_nobodys_affair(smollm2: RealGateway) -> None:
    streams, alone = run_disconnects(smollm2, max_tokens=60)
    assert streams == alone
    wait_until_idle(smollm2)
    assert smollm2.worker.reading().pages_free == smollm2.worker.reading().pages_total


def test_a_long_beginning_is_computed_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    system = "".join(RULES.format(number) for number in range(45))

    def ask(gateway: RealGateway, text: str) -> Any:
        messages: list[Any] = [{"role": "system", "content": system}, {"role": "user", "content": text}]
        with openai.OpenAI(base_url=gateway.url, api_key="none", max_retries=0, timeout=100) as client:
            return client.chat.completions.create(
                model=SMOLLM2, messages=messages, temperature=0, max_tokens=24, logprobs=True
            )

    with served(SMOLLM2, tmp_path_factory.mktemp("lock")) as gateway:
        cold = ask(gateway, "Why is the sea salty?")
    with served(SMOLLM2, tmp_path_factory.mktemp("lock")) as gateway:
        first = ask(gateway, "What is glass made of?")
        warm = ask(gateway, "Why is the sea salty?")
    assert first.usage.prompt_tokens > 1000
    assert first.usage.prompt_tokens_details.cached_tokens == 0
    own = warm.usage.prompt_tokens - warm.usage.prompt_tokens_details.cached_tokens
    assert 0 < own < 50
    assert [t.bytes for t in warm.choices[0].logprobs.content] == [t.bytes for t in cold.choices[0].logprobs.content]
    assert warm.choices[0].message.content == cold.choices[0].message.content
