"""Contract check of a Vault, for two programs at once if it can be shared."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from ...store import Vault, hold_lease
from ..clock import Clock
from .promises import promise_of, require, within

MakeVaults = Callable[[Callable[[], float]], Awaitable[Sequence[Vault]]]
Step = Callable[[Vault, Vault, Clock], Awaitable[None]]

_MOST = 1024 * 1024

# Kinds and keys may be any text.
_NAMES = (
    ("token", "https://server.example/mcp?x=1&y=%2F#z"),
    ("token", "https://server.example/mcp?x=1&y=%2F#Z"),
    ("token", ""),
    ("", "token"),
    ("token:https", "//server.example"),
    ("token", "https://server.example/mcp\n"),
    ("token", "null \0 byte"),
    ("token", "null "),
    ("Stadt", "Ürümqi 东京 🔑"),
    ("Stadt", "\udcff half of a pair"),
    ("Stadt", "*?[a-z]%_"),
    ("Stadt", "../../etc/passwd"),
    ("Stadt", "x" * 8192),
)
_VALUES = (b"", b"\0", b"value", bytes(range(256)), "Ürümqi".encode(), b"\xff" * 5000)


async def check_vault(make_vault: MakeVaults, *, patience: float = 60.0) -> None:
    """Check that vaults keep the contract of `interlock.store.Vault`.

    Args:
        make_vault: Makes vaults that use the given clock, at an empty location: two that share the
            location, as two programs do, or one if a vault is not `shared`. Called for each step.
        patience: Seconds that each step waits.

    Raises:
        AssertionError: A promise is broken; the message names it.
    """
    for step in _STEPS:
        clock = Clock()
        vaults = list(await make_vault(clock))
        async with within(patience, "a vault", promise_of(step)):
            shared = vaults[0].shared
            require(
                len(vaults) == (2 if shared else 1),
                f"its `shared` is {shared}, yet `make_vault` gave {len(vaults)}",
            )
            try:
                await step(vaults[0], vaults[-1], clock)
            finally:
                for vault in vaults:
                    await vault.aclose()


async def _keeps_what_is_put(one: Vault, other: Vault, clock: Clock) -> None:
    """what was put is found by everybody as it was, by any kind and any key, and nothing else is"""
    for number, (kind, key) in enumerate(_NAMES):
        require(
            await one.get(kind, key) is None,
            f"something was found by {kind!r}, {key!r}, where nothing was kept",
        )
        await one.put(kind, key, b"%d" % number)
    for number, (kind, key) in enumerate(_NAMES):
        found = await other.get(kind, key)
        require(
            found == b"%d" % number,
            f"by {kind!r}, {key!r} there was kept {b'%d' % number!r}, and found {found!r}",
        )
    for value in _VALUES:
        await other.put("token", "", value)
        found = await one.get("token", "")
        require(found == value, f"{value!r} was kept, and {found!r} found")


async def _lists_keys(one: Vault, other: Vault, clock: Clock) -> None:
    """the keys of a kind are all that are kept of it, in order, and no others"""
    for kind, key in _NAMES:
        await one.put(kind, key, b"")
    await one.put("token", "over", b"", until=clock() + 1.0)
    clock.advance(1.0)
    for kind in ("token", "Stadt", "", "to", "token:", "other"):
        wanted = sorted(
            (key for each, key in _NAMES if each == kind),
            key=lambda key: key.encode("utf-8", "surrogatepass"),
        )
        found = await other.keys(kind)
        require(
            found == wanted,
            f"of the kind {kind!r} there are the keys {wanted}, and listed are {found}",
        )


async def _adds_once(one: Vault, other: Vault, clock: Clock) -> None:
    """of many who add at once one is told that it did, and that one's value is kept"""
    require(await one.add("k", "a", b"first"), "nothing was there, and yet nothing could be added")
    require(
        not await other.add("k", "a", b"second"), "something was there, and yet something was added"
    )
    require(await one.get("k", "a") == b"first", "what could not be added is there")
    for turn in range(3):
        done = await asyncio.gather(
            *((one, other)[n % 2].add("k", f"turn {turn}", b"%d" % n) for n in range(12))
        )
        require(sum(done) == 1, f"12 added at once, and {sum(done)} were told that they had")
        found = await other.get("k", f"turn {turn}")
        require(
            found == b"%d" % done.index(True),
            f"{done.index(True)} was told that it had added, and {found!r} was found",
        )


async def _swaps_what_was_seen(one: Vault, other: Vault, clock: Clock) -> None:
    """what is kept is swapped for something else only if it still is what was seen, so that no
    change is lost
    """
    require(not await one.swap("k", "a", b"", b"new"), "what was not there was swapped")
    require(await one.get("k", "a") is None, "what was not there was swapped, and is there now")
    await one.put("k", "a", b"0")
    require(
        not await other.swap("k", "a", b"1", b"2"), "what was not what had been seen was swapped"
    )
    require(await other.swap("k", "a", b"0", b"0"), "what was what had been seen was not swapped")

    async def count(vault: Vault) -> None:
        for _ in range(4):
            while True:
                was = await vault.get("k", "a")
                require(was is not None, "what is swapped again and again was gone for a moment")
                if await vault.swap("k", "a", was or b"", b"%d" % (int(was or b"0") + 1)):
                    break

    await asyncio.gather(*(count((one, other)[n % 2]) for n in range(4)))
    found = await one.get("k", "a")
    require(found == b"16", f"4 counted to 4 each, at once, and together they came to {found!r}")


async def _gives_to_one(one: Vault, other: Vault, clock: Clock) -> None:
    """of many who take at once one gets it, and then it is gone"""
    require(await one.pop("k", "a") is None, "something was taken where nothing was kept")
    for turn in range(3):
        await one.put("k", "a", b"%d" % turn)
        await one.put("k", "b", b"stays")
        got = await asyncio.gather(*((one, other)[n % 2].pop("k", "a") for n in range(12)))
        require(
            sorted(filter(None, got)) == [b"%d" % turn],
            f"12 took {turn} at once, and they got {got}",
        )
        require(await other.get("k", "a") is None, "what was taken is still there")
    require(await other.get("k", "b") == b"stays", "what nobody took is gone")


async def _removes(one: Vault, other: Vault, clock: Clock) -> None:
    """what is removed is gone, and whether there was something is said to one of those who remove
    it
    """
    require(not await one.remove("k", "a"), "something was removed where nothing was kept")
    await one.put("k", "a", b"")
    done = await asyncio.gather(*((one, other)[n % 2].remove("k", "a") for n in range(8)))
    require(sum(done) == 1, f"8 removed one thing at once, and {sum(done)} were told that they had")
    require(
        await other.get("k", "a") is None and await other.keys("k") == [],
        "what was removed is still there",
    )
    require(
        await other.add("k", "a", b"again"), "what was removed stands in the way of something new"
    )


async def _ends(one: Vault, other: Vault, clock: Clock) -> None:
    """what has come to its end is gone for everybody and for every method, and the last end that
    was given counts
    """
    now = clock()
    for key in ("get", "swap", "take", "remove", "add", "longer", "for ever"):
        require(
            await one.add("k", key, b"v", until=now + 10.0),
            "nothing was there, and yet nothing could be added",
        )
    await one.put("k", "shorter", b"v")
    await one.put("k", "longer", b"v", until=now + 20.0)
    await one.put("k", "for ever", b"v")
    require(
        await one.swap("k", "shorter", b"v", b"w", until=now + 5.0),
        "what was what had been seen was not swapped",
    )
    clock.now = now + 9.5
    require(await other.get("k", "get") == b"v", "something was gone before its end")
    require(
        not await other.add("k", "get", b"w"), "something was added over what was not at its end"
    )
    require(await other.get("k", "shorter") is None, "a swap did not bring its end forward")
    clock.now = now + 10.0
    require(await other.get("k", "get") is None, "something was found at its end")
    require(
        not await one.swap("k", "swap", b"v", b"w"),
        "something was swapped that had come to its end",
    )
    require(await other.pop("k", "take") is None, "something was taken that had come to its end")
    require(not await one.remove("k", "remove"), "something was removed that had come to its end")
    require(
        await other.keys("k") == ["for ever", "longer"],
        f"two of many have not come to their ends, and listed are {await other.keys('k')}",
    )
    require(
        await other.add("k", "add", b"new"),
        "what had come to its end stood in the way of something new",
    )
    require(
        await one.get("k", "add") == b"new",
        "what was added where something had ended was not found",
    )
    clock.now = now + 1_000_000.0
    require(
        await other.keys("k") == ["add", "for ever"],
        "what has no end has ended, or what has has not",
    )
    await one.put("k", "for ever", b"v", until=0.0)
    require(
        await other.get("k", "for ever") is None, "something was kept although its end had passed"
    )
    require(
        await other.swap("k", "add", b"new", b"new", until=0.0),
        "what was what had been seen was not swapped",
    )
    require(await one.keys("k") == [], "a swap with an end that had passed did not remove anything")


async def _bounds_values(one: Vault, other: Vault, clock: Clock) -> None:
    """values of one mebibyte are kept where the vault has room for them, larger ones and longer
    names are refused, and nothing changes
    """
    await one.put("k", "a", b"small")
    for refused in (
        lambda: one.put("k", "a", b"x" * (_MOST + 1)),
        lambda: one.add("k", "b", b"x" * (_MOST + 1)),
        lambda: one.swap("k", "a", b"small", b"x" * (_MOST + 1)),
        lambda: one.put("k", "ü" * 4097, b""),
        lambda: one.put("k" * 8193, "a", b""),
        lambda: one.put("k", "a", b"", until=float("nan")),
    ):
        try:
            await refused()
        except ValueError:
            continue
        raise AssertionError("something was taken that is too large, or no time")
    require(await other.get("k", "a") == b"small", "what could not be changed was")
    require(await other.keys("k") == ["a"], "what could not be added is there")
    await one.put("k", "a", b"x" * 65_536)
    require(await other.get("k", "a") == b"x" * 65_536, "64 KiB were not found as they were kept")


async def _outlives_who_keeps(one: Vault, other: Vault, clock: Clock) -> None:
    """a vault may be closed twice and used again, and who shares it finds all that was kept"""
    await one.put("k", "a", b"before")
    await one.aclose()
    await one.aclose()
    require(await other.get("k", "a") == b"before", "closing a vault took a record with it")
    require(await one.get("k", "a") == b"before", "a vault that is used again has lost a record")
    await one.put("k", "a", b"after")
    require(await other.pop("k", "a") == b"after", "a vault that is used again keeps nothing")


async def _serves_many_loops(one: Vault, other: Vault, clock: Clock) -> None:
    """a vault may be used from several event loops, one after another and at once"""

    async def visit(number: int) -> bytes | None:
        await one.put("k", str(number), b"%d" % number)
        return await one.get("k", str(number))

    await visit(0)
    for number in range(1, 4):
        found = await asyncio.to_thread(asyncio.run, visit(number))
        require(
            found == b"%d" % number, f"in another event loop {number} was kept and {found!r} found"
        )
    found_at_once = await asyncio.gather(
        *(asyncio.to_thread(asyncio.run, visit(number)) for number in range(4, 8))
    )
    require(
        found_at_once == [b"4", b"5", b"6", b"7"],
        f"in four event loops at once 4 to 7 were kept, and {found_at_once} found",
    )
    require(len(await one.keys("k")) == 8, "what several event loops kept is not all there")


async def _lets_one_in(one: Vault, other: Vault, clock: Clock) -> None:
    """`hold_lease` lets one in at a time, also of those who use different vaults at one place"""
    inside = 0
    most = 0
    turns = 0

    async def enter(vault: Vault) -> None:
        nonlocal inside, most, turns
        async with hold_lease(vault, "https://server.example", clock=clock):
            inside += 1
            most = max(most, inside)
            await vault.get("k", "a")  # the other tasks run meanwhile
            inside -= 1
            turns += 1

    await asyncio.gather(*(enter((one, other)[n % 2]) for n in range(6)))
    require(
        (most, turns) == (1, 6),
        f"6 wanted to be alone: {turns} were inside, {most} of them at once",
    )


_STEPS: tuple[Step, ...] = (
    _keeps_what_is_put,
    _lists_keys,
    _adds_once,
    _swaps_what_was_seen,
    _gives_to_one,
    _removes,
    _ends,
    _bounds_values,
    _outlives_who_keeps,
    _serves_many_loops,
    _lets_one_in,
)
