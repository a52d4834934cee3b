"""The history of a conversation for a page: whole turns at a time, without the bodies of results.

A conversation can have thousands of messages, and a result can have megabytes. The page gets the
last turns, fetches earlier ones when the person scrolls there, and a large result when its card is
opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...fleet.events import (
    BranchChosen,
    CallEnded,
    LogEntry,
    PersonSaid,
    ResultsGiven,
    TaskEnded,
)
from ...fleet.log.records import kind_of_type
from ..conversations.branches import Fork
from .excerpts import cut_value, size_of
from .state import plain

if TYPE_CHECKING:
    from ...fleet.log import Log
    from ..app import Host

CHOSEN = kind_of_type(BranchChosen)

MOST_NOTES = 5_000
"""Events in one answer."""
MOST_BODY = 16_000
"""Bytes of JSON of a result that is sent unasked."""
MOST_BLOCKS = 20
_MODELS = ("sessionBegan", "sessionResumed", "modelChosen")
MOST_BLOCK = 500  # characters of JSON of a block of a result that is left out


async def read_history(host: Host, session: str, *, turns: int, before: int) -> dict[str, Any]:
    """What a page shows of a conversation: the last turns of its chosen branch, and its forks.

    Args:
        host: The host.
        session: The conversation.
        turns: How many turns.
        before: Only turns before the entry with this number; 0 for the last ones.

    Raises:
        LogError: The log cannot be read.
    """
    forks: tuple[Fork, ...] = ()
    # Reading all of a conversation takes a while, and most have one branch.
    if await host.log.search(session=session, kinds=(CHOSEN,), limit=1):
        branch = await host.conversations.branch(session)
        notes, first, earlier = last_turns(branch.entries, turns=turns, before=before)
        forks = branch.forks
    else:
        notes, first, earlier = await read_turns(host.log, session, turns=turns, before=before)
    return {
        "notes": [without_bodies(noted) for noted in notes],
        "first": first,
        "earlier": earlier,
        "remark": await remark_of(host.log, session),
        "forks": plain(forks),
    }


def last_turns(
    entries: Sequence[LogEntry], *, turns: int, before: int
) -> tuple[list[LogEntry], int, bool]:
    """The last turns of a branch; see `read_turns`."""
    kept = [noted for noted in entries if not before or noted.seq < before]
    said = [noted.seq for noted in kept if isinstance(noted.event, PersonSaid)]
    first = said[-turns] if len(said) > turns else 0
    return [noted for noted in kept if noted.seq >= first], first, first > 0


async def read_turns(
    log: Log, session: str, *, turns: int, before: int
) -> tuple[list[LogEntry], int, bool]:
    """Read the last turns of a conversation.

    Args:
        log: The log.
        session: The conversation.
        turns: How many turns; 0 for all.
        before: Only turns before the entry with this number; 0 for the last ones.

    Returns:
        The entries, the number of the first entry (0 for the beginning of the conversation), and
        whether there are earlier turns.

    Raises:
        LogError: The log cannot be read.
    """
    await log.flush()
    while True:
        first = await _first_of(log, session, turns, before)
        notes = await log.read(session, after=max(0, first - 1), limit=MOST_NOTES)
        if before:
            notes = [noted for noted in notes if noted.seq < before]
        if len(notes) < MOST_NOTES or turns <= 1:
            return notes, first, first > 0
        turns //= 2  # too many events: rather fewer turns than a cut one


async def remark_of(log: Log, session: str) -> str:
    """The remark of the model that a conversation has, or had."""
    found = await log.search(session=session, kinds=_MODELS, limit=1)
    return getattr(found[0].event, "remark", "") if found else ""


async def _first_of(log: Log, session: str, turns: int, before: int) -> int:
    """The number of the entry that begins the last turns; 0 if these are all of them."""
    if not turns:
        return 0
    said = await log.search(
        session=session, kinds=("personSaid",), before=before or None, limit=turns + 1
    )
    return said[turns - 1].seq if len(said) > turns else 0


def without_bodies(entry: LogEntry) -> Any:
    """An entry as JSON values for the page, with large results cut and marked as `deferred`."""
    shown = plain(entry)
    event = shown["event"]
    if isinstance(entry.event, CallEnded | TaskEnded):
        result = event.get("result")
        if isinstance(result, dict) and size_of(result) > MOST_BODY:
            event["result"] = {**_cut_result(result), "deferred": True}
    elif isinstance(entry.event, ResultsGiven) and size_of(event) > MOST_BODY:
        for one in event["results"]:
            one["content"] = cut_value(one.get("content", []), MOST_BODY)
            one.pop("structuredContent", None)
    return shown


def _cut_result(result: dict[str, Any]) -> dict[str, Any]:
    """A result whose blocks have little text and no data; the kinds of its blocks stay."""
    cut = {name: value for name, value in result.items() if name != "structuredContent"}
    cut["content"] = [_cut_block(block) for block in result.get("content", [])[:MOST_BLOCKS]]
    return cut


def _cut_block(block: dict[str, Any]) -> Any:
    without = {name: "" if name in ("data", "blob") else value for name, value in block.items()}
    return cut_value(without, MOST_BLOCK)
