"""Idempotency keys in `_meta`: a `tools/call` that is sent again gives its first outcome."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import Client, Context, McpError, Principal, Server
from interlock import types as t
from interlock.idempotency import IDEMPOTENCY_KEY, NoPeers
from interlock.store import StoreError
from interlock.store.memory.records import MemoryRecords
from interlock.wire.revisions import NEWEST, REVISIONS
from tests.retries import share_records


def shop() -> tuple[Server, list[str]]:
    """A server whose tools note what they do."""
    server = Server("shop")
    done: list[str] = []

    @server.tool
    async def buy(item: str) -> str:
        done.append(item)
        if item == "nothing":
            raise McpError(-32000, "sold out")
        return f"{item} {len(done)}"

    @server.tool
    async def order(item: str, ctx: Context) -> str:
        if not await ctx.confirm(f"Order {item}?"):
            return "no"
        done.append(item)
        return f"{item} {len(done)}"

    return server, done


def key(name: str) -> dict[str, Any]:
    """The `_meta` of a call with an idempotency key."""
    return {IDEMPOTENCY_KEY: name}


@pytest.mark.parametrize("revision", REVISIONS)
async def test_the_first_outcome_is_given_again(revision: str) -> None:
    """Also an error; without a key, or with another one, the call is another."""
    server, done = shop()
    async with Client(server, revision=revision) as client:
        for _ in range(2):
            assert (await client.call_tool("buy", {"item": "tea"}, meta=key("a"))).text == "tea 1"
            with pytest.raises(McpError, match="sold out"):
                await client.call_tool("buy", {"item": "nothing"}, meta=key("b"))
        assert done == ["tea", "nothing"]
        assert (await client.call_tool("buy", {"item": "tea"}, meta=key("c"))).text == "tea 3"
        assert (await client.call_tool("buy", {"item": "tea"})).text == "tea 4"


async def test_calls_at_once_are_one_call() -> None:
    """Those who come while it runs wait for its outcome."""
    server, done = shop()
    async with Client(server) as client:
        calls = [client.call_tool("buy", {"item": "tea"}, meta=key("a")) for _ in range(10)]
        assert {result.text for result in await asyncio.gather(*calls)} == {"tea 1"}
    assert done == ["tea"]


async def test_a_store_that_is_away_is_named_and_nothing_runs() -> None:
    """The caller may try again, and then the call runs."""
    server, done = shop()
    records = MemoryRecords()
    swap = records.swap

    async def failing(*args: Any, **more: Any) -> int:
        records.swap = swap  # type: ignore[method-assign]  # it is back
        raise StoreError("away")

    records.swap = failing  # type: ignore[method-assign]  # a store that comes back
    server.share_calls(records, NoPeers())
    async with Client(server) as client:
        with pytest.raises(McpError, match="cannot reach its store. Try again later") as caught:
            await client.call_tool("buy", {"item": "tea"}, meta=key("a"))
        assert caught.value.data == {"reason": "store"}
        assert done == []
        assert (await client.call_tool("buy", {"item": "tea"}, meta=key("a"))).text == "tea 1"


async def test_a_key_is_for_one_call_of_one_principal() -> None:
    """The same key with other arguments is an error; another principal's key is another key."""
    server, done = shop()
    async with Client(server.transport(principal=Principal(subject="ada"))) as ada:
        assert (await ada.call_tool("buy", {"item": "tea"}, meta=key("a"))).text == "tea 1"
        with pytest.raises(McpError, match="used for another call") as caught:
            await ada.call_tool("buy", {"item": "milk"}, meta=key("a"))
        assert caught.value.code == t.INVALID_PARAMS
    async with Client(server.transport(principal=Principal(subject="bob"))) as bob:
        assert (await bob.call_tool("buy", {"item": "milk"}, meta=key("a"))).text == "milk 2"
    assert done == ["tea", "milk"]


@pytest.mark.parametrize("bad", ["", 5, "x" * 256, None], ids=["empty", "number", "long", "null"])
async def test_a_key_is_a_short_string(bad: Any) -> None:
    """Anything else is refused before the tool runs."""
    server, done = shop()
    async with Client(server) as client:
        with pytest.raises(McpError, match="must be a string of 1 to 255 characters"):
            await client.call_tool("buy", {"item": "tea"}, meta={IDEMPOTENCY_KEY: bad})
    assert done == []


@pytest.mark.parametrize("revision", ["2025-11-25", NEWEST])
async def test_a_call_that_asks_gives_its_final_outcome(revision: str) -> None:
    """The person is asked once, and the action happens once."""
    server, done = shop()
    asked: list[str] = []

    def answer(question: Any) -> dict[str, bool]:
        asked.append(question.message)
        return {"confirm": True}

    async with Client(server, revision=revision, elicit=answer) as client:
        for _ in range(3):
            result = await client.call_tool("order", {"item": "tea"}, meta=key("a"))
            assert result.text == "tea 1"
    assert done == ["tea"]
    assert asked == ["Order tea?"]


async def test_all_workers_know_a_key() -> None:
    """Whichever of them a call comes to."""
    one, done = shop()
    other, done_at_other = shop()
    share_records(one, other)
    for server in (one, other):
        async with Client(server) as client:
            assert (await client.call_tool("buy", {"item": "tea"}, meta=key("a"))).text == "tea 1"
    assert (done, done_at_other) == (["tea"], [])
