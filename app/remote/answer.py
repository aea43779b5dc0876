"""One answer of a server while it comes: what is known of its length, its times and its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from app.remote import error as remote_error
from app.remote.address import RemoteAddress
from app.remote.wire import Piece
from inference.request import FinishReason, GenerationRequest, RequestEvent, Usage

RequestListener = Callable[[RequestEvent], None]


@dataclass(slots=True, eq=False)
class Answer:
    """One request under way. Seconds of `time.perf_counter`."""

    request: GenerationRequest
    listener: RequestListener
    submitted_at: float
    prompt_tokens: int = 0
    cached_tokens: int = 0
    new_tokens: int = 0
    pieces: int = 0
    finish_reason: FinishReason | None = None
    first_at: float | None = None
    last_at: float = 0.0

    def take(self, piece: Piece | None, address: RemoteAddress) -> str:
        """Takes a piece, None for what is none; the text that it adds.

        Raises:
            RemoteError: the server failed in the middle, or speaks something else.
        """
        if piece is None:
            raise remote_error.not_openai(address.host, "its stream holds something else")
        if piece.error:
            raise remote_error.refusal(address.host, address.model, 500, piece.error, True)
        now = time.perf_counter()
        if piece.text:
            self.first_at = self.first_at or now
            self.last_at, self.pieces = now, self.pieces + 1
        self.finish_reason = piece.finish_reason or self.finish_reason
        self.prompt_tokens = self.prompt_tokens if piece.prompt_tokens is None else piece.prompt_tokens
        self.cached_tokens = piece.cached_tokens or self.cached_tokens
        self.new_tokens = piece.new_tokens or self.new_tokens
        return piece.text

    def usage(self) -> Usage:
        """Tokens and times so far; without the server's count, each piece is taken for a token."""
        first = self.first_at
        return Usage(
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            new_tokens=self.new_tokens or self.pieces,
            time_to_first_token_ms=0.0 if first is None else 1000 * (first - self.submitted_at),
            decode_ms=0.0 if first is None else 1000 * (self.last_at - first),
        )
