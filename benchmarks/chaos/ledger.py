"""The ledger of a chaos test: what became of each request and of each action that must run once."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from msgspec import Struct

ENDS = ("answered", "refused", "cut", "lost", "cancelled")
"""The ends of a request. `cut`: the connection failed, and the client's HTTP library said so.
`lost`: no answer before the deadline, or an answer that says nothing."""

QUIET = "(none)"
"""The name of the time without a fault."""

SETTLED = ("did", "in doubt", "refused")
"""The good ends of an action; `unsettled` is the bad one."""


class Outcome(Struct, frozen=True):
    """How one request ended.

    Attributes:
        end: One of `ENDS`.
        result: The result of an answered request.
        reason: What the caller was told otherwise.
        temporary: Whether the server asked to try again later.
    """

    end: str
    result: dict[str, Any] = {}
    reason: str = ""
    temporary: bool = False


class Ledger:
    """Counts requests by fault and kind, and actions by their end.

    Attributes:
        fault: The fault that is injected at the moment.
        requests: The number of requests by fault, kind and end.
        reasons: The number of ends by end and reason.
        longest: The longest time from a request to its end in seconds, by fault.
        actions: The number of actions by kind and end.
        wrong: Answers that were not the expected ones.
    """

    def __init__(self) -> None:
        self.fault = QUIET
        self.requests: Counter[tuple[str, str, str]] = Counter()
        self.reasons: Counter[tuple[str, str]] = Counter()
        self.longest: dict[str, float] = defaultdict(float)
        self.actions: Counter[tuple[str, str]] = Counter()
        self.confirmed: dict[str, str] = {}
        self.wrong: list[str] = []

    def record(self, kind: str, outcome: Outcome, seconds: float, began: str) -> None:
        """Record the end of a request that was sent during the fault `began`."""
        fault = began if self.fault == QUIET else self.fault
        self.requests[fault, kind, outcome.end] += 1
        if outcome.reason:
            self.reasons[outcome.end, outcome.reason] += 1
        if outcome.end != "cancelled":
            self.longest[fault] = max(self.longest[fault], seconds)

    def settle(self, kind: str, name: str, end: str) -> None:
        """Record the end of an action."""
        self.actions[kind, end] += 1
        self.confirmed[name] = end

    def total(self, end: str, *, fault: str | None = None, kind: str | None = None) -> int:
        """The number of requests with this end; "sent" for all."""
        return sum(
            count
            for (its_fault, its_kind, its_end), count in self.requests.items()
            if end in ("sent", its_end) and fault in (None, its_fault) and kind in (None, its_kind)
        )


class Marks:
    """What the tools have noted in the file of marks, read at the end."""

    def __init__(self, folder: Path) -> None:
        file = folder / "marks"
        lines = file.read_text().splitlines() if file.exists() else []
        self._noted = [line.partition(" ") for line in lines]

    def names(self, what: str) -> Counter[str]:
        """How often something was noted, by name."""
        return Counter(name for noted, _, name in self._noted if noted == what)

    def started_twice(self) -> list[str]:
        """The actions that started more than once."""
        return sorted(name for name, times in self.names("acts").items() if times > 1)
