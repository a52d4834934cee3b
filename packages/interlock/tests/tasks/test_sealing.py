"""Encryption at rest: nothing of a task can be read in the store without a key."""

from __future__ import annotations

import pytest

from interlock import McpError
from interlock.store import MemoryStore
from interlock.store.errors import StoreError
from tests.tasks.test_extension import Peer, make_server, result_of, serving

KEY = bytes(range(32))
OTHER = bytes(range(1, 33))


async def created(store: MemoryStore, keys: list[bytes]) -> tuple[str, bytes]:
    """Run a task, and return its id and its bytes in the store."""
    async with serving(make_server(store=store, keys=keys)) as peer:
        id = (await peer.create("add", a=40, b=2)).task_id
        task = await peer.ended(id)
        assert result_of(task)["content"][0]["text"] == "42"
    record = await store.records.load(f"task:local:{id}", now=0.0)
    assert record is not None
    return id, record.data


async def test_a_task_is_sealed_with_a_key() -> None:
    """Tool, arguments and result are plain without a key, and sealed with one."""
    _, plain = await created(MemoryStore(), [])
    _, sealed = await created(MemoryStore(), [KEY])
    for part in (b'"a":', b'"add"', b'"42"'):  # with quotes, which sealed bytes have by no chance
        assert part in plain
        assert part not in sealed


async def test_keys_can_be_rotated() -> None:
    """Every key opens, and the first one seals."""
    store = MemoryStore()
    id, _ = await created(store, [KEY])
    async with serving(make_server(store=store, keys=[OTHER, KEY])) as peer:
        assert (await peer.get(id)).status == "completed"


async def test_another_key_opens_nothing() -> None:
    """The server does not guess."""
    store = MemoryStore()
    id, _ = await created(store, [KEY])
    server = make_server(store=store, keys=[OTHER])
    with pytest.raises((StoreError, McpError)):
        async with serving(server):
            await Peer(server).get(id)
