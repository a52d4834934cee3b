"""Metrics of a server or a client: counters of its calls, and histograms of their duration.

The counters are always on. Histograms by method and name are kept from the moment somebody reads
them.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterator, Mapping
from time import perf_counter
from typing import Final

from msgspec import Struct

from .. import types as t
from ..exchange import AnyResult, Exchange, Handler

BOUNDARIES: Final = (
    *(0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005),
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0),
)
"""Upper bounds of the buckets of a duration, in seconds: those of the semantic conventions, from
10 ms on, and shorter ones, because most calls are shorter.
"""
OTHER: Final = "_other"
"""Stands for names that the server does not have, and for those above the limit."""
TASKS_GAUGE: Final = "interlock_tasks"
"""The metric with the running tasks of a process, by status."""
TOOL_ERROR: Final = "tool_error"
CANCELLED: Final = "cancelled"

_LISTENING = "subscriptions/listen"
_MOST_SERIES = 2000
_NAMED = frozenset({"tools/call", "prompts/get"})

Labels = tuple[tuple[str, str], ...]


class Series(Struct, frozen=True):
    """What a histogram is of.

    Attributes:
        method: The method, such as `tools/call`.
        name: The name of the tool or prompt, or `_other`; empty for other methods.
        error: How the call failed: `tool_error`, the code of a JSON-RPC error, `cancelled`, or the
            class of an exception; empty for success.
    """

    method: str
    name: str
    error: str


class Histogram:
    """The distribution of durations, in buckets.

    Attributes:
        counts: The number of durations in each bucket of `BOUNDARIES`, and of longer ones.
        total: The sum of all durations, in seconds.
    """

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDARIES) + 1)
        self.total = 0.0

    def record(self, seconds: float) -> None:
        """Add a duration."""
        self.counts[bisect_left(BOUNDARIES, seconds)] += 1
        self.total += seconds

    @property
    def count(self) -> int:
        """The number of durations."""
        return sum(self.counts)


def quantile(counts: list[int], part: float) -> float:
    """Return an estimate of a quantile, in seconds: the upper bound of the bucket that contains it.

    Args:
        counts: The counts of a histogram.
        part: The quantile, from 0 to 1, such as 0.99.

    Returns:
        0 without any duration; infinity if it is above the longest bound.
    """
    rank = part * sum(counts)
    seen = 0
    for bound, count in zip((*BOUNDARIES, float("inf")), counts, strict=True):
        seen += count
        if count and seen >= rank:
            return bound
    return 0.0


class Gauge(Struct, frozen=True):
    """A value that is read when somebody asks for it.

    Attributes:
        name: Its name in the format of Prometheus.
        help: What it says, in one sentence.
        read: Returns the values by their labels.
    """

    name: str
    help: str
    read: Callable[[], Mapping[Labels, float]]


class Meters:
    """The metrics of one server or client in this process.

    Args:
        has: Whether the server has a tool (`tools/call`) or a prompt (`prompts/get`) of this name.

    Attributes:
        started: How many requests have started. Subscriptions do not count.
        ended: How many have ended with a result.
        tool_errors: How many of those had a result that says that the tool failed.
        failed: How many have ended with an error.
        cancelled: How many were cancelled.
        readers: How many read the histograms. Without any, none are kept.
    """

    __slots__ = (
        "_counters",
        "_durations",
        "_gauges",
        "_has",
        "_histograms",
        "_known",
        "cancelled",
        "ended",
        "failed",
        "readers",
        "started",
        "tool_errors",
    )

    def __init__(self, has: Callable[[str, str], bool] = lambda method, name: False) -> None:
        self._has = has
        self.started = 0
        self.ended = 0
        self.tool_errors = 0
        self.failed = 0
        self.cancelled = 0
        self.readers = 0
        self._gauges: dict[str, Gauge] = {}
        self._histograms: dict[tuple[str, str, str], Histogram] = {}
        self._counters: dict[tuple[str, Labels], float] = {}
        self._durations: dict[tuple[str, Labels], Histogram] = {}
        self._known: set[tuple[str, str]] = set()

    @property
    def in_flight(self) -> int:
        """How many requests are running."""
        return self.started - self.ended - self.failed - self.cancelled

    def around(self, handler: Handler) -> Handler:
        """Return a handler that counts its requests."""

        async def counted(x: Exchange) -> AnyResult:
            self.started += 1
            try:
                result = await handler(x)
            except BaseException as bad:
                self._count_failure(bad)
                raise
            self.ended += 1
            if result.__class__ is t.CallToolResult and result.is_error:
                self.tool_errors += 1
            return result

        def handle(x: Exchange) -> Awaitable[AnyResult]:
            if x.method == _LISTENING:  # without a coroutine: there can be thousands, for long
                return handler(x)
            return self._measured(handler, x) if self.readers else counted(x)

        return handle

    async def _measured(self, handler: Handler, x: Exchange) -> AnyResult:
        """Handle one exchange, and record its duration."""
        self.started += 1
        began = perf_counter()
        try:
            result = await handler(x)
        except BaseException as bad:
            self._count_failure(bad)
            self._record(x, perf_counter() - began, error_type(bad))
            raise
        self.ended += 1
        error = ""
        if isinstance(result, t.CallToolResult) and result.is_error:
            self.tool_errors += 1
            error = TOOL_ERROR
        self._record(x, perf_counter() - began, error)
        return result

    def _count_failure(self, bad: BaseException) -> None:
        if isinstance(bad, asyncio.CancelledError):
            self.cancelled += 1
        else:
            self.failed += 1

    def _record(self, x: Exchange, seconds: float, error: str) -> None:
        method = x.method
        name = ""
        if method in _NAMED:
            name = self._bounded(method, x.params.name, error)
        key = (method, name, error)
        histogram = self._histograms.get(key)
        if histogram is None:
            if len(self._histograms) >= _MOST_SERIES:
                key = (OTHER, OTHER, "")
            histogram = self._histograms.setdefault(key, Histogram())
        histogram.record(seconds)

    def _bounded(self, method: str, name: str, error: str) -> str:
        """Return the name, or `_other` for a name that the server does not have: a caller may send
        any.

        Middleware may have features of its own: their names are known from the first result on.
        """
        if self._has(method, name):
            return name
        key = (method, name)
        if key in self._known:
            return name
        if error not in ("", TOOL_ERROR) or len(self._known) >= _MOST_SERIES:
            return OTHER
        self._known.add(key)
        return name

    def count(self, name: str, amount: float, labels: Labels = ()) -> None:
        """Add to a counter of the author.

        Above 2,000 combinations of names and labels, the labels of new ones are dropped, and above
        twice as many the new ones.

        Raises:
            ValueError: A name is not made of letters, digits, underscores and dots, or the amount
                is negative.
        """
        if amount < 0:
            raise ValueError(f"a counter only grows; {amount!r} is negative")
        key = (name, labels)
        if key not in self._counters:
            for each in (name, *(label for label, _ in labels)):
                if not _is_name(each):
                    raise ValueError(
                        f"{each!r} is no name of a counter or a label: it begins with a letter, and"
                        " has letters, digits, underscores and dots"
                    )
            if len(self._counters) >= _MOST_SERIES:
                key = (name, ())
                if key not in self._counters and len(self._counters) >= 2 * _MOST_SERIES:
                    return
        self._counters[key] = self._counters.get(key, 0.0) + amount

    def record(self, name: str, seconds: float, labels: Labels = ()) -> None:
        """Add to a histogram of durations, besides those of requests; nothing without readers.

        Args:
            name: Its name in the format of Prometheus, without the unit.
            seconds: The duration.
            labels: Labels with few values that no caller chooses.
        """
        if not self.readers:
            return
        key = (name, labels)
        histogram = self._durations.get(key)
        if histogram is None:
            if len(self._durations) >= _MOST_SERIES:
                return
            histogram = self._durations[key] = Histogram()
        histogram.record(seconds)

    def add_gauge(self, gauge: Gauge) -> None:
        """Add a value, in place of one with the same name."""
        self._gauges[gauge.name] = gauge

    def gauges(self) -> Iterator[Gauge]:
        """Return the further values."""
        yield from list(self._gauges.values())

    def histograms(self) -> Iterator[tuple[Series, Histogram]]:
        """Return the histograms with what they are of."""
        for key, histogram in list(self._histograms.items()):
            yield Series(*key), histogram

    def durations(self) -> Iterator[tuple[str, Labels, Histogram]]:
        """Return the histograms of `record`: name, labels, histogram."""
        for (name, labels), histogram in list(self._durations.items()):
            yield name, labels, histogram

    def counters(self) -> Iterator[tuple[str, Labels, float]]:
        """Return the counters of the author: name, labels, value."""
        for (name, labels), value in list(self._counters.items()):
            yield name, labels, value


def _is_name(text: str) -> bool:
    return text.isascii() and text[:1].isalpha() and text.replace(".", "_").isidentifier()


def error_type(bad: BaseException) -> str:
    """Return how an exception is named in metrics and traces (`error.type`)."""
    if isinstance(bad, asyncio.CancelledError):
        return CANCELLED
    if isinstance(bad, t.McpError):
        return str(bad.code)
    return type(bad).__name__
