"""What to compute next: continuous batching with chunked prefill. Pure; time is counted in steps.

Every step takes one token of each answer under way, and with what room is left a chunk of a prompt; a more important
prompt goes alone for a while. Requests come in by priority, then by arrival. Pages are given when they are needed.
Where they run out, the least important request gives its pages back and waits; it goes on later with the tokens that it
had, and the pages that are still there are shared.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from inference.engine.kv_cache import KvCache, PageTable, pages_for

ANSWER_RESERVE_TOKENS = 256
"""Room that a request must find for its answer before it joins others; more is taken as it is needed."""
OVERTAKEN_LIMIT = 4
"""So often a request may be overtaken before it counts as one priority higher: nobody waits for ever."""
DECODE_SHARE = 4
"""While answers are under way, chunks of prompts are this many times smaller: a long prompt must not stop a stream,
unless it is more important than all of them."""
REST_LIMIT = 4
"""So many steps in a row answers wait for a prompt that is more important than all of them: its first token is what a
person waits for, and they would take a part of each of its steps, on a GPU a step of their own."""
PASSED_LIMIT = 16
"""So many steps in a row more important prompts may pass over the oldest one that is being read; the next step begins
with it."""


@dataclass(slots=True, eq=False)
class Sequence:
    """Tokens of one request and how far they are computed.

    Attributes:
        priority: lower is served first.
        token_ids: prompt and answer so far.
        max_tokens: length at which the answer ends, prompt included.
        table: pages; None while it waits.
        num_computed: tokens whose keys and values are in the pages.
        arrival: set by the scheduler.
        overtaken: how many later requests were let in before this one.
    """

    request_id: str
    priority: int
    token_ids: list[int]
    prompt_tokens: int
    max_tokens: int
    table: PageTable = field(default_factory=PageTable)
    num_computed: int = 0
    arrival: int = -1
    overtaken: int = 0

    @property
    def remaining(self) -> int:
        """Tokens still to be computed before the next one can be chosen."""
        return len(self.token_ids) - self.num_computed

    @property
    def rank(self) -> tuple[int, int]:
        """Lower goes first."""
        return max(0, self.priority - self.overtaken // OVERTAKEN_LIMIT), self.arrival


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """`count` tokens of a sequence from position `start`, for one step."""

    sequence: Sequence
    start: int
    count: int

    @property
    def wants_logits(self) -> bool:
        """After this chunk all tokens are computed, so the next one can be chosen."""
        return self.start + self.count == len(self.sequence.token_ids)

    @property
    def is_decode(self) -> bool:
        """The last token of an answer, after which the next one is chosen: not of a prompt, and not one of several that
        are to be computed, which a small rest of a step may leave room for. Ahead it is not known yet."""
        is_last = self.start + self.count >= len(self.sequence.token_ids)
        return self.count == 1 and self.start >= self.sequence.prompt_tokens and is_last


class Scheduler:
    """Which sequences wait, which run, and what the next step computes.

    Args:
        prefill_chunk: most prompt tokens of a step.
        max_running: most sequences at once.
    """

    def __init__(self, cache: KvCache, prefill_chunk: int, max_running: int) -> None:
        self._cache = cache
        self._prefill_chunk = prefill_chunk
        self._max_running = max_running
        self._arrivals = 0
        self._rested = self._passed = 0  # steps in a row
        self.waiting: list[Sequence] = []
        self.running: list[Sequence] = []

    def add(self, sequence: Sequence) -> None:
        """Queues a sequence. Its prompt and one token more must fit the pages: the caller checks."""
        sequence.arrival = self._arrivals
        self._arrivals += 1
        self.waiting.append(sequence)

    def remove(self, sequence: Sequence) -> None:
        """Ends a sequence in whatever state; its pages are free at once."""
        if sequence in self.running:
            self.running.remove(sequence)
            self._cache.close(sequence.table)
        else:
            self.waiting.remove(sequence)

    def plan(self) -> list[Chunk]:
        """The next step's chunks, answers first; empty where nothing is to do. Planning again gives the same."""
        self._grow_all()
        self._admit()
        running = sorted(self.running, key=lambda s: s.rank)
        answers = [sequence for sequence in running if sequence.remaining == 1]
        prompts = [sequence for sequence in running if sequence.remaining > 1]
        oldest = _oldest(prompts)
        if self._passed >= PASSED_LIMIT:
            prompts.sort(key=lambda s: s is not oldest)
        yields = bool(prompts) and any(answer.priority <= prompts[0].priority for answer in answers)
        budget = max(1, self._prefill_chunk // DECODE_SHARE) if yields else self._prefill_chunk
        rest = bool(prompts) and not yields and self._rested < REST_LIMIT
        chunks = [] if rest else [Chunk(sequence, sequence.num_computed, 1) for sequence in answers]
        for sequence in prompts:
            if answers and not yields and sequence.priority > prompts[0].priority:
                break
            count = min(budget, sequence.remaining)
            if count > 0:
                chunks.append(Chunk(sequence, sequence.num_computed, count))
            budget -= count
        return chunks

    def plan_ahead(self, chunks: list[Chunk]) -> list[Chunk]:
        """The step after one that is being computed, before its tokens are known.

        Empty where that is not certain: the step is not of answers alone, a sequence has ended or will end by its
        length, another one may come in, or a page would have to be taken from somebody.
        """
        sequences = [chunk.sequence for chunk in chunks]
        certain = (
            not self._may_admit()
            and len(sequences) == len(self.running)
            and all(sequence in self.running for sequence in sequences)
            and all(chunk.is_decode and chunk.start + 2 < chunk.sequence.max_tokens for chunk in chunks)
        )
        missing = sum(max(0, pages_for(chunk.start + 2) - len(chunk.sequence.table.pages)) for chunk in chunks)
        if not certain or missing > self._cache.pages_free:
            return []
        for chunk in chunks:
            self._cache.grow(chunk.sequence.table, chunk.start + 2)
        return [Chunk(chunk.sequence, chunk.start + 1, 1) for chunk in chunks]

    def advance(self, chunks: list[Chunk]) -> None:
        """Says that a planned step has been computed."""
        computed = {chunk.sequence for chunk in chunks}
        oldest = _oldest([sequence for sequence in self.running if sequence.remaining > 1])
        self._passed = 0 if oldest is None or oldest in computed else self._passed + 1
        rests = any(sequence.remaining == 1 and sequence not in computed for sequence in self.running)
        self._rested = self._rested + 1 if rests else 0
        for chunk in chunks:
            sequence = chunk.sequence
            sequence.num_computed = chunk.start + chunk.count
            self._cache.commit(sequence.table, sequence.token_ids, sequence.num_computed)

    def _may_admit(self) -> bool:
        """Whether one that waits may come in before one that runs has ended."""
        if not self.waiting:
            return False
        has_place = len(self.running) < self._max_running
        return has_place or self._victim_for(min(self.waiting, key=lambda s: s.rank)) is not None

    def _victim_for(self, candidate: Sequence) -> Sequence | None:
        """Who gives way where there is no room for the candidate; within one priority nobody does for a newcomer."""
        last = max(self.running, key=lambda s: s.rank, default=candidate)
        return last if last.rank[0] > candidate.rank[0] else None

    def _admit(self) -> None:
        while self.waiting:
            candidate = min(self.waiting, key=lambda s: s.rank)
            if not self._make_room(candidate):
                return
            self.waiting.remove(candidate)
            self.running.append(candidate)
            for other in self.waiting:
                other.overtaken += other.arrival < candidate.arrival

    def _make_room(self, candidate: Sequence) -> bool:
        """Opens the candidate's pages, preempting less important sequences if that is what it takes."""
        while True:
            if len(self.running) < self._max_running and self._open(candidate):
                return True
            victim = self._victim_for(candidate)
            if victim is None:
                return False
            self._preempt(victim)

    def _open(self, candidate: Sequence) -> bool:
        """Gives the candidate pages for its tokens, if its answer and those under way will probably find room too."""
        table = self._cache.open(candidate.token_ids)
        promised = sum(pages_for(_reserved(other)) - len(other.table.pages) for other in self.running)
        if self.running:
            promised += pages_for(_reserved(candidate)) - len(table.pages)
        if promised > self._cache.pages_free or not self._cache.grow(table, len(candidate.token_ids)):
            self._cache.close(table)
            return False
        candidate.table = table
        candidate.num_computed = table.num_cached
        return True

    def _grow_all(self) -> None:
        """Pages for answers that go on, the most important first; the others have theirs already. It comes before
        others are let in: who gives way here makes room for them, and would do so only in the next plan."""
        for sequence in sorted(self.running, key=lambda s: s.rank):
            while sequence in self.running and not self._cache.grow(sequence.table, len(sequence.token_ids)):
                self._preempt(max(self.running, key=lambda s: s.rank))

    def _preempt(self, victim: Sequence) -> None:
        self.running.remove(victim)
        self._cache.close(victim.table)
        victim.num_computed = 0
        self.waiting.append(victim)


def _oldest(sequences: list[Sequence]) -> Sequence | None:
    return min(sequences, key=lambda s: s.arrival, default=None)


def _reserved(sequence: Sequence) -> int:
    """Tokens that a sequence is let in for; never less than it has."""
    hoped = min(sequence.prompt_tokens + ANSWER_RESERVE_TOKENS, sequence.max_tokens)
    return max(hoped, len(sequence.token_ids))
