"""A server whose tools call another server: the other's questions reach the person, whatever each
of the two speaks."""

from __future__ import annotations

import asyncio
import sys
import textwrap
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, ClientSettings, Context, McpError, QuestionSettings, Server, ToolError
from interlock.wire.revisions import HANDSHAKE_REVISIONS, R3, REVISIONS

pytestmark = pytest.mark.matrix

SECONDS = 30  # after which a combination hangs
ASKING = [revision for revision in REVISIONS if revision >= R3]  # the older ones have no forms

BACKEND = """
from interlock import Context, QuestionSettings, Server

server = Server("back")

@server.tool
async def order(dish: str, ctx: Context) -> str:
    size = await ctx.elicit(f"What size of {dish}?", str)
    sure = await ctx.confirm(f"A {size} {dish}, for sure?")
    return f"{size} {dish}: {sure}"
"""


def backend(revision: str, suspend: bool) -> Server:
    """A server that asks twice in one call."""
    made: dict[str, Any] = {}
    exec(
        BACKEND.replace(
            '"back"',
            f'"back", revisions={revision!r}, questions=QuestionSettings(suspend={suspend})',
        ),
        made,
    )
    server: Server = made["server"]
    return server


def front(revision: str, suspend: bool, target: Any, runs: list[str]) -> Server:
    """A server whose tool calls the other one, and asks its own caller what that one asks."""
    server = Server("front", revisions=revision, questions=QuestionSettings(suspend=suspend))

    @server.tool
    async def order(dish: str, ctx: Context) -> str:
        async def relay(question: Any) -> Any:
            return await ctx.elicit(question.message, question.requested_schema)

        runs.append(dish)
        async with Client(target, elicit=relay) as inner:
            answer: str = (await inner.call_tool("order", {"dish": dish})).value()
            return answer

    return server


def person(asked: list[str]) -> Any:
    """Who answers in the end."""

    def answer(question: Any) -> Any:
        asked.append(question.message)
        return {"value": "large"} if "What size" in question.message else {"confirm": True}

    return answer


@pytest.mark.parametrize("front_suspends", [True, False], ids=["suspends", "runs again"])
@pytest.mark.parametrize("back_suspends", [True, False], ids=["and suspends", "and runs again"])
@pytest.mark.parametrize("back", REVISIONS)
@pytest.mark.parametrize("ahead", REVISIONS)
async def test_a_question_of_the_server_behind_reaches_the_person_in_front(
    ahead: str, back: str, front_suspends: bool, back_suspends: bool
) -> None:
    """Under every pair of revisions; where one of them has no forms the call ends with an error
    that says so."""
    asked: list[str] = []
    runs: list[str] = []
    server = front(ahead, front_suspends, backend(back, back_suspends), runs)
    async with asyncio.timeout(SECONDS), Client(server, elicit=person(asked)) as client:
        if ahead not in ASKING or back not in ASKING:
            with pytest.raises((McpError, ToolError), match="elicitation"):
                (await client.call_tool("order", {"dish": "soup"})).value()
            assert asked == []
            return
        for dish in ("soup", "pie"):
            assert (await client.call_tool("order", {"dish": dish})).text == f"large {dish}: True"
    assert set(asked) == {
        "What size of soup?",
        "A large soup, for sure?",
        "What size of pie?",
        "A large pie, for sure?",
    }
    assert len(asked) == 4
    if front_suspends or ahead in HANDSHAKE_REVISIONS:
        assert runs == ["soup", "pie"]


@asynccontextmanager
async def shared(target: Any, current: list[Any]) -> Any:
    """One client of the server behind for all calls of the server in front."""

    async def relay(question: Any) -> Any:
        (ctx,) = current
        return await ctx.elicit(question.message, question.requested_schema)

    async with Client(target, elicit=relay, settings=ClientSettings(probe_timeout=60)) as inner:
        yield inner


@pytest.mark.parametrize("front_suspends", [True, False], ids=["suspends", "runs again"])
@pytest.mark.parametrize("back", ASKING)
@pytest.mark.parametrize("ahead", ASKING)
async def test_the_same_over_one_connection_to_a_child_process(
    ahead: str, back: str, front_suspends: bool, tmp_path: Path
) -> None:
    """Its questions come in a task of the connection's own, and one call after the other is
    answered on it."""
    script = tmp_path / "back.py"
    body = BACKEND.replace('"back"', f'"back", revisions={back!r}')
    script.write_text(textwrap.dedent(body) + "\nserver.run()\n")
    asked: list[str] = []
    current: list[Any] = []
    server = Server("front", revisions=ahead, questions=QuestionSettings(suspend=front_suspends))
    async with asyncio.timeout(4 * SECONDS):
        async with shared([sys.executable, str(script)], current) as inner:

            @server.tool
            async def order(dish: str, ctx: Context) -> str:
                current[:] = [ctx]
                return (await inner.call_tool("order", {"dish": dish})).text

            async with Client(server, elicit=person(asked)) as client:
                for dish in ("soup", "pie"):
                    result = await client.call_tool("order", {"dish": dish})
                    assert result.text == f"large {dish}: True"
            assert (await inner.list_tools())[0].name == "order"
    assert len(asked) == 4


@pytest.mark.parametrize("suspends", [True, False], ids=["suspends", "runs again"])
@pytest.mark.parametrize("back", ASKING)
async def test_a_person_who_declines_ends_the_call_in_words(back: str, suspends: bool) -> None:
    """The server behind hears of it, and nothing waits."""
    server = front(REVISIONS[-1], suspends, backend(back, True), [])
    async with asyncio.timeout(SECONDS), Client(server, elicit=lambda question: False) as client:
        result = await client.call_tool("order", {"dish": "soup"})
    assert result.is_error
    assert "What size of soup?" in result.text
