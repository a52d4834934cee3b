"""Structured content cut for the page: of the same shape, never longer than the room, whole where
it fits; and read in pages.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.types import CallToolResult
from interlock_apps.fleet.events import CallEnded, LogEntry
from interlock_apps.fleet.log import MemoryLog
from interlock_apps.host.pages import excerpts
from interlock_apps.host.pages.excerpts import cut_value, size_of, structured_page
from interlock_apps.host.pages.state import plain

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text("aä€ ", max_size=60),
    lambda inner: (
        st.lists(inner, max_size=12) | st.dictionaries(st.text("kl", max_size=5), inner, max_size=8)
    ),
    max_leaves=60,
)


def shape(value: Any) -> type:
    """What kind of JSON a value is."""
    return type(value)


@given(VALUES, st.integers(0, 400))
def test_a_value_is_cut_to_its_beginning(value: Any, room: int) -> None:
    """What is kept is as it was, in its place; whole where there is room for all of it."""
    kept = cut_value(value, room)
    assert shape(kept) is shape(value)
    assert begins(kept, value)
    assert cut_value(value, 10_000) == value
    text = len(msgspec.json.encode(kept).decode())
    assert text <= room + 100 * (1 + depth(value))


def depth(value: Any) -> int:
    """How deep lists and objects lie in one another."""
    if isinstance(value, dict):
        inner = value.values()
    elif isinstance(value, list):
        inner = value
    else:
        inner = ()
    return 1 + max((depth(each) for each in inner), default=0)


def begins(kept: Any, value: Any) -> bool:
    """Whether this is the beginning of that."""
    if isinstance(value, str):
        return kept == value or (kept.endswith("…") and value.startswith(kept[:-1]))
    if isinstance(value, list):
        return all(begins(one, other) for one, other in zip(kept, value, strict=False))
    if isinstance(value, dict):
        names = list(value)[: len(kept)]
        return list(kept) == names and all(begins(kept[name], value[name]) for name in names)
    return bool(kept == value)


def test_only_results_are_cut() -> None:
    """Arguments are edited and sent back, so they stay whole whatever they are called."""
    long = {"rows": ["x" * 100] * 10_000}
    event = CallEnded(call="c", result=CallToolResult(content=[], structured_content=long))
    shown = plain(LogEntry(seq=1, at=0.0, event=event))["event"]["result"]
    assert size_of(shown["structuredContent"]) < size_of(long) / 4
    assert shown["structuredSize"] == size_of(long)
    arguments = {"arguments": {"structuredContent": long}}
    assert plain(arguments) == arguments


async def test_all_of_it_is_read_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages of one call among many, put together, are its content; there is none of a call that
    is not in the log.
    """
    monkeypatch.setattr(excerpts, "PAGE", 100)
    monkeypatch.setattr(excerpts, "SEARCHED", 3)
    value = {"rows": [f"ä {n}" for n in range(50)]}
    log = MemoryLog()
    log.note(
        CallEnded(
            session="s",
            call="s.1",
            result=CallToolResult(content=[], structured_content=value),
        )
    )
    for number in range(2, 12):
        log.note(CallEnded(session="s", call=f"s.{number}", error="no"))
    first = await structured_page(log, "s", "s.1", 0)
    assert first is not None
    pages = [await structured_page(log, "s", "s.1", number) for number in range(first["pages"])]
    assert msgspec.json.decode("".join(page["text"] for page in pages if page)) == value
    assert await structured_page(log, "s", "s.2", 0) is None
    assert await structured_page(log, "s", "s.99", 0) is None
