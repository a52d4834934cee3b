"""The options of a hub."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from interlock.configs import Entry
from interlock.observe.spans import Tracing
from interlock.tape import Recorder, TapeBuffer

from .backoff import Backoff
from .known_revisions import KnownRevisions
from .limits import HubLimits
from .timeouts import Sleep


@dataclass(frozen=True, kw_only=True)
class HubOptions:
    """How a hub connects to its servers and keeps them up.

    Attributes:
        name: The client name that is sent to servers.
        auth: Returns the Authorizer for a server's URL, or None.
        roots: Returns the folders that a server gets as roots besides those of its entry, by its
            id. If it is confined, it may write there from its next start on.
        target: Returns what a client connects to in place of the entry's command or address, or
            None for the entry's own.
        backoff: The delay before a server is restarted.
        limits: The limits of one server.
        revisions: Servers that need an older revision, remembered between starts.
        tracing: A tracing system for the requests to the servers.
        await_login: Whether a server that answers 401 is left alone until it is started again.
            Otherwise it is retried like any other.
        record: Records all messages, each server as a connection for each start. Secrets of the
            configuration are redacted.
        messages: Keeps the last messages of all servers, each under the id of its server.
        clock: Returns the time in seconds.
        sleep: Waits for some seconds.
        chance: Returns a random number from 0 to 1.
    """

    name: str = "interlock-host"
    auth: Callable[[Entry], Any] | None = None
    roots: Callable[[str], Sequence[str]] | None = None
    target: Callable[[Entry], Any] | None = None
    backoff: Backoff = field(default_factory=Backoff)
    limits: HubLimits = field(default_factory=HubLimits)
    revisions: KnownRevisions = field(default_factory=KnownRevisions)
    tracing: Tracing | None = None
    await_login: bool = False
    record: Recorder | None = None
    messages: TapeBuffer | None = None
    clock: Callable[[], float] = time.monotonic
    sleep: Sleep = asyncio.sleep
    chance: Callable[[], float] = random.random

    def with_targets(self, targets: Mapping[str, Any]) -> HubOptions:
        """Return these options with further targets, by server id, where `target` has none."""
        given = self.target

        def target(entry: Entry) -> Any:
            found = None if given is None else given(entry)
            return targets.get(entry.id) if found is None else found

        return replace(self, target=target)
