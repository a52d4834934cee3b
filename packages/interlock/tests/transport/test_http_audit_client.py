"""What the client takes from its surroundings: proxies that the environment names, and a server
that goes away and comes back.
"""

from __future__ import annotations

import asyncio

import pytest

from interlock import Client, Server, Unreachable
from interlock.server.run.http import serve_web
from interlock.wire.revisions import R1, R2, R4, R5
from tests.transport.http_peers import both_loops
from tests.transport.scripted_server import scripted


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("but_for", ["", "other.example, .mcp.test"])
@both_loops
async def test_the_proxy_that_the_environment_names(name: str, but_for: str) -> None:
    """`Client(url)` with nothing said about a proxy goes through it; a server of this machine, and
    what NO_PROXY names, it asks directly.
    """
    with pytest.MonkeyPatch.context() as patch:
        for each in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
            patch.delenv(each, raising=False)
            patch.delenv(each.lower(), raising=False)
        async with scripted() as proxy, scripted() as server:
            patch.setenv(name, proxy.url.removesuffix("/mcp"))
            patch.setenv("NO_PROXY", but_for)
            async with Client("http://mcp.example/mcp", token="t0k") as client:
                assert client.revision == R5
            (asked,) = proxy.all
            assert (asked.path, asked.header("host"), asked.header("authorization")) == (
                "http://mcp.example/mcp",
                "mcp.example",
                "Bearer t0k",
            )
            async with Client(server.url) as client:
                assert client.revision == R5
            assert len(server.all) == 1
            if but_for:
                with pytest.raises(Unreachable):
                    await Client("http://nowhere.mcp.test/mcp").open()
            assert len(proxy.all) == 1


@pytest.mark.parametrize("revision", [R1, R2, R4, R5])
async def test_a_server_that_is_started_again_between_two_calls(revision: str) -> None:
    """The next call is made as if nothing had been, in the handshake era in a new session
    (`HTL-43`); while nobody is there it says so.
    """

    async def start(port: int) -> tuple[asyncio.Task[None], int]:
        server = Server("phoenix")
        ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        @server.tool
        async def add(a: int, b: int) -> int:
            return a + b

        task = asyncio.create_task(
            serve_web(server, port=port, grace=0.2, on_ready=lambda at: ready.set_result(at[1]))
        )
        return task, await ready

    async def stop(task: asyncio.Task[None]) -> None:
        task.cancel()
        await task

    async with asyncio.timeout(30):
        first, port = await start(0)
        async with Client(f"http://127.0.0.1:{port}/mcp", revision=revision) as client:
            assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
            await stop(first)
            with pytest.raises(Unreachable, match="Check that the server is running"):
                await client.call_tool("add", {"a": 1, "b": 2})
            second, _ = await start(port)
            assert (await client.call_tool("add", {"a": 3, "b": 4})).text == "7"
        await stop(second)


async def test_a_server_listens_on_this_machine_unless_told_otherwise() -> None:
    """Without a host nobody elsewhere reaches it (`HTL-53`, `HTM-23`, `SEC-19`, `HPS-06`): what the
    socket says, as it serves.
    """
    ready: asyncio.Future[tuple[str, int]] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(serve_web(Server("near"), port=0, on_ready=ready.set_result))
    async with asyncio.timeout(10):
        host, port = await ready
        assert host == "127.0.0.1"
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        await writer.wait_closed()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(
                "127.0.0.2", port
            )  # another address of the same machine, where one that listens everywhere answers
        task.cancel()
        await task
