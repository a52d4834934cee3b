"""Clients in memory, every way of talking to a server, scripted answers, and a clock that stands
still.
"""

from __future__ import annotations

import pytest

from interlock import Client, Context, InputRequiredResult, McpError, QuestionSettings, Server
from interlock import types as t
from interlock.tape import Tape
from interlock.testing import EVERY_WAY, WAYS, Clock, ScriptedAnswers, Way, connect, way
from interlock.wire.revisions import NEWEST, R3, R4


def make_server() -> Server:
    """A server that asks, and counts how often it does so."""
    server = Server("s", questions=QuestionSettings(timeout=60))
    runs: list[str] = []

    @server.tool
    async def book(ctx: Context) -> str:
        runs.append("run")
        seat = await ctx.elicit("Which seat?", int)
        sure = await ctx.confirm("Sure?")
        return f"{seat} {sure} {len(runs)}"

    @server.tool
    async def ponder(ctx: Context) -> str:
        return str((await ctx.sample(["Why?", "Really?"])).content.text)  # type: ignore[union-attr]  # text is what is scripted

    @server.resource("text://kept", ttl_ms=1000)
    def kept() -> str:
        runs.append("read")
        return str(len(runs))

    return server


@pytest.mark.parametrize("this", EVERY_WAY, ids=str)
async def test_every_way_gets_through(this: Way):
    """Five revisions, and in the newest one both ways of asking: only a replayed tool runs more
    than once.
    """
    answers = ScriptedAnswers(elicit=[{"value": 7}, True])
    async with connect(make_server(), **this._asdict(), answers=answers) as client:
        assert client.revision == this.revision
        result = await client.call_tool("book")
    if this.revision < R3:
        assert result.is_error
        return
    assert result.text == f"7 False {1 if this.suspend or this.revision < NEWEST else 3}"
    assert answers.messages == ["Which seat?", "Sure?"]
    answers.check()


async def test_a_way_is_for_the_block_only():
    """The server is as it was once the block has ended."""
    server = make_server()
    wall_clock = server.suspended_calls.wall_clock
    async with connect(server, suspend=False, clock=Clock()):
        assert (server.suspended_calls.suspend, server.suspended_calls.wall_clock) != (
            True,
            wall_clock,
        )
    assert (server.suspended_calls.suspend, server.suspended_calls.wall_clock) == (True, wall_clock)


def test_ways_have_names():
    """A way is found by its name, and the plugin's names are those of WAYS."""
    from interlock.testing.plugin import _WAY_NAMES  # the plugin cannot import WAYS: it stays light

    assert tuple(map(str, WAYS)) == _WAY_NAMES
    assert [way(str(this)) for this in EVERY_WAY] == list(EVERY_WAY)
    assert way(NEWEST) == Way(NEWEST, True)
    with pytest.raises(ValueError, match="2026-07-28-replayed"):
        way("2026-07-28-postponed")


async def test_a_clock_moves_states_and_kept_answers():
    """Nobody waits: a state expires and a kept answer grows old when the test says so (`MRT-08`,
    `CAC-07`).
    """
    clock = Clock()
    tape = Tape()
    async with connect(make_server(), clock=clock, tape=tape, elicit=lambda params: True) as client:
        one = await client.read_resource("text://kept")
        clock.advance(0.999)
        assert await client.read_resource("text://kept") == one
        clock.advance(0.001)
        assert await client.read_resource("text://kept") != one
        result = await client._transport(t_call(client))
        assert isinstance(result, InputRequiredResult)
        clock.advance(60.5)
        with pytest.raises(McpError, match="expired"):
            await client._transport(t_call(client, request_state=result.request_state))
    assert len(tape) > 8
    with pytest.raises(ValueError, match="backwards"):
        clock.advance(-1)


def t_call(client: Client, **more: object):
    """An exchange that calls the tool that asks."""
    from interlock.exchange import Exchange  # beside its only use

    return Exchange("tools/call", t.CallToolRequestParams(name="book", **more), client.caller)  # type: ignore[arg-type]  # its state


async def test_scripts_by_words():
    """Answers that stand by a part of the question's words are found by it, and may be used
    again.
    """
    answers = ScriptedAnswers(
        elicit={"seat": {"value": 3}, "Sure": lambda params: {"confirm": params.message == "Sure?"}}
    )
    async with connect(make_server(), revision=R4, answers=answers) as client:
        assert (await client.call_tool("book")).text == "3 True 1"
        assert (await client.call_tool("book")).text == "3 True 2"
    answers.check()


async def test_scripts_that_have_no_answer():
    """The call fails in words that say which question had none, and what is left over is named."""
    async with connect(
        make_server(), revision=R4, answers=ScriptedAnswers(elicit=[{"value": 1}])
    ) as client:
        with pytest.raises(McpError, match=r"no answer left for this elicitation: Sure\?"):
            await client.call_tool("book")
    async with connect(
        make_server(),
        revision=R4,
        answers=ScriptedAnswers(elicit={"sure": True}, sample={"Why": "42"}),
    ) as client:
        with pytest.raises(McpError, match=r"no answer for this elicitation: Which seat\?"):
            await client.call_tool("book")
        assert (await client.call_tool("ponder")).text == "42"
    left = ScriptedAnswers(
        elicit=[{"value": 1}, True, "never"], sample=[McpError(t.USER_REJECTED, "No.")]
    )
    async with connect(make_server(), revision=R4, answers=left) as client:
        await client.call_tool("book")
        assert "refused" in (await client.call_tool("ponder")).text
    with pytest.raises(AssertionError, match="1 answers to elicitation were not asked for"):
        left.check()
