"""Scopes over HTTP, in both eras: who is answered with 403 and a challenge, who with what he asked
for, and what a guard has to do with it.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from interlock import AnyResult, Context, Exchange, Forbidden, Handler, Principal, Server
from interlock import types as t
from interlock.server.run.http import serve_web
from interlock.transport.http.authorization import ExpiryTimer
from interlock.wire.revisions import HANDSHAKE_REVISIONS, R1, R2, R3, R4
from tests.protocol.frames import answer, initialize, notification, request
from tests.protocol.offered import Offered, modern, offered
from tests.transport.doorman import Doorman, asks_for, named
from tests.transport.raw_web import (
    PATIENCE,
    Line,
    RawSession,
    Reply,
    Web,
    call,
    listening,
    serving,
    tool,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
SESSIONS = pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)


def shop(**options: Any) -> Server:
    """A server with features for everybody and for some."""
    server = Server("shop", **options)

    @server.tool
    async def hello() -> str:
        return "hello"

    @server.tool(scopes=["read"])
    async def find(name: str) -> str:
        return f"found {name}"

    @server.tool(scopes=["write", "send"])
    async def publish(name: str) -> str:
        return f"published {name}"

    @server.tool
    async def save(ctx: Context) -> str:
        ctx.require("write")
        return f"saved by {ctx.principal.subject if ctx.principal else 'nobody'}"

    @server.tool
    async def late(ctx: Context) -> str:
        """Asks for a scope when it has told something already."""
        ctx.progress(1)
        ctx.log.error("telling")
        ctx.require("write")
        return "late"

    @server.tool
    async def never() -> str:
        raise Forbidden(message="Not on Sundays")

    @server.tool
    async def upstream() -> str:
        """Passes on what another server has answered, whose scopes are no business of ours."""
        raise t.McpError(
            t.FORBIDDEN, "Forbidden: this needs the scope theirs", {"requiredScopes": ["theirs"]}
        )

    @server.tool
    async def ask(ctx: Context) -> str:
        value = await ctx.elicit("how many?", int)
        return f"{value} for {ctx.principal.subject if ctx.principal else 'nobody'}"

    server.add_resource("docs://open", "open")
    server.add_resource("docs://secret", "secret", scopes=["read"])
    server.add_prompt(lambda: "prompt", name="write", scopes=["send"])

    @server.completion
    async def suggest(value: str) -> list[str]:
        return [value]

    return server


SHOPS: dict[int, Server] = {}  # by their ports


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def web() -> AsyncIterator[Web]:
    """The shop behind a guard."""
    server = shop()
    async with serving(server, guard=Doorman(strangers=True), legacy_sse=True) as shared:
        SHOPS[shared.port] = server
        yield shared


def as_(x: Offered, who: str, *scopes: str, until: float | None = None) -> Offered:
    """A request in somebody's name."""
    said = {
        name.replace("_", "-"): value
        for name, value in named(who, *scopes, until=until).items()
        if value is not None
    }
    x.headers |= {name: str(value) for name, value in said.items()}
    return x


def denied(reply: Reply) -> set[str]:
    """The scopes that a refusal asks for, in its header and in its body alike."""
    assert (reply.status, reply.code, reply.headers["content-type"]) == (
        403,
        t.FORBIDDEN,
        "application/json",
    ), reply
    scopes = asks_for(reply.headers["www-authenticate"])
    assert set(reply.json["error"]["data"]["requiredScopes"]) == scopes
    return scopes


NEEDS: dict[str, tuple[str, dict[str, Any], set[str]]] = {
    "tool": ("tools/call", {"name": "find", "arguments": {"name": "x"}}, {"read"}),
    "tool with two": (
        "tools/call",
        {"name": "publish", "arguments": {"name": "x"}},
        {"write", "send"},
    ),
    "require": ("tools/call", {"name": "save"}, {"write"}),
    "resource": ("resources/read", {"uri": "docs://secret"}, {"read"}),
    "prompt": ("prompts/get", {"name": "write"}, {"send"}),
    "completion": (
        "completion/complete",
        {
            "ref": {"type": "ref/resource", "uri": "docs://secret"},
            "argument": {"name": "a", "value": ""},
        },
        {"read"},
    ),
}


# -- the stateless era -----------------------------------------------------------------------------


@pytest.mark.parametrize("what", NEEDS)
async def test_who_lacks_a_scope_in_the_stateless_era(web: Web, what: str) -> None:
    """403 with one challenge for all that the operation needs; 200 with it (`AUS-04`, `AUS-08`,
    `AUT-06`, `AUT-17`).
    """
    method, params, needed = NEEDS[what]
    reply = await web.ask(as_(modern(method, params), "ada", *sorted(needed)[1:]))
    assert denied(reply) == needed
    assert reply.json["id"] == 1
    assert (await web.ask(as_(modern(method, params), "ada", *needed))).status == 200


async def test_a_list_of_what_the_token_allows(web: Web) -> None:
    """The list is that of the token that comes with the request, and is marked as nobody else's."""
    for scopes, seen in (((), 0), (("read",), 1), (("read", "write", "send"), 2), (("write",), 0)):
        body = (await web.ask(as_(modern("tools/list", {}), "ada", *scopes))).json["result"]
        assert len({"find", "publish"} & {tool["name"] for tool in body["tools"]}) == seen
        assert body["cacheScope"] == "private"
        uris = {
            one["uri"]
            for one in (await web.ask(as_(modern("resources/list", {}), "ada", *scopes))).json[
                "result"
            ]["resources"]
        }
        assert ("docs://secret" in uris) == ("read" in scopes)


async def test_a_refusal_that_no_scope_would_repair(web: Web) -> None:
    """403 without a challenge: whoever came back with another token would hear the same."""
    reply = await web.ask(as_(call("never"), "ada"))
    assert (reply.status, reply.code, reply.json["error"]["message"]) == (
        403,
        t.FORBIDDEN,
        "Not on Sundays",
    )
    assert "www-authenticate" not in reply.headers


async def test_what_another_server_wants_is_no_challenge_of_this_one(web: Web) -> None:
    """An error that was only passed on names the scopes of another place: a token of ours with them
    would be nothing to it (`AUT-18`).
    """
    reply = await web.ask(as_(call("upstream"), "ada"))
    assert (reply.status, reply.code) == (200, t.FORBIDDEN)
    assert "www-authenticate" not in reply.headers


async def test_a_scope_that_is_asked_for_too_late(web: Web) -> None:
    """Once an event stream has begun the status is said; the error in it names the scopes all the
    same.
    """
    x = as_(call("late", token="t"), "ada")
    x.body["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = "debug"
    reply = await web.ask(x)
    assert (reply.status, reply.headers["content-type"]) == (200, "text/event-stream")
    assert reply.messages[-1]["error"]["data"] == {"requiredScopes": ["write"]}


async def test_who_may_not_listen_in_the_stateless_era(web: Web) -> None:
    """A subscription to what may not be read is refused before its stream begins."""
    assert denied(
        await web.ask(as_(listening(resourceSubscriptions=["docs://open", "docs://secret"]), "ada"))
    ) == {"read"}
    line = await web.begin(
        as_(listening(resourceSubscriptions=["docs://open", "docs://secret"]), "ada", "read")
    )
    assert line.status == 200
    acknowledged = (await line.message())["params"]["notifications"]
    assert acknowledged["resourceSubscriptions"] == ["docs://open", "docs://secret"]
    await line.close()


async def test_a_rule_for_everything_may_ask_for_scopes_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Middleware that raises Forbidden is heard as a feature is, in both eras; operators read of
    every refusal.
    """

    def careful(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            if x.method == "tools/call" and (
                x.caller.principal is None or "tools" not in x.caller.principal.scopes
            ):
                raise Forbidden("tools")
            return await handler(x)

        return handle

    async with serving(shop(middleware=[careful]), guard=Doorman(strangers=True)) as web:
        assert denied(await web.ask(as_(call("hello"), "ada"))) == {"tools"}
        assert (await web.ask(call("hello"))).status == 403
        assert (await web.ask(as_(call("hello"), "ada", "tools"))).status == 200
        visit = await Visit.begin(web, R4)
        assert denied(await visit.ask(tool(1, "hello"))) == {"tools"}
    assert "insufficient scope: this needs tools" in caplog.text


# -- sessions --------------------------------------------------------------------------------------


class Visit:
    """A session of somebody, whose scopes may be others with each request."""

    def __init__(self, web: Web, revision: str, who: str, id: str) -> None:
        self.web = web
        self.who = who
        self.session = RawSession(web, revision, id)

    @classmethod
    async def begin(cls, web: Web, revision: str, who: str = "ada") -> Visit:
        """Open one, without any scopes."""
        reply = await web.ask(as_(offered(initialize(0, revision)), who))
        visit = cls(web, revision, who, reply.headers["mcp-session-id"])
        assert (await visit.ask(notification("notifications/initialized"))).status == 202
        return visit

    async def ask(self, body: bytes, *scopes: str, who: str = "") -> Reply:
        """Post a message."""
        return await self.web.ask(as_(self.session.said(body), who or self.who, *scopes))

    async def listen(self, *scopes: str, until: float | None = None) -> Line:
        """Open the stream of notices."""
        x = self.session.said(b"", method="GET", accept="text/event-stream", content_type=None)
        return await self.web.begin(as_(x, self.who, *scopes, until=until))


@SESSIONS
@pytest.mark.parametrize("what", NEEDS)
async def test_who_lacks_a_scope_in_a_session(web: Web, what: str, revision: str) -> None:
    """The same in every revision that has sessions, and by the token of each request, whatever the
    one before could do (`AUS-04`, `AUS-08`, `SEC-02`).
    """
    method, params, needed = NEEDS[what]
    visit = await Visit.begin(web, revision)
    assert (await visit.ask(request(1, method, params), *needed)).status == 200
    reply = await visit.ask(request(2, method, params), *sorted(needed)[1:])
    assert denied(reply) == needed
    assert reply.json["id"] == 2
    assert (await visit.ask(request(3, method, params), *needed)).status == 200


@SESSIONS
async def test_lists_in_a_session_follow_the_token(web: Web, revision: str) -> None:
    """What one request of a session sees the next one does not, where its token allows less."""
    visit = await Visit.begin(web, revision)
    for number, (scopes, sees) in enumerate(
        [(("read",), True), ((), False), (("read", "x"), True)]
    ):
        tools = (await visit.ask(request(number + 1, "tools/list", {}), *scopes)).json["result"][
            "tools"
        ]
        assert ("find" in {tool["name"] for tool in tools}) == sees


@SESSIONS
async def test_who_may_not_subscribe(web: Web, revision: str) -> None:
    """`resources/subscribe` asks for the scopes of the resource."""
    visit = await Visit.begin(web, revision)
    subscribe = request(1, "resources/subscribe", {"uri": "docs://secret"})
    assert denied(await visit.ask(subscribe)) == {"read"}
    assert (await visit.ask(subscribe, "read")).json["result"] == {}


async def test_notices_follow_the_token(web: Web) -> None:
    """A stream of notices that was opened with a lesser token tells nothing of what that may not
    read, though the session once subscribed to it; all else it tells, the changes of lists too.
    """
    visit = await Visit.begin(web, R4)
    for number, uri in enumerate(["docs://open", "docs://secret"]):
        assert (
            await visit.ask(request(number + 1, "resources/subscribe", {"uri": uri}), "read")
        ).status == 200
    server = SHOPS[web.port]
    for scopes, received in (((), ["docs://open"]), (("read",), ["docs://secret", "docs://open"])):
        line = await visit.listen(*scopes)
        await line.piece()  # it is open, and listens
        server.updated("docs://secret")
        server.updated("docs://open")
        server.changed("tools")
        found: list[str] = []
        while (message := await line.message()) is not None and message[
            "method"
        ] == "notifications/resources/updated":
            found.append(message["params"]["uri"])
        assert found == received
        assert message["method"] == "notifications/tools/list_changed"
        await line.close()


async def test_a_batch_is_refused_where_nothing_of_it_was_done(web: Web) -> None:
    """One challenge for all of a batch, where every call in it lacked a scope. Where anything was
    done the status is 200, for a client that came back with more scopes would have that done again;
    each error says what it needs (2025-03-26; `AUS-08`).
    """
    visit = await Visit.begin(web, R2)
    find = tool(1, "find", name="x")
    publish = tool(2, "publish", name="x")
    hello = tool(3, "hello")
    all_of_it = await visit.ask(b"[%b]" % b",".join([find, publish]))
    assert all_of_it.status == 403
    assert asks_for(all_of_it.headers["www-authenticate"]) == {"read", "write", "send"}
    assert {
        body["id"]: set(body["error"]["data"]["requiredScopes"]) for body in all_of_it.json
    } == {1: {"read"}, 2: {"write", "send"}}
    part = await visit.ask(b"[%b]" % b",".join([find, publish, hello]), "read")
    assert part.status == 200
    assert "www-authenticate" not in part.headers
    bodies = {body["id"]: body for body in part.json}
    assert bodies[1]["result"]["content"][0]["text"] == "found x"
    assert bodies[2]["error"]["data"] == {"requiredScopes": ["send", "write"]}
    assert bodies[3]["result"]["content"][0]["text"] == "hello"


@pytest.mark.parametrize("revision", [R2, R3, R4])
async def test_a_refusal_where_streams_are_the_rule(revision: str) -> None:
    """Where every answer is an event stream a refusal for want of scopes is still a status, for
    only that makes a client step up; everything else is a stream that can be come back for.
    """
    async with serving(shop(), guard=Doorman(), stream=True) as web:
        visit = await Visit.begin(web, revision)
        assert denied(await visit.ask(tool(1, "find", name="x"))) == {"read"}
        assert denied(await visit.ask(tool(2, "save"))) == {"write"}
        reply = await visit.ask(tool(3, "find", name="x"), "read")
        assert reply.headers["content-type"] == "text/event-stream"
        assert [message["id"] for message in reply.messages] == [3]
        if revision == R4:  # all of it is there to be come back for
            first = next(event.id for event in reply.events if event.id)
            x = visit.session.said(
                b"",
                method="GET",
                accept="text/event-stream",
                content_type=None,
                last_event_id=first,
            )
            again = await web.ask(as_(x, "ada"))
            assert [message["id"] for message in again.messages] == [3]


# -- questions, and whose they are -----------------------------------------------------------------


async def test_the_questions_of_the_stateless_era_are_their_principals(web: Web) -> None:
    """Whoever holds the state of another's call gets nothing for it: it is bound to the principal
    (`SEC-04`, `SEC-05`).
    """
    asked = (await web.ask(as_(call("ask"), "ada"))).json["result"]
    (key,) = asked["inputRequests"]
    back = {"name": "ask", "arguments": {}, "requestState": asked["requestState"]}
    back["inputResponses"] = {key: {"action": "accept", "content": {"value": 41}}}
    for thief in ("bob", ""):
        x = modern("tools/call", back)
        reply = await web.ask(as_(x, thief) if thief else x)
        assert reply.code == t.INVALID_PARAMS
        assert "requestState" in reply.json["error"]["message"]
    assert (await web.ask(as_(modern("tools/call", back), "ada"))).json["result"]["content"][0][
        "text"
    ] == "41 for ada"


async def test_the_questions_of_a_session_are_its_principals(web: Web) -> None:
    """A session's id is no authentication: with another's token its questions are not to be
    answered, nor its streams to be had, nor is it to be ended (`SEC-02`, `SEC-03`).
    """
    visit = await Visit.begin(web, R4)
    line = await web.begin(as_(visit.session.said(tool(7, "ask")), "ada"))
    question = await line.message()
    reply = answer(question["id"], {"action": "accept", "content": {"value": 13}})
    for x in (
        visit.session.said(reply),
        visit.session.said(tool(8, "hello")),
        visit.session.said(b"", method="GET", accept="text/event-stream", content_type=None),
        visit.session.said(b"", method="DELETE", content_type=None),
    ):
        assert (await web.ask(as_(x, "bob", "read", "write", "send"))).status == 404
    assert (
        await visit.ask(answer(question["id"], {"action": "accept", "content": {"value": 41}}))
    ).status == 202
    assert (await line.message())["result"]["content"][0]["text"] == "41 for ada"
    await line.close()


# -- the older transport ---------------------------------------------------------------------------


async def opened(web: Web, who: str, *scopes: str, until: float | None = None) -> tuple[Line, str]:
    """A conversation of the older transport: its stream, and where to post."""
    x = offered(b"", method="GET", content_type=None, accept="text/event-stream")
    line = await web.begin(as_(x, who, *scopes, until=until), "/sse")
    event = await line.event()
    assert event is not None
    path = event.data.decode()
    assert (
        await web.ask(as_(offered(initialize(0, R1)), who, *scopes, until=until), path)
    ).status == 202
    await line.message()
    return line, path


async def received(
    web: Web, line: Line, path: str, id: int, who: str, *scopes: str, until: float | None = None
) -> dict[str, Any]:
    """What a call of `save` is answered."""
    assert (
        await web.ask(as_(offered(tool(id, "save")), who, *scopes, until=until), path)
    ).status == 202
    message: dict[str, Any] = await line.message()
    assert message["id"] == id
    return message


async def test_a_post_of_the_older_transport_is_judged_by_its_own_token(web: Web) -> None:
    """Not by the token that opened the stream: a lesser one may less, a greater one more
    (`SEC-02`).
    """
    line, path = await opened(web, "ada", "write")
    assert (await received(web, line, path, 1, "ada", "write"))["result"]["content"][0][
        "text"
    ] == "saved by ada"
    assert (await received(web, line, path, 2, "ada"))["error"]["data"] == {
        "requiredScopes": ["write"]
    }
    assert (await received(web, line, path, 3, "ada", "write", "x"))["result"]["content"][0][
        "text"
    ] == "saved by ada"
    assert (await web.ask(as_(offered(tool(4, "save")), "bob", "write"), path)).status == 404
    await line.close()


async def test_a_post_at_another_worker_is_judged_by_its_own_token(tmp_path: Path) -> None:
    """The token's scopes go with the message to the worker that holds the stream."""
    store = f"sqlite://{tmp_path}/store.db"
    options: dict[str, Any] = {"guard": Doorman(), "legacy_sse": True, "store": store}
    async with serving(shop(), **options) as one, serving(shop(), **options) as other:
        line, path = await opened(one, "ada", "write")
        assert (await received(other, line, path, 1, "ada"))["error"]["data"] == {
            "requiredScopes": ["write"]
        }
        assert (await received(other, line, path, 2, "ada", "write"))["result"]["content"][0][
            "text"
        ] == "saved by ada"
        assert (await received(one, line, path, 3, "ada"))["error"]["data"] == {
            "requiredScopes": ["write"]
        }
        await line.close()


# -- when a token ends -----------------------------------------------------------------------------


async def test_a_stream_ends_with_the_token_that_opened_it(web: Web) -> None:
    """A subscription is answered in good order, the stream of a session is ended: their clients
    come back, with another token or not at all. A stream whose token has no end, or a late one,
    goes on.
    """
    soon = time.time() + 0.5
    visit = await Visit.begin(web, R4)
    other = await Visit.begin(web, R4)
    last = await web.begin(as_(listening(toolsListChanged=True), "ada", until=time.time() + 1e9))
    listens = await web.begin(as_(listening(toolsListChanged=True), "ada", until=soon))
    feed = await visit.listen(until=soon)
    endless = await other.listen()
    assert (await listens.message())["method"] == "notifications/subscriptions/acknowledged"
    assert (await listens.message())["result"]["resultType"] == "complete"
    assert await listens.message() is None
    assert await feed.message() is None
    assert time.time() >= soon
    assert (await last.message())["method"] == "notifications/subscriptions/acknowledged"
    SHOPS[web.port].changed("tools")
    for line in (last, endless):
        assert (await line.message())["method"] == "notifications/tools/list_changed"
        await line.close()


async def test_a_stream_whose_token_has_ended_already(web: Web) -> None:
    """A guard that is behind the times: the stream ends as soon as it has begun."""
    line = await web.begin(as_(listening(toolsListChanged=True), "ada", until=time.time() - 10))
    while (message := await line.message()) is not None:
        assert message.get("method") in (None, "notifications/subscriptions/acknowledged")


async def test_a_clock_that_is_set_back() -> None:
    """The wall clock decides, whatever time has passed by the clock of the loop; and a token may
    last for ever.
    """
    over = asyncio.Event()
    looks = itertools.count()
    term = ExpiryTimer(
        Principal(subject="ada", expires=0.01),
        over.set,
        clock=lambda: 0.0 if next(looks) < 6 else 0.01,
    )
    async with asyncio.timeout(PATIENCE):
        await over.wait()
    assert (
        next(looks) == 8
    )  # when it began, twice for each time that it was too early, and at the end
    term.over()
    endless = ExpiryTimer(Principal(subject="ada", expires=float("inf")), over.clear)
    endless.over()
    assert over.is_set()


async def test_the_stream_of_the_older_transport_lives_as_long_as_its_tokens(web: Web) -> None:
    """It is the whole session: a message that comes with a later token prolongs it."""
    line, path = await opened(web, "ada", "write", until=time.time() + 0.6)
    until = time.time() + 1.2
    assert "result" in await received(web, line, path, 1, "ada", "write", until=until)
    assert await line.message() is None
    assert time.time() >= until


# -- without a guard, and with one -----------------------------------------------------------------


async def test_strangers_use_what_is_for_everybody() -> None:
    """Without a guard nobody has scopes: what asks for them is not listed and not to be had, and
    all else works; the refusal is no challenge, for there is nobody who could give a token
    (`AUT-17`, `SEC-19`).
    """
    async with serving(shop()) as web:
        for method, params, _ in NEEDS.values():
            reply = await web.ask(modern(method, params))
            assert (reply.status, reply.code) == (403, t.FORBIDDEN)
            assert reply.json["error"]["message"].endswith("and nothing here says who asks")
            assert "www-authenticate" not in reply.headers
        assert (await web.ask(call("hello"))).json["result"]["content"][0]["text"] == "hello"
        tools = {
            tool["name"]
            for tool in (await web.ask(modern("tools/list", {}))).json["result"]["tools"]
        }
        assert tools == {"hello", "save", "late", "never", "upstream", "ask"}
        session = await web.greet(R4)
        assert (await session.ask(tool(1, "hello"))).status == 200
        assert (await session.ask(tool(2, "find", name="x"))).status == 403
        assert (
            await session.ask(request(3, "resources/subscribe", {"uri": "docs://secret"}))
        ).status == 403
        x = call("hello", authorization="Bearer whatever")
        x.twice = ["authorization"]
        assert (
            await web.ask(x)
        ).status == 200  # nobody reads it: what it says twice is said to nobody


async def test_require_without_a_guard_and_without_other_scopes() -> None:
    """Nor has anybody the scopes that only a function asks for."""
    server = Server("plain")

    @server.tool
    async def wipe(ctx: Context) -> str:
        ctx.require("admin")
        return "wiped"

    async with serving(server) as web:
        assert (await web.ask(call("wipe"))).status == 403
        assert (await (await web.greet(R4)).ask(tool(1, "wipe"))).status == 403


async def test_a_guard_stands_before_everything() -> None:
    """It is told what it guards, sees every request first, and what it refuses reaches nothing;
    health checks and its own lifespan too pass by it.
    """
    server = shop()
    doorman = Doorman()
    async with serving(server, guard=doorman) as web:
        assert doorman.learned is not None
        path, scopes = doorman.learned
        assert (path, doorman.path, set(scopes())) == ("/mcp", "/mcp", {"read", "write", "send"})
        server.add_tool(lambda: "", name="new", scopes="new")
        assert set(scopes()) == {"read", "write", "send", "new"}
        reply = await web.ask(call("hello"))
        assert (reply.status, reply.headers["www-authenticate"]) == (401, "Bearer")
        assert (await web.ask(offered(initialize(1, R4)))).status == 401
        assert (await web.ask(as_(call("hello"), "ada"))).status == 200
        health = await web.ask(offered(b"", method="GET", content_type=None), "/health")
        assert (health.status, health.json) == (200, {"status": "ok"})
        assert (await web.ask(as_(call("hello"), "ada"), "/elsewhere")).status == 404


async def test_a_page_may_read_what_the_guard_says() -> None:
    """A browser's client learns of a challenge only if the page may read it: the guard's answers
    are marked as all others are, and its preflight needs no token.
    """
    origin = "https://app.example"
    async with serving(shop(), guard=Doorman(), cors=[origin]) as web:
        preflight = offered(
            b"",
            method="OPTIONS",
            content_type=None,
            origin=origin,
            access_control_request_method="POST",
        )
        assert (await web.ask(preflight)).status == 204
        for reply, status in (
            (await web.ask(call("hello", origin=origin)), 401),
            (await web.ask(as_(call("find", {"name": "x"}, origin=origin), "ada")), 403),
        ):
            assert (reply.status, reply.headers["access-control-allow-origin"]) == (status, origin)
            assert "www-authenticate" in reply.headers["access-control-expose-headers"]
        for page in (origin, "https://other.example"):  # what is there for all pages is marked once
            reply = await web.ask(
                offered(b"", method="GET", content_type=None, origin=page), "/everybody"
            )
            assert reply.headers["access-control-allow-origin"] == "*"


async def test_a_program_closes_its_guard() -> None:
    """What the guard has opened ends with the program; where others serve the app, the lifespan
    tells the guard itself.
    """
    server = shop()
    doorman = Doorman()
    ready = asyncio.get_running_loop().create_future()
    running = asyncio.create_task(
        serve_web(server, port=0, grace=0.1, on_ready=ready.set_result, guard=doorman)
    )
    port = (await ready)[1]
    web = Web(port, None)  # type: ignore[arg-type]  # nobody looks into it here
    assert (await web.ask(as_(call("hello"), "ada"))).status == 200
    assert doorman.closed == 0
    running.cancel()
    await running
    assert doorman.closed == 1


async def test_lifespan_and_drain_with_a_guard() -> None:
    """The lifespan goes through the guard to the server; a server that is ended answers what runs
    and takes no more, guard or not.
    """
    server = shop()
    doorman = Doorman()
    app = server.http_app(guard=doorman)
    said: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    told: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    living = asyncio.ensure_future(app({"type": "lifespan"}, told.get, said.put))
    await told.put({"type": "lifespan.startup"})
    async with asyncio.timeout(PATIENCE):
        assert (await said.get())["type"] == "lifespan.startup.complete"
        assert doorman.seen == ["lifespan"]
        await app.drain(0)
        sent: list[dict[str, Any]] = []

        async def send(message: Any) -> None:
            sent.append(message)

        x = as_(call("hello"), "ada")
        headers = [(name.encode(), value.encode()) for name, value in x.headers.items()]
        scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}
        body = {"type": "http.request", "body": json.dumps(x.body).encode(), "more_body": False}

        async def receive() -> dict[str, Any]:
            return body

        await app(scope, receive, send)
        assert sent[0]["status"] == 503
        await told.put({"type": "lifespan.shutdown"})
        assert (await said.get())["type"] == "lifespan.shutdown.complete"
        await living


async def test_a_guard_that_is_none() -> None:
    """A guard by mistake would be a door that stands open: it is refused at once."""
    with pytest.raises(
        TypeError, match="a guard takes an ASGI app and gives one; 'secret' does not"
    ):
        shop().http_app(guard="secret")


async def test_a_guard_may_be_any_middleware() -> None:
    """It need not want to know anything."""
    seen = []
    app = shop().http_app(guard=lambda app: seen.append(app.path) or app)
    assert seen == ["/mcp"]
    assert app.path == "/mcp"
