"""Test clients in memory, for every revision and for suspended and replayed questions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple, Unpack

from msgspec.structs import replace

from ..client.app import Client
from ..client.options import ClientOptions, ClientSettings
from ..server.app import Server
from ..tape.conversation import Tape
from ..wire.revisions import HANDSHAKE_REVISIONS, NEWEST, REVISIONS, STATELESS_REVISIONS, Era, era


class Way(NamedTuple):
    """A revision, and whether a tool that asks a question is suspended or run again (which differs
    only in the stateless era).
    """

    revision: str = NEWEST
    suspend: bool = True

    def __str__(self) -> str:
        if era(self.revision) is Era.HANDSHAKE:
            return self.revision
        return f"{self.revision}-{'suspended' if self.suspend else 'replayed'}"


EVERY_WAY: tuple[Way, ...] = (
    *(Way(revision) for revision in HANDSHAKE_REVISIONS),
    *(Way(revision, suspend) for revision in STATELESS_REVISIONS for suspend in (True, False)),
)
"""Every combination."""

WAYS: tuple[Way, ...] = (
    Way(HANDSHAKE_REVISIONS[-1]),
    *(Way(NEWEST, suspend) for suspend in (True, False)),
)
"""One for each era and each way to ask questions: enough for the tests of most servers."""


def way(name: str) -> Way:
    """The way with a name: a revision, or a revision followed by `-suspended` or `-replayed`.

    Raises ValueError for any other name.
    """
    for known in EVERY_WAY:
        if name in (str(known), known.revision):
            return known
    raise ValueError(
        f"{name!r} is no way; there are {', '.join(map(str, EVERY_WAY))} and the revisions"
        f" {', '.join(REVISIONS)}"
    )


@asynccontextmanager
async def connect(
    server: Server,
    *,
    suspend: bool | None = None,
    tape: Tape | None = None,
    clock: Callable[[], float] | None = None,
    **options: Unpack[ClientOptions],
) -> AsyncIterator[Client]:
    """Connect a client to a server in this process, over real frames but without I/O.

    Args:
        server: The server.
        suspend: Whether a tool that asks a question is suspended (True) or runs again from the top
            (False) during the block; the server's own setting by default.
        tape: Records the messages.
        clock: Replaces the clocks, in seconds, for the expiry of sealed states and cached answers.
        options: Those of Client.
    """
    calls = server.suspended_calls
    before = calls.suspend, calls.wall_clock
    if suspend is not None:
        calls.suspend = suspend
    if clock is not None:
        calls.wall_clock = clock
        settings = options.get("settings") or ClientSettings()
        options["settings"] = replace(settings, clock=clock)
    transport = server.transport(tap=tape.record if tape is not None else None)
    try:
        async with Client(transport, **options) as client:
            yield client
    finally:
        calls.suspend, calls.wall_clock = before
