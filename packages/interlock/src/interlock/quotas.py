"""Quotas: fair shares of a limited resource, counted by holder (a principal or an address), and a
fair queue (deficit round robin) for those who wait.

A share has no fixed size. It is a dynamic threshold: a holder may have up to a multiple of the
amount that is still free. So one holder alone can use nearly everything, and the more is used, the
less each one gets. Room for newcomers is always left.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from heapq import nlargest
from typing import Protocol

from msgspec import Struct

from . import types as t
from .exchange import Exchange

RATE_LIMITED = t.INTERNAL_ERROR
"""The code of an error that asks for fewer requests. 2026-07-28 has none of its own yet."""

DEFAULT_SHARE = 0.9
HELD_PER_BYTE = 4
"""Bytes of memory that one byte of a held request costs: its body, the arguments decoded from it,
and the copies that a handler makes (measured with large arguments: 3.3).
"""

_MOST_DONORS = 8  # the largest holders, whose idle things make room
_LONGEST_ADDRESS = 100  # characters; a proxy may write anything


def holder_of(principal: str | None, address: str | None) -> str:
    """Return the holder that a caller counts as.

    Args:
        principal: The key of its principal; None for an anonymous caller.
        address: Its network address; None if it has none. An IPv6 address counts as its /64.
    """
    return principal if principal is not None else holder_of_address(address)


def holder_of_exchange(x: Exchange) -> str:
    """Return the holder that an exchange counts for: its principal, or its address."""
    principal = x.caller.principal
    return holder_of(None if principal is None else principal.key, x.transport.address)


@lru_cache(10_000)
def holder_of_address(address: str | None) -> str:
    """Return the holder that an anonymous caller counts as."""
    if not address:
        return "address:"
    from .addresses import network_of  # late: only for callers from a network

    return f"address:{network_of(address[:_LONGEST_ADDRESS])}"


def busy_error(what: str = "", seconds: int = 1) -> t.McpError:
    """Return the error of one request too many.

    Args:
        what: The resource that is used up, such as "streams"; empty if it is not known.
        seconds: The time after which the client may try again, in seconds.
    """
    why = f"too many {what}" if what else "too much to do"
    words = f"The server is busy ({why}). Try again in {seconds} s."
    data: t.JSONObject = {"reason": "busy", "retryAfter": seconds}
    if what:
        data["resource"] = what
    return t.McpError(RATE_LIMITED, words, data)


class QuotaUsage(Struct, frozen=True):
    """The counters of one quota.

    Attributes:
        used: The amount that is in use.
        limit: The amount that there is.
        holders: How many holders use some of it.
        largest: The amount of the largest holder.
        refused: How often a holder was refused since the start.
        evicted: How often an idle thing of a large holder made room since the start.
    """

    used: int
    limit: int
    holders: int
    largest: int
    refused: int
    evicted: int


class CountsUsage(Protocol):
    """A limited resource with counters."""

    def usage(self) -> QuotaUsage:
        """Return the counters."""
        ...


class Quota:
    """One limited resource, counted by holder.

    It belongs to one event loop. Each amount that is acquired or taken is released once.

    Args:
        limit: The amount that there is, such as a number of calls or of bytes.
        share: The part that a single holder may have while nobody else has any, from 0.5 to 1.
            The rest stays free for others.

    Attributes:
        limit: The total amount.
        used: The amount in use.
        on_release: Called after each release, while requests wait for the resource.
    """

    __slots__ = (
        "_evicted",
        "_evictors",
        "_held",
        "_refused",
        "_uncontended",
        "_weight",
        "limit",
        "on_release",
        "used",
    )

    def __init__(self, limit: int, share: float = DEFAULT_SHARE) -> None:
        if limit < 1 or not 0.5 <= share <= 1:
            raise ValueError("a quota has a limit of 1 or more, and a share from 0.5 to 1")
        self.limit = limit
        self.used = 0
        self.on_release: Callable[[], object] | None = None
        self._weight = float("inf") if share == 1 else share / (1 - share)
        # Up to this amount in use there is room for one more of any holder: even if one holder had
        # all of it, `has_room` would be true.
        weighted = limit if share == 1 else self._weight * limit
        self._uncontended = limit - 1 if share == 1 else int((weighted - 1) / (1 + self._weight))
        self._held: dict[str, int] = {}
        self._evictors: list[Callable[[str], bool]] = []
        self._refused = 0
        self._evicted = 0

    def held(self, holder: str) -> int:
        """The amount that a holder has."""
        return self._held.get(holder, 0)

    def has_room(self, holder: str, amount: int = 1) -> bool:
        """Whether a holder may have so much more."""
        free = self.limit - self.used
        return amount <= free and self._held.get(holder, 0) + amount <= self._weight * free

    def acquire(self, holder: str, amount: int = 1) -> bool:
        """Take an amount if the holder may have it. Idle things of larger holders make room."""
        if self.acquire_now(holder, amount):
            return True
        if self._make_room(holder, amount):
            self.take(holder, amount)
            return True
        self._refused += 1
        return False

    def acquire_uncontended(self, holder: str) -> bool:
        """Take 1 if so little is in use that every holder may have more. This is the fast path of
        calls; False does not mean that there is no room.
        """
        if self.used > self._uncontended:
            return False
        self.used += 1
        held = self._held
        held[holder] = held.get(holder, 0) + 1
        return True

    def acquire_now(self, holder: str, amount: int = 1) -> bool:
        """Take an amount if there is room for it now."""
        wanted = self._held.get(holder, 0) + amount
        free = self.limit - self.used
        if amount > free or wanted > self._weight * free:
            return False
        self.used += amount
        self._held[holder] = wanted
        return True

    def take(self, holder: str, amount: int = 1) -> None:
        """Count an amount without asking, because the holder has it already."""
        self.used += amount
        self._held[holder] = self._held.get(holder, 0) + amount

    def release(self, holder: str, amount: int = 1) -> None:
        """Give an amount back. Raises ValueError if the holder does not have it."""
        held = self._held
        left = held.get(holder, 0) - amount
        if left > 0:
            held[holder] = left
        elif left < 0:
            raise ValueError(f"{holder!r} cannot release {amount}: it does not have them")
        else:
            held.pop(holder, None)
        self.used -= amount
        if self.on_release is not None:
            self.on_release()

    def on_pressure(self, evict: Callable[[str], bool]) -> None:
        """Make room with a function when a quota is full.

        Args:
            evict: Releases the least recently used idle thing of a holder. Returns False if the
                holder has none.
        """
        self._evictors.append(evict)

    def usage(self) -> QuotaUsage:
        """Return the counters."""
        return QuotaUsage(
            used=self.used,
            limit=self.limit,
            holders=len(self._held),
            largest=max(self._held.values(), default=0),
            refused=self._refused,
            evicted=self._evicted,
        )

    def _make_room(self, holder: str, amount: int) -> bool:
        """Evict idle things of those who have more than this holder would have."""
        if not self._evictors:
            return False
        while not self.has_room(holder, amount):
            least = self._held.get(holder, 0) + amount
            donors = nlargest(_MOST_DONORS, self._held, key=self._held.__getitem__)
            if not any(
                donor != holder and self._held[donor] > least and self._evict_of(donor)
                for donor in donors
            ):
                return False
        return True

    def _evict_of(self, donor: str) -> bool:
        before = self.used
        for evict in self._evictors:
            if evict(donor) and self.used < before:
                self._evicted += 1
                return True
        return False


class _QueuedRequest(Struct, eq=False):
    """A request that waits, and its cost."""

    turn: asyncio.Future[bool]
    cost: int
    has_place: bool = True


class _Line(Struct, eq=False):
    """The waiting requests of one holder, and the credit that it has left."""

    waiting: deque[_QueuedRequest]
    deficit: int = 0


class FairQueue:
    """Requests that wait for slots of a quota, served by deficit round robin between holders.

    The slots are released with `quota.release`. Then the next request in turn gets its slot.

    Args:
        quota: The slots.
        most: The maximum number of waiting requests, by the same rule of shares; 0 for none.
        quantum: The cost that a holder may run in each round.
        share: As for a Quota.
    """

    __slots__ = ("_lines", "_places", "_quantum", "quota")

    def __init__(
        self, quota: Quota, most: int, *, quantum: int = 1, share: float = DEFAULT_SHARE
    ) -> None:
        self.quota = quota
        self._places = Quota(most, share) if most else None
        if self._places is not None:
            self._places.on_pressure(self._evict)
        self._quantum = quantum
        self._lines: dict[str, _Line] = {}  # in the order of their turns

    async def acquire(self, holder: str, seconds: float | None = None, cost: int = 1) -> bool:
        """Wait for a slot.

        No request overtakes another one: a slot that is free while requests wait is one that none
        of their holders may have.

        Args:
            holder: The holder of the request.
            seconds: The maximum time to wait, in seconds; None for no limit.
            cost: The cost of the request, in the unit of the quantum.

        Returns:
            False if there was no slot in time, too many requests wait, or the queue was closed.
        """
        if holder not in self._lines and self.quota.acquire_now(holder):
            return True
        places = self._places
        if places is None or not places.acquire(holder):
            return False
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[bool] = loop.create_future()
        line = self._lines.setdefault(holder, _Line(deque()))
        self.quota.on_release = self._dispatch
        entry = _QueuedRequest(turn, min(cost, 64 * self._quantum))
        line.waiting.append(entry)
        timer = None if seconds is None else loop.call_later(seconds, _refuse, turn)
        try:
            self._dispatch()
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.result():
                self.quota.release(holder)
            raise
        finally:
            if timer is not None:
                timer.cancel()
            self._leave(holder, entry)
            self._remove(holder, entry)
            if not self._lines:
                self.quota.on_release = None

    def close(self) -> None:
        """Refuse every waiting request."""
        for line in self._lines.values():
            for entry in line.waiting:
                _refuse(entry.turn)

    def usage(self) -> QuotaUsage:
        """Return the counters of the places in the queue."""
        return QuotaUsage(0, 0, 0, 0, 0, 0) if self._places is None else self._places.usage()

    def _dispatch(self) -> None:
        """Give free slots to the holders in turn."""
        passed = 0  # holders in a row that may not have a slot now
        while passed < len(self._lines) and self.quota.used < self.quota.limit:
            holder, line = next(iter(self._lines.items()))
            while line.waiting and line.waiting[0].turn.done():
                line.waiting.popleft()
            if not line.waiting:
                del self._lines[holder]
                continue
            if not self.quota.has_room(holder):
                passed += 1
                self._rotate(holder, line)
                continue
            passed = 0
            line.deficit += self._quantum
            while line.waiting and line.waiting[0].cost <= line.deficit:
                entry = line.waiting[0]
                if entry.turn.done():
                    line.waiting.popleft()
                    continue
                if not self.quota.has_room(holder):
                    break
                line.waiting.popleft()
                line.deficit -= entry.cost
                self.quota.take(holder)
                self._leave(holder, entry)
                entry.turn.set_result(True)
            self._rotate(holder, line)

    def _rotate(self, holder: str, line: _Line) -> None:
        """Move a holder to the end; one without requests leaves, and loses its credit."""
        del self._lines[holder]
        if line.waiting:
            self._lines[holder] = line

    def _leave(self, holder: str, entry: _QueuedRequest) -> None:
        """Give back the place of a request in the queue."""
        if entry.has_place and self._places is not None:
            entry.has_place = False
            self._places.release(holder)

    def _evict(self, holder: str) -> bool:
        """Refuse the last request of a holder, for the first one of another holder."""
        line = self._lines.get(holder)
        for entry in reversed(line.waiting if line is not None else ()):
            if not entry.turn.done():
                _refuse(entry.turn)
                self._leave(holder, entry)
                return True
        return False

    def _remove(self, holder: str, entry: _QueuedRequest) -> None:
        """Take a request that no longer waits out of its line."""
        line = self._lines.get(holder)
        if line is None:
            return
        if entry in line.waiting:
            line.waiting.remove(entry)
        if not line.waiting:
            del self._lines[holder]


def _refuse(turn: asyncio.Future[bool]) -> None:
    if not turn.done():
        turn.set_result(False)
