"""A connection that gives up on clients which leave it waiting: the HTTP library has no limits of its own for that."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_MOST_BEHIND_BYTES = 256 << 10
"""Of requests that are sent before the one before them is answered."""


class TimedConnection(H11Protocol):
    """HTTP/1.1 with limits of time on what a client owes: a request's head, a body that is refused, taking its answer.

    The body of a request that is being read has its limit in the fence, which can still answer.

    Args:
        silence_s: how long the client may owe it.
    """

    def __init__(self, *args: Any, silence_s: float, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._silence_s = silence_s
        self._owed: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See asyncio.Protocol."""
        super().connection_made(transport)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        super().connection_lost(exc)
        self._stalled = self._stopped(self._stalled)
        self._owed = self._stopped(self._owed)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        super().data_received(data)
        self._read_on()
        self._watch()

    def on_response_complete(self) -> None:
        """An answer has been written."""
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        """The client takes its answer more slowly than it comes."""
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(self._silence_s, self.transport.abort)

    def resume_writing(self) -> None:
        """It has caught up."""
        super().resume_writing()
        self._stalled = self._stopped(self._stalled)

    def send_400_response(self, msg: str) -> None:
        """What came is not HTTP. Whoever still works at a request of this connection must not answer as well."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        try:
            super().send_400_response(msg)
        except h11.LocalProtocolError:  # in the middle of an answer
            self.transport.abort()

    def _read_on(self) -> None:
        """What comes behind a request waits. Reading goes on, or nobody would hear that the client hangs up."""
        if self.flow.read_paused and self.conn.their_state is h11.DONE:
            if len(self.conn.trailing_data[0]) > _MOST_BEHIND_BYTES:
                self.transport.abort()
            else:
                self.flow.resume_reading()

    def _watch(self) -> None:
        if self.transport.is_closing() or not self._is_owed():
            self._owed = self._stopped(self._owed)
        elif self._owed is None:
            self._owed = self.loop.call_later(self._silence_s, self.transport.abort)

    def _is_owed(self) -> bool:
        if self.conn.their_state is h11.IDLE:
            # Between two requests the keep-alive time counts, until the next one has begun.
            return self.cycle is None or bool(self.conn.trailing_data[0])
        return self.conn.their_state is h11.SEND_BODY and self.cycle.response_complete

    @staticmethod
    def _stopped(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()
