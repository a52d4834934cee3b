"""Rules about the opening of a connection: the first answer, and who the server says it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...wire.revisions import supports
from ..diagnostics import RuleFinding, rule
from ..facts import ConnectionFacts


@rule(
    "no-answer",
    "error",
    "The server does not answer",
    advice="Check what it waits for at its start. A longer --timeout helps if it is only slow.",
    stops=True,
)
def no_answer(facts: ConnectionFacts) -> Iterator[RuleFinding]:
    """The opening took longer than the time limit."""
    if facts.timed_out:
        yield RuleFinding(f"there was no answer within {facts.limit:g} s")


@rule(
    "opening-fails",
    "error",
    "The connection cannot be opened",
    advice="The server breaks the protocol, or supports no common revision. Update its SDK.",
    stops=True,
)
def opening_fails(facts: ConnectionFacts) -> Iterator[RuleFinding]:
    """The server refuses, or its answer cannot be read."""
    if facts.error:
        yield RuleFinding(facts.error)


@rule(
    "slow-start",
    "warning",
    "The first answer takes long",
    advice="Do slow work after the start, or install the package before: hosts give up in time.",
)
def slow_start(facts: ConnectionFacts) -> Iterator[RuleFinding]:
    """Some hosts give up after 10 seconds."""
    if facts.seconds is not None and facts.seconds > facts.slow_seconds:
        yield RuleFinding(f"it took {facts.seconds:.1f} s")


@rule(
    "server-unnamed",
    "warning",
    "The server does not give its name or its version",
    advice="Set both: people and bug reports need them.",
)
def server_unnamed(facts: ConnectionFacts) -> Iterator[RuleFinding]:
    """`serverInfo` is missing, or one of its members is empty."""
    if facts.seconds is None:
        return
    missing = [
        name
        for name in ("name", "version")
        if not (facts.info is not None and getattr(facts.info, name).strip())
    ]
    if missing:
        yield RuleFinding(f"it gives no {' and no '.join(missing)}", "serverInfo")


@rule(
    "old-revision",
    "note",
    "The server speaks an old revision",
    advice="Update its SDK.",
)
def old_revision(facts: ConnectionFacts) -> Iterator[RuleFinding]:
    """A revision before structured results (2025-06-18)."""
    if facts.revision and not supports(facts.revision, "structured_content"):
        yield RuleFinding(f"it speaks {facts.revision}")


RULES: Final = (no_answer, opening_fails, slow_start, server_unnamed, old_revision)
