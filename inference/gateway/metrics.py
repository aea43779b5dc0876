"""Figures of the gateway and the engine for Prometheus: requests, tokens, latencies, queue, memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from inference.request import DoneEvent, EngineReading

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class _EngineCollector(Collector):
    """The engine's own figures, read when they are asked for."""

    def __init__(self, reading: Callable[[], EngineReading]) -> None:
        self._reading = reading

    def collect(self) -> Iterator[Metric]:
        now = self._reading()
        figures = {
            "requests_running": ("Requests that get tokens now.", now.running),
            "requests_waiting": ("Requests that wait for the engine.", now.waiting),
            "kv_pages": ("Pages of the KV cache.", now.pages_total),
            "kv_pages_free": ("Pages that can be had.", now.pages_free),
            "weight_bytes": ("Memory of the weights.", now.weight_bytes),
            "kv_bytes": ("Memory of the KV cache.", now.kv_bytes),
            "workspace_bytes": ("Memory of activations and workspace.", now.workspace_bytes),
            "peak_bytes": ("Most memory that was reserved on the GPU.", now.peak_bytes),
        }
        for name, (text, value) in figures.items():
            yield GaugeMetricFamily(f"deskinfer_{name}", text, float(value))


class Metrics:
    """Counts what the gateway has done."""

    def __init__(self, reading: Callable[[], EngineReading]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_EngineCollector(reading))
        self._answers = Counter("deskinfer_answers", "Answers that ended.", ["reason"], registry=self._registry)
        self._refused = Counter("deskinfer_errors", "Requests that got an error.", ["code"], registry=self._registry)
        self._tokens = Counter("deskinfer_tokens", "Tokens.", ["kind"], registry=self._registry)
        self._queue = self._histogram("deskinfer_queue_seconds", "From the request to its first step.")
        self._first = self._histogram("deskinfer_first_token_seconds", "From the request to its first token.")
        self._decode = self._histogram("deskinfer_token_seconds", "From one token to the next, mean of an answer.")

    def _histogram(self, name: str, text: str) -> Histogram:
        return Histogram(name, text, buckets=_SECONDS, registry=self._registry)

    def ended(self, event: DoneEvent) -> None:
        """An answer has ended."""
        usage = event.usage
        self._answers.labels(event.finish_reason).inc()
        self._tokens.labels("prompt").inc(usage.prompt_tokens)
        self._tokens.labels("cached").inc(usage.cached_tokens)
        self._tokens.labels("new").inc(usage.new_tokens)
        self._queue.observe(usage.queue_ms / 1000)
        if usage.new_tokens:
            self._first.observe(usage.time_to_first_token_ms / 1000)
        if usage.new_tokens > 1:
            self._decode.observe(usage.decode_ms / 1000 / (usage.new_tokens - 1))

    def refused(self, code: str) -> None:
        """A request got an error."""
        self._refused.labels(code).inc()

    def text(self) -> bytes:
        """All figures, as Prometheus reads them."""
        return generate_latest(self._registry)
