"""Upstreams: the connections to the servers behind the gateway, each opened when it is first
needed, with a circuit breaker, and shared or one for each principal.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from interlock import (
    AnyResult,
    Client,
    Exchange,
    McpError,
    Offered,
    Source,
    TimedOut,
    Unanswerable,
    Unreachable,
)
from interlock import types as t
from interlock.auth import Unauthorized
from interlock.configs import Entry
from interlock.store import CircuitBreaker

from .settings import ServerSettings
from .state import Condition, UpstreamState

log = logging.getLogger("interlock_apps.gateway")

PATIENCE = 10.0
"""The longest time that a request waits for a server that is being opened, in seconds."""

FAILURES = 3
"""The failures in a row after which a server is not tried for a while."""

_FIRST_PAUSE = 1.0  # seconds for which a server is not tried
_LONGEST_PAUSE = 30.0
_DRAIN_SECONDS = 30.0  # for running calls of a removed server
_KNOWN_PRINCIPALS = 1000  # whose lists are remembered, by server
_WORST: Sequence[Condition] = ("open circuit", "down", "opening", "up", "idle", "draining")


class Account(Protocol):
    """The credentials of one principal at one server."""

    async def has_login(self) -> bool:
        """Whether there are credentials."""
        ...

    async def connect(self, x: Exchange) -> None:
        """Let the caller of an exchange log in, and return once that is done.

        Raises:
            McpError: The caller cannot be asked, declines, or the login fails.
        """
        ...


MakeClient = Callable[[], Client]
"""Returns a new client of one server."""


class Upstream:
    """One connection to one server, opened when it is first needed and kept.

    Its transport starts a dead process and an ended session again; failures in a row open the
    circuit, so that callers get an error at once, except for one attempt now and then.

    Args:
        name: The name of the server in the settings.
        make: Makes the client.
        account: The credentials of the principal that uses it, if each principal has its own.
        patience: The longest time that a request waits for it to open, in seconds.
        timeout: The longest time that a request may take, in seconds; None for no limit.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        name: str,
        make: MakeClient,
        *,
        account: Account | None = None,
        patience: float = PATIENCE,
        timeout: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.account = account
        self.calls = 0
        """The number of running requests, without subscriptions."""
        self.listeners = 0
        """The number of open subscriptions."""
        self.logins = 0
        """The number of callers that wait for a login."""
        self.used = clock()
        """When it was last used."""
        self.words = ""
        """Why it cannot be used; empty if it can, or was not needed yet."""
        self.failures = 0
        self.is_draining = False
        self.needs_login = False
        self.admit: Callable[[], None] = lambda: None
        """Called before it is opened. Raises McpError if there is no room for it."""
        self._make = make
        self._patience = patience
        self._timeout = timeout
        self._clock = clock
        self._breaker = CircuitBreaker(
            failures=FAILURES, pause=_FIRST_PAUSE, longest=_LONGEST_PAUSE
        )
        self._source: Source | None = None
        self._opening: asyncio.Task[None] | None = None
        self._offered: Offered | None = None
        self._changed: dict[object, Callable[[], None]] = {}
        self._forget: Callable[[], object] = lambda: None
        self._lock = asyncio.Lock()
        self._completed_logins = 0
        self._overcome: str | None = None  # the problem of the source before the last success
        self._idle: asyncio.Event | None = None  # set when the last call of a removed server ends

    # -- its state ---------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether there is a process or a connection, or one is being opened."""
        return self._source is not None

    @property
    def was_tried(self) -> bool:
        """Whether its lists are known, or the first attempt to read them has ended."""
        if self._offered is not None:
            return True
        return self._opening is not None and self._opening.done()

    @property
    def is_busy(self) -> bool:
        """Whether a request or a subscription runs, or waits for a login."""
        return bool(self.calls or self.listeners or self.logins)

    @property
    def is_mounted(self) -> bool:
        """Whether a catalogue has it."""
        return bool(self._changed)

    @property
    def condition(self) -> Condition:
        """Its condition."""
        if self.is_draining:
            return "draining"
        if self._source is None:
            return "idle"
        if self._breaker.is_open:
            return "open circuit"
        if self._opening is not None and not self._opening.done():
            return "opening"
        return "down" if self.problem else "up"

    @property
    def problem(self) -> str:
        """Why it cannot be used, as far as that is known; empty if it can."""
        kept: str | None = getattr(self._source, "problem", None)
        if kept == self._overcome:
            kept = None
        return self.words or kept or ""

    @property
    def retry_seconds(self) -> float:
        """The time until an open circuit lets a request through, in seconds; 0 if it is closed."""
        return self._breaker.wait(self._clock()) if self._breaker.is_open else 0.0

    @property
    def offered(self) -> Offered | None:
        """The lists, as they were last read; None if they were never read."""
        return self._offered

    def listen(self, changed: Callable[[], None]) -> Callable[[], object]:
        """Call `changed` whenever the lists have changed."""
        key = object()
        self._changed[key] = changed
        return lambda: self._changed.pop(key, None)

    def notify(self) -> None:
        """Tell the listeners that the lists, or whether there is a login, have changed."""
        for changed in list(self._changed.values()):
            changed()

    def _read(self) -> None:
        source = self._source
        if source is not None and source.offered is not None:
            self._offered = source.offered
            self.needs_login = False
            self.notify()

    # -- opening and closing -----------------------------------------------------------------------

    async def ensure(self, seconds: float | None = None) -> None:
        """Open it if it is not open, and wait until its lists are known or the attempt has failed.

        A server that cannot be reached raises no error: it is tried again in the background.

        Args:
            seconds: The longest time to wait; None for `patience`.
        """
        self.used = self._clock()
        if self._source is None:
            await self._start()
        opening = self._opening
        if opening is not None and not opening.done():
            await asyncio.wait({opening}, timeout=self._patience if seconds is None else seconds)

    async def _start(self) -> None:
        async with self._lock:
            if self._source is not None or self.is_draining:
                return
            if self.account is not None and not await self.account.has_login():
                if not self.needs_login:
                    self.needs_login = True
                    self.notify()
                return
            self.needs_login = False
            self.admit()
            client = self._make()
            source = client.as_source()
            self._source = source
            self._forget = source.listen(self._read)
            self._opening = asyncio.create_task(self._open(client, source))

    async def _open(self, client: Client, source: Source) -> None:
        if self.account is not None:
            try:
                await client.open()
            except Unauthorized as bad:
                log.info("%s: a principal has to log in again: %s", self.name, bad)
                self.needs_login = True
                self.notify()
                return
            except (Unreachable, McpError, t.ProtocolError) as bad:
                log.info("%s: %s", self.name, bad)  # the source tries again
        await source.open()
        if getattr(source, "problem", None):
            self.failures += 1
        self._read()

    async def close(self) -> None:
        """Close the process or connection. The lists stay known, and it opens again when it is
        needed.
        """
        async with self._lock:
            source = self._source
            opening = self._opening
            self._source = None
            self._opening = None
            self._forget()
            if opening is not None and not opening.done():
                opening.cancel()
                await asyncio.wait({opening})
            if source is not None:
                await source.aclose()

    async def reopen(self) -> None:
        """Close it, and open it again."""
        await self.close()
        self.words = ""
        await self.ensure()

    async def drain(self, seconds: float = _DRAIN_SECONDS) -> None:
        """Take no new requests, let running ones end for some seconds, and close it."""
        self.is_draining = True
        if self.calls:
            self._idle = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._idle.wait()
        await self.close()

    # -- requests ----------------------------------------------------------------------------------

    async def handle(self, x: Exchange) -> AnyResult:
        """Forward a request.

        Raises:
            McpError: The server answers with an error, or cannot be reached.
        """
        if self._source is None or not self.was_tried:
            await self.ensure()
        source = self._source
        if source is None or self.needs_login:
            return await self._log_in_and_handle(x)
        if self._breaker.is_open and not self._breaker.allows(self._clock()):
            raise self._unreachable()
        is_listening = x.method == "subscriptions/listen"
        if is_listening:
            self.listeners += 1
        else:
            self.calls += 1
        try:
            if self._timeout is None or is_listening:
                result = await source.handle(x)
            else:
                result = await self._in_time(source, x, self._timeout)
        except Unauthorized as bad:
            if self.account is None:
                self._fail(bad)
                raise self._unreachable() from bad
            refused = bad
        except (Unreachable, t.ProtocolError) as bad:
            if isinstance(bad, Unanswerable):
                raise
            self._fail(bad)
            raise self._unreachable() from bad
        else:
            if self.failures:
                self._succeed()
            return result
        finally:
            self.used = self._clock()
            if is_listening:
                self.listeners -= 1
            else:
                self._end_call()
        log.info("%s: a principal has to log in again: %s", self.name, refused)
        self.needs_login = True
        return await self._log_in_and_handle(x)

    async def _log_in_and_handle(self, x: Exchange) -> AnyResult:
        """Let the caller log in, and go on with the request."""
        if self.account is None or self.is_draining:
            raise self._unreachable()
        await self.log_in(x)
        source = self._source
        if source is None:
            raise self._unreachable()
        self.calls += 1
        try:
            return await source.handle(x)
        except (Unreachable, t.ProtocolError) as bad:
            self._fail(bad)
            raise self._unreachable() from bad
        finally:
            self._end_call()

    async def _in_time(self, source: Source, x: Exchange, seconds: float) -> AnyResult:
        try:
            async with asyncio.timeout(seconds):
                return await source.handle(x)
        except TimeoutError:
            words = f"The server {self.name} did not answer within {seconds:g} s."
            raise McpError(t.INTERNAL_ERROR, words) from None

    def _end_call(self) -> None:
        self.calls -= 1
        if self._idle is not None and not self.calls:
            self._idle.set()

    async def log_in(self, x: Exchange) -> None:
        """Let the caller of an exchange log in, and open the connection with that login.

        Raises:
            McpError: The caller cannot be asked, declines, or the login fails.
        """
        assert self.account is not None  # only a server with accounts needs logins
        if self._source is None:  # another worker may have got a login meanwhile
            await self.ensure()
            if not self.needs_login:
                return
        logins = self._completed_logins
        self.logins += 1
        try:
            await self.account.connect(x)
        finally:
            self.logins -= 1
        if self._completed_logins != logins:  # another caller has waited for the same login
            await self.ensure()
            return
        self._completed_logins += 1
        self.needs_login = False
        await self.reopen()

    def _succeed(self) -> None:
        # The source learns that only when it reads the lists again.
        self._overcome = getattr(self._source, "problem", None)
        self.failures = 0
        self.words = ""
        self._breaker.succeeded()

    def _fail(self, bad: Exception) -> None:
        self.failures += 1
        self.words = str(bad) or type(bad).__name__
        log.warning("%s: %s", self.name, self.words)
        if not isinstance(bad, TimedOut):  # a slow call says nothing about the others
            self._breaker.failed(self._clock())

    def _unreachable(self) -> McpError:
        """The error for callers. What went wrong is in the log and in `status` only."""
        if self.is_draining:
            return McpError(t.INTERNAL_ERROR, f"The server {self.name} was removed.")
        retry = self.retry_seconds
        if not retry:
            return McpError(t.INTERNAL_ERROR, f"The server {self.name} cannot be reached now.")
        return McpError(
            t.INTERNAL_ERROR,
            f"The server {self.name} cannot be reached now. Try again in {retry:.0f} s.",
            {"retryAfterMs": int(retry * 1000)},
        )


class Upstreams(Protocol):
    """The connections to one server."""

    name: str
    settings: ServerSettings
    entry: Entry

    def of(self, principal: str) -> Upstream:
        """Return the connection that a principal uses. It need not be open."""
        ...

    def all(self) -> Sequence[Upstream]:
        """Return all connections."""
        ...

    async def reap(self) -> None:
        """Close connections that nobody has used for a while."""
        ...

    async def drain(self) -> None:
        """Let running calls end, and close all connections."""
        ...


class SharedUpstream:
    """One connection for all principals.

    Args:
        entry: The server.
        settings: How it is used.
        upstream: The connection.
    """

    def __init__(self, entry: Entry, settings: ServerSettings, upstream: Upstream) -> None:
        self.name = entry.id
        self.entry = entry
        self.settings = settings
        self._upstream = upstream

    def of(self, principal: str) -> Upstream:
        """Return the connection."""
        return self._upstream

    def all(self) -> Sequence[Upstream]:
        """Return the connection."""
        return (self._upstream,)

    async def reap(self) -> None:
        """Do nothing: a shared connection is kept."""

    async def drain(self) -> None:
        """Let running calls end, and close the connection."""
        await self._upstream.drain()


class PersonalUpstreams:
    """A connection for each principal. Unused ones are closed, and their lists stay known.

    Args:
        entry: The server.
        settings: How it is used.
        make: Makes the connection of a principal, by its key.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        entry: Entry,
        settings: ServerSettings,
        make: Callable[[str], Upstream],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = entry.id
        self.entry = entry
        self.settings = settings
        self._make = make
        self._clock = clock
        self._by_principal: dict[str, Upstream] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def of(self, principal: str) -> Upstream:
        """Return the connection of a principal. It need not be open."""
        known = self._by_principal.get(principal)
        if known is None:
            known = self._by_principal[principal] = self._make(principal)
            known.admit = self.admit
        return known

    def admit(self) -> None:
        """Make room for one more process or connection: the one that was not used for the longest
        time is closed.

        Raises:
            McpError: All of them are in use.
        """
        opened = [one for one in self._by_principal.values() if one.is_open]
        if len(opened) < self.settings.most:
            return
        idle = [one for one in opened if not one.is_busy]
        if not idle:
            words = (
                f"All {self.settings.most} connections to {self.name} are in use. Try again later."
            )
            raise McpError(t.INTERNAL_ERROR, words, {"retryAfterMs": 5000})
        self._close_soon(min(idle, key=lambda one: one.used))

    def _close_soon(self, upstream: Upstream) -> None:
        task = asyncio.get_running_loop().create_task(upstream.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def all(self) -> Sequence[Upstream]:
        """Return all connections."""
        return tuple(self._by_principal.values())

    async def reap(self) -> None:
        """Close connections that nobody has used for a while, and forget the oldest closed ones."""
        now = self._clock()
        for one in list(self._by_principal.values()):
            if one.is_open and not one.is_busy and now - one.used >= self.settings.idle_seconds:
                await one.close()
        if len(self._by_principal) > _KNOWN_PRINCIPALS:
            # A connection that a catalogue has may be opened again, and has to be known then.
            closed = [
                (one.used, key)
                for key, one in self._by_principal.items()
                if not (one.is_open or one.is_busy or one.is_mounted)
            ]
            for _, key in sorted(closed)[: len(self._by_principal) - _KNOWN_PRINCIPALS]:
                del self._by_principal[key]

    async def drain(self) -> None:
        """Let running calls end, and close all connections."""
        await asyncio.gather(*(one.drain() for one in self._by_principal.values()))
        if self._closing:
            await asyncio.wait(self._closing)


def state_of(upstreams: Upstreams) -> UpstreamState:
    """Return the state of one server, over all its connections."""
    every = upstreams.all()
    worst = min(every, key=lambda one: _WORST.index(one.condition), default=None)
    lists = [one.offered for one in every if one.offered is not None]
    return UpstreamState(
        name=upstreams.name,
        shown=upstreams.entry.shown,
        condition="idle" if worst is None else worst.condition,
        words="" if worst is None else worst.problem,
        identity=upstreams.settings.identity,
        shared=not upstreams.settings.is_personal,
        connections=sum(one.is_open for one in every),
        failures=sum(one.failures for one in every),
        tools=max((len(offered.tools) for offered in lists), default=0),
        calls=sum(one.calls for one in every),
        retry_seconds=0.0 if worst is None else worst.retry_seconds,
        required=upstreams.settings.required,
    )
