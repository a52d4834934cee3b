"""get_context: the Context of the running call, for functions below a tool, resource or prompt."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from interlock import Client, Context, Progress, Server, get_context
from interlock.wire.revisions import NEWEST, REVISIONS
from tests.server.by_hand import R4, Told, call, read, text, written

ALL = pytest.mark.parametrize("revision", REVISIONS)


def helper() -> str:
    """A function that is handed nothing."""
    return get_context().caller.revision


class Here:
    """Where the call was that a helper asked about, by what ran it."""

    def __init__(self) -> None:
        self.server = Server("helped")
        server = self.server

        @server.tool
        async def in_place() -> str:
            return helper()

        @server.tool
        async def declared(ctx: Context) -> bool:
            return get_context() is ctx

        @server.tool
        async def same() -> bool:
            return get_context() is get_context()

        @server.tool(timeout=60, concurrency=1)
        async def limited() -> str:
            return helper()

        @server.tool
        def in_thread() -> list[Any]:
            return [helper(), threading.current_thread() is threading.main_thread()]

        @server.tool
        async def to_thread() -> str:
            return await asyncio.to_thread(helper)

        @server.tool
        async def item_by_item() -> AsyncIterator[Any]:
            get_context().progress(1)
            yield Progress(2)
            yield helper()

        @server.tool
        async def in_child_task() -> list[Any]:
            async def child() -> list[Any]:
                return [helper(), get_context()]

            found, other = await asyncio.gather(child(), child())
            return [found[0], found[1] is other[1] is get_context()]


@pytest.mark.parametrize(
    "tool, expected",
    [
        ("in_place", NEWEST),
        ("declared", "true"),
        ("same", "true"),
        ("limited", NEWEST),
        ("in_thread", f'["{NEWEST}",false]'),
        ("to_thread", NEWEST),
        ("item_by_item", NEWEST),
        ("in_child_task", f'["{NEWEST}",true]'),
    ],
)
async def test_helpers_find_the_call(tool: str, expected: str):
    """In place, in threads, in async generators, in child tasks: one Context for one call."""
    assert await text(Here().server, tool) == expected


async def test_progress_of_a_helper_and_its_generator_is_one():
    """The helper and the generator share the count, so that progress still only grows."""
    notify = Told()
    await text(Here().server, "item_by_item", notify=notify, progress_token="p")
    assert notify.progress() == [1, 2]


@ALL
async def test_over_a_connection(revision: str):
    """A client's call of any revision is found, and many calls at once are not mixed up."""
    server = Server("helped")
    release = asyncio.Event()
    inside: list[int] = []

    async def below() -> int:
        inside.append(1)
        if len(inside) == 20:
            release.set()
        await release.wait()
        return int(get_context().meta["n"])

    @server.tool
    async def work() -> int:
        return await below()

    async with Client(server, revision=revision) as client:
        results = await asyncio.gather(
            *(client.call_tool("work", meta={"n": n}) for n in range(20))
        )
        assert [result.text for result in results] == [str(n) for n in range(20)]


async def test_resources_prompts_and_completions():
    """Every function of an author's has it."""
    server = Server("helped")

    @server.resource("about://me")
    async def about() -> str:
        return helper()

    @server.prompt
    def hello(name: str) -> str:
        return helper()

    @server.completion
    async def suggest(value: str) -> list[str]:
        return [helper()]

    assert (await read(server, "about://me")).contents[0].text == NEWEST
    (message,) = await written(server, "hello", {"name": "x"})
    assert message.content.text == NEWEST  # type: ignore[union-attr]  # it is text
    async with Client(server) as client:
        assert (await client.complete("hello", "name")).values == [NEWEST]


async def test_a_resource_read_inside_has_its_own():
    """The function that is called within another's call has a Context of its own, and the other
    keeps its.
    """
    server = Server("helped")
    seen: list[Any] = []

    @server.resource("inner://it")
    async def inner() -> str:
        seen.append(get_context())
        return "inner"

    @server.tool
    async def outer(ctx: Context) -> bool:
        await ctx.read_resource("inner://it")
        seen.append(get_context())
        return get_context() is ctx

    assert await text(server, "outer") == "true"
    assert seen[0] is not seen[1]


async def test_a_server_called_by_a_tool():
    """A call of another server in the same process does not leave its Context behind."""
    back = Server("back")
    front = Server("front")

    @back.tool
    async def name() -> str:
        return get_context().server.name

    @front.tool
    async def names() -> list[str]:
        async with Client(back) as client:
            theirs = (await client.call_tool("name")).value()
        return [theirs, get_context().server.name]

    assert await text(front, "names") == '["back","front"]'


def outside() -> Context[Any]:
    return get_context()


async def test_outside_a_call():
    """A RuntimeError says where it can be used; a call that is over leaves nothing behind, whether
    it failed or not.
    """
    with pytest.raises(RuntimeError, match="no running call"):
        outside()
    server = Server("helped")

    @server.tool
    async def fails() -> None:
        get_context()
        raise ValueError("no")

    assert (await call(server, "fails")).is_error
    async with Client(server) as client:
        await client.call_tool("fails")
    with pytest.raises(RuntimeError, match="no running call"):
        outside()


async def test_cancelled_reaches_a_helper_in_a_thread():
    """A helper in a thread sees that nobody waits for the call any more."""
    server = Server("helped")
    begun = threading.Event()
    over = threading.Event()
    seen: list[bool] = []

    @server.tool
    def slow() -> None:
        ctx = get_context()
        begun.set()
        try:
            ctx.wait(asyncio.sleep(3600))
        except asyncio.CancelledError:
            seen.append(ctx.cancelled)
        finally:
            over.set()

    task = asyncio.ensure_future(call(server, "slow"))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(over.wait)
    assert seen == [True]


def asking(declares: bool) -> Server:
    """A server whose helper asks; its tool declares a Context or not."""
    server = Server("asking")
    server.dev = True

    async def sure() -> bool:
        return await get_context().confirm("Sure?")

    if declares:

        @server.tool
        async def go(ctx: Context) -> bool:
            return await sure()

    else:

        @server.tool("go")
        async def go_without() -> bool:
            return await sure()

    return server


def yes(_: Any) -> dict[str, Any]:
    """The answer of a person who agrees."""
    return {"confirm": True}


@pytest.mark.parametrize("declares", [True, False])
@pytest.mark.parametrize("revision", [R4, NEWEST])
async def test_questions_of_a_helper(revision: str, declares: bool):
    """They are asked where the tool declares a Context, and everywhere on the handshake revisions;
    else the error says what to do.
    """
    async with Client(asking(declares), revision=revision, elicit=yes) as client:
        result = await client.call_tool("go")
    if declares or revision == R4:
        assert result.value() is True
    else:
        assert result.is_error
        assert "Give the tool, resource or prompt a parameter `ctx: Context`" in result.text
