"""The input-required layer around a whole server: who may ask, what a retry passes again, and what
a replay shows.
"""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from interlock import (
    Answers,
    Client,
    Context,
    McpError,
    Middleware,
    QuestionSettings,
    Server,
    ServerLimits,
)
from interlock import types as t
from interlock.exchange import AnyResult, Caller, Exchange, Handler, Principal
from interlock.extension import Extension, Method
from interlock.wire.revisions import NEWEST, R1, R4, REVISIONS, supports
from tests.retries import ABLE, form, share_records
from tests.server.wire import Peer

KEY = b"k" * 32
ASKING = [revision for revision in REVISIONS if supports(revision, "elicitation")]
both_ways = pytest.mark.parametrize("suspend", [True, False], ids=["suspended", "replayed"])


def asking(*methods: str, questions: int = 1) -> Middleware:
    """Middleware that asks before it lets an exchange of these methods through."""

    def layer(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            for number in range(questions if x.method in methods else 0):
                answer = await x.asker.ask(form(f"{x.method} {number}?"))
                assert isinstance(answer, t.ElicitResult)
                if answer.action != "accept":
                    raise t.McpError(-32000, "Not allowed")
            return await handler(x)

        return handle

    return layer


class Audit:
    """Middleware that counts each logical call once."""

    def __init__(self) -> None:
        self.runs: list[bool] = []
        self.counted = 0

    def __call__(self, handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            if x.method == "tools/call":
                self.runs.append(x.replayed)
                self.counted += not x.replayed
            return await handler(x)

        return handle


def house(*, suspend: bool = True, **options: Any) -> tuple[Server, list[str]]:
    """A server with a feature of each kind; what has run."""
    questions = QuestionSettings(state_keys=[KEY], suspend=suspend)
    server = Server("asking", questions=questions, **options)
    ran: list[str] = []

    @server.tool
    async def plain() -> str:
        ran.append("plain")
        return "soup"

    @server.tool
    async def asks(ctx: Context) -> str:
        ran.append("asks")
        return f"{await ctx.confirm('Sure?')} {await ctx.confirm('Really?')}"

    @server.prompt
    async def words() -> str:
        ran.append("words")
        return "words"

    @server.resource("docs://readme")
    async def readme() -> str:
        ran.append("readme")
        return "text"

    return server, ran


def person(received: list[str]) -> Any:
    """Who says yes to everything."""

    def answer(question: Any) -> Any:
        received.append(question.message)
        return {"confirm": True}

    return answer


@both_ways
@pytest.mark.parametrize("revision", ASKING)
async def test_middleware_asks_before_any_feature(revision: str, suspend: bool) -> None:
    """Twice, for tools, prompts and resources; the feature behind it runs once."""
    methods = ("tools/call", "prompts/get", "resources/read")
    server, ran = house(middleware=[asking(*methods, questions=2)], suspend=suspend)
    received: list[str] = []
    async with Client(server, revision=revision, elicit=person(received)) as client:
        assert (await client.call_tool("plain")).text == "soup"
        assert (await client.get_prompt("words")).messages
        assert (await client.read_resource("docs://readme")).contents
    assert ran == ["plain", "words", "readme"]
    assert received == [f"{method} {number}?" for method in methods for number in range(2)]


@both_ways
@pytest.mark.parametrize("revision", ASKING)
async def test_middleware_and_the_tool_behind_it_both_ask(revision: str, suspend: bool) -> None:
    """Each gets its own answers, in every way of asking."""
    server, _ = house(middleware=[asking("tools/call")], suspend=suspend)
    received: list[str] = []
    async with Client(server, revision=revision, elicit=person(received)) as client:
        assert (await client.call_tool("asks")).text == "True True"
    assert received == ["tools/call 0?", "Sure?", "Really?"]


@pytest.mark.parametrize("revision", ASKING)
async def test_middleware_that_refuses_after_its_question(revision: str) -> None:
    """The error of the middleware is the answer, and nothing ran."""
    server, ran = house(middleware=[asking("tools/call")])
    async with Client(server, revision=revision, elicit=lambda question: False) as client:
        with pytest.raises(McpError, match="Not allowed"):
            await client.call_tool("plain")
    assert ran == []
    assert len(server.suspended_calls) == 0


async def test_a_list_cannot_be_asked_about_and_says_so() -> None:
    """In the stateless era only three methods, and extensions, can be answered with questions
    (`MRT-01`).
    """
    server, _ = house(middleware=[asking("tools/list")])
    received: list[str] = []
    async with Client(server, elicit=person(received)) as client:
        with pytest.raises(McpError, match=r"tools/list cannot ask: .* tools/call, prompts/get"):
            await client.list_tools()
    assert received == []


async def test_a_list_of_a_session_can_be_asked_about() -> None:
    """There a question is a request of its own on the connection."""
    server, _ = house(middleware=[asking("tools/list")])
    received: list[str] = []
    async with Client(server, revision=R4, elicit=person(received)) as client:
        assert len(await client.list_tools()) == 2
    assert received == ["tools/list 0?"]


async def test_a_client_that_cannot_be_asked_is_not_asked() -> None:
    """Middleware ends with the protocol's own error, which names the capability (`MRT-05`,
    `ERR-08`).
    """
    server, ran = house(middleware=[asking("tools/call")])
    async with Client(server) as client:
        with pytest.raises(McpError) as caught:
            await client.call_tool("plain")
    assert caught.value.code == t.MISSING_CLIENT_CAPABILITY
    assert caught.value.data == {"requiredCapabilities": {"elicitation": {"form": {}}}}
    assert ran == []


async def test_a_client_that_can_be_asked_other_things_is_not_asked_either() -> None:
    """Roots are no forms: what matters is the capability of this question (`MRT-05`)."""
    server, ran = house(middleware=[asking("tools/call")])
    async with Client(server, answers=Answers(roots=["/srv"])) as client:
        with pytest.raises(McpError, match=r"elicitation\.form"):
            await client.call_tool("plain")
    assert ran == []


@pytest.mark.parametrize("revision", [R1, R4])
async def test_an_older_client_that_cannot_be_asked_is_not_asked(revision: str) -> None:
    """A tool's call fails in words, any other with an error."""
    server, ran = house(middleware=[asking("tools/call", "prompts/get")])
    async with Client(server, revision=revision) as client:
        result = await client.call_tool("plain")
        assert result.is_error
        assert "it has no elicitation" in result.text
        with pytest.raises(McpError, match="it has no elicitation"):
            await client.get_prompt("words")
    assert ran == []


# -- extensions ------------------------------------------------------------------------------------


class OrderParams(t.InputResponseParams, frozen=True, kw_only=True):
    """Params of a method that may ask."""

    dish: str


class NoteParams(t.Params, frozen=True, kw_only=True):
    """Params of a method that may not."""


class Ordered(t.Result, frozen=True, kw_only=True):
    """The result of both."""

    said: str


async def order(x: Exchange) -> Ordered:
    answer = await x.asker.ask(form("Sure?"))
    assert isinstance(answer, t.ElicitResult)
    return Ordered(said=f"{getattr(x.params, 'dish', '')} {answer.action}")


def restaurant() -> Extension:
    return Extension(
        "com.example/restaurant",
        methods={
            "restaurant/order": Method(OrderParams, Ordered, order, open_to_all=True),
            "restaurant/note": Method(NoteParams, Ordered, order, open_to_all=True),
        },
    )


@both_ways
async def test_a_method_of_an_extension_asks(suspend: bool) -> None:
    """Its params say that it may: a retry brings the answers."""
    server = Server(
        "extended", extensions=[restaurant()], questions=QuestionSettings(suspend=suspend)
    )
    peer = await Peer.of(server)
    first = (await peer.ask("restaurant/order", {"dish": "soup"}))["result"]
    assert first["resultType"] == "input_required"
    (key,) = first["inputRequests"]
    retry = {
        "dish": "soup",
        "inputResponses": {key: {"action": "accept", "content": {}}},
        "requestState": first["requestState"],
    }
    answered = await peer.ask("restaurant/order", retry)
    assert answered["result"]["said"] == "soup accept"
    pie = await peer.ask("restaurant/order", {**retry, "dish": "pie"})
    assert "requestState" in pie["error"]["message"]
    await peer.aclose()


async def test_a_method_of_an_extension_asks_an_older_client() -> None:
    """Straight, whatever its params are."""
    server = Server("extended", extensions=[restaurant()])
    for method in ("restaurant/order", "restaurant/note"):
        peer = await Peer.of(server, R4)
        id = peer.begin(method, {"dish": "soup"})
        question: dict[str, Any] = {}
        while not question:
            question = next(
                (m for m in peer.received if m.get("method") == "elicitation/create"), {}
            )
            if not question:
                await peer.listen()
        peer.say({"id": question["id"], "result": {"action": "decline"}})
        assert (await peer.answer(id))["result"]["said"].endswith("decline")
        await peer.aclose()


async def test_a_method_of_an_extension_without_room_for_answers_says_so() -> None:
    """Its params have nowhere to put them."""
    peer = await Peer.of(Server("extended", extensions=[restaurant()]))
    error = (await peer.ask("restaurant/note"))["error"]
    assert "restaurant/note cannot ask" in error["message"]
    assert "InputResponseParams" in error["message"]
    await peer.aclose()


@both_ways
async def test_a_handler_of_ones_own_asks_within_the_layer(suspend: bool) -> None:
    """Server.input_required is the same layer, for a handler that does not stand behind the
    server.
    """
    server = Server("own", questions=QuestionSettings(suspend=suspend, state_keys=[KEY]))

    async def handle(x: Exchange) -> AnyResult:
        answer = await x.asker.ask(form("Sure?"))
        assert isinstance(answer, t.ElicitResult)
        return t.CallToolResult(content=[t.TextContent(answer.action)])

    handler = server.input_required(handle)
    params = t.CallToolRequestParams(name="x")
    first = await handler(Exchange("tools/call", params, Caller(NEWEST, ABLE)))
    assert isinstance(first, t.InputRequiredResult)
    (key,) = first.input_requests or {}
    retry = replace(
        params,
        input_responses={key: msgspec.Raw(b'{"action": "decline"}')},
        request_state=first.request_state,
    )
    second = await handler(Exchange("tools/call", retry, Caller(NEWEST, ABLE)))
    assert isinstance(second, t.CallToolResult)
    assert second.text == "decline"


# -- what a call costs -----------------------------------------------------------------------------


def transparent(handler: Handler) -> Handler:
    """Middleware that does nothing."""

    async def handle(x: Exchange) -> AnyResult:
        return await handler(x)

    return handle


@pytest.mark.parametrize(
    "tool, middleware, can_be_asked, has_own_task",
    [
        ("plain", False, True, False),
        ("plain", True, False, False),
        ("plain", True, True, True),
        ("context", False, False, False),
        ("context", False, True, True),
    ],
)
async def test_a_task_of_its_own_only_where_the_call_could_ask(
    tool: str, middleware: bool, can_be_asked: bool, has_own_task: bool
) -> None:
    """A plain tool without middleware pays nothing, and nobody pays for a client that cannot be
    asked.
    """
    server = Server("tasks", middleware=[transparent] if middleware else [])
    tasks: list[Any] = []

    @server.tool
    async def plain() -> str:
        tasks.append(asyncio.current_task())
        return ""

    @server.tool
    async def context(ctx: Context) -> str:
        tasks.append(asyncio.current_task())
        return ""

    answers: dict[str, Any] = {"elicit": person([])} if can_be_asked else {}
    async with Client(server, timeout=None, **answers) as client:
        x = Exchange("tools/call", t.CallToolRequestParams(name=tool), client.caller)
        await server.handle(x)
    assert (tasks[0] is not asyncio.current_task()) == has_own_task


# -- replays ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "revision, suspend, runs",
    [(R4, True, [False]), (NEWEST, True, [False]), (NEWEST, False, [False, True, True])],
)
async def test_middleware_sees_replays_and_counts_a_call_once(
    revision: str, suspend: bool, runs: list[bool]
) -> None:
    """A suspended call passes middleware once; one that runs again from the top says that it
    does.
    """
    audit = Audit()
    server, _ = house(middleware=[audit], suspend=suspend)
    async with Client(server, revision=revision, elicit=person([])) as client:
        assert (await client.call_tool("asks")).text == "True True"
        assert (await client.call_tool("plain")).text == "soup"
    assert audit.runs == [*runs, False]
    assert audit.counted == 2


async def test_a_call_that_another_worker_goes_on_with_is_a_replay_there() -> None:
    """The first worker keeps it suspended; the second has never seen it, and runs it from the
    top.
    """
    audits = [Audit(), Audit()]
    servers = [house(middleware=[audit])[0] for audit in audits]
    share_records(*servers)
    first = await _call(servers[0], "asks")
    second = await _retry(servers[1], "asks", first)
    assert isinstance(second, t.InputRequiredResult)
    assert isinstance(await _retry(servers[1], "asks", second), t.CallToolResult)
    assert (audits[0].runs, audits[1].runs) == ([False], [True])
    for server in servers:
        await server.aclose()


@pytest.mark.parametrize("revision", [R4, NEWEST])
async def test_rounds_written_by_hand_are_replays(revision: str) -> None:
    """A tool that returns its questions is called again with the answers, through all
    middleware.
    """
    audit = Audit()
    server = Server("by hand", middleware=[audit])

    @server.tool
    async def manual(ctx: Context) -> Any:
        if ctx.request_state is None:
            return t.InputRequiredResult(input_requests={"a": form("?")}, request_state="one")
        return f"{ctx.request_state} {ctx.input_responses['a']['action']}"

    async with Client(server, revision=revision, elicit=person([])) as client:
        assert (await client.call_tool("manual")).text == "one accept"
    assert audit.runs == [False, True]


async def test_state_that_a_client_makes_up_does_not_hide_a_call_from_the_audit() -> None:
    """Whoever invents a requestState is refused before middleware; answers alone are no replay."""
    audit = Audit()
    server, ran = house(middleware=[audit])
    forged = t.CallToolRequestParams(name="plain", request_state="forged")
    with pytest.raises(McpError, match="requestState"):
        await server.handle(Exchange("tools/call", forged, Caller(NEWEST, ABLE)))
    uninvited = t.CallToolRequestParams(name="plain", input_responses={})
    await server.handle(Exchange("tools/call", uninvited, Caller(NEWEST, ABLE)))
    for revision in (R4, NEWEST):
        for params in (forged, uninvited):
            x = Exchange("tools/call", params, Caller(revision))
            if revision == NEWEST and params is forged:
                with pytest.raises(McpError, match="requestState"):
                    await server.handle(x)
            else:
                await server.handle(x)
    assert set(audit.runs) == {False}
    assert audit.counted == len(ran) == 4


# -- what is checked on every request --------------------------------------------------------------


def _params(name: str) -> t.CallToolRequestParams:
    return t.CallToolRequestParams(name=name)


async def _call(server: Server, name: str, principal: Principal | None = None) -> AnyResult:
    caller = Caller(NEWEST, ABLE, principal=principal)
    return await server.handle(Exchange("tools/call", _params(name), caller))


async def _retry(
    server: Server,
    name: str,
    asked: AnyResult,
    principal: Principal | None = None,
    **changes: Any,
) -> AnyResult:
    assert isinstance(asked, t.InputRequiredResult)
    yes = msgspec.Raw(b'{"action": "accept", "content": {"confirm": true}}')
    params = replace(
        _params(name),
        input_responses=dict.fromkeys(asked.input_requests or {}, yes),
        request_state=asked.request_state,
    )
    caller = Caller(NEWEST, ABLE, principal=principal)
    return await server.handle(Exchange("tools/call", params, caller, **changes))


@both_ways
@pytest.mark.parametrize("middleware", [False, True])
async def test_scopes_are_checked_on_a_retry_too(suspend: bool, middleware: bool) -> None:
    """Without the scope the retry is refused as a first request would be; with it the call goes on,
    and ran once where it waited.
    """
    server = Server(
        "scoped",
        questions=QuestionSettings(suspend=suspend, state_keys=[KEY]),
        middleware=[transparent] if middleware else [],
    )
    runs: list[str] = []

    @server.tool(scopes="orders:write")
    async def order(ctx: Context) -> str:
        runs.append("order")
        return str(await ctx.confirm("Sure?"))

    may = Principal(subject="ada", scopes=frozenset({"orders:write"}))
    may_not = Principal(subject="ada", scopes=frozenset({"orders:read"}))
    first = await _call(server, "order", may)
    for _ in range(2):
        with pytest.raises(t.Forbidden) as caught:
            await _retry(server, "order", first, may_not)
        assert caught.value.scopes == ("orders:write",)
    done = await _retry(server, "order", first, may)
    assert isinstance(done, t.CallToolResult)
    assert done.text == "True"
    assert runs == (["order"] if suspend else ["order", "order"])
    with pytest.raises(t.Forbidden):
        await _retry(server, "order", first, may_not)  # not the answer of somebody else either
    await server.aclose()


async def test_a_call_that_waits_for_a_person_leaves_its_place_to_others() -> None:
    """The limit of the server holds for each request, and a suspended call has none."""
    server, ran = house(limits=ServerLimits(concurrency=1, queue=0))
    first = await _call(server, "asks")
    assert isinstance(await _call(server, "plain"), t.CallToolResult)
    second = await _retry(server, "asks", first)
    assert isinstance(await _call(server, "plain"), t.CallToolResult)
    assert isinstance(await _retry(server, "asks", second), t.CallToolResult)
    assert ran == ["asks", "plain", "plain"]


async def test_a_retry_takes_a_place_like_any_request() -> None:
    """A server that is full refuses it; the call stays suspended for the next try."""
    server = Server(
        "full",
        limits=ServerLimits(concurrency=1, queue=0),
        questions=QuestionSettings(state_keys=[KEY]),
    )
    inside = asyncio.Event()
    leave = asyncio.Event()

    @server.tool
    async def asks(ctx: Context) -> str:
        return str(await ctx.confirm("Sure?"))

    @server.tool
    async def long() -> str:
        inside.set()
        await leave.wait()
        return ""

    first = await _call(server, "asks")
    running = asyncio.ensure_future(_call(server, "long"))
    await inside.wait()
    with pytest.raises(McpError, match="busy"):
        await _retry(server, "asks", first)
    leave.set()
    await running
    assert isinstance(await _retry(server, "asks", first), t.CallToolResult)


async def test_copies_of_the_exchange_follow_the_request_that_holds_the_call() -> None:
    """Middleware hands on a copy; what is sent through it after a round goes with the retry."""

    def copying(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            return await handler(replace(x))

        return handle

    server = Server("copied", middleware=[copying], questions=QuestionSettings(state_keys=[KEY]))

    @server.tool
    async def asks(ctx: Context) -> str:
        ctx.elicitation_complete("before")
        await ctx.confirm("Sure?")
        ctx.elicitation_complete("after")
        await ctx.drain()
        return "done"

    sent: list[tuple[int, str]] = []

    def noting(number: int) -> Any:
        return lambda method, params: sent.append((number, params.elicitation_id))

    drained: list[int] = []

    async def drain() -> None:
        drained.append(2)

    caller = Caller(NEWEST, ABLE)
    first = await server.handle(Exchange("tools/call", _params("asks"), caller, noting(1)))
    done = await _retry(server, "asks", first, notify=noting(2), drain=drain)
    assert isinstance(done, t.CallToolResult)
    assert sent == [(1, "before"), (2, "after")]
    assert drained == [2]


@both_ways
async def test_a_question_is_no_exception_for_middleware(suspend: bool) -> None:
    """While a call waits nothing is raised through it; one that runs again later is cancelled at
    its question.
    """
    seen: list[str] = []

    def catching(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            try:
                return await handler(x)
            except BaseException as bad:
                seen.append(type(bad).__name__)
                raise

        return handle

    server, _ = house(middleware=[catching], suspend=suspend)
    async with Client(server, elicit=person([])) as client:
        assert (await client.call_tool("asks")).text == "True True"
    assert seen == ([] if suspend else ["CancelledError"] * 2)


@both_ways
@pytest.mark.parametrize("middleware", [False, True])
async def test_visibility_is_checked_on_a_retry_too(suspend: bool, middleware: bool) -> None:
    """Hidden meanwhile, the tool is as unknown as for a first request; shown again, the call goes
    on.
    """
    server, ran = house(suspend=suspend, middleware=[transparent] if middleware else [])
    hidden: set[str] = set()

    @server.visible(lambda caller: "all")
    def sees(key: str, feature: Any) -> bool:
        return feature.name not in hidden

    first = await _call(server, "asks")
    hidden.add("asks")
    server.visibility_changed()
    with pytest.raises(McpError, match="Unknown tool: asks"):
        await _retry(server, "asks", first)
    hidden.clear()
    server.visibility_changed()
    second = await _retry(server, "asks", first)
    assert isinstance(await _retry(server, "asks", second), t.CallToolResult)
    assert ran == (["asks"] if suspend else ["asks"] * 3)
    await server.aclose()


async def test_a_tool_that_only_middleware_knows_is_resumed() -> None:
    """A gateway answers for names that the server does not have; the check leaves them to it."""

    def gateway(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            if x.method != "tools/call" or x.params.name != "behind":
                return await handler(x)
            answer = await x.asker.ask(form("Sure?"))
            assert isinstance(answer, t.ElicitResult)
            return t.CallToolResult(content=[t.TextContent(answer.action)])

        return handle

    server, _ = house(middleware=[gateway])
    done = await _retry(server, "behind", await _call(server, "behind"))
    assert isinstance(done, t.CallToolResult)
    assert done.text == "accept"


@both_ways
async def test_a_failure_after_a_question_is_logged_once(
    suspend: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """However often the tool ran."""
    server = Server(
        "failing",
        questions=QuestionSettings(suspend=suspend, state_keys=[KEY]),
        middleware=[transparent],
    )

    @server.tool
    async def fails(ctx: Context) -> str:
        await ctx.confirm("Sure?")
        await ctx.confirm("Really?")
        raise ValueError("broken")

    async with Client(server, elicit=person([])) as client:
        assert (await client.call_tool("fails")).is_error
    assert [record.levelname for record in caplog.records if record.name == "interlock.server"] == [
        "ERROR"
    ]


async def test_a_finished_call_does_not_keep_its_context() -> None:
    """The outcome stays known to retries that are sent again; the arguments, which may be large, go
    with the context of the tool.
    """
    server = Server("forgetful")
    seen: list[weakref.ref[Any]] = []

    @server.tool
    async def book(text: str, ctx: Context) -> str:
        seen.append(weakref.ref(ctx))
        return "booked" if await ctx.confirm("Book it?") else "not booked"

    answers = Answers(elicit=lambda params: {"confirm": True})
    async with Client(server, revision="2026-07-28", answers=answers) as client:
        assert (await client.call_tool("book", {"text": "x" * 1000})).text == "booked"
        gc.collect()
        assert [ref() for ref in seen] == [None]
