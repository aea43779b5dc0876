"""Any OpenAI-compatible server as a peer (Ollama, vLLM, llama-server): streamed answers, timed from outside."""

from __future__ import annotations

import http.client
import json
import random
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from app.bench.figures import DECODE_TOK_S, NEW_TOKENS, PREFILL_TOK_S, PROMPT_TOKENS, TTFT_MS, WALL_MS
from app.bench.peers import PeerError, PeerResult, Progress
from app.bench.protocol import CHAT, DECODE, PREFILL, Case, Plan, chat_messages

_TIMEOUT_S = 600.0
# One token each in the vocabularies of today; what the server counts is what is reported.
_WORDS = "the of and to in is on by it or be at as an we us if do go my up so no he".split()
# The template and the task around the words.
_OVERHEAD_TOKENS = 30
_LONG_TASK = "Write the numbers from 1 to 500, separated by spaces."


@dataclass(frozen=True)
class ChatServer:
    """A server and one of its models.

    Attributes:
        url: with or without /v1.
        api_key: sent as a bearer token where it is not empty.
    """

    url: str
    model: str
    api_key: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        """The host, as the table calls it."""
        return urllib.parse.urlsplit(self.url).netloc or self.url

    def measure(self, plan: Plan, progress: Progress) -> PeerResult:
        """See Peer. Prompts of a length are made of words; speeds count the tokens that the server reports."""
        result = PeerResult(self.name, note=self.model)
        for run in range(plan.repeats + 1):
            for case in plan.cases:
                progress(f"{self.name}, {case.what} {case.n}, {'warm-up' if run == 0 else f'{run} of {plan.repeats}'}")
                answer = self._ask(_messages(case, run), plan.new_tokens_of(case))
                if run > 0:
                    result.figures.add(case, answer.figures(case))
        return result

    def _ask(self, messages: list[dict[str, str]], max_tokens: int) -> _Answer:
        body = {
            "model": self.model,
            "messages": messages,
            "max_tokens": max_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        parts = urllib.parse.urlsplit(self.url)
        connect = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        path = parts.path.rstrip("/")
        path = path if path.endswith("/v1") else f"{path}/v1"
        headers = {"Content-Type": "application/json"}
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        try:
            connection = connect(parts.netloc, timeout=_TIMEOUT_S)
            try:
                answer = _Answer(time.perf_counter())
                connection.request("POST", f"{path}/chat/completions", json.dumps(body).encode(), headers)
                answer.read(connection.getresponse())
            finally:
                connection.close()
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise PeerError(f"The server at {self.url} does not answer as it should: {error}") from error
        return answer


@dataclass
class _Answer:
    """One streamed answer; times in seconds of the same clock."""

    sent_at: float
    first_at: float = 0.0
    last_at: float = 0.0
    done_at: float = 0.0
    chunks: int = 0
    prompt_tokens: int = 0
    new_tokens: int = 0

    def read(self, response: http.client.HTTPResponse) -> None:
        if response.status != 200:
            text = response.read(500).decode(errors="replace").strip()
            raise PeerError(f"The server answers with status {response.status}: {text}")
        for event in _events(response):
            now = time.perf_counter()
            if event.get("error"):
                raise PeerError(f"The server reports an error: {event['error']}")
            usage = event.get("usage") or {}
            self.prompt_tokens = usage.get("prompt_tokens", self.prompt_tokens)
            self.new_tokens = usage.get("completion_tokens", self.new_tokens)
            if any(_has_text(choice) for choice in event.get("choices") or ()):
                self.chunks += 1
                self.first_at, self.last_at = self.first_at or now, now
        self.done_at = time.perf_counter()
        if not self.chunks:
            raise PeerError("The server's answer holds no text.")

    def figures(self, case: Case) -> dict[str, float]:
        """Figures of a case. Where the server counts no tokens, a chunk is taken for one."""
        to_first, decode = self.first_at - self.sent_at, self.last_at - self.first_at
        new = self.new_tokens or self.chunks
        found: dict[str, float] = {TTFT_MS: 1000.0 * to_first, PROMPT_TOKENS: self.prompt_tokens, NEW_TOKENS: new}
        if self.prompt_tokens and case.what != DECODE:
            found[PREFILL_TOK_S] = self.prompt_tokens / to_first
        if case.what != PREFILL and new > 1 and decode > 0:
            found[DECODE_TOK_S] = (new - 1) / decode
        if case.what == CHAT:
            found[WALL_MS] = 1000.0 * (self.done_at - self.sent_at)
        return found


def _has_text(choice: dict[str, Any]) -> bool:
    delta = choice.get("delta") or {}
    return any(delta.get(name) for name in ("content", "reasoning_content", "reasoning"))


def _events(response: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """The JSON objects of a stream of server-sent events."""
    while line := response.readline():
        data = line.decode(errors="replace").strip()
        if data.startswith("data:"):
            data = data.removeprefix("data:").strip()
            if data == "[DONE]":
                return
            event = json.loads(data)
            if isinstance(event, dict):
                yield event


def _messages(case: Case, run: int) -> list[dict[str, str]]:
    if case.what == CHAT:
        system, user = chat_messages(case.n, run)
        return [{"role": "system", "content": system}, {"role": "user", "content": user}]
    words = random.Random(f"{case.what} {case.n} {run}").choices(_WORDS, k=max(0, case.n - _OVERHEAD_TOKENS))
    task = f"[{run}] {' '.join(words)}"
    return [{"role": "user", "content": f"{task}\n{_LONG_TASK}" if case.what == DECODE else task}]
