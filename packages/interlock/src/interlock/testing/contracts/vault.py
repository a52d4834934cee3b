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
                f"`shared` is {shared}, but `make_vault` returned {len(vaults)} vaults",
            )
            try:
                await step(vaults[0], vaults[-1], clock)
            finally:
                for vault in vaults:
                    await vault.aclose()


async def _keeps_what_is_put(one: Vault, other: Vault, clock: Clock) -> None:
    """every program finds a value unchanged under any kind and any key, and no other value"""
    for number, (kind, key) in enumerate(_NAMES):
        require(
            await one.get(kind, key) is None,
            f"a value was found under {kind!r}, {key!r} before one was stored",
        )
        await one.put(kind, key, b"%d" % number)
    for number, (kind, key) in enumerate(_NAMES):
        found = await other.get(kind, key)
        require(
            found == b"%d" % number,
            f"{b'%d' % number!r} was stored under {kind!r}, {key!r}, and {found!r} was found",
        )
    for value in _VALUES:
        await other.put("token", "", value)
        found = await one.get("token", "")
        require(found == value, f"{value!r} was stored, and {found!r} was found")


async def _lists_keys(one: Vault, other: Vault, clock: Clock) -> None:
    """`keys` lists all keys of a kind in order, and no expired ones"""
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
            f"the kind {kind!r} has the keys {wanted}, and {found} were listed",
        )


async def _adds_once(one: Vault, other: Vault, clock: Clock) -> None:
    """of many calls of `add` at once, one succeeds, and its value is stored"""
    require(await one.add("k", "a", b"first"), "`add` failed although the key was absent")
    require(
        not await other.add("k", "a", b"second"), "`add` succeeded although the key was present"
    )
    require(await one.get("k", "a") == b"first", "a failed `add` changed the value")
    for turn in range(3):
        done = await asyncio.gather(
            *((one, other)[n % 2].add("k", f"turn {turn}", b"%d" % n) for n in range(12))
        )
        require(sum(done) == 1, f"12 calls of `add` at once, and {sum(done)} succeeded")
        found = await other.get("k", f"turn {turn}")
        require(
            found == b"%d" % done.index(True),
            f"call {done.index(True)} succeeded, and {found!r} was found",
        )


async def _swaps_what_was_seen(one: Vault, other: Vault, clock: Clock) -> None:
    """`swap` replaces a value only if it is still the given one (compare-and-swap), so no change is
    lost
    """
    require(not await one.swap("k", "a", b"", b"new"), "`swap` replaced an absent value")
    require(await one.get("k", "a") is None, "a failed `swap` stored a value")
    await one.put("k", "a", b"0")
    require(not await other.swap("k", "a", b"1", b"2"), "`swap` replaced a value that had changed")
    require(await other.swap("k", "a", b"0", b"0"), "`swap` failed on an unchanged value")

    async def count(vault: Vault) -> None:
        for _ in range(4):
            while True:
                was = await vault.get("k", "a")
                require(was is not None, "the value was absent during repeated swaps")
                if await vault.swap("k", "a", was or b"", b"%d" % (int(was or b"0") + 1)):
                    break

    await asyncio.gather(*(count((one, other)[n % 2]) for n in range(4)))
    found = await one.get("k", "a")
    require(found == b"16", f"4 tasks added 4 each to a counter, and the total is {found!r}")


async def _gives_to_one(one: Vault, other: Vault, clock: Clock) -> None:
    """of many calls of `pop` at once, one gets the value, and then it is gone"""
    require(await one.pop("k", "a") is None, "`pop` returned an absent value")
    for turn in range(3):
        await one.put("k", "a", b"%d" % turn)
        await one.put("k", "b", b"stays")
        got = await asyncio.gather(*((one, other)[n % 2].pop("k", "a") for n in range(12)))
        require(
            sorted(filter(None, got)) == [b"%d" % turn],
            f"12 calls of `pop` at once for the value {turn}, and they returned {got}",
        )
        require(await other.get("k", "a") is None, "a popped value was found")
    require(await other.get("k", "b") == b"stays", "`pop` removed another value")


async def _removes(one: Vault, other: Vault, clock: Clock) -> None:
    """a removed value is gone, and of many calls of `remove` at once, one returns True"""
    require(not await one.remove("k", "a"), "`remove` succeeded on an absent value")
    await one.put("k", "a", b"")
    done = await asyncio.gather(*((one, other)[n % 2].remove("k", "a") for n in range(8)))
    require(sum(done) == 1, f"8 calls of `remove` at once, and {sum(done)} returned True")
    require(
        await other.get("k", "a") is None and await other.keys("k") == [],
        "a removed value was found",
    )
    require(await other.add("k", "a", b"again"), "a removed value prevented a new one")


async def _ends(one: Vault, other: Vault, clock: Clock) -> None:
    """an expired value is gone for every program and every method, and the last end that was set
    counts
    """
    now = clock()
    for key in ("get", "swap", "take", "remove", "add", "longer", "for ever"):
        require(
            await one.add("k", key, b"v", until=now + 10.0),
            "`add` failed although the key was absent",
        )
    await one.put("k", "shorter", b"v")
    await one.put("k", "longer", b"v", until=now + 20.0)
    await one.put("k", "for ever", b"v")
    require(
        await one.swap("k", "shorter", b"v", b"w", until=now + 5.0),
        "`swap` failed on an unchanged value",
    )
    clock.now = now + 9.5
    require(await other.get("k", "get") == b"v", "a value expired before its end")
    require(not await other.add("k", "get", b"w"), "`add` replaced a value that had not expired")
    require(await other.get("k", "shorter") is None, "`swap` did not shorten the time to live")
    clock.now = now + 10.0
    require(await other.get("k", "get") is None, "an expired value was found")
    require(
        not await one.swap("k", "swap", b"v", b"w"),
        "`swap` replaced an expired value",
    )
    require(await other.pop("k", "take") is None, "`pop` returned an expired value")
    require(not await one.remove("k", "remove"), "`remove` succeeded on an expired value")
    require(
        await other.keys("k") == ["for ever", "longer"],
        f"two keys have not expired, and {await other.keys('k')} were listed",
    )
    require(
        await other.add("k", "add", b"new"),
        "an expired value prevented a new one",
    )
    require(
        await one.get("k", "add") == b"new",
        "a value added after another had expired was not found",
    )
    clock.now = now + 1_000_000.0
    require(
        await other.keys("k") == ["add", "for ever"],
        "a value without an end expired, or one with an end did not",
    )
    await one.put("k", "for ever", b"v", until=0.0)
    require(await other.get("k", "for ever") is None, "a value was stored with an end in the past")
    require(
        await other.swap("k", "add", b"new", b"new", until=0.0),
        "`swap` failed on an unchanged value",
    )
    require(await one.keys("k") == [], "`swap` with an end in the past did not remove the value")


async def _bounds_values(one: Vault, other: Vault, clock: Clock) -> None:
    """larger values than one mebibyte and too long names are refused, and change nothing"""
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
        raise AssertionError(
            "a value or name above the limit, or an end that is not a number, was accepted"
        )
    require(await other.get("k", "a") == b"small", "a refused call changed a value")
    require(await other.keys("k") == ["a"], "a refused call added a value")
    await one.put("k", "a", b"x" * 65_536)
    require(await other.get("k", "a") == b"x" * 65_536, "a value of 64 KiB was found changed")


async def _outlives_who_keeps(one: Vault, other: Vault, clock: Clock) -> None:
    """a vault can be closed twice and used again, and other programs still find its values"""
    await one.put("k", "a", b"before")
    await one.aclose()
    await one.aclose()
    require(await other.get("k", "a") == b"before", "closing a vault deleted a value")
    require(await one.get("k", "a") == b"before", "a vault that was used again lost a value")
    await one.put("k", "a", b"after")
    require(await other.pop("k", "a") == b"after", "a vault that was used again stored nothing")


async def _serves_many_loops(one: Vault, other: Vault, clock: Clock) -> None:
    """a vault can be used from several event loops, one after another and at once"""

    async def visit(number: int) -> bytes | None:
        await one.put("k", str(number), b"%d" % number)
        return await one.get("k", str(number))

    await visit(0)
    for number in range(1, 4):
        found = await asyncio.to_thread(asyncio.run, visit(number))
        require(found == b"%d" % number, f"another event loop stored {number}, and found {found!r}")
    found_at_once = await asyncio.gather(
        *(asyncio.to_thread(asyncio.run, visit(number)) for number in range(4, 8))
    )
    require(
        found_at_once == [b"4", b"5", b"6", b"7"],
        f"four event loops stored 4 to 7 at once, and found {found_at_once}",
    )
    require(len(await one.keys("k")) == 8, "a value of one of several event loops was lost")


async def _lets_one_in(one: Vault, other: Vault, clock: Clock) -> None:
    """`hold_lease` admits one holder at a time, also through different vaults at one location"""
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
        f"6 holders: {turns} had the lease, up to {most} at once",
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
