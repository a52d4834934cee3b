"""Scenarios: a small server each, and what a client does with it;
the rooms beside this one fill the table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from interlock import Client, InterlockError, Server
from interlock.testing import ScriptedAnswers
from interlock.wire.revisions import REVISIONS

Drive = Callable[[Client], Awaitable[None]]
Make = Callable[..., Server]


@dataclass(frozen=True)
class Scenario:
    """One conversation: what it shows, the server, what the client does,
    and the revisions that it is recorded under."""

    name: str
    title: str
    server: Make
    drive: Drive
    since: str = REVISIONS[0]
    until: str = REVISIONS[-1]
    suspend: bool = True
    answers: Callable[[], ScriptedAnswers | None] = lambda: None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def revisions(self) -> list[str]:
        """The revisions that it is recorded under."""
        return [revision for revision in REVISIONS if self.since <= revision <= self.until]

    def make_server(self, revision: str) -> Server:
        """Its server; the one that shows a fallback speaks one revision only."""
        return self.server(revision)

    def client_options(self, revision: str) -> dict[str, Any]:
        """The options of its client,
        which speaks one revision unless it is to find out by itself."""
        answers = self.answers()
        return {
            "revision": revision,
            **({"answers": answers} if answers is not None else {}),
            **self.options,
        }


SCENARIOS: dict[str, Scenario] = {}


def scenario(name: str, title: str, server: Make, **more: Any) -> Callable[[Drive], Drive]:
    """Add a scenario whose client does what the decorated function does."""

    def add(drive: Drive) -> Drive:
        SCENARIOS[name] = Scenario(name, title, server, drive, **more)
        return drive

    return add


def fresh(**options: Any) -> Server:
    """A server without features."""
    return Server("taped", "1.0", **options)


async def refused(work: Awaitable[Any]) -> None:
    """Something that must fail at the client."""
    try:
        await work
    except InterlockError:
        return
    raise AssertionError("it did not fail")
