"""The incremental HTTP/1.1 request parser: httptools with strict validation of each request (RFC
9112), without I/O.

httptools does not report where in the bytes a message ends. So it gets no more bytes at once than
up to the next empty line, where a head or the trailers of a chunked body may end, or the bytes of a
body of known length.

Clients send the same head again and again. A head that was validated before is recognized by its
bytes; neither it nor its body is parsed again.
"""

from __future__ import annotations

from typing import Protocol

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from .limits import ConnectionLimits
from .request import UNKNOWN, BadRequest, RequestHead, read_head

_END = b"\r\n\r\n"
_SPACE = b" \t"
_LONGEST_KNOWN = 2048  # maximum size of a remembered head in bytes
_MOST_KNOWN = 512  # number of remembered heads
_NOT_HTTP = "Invalid HTTP request received."


class RequestSink(Protocol):
    """Receives the requests of one connection: each as a whole, or a head, pieces of the body, and
    an end.
    """

    def request_came(self, head: RequestHead, body: bytes) -> None:
        """Receive a request that has arrived as a whole."""

    def request_began(self, head: RequestHead) -> None:
        """Receive a complete head."""

    def body_came(self, piece: bytes) -> None:
        """Receive a piece of the current request's body."""

    def request_ended(self) -> None:
        """Receive the end of the current request."""


class RequestParser:
    """Parses the requests of one connection.

    Args:
        sink: Receives the requests.
        limits: The limits of a head.
        known: The validated heads, shared by all connections of a server.

    Attributes:
        in_head: Whether a head has arrived in part.
        in_body: Whether a body is expected or has arrived in part.
        is_over: Whether no further request is accepted. Then received data is dropped.
        is_paused: Set it to keep further requests unparsed until the next `feed`.
        rest: The received data that is not parsed yet.
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
        "is_paused",
        "rest",
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
        self._raw: bytes | bytearray = b""  # the received part of the head
        self._tail = b""  # the last bytes of a head or chunked body, which may split an empty line
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._head: RequestHead | None = None
        self._left = 0  # missing bytes of a body of known length
        self._is_complete = False
        self._is_upgrade = False  # whether the client requests an upgrade
        self._is_apart = False  # whether httptools does not get the current body
        self._keeps_alive = True
        self._bad: BadRequest | None = None
        self.in_head = False
        self.in_body = False
        self.is_over = False
        self.is_paused = False
        self.rest: bytes = b""

    def feed(self, data: bytes) -> None:
        """Parse received bytes.

        Raises:
            BadRequest: The bytes are not a valid request. Do not call `feed` again.
        """
        if self.rest:
            data = self.rest + data
            self.rest = b""
        position = 0
        size = len(data)
        while position < size and not self.is_over and not self.is_paused:
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
                elif size - position >= head.length:
                    end = position + head.length
                    self.is_over = not head.keep_alive
                    self._sink.request_came(head, data[position:end])
                    position = end
                else:
                    self._begin_known(head)
        if position < size and not self.is_over:
            self.rest = data[position:]

    def _empty_line(self, data: bytes, position: int) -> int:
        """Return where the next empty line ends, or the end of the data. The line may begin in
        earlier data.
        """
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
        """Process bytes of a body of known length. Returns where the rest of the data begins."""
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
            # An upgrade is ignored (RFC 9110, 7.8). httptools would parse the body of such a
            # request as the next request, so it does not get the body.
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
        """Process a complete and valid head."""
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
        """Process a head that was validated before, and whose body has not arrived completely."""
        self.in_body = self._is_apart = True
        self._keeps_alive = head.keep_alive
        self._left = head.length
        self._sink.request_began(head)

    def _check_complete(self) -> None:
        """Continue with the next request if the current one is complete."""
        if self._is_complete:
            self._is_complete = self._is_upgrade = self._is_apart = self.in_body = False
            self._url = self._tail = b""
            self.is_over = not self._keeps_alive
            self._sink.request_ended()

    # -- called by httptools -----------------------------------------------------------------------

    def on_url(self, url: bytes) -> None:
        """Receive a piece of the target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Receive a header. Trailers are dropped, because nothing reads them."""
        if self.in_head:
            if value[-1:] in _SPACE:
                value = value.rstrip(_SPACE)
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Validate the head. httptools turns exceptions of this method into its own."""
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
        """Receive a piece of the body."""
        try:
            self._sink.body_came(piece)
        except BadRequest as bad:
            self._bad = bad
            raise

    def on_message_complete(self) -> None:
        """Receive the end of a request."""
        self._is_complete = True
