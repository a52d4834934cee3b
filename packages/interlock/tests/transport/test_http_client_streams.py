"""Answers as a client over HTTP reads them: as JSON and as event streams, however cut; streams that
break are taken up again or said to be lost.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from interlock import McpError, ProtocolError, Unreachable
from interlock.http11.fetch import ConnectionLost
from tests.transport.ends import turns
from tests.transport.http_peers import both_loops
from tests.transport.scripted_server import (
    HANDSHAKES,
    JSON,
    R4,
    R5,
    REVISIONS,
    Asked,
    Waits,
    begun,
    event,
    listed,
    result,
    talking,
    tool,
)

EVENTS = "Content-Type: text/event-stream"


def progress(asked: Asked, done: float) -> dict[str, Any]:
    """A report of a call's progress."""
    token = asked.params["_meta"]["progressToken"]
    return {
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {"progressToken": token, "progress": done},
    }


STRANGE = [
    b": a comment\n\n",
    b":\n\n",
    b"event: ping\ndata: {}\n\n",
    b"data:\n\n",
    b"retry: 10\n\n",
    b"data: no JSON\n\n",
    b"data: {}\n\n",
    b"\n\n",
]
WAYS = [
    "JSON",
    "JSON with a charset",
    "chunked JSON",
    "events",
    "events of a name",
    "CRLF",
    "CR",
    "after other things",
    "byte by byte",
    "several lines",
    "after a mark",
]


async def say(way: str, asked: Asked) -> None:
    """Answer a call in one of many ways."""
    answer = asked.response(result("there"))
    plain = event(answer)
    match way:
        case "JSON":
            await asked.gives(result("there"))
        case "JSON with a charset":
            await asked.says("200 OK", plain[6:-2], "content-type: Application/JSON; charset=utf-8")
        case "chunked JSON":
            await asked._talk.send(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: "
                b"chunked\r\n\r\n"
            )
            await asked.ends(plain[6:30], plain[30:-2])
        case _:
            await asked.streams(headers=("Cache-Control: no-cache",))
            pieces = {
                "events": [plain],
                "events of a name": [b"event: message\n" + plain],
                "CRLF": [plain.replace(b"\n", b"\r\n")],
                "CR": [plain.replace(b"\n", b"\r")],
                "after other things": [*STRANGE, plain],
                "byte by byte": [plain[n : n + 1] for n in range(len(plain))],
                "several lines": [plain.replace(b', "', b',\ndata: "')],
                "after a mark": [b"\xef\xbb\xbf" + plain],
            }
            await asked.ends(*pieces[way])


@pytest.mark.parametrize("revision", [R4, R5])
@pytest.mark.parametrize("way", WAYS)
@both_loops
async def test_every_form_of_an_answer(way: str, revision: str) -> None:
    """JSON and events are the same; comments and events that say nothing are passed over (`HTL-08`,
    `HTL-20`, `HTM-07`, `HTM-13`).
    """
    async with talking(revision) as (server, client):
        doing = begun(client.call_tool("act"))
        await say(way, await server.next("tools/call"))
        assert (await doing).text == "there"


@both_loops
async def test_reports_come_before_the_answer() -> None:
    """What stands on the stream before the answer is heard by the call it belongs to, and the
    answer ends the wait, though the stream goes on.
    """
    async with talking(R5) as (server, client):
        received: list[float] = []
        doing = begun(client.call_tool("act", on_progress=lambda p: received.append(p.progress)))
        asked = await server.next()
        await asked.streams(
            event(progress(asked, 1)),
            event(progress(asked, 2)),
            event(asked.response(result())),
            event(progress(asked, 3)),
        )
        assert (await doing).text == "done"
        assert received == [1, 2]
        await asked.hung_up()


@pytest.mark.parametrize("end", ["at once", "late", "never"])
@both_loops
async def test_the_connection_of_a_stream_is_kept(end: str) -> None:
    """A stream that ends in good order after its answer leaves its connection to the next request;
    one that goes on is closed.
    """
    async with talking(R5) as (server, client):
        doing = begun(client.call_tool("act"))
        asked = await server.next("tools/call")
        await asked.streams()
        answer = event(asked.response(result()))
        await (asked.ends(answer) if end == "at once" else asked.sends(answer))
        assert (await doing).text == "done"
        if end == "late":
            await asked.ends()
            await turns(20)
        if end == "never":
            await asked.hung_up()
        again = begun(client.call_tool("act"))
        second = await server.next("tools/call")
        assert (second._talk is asked._talk) == (end != "never")
        await second.gives(result())
        await again


@both_loops
async def test_streams_for_fifty_calls_at_once() -> None:
    """Fifty calls are all with the server before it answers the first: nothing is held from one to
    the next (`HTL-29`).
    """
    for revision in (R5, R4):
        async with talking(revision) as (server, client):
            doing = [begun(client.call_tool("act", {"n": n})) for n in range(50)]
            held = [await server.next("tools/call") for _ in doing]
            assert sorted(asked.params["arguments"]["n"] for asked in held) == list(range(50))
            assert len({asked.id for asked in held}) == 50
            for number, asked in enumerate(reversed(held)):
                text = str(asked.params["arguments"]["n"])
                if number % 2:
                    await asked.gives(result(text))
                else:
                    await asked.streams()
                    await asked.ends(event(asked.response(result(text))))
            assert [answer.text for answer in await asyncio.gather(*doing)] == [
                str(n) for n in range(50)
            ]


# -- what cannot be read ---------------------------------------------------------------------------

UNREADABLE: dict[str, tuple[Any, str]] = {
    "a page": (
        lambda asked: asked.says(
            "200 OK", b"<html><body>Please log in</body></html>", "Content-Type: text/html"
        ),
        "Please log in.*endpoint",
    ),
    "a page of a proxy": (
        lambda asked: asked.says(
            "502 Bad Gateway", b"<h1>\xff Bad\x1b[31m</h1>", "Content-Type: text/html"
        ),
        "502: <h1>. Bad .31m</h1>",
    ),
    "nothing": (lambda asked: asked.says("200 OK"), "nothing"),
    "accepted": (lambda asked: asked.taken(), "status 202"),
    "no content": (lambda asked: asked.says("204 No Content"), "204"),
    "broken JSON": (
        lambda asked: asked.says("200 OK", b'{"jsonrpc": "2.0", "id"', JSON),
        'no answer to it: {"jsonrpc"',
    ),
    "another's answer": (
        lambda asked: asked.says("200 OK", b'{"jsonrpc":"2.0","id":"another","result":{}}', JSON),
        "no answer to it",
    ),
    "a notification": (
        lambda asked: asked.says(
            "200 OK", b'{"jsonrpc":"2.0","method":"notifications/message"}', JSON
        ),
        "no answer to it",
    ),
    "a body that ends early": (
        lambda asked: asked.breaks(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
        ),
        "broke before the answer to tools/call",
    ),
    "too much JSON": (
        lambda asked: asked.says("200 OK", b'"' + b"x" * 5000 + b'"', JSON),
        "more than 4096 bytes",
    ),
    "too long a line": (
        lambda asked: asked.streams(b"data: " + b"x" * 5000),
        "more than 4096 bytes",
    ),
    "too long an event": (
        lambda asked: asked.streams(*[b"data: " + b"x" * 1000 + b"\n"] * 5),
        "more than 4096 bytes",
    ),
    "an unknown coding": (
        lambda asked: asked.says("200 OK", b"x", JSON, "Content-Encoding: secret"),
        "secret",
    ),
    "a result of another kind": (
        lambda asked: asked.gives({"resultType": "complete", "content": 7}),
        "cannot be read",
    ),
}


@pytest.mark.parametrize("revision", [R4, R5])
@pytest.mark.parametrize("why", UNREADABLE)
@both_loops
async def test_answers_that_cannot_be_read(why: str, revision: str) -> None:
    """They are errors that show what came, without its control characters; the client goes on after
    them (`X-14`).
    """
    say_it, words = UNREADABLE[why]
    async with talking(revision, limit=4096) as (server, client):
        doing = begun(client.call_tool("act"))
        asked = await server.next("tools/call")
        await say_it(asked)
        with pytest.raises((ProtocolError, Unreachable), match=words) as caught:
            await doing
        assert str(caught.value).isprintable()
        asked.over.set()
        again = begun(client.call_tool("act"))
        await (await server.next("tools/call")).gives(result())
        assert (await again).text == "done"


@pytest.mark.parametrize(
    "status",
    ["200 OK", "400 Bad Request", "404 Not Found", "500 Internal Server Error", "418 I'm a teapot"],
)
@pytest.mark.parametrize("id", ["its own", None, "absent"])
async def test_errors_whatever_their_status(status: str, id: str | None) -> None:
    """A JSON-RPC error in the body counts, whatever the status; its id may be null or missing where
    the status says no (`X-14`).
    """
    async with talking(R5) as (server, client):
        doing = begun(client.call_tool("act"))
        asked = await server.next("tools/call")
        member = {"its own": f',"id":{asked.id}', None: ',"id":null', "absent": ""}[id]
        await asked.says(
            status,
            b'{"jsonrpc":"2.0"%b,"error":{"code":-32050,"message":"No","data":[1]}}'
            % member.encode(),
            JSON,
        )
        with pytest.raises((McpError, ProtocolError)) as caught:
            await doing
        if isinstance(caught.value, McpError):
            assert (caught.value.code, caught.value.message, caught.value.data) == (
                -32050,
                "No",
                [1],
            )
        else:
            assert (status, id) in (("200 OK", None), ("200 OK", "absent"))
            assert "No" in str(caught.value)


@both_loops
async def test_an_error_on_a_stream() -> None:
    """Once a stream has begun an error is an event like a result (`HTM-24`)."""
    async with talking(R5) as (server, client):
        doing = begun(client.call_tool("act"))
        asked = await server.next("tools/call")
        await asked.streams()
        await asked.ends(
            event(
                {"jsonrpc": "2.0", "id": asked.id, "error": {"code": -32603, "message": "broken"}}
            )
        )
        with pytest.raises(McpError, match="broken"):
            await doing


# -- streams that break: the handshake era takes them up again -------------------------------------


def story(asked: Asked) -> list[tuple[str | None, bytes]]:
    """The events of a call with their ids: priming, two reports, an event without an id, the
    answer.
    """
    return [
        ("a-0", event(id="a-0", retry=70)),
        ("a-1", event(progress(asked, 1), id="a-1")),
        (None, b"event: ping\ndata: x\n\n"),
        ("a-2", event(progress(asked, 2), id="a-2")),
        ("a-3", event(asked.response(result("whole")), id="a-3")),
    ]


@pytest.mark.parametrize("gracefully", [False, True], ids=["broken", "ended"])
@pytest.mark.parametrize("revision", HANDSHAKES[1:])
async def test_a_stream_that_breaks_at_any_byte(revision: str, gracefully: bool) -> None:
    """From the first id on the rest is asked for by the last id that was whole; nothing is lost or
    heard twice (`HTL-18`, `HTL-19`, `HTL-34`, `CFQ-08`).
    """
    waits = Waits()
    async with talking(revision, sleep=waits) as (server, client):
        whole = 0
        cut = 0
        while not whole or cut < whole:
            received: list[float] = []
            waits.asked.clear()
            doing = begun(
                client.call_tool(
                    "act", on_progress=lambda p, received=received: received.append(p.progress)
                )
            )
            asked = await server.next("tools/call")
            events = story(asked)
            stream = b"".join(data for _, data in events)
            whole = len(stream) - 1
            del server.on["GET"]
            await asked.streams(stream[:cut])
            await (asked.ends() if gracefully else asked.breaks())
            primed = len(events[0][1])
            if cut < primed:
                with pytest.raises(ConnectionLost):
                    await doing
            else:
                back = await server.next("GET")
                last = back.header("last-event-id")
                assert (back.header("accept"), back.header("mcp-session-id")) == (
                    "text/event-stream",
                    "session-1",
                )
                place = [id for id, _ in events].index(last)
                assert sum(len(data) for _, data in events[: place + 1]) <= cut
                following = next(n for n in range(place + 1, 5) if events[n][0] is not None)
                assert sum(len(data) for _, data in events[: following + 1]) > cut
                await back.streams()
                await back.ends(*(data for _, data in events[place + 1 :]))
                assert (await doing).text == "whole"
                assert received == [1, 2]
                assert waits.asked == [0.07]  # as the server asked (`HTL-17`)
            server.on["GET"] = lambda asked: asked.says("405 Method Not Allowed")
            cut += 1


@both_loops
async def test_a_stream_that_is_given_piece_by_piece() -> None:
    """The server lets the client go after each event; each time it comes back for the rest
    (`HTL-18`, `HTL-19`).
    """
    waits = Waits()
    async with talking(R4, sleep=waits) as (server, client):
        del server.on["GET"]
        received: list[float] = []
        doing = begun(client.call_tool("act", on_progress=lambda p: received.append(p.progress)))
        asked = await server.next("tools/call")
        await asked.streams()
        await asked.ends(event(id="0", retry=20))
        for number in range(1, 10):
            back = await server.next("GET")
            assert back.header("last-event-id") == str(number - 1)
            await back.streams()
            await back.ends(event(progress(asked, number), id=str(number)))
        last = await server.next("GET")
        await last.streams(event(asked.response(result()), id="10"))
        assert (await doing).text == "done"
        await last.hung_up()  # though the server left it open
        assert received == list(range(1, 10))
        assert waits.asked == [0.02] * 10


@both_loops
async def test_a_stream_that_breaks_between_two_questions() -> None:
    """The second question comes on the stream that was taken up again; each is answered by a POST,
    by the asker of the call (`HTL-34`).
    """
    names = iter(("Ann", "Bob"))

    def elicit(params: Any) -> Any:
        return {"name": f"{next(names)} to {params.message}"}

    def question(id: str) -> dict[str, Any]:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        return {
            "jsonrpc": "2.0",
            "id": id,
            "method": "elicitation/create",
            "params": {"message": id, "requestedSchema": schema},
        }

    async with talking(R4, elicit=elicit) as (server, client):
        del server.on["GET"]
        listening = (
            await server.next("GET") if server.count("GET") == 0 else None
        )  # the session's own stream was refused at its opening
        assert listening is None
        doing = begun(client.call_tool("act"))
        asked = await server.next("tools/call")
        await asked.streams(event(question("q1"), id="1"))
        first = await server.next("response")
        assert (first.body["id"], first.body["result"]) == (
            "q1",
            {"action": "accept", "content": {"name": "Ann to q1"}},
        )
        assert first.header("mcp-session-id") == "session-1"
        await first.taken()
        await asked.breaks(b"2000\r\ndata: half an ev")
        back = await server.next("GET")
        assert back.header("last-event-id") == "1"
        await back.streams(event(question("q2"), id="2"))
        second = await server.next("response")
        assert (second.body["id"], second.body["result"]["content"]) == (
            "q2",
            {"name": "Bob to q2"},
        )
        await back.breaks()
        await second.taken()
        rest = await server.next("GET")
        assert rest.header("last-event-id") == "2"
        await rest.streams()
        await rest.ends(event(asked.response(result("both"))))
        assert (await doing).text == "both"


@both_loops
async def test_answers_need_no_connection_that_a_call_holds() -> None:
    """As many calls as there may be connections ask at once: their answers go out all the same, and
    so does a cancellation.
    """
    async with talking(R4, elicit=lambda params: {}, most_connections=2) as (server, client):
        calls = [begun(client.call_tool("act")) for _ in range(3)]
        held = [await server.next("tools/call") for _ in range(2)]
        params = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
        for number, asked in enumerate(held):
            await asked.streams(
                event(
                    {
                        "jsonrpc": "2.0",
                        "id": f"q{number}",
                        "method": "elicitation/create",
                        "params": params,
                    }
                )
            )
            answer = await server.next("response")
            assert answer.body["id"] == f"q{number}"
            await answer.taken()
        assert server.count("tools/call") == 2  # the third waits for one of the two
        calls[0].cancel()
        cancelled = await server.next("notifications/cancelled")
        await cancelled.taken()
        await held[0].hung_up()
        await held[1].ends(event(held[1].response(result())))
        await (await server.next("tools/call")).gives(result())
        await asyncio.gather(*calls[1:])


@both_loops
async def test_watching_takes_no_connection_from_calls() -> None:
    """More subscriptions than there may be connections: calls are made beside them."""
    async with talking(R5, most_connections=1) as (server, client):
        watches = [client.watch(tools=True) for _ in range(3)]
        streams = []
        for watch in watches:
            entering = begun(watch.__aenter__())
            stream = await server.next("subscriptions/listen")
            about = {"io.modelcontextprotocol/subscriptionId": stream.id}
            params = {"notifications": stream.params["notifications"], "_meta": about}
            await stream.streams(
                event(
                    {
                        "jsonrpc": "2.0",
                        "method": "notifications/subscriptions/acknowledged",
                        "params": params,
                    }
                )
            )
            await entering
            streams.append(stream)
        doing = begun(client.call_tool("act"))
        await (await server.next("tools/call")).gives(result())
        assert (await doing).text == "done"
        for watch, stream in zip(watches, streams, strict=True):
            await watch.__aexit__(None, None, None)
            await stream.hung_up()


@both_loops
async def test_an_answer_that_is_lost_is_posted_again() -> None:
    """The connection breaks under the POST of an answer: it is sent again, for else the call would
    wait for ever.
    """
    async with talking(R4, elicit=lambda params: {}) as (server, client):
        doing = begun(client.call_tool("act"))
        asked = await server.next("tools/call")
        params = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
        await asked.streams(
            event({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params})
        )
        lost = await server.next("response")
        await lost.breaks()
        again = await server.next("response")
        assert again.body == lost.body
        await again.taken()
        await asked.ends(event(asked.response(result())))
        assert (await doing).text == "done"


@both_loops
async def test_an_answer_that_the_server_cannot_take_now_is_posted_again() -> None:
    """Status 503, several times, as while the server's store is away."""
    waits = Waits()
    async with talking(R4, sleep=waits, elicit=lambda params: {}) as (server, client):
        doing = begun(client.call_tool("act"))
        asked = await server.next("tools/call")
        params = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
        await asked.streams(
            event({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params})
        )
        for _ in range(6):
            await (await server.next("response")).says("503 Service Unavailable")
        await (await server.next("response")).taken()
        await asked.ends(event(asked.response(result())))
        assert (await doing).text == "done"
        assert sum(waits.asked) > 10  # seconds: a store may be away for that long


REFUSED: dict[str, Any] = {
    "404": lambda asked: asked.says("404 Not Found"),
    "405": lambda asked: asked.says("405 Method Not Allowed"),
    "400": lambda asked: asked.fails(-32000, "Unknown event", status="400 Bad Request"),
    "JSON": lambda asked: asked.says("200 OK", b"{}", JSON),
    "a page": lambda asked: asked.says("200 OK", b"<html>", "Content-Type: text/html"),
    "another origin": lambda asked: asked.says(
        "307 Over there", b"", "Location: http://127.0.0.2/"
    ),
}


@pytest.mark.parametrize("why", REFUSED)
@both_loops
async def test_the_rest_of_a_stream_is_refused(why: str) -> None:
    """The call is lost, said at once, and not made again: nobody knows what it did (`HTM-18`,
    `X-08`).
    """
    async with talking(R4) as (server, client):
        del server.on["GET"]
        doing = begun(client.call_tool("act"))
        asked = await server.next("tools/call")
        await asked.streams(event(id="1"))
        await asked.breaks()
        await REFUSED[why](await server.next("GET"))
        with pytest.raises(ConnectionLost, match="broke before the answer to tools/call had come"):
            await doing
        assert server.count("tools/call") == 1


@both_loops
async def test_a_server_that_is_away_for_a_while() -> None:
    """It is asked again, after longer and longer waits; then the call goes on where it was
    (`HTL-34`).
    """
    waits = Waits()
    async with talking(R4, sleep=waits) as (server, client):
        del server.on["GET"]
        doing = begun(client.call_tool("act"))
        asked = await server.next("tools/call")
        await asked.streams(event(id="1"))
        await asked.breaks()
        await (await server.next("GET")).breaks(b"HTTP/1.1 2")
        await (await server.next("GET")).says("503 Service Unavailable")
        await (await server.next("GET")).says("429 Too Many Requests")
        back = await server.next("GET")
        assert back.header("last-event-id") == "1"
        await back.streams()
        await back.ends(event(asked.response(result("after all"))))
        assert (await doing).text == "after all"
        first, second, third, fourth = waits.asked
        assert first == second == 0.5
        assert 0.75 <= third <= 1.25
        assert 1.5 <= fourth <= 2.5


@both_loops
async def test_a_server_that_is_away_for_good() -> None:
    """After some tries in a row the call is lost."""
    waits = Waits()
    async with talking(R4, sleep=waits) as (server, client):
        server.on["GET"] = lambda asked: asked.breaks()
        doing = begun(client.call_tool("act"))
        asked = await server.next("tools/call")
        await asked.streams(event(id="1", retry=3_000))
        await asked.breaks()
        with pytest.raises(ConnectionLost, match="cannot be made again"):
            await doing
        mine = [wait for wait in waits.asked if wait >= 3]
        assert mine[0] == 3.0
        assert len(mine) == 6
        assert max(mine) <= 20


@pytest.mark.parametrize(
    "id", ["ü-1", "x" * 8192, "a b", '{"a": 1}'], ids=["UTF-8", "long", "space", "JSON"]
)
@both_loops
async def test_odd_event_ids(id: str) -> None:
    """They come back byte by byte as they were (`HTL-18`)."""
    async with talking(R4) as (server, client):
        del server.on["GET"]
        doing = begun(client.call_tool("act"))
        asked = await server.next("tools/call")
        await asked.streams(event(id=id))
        await asked.breaks()
        back = await server.next("GET")
        assert (back.header("last-event-id") or "").encode("latin-1").decode() == id
        await back.streams()
        await back.ends(event(asked.response(result())))
        assert (await doing).text == "done"


@pytest.mark.parametrize(
    "id", ["", "a\x01b", "x" * 8193, "\x7f"], ids=["empty", "control", "endless", "delete"]
)
@both_loops
async def test_event_ids_that_lead_nowhere(id: str) -> None:
    """An empty id takes the last one back; one that no header can hold cannot be used either: the
    call is lost.
    """
    async with talking(R4) as (server, client):
        doing = begun(client.call_tool("act"))
        asked = await server.next("tools/call")
        await asked.streams(event(id="1"), event(id=id))
        await asked.breaks()
        with pytest.raises(ConnectionLost):
            await doing
        assert server.count("GET") == 1  # the one at the opening


# -- streams that break: what is safe is done again ------------------------------------------------

READING: dict[str, Any] = {
    "tools/list": (lambda client: client.list_tools(), lambda asked: listed()),
    "resources/list": (lambda client: client.list_resources(), lambda asked: listed(resources=[])),
    "resources/templates/list": (
        lambda client: client.list_resource_templates(),
        lambda asked: listed(resourceTemplates=[]),
    ),
    "prompts/list": (lambda client: client.list_prompts(), lambda asked: listed(prompts=[])),
    "resources/read": (
        lambda client: client.read_resource("note://a"),
        lambda asked: listed(contents=[]),
    ),
    "prompts/get": (lambda client: client.get_prompt("a"), lambda asked: listed(messages=[])),
    "completion/complete": (
        lambda client: client.complete("a", "b"),
        lambda asked: listed(completion={"values": []}),
    ),
}
BREAKS: dict[str, Any] = {
    "before its answer": lambda asked: asked.breaks(),
    "in JSON": lambda asked: asked.breaks(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
    ),
    "on a stream": lambda asked: asked.breaks(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: "
        b"chunked\r\n\r\n4\r\n:\n\n\n"
    ),
    "in good order": lambda asked: asked.says("200 OK", b": nothing came of it\n\n", EVENTS),
}


@pytest.mark.parametrize("how", BREAKS)
@pytest.mark.parametrize("method", READING)
async def test_what_only_reads_is_done_again(method: str, how: str) -> None:
    """With an id of its own, after a wait (`HTM-18`, `X-08`)."""
    start, answer = READING[method]
    waits = Waits()
    async with talking(R5, sleep=waits) as (server, client):
        doing = begun(start(client))
        first = await server.next(method)
        await BREAKS[how](first)
        second = await server.next(method)
        assert second.id != first.id
        assert {**second.params, "_meta": 0} == {**first.params, "_meta": 0}
        await second.gives(answer(second))
        await doing
        (wait,) = waits.asked
        assert 0.375 <= wait <= 0.625


@pytest.mark.parametrize("revision", [R4, R5])
@pytest.mark.parametrize("how", BREAKS)
@both_loops
async def test_a_tool_that_may_have_done_something_is_not_called_again(
    revision: str, how: str
) -> None:
    """The server has seen one call, and the caller is told that nobody knows what came of it
    (`HTM-18`, `X-08`).
    """
    async with talking(revision) as (server, client):
        listing = begun(client.list_tools())
        await (await server.next("tools/list")).gives(
            listed(tool("act"), tool("other", readOnlyHint=True))
        )
        await listing
        doing = begun(client.call_tool("act"))
        await BREAKS[how](await server.next("tools/call"))
        with pytest.raises(ConnectionLost, match="broke before the answer to tools/call had come"):
            await doing
        assert server.count("tools/call") == 1


@pytest.mark.parametrize("revision", [R4, R5])
@pytest.mark.parametrize(
    "hints, again",
    [
        ({"readOnlyHint": True}, True),
        ({"idempotentHint": True}, True),
        ({"destructiveHint": False}, False),
        ({"readOnlyHint": False}, False),
    ],
)
async def test_tools_that_say_of_themselves_that_they_may(
    revision: str, hints: dict[str, bool], again: bool
) -> None:
    """Known from the list to read only, or to do the same when called twice: called again, three
    times in all (`HTM-18`, `X-08`).
    """
    async with talking(revision) as (server, client):
        listing = begun(client.list_tools())
        await (await server.next("tools/list")).gives(listed(tool("act", **hints)))
        await listing
        doing = begun(client.call_tool("act"))
        for _ in range(3 if again else 1):
            await (await server.next("tools/call")).breaks()
        with pytest.raises(ConnectionLost):
            await doing
        assert server.count("tools/call") == (3 if again else 1)


async def test_a_tool_that_is_no_longer_safe() -> None:
    """The newest list counts."""
    async with talking(R5) as (server, client):
        for hint in (True, False):
            listing = begun(client.list_tools())
            await (await server.next("tools/list")).gives(listed(tool("act", readOnlyHint=hint)))
            await listing
        doing = begun(client.call_tool("act"))
        await (await server.next("tools/call")).breaks()
        with pytest.raises(ConnectionLost):
            await doing
        assert server.count("tools/call") == 1


@both_loops
async def test_nothing_is_repeated_where_that_is_not_wanted() -> None:
    """`repeat=False`: one request, and the loss is told."""
    async with talking(R5, repeat=False) as (server, client):
        doing = begun(client.list_tools())
        await (await server.next("tools/list")).breaks()
        with pytest.raises(ConnectionLost):
            await doing
        assert server.count("tools/list") == 1


@both_loops
async def test_no_stateless_stream_is_taken_up_again() -> None:
    """Event ids mean nothing there: no GET and no Last-Event-ID, even where the server gives ids
    (`HTM-17`, `HTM-18`).
    """
    async with talking(R5) as (server, client):
        doing = begun(client.list_tools())
        first = await server.next("tools/list")
        await first.streams(event(id="1"))
        await first.breaks()
        second = await server.next("tools/list")
        assert second.header("last-event-id") is None
        await second.gives(listed())
        assert await doing == []
        assert server.count("GET") == 0


@pytest.mark.parametrize("revision", REVISIONS)
async def test_streams_that_hold_no_message_are_passed_over_with_a_word(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What is no message is logged, cut short, and the answer after it still counts."""
    async with talking(revision) as (server, client):
        with caplog.at_level(logging.WARNING, "interlock.client"):
            doing = begun(client.call_tool("act"))
            asked = await server.next("tools/call")
            await asked.streams(b"data: " + b"x" * 5000 + b"\n\n")
            await asked.ends(event(asked.response(result())))
            assert (await doing).text == "done"
    (line,) = [record.getMessage() for record in caplog.records]
    assert len(line) < 400
