"""The framing of HTTP/1.1 responses (RFC 9112, section 6): pure functions from status and headers
to the bytes of a head.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from enum import Enum
from http import HTTPStatus
from wsgiref.handlers import format_date_time

from msgspec import Struct

_REASONS = {status.value: status.phrase for status in HTTPStatus}
_LINES = {
    code: b"HTTP/1.1 %d %b\r\n" % (code, phrase.encode()) for code, phrase in _REASONS.items()
}
LAST_CHUNK = b"0\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Framing(Enum):
    """How the end of a response body is marked."""

    NONE = "there is no body"
    LENGTH = "the body has a known length"
    CHUNKED = "the body comes in chunks"
    CLOSE = "the body ends with the connection"


class ResponseHead(Struct, frozen=True):
    """The head of a response.

    Attributes:
        data: The bytes of the head.
        framing: How the end of the body is marked.
        length: The size of the body in bytes, if the framing is LENGTH.
        keep_alive: Whether the connection stays open afterwards.
    """

    data: bytes
    framing: Framing
    length: int
    keep_alive: bool


def status_line(status: int) -> bytes:
    """Return the status line. An unknown status has no phrase."""
    return _LINES.get(status) or b"HTTP/1.1 %d \r\n" % status


def make_head(
    status: int,
    headers: Iterable[tuple[bytes, bytes]],
    date: bytes,
    *,
    method: str = "GET",
    is_old: bool = False,
    keep_alive: bool = True,
    whole: int | None = None,
) -> ResponseHead:
    """Return the head of an app's response.

    Args:
        status: The status.
        headers: The headers of the app. Headers about the connection are ignored, except for a
            request to close it.
        date: The Date header, with its line end.
        method: The method of the request.
        is_old: Whether the request is HTTP/1.0.
        keep_alive: Whether the connection could stay open.
        whole: The size of the body in bytes, if it is complete.

    Raises:
        ValueError: A header contains a line end, which would begin another header (response
            splitting); or two lengths differ.
    """
    lines: list[bytes] = []
    length: int | None = None
    for name, value in headers:
        known = name.lower()
        if known == b"connection":
            keep_alive = keep_alive and b"close" not in value.lower()
            continue
        if known == b"transfer-encoding":
            continue
        if known == b"date":
            date = b""
        elif known == b"content-length":
            said = _length(value)
            if length is not None and said != length:
                raise ValueError("a response has one content-length")
            length = said
            continue
        lines.append(b"%b: %b\r\n" % (name, value))
    block = b"".join(lines)
    if block.count(b"\n") != len(lines) or block.count(b"\r") != len(lines) or b"\0" in block:
        raise ValueError("a header holds a line end or a NUL")
    if not 200 <= status <= 999:
        raise ValueError(f"a response has a final status, not {status}")
    if status in (204, 304) or method == "HEAD":
        framing = Framing.NONE
        if method == "HEAD" and length is None and whole:
            length = whole
        if status == 204:
            length = None
    elif length is not None or whole is not None:
        framing = Framing.LENGTH
        length = whole if length is None else length
    elif is_old:
        framing = Framing.CLOSE
        keep_alive = False
    else:
        framing = Framing.CHUNKED
    data = b"".join(
        (
            status_line(status),
            date,
            block,
            b"" if length is None else b"content-length: %d\r\n" % length,
            b"transfer-encoding: chunked\r\n" if framing is Framing.CHUNKED else b"",
            b"\r\n" if keep_alive else b"connection: close\r\n\r\n",
        )
    )
    return ResponseHead(data, framing, length or 0, keep_alive)


def _length(value: bytes) -> int:
    if not value.isdigit() or len(value) > 18:
        raise ValueError(f"a content-length is a number, not {value!r}")
    return int(value)


def simple_response(status: int, words: str) -> bytes:
    """Return a complete response of the server itself, after which the connection closes."""
    body = words.encode()
    return b"%bcontent-type: text/plain\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b" % (
        status_line(status),
        len(body),
        body,
    )


def date_header(now: float) -> bytes:
    """Return the Date header with its line end, for a time in seconds since 1970."""
    return b"date: %b\r\n" % format_date_time(now).encode()


class DateHeader:
    """The Date header, made once a second, and the response heads that contain no other variable
    part.
    """

    __slots__ = ("_data", "_heads", "_second")

    def __init__(self) -> None:
        self._second = 0
        self._data = b""
        self._heads: dict[bytes, bytes] = {}

    def now(self) -> bytes:
        """Return the header for this second."""
        second = int(time.time())
        if second != self._second:
            self._second = second
            self._data = date_header(second)
            self._heads = {}
        return self._data

    def usual_head(self, kind: bytes, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
        """Return the head of a 200 response with a body of this type, up to the number of its
        bytes. `headers` are always the same for the type.
        """
        date = self.now()
        head = self._heads.get(kind)
        if head is None:
            lines = b"".join(b"%b: %b\r\n" % header for header in headers)
            head = b"%b%b%bcontent-type: %b\r\ncontent-length: " % (
                _LINES[200],
                date,
                lines,
                kind,
            )
            self._heads[kind] = head
        return head
