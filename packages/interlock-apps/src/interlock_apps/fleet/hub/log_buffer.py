"""The log of one server: its log messages and lines of stderr, with a limit on lines per second."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from interlock.redaction import Redactor
from interlock.types import LoggingMessageNotificationParams

from ..events import Event, Notice, ServerLogLine

MOST_LINES = 1_000
MOST_CHARACTERS = 4 * 1024
_MOST_LOGGER = 200  # characters of a logger's name
_LEFT_OUT = 8 * 1024  # characters; a longer line of stderr may have lost its beginning
_LAST_LINES = 5
_QUIET = 60.0  # seconds between two notices of a flood


class ServerLogBuffer:
    """Keeps the last log messages and lines of stderr of a server, and publishes each.

    At most `most` lines a second are kept. The excess is counted, and the log contains that count
    at the place where the flood ends.
    """

    def __init__(
        self,
        server: str,
        redactor: Redactor,
        publish: Callable[[Event], None],
        clock: Callable[[], float],
        most: int,
    ) -> None:
        self.lines: deque[ServerLogLine] = deque(maxlen=MOST_LINES)
        self.last_stderr: deque[str] = deque(maxlen=_LAST_LINES)  # of the current process
        self.redactor = redactor
        self.left_out = 0  # in total
        self._server = server
        self._publish = publish
        self._clock = clock
        self._most = most
        self._since = float("-inf")
        self._taken = 0
        self._missing = 0
        self._noticed = float("-inf")

    def process_started(self) -> None:
        """Clear the last lines of stderr: they came from another process."""
        self.last_stderr.clear()

    def add_line(self, line: str) -> None:
        """Add a line of stderr."""
        if self._is_due():
            if len(line) >= _LEFT_OUT:
                line = line[self.redactor.longest :]
            self._redact_and_add("stderr", line, "")
            self.last_stderr.append(self.lines[-1].text)

    def add_message(self, params: LoggingMessageNotificationParams) -> None:
        """Add a log message."""
        if self._is_due():
            text = params.data if isinstance(params.data, str) else _json(params.data)
            self._redact_and_add(params.level, text, params.logger or "")

    def _is_due(self) -> bool:
        """Whether another line may be added in this second."""
        now = self._clock()
        if now - self._since >= 1.0:
            self._since = now
            self._taken = 0
            if self._missing:
                missing = self._missing
                self._missing = 0
                self._add("warning", f"({missing:,} lines were left out here.)", "interlock")
        if self._taken < self._most:
            self._taken += 1
            return True
        self._missing += 1
        self.left_out += 1
        if now - self._noticed >= _QUIET:
            self._noticed = now
            words = (
                f"{self._server} writes more than {self._most} log lines a second. "
                "Further lines are left out."
            )
            self._publish(Notice(level="warning", words=words, server=self._server))
        return False

    def _redact_and_add(self, level: str, text: str, logger: str) -> None:
        self._add(
            level,
            self.redactor.beginning(text, MOST_CHARACTERS),
            self.redactor.beginning(logger, _MOST_LOGGER),
        )

    def _add(self, level: str, text: str, logger: str) -> None:
        said = ServerLogLine(server=self._server, level=level, text=text, logger=logger)
        self.lines.append(said)
        self._publish(said)


def _json(data: Any) -> str:
    try:
        return msgspec.json.encode(data).decode()
    except (TypeError, ValueError, msgspec.MsgspecError, RecursionError):
        return repr(data)
