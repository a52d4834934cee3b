"""The roads to a server: redirects, authorities of one's own, proxies, tokens, configuration
entries; and the promises of every transport.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from interlock import Client, Http, McpError, Server, Unreachable
from interlock.http11.fetch import ConnectionLost, Request, Response
from interlock.http11.proxies import Proxies
from interlock.server.run.http import serve_web
from interlock.testing import check_client_transport, probe_server
from tests.transport.certificates import Authority
from tests.transport.http_peers import both_loops, serving
from tests.transport.scripted_server import (
    R3,
    R4,
    R5,
    Asked,
    ScriptedServer,
    begun,
    client_of,
    result,
    scripted,
    talking,
)

# -- redirects -------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize(
    "where",
    ["/elsewhere/mcp", "elsewhere", "//{host}/x", "http://{host}/x", "HTTP://{host}/x?y=1", "?z"],
)
@both_loops
async def test_redirects_within_the_origin_are_followed(status: int, where: str) -> None:
    """With the same method, body and headers; for good where the server says that it is for
    good.
    """
    async with scripted() as server:

        async def moved(asked: Asked) -> None:
            await asked.says(
                f"{status} Moved", b"", f"Location: {where.format(host=f'127.0.0.1:{server.port}')}"
            )

        async def discovered(asked: Asked) -> None:
            await (moved(asked) if asked.path == "/mcp" else server.is_discovered(asked))

        server.on["server/discover"] = discovered
        async with client_of(server.url, token="t0k") as client:
            first, second = server.all
            assert second.body == first.body
            assert second.seen.headers == first.seen.headers
            doing = begun(client.call_tool("act"))
            call = await server.next("tools/call")
            assert (call.path == "/mcp") == (status in (302, 307))
            assert call.header("authorization") == "Bearer t0k"
            await call.gives(result())
            await doing


AWAY = [
    "http://127.0.0.2:{port}/mcp", "http://127.0.0.1:1/mcp", "https://127.0.0.1:{port}/mcp",
    "//evil.example/mcp", "http://127.0.0.1.evil.example/",
    "http://127.0.0.1:{port}@evil.example/", "http://me:pass@127.0.0.1:{port}/",
    "file:///etc/passwd", "http://[::1/", "http://127.0.0.1:99999/", "/a b",
    "javascript:alert(1)",
]  # fmt: skip


@pytest.mark.parametrize("where", AWAY)
@both_loops
async def test_redirects_to_other_places_are_not_followed(where: str) -> None:
    """Neither the token nor the message goes anywhere else; the error says where it would have
    gone.
    """
    async with talking(R5, token="t0k") as (server, client):
        doing = begun(client.call_tool("act"))
        asked = await server.next("tools/call")
        await asked.says("307 Over there", b"", f"Location: {where.format(port=server.port)}")
        with pytest.raises(
            Unreachable, match="which is another origin; give that address if it is meant"
        ) as caught:
            await doing
        assert caught.value.status == 307
        assert server.count("tools/call") == 1
        assert "pass" not in str(caught.value) or "passwd" in str(caught.value)


@both_loops
async def test_redirects_without_an_end() -> None:
    """Some are followed, then it is an error with a hint."""
    async with scripted() as server:
        server.on["server/discover"] = lambda asked: asked.says("307 Round", b"", "Location: /mcp")
        with pytest.raises(Unreachable, match="redirects more than 5 times"):
            await client_of(server.url).open()
        assert server.count("server/discover") == 6


@both_loops
async def test_other_answers_of_the_300s() -> None:
    """303 would make it a GET, and 304 says nothing: refusals like any other."""
    async with talking(R5) as (server, client):
        for status in ("300 Choices", "303 See Other", "304 Not Modified", "307 Nowhere"):
            doing = begun(client.call_tool("act"))
            await (await server.next("tools/call")).says(status)
            with pytest.raises(Unreachable, match=status[:3]) as caught:
                await doing
            assert caught.value.status == int(status[:3])


# -- authorities, proxies, tokens ------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """A CA of our own."""
    return Authority(tmp_path_factory.mktemp("ca"))


@both_loops
async def test_an_authority_of_ones_own(authority: Authority) -> None:
    """`Http(url, ca=...)` trusts it; without it the error says what to do; `verify=False` trusts
    anybody.
    """
    server = ScriptedServer()
    async with serving(server, authority.server("localhost"), "localhost") as peer:
        with pytest.raises(Unreachable, match="certificate that is not trusted.*ca="):
            await Client(Http(peer.url, proxies=Proxies())).open()
        for trust in ({"ca": authority.file}, {"verify": False}):
            async with Client(Http(peer.url, token="t0k", proxies=Proxies(), **trust)) as client:
                assert client.revision == R5
    assert {asked.header("authorization") for asked in server.all} == {"Bearer t0k"}


@both_loops
async def test_a_proxy_between() -> None:
    """`Http(url, proxies=...)`: the proxy gets the request in absolute form."""
    async with scripted() as proxy:
        async with Client(
            Http("http://mcp.example/mcp", proxies=Proxies(http=proxy.url), headers={"X-Own": "1"})
        ) as client:
            assert client.revision == R5
        (asked,) = proxy.all
        assert asked.path == "http://mcp.example/mcp"
        assert (asked.header("host"), asked.header("x-own")) == ("mcp.example", "1")


@both_loops
async def test_headers_and_tokens_through_the_client() -> None:
    """`Client(url, headers=..., token=...)`, and an entry of a configuration; what the caller says
    counts more.
    """
    async with scripted() as server:
        entry = {
            "type": "http",
            "url": server.url,
            "headers": {"X-Env": "entry", "X-Both": "entry"},
        }
        async with (
            Client(server.url, headers={"X-Own": "1"}, token="t0k"),
            Client({"mcpServers": {"a": entry}}, headers={"X-Both": "mine"}),
        ):
            pass
        first, second = server.all
        assert (first.header("x-own"), first.header("authorization")) == ("1", "Bearer t0k")
        assert (second.header("x-env"), second.header("x-both")) == ("entry", "mine")


@both_loops
async def test_entries_for_the_older_transport() -> None:
    """`"type": "sse"` in a configuration makes a GET at once."""
    async with scripted() as server:
        server.on.clear()
        opening = begun(Client({"type": "sse", "url": server.url}).open())
        stream = await server.next()
        assert stream.key == "GET"
        await stream.says("404 Not Found")
        with pytest.raises(Unreachable, match="404"):
            await opening


def test_options_that_do_not_fit() -> None:
    """Options of the web for what is not there, and of our HTTP client beside another."""
    with pytest.raises(TypeError, match="headers can only be given for http"):
        Client(Server("x"), headers={"a": "b"})
    with pytest.raises(TypeError, match="token can only be given"):
        Client(["program"], token="t0k")
    with pytest.raises(TypeError, match="ca and a fetch"):
        Http("http://127.0.0.1/", fetch=Canned(), ca="x")


class Canned:
    """An HTTP client of somebody's own, which answers from a list; it knows nothing of loss."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Request] = []

    async def __call__(self, request: Request) -> Response:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return CannedResponse(answer(json.loads(request.body)))

    async def aclose(self) -> None:
        raise AssertionError("a fetch that was given is not closed")


class CannedResponse:
    """A JSON answer."""

    def __init__(self, message: dict[str, Any]) -> None:
        self.status = 200
        self.headers = {"content-type": "application/json"}
        self._body = json.dumps(message).encode()

    async def read(self, limit: int) -> bytes:
        return self._body

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._body

    async def aclose(self) -> None:
        pass


async def test_an_http_client_of_ones_own() -> None:
    """It is used for everything, and left open; where it says ConnectionLost, what is safe is made
    again.
    """

    def discovered(asked: dict[str, Any]) -> dict[str, Any]:
        told = {
            "resultType": "complete",
            "supportedVersions": [R5],
            "capabilities": {},
            "ttlMs": 0,
            "cacheScope": "private",
        }
        return {"jsonrpc": "2.0", "id": asked["id"], "result": told}

    def prompts(asked: dict[str, Any]) -> dict[str, Any]:
        return {
            "jsonrpc": "2.0",
            "id": asked["id"],
            "result": {
                "resultType": "complete",
                "prompts": [],
                "ttlMs": 0,
                "cacheScope": "private",
            },
        }

    fetch = Canned(
        discovered,
        ConnectionLost("gone"),
        Unreachable("nobody there"),
        prompts,
        ConnectionLost("gone"),
    )
    async with client_of("https://mcp.example/", fetch=fetch) as client:
        assert await client.list_prompts() == []
        with pytest.raises(ConnectionLost, match="tools/call had come: gone"):
            await client.call_tool("act")
    assert [json.loads(request.body)["method"] for request in fetch.asked] == [
        "server/discover",
        *["prompts/list"] * 3,
        "tools/call",
    ]
    assert {request.url for request in fetch.asked} == {"https://mcp.example/"}


# -- the promises of every transport ---------------------------------------------------------------


@asynccontextmanager
async def roads(**options: Any) -> AsyncIterator[Callable[..., Callable[[], Awaitable[Http]]]]:
    """Transports to fresh servers of our own on free ports."""
    async with AsyncExitStack() as stack:

        def to(path: str = "/mcp", **web: Any) -> Callable[[], Awaitable[Http]]:
            async def make() -> Http:
                port = await stack.enter_async_context(_served(probe_server(), **options))
                return Http(f"http://127.0.0.1:{port}{path}", proxies=Proxies(), **web)

            return make

        yield to


@asynccontextmanager
async def _served(server: Server, **options: Any) -> AsyncIterator[int]:
    ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(
        serve_web(server, port=0, on_ready=lambda where: ready.set_result(where), **options)
    )
    try:
        await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
        where = ready.result() if ready.done() else task.result()
        yield where[1] if isinstance(where, tuple) else where
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_streamable_http_keeps_the_promises() -> None:
    """Both eras (`RPC-30`, `CAN-07`, `RPC-05`)."""
    async with roads() as to:
        await check_client_transport(to(), revisions=(R3, R4, R5))


async def test_the_older_transport_keeps_the_promises() -> None:
    """Asked for, and found out."""
    async with roads(legacy_sse=True) as to:
        await check_client_transport(to("/sse", legacy_sse=True), revisions=(R3, R4))
        await check_client_transport(to("/sse"), revisions=(R3,))


async def test_a_server_of_our_own_from_end_to_end() -> None:
    """Probe, call, question, error and end, by the face alone, with nothing but a URL."""
    server = Server("end to end")

    @server.tool
    async def double(n: int) -> int:
        """Twice as much."""
        return 2 * n

    async with _served(server) as port:
        for revision in (None, R4):
            async with Client(f"http://127.0.0.1:{port}/mcp", revision=revision) as client:
                assert client.revision == (revision or R5)
                assert (await client.call_tool("double", {"n": 21})).value() == 42
                with pytest.raises(McpError):
                    await client.call_tool("nowhere")
