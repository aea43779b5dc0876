"""Finds pieces in a long text, most of which it does not have."""

from __future__ import annotations

_GRAM = 4
# Of a longer piece so many grams are enough to know, nearly always, that a text has it not.
_MOST_GRAMS = 64


class TextIndex:
    """A text that knows its runs of four characters: it is read only for pieces whose runs it has."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._grams = {text[start : start + _GRAM] for start in range(len(text) - _GRAM + 1)}

    def find(self, piece: str, start: int = 0) -> int:
        """As str.find."""
        count = min(len(piece) - _GRAM + 1, _MOST_GRAMS)
        if all(piece[place : place + _GRAM] in self._grams for place in range(count)):
            return self.text.find(piece, start)
        return -1

    def __contains__(self, piece: str) -> bool:
        return self.find(piece) >= 0
