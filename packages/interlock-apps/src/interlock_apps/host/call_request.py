"""The request for a call, its outcome, and the calls under way at each server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from msgspec import Struct

from interlock import CallToolResult
from interlock.types import ProgressNotificationParams

from ..fleet import threat_scan
from ..fleet.events import CallProgress
from ..fleet.toolbox import ServerTool

MOST_PROGRESS = 1_000  # characters of a server's progress message


async def _at_once() -> None:
    """The turn of a call that waits for no other."""


class CallRequest(Struct, frozen=True, kw_only=True):
    """A call that the model, an app or the person requests.

    Attributes:
        call: The id of the call.
        session: The conversation, or "".
        item: The tool.
        arguments: The original arguments.
        by: Who requests the call.
        group: The same for all calls of one step of the model; "" for a call on its own. Their
            questions can be answered together.
        turn: Waits until the calls of the step that have to run before this one have ended. The
            person is asked before that.
    """

    call: str
    session: str
    item: ServerTool
    arguments: dict[str, Any]
    by: Literal["model", "app", "person"] = "model"
    group: str = ""
    turn: Callable[[], Awaitable[None]] = _at_once


class CallOutcome(Struct, frozen=True):
    """The result of a call, or the reason why there is none.

    Attributes:
        result: The result; None if there is none.
        words: Why there is no result, in the host's words.
        said: The server's error message. Untrusted.
        could_not_ask: Whether the tool failed because its server cannot ask questions under the
            negotiated revision.
        goes_on: Whether the call goes on as a task. The result is only a message about that.
    """

    result: CallToolResult | None
    words: str = ""
    said: str = ""
    could_not_ask: bool = False
    goes_on: bool = False


def progress_event(request: CallRequest, params: ProgressNotificationParams) -> CallProgress:
    """Return the progress of a call as an event, with a message that is safe to display."""
    return CallProgress(
        session=request.session,
        call=request.call,
        progress=params.progress,
        total=params.total,
        message=threat_scan.visible((params.message or "")[:MOST_PROGRESS]),
    )


class RunningCalls:
    """The calls that are running at each server."""

    def __init__(self) -> None:
        self._calls: dict[str, list[CallRequest]] = {}

    @contextmanager
    def running(self, request: CallRequest) -> Iterator[None]:
        """Count a call as running within the block."""
        calls = self._calls.setdefault(request.item.server, [])
        calls.append(request)
        try:
            yield
        finally:
            calls.remove(request)

    def __bool__(self) -> bool:
        return any(self._calls.values())

    def origin(self, server: str) -> tuple[str, str]:
        """Return the conversation and the call that a question of a server belongs to.

        Each is "" if it is ambiguous, because several conversations or calls are running.
        """
        calls = self._calls.get(server, ())
        sessions = {request.session for request in calls}
        session = next(iter(sessions)) if len(sessions) == 1 else ""
        return session, calls[0].call if len(calls) == 1 else ""
