"""Idempotency: an action has one record that all workers share, so that it is started once, and
whoever asks again gets the outcome of the first time.

The record says "started" before the action begins, and holds its outcome after. An action that was
started by a worker which has died since is in doubt: it is not repeated unless its author declared
it idempotent.
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
from .store.interface import Record, RecordStore
from .types.errors import INTERNAL_ERROR, INVALID_PARAMS, McpError

_LOOK = 0.25  # seconds between two looks at a record that another worker is to change
_PATIENCE = 2.0  # seconds between two attempts to write while the store is away
_MOST_UNSURE = 1000

IDEMPOTENCY_KEY = "dev.interlock/idempotency-key"
"""The key of `_meta` under which a client names a `tools/call` that it may have to repeat."""

KEY_SECONDS = 86_400.0
"""For how long the outcome of a call with an idempotency key is given again."""

CHANGED = "call-changed"
"""The kind of message that says a record was changed; its subject is the key."""


class Peers(Protocol):
    """The other workers that share the records, and messages to them."""

    @property
    def worker(self) -> str:
        """The name of this worker."""
        ...

    def publish(self, kind: str, session: str, payload: str = "") -> None:
        """Send a message to the other workers."""
        ...

    def on(self, kind: str, receiver: Callable[[str, str], None]) -> None:
        """Call `receiver` with the subject and the payload of each message of a kind."""
        ...

    async def is_alive(self, worker: str) -> bool:
        """Whether a worker is alive, as far as is known."""
        ...


class NoPeers:
    """The peers of a worker that shares its records with nobody."""

    def __init__(self) -> None:
        self.worker = os.urandom(6).hex()

    def publish(self, kind: str, session: str, payload: str = "") -> None:
        """There is nobody to send it to."""

    def on(self, kind: str, receiver: Callable[[str, str], None]) -> None:
        """There is nobody to hear from."""

    async def is_alive(self, worker: str) -> bool:
        """Nobody else is."""
        return worker == self.worker


class ActionState(Struct, array_like=True):
    """What a record says of an action.

    Attributes:
        worker: Who started it.
        attempt: A random name of the attempt, so that no two attempts write the same record.
        ended: Whether it has ended; its outcome is the body of the record.
        digest: What was asked for, where a client chose the key.
    """

    worker: str
    attempt: str
    ended: bool = False
    digest: str = ""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ActionState).decode


class EndedAction(Struct, frozen=True):
    """An action that has ended, and its outcome; None where there was no room to keep it."""

    outcome: bytes | None


class Claim:
    """The right to carry an action out, and its fencing token: the version of the record."""

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
            False where the action has been taken over by another worker meanwhile.
        """
        ended = ActionState(self.state.worker, self.state.attempt, True, self.state.digest)
        actions = self._actions
        if actions.wall() >= self._until:  # nobody can ask for it any more
            actions.close(self)
            return True
        try:
            version = await actions.records.swap(
                self.key,
                _encode(ended),
                was=self._version,
                until=self._until,
                now=actions.wall(),
                body=outcome,
                account=self._account,
            )
        finally:
            actions.close(self)
        return version > 0

    async def settle_later(self, outcome: bytes) -> None:
        """Record the outcome once the store is back."""
        while self._actions.wall() < self._until:
            await asyncio.sleep(_PATIENCE)
            with contextlib.suppress(Exception):  # it is still away
                await self.settle(outcome)
                return

    async def release(self) -> None:
        """Forget the action, as if it had never been started."""
        try:
            await self._actions.records.remove(self.key, was=self._version)
        finally:
            self._actions.close(self)


class Actions:
    """The actions of one worker, over the records that it shares with its peers."""

    def __init__(
        self, records: RecordStore, peers: Peers, *, wall: Callable[[], float] = time.time
    ) -> None:
        self.records = records
        self.peers = peers
        self.wall = wall
        self._running: set[str] = set()  # the attempts of this worker that have not ended
        # Attempts whose record may or may not have been written, and which never began.
        self._unsure: BoundedCache[str, None] = BoundedCache(_MOST_UNSURE)
        self._waiting: dict[str, set[asyncio.Event]] = {}
        peers.on(CHANGED, lambda key, _: self.wake(key))

    async def claim(
        self, key: str, *, account: str, seconds: float, idempotent: bool, digest: str = ""
    ) -> Claim | EndedAction:
        """Claim the right to carry an action out; it is recorded as started.

        Waits while a worker that is alive carries it out.

        Args:
            key: The action.
            account: Whose bytes its outcome counts among.
            seconds: For how long the record is kept.
            idempotent: Whether the action may be repeated after its worker has died.
            digest: What the action is; another action under the same key is refused.

        Returns:
            The claim, or what came of the action before.

        Raises:
            McpError: The action is in doubt, or the key stands for another one.
            StoreError: The store cannot answer.
        """
        while True:
            record = await self.records.load(key, now=self.wall())
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
        """Claim an action again whose outcome was a question; None where it has no record."""
        record = await self.records.load(key, now=self.wall())
        if record is None:
            return None
        return await self._start(key, record, account, seconds, _decode(record.data).digest)

    async def wait(self, key: str) -> None:
        """Wait until somebody says that a record has changed, or it is time to look again."""
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
        """An attempt has ended; look at its record again."""
        self._running.discard(claim.state.attempt)
        self.wake(claim.key)
        self.peers.publish(CHANGED, claim.key)

    async def has_ended(self, key: str) -> bool:
        """Whether an action has ended."""
        record = await self.records.load(key, now=self.wall())
        return record is not None and _decode(record.data).ended

    def abandon(self, claim: Claim) -> None:
        """An attempt has ended, and its record says only that it was started."""
        self._running.discard(claim.state.attempt)

    async def _start(
        self, key: str, record: Record | None, account: str, seconds: float, digest: str
    ) -> Claim | None:
        """Record an attempt as started, in the place of what was read; None if it is another's."""
        state = ActionState(self.peers.worker, os.urandom(8).hex(), digest=digest)
        now = self.wall()
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
        """Look at a record again now."""
        for event in self._waiting.get(key, ()):
            event.set()


def in_doubt(why: str = "The worker that carried it out has ended.") -> McpError:
    """The error of an action that may have happened, and is not repeated."""
    words = (
        f"The action may have happened. {why} It is not repeated. Check what was done before you"
        " call again."
    )
    return McpError(INTERNAL_ERROR, words, {"reason": "may_have_happened"})
