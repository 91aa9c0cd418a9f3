"""Connections that a client leaves half-open: a request that never comes, or an answer that is never read."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

# From the first byte of a connection, or of the next request on it, to the end of its headers.
HEADER_SECONDS = 10.0
# Within this time a client must read part of a response: 1 KB for each second, a thousandth of a slow line.
READ_SECONDS = 30.0
_BYTES_PER_SECOND = 1_000
# A peer that is gone without a word: after so long without an acknowledgement its connection is closed.
_SILENCE_SECONDS = 60


class TimedProtocol(H11Protocol):
    """uvicorn's protocol, which alone waits for ever for a request's headers and for an answer to be read."""

    header_seconds = HEADER_SECONDS
    read_seconds = READ_SECONDS
    _timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        connection = transport.get_extra_info("socket")
        if connection is not None:
            _notice_silence(connection)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # No request is being answered: this is a part of the next one's headers, or the rest of a body that was refused
        # before it came. Either way uvicorn has stopped its own timer.
        if self.cycle is None or self.cycle.response_complete:
            self._start_timer()
        else:
            self._stop_timer()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reading()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch_reading()  # what is left of an answer keeps a connection open that is closed

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self._read_timer is not None:
            self._read_timer.cancel()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.header_seconds, self._close)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self.transport.close()
        self._watch_reading()

    def _watch_reading(self) -> None:
        unread = self.transport.get_write_buffer_size()
        if unread and self._read_timer is None:
            self._read_timer = self.loop.call_later(self.read_seconds, self._check_reading, unread)

    def _check_reading(self, before: int) -> None:
        """Drop a connection whose client read too little; more responses may have been written in the meantime."""
        self._read_timer = None
        if self.transport.get_write_buffer_size() > before - _BYTES_PER_SECOND * self.read_seconds:
            self.transport.abort()
        else:
            self._watch_reading()


def _notice_silence(connection: Any) -> None:
    """Have the system close the connection of a peer that does not acknowledge anything for a minute."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {"TCP_KEEPIDLE": _SILENCE_SECONDS, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
    options["TCP_USER_TIMEOUT"] = _SILENCE_SECONDS * 1000
    for name, value in options.items():
        if hasattr(socket, name):  # not every system has all of them
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
