"""Dependencies: parameters that the server fills in for each call, and no caller sees."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import pytest

from interlock import (
    Caller,
    Client,
    Context,
    Depends,
    HttpRequest,
    McpError,
    Principal,
    Server,
    SessionState,
    ToolError,
)
from interlock.server.calls.dependencies import DependencyScope, dependencies_of

events: list[str] = []


@pytest.fixture(autouse=True)
def no_events() -> None:
    events.clear()


class Database:
    def __init__(self, name: str = "real") -> None:
        self.name = name


async def database() -> AsyncIterator[Database]:
    """A database that is closed after the call."""
    events.append("open")
    try:
        yield Database()
    except BaseException as bad:
        events.append(type(bad).__name__)
        raise
    finally:
        events.append("close")


def blocking_file() -> Iterator[str]:
    """A generator that blocks."""
    events.append("open file")
    yield f"file in {threading.current_thread().name.partition('-')[0]}"
    events.append("close file")


async def user(ctx: Context, db: Annotated[Database, Depends(database)]) -> str:
    return f"{db.name} user of {ctx.caller.revision}"


Db = Annotated[Database, Depends(database)]


def tool_of(function: Callable[..., Any]) -> Server:
    server = Server("s")
    server.tool(function)
    return server


async def test_every_form_of_provider() -> None:
    """Async and plain functions and generators, classes, lambdas and constants of the call."""
    server = Server("s")

    def plain() -> str:
        return threading.current_thread().name.partition("-")[0]

    @dataclass
    class Settings:
        limit: int = 3

    @server.tool
    async def look(
        dish: str,
        db: Db,
        file: Annotated[str, Depends(blocking_file)],
        who: Annotated[str, Depends(user)],
        thread: Annotated[str, Depends(plain)],
        settings: Annotated[Settings, Depends()],
        number: Annotated[int, Depends(lambda: 4)] = 9,
    ) -> tuple[str, str, str, str, str, int, int]:
        events.append("run")
        return (dish, db.name, file, who, thread, settings.limit, number)

    async with Client(server) as client:
        (tool,) = await client.list_tools()
        assert list(tool.input_schema["properties"]) == ["dish"]
        result = await client.call_tool("look", {"dish": "soup"})
        assert result.value() == [
            "soup",
            "real",
            "file in interlock",
            f"real user of {client.revision}",
            "interlock",
            3,
            4,
        ]
    assert events == ["open", "open file", "run", "close file", "close"]  # each once, in turn


async def test_callers_cannot_set_one() -> None:
    """Neither by its name, nor through `**kwargs`, nor beside a schema of the author's."""
    server = Server("s")

    @server.tool
    async def named(db: Db) -> str:
        return db.name

    @server.tool
    async def open_ended(db: Db, **rest: int) -> str:
        return f"{db.name} {rest}"

    @server.tool(input_schema={"type": "object"})
    async def raw(arguments: dict[str, Any], db: Db) -> str:
        return f"{db.name} {arguments}"

    async with Client(server) as client:
        for name in ("named", "open_ended"):
            result = await client.call_tool(name, {"db": "mine"})
            assert result.is_error
            assert "$.db" in result.text
        assert (await client.call_tool("raw", {"db": "mine"})).text == "real {'db': 'mine'}"
        assert (await client.call_tool("open_ended", {"x": 1})).text == "real {'x': 1}"


async def test_plain_functions_and_generators_as_tools() -> None:
    """The tool itself may be of any form."""
    server = Server("s")

    @server.tool
    def plain(db: Db) -> str:
        return f"{db.name} {threading.current_thread().name.partition('-')[0]}"

    @server.tool
    async def steps(db: Db) -> AsyncIterator[str]:
        yield db.name

    async with Client(server) as client:
        assert (await client.call_tool("plain")).text == "real interlock"
        assert (await client.call_tool("steps")).text == "real"
    assert events == ["open", "close"] * 2


async def test_prompts_resources_and_completions() -> None:
    server = Server("s")

    @server.prompt
    async def greet(name: str, db: Db) -> str:
        return f"{db.name} {name}"

    @server.resource("note://{name}")
    async def note(name: str, db: Db) -> str:
        return f"{db.name} {name}"

    @server.resource("note://fixed")
    async def fixed(db: Db) -> str:
        return db.name

    @server.completion("greet", "name")
    async def names(value: str, db: Db) -> list[str]:
        return [f"{value}-{db.name}"]

    async with Client(server) as client:
        (prompt,) = await client.list_prompts()
        assert [argument.name for argument in prompt.arguments or ()] == ["name"]
        got = await client.get_prompt("greet", {"name": "Ada"})
        assert got.messages[0].content.text == "real Ada"
        assert (await client.read_resource("note://one")).contents[0].text == "real one"
        assert (await client.read_resource("note://fixed")).contents[0].text == "real"
        found = await client.complete("greet", "name", "A")
        assert found.values == ["A-real"]


async def test_errors_reach_the_generator_and_the_caller() -> None:
    @tool_of
    async def fail(db: Db) -> None:
        raise ToolError("There is no soup.")

    async with Client(fail) as client:
        result = await client.call_tool("fail")
        assert result.is_error
        assert result.text == "There is no soup."
    assert events == ["open", "ToolError", "close"]


async def test_a_dependency_cannot_hide_an_error() -> None:
    async def swallowing() -> AsyncIterator[int]:
        try:
            yield 1
        except ToolError:
            events.append("swallowed")

    @tool_of
    async def fail(one: Annotated[int, Depends(swallowing)]) -> str:
        raise ToolError("no")

    async with Client(fail) as client:
        assert (await client.call_tool("fail")).is_error
    assert events == ["swallowed"]


async def test_cancellation_cleans_up() -> None:
    started = asyncio.Event()
    closed = asyncio.Event()

    async def guarded() -> AsyncIterator[int]:
        try:
            yield 1
        except asyncio.CancelledError:
            events.append("cancelled")
            raise
        finally:
            closed.set()

    @tool_of
    async def wait(one: Annotated[int, Depends(guarded)], db: Db) -> None:
        started.set()
        await asyncio.Event().wait()

    async with Client(wait) as client:
        call = asyncio.create_task(client.call_tool("wait"))
        await started.wait()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await closed.wait()
    assert events == ["open", "CancelledError", "close", "cancelled"]


async def test_cancellation_while_a_thread_opens_something() -> None:
    """The thread goes on; what it opened is closed."""
    loop = asyncio.get_running_loop()
    opening = asyncio.Event()
    go_on = threading.Event()

    def slow() -> Iterator[int]:
        loop.call_soon_threadsafe(opening.set)
        go_on.wait()
        events.append("open")
        try:
            yield 1
        finally:
            events.append("close")

    async def use() -> None:
        wanted = dependencies_of({"one": slow}, Context)
        async with DependencyScope(None, partial(loop.run_in_executor, None), {}) as scope:
            await scope.values(wanted)
            events.append("run")

    call = asyncio.create_task(use())
    await opening.wait()
    call.cancel()
    await asyncio.sleep(0)  # the cancellation arrives
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert events == ["open", "close"]


async def test_a_dependency_that_fails_ends_the_call_and_cleans_up() -> None:
    async def broken(db: Db) -> int:
        raise ToolError("No connection.")

    @tool_of
    async def never(one: Annotated[int, Depends(broken)]) -> None:
        events.append("run")

    async with Client(never) as client:
        assert (await client.call_tool("never")).text == "No connection."
    assert events == ["open", "ToolError", "close"]


async def test_types_of_the_call() -> None:
    @tool_of
    async def show(
        caller: Annotated[Caller, Depends()],
        principal: Annotated[Principal | None, Depends()],
        request: Annotated[HttpRequest | None, Depends()],
    ) -> tuple[str, bool, bool]:
        return caller.revision, principal is None, request is None

    async with Client(show) as client:
        assert (await client.call_tool("show")).value() == [client.revision, True, True]


async def test_session_state() -> None:
    @tool_of
    async def count(state: Annotated[SessionState, Depends()]) -> int:
        number = await state.get("n", 0) + 1
        await state.set("n", number)
        return int(number)

    async with Client(count, revision="2025-11-25") as client:
        assert [(await client.call_tool("count")).value() for _ in range(2)] == [1, 2]


async def test_a_dependency_can_ask() -> None:
    """The tool itself takes no Context."""

    async def size(ctx: Context) -> str:
        answer = await ctx.elicit("What size?", str)
        return str(answer)

    @tool_of
    async def order(size: Annotated[str, Depends(size)]) -> str:
        return f"a {size} soup"

    async with Client(order, elicit=lambda question: {"value": "large"}) as client:
        assert (await client.call_tool("order")).text == "a large soup"


async def test_overrides() -> None:
    """For the block, also of what other dependencies take, and of types of the call."""
    server = Server("s")

    @server.tool
    async def look(
        db: Db,
        who: Annotated[str, Depends(user)],
        caller: Annotated[Caller, Depends()],
    ) -> list[str]:
        return [db.name, who.partition(" ")[0], caller.revision]

    def fake(ctx: Context) -> Database:
        return Database("fake")

    async with Client(server) as client:
        with server.override(database, fake):
            with server.override(Caller, lambda: Caller("1999-01-01")):
                found = (await client.call_tool("look")).value()
                assert found == ["fake", "fake", "1999-01-01"]
            with server.override(database, lambda: Database("faker")):
                assert (await client.call_tool("look")).value()[0] == "faker"
            assert (await client.call_tool("look")).value()[0] == "fake"
        assert (await client.call_tool("look")).value()[0] == "real"
    with pytest.raises(TypeError, match="needs itself"), server.override(database, user):
        raise AssertionError


async def test_limits_include_dependencies() -> None:
    """The timeout of a tool is also that of what it needs."""

    async def slow() -> int:
        await asyncio.Event().wait()
        return 1

    server = Server("s")

    @server.tool(timeout=0.01)
    async def wait(one: Annotated[int, Depends(slow)]) -> int:
        return one

    async with Client(server) as client:
        result = await client.call_tool("wait")
        assert result.is_error
        assert "longer than 0.01 seconds" in result.text


def unknown(value: int) -> int:
    return value


def wrong_default(db: Database = Depends(database)) -> str:  # type: ignore[assignment] # noqa: B008 # that is the mistake
    return db.name


def no_class(value: Annotated[int | str, Depends()]) -> str:
    return str(value)


def no_brackets(value: Annotated[int, Depends]) -> str:
    return str(value)


def needs_unknown(value: Annotated[int, Depends(unknown)]) -> str:
    return str(value)


@pytest.mark.parametrize(
    "function, words",
    [
        (wrong_default, r"write the marker into the annotation: db: Annotated\["),
        (no_class, "needs a class"),
        (no_brackets, "with brackets"),
        (needs_unknown, "the dependency unknown: the parameter 'value' is neither a Context"),
    ],
)
def test_mistakes_are_named_when_the_tool_is_made(function: Callable[..., Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        Server("s").add_tool(function)


def test_a_circle_is_named() -> None:
    def first(b: Annotated[int, Depends(lambda: 1)]) -> int:
        return b

    def second(a: Annotated[int, Depends(first)]) -> int:
        return a

    first.__annotations__ = {"b": Annotated[int, Depends(second)]}
    with pytest.raises(TypeError, match="needs itself: .*first -> .*second -> .*first"):
        Server("s").add_tool(second, name="t")


async def test_a_tool_without_dependencies_takes_the_direct_path() -> None:
    """Nothing about it changes: no scope, no hidden context."""

    @tool_of
    async def plain(x: int) -> int:
        return x

    (feature,) = plain.tools
    assert feature.call.injection is None
    assert (feature.call.waits, feature.call.context) == (True, None)
    async with Client(plain) as client:
        with pytest.raises(McpError):
            await client.call_tool("none")
        assert (await client.call_tool("plain", {"x": 1})).value() == 1
