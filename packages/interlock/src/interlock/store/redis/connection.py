"""The connection to Redis: one ordered pipeline that survives outages of the server."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...logs import limited
from .. import bounds
from ..circuit_breaker import CircuitBreaker
from ..errors import StoreError
from ..urls import server_address

if TYPE_CHECKING:
    from redis.asyncio import Redis

Argument = bytes | str | int

# limits of one batch: commands and bytes that are sent before their replies are read
_BATCH = 1000
_BATCH_BYTES = 4 * 1024 * 1024
_LONGEST_PAUSE = 1.0  # seconds between two attempts to reach an unavailable server

# Errors of redis-py after which a new connection may succeed: the server has just started, or
# another server has become the primary.
_NOT_NOW = {"BusyLoadingError", "MasterDownError", "ReadOnlyError"}

# Errors that say that the server writes nothing for now: its disk or its memory is full, or its
# replicas are gone.
_NO_WRITES = ("MISCONF", "NOREPLICAS", "OOM")
_RETRY_PAUSE = 0.1  # seconds between two attempts to write what was refused so

log = limited("interlock.store")


class _Command:
    """A command, and the future of its reply."""

    __slots__ = ("arguments", "size", "waiter")

    def __init__(
        self, arguments: tuple[Argument, ...], waiter: asyncio.Future[Any] | None, size: int
    ) -> None:
        # Encoded here, so that no external name can break the pipeline.
        self.arguments = tuple(
            each.encode("utf-8", "surrogatepass") if isinstance(each, str) else each
            for each in arguments
        )
        self.waiter = waiter
        self.size = size


class Link:
    """Sends commands in order and in batches, from `open` to `aclose`.

    Commands that nobody waits for are repeated, in order, while the server refuses writes. While
    the server does not answer, a circuit breaker refuses commands at once: each caller would
    wait for `patience` seconds, only to be refused.
    """

    def __init__(self, url: str, patience: float) -> None:
        self._url = url
        self.place = server_address(url)
        self._patience = patience
        self._waiting: deque[_Command] = deque()
        self._refused: deque[_Command] = deque()  # to be repeated, before all others without waiter
        self._retry: asyncio.TimerHandle | None = None
        self._size = 0  # bytes of the queued commands without a waiter
        self._stirred = asyncio.Event()
        self._open = False
        self._away = False
        self._breaker = CircuitBreaker()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._client: Redis | None = None
        self._sending: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connect. Raises StoreError if the server cannot be reached or rejects the connection."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._waiting.clear()
        self._refused.clear()
        self._size = 0
        self._away = False
        self._breaker = CircuitBreaker()
        self._stirred = asyncio.Event()
        try:
            self._client = self.client(self._patience)
            await self._client.ping()
        except Exception as bad:  # no server, a wrong password: redis-py raises many types
            await self._release_client()
            # A ValueError is about the URL and may quote its password.
            why = (
                "its URL cannot be read"
                if isinstance(bad, ValueError)
                else str(bad) or type(bad).__name__
            )
            raise StoreError(f"the Redis server at {self.place} cannot be used: {why}") from None
        self._open = True
        self._sending = asyncio.create_task(self._send_all())

    async def aclose(self) -> None:
        """Send the queued commands, within `patience` seconds, and disconnect."""
        self._open = False
        self._repeat()
        sending = self._sending
        self._sending = None
        if sending is not None:
            await asyncio.wait({sending}, timeout=self._patience)
            await end(sending)
        for command in self._waiting:
            _settle(command, StoreError("the store has been closed"))
        self._waiting.clear()
        await self._release_client()

    def client(self, timeout: float) -> Redis:
        """Return a separate client that never retries.

        `timeout` is the time for one reply, in seconds.
        """
        from redis.asyncio import Redis  # optional extra `redis`, slow to import
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff

        once = Retry(NoBackoff(), 0)
        return Redis.from_url(
            self._url,
            protocol=2,
            retry=once,
            socket_timeout=timeout,
            socket_connect_timeout=min(timeout, 5.0),
        )

    def soon(self, call: Callable[..., None], *arguments: Any) -> None:
        """Call a function in the event loop of this connection; at once if this is the thread of
        the loop. Does nothing if the loop is closed.
        """
        if threading.get_ident() == self._thread:
            call(*arguments)
        elif self._loop is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(call, *arguments)

    def send(self, *arguments: Argument, size: int = 0, always: bool = False) -> bool:
        """Queue a command. It is dropped if the queue is full or the connection closed. Call it in
        the event loop of this connection.

        Args:
            arguments: The command.
            size: Its size in bytes.
            always: Whether it is queued even if the queue is full.

        Returns:
            False if it was dropped because the queue is full.
        """
        if not self._open:
            return True
        queued = len(self._waiting) + len(self._refused)
        is_full = queued >= bounds.WAITING or self._size + size > bounds.WAITING_BYTES
        if is_full and not always:
            log.warning("the store cannot keep up and has dropped what was to be written")
            return False
        self._size += size
        self._put(_Command(arguments, None, size))
        return True

    async def ask(self, *arguments: Argument) -> Any:
        """Send a command after all earlier ones that were not refused, and return its reply.

        Raises StoreError if there is no reply.
        """
        if not self._open:
            raise StoreError("the store is not open")
        loop = asyncio.get_running_loop()
        if not self._breaker.allows(loop.time()):
            raise StoreError(f"the Redis server at {self.place} has not answered just now")
        waiter: asyncio.Future[Any] = loop.create_future()
        self._put(_Command(arguments, waiter, 0))
        try:
            async with asyncio.timeout(self._patience):
                return await waiter
        except TimeoutError:
            self._breaker.failed(loop.time())
            raise StoreError(f"the Redis server at {self.place} does not answer") from None

    def _put(self, command: _Command) -> None:
        self._waiting.append(command)
        self._stirred.set()

    async def _send_all(self) -> None:
        while self._open or self._waiting:
            self._stirred.clear()
            while self._waiting:
                if batch := self._next():
                    await self._carry_out(batch)
            if self._open:
                await self._stirred.wait()

    def _next(self) -> list[_Command]:
        batch: list[_Command] = []
        size = 0
        while self._waiting and len(batch) < _BATCH and size < _BATCH_BYTES:
            command = self._waiting.popleft()
            if command.waiter is None and self._refused:
                self._refused.append(command)
                continue
            batch.append(command)
            size += command.size
        return batch

    async def _carry_out(self, batch: list[_Command]) -> None:
        """Send a batch, and repeat it while the server is unavailable. Every command may be
        repeated without harm.
        """
        size = sum(command.size for command in batch)
        pause = 0.0
        try:
            while batch := [
                command for command in batch if command.waiter is None or not command.waiter.done()
            ]:
                try:
                    replies = await self._replies(batch)
                except Exception as bad:  # the connection failed: redis-py raises many types
                    self._lost(bad)
                    await asyncio.sleep(pause)
                    pause = min(max(2 * pause, 0.02), _LONGEST_PAUSE)
                    continue
                self._found()
                for command, reply in zip(batch, replies, strict=True):
                    if command.waiter is None and (self._refused or _is_temporary(reply)):
                        self._repeat_later(command)
                    else:
                        self._finish_command(command, reply)
                return
        finally:
            self._size -= size
            for command in batch:
                _settle(command, StoreError("the store has been closed"))

    async def _replies(self, batch: list[_Command]) -> list[Any]:
        assert self._client is not None
        pipeline = self._client.pipeline(transaction=False)
        for command in batch:
            pipeline.execute_command(*command.arguments)
        replies: list[Any] = await pipeline.execute(raise_on_error=False)
        for reply in replies:
            if type(reply).__name__ in _NOT_NOW:
                await self._client.connection_pool.disconnect()
                raise reply
        return replies

    def _finish_command(self, command: _Command, reply: Any) -> None:
        if not isinstance(reply, Exception):
            if command.waiter is not None and not command.waiter.done():
                command.waiter.set_result(reply)
        elif command.waiter is None:
            kind = type(reply).__name__
            log.warning("the Redis server has refused what was to be written: %s", kind)
        else:
            _settle(
                command,
                StoreError(f"the Redis server has refused a command: {type(reply).__name__}"),
            )

    def _repeat_later(self, command: _Command) -> None:
        """Queue a command again that was refused, or that was sent after one that was refused."""
        if not self._open:
            log.warning("the Redis server at %s refuses writes; some are lost", self.place)
            return
        if self._retry is None:
            log.warning("the Redis server at %s refuses writes; trying again", self.place)
            loop = asyncio.get_running_loop()
            self._retry = loop.call_later(_RETRY_PAUSE, self._repeat, context=contextvars.Context())
        self._size += command.size
        self._refused.append(command)

    def _repeat(self) -> None:
        """Send the refused commands again."""
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        self._waiting.extendleft(reversed(self._refused))
        self._refused.clear()
        self._stirred.set()

    def _lost(self, bad: Exception) -> None:
        if not self._away:
            self._away = True
            log.warning(
                "the Redis server at %s is away (%s); trying again", self.place, type(bad).__name__
            )

    def _found(self) -> None:
        self._breaker.succeeded()
        if self._away:
            self._away = False
            log.info("the Redis server at %s is back", self.place)

    async def _release_client(self) -> None:
        client = self._client
        self._client = None
        if client is not None:
            with contextlib.suppress(Exception):  # the connection is lost either way
                await client.aclose()


def _is_temporary(reply: Any) -> bool:
    """Whether the server has refused to write for now."""
    return isinstance(reply, Exception) and (
        type(reply).__name__ == "OutOfMemoryError" or str(reply).startswith(_NO_WRITES)
    )


async def end(task: asyncio.Task[None]) -> None:
    """Cancel a task that uses Redis, repeatedly: redis-py loses a cancellation that arrives while
    it connects.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=0.05)


def _settle(command: _Command, bad: StoreError) -> None:
    if command.waiter is not None and not command.waiter.done():
        command.waiter.set_exception(bad)
