"""The response to one POST: a single JSON body, or an event stream whose events may be kept for a
client that resumes it.

Pure: frames and decisions in, pieces of a body out (2026-07-28 and 2025-11-25, "Streamable HTTP").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec import UNSET

from .. import types as t
from ..wire.jsonrpc import READ_ERRORS, Frame, failure, is_answer, open_envelope
from ..wire.sse import COMMENT, event

Keep = Callable[[int, bytes, bool], None]
"""Takes an event for the log: its number in the stream, its data, and whether it is the last."""

_decode_ids = msgspec.json.Decoder(list[int | str]).decode


class PostResponse:
    """The answer to one POST. It is JSON where the responses come before anything else, else an
    event stream.

    Parameters:
        ids: the requests to be answered; `batch` says that their responses are sent as an array.
        name: the name of the stream, by which a client can come back for its events; None where it
            cannot.
        keep: takes the events of a named stream for the log.
        primes: whether a stream begins with an event that only gives its id (`HTL-14`).
        retry: milliseconds after which a client that lost the stream should come back (`HTL-16`);
            None leaves it to the client.
        events: whether the client takes an event stream at all; where it does not, it gets the
            responses only.
    """

    __slots__ = (
        "_frames",
        "_pieces",
        "batch",
        "begun",
        "detached",
        "ended",
        "events",
        "ids",
        "keep",
        "name",
        "number",
        "primes",
        "retry",
        "waiting",
    )

    def __init__(
        self,
        *,
        ids: Sequence[t.RequestId] = (),
        batch: bool = False,
        name: str | None = None,
        keep: Keep | None = None,
        primes: bool = False,
        retry: int | None = None,
        events: bool = True,
    ) -> None:
        self.ids = ids
        self.batch = batch
        self.name = name
        self.keep = keep
        self.primes = primes
        self.retry = retry
        self.events = events
        self.begun = False  # the event stream has begun
        self.ended = False  # nothing more will come
        # nothing more is sent on this connection: the client has gone, or was asked to come back
        # later
        self.detached = False
        self.number = 0  # of the last event
        # Made when they are needed, because most streams are silent.
        self._frames: Sequence[Frame] = ()
        self._pieces: list[bytes] | None = None
        self.waiting = 0  # bytes to be written

    def put(self, frames: list[Frame], *, left: int) -> None:
        """Take what is to be sent; `left` is the number of requests that are not answered after
        that.
        """
        self.ended = left == 0
        if not self.events:
            self._frames = [*self._frames, *filter(is_answer, frames)]
            return
        if not self.begun and all(map(is_answer, frames)):
            self._frames = [*self._frames, *frames]
            return
        if not self.begun and frames:
            self.start_stream()
        for index, frame in enumerate(frames):
            self._send(frame, last=self.ended and index == len(frames) - 1)

    def close(self) -> None:
        """Nothing more will come, though not all was answered."""
        self.ended = True
        if self.begun and self.name is not None and self.keep is not None:
            self.keep(self.number + 1, b"", True)

    def start_stream(self, *, comment: bool = False) -> None:
        """Become an event stream; what waits goes first. With `comment` it has something to send,
        so that the client sees it live.
        """
        if self.begun or not self.events:
            return
        self.begun = True
        if self.name is not None:
            if self.keep is not None:
                self.keep(0, opening_event(self.ids), False)
            if self.primes:
                self._add(event(b"", id=f"{self.name}.0", retry=self.retry))
        if comment and not self._pieces:
            self._add(COMMENT)
        frames = self._frames
        self._frames = ()
        for index, frame in enumerate(frames):
            self._send(frame, last=self.ended and index == len(frames) - 1)

    def keep_alive(self) -> None:
        """Show that the stream lives, where it has begun (`HTM-12`)."""
        if self.begun and not self._pieces:
            self._add(COMMENT)

    def detach(self, retry: int | None = None) -> bool:
        """Send nothing more here; with `retry` (milliseconds) the client is told when to come back.
        False where it could not come back.

        What follows goes to the log alone (`HTL-15`).
        """
        if self.name is None or not self.primes or self.detached or not self.events:
            return False
        if not self.begun:
            self.retry = retry if retry is not None else self.retry
            self.start_stream()
        elif retry is not None:
            self._add(event(b"", id=f"{self.name}.{self.number}", retry=retry))
        self.detached = True
        return True

    def push(self, piece: bytes) -> None:
        """Add an event that is encoded already."""
        self._add(piece)

    def lose(self) -> None:
        """The client has gone from this connection."""
        self.detached = True
        self._pieces = None
        self.waiting = 0

    def next_piece(self) -> bytes:
        """The next piece of the event stream to write; empty where there is none now."""
        pieces = self._pieces
        if not pieces:
            return b""
        self._pieces = None
        self.waiting = 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def body(self) -> bytes:
        """The JSON body, where no event stream has begun; empty where every request was
        cancelled.
        """
        if self.batch and self._frames:
            return b"[%b]" % b",".join(self._frames)
        return self._frames[-1] if self._frames else b""

    def _add(self, piece: bytes) -> None:
        if not self.detached:  # else it would gather, with nobody there to take it
            if self._pieces is None:
                self._pieces = []
            self._pieces.append(piece)
            self.waiting += len(piece)

    def _send(self, frame: Frame, *, last: bool) -> None:
        if self.name is None:
            self._add(event(frame))
            return
        self.number += 1
        if self.keep is not None:
            self.keep(self.number, frame, last)
        if not self.detached:
            self._add(event(frame, id=f"{self.name}.{self.number}"))


def opening_event(ids: Sequence[t.RequestId]) -> bytes:
    """The event 0 of a stream in the log: the requests that it answers."""
    return msgspec.json.encode(ids)


def whole_stream(name: str | None, frame: Frame, *, primes: bool, retry: int | None) -> bytes:
    """The event stream of a request whose response is known before anything was sent. The events of
    a named stream have the numbers 0 (if it primes) and 1.
    """
    data = event(frame)
    if name is None:
        return data
    # Formatted here, because every call of a session passes by: `event` with an ID takes 2 us.
    stream = name.encode()
    start = b""
    if primes:
        wait = b"" if retry is None else b"retry: %d\n" % retry
        start = b"id: %b.0\n%bdata: \n\n" % (stream, wait)
    return b"%bid: %b.1\n%b" % (start, stream, data)


def place(last_event: str) -> tuple[str, int] | None:
    """The stream and the number that an event id names (`HTL-33`); None where it is no id of a
    stream of calls.
    """
    name, dot, number = last_event.rpartition(".")
    if not dot or not number.isascii() or not number.isdigit() or len(number) > 15:
        return None
    return name, int(number)


def orphaned(first: bytes, later: Sequence[bytes] = ()) -> list[Frame]:
    """The responses for a stream whose worker is gone, by the event that opened it and those that
    followed: its calls get no other.
    """
    try:
        ids = _decode_ids(first)
    except READ_ERRORS:
        ids = []
    answered = {
        envelope.id
        for envelope in map(open_envelope, filter(None, later))
        if envelope.method is UNSET
    }
    words = (
        "The worker that ran this request is gone, and the request with it. Whether it took effect "
        "is not known."
    )
    return [
        failure(id, t.INTERNAL_ERROR, words, {"reason": "lost"}) for id in ids if id not in answered
    ]
