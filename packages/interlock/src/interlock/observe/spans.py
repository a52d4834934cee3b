"""Spans and counters of a running call: the interface of a tracing system to `ctx.span` and
`ctx.count`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Literal, Protocol

from ..exchange import Handler

Attribute = str | bool | int | float | Sequence[str]
SpanRole = Literal["internal", "client"]
"""Whether a span is work of this process, or a request to another one."""


class OpenSpan(Protocol):
    """A span that has not ended."""

    def set_attributes(self, attributes: Mapping[str, Attribute]) -> None:
        """Add attributes."""
        ...


class Tracing(Protocol):
    """A tracing system, such as OpenTelemetry."""

    def client(self, handler: Handler, attributes: Mapping[str, Attribute] = {}) -> Handler:
        """Return the handler of a client with a span around each request.

        Args:
            handler: Sends the requests.
            attributes: Attributes of all spans and metrics, such as `server.address`.
        """
        ...

    def server(self, handler: Handler) -> Handler:
        """Return the handler of a server with a span around each request."""
        ...

    def task(self, handler: Handler, started_by: str = "") -> Handler:
        """Return the handler of a task.

        Args:
            handler: Runs the task, in this process or after another one.
            started_by: The span that the task's is linked with, as a W3C `traceparent`.
        """
        ...

    def traceparent(self) -> str:
        """Return the current span in the form of W3C; "" if there is none."""
        ...

    def span(
        self, name: str, attributes: Mapping[str, Attribute], role: SpanRole = "internal"
    ) -> AbstractContextManager[OpenSpan]:
        """Return a block that is a span within the current one."""
        ...

    def session_ended(
        self,
        seconds: float,
        attributes: Mapping[str, Attribute],
        side: Literal["server", "client"] = "server",
    ) -> None:
        """Record the duration of a session, as one side saw it."""
        ...

    def count(self, name: str, amount: float, labels: Mapping[str, str]) -> None:
        """Add to a counter."""
        ...

    def shutdown(self) -> None:
        """Send what has not been sent, and stop."""
        ...


current_tracing: ContextVar[Tracing | None] = ContextVar("interlock_tracing", default=None)
"""The tracing system of the running call."""
