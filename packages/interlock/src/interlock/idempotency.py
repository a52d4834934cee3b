"""Idempotency: all workers share one record of an action. The action starts once, and a repeated
request gets the outcome of the first one.

Before an action begins, its record says "started". Afterwards the record holds the outcome. If the
worker of a started action has died, the action is in doubt: it runs again only if its author
declared it idempotent.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from typing import Protocol

import msgspec
from msgspec import Struct

from .caches import BoundedCache
from .store.bounds import CLOCK_TOLERANCE
from .store.interface import Record, RecordStore
from .types.errors import INTERNAL_ERROR, INVALID_PARAMS, McpError

_LOOK = 0.25  # seconds between two reads of a record that another worker holds
_PATIENCE = 2.0  # seconds between two write attempts while the store is unavailable
_MOST_UNSURE = 1000

IDEMPOTENCY_KEY = "dev.interlock/idempotency-key"
"""The key of `_meta` under which a client names a `tools/call` that it may have to repeat."""

KEY_SECONDS = 86_400.0
"""The time for which the outcome of a call with an idempotency key is returned again, in seconds.
"""

CHANGED = "call-changed"
"""The kind of the message that announces a changed record; the subject of the message is the key.
"""


class Peers(Protocol):
    """The other workers that share the records, and the messages between workers."""

    @property
    def worker(self) -> str:
        """The name of this worker."""
        ...

    def publish(self, kind: str, session: str, payload: str = "") -> None:
        """Send a message to all other workers."""
        ...

    def on(self, kind: str, receiver: Callable[[str, str], None]) -> None:
        """Call `receiver` with the subject and the payload of each message of a kind."""
        ...

    async def is_alive(self, worker: str) -> bool:
        """Whether a worker is alive, as far as this worker knows."""
        ...


class NoPeers:
    """Replaces `Peers` for a worker that shares its records with no other worker."""

    def __init__(self) -> None:
        self.worker = os.urandom(6).hex()

    def publish(self, kind: str, session: str, payload: str = "") -> None:
        """Do nothing: there are no other workers."""

    def on(self, kind: str, receiver: Callable[[str, str], None]) -> None:
        """Do nothing: no other worker sends messages."""

    async def is_alive(self, worker: str) -> bool:
        """False: there are no other workers."""
        return worker == self.worker


class ActionState(Struct, array_like=True):
    """The content of an action's record.

    Attributes:
        worker: The worker that started the action.
        attempt: A random name of the attempt. Two attempts never write the same record.
        ended: Whether the action has ended. The body of the record is then its outcome.
        digest: A digest of the request, if the client chose the key.
    """

    worker: str
    attempt: str
    ended: bool = False
    digest: str = ""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ActionState).decode


class EndedAction(Struct, frozen=True):
    """An action that has ended, with its outcome; None if the store had no space for the
    outcome.
    """

    outcome: bytes | None


class Claim:
    """The right to run an action, with its fencing token: the version of the record."""

    __slots__ = ("_account", "_actions", "_until", "_version", "key", "state")

    def __init__(
        self,
        actions: Actions,
        key: str,
        state: ActionState,
        version: int,
        until: float,
        account: str,
    ) -> None:
        self._actions = actions
        self.key = key
        self.state = state
        self._version = version
        self._until = until
        self._account = account

    async def settle(self, outcome: bytes) -> bool:
        """Record the outcome.

        Returns:
            False if another worker has taken over the action.
        """
        ended = ActionState(self.state.worker, self.state.attempt, True, self.state.digest)
        actions = self._actions
        # The record has expired, so no retry can find it.
        if actions.wall_clock() >= self._until + CLOCK_TOLERANCE:
            actions.close(self)
            return True
        try:
            version = await actions.records.swap(
                self.key,
                _encode(ended),
                was=self._version,
                until=self._until,
                now=actions.wall_clock(),
                body=outcome,
                account=self._account,
            )
        finally:
            actions.close(self)
        return version > 0

    async def settle_later(self, outcome: bytes) -> None:
        """Record the outcome as soon as the store is available again."""
        while self._actions.wall_clock() < self._until:
            await asyncio.sleep(_PATIENCE)
            with contextlib.suppress(Exception):  # the store is still unavailable
                await self.settle(outcome)
                return

    async def release(self) -> None:
        """Delete the record, as if the action had never started."""
        try:
            await self._actions.records.remove(self.key, was=self._version)
        finally:
            self._actions.close(self)


class Actions:
    """The actions of one worker, on records that it shares with its peers."""

    def __init__(
        self, records: RecordStore, peers: Peers, *, wall_clock: Callable[[], float] = time.time
    ) -> None:
        self.records = records
        self.peers = peers
        self.wall_clock = wall_clock
        self._running: set[str] = set()  # the attempts of this worker that have not ended
        # Attempts whose write failed: the record may exist, but the action never began.
        self._unsure: BoundedCache[str, None] = BoundedCache(_MOST_UNSURE)
        self._waiting: dict[str, set[asyncio.Event]] = {}
        peers.on(CHANGED, lambda key, _: self.wake(key))

    async def claim(
        self, key: str, *, account: str, seconds: float, idempotent: bool, digest: str = ""
    ) -> Claim | EndedAction:
        """Claim the right to run an action, and record it as started.

        Waits while another attempt on a living worker runs the action.

        Args:
            key: The key of the action.
            account: The account that the bytes of the outcome count against.
            seconds: How long the record is kept, in seconds.
            idempotent: Whether the action may run again after its worker has died.
            digest: The digest of the request. A different request under the same key is rejected.

        Returns:
            The claim, or the outcome of an action that has ended.

        Raises:
            McpError: The action is in doubt, or the key belongs to a different request.
            StoreError: The store failed.
        """
        while True:
            record = await self.records.load(key, now=self.wall_clock())
            if record is not None:
                state = _decode(record.data)
                if state.digest != digest:
                    raise McpError(
                        INVALID_PARAMS,
                        "The idempotency key was used for another call. Use a new key.",
                    )
                if state.ended:
                    return EndedAction(record.body or None)
                if await self._is_running(state):
                    await self.wait(key)
                    continue
                if not idempotent and state.attempt not in self._unsure:
                    raise in_doubt()
            claim = await self._start(key, record, account, seconds, digest)
            if claim is not None:
                return claim

    async def reclaim(self, key: str, *, account: str, seconds: float) -> Claim | None:
        """Claim an action again whose outcome was a question; None if it has no record."""
        record = await self.records.load(key, now=self.wall_clock())
        if record is None:
            return None
        return await self._start(key, record, account, seconds, _decode(record.data).digest)

    async def wait(self, key: str) -> None:
        """Wait until a peer announces a change of the record, or until it is time to read it
        again.
        """
        event = asyncio.Event()
        waiting = self._waiting.setdefault(key, set())
        waiting.add(event)
        try:
            async with asyncio.timeout(_LOOK):
                await event.wait()
        except TimeoutError:
            pass
        finally:
            waiting.discard(event)
            if not waiting:
                self._waiting.pop(key, None)

    def close(self, claim: Claim) -> None:
        """End an attempt, and let all waiting tasks read its record again."""
        self._running.discard(claim.state.attempt)
        self.wake(claim.key)
        self.peers.publish(CHANGED, claim.key)

    async def has_ended(self, key: str) -> bool:
        """Whether an action has ended."""
        record = await self.records.load(key, now=self.wall_clock())
        return record is not None and _decode(record.data).ended

    def abandon(self, claim: Claim) -> None:
        """End an attempt without an outcome: its record stays "started"."""
        self._running.discard(claim.state.attempt)

    async def _start(
        self, key: str, record: Record | None, account: str, seconds: float, digest: str
    ) -> Claim | None:
        """Record an attempt as started, in place of the record that was read; None if another
        attempt was faster.
        """
        state = ActionState(self.peers.worker, os.urandom(8).hex(), digest=digest)
        now = self.wall_clock()
        try:
            version = await self.records.swap(
                key,
                _encode(state),
                was=record.version if record is not None else 0,
                until=now + seconds,
                now=now,
                account=account,
            )
        except BaseException:
            self._unsure.put(state.attempt, None)
            raise
        if not version:
            return None
        self._running.add(state.attempt)
        return Claim(self, key, state, version, now + seconds, account)

    async def _is_running(self, state: ActionState) -> bool:
        if state.worker == self.peers.worker:
            return state.attempt in self._running
        return await self.peers.is_alive(state.worker)

    def wake(self, key: str) -> None:
        """Let the tasks that wait for a record read it now."""
        for event in self._waiting.get(key, ()):
            event.set()


def in_doubt(why: str = "The worker that carried it out has ended.") -> McpError:
    """Return the error for an action that may have happened and is not repeated."""
    words = (
        f"The action may have happened. {why} It is not repeated. Check what was done before you"
        " call again."
    )
    return McpError(INTERNAL_ERROR, words, {"reason": "may_have_happened"})
