"""Rate-limited logging: a peer that causes the same record again and again cannot fill the log.

The first records of each kind are written in full. After that, one record is written from time to
time, with the number of records that were left out.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable
from typing import Any

import msgspec

from .rates import acquire

BURST = 20
"""The number of records of one kind that are written in full."""
SECONDS = 10.0
"""The interval at which one record is written after that, in seconds."""

_MOST_KINDS = 1000  # beyond this number the oldest kinds are forgotten
_encode = msgspec.json.Encoder().encode


def limited(name: str) -> logging.Logger:
    """Return the logger of this name, whose warnings and errors are rate-limited.

    Records below WARNING are not limited: they are off by default.
    """
    logger = logging.getLogger(name)
    if not any(isinstance(known, RateLimit) for known in logger.filters):
        logger.addFilter(RateLimit())
    return logger


class JsonLine:
    """A log message that is one JSON object; `kind` says which messages are alike."""

    def __init__(self, kind: Hashable, members: dict[str, Any]) -> None:
        self.kind = kind
        self.members = members

    def __str__(self) -> str:
        """Return one line for every reader: some readers treat characters beyond ASCII as line
        ends.
        """
        text = _encode(self.members).decode()
        if text.isascii():
            return text
        import json  # late: seldom needed, and every start would pay for it

        return json.dumps(self.members)


class _Kind(msgspec.Struct):
    full: float | None = None  # when its bucket is full again
    left_out: int = 0
    since: float = 0.0  # when the first of the omitted records came


class RateLimit(logging.Filter):
    """A token bucket for each kind of log record.

    Records are of one kind if they have the same logger, level and message template, and exceptions
    of the same type from the same line.

    Args:
        burst: The number of records of one kind that pass at once.
        seconds: The interval at which one more record of a kind passes, in seconds.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        *,
        burst: int = BURST,
        seconds: float = SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` returns monotonic seconds."""
        super().__init__()
        self._burst = burst
        self._seconds = seconds
        self._clock = clock
        self._kinds: dict[Hashable, _Kind] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Decide whether a record passes, and add to it the number of records that were left out
        before.
        """
        if record.levelno < logging.WARNING:
            return True
        now = self._clock()
        kind = self._kind(record)
        kind.full, wait = acquire(kind.full, rate=1 / self._seconds, burst=self._burst, now=now)
        if wait > 0:
            kind.since = kind.since if kind.left_out else now
            kind.left_out += 1
            return False
        if kind.left_out:
            _add(record, kind.left_out, now - kind.since)
            kind.left_out = 0
        return True

    def reset(self) -> None:
        """Forget all counts, for example between two tests."""
        self._kinds.clear()

    def _kind(self, record: logging.LogRecord) -> _Kind:
        key = _key(record)
        kind = self._kinds.get(key)
        if kind is None:
            while len(self._kinds) >= _MOST_KINDS:
                self._kinds.pop(next(iter(self._kinds)), None)  # may be gone: other threads
            kind = self._kinds[key] = _Kind()
        return kind


def _key(record: logging.LogRecord) -> Hashable:
    line = _json_line(record)
    what = record.msg if line is None else line.kind
    error = record.exc_info[1] if record.exc_info else None
    if error is None:
        return record.levelno, what
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    where = None if last is None else (last.tb_frame.f_code.co_filename, last.tb_lineno)
    return record.levelno, what, type(error), where


def _json_line(record: logging.LogRecord) -> JsonLine | None:
    args = record.args
    found = args[0] if isinstance(args, tuple) and args else None
    return found if isinstance(found, JsonLine) else None


def _add(record: logging.LogRecord, left_out: int, seconds: float) -> None:
    line = _json_line(record)
    if line is not None:
        line.members = {**line.members, "more": left_out, "seconds": round(seconds)}
        return
    words = record.getMessage()
    record.msg = f"{words} (and {left_out} more like it in the last {max(1, round(seconds))} s)"
    record.args = ()
