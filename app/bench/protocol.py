"""The fixed protocol: what is measured, of our engine and of every peer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CHAT, PREFILL, DECODE = _KINDS = ("chat", "prefill", "decode@depth")

SYSTEM = "你是一个运行在本机的中文助手，回答准确、简短。"
PROMPTS = (
    "用一句话说明什么是 CUDA Graph。",
    "把下面的任务压缩成一行待办：周五下班前把第三季度的销售数据整理成表格，发给财务部的王经理，并抄送给李总。",
)
PROMPT_TOKENS = (40, 67)
"""What Qwen2.5's template makes of each; prompts of random weights, which have no vocabulary, are as long."""
CHAT_TOKENS = 64
"""New tokens of an answer to one of the prompts."""

# Random ids are drawn below this; every model of the catalog has more.
_VOCAB_SIZE = 49_000
_SPARE_TOKENS = 8
# The engine takes no less than a page.
_LEAST_CONTEXT = 64


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to measure.

    Attributes:
        what: CHAT, an answer to prompt `n` of the protocol; PREFILL of `n` tokens; DECODE behind `n` in the cache.
    """

    what: str
    n: int

    @property
    def label(self) -> str:
        """What the table calls it."""
        if self.what == CHAT:
            return f"prompt {self.n + 1}"
        return f"prefill {self.n:,}" if self.what == PREFILL else f"decode at {self.n:,}"


def chat_messages(prompt: int, run: int) -> tuple[str, str]:
    """System and user text of a prompt; the run's number comes first, so that no cache knows the beginning."""
    return f"[{run}] {SYSTEM}", PROMPTS[prompt]


@dataclass(frozen=True)
class Plan:
    """What to measure and how often.

    Attributes:
        prompts: lengths of the prefills, tokens.
        depths: tokens in the cache before decoding starts.
        decode_tokens: tokens decoded at each depth.
        repeats: measurements of each case, after one that does not count.
        chat: the two prompts of the protocol are measured too.
    """

    prompts: tuple[int, ...] = (58, 512)
    depths: tuple[int, ...] = (0, 2048)
    decode_tokens: int = 64
    repeats: int = 3
    chat: bool = True

    @property
    def cases(self) -> list[Case]:
        """Every case: the protocol's prompts, prefills, decodes."""
        chat = [Case(CHAT, i) for i in range(len(PROMPTS))] if self.chat else []
        return [*chat, *(Case(PREFILL, n) for n in self.prompts), *(Case(DECODE, n) for n in self.depths)]

    def context_of(self, case: Case) -> int:
        """Tokens of context that a case needs."""
        if case.what == CHAT:
            # Other vocabularies take more tokens for the same characters.
            return 4 * PROMPT_TOKENS[case.n] + CHAT_TOKENS
        return case.n + (self.decode_tokens if case.what == DECODE else 0) + _SPARE_TOKENS

    @property
    def context_tokens(self) -> int:
        """Context that the longest case needs."""
        return max([_LEAST_CONTEXT, *(self.context_of(case) for case in self.cases)])

    def length_of(self, case: Case) -> int:
        """Tokens of the prompt of a case, where it is made of random ids."""
        return PROMPT_TOKENS[case.n] if case.what == CHAT else max(case.n, 1)

    def ids_of(self, case: Case, run: int) -> list[int]:
        """A prompt of random ids, of the case's length; no two cases or runs begin alike, so no cache can help."""
        length = self.length_of(case)
        return random_ids(length, (run, length, _KINDS.index(case.what)))

    def new_tokens_of(self, case: Case) -> int:
        """Tokens to generate. The first token belongs to the prefill; `decode_tokens` more follow it."""
        return {CHAT: CHAT_TOKENS, PREFILL: 1}.get(case.what, self.decode_tokens + 1)


def random_ids(length: int, seed: int | tuple[int, ...], vocab_size: int = _VOCAB_SIZE) -> list[int]:
    """Token ids without a pattern; ids at the ends of the vocabulary are left out."""
    rng = np.random.default_rng(seed)
    return [int(i) for i in rng.integers(256, vocab_size - 1024, length)]
