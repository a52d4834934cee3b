"""Child processes and sockets that break: the next call works, and nothing is started in a loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, Server, Stdio, Unreachable
from interlock import types as t
from interlock.transport.reconnect import MOST_RESTARTS
from interlock.wire.revisions import NEWEST, R1
from tests.contracts.makers import served
from tests.transport.programs import DISCOVERED, EMPTY, NUMBER, old_server, starts
from tests.transport.test_stdio import alive, ended

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="watches processes through /proc, which only Linux has"
)
BOTH: dict[str, tuple[dict[str, str], str]] = {
    "handshake": ({}, R1),
    "stateless": ({"probe": DISCOVERED, "initialize": "fail()"}, NEWEST),
}


async def kill(folder: Path) -> None:
    """Kill the process that was started last."""
    pid = starts(folder)[-1]
    os.kill(pid, signal.SIGKILL)
    await ended(pid)


@contextlib.asynccontextmanager
async def opened(command: list[str], **more: Any) -> AsyncIterator[Client]:
    """A client of a child, for as long as the block lasts."""
    async with asyncio.timeout(60), Client(Stdio(command, patience=0.2), **more) as client:
        yield client


@pytest.mark.parametrize("program, revision", BOTH.values(), ids=BOTH)
async def test_the_next_call_after_the_end_of_a_child_works(
    program: dict[str, str], revision: str, tmp_path: Path
) -> None:
    """In a new process, under the revision that was agreed on; nothing of the old one is left
    (`STD-15`).
    """
    async with opened(old_server(tmp_path, **program)) as client:
        assert (client.revision, (await client.call_tool("x")).text) == (revision, "1")
        await kill(tmp_path)
        # The loop may not have noticed yet; then the call is one that was under way.
        with contextlib.suppress(Unreachable):
            await client.call_tool("x")
        assert (await client.call_tool("x")).text == "2"
        assert client.revision == revision
    assert len(starts(tmp_path)) == 2
    assert not any(alive(pid) for pid in starts(tmp_path))


async def test_calls_at_the_same_time_start_one_process(tmp_path: Path) -> None:
    """Whoever needs it waits for the same one."""
    async with opened(old_server(tmp_path)) as client:
        await kill(tmp_path)
        with contextlib.suppress(Unreachable):
            await client.call_tool("x")
        answers = await asyncio.gather(*(client.call_tool("x") for _ in range(10)))
        assert {answer.text for answer in answers} == {"2"}
    assert len(starts(tmp_path)) == 2


DIES_ONCE = "if number == 1:\n    os._exit(7)\n"


async def test_a_call_under_way_fails_and_is_not_made_again(tmp_path: Path) -> None:
    """It may have done its work. The error says how the process ended (`ERR-21`)."""
    async with opened(old_server(tmp_path, call=DIES_ONCE + NUMBER), revision=R1) as client:
        with pytest.raises(Unreachable) as caught:
            await client.call_tool("x")
        assert caught.value.exit_code == 7
        assert len(starts(tmp_path)) == 1
        assert (await client.call_tool("x")).text == "2"


async def test_a_request_that_only_reads_is_sent_again(tmp_path: Path) -> None:
    """As over HTTP; a tool that says so of itself counts, once it was listed."""
    async with opened(old_server(tmp_path, other=DIES_ONCE + EMPTY), revision=R1) as client:
        await client.ping()
        assert len(starts(tmp_path)) == 2
    tools = [
        {"name": "x", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
    ]
    (tmp_path / "tool").mkdir()
    command = old_server(
        tmp_path / "tool",
        other=f"say({{'id': message['id'], 'result': {{'tools': {json.dumps(tools)}}}}})".replace(
            "true", "True"
        ),
        call=DIES_ONCE + NUMBER,
    )
    async with opened(command, revision=R1) as client:
        await client.list_tools()
        assert (await client.call_tool("x")).text == "2"


async def test_what_a_child_was_told_is_told_to_the_next(tmp_path: Path) -> None:
    """The log level and the subscriptions."""
    path = tmp_path / "told"
    told = f"open({str(path)!r}, 'a').write(json.dumps(message['params']) + str(number) + '\\n')\n"
    async with opened(old_server(tmp_path, other=told + EMPTY), revision=R1) as client:
        await client.set_log_level("debug")
        await client.request("resources/subscribe", t.SubscribeRequestParams(uri="a:b"))
        await client.request("resources/subscribe", t.SubscribeRequestParams(uri="a:c"))
        await client.request("resources/unsubscribe", t.UnsubscribeRequestParams(uri="a:c"))
        await kill(tmp_path)
        with contextlib.suppress(Unreachable):
            await client.call_tool("x")
        await client.call_tool("x")
    again = [line[:-1] for line in path.read_text().splitlines() if line.endswith("2")]
    assert [json.loads(line) for line in again] == [{"level": "debug"}, {"uri": "a:b"}]


async def test_a_child_that_dies_at_once_is_not_started_in_a_loop(tmp_path: Path) -> None:
    """After so many starts a call fails without one, and says when there will be another."""
    command = old_server(tmp_path, before="if number > 1:\n    sys.exit('out of memory')")
    async with opened(command, revision=R1) as client:
        await client.call_tool("x")
        await kill(tmp_path)
        with pytest.raises(Unreachable):
            await client.call_tool("x")
        for _ in range(20):
            with pytest.raises(Unreachable) as caught:
                await client.call_tool("x")
        assert f"ended {MOST_RESTARTS + 1} times within 60 seconds" in str(caught.value)
        assert len(starts(tmp_path)) == 1 + MOST_RESTARTS


async def test_a_child_that_comes_back_as_another_is_not_spoken_to(tmp_path: Path) -> None:
    """The client has to be opened anew, as it would speak another revision."""
    async with opened(old_server(tmp_path)) as client:
        await kill(tmp_path)
        old_server(tmp_path, initialize="fail()")
        with contextlib.suppress(Unreachable):
            await client.call_tool("x")
        with pytest.raises(Unreachable, match="open the client anew"):
            await client.call_tool("x")


async def test_a_child_is_left_ended_where_that_is_wanted(tmp_path: Path) -> None:
    """`restart=False`: each call says how it ended."""
    async with Client(Stdio(old_server(tmp_path), restart=False), revision=R1) as client:
        await kill(tmp_path)
        for _ in range(3):
            with pytest.raises(Unreachable, match="has ended") as caught:
                await client.call_tool("x")
            assert caught.value.exit_code == -signal.SIGKILL
    assert len(starts(tmp_path)) == 1


async def test_closing_while_a_child_is_started_again_leaves_none(tmp_path: Path) -> None:
    """The call that waits for it says that the client was closed."""
    command = old_server(tmp_path, before="if number > 1:\n    swallow()")
    client = Client(Stdio(command, patience=0.05), revision=R1)
    await client.open()
    await kill(tmp_path)
    doing = asyncio.ensure_future(client.call_tool("x"))
    async with asyncio.timeout(30):
        while len(starts(tmp_path)) < 2:
            if doing.done():  # it was under way, as the loop had not noticed yet
                assert isinstance(doing.exception(), Unreachable)
                doing = asyncio.ensure_future(client.call_tool("x"))
            await asyncio.sleep(0.01)
    await client.aclose()
    with pytest.raises(Unreachable, match="client was closed"):
        await doing
    assert not any(alive(pid) for pid in starts(tmp_path))


@pytest.mark.parametrize("revision", [R1, NEWEST])
async def test_the_next_call_after_a_socket_broke_works(revision: str, tmp_path: Path) -> None:
    """Whoever listens there again is spoken to, under the same revision."""
    server = Server("clock")

    @server.tool
    def tick() -> str:
        return "tick"

    path = tmp_path / "socket"
    async with served(server, path):
        client = Client(f"unix://{path}", revision=revision)
        await client.open()
        assert (await client.call_tool("tick")).text == "tick"
    with pytest.raises(t.Unreachable):
        await client.call_tool("tick")
    async with served(server, path):
        assert (await client.call_tool("tick")).text == "tick"
        await client.aclose()
