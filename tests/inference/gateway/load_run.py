"""Many clients at once against a real model, for tests and by hand:

python -m tests.inference.gateway.load_run --seconds 120     32 clients; every answer is compared
python -m tests.inference.gateway.load_run --figures         throughput of 1, 8 and 16, and a hotkey under load

Both take another model and another backend, with longer answers where those are fast:
    --model random:qwen2.5-3b:w4 --backend cuda --context 32768 --tokens 256

--figures --peer URL                                         the same throughput of another OpenAI-compatible server
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import httpx2
import psutil

from inference.engine.worker import Worker
from inference.formats.random_model import PREFIX
from inference.request import (
    DoneEvent,
    GenerationRequest,
    Message,
    Priority,
    RequestEvent,
    SamplingParams,
    TokenEvent,
)
from tests.inference.gateway.real_gateway import SMOLLM2, RealGateway, served

CLIENTS = 32
TOPICS = (
    "the sea",
    "a horse",
    "Paris",
    "glass",
    "rain",
    "salt",
    "a king",
    "bread",
    "a ship",
    "the moon",
    "wool",
    "ink",
)
TIMEOUT_S = 120.0


def requests(model: str, max_tokens: Sequence[int] = (6, 12, 20)) -> list[dict[str, Any]]:
    """Chats of different lengths, all greedy; some share the beginning of their prompts."""
    return [
        {
            "model": model,
            "temperature": 0,
            "max_tokens": max_tokens[number % len(max_tokens)],
            "messages": [
                {"role": "system", "content": "You answer briefly. " * (1 + number % 4)},
                {"role": "user", "content": f"Tell me about {topic}."},
            ],
        }
        for number, topic in enumerate(TOPICS)
    ]


async def text_of(client: httpx2.AsyncClient, body: dict[str, Any]) -> str | int:
    """The answer, streamed or whole; or the status of a refusal."""
    async with client.stream("POST", "chat/completions", json=body) as response:
        content = (await response.aread()).decode()
    if response.status_code != 200:
        return response.status_code
    if not body.get("stream"):
        return str(json.loads(content)["choices"][0]["message"]["content"])
    lines = [line.removeprefix("data: ") for line in content.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return "".join(json.loads(line)["choices"][0]["delta"].get("content", "") for line in lines[:-1])


@dataclass(slots=True)
class Report:
    """What became of a load.

    Attributes:
        wrong: what was neither the right answer nor a 429.
        grown_bytes: of the process, from a third of the time to its end.
    """

    answers: int = 0
    refused: int = 0
    wrong: list[str | int] = field(default_factory=list)
    grown_bytes: int = 0
    pages_before: int = 0
    pages_after: int = 0


def run_load(gateway: RealGateway, seconds: float, clients: int = CLIENTS) -> Report:
    """Keeps clients asking for so long."""
    return asyncio.run(_load(gateway, seconds, clients))


async def _load(gateway: RealGateway, seconds: float, clients: int) -> Report:
    report, process, choose = Report(), psutil.Process(), random.Random(5)
    limits = httpx2.Limits(max_connections=clients)
    async with httpx2.AsyncClient(base_url=gateway.url, timeout=TIMEOUT_S, limits=limits) as client:
        bodies = requests(gateway.model)
        alone = [await text_of(client, body) for body in bodies]
        report.pages_before = gateway.worker.reading().pages_free
        end = time.monotonic() + seconds

        async def ask() -> None:
            while time.monotonic() < end:
                number = choose.randrange(len(bodies))
                answer = await text_of(client, {**bodies[number], "stream": choose.random() < 0.5})
                if answer == 429:
                    report.refused += 1
                    await asyncio.sleep(0.1)
                elif answer == alone[number]:
                    report.answers += 1
                else:
                    report.wrong.append(answer)

        async def measure() -> None:
            await asyncio.sleep(seconds / 3)
            report.grown_bytes = -process.memory_info().rss

        await asyncio.gather(measure(), *(ask() for _ in range(clients)))
    report.grown_bytes += process.memory_info().rss
    report.pages_after = gateway.worker.reading().pages_free
    return report


def run_disconnects(gateway: RealGateway, count: int = 100, max_tokens: int = 100) -> tuple[list[Any], list[Any]]:
    """Four streams, while others hang up at random places; the streams' answers, and those of the same alone."""
    return asyncio.run(_disconnects(gateway, count, max_tokens))


async def _disconnects(gateway: RealGateway, count: int, max_tokens: int) -> tuple[list[Any], list[Any]]:
    bodies = [{**body, "stream": True} for body in requests(gateway.model, (max_tokens,))]
    choose = random.Random(7)
    async with httpx2.AsyncClient(base_url=gateway.url, timeout=TIMEOUT_S) as client:
        alone = [await text_of(client, body) for body in bodies[:4]]

        async def leave() -> None:
            body = bodies[choose.randrange(4, len(bodies))]
            patience_s = choose.choice((0.0, 0.001, 0.02, 0.1, 0.3))
            try:
                async with (
                    asyncio.timeout(patience_s),
                    client.stream("POST", "chat/completions", json=body) as response,
                ):
                    async for _ in response.aiter_bytes():
                        pass
            except TimeoutError:
                pass

        async def leave_all() -> None:
            for start in range(0, count, 5):
                await asyncio.gather(*(leave() for _ in range(min(5, count - start))))

        *streams, _ = await asyncio.gather(*(text_of(client, body) for body in bodies[:4]), leave_all())
    return streams, alone


# -- figures ----------------------------------------------------------------------------------------------------------


class Served(Protocol):
    """What is asked: our gateway, or another server; `url` ends in /v1."""

    url: str
    model: str


@dataclass(slots=True)
class Peer:
    """A server of somebody else's."""

    url: str
    model: str


def throughput(gateway: Served, width: int, max_tokens: int = 48) -> float:
    """Tokens per second of so many requests at once; eight or more in all."""

    async def run() -> float:
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=TIMEOUT_S) as client:
            begun, tokens = time.perf_counter(), 0
            for body in requests(gateway.model, (max_tokens,))[: max(1, 8 // width)]:
                made = [client.post("chat/completions", json=body | {"seed": number}) for number in range(width)]
                tokens += sum(each.json()["usage"]["completion_tokens"] for each in await asyncio.gather(*made))
            return tokens / (time.perf_counter() - begun)

    return asyncio.run(run())


_NOTE = "Ben calls the printer's service by Wednesday, and Anna sends the texts to Chen. " * 6


def first_token_s(worker: Worker, text: str) -> float:
    """Seconds from a hotkey's request to its first token."""
    ended, found = threading.Event(), list[float]()
    begun = time.perf_counter()

    def hear(event: RequestEvent) -> None:
        if isinstance(event, TokenEvent) and not found:
            found.append(time.perf_counter() - begun)
        if isinstance(event, DoneEvent):
            ended.set()

    message = Message("user", f"Summarize a note about {text}. " + _NOTE)
    worker.submit(GenerationRequest((message,), SamplingParams(max_new_tokens=3), Priority.ACTION), hear)
    assert ended.wait(TIMEOUT_S)
    return found[0]


class Background:
    """Eight API requests; each that ends is followed by its like, until it is left.

    Attributes:
        gaps_s: from each token of the first one to its next.
    """

    def __init__(self, gateway: RealGateway) -> None:
        self._worker = gateway.worker
        # A random model hardly ever says an end token; and a bias has the host choose, which is not what is measured.
        self._endless = SamplingParams(max_new_tokens=4000) if gateway.model.startswith(PREFIX) else _LONG
        self.gaps_s: list[float] = []
        self._last = 0.0
        self._grown = threading.Condition()
        self._request_ids: dict[int, str] = {}
        self._is_left = False

    def __enter__(self) -> Background:
        for number in range(8):
            self._submit(number)
        self.wait_for_steps(1)
        return self

    def _submit(self, number: int) -> None:
        message = Message("user", f"Write a long story about {TOPICS[number]}.")
        request = GenerationRequest((message,), self._endless, Priority.API)
        self._request_ids[number] = request.request_id
        self._worker.submit(request, functools.partial(self._hear, number))

    def wait_for_steps(self, count: int) -> None:
        """Returns when the first request has got so many more tokens."""
        with self._grown:
            end = len(self.gaps_s) + count
            assert self._grown.wait_for(lambda: len(self.gaps_s) >= end, TIMEOUT_S)

    def _hear(self, number: int, event: RequestEvent) -> None:
        now = time.perf_counter()
        if isinstance(event, DoneEvent):
            if not self._is_left:
                self._submit(number)
            self._last = 0.0 if number == 0 else self._last
        elif number == 0 and isinstance(event, TokenEvent):
            with self._grown:
                if self._last:
                    self.gaps_s.append(now - self._last)
                self._last = now
                self._grown.notify_all()

    def __exit__(self, *_: object) -> None:
        self._is_left = True
        for request_id in self._request_ids.values():
            self._worker.cancel(request_id)


_LONG = SamplingParams(max_new_tokens=600, logit_bias=((2, -100.0), (0, -100.0)))  # end tokens, so that it goes on


_WORDS = ("in a hurry", "on the way", "at once")
_PAUSE_STEPS = 20
"""A hotkey comes now and then, not at the heels of another one, whose place is just being given back."""


def _after_pause(worker: Worker, background: Background, text: str) -> float:
    background.wait_for_steps(_PAUSE_STEPS)
    time.sleep(random.uniform(0, statistics.median(background.gaps_s)))  # at any time in a step
    return first_token_s(worker, text)


def print_throughput(gateway: Served, max_tokens: int) -> None:
    """Medians of rounds that take turns."""
    widths = (1, 8, 16)
    throughput(gateway, 8, 8)
    rounds = [[throughput(gateway, width, max_tokens) for width in widths] for _ in range(3)]
    one, *more = (statistics.median(figures) for figures in zip(*rounds, strict=True))
    figures = ", ".join(
        f"{width} requests {rate:.0f} ({rate / one:.2f} times)" for width, rate in zip(widths[1:], more, strict=True)
    )
    print(f"tokens per second: 1 request {one:.0f}, {figures}")  # noqa: T201


def print_figures(gateway: RealGateway, max_tokens: int) -> None:
    """Throughput and a hotkey's first token, medians."""
    print_throughput(gateway, max_tokens)
    idle = statistics.median(
        first_token_s(gateway.worker, f"{topic} {word} at rest") for word in _WORDS for topic in TOPICS
    )
    with Background(gateway) as background:
        late = [_after_pause(gateway.worker, background, f"{topic} {word}") for word in _WORDS for topic in TOPICS]
        loaded = statistics.median(late)
    step = statistics.median(background.gaps_s)
    print(  # noqa: T201
        f"first token of a hotkey: idle {1000 * idle:.1f} ms, beside 8 requests {1000 * loaded:.1f} ms; a step of"
        f" these {1000 * step:.1f} ms; {(loaded - idle) / step:.2f} steps later"
    )


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--figures", action="store_true")
    parser.add_argument("--model", default=SMOLLM2, help="of the catalog, or random:SHAPE:SCHEME")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--context", type=int, default=8192, help="tokens for all requests together")
    parser.add_argument("--tokens", type=int, default=48, help="of each answer in --figures")
    parser.add_argument("--peer", default="", metavar="URL", help="of a server, with /v1; --model is its name there")
    chosen = parser.parse_args()
    if chosen.peer:
        print_throughput(Peer(chosen.peer, chosen.model), chosen.tokens)
        return
    with (
        tempfile.TemporaryDirectory() as folder,
        served(chosen.model, Path(folder), chosen.context, chosen.backend) as gateway,
    ):
        if chosen.figures:
            print_figures(gateway, chosen.tokens)
            return
        print(run_load(gateway, chosen.seconds))  # noqa: T201
        streams, alone = run_disconnects(gateway)
        print("100 disconnects:", "the four streams are as alone" if streams == alone else "DIFFERENT")  # noqa: T201


if __name__ == "__main__":
    main()
