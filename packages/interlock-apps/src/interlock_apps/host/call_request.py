"""The request for a call, its outcome, and the calls under way at each server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from msgspec import Struct

from interlock import CallToolResult

from ..fleet.toolbox import ServerTool


class CallRequest(Struct, frozen=True, kw_only=True):
    """A call that the model, an app or the person wants made.

    Attributes:
        call: The id of the call.
        session: The conversation, or "".
        item: The tool.
        arguments: The arguments, as they were given.
        by: Who wants the call.
    """

    call: str
    session: str
    item: ServerTool
    arguments: dict[str, Any]
    by: Literal["model", "app", "person"] = "model"


class CallOutcome(Struct, frozen=True):
    """The result of a call, or why there is none.

    Attributes:
        result: The result; None where there is none.
        words: Why there is none, in the host's words.
        said: What the server says about that. Untrusted.
        could_not_ask: Whether the tool failed because its server cannot ask questions under the
            revision that was spoken.
    """

    result: CallToolResult | None
    words: str = ""
    said: str = ""
    could_not_ask: bool = False


class RunningCalls:
    """The calls under way at each server."""

    def __init__(self) -> None:
        self._calls: dict[str, list[CallRequest]] = {}

    @contextmanager
    def running(self, request: CallRequest) -> Iterator[None]:
        """Count a call as under way within the block."""
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

        Each is "" where it is ambiguous: more than one conversation, or call, is under way.
        """
        calls = self._calls.get(server, ())
        sessions = {request.session for request in calls}
        session = next(iter(sessions)) if len(sessions) == 1 else ""
        return session, calls[0].call if len(calls) == 1 else ""
