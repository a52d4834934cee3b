"""Running an author's function: in place, in a thread or item by item, within its limits, and what
becomes of what it raises.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import re
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from interlock import (
    Client,
    Context,
    Declined,
    McpError,
    Progress,
    ProtocolError,
    QuestionSettings,
    Server,
    ServerLimits,
    TimedOut,
    ToolError,
    Unreachable,
)
from interlock import types as t
from interlock.server.calls.calling import pausing
from interlock.wire.revisions import NEWEST
from tests.server.by_hand import R4, call, exchange, read, text, written
from tests.server.test_workers import LONG, of_workers

SHORT = 0.02  # seconds; the timeout of tools that never end


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator as many write it: a plain function around whatever it is given."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class Doubler:
    """A callable object; `later` is a method that is a coroutine."""

    def __call__(self, n: int) -> str:
        return f"{2 * n} in {threading.get_ident() == threading.main_thread().ident}"

    async def later(self, n: int) -> str:
        return f"{2 * n} in {threading.get_ident() == threading.main_thread().ident}"


def make(kind: str) -> Any:
    doubler = Doubler()

    async def generator(n: int) -> AsyncIterator[Any]:
        yield Progress(1)
        yield await doubler.later(n)

    def lazy(n: int) -> Any:
        return doubler.later(n)

    return {
        "coroutine": doubler.later,
        "partial": functools.partial(doubler.later, 4),
        "partial of a partial": functools.partial(functools.partial(doubler.later), 4),
        "wrapped coroutine": logged(doubler.later),
        "generator": generator,
        "wrapped generator": logged(generator),
        "gives a coroutine": lazy,
        "object": doubler,
        "plain": doubler.__call__,
        "lambda": lambda n: doubler(n),
        "partial of an object": functools.partial(doubler, 4),
    }[kind]


IN_PLACE = [
    "coroutine",
    "partial",
    "partial of a partial",
    "wrapped coroutine",
    "generator",
    "wrapped generator",
    "gives a coroutine",
]
IN_THREADS = ["object", "plain", "lambda", "partial of an object"]


@pytest.mark.parametrize("kind", IN_PLACE + IN_THREADS)
async def test_where_functions_run(kind: str):
    """What can wait runs in the loop, however it is wrapped; all else in a thread."""
    server = Server("calling")
    server.add_tool(make(kind), name="double")
    arguments = {} if kind.startswith("partial") else {"n": 4}
    assert await text(server, "double", arguments) == f"8 in {kind in IN_PLACE}"
    await server.aclose()


async def test_prompts_resources_and_completions_run_alike():
    """Plain functions of all kinds run in threads."""
    server = Server("calling")
    seen: set[int] = set()

    def note(*, name: str = "") -> list[str]:
        seen.add(threading.get_ident())
        return ["said"]

    server.add_prompt(note)
    server.add_resource("docs://a", lambda: note()[0])
    server.add_resource("docs://{name}/b", note)
    server.completion(lambda: note())
    await written(server, "note")
    await read(server, "docs://a")
    await read(server, "docs://x/b")
    params = t.CompleteRequestParams(
        ref=t.PromptReference(name="note"), argument=t.CompletionArgument(name="name", value="")
    )
    await server.handle(exchange("completion/complete", params))
    assert seen
    assert threading.main_thread().ident not in seen
    await server.aclose()


async def test_a_generator_is_closed_when_its_call_is_cancelled():
    """What it holds is let go in its `finally`."""
    server = Server("calling")
    entered = asyncio.Event()
    closed = asyncio.Event()

    @server.tool
    async def work() -> Any:
        try:
            yield Progress(1)
            entered.set()
            await asyncio.Event().wait()
        finally:
            closed.set()

    async with Client(server) as client, asyncio.timeout(LONG):
        running = asyncio.create_task(client.call_tool("work"))
        await entered.wait()
        running.cancel()
        await closed.wait()


async def test_a_server_in_one_loop_after_the_other():
    """Threads belong to a loop; a server that goes on in another one gets new ones, and leaves none
    behind.
    """
    server = Server("calling")
    server.add_tool(lambda: "done", name="work")
    before = of_workers()

    async def once() -> str:
        return await text(server, "work")

    for _ in range(3):
        assert await asyncio.to_thread(asyncio.run, once()) == "done"
    await server.aclose()
    for thread in of_workers() - before:
        await asyncio.to_thread(thread.join, LONG)
    assert of_workers() - before == set()


# Limits of one tool.


async def test_a_tool_has_its_own_limit():
    """As many at once as it says, some wait, one too many is refused at once; other tools do not
    care.
    """
    server = Server("calling")
    go = asyncio.Event()
    entered = asyncio.Semaphore(0)

    @server.tool(concurrency=1, queue=1)
    async def dig(n: int) -> int:
        entered.release()
        await go.wait()
        return n

    @server.tool
    async def other() -> str:
        return "free"

    calls = [asyncio.create_task(call(server, "dig", {"n": n})) for n in (1, 2)]
    async with asyncio.timeout(LONG):
        await entered.acquire()
        with pytest.raises(
            McpError,
            match=r"The tool dig is busy: 1 calls are running and 1 wait\. Try again later\.",
        ) as caught:
            await call(server, "dig", {"n": 3})
        assert caught.value.data == {"reason": "busy"}
        assert await text(server, "other") == "free"
        go.set()
        assert [result.text for result in await asyncio.gather(*calls)] == ["1", "2"]
    assert await text(server, "dig", {"n": 4}) == "4"


@pytest.mark.parametrize("how", ["raises", "is cancelled", "times out"])
async def test_however_a_call_ends_its_place_is_free_again(how: str):
    """An error, a client that gives up, a timeout."""
    server = Server("calling")
    entered = asyncio.Event()

    @server.tool(concurrency=1, queue=0, timeout=SHORT if how == "times out" else None)
    async def dig(first: bool) -> str:
        entered.set()
        if first and how == "raises":
            raise LookupError
        if first:
            await asyncio.Event().wait()
        return "second"

    first = asyncio.create_task(call(server, "dig", {"first": True}))
    async with asyncio.timeout(LONG):
        await entered.wait()
        if how == "is cancelled":
            first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert await text(server, "dig", {"first": False}) == "second"


# Timeouts.


async def never() -> str:
    await asyncio.Event().wait()
    return "this is never reached"


async def test_a_tool_that_takes_too_long():
    """It is cancelled, and says so in words for the model; the tool's own limit goes before the
    server's.
    """
    server = Server("calling", limits=ServerLimits(timeout=SHORT))
    server.add_tool(never)
    server.add_tool(never, name="slower", timeout=2 * SHORT)
    assert (
        await call(server, "never")
    ).text == "The call took longer than 0.02 seconds and was stopped."
    result = await call(server, "slower")
    assert result.is_error
    assert result.text == "The call took longer than 0.04 seconds and was stopped."


async def test_prompts_resources_and_completions_that_take_too_long():
    """There it is an internal error, for they have no other."""
    server = Server("calling", limits=ServerLimits(timeout=SHORT))

    @server.prompt
    async def write(topic: str = "") -> str:
        return await never()

    server.add_resource("docs://a", never)
    server.completion(never)
    with pytest.raises(
        McpError, match=r"took longer than 0\.02 seconds and was stopped\. \(code -32603\)"
    ):
        await written(server, "write")
    with pytest.raises(McpError, match="took longer"):
        await read(server, "docs://a")
    params = t.CompleteRequestParams(
        ref=t.PromptReference(name="write"), argument=t.CompletionArgument(name="topic", value="")
    )
    with pytest.raises(McpError, match="took longer"):
        await server.handle(exchange("completion/complete", params))


async def test_a_thread_that_takes_too_long():
    """It cannot be stopped; it is told, and nobody waits for it."""
    server = Server("calling")
    told = threading.Event()
    seen = []
    before = of_workers()

    @server.tool(timeout=SHORT)
    def work(ctx: Context) -> None:
        told.wait(LONG)
        seen.append(ctx.cancelled)

    assert "took longer" in (await call(server, "work")).text
    told.set()
    await server.aclose()
    for thread in of_workers() - before:
        await asyncio.to_thread(thread.join, LONG)
    assert seen == [True]


async def test_a_timeout_of_the_functions_own_is_another_matter():
    """A TimeoutError that the function raises itself is a failure like others."""
    server = Server("calling")

    @server.tool(timeout=LONG)
    async def work() -> None:
        raise TimeoutError("of a database")

    assert "The tool work failed (reference" in (await call(server, "work")).text


class Deadline:
    """As much of a timeout as the clock needs."""

    def __init__(self, when: float) -> None:
        self.at: float | None = when
        self.over = False

    def when(self) -> float | None:
        return self.at

    def expired(self) -> bool:
        return self.over

    def reschedule(self, when: float | None) -> None:
        self.at = when


def test_the_clock_stops_while_somebody_is_asked():
    """What was left when the first question began is left when the last one ends."""
    now = 100.0
    deadline = Deadline(110.0)
    pause = pausing(deadline, 10.0, lambda: now)  # type: ignore[arg-type]  # it is all that is needed
    now = 104.0
    pause(True)
    assert deadline.at is None
    now = 500.0
    pause(True)
    pause(False)
    assert deadline.at is None
    now = 1000.0
    pause(False)
    assert deadline.at == 1006.0
    now = 1007.0
    pause(True)
    pause(False)
    assert deadline.at == 1007.0
    deadline.over = True
    pause(True)
    pause(False)
    assert deadline.at == 1007.0


class Leaps:
    """The clock of the running loop, which can be made to leap: what was due meanwhile is due at
    once.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        self._time = loop.time
        self._leapt = 0.0
        monkeypatch.setattr(loop, "time", lambda: self._time() + self._leapt)

    async def leap(self, seconds: float) -> None:
        self._leapt += seconds
        await asyncio.sleep(0)
        await asyncio.sleep(0)


@pytest.mark.parametrize("revision", [R4, NEWEST])
@pytest.mark.parametrize("plain", [False, True])
async def test_a_person_may_take_longer_than_the_tool(
    revision: str, plain: bool, monkeypatch: pytest.MonkeyPatch
):
    """The tool's clock stands while it asks, and runs again after that."""
    server = Server("calling")
    clock = Leaps(monkeypatch)
    answered: list[str] = []

    @server.tool(timeout=50)
    async def work(ctx: Context) -> str:
        answered.append(await ctx.elicit("Well?", str))
        await clock.leap(60)
        return await never()

    @server.tool(timeout=50)
    def work_in_a_thread(ctx: Context) -> str:
        answered.append(ctx.wait(ctx.elicit("Well?", str)))
        ctx.wait(clock.leap(60))
        ctx.wait(never())
        return "this is never reached"

    async def slow(params: Any) -> Any:
        await clock.leap(100)
        return {"value": "yes"}

    async with Client(server, revision=revision, elicit=slow, timeout=None) as client:
        result = await client.call_tool("work_in_a_thread" if plain else "work")
    assert answered == ["yes"]
    assert result.is_error
    assert "took longer than 50 seconds" in result.text


async def test_a_question_that_outlives_its_call_stops_no_clock():
    """A task that the tool left behind still asks when it is given up: it ends like any other."""
    server = Server("calling")
    left: list[asyncio.Task[Any]] = []

    @server.tool(timeout=LONG)
    async def work(ctx: Context) -> str:
        left.append(asyncio.create_task(ctx.elicit("Well?", str)))
        await asyncio.sleep(0)
        return "done"

    async with Client(server, revision=R4, elicit=lambda params: {"value": "x"}) as client:
        assert (await client.call_tool("work")).text == "done"
    left[0].cancel()
    (outcome,) = await asyncio.gather(*left, return_exceptions=True)
    assert isinstance(outcome, asyncio.CancelledError)


# What a function raises.


async def fail(error: BaseException) -> None:
    raise error


def raising(error: BaseException, kind: str) -> Any:
    """A tool that raises it, in place or in a thread; `ctx` brings it on the way of tools that may
    ask.
    """

    async def in_place() -> None:
        raise error

    async def with_context(ctx: Context) -> None:
        raise error

    def in_a_thread() -> None:
        raise error

    async def in_a_group() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail(error))

    async def later() -> Any:
        yield Progress(1)
        raise error

    return {
        "in place": in_place,
        "with a context": with_context,
        "in a thread": in_a_thread,
        "in a group": in_a_group,
        "later": later,
    }[kind]


@pytest.mark.parametrize(
    "kind", ["in place", "with a context", "in a thread", "in a group", "later"]
)
@pytest.mark.parametrize(
    "error",
    [
        LookupError("the secret word"),
        SystemExit("the secret word"),
        StopIteration("the secret word"),
        Unreachable("it"),
    ],
)
async def test_what_nobody_foresaw(
    kind: str, error: BaseException, caplog: pytest.LogCaptureFixture
):
    """The client gets a plain sentence with a reference; the log has the same reference and the
    traceback (`ERR-20`, `TOL-15`).
    """
    if kind == "in a group" and isinstance(error, SystemExit):
        return  # asyncio itself ends the loop for that, before anybody can catch it
    server = Server("calling")
    server.add_tool(raising(error, kind), name="work")
    result = await call(server, "work")
    assert result.is_error
    words, _, reference = result.text.removesuffix(").").partition(" (reference ")
    assert words == "The tool work failed"
    (record,) = caplog.records
    assert record.getMessage() == f"tool work failed (reference {reference})"
    assert record.exc_info is not None
    assert "test_calling.py" in logging.Formatter().formatException(record.exc_info)
    await server.aclose()


@pytest.mark.parametrize(
    "kind", ["in place", "with a context", "in a thread", "in a group", "later"]
)
@pytest.mark.parametrize(
    "error",
    [ToolError("There is no tea."), Declined("There is no tea."), TimedOut("There is no tea.")],
)
async def test_what_is_meant_for_the_model(
    kind: str, error: Exception, caplog: pytest.LogCaptureFixture
):
    """Its words are the result, and nothing is logged (`TOL-15`)."""
    if kind == "in a group" and isinstance(error, TimedOut):
        return  # it is a failure of the network, which only by itself speaks for the whole call
    server = Server("calling")
    server.add_tool(raising(error, kind), name="work")
    result = await call(server, "work")
    assert (result.is_error, result.text) == (True, "There is no tea.")
    assert caplog.records == []
    await server.aclose()


@pytest.mark.parametrize("kind", ["in place", "with a context", "in a thread", "in a group"])
async def test_errors_of_the_protocol_pass(kind: str):
    """An McpError is the answer."""
    server = Server("calling")
    server.add_tool(raising(McpError(-32001, "No tea.", [1]), kind), name="work")
    with pytest.raises(McpError) as caught:
        await call(server, "work")
    assert (caught.value.code, caught.value.message, caught.value.data) == (-32001, "No tea.", [1])
    await server.aclose()


async def test_a_broken_conversation_is_told_to_the_log(caplog: pytest.LogCaptureFixture):
    """A ProtocolError is no words for the model: the request fails, and the log says why."""
    server = Server("calling")
    server.add_tool(
        raising(ProtocolError("the other side talks nonsense"), "in place"), name="work"
    )
    async with Client(server) as client:
        with pytest.raises(McpError, match="gave an answer that cannot be read"):
            await client.call_tool("work")
    assert "the other side talks nonsense" in caplog.text


@pytest.mark.parametrize(
    "errors, words",
    [
        ([ToolError("No tea."), Declined("No milk.")], "No tea.\nNo milk."),
        ([ToolError("No tea."), ToolError("No tea.")], "No tea."),
        ([ToolError("No tea."), LookupError("the secret word")], "The tool work failed (reference"),
    ],
)
async def test_several_errors_at_once(errors: list[Exception], words: str):
    """A task group's errors are words for the model where all are meant for it, and never an
    ExceptionGroup.
    """
    server = Server("calling")

    @server.tool
    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            for error in errors:
                group.create_task(fail(error))

    result = await call(server, "work")
    assert result.is_error
    assert result.text.startswith(words)


async def test_groups_in_prompts_and_resources():
    """There the same words are an error of the protocol."""
    server = Server("calling")
    server.add_prompt(raising(ToolError("No tea."), "in a group"), name="write")
    server.add_resource("docs://a", raising(McpError(-32001, "No milk."), "in a group"))
    server.add_resource("docs://b", raising(LookupError("the secret word"), "in a group"))
    with pytest.raises(McpError, match=r"^No tea\. \(code -32603\)$"):
        await written(server, "write")
    with pytest.raises(McpError, match=r"^No milk\. \(code -32001\)$"):
        await read(server, "docs://a")
    with pytest.raises(
        McpError,
        match=r"^The resource docs://b failed \(reference [0-9a-f]{8}\)\. \(code -32603\)$",
    ):
        await read(server, "docs://b")


@pytest.mark.parametrize("suspend", [True, False])
@pytest.mark.parametrize("feature", ["tool", "prompt"])
@pytest.mark.parametrize(
    "error, words",
    [
        (ToolError("No tea."), "^No tea"),
        (LookupError("the secret word"), r"work failed \(reference"),
    ],
)
async def test_a_group_that_asks_and_fails_at_once(
    suspend: bool, feature: str, error: Exception, words: str, caplog: pytest.LogCaptureFixture
):
    """One task asks while another fails: the call fails, suspended or replayed alike, and the log
    has it once.
    """
    server = Server("calling", questions=QuestionSettings(suspend=suspend))

    async def work(ctx: Context) -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.elicit("Well?", str))
            group.create_task(fail(error))
        return "this is never reached"

    server.add_tool(work)
    server.add_prompt(work)
    async with (
        Client(server, elicit=lambda params: {"value": "x"}) as client,
        asyncio.timeout(LONG),
    ):
        if feature == "tool":
            result = await client.call_tool("work")
            assert result.is_error
            assert re.search(words, result.text)
        else:
            with pytest.raises(McpError, match=words):
                await client.get_prompt("work")
    assert len(caplog.records) == (0 if isinstance(error, ToolError) else 1)


async def test_prompts_and_resources_that_end_the_program():
    """They do not; the request fails, and the next one is served."""
    server = Server("calling")
    server.add_prompt(raising(SystemExit(3), "in place"), name="write")
    server.add_resource("docs://a", raising(SystemExit(3), "in a thread"))
    async with Client(server) as client:
        with pytest.raises(McpError, match="The prompt write failed"):
            await client.get_prompt("write")
        with pytest.raises(McpError, match="The resource docs://a failed"):
            await client.read_resource("docs://a")
        assert len(await client.list_prompts()) == 1


async def test_a_tool_that_cancels_itself():
    """The call ends with an error, not with silence."""
    server = Server("calling")
    server.add_tool(raising(asyncio.CancelledError(), "in place"), name="work")
    server.add_tool(raising(asyncio.CancelledError(), "in a thread"), name="work_in_a_thread")
    async with Client(server) as client:
        for tool in ("work", "work_in_a_thread"):
            with pytest.raises(McpError, match="The call was cancelled by the server"):
                await client.call_tool(tool)
