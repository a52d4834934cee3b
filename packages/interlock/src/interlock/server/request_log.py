"""The request log of a server: one line for each request, with its outcome and duration.

A line has the method, the name of the tool, prompt or resource, the program of the caller, the
outcome and the duration; never arguments or results. `Server.run` writes it to stderr: over stdio
by default, otherwise on demand. If Python's logging is configured to show the logger
`interlock.requests` at INFO, the lines go there instead.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import select
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from time import perf_counter
from typing import Literal, get_args

from msgspec import Struct

from .. import types as t
from ..exchange import AnyResult, Exchange, Handler, Principal
from ..logs import JsonLine
from ..untrusted.invisible import visible_line

RequestLogFormat = Literal["text", "json", "off"]
"""How the request log is written."""

logger = logging.getLogger("interlock.requests")

_MOST_CHARACTERS = 200  # of a name that a caller chose
_PIECE = 4096  # bytes that a writable pipe takes at once (PIPE_BUF)
_MOST_WAITING = 1000  # lines
_STDERR = 2
_TEXT = "interlock: "
_JSON = '{"event":"request",'
_OTHER_LINES = (f"{_TEXT}warning: ", f"{_TEXT}error: ")
_PAUSE = 0.02  # seconds in which lines are collected


class RequestEntry(Struct, frozen=True):
    """One request that has ended. The words are made when it is written, many at a time.

    Attributes:
        method: The method.
        target: The name of the tool or prompt, or the URI of the resource, as the caller sent it.
        info: The program of the caller; None if it is unknown.
        principal: The caller as the guard verified it; None without a guard.
        outcome: "ok", "tool error", "input required", "cancelled", "error CODE", or an exception.
        ms: The duration in milliseconds.
    """

    method: str
    target: object
    info: t.Implementation | None
    principal: Principal | None
    outcome: str
    ms: float

    @property
    def name(self) -> str:
        """The target, bounded; "" if there is none."""
        return _bounded(str(self.target)) if self.target else ""

    @property
    def caller(self) -> str:
        """The name and version of the caller's program; "" if it is unknown."""
        return "" if self.info is None else _bounded(f"{self.info.name} {self.info.version}")

    @property
    def subject(self) -> str:
        """The subject of the principal; "" without one."""
        return "" if self.principal is None else _bounded(self.principal.subject)

    def __str__(self) -> str:
        target = self.target
        what = _what(self.method, str(target)[:_MOST_CHARACTERS] if target else "", self.outcome)
        info = self.info
        if info is None and self.principal is None:
            return f"{what}{self.ms:.1f} ms"
        name = "" if info is None else info.name[:_MOST_CHARACTERS]
        version = "" if info is None else info.version[:_MOST_CHARACTERS]
        return f"{what}{self.ms:.1f} ms{_by(name, version, self.subject)}"


class RequestLog:
    """Middleware that writes the request log.

    Args:
        write: Takes each entry. It must not raise or wait.
    """

    def __init__(self, write: Callable[[RequestEntry], None]) -> None:
        self._write = write

    def __call__(self, handler: Handler) -> Handler:
        """Wrap a handler."""

        async def handle(x: Exchange) -> AnyResult:
            began = perf_counter()
            outcome = ""
            try:
                result = await handler(x)
                outcome = outcome_of(result)
                return result
            except BaseException as bad:
                outcome = outcome_of_error(bad)
                raise
            finally:
                self._write(_entry(x, outcome, (perf_counter() - began) * 1000.0))

        return handle


def is_request_line(line: str) -> bool:
    """Return whether a line of a server's stderr is from its request log."""
    return line.startswith((_TEXT, _JSON)) and not line.startswith(_OTHER_LINES)


def outcome_of(result: AnyResult) -> str:
    """Return how a call ended that has a result."""
    if isinstance(result, t.InputRequiredResult):
        return "input required"
    return "tool error" if getattr(result, "is_error", False) else "ok"


def outcome_of_error(bad: BaseException) -> str:
    """Return how a call ended that raised."""
    if isinstance(bad, t.McpError):
        return f"error {bad.code}"
    return "cancelled" if isinstance(bad, asyncio.CancelledError) else type(bad).__name__


def _entry(x: Exchange, outcome: str, ms: float) -> RequestEntry:
    caller = x.caller
    params = x.params
    target = getattr(params, "name", None) or getattr(params, "uri", None)
    return RequestEntry(x.method, target, caller.info, caller.principal, outcome, ms)


@lru_cache(maxsize=256)
def _what(method: str, target: str, outcome: str) -> str:
    """The beginning of a line, which most requests share with earlier ones."""
    return f"{method} {_bounded(target)}: {outcome}, " if target else f"{method}: {outcome}, "


@lru_cache(maxsize=256)
def _by(program: str, version: str, subject: str) -> str:
    """The end of a line."""
    known = (_bounded(f"{program} {version}") if program else "", subject and f"as {subject}")
    by = " ".join(filter(None, known))
    return f" ({by})" if by else ""


def _bounded(text: str) -> str:
    """Shorten what a caller chose, and write out what could pass for another line."""
    text = text[:_MOST_CHARACTERS]
    return text if text.isascii() and text.isprintable() else visible_line(text)


def request_log(kind: str) -> RequestLog | None:
    """Return the request log of a program; None if nobody wants it.

    Logging that is configured for it takes precedence over stderr. Raises ValueError for an unknown
    format.
    """
    if kind not in get_args(RequestLogFormat):
        raise ValueError(f"the request log is text, json or off, not {kind!r}")
    if logger.isEnabledFor(logging.INFO) and logger.hasHandlers():
        return RequestLog(_to_logging_as_json if kind == "json" else _to_logging)
    if kind == "off":
        return None
    return RequestLog(StderrLines(_as_json if kind == "json" else _as_text).write)


def _as_text(entry: RequestEntry) -> str:
    return _TEXT + str(entry)


def _as_json(entry: RequestEntry) -> str:
    return str(JsonLine("request", _members(entry)))


def _to_logging(entry: RequestEntry) -> None:
    logger.info("%s", entry)


def _to_logging_as_json(entry: RequestEntry) -> None:
    logger.info("%s", JsonLine("request", _members(entry)))


def _members(entry: RequestEntry) -> dict[str, object]:
    members: dict[str, object] = {
        "event": "request",
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
    }
    for name in ("method", "name", "caller", "subject", "outcome"):
        if value := getattr(entry, name):
            members[name] = value
    members["ms"] = round(entry.ms, 1)
    return members


class StderrLines:
    """Writes entries to stderr and never waits: a host that does not read stderr loses lines.

    Entries are collected for 20 ms and written together. Where the system cannot tell whether a
    write would wait (on Windows), it may wait.

    Args:
        line_of: Returns the line of an entry.
        descriptor: The descriptor to write to.
    """

    def __init__(self, line_of: Callable[[RequestEntry], str], descriptor: int = _STDERR) -> None:
        self._line_of = line_of
        self._descriptor = descriptor
        self._waiting: list[RequestEntry] = []
        self._left_out = 0
        atexit.register(self.flush)

    def write(self, entry: RequestEntry) -> None:
        """Write an entry soon."""
        if not self._waiting:
            asyncio.get_running_loop().call_later(_PAUSE, self.flush)
        if len(self._waiting) < _MOST_WAITING:
            self._waiting.append(entry)
        else:
            self._left_out += 1

    def flush(self) -> None:
        """Write the entries that wait, as far as the reader takes them."""
        entries = self._waiting
        self._waiting = []
        line_of = self._line_of
        lines: list[bytes] = []
        size = 0
        for entry in entries:
            data = line_of(entry).encode("utf-8", "backslashreplace")[: _PIECE - 1]
            size += len(data) + 1
            if size > _PIECE:
                self._put(lines)
                lines = []
                size = len(data) + 1
            lines.append(data)
        self._put(lines)
        if self._left_out:
            left_out = self._left_out
            self._left_out = 0
            words = f"{_TEXT}{left_out} lines of the request log were left out"
            if not self._put([words.encode()]):
                self._left_out = left_out  # without the line about them

    def _put(self, lines: list[bytes]) -> bool:
        """Write lines, or count them as left out and return False."""
        if not lines:
            return True
        if not _is_writable(self._descriptor):
            self._left_out += len(lines)
            return False
        with contextlib.suppress(OSError):  # nobody reads stderr any more
            os.write(self._descriptor, b"\n".join((*lines, b"")))
        return True


def _is_writable(descriptor: int) -> bool:
    if not hasattr(select, "poll"):
        return True
    look = select.poll()
    look.register(descriptor, select.POLLOUT)
    return bool(look.poll(0))
