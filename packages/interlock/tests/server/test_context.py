"""A running call as its author sees it: progress, log, meta, asking, reading, waiting."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import (
    CallToolResult,
    Client,
    Context,
    Implementation,
    McpError,
    Principal,
    Progress,
    QuestionSettings,
    Server,
    ServerLimits,
)
from interlock import types as t
from interlock.exchange import TraceContext
from interlock.testing import ScriptedAnswers
from interlock.types.lifecycle import LOGGING_LEVELS
from interlock.wire.revisions import NEWEST
from tests.server.by_hand import R4, Told, call, exchange, text

BOTH_ERAS = pytest.mark.parametrize("revision", [R4, NEWEST])
TOKEN = "p"


async def told(
    server: Server, tool: str, arguments: dict[str, Any] | None = None, **given: Any
) -> Told:
    """What a call of a tool told on its way."""
    notify = Told()
    await text(server, tool, arguments, notify=notify, **given)
    return notify


# Progress.


@given(st.lists(st.floats(allow_nan=False) | st.integers(-5, 5), max_size=20))
def test_progress_only_grows(steps: list[float]):
    """Whatever a tool says, what is sent is strictly increasing, and begins with the first value
    (`PRG-02`).
    """
    server = Server("telling")

    @server.tool
    async def work(ctx: Context) -> None:
        for step in steps:
            ctx.progress(step)

    sent = asyncio.run(told(server, "work", progress_token=TOKEN)).progress()
    assert sent == sorted(set(sent))
    assert sent[:1] == steps[:1]
    assert max(sent, default=0) == max(steps, default=0)


async def test_what_progress_says():
    """The token of the request, the total and the words; nothing at all where no token came
    (`PRG-01`, `PRG-04`).
    """
    server = Server("telling")

    @server.tool
    async def work(ctx: Context) -> None:
        ctx.progress(0.5, 2, "Half of one")

    notify = await told(server, "work", progress_token=TOKEN)
    assert notify.all == [
        (
            "notifications/progress",
            t.ProgressNotificationParams(
                progress_token="p", progress=0.5, total=2, message="Half of one"
            ),
        )
    ]
    assert (await told(server, "work")).all == []


async def test_progress_of_a_generator():
    """What an async generator yields as Progress goes out, what it yields last is the result
    (`PRG-02`).
    """
    server = Server("telling")

    @server.tool
    async def work(to: int) -> Any:
        for step in range(to):
            yield Progress(step, to, f"step {step}")
            yield Progress(step - 1, to)
        yield f"{to} steps"

    notify = Told()
    assert await text(server, "work", {"to": 3}, notify=notify, progress_token=TOKEN) == "3 steps"
    assert notify.progress() == [0, 1, 2]
    assert (
        await call(server, "work", {"to": 0}, notify=notify, progress_token=TOKEN)
    ).text == "0 steps"


async def test_progress_from_a_thread():
    """A plain function tells too, in order, and before its result."""
    server = Server("telling")

    @server.tool
    def work(ctx: Context) -> str:
        for step in range(5):
            ctx.progress(step)
            ctx.log.error(step)
        return "done"

    notify = await told(server, "work", progress_token=TOKEN, log_level="error")
    assert notify.progress() == [0, 1, 2, 3, 4]
    assert notify.log() == [("error", n) for n in range(5)]
    await server.aclose()


async def test_a_resource_that_is_read_tells_no_progress_of_its_own():
    """The request's progress is that of the tool, and does not jump about (`PRG-02`)."""
    server = Server("telling")

    @server.resource("docs://a")
    async def a(ctx: Context) -> str:
        ctx.progress(1)
        ctx.log.error("from the resource")
        return "text"

    @server.tool
    async def work(ctx: Context) -> str | None:
        ctx.progress(50)
        (content,) = await ctx.read_resource("docs://a")
        ctx.progress(60)
        return content.text

    notify = await told(server, "work", progress_token=TOKEN, log_level="error")
    assert notify.progress() == [50, 60]
    assert notify.log() == [("error", "from the resource")]


# Log.


@pytest.mark.parametrize("wanted", LOGGING_LEVELS)
async def test_the_log_begins_where_the_client_wants_it(wanted: str):
    """At the level and above; the eight levels of the protocol (`LOG-02`, `LOG-06`)."""
    server = Server("telling")

    @server.tool
    async def work(ctx: Context) -> None:
        for level in LOGGING_LEVELS:
            getattr(ctx.log, level)({"at": level}, logger="part")
            ctx.log.write(level, level)

    notify = await told(server, "work", log_level=wanted)
    from_there_on = LOGGING_LEVELS[LOGGING_LEVELS.index(wanted) :]
    assert notify.log() == [
        (level, data) for level in from_there_on for data in ({"at": level}, level)
    ]
    assert [params.logger for _, params in notify.all] == ["part", None] * len(from_there_on)


async def test_without_a_level_there_is_no_log():
    """A request of the stateless era that names none is told nothing (`LOG-05`)."""
    server = Server("telling")

    @server.tool
    async def work(ctx: Context) -> None:
        ctx.log.emergency("the house burns")

    assert (await told(server, "work")).all == []
    received: list[Any] = []
    async with Client(server, on_log=received.append) as client:
        await client.call_tool("work")
    assert received == []


# Who asks.


async def test_who_asks():
    """Revision, capabilities, principal, trace, and what the author of the request put into
    `_meta`.
    """
    server = Server("asked")
    seen: list[Any] = []

    @server.tool
    async def look(ctx: Context) -> None:
        seen.append(
            (
                ctx.caller.principal,
                ctx.caller.revision,
                ctx.caller.info,
                ctx.caller.trace,
                ctx.meta,
                ctx.server is server,
                ctx.lifespan_state,
            )
        )

    principal = Principal(subject="ada", scopes=frozenset({"read"}))
    async with Client(
        server.transport(principal=principal), info=Implementation(name="peer", version="9")
    ) as client:
        await client.call_tool(
            "look",
            meta={
                "example.com/a": [1, "ü"],
                "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            },
        )
    (who, revision, info, trace, meta, same, state) = seen[0]
    assert (who, revision, same, state) == (principal, NEWEST, True, None)
    assert info == t.Implementation(name="peer", version="9")
    assert meta == {"example.com/a": [1, "ü"]}
    assert trace == TraceContext(
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    )


async def test_no_meta():
    """An exchange without `_meta` has an empty one."""
    server = Server("asked")

    @server.tool
    async def look(ctx: Context) -> dict[str, Any]:
        return ctx.meta

    assert await text(server, "look") == "{}"


# Reading.


async def test_reading_a_resource_of_the_server():
    """As a client would: data, functions, templates, and the error where there is none."""
    server = Server("reading")
    server.add_resource("docs://a", "text")

    @server.resource("docs://t/{name}")
    def named(name: str) -> bytes:
        return name.encode()

    @server.tool
    async def look(uri: str, ctx: Context) -> list[str | None]:
        return [content.text or content.blob for content in await ctx.read_resource(uri)]

    @server.tool
    def look_from_a_thread(uri: str, ctx: Context) -> str | None:
        return ctx.wait(ctx.read_resource(uri))[0].text

    assert await text(server, "look", {"uri": "docs://a"}) == '["text"]'
    assert await text(server, "look", {"uri": "docs://t/x"}) == '["eA=="]'
    assert await text(server, "look_from_a_thread", {"uri": "docs://a"}) == "text"
    with pytest.raises(McpError, match="Resource not found: docs://b"):
        await call(server, "look", {"uri": "docs://b"})
    await server.aclose()


@BOTH_ERAS
@pytest.mark.parametrize("suspend", [True, False])
async def test_a_resource_that_asks_asks_through_the_tool(revision: str, suspend: bool):
    """Its question travels as one of the call's own, in both eras, and nothing is left behind
    (`RES-16`).
    """
    server = Server("reading", questions=QuestionSettings(suspend=suspend))

    @server.resource("docs://secret")
    async def secret(ctx: Context) -> str:
        return f"The word is {await ctx.elicit('Which word?', str)}."

    @server.tool
    async def look(ctx: Context) -> str:
        before = await ctx.elicit("Who are you?", str)
        (content,) = await ctx.read_resource("docs://secret")
        return f"{before}: {content.text}"

    answers = {"Which word?": {"value": "sesame"}, "Who are you?": {"value": "Ali"}}
    async with Client(
        server, revision=revision, elicit=lambda params: answers[params.message]
    ) as client:
        assert (await client.call_tool("look")).text == "Ali: The word is sesame."
        assert len(server.suspended_calls) == 0


async def test_a_resource_that_asks_by_hand():
    """A result that says what it needs is for clients; a tool that reads it is told so."""
    server = Server("reading")

    @server.resource("docs://secret")
    async def secret() -> Any:
        request = t.ElicitRequest(
            t.ElicitRequestParams(
                message="?", requested_schema={"type": "object", "properties": {}}
            )
        )
        return t.InputRequiredResult(input_requests={"word": request})

    @server.tool
    async def look(ctx: Context) -> Any:
        return [content.text for content in await ctx.read_resource("docs://secret")]

    with pytest.raises(
        McpError,
        match=(
            "The resource docs://secret asks for input by hand, which another feature cannot give"
            " it"
        ),
    ):
        await call(server, "look")


# Waiting.


async def test_waiting_is_for_plain_functions():
    """In a coroutine it would hold up the loop for ever; it is refused, and what was to be waited
    for is dropped.
    """
    server = Server("waiting")
    words: list[str] = []

    @server.tool
    async def work(ctx: Context) -> None:
        try:
            ctx.wait(asyncio.sleep(0))
        except RuntimeError as bad:
            words.append(str(bad))

    await text(server, "work")
    assert words == [
        "ctx.wait is for plain functions that run in a thread; an async function uses await"
    ]


async def test_waiting_gives_what_is_waited_for_and_raises_what_it_raises():
    """Coroutines and futures of the loop, from a thread."""
    server = Server("waiting")

    async def twice(n: int) -> int:
        await asyncio.sleep(0)
        if n < 0:
            raise LookupError("below zero")
        return 2 * n

    future = asyncio.get_running_loop().create_future()
    future.set_result("ready")

    @server.tool
    def work(ctx: Context) -> list[Any]:
        try:
            ctx.wait(twice(-1))
        except LookupError as bad:
            return [ctx.wait(twice(4)), ctx.wait(future), str(bad)]
        return []

    assert await text(server, "work") == '[8,"ready","below zero"]'
    await server.aclose()


@BOTH_ERAS
async def test_a_thread_that_waits_is_woken_when_nobody_wants_the_answer(revision: str):
    """The client gives up while a person is being asked: the thread is free again, and an `except
    Exception` does not keep it.
    """
    server = Server("waiting", limits=ServerLimits(threads=1))
    asked = asyncio.Event()
    woken = threading.Event()
    cancelled: list[bool] = []
    eaten: list[Exception] = []

    @server.tool
    def work(ctx: Context) -> None:
        try:
            while True:
                try:
                    ctx.wait(ctx.elicit("Well?", str))
                except Exception as bad:
                    eaten.append(bad)
        finally:
            cancelled.append(ctx.cancelled)
            woken.set()

    @server.tool
    def other() -> str:
        return "done"

    async def never(params: Any) -> None:
        asked.set()
        await asyncio.Event().wait()

    async with Client(server, revision=revision, elicit=never) as client, asyncio.timeout(30):
        waiting = asyncio.create_task(client.call_tool("work"))
        await asked.wait()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        if revision == NEWEST:
            await (
                server.suspended_calls.aclose()
            )  # what waits for an answer may wait long; here its time is over
        assert (await client.call_tool("other")).text == "done"  # in the only thread there is
        assert await asyncio.to_thread(woken.wait, 30)
    assert (cancelled, eaten) == ([True], [])


async def test_a_thread_that_begins_to_wait_too_late():
    """What is cancelled already is not begun."""
    server = Server("waiting")
    entered = asyncio.Event()
    go = threading.Event()
    begun = []
    loop = asyncio.get_running_loop()
    over = threading.Event()

    async def work_in_the_loop() -> None:
        begun.append("begun")

    @server.tool
    def work(ctx: Context) -> None:
        try:
            loop.call_soon_threadsafe(entered.set)
            go.wait(30)
            ctx.wait(work_in_the_loop())
        finally:
            over.set()

    running = asyncio.create_task(call(server, "work"))
    async with asyncio.timeout(30):
        await entered.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        go.set()
        await asyncio.to_thread(over.wait, 30)
    assert begun == []
    await server.aclose()


# What happens once.


@pytest.mark.parametrize("suspend", [True, False])
async def test_once(suspend: bool):
    """Plain or async, with arguments; done once, though the tool runs again from the top
    (`MRT-24`).
    """
    server = Server("once", questions=QuestionSettings(suspend=suspend))
    done: list[str] = []
    runs: list[int] = []

    def charge(card: str, *, amount: int) -> dict[str, Any]:
        done.append(f"{card} {amount}")
        return {"receipt": len(done)}

    async def post(letter: str) -> str:
        done.append(letter)
        return "posted"

    @server.tool
    async def buy(ctx: Context) -> str:
        runs.append(1)
        receipt = await ctx.once("charge", charge, "visa", amount=5)
        await ctx.elicit("Which seat?", str)
        posted = await ctx.once("post", post, "ticket")
        await ctx.elicit("Window?", str)
        return f"{receipt['receipt']} {posted}"

    async with Client(server, elicit=lambda params: {"value": "x"}) as client:
        assert (await client.call_tool("buy")).text == "1 posted"
    assert done == ["visa 5", "ticket"]
    assert len(runs) == (1 if suspend else 3)


async def test_what_fails_once_is_tried_again():
    """An error is not kept; it is the tool's to handle."""
    server = Server("once")

    def charge() -> str:
        raise LookupError("no such card")

    @server.tool
    async def buy(ctx: Context) -> str:
        try:
            await ctx.once("charge", charge)
        except LookupError as bad:
            return str(bad)
        return ""

    assert await text(server, "buy") == "no such card"


async def test_questions_without_anybody_to_ask():
    """An exchange by hand of the handshake era has nobody on its other side: the call fails closed,
    in words for the model.
    """
    server = Server("asking")

    @server.tool
    async def ask(ctx: Context) -> str:
        return await ctx.elicit("Which seat?", str)

    result = await call(server, "ask", revision=R4)
    assert isinstance(result, CallToolResult)
    assert result.is_error
    assert (
        "This tool needs to ask something that this client cannot be asked (elicitation.form)"
        in result.text
    )
    with pytest.raises(McpError) as caught:
        await server.handle(exchange("tools/call", t.CallToolRequestParams(name="ask")))
    assert caught.value.code == t.MISSING_CLIENT_CAPABILITY


# What only some revisions or clients have.


@pytest.mark.parametrize("takes", [True, False])
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", R4, NEWEST])
async def test_context_for_the_model(revision: str, takes: bool):
    """includeContext goes to clients that take it; before 2025-11-25 none could say so.

    "none" goes to all (`SAM-17`).
    """
    server = Server("asking")

    @server.tool
    async def ask(wish: Literal["none", "thisServer", "allServers"], ctx: Context) -> None:
        await ctx.sample("Well?", include_context=wish)

    answers = ScriptedAnswers(sample=["Yes."] * 2, context=takes)
    async with Client(server, revision=revision, answers=answers) as client:
        for wish in ("allServers", "none"):
            await client.call_tool("ask", {"wish": wish})
    sent = [
        asked.params.include_context
        for asked in answers.asked
        if isinstance(asked, t.CreateMessageRequest)
    ]
    assert sent == ["allServers" if takes or revision < R4 else None, "none"]


@pytest.mark.parametrize("revision", ["2025-06-18", R4, NEWEST])
async def test_the_end_of_a_visit(revision: str):
    """2025-11-25 is told under the id that the tool chose; the others have neither the id nor the
    notice (`ELI-18` to `ELI-20`).
    """
    server = Server("asking")

    @server.tool
    async def visit(ctx: Context) -> str:
        try:
            await ctx.elicit_url("Go there.", "https://example.com", elicitation_id="here")
        finally:
            ctx.elicitation_complete("here")
        return "well"

    received: list[Any] = []
    answers = ScriptedAnswers(elicit=[True])
    receive: Any = lambda method, params: received.append((method, params))  # noqa: E731 - as short as it is
    async with Client(
        server, revision=revision, answers=answers, on_notification=receive
    ) as client:
        # That revision has no pages.
        assert (await client.call_tool("visit")).is_error == (revision == "2025-06-18")
    ids = [
        asked.params.elicitation_id for asked in answers.asked if isinstance(asked, t.ElicitRequest)
    ]
    assert ids == {"2025-06-18": [], R4: ["here"], NEWEST: [None]}[revision]
    done = t.ElicitationCompleteNotificationParams(elicitation_id="here")
    assert received == ([("notifications/elicitation/complete", done)] if revision == R4 else [])


async def test_a_thread_that_reports_without_end_waits_for_the_loop() -> None:
    """What it has handed over and nobody has taken stays small, however quick it is."""
    server = Server("quick")
    most = 0
    waiting = 0
    counting = threading.Lock()
    loop = asyncio.get_running_loop()
    hand_over = loop.call_soon_threadsafe

    def counted(callback: Any, *args: Any, **options: Any) -> Any:
        nonlocal most, waiting

        def run() -> None:
            nonlocal waiting
            with counting:
                waiting -= 1
            callback(*args)

        with counting:
            waiting += 1
            most = max(most, waiting)
        return hand_over(run, **options)

    @server.tool
    def report(ctx: Context) -> str:
        for n in range(20_000):
            ctx.progress(n)
        return "done"

    received: list[float] = []
    async with Client(server) as client:
        loop.call_soon_threadsafe = counted  # type: ignore[method-assign]  # it is put back below
        try:
            result = await client.call_tool(
                "report", on_progress=lambda x: received.append(x.progress)
            )
        finally:
            del loop.call_soon_threadsafe  # type: ignore[attr-defined]  # the instance's own
    assert result.text == "done"
    assert received == list(range(20_000))
    assert most < 1000
