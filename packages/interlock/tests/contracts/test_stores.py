"""Every store of the house passes the contract check, and the check catches stores that break a
promise.
"""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from interlock.store import MemoryStore, Replay
from interlock.testing import check_store
from tests.store.makers import KINDS, maker


@pytest.mark.parametrize("kind", KINDS)
async def test_stores_keep_their_promises(kind: str, tmp_path, redis_url: str):
    """In memory, in a SQLite file and in a real Redis server, the latter two as two workers share
    them (`HTL-35`, `HTL-36`, `HTL-42`).
    """
    await check_store(maker(kind, tmp_path, redis_url))


# -- a check that cannot fail shows nothing -------------------------------------------------------


def breaking(part: str, name: str, broken):
    """A store whose method `name` of `part` is `broken(the sound one)`."""

    def make() -> MemoryStore:
        store = MemoryStore()
        seam = getattr(store, part)
        setattr(seam, name, broken(getattr(seam, name)))
        return store

    return make


def immortal(load):
    """Finds sessions after their end."""

    async def broken(id, *, now):
        return await load(id, now=0.0)

    return broken


def roomy(create):
    """Has room for one more than it may."""

    async def broken(session, *, most, now):
        return await create(session, most=most + 1, now=now)

    return broken


def careless(save):
    """Saves over what it has not seen."""

    async def broken(session, *, was):
        return await save(session, was=was) or await save(
            session, was=msgspec.structs.replace(was, log_level="debug")
        )

    return broken


def fixed(prolong):
    """Never moves an end."""

    async def broken(id, until):
        pass

    return broken


def forgetful(load):
    """Loses who a session belongs to."""

    async def broken(id, *, now):
        found = await load(id, now=now)
        return found and msgspec.structs.replace(found, principal=None)

    return broken


def clinging(forget):
    """Keeps the events of sessions that have ended."""
    return lambda session: False


def shifted(read):
    """Replays the event that was seen, too."""

    async def broken(session, stream, after):
        return await read(session, stream, after - 1)

    return broken


def hiding(read):
    """Does not say that events are gone."""

    async def broken(session, stream, after):
        while (found := await read(session, stream, after)) is None and 0 <= after < 9:
            after += 1
        return found

    return broken


def endless(append):
    """Never notes an end."""
    return lambda session, stream, number, data, *, last: append(
        session, stream, number, data, last=False
    )


def deaf(publish):
    """Loses every seventh note."""
    count = iter(range(1_000_000))
    return lambda note: publish(note) if next(count) % 7 else None


def echoing(publish):
    """Tells every note twice."""

    def broken(note):
        publish(note)
        publish(note)

    return broken


def naive(replay):
    """Gives what there is, whatever was asked for."""

    async def broken(position):
        return await replay(position) or []

    return broken


def local(publish):
    """Cannot be used from other threads."""

    def broken(note):
        asyncio.get_running_loop()
        publish(note)

    return broken


def generous(acquire):
    """Gives everybody a bucket of their own."""
    count = iter(range(1_000_000))

    async def broken(key, *, rate, burst, now):
        return await acquire(f"{key}{next(count) % 2}", rate=rate, burst=burst, now=now)

    return broken


def eternal(is_alive):
    """Thinks that whoever lived once lives."""

    async def broken(worker, *, now):
        return await is_alive(worker, now=now) or await is_alive(worker, now=now - 10.0)

    return broken


def bottomless(read):
    """Claims to have kept what it has not."""

    async def broken(session, stream, after):
        return await read(session, stream, after) or (
            Replay(((0, b"z"),), True) if stream.startswith("t") and stream != "t" else None
        )

    return broken


def overwriting(swap):
    """Writes over whatever stands there."""
    versions = iter(range(1, 1000))

    async def broken(key, data, *, was, until, now, body=b"", account=""):
        return next(versions)

    return broken


def everlasting(load):
    """Finds records after their end."""

    async def broken(key, *, now):
        return await load(key, now=0.0)

    return broken


BROKEN = {
    "overwriting": (breaking("records", "swap", overwriting), "one succeeds"),
    "everlasting": (breaking("records", "load", everlasting), "counts as absent"),
    "no end of sessions": (breaking("sessions", "load", immortal), "an expired session is gone"),
    "too much room": (
        breaking("sessions", "create", roomy),
        "store at most `most` sessions",
    ),
    "blind saves": (
        breaking("sessions", "save", careless),
        "saved only if nothing except its end has changed",
    ),
    "fixed ends": (breaking("sessions", "prolong", fixed), "the end of a session can be moved"),
    "lost fields": (
        breaking("sessions", "load", forgetful),
        "every worker finds a session unchanged",
    ),
    "events that stay": (
        breaking("sessions", "_forget", clinging),
        "ending a session deletes it and its events",
    ),
    "one event too many": (
        breaking("events", "read", shifted),
        "the events after an event are replayed",
    ),
    "gaps unsaid": (
        breaking("events", "read", hiding),
        "an event after a gap hides the events",
    ),
    "streams without end": (
        breaking("events", "append", endless),
        "the end of the stream if it was appended",
    ),
    "nothing forgotten": (
        breaking("events", "read", bottomless),
        "the ended streams that a session keeps are bounded",
    ),
    "lost changes": (
        breaking("changes", "publish", deaf),
        "every listener of a topic receives every note",
    ),
    "changes twice": (
        breaking("changes", "publish", echoing),
        "every listener of a topic receives every note",
    ),
    "notes twice": (breaking("notes", "publish", echoing), "no notes of other topics"),
    "any position": (breaking("notes", "replay", naive), "None for a position that never existed"),
    "gaps in changes": (breaking("changes", "replay", naive), "the oldest notes are dropped first"),
    "one thread": (breaking("notes", "publish", local), "any thread may publish"),
    "two buckets": (
        breaking("rates", "acquire", generous),
        "a token bucket grants its burst at once",
    ),
    "workers for ever": (
        breaking("workers", "is_alive", eternal),
        "alive until the end of its last heartbeat",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
async def test_broken_stores_are_caught(case: str):
    """Each promise that is broken is the one that the error names."""
    build, words = BROKEN[case]

    async def make():
        return [build()]

    with pytest.raises(AssertionError, match=words):
        await check_store(make, patience=1.0)


async def test_stores_that_are_shared_come_in_pairs():
    """Who hands in one store that says it is shared has not shown that it is."""

    class Alone(MemoryStore):
        shared = True

    async def make():
        return [Alone()]

    with pytest.raises(AssertionError, match="`shared` is True"):
        await check_store(make)
