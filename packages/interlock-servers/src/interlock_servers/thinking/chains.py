"""Chains of thoughts: the rules for adding one, and their storage for each caller."""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Callable, Iterable

import msgspec
from msgspec import Struct, field

from interlock import Caller, ToolError
from interlock.store import Vault

PREFIX = "INTERLOCK_THINKING_"
MAIN = "main"
HERE = "here"
_ID = re.compile(r"[\w-]{22}", re.ASCII)
_MOST_TRIES = 100  # attempts to write while others write


class ThinkingLimits(Struct, frozen=True, kw_only=True):
    """The limits of chains: INTERLOCK_THINKING_THOUGHT sets `thought`, and so on."""

    thought: int = 16 * 1024  # bytes of one thought
    thoughts: int = 500  # in one chain
    size: int = 512 * 1024  # bytes of one chain
    branches: int = 50  # in one chain
    chains: int = 100  # of one caller; the least recently used is dropped first
    total: int = 64 * 1024 * 1024  # bytes of all chains of all callers, in memory
    seconds: int = 24 * 3600  # for which a chain stays after its last thought


class Thought(Struct, rename="camel", omit_defaults=True, frozen=True):
    """A thought. `branch` names its branch."""

    thought: str
    thought_number: int
    total_thoughts: int
    next_thought_needed: bool
    branch: str = MAIN
    revises_thought: int | None = None
    needs_more_thoughts: bool = False


class Fork(Struct, frozen=True):
    """The start of a branch: after which thought of which branch."""

    line: str
    number: int


class Chain(Struct):
    """Thoughts in order, and their branches.

    Only its owner can see it. A chain of an anonymous caller is visible to anyone who knows its id.
    """

    id: str
    owner: str
    thoughts: list[Thought] = field(default_factory=list)
    forks: dict[str, Fork] = field(default_factory=dict)

    def along(self, line: str) -> dict[int, Thought]:
        """The thoughts that lead to the end of a line, by number: its own, and those before it
        branched off.
        """
        reach: dict[str, float] = {line: float("inf")}  # the last number that counts of each line
        while (fork := self.forks.get(line)) is not None:
            reach[fork.line] = min(reach[line], fork.number)
            line = fork.line
        return {
            one.thought_number: one
            for one in self.thoughts
            if one.thought_number <= reach.get(one.branch, 0)
        }

    def add(self, thought: Thought, fork_from: int | None) -> bool:
        """Add a thought; False if it repeats the last one.

        Raises ToolError, which says what to do instead.
        """
        if self.thoughts and self.thoughts[-1] == thought:
            return False  # its response was lost, and it was sent again
        line = thought.branch
        if line != MAIN and line not in self.forks:
            self.forks[line] = self._fork(line, fork_from)
        elif fork_from is not None and line != MAIN and self.forks[line].number != fork_from:
            raise ToolError(
                f"Branch {line!r} began at thought {self.forks[line].number}. Leave out "
                "branchFromThought, or use another branchId."
            )
        seen = self.along(line)
        last = max(seen, default=0)
        if thought.thought_number <= last:
            raise ToolError(
                f"Thought {last} is already on {words_of(line)}, so the next one has the "
                f"number {last + 1}. To change an earlier one, send the next with "
                "isRevision and revisesThought; to try something else, branchFromThought "
                "and a new branchId."
            )
        if thought.revises_thought is not None and thought.revises_thought not in seen:
            raise ToolError(
                f"There is no thought {thought.revises_thought} on {words_of(line)} to revise. "
                f"There are: {numbers(seen)}."
            )
        self.thoughts.append(thought)
        return True

    def _fork(self, name: str, number: int | None) -> Fork:
        """The start of a new branch: on the line of the last thought, else on the first line with
        that number.
        """
        if number is None:
            raise ToolError(
                f"There is no branch {name!r} yet. Say with branchFromThought after which thought "
                "it begins."
            )
        lines = [self.thoughts[-1].branch] if self.thoughts else []
        for line in dict.fromkeys([*lines, MAIN, *self.forks]):
            if number in self.along(line):
                return Fork(line, number)
        raise ToolError(
            f"There is no thought {number} to branch from. There are: "
            f"{numbers(one.thought_number for one in self.thoughts)}."
        )

    @property
    def finished(self) -> bool:
        """Whether the last thought said that no further one is needed."""
        return bool(self.thoughts) and not self.thoughts[-1].next_thought_needed

    def revised(self) -> dict[tuple[str, int], list[int]]:
        """The revised thoughts, by line and number, with the numbers of their revisions."""
        found: dict[tuple[str, int], list[int]] = {}
        for one in self.thoughts:
            if (
                one.revises_thought is not None
                and (old := self.along(one.branch).get(one.revises_thought)) is not None
            ):
                found.setdefault((old.branch, old.thought_number), []).append(one.thought_number)
        return found


def words_of(line: str) -> str:
    """A line as text."""
    return "the main line" if line == MAIN else f"branch {line}"


def numbers(found: Iterable[int]) -> str:
    """Numbers as text."""
    return ", ".join(map(str, sorted(set(found)))) or "none"


# -- storage ---------------------------------------------------------------------------------------


class ChainStore:
    """The chains of all callers in a vault: each under its id, and a list for each caller."""

    def __init__(
        self, vault: Vault, limits: ThinkingLimits, clock: Callable[[], float] = time.time
    ) -> None:
        self._vault = vault
        self.limits = limits
        self._clock = clock

    async def find(self, id: str, caller: Caller) -> Chain | None:
        """A chain; None if there is none, or it belongs to another caller."""
        raw = await self._vault.get("chain", id) if _ID.fullmatch(id) else None
        chain = msgspec.json.decode(raw, type=Chain) if raw is not None else None
        return chain if chain is not None and chain.owner == owner_of(caller) else None

    async def think(
        self, id: str | None, caller: Caller, thought: Thought, fork_from: int | None
    ) -> Chain:
        """Add a thought to a chain, or to a new one. Concurrent calls see each other's thoughts.

        Raises ToolError.
        """
        for _ in range(_MOST_TRIES):
            raw = (
                await self._vault.get("chain", id) if id is not None and _ID.fullmatch(id) else None
            )
            chain = (
                msgspec.json.decode(raw, type=Chain)
                if raw is not None
                else Chain(secrets.token_urlsafe(16), owner_of(caller))
            )
            if id is not None and (raw is None or chain.owner != owner_of(caller)):
                raise unknown(id)
            if not chain.add(thought, fork_from):
                return chain
            written = msgspec.json.encode(chain)
            self._check(chain, len(written))
            until = self._clock() + self.limits.seconds
            if await self._keep("chain", chain.id, raw, written, until):
                await self._list(owner_of(caller), until, chain.id)
                return chain
        raise ToolError("Too many add to this chain at once. Try again.")

    def _check(self, chain: Chain, size: int) -> None:
        if len(chain.thoughts) > self.limits.thoughts or size > self.limits.size:
            raise ToolError(
                f"This chain is full at {len(chain.thoughts) - 1} thoughts. Sum it up in the "
                "first thought of a new one."
            )
        if len(chain.forks) > self.limits.branches:
            known = ", ".join(list(chain.forks)[: self.limits.branches])
            raise ToolError(
                f"This chain has {self.limits.branches} branches already. Go on with one of them: "
                f"{known}."
            )

    async def _keep(
        self, kind: str, key: str, was: bytes | None, written: bytes, until: float
    ) -> bool:
        if was is None:
            return await self._vault.add(kind, key, written, until=until)
        return await self._vault.swap(kind, key, was, written, until=until)

    async def ids(self, owner: str) -> list[str]:
        """The ids of a caller's chains, the most recently used last; none for callers who cannot be
        told apart.
        """
        raw = await self._vault.get("chains", owner) if owner else None
        return msgspec.json.decode(raw, type=list[str]) if raw is not None else []

    async def chains(self, caller: Caller) -> list[Chain]:
        """A caller's chains, the most recently used first."""
        found = [await self.find(id, caller) for id in reversed(await self.ids(owner_of(caller)))]
        return [one for one in found if one is not None]

    async def forget(self, id: str, caller: Caller) -> bool:
        """Drop a chain; False if there is none, or it belongs to another caller."""
        if await self.find(id, caller) is None:
            return False
        await self._vault.pop("chain", id)
        await self._list(owner_of(caller), self._clock() + self.limits.seconds, None, gone=id)
        return True

    async def _list(
        self, owner: str, until: float, used: str | None, gone: str | None = None
    ) -> None:
        """Put a chain at the end of its owner's list, or remove it; chains beyond the limit are
        dropped.
        """
        if not owner:
            return
        for _ in range(_MOST_TRIES):
            raw = await self._vault.get("chains", owner)
            ids = [
                id
                for id in (msgspec.json.decode(raw, type=list[str]) if raw is not None else [])
                if id not in (used, gone)
            ]
            ids += [used] if used is not None else []
            dropped = ids[: -self.limits.chains]
            kept = ids[-self.limits.chains :]
            written = msgspec.json.encode(kept)
            if await self._keep("chains", owner, raw, written, until):
                for id in dropped:
                    await self._vault.pop("chain", id)
                return


def owner_of(caller: Caller) -> str:
    """The owner of a chain: a principal, a session, or the user of this machine.

    Anonymous callers without a session cannot be told apart.
    """
    if caller.principal is not None:
        return f"principal {hashlib.sha256(caller.principal.key.encode()).hexdigest()}"
    if caller.session is not None:
        return f"session {caller.session}"
    return "" if caller.anonymous else HERE


def unknown(id: str) -> ToolError:
    """The error for an id: the same for an unknown chain and for one of another caller."""
    return ToolError(
        f"There is no chain {id[:40]!r}, or it has ended. Leave `chain` out and send "
        "thoughtNumber 1 to begin a new one."
    )
