"""What a server says beside its answers: log messages and lines on stderr, bounded in length, number and pace."""

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
_LEFT_OUT = 8 * 1024  # a line of stderr that is as long may have lost its beginning
_LAST_LINES = 5
_QUIET = 60.0  # seconds between two notices of a flood


class ServerLogBuffer:
    """Keeps the last of what a server says, and tells each piece of it.

    `most` a second are taken in; what is more is counted, and the count stands in the log where the flood ends.
    """

    def __init__(
        self,
        server: str,
        redactor: Redactor,
        tell: Callable[[Event], None],
        clock: Callable[[], float],
        most: int,
    ) -> None:
        self.log: deque[ServerLogLine] = deque(maxlen=MOST_LINES)
        self.redactor = redactor
        self.left_out = 0  # in all
        self.last: deque[str] = deque(
            maxlen=_LAST_LINES
        )  # of stderr, as long as the process is the same
        self._server, self._tell, self._clock, self._most = server, tell, clock, most
        self._since, self._taken, self._missing = float("-inf"), 0, 0
        self._noticed = float("-inf")

    def begin(self) -> None:
        """Another process speaks from now on."""
        self.last.clear()

    def hear_line(self, line: str) -> None:
        """A line on stderr."""
        if self._is_due():
            self._say(
                "stderr", line[self.redactor.longest :] if len(line) >= _LEFT_OUT else line, ""
            )
            self.last.append(self.log[-1].text)

    def hear_message(self, params: LoggingMessageNotificationParams) -> None:
        """A log message."""
        if self._is_due():
            self._say(
                params.level,
                params.data if isinstance(params.data, str) else _json(params.data),
                params.logger or "",
            )

    def _is_due(self) -> bool:
        """Whether there is room for one more in this second."""
        now = self._clock()
        if now - self._since >= 1.0:
            self._since, self._taken = now, 0
            if self._missing:
                missing, self._missing = self._missing, 0
                self._note("warning", f"({missing:,} lines were left out here.)", "interlock")
        if self._taken < self._most:
            self._taken += 1
            return True
        self._missing += 1
        self.left_out += 1
        if now - self._noticed >= _QUIET:
            self._noticed = now
            words = f"{self._server} writes more than {self._most} log lines a second; what is more is left out."
            self._tell(Notice(level="warning", words=words, server=self._server))
        return False

    def _say(self, level: str, text: str, logger: str) -> None:
        self._note(
            level,
            self.redactor.beginning(text, MOST_CHARACTERS),
            self.redactor.beginning(logger, _MOST_LOGGER),
        )

    def _note(self, level: str, text: str, logger: str) -> None:
        said = ServerLogLine(server=self._server, level=level, text=text, logger=logger)
        self.log.append(said)
        self._tell(said)


def _json(data: Any) -> str:
    try:
        return msgspec.json.encode(data).decode()
    except (TypeError, ValueError, msgspec.MsgspecError, RecursionError):
        return repr(data)
