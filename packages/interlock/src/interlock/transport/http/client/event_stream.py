"""The client side of a resumable event stream: the last event ID, and the delay before it
reconnects.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

from interlock import types as t
from interlock.http11.fetch import Response
from interlock.wire.jsonrpc import Frame, Malformed
from interlock.wire.sse import EventReader

Sleep = Callable[[float], Awaitable[None]]

# seconds
_FIRST_WAIT = 0.5
_LONGEST_WAIT = 30.0
_LONGEST_RETRY = 3600.0  # maximum of seconds that a server may ask for
_LONGEST_ID = 8192  # maximum length of an event ID, which is sent back in a header


class EventStream:
    """A resumable event stream: its last event ID, and how long to wait before a resumption."""

    def __init__(self, limit: int) -> None:
        self.last: str | None = None
        self._limit = limit
        self._retry: float | None = None
        self._reader = EventReader(limit)

    def start(self) -> None:
        """Start or resume the stream. An incomplete event from before is dropped."""
        self._reader = EventReader(self._limit)

    def feed(self, chunk: bytes) -> list[Frame]:
        """Return the messages that are complete now. Events without data only control the
        resumption (`HTL-20`).
        """
        try:
            events = self._reader.feed(chunk)
        except Malformed as bad:
            raise t.ProtocolError(f"The server's event stream cannot be read: {bad}") from None
        messages: list[Frame] = []
        for event in events:
            if event.id is not None:
                self.last = event.id if _can_be_sent(event.id) else None
            if event.retry is not None:
                self._retry = min(event.retry / 1000, _LONGEST_RETRY)
            if event.data and event.name == "message":
                messages.append(event.data)
        return messages

    def wait(self, failed: int) -> float:
        """Return the seconds before the next attempt: as the server asked (`HTL-17`), longer after
        repeated failures.
        """
        if failed <= 1:
            return self._retry if self._retry is not None else _FIRST_WAIT
        return max(self._retry or 0.0, backoff(failed))


def is_events(response: Response) -> bool:
    """Whether a response is an event stream."""
    return response.status == 200 and response.headers.get("content-type", "").lower().startswith(
        "text/event-stream"
    )


def backoff(failed: int) -> float:
    """Return the seconds to wait after this many failures, with jitter, so that many clients do not
    return at once.
    """
    longest = _LONGEST_WAIT if failed > 16 else min(_FIRST_WAIT * 2 ** (failed - 1), _LONGEST_WAIT)
    return longest * (0.75 + random.random() / 2)


def _can_be_sent(id: str) -> bool:
    return 0 < len(id) <= _LONGEST_ID and not any(c < " " or c == "\x7f" for c in id)
