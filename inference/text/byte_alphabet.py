"""GPT-2's byte alphabet: 256 printable characters that stand for the 256 bytes in byte-level vocabularies."""

from __future__ import annotations

from functools import cache


@cache
def characters_by_byte() -> tuple[str, ...]:
    """The character of every byte. Printable Latin-1 stands for itself; the others get U+0100 and up, in order."""
    kept = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    moved = [byte for byte in range(256) if byte not in kept]
    return tuple(chr(byte) if byte in kept else chr(0x100 + moved.index(byte)) for byte in range(256))


@cache
def _bytes_by_character() -> dict[str, int]:
    return {character: byte for byte, character in enumerate(characters_by_byte())}


def to_bytes(token: str) -> bytes:
    """Bytes that a token's string in the byte alphabet stands for.

    A string with characters outside the alphabet was written literally (added tokens are), so it is plain UTF-8: this
    is what Hugging Face's ByteLevel decoder does too.
    """
    table = _bytes_by_character()
    try:
        return bytes([table[character] for character in token])
    except KeyError:
        return token.encode("utf-8", "replace")
