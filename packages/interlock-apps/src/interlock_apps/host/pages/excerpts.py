"""Excerpts of structured content that fit a page, and the whole of it in pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from interlock.types import CallToolResult, JSONObject

from ...fleet.events import CallEnded, TaskEnded

if TYPE_CHECKING:
    from ...fleet.log import Log

MOST_STRUCTURED = 200_000  # characters of JSON of one result sent to a page unasked
PAGE = 500_000  # characters of JSON in a page of the whole
SEARCHED = 100  # log entries read at a time


def size_of(value: Any) -> int:
    """The length of a value's JSON, in bytes."""
    return len(msgspec.json.encode(value))


def cut_value(value: Any, most: int = MOST_STRUCTURED) -> Any:
    """The beginning of a value, in the same shape, with texts, lists and objects cut."""
    return _Cutting(most).cut(value)


class _Cutting:
    """One value being cut; `left` is the remaining space, in characters of JSON."""

    def __init__(self, left: int) -> None:
        self.left = left

    def cut(self, value: Any) -> Any:
        if isinstance(value, str):
            kept = value[: max(0, self.left)]
            self.left -= len(kept) + 2
            return kept if len(kept) == len(value) else f"{kept}…"
        if isinstance(value, list | tuple):
            return self._cut_list(value)
        if isinstance(value, dict):
            return self._cut_object(value)
        self.left -= 5
        return value

    def _cut_list(self, values: list[Any] | tuple[Any, ...]) -> list[Any]:
        kept: list[Any] = []
        for value in values:
            if self.left <= 0:
                break
            kept.append(self.cut(value))
            self.left -= 1
        return kept

    def _cut_object(self, values: dict[str, Any]) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, value in values.items():
            if self.left <= 0:
                break
            self.left -= len(key) + 3
            kept[key] = self.cut(value)
        return kept


async def structured_page(log: Log, session: str, call: str, number: int) -> JSONObject | None:
    """A page of a call's structured content as JSON text.

    Args:
        log: Where the result is kept.
        session: The conversation of the call.
        call: The id of the call.
        number: The page, from 0.

    Returns:
        The text of the page and the number of pages; None if there is no such result.
    """
    ended = await _ended(log, session, call)
    if ended is None or ended.result is None or not ended.result.structured_content:
        return None
    text = msgspec.json.encode(ended.result.structured_content).decode()
    start = max(0, number) * PAGE
    return {"text": text[start : start + PAGE], "pages": -(-len(text) // PAGE)}


async def result_of(log: Log, session: str, call: str) -> CallToolResult | None:
    """The whole result of a call; None if the log has none."""
    ended = await _ended(log, session, call)
    return None if ended is None else ended.result


async def _ended(log: Log, session: str, call: str) -> CallEnded | TaskEnded | None:
    await log.flush()
    before: int | None = None
    while True:
        notes = await log.search(
            session=session, kinds=("callEnded", "taskEnded"), before=before, limit=SEARCHED
        )
        for noted in notes:
            event = noted.event  # newest first: the outcome of a task comes before its call's
            if isinstance(event, CallEnded | TaskEnded) and event.call == call:
                return event
        if len(notes) < SEARCHED:
            return None
        before = notes[-1].seq
