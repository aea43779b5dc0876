"""llama.cpp as a peer, through its own benchmark program."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from app.bench.figures import DECODE_TOK_S, PREFILL_TOK_S, TTFT_MS
from app.bench.peers import PeerError, PeerResult, Progress, run_program
from app.bench.protocol import DECODE, PREFILL, Case, Plan


@dataclass(frozen=True)
class LlamaBench:
    """`llama-bench` on a GGUF file: the same lengths as ours, flash attention, its default batch.

    It times the computation of a prompt or of tokens, without a tokenizer or a sampler.

    Attributes:
        threads: 0 puts all layers on the GPU; else the CPU computes with so many threads.
    """

    program: str
    gguf: str
    threads: int = 0
    name: str = "llama.cpp"

    def measure(self, plan: Plan, progress: Progress) -> PeerResult:
        """See Peer. Two runs, because one would also compute every prompt at every depth."""
        if not self.gguf:
            raise PeerError("llama-bench needs a model: --gguf FILE")
        result = PeerResult(self.name)
        if plan.prompts:
            progress(f"{self.name}, prefill")
            self._run(plan, [*self._lengths("-p", plan.prompts), "-n", "0"], result)
        if plan.depths:
            progress(f"{self.name}, decode")
            self._run(plan, ["-p", "0", "-n", str(plan.decode_tokens), *self._lengths("-d", plan.depths)], result)
        return result

    @staticmethod
    def _lengths(option: str, lengths: Sequence[int]) -> list[str]:
        return [option, ",".join(map(str, lengths))]

    def _run(self, plan: Plan, lengths: Sequence[str], result: PeerResult) -> None:
        device = ["-ngl", "0", "-t", str(self.threads)] if self.threads else ["-ngl", "99"]
        command = [self.program, "-m", self.gguf, *device, "-fa", "1", "-r", str(plan.repeats), "-o", "json", *lengths]
        try:
            entries = json.loads(run_program(command))
            for entry in entries:
                _read(entry, result)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise PeerError(f"{self.program} printed what is no list of its results ({error!r}).") from error


def _read(entry: dict[str, object], result: PeerResult) -> None:
    samples = entry["samples_ts"]
    if not isinstance(samples, list):
        raise TypeError("samples_ts")
    prompt, new = int(str(entry["n_prompt"])), int(str(entry["n_gen"]))
    case = Case(DECODE, int(str(entry.get("n_depth", 0)))) if new else Case(PREFILL, prompt)
    for tok_s in samples:
        result.figures.add(case, {DECODE_TOK_S: tok_s} if new else _prefill(prompt, tok_s))
    size = float(str(entry.get("model_size", 0))) / 1e6
    result.note = f"build {entry.get('build_commit', '?')}, {entry.get('model_type', '?')}, {size:,.0f} MB"


def _prefill(tokens: int, tok_s: float) -> dict[str, float]:
    return {PREFILL_TOK_S: tok_s, TTFT_MS: 1000.0 * tokens / tok_s}
