"""Session state: what an author keeps for a client's session, over every transport and revision."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Client, Context, NoSession, Server, ServerLimits, SessionState, ToolError
from interlock.protocol.handshake.server import ServerConnection
from interlock.server.calls.never_awaited import Started
from interlock.transport.serve import ConnectionSession
from interlock.wire.revisions import HANDSHAKE_REVISIONS, NEWEST, R1, R2, R4
from tests.server.by_hand import call, text
from tests.workers.neighbours import neighbours

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc"), inner, max_size=3),
    max_leaves=8,
)
STEPS = st.lists(
    st.tuples(st.just("set"), st.sampled_from("abc"), JSON)
    | st.tuples(st.just("delete"), st.sampled_from("abc"), st.none())
    | st.tuples(st.just("update"), st.sampled_from("abc"), JSON),
    max_size=12,
)


class Kept:
    """A storage in which others may change what is kept before a save."""

    def __init__(self, *rivals: bytes) -> None:
        self.state: bytes | None = b""
        self.rivals = list(rivals)

    async def load(self) -> bytes | None:
        return self.state

    async def save(self, state: bytes, *, was: bytes) -> bool:
        if self.rivals:
            self.state = self.rivals.pop(0)
        if self.state != was:
            return False
        self.state = state
        return True


def state_in(storage: Kept, most: int) -> SessionState:
    """The state in a storage."""
    return SessionState(storage, most, Started())


@given(STEPS)
def test_it_is_a_dictionary(steps: list[tuple[str, str, Any]]):
    """Whatever is done to it, each key has what a dictionary would have."""

    async def run() -> None:
        model: dict[str, Any] = {}
        storage = Kept()
        for what, key, value in steps:
            state = state_in(storage, 1_000_000)
            if what == "set":
                await state.set(key, value)
                model[key] = value
            elif what == "delete":
                await state.delete(key)
                model.pop(key, None)
            else:
                model[key] = [model.get(key, "none yet"), value]
                new = await state.update(key, lambda old, v=value: [old, v], "none yet")
                assert new == model[key]
            for name in "abc":
                assert await state.get(name, ...) == model.get(name, ...)

    asyncio.run(run())


async def test_what_is_read_is_a_copy():
    """Changing what was read or written changes nothing that is kept."""
    state = state_in(Kept(), 1000)
    cart = ["tea"]
    await state.set("cart", cart)
    cart.append("milk")
    (await state.get("cart")).append("sugar")
    assert await state.get("cart") == ["tea"]


async def test_a_change_between_is_not_lost():
    """A call that was slower sees what the quicker one has written, and its function is called
    again.
    """
    storage = Kept(b'{"n":5,"other":1}', b'{"n":7,"other":1}')
    seen: list[int] = []

    def add(n: int) -> int:
        seen.append(n)
        return n + 1

    state = state_in(storage, 1000)
    assert await state.update("n", add, 0) == 8
    assert seen == [0, 5, 7]
    assert await state.get("other") == 1


async def test_bounds_in_bytes():
    """What does not fit is refused and leaves the rest as it was; what is too large by now can
    still shrink.
    """
    state = state_in(Kept(), 20)
    await state.set("a", "x" * 12)  # {"a":"xxxxxxxxxxxx"} has 20 bytes
    with pytest.raises(ToolError, match="no room for 'a' .* 21 bytes, and may have 20"):
        await state.set("a", "x" * 13)
    with pytest.raises(ToolError, match="no room for 'b'"):
        await state.set("b", 1)
    assert await state.get("a") == "x" * 12
    assert await state.get("b") is None
    storage = Kept()
    storage.state = b'{"a":"%b","b":1}' % (b"x" * 50)
    await state_in(storage, 20).delete("b")
    assert storage.state == b'{"a":"%b"}' % (b"x" * 50)


async def test_only_json():
    """What cannot be written as JSON is refused, and changes nothing."""
    state = state_in(Kept(), 1000)
    with pytest.raises(TypeError):
        await state.set("a", object())
    assert await state.get("a") is None


async def test_a_session_that_has_ended():
    """It takes and gives nothing any more."""
    storage = Kept()
    storage.state = None
    for doing in (state_in(storage, 9).get("a"), state_in(storage, 9).set("a", 1)):
        with pytest.raises(NoSession, match="has ended"):
            await doing


def counting() -> Server:
    """A server that counts the calls of each session."""
    server = Server("counting", limits=ServerLimits(session_state_bytes=1000))

    @server.tool
    async def count(ctx: Context) -> str:
        return str(await ctx.session_state.update("calls", lambda n: n + 1, 0))

    @server.tool
    def count_in_thread(ctx: Context) -> str:
        return str(ctx.wait(ctx.session_state.update("calls", lambda n: n + 1, 0)))

    @server.tool
    async def fill(size: int, ctx: Context) -> None:
        await ctx.session_state.set("filling", "x" * size)

    return server


async def count(client: Client) -> str:
    """What the next call counts."""
    return (await client.call_tool("count")).text


@asynccontextmanager
async def http(**options: Any) -> AsyncIterator[str]:
    """The URL of the server."""
    async with neighbours(1, counting, **options) as made:
        yield made.at(0)


async def check_sessions(target: Any, revision: str) -> None:
    """Two clients of one server have a state each, which is gone with the session."""
    async with Client(target, revision=revision) as one:
        assert [await count(one), await count(one)] == ["1", "2"]
        assert (await one.call_tool("count_in_thread")).text == "3"
        async with Client(target, revision=revision) as other:
            assert await count(other) == "1"
        many = await asyncio.gather(*(count(one) for _ in range(20)))
        assert {int(n) for n in many} == set(range(4, 24))
        refused = await one.call_tool("fill", {"size": 2000})
        assert refused.is_error
        assert "no room for 'filling'" in refused.text
        assert await count(one) == "24"
    async with Client(target, revision=revision) as again:
        assert await count(again) == "1"


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
async def test_in_memory(revision: str):
    """The connection is the session."""
    await check_sessions(counting(), revision)


@pytest.mark.parametrize("revision", [r for r in HANDSHAKE_REVISIONS if r != R1])
async def test_over_http(revision: str):
    """The session is that of Mcp-Session-Id."""
    async with http() as url:
        await check_sessions(url, revision)


async def test_over_http_with_sse():
    """The stream of the transport of 2024-11-05 is the session."""
    async with http(legacy_sse=True) as url:
        await check_sessions(url.replace("/mcp", "/sse"), R1)


async def test_over_stdio():
    """The process is the session."""
    program = "from tests.server.test_session_state import counting\ncounting().run()\n"
    await check_sessions([sys.executable, "-c", program], R4)


async def test_a_second_initialize_begins_a_new_state():
    """A client that says `initialize` again has a new session, and nothing of the old one's
    state.
    """
    connection = ServerConnection(Server("x").identity)
    session = ConnectionSession(connection)

    def greet(id: int) -> None:
        connection.receive(
            b'{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{"protocolVersion":'
            b'"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}' % id
        )

    greet(1)
    assert await session.save(b"old", was=b"")
    assert not await session.save(b"older", was=b"")
    assert await session.load() == b"old"
    greet(2)
    assert not await session.save(b"older", was=b"old")
    assert await session.load() == b""


@pytest.mark.parametrize("place", ["memory", "http"])
async def test_the_newest_revision_has_no_sessions(place: str):
    """The call fails and says what its author can do, whatever carries it; nothing is shared by
    accident.
    """
    if place == "memory":
        async with Client(counting(), revision=NEWEST) as client:
            result = await client.call_tool("count")
    else:
        async with http() as url, Client(url, revision=NEWEST) as client:
            result = await client.call_tool("count")
    assert result.is_error
    assert "MCP 2026-07-28 has no sessions" in result.text
    assert "under an id that a tool returns" in result.text


async def test_an_endpoint_without_sessions():
    """It says so."""
    async with http(sessions=False) as url, Client(url, revision=R2) as client:
        result = await client.call_tool("count")
    assert result.is_error
    assert "this server keeps no sessions" in result.text


async def test_by_hand():
    """An exchange made by hand has no session, and an author can catch that."""
    server = Server("careful")

    @server.tool
    async def careful(ctx: Context) -> str:
        try:
            return str(await ctx.session_state.get("x"))
        except NoSession:
            return "nothing kept"

    assert await text(server, "careful", revision=R4) == "nothing kept"
    assert (await call(counting(), "count")).is_error


@pytest.mark.parametrize("revision", [R2, R4])
async def test_a_write_that_is_not_awaited(revision: str):
    """The call fails and names the method: the value only looks kept."""
    server = Server("forgetful")

    @server.tool
    async def forget(ctx: Context) -> str:
        ctx.session_state.set("x", 1)  # type: ignore[unused-coroutine]  # it is forgotten on purpose
        return "kept"

    async with Client(server, revision=revision) as client:
        result = await client.call_tool("forget")
    assert result.is_error
    assert "`await ctx.session_state.set(...)`" in result.text


def test_the_bound_is_a_number():
    """What is less than 0 is refused."""
    with pytest.raises(ValueError, match="session_state_bytes"):
        Server("x", limits=ServerLimits(session_state_bytes=-1))
