"""What two HTTP parsers see in the same bytes: ours, and h11."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import h11

from interlock.transport.http.server.limits import ConnectionLimits
from interlock.transport.http.server.parser import RequestParser
from interlock.transport.http.server.request import BadRequest, RequestHead


@dataclass
class Seen:
    """One request."""

    method: str
    target: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes = b""
    whole: bool = False


def _as_h11(header: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """A header as h11 gives it: the coding in lower case."""
    name, value = header
    return name, value.lower() if name == b"transfer-encoding" else value


@dataclass
class Sink:
    """Notes what the parser finds."""

    requests: list[Seen] = field(default_factory=list)
    heads: list[RequestHead] = field(default_factory=list)

    def request_came(self, head: RequestHead, body: bytes) -> None:
        """A whole request."""
        self.request_began(head)
        if body:
            self.body_came(body)
        self.request_ended()

    def request_began(self, head: RequestHead) -> None:
        """A head."""
        assert not self.requests or self.requests[-1].whole
        self.heads.append(head)
        self.requests.append(Seen(head.method, head.target, [*map(_as_h11, head.headers)]))

    def body_came(self, piece: bytes) -> None:
        """A piece of the body."""
        assert piece
        assert not self.requests[-1].whole
        self.requests[-1].body += piece

    def request_ended(self) -> None:
        """The end."""
        assert not self.requests[-1].whole
        self.requests[-1].whole = True


def ours(
    pieces: Iterable[bytes], limits: ConnectionLimits | None = None
) -> tuple[list[Seen], int, Sink]:
    """The requests that our parser sees, and the status with which it refuses the rest; 0 where it
    refuses nothing.
    """
    sink = Sink()
    parser = RequestParser(sink, limits or ConnectionLimits())
    try:
        for piece in pieces:
            parser.feed(piece)
    except BadRequest as bad:
        return sink.requests, bad.status, sink
    return sink.requests, 0, sink


def of_h11(data: bytes) -> tuple[list[Seen], bool]:
    """The requests that h11 sees, and whether it refuses the rest."""
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
    connection.receive_data(data)
    found: list[Seen] = []
    try:
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Request):
                found.append(Seen(event.method.decode(), bytes(event.target), [*event.headers]))
            elif isinstance(event, h11.Data):
                found[-1].body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                found[-1].whole = True
            elif event is h11.PAUSED:
                connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
                connection.send(h11.EndOfMessage())
                if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                    return found, False
                connection.start_next_cycle()
            else:
                return found, False
    except h11.RemoteProtocolError:
        return found, True
