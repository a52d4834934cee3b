"""Listening at addresses: one peer's misfortune is not the others', and nothing is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from interlock import Server
from interlock import types as t
from interlock.transport.pipes import PipeChannel
from interlock.transport.sockets import Address, Socket, _listening, connect, listen
from tests.protocol.frames import notification, stamped
from tests.transport.ends import open_descriptors, received, turns
from tests.transport.programs import hello


async def echo(channel: PipeChannel) -> None:
    """Say back what was said."""
    try:
        while frames := await channel.receive():
            if b"fail" in frames:
                raise ValueError("not today")
            channel.send(frames)
    finally:
        await channel.aclose()


@contextlib.asynccontextmanager
async def listening(address: Address, talk: Any = echo, **options: Any) -> AsyncIterator[Address]:
    ready: asyncio.Future[Address] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(listen(address, talk, on_ready=ready.set_result, **options))
    try:
        async with asyncio.timeout(30):
            await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
            # a task that has ended has raised
            yield ready.result() if ready.done() else await task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def said_back(address: Address, words: bytes = b"hello") -> list[bytes]:
    channel = await connect(address)
    channel.send([words])
    try:
        return await received(channel, 1)
    finally:
        await channel.aclose()


@pytest.mark.parametrize("kind", ["unix", "tcp"])
async def test_peers_come_and_go_and_nothing_is_left(kind: str, tmp_path: Path) -> None:
    """Neither descriptors, nor the socket's file (`RPC-30`, `RPC-33`)."""
    path = tmp_path / "s"
    before = open_descriptors()
    async with listening(path if kind == "unix" else ("127.0.0.1", 0)) as address:
        for n in range(30):
            assert await said_back(address, b"%d" % n) == [b"%d" % n]
        assert await asyncio.gather(*(said_back(address) for _ in range(50))) == [[b"hello"]] * 50
        if kind == "unix":
            assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert "s" not in os.listdir(tmp_path)
    assert (
        open_descriptors() <= before + 1
    )  # the pool that looks addresses up may have made its own


async def test_a_peer_whose_serving_fails_takes_nobody_with_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It sees the end; the log says why; the next is served."""
    async with listening(tmp_path / "s") as address:
        assert await said_back(address, b"fail") == []
        assert await said_back(address) == [b"hello"]
    assert "not today" in caplog.text


async def test_a_server_that_is_out_of_descriptors_takes_a_breath(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """And goes on accepting when there are some again."""
    async with listening(tmp_path / "s") as address:
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        most = resource.getrlimit(resource.RLIMIT_NOFILE)
        spare = os.dup(0)
        os.close(spare)
        resource.setrlimit(resource.RLIMIT_NOFILE, (spare, most[1]))
        try:
            peer.connect(os.fspath(address))
            while "could not be accepted" not in caplog.text:
                await turns()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, most)
        peer.setblocking(False)
        await asyncio.get_running_loop().sock_sendall(peer, b"hello\n")
        assert await asyncio.get_running_loop().sock_recv(peer, 10) == b"hello\n"
        peer.close()


async def test_only_so_many_are_served_at_once(tmp_path: Path) -> None:
    """The others wait at the door, and are served when there is room."""
    async with listening(tmp_path / "s", most_peers=2) as address:
        first = await connect(address)
        second = await connect(address)
        for channel in (first, second):
            channel.send([b"in"])
            assert await received(channel, 1) == [b"in"]
        third = asyncio.ensure_future(said_back(address))
        await turns(20)
        assert not third.done()
        await first.aclose()
        assert await third == [b"hello"]
        await second.aclose()


async def test_an_address_in_use_is_not_taken_over(tmp_path: Path) -> None:
    """The server that is there goes on; what is no socket is left alone."""
    async with listening(tmp_path / "s") as address:
        with pytest.raises(OSError, match="in use"):
            async with listening(tmp_path / "s"):
                raise AssertionError("two at one address")
        assert await said_back(address) == [b"hello"]
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    with pytest.raises(OSError, match="in use"):
        async with listening(tmp_path / "file"):
            raise AssertionError("a file was taken for a socket")
    assert (tmp_path / "file").read_bytes() == b"mine"


async def test_what_a_killed_server_left_behind_is_no_hindrance(tmp_path: Path) -> None:
    """Its socket is still there, but nobody listens at it."""
    left = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    left.bind(os.fspath(tmp_path / "s"))
    left.close()
    async with listening(tmp_path / "s") as address:
        assert await said_back(address) == [b"hello"]


async def test_the_end_of_listening_is_the_end_of_its_peers(tmp_path: Path) -> None:
    """Whoever was being served is cancelled, and sees the end."""
    ended: list[str] = []

    async def talk(channel: PipeChannel) -> None:
        try:
            await echo(channel)
        finally:
            ended.append("over")

    async with listening(tmp_path / "s", talk) as address:
        channel = await connect(address)
        channel.send([b"in"])
        await received(channel, 1)
    assert await received(channel, 1) == []
    assert ended == ["over"]
    await channel.aclose()


async def test_where_nobody_listens_nobody_is_reached(tmp_path: Path) -> None:
    """The words name the place (`ERR-21`)."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for address in (tmp_path / "nothing", ("127.0.0.1", port), ("host.invalid", 1)):
        words = address[0] if isinstance(address, tuple) else "nothing"
        transport = Socket(address)
        with pytest.raises(t.Unreachable, match=words):
            await transport.open(hello())
        with pytest.raises(t.Unreachable):
            await connect(address)
        await transport.aclose()


async def test_framing_and_cancelling_are_as_documented(tmp_path: Path) -> None:
    """A message a line; a request is cancelled by a notification, and all of a connection by its
    end (`RPC-31`).
    """
    server = Server("slow")
    begun: asyncio.Queue[str] = asyncio.Queue()
    ended: asyncio.Queue[str] = asyncio.Queue()

    @server.tool
    async def wait(name: str) -> None:
        begun.put_nowait(name)
        try:
            await asyncio.Event().wait()
        finally:
            ended.put_nowait(name)

    def call_of(id: int, name: str) -> bytes:
        return stamped(id, "tools/call", {"name": "wait", "arguments": {"name": name}}) + b"\n"

    path = tmp_path / "socket"
    async with listening(path, server.serve), asyncio.timeout(30):
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(call_of(1, "first") + call_of(2, "second"))
        assert {await begun.get(), await begun.get()} == {"first", "second"}
        writer.write(notification("notifications/cancelled", {"requestId": 1}) + b"\n")
        assert await ended.get() == "first"
        writer.write(stamped(3, "tools/list") + b"\n")
        assert json.loads(await reader.readline())["id"] == 3
        writer.close()
        assert await ended.get() == "second"
    page = Path(__file__).parents[4] / "docs/guide/transports.md"
    section = page.read_text("utf-8").partition("## Unix sockets and TCP")[2].partition("\n## ")[0]
    for subject in ("Setting up:", "Framing:", "Cancelling:"):
        assert subject in section


async def test_every_address_of_a_name_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name like localhost has several addresses, and a server may listen at the last of them
    only.
    """
    loop = asyncio.get_running_loop()
    looked_up = loop.getaddrinfo
    with socket.create_server(("127.0.0.1", 0)) as other:
        nobody = other.getsockname()[1]  # closed again: nobody listens there
    async with listening(("127.0.0.1", 0)) as address:
        assert isinstance(address, tuple)

        async def both(host: str, port: int, **options: Any) -> Any:
            first = await looked_up("127.0.0.1", nobody, **options)
            return [*first, *await looked_up("127.0.0.1", port, **options)]

        monkeypatch.setattr(loop, "getaddrinfo", both)
        before = open_descriptors()
        assert await said_back(("localhost", address[1])) == [b"hello"]
        monkeypatch.setattr(loop, "getaddrinfo", looked_up)
    assert open_descriptors() <= before


async def test_a_server_too_busy_to_accept_is_not_taken_for_dead(tmp_path: Path) -> None:
    """Its socket stays its own, and a second server hears at once that the address is in use."""
    path = tmp_path / "s"
    with contextlib.ExitStack() as open_ones:
        busy = open_ones.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        busy.bind(os.fspath(path))
        busy.listen(0)
        with contextlib.suppress(BlockingIOError):
            for _ in range(1000):  # until nobody more may wait
                peer = open_ones.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
                peer.setblocking(False)
                peer.connect(os.fspath(path))
        with pytest.raises(OSError, match="in use"):
            await asyncio.to_thread(_listening, path)
        assert path.exists()
