"""What is kept so that any worker can serve any request of a handshake-era session: its record,
and the seams of the stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from ... import types as t
from ...exchange import Caller, Principal
from ..records import RecordStore

POSITION = "dev.interlock/position"
SINCE = "dev.interlock/since"
"""Keys of `_meta` within the house, never sent: where on the board of changes a notice stands, and
from where a listener wants to hear."""


class Session(Struct, kw_only=True, frozen=True):
    """One session of Streamable HTTP (2025-03-26 to 2025-11-25): what `initialize` said once,
    and what came to it since.

    `principal` is the key of the one it belongs to (see `Principal.key`), None for nobody in
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


def caller_of(session: Session, principal: Principal | None) -> Caller:
    """Who asks, on a request of a session;
    one without an id stands for requests that have no session."""
    return Caller(
        session.revision,
        session.capabilities,
        session.info,
        session.log_level,
        principal,
        session.id or None,
    )


class SessionStore(Protocol):
    """Keeps sessions. A session that is over its `until` is as good as gone,
    for every method that is told the time."""

    async def create(self, session: Session, *, most: int, now: float) -> bool:
        """Keep a new session; False, and nothing kept, where `most` exist already.
        One of the same id is replaced."""
        ...

    async def load(self, id: str, *, now: float) -> Session | None:
        """The session with this id."""
        ...

    async def save(self, session: Session, *, was: Session) -> bool:
        """Keep the session as it is now, if it still is as it `was` (its `until` aside); False
        where it is not: look again.

        Of its end and the one that is kept the later holds:
        another worker may have prolonged the session meanwhile.
        """
        ...

    async def prolong(self, id: str, until: float) -> None:
        """Move the end of a session; nothing happens where it was ended meanwhile."""
        ...

    async def load_state(self, id: str) -> bytes | None:
        """What the server's author keeps for a session, empty where nothing was kept.

        Returns:
            The bytes of the last `save_state`; None where the session does not exist.
        """
        ...

    async def save_state(self, id: str, state: bytes, *, was: bytes) -> bool:
        """Keep the author's state of a session, if no other request has changed it.

        Args:
            id: The session.
            state: What is kept from now on.
            was: What was kept before, as `load_state` gave it.

        Returns:
            False, and nothing is kept, where the state is another by now or the session is gone.
        """
        ...

    async def end(self, id: str) -> bool:
        """Forget a session, its state and its events; False where there was none."""
        ...

    async def count(self, *, now: float) -> int:
        """How many sessions exist."""
        ...


class Replay(Struct, frozen=True):
    """What an event log has of a stream after a given event: events as (number, data), and whether
    the last of them is its last."""

    events: tuple[tuple[int, bytes], ...] = ()
    ended: bool = False


class EventLog(Protocol):
    """Keeps the events of streams, so that a client which lost one can have the rest (2025-11-25,
    "Resumability and Redelivery").

    One worker writes a stream, any worker reads it. Events are numbered from 0 without gaps. How
    much is kept of ended streams and of one session is bounded; the oldest goes first.
    """

    def append(self, session: str, stream: str, number: int, data: bytes, *, last: bool) -> None:
        """Note an event; never waits, keeps the order of its calls,
        and drops what the store cannot take.

        `last` ends the stream. A number that was noted before, and whatever comes after the end,
        changes nothing; a number that leaves a gap makes the events before it unreadable.
        """
        ...

    async def read(self, session: str, stream: str, after: int) -> Replay | None:
        """What came after event `after`, all where that is -1; None where the stream is not known,
        or has lost events after that one.

        What this worker has noted before is part of it;
        what another worker notes may take a moment.
        """
        ...


class Topic(Protocol):
    """Short notes that every worker reads in one order, those of the last minutes kept: change
    notices, and messages between workers."""

    @property
    def position(self) -> str:
        """The place of the newest note that this worker has heard;
        it sorts as nothing but the store may compare it."""
        ...

    def publish(self, note: bytes) -> None:
        """Put a note up; never waits; from any thread."""
        ...

    def subscribe(self, hear: Callable[[bytes, str], None]) -> Callable[[], None]:
        """Call `hear` with each note and its position, in the listener's loop,
        until the returned function is called.

        This worker's own notes are among them.
        """
        ...

    async def replay(self, position: str) -> list[tuple[bytes, str]] | None:
        """The notes after a position, oldest first; None where some of them are no longer kept,
        or there was no such position."""
        ...


class RateStore(Protocol):
    """Token buckets by key."""

    async def acquire(self, key: str, *, rate: float, burst: float, now: float) -> float:
        """Take one token from a bucket that holds `burst` (1 or more) and gains
        `rate` (above 0) a second.

        Returns 0.0 where it was had, else the seconds until one is there. All workers together get
        no more than the bucket has.
        """
        ...


class WorkerStore(Protocol):
    """Which workers live."""

    async def heartbeat(self, worker: str, *, until: float) -> None:
        """This worker lives until then at least (seconds of the wall clock)."""
        ...

    async def is_alive(self, worker: str, *, now: float) -> bool:
        """Whether a worker lives, as far as is known."""
        ...


class Store(Protocol):
    """All that workers share.

    Opened in the loop that uses it; a closed one can be opened again, also in a process forked
    meanwhile. What is awaited of a store raises StoreError where the store cannot answer or is not
    open; what is not awaited never raises.
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
        """What workers have to tell each other."""
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
        """Who lives."""
        ...

    async def open(self) -> None:
        """Connect, and begin to hear what is posted.
        Raises StoreError with words that say what to do."""
        ...

    async def aclose(self) -> None:
        """Write what is left, and let go of everything."""
        ...


class StoreError(Exception):
    """A store cannot be reached, or is no store of this kind."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
