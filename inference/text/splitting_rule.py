"""How text is normalized and cut into words before byte pairs are merged, by GGUF's name of the rule.

The rules are those of the tokenizer.json files that the families were published with; an id differs wherever one of
them is only nearly right (digits one by one or in threes, how line ends stick to punctuation, NFC).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inference.errors import UnsupportedModelError

# Contractions, a word with the one sign before it, digits, signs with their line ends, line ends, spaces.
_CUT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}"
    r"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True, slots=True)
class SplittingRule:
    """One family's rule.

    Attributes:
        pattern: regular expression of a word; "" is GPT-2's own, which the library has built in.
        single_digits: digits are cut off one by one before the pattern is applied.
        nfc: text is normalized to NFC first.
        whole_words: a word that is in the vocabulary is its token, even where no merges lead to it (`ignore_merges`).
    """

    pattern: str = ""
    single_digits: bool = False
    nfc: bool = False
    whole_words: bool = False

    def pipeline(self) -> dict[str, Any]:
        """Normalizer and pre-tokenizer as a tokenizer.json has them; `whole_words` belongs to its model."""
        steps: list[dict[str, Any]] = []
        if self.single_digits:
            steps.append({"type": "Digits", "individual_digits": True})
        if self.pattern:
            steps.append({"type": "Split", "pattern": {"Regex": self.pattern}, "behavior": "Isolated", "invert": False})
        steps.append(
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": not self.pattern}
        )
        return {
            "normalizer": {"type": "NFC"} if self.nfc else None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
        }


_LLAMA_3 = SplittingRule(pattern=_CUT.format(digits=r"\p{N}{1,3}"), whole_words=True)

SPLITTING_RULES: Mapping[str, SplittingRule] = {
    "gpt-2": SplittingRule(),
    "smollm": SplittingRule(single_digits=True),
    "qwen2": SplittingRule(pattern=_CUT.format(digits=r"\p{N}"), nfc=True),
    "llama-bpe": _LLAMA_3,
    "llama3": _LLAMA_3,
    "llama-v3": _LLAMA_3,
}


def splitting_rule(name: str) -> SplittingRule:
    """The rule of that name.

    Raises:
        UnsupportedModelError: no such rule; guessing one would give wrong ids without any sign of it.
    """
    try:
        return SPLITTING_RULES[name]
    except KeyError:
        raise UnsupportedModelError(
            f"The model's text is cut by the rule {name!r}, but this engine knows {', '.join(sorted(SPLITTING_RULES))}."
            " Use another model."
        ) from None
