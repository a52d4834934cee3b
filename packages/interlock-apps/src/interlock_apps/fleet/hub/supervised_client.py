"""One client of a server, from its start to its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

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

from .backoff import Backoff
from .connect import with_loss_detector
from .limits import HubLimits
from .list_fetcher import KINDS, FeatureLists, bounded
from .log_buffer import ServerLogBuffer
from .timeouts import Sleep, Throttle, cancelled, within

log = logging.getLogger("interlock_apps.host")


_FAREWELL = 0.2  # seconds in which subscriptions are ended before the client is


class SupervisedClient:
    """A client that is opened once, listened to and looked after until its server has gone, and closed, whatever happens.

    Parameters:
        target: What the client is pointed at.
        answers: Who answers the server's questions.
        voice: Hears what the server says.
        changed: Called when a list is another than before.
        updated: Called with a watched URI when what stands behind it is another.
        complain: Gets words about what cannot be had.
        revision: The only revision to speak; None: found out with the server.
        known: A revision that this server spoke before.
    """

    def __init__(
        self,
        target: Any,
        *,
        name: str,
        answers: Answers,
        voice: ServerLogBuffer,
        changed: Callable[[], None],
        updated: Callable[[str], None],
        complain: Callable[[str], None],
        revision: str | None,
        known: str | None,
        bounds: HubLimits,
        backoff: Backoff,
        sleep: Sleep,
        clock: Callable[[], float],
        chance: Callable[[], float],
    ) -> None:
        self._bounds, self._backoff, self._sleep, self._clock, self._chance = (
            bounds,
            backoff,
            sleep,
            clock,
            chance,
        )
        self._updated, self._outcry = updated, complain
        self.client = Client(
            with_loss_detector(target, self._lost, known),
            answers=answers,
            on_log=voice.hear_message,
            info=Implementation(name=name, version="1"),
            revision=revision,
            log_level=bounds.log_level,
            timeout=bounds.call,
            middleware=[bounded(bounds.most_items)],
            settings=ClientSettings(
                older_for_questions=False
            ),  # the host does so itself: it asks the person
        )
        self.lists = FeatureLists(
            self.client,
            changed=changed,
            complain=self._complain,
            redactor=voice.redactor,
            seconds=bounds.lists,
            refresh=bounds.refresh,
            sleep=sleep,
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
        self._closing = self._is_broken = False

    # -- from its start ------------------------------------------------------------------------------------

    async def open(self, seconds: float) -> None:
        """Reach the server. Raises TimedOut after `seconds`, Unreachable, McpError, ProtocolError."""
        self._opening = asyncio.get_running_loop().create_task(self.client.open())
        if not await within(self._opening, seconds, self._sleep):
            raise TimedOut(f"It did not start within {seconds:g} seconds.")
        self._opening.result()
        self.opened = True
        if self.client.caller.supports("ping") and self._bounds.ping is not None:
            self._spawn(self._ping_now_and_then(self._bounds.ping))

    async def fetch(self) -> None:
        """Listen to changes, then fetch the lists, so that no change falls between the two. What cannot be had is complained about."""
        offers = self.client.server_capabilities
        told = {
            name
            for name in ("tools", "prompts", "resources")
            if getattr(getattr(offers, name), "list_changed", False)
        }
        if told:
            listening = asyncio.get_running_loop().create_future()
            self._spawn(self._listen(told, listening))
            await within(listening, self._bounds.acknowledge, self._sleep)
            listening.cancel()  # whoever is granted it later has to fetch once more
        fetching = asyncio.ensure_future(self.lists.fetch())
        try:
            over: asyncio.Future[Any] = self._over
            await asyncio.wait({fetching, over}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancelled(fetching)

    @property
    def is_closing(self) -> bool:
        """Whether it is being ended by us, or was."""
        return self._closing

    @property
    def is_over(self) -> bool:
        """Whether the server has gone."""
        return self._over.done()

    async def stay(self) -> Exception:
        """Wait until the server has gone; why, with the exit code and the last words of a process."""
        await asyncio.wait({self._over})
        why = self._over.result()
        if self._is_broken:
            try:
                await self.client.ping(
                    timeout=self._bounds.pong
                )  # fails at once, and knows how the process ended
            except Unreachable as bad:
                why = bad
            except InterlockError as bad:
                log.debug("asked after its end, the server said: %s", bad)
        return why

    async def aclose(self) -> None:
        """End everything that is under way, and the server where it is a child process."""
        self._closing = True
        if self._opening is not None and not self._opening.done():
            await cancelled(self._opening)
        listening = list(self._tasks)
        for task in listening:
            task.cancel()
        try:
            if listening:  # a server that still has a subscription gives it a second of grace; one that hangs is not waited for
                await asyncio.wait(listening, timeout=_FAREWELL)
            await self._close_client()
        finally:
            await cancelled(*self._tasks)
            await self.lists.aclose()

    async def _close_client(self) -> None:
        while True:
            try:
                return await self.client.aclose()
            except asyncio.CancelledError:  # only at the end of the loop: what was begun has to be done, or a process would be left
                log.debug("closing is begun again")

    # -- while it lasts ------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """While a request is under way no ping is sent: many servers do one thing at a time."""
        self._calls += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.set()

    async def until_idle(self) -> None:
        """Wait until no request is under way, or the server has gone."""
        idle = asyncio.ensure_future(self._idle.wait())
        try:
            waiting: set[asyncio.Future[Any]] = {idle, self._over}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancelled(idle)

    def doubt(self, why: Unreachable) -> None:
        """A request has found no answer: see whether the server is there at all."""
        if self.opened and not self._closing and (self._doubting is None or self._doubting.done()):
            self._doubting = self._spawn(self._is_there(why))

    async def watch(self, uri: str) -> bool:
        """Hear of what stands behind a URI; whether the server tells of it."""
        granted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._watch(uri, granted)
        return granted.result() if await within(granted, self._bounds.pong, self._sleep) else False

    def watch_again(self, uri: str) -> None:
        """Hear of a URI that was watched before the server has gone: it may be another since."""
        known: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        known.set_result(True)
        self._watch(uri, known)

    def _watch(self, uri: str, granted: asyncio.Future[bool]) -> None:
        self.unwatch(uri)
        self._watches[uri] = task = self._spawn(self._hear_of(uri, granted))

        def settle(_: object) -> None:
            if not granted.done():
                granted.set_result(False)

        task.add_done_callback(settle)

    def unwatch(self, uri: str) -> None:
        """Hear no more of it."""
        if (task := self._watches.pop(uri, None)) is not None:
            task.cancel()

    def _complain(self, words: str) -> None:
        if not (self._over.done() or self._closing):  # else its end says more
            self._outcry(words)

    def _lost(self, why: Exception) -> None:
        if not self._closing:
            self._is_broken = True
            self._finish(why)

    def _finish(self, why: Exception) -> None:
        if not self._over.done():
            self._over.set_result(why)

    async def _is_there(self, why: Exception) -> None:
        """A sign of life, or it is the end."""
        pinging = asyncio.ensure_future(self.client.ping(timeout=None))
        try:
            if await within(pinging, self._bounds.pong, self._sleep):
                pinging.result()
            else:
                self._finish(why)
        except Unreachable as bad:
            self._finish(bad)
        except InterlockError:
            pass  # an error is an answer
        finally:
            await cancelled(pinging)

    async def _ping_now_and_then(self, seconds: float) -> None:
        """The handshake era: a server that answers no ping is one to begin again with (`PNG-02`, `PNG-03`)."""
        missed = 0
        while True:
            await self._sleep(seconds)
            if self._calls:
                missed = 0
                continue
            pinging = asyncio.ensure_future(self.client.ping(timeout=None))
            try:
                if await within(pinging, self._bounds.pong, self._sleep):
                    missed = 0
                    pinging.result()
                    continue
                missed += 1
                log.warning("a ping was not answered within %g seconds", self._bounds.pong)
                if missed >= self._bounds.most_pings_missed and not self._calls:
                    return self._finish(
                        TimedOut(
                            f"It has left {missed} pings unanswered, {self._bounds.pong:g} seconds each."
                        )
                    )
            except Unreachable as bad:
                return self._finish(bad)
            except InterlockError:
                continue  # an error is an answer
            finally:
                await cancelled(pinging)

    async def _listen(self, told: set[str], listening: asyncio.Future[None]) -> None:
        """Hear which lists change. A subscription that ends is begun again, and all is fetched anew: nothing is replayed (`LSN-12`)."""
        failed = 0
        while True:
            began = self._clock()
            try:
                async with self.client.watch(
                    tools="tools" in told, prompts="prompts" in told, resources="resources" in told
                ) as changes:
                    if listening.done():
                        self.lists.outdated(KINDS)
                    else:
                        listening.set_result(None)
                    async for change in changes:
                        self.lists.outdated(
                            ["resources", "templates", "skills"]
                            if change.kind == "resources"
                            else [change.kind]
                        )
            except Unreachable as bad:
                await self._is_there(bad)
            except InterlockError as bad:
                log.info("the server does not tell of changes: %s", bad)
                if not listening.done():
                    listening.set_result(None)
                return
            failed = 1 if self._clock() - began >= self._backoff.steady else failed + 1
            await self._sleep(self._backoff.seconds(failed, self._chance()))

    async def _hear_of(self, uri: str, granted: asyncio.Future[bool]) -> None:
        async def tell() -> None:
            self._updated(uri)

        calm = Throttle(tell, self._bounds.refresh, self._sleep)
        failed = 0
        try:
            while True:
                began = self._clock()
                try:
                    async with self.client.watch(resources=[uri]) as changes:
                        if uri not in (changes.honoured.resource_subscriptions or ()):
                            return
                        if granted.done():
                            calm.want()
                        else:
                            granted.set_result(True)
                        async for _ in changes:
                            calm.want()
                except Unreachable as bad:
                    await self._is_there(bad)
                except McpError as bad:
                    log.info("the server does not tell of %s: %s", uri, bad)
                    return
                failed = 1 if self._clock() - began >= self._backoff.steady else failed + 1
                await self._sleep(self._backoff.seconds(failed, self._chance()))
        finally:
            await calm.aclose()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (bad := task.exception()) is not None:
            log.error("looking after a server failed", exc_info=bad)
