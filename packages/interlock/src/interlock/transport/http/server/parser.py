"""The incremental HTTP/1.1 request parser: httptools, fed so that each request is judged strictly
(RFC 9112); it does no I/O.

httptools does not say where in the bytes a message ends. So it is fed no more at once than up to
the next empty line, where a head, or the trailers of a chunked body, may end, and the bytes of a
body whose length is known.

Clients send the same head again and again. A head that was judged before is known by its bytes, and
neither it nor its body is parsed once more.
"""

from __future__ import annotations

from typing import Protocol

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from .limits import ConnectionLimits
from .request import UNKNOWN, BadRequest, RequestHead, read_head

_END = b"\r\n\r\n"
_SPACE = b" \t"
_LONGEST_KNOWN = 2048  # bytes of a head that is worth knowing
_MOST_KNOWN = 512  # heads
_NOT_HTTP = "Invalid HTTP request received."


class RequestSink(Protocol):
    """What receives the requests of one connection, each as a head, pieces of the body, an end."""

    def request_began(self, head: RequestHead) -> None:
        """A head has come whole."""

    def body_came(self, piece: bytes) -> None:
        """A piece of the body of this request has come."""

    def request_ended(self) -> None:
        """The request has come whole."""


class RequestParser:
    """Parses the requests of one connection.

    Args:
        sink: What receives the requests.
        limits: How large a head may be.
        known: The heads that were judged before, for all connections of a server.

    Attributes:
        in_head: Whether a part of a head has come, and not all of it.
        in_body: Whether a head has come, and not all of its body.
        is_over: Whether no request may follow; what comes then is dropped.
    """

    __slots__ = (
        "_bad",
        "_head",
        "_headers",
        "_is_apart",
        "_is_complete",
        "_is_upgrade",
        "_keeps_alive",
        "_known",
        "_left",
        "_limits",
        "_parser",
        "_raw",
        "_sink",
        "_tail",
        "_url",
        "in_body",
        "in_head",
        "is_over",
    )

    def __init__(
        self,
        sink: RequestSink,
        limits: ConnectionLimits,
        known: dict[bytes, RequestHead] | None = None,
    ) -> None:
        self._sink = sink
        self._known = {} if known is None else known
        self._limits = limits
        self._parser = HttpRequestParser(self)
        self._raw: bytes | bytearray = b""  # the head as far as it has come
        self._tail = b""  # the last bytes of it or of a chunked body: an empty line may be cut
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._head: RequestHead | None = None
        self._left = 0  # bytes of a body of known length that have not come
        self._is_complete = False
        self._is_upgrade = False  # the client asks for one
        self._is_apart = False  # httptools does not see the body that comes
        self._keeps_alive = True
        self._bad: BadRequest | None = None
        self.in_head = False
        self.in_body = False
        self.is_over = False

    def feed(self, data: bytes) -> None:
        """Parse bytes as they come.

        Raises:
            BadRequest: They are not requests that this server serves. Nothing may be fed any more.
        """
        position = 0
        size = len(data)
        while position < size and not self.is_over:
            if self._left:
                position = self._feed_body(data, position)
            elif self.in_body:
                end = self._empty_line(data, position)
                self._execute(data[position:end])
                position = end
            else:
                end = self._empty_line(data, position)
                piece = data[position:end]
                position = end
                head = None if self.in_head else self._known.get(piece)
                if head is None:
                    self._feed_head(piece)
                else:
                    self._begin_known(head)

    def _empty_line(self, data: bytes, position: int) -> int:
        """Where the next empty line ends, or the data; the line may have begun in earlier data."""
        tail = self._tail
        if tail:
            joined = tail + data[position : position + 3]
            found = joined.find(_END)
            if found >= 0:
                self._tail = b""
                return position + found + 4 - len(tail)
        found = data.find(_END, position)
        if found >= 0:
            self._tail = b""
            return found + 4
        self._tail = (tail + data[max(position, len(data) - 3) :])[-3:]
        return len(data)

    def _feed_head(self, piece: bytes) -> None:
        if not self.in_head:
            if piece[0] in b"\r\n":
                raise BadRequest(400, _NOT_HTTP)
            self.in_head = True
            self._raw = piece
        else:
            if not isinstance(self._raw, bytearray):
                self._raw = bytearray(self._raw)
            self._raw += piece
        if len(self._raw) > self._limits.head:
            raise BadRequest(431, "The headers are too large.")
        self._execute(piece)

    def _feed_body(self, data: bytes, position: int) -> int:
        """Feed bytes of a body of known length; where the rest of the data begins."""
        end = min(position + self._left, len(data))
        piece = data if end - position == len(data) else data[position:end]
        self._left -= len(piece)
        if self._is_apart:
            self._sink.body_came(piece)
            self._is_complete = not self._left
            self._check_complete()
        else:
            self._execute(piece)
        return end

    def _execute(self, piece: bytes) -> None:
        try:
            self._parser.feed_data(piece)
        except HttpParserUpgrade:
            # An upgrade is ignored (RFC 9110, 7.8). httptools takes the body of such a request for
            # the next request, and never gets it here.
            self._is_upgrade = self._is_apart = True
            self._is_complete = False
        except HttpParserError as bad:
            raise self._bad or BadRequest(400, _NOT_HTTP) from bad
        head = self._head
        if head is not None:
            self._head = None
            self._begin(head)
        if self._is_complete:
            self._check_complete()

    def _begin(self, head: RequestHead) -> None:
        """A head is whole and good."""
        self.in_head = False
        self.in_body = True
        self._keeps_alive = head.keep_alive
        raw = self._raw
        self._raw = b""
        self._headers = []
        if head.length != UNKNOWN:
            self._left = head.length
        elif self._is_upgrade:
            raise BadRequest(400, "A request that asks for an upgrade has no body in chunks.")
        if self._is_upgrade:
            self._is_complete = not head.length
        elif isinstance(raw, bytes) and len(raw) <= _LONGEST_KNOWN and head.length != UNKNOWN:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[raw] = head
        self._sink.request_began(head)

    def _begin_known(self, head: RequestHead) -> None:
        """A head has come that was judged before."""
        self.in_body = self._is_apart = True
        self._keeps_alive = head.keep_alive
        self._left = head.length
        self._sink.request_began(head)
        if not head.length:
            self._is_complete = True
            self._check_complete()

    def _check_complete(self) -> None:
        """Go on to the next request once this one has come whole."""
        if self._is_complete:
            self._is_complete = self._is_upgrade = self._is_apart = self.in_body = False
            self._url = self._tail = b""
            self.is_over = not self._keeps_alive
            self._sink.request_ended()

    # -- called by httptools ---------------------------------------------------------------------

    def on_url(self, url: bytes) -> None:
        """A piece of the target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer, which is dropped: nothing reads it."""
        if self.in_head:
            if value[-1:] in _SPACE:
                value = value.rstrip(_SPACE)
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Judge the head; httptools takes what is raised here for an error of its own."""
        try:
            if len(self._headers) > self._limits.headers:
                raise BadRequest(431, "There are too many headers.")
            if len(self._url) > self._limits.target:
                raise BadRequest(414, "The request target is too long.")
            self._head = read_head(self._raw, self._parser.get_method(), self._url, self._headers)
        except BadRequest as bad:
            self._bad = bad
            raise

    def on_body(self, piece: bytes) -> None:
        """A piece of the body."""
        try:
            self._sink.body_came(piece)
        except BadRequest as bad:
            self._bad = bad
            raise

    def on_message_complete(self) -> None:
        """The end of a request."""
        self._is_complete = True
