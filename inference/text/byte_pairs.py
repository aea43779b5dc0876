"""Byte-pair merging of single words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush

from inference.errors import ModelFormatError
from inference.text.byte_alphabet import characters_by_byte

_MAX_CACHED_WORDS = 1 << 15
_MAX_CACHED_BYTES = 64


class BytePairs:
    """Merges the bytes of a word, always the pair of the lowest rank and of these the leftmost, until no pair is left.

    The tokenizers library does the same, but building its model holds the interpreter's lock for a quarter of a second,
    and the desktop's windows would stand still meanwhile. Building this one never holds it longer than the
    interpreter's switch interval. Thread-safe.

    Args:
        vocab: ids of tokens, whose text is in the byte alphabet.
        merges: pairs in order of rank.
        whole_words: a word that is a token is not merged but looked up.

    Raises:
        ModelFormatError: a merge whose parts or result are not in the vocabulary.
    """

    def __init__(self, vocab: Mapping[str, int], merges: Iterable[tuple[str, str]], whole_words: bool = False) -> None:
        self._byte_ids = tuple(vocab.get(character, -1) for character in characters_by_byte())
        self._whole_words = vocab if whole_words else {}
        self._size = 1 + max(vocab.values(), default=0)
        # Keys are left * size + right: an integer takes a third of a pair's memory.
        self._ranks: dict[int, int] = {}
        self._merged: list[int] = []
        for rank, (left, right) in enumerate(merges):
            try:
                self._ranks[vocab[left] * self._size + vocab[right]] = rank
                self._merged.append(vocab[left + right])
            except KeyError as error:
                raise ModelFormatError(
                    f"Merge {rank} of the vocabulary, {left[:40]!r} and {right[:40]!r}, needs the token"
                    f" {error.args[0][:80]!r}, but there is no such token that text may become. Fetch the model again."
                ) from None
        self._cache: dict[bytes, tuple[int, ...]] = {}

    def encode(self, word: bytes) -> tuple[int, ...]:
        """Token ids of a word. Bytes without a token are left out."""
        cached = self._cache.get(word)
        if cached is not None:
            return cached
        token_ids = self._encode(word)
        if len(word) <= _MAX_CACHED_BYTES:
            if len(self._cache) >= _MAX_CACHED_WORDS:
                self._cache.clear()
            self._cache[word] = token_ids
        return token_ids

    def _encode(self, word: bytes) -> tuple[int, ...]:
        if self._whole_words:
            characters = characters_by_byte()
            whole = self._whole_words.get("".join([characters[byte] for byte in word]))
            if whole is not None:
                return (whole,)
        return self._merge([token_id for token_id in map(self._byte_ids.__getitem__, word) if token_id >= 0])

    def _merge(self, ids: list[int]) -> tuple[int, ...]:
        size, ranks, merged = self._size, self._ranks, self._merged
        count = len(ids)
        following = list(range(1, count + 1))
        preceding = list(range(-1, count - 1))
        # rank * count + position: sorts by rank, then from left to right.
        heap = [
            rank * count + position
            for position in range(count - 1)
            if (rank := ranks.get(ids[position] * size + ids[position + 1])) is not None
        ]
        heapify(heap)
        while heap:
            rank, position = divmod(heappop(heap), count)
            right = following[position]
            # A pair of which a part has been merged otherwise meanwhile; what is gone has the id -1, which is in no
            # key.
            if right >= count or ranks.get(ids[position] * size + ids[right]) != rank:
                continue
            ids[position], ids[right] = merged[rank], -1
            after, before = following[right], preceding[position]
            following[position] = after
            if after < count:
                preceding[after] = position
                rank_after = ranks.get(ids[position] * size + ids[after])
                if rank_after is not None:
                    heappush(heap, rank_after * count + position)
            if before >= 0:
                rank_before = ranks.get(ids[before] * size + ids[position])
                if rank_before is not None:
                    heappush(heap, rank_before * count + before)
        return tuple([token_id for token_id in ids if token_id >= 0])
