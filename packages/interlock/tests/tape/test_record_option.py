"""`record=`: clients and servers record themselves, over every transport and in every revision."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, Context, Duplex, Server, Socket
from interlock.tape import MockServer, Recorder, TapeFile
from interlock.testing import ScriptedAnswers, channel_pair
from interlock.transport.sockets import listen
from interlock.wire.revisions import REVISIONS

SCRIPT = """
from interlock import Server
server = Server("recorded", "1")
@server.tool
def greet(name: str) -> str:
    return f"Hello {name}"
if __name__ == "__main__":
    import sys
    from interlock.tape import Recorder
    server.run(record=Recorder(sys.argv[1]))
"""


def make_server() -> Server:
    server = Server("recorded", "1")

    @server.tool
    def greet(name: str) -> str:
        return f"Hello {name}"

    @server.tool
    async def agree(ctx: Context) -> bool:
        ctx.progress(1, 2)
        return await ctx.confirm("Really?")

    return server


@contextlib.asynccontextmanager
async def reached(transport: str, folder: Path, record: Recorder) -> AsyncIterator[Any]:
    """A target for a client, whose server records itself where it can."""
    server = make_server()
    async with contextlib.AsyncExitStack() as stack:
        if transport == "memory":
            yield server
        elif transport == "http":
            web = await stack.enter_async_context(server.serve_http(port=0, record=record))
            yield web.url
        elif transport == "channel":
            ours, theirs = channel_pair()
            serving = asyncio.create_task(server.serve(record.channel(theirs)))
            yield Duplex(ours)
            await serving
        else:
            path = folder / "socket"
            ready = asyncio.Event()
            serving = asyncio.create_task(
                listen(
                    path,
                    lambda channel: server.serve(record.channel(channel)),
                    on_ready=lambda _: ready.set(),
                )
            )
            await ready.wait()
            yield Socket(path)
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            await server.aclose()


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("transport", ["memory", "http", "channel", "unix"])
async def test_both_sides_record_the_same(transport: str, revision: str, tmp_path: Path) -> None:
    """The same messages, in the order in which each side sees them; and a mock made of the client's
    recording answers the same calls.
    """
    answers = ScriptedAnswers(elicit={"Really": {"confirm": True}})
    with Recorder(tmp_path / "client.tape") as ours, Recorder(tmp_path / "server.tape") as theirs:
        async with (
            reached(transport, tmp_path, theirs) as target,
            Client(target, revision=revision, answers=answers, record=ours) as client,
        ):
            assert (await client.call_tool("greet", {"name": "Ada"})).text == "Hello Ada"
            if revision >= "2025-06-18":
                assert (await client.call_tool("agree")).text == "true"
    with TapeFile(tmp_path / "client.tape") as tape:
        assert tape.problems == []
        assert tape.verify() == []
        recorded = tape.conversation()
        calls = [row for row in tape.rows if row.method == "tools/call" and row.kind == "request"]
        assert calls
        assert all(row.partner >= 0 for row in calls)
    if transport != "memory":
        with TapeFile(tmp_path / "server.tape") as tape:
            assert tape.verify() == []
            seen = tape.conversation()
        for sender in ("client", "server"):
            assert sorted(line.frame for line in seen if line.sender == sender) == sorted(
                line.frame for line in recorded if line.sender == sender
            )
    mock = MockServer(recorded)
    ours_end, theirs_end = channel_pair()
    serving = asyncio.create_task(mock.serve(theirs_end))
    async with Client(Duplex(ours_end), revision=revision) as client:
        assert (await client.call_tool("greet", {"name": "Ada"})).text == "Hello Ada"
    await serving
    assert mock.unanswered == []


async def test_a_program_records_itself_over_stdio(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(SCRIPT)
    path = tmp_path / "session.tape"
    async with Client([sys.executable, str(script), str(path)]) as client:
        await client.call_tool("greet", {"name": "Ada"})
    with TapeFile(path) as tape:
        assert tape.problems == []
        assert [row.name for row in tape.rows if row.method == "tools/call"] == ["greet", "greet"]


def test_workers_cannot_record_to_one_file(tmp_path: Path) -> None:
    with (
        Recorder(tmp_path / "x.tape") as recorder,
        pytest.raises(ValueError, match="record with one worker"),
    ):
        make_server().run("http", workers=2, record=recorder)


def test_a_transport_without_a_tap_is_refused(tmp_path: Path) -> None:
    class Odd:
        async def open(self, hello: object) -> None: ...
        async def __call__(self, exchange: object) -> None: ...
        async def aclose(self) -> None: ...

    odd: Any = Odd()
    with (
        Recorder(tmp_path / "x.tape") as recorder,
        pytest.raises(TypeError, match="Odd cannot be recorded"),
    ):
        Client(odd, record=recorder)
