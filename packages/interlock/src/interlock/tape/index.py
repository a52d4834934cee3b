"""The index of a tape: one row for each line, built in one pass that decodes no message as a whole.

A row says where the line is in the file, when it was recorded, and what it is: its kind, sender,
connection, method, id and the name of the tool, prompt or resource. It pairs each response with its
request. The params and the results themselves are skipped, and read from the file when needed.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from ..protocol.handshake.messages import is_opening
from ..types.base import RequestId
from ..wire.jsonrpc import READ_ERRORS, is_batch
from .format import (
    Line,
    Sender,
    TapeError,
    TapeHeader,
    chain_value,
    decode_line,
    is_json,
    unchain_line,
)

Kind = Literal[
    "request",
    "notification",
    "response",
    "error",
    "batch",
    "bytes",
    "stderr",
    "http",
    "exit",
    "header",
    "remark",
]
"""What a line is. An `error` is a response with a JSON-RPC error. `bytes` are not a message."""

_INPUT_REQUIRED = "input_required"
_MOST_OPEN = 10_000  # unanswered requests of a connection with the same id


class TapeRow(Struct, gc=False, weakref=False):
    """One line of a tape, without its contents.

    Attributes:
        number: The number of the row, from 0.
        offset: Where the line begins in the file, in bytes.
        length: Its length in bytes, without the line end.
        kind: What it is.
        sender: "client" or "server" for messages; "" otherwise.
        connection: The connection. In the second section of a file and later ones, the number of
            the section is before it: "2:1".
        exchange: The number of the HTTP exchange; 0 if there is none.
        at: When it was recorded: seconds of the wall clock if the header has a `began`, and seconds
            since the tape began otherwise.
        method: The method of a request or notification; of a response, that of its request.
        name: The name of the tool or prompt, or the URI of the resource; "" if there is none.
        id: The JSON-RPC id of a request or response.
        failed: Whether it is an error, or a tool result with `isError`.
        partner: The number of the row of the response to this request, or of the request of this
            response; -1 if there is none.
        asks: Whether it is an `input_required` result.
        retries: Whether it is a request that goes on after such a result: it has answers or a
            state.
    """

    number: int
    offset: int
    length: int
    kind: Kind
    sender: Sender | Literal[""] = ""
    connection: str = ""
    exchange: int = 0
    at: float = 0.0
    method: str = ""
    name: str = ""
    id: RequestId | None = None
    failed: bool = False
    partner: int = -1
    asks: bool = False
    retries: bool = False


class TapeIndex:
    """The rows of a tape, in order. `add` appends one for a line, so a running recording can be
    indexed too.
    """

    def __init__(self) -> None:
        self.rows: list[TapeRow] = []
        self.headers: list[TapeHeader] = []
        self.problems: list[str] = []  # what cannot be read, for a person
        self.openings: dict[str, list[int]] = {}  # the rows that end a handshake, by connection
        self._open: dict[tuple[str, str, RequestId | None], deque[int]] = {}
        self._prefix = ""
        self._began = 0.0

    def add(self, line: bytes, offset: int) -> TapeRow | None:
        """Append the row of a line; return None if it is empty.

        A line that cannot be read becomes a row of the kind `bytes`, and a problem. Raises
        TapeError for a header with a version that is not supported.
        """
        if not line.strip():
            return None
        row = TapeRow(len(self.rows), offset, len(line), "bytes")
        try:
            found = _scan(line)
        except READ_ERRORS:
            self._add_unusual(row, line)
        else:
            self._place(row, found.at, found.connection, found.exchange)
            if found.client is not UNSET:
                row.sender = "client"
                self._fill(row, found.client)
            elif found.server is not UNSET:
                row.sender = "server"
                self._fill(row, found.server)
            else:
                self._fill_other(row, found, line)
        self.rows.append(row)
        return row

    def duration(self, row: TapeRow) -> float | None:
        """The seconds between a request and its response; None if one of them is missing."""
        if row.partner < 0:
            return None
        return abs(self.rows[row.partner].at - row.at)

    def _place(self, row: TapeRow, at: float, connection: str, exchange: int) -> None:
        row.at = self._began + at
        row.connection = self._prefix + connection if self._prefix else connection
        row.exchange = exchange

    def _fill(self, row: TapeRow, message: _Message) -> None:
        method = message.method
        if isinstance(method, str):
            row.method = method
            if message.params is not UNSET:
                params = message.params
                row.name = params.name or params.uri
                row.retries = params.state is not UNSET or params.answers is not UNSET
            if isinstance(message.id, int | str):
                row.kind = "request"
                row.id = message.id
                self._await_response(row)
            else:
                row.kind = "notification"
        elif message.result is not UNSET or message.error is not UNSET:
            is_error = message.error is not UNSET and message.error is not None
            row.kind = "error" if is_error else "response"
            if message.result is not UNSET:
                row.failed = message.result.is_error
                row.asks = message.result.kind == _INPUT_REQUIRED
            row.failed = row.failed or is_error
            if isinstance(message.id, int | str):
                row.id = message.id
                self._pair(row)

    def _await_response(self, row: TapeRow) -> None:
        waiting = self._open.setdefault((row.connection, row.sender, row.id), deque())
        waiting.append(row.number)
        if len(waiting) > _MOST_OPEN:
            waiting.popleft()

    def _pair(self, row: TapeRow) -> None:
        """Find the request of a response: the oldest with its id, and over HTTP rather one of the
        same exchange, because stateless clients may use an id at the same time.
        """
        key = (row.connection, "client" if row.sender == "server" else "server", row.id)
        waiting = self._open.get(key)
        if not waiting:
            return
        number = waiting[0]
        if row.exchange and len(waiting) > 1:
            alike = (n for n in waiting if self.rows[n].exchange == row.exchange)
            number = next(alike, number)
        waiting.remove(number)
        if not waiting:
            del self._open[key]
        request = self.rows[number]
        request.partner = row.number
        row.partner = number
        row.method = request.method
        row.name = request.name
        if is_opening(row.method):
            self.openings.setdefault(row.connection, []).append(row.number)

    def _add_unusual(self, row: TapeRow, line: bytes) -> None:
        """Fill the row of a line that the quick scan could not read."""
        try:
            found = decode_line(line)
        except TapeError as bad:
            self.problems.append(f"line at byte {row.offset}: {bad}")
            return
        if not isinstance(found, Line):
            return
        row.sender = found.sender
        self._place(row, found.at, found.connection, found.exchange)
        message = _message_of(found.frame)
        if message is not None:
            self._fill(row, message)
        elif is_batch(found.frame) and is_json(found.frame):
            row.kind = "batch"

    def _add_header(self, row: TapeRow, line: bytes) -> None:
        header = decode_line(line)
        assert isinstance(header, TapeHeader)
        if header.version and any(h.version for h in self.headers):
            sections = sum(1 for h in self.headers if h.version) + 1
            self._prefix = f"{sections}:"
        self.headers.append(header)
        self._began = header.began
        row.kind = "header"
        row.at = header.began
        row.connection = ""

    def _fill_other(self, row: TapeRow, found: _Scanned, line: bytes) -> None:
        if found.tape is not UNSET or found.about is not UNSET:
            self._add_header(row, line)
        elif found.stderr is not UNSET:
            row.kind = "stderr"
        elif found.http is not UNSET:
            row.kind = "http"
        elif found.exit is not UNSET:
            row.kind = "exit"
        elif found.remark is not UNSET:
            row.kind = "remark"
        elif found.client_bytes is not UNSET or found.server_bytes is not UNSET:
            row.sender = "client" if found.client_bytes is not UNSET else "server"
        else:
            self.problems.append(f"line at byte {row.offset}: it is not a line of a tape")


class ChainCheck:
    """Checks the hash chain of a tape, line by line."""

    def __init__(self) -> None:
        self._value = b""
        self._is_chained = False

    def check(self, line: bytes) -> str:
        """Return what is wrong with the chain at this line; "" if nothing is."""
        body, value = unchain_line(line)
        if not value:
            return "has no chain value, so it was not recorded" if self._is_chained else ""
        expected = chain_value(body, self._value)
        self._is_chained = True
        self._value = value
        if value == expected:
            return ""
        return "does not follow from the line before: one of the two was changed, or lines between"


# -- decoding that skips what the index does not need ----------------------------------------------


class _Params(Struct):
    name: str = ""
    uri: str = ""
    state: Raw | UnsetType = msgspec.field(default=UNSET, name="requestState")
    answers: Raw | UnsetType = msgspec.field(default=UNSET, name="inputResponses")


class _Result(Struct, gc=False):
    is_error: bool = msgspec.field(default=False, name="isError")
    kind: str = msgspec.field(default="", name="resultType")


class _Ignored(Struct, gc=False):
    """Any object."""


class _Message(Struct):
    method: str | UnsetType = UNSET
    id: RequestId | UnsetType | None = UNSET
    params: _Params | UnsetType = UNSET
    result: _Result | UnsetType = UNSET
    error: _Ignored | UnsetType | None = UNSET


class _Scanned(Struct):
    at: float = 0.0
    connection: str = ""
    exchange: int = 0
    client: _Message | UnsetType = UNSET
    server: _Message | UnsetType = UNSET
    client_bytes: _Ignored | UnsetType = msgspec.field(default=UNSET, name="client bytes")
    server_bytes: _Ignored | UnsetType = msgspec.field(default=UNSET, name="server bytes")
    stderr: str | UnsetType = UNSET
    http: _Ignored | UnsetType = UNSET
    exit: int | UnsetType | None = UNSET
    tape: int | UnsetType = UNSET
    about: _Ignored | UnsetType = UNSET
    remark: Raw | UnsetType = UNSET


_scan = msgspec.json.Decoder(_Scanned).decode
_json = msgspec.json.Decoder().decode


def _message_of(frame: bytes) -> _Message | None:
    """Return what can be read of a message with an unusual shape: params in a list, a result that
    is not an object. None for a batch, and for what is not a message.
    """
    try:
        value = _json(frame)
    except READ_ERRORS:
        return None
    if not isinstance(value, dict):
        return None
    method = value.get("method")
    id = value.get("id")
    message = _Message(
        method=method if isinstance(method, str) else UNSET,
        id=id if isinstance(id, int | str) else UNSET,
    )
    params = value.get("params")
    if isinstance(params, dict):
        message.params = _Params(
            _text(params.get("name")),
            _text(params.get("uri")),
            *(Raw(b"") if name in params else UNSET for name in ("requestState", "inputResponses")),
        )
    if "result" in value:
        result = value["result"]
        if isinstance(result, dict):
            kind = _text(result.get("resultType"))
            message.result = _Result(result.get("isError") is True, kind)
        else:
            message.result = _Result()
    if value.get("error") is not None:
        message.error = _Ignored()
    return message


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
