"""Interfaces of the state that workers share: sessions, event log, topics, rates, heartbeats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from .. import types as t
from ..exchange import Caller, Principal


class Session(Struct, kw_only=True, frozen=True):
    """One session of Streamable HTTP (2025-03-26 to 2025-11-25): what its handshake said, and what
    was set in it since.

    `principal` is the key of the principal it belongs to (see `Principal.key`), None for nobody in
    particular. `created` and `until` are seconds of the wall clock; after `until` the session no
    longer exists.
    """

    id: str
    revision: str
    capabilities: t.ClientCapabilities
    info: t.Implementation | None = None
    log_level: t.LoggingLevel | None = None
    principal: str | None = None
    subscriptions: tuple[str, ...] = ()
    created: float
    until: float

    def caller(self, principal: Principal | None) -> Caller:
        """The caller of a request in this session.

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
    """Keeps sessions.

    A session that is past its `until` does not exist for any method that is told the time.
    """

    async def create(self, session: Session, *, most: int, now: float) -> bool:
        """Keep a new session; False, and nothing kept, if `most` exist already.

        A session of the same id is replaced.
        """
        ...

    async def load(self, id: str, *, now: float) -> Session | None:
        """The session with this id."""
        ...

    async def save(self, session: Session, *, was: Session) -> bool:
        """Keep the session as it is now, if it still is as it `was`, its `until` aside.

        Of the two ends, the given and the kept one, the later holds: another worker may have
        prolonged the session meanwhile.

        Returns:
            False, and nothing is changed, if the kept session is no longer as it `was`.
        """
        ...

    async def prolong(self, id: str, until: float) -> None:
        """Move the end of a session; nothing happens if the session was ended meanwhile."""
        ...

    async def load_state(self, id: str) -> bytes | None:
        """The author's state of a session, empty if nothing was kept.

        Returns:
            The bytes of the last `save_state`; None if the session does not exist.
        """
        ...

    async def save_state(self, id: str, state: bytes, *, was: bytes) -> bool:
        """Keep the author's state of a session, if no other request has changed it.

        Args:
            id: The session.
            state: What is kept from now on.
            was: What was kept before, as `load_state` gave it.

        Returns:
            False, and nothing is kept, if the state is another by now or the session is gone.
        """
        ...

    async def end(self, id: str) -> bool:
        """Remove a session, its state and its events; False if there was none."""
        ...

    async def count(self, *, now: float) -> int:
        """How many sessions exist."""
        ...


class Replay(Struct, frozen=True):
    """The events of a stream after a given event, as (number, data).

    `ended` says whether the last of them is the last of the stream.
    """

    events: tuple[tuple[int, bytes], ...] = ()
    ended: bool = False


class EventLog(Protocol):
    """Keeps the events of streams, so that a client that lost a stream can get the rest
    (2025-11-25, "Resumability and Redelivery").

    One worker writes a stream, any worker reads it. Events are numbered from 0 without gaps. How
    much is kept of ended streams and of one session is bounded; the oldest goes first.
    """

    def append(self, session: str, stream: str, number: int, data: bytes, *, last: bool) -> None:
        """Keep an event. Never waits, keeps the order of its calls, and drops what the store cannot
        take.

        `last` ends the stream. A number that was kept before, or that comes after the end, changes
        nothing. A number that leaves a gap makes the events before it unreadable.
        """
        ...

    async def read(self, session: str, stream: str, after: int) -> Replay | None:
        """The events after event `after`, all of them if that is -1.

        All that this worker appended before is part of it; what another worker appends may take a
        moment.

        Returns:
            None if the stream is not known, or has lost events after that one.
        """
        ...


class Topic(Protocol):
    """Publish and subscribe: short notes that every worker reads in one order, those of the last
    minutes kept. Change notices, and messages between workers.
    """

    @property
    def position(self) -> str:
        """The position of the newest note that this worker has received.

        Only the store can compare positions.
        """
        ...

    def publish(self, note: bytes) -> None:
        """Publish a note; never waits; from any thread."""
        ...

    def subscribe(self, hear: Callable[[bytes, str], None]) -> Callable[[], None]:
        """Call `hear` with each note and its position, in the listener's loop, until the returned
        function is called.

        This worker's own notes are among them.
        """
        ...

    async def replay(self, position: str) -> list[tuple[bytes, str]] | None:
        """The notes after a position, oldest first.

        Returns:
            None if some of them are no longer kept, or there was no such position.
        """
        ...


class RateStore(Protocol):
    """Token buckets by key (rate limits)."""

    async def acquire(self, key: str, *, rate: float, burst: float, now: float) -> float:
        """Take one token from a bucket.

        All workers together get no more than the bucket has.

        Args:
            key: The bucket.
            rate: Tokens a second that the bucket gains, above 0.
            burst: Tokens that the bucket holds, 1 or more.
            now: Seconds of the wall clock.

        Returns:
            0.0 if there was a token, else the seconds until there is one.
        """
        ...


class Record(Struct, frozen=True):
    """One record as it stands.

    Attributes:
        version: A number that grows with every change of any record and is never given twice. For
            the one who wrote it, it is a fencing token: a later holder of the record has a greater
            one.
        data: What is kept until the record expires.
        body: What may be dropped earlier, where its account holds too many bytes; empty then.
    """

    version: int
    data: bytes
    body: bytes = b""


class RecordStore(Protocol):
    """Keeps records of what must happen once (used states, outcomes of calls, idempotency keys).

    A record that has expired does not exist for any method that is told the time.
    """

    @property
    def identity(self) -> str:
        """Names what the store remembers; known once it is open.

        A store that has forgotten everything (another process, a new file, a flushed server) has
        another identity.
        """
        ...

    async def load(self, key: str, *, now: float) -> Record | None:
        """The record with this key."""
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
    ) -> int:
        """Write a record if it still has the version that it `was`.

        A record that holds the same data already counts as written: the connection may have broken
        after the first try. The data of two rivals must differ, therefore.

        Args:
            key: The record.
            data: What is kept until the end.
            was: The version that is replaced; 0 where there must be no record.
            until: When the record expires, in seconds of the wall clock.
            now: The time, in seconds of the wall clock.
            body: What is kept as long as the account has room for it.
            account: Whose bytes the body counts among, up to `bounds.ACCOUNT_BYTES`. The bodies
                that expire soonest make room for newer ones.

        Returns:
            The version of the record now; 0 where another stands there.

        Raises:
            StoreError: The store cannot answer, it has forgotten what it knew, or the account has
                `bounds.ACCOUNT_RECORDS` records.
        """
        ...

    async def remove(self, key: str, *, was: int) -> None:
        """Forget a record, if it still has the version that it `was`."""
        ...


class WorkerStore(Protocol):
    """Heartbeats: which workers live."""

    async def heartbeat(self, worker: str, *, until: float) -> None:
        """This worker lives until then at least (seconds of the wall clock)."""
        ...

    async def is_alive(self, worker: str, *, now: float) -> bool:
        """Whether a worker lives, as far as is known."""
        ...


class Store(Protocol):
    """The state that workers share.

    Opened in the loop that uses it; a closed store can be opened again, also in a process that was
    forked meanwhile. Awaited methods raise StoreError if the store cannot answer or is not open;
    the others never raise.
    """

    @property
    def shared(self) -> bool:
        """Whether other processes may use the store at the same time."""
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
        """What must happen once: used states, outcomes of calls, idempotency keys."""
        ...

    @property
    def workers(self) -> WorkerStore:
        """Heartbeats of workers."""
        ...

    async def open(self) -> None:
        """Connect, and begin to receive what is published.

        Raises:
            StoreError: It cannot be reached; the message says what to do.
        """
        ...

    async def aclose(self) -> None:
        """Write what is left, and release everything."""
        ...
