"""The awaitable HTTP server: where it listens, how it begins, and how it ends, beside whatever else
a program does.
"""

from __future__ import annotations

import asyncio
import gc
import signal

import pytest

from interlock import Client, Context, HttpServer, Server, Unreachable, listening_socket
from interlock.wire.revisions import REVISIONS

EACH = pytest.mark.parametrize("revision", REVISIONS)


def shop() -> Server:
    """A server with a tool."""
    server = Server("shop")

    @server.tool
    async def price(what: str) -> int:
        return len(what)

    return server


@EACH
async def test_a_block_serves_at_a_free_port_and_says_which(revision: str) -> None:
    """Clients of each revision reach it within the block, and nobody afterwards."""
    async with asyncio.timeout(60):
        async with shop().serve_http(port=0) as http:
            assert http.port > 0
            assert http.address == ("127.0.0.1", http.port)
            url = http.url
            assert url == f"http://127.0.0.1:{http.port}/mcp"
            async with Client(url, revision=revision) as client:
                assert (await client.call_tool("price", {"what": "tea"})).text == "3"
        with pytest.raises(Unreachable):
            await Client(url, revision=revision).open()
        with pytest.raises(RuntimeError, match="does not listen"):
            _ = http.url


async def test_awaited_it_serves_until_it_is_cancelled() -> None:
    """The cancellation is the caller's own, and comes through when the server has ended in good
    order.
    """
    sock = listening_socket("127.0.0.1", 0)
    port = sock.getsockname()[1]

    async def program() -> None:
        await shop().serve_http(sock=sock)

    task = asyncio.create_task(program())
    async with asyncio.timeout(60), Client(f"http://127.0.0.1:{port}/mcp") as client:
        assert (await client.call_tool("price", {"what": "cake"})).text == "4"
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_call_that_runs_is_finished_before_the_block_ends() -> None:
    """Within its grace; the lifespan is left after it."""
    server = Server("slow")
    begun = asyncio.Event()
    may_end = asyncio.Event()

    @server.tool
    async def slow() -> str:
        begun.set()
        await may_end.wait()
        return "done"

    async with asyncio.timeout(60):
        async with server.serve_http(port=0, grace=30) as http:
            client = Client(http.url)
            await client.open()
            call = asyncio.create_task(client.call_tool("slow"))
            await begun.wait()
            asyncio.get_running_loop().call_later(0.05, may_end.set)
        assert (await call).text == "done"
        await client.aclose()


async def test_a_second_cancellation_does_not_wait_for_calls() -> None:
    """Whoever is impatient ends what runs, and the tool is cancelled."""
    server = Server("stuck")
    begun = asyncio.Event()
    cancelled = asyncio.Event()

    @server.tool
    async def stuck(ctx: Context) -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return ""

    sock = listening_socket("127.0.0.1", 0)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}/mcp"

    async def program() -> None:
        await server.serve_http(sock=sock, grace=3600)

    task = asyncio.create_task(program())
    async with asyncio.timeout(60):
        client = Client(url, timeout=None)
        await client.open()
        call = asyncio.create_task(client.call_tool("stuck"))
        await begun.wait()
        task.cancel()
        while sock.fileno() != -1:  # noqa: ASYNC110 - a socket tells nobody that it is closed
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await cancelled.wait()
        await asyncio.gather(call, return_exceptions=True)
        await client.aclose()


async def test_what_fails_at_the_start_is_raised_where_it_is_started() -> None:
    """A port that is taken, a lifespan that fails, an option that makes no sense; and nothing is
    left listening.
    """
    taken = listening_socket("127.0.0.1", 0)
    with pytest.raises(OSError, match="cannot listen on 127.0.0.1"):
        await shop().serve_http(port=taken.getsockname()[1])
    taken.close()

    def life(server: Server) -> None:  # type: ignore[misc]  # it fails before it could be one
        raise RuntimeError("no database")

    sock = listening_socket("127.0.0.1", 0)
    with pytest.raises(RuntimeError, match="no database"):
        async with Server("broken", lifespan=life).serve_http(sock=sock):  # type: ignore[arg-type]  # as above
            raise AssertionError("it does not serve")
    assert sock.fileno() == -1
    with pytest.raises(ValueError, match="a path begins with a slash"):
        await shop().serve_http(port=0, path="mcp")


async def test_an_error_in_the_block_ends_the_server_and_comes_through() -> None:
    """As in any other block."""
    urls: list[str] = []

    async def program() -> None:
        async with shop().serve_http(port=0) as http:
            urls.append(http.url)
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await program()
    with pytest.raises(Unreachable):
        await Client(urls[0]).open()


async def test_it_serves_once() -> None:
    """A second block needs a second server object; the Server itself can serve again."""
    server = shop()
    http = server.serve_http(port=0)
    assert isinstance(http, HttpServer)
    for _ in range(2):
        async with server.serve_http(port=0):
            pass
    async with http:
        pass
    with pytest.raises(RuntimeError, match="has served"):
        await http


async def test_two_servers_in_one_program() -> None:
    """Each at a port of its own, in one loop."""
    async with (
        asyncio.timeout(60),
        shop().serve_http(port=0) as one,
        shop().serve_http(port=0, path="/other") as other,
        Client(one.url) as first,
        Client(other.url) as second,
    ):
        assert other.url.endswith("/other")
        assert (await first.call_tool("price", {"what": "a"})).text == "1"
        assert (await second.call_tool("price", {"what": "ab"})).text == "2"


async def test_it_leaves_signals_and_memory_to_the_program() -> None:
    """No handler of its own, and nothing of the program's is frozen."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    frozen = gc.get_freeze_count()
    async with shop().serve_http(port=0):
        assert {number: signal.getsignal(number) for number in before} == before
        assert gc.get_freeze_count() == frozen


@pytest.mark.parametrize("host, name", [("0.0.0.0", "127.0.0.1"), ("localhost", "127.0.0.1")])
async def test_the_url_is_one_that_a_client_can_use(host: str, name: str) -> None:
    """An address that stands for all is none that a client could ask."""
    async with asyncio.timeout(60), shop().serve_http(host=host, port=0) as http:
        assert http.url == f"http://{name}:{http.port}/mcp"
        async with Client(http.url) as client:
            assert (await client.call_tool("price", {"what": "tea"})).text == "3"
