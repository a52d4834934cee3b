"""A ring buffer of messages: the last ones of some connections, in memory, for a look at them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from ..transport.channel import Channel, Tap
from ..wire.jsonrpc import Frame
from .conversation import taped
from .format import Sender, encode_frame
from .frame_redaction import FrameRedactor
from .index import TapeRow
from .indexed import IndexedTape

MOST_BYTES = 8 * 1024 * 1024
"""Bytes of messages that a buffer keeps."""
MOST_MESSAGES = 20_000
"""Messages that a buffer keeps."""
MOST_EXCERPT = 2_000
"""Messages of one excerpt."""
_SHARE = 4  # a message larger than this part of the buffer is cut
_CUT = 64 * 1024  # bytes that are kept of it at most


class _BufferedMessage(Struct):
    """One message. It is redacted when it is read, so that recording costs next to nothing; one
    that is cut is redacted before.
    """

    number: int
    connection: str
    sender: Sender
    frame: bytes
    at: float
    mark: str


class TapeExcerpt(IndexedTape):
    """A few messages of a buffer, with an index like that of a tape file.

    Args:
        lines: The lines, in the format of tapes.
        marks: The mark of each line; "" for none.
        first: The number of the first line in its buffer.
        revision: The revision of a line that neither names one nor follows a handshake.
    """

    def __init__(
        self, lines: Iterable[bytes], marks: Iterable[str], *, first: int = 0, revision: str = ""
    ) -> None:
        super().__init__()
        self.first = first
        self.marks: list[str] = []
        self._lines: list[bytes] = []
        self._revision = revision
        for line, mark in zip(lines, marks, strict=True):
            self._index.add(line, len(self._lines))
            self._lines.append(line)
            self.marks.append(mark)

    def raw(self, row: TapeRow) -> bytes:
        """The bytes of one line."""
        return self._lines[row.number]

    def revision(self, row: TapeRow) -> str:
        """See TapeFile. The handshake is rarely part of an excerpt."""
        return super().revision(row) or self._revision


class TapeBuffer:
    """Keeps the last messages of connections. Give it as `record=` to a `Client`.

    The oldest messages are dropped first. A message that would take more than a quarter of the
    buffer is cut. Secrets are redacted when messages are read, and before a message is cut. All
    methods may be called from any thread.

    Args:
        most_bytes: How many bytes of messages are kept.
        most_messages: How many messages are kept.
        mark: Called for each message of a client, where the client sends it; returns what the
            message belongs to, such as a call, or "".
        secrets: Values that are redacted wherever they occur.
        clock: Returns seconds of the wall clock.
    """

    def __init__(
        self,
        *,
        most_bytes: int = MOST_BYTES,
        most_messages: int = MOST_MESSAGES,
        mark: Callable[[], str] = str,
        secrets: Iterable[str] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.redactor = FrameRedactor(secrets)
        self._most_bytes = most_bytes
        self._most_messages = most_messages
        self._mark = mark
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: deque[_BufferedMessage] = deque()
        self._bytes = 0
        self._count = 0
        self._connections = 0

    def connection(self, name: str = "") -> Tap:
        """Start to keep the messages of another connection; return its tap.

        Args:
            name: The name of the connection; "" for a number.
        """
        with self._lock:
            self._connections += 1
            named = name or str(self._connections)

        def tap(sender: str, frame: Frame) -> None:
            self._keep(named, "client" if sender == "client" else "server", frame)

        return tap

    def channel(self, channel: Channel) -> Channel:
        """Return a channel of a server whose messages are kept."""
        return taped(channel, self.connection(), "server")

    def endpoint(self, app: Any) -> Any:
        """Raises TypeError: an endpoint with many clients is recorded in a file."""
        raise TypeError("a TapeBuffer does not record HTTP endpoints; use Recorder")

    @property
    def size(self) -> int:
        """The bytes of the messages that are kept."""
        return self._bytes

    def excerpt(
        self, mark: str, *, until: float | None = None, revision: str = ""
    ) -> TapeExcerpt | None:
        """Return the messages of a connection from the first one with a mark on.

        Args:
            mark: What the messages belong to.
            until: Seconds of the wall clock after which messages are left out.
            revision: The revision of the connection.

        Returns:
            At most MOST_EXCERPT messages; None if none with the mark is kept.
        """
        with self._lock:
            kept = list(self._kept)
        first = next((at for at, one in enumerate(kept) if one.mark == mark), None)
        if first is None:
            return None
        connection = kept[first].connection
        chosen: list[_BufferedMessage] = []
        for one in kept[first:]:
            if one.connection != connection:
                continue
            if len(chosen) == MOST_EXCERPT or (until is not None and one.at > until):
                break
            chosen.append(one)
        redact = self.redactor.frame
        lines = (
            encode_frame(one.sender, redact(one.frame), one.at, one.connection) for one in chosen
        )
        return TapeExcerpt(
            lines, (one.mark for one in chosen), first=kept[first].number, revision=revision
        )

    def _keep(self, connection: str, sender: Sender, frame: Frame) -> None:
        share = self._most_bytes // _SHARE
        # What is cut is no JSON any more, so its secrets could not be found by their names later.
        kept = frame if len(frame) <= share else self.redactor.frame(frame)[: min(_CUT, share)]
        copy = bytes(kept)
        mark = self._mark() if sender == "client" else ""
        with self._lock:
            self._count += 1
            at = self._clock()
            self._kept.append(_BufferedMessage(self._count, connection, sender, copy, at, mark))
            self._bytes += len(copy)
            while self._bytes > self._most_bytes or len(self._kept) > self._most_messages:
                self._bytes -= len(self._kept.popleft().frame)
