"""The interfaces of the shared state of workers: sessions, event logs, topics and token buckets, so
that any worker can serve any request of a session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from ... import types as t
from ...exchange import Caller, Principal
from ..records import RecordStore

POSITION = "dev.interlock/position"
SINCE = "dev.interlock/since"
"""Internal keys of `_meta`, never sent: the position of a change notification in its topic, and the
position after which a listener wants to receive them."""


class Session(Struct, kw_only=True, frozen=True):
    """One session of Streamable HTTP (2025-03-26 to 2025-11-25): the contents of `initialize`, and
    what has changed since.

    Attributes:
        id: The ID of the session.
        revision: The negotiated revision.
        capabilities: What the client supports.
        info: The name and version of the client.
        log_level: The lowest level of log messages that the client asked for.
        principal: The key of the owner (see `Principal.key`); None without authorization.
        subscriptions: The URIs of the resources that the client has subscribed to.
        created: When the session was opened, in seconds of the wall clock.
        until: When the session ends, in seconds of the wall clock.
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


def caller_of(session: Session, principal: Principal | None) -> Caller:
    """Return the caller of a request in a session. A session without an ID stands for requests
    without a session.
    """
    return Caller(
        session.revision,
        session.capabilities,
        session.info,
        session.log_level,
        principal,
        session.id or None,
    )


class SessionStore(Protocol):
    """Stores sessions. Methods that get the time treat a session past its `until` as deleted."""

    async def create(self, session: Session, *, most: int, now: float) -> bool:
        """Store a new session. One with the same ID is replaced.

        Args:
            session: The session.
            most: The limit of sessions.
            now: The time, in seconds of the wall clock.

        Returns:
            False, and nothing is stored, if `most` sessions exist already.
        """
        ...

    async def load(self, id: str, *, now: float) -> Session | None:
        """Return the session with this ID; None if it does not exist."""
        ...

    async def save(self, session: Session, *, was: Session) -> bool:
        """Replace a session, if the stored one still equals `was` (apart from `until`).

        The later of the two ends is kept, because another worker may have prolonged the session.

        Returns:
            False if another request has changed the session. Load it again then.
        """
        ...

    async def prolong(self, id: str, until: float) -> None:
        """Change the end of a session. Nothing happens if the session was deleted."""
        ...

    async def load_state(self, id: str) -> bytes | None:
        """Return the state that the server's author stored in a session.

        Returns:
            The bytes of the last `save_state`, empty if there was none; None if the session does
            not exist.
        """
        ...

    async def save_state(self, id: str, state: bytes, *, was: bytes) -> bool:
        """Replace the author's state of a session, if no other request has changed it.

        Args:
            id: The session.
            state: The new state.
            was: The old state, as `load_state` returned it.

        Returns:
            False, and nothing is stored, if the state has changed or the session has been deleted.
        """
        ...

    async def end(self, id: str) -> bool:
        """Delete a session with its state and its events; False if it did not exist."""
        ...

    async def count(self, *, now: float) -> int:
        """The number of sessions."""
        ...


class Replay(Struct, frozen=True):
    """The events of a stream after a given one, as (number, data), and whether the last of them
    ends the stream.
    """

    events: tuple[tuple[int, bytes], ...] = ()
    ended: bool = False


class EventLog(Protocol):
    """Stores the events of streams, so that a client can resume a stream (2025-11-25, "Resumability
    and Redelivery").

    One worker writes a stream, any worker reads it. Events are numbered from 0 without gaps. Ended
    streams and sessions have a bounded number of events; the oldest are dropped first.
    """

    def append(self, session: str, stream: str, number: int, data: bytes, *, last: bool) -> None:
        """Add an event, without waiting. Events are stored in the order of the calls.

        Events that the store cannot accept are dropped. A known number changes nothing, nor does an
        event after the end of its stream. A gap in the numbers makes the events before it
        unreadable.

        Args:
            session: The session of the stream.
            stream: The stream.
            number: The number of the event.
            data: The event.
            last: Whether the event ends the stream.
        """
        ...

    async def read(self, session: str, stream: str, after: int) -> Replay | None:
        """Return the events after number `after`; -1 returns all.

        Events of this worker are complete. Events of other workers may arrive with a delay.

        Args:
            session: The session of the stream.
            stream: The stream.
            after: The number of the last event that the client has.

        Returns:
            None if the stream is unknown, or if events after that number are lost.
        """
        ...


class Topic(Protocol):
    """A topic (publish and subscribe) that every worker reads in the same order: change
    notifications, or messages between workers. The messages of the last minutes are kept.
    """

    @property
    def position(self) -> str:
        """The position of the newest message that this worker has received. Only the store can
        compare positions.
        """
        ...

    def publish(self, note: bytes) -> None:
        """Publish a message, without waiting, from any thread."""
        ...

    def subscribe(self, hear: Callable[[bytes, str], None]) -> Callable[[], None]:
        """Call `hear` with each message and its position, in the listener's loop, until the
        returned function is called.

        Messages of this worker are included.
        """
        ...

    async def replay(self, position: str) -> list[tuple[bytes, str]] | None:
        """Return the messages after a position, oldest first; None if some are no longer kept or
        the position is unknown.
        """
        ...


class RateStore(Protocol):
    """Token buckets by key."""

    async def acquire(self, key: str, *, rate: float, burst: float, now: float) -> float:
        """Take one token from a bucket that all workers share.

        Args:
            key: The bucket.
            rate: Tokens a second that the bucket gains, above 0.
            burst: Tokens that a full bucket holds, 1 or more.
            now: The time, in seconds of the wall clock.

        Returns:
            0.0 if a token was taken, else the seconds until the next one.
        """
        ...


class WorkerStore(Protocol):
    """The workers that are alive."""

    async def heartbeat(self, worker: str, *, until: float) -> None:
        """Declare this worker alive until then (seconds of the wall clock)."""
        ...

    async def is_alive(self, worker: str, *, now: float) -> bool:
        """Whether a worker is alive, according to its last heartbeat."""
        ...


class Store(Protocol):
    """The state that all workers share.

    Open it in the loop that uses it. A closed store can be opened again, also in a forked process.
    Coroutines of a store raise StoreError if the store does not answer or is not open; other
    methods never raise.
    """

    @property
    def shared(self) -> bool:
        """Whether several processes can use the store at the same time."""
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
        """The topic of change notifications."""
        ...

    @property
    def notes(self) -> Topic:
        """The topic of messages between workers."""
        ...

    @property
    def rates(self) -> RateStore:
        """Token buckets."""
        ...

    @property
    def records(self) -> RecordStore:
        """What must happen once: records with compare-and-swap."""
        ...

    @property
    def workers(self) -> WorkerStore:
        """The workers that are alive."""
        ...

    async def open(self) -> None:
        """Connect and subscribe to the topics. Raises StoreError with a message that says what to
        do.
        """
        ...

    async def aclose(self) -> None:
        """Write pending data and close all connections."""
        ...


class StoreError(Exception):
    """A store cannot be reached, or the place contains something else."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
