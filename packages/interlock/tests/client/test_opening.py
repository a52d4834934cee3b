"""The life of a client: opening, revisions, use before and after, closing - and a server that goes
away.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock import (
    REVISIONS,
    Client,
    ClientSettings,
    Implementation,
    McpError,
    Server,
    ServerInfo,
    TimedOut,
    Unreachable,
    UnsupportedRevision,
)
from interlock import types as t
from interlock.wire.revisions import HANDSHAKE_REVISIONS, NEWEST, R1, R3, R4
from tests.client.peers import (
    GREETER,
    KEY,
    SECONDS,
    SILENCE,
    ByHand,
    Peer,
    complete,
    is_gone,
    script,
    text,
)

# -- which revision -------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
async def test_one_revision_is_spoken(revision: str):
    """The one that is asked for; the server is not tried with another."""
    async with Peer(None, revision) as peer, Client(peer.channel, revision=revision) as client:
        assert client.revision == revision
        assert [m["method"] for m in peer.received[:1]] == [
            "initialize" if revision in HANDSHAKE_REVISIONS else "server/discover"
        ]


REACHED: dict[str, tuple[Any, str, str]] = {
    # what is allowed, what the server speaks, and what is agreed on
    "anything": (None, NEWEST, NEWEST),
    "anything, old server": (None, R3, R3),
    "two eras": ([R4, NEWEST], R4, R4),
    "two eras, new server": ((NEWEST, R4), NEWEST, NEWEST),
    "old ones, in any order": ([R1, R4, R3], R3, R3),
}


@pytest.mark.parametrize("allowed, spoken, agreed", REACHED.values(), ids=REACHED)
async def test_a_revision_is_agreed_on(allowed: Any, spoken: str, agreed: str):
    """The server's, where it is allowed (`LIF-03`, `STA-13`)."""
    async with Peer(None, spoken) as peer, Client(peer.channel, revision=allowed) as client:
        assert client.revision == agreed
        if spoken in HANDSHAKE_REVISIONS:
            await peer.until("notifications/initialized")


async def test_the_newest_allowed_is_offered():
    """(`LIF-02`)"""
    async with Peer(None, R1) as peer, Client(peer.channel, revision=[R1, R3]):
        assert (await peer.until("initialize"))["params"]["protocolVersion"] == R3


REFUSED: dict[str, tuple[Any, str]] = {
    # what is allowed, and what the server speaks
    "an older one": (R4, R3),
    "a newer one": ([R1, R3], R4),
    "the newest only": (NEWEST, R4),
    "none": ([], NEWEST),
}


@pytest.mark.parametrize("allowed, spoken", REFUSED.values(), ids=REFUSED)
async def test_a_revision_that_is_not_allowed(allowed: Any, spoken: str):
    """The client says so and disconnects (`LIF-05`, `LIF-22`, `X-04`)."""
    async with Peer(None, spoken) as peer:
        client = Client(peer.channel, revision=allowed)
        with pytest.raises(UnsupportedRevision):
            await client.open()
        assert not client.connected
        assert await _closed(peer)


async def _closed(peer: Peer) -> bool:
    """Whether the client has closed its end."""
    assert peer._task is not None
    async with asyncio.timeout(SECONDS):
        await peer._task
    return True


@pytest.mark.parametrize("revision", ["2025-13-01", "", ["2025-11-25", "latest"]], ids=str)
def test_revisions_that_there_are_not(revision: Any):
    """They are refused when the client is made, with those that there are."""
    with pytest.raises(ValueError, match=r"unknown revisions.*known are 2024-11-05, .*2026-07-28"):
        Client(ByHand(), revision=revision)


async def test_a_server_that_is_slow_to_say_what_it_is():
    """`probe_timeout` bounds the wait for `server/discover` where the handshake can be tried after
    it.
    """
    async with (
        Peer({"server/discover": SILENCE}, R4) as peer,
        Client(peer.channel, settings=ClientSettings(probe_timeout=0.01)) as client,
    ):
        assert client.revision == R4


# -- who is who -----------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", [R4, NEWEST])
async def test_what_the_server_says_of_itself(revision: str):
    """Name, instructions and capabilities; before and after there is nothing to know."""
    server = Server("shop", "2.1", info=ServerInfo(title="The Shop"), instructions="Be brief.")

    @server.tool
    async def buy() -> None: ...

    client = Client(server, revision=revision)
    for _ in range(2):
        assert (client.connected, client.server_info, client.instructions) == (False, None, None)
        assert client.server_capabilities == t.ServerCapabilities()
        await client.open()
        assert client.connected
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version, client.instructions) == (
            "shop",
            "2.1",
            "Be brief.",
        )
        assert client.server_capabilities.tools == t.ListChangedCapability(list_changed=True)
        await client.aclose()


@pytest.mark.parametrize("revision", [R4, NEWEST])
async def test_what_the_client_says_of_itself(revision: str):
    """Once, or with each request (`LIF-01`, `STA-02`)."""
    async with (
        Peer({"tools/list": complete(tools=[])}, revision) as peer,
        Client(
            peer.channel,
            revision=revision,
            info=Implementation(name="house", version="3", title="The House"),
        ) as client,
    ):
        await client.list_tools()
    said = {"name": "house", "version": "3", "title": "The House"}
    if revision == R4:
        assert peer.all("initialize")[0]["params"]["clientInfo"] == said
        assert all("_meta" not in message.get("params", {}) for message in peer.received)
    else:
        assert [message["params"]["_meta"][f"{KEY}clientInfo"] for message in peer.received] == [
            said,
            said,
        ]


# -- before, after, and twice ---------------------------------------------------------------------

USES: dict[str, Any] = {
    "list_tools": lambda c: c.list_tools(),
    "list_resources": lambda c: c.list_resources(),
    "list_resource_templates": lambda c: c.list_resource_templates(),
    "list_prompts": lambda c: c.list_prompts(),
    "call_tool": lambda c: c.call_tool("x"),
    "read_resource": lambda c: c.read_resource("x:y"),
    "get_prompt": lambda c: c.get_prompt("x"),
    "complete": lambda c: c.complete("x", "a"),
    "ping": lambda c: c.ping(),
    "set_log_level": lambda c: c.set_log_level("info"),
    "request": lambda c: c.request("tools/list", t.ListToolsRequestParams()),
    "watch": lambda c: c.watch(tools=True).__aenter__(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
async def test_use_before_and_after(use: Any):
    """One clear error, and nothing waits or is sent (`ERR-21`)."""
    transport = ByHand()
    client = Client(transport)
    for _ in range(2):
        with pytest.raises(Unreachable, match="The client is not open; use it in `async with"):
            await use(client)
        with pytest.raises(Unreachable, match="not open"):
            client.roots_changed()
        with pytest.raises(Unreachable, match="not open"):
            _ = client.revision
        await client.open()
        await client.aclose()
    assert transport.seen == []


async def test_the_level_that_could_not_be_set():
    """A level that was refused is not taken for the next opening."""
    transport = ByHand()
    client = Client(transport)
    with pytest.raises(Unreachable):
        await client.set_log_level("debug")
    assert client.log_level is None


async def test_opening_and_closing_twice():
    """Does no harm, and nothing is opened again or closed again that is not open."""
    transport = ByHand()
    client = Client(transport)
    for _ in range(2):
        await client.open()
    async with client:
        assert transport.opens == 1
    assert not client.connected
    await client.aclose()
    assert transport.closes >= 1


async def test_a_server_in_memory_opened_again():
    """A conversation that has ended can be followed by another."""
    server = Server("again")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    client = Client(server)
    for _ in range(3):
        async with client:
            assert (await client.call_tool("add", {"a": 1, "b": 2})).value() == 3


async def test_a_child_opened_again(tmp_path: Path):
    """A new process each time (`STD-06`)."""
    path = script(tmp_path, GREETER + "greet()\nanswer(read()['id'], result={})\nread()")
    client = Client(path, revision=R4)
    pids = []
    for _ in range(2):
        async with client:
            await client.ping()
            pids.append((tmp_path / "pid").read_text())
        assert is_gone(tmp_path)
    assert len(set(pids)) == 2


async def test_two_who_open_at_once():
    """One conversation comes of it."""

    async def slowly() -> None:
        await asyncio.sleep(0)

    transport = ByHand(opening=slowly)
    client = Client(transport)
    await asyncio.gather(client.open(), client.open())
    assert transport.opens == 1
    await client.aclose()


async def test_an_opening_that_fails_and_another():
    """The transport is closed; what failed once may succeed."""
    fails = True

    async def sometimes() -> None:
        if fails:
            raise Unreachable("not yet")

    transport = ByHand(opening=sometimes)
    client = Client(transport)
    with pytest.raises(Unreachable, match="not yet"):
        await client.open()
    assert (client.connected, transport.closes) == (False, 1)
    fails = False
    async with client:
        assert client.connected


async def test_an_error_in_the_block():
    """Is raised as it is, and the client is closed."""
    transport = ByHand()
    with pytest.raises(ZeroDivisionError):
        async with Client(transport):
            raise ZeroDivisionError
    assert transport.closes == 1


@pytest.mark.parametrize("revision", [R4, NEWEST])
async def test_closing_ends_what_waits(revision: str):
    """Every call that has no answer yet says so."""
    async with Peer({"tools/call": SILENCE}, revision) as peer:
        client = Client(peer.channel)
        await client.open()
        calls = [asyncio.create_task(client.call_tool("wait")) for _ in range(3)]
        await peer.until("tools/call", 3)
        await client.aclose()
        for call in calls:
            with pytest.raises(Unreachable, match="The client was closed"):
                await call


async def test_closing_ends_what_waits_for_a_child(tmp_path: Path):
    """It is our doing, and not told as if the child had ended by itself."""
    asked = asyncio.Event()
    path = script(
        tmp_path, GREETER + "greet()\nread()\nprint('asked', file=sys.stderr, flush=True)\nread()"
    )
    client = Client(path, revision=R4, on_stderr=lambda line: asked.set())
    await client.open()
    call = asyncio.create_task(client.call_tool("wait"))
    await asked.wait()
    await client.aclose()
    with pytest.raises(Unreachable, match="The client was closed"):
        await call
    assert is_gone(tmp_path)


@pytest.mark.parametrize("revision", [R4, NEWEST])
async def test_closing_ends_what_waits_in_memory(revision: str):
    """There the server's functions run in the callers' tasks: they are ended, and those tasks go
    on.
    """
    server = Server("slow")
    begun = asyncio.Semaphore(0)
    ended = asyncio.Semaphore(0)

    @server.tool
    async def wait() -> None:
        begun.release()
        try:
            await asyncio.Event().wait()
        finally:
            ended.release()

    async def ask(client: Client) -> str:
        with pytest.raises(Unreachable, match="The client was closed"):
            await client.call_tool("wait")
        await asyncio.sleep(0)
        return "went on"

    client = Client(server, revision=revision)
    await client.open()
    calls = [asyncio.create_task(ask(client)) for _ in range(3)]
    for _ in calls:
        await begun.acquire()
    await client.aclose()
    assert await asyncio.gather(*calls) == ["went on"] * 3
    for _ in calls:
        await ended.acquire()


# -- a server that goes away ----------------------------------------------------------------------


@pytest.mark.parametrize("revision", [R4, NEWEST])
async def test_the_channel_ends(revision: str):
    """Whoever waits is told, and whoever asks later."""
    async with Peer({"tools/call": SILENCE}, revision) as peer, Client(peer.channel) as client:
        calls = [asyncio.create_task(client.call_tool("x")) for _ in range(3)]
        await peer.until("tools/call", 3)
        await peer.own.aclose()
        for call in calls:
            with pytest.raises(Unreachable, match="closed the connection"):
                await call
        with pytest.raises(Unreachable, match="closed the connection"):
            await client.list_tools()


DEATHS: dict[str, tuple[str, int]] = {
    # what the script does in the middle of a call, and its exit code
    "leaves": ("sys.exit('out of paper')", 1),
    "leaves in silence": ("os._exit(7)", 7),
    "fails": ("raise RuntimeError('out of paper')", 1),
    "is killed": ("os.kill(os.getpid(), 9)", -9),
}


@pytest.mark.parametrize("death, code", DEATHS.values(), ids=DEATHS)
async def test_a_child_that_dies_in_the_middle_of_a_call(death: str, code: int, tmp_path: Path):
    """The call says how: with exit code and last words, not only that it is over."""
    path = script(tmp_path, GREETER + f"greet()\nread()\nread()\n{death}")
    async with Client(path, revision=R4) as client:
        calls = [asyncio.create_task(client.call_tool("x")) for _ in range(2)]
        for call in calls:
            with pytest.raises(Unreachable) as caught:
                await call
            assert caught.value.exit_code == code
            assert ("out of paper" in caught.value.stderr) == (code == 1)
    assert is_gone(tmp_path)


async def test_a_child_that_closes_its_streams_and_stays(tmp_path: Path):
    """It says no more, so no answer can come."""
    path = script(tmp_path, GREETER + "greet()\nread()\nos.close(1)\nsys.stdin.read()")
    async with Client(path, revision=R4) as client:
        with pytest.raises(Unreachable, match="closed the connection") as caught:
            await client.call_tool("x")
        assert caught.value.exit_code is None
    assert is_gone(tmp_path)


async def test_garbage_between_messages(tmp_path: Path):
    """What is no message is passed over."""
    path = script(
        tmp_path,
        GREETER + "print('Hello!'); print('{'); print('[]');"
        " print()\ngreet()\nprint('null')\nanswer(read()['id'], result={})\nread()",
    )
    async with Client([sys.executable, path], revision=R4) as client:
        await client.ping()


async def test_answers_twice_and_answers_of_nobody():
    """Are passed over, and do not take the place of others (`CAN-07`)."""
    async with Peer({"tools/call": SILENCE}) as peer, Client(peer.channel) as client:
        for words in ("one", "two"):
            call = asyncio.create_task(client.call_tool("x"))
            id = (await peer.until("tools/call", 1 if words == "one" else 2))["id"]
            peer.say(id=str(id), result=text("as a string"))
            peer.say(id=id + 1000, result=text("nobody's"))
            peer.say(id=id, result=text(words))
            peer.say(id=id, result=text("again"))
            assert (await call).text == words


def test_errors_of_the_server_are_told_from_our_own():
    """The server's are McpError, ours are not (`ERR-21`)."""
    assert not issubclass(Unreachable, McpError)
    assert not issubclass(TimedOut, McpError)
    assert issubclass(TimedOut, Unreachable)
