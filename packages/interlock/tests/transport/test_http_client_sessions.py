"""Sessions as a client keeps them: renewed when they are gone, listened to, told what is given up,
and ended; and subscriptions without a session.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import Client, McpError, ProtocolError, Unreachable
from tests.transport.http_peers import both_loops
from tests.transport.scripted_server import (
    ALL,
    HANDSHAKES,
    INFO,
    JSON,
    R3,
    R4,
    R5,
    Asked,
    ScriptedServer,
    Waits,
    begun,
    client_of,
    event,
    listed,
    result,
    scripted,
    talking,
    tool,
)

QUIET: dict[str, Any] = {"listen": False}


def note(method: str, **params: Any) -> dict[str, Any]:
    """A notification."""
    return {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}


# -- a session that is gone ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"Session not found",
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}',
    ],
)
@pytest.mark.parametrize("revision", HANDSHAKES)
@both_loops
async def test_a_session_that_is_gone_is_begun_anew(revision: str, body: bytes) -> None:
    """404: `initialize` without an id, `initialized` with the new one, and the call again with that
    (`HTL-43`).
    """
    async with talking(revision, **QUIET) as (server, client):
        doing = begun(client.call_tool("act"))
        first = await server.next("tools/call")
        server.session = "session-2"
        await first.says("404 Not Found", body, JSON)
        again = await server.next("tools/call")
        greeting, initialized = server.all[-3:-1]
        assert (greeting.key, greeting.header("mcp-session-id")) == ("initialize", None)
        assert greeting.params["protocolVersion"] == revision
        assert greeting.header("mcp-protocol-version") is None
        assert (initialized.key, initialized.header("mcp-session-id")) == (
            "notifications/initialized",
            "session-2",
        )
        assert again.header("mcp-session-id") == "session-2"
        assert again.id != first.id
        await again.gives(result())
        assert (await doing).text == "done"
    assert server.all[-1].header("mcp-session-id") == "session-2"  # of the DELETE


@pytest.mark.parametrize("revision", HANDSHAKES)
async def test_a_list_is_begun_again_in_a_new_session(revision: str) -> None:
    """A cursor is of the session that gave it, and never sent into another one (`PAG-04`)."""
    async with talking(revision, **QUIET) as (server, client):
        doing = begun(client.list_tools())
        await (await server.next("tools/list")).gives(
            {"tools": [tool("first")], "nextCursor": "two"}
        )
        second = await server.next("tools/list")
        assert second.params["cursor"] == "two"
        server.session = "session-2"
        await second.says("404 Not Found")
        again = await server.next("tools/list")
        assert (again.params.get("cursor"), again.header("mcp-session-id")) == (None, "session-2")
        await again.gives({"tools": [tool("act")]})
        assert [found.name for found in await doing] == ["act"]


@both_loops
async def test_many_calls_find_the_session_gone() -> None:
    """Forty calls get 404; one session is begun, and calls that are made meanwhile wait for it
    (`HTL-43`).
    """
    async with talking(R4, **QUIET) as (server, client):
        greeting = asyncio.Event()
        asked_to_greet = asyncio.Event()

        async def greet_late(asked: Asked) -> None:
            asked_to_greet.set()
            await greeting.wait()
            await server.is_greeted(asked)

        doing = [begun(client.call_tool("act", {"n": n})) for n in range(40)]
        calls = [await server.next("tools/call") for _ in doing]
        server.on["initialize"] = greet_late
        server.session = "session-2"
        for asked in calls[:20]:
            await asked.says("404 Not Found")
        await asked_to_greet.wait()
        doing += [begun(client.call_tool("act", {"n": n})) for n in range(40, 50)]
        for asked in calls[20:]:
            await asked.says("404 Not Found")
        assert server.count("tools/call") == 40
        greeting.set()
        for _ in range(50):
            asked = await server.next("tools/call")
            assert asked.header("mcp-session-id") == "session-2"
            await asked.gives(result(str(asked.params["arguments"]["n"])))
        assert [answer.text for answer in await asyncio.gather(*doing)] == [
            str(n) for n in range(50)
        ]
    assert server.count("initialize") == 2
    assert server.count("notifications/initialized") == 2


@both_loops
async def test_a_new_session_is_told_what_the_old_one_knew() -> None:
    """The log level and the subscriptions, but not those that were given up (`HTL-43`)."""

    async def answered(asked: Asked) -> None:
        await asked.gives({})

    async with scripted() as server:
        for method in ("logging/setLevel", "resources/subscribe", "resources/unsubscribe"):
            server.on[method] = answered
        async with client_of(server.url, R4, log_level="info", **QUIET) as client:
            await client.set_log_level("warning")
            async with client.watch(resources=["note://gone"]):
                pass
            async with client.watch(resources=["note://a", "note://b"]):
                doing = begun(client.call_tool("act"))
                asked = await server.next("tools/call")
                before = len(server.all)
                server.session = "session-2"
                await asked.says("404 Not Found")
                await (await server.next("tools/call")).gives(result())
                await doing
                told = server.all[before:-1]
    assert [(one.key, one.params.get("level") or one.params.get("uri")) for one in told[2:]] == [
        ("logging/setLevel", "warning"), ("resources/subscribe", "note://a"),
            ("resources/subscribe", "note://b"),
    ]  # fmt: skip
    assert {one.header("mcp-session-id") for one in told[2:]} == {"session-2"}


@both_loops
async def test_a_session_that_is_gone_again_at_once() -> None:
    """The call is made twice, not for ever; the next call tries again (`HTL-43`)."""
    async with talking(R4, **QUIET) as (server, client):
        for round in (1, 2):
            doing = begun(client.call_tool("act"))
            await (await server.next("tools/call")).says("404 Not Found")
            await (await server.next("tools/call")).says("404 Not Found")
            with pytest.raises(Unreachable, match="ended the session"):
                await doing
            assert server.count("tools/call") == 2 * round


@pytest.mark.parametrize("why", ["refused", "broken", "another revision", "silent"])
@both_loops
async def test_a_session_that_cannot_be_begun_anew(why: str) -> None:
    """Whoever waits is told in words; the call after that begins with it again, without the old id
    where it must not be (`HTL-43`).
    """
    async with talking(R4, timeout=0.5 if why == "silent" else 5.0, **QUIET) as (server, client):
        good = server.on["initialize"]
        other = {"protocolVersion": R3, "capabilities": ALL, "serverInfo": INFO}
        bad: dict[str, Any] = {
            "refused": lambda asked: asked.fails(-32603, "No more"),
            "broken": lambda asked: asked.breaks(),
            "another revision": lambda asked: asked.gives(other),
            "silent": Asked.hung_up,
        }
        server.on["initialize"] = bad[why]
        doing = begun(client.call_tool("act", timeout=None))
        await (await server.next("tools/call")).says("404 Not Found")
        words = {
            "refused": "No more",
            "broken": "initialize",
            "another revision": "open the client anew",
            "silent": "does not answer",
        }
        with pytest.raises((McpError, Unreachable, ProtocolError), match=words[why]):
            await doing
        server.on["initialize"] = good
        server.session = "session-2"
        doing = begun(client.call_tool("act", timeout=None))
        old = await server.next("tools/call")
        assert old.header("mcp-session-id") == "session-1"
        await old.says("404 Not Found")
        new = await server.next("tools/call")
        assert new.header("mcp-session-id") == "session-2"
        await new.gives(result())
        await doing


@both_loops
async def test_404_without_a_session_is_only_404() -> None:
    """And 404 with "method not found" is an answer, also with a session."""
    async with talking(R4, session=None, **QUIET) as (server, client):
        doing = begun(client.call_tool("act"))
        await (await server.next("tools/call")).says("404 Not Found")
        with pytest.raises(Unreachable, match="404") as caught:
            await doing
        assert caught.value.status == 404
    assert server.count("initialize") == 1
    assert server.count("DELETE") == 0
    async with talking(R4, **QUIET) as (server, client):
        doing = begun(client.list_tools())
        await (await server.next("tools/list")).fails(
            -32601, "Method not found", status="404 Not Found"
        )
        with pytest.raises(McpError, match="Method not found"):
            await doing
        assert server.count("initialize") == 1


# -- the session's own stream ----------------------------------------------------------------------


@both_loops
async def test_the_stream_of_a_session() -> None:
    """Notices and questions come on it; answers to questions go out as POSTs (`HTL-23`,
    `HTL-28`).
    """
    received: list[str] = []
    async with scripted() as server:
        del server.on["GET"]
        client = client_of(
            server.url,
            R4,
            on_notification=lambda method, params: received.append(method),
            elicit=lambda params: {"a": 1},
        )
        opening = begun(client.open())
        stream = await server.next("GET")
        params = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
        await stream.streams(event(note("tools/list_changed")), b": quiet\n\n")
        await stream.sends(
            event({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params})
        )
        answer = await server.next("response")
        assert answer.body["result"] == {"action": "accept", "content": {"a": 1}}
        await answer.taken()
        await stream.sends(event({"jsonrpc": "2.0", "id": "p", "method": "ping"}))
        pong = await server.next("response")
        assert pong.body == {"jsonrpc": "2.0", "id": "p", "result": {}}
        await pong.taken()
        await opening
        assert received == ["notifications/tools/list_changed"]
        await client.aclose()
        await stream.hung_up()


@both_loops
async def test_messages_of_tasks_may_come_on_any_stream() -> None:
    """Those without a handle are notifications, on the session's stream and on a call's
    (`HTL-56`).
    """
    task = note(
        "tasks/status",
        taskId="t",
        status="working",
        createdAt="2025-11-25T10:00:00Z",
        lastUpdatedAt="2025-11-25T10:00:00Z",
        ttl=1,
    )
    async with scripted() as server:
        track = Tracked(server)
        stream = await track.opened()
        await stream.sends(event(task), event(note("tools/list_changed")))
        await track.receivers(2)
        doing = begun(track.client.call_tool("act"))
        asked = await server.next("tools/call")
        await asked.streams()
        await asked.ends(event(task), event(asked.response(result())))
        assert (await doing).text == "done"
        await track.receivers(3)
        status = "notifications/tasks/status"
        assert track.received == [status, LISTS[0], status]
        await track.client.aclose()
        await stream.hung_up()


@pytest.mark.parametrize(
    "status",
    [
        "405 Method Not Allowed",
        "404 Not Found",
        "400 Bad Request",
        "406 Not Acceptable",
        "403 Forbidden",
    ],
)
@both_loops
async def test_servers_that_do_not_speak_of_themselves(status: str) -> None:
    """They are asked once (`HTL-25`)."""
    waits = Waits()
    async with scripted() as server:
        server.on["GET"] = lambda asked: asked.says(status)
        async with client_of(server.url, R4, sleep=waits) as client:
            doing = begun(client.call_tool("act"))
            await (await server.next("tools/call")).gives(result())
            await doing
        assert (server.count("GET"), server.count("initialize"), waits.asked) == (1, 1, [])


@both_loops
async def test_a_client_that_does_not_listen() -> None:
    """`listen=False` makes no GET."""
    async with talking(R4, **QUIET) as (server, _):
        pass
    assert server.count("GET") == 0


class Tracked:
    """A client whose session's stream the test holds, with what it heard and what it asked to
    wait.
    """

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.waits = Waits()
        self.received: list[str] = []
        self._stirred = asyncio.Event()
        self.client: Client = client_of(
            server.url, R4, sleep=self.waits, on_notification=self._receive
        )

    def _receive(self, method: str, params: Any) -> None:
        self.received.append(method)
        self._stirred.set()

    async def receivers(self, count: int) -> None:
        """Wait until it has heard so many notices."""
        while len(self.received) < count:
            self._stirred.clear()
            await self._stirred.wait()

    async def opened(self) -> Asked:
        """Open it; the request for the stream."""
        del self.server.on["GET"]
        opening = begun(self.client.open())
        stream = await self.server.next("GET")
        await stream.streams(b":\n\n")
        await opening
        return stream


LISTS = [f"notifications/{what}/list_changed" for what in ("tools", "prompts", "resources")]


@both_loops
async def test_a_stream_without_ids_that_broke_is_mistrusted() -> None:
    """What was said meanwhile is lost: all may have changed, and the watchers are told so,
    subscriptions too (`HTL-23`).
    """
    async with scripted() as server:
        track = Tracked(server)
        stream = await track.opened()
        server.on["resources/subscribe"] = lambda asked: asked.gives({})
        server.on["resources/unsubscribe"] = lambda asked: asked.gives({})
        async with track.client.watch(tools=True, resources=["note://a"]) as changes:
            await stream.breaks()
            again = await server.next("GET")
            assert again.header("last-event-id") is None
            assert track.received == []
            await again.streams(b":\n\n")
            assert (await anext(changes)).kind == "tools"
            assert (await anext(changes)).uri == "note://a"
        assert track.received == [*LISTS, "notifications/resources/updated"]
        await track.client.aclose()
        await again.hung_up()


@both_loops
async def test_a_stream_with_ids_is_resumed() -> None:
    """Nothing was missed, so nothing is mistrusted; the wait is the one that the server asked for
    (`HTL-17`, `HTL-34`).
    """
    async with scripted() as server:
        track = Tracked(server)
        stream = await track.opened()
        for number in range(1, 4):
            await stream.sends(event(note("tools/list_changed"), id=f"e{number}", retry=40))
            await (stream.breaks() if number % 2 else stream.ends())
            stream = await server.next("GET")
            assert stream.header("last-event-id") == f"e{number}"
            await stream.streams()
        await stream.sends(event(note("prompts/list_changed"), id="e4"))
        await track.receivers(4)
        assert track.received == [LISTS[0]] * 3 + [LISTS[1]]
        assert track.waits.asked == [0.04] * 3
        await track.client.aclose()
        await stream.hung_up()


@pytest.mark.parametrize("refusal", ["400 Bad Request", "405 Method Not Allowed"])
@both_loops
async def test_a_stream_that_cannot_be_resumed_begins_anew(refusal: str) -> None:
    """The server has forgotten the event: it is asked without it, and the gap is told."""
    async with scripted() as server:
        track = Tracked(server)
        stream = await track.opened()
        await stream.ends(event(note("tools/list_changed"), id="e1"))
        await (await server.next("GET")).says(refusal)
        again = await server.next("GET")
        assert again.header("last-event-id") is None
        await again.streams(b":\n\n")
        await track.receivers(4)
        assert track.received == [LISTS[0], *LISTS]
        await track.client.aclose()
        await again.hung_up()


@both_loops
async def test_a_stream_that_always_ends_at_once_is_asked_for_less_and_less() -> None:
    """Half a second at first, longer and longer then, and never more than about half a minute."""
    async with scripted() as server:
        track = Tracked(server)
        await (await track.opened()).ends()
        for _ in range(12):
            await (await server.next("GET")).says("200 OK", b"", "Content-Type: text/event-stream")
        last = await server.next("GET")
        waits = track.waits.asked
        assert waits[0] == 0.5
        assert waits[4] > 2 * waits[1]
        assert 22 <= waits[-1] <= 38
        await track.client.aclose()
        await last.hung_up()


@both_loops
async def test_the_stream_finds_the_session_gone() -> None:
    """It begins a new one and listens there; where that has no stream either, the matter rests
    (`HTL-43`).
    """
    async with scripted() as server:
        track = Tracked(server)
        stream = await track.opened()
        server.session = "session-2"
        await stream.ends(event(note("tools/list_changed"), id="e1"))
        await (await server.next("GET")).says("404 Not Found")
        again = await server.next("GET")
        assert (again.header("mcp-session-id"), again.header("last-event-id")) == (
            "session-2",
            None,
        )
        await again.streams(b":\n\n")
        server.session = "session-3"
        await again.ends()
        await (await server.next("GET")).says("404 Not Found")
        await (await server.next("GET")).says("404 Not Found")
        doing = begun(track.client.call_tool("act"))
        call = await server.next("tools/call")
        assert call.header("mcp-session-id") == "session-3"
        await call.gives(result())
        await doing
        assert server.count("initialize") == 3
        await track.client.aclose()


@both_loops
async def test_the_stream_goes_on_where_a_session_was_hard_to_begin() -> None:
    """The server is away when the stream finds the session gone: it is tried again, and listened to
    in the end (`HTL-43`).
    """
    async with scripted() as server:
        track = Tracked(server)
        stream = await track.opened()
        good = server.on["initialize"]
        server.on["initialize"] = lambda asked: asked.says("503 Service Unavailable")
        await stream.breaks()
        await (await server.next("GET")).says("404 Not Found")
        second = await server.next("GET")
        assert second.header("mcp-session-id") == "session-1"
        server.on["initialize"] = good
        server.session = "session-2"
        await second.says("404 Not Found")
        last = await server.next("GET")
        assert last.header("mcp-session-id") == "session-2"
        await track.client.aclose()
        await last.hung_up()


@both_loops
async def test_a_call_finds_the_session_gone() -> None:
    """The stream of the old session is not resumed in the new one: it is begun there, and the gap
    is told (`HTL-43`).
    """
    async with scripted() as server:
        track = Tracked(server)
        stream = await track.opened()
        await stream.sends(event(note("tools/list_changed"), id="old-1"))
        doing = begun(track.client.call_tool("act"))
        server.session = "session-2"
        await (await server.next("tools/call")).says("404 Not Found")
        await (await server.next("tools/call")).gives(result())
        await doing
        await stream.ends()
        again = await server.next("GET")
        assert (again.header("mcp-session-id"), again.header("last-event-id")) == (
            "session-2",
            None,
        )
        await again.streams(b":\n\n")
        await track.receivers(4)
        assert track.received == [LISTS[0], *LISTS]
        await track.client.aclose()
        await again.hung_up()


# -- giving up, and the end ------------------------------------------------------------------------


@pytest.mark.parametrize("begins", ["silence", "a stream"])
@pytest.mark.parametrize("revision", [*HANDSHAKES, R5])
@both_loops
async def test_a_call_that_is_given_up(revision: str, begins: str) -> None:
    """Its connection is closed; in the handshake era, where that says nothing, a notification is
    posted (`HTL-21`, `HTL-22`, `HTM-14`, `CAN-03`).
    """
    async with talking(revision, **QUIET) as (server, client):
        doing = begun(client.call_tool("act"))
        asked = await server.next("tools/call")
        if begins == "a stream":
            await asked.streams(b":\n\n")
        doing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await doing
        await asked.hung_up()
        if revision != R5:
            cancelled = await server.next("notifications/cancelled")
            assert cancelled.params["requestId"] == asked.id
            await cancelled.taken()
        again = begun(client.call_tool("act"))
        await (await server.next("tools/call")).gives(result())
        assert (await again).text == "done"
        assert server.count("notifications/cancelled") == (revision != R5)


@both_loops
async def test_the_end_of_a_session() -> None:
    """DELETE with its id, once; whatever the server makes of it (`HTL-44`)."""
    for say in (
        lambda asked: asked.says("200 OK"),
        lambda asked: asked.says("405 Method Not Allowed"),
        lambda asked: asked.says("404 Not Found"),
        lambda asked: asked.breaks(),
    ):
        async with scripted() as server:
            server.on["DELETE"] = say
            client = client_of(server.url, R4)
            await client.open()
            await client.aclose()
            await client.aclose()
            ends = [asked for asked in server.all if asked.key == "DELETE"]
            assert {end.header("mcp-session-id") for end in ends} == {"session-1"}
            assert len(ends) == (
                2 if ends[0].broken else 1
            )  # one that a kept connection swallowed may come twice


# -- subscriptions of the stateless era ------------------------------------------------------------


def acknowledged(asked: Asked, wanted: dict[str, Any] | None = None) -> bytes:
    """What a listen stream begins with."""
    about = {"io.modelcontextprotocol/subscriptionId": asked.id}
    granted = asked.params["notifications"] if wanted is None else wanted
    return event(note("subscriptions/acknowledged", notifications=granted, _meta=about))


def change(asked: Asked, method: str, **params: Any) -> bytes:
    """A change as a listen stream tells it."""
    return event(note(method, **params, _meta={"io.modelcontextprotocol/subscriptionId": asked.id}))


@both_loops
async def test_a_subscription_that_is_lost_is_begun_again() -> None:
    """With a request of its own; all that was granted is told as changed then, and nothing else
    (`HTM-18`, `LSN-13`).
    """
    waits = Waits()
    async with talking(R5, sleep=waits) as (server, client):
        opening = client.watch(tools=True, prompts=True, resources=["note://a"])
        entering = begun(opening.__aenter__())
        first = await server.next("subscriptions/listen")
        assert first.header("mcp-method") == "subscriptions/listen"
        granted = {"toolsListChanged": True, "resourceSubscriptions": ["note://a"]}
        await first.streams(acknowledged(first, granted))
        changes = await entering
        await first.sends(change(first, "tools/list_changed"))
        assert (await anext(changes)).kind == "tools"
        await first.breaks()
        second = await server.next("subscriptions/listen")
        assert second.id != first.id
        assert second.params["notifications"] == first.params["notifications"]
        assert second.header("last-event-id") is None
        await second.streams(acknowledged(second, granted), change(second, "prompts/list_changed"))
        told = [await anext(changes) for _ in range(3)]
        assert [(one.kind, one.uri) for one in told] == [
            ("tools", None),
            ("resource", "note://a"),
            ("prompts", None),
        ]
        await second.ends()  # in good order, but without an answer: lost all the same
        third = await server.next("subscriptions/listen")
        await third.says("503 Service Unavailable")
        fourth = await server.next("subscriptions/listen")
        await fourth.streams(acknowledged(fourth, granted))
        assert (await anext(changes)).kind == "tools"
        assert [0.3 < wait < 1.3 for wait in waits.asked] == [True] * 3
        await opening.__aexit__(None, None, None)
        await fourth.hung_up()


@both_loops
async def test_a_subscription_that_the_server_ends() -> None:
    """Its answer ends it, and it is not begun again (`X-01`)."""
    async with talking(R5) as (server, client):
        opening = client.watch(tools=True)
        entering = begun(opening.__aenter__())
        asked = await server.next("subscriptions/listen")
        await asked.streams(acknowledged(asked))
        changes = await entering
        await asked.ends(event(asked.response({"resultType": "complete"})))
        with pytest.raises(StopAsyncIteration):
            await anext(changes)
        await opening.__aexit__(None, None, None)
        assert server.count("subscriptions/listen") == 1


@pytest.mark.parametrize("how", ["an error", "404", "401", "a break"])
@both_loops
async def test_a_subscription_that_is_refused(how: str) -> None:
    """Before it was acknowledged it is not tried again: whoever wanted it is told."""
    async with talking(R5) as (server, client):
        entering = begun(client.watch(tools=True).__aenter__())
        asked = await server.next("subscriptions/listen")
        match how:
            case "an error":
                await asked.fails(-32601, "Method not found", status="404 Not Found")
            case "a break":
                await asked.breaks()
            case status:
                await asked.says(f"{status} No")
        with pytest.raises((McpError, Unreachable)):
            await entering
        assert server.count("subscriptions/listen") == 1


@both_loops
async def test_a_subscription_that_always_breaks_is_begun_less_and_less() -> None:
    """Acknowledged and broken at once, again and again: the waits grow."""
    waits = Waits()
    async with talking(R5, sleep=waits) as (server, client):
        opening = client.watch(tools=True)
        entering = begun(opening.__aenter__())
        for _ in range(8):
            asked = await server.next("subscriptions/listen")
            await asked.streams(acknowledged(asked))
            await asked.ends()
        await entering
        last = await server.next("subscriptions/listen")
        assert waits.asked[5] > 4 * waits.asked[1]
        assert waits.asked[-1] > 20
        await last.breaks()
        await opening.__aexit__(None, None, None)


@both_loops
async def test_lists_are_fetched_again_after_a_gap() -> None:
    """What was kept of a list is stale once the subscription had a gap (`CAC-04`)."""
    async with talking(R5) as (server, client):
        kept = {**listed(tool("one")), "ttlMs": 3_600_000}
        server.on["tools/list"] = lambda asked: asked.gives(kept)
        opening = client.watch(tools=True)
        entering = begun(opening.__aenter__())
        stream = await server.next("subscriptions/listen")
        await stream.streams(acknowledged(stream))
        changes = await entering
        await client.list_tools()
        await client.list_tools()
        assert server.count("tools/list") == 1
        await stream.breaks()
        again = await server.next("subscriptions/listen")
        await again.streams(acknowledged(again))
        assert (await anext(changes)).kind == "tools"
        await client.list_tools()
        assert server.count("tools/list") == 2
        await opening.__aexit__(None, None, None)
        await again.hung_up()
