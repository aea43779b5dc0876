"""Answers held to a form: which tokens a grammar allows next. The grammars are llguidance's: JSON schemas, regular
expressions, and Lark's notation.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from inference.errors import InvalidRequestError
from inference.request import Grammar

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer

_KEPT_VOCABULARIES = 2
_KEPT = 16
"""Compiled grammars that are remembered; a program that asks often asks with the same few."""
_STRING_TOKENS = r'[^"\\\x00-\x1F\x7F]{1,30}'
"""Tokens that fit inside of a JSON string are looked at as one group: a mask takes a tenth of the time. More groups
gain nothing and take longer to find."""
_SHOWN_CHARS = 300


class GrammarTokenizer(Protocol):
    """What grammars need of a tokenizer."""

    @property
    def end_token_ids(self) -> frozenset[int]:
        """Ids that end an answer."""
        ...

    def encode_text(self, text: str) -> list[int]:
        """Token ids of a bare text."""
        ...

    def token_bytes(self, token_id: int) -> bytes:
        """Bytes of a token's text, b"" for control tokens."""
        ...


class GrammarState:
    """Where one answer stands in its grammar.

    Attributes:
        allowed: bool (vocab_size,), the tokens that may come next. Control tokens are never among them, and those that
            end an answer exactly where the grammar may end.
        is_complete: nothing but the end may follow.
    """

    def __init__(self, matcher: LLMatcher, barred: NDArray[np.bool_], end_token_ids: Sequence[int]) -> None:
        self._matcher, self._barred, self._end_token_ids = matcher, barred, list(end_token_ids)
        self._bits = np.zeros(-(-len(barred) // 32), np.int32)
        self.allowed: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self.is_complete = False
        self._look()

    def accept(self, token_id: int) -> list[int]:
        """Goes on behind an allowed token that does not end the answer.

        Returns:
            The tokens that must follow, which count as accepted as well; often none.

        Raises:
            InvalidRequestError: the grammar has become too complex to follow.
        """
        self._matcher.consume_token(token_id)
        certain: list[int] = []
        for following in self._matcher.compute_ff_tokens():
            if self._barred[following]:
                break
            certain.append(following)
        self._matcher.consume_tokens(certain)
        self._look()
        return certain

    def _look(self) -> None:
        self._matcher.unsafe_compute_mask_ptr(self._bits.ctypes.data, self._bits.nbytes)
        bits = np.unpackbits(self._bits.view(np.uint8), count=len(self._barred), bitorder="little")
        self.allowed = bits.view(np.bool_) & ~self._barred
        may_end = self._matcher.is_accepting()
        self.allowed[self._end_token_ids] = may_end
        if self._matcher.is_error() or not self.allowed.any():
            reason = _reason(self._matcher) or "no token can follow"
            raise InvalidRequestError(f"The answer cannot follow its grammar any further ({reason}). Simplify it.")
        self.is_complete = may_end and int(np.count_nonzero(self.allowed)) == len(self._end_token_ids)


class GrammarCompiler:
    """Compiles grammars for one model. For one thread.

    The vocabulary has to be prepared, which takes half a second, less where an earlier model had the same: by
    `prepare` at a moment in which nobody waits, else with the first grammar. Others take about a millisecond.

    Args:
        vocab_size: logits of a token.
    """

    def __init__(self, tokenizer: GrammarTokenizer, vocab_size: int) -> None:
        self._tokenizer, self._vocab_size = tokenizer, vocab_size
        self._prepared: LLTokenizer | None = None
        self._end_token_ids = sorted(token_id for token_id in tokenizer.end_token_ids if token_id < vocab_size)
        self._barred: NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._compiled: OrderedDict[Grammar, LLMatcher] = OrderedDict()

    def prepare(self) -> None:
        """Prepares the vocabulary, unless that has been done or no grammar can be followed."""
        if self._end_token_ids:
            self._prepare()

    def start(self, grammar: Grammar) -> GrammarState:
        """A new answer's state.

        Raises:
            InvalidRequestError: the grammar has a fault, or no answer fits it.
        """
        matcher = self._compiled.get(grammar)
        if matcher is None:
            matcher = self._compile(grammar)
        self._compiled[grammar] = matcher
        self._compiled.move_to_end(grammar)
        if len(self._compiled) > _KEPT:
            self._compiled.popitem(last=False)
        return GrammarState(matcher.deep_copy(), self._barred, self._end_token_ids)

    def _compile(self, grammar: Grammar) -> LLMatcher:
        from llguidance import LLMatcher, LLParserLimits

        if not self._end_token_ids:
            raise InvalidRequestError("The model has no token that ends an answer, so it can follow no grammar.")
        tokenizer = self._prepare()
        limits = LLParserLimits(verbose_errors=False)
        matcher = LLMatcher(tokenizer, _in_one_form(grammar), log_level=0, limits=limits)
        if matcher.is_error():
            raise InvalidRequestError(f"The grammar ({grammar.kind}) has a fault: {_reason(matcher)}. Correct it.")
        return matcher

    def _prepare(self) -> LLTokenizer:
        if self._prepared is None:
            vocabulary = _Vocabulary(self._tokenizer, self._vocab_size, self._end_token_ids)
            self._barred = np.array([not text for text in vocabulary.tokens], np.bool_)
            self._barred[self._end_token_ids] = True
            self._prepared = _prepared(vocabulary, self._end_token_ids)
        return self._prepared


_vocabularies: OrderedDict[tuple[bytes, tuple[int, ...]], tuple[_Vocabulary, LLTokenizer]] = OrderedDict()
"""Prepared vocabularies, which outlive their models: preparing one holds the interpreter for 0.1 to 0.2 s, in which the
windows stand still, and a model that is loaded again, as after idle hours, brings the same one."""


def _prepared(vocabulary: _Vocabulary, end_token_ids: Sequence[int]) -> LLTokenizer:
    key = (vocabulary.digest(), tuple(end_token_ids))
    known = _vocabularies.pop(key, None) or (vocabulary, _made(vocabulary, end_token_ids))
    known[0].take_over(vocabulary)
    _vocabularies[key] = known
    if len(_vocabularies) > _KEPT_VOCABULARIES:
        _vocabularies.popitem(last=False)
    return known[1]


def _made(vocabulary: _Vocabulary, end_token_ids: Sequence[int]) -> LLTokenizer:
    """In two calls, each of which holds the interpreter: others have a turn between them."""
    from llguidance import LLTokenizer, TokenizerWrapper

    size, ends = len(vocabulary.tokens), list(end_token_ids)
    whole = LLTokenizer(TokenizerWrapper(vocabulary), n_vocab=size, eos_token=ends, slices=[])
    return whole.with_slices([_STRING_TOKENS])


class _Vocabulary:
    """A tokenizer in the words of llguidance."""

    bos_token_id = None

    def __init__(self, tokenizer: GrammarTokenizer, vocab_size: int, end_token_ids: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self.eos_token_id = end_token_ids[0]
        self.tokens = [tokenizer.token_bytes(token_id) for token_id in range(vocab_size)]
        # It needs one special token at least; this name cannot be written in a grammar.
        self.tokens[self.eos_token_id] = b"<\0>"
        self.special_token_ids = [self.eos_token_id]

    def digest(self) -> bytes:
        """Of all tokens."""
        found = hashlib.sha256()
        for text in self.tokens:
            found.update(len(text).to_bytes(4, "little") + text)
        return found.digest()

    def take_over(self, other: _Vocabulary) -> None:
        """Texts are tokenized by the other one's tokenizer from now on: its own goes with its model."""
        self._tokenizer = other._tokenizer

    def __call__(self, text: str | bytes) -> list[int]:
        return self._tokenizer.encode_text(text if isinstance(text, str) else text.decode("utf-8", "replace"))


def _in_one_form(grammar: Grammar) -> str:
    from llguidance import LLMatcher

    if grammar.kind == "regex":
        return LLMatcher.grammar_from_regex(grammar.text)
    if grammar.kind == "lark":
        return LLMatcher.grammar_from_lark(grammar.text)
    try:
        schema: Any = json.loads(grammar.text)
        return LLMatcher.grammar_from_json_schema(
            {} if schema is True else schema,
            # As models write JSON on one line. Free white space would let a small one write line breaks for ever; a
            # schema may still ask for it, by its key "x-guidance".
            defaults={"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "},
        )
    except (ValueError, RecursionError) as error:
        raise InvalidRequestError(
            f"The grammar (json_schema) has a fault: {str(error)[:_SHOWN_CHARS]}. Correct it."
        ) from error


def _reason(matcher: LLMatcher) -> str:
    """What llguidance says, without the excerpts and traces that follow."""
    text = re.split(r"\n *\d+ \| |<backtrace>|<non-verbose/>|\n\n", matcher.get_error())[0]
    return " ".join(text.split())[:_SHOWN_CHARS]
