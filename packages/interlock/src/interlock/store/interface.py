"""Interfaces of the state that workers share: sessions, event log, topics, rates, heartbeats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from .. import types as t
from ..exchange import Caller, Principal
from ..quotas import QuotaUsage
from . import bounds


class Session(Struct, kw_only=True, frozen=True):
    """A session of Streamable HTTP (2025-03-26 to 2025-11-25): the result of its handshake, and its
    later settings.

    `principal` is the key of the session's principal (see `Principal.key`); None for an anonymous
    session. `holder` is whom it counts for: the principal or, where there is none, the address.
    `created` and `until` are seconds of the wall clock. After `until` the session does not
    exist.
    """

    id: str
    revision: str
    capabilities: t.ClientCapabilities
    info: t.Implementation | None = None
    log_level: t.LoggingLevel | None = None
    principal: str | None = None
    holder: str = ""
    subscriptions: tuple[str, ...] = ()
    created: float
    until: float

    def caller(self, principal: Principal | None) -> Caller:
        """Return the caller of a request in this session.

        A session without an id stands for requests that have no session.
        """
        return Caller(
            self.revision,
            self.capabilities,
            self.info,
            self.log_level,
            principal,
            self.id or None,
        )


class SessionStore(Protocol):
    """Stores sessions.

    A session past its `until` does not exist for any method with a `now` parameter.
    """

    async def create(self, session: Session, *, most: int, now: float, rested: float = 0.0) -> bool:
        """Store a new session. A session with the same id is replaced.

        If `most` sessions exist already, the least recently used one of the holder with the most
        sessions is removed for it: if that holder still has more sessions than the new session's
        holder would have, or if that session was not used for long.

        Args:
            session: The session.
            most: The maximum number of sessions.
            now: The time, in seconds of the wall clock.
            rested: A session that ends before this time was not used for long.

        Returns:
            False, and nothing is stored, if there is no room.
        """
        ...

    async def load(self, id: str, *, now: float) -> Session | None:
        """Return the session with this id, if it exists."""
        ...

    async def save(self, session: Session, *, was: Session) -> bool:
        """Replace a session if the stored one still equals `was`, except for `until`.

        The later of the given and the stored `until` is kept, because another worker may have
        prolonged the session.

        Returns:
            False, and nothing is changed, if the stored session differs from `was`.
        """
        ...

    async def prolong(self, id: str, until: float) -> None:
        """Move the end of a session. Does nothing if the session has ended."""
        ...

    async def load_state(self, id: str) -> bytes | None:
        """Return the author's state of a session; empty if none was saved.

        Returns:
            The bytes of the last `save_state`; None if the session does not exist.
        """
        ...

    async def save_state(self, id: str, state: bytes, *, was: bytes) -> bool:
        """Replace the author's state of a session, if no other request has changed it.

        Args:
            id: The session.
            state: The new state.
            was: The previous state, from `load_state`.

        Returns:
            False, and nothing is changed, if the state has changed or the session is gone.
        """
        ...

    async def end(self, id: str) -> bool:
        """Remove a session, its state and its events. Returns False if it did not exist."""
        ...

    async def count(self, *, now: float) -> int:
        """Return the number of sessions."""
        ...

    async def recent(self, *, most: int, now: float) -> list[Session]:
        """Return at most `most` sessions, those that end last first."""
        ...


class Replay(Struct, frozen=True):
    """The events of a stream after a given event, as (number, data).

    `ended` says whether the stream ends with the last of them.
    """

    events: tuple[tuple[int, bytes], ...] = ()
    ended: bool = False


class EventLog(Protocol):
    """Stores the events of streams, so that a client can resume a broken stream (2025-11-25,
    "Resumability and Redelivery").

    One worker writes a stream, any worker reads it. Events are numbered from 0 without gaps. The
    size of ended streams and of a session's streams is bounded; the oldest events are dropped
    first. So is the size of all events: when it is exceeded, the oldest events of the holder with
    the most of them are removed, except for the newest event of each running stream.
    """

    def append(self, session: str, stream: str, number: int, data: bytes, *, last: bool) -> None:
        """Store an event. Never waits, keeps the order of its calls, and drops the event and those
        before it if the store is overloaded.

        `last` ends the stream. A known number, or one after the end, changes nothing. A number
        after a gap makes the events before it unreadable.
        """
        ...

    async def read(self, session: str, stream: str, after: int) -> Replay | None:
        """Return the events after event `after`; all events if that is -1.

        They include everything that this worker has appended before. Events of other workers may be
        delayed for a moment.

        Returns:
            None if the stream is unknown, or events after that one are lost.
        """
        ...

    async def measure(self) -> QuotaUsage:
        """Return the counters of the events of all workers, in bytes.

        `evicted` is the number of streams or sessions that lost events for others. It takes time in
        proportion to the number of sessions.
        """
        ...


class Topic(Protocol):
    """Publish and subscribe: short notes that every worker reads in the same order. Notes of the
    last minutes are kept. Used for change notices, and for messages between workers.
    """

    @property
    def position(self) -> str:
        """The position of the newest note that this worker has received.

        Positions are opaque: only the store can compare them.
        """
        ...

    def publish(self, note: bytes) -> None:
        """Publish a note. Never waits; can be called from any thread.

        While the store is away or full, the note waits in memory, so it is lost with its worker.
        """
        ...

    async def publish_confirmed(self, note: bytes) -> None:
        """Publish a note, and return once the store has it.

        It may overtake notes of `publish` that the store could not write at first.

        Raises:
            StoreError: The store fails.
        """
        ...

    def subscribe(self, receive: Callable[[bytes, str], None]) -> Callable[[], None]:
        """Call `receive` with each note and its position, in the listener's event loop, until the
        returned function is called.

        The notes of this worker are included.
        """
        ...

    async def replay(self, position: str) -> list[tuple[bytes, str]] | None:
        """Return the notes after a position, the oldest first.

        Returns:
            None if some of them are no longer kept, or the position is unknown.
        """
        ...


class RateStore(Protocol):
    """Token buckets by key (rate limits)."""

    async def acquire(self, key: str, *, rate: float, burst: float, now: float) -> float:
        """Take one token from a bucket.

        All workers share the bucket.

        Args:
            key: The bucket.
            rate: The number of tokens that return in a second, above 0.
            burst: The number of tokens in a full bucket, 1 or more.
            now: The time, in seconds of the wall clock.

        Returns:
            0.0 if there was a token, otherwise the seconds until there is one.
        """
        ...


class Record(Struct, frozen=True):
    """A stored record.

    Attributes:
        version: A number that grows with every change of any record and is never reused. For the
            writer it is a fencing token: a later holder of the record has a greater one.
        data: Kept until the record expires.
        body: May be dropped earlier, if its account stores too many bytes; then empty.
    """

    version: int
    data: bytes
    body: bytes = b""


class RecordStore(Protocol):
    """Stores the records of actions that must happen once (used states, outcomes of calls,
    idempotency keys).

    A record exists for `bounds.CLOCK_TOLERANCE` seconds after its end. The clock with which it was
    written, or with which it is read, may be wrong for a moment, and without its record an action
    runs twice. After that time it does not exist for any method with a `now` parameter.

    If the wall clock is set back for good by more than that, records from before end when as much
    time has passed as they were written for.
    """

    @property
    def identity(self) -> str:
        """The identity of the store's contents, known once the store is open.

        A store that has lost its contents (another process, a new file, a flushed server) has
        another identity.
        """
        ...

    async def load(self, key: str, *, now: float) -> Record | None:
        """Return the record with this key, if it exists."""
        ...

    async def swap(
        self,
        key: str,
        data: bytes,
        *,
        was: int,
        until: float,
        now: float,
        body: bytes = b"",
        account: str = "",
        most: int = bounds.ACCOUNT_RECORDS,
    ) -> int:
        """Write a record if it still has the version `was`.

        Hazard: if the stored record has the same data, it counts as written, because the connection
        may have failed after a first attempt. So the data of two competing writers must differ.

        Args:
            key: The record.
            data: Kept until the record expires.
            was: The version to replace; 0 if there must be no record.
            until: When the record expires, in seconds of the wall clock.
            now: The time, in seconds of the wall clock.
            body: Kept as long as the account has space for it.
            account: The account that the bytes of the body count against, up to
                `bounds.ACCOUNT_BYTES`. The bodies that expire soonest are dropped for newer ones.
            most: The number of records of the account from which on a new one is refused.

        Returns:
            The new version of the record; 0 if another version is stored.

        Raises:
            AccountFull: The record is new, and the account has `most` records.
            StoreError: The store fails or has lost its contents.
        """
        ...

    async def remove(self, key: str, *, was: int) -> None:
        """Remove a record, if it still has the version `was`."""
        ...

    async def keys(
        self, prefix: str, *, now: float, after: str = "", most: int = 1000
    ) -> list[str]:
        """Return the keys of records in ascending order, for a rare search of all records.

        Args:
            prefix: How the keys begin; at least one character.
            now: The time, in seconds of the wall clock.
            after: The key after which the search begins.
            most: The maximum number of keys.
        """
        ...


class WorkerStore(Protocol):
    """Heartbeats of workers."""

    async def heartbeat(self, worker: str, *, until: float) -> None:
        """Record that this worker is alive until then (seconds of the wall clock).

        A heartbeat for more than `bounds.HEARTBEAT_SECONDS` seconds does not count.
        """
        ...

    async def is_alive(self, worker: str, *, now: float) -> bool:
        """Whether a worker is alive, as far as the store knows."""
        ...

    async def withdraw(self, worker: str) -> None:
        """Record that a worker has ended in good order. Nobody waits for it from now on."""
        ...


class Store(Protocol):
    """The state that workers share.

    Open it in the event loop that uses it. A closed store can be opened again, also in a forked
    process. Async methods raise StoreError if the store fails or is not open; other methods never
    raise.
    """

    @property
    def shared(self) -> bool:
        """Whether other processes can use the store at the same time."""
        ...

    @property
    def sessions(self) -> SessionStore:
        """The sessions."""
        ...

    @property
    def events(self) -> EventLog:
        """The events of streams."""
        ...

    @property
    def changes(self) -> Topic:
        """Change notices."""
        ...

    @property
    def notes(self) -> Topic:
        """Messages between workers."""
        ...

    @property
    def rates(self) -> RateStore:
        """Token buckets."""
        ...

    @property
    def records(self) -> RecordStore:
        """Records of actions that must happen once: used states, outcomes of calls, idempotency
        keys.
        """
        ...

    @property
    def workers(self) -> WorkerStore:
        """Heartbeats of workers."""
        ...

    async def open(self) -> None:
        """Connect, and start to receive notes.

        Raises:
            StoreError: The store cannot be reached; the message says what to do.
        """
        ...

    async def aclose(self) -> None:
        """Write everything that is queued, and release all resources."""
        ...
