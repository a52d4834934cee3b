"""What has to be kept so that any worker can serve any request of a handshake-era session: the record of it, and the seams of the stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from .. import types as t


class Session(Struct, kw_only=True, frozen=True):
    """One session of Streamable HTTP (2025-03-26 to 2025-11-25): what `initialize` said once, and what came to it since.

    `principal` is the key of the one it belongs to (see `Principal.key`), None for nobody in particular. `created` and `until`
    are seconds of the wall clock; after `until` the session no longer exists.
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


class SessionStore(Protocol):
    """Keeps sessions. A session that is over its `until` is as good as gone, for every method."""

    async def create(self, session: Session, *, most: int, now: float) -> bool:
        """Keep a new session; False, and nothing kept, where `most` exist already."""
        ...

    async def load(self, id: str, *, now: float) -> Session | None:
        """The session with this id."""
        ...

    async def save(self, session: Session) -> None:
        """Keep the session as it is now; nothing happens where it was ended meanwhile."""
        ...

    async def prolong(self, id: str, until: float) -> None:
        """Move the end of a session; nothing happens where it was ended meanwhile."""
        ...

    async def end(self, id: str) -> bool:
        """Forget a session and its events; False where there was none."""
        ...

    async def count(self, *, now: float) -> int:
        """How many sessions exist."""
        ...


class Replay(Struct, frozen=True):
    """What an event log has of a stream after a given event: events as (number, data), and whether the last of them is its last."""

    events: tuple[tuple[int, bytes], ...] = ()
    ended: bool = False


class EventLog(Protocol):
    """Keeps the events of streams, so that a client which lost one can have the rest (resumption; 2025-11-25, "Resumability and Redelivery").

    One worker writes a stream, any worker reads it. Events are numbered from 0 without gaps. How much is kept of ended streams and
    of one session is bounded; the oldest goes first.
    """

    def append(self, session: str, stream: str, number: int, data: bytes, *, last: bool) -> None:
        """Note an event; never waits, keeps the order of its calls, and drops what the store cannot take."""
        ...

    async def read(self, session: str, stream: str, after: int) -> Replay | None:
        """What came after event `after`; None where the stream is not known to this session, or has lost events after that one."""
        ...


class Board(Protocol):
    """Short notes that every worker reads in one order, with those of the last minutes kept: for change notices and messages between workers."""

    @property
    def position(self) -> str:
        """The place of the newest note that this worker has heard; it sorts as nothing but the store may compare it."""
        ...

    def post(self, note: bytes) -> None:
        """Put a note up; never waits; from any thread."""
        ...

    def listen(self, hear: Callable[[bytes, str], None]) -> Callable[[], None]:
        """Call `hear` with each note and its position, in the listener's loop, this worker's own notes too, until the returned function is called."""
        ...

    async def since(self, position: str) -> list[tuple[bytes, str]] | None:
        """The notes after a position, oldest first; None where some of them are no longer kept, or there was no such position."""
        ...


class RateStore(Protocol):
    """Token buckets by key."""

    async def take(self, key: str, *, rate: float, burst: float, now: float) -> float:
        """Take one token from a bucket that holds `burst` and gains `rate` a second; 0.0 where it was had, else the seconds until one is there."""
        ...


class WorkerStore(Protocol):
    """Which workers live."""

    async def beat(self, worker: str, *, until: float) -> None:
        """This worker lives until then at least (seconds of the wall clock)."""
        ...

    async def lives(self, worker: str, *, now: float) -> bool:
        """Whether a worker lives, as far as is known."""
        ...


class Store(Protocol):
    """All that workers share. `shared` says that other processes may use it at the same time.

    `changes` carries change notices, `notes` what workers have to tell each other. Opened in the loop that uses it; a closed one can be
    opened again, also in a process forked meanwhile.
    """

    shared: bool
    sessions: SessionStore
    events: EventLog
    changes: Board
    notes: Board
    rates: RateStore
    workers: WorkerStore

    async def open(self) -> None:
        """Connect, and begin to hear what is posted. Raises StoreError with words that say what to do."""
        ...

    async def aclose(self) -> None:
        """Write what is left, and let go of everything."""
        ...


class StoreError(Exception):
    """A store cannot be reached, or is no store of this kind."""
