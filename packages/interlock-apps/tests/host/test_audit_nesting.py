"""Data that is nested so deeply that whoever goes through it would fail: it is turned away where it
comes in, and the host goes on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

from interlock import Context, Server
from interlock.models.scripted import call
from interlock.types import CallToolResult, SamplingMessage, TextContent
from interlock_apps.fleet.events import CallProposed, ModelFailed, Notice
from interlock_apps.fleet.log import MemoryLog, SqliteLog
from interlock_apps.fleet.nesting import MOST_LEVELS, too_deep
from tests.host.scene import ALLOW, YES, Sitting, last, scene


def nested(levels: int) -> dict[str, Any]:
    """An object of so many levels."""
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


@hypothesis_given(
    st.recursive(
        st.none() | st.text(max_size=2),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=2), inner),
    )
)
def test_levels_are_counted(value: Any) -> None:
    def levels(each: Any) -> int:
        if isinstance(each, dict):
            inner = each.values()
        elif isinstance(each, list):
            inner = each
        else:
            inner = ()
        return (1 if isinstance(each, dict | list) else 0) + max(
            (levels(part) for part in inner), default=0
        )

    for most in range(6):
        assert too_deep(value, most) == (levels(value) > most + 1)


@pytest.mark.parametrize("levels", [50, 120, 500, 900])
async def test_a_result_of_many_levels_ends_no_turn(levels: int, tmp_path: Path) -> None:
    """A hostile server has its call fail and nothing else: the turn goes on, and the log keeps what
    comes later.
    """
    server = Server("s")

    @server.tool
    async def give() -> CallToolResult:
        """Give data."""
        return CallToolResult(
            content=[TextContent(text="here")],
            structured_content=nested(levels),
            meta={"a": nested(levels)},
        )

    for log in (MemoryLog(redact=str), SqliteLog(tmp_path / "log.db", redact=str)):
        async with scene({"s": server}, call("s__give"), "done", policy=ALLOW, log=log) as s:
            ended = await s.host.session().say("go")
            await log.flush()
            kinds = [type(noted.event).__name__ for noted in await log.read()]
        assert ended.reason == "done"
        assert ("nested too deeply" in last(s)) == (levels > MOST_LEVELS)
        assert kinds[-1] == "TurnEnded"


@pytest.mark.parametrize("levels", [120, 500, 900])
async def test_arguments_of_many_levels_are_no_answer(levels: int) -> None:
    server = Server("s")

    @server.tool
    async def take(x: dict[str, Any]) -> str:
        """Take data."""
        return "taken"

    async with scene({"s": server}, call("s__take", x=nested(levels)), "done", policy=ALLOW) as s:
        session = s.host.session()
        assert (await session.say("go")).reason == "failed"
        assert (await session.say("again")).reason == "done"
    (failed,) = s.of(ModelFailed)
    assert "nested too deeply" in failed.words
    assert not s.of(CallProposed)


async def test_a_tool_of_many_levels_is_left_out() -> None:
    """The others of its server are there (`TOL-25`)."""
    server = Server("s")

    @server.tool
    async def good() -> str:
        """Be good."""
        return "good"

    async def odd() -> str:
        """Be odd."""
        return "odd"

    server.add_tool(odd, meta={"x": nested(500)})
    async with scene({"s": server}, call("s__good"), "done", policy=ALLOW) as s:
        assert [item.name for item in s.host.toolbox.items] == ["s__good"]
        await s.told("nested too deeply")
        assert (await s.host.session().say("go")).reason == "done"


@pytest.mark.parametrize("kind", ["memory", "file"])
async def test_a_log_outlives_an_entry_that_cannot_be_kept(kind: str, tmp_path: Path) -> None:
    """It says so in its place, under its number, and keeps all others."""
    log: Any = (
        MemoryLog(redact=str) if kind == "memory" else SqliteLog(tmp_path / "log.db", redact=str)
    )
    await log.open()
    log.note(Notice(level="info", words="before"))
    odd = log.note(CallProposed(session="s", call="c", name="n", arguments=nested(700)))
    log.note(Notice(level="info", words="after"))
    await log.flush()
    kept = await log.read()
    await log.aclose()
    assert [noted.event.words for noted in kept][::2] == ["before", "after"]
    assert kept[1].seq == odd.seq
    assert "nested too deeply" in getattr(kept[1].event, "words", "")


async def test_a_sampling_request_of_many_levels_is_refused() -> None:
    """Before anybody is asked."""
    server = Server("s")

    @server.tool
    async def ask(context: Context) -> str:
        """Ask a model."""
        await context.sample(
            [SamplingMessage(role="user", content=TextContent(text="x", meta=nested(300)))],
            max_tokens=5,
        )
        return "asked"

    person = Sitting(sample=YES, sampled=YES)
    async with scene(
        {"s": server}, call("s__ask"), "done", "done", policy=ALLOW, person=person
    ) as s:
        assert (await s.host.session().say("go")).reason == "done"
        assert "The request is nested too deeply" in last(s)
    assert not person.asked
