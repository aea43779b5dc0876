"""Token ids to a stream of text: whole characters only, and never a stop string."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import Protocol


class TokenBytes(Protocol):
    """What the detokenizer needs of a tokenizer."""

    def token_bytes(self, token_id: int) -> bytes:
        """Bytes of a token's text; b"" for control tokens."""
        ...


class _StopMatch:
    """How much of one stop string the stream ends with, character by character (Knuth, Morris and Pratt)."""

    def __init__(self, stop: str) -> None:
        self.stop = stop
        self.length = 0
        # fallback[n]: length of the longest proper prefix of the string that its first n characters end with.
        self._fallback = [0, 0]
        for character in stop[1:]:
            length = self._fallback[-1]
            while length and stop[length] != character:
                length = self._fallback[length]
            self._fallback.append(length + (stop[length] == character))

    def advance(self, character: str) -> bool:
        """Takes one more character; true once the stream ends with the whole string."""
        while self.length and self.stop[self.length] != character:
            self.length = self._fallback[self.length]
        self.length += self.stop[self.length] == character
        return self.length == len(self.stop)


class Detokenizer:
    """The text of one answer. For one thread.

    Bytes that do not yet make a character are held back; bytes that no longer can become U+FFFD, as in a decode of the
    whole. Text that may be the beginning of a stop string is held back until it is clear. The stop string that is
    complete first ends the text, and of several complete at the same character the one that began first: so the result
    does not depend on how the text was cut into tokens.

    Args:
        stop: strings that end the answer and are no part of it; none empty.

    Attributes:
        stopped: a stop string has been met; everything before it has been returned, and nothing more will be.
    """

    def __init__(self, tokenizer: TokenBytes, stop: Sequence[str] = ()) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._matches = [_StopMatch(text) for text in stop]
        self._held = ""
        self.stopped = False

    def push(self, token_id: int) -> str:
        """The text that this token makes certain; "" where there is none yet, and always once `stopped` is true."""
        return self._advance(self._decoder.decode(self._tokenizer.token_bytes(token_id)))

    def finish(self) -> str:
        """What was held back. Call it once, after the last token."""
        text = self._advance(self._decoder.decode(b"", final=True))
        if self.stopped:
            return text
        held, self._held = self._held, ""
        return text + held

    def _advance(self, text: str) -> str:
        if self.stopped:
            return ""
        if not self._matches:
            return text
        known = self._held + text
        for index, character in enumerate(text, start=len(self._held)):
            complete = [len(match.stop) for match in self._matches if match.advance(character)]
            if complete:
                self.stopped = True
                self._held = ""
                return known[: index + 1 - max(complete)]
        sure = len(known) - max(match.length for match in self._matches)
        self._held = known[sure:]
        return known[:sure]
