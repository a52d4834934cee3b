"""A transport that joins what is written in one turn of the loop: the head and the body of a response leave in one packet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

LARGE = 64 * 1024
"""Bytes in one piece that are better written apart than copied together."""


class Corked:
    """Stands before a transport of asyncio; all but writing and closing goes straight to it."""

    __slots__ = (
        "_due",
        "_held",
        "_loop",
        "_on_large",
        "_transport",
        "is_closing",
        "pause_reading",
        "resume_reading",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        on_large: Callable[[], object],
    ) -> None:
        self._transport, self._loop, self._on_large = transport, loop, on_large
        self._held: list[bytes] = []
        self._due = False
        self.is_closing = transport.is_closing
        self.pause_reading, self.resume_reading = transport.pause_reading, transport.resume_reading

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Keep data until the end of this turn, or until `flush`."""
        if len(data) > LARGE:
            self._on_large()
            self.flush()
            self._transport.write(data)
            return
        self._held.append(data)
        if not self._due:
            self._due = True
            self._loop.call_soon(self._turn_ends)

    def flush(self) -> None:
        """Write what is kept."""
        held = self._held
        if held:
            self._held = []
            self._transport.write(held[0] if len(held) == 1 else b"".join(held))

    def close(self) -> None:
        """Write what is kept, then close."""
        self.flush()
        self._transport.close()

    def get_write_buffer_size(self) -> int:
        """Bytes that are not yet with the system."""
        return self._transport.get_write_buffer_size() + sum(map(len, self._held))

    def _turn_ends(self) -> None:
        self._due = False
        self.flush()
