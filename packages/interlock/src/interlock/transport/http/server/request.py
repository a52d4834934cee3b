"""Strict validation of an HTTP/1.1 request head (RFC 9112) against request smuggling: pure
functions of the method, the target, the version and the headers from httptools.

httptools (llhttp) itself rejects bare LF, folded lines, spaces before a colon, control characters,
bytes beyond ASCII in names, repeated or invalid lengths, and a length with a transfer coding. This
module rejects what httptools accepts and RFC 9112 does not allow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

Pairs = Sequence[tuple[bytes, bytes]]

UNKNOWN = -1
"""The length of a chunked body."""

_ABSOLUTE = re.compile(rb"(https?)://([^/?#@]+)([/?].*)?", re.I | re.S).fullmatch
_DEFAULT_PORTS = {b"http": b":80", b"https": b":443"}
_SINGLE = frozenset({b"host", b"content-length", b"transfer-encoding"})


class BadRequest(ValueError):
    """A request that is rejected before the app gets it. Its connection is closed.

    Attributes:
        status: The HTTP status.
        words: The error message, for the body of the response.
    """

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.words = words


class RequestHead(Struct):
    """The head of one request. Requests with equal heads may share it.

    Attributes:
        method: The method, in capitals.
        target: The path and the query, without scheme and host.
        headers: The headers in order, with names in lower case.
        is_old: Whether the request is HTTP/1.0.
        keep_alive: Whether another request may follow on the connection.
        length: The size of the body in bytes; `UNKNOWN` for a chunked body.
        expects_continue: Whether the client waits for `100 Continue` before it sends the body.
        prepared: What the app has read from this head before; None at first.
    """

    method: str
    target: bytes
    headers: list[tuple[bytes, bytes]]
    is_old: bool = False
    keep_alive: bool = True
    length: int = 0
    expects_continue: bool = False
    prepared: Any = None

    @property
    def path(self) -> str:
        """The decoded path."""
        return split_target(self.target)[0]

    @property
    def query(self) -> bytes:
        """The query of the target."""
        return split_target(self.target)[2]


def read_head(
    raw: bytes | bytearray, method: bytes, target: bytes, headers: list[tuple[bytes, bytes]]
) -> RequestHead:
    """Validate a head that httptools has parsed.

    Args:
        raw: The bytes of the head.
        method: The method.
        target: The request target.
        headers: The headers, with names in lower case.

    Raises:
        BadRequest: The head is ambiguous, or this server does not support it.
    """
    is_old = False
    if not raw.startswith(b"%b %b HTTP/1.1\r\n" % (method, target)):
        is_old = is_http_1_0(raw, method, target)
    known = dict(headers)
    if len(known) != len(headers):
        check_repeated(headers)
    host = known.get(b"host")
    if host is None and not is_old:
        raise BadRequest(400, "A request of HTTP/1.1 has one Host header.")
    if not target.startswith(b"/"):
        target = origin_form(target, host)
    elif b"#" in target:
        raise BadRequest(400, "A request target has no fragment.")
    length = 0
    if (coding := known.get(b"transfer-encoding")) is not None:
        check_coding(coding, known, is_old=is_old)
        length = UNKNOWN
    elif (said := known.get(b"content-length")) is not None:
        length = content_length(said)
    connection = known.get(b"connection")
    expectation = known.get(b"expect")
    return RequestHead(
        method.decode("ascii"),
        target,
        headers,
        is_old,
        not is_old and (connection is None or not closes(headers)),
        length,
        expectation is not None and not is_old and expects_continue(expectation),
    )


def is_http_1_0(raw: bytes | bytearray, method: bytes, target: bytes) -> bool:
    """Whether a request line is HTTP/1.0. Raises BadRequest for any line that is not HTTP/1.x with
    single spaces.
    """
    if raw.startswith(b"%b %b HTTP/1.0\r\n" % (method, target)):
        return True
    if raw.startswith(b"%b %b HTTP/" % (method, target)):
        raise BadRequest(505, "This server speaks HTTP/1.1 and HTTP/1.0.")
    raise BadRequest(400, "The request line is not one of HTTP/1.1.")


def check_repeated(headers: Pairs) -> None:
    """Raise BadRequest if a header occurs twice that determines the end of a request or its
    host.
    """
    seen = set()
    for name, _ in headers:
        if name in seen and name in _SINGLE:
            raise BadRequest(400, f"The header {name.decode('ascii')} comes more than once.")
        seen.add(name)


def content_length(value: bytes) -> int:
    """Return the length of a body. Raises BadRequest unless the value is a plain number."""
    if not value.isdigit() or len(value) > 18:
        raise BadRequest(400, "The content length is not a number of bytes.")
    return int(value)


def check_coding(value: bytes, headers: Mapping[bytes, bytes], *, is_old: bool) -> None:
    """Raise BadRequest for any transfer coding except `chunked` alone (RFC 9112, 6.1)."""
    if is_old:
        raise BadRequest(400, "HTTP/1.0 has no transfer codings.")
    if b"content-length" in headers:
        raise BadRequest(400, "A request has a length or a transfer coding, not both.")
    if value.lower() != b"chunked":
        raise BadRequest(501, "The only transfer coding of this server is chunked.")


def closes(headers: Pairs) -> bool:
    """Whether the headers contain `Connection: close`."""
    return any(
        option.strip(b" \t").lower() == b"close"
        for name, value in headers
        if name == b"connection"
        for option in value.split(b",")
    )


def expects_continue(value: bytes) -> bool:
    """Whether an expectation is `100-continue`. Raises BadRequest for any other expectation (RFC
    9110, 10.1.1).
    """
    if value.lower() != b"100-continue":
        raise BadRequest(417, "The only expectation that this server meets is 100-continue.")
    return True


def origin_form(target: bytes, host: bytes | None) -> bytes:
    """Return the path and query of an absolute target, which a server must accept (RFC 9112,
    3.2.2).

    Raises:
        BadRequest: The target names another host than the Host header, which the host check uses;
            or it is a target for a proxy or a tunnel.
    """
    match = _ABSOLUTE(target)
    if match is None or b"#" in target:
        raise BadRequest(400, "A request target begins with a slash.")
    scheme, authority, rest = match.groups()
    port = _DEFAULT_PORTS[scheme.lower()]
    if host is None or _without(port, authority) != _without(port, host):
        raise BadRequest(400, "The target and the Host header name different hosts.")
    if rest is None:
        return b"/"
    return b"/" + rest if rest.startswith(b"?") else rest


def _without(port: bytes, host: bytes) -> bytes:
    """Return a host in lower case without its default port."""
    return host.lower().removesuffix(port)


def split_target(target: bytes) -> tuple[str, bytes, bytes]:
    """Return the decoded path, the path as it was sent, and the query of an origin-form target."""
    raw, _, query = target.partition(b"?")
    path = raw.decode("ascii")
    return (unquote(path) if "%" in path else path), raw, query
