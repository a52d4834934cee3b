"""Steps of the contract check of a Store about records with compare-and-swap."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from ...store import bounds
from ...store.errors import AccountFull
from ...store.interface import Store
from .promises import require

Step = Callable[[Store, Store], Awaitable[None]]


async def _one_of_many_writes(one: Store, other: Store) -> None:
    """if many workers create the same record at once, one succeeds, and all read its data"""
    now = time.time()
    versions = await asyncio.gather(
        *(
            store.records.swap("k", b"%d %d" % (n, place), was=0, until=now + 60, now=now)
            for n in range(10)
            for place, store in enumerate((one, other))
        )
    )
    require(
        sum(version > 0 for version in versions) == 1,
        f"20 calls created the same record at once, and the versions were {versions}",
    )
    for store in (one, other):
        record = await store.records.load("k", now=now)
        require(
            record is not None and record.version == max(versions),
            f"the version is {max(versions)}, and a worker read {record}",
        )
    require(
        await other.records.load("l", now=now) is None, "a record was found that was never written"
    )


async def _swaps_the_version_that_was(one: Store, other: Store) -> None:
    """a record is replaced only if its version is the given one, and versions only increase"""
    now = time.time()
    first = await one.records.swap("k", b"a", was=0, until=now + 60, now=now)
    again = await other.records.swap("k", b"a", was=0, until=now + 60, now=now)
    require(again == first, "a repeated write of the same data was not reported as written")
    second = await other.records.swap("k", b"b", was=first, until=now + 60, now=now, body=b"x")
    require(second > first, f"the version was {first}, and {second} after a change")
    require(
        not await one.records.swap("k", b"c", was=first, until=now + 60, now=now),
        "a record was replaced although its version had changed",
    )
    record = await one.records.load("k", now=now)
    require(
        record is not None and (record.data, record.body) == (b"b", b"x"),
        f"data b'b' and body b'x' were written, and {record} was read",
    )
    await one.records.remove("k", was=first)
    require(
        await other.records.load("k", now=now) is not None,
        "a record was removed although its version had changed",
    )
    await one.records.remove("k", was=second)
    require(await other.records.load("k", now=now) is None, "a removed record was found")
    third = await other.records.swap("k", b"d", was=0, until=now + 60, now=now)
    require(third > second, f"the version did not increase after a removal: {second}, then {third}")


async def _forgets_what_expired(one: Store, other: Store) -> None:
    """an expired record counts as absent"""
    now = time.time()
    await one.records.swap("k", b"a", was=0, until=now + 10, now=now)
    end = now + 10 + bounds.CLOCK_TOLERANCE
    require(
        await other.records.load("k", now=end - 1) is not None, "a record expired before its end"
    )
    require(await other.records.load("k", now=end + 1) is None, "a record was found after its end")
    require(
        await other.records.swap("k", b"b", was=0, until=end + 60, now=end + 1) > 0,
        "an expired record prevented a new one",
    )


async def _survives_wrong_clocks(one: Store, other: Store) -> None:
    """a record survives a wall clock that is briefly an hour ahead or behind"""
    now = time.time()
    await one.records.swap("k", b"a", was=0, until=now + 60, now=now)
    ahead = now + 3600
    await other.records.swap("l", b"b", was=0, until=ahead + 60, now=ahead)
    require(
        await one.records.load("k", now=now) is not None,
        "a worker whose clock was ahead removed a record, so an action may run twice",
    )
    behind = now - 3600
    await other.records.swap("m", b"c", was=0, until=behind + 60, now=behind)
    for at in (behind, now):
        require(
            await one.records.load("m", now=at) is not None,
            "a record written by a worker whose clock was behind was removed",
        )


async def _bounds_bodies(one: Store, other: Store) -> None:
    """the bytes of bodies are bounded for each account: the oldest bodies are dropped first, their
    data is kept, and other accounts lose nothing
    """
    now = time.time()
    size = bounds.ACCOUNT_BYTES // 4 + 1
    await other.records.swap("z", b"z", was=0, until=now + 60, now=now, body=b"z", account="two")
    for n in range(5):
        await one.records.swap(
            f"k{n}", b"%d" % n, was=0, until=now + 60 + n, now=now, body=b"x" * size, account="one"
        )
    records = [await other.records.load(f"k{n}", now=now) for n in range(5)]
    require(
        [record is not None and record.data for record in records]
        == [b"0", b"1", b"2", b"3", b"4"],
        "a record was removed because its account holds too many bytes",
    )
    require(
        [record is not None and len(record.body) for record in records] == [0, 0, size, size, size],
        "the kept bodies are not the newest ones within the limit",
    )
    kept = await one.records.load("z", now=now)
    require(kept is not None and kept.body == b"z", "a body of another account was dropped")
    last = records[4]
    assert last is not None
    await one.records.remove("k4", was=last.version)
    await one.records.swap("k5", b"5", was=0, until=now + 70, now=now, body=b"y", account="one")
    kept = await one.records.load("k2", now=now)
    require(
        kept is not None and len(kept.body) == size,
        "a body was dropped although a removed body had made room",
    )


async def _counts_accounts(one: Store, other: Store) -> None:
    """an account has at most as many records as a new one allows; expired ones do not count"""
    now = time.time()

    async def is_full(store: Store, key: str, at: float = now, account: str = "one") -> bool:
        try:
            await store.records.swap(
                key, b"new", was=0, until=at + 60, now=at, account=account, most=3
            )
        except AccountFull:
            return True
        return False

    for n in range(3):
        await one.records.swap(
            f"k{n}", b"%d" % n, was=0, until=now + (10 if n else 99), now=now, account="one"
        )
    require(await is_full(other, "k3"), "an account has more records than it may have")
    require(await other.records.load("k3", now=now) is None, "a record that was refused is there")
    require(not await is_full(other, "z", account="two"), "an account counts those of another")
    first = await other.records.load("k0", now=now)
    assert first is not None
    require(
        await one.records.swap(
            "k0", b"a", was=first.version, until=now + 99, now=now, account="one", most=3
        )
        > 0,
        "a record of a full account cannot be changed",
    )
    require(not await is_full(one, "k4", now + 11), "records that have expired fill an account")
    require(await one.records.load("k0", now=now + 11) is not None, "a record was lost")


async def _lists_keys(one: Store, other: Store) -> None:
    """every worker lists the keys with a prefix in order and in pages"""
    now = time.time()
    names = ("list:b", "list:a", "list:c*", "list:c?", "listen", "lis")
    for name in names:
        await one.records.swap(name, name.encode(), was=0, until=now + 60, now=now)
    await one.records.remove("list:b", was=await _version(one, "list:b", now))
    found = await other.records.keys("list:c", now=now + 2)
    require(
        found == ["list:c*", "list:c?"], f"the keys with the prefix list:c were listed as {found}"
    )
    found = await other.records.keys("list:", now=now + 2, most=2)
    require(found == ["list:a", "list:c*"], f"the first two keys were listed as {found}")
    found = await other.records.keys("list:", now=now + 2, after=found[-1], most=1)
    require(found == ["list:c?"], f"the next key was listed as {found}")


async def _version(store: Store, key: str, now: float) -> int:
    record = await store.records.load(key, now=now)
    return 0 if record is None else record.version


async def _knows_itself(one: Store, other: Store) -> None:
    """all workers that share a store see the same identity"""
    require(bool(one.records.identity), "an open store has no identity")
    require(
        one.records.identity == other.records.identity,
        "two workers that share a store see different identities",
    )


STEPS: tuple[Step, ...] = (
    _one_of_many_writes,
    _swaps_the_version_that_was,
    _forgets_what_expired,
    _survives_wrong_clocks,
    _bounds_bodies,
    _counts_accounts,
    _lists_keys,
    _knows_itself,
)
