"""The file format of tapes: JSON lines with a version in the header, and a hash chain.

A tape has one JSON object a line:

    {"tape":1,"about":{...},"began":1790000000.0}                     header: version, wall clock
    {"at":0.001,"connection":"1","client":{"jsonrpc":"2.0",...}}      message of the client
    {"at":0.002,"connection":"1","server":{...}}                      message of the server
    {"at":0.003,"connection":"1","server bytes":{"text":"oops"}}      bytes that are not JSON
    {"at":0.004,"connection":"1","stderr":"Listening\\n"}              stderr of the server
    {"at":0.005,"connection":"2","exchange":7,"http":{"request":"POST /mcp","headers":[...]}}
    {"at":0.006,"connection":"2","exchange":7,"http":{"status":200,"headers":[...]}}
    {"at":0.007,"connection":"1","exit":0}                            how the connection ended

`at` is in seconds since the header before the line. `exchange` is the number of an HTTP exchange
(one request with its response). A recorder that appends to a file writes another header first, so a
file can have several sections. A tape written by hand needs neither header, times nor connections.

In a recorded tape the last member of each line is `chain`: the first 32 hex digits of
SHA-256(chain of the line before + the line without this member). The chain has no key. It shows
that a line was changed, removed or inserted, but not that the end of the file was cut off.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

from ..wire.jsonrpc import READ_ERRORS, Frame

FORMAT_VERSION = 1
"""The version of the format that this module writes."""

Sender = Literal["client", "server"]
"""The side that sent a message."""

_CHAIN = b',"chain":"'
_DIGITS = 32  # hex digits of a chain value
_json = msgspec.json.Decoder().decode
_skip = msgspec.json.Decoder(Raw).decode
_fields = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.Encoder().encode


class TapeError(ValueError):
    """A tape cannot be read: it has an invalid line, or a version that is not supported."""


class Line(Struct, frozen=True):
    """One message of a tape.

    Attributes:
        sender: Who sent it.
        frame: Its bytes, without framing.
        at: Seconds since the tape began.
        connection: The connection that it was sent over; "" if the tape does not say.
        exchange: The number of its HTTP exchange; 0 if it was not sent over HTTP.
    """

    sender: Sender
    frame: Frame
    at: float = 0.0
    connection: str = ""
    exchange: int = 0

    @property
    def message(self) -> Any:
        """The decoded message; None if the bytes are not JSON."""
        try:
            return _json(self.frame)
        except READ_ERRORS:
            return None

    @property
    def is_notice(self) -> bool:
        """Whether it notifies of a change. The order of such notifications and of responses is not
        guaranteed.
        """
        message = self.message
        return isinstance(message, dict) and message.get("method") in _NOTICES

    def __str__(self) -> str:
        arrow = "-->" if self.sender == "client" else "<--"
        return f"{arrow} {self.frame.decode('utf-8', 'backslashreplace')}"


_NOTICES = {
    "notifications/resources/updated",
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
}


class TapeHeader(Struct, frozen=True):
    """The header of a tape, or of one section of it.

    Attributes:
        about: What was recorded, by what, and from where.
        version: The version of the format; 0 for a tape that was written by hand.
        began: When recording began, in seconds of the wall clock; 0.0 if the tape does not say.
    """

    about: Mapping[str, Any] = {}
    version: int = 0
    began: float = 0.0


class StderrText(Struct, frozen=True):
    """Text that the server wrote to stderr."""

    text: str
    at: float = 0.0
    connection: str = ""


class HttpHead(Struct, frozen=True):
    """The head of an HTTP request or response. Values of secret headers are redacted.

    Attributes:
        request: The method and the target, such as `POST /mcp`; "" for a response.
        status: The status code of a response; 0 for a request.
        headers: Names and values, in order.
        at: Seconds since the header of the tape.
        connection: The connection.
        exchange: The number of the exchange, the same for a request and its response.
    """

    request: str = ""
    status: int = 0
    headers: Sequence[tuple[str, str]] = ()
    at: float = 0.0
    connection: str = ""
    exchange: int = 0


class ConnectionEnd(Struct, frozen=True):
    """The end of a connection. `code` is the exit code of the server's process: negative for a
    signal, None if there is no process.
    """

    code: int | None = None
    at: float = 0.0
    connection: str = ""


TapeLine = Line | StderrText | HttpHead | ConnectionEnd | TapeHeader
"""Whatever a line of a tape can be."""


# -- writing ---------------------------------------------------------------------------------------


def encode_header(header: TapeHeader) -> bytes:
    """Return the header as a line without its line end."""
    return _encode(
        {"tape": header.version or FORMAT_VERSION, "about": header.about, "began": header.began}
    )


def encode_frame(
    sender: Sender, frame: Frame, at: float | None = None, connection: str = "", exchange: int = 0
) -> bytes:
    """Return a message as a line without its line end. `at` is in seconds.

    JSON is written as it is, byte for byte. Other bytes are written as text, or as base64 if they
    are not UTF-8.
    """
    head = _head(at, connection, exchange)
    if is_json(frame):
        return b'{%b"%b":%b}' % (head, sender.encode(), frame)
    try:
        kind = b"text"
        text = frame.decode()
    except UnicodeDecodeError:
        kind = b"base64"
        text = base64.b64encode(frame).decode()
    return b'{%b"%b bytes":{"%b":%b}}' % (head, sender.encode(), kind, _encode(text))


def encode_stderr(line: StderrText) -> bytes:
    """Return a piece of stderr as a line without its line end."""
    return b'{%b"stderr":%b}' % (_head(line.at, line.connection, 0), _encode(line.text))


def encode_http_head(head: HttpHead) -> bytes:
    """Return an HTTP head as a line without its line end."""
    first = {"request": head.request} if head.request else {"status": head.status}
    members = _encode({**first, "headers": list(head.headers)})
    return b'{%b"http":%b}' % (_head(head.at, head.connection, head.exchange), members)


def encode_end(end: ConnectionEnd) -> bytes:
    """Return the end of a connection as a line without its line end."""
    return b'{%b"exit":%b}' % (_head(end.at, end.connection, 0), _encode(end.code))


def _head(at: float | None, connection: str, exchange: int) -> bytes:
    head = b"" if at is None else b'"at":%.6f,' % at
    if connection:
        head += b'"connection":%b,' % _encode(connection)
    if exchange:
        head += b'"exchange":%d,' % exchange
    return head


def is_json(frame: Frame) -> bool:
    """Return whether bytes are one JSON value in UTF-8 that fits in a line. No value is made of
    them.
    """
    if b"\n" in frame or not frame:
        return False
    try:
        if not frame.isascii():
            str(frame, "utf-8")
        _skip(frame)
    except READ_ERRORS:
        return False
    return True


# -- the chain -------------------------------------------------------------------------------------


def chain_line(body: bytes, before: bytes) -> tuple[bytes, bytes]:
    """Add the member `chain` to a line.

    Args:
        body: The line without it.
        before: The chain value of the line before; b"" for the first.

    Returns:
        The line, and its chain value.
    """
    value = chain_value(body, before)
    return b'%b,"chain":"%b"}' % (body[:-1], value), value


def chain_value(body: bytes, before: bytes) -> bytes:
    """Return the chain value of a line, which `body` is without the member `chain`."""
    return hashlib.sha256(before + body).hexdigest()[:_DIGITS].encode()


def unchain_line(line: bytes) -> tuple[bytes, bytes]:
    """Split a line into what it is without the member `chain`, and the value of that; b"" if it has
    none.
    """
    cut = len(line) - len(_CHAIN) - _DIGITS - 2
    if cut < 0 or line[cut : cut + len(_CHAIN)] != _CHAIN or not line.endswith(b'"}'):
        return line, b""
    return line[:cut] + b"}", line[-_DIGITS - 2 : -2]


# -- reading ---------------------------------------------------------------------------------------


def decode_line(line: bytes) -> TapeLine | None:
    """Read one line; None for an empty line and for a `remark`.

    Raises TapeError for anything else that is not a line of a tape.
    """
    if not line.strip():
        return None
    try:
        return _decoded(_fields(line))
    except (*READ_ERRORS, ValueError, KeyError) as bad:
        raise TapeError(str(bad)) from None


def _decoded(fields: dict[str, Raw]) -> TapeLine | None:
    at = msgspec.json.decode(fields.get("at", b"0"), type=float)
    connection = msgspec.json.decode(fields.get("connection", b'""'), type=str)
    exchange = msgspec.json.decode(fields.get("exchange", b"0"), type=int)
    if "tape" in fields or "about" in fields:
        return _decoded_header(fields)
    if "remark" in fields:
        return None
    for sender in _SENDERS:
        if sender in fields:
            return Line(sender, bytes(fields[sender]), at, connection, exchange)
        if f"{sender} bytes" in fields:
            given = msgspec.json.decode(fields[f"{sender} bytes"], type=dict[str, str])
            is_text = "text" in given
            frame = given["text"].encode() if is_text else base64.b64decode(given["base64"])
            return Line(sender, frame, at, connection, exchange)
    if "stderr" in fields:
        return StderrText(msgspec.json.decode(fields["stderr"], type=str), at, connection)
    if "http" in fields:
        head = msgspec.json.decode(fields["http"], type=HttpHead)
        return msgspec.structs.replace(head, at=at, connection=connection, exchange=exchange)
    if "exit" in fields:
        code = msgspec.json.decode(fields["exit"], type=int | None)
        return ConnectionEnd(code, at, connection)
    raise ValueError('a line of a tape has a "client", a "server", an "about" or a "remark"')


_SENDERS: tuple[Sender, ...] = ("client", "server")


def _decoded_header(fields: dict[str, Raw]) -> TapeHeader:
    version = msgspec.json.decode(fields.get("tape", b"0"), type=int)
    if version > FORMAT_VERSION:
        raise ValueError(
            f"the tape has version {version}, and this Interlock reads versions up to"
            f" {FORMAT_VERSION}: update Interlock"
        )
    about = msgspec.json.decode(fields.get("about", b"{}"), type=dict[str, Any])
    began = msgspec.json.decode(fields.get("began", b"0"), type=float)
    return TapeHeader(about, version, began)
