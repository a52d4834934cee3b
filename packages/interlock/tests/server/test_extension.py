"""Extensions: their ids, what is advertised of them, and that their methods are served like those
of the core, in both eras.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import Any

import msgspec
import pytest

from interlock import Client, CoreCapability, Extension, McpError, Method, Server
from interlock import types as t
from interlock.exchange import AnyResult, Caller, Exchange, Handler
from interlock.tape import Tape
from interlock.wire.revisions import NEWEST
from tests.server.by_hand import R4, text
from tests.server.wire import Peer


class GreetParams(t.Params, frozen=True, kw_only=True):
    """Params of the method that these tests bring along."""

    name: str


class GreetResult(t.Result, frozen=True, kw_only=True):
    """Its result."""

    greeting: str


async def greet(x: Exchange) -> AnyResult:
    return GreetResult(greeting=f"Hello, {x.params.name}! ({x.caller.revision})")


def greeting(**options: Any) -> Extension:
    methods = {"greet/now": Method(GreetParams, GreetResult, greet)}
    return Extension("com.example/greet", methods=methods, **options)


DECLARED = {"extensions": {"com.example/greet": {}}}


@pytest.mark.parametrize(
    "id",
    ["com.example/greet", "example/a", "a.b-c.d9/x_y.z-0", "io.modelcontextprotocol/ui", "a/1"],
)
def test_ids(id: str):
    """A prefix of labels with dots between, a slash, and a name (`EXT-02`)."""
    assert Extension(id).id == id


@pytest.mark.parametrize(
    "id",
    [
        "greet",
        "/greet",
        "com.example/",
        "com..example/a",
        "9com/a",
        "com-/a",
        "-com/a",
        "com.example/-a",
        "com.example/a-",
        "a/b/c",
        "a b/c",
        "a/b\n",
        "",
    ],
)
def test_ids_that_are_none(id: str):
    """Without a prefix, or not of the form that keys of `_meta` have (`EXT-02`)."""
    with pytest.raises(
        ValueError,
        match="is not an extension id: it needs a prefix and a name, as in 'com.example/name'",
    ):
        Extension(id)


@pytest.mark.parametrize("revision", [R4, "2026-07-28"])
async def test_what_is_advertised(revision: str):
    """The settings under the id, `{}` where there are none; nothing where the server was given no
    extension (`EXT-01`, `EXT-05`, `EXT-08`).
    """
    async with Client(Server("plain"), revision=revision) as client:
        assert client.server_capabilities.extensions is None
    extensions = [greeting(), Extension("com.example/other", settings={"mimeTypes": ["text/html"]})]
    async with Client(Server("extended", extensions=extensions), revision=revision) as client:
        assert client.server_capabilities.extensions == {
            "com.example/greet": {},
            "com.example/other": {"mimeTypes": ["text/html"]},
        }


@pytest.mark.parametrize("revision", [R4, "2026-07-28"])
async def test_methods_of_extensions(revision: str):
    """They are served in both eras, their params are read as their type, and nobody else serves
    them (`EXT-03`).
    """
    peer = await Peer.of(
        Server("extended", extensions=[greeting()]), revision, capabilities=DECLARED
    )
    answer = await peer.ask("greet/now", {"name": "Ada"})
    assert answer["result"]["greeting"] == f"Hello, Ada! ({revision})"
    assert (await peer.ask("greet/now", {"name": 5}))["error"]["code"] == t.INVALID_PARAMS
    assert (await peer.ask("greet/never", {"name": "Ada"}))["error"]["code"] == t.METHOD_NOT_FOUND
    await peer.aclose()
    plain = await Peer.of(Server("plain"), revision)
    assert (await plain.ask("greet/now", {"name": "Ada"}))["error"]["code"] == t.METHOD_NOT_FOUND
    await plain.aclose()


async def test_middleware_of_extensions():
    """It goes around all handlers, inside of the server's own."""
    order: list[str] = []

    def noting(name: str) -> Any:
        def layer(handler: Handler) -> Handler:
            async def handle(x: Exchange) -> AnyResult:
                order.append(name)
                return await handler(x)

            return handle

        return layer

    server = Server(
        "extended",
        middleware=[noting("server")],
        extensions=[greeting(middleware=[noting("extension")])],
    )
    server.use(noting("later"))

    @server.tool
    async def do() -> str:
        return "done"

    assert await text(server, "do") == "done"
    assert order == ["server", "extension", "later"]


async def test_errors_of_extensions():
    """An McpError is sent as it is; what nobody foresaw is an internal error that tells nothing of
    the inside (`ERR-20`).
    """

    async def refuse(x: Exchange) -> AnyResult:
        raise McpError(4099, "Not today.", {"until": "tomorrow"})

    async def crash(x: Exchange) -> AnyResult:
        raise LookupError("the secret word")

    async def misfit(x: Exchange) -> AnyResult:
        return t.EmptyResult()

    methods = {
        "greet/refuse": Method(t.Params, GreetResult, refuse),
        "greet/crash": Method(t.Params, GreetResult, crash),
        "greet/misfit": Method(t.Params, GreetResult, misfit),
    }
    extension = Extension("com.example/greet", methods=methods)
    peer = await Peer.of(Server("extended", extensions=[extension]), capabilities=DECLARED)
    assert (await peer.ask("greet/refuse"))["error"] == {
        "code": 4099,
        "message": "Not today.",
        "data": {"until": "tomorrow"},
    }
    for method in ("greet/crash", "greet/misfit"):
        error = (await peer.ask(method))["error"]
        assert error["code"] == t.INTERNAL_ERROR
        assert re.fullmatch(r"Internal error \(reference [0-9a-f]{8}\)", error["message"])
    await peer.aclose()


@pytest.mark.parametrize("revision", [R4, "2026-07-28"])
async def test_a_client_that_has_not_declared_the_extension_is_told_so(revision: str):
    """The error names the extension; a method that is open to all is served to it (`EXT-03`)."""
    opened = Extension(
        "com.example/open",
        methods={"open/now": Method(GreetParams, GreetResult, greet, open_to_all=True)},
    )
    peer = await Peer.of(Server("extended", extensions=[greeting(), opened]), revision)
    error = (await peer.ask("greet/now", {"name": "Ada"}))["error"]
    assert error["code"] == (t.INVALID_REQUEST if revision == R4 else t.MISSING_CLIENT_CAPABILITY)
    assert error["data"] == {"requiredCapabilities": DECLARED}
    assert "result" in await peer.ask("open/now", {"name": "Ada"})
    await peer.aclose()


async def test_an_extension_exists_only_in_its_revisions():
    """In the others it is not advertised, and its methods are not found (`TKX-32`)."""
    server = Server("extended", extensions=[greeting(revisions=["2026-07-28"])])
    newest = await Peer.of(server, "2026-07-28", capabilities=DECLARED)
    assert "result" in await newest.ask("greet/now", {"name": "Ada"})
    offered = await newest.ask("server/discover")
    assert offered["result"]["capabilities"]["extensions"] == {"com.example/greet": {}}
    await newest.aclose()
    older = await Peer.of(server, R4, capabilities=DECLARED)
    assert (await older.ask("greet/now", {"name": "Ada"}))["error"]["code"] == t.METHOD_NOT_FOUND
    await older.aclose()
    async with Client(server, revision=R4) as client:
        assert client.server_capabilities.extensions is None


class Selected(t.Params, frozen=True, kw_only=True):
    """Params of a notification."""

    name: str


def conflicting() -> dict[str, tuple[list[Extension], str]]:
    """Extensions that cannot be given together, and what is said of them."""

    def one(**options: Any) -> Extension:
        return Extension("com.example/one", **options)

    def two(**options: Any) -> Extension:
        return Extension("com.example/two", **options)

    method = Method(GreetParams, GreetResult, greet)
    return {
        "one id twice": ([one(), one()], "the extension com.example/one is given twice"),
        "a core request": (
            [one(methods={"tools/call": method})],
            "com.example/one cannot have the method tools/call, which belongs to the core protocol",
        ),
        "a core request as a notification": (
            [one(notifications={"tools/call": Selected})],
            "cannot have the notification tools/call, which belongs to the core protocol",
        ),
        "a core notification as a request": (
            [one(methods={"notifications/progress": method})],
            "cannot have the method notifications/progress, which belongs to the core protocol",
        ),
        "a request of a server": (
            [one(methods={"elicitation/create": method})],
            "cannot have the method elicitation/create, which belongs to the core protocol",
        ),
        "one method of two": (
            [one(methods={"x/get": method}), two(methods={"x/get": method})],
            "com.example/two cannot have the method x/get, which belongs to com.example/one",
        ),
        "one notification of two": (
            [one(notifications={"x/a": Selected}), two(notifications={"x/a": Selected})],
            "com.example/two cannot have the notification x/a, which belongs to com.example/one",
        ),
        "a method of one and a notification of the other": (
            [one(methods={"x/a": method}), two(notifications={"x/a": Selected})],
            "com.example/two cannot have the notification x/a, which belongs to com.example/one",
        ),
        "one result type of two": (
            [
                one(results={"tools/call": {"job": GreetResult}}),
                two(results={"tools/call": {"job": GreetResult}}),
            ],
            "com.example/two cannot have the resultType job of tools/call, which belongs to"
            " com.example/one",
        ),
        "one key of two": (
            [one(listens={"jobs": list[str]}), two(listens={"jobs": list[str]})],
            "com.example/two cannot have the key of the listen filter jobs, which belongs to"
            " com.example/one",
        ),
        "a key of the core": (
            [one(listens={"toolsListChanged": bool})],
            "cannot have the key of the listen filter toolsListChanged, which belongs to the core"
            " protocol",
        ),
        "a method without a handler": (
            [one(methods={"x/get": Method(GreetParams, GreetResult)})],
            "com.example/one has no handler for x/get",
        ),
        "a key without a handler": (
            [one(listens={"jobs": list[str]})],
            "com.example/one has no handler for jobs",
        ),
    }


@pytest.mark.parametrize("what", list(conflicting()))
def test_extensions_that_cannot_be_given_together_are_refused(what: str):
    """The error names the extension and what it may not have (`SDX-03`, `SDX-05`, `SDX-14`,
    `SDX-15`).
    """
    extensions, words = conflicting()[what]
    with pytest.raises(ValueError, match=re.escape(words)):
        Server("extended", extensions=extensions)


class Stamped(t.Result, frozen=True, kw_only=True):
    """A result whose type would never be sent."""

    result_type: str | None = "job"


def impossible() -> dict[str, tuple[dict[str, Any], type[Exception], str]]:
    """What one extension cannot declare."""
    return {
        "a method and a notification of one name": (
            {"methods": {"x/a": Method(GreetParams)}, "notifications": {"x/a": Selected}},
            ValueError,
            "has x/a both as a method and as a notification",
        ),
        "a method that is none": (
            {"methods": {"x/a": (GreetParams, greet)}},
            TypeError,
            "must be a Method",
        ),
        "params that are none": (
            {"methods": {"x/a": Method(dict)}},  # type: ignore[arg-type]  # the mistake that is tested
            TypeError,
            "the params of x/a of the extension com.example/one must be a subclass of"
            " interlock.types.Params",
        ),
        "a result that is none": (
            {"methods": {"x/a": Method(GreetParams, dict)}},  # type: ignore[arg-type]  # the mistake that is tested
            TypeError,
            "the result of x/a of the extension com.example/one must be a subclass of"
            " interlock.types.Result",
        ),
        "a mirrored member that is not there": (
            {"methods": {"x/a": Method(GreetParams, mirrored="title")}},
            ValueError,
            "the params of x/a of the extension com.example/one have no member 'title'",
        ),
        "a result type of the core": (
            {"results": {"tools/call": {"input_required": GreetResult}}},
            ValueError,
            "cannot have the resultType 'input_required' of tools/call",
        ),
        "a default that is never sent": (
            {"results": {"tools/call": {"job": Stamped}}},
            ValueError,
            "Stamped of the extension com.example/one must not give result_type a default",
        ),
        "results of what is no request": (
            {"results": {"notifications/progress": {"job": GreetResult}}},
            ValueError,
            "claims results of notifications/progress, which is not a core request",
        ),
        "a key that is no identifier": (
            {"listens": {"a/b": bool}},
            ValueError,
            "must be an identifier",
        ),
        "a core capability of the newest revision": (
            {"core": {NEWEST: CoreCapability("greetings")}},
            ValueError,
            "has a core capability in 2026-07-28; only 2024-11-05",
        ),
        "a core capability that is another's": (
            {"core": {R4: CoreCapability("tools")}},
            ValueError,
            "cannot be the capability 'tools'",
        ),
        "a requirement of nothing": (
            {"requires": "toolz"},
            ValueError,
            "requires 'toolz', which is neither a capability nor the id of an extension",
        ),
        "an unknown revision": (
            {"revisions": ["2020-01-01"]},
            ValueError,
            "unknown revisions: 2020-01-01",
        ),
    }


@pytest.mark.parametrize("what", list(impossible()))
def test_what_an_extension_cannot_declare(what: str):
    """It is refused when it is made, by name."""
    options, kind, words = impossible()[what]
    with pytest.raises(kind, match=re.escape(words)):
        Extension("com.example/one", **options)


def test_handlers_for_what_was_not_declared_are_refused():
    """A misspelt name would else be a handler that is never called."""
    with pytest.raises(ValueError, match="declares no method greet/later"):
        greeting().with_handlers({"greet/later": greet})
    with pytest.raises(ValueError, match="declares no notification greet/told"):
        greeting().with_handlers(notifications={"greet/told": lambda x: None})


def test_handlers_are_given_to_a_copy():
    """Two servers can share one declaration, and each has handlers of its own."""
    declared = Extension(
        "com.example/greet", methods={"greet/now": Method(GreetParams, GreetResult)}
    )
    served = declared.with_handlers({"greet/now": greet}, settings={"loud": True})
    assert served.methods["greet/now"].handler is greet
    assert declared.methods["greet/now"].handler is None
    assert (declared.settings, served.settings) == ({}, {"loud": True})


@pytest.mark.parametrize(
    "requires, lack",
    [
        ("tools", "requires tools, which this server does not have"),
        ("resources.subscribe", "requires resources.subscribe, which this server does not have"),
        ("com.example/index", "requires the extension com.example/index, which is not given"),
    ],
)
async def test_what_is_lacking_is_named_when_serving_begins(requires: str, lack: str):
    """No message is carried out before, and nothing has to be given in an order (`SDX-08`,
    `SDX-09`, `SDX-10`, `SDX-11`).
    """
    began: list[str] = []

    @contextlib.asynccontextmanager
    async def lifespan(server: Any) -> Any:
        began.append(server.name)
        yield

    needy = greeting(requires=requires, lifespan=lifespan)
    server = Server("extended", extensions=[needy])
    words = re.escape(f"the extension com.example/greet {lack}")
    with pytest.raises(ValueError, match=words):
        await Client(server).open()
    with pytest.raises(ValueError, match=words):
        await server.handle(Exchange("server/discover", t.DiscoverRequestParams(), Caller(NEWEST)))
    assert began == []
    whole = Server("extended", extensions=[needy, Extension("com.example/index")])
    whole.add_tool(lambda: "done", name="do", description="Does it.")
    whole.add_resource("docs://a", "text", name="a")
    async with Client(whole) as client:
        assert client.server_capabilities.extensions is not None
    assert began == ["extended"]


async def test_lifespans_are_entered_in_order_and_left_in_reverse():
    """Those of the extensions within the server's own, whose state is the server's."""
    seen: list[str] = []

    def noting(name: str) -> Any:
        @contextlib.asynccontextmanager
        async def lifespan(server: Server) -> Any:
            seen.append(f"{name} begins")
            yield f"the state of {name}"
            seen.append(f"{name} ends")

        return lifespan

    server = Server(
        "extended",
        lifespan=noting("server"),
        extensions=[
            greeting(lifespan=noting("first")),
            Extension("com.example/second", lifespan=noting("second")),
        ],
    )
    async with Client(server):
        assert server.lifespan_state == "the state of server"
        assert seen == ["server begins", "first begins", "second begins"]
    assert seen[3:] == ["second ends", "first ends", "server ends"]


async def test_the_order_of_middleware_is_that_of_the_lists():
    """An extension in `middleware=` has its place there; the others come after, as they are given
    (`SDX-25`, `SDX-26`, `SDX-27`).
    """
    order: list[str] = []

    def noting(name: str) -> Any:
        def layer(handler: Handler) -> Handler:
            async def handle(x: Exchange) -> AnyResult:
                order.append(name)
                return await handler(x)

            return handle

        return layer

    first = Extension("com.example/a", middleware=[noting("a1"), noting("a2")])
    second = Extension("com.example/b", middleware=[noting("b")])
    third = Extension("com.example/c", middleware=[noting("c")])
    server = Server(
        "extended",
        middleware=[noting("outer"), second, noting("inner")],
        extensions=[first, second, third],
    )
    server.add_tool(lambda: "done", name="do", description="Does it.")
    assert await text(server, "do") == "done"
    assert order == ["outer", "b", "inner", "a1", "a2", "c"]
    with pytest.raises(ValueError, match="but it is not among the extensions"):
        Server("extended", middleware=[first])
    with pytest.raises(ValueError, match="names the extension com.example/a twice"):
        Server("extended", middleware=[first, first], extensions=[first])


class Job(t.Result, frozen=True, kw_only=True):
    """A result that an extension answers `tools/call` with."""

    job: str


def jobs(layer: Any) -> Extension:
    return Extension("com.example/jobs", results={"tools/call": {"job": Job}}, middleware=[layer])


def instead(handler: Handler) -> Handler:
    """Middleware that answers calls with a job."""

    async def handle(x: Exchange) -> AnyResult:
        return Job(job="j1") if x.method == "tools/call" else await handler(x)

    return handle


async def test_a_result_of_an_extension_goes_only_to_clients_that_have_declared_it():
    """Others get an error that names it (`RPC-19`, `RPC-22`, `TKX-05`)."""
    server = Server("jobs", extensions=[jobs(instead)])
    server.add_tool(lambda: "done", name="do", description="Does it.")
    declared = {"extensions": {"com.example/jobs": {}}}
    peer = await Peer.of(server, capabilities=declared)
    result = (await peer.ask("tools/call", {"name": "do", "arguments": {}}))["result"]
    assert (result["resultType"], result["job"]) == ("job", "j1")
    await peer.aclose()
    other = await Peer.of(server)
    error = (await other.ask("tools/call", {"name": "do", "arguments": {}}))["error"]
    assert error["code"] == t.MISSING_CLIENT_CAPABILITY
    assert error["data"] == {"requiredCapabilities": declared}
    await other.aclose()


def selecting(received: list[Any]) -> Extension:
    declared = Extension("com.example/greet", notifications={"greet/selected": Selected})

    async def receive(x: Exchange) -> None:
        received.append((x.params.name, x.caller.revision, x.caller.session))

    return declared.with_handlers(notifications={"greet/selected": receive})


@pytest.mark.parametrize("revision", [R4, "2026-07-28"])
async def test_notifications_of_a_client_reach_their_handler_through_the_middleware(revision: str):
    """With their type and who sends them; one that cannot be read, or of a client that has not
    declared it, is ignored (`SDX-13`).
    """
    received: list[Any] = []
    passed: list[str] = []

    def watching(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            passed.append(x.method)
            return await handler(x)

        return handle

    server = Server("extended", middleware=[watching], extensions=[selecting(received)])
    peer = await Peer.of(server, revision, capabilities=DECLARED)
    peer.tell("greet/selected", {"name": 5})
    peer.tell("greet/never", {"name": "Ada"})
    peer.tell("greet/selected", {"name": "Ada"})
    await peer.ask("tools/list")
    assert received == [("Ada", revision, None)]
    assert passed.count("greet/selected") == 1
    await peer.aclose()
    other = await Peer.of(server, revision)
    other.tell("greet/selected", {"name": "Bob"})
    await other.ask("tools/list")
    assert len(received) == 1
    await other.aclose()


async def test_a_notification_whose_handler_fails_harms_nobody(caplog: pytest.LogCaptureFixture):
    """It is told to the log, for nobody waits for an answer."""

    def fail(x: Exchange) -> None:
        raise LookupError("the secret word")

    declared = Extension("com.example/greet", notifications={"greet/selected": Selected})
    server = Server(
        "extended", extensions=[declared.with_handlers(notifications={"greet/selected": fail})]
    )
    peer = await Peer.of(server, capabilities=DECLARED)
    peer.tell("greet/selected", {"name": "Ada"})
    assert "error" in await peer.ask("tools/list")  # the server has no tools, and answers
    assert "the handler of greet/selected failed" in caplog.text
    await peer.aclose()


class Progressed(t.Params, frozen=True, kw_only=True):
    """Params of a notification of the server."""

    job: str


async def test_keys_of_the_listen_filter_are_served_by_their_extension():
    """It grants a part, says so in the acknowledgement, which comes first, and tells until the end
    (`LSN-01`, `LSN-03`).
    """
    ended = asyncio.Event()
    tell: list[Any] = []

    @contextlib.asynccontextmanager
    async def listening(x: Exchange, wanted: list[str]) -> Any:
        x.notify("jobs/progressed", Progressed(job="early"))
        tell.append(x.notify)
        try:
            yield [job for job in wanted if job.startswith("j")]
        finally:
            ended.set()

    declared = Extension(
        "com.example/jobs",
        notifications={"jobs/progressed": Progressed},
        listens={"jobs": list[str]},
    )
    server = Server("jobs", extensions=[declared.with_handlers(listens={"jobs": listening})])
    server.add_tool(lambda: "done", name="do", description="Does it.")
    peer = await Peer.of(server, capabilities={"extensions": {"com.example/jobs": {}}})
    wanted = {"toolsListChanged": True, "jobs": ["j1", "x"]}
    id = peer.begin("subscriptions/listen", {"notifications": wanted})
    while len(peer.received) < 2:
        await peer.listen()
    tell[0]("jobs/progressed", Progressed(job="j1"))
    while len(peer.received) < 3:
        await peer.listen()
    said = [
        (m["method"], m["params"].get("notifications") or m["params"]["job"]) for m in peer.received
    ]
    assert said == [
        ("notifications/subscriptions/acknowledged", {"toolsListChanged": True, "jobs": ["j1"]}),
        ("jobs/progressed", "early"),
        ("jobs/progressed", "j1"),
    ]
    key = "io.modelcontextprotocol/subscriptionId"
    assert all(m["params"]["_meta"][key] == id for m in peer.received)
    peer.say({"method": "notifications/cancelled", "params": {"requestId": id}})
    await asyncio.wait_for(ended.wait(), 30)
    bad = await peer.ask("subscriptions/listen", {"notifications": {"jobs": "j1"}})
    assert bad["error"]["code"] == t.INVALID_PARAMS
    await peer.aclose()
    stranger = await Peer.of(server)
    stranger.begin("subscriptions/listen", {"notifications": wanted})
    await stranger.listen()
    assert stranger.received[0]["params"]["notifications"] == {"toolsListChanged": True}
    await stranger.aclose()


async def test_notifications_of_the_server_go_only_to_clients_that_have_declared_the_extension():
    """A tool of such a server works for all."""
    server = Server(
        "jobs",
        extensions=[Extension("com.example/jobs", notifications={"jobs/progressed": Progressed})],
    )

    def telling(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            x.notify("jobs/progressed", Progressed(job="j1"))
            return await handler(x)

        return handle

    server.use(telling)
    server.add_tool(lambda: "done", name="do", description="Does it.")
    peer = await Peer.of(server, capabilities={"extensions": {"com.example/jobs": {}}})
    assert "result" in await peer.ask("tools/list")
    assert [m["params"] for m in peer.received] == [{"job": "j1"}]
    await peer.aclose()
    other = await Peer.of(server)
    assert "result" in await other.ask("tools/list")
    assert other.received == []
    await other.aclose()


async def test_where_a_feature_is_in_the_core_it_is_declared_as_a_capability():
    """Both sides say so in `initialize`, and each sees the other's capability as the extension."""
    seen: list[Any] = []

    async def get(x: Exchange) -> AnyResult:
        seen.append(x.caller.capabilities.extensions)
        return GreetResult(greeting="there")

    declared = Extension(
        "com.example/greet",
        settings={"newest": True},
        methods={"greet/now": Method(GreetParams, GreetResult)},
        revisions=["2026-07-28"],
        core={R4: CoreCapability("greetings", {"requests": {}})},
    )
    server = Server("extended", extensions=[declared.with_handlers({"greet/now": get})])
    tape = Tape()
    mine = declared.with_handlers(core={R4: CoreCapability("greetings", {"polite": True})})
    for revision, settings, theirs in (
        (R4, {"polite": True}, {"requests": {}}),
        ("2026-07-28", {"newest": True}, {"newest": True}),
    ):
        transport = server.transport(tap=tape.record)
        async with Client(
            transport, revision=revision, extensions=[mine], elicit=lambda params: True
        ) as client:
            assert (
                await client.request("greet/now", GreetParams(name="Ada"), GreetResult)
            ).greeting == "there"
            assert seen.pop() == {"com.example/greet": settings}
            assert client.server_capabilities.extensions == {"com.example/greet": theirs}
    asked, answered = (msgspec.json.decode(entry.frame) for entry in list(tape)[:2])
    capabilities = asked["params"]["capabilities"]
    assert capabilities["greetings"] == {"polite": True}
    assert "com.example/greet" not in capabilities.get("extensions", {})
    assert answered["result"]["capabilities"] == {"logging": {}, "greetings": {"requests": {}}}
    older = await Peer.of(server, "2025-06-18", capabilities={"greetings": {}})
    assert (await older.ask("greet/now", {"name": "Ada"}))["error"]["code"] == t.METHOD_NOT_FOUND
    await older.aclose()
    truthful = await Peer.of(server, R4, capabilities={"greetings": True, "sampling": True})
    assert "result" in await truthful.ask("greet/now", {"name": "Ada"})
    await truthful.aclose()
