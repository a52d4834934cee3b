"""Questions and other methods of the Context that a function calls without awaiting them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from interlock import Answers, Client, Context, McpError, Server
from interlock.wire.revisions import NEWEST, R4

ANSWERS = Answers(elicit=lambda question: {"confirm": True}, sample=lambda params: "yes")

FORGOTTEN: dict[str, Callable[[Context], Any]] = {
    "confirm": lambda ctx: ctx.confirm("Delete it?"),
    "elicit": lambda ctx: ctx.elicit("How many?", int),
    "elicit_url": lambda ctx: ctx.elicit_url("Pay", "https://example.com/pay"),
    "sample": lambda ctx: ctx.sample("Is it good?"),
    "roots": lambda ctx: ctx.roots(),
    "once": lambda ctx: ctx.once("pay", print),
    "read_resource": lambda ctx: ctx.read_resource("docs://readme"),
}


@pytest.mark.parametrize("revision", [R4, NEWEST])
@pytest.mark.parametrize("name", FORGOTTEN)
async def test_a_call_that_is_not_awaited_fails_the_tool(name: str, revision: str) -> None:
    """The error names the method and says what to write; nobody was asked anything."""
    server = Server("forgetful")

    @server.tool
    async def act(ctx: Context) -> str:
        FORGOTTEN[name](ctx)
        return "done"

    async with Client(server, revision=revision, answers=ANSWERS) as client:
        result = await client.call_tool("act")
    assert result.is_error
    assert f"ctx.{name}(...) was called but not awaited" in result.text
    assert f"`await ctx.{name}(...)`" in result.text


async def test_a_question_that_is_only_tested_for_truth_fails_the_tool() -> None:
    """`if ctx.confirm(...)` is true for ever: a coroutine is no answer."""
    server = Server("forgetful")
    deleted: list[str] = []

    @server.tool
    async def delete(ctx: Context) -> str:
        kept = ctx.confirm("Delete it?")
        if kept:
            deleted.append("it")
        return "deleted"

    async with Client(server, answers=ANSWERS) as client:
        result = await client.call_tool("delete")
    assert result.is_error
    assert "ctx.confirm(...) was called but not awaited" in result.text
    assert deleted == ["it"]


async def test_a_plain_function_is_told_how_it_waits() -> None:
    """It has no await: ctx.wait does it."""
    server = Server("forgetful")

    @server.tool
    def delete(ctx: Context) -> str:
        return "deleted" if ctx.confirm("Delete it?") else "kept"

    async with Client(server, answers=ANSWERS) as client:
        result = await client.call_tool("delete")
    assert result.is_error
    assert "`ctx.wait(ctx.confirm(...))`" in result.text


async def test_prompts_and_resources_fail_too() -> None:
    """With an error, as they have no result that says so."""
    server = Server("forgetful")

    @server.prompt
    async def ask(ctx: Context) -> str:
        ctx.confirm("Sure?")
        return "text"

    @server.resource("docs://readme")
    async def readme(ctx: Context) -> str:
        ctx.confirm("Sure?")
        return "text"

    async with Client(server, answers=ANSWERS) as client:
        with pytest.raises(McpError, match=r"ctx\.confirm\(\.\.\.\) was called but not awaited"):
            await client.get_prompt("ask")
        with pytest.raises(McpError, match=r"ctx\.confirm\(\.\.\.\) was called but not awaited"):
            await client.read_resource("docs://readme")


async def in_place(ctx: Context) -> bool:
    return await ctx.confirm("?")


async def in_a_task(ctx: Context) -> bool:
    return await asyncio.create_task(ctx.confirm("?"))  # type: ignore[arg-type]  # a coroutine


async def gathered(ctx: Context) -> bool:
    return all(await asyncio.gather(ctx.confirm("?", key="a"), ctx.confirm("?", key="b")))


async def stored(ctx: Context) -> bool:
    question = ctx.confirm("?")
    await asyncio.sleep(0)
    return await question


async def given_up(ctx: Context) -> bool:
    try:
        return await asyncio.wait_for(ctx.confirm("?"), 0)
    except TimeoutError:
        return True


async def in_a_group(ctx: Context) -> bool:
    async with asyncio.TaskGroup() as group:
        question = group.create_task(ctx.confirm("?"))  # type: ignore[arg-type]  # a coroutine
    return question.result()


@pytest.mark.parametrize("revision", [R4, NEWEST])
@pytest.mark.parametrize("way", [in_place, in_a_task, gathered, stored, given_up, in_a_group])
async def test_whatever_is_awaited_anywhere_is_asked(way: Any, revision: str) -> None:
    """In place, in a task, later, and where the tool waits and gives up."""
    server = Server("careful")

    @server.tool
    async def act(ctx: Context) -> bool:
        return bool(await way(ctx))

    async with Client(server, revision=revision, answers=ANSWERS) as client:
        assert (await client.call_tool("act")).value() is True


async def test_what_a_tool_raises_itself_is_not_hidden() -> None:
    """The tool's own error says more than that it forgot something on its way there."""
    server = Server("forgetful")

    @server.tool
    async def act(ctx: Context) -> str:
        question = ctx.confirm("?")
        try:
            raise ValueError("first")
        finally:
            question.close()  # type: ignore[attr-defined]  # a coroutine

    server.dev = True
    async with Client(server, answers=ANSWERS) as client:
        result = await client.call_tool("act")
    assert "ValueError: first" in result.text
