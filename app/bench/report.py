"""All figures of one run, for a program: the JSON file. The page for people is app.bench.page."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass

from app.bench.figures import Figures
from app.bench.machine import Machine
from app.bench.peers import PeerResult
from app.bench.protocol import DECODE, Plan
from app.bench.roofline import Roofline

SCHEMA = 2
MEMORY_FACTOR = 1.6
MEMORY_EXTRA_BYTES = 600 * 1000 * 1000


def memory_limit_bytes(file_bytes: int) -> int:
    """Most main memory that the process may take for a model file of this size, computing on the CPU."""
    return int(file_bytes * MEMORY_FACTOR) + MEMORY_EXTRA_BYTES


@dataclass(frozen=True, slots=True)
class Loaded:
    """The model and what it took.

    Attributes:
        load_s: seconds of each load, the first one first; later ones find files in the page cache and kernels compiled.
        file_bytes: of the model's files; 0 for random weights.
        weight_bytes, kv_bytes, workspace_bytes: as planned and allocated.
        device_peak_bytes: most memory reserved on the GPU; 0 on the CPU.
        host_peak_bytes: largest resident size of the process.
    """

    model: str
    backend: str
    threads: int
    context_tokens: int
    load_s: tuple[float, ...]
    file_bytes: int
    weight_bytes: int
    kv_bytes: int
    workspace_bytes: int
    device_peak_bytes: int
    host_peak_bytes: int


@dataclass(frozen=True)
class Report:
    """All figures of one run.

    Attributes:
        skipped: why cases were left out, () where none was.
    """

    loaded: Loaded
    machine: Machine
    plan: Plan
    roofline: Roofline
    ours: Figures
    peers: tuple[PeerResult, ...] = ()
    skipped: tuple[str, ...] = ()

    def context_at(self, depth: int) -> float:
        """Tokens in the cache while decoding behind `depth`, on average."""
        return depth + self.plan.decode_tokens / 2

    def as_json(self) -> str:
        """Every measurement, with the machine, the date and the command."""
        return json.dumps(
            {
                "schema": SCHEMA,
                "machine": dataclasses.asdict(self.machine),
                "plan": dataclasses.asdict(self.plan),
                "model": dataclasses.asdict(self.loaded),
                "roofline": self._roofline(),
                "ours": self.ours.as_json(),
                "peers": [_peer(peer) for peer in self.peers],
                "skipped": self.skipped,
            },
            indent=1,
            ensure_ascii=False,
        )

    def _roofline(self) -> dict[str, object]:
        depths = [
            {
                "depth": depth,
                "token_bytes": round(self.roofline.token_bytes(self.context_at(depth))),
                "floor_tok_s": round(self.roofline.floor_tok_s(self.context_at(depth)), 1),
            }
            for depth in (case.n for case in self.plan.cases if case.what == DECODE)
        ]
        return {"read_bytes_s": round(self.roofline.read_bytes_s), "depths": depths}


def _peer(peer: PeerResult) -> dict[str, object]:
    plain = {each.name: getattr(peer, each.name) for each in dataclasses.fields(peer) if each.name != "figures"}
    return {**plain, "figures": peer.figures.as_json()}
