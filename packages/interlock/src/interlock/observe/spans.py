"""Spans and counters of a running call: the interface of a tracing system to `ctx.span` and
`ctx.count`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Protocol

from ..exchange import Handler

Attribute = str | bool | int | float


class Tracing(Protocol):
    """A tracing system, such as OpenTelemetry."""

    def server(self, handler: Handler) -> Handler:
        """Return the handler of a server with a span around each request."""
        ...

    def task(self, handler: Handler) -> Handler:
        """Return the handler of a task, whose span is linked with the current one."""
        ...

    def span(
        self, name: str, attributes: Mapping[str, Attribute]
    ) -> AbstractContextManager[object]:
        """Return a block that is a span within the current one."""
        ...

    def session_ended(self, seconds: float, attributes: Mapping[str, Attribute]) -> None:
        """Record the duration of a session of a server."""
        ...

    def count(self, name: str, amount: float, labels: Mapping[str, str]) -> None:
        """Add to a counter."""
        ...


current_tracing: ContextVar[Tracing | None] = ContextVar("interlock_tracing", default=None)
"""The tracing system of the running call."""
