"""How a client over HTTP finds out which era a server is of, and what it says where there is
none.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from interlock import ClientSettings, McpError, ProtocolError, TimedOut, Unreachable
from tests.transport.http_peers import both_loops
from tests.transport.scripted_server import (
    ALL,
    INFO,
    JSON,
    R1,
    R3,
    R4,
    R5,
    REVISIONS,
    Asked,
    begun,
    client_of,
    event,
    scripted,
)

Say = Callable[[Asked], Awaitable[None]]


@both_loops
async def test_a_server_of_the_stateless_era_is_discovered() -> None:
    """One `server/discover`, and nothing else: no `initialize`, no session, no GET (`ERA-05`,
    `ERA-09`).
    """
    async with scripted() as server:
        async with client_of(server.url) as client:
            assert client.revision == R5
            assert client.server_info is not None
            assert client.server_info.name == "scripted"
        assert server.keys() == ["server/discover"]


@pytest.mark.parametrize("revision", REVISIONS)
@both_loops
async def test_the_answers_of_an_opening_may_be_streams(revision: str) -> None:
    """Whatever it is that opens, with the session's id in the head of the stream (`HTL-08`,
    `HTL-37`, `HTM-07`).
    """
    async with scripted() as server:

        async def discovered(asked: Asked) -> None:
            told = {
                "resultType": "complete",
                "supportedVersions": [R5],
                "capabilities": {},
                "ttlMs": 0,
                "cacheScope": "private",
            }
            await asked.streams()
            await asked.ends(event(asked.response(told)))

        async def greeted(asked: Asked) -> None:
            told = {
                "protocolVersion": asked.params["protocolVersion"],
                "capabilities": ALL,
                "serverInfo": INFO,
            }
            await asked.streams(headers=("mcp-session-id: streamed",))
            await asked.ends(event(id="0"), event(asked.response(told), id="1"))

        server.on.update({"server/discover": discovered, "initialize": greeted})
        async with client_of(server.url, revision) as client:
            assert client.revision == revision
        assert [asked.header("mcp-session-id") for asked in server.all[1:]] == ["streamed"] * (
            0 if revision == R5 else 3
        )


STRANGE: dict[str, Say] = {
    "400 without a body": lambda asked: asked.says("400 Bad Request"),
    "400 with words": lambda asked: asked.says(
        "400 Bad Request", b"Bad Request: no session", "Content-Type: text/plain"
    ),
    "400 with an older error": lambda asked: asked.fails(
        -32000, "Bad Request: Server not initialized", status="400 Bad Request"
    ),
    "404 without a body": lambda asked: asked.says("404 Not Found"),
    "404 with method not found": lambda asked: asked.fails(
        -32601, "Method not found", status="404 Not Found"
    ),
    "405": lambda asked: asked.says("405 Method Not Allowed", b"", "Allow: GET"),
    "406": lambda asked: asked.says("406 Not Acceptable"),
    "422 of a framework": lambda asked: asked.says(
        "422 Unprocessable Content", b'{"detail":"no"}', JSON
    ),
    "200 with method not found": lambda asked: asked.fails(-32601, "Method not found"),
    "200 with another error": lambda asked: asked.fails(-32602, "Invalid request parameters"),
    "200 with a result of another kind": lambda asked: asked.gives({"nothing": "known"}),
    "200 with what is no JSON-RPC": lambda asked: asked.says("200 OK", b"{}", JSON),
    "200 with a page": lambda asked: asked.says(
        "200 OK", b"<html>Hello</html>", "Content-Type: text/html"
    ),
    "202": lambda asked: asked.taken(),
}


@pytest.mark.parametrize("name", STRANGE)
@both_loops
async def test_whoever_does_not_know_discover_is_greeted(name: str) -> None:
    """Any answer that is none of the stateless era leads to `initialize` (`ERA-07`, `ERA-10`)."""
    async with scripted() as server:
        server.on["server/discover"] = STRANGE[name]
        async with client_of(server.url, listen=False) as client:
            assert client.revision == R4
        assert server.keys() == [
            "server/discover",
            "initialize",
            "notifications/initialized",
            "DELETE",
        ]


@both_loops
async def test_a_silent_server_is_greeted_too() -> None:
    """The probe is given up after its time, its connection with it, and `initialize` is sent
    (`ERA-07`).
    """
    async with scripted() as server:
        server.on["server/discover"] = Asked.hung_up
        async with client_of(
            server.url, settings=ClientSettings(probe_timeout=0.01), listen=False
        ) as client:
            assert client.revision == R4


ILL: dict[str, tuple[Say, str]] = {
    "401": (
        lambda asked: asked.says("401 Unauthorized", b"", "WWW-Authenticate: Bearer"),
        "401.*token",
    ),
    "401 with a JSON-RPC error": (
        lambda asked: asked.fails(-32001, "Who are you?", status="401 Unauthorized"),
        "401: Who are you.*token",
    ),
    "403": (lambda asked: asked.says("403 Forbidden"), "403.*token right"),
    "403 with a JSON-RPC error": (
        lambda asked: asked.fails(-32000, "Bad origin", status="403 Forbidden"),
        "403: Bad origin.*address",
    ),
    "429": (
        lambda asked: asked.says("429 Too Many Requests", b"", "Retry-After: 7"),
        "429.*try again later.*wait 7 seconds",
    ),
    "500": (lambda asked: asked.says("500 Internal Server Error"), "500.*its log"),
    "500 with a JSON-RPC error": (
        lambda asked: asked.fails(-32603, "It burns", status="500 Internal Server Error"),
        "500: It burns.*log",
    ),
    "502 of a proxy": (
        lambda asked: asked.says("502 Bad Gateway", b"<html>\n<h1>Bad Gateway</h1>\n</html>"),
        "502: <html> <h1>Bad Gateway</h1>",
    ),
    "503": (lambda asked: asked.says("503 Service Unavailable", b"starting"), "503: starting"),
    "a broken connection": (
        lambda asked: asked.breaks(),
        "before the answer to server/discover had come",
    ),
    "what is no HTTP": (lambda asked: asked.breaks(b"SSH-2.0-OpenSSH_9\r\n"), "not HTTP/1.1"),
}


@pytest.mark.parametrize("name", ILL)
@both_loops
async def test_an_ill_server_is_no_verdict(name: str) -> None:
    """Refusals that say nothing of the era are told, and nothing else is tried (`ERA-15`)."""
    say, words = ILL[name]
    async with scripted() as server:
        server.on["server/discover"] = say
        with pytest.raises(Unreachable, match=words) as caught:
            await client_of(server.url).open()
        assert server.keys() == ["server/discover"]
        assert caught.value.status == (int(name[:3]) if name[0].isdigit() else None)


async def test_nobody_listens() -> None:
    """A refused connection is an error with advice, and no verdict (`ERA-15`)."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/mcp"
        with pytest.raises(
            Unreachable, match="refused. Check that the server is running, and check the port"
        ):
            await client_of(url).open()


def unsupported(*supported: str) -> Say:
    """The error that names the revisions a server has."""
    return lambda asked: asked.fails(
        -32022, "Unsupported protocol version", {"supported": list(supported)}, "400 Bad Request"
    )


@both_loops
async def test_an_older_revision_that_is_named_is_greeted() -> None:
    """-32022 without a common stateless revision, but with one of the handshake era (`ERA-06`)."""
    async with scripted() as server:
        server.on["server/discover"] = unsupported(R3)
        server.on["initialize"] = lambda asked: asked.gives(
            {"protocolVersion": R3, "capabilities": ALL, "serverInfo": INFO}
        )
        async with client_of(server.url, listen=False) as client:
            assert client.revision == R3


@both_loops
async def test_nothing_in_common() -> None:
    """-32022 with nothing that both know: an error that names what the server has; it is not
    greeted (`ERA-06`, `ERA-19`).
    """
    async with scripted() as server:
        server.on["server/discover"] = unsupported("2031-01-01")
        with pytest.raises(ProtocolError, match="2031-01-01"):
            await client_of(server.url).open()
        assert server.keys() == ["server/discover"]


@both_loops
async def test_a_server_that_changes_its_mind() -> None:
    """-32022 that names the very revision that was asked for: it is asked again with that
    (`ERA-06`).
    """
    async with scripted() as server:
        first = unsupported(R5)

        async def say(asked: Asked) -> None:
            await (
                first(asked)
                if server.count("server/discover") == 1
                else server.is_discovered(asked)
            )

        server.on["server/discover"] = say
        async with client_of(server.url) as client:
            assert client.revision == R5
        assert server.keys() == ["server/discover", "server/discover"]


@both_loops
async def test_a_client_of_the_newest_revision_only() -> None:
    """It greets nobody; what it says can be acted on (`ERA-08`, `ERA-19`)."""
    async with scripted() as server:
        server.on["server/discover"] = STRANGE["404 without a body"]
        with pytest.raises(
            ProtocolError, match=f"does not speak {R5}, and an older revision was not allowed"
        ):
            await client_of(server.url, R5).open()
        assert server.keys() == ["server/discover"]


@both_loops
async def test_what_was_found_is_remembered() -> None:
    """Opened again, a client greets the server that it greeted before at once (`ERA-13`)."""
    async with scripted() as server:
        server.on["server/discover"] = STRANGE["400 without a body"]
        client = client_of(server.url, listen=False)
        for _ in range(2):
            async with client:
                assert client.revision == R4
        assert server.count("server/discover") == 1
        assert server.count("initialize") == 2


@both_loops
async def test_a_server_refuses_to_be_greeted() -> None:
    """A JSON-RPC error to `initialize` is raised as it is."""
    async with scripted() as server:
        server.on["initialize"] = lambda asked: asked.fails(-32602, "No, thanks")
        with pytest.raises(McpError, match="No, thanks"):
            await client_of(server.url, R4).open()


@both_loops
async def test_a_server_that_never_answers_initialize() -> None:
    """The wait for `initialize` has an end."""
    async with scripted() as server:
        server.on["initialize"] = Asked.hung_up
        with pytest.raises(TimedOut, match="initialize"):
            await client_of(server.url, R4, timeout=0.02).open()


@both_loops
async def test_the_notification_that_opens_must_arrive() -> None:
    """A server that refuses `notifications/initialized` is not open, and its session is ended."""
    async with scripted() as server:
        server.on["notifications/initialized"] = lambda asked: asked.says(
            "500 Internal Server Error", b"no"
        )
        with pytest.raises(Unreachable, match="500: no"):
            await client_of(server.url, R4).open()
        assert server.keys()[-1] == "DELETE"


# -- servers of 2024-11-05 that have nothing else --------------------------------------------------


def only_sse(server: Any, status: str) -> None:
    """Make a scripted server refuse every POST to its first address."""
    for method in ("server/discover", "initialize"):
        server.on[method] = lambda asked: asked.says(status)


@pytest.mark.parametrize(
    "status",
    ["400 Bad Request", "404 Not Found", "405 Method Not Allowed", "415 Unsupported Media Type"],
)
@both_loops
async def test_a_server_that_takes_no_posts_is_listened_to(status: str) -> None:
    """Both POSTs are refused: a GET is made, and its first event says where to post to (`ERA-11`,
    `ERA-12`).
    """
    async with scripted() as server:

        async def stream(asked: Asked) -> None:
            assert asked.header("accept") == "text/event-stream"
            await asked.streams(b"event: endpoint\ndata: /messages?session=1\n\n")
            initialize = await server.next("initialize")
            assert initialize.path == "/messages?session=1"
            await initialize.taken()
            told = {"protocolVersion": R1, "capabilities": ALL, "serverInfo": INFO}
            await asked.sends(b"event: message\n" + event(initialize.response(told)))
            await asked.hung_up()

        async def refuse_or_wait(asked: Asked) -> None:
            if asked.path == "/mcp":
                await asked.says(status)
            else:
                server._waiting.put_nowait(asked)
                await asked.over.wait()

        only_sse(server, status)
        server.on["initialize"] = refuse_or_wait
        server.on["GET"] = stream
        async with client_of(server.url) as client:
            assert client.revision == R1
        assert server.keys()[:4] == ["server/discover", "initialize", "GET", "initialize"]


@both_loops
async def test_an_address_where_nothing_is() -> None:
    """404 to all three ways of asking: the first answer's words, and advice (`ERA-12`)."""
    async with scripted() as server:
        only_sse(server, "404 Not Found")
        server.on["GET"] = lambda asked: asked.says("404 Not Found")
        with pytest.raises(
            Unreachable, match="404. Is this the address of the server's MCP endpoint"
        ) as caught:
            await client_of(server.url).open()
        assert caught.value.status == 404
        assert server.keys() == ["server/discover", "initialize", "GET"]


@pytest.mark.parametrize("how", ["refused", "silent", "not asked for"])
@both_loops
async def test_a_server_that_refuses_to_be_greeted_with_400(how: str) -> None:
    """Its error may be that of a server with two endpoints, so a GET is made; where that leads
    nowhere, soon, the error counts (`ERA-12`).
    """
    async with scripted() as server:
        server.on["initialize"] = lambda asked: asked.fails(
            -32600, "Not like this", status="400 Bad Request"
        )
        if how == "silent":
            del server.on["GET"]
        opening = begun(
            client_of(
                server.url,
                R4,
                settings=ClientSettings(probe_timeout=0.3),
                legacy_sse=False if how == "not asked for" else None,
            ).open()
        )
        if how == "silent":
            stream = await server.next("GET")
            await stream.streams(b":\n\n")
        with pytest.raises(McpError, match="Not like this"):
            await opening
        if how == "silent":
            await stream.hung_up()
        assert server.keys() == ["initialize"] + ["GET"] * (how != "not asked for")


@both_loops
async def test_the_older_transport_can_be_ruled_out() -> None:
    """`legacy_sse=False` makes no GET; neither does a client that allows only the newest
    revision.
    """
    async with scripted() as server:
        only_sse(server, "405 Method Not Allowed")
        with pytest.raises(Unreachable, match="405"):
            await client_of(server.url, legacy_sse=False).open()
        with pytest.raises(ProtocolError):
            await client_of(server.url, R5).open()
        assert server.count("GET") == 0


async def test_the_older_transport_has_no_newest_revision() -> None:
    """Only the newest revision over a transport that it never had: an error in words."""
    with pytest.raises(ProtocolError, match="older than"):
        await client_of("http://127.0.0.1:1/sse", R5, legacy_sse=True).open()


@pytest.mark.parametrize("revision", REVISIONS)
async def test_opening_can_be_given_up(revision: str) -> None:
    """Cancelled while it waits, a client leaves nothing behind."""
    async with scripted() as server:
        server.on.clear()
        opening = asyncio.create_task(client_of(server.url, revision).open())
        waiting = await server.next()
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await waiting.hung_up()
