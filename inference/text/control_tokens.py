"""Control tokens, and how text that only looks like one is kept text.

Chat templates join message contents and control tokens into one string, so afterwards nobody can tell a control token
that the template wrote from one that a user typed. `guard` therefore breaks the latter before rendering, with a marker
character that occurs in no message; `split` then finds only the template's own, and takes the markers out again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from inference.errors import InvalidRequestError, ModelFormatError

# Unicode's noncharacters come first: they are for internal use and never interchanged. The private-use plane follows
# for whoever sends all of them.
_MARKERS = (*range(0xFDD0, 0xFDF0), *range(0x10F800, 0x10FFFE))

_MAX_TOKENS = 4096
_MAX_CHARS = 128

_WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"


@dataclass(frozen=True, slots=True)
class ControlToken:
    """A token that only a chat template may write.

    Attributes:
        strips_left, strips_right: it swallows the white space on that side (Hugging Face's lstrip and rstrip).
    """

    token_id: int
    text: str
    strips_left: bool = False
    strips_right: bool = False


def looks_like_control(text: str) -> bool:
    """True for `<|...|>`. GGUF writers mark such tokens as control even where tokenizer.json's special flag is off."""
    return len(text) > 4 and text.startswith("<|") and text.endswith("|>")


def choose_marker(texts: Sequence[str]) -> str:
    """A character that occurs in none of the texts.

    Raises:
        InvalidRequestError: the texts hold over a thousand kinds of internal-use characters, which is no honest text.
    """
    for code in _MARKERS:
        marker = chr(code)
        if not any(marker in text for text in texts):
            return marker
    raise InvalidRequestError(
        f"The text holds all {len(_MARKERS)} characters that are free for internal use, but one must be left."
        " Remove the private-use characters from it."
    )


class ControlTokens:
    """All control tokens of a vocabulary.

    Tokens of a single character are left out: nothing can break them, so they stay text, also in templates.

    Raises:
        ModelFormatError: more tokens, or longer ones, than any honest vocabulary has.
    """

    def __init__(self, tokens: Iterable[ControlToken]) -> None:
        self.by_text = {token.text: token for token in tokens if len(token.text) > 1}
        self._longest = max(map(len, self.by_text), default=0)
        if len(self.by_text) > _MAX_TOKENS or self._longest > _MAX_CHARS:
            raise ModelFormatError(
                f"The vocabulary has {len(self.by_text)} control tokens of up to {self._longest} characters, but"
                f" {_MAX_TOKENS} of {_MAX_CHARS} are the limit. Use another model."
            )
        # Longest first: of two tokens that begin at the same place the longer one matches, as in Hugging Face's search.
        texts = sorted(self.by_text, key=len, reverse=True)
        anyone = "|".join(map(re.escape, texts)) or r"(?!)"
        self._match = re.compile(anyone)
        # A lookahead finds overlapping occurrences too: in "aba" with tokens "ab" and "ba" both must be broken.
        self._begins = re.compile(f"(?=(?:{anyone}))")
        self._heads = frozenset(text[:length] for text in texts for length in range(1, len(text)))
        self._tails = frozenset(text[-length:] for text in texts for length in range(1, len(text)))

    def guard(self, content: str, marker: str) -> str:
        """Puts the marker into every occurrence of a control token's text, behind its first character.

        Where the content begins or ends with a part of such a text, the marker goes to that end, so that the
        neighbouring text of a template cannot complete it. A template that cuts contents up and joins the pieces anew
        is beyond this.
        """
        guarded = self._broken(content, marker)
        lengths = range(1, min(self._longest, len(content) + 1))
        if any(content[:length] in self._tails for length in lengths):
            guarded = marker + guarded
        if any(content[-length:] in self._heads for length in lengths):
            guarded += marker
        return guarded

    def _broken(self, content: str, marker: str) -> str:
        pieces: list[str] = []
        done = 0
        for match in self._begins.finditer(content):
            cut = match.start() + 1
            pieces += (content[done:cut], marker)
            done = cut
        return "".join((*pieces, content[done:])) if pieces else content

    def split(self, rendered: str, marker: str = "") -> Iterator[str | ControlToken]:
        """Cuts a rendered chat at its control tokens: texts (none empty, markers removed) and tokens, in order."""
        done = 0
        strip_next = False
        for match in self._match.finditer(rendered):
            token = self.by_text[match.group()]
            text = rendered[done : match.start()]
            yield from self._text(text, marker, strip_next, token.strips_left)
            yield token
            done, strip_next = match.end(), token.strips_right
        yield from self._text(rendered[done:], marker, strip_next, False)

    @staticmethod
    def _text(text: str, marker: str, strip_left: bool, strip_right: bool) -> Iterator[str]:
        if strip_left:
            text = text.lstrip(_WHITE_SPACE)
        if strip_right:
            text = text.rstrip(_WHITE_SPACE)
        if marker:
            text = text.replace(marker, "")
        if text:
            yield text
