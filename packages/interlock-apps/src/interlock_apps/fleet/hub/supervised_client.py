"""Supervision of one client: heartbeat pings, change subscriptions and loss detection."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine, Iterator
from typing import Any, Protocol

from interlock import (
    Answers,
    Client,
    ClientSettings,
    Implementation,
    InterlockError,
    McpError,
    TimedOut,
    Unreachable,
)

from .connect import with_loss_detector
from .list_fetcher import KINDS, FeatureLists, ListFetcher, ListListener, bounded
from .log_buffer import ServerLogBuffer
from .options import HubOptions
from .recorders import recorder_of
from .timeouts import Throttle, cancelled, within

log = logging.getLogger("interlock_apps.host")


_FAREWELL = 0.2  # seconds for subscriptions to end before the client is closed


class ClientListener(ListListener, Protocol):
    """Receives what a supervised client reports."""

    def resource_updated(self, uri: str) -> None:
        """A watched resource has changed."""
        ...


class SupervisedClient:
    """A client that is opened once, watched until its server is lost, and always closed.

    Args:
        server: The id of the server.
        target: What the client connects to.
        listener: Receives changes and failures.
        options: The hub's options.
        answers: Answers the server's questions.
        log_buffer: Receives the server's log messages.
        revision: The only revision to speak; None: negotiated with the server.
        known: A revision that this server spoke before.
    """

    def __init__(
        self,
        server: str,
        target: Any,
        listener: ClientListener,
        options: HubOptions,
        *,
        answers: Answers,
        log_buffer: ServerLogBuffer,
        revision: str | None,
        known: str | None,
    ) -> None:
        self._listener = listener
        self._limits = options.limits
        self._backoff = options.backoff
        self._sleep = options.sleep
        self._clock = options.clock
        self._chance = options.chance
        watched = with_loss_detector(target, self._lost, known)
        self.client = Client(
            watched,
            answers=answers,
            on_log=log_buffer.add_message,
            info=Implementation(name=options.name, version="1"),
            revision=revision,
            log_level=options.limits.log_level,
            timeout=options.limits.call,
            middleware=[bounded(options.limits.most_items)],
            record=recorder_of(server, watched, options.record, options.messages),
            tracing=options.tracing,
            # The hub restarts the server itself.
            settings=ClientSettings(older_for_questions=False),
        )
        self._fetcher = ListFetcher(
            self.client, self, log_buffer.redactor, options.limits, options.sleep
        )
        self.opened = False
        self._over: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        self._opening: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._doubting: asyncio.Task[None] | None = None
        self._calls = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = False
        self._is_broken = False

    # -- from its start ----------------------------------------------------------------------------

    async def open(self, seconds: float) -> None:
        """Connect to the server.

        Raises TimedOut after `seconds`, Unreachable, McpError, ProtocolError.
        """
        self._opening = asyncio.get_running_loop().create_task(self.client.open())
        if not await within(self._opening, seconds, self._sleep):
            raise TimedOut(f"It did not start within {seconds:g} seconds.")
        self._opening.result()
        self.opened = True
        if self.client.caller.supports("ping") and self._limits.ping is not None:
            self._spawn(self._send_pings(self._limits.ping))

    async def fetch(self) -> None:
        """Subscribe to changes before fetching the lists, so that no change is missed."""
        offers = self.client.server_capabilities
        declared = {
            name
            for name in ("tools", "prompts", "resources")
            if getattr(getattr(offers, name), "list_changed", False)
        }
        if declared:
            listening = asyncio.get_running_loop().create_future()
            self._spawn(self._listen(declared, listening))
            await within(listening, self._limits.acknowledge, self._sleep)
            listening.cancel()  # a subscription granted later triggers another fetch
        fetching = asyncio.ensure_future(self._fetcher.fetch())
        try:
            over: asyncio.Future[Any] = self._over
            await asyncio.wait({fetching, over}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancelled(fetching)

    @property
    def lists(self) -> FeatureLists:
        """The server's lists, as last fetched."""
        return self._fetcher.lists

    def lists_changed(self) -> None:
        """Report that a list has changed."""
        self._listener.lists_changed()

    def failed(self, words: str) -> None:
        """Report a failure, unless the client is closing: the reason for closing says more."""
        if not (self._over.done() or self._closing):
            self._listener.failed(words)

    @property
    def is_closing(self) -> bool:
        """Whether this host is closing it, or has closed it."""
        return self._closing

    @property
    def is_over(self) -> bool:
        """Whether the server was lost."""
        return self._over.done()

    async def wait_until_lost(self) -> Exception:
        """Wait until the server is lost.

        Returns:
            Why, with the exit code and the last lines of stderr of a process.
        """
        await asyncio.wait({self._over})
        why = self._over.result()
        if self._is_broken:
            try:
                await self.client.ping(
                    timeout=self._limits.pong
                )  # fails at once, and reports how the process ended
            except Unreachable as bad:
                why = bad
            except InterlockError as bad:
                log.debug("asked after its end, the server said: %s", bad)
        return why

    async def aclose(self) -> None:
        """Cancel all work, and stop the server if it is a child process."""
        self._closing = True
        if self._opening is not None and not self._opening.done():
            await cancelled(self._opening)
        listening = list(self._tasks)
        for task in listening:
            task.cancel()
        try:
            if (
                listening
            ):  # a server may take a second to end subscriptions; a hanging one is not waited for
                await asyncio.wait(listening, timeout=_FAREWELL)
            await self._close_client()
        finally:
            await cancelled(*self._tasks)
            await self._fetcher.aclose()

    async def _close_client(self) -> None:
        while True:
            try:
                return await self.client.aclose()
            except asyncio.CancelledError:  # at the end of the loop; else a process would stay
                log.debug("closing is started again")

    # -- while it lasts ----------------------------------------------------------------------------

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """Send no ping while a request is running: many servers handle one request at a time."""
        self._calls += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.set()

    async def until_idle(self) -> None:
        """Wait until no request is running, or the server is lost."""
        idle = asyncio.ensure_future(self._idle.wait())
        try:
            waiting: set[asyncio.Future[Any]] = {idle, self._over}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancelled(idle)

    def check_liveness(self, why: Unreachable) -> None:
        """Ping the server after a request got no answer: the server may be lost."""
        if self.opened and not self._closing and (self._doubting is None or self._doubting.done()):
            self._doubting = self._spawn(self._ping_once(why))

    async def watch(self, uri: str) -> bool:
        """Subscribe to a resource; return whether the server grants it."""
        granted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._watch(uri, granted)
        return granted.result() if await within(granted, self._limits.pong, self._sleep) else False

    def watch_again(self, uri: str) -> None:
        """Subscribe to a resource again after a restart: it may have changed since."""
        known: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        known.set_result(True)
        self._watch(uri, known)

    def _watch(self, uri: str, granted: asyncio.Future[bool]) -> None:
        self.unwatch(uri)
        self._watches[uri] = task = self._spawn(self._follow_resource(uri, granted))

        def settle(_: object) -> None:
            if not granted.done():
                granted.set_result(False)

        task.add_done_callback(settle)

    def unwatch(self, uri: str) -> None:
        """End a subscription."""
        if (task := self._watches.pop(uri, None)) is not None:
            task.cancel()

    def _lost(self, why: Exception) -> None:
        if not self._closing:
            self._is_broken = True
            self._finish(why)

    def _finish(self, why: Exception) -> None:
        if not self._over.done():
            self._over.set_result(why)

    async def _ping_once(self, why: Exception) -> None:
        """Ping the server; if it does not answer, it counts as lost."""
        pinging = asyncio.ensure_future(self.client.ping(timeout=None))
        try:
            if await within(pinging, self._limits.pong, self._sleep):
                pinging.result()
            else:
                self._finish(why)
        except Unreachable as bad:
            self._finish(bad)
        except InterlockError:
            pass  # an error is an answer
        finally:
            await cancelled(pinging)

    async def _send_pings(self, seconds: float) -> None:
        """Heartbeat on handshake revisions: without pongs a server is lost (`PNG-02`, `PNG-03`)."""
        missed = 0
        while True:
            await self._sleep(seconds)
            if self._calls:
                missed = 0
                continue
            pinging = asyncio.ensure_future(self.client.ping(timeout=None))
            try:
                if await within(pinging, self._limits.pong, self._sleep):
                    missed = 0
                    pinging.result()
                    continue
                missed += 1
                log.warning("a ping was not answered within %g seconds", self._limits.pong)
                if missed >= self._limits.most_pings_missed and not self._calls:
                    return self._finish(
                        TimedOut(
                            f"It left {missed} pings unanswered, {self._limits.pong:g} s each."
                        )
                    )
            except Unreachable as bad:
                return self._finish(bad)
            except InterlockError:
                continue  # an error is an answer
            finally:
                await cancelled(pinging)

    async def _listen(self, declared: set[str], listening: asyncio.Future[None]) -> None:
        """Subscribe to list changes.

        A subscription that ends is opened again, and all lists are fetched, because missed changes
        are not replayed (`LSN-12`).
        """
        failed = 0
        while True:
            began = self._clock()
            try:
                async with self.client.watch(
                    tools="tools" in declared,
                    prompts="prompts" in declared,
                    resources="resources" in declared,
                ) as changes:
                    if listening.done():
                        self._fetcher.outdated(KINDS)
                    else:
                        listening.set_result(None)
                    async for change in changes:
                        self._fetcher.outdated(
                            ["resources", "templates", "skills"]
                            if change.kind == "resources"
                            else [change.kind]
                        )
            except Unreachable as bad:
                await self._ping_once(bad)
            except InterlockError as bad:
                log.info("the server sends no change notifications: %s", bad)
                if not listening.done():
                    listening.set_result(None)
                return
            failed = 1 if self._clock() - began >= self._backoff.steady else failed + 1
            await self._sleep(self._backoff.seconds(failed, self._chance()))

    async def _follow_resource(self, uri: str, granted: asyncio.Future[bool]) -> None:
        async def publish() -> None:
            self._listener.resource_updated(uri)

        throttle = Throttle(publish, self._limits.refresh, self._sleep)
        failed = 0
        try:
            while True:
                began = self._clock()
                try:
                    async with self.client.watch(resources=[uri]) as changes:
                        if uri not in (changes.honoured.resource_subscriptions or ()):
                            return
                        if granted.done():
                            throttle.request()
                        else:
                            granted.set_result(True)
                        async for _ in changes:
                            throttle.request()
                except Unreachable as bad:
                    await self._ping_once(bad)
                except McpError as bad:
                    log.info("the server sends no notifications of %s: %s", uri, bad)
                    return
                failed = 1 if self._clock() - began >= self._backoff.steady else failed + 1
                await self._sleep(self._backoff.seconds(failed, self._chance()))
        finally:
            await throttle.aclose()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (bad := task.exception()) is not None:
            log.error("supervising a server failed", exc_info=bad)
