"""Task handles: the states, the questions and the result of a call that runs as a task."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any

from ... import types as t
from ...exchange import Asker, PauseTimeout
from ...types.tasks import IMMEDIATE_RESPONSE, Task, TaskStatus
from .requests import TaskRequests

FIRST_POLL = 0.1
"""The time before the first poll in seconds, if the server suggests none. Later ones double it."""
SLOWEST_POLL = 5.0
LEAST_INTERVAL = 0.02
MOST_INTERVAL = 600.0
"""The bounds of the interval that a server can suggest, in seconds."""
WITH_NOTICES = 30.0
"""The time between two polls in seconds while the server sends each status."""
PATIENCE = 60.0
"""The time in seconds for which a server may be unreachable, for example because it restarts."""

Notices = Callable[[str, Callable[[Task], None]], AbstractAsyncContextManager[Callable[[], bool]]]
"""Subscribes to the states of a task while a block runs. It yields a function that says whether the
server sends them now.
"""


class TaskHandle:
    """A tool call that a server may run as a task (2026-07-28, extension
    `io.modelcontextprotocol/tasks`; 2025-11-25, "Tasks").

    Iterate over it for the states of the task. The client polls the server, and asks the questions
    of the task, while you iterate or wait for the result. The task itself runs without that: keep
    its `id`, and `client.task(id)` returns a handle for it, also in another process.

    Hazard: some servers let everyone who has the id read the result. Keep it like a password.

    Attributes:
        id: The id of the task; None if the server has answered the call without a task.
        state: The state that was received last; None before the first.
        immediate_response: A text for the model while the task runs, if the server has sent one.
    """

    def __init__(
        self,
        requests: TaskRequests | None,
        id: str | None,
        *,
        asker: Asker,
        connected: Callable[[], bool],
        state: Task | None = None,
        answer: t.CallToolResult | None = None,
        check: Callable[[t.CallToolResult], None] | None = None,
        notices: Notices | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.id = id
        self.state = None if state is None else _plain(state)
        self.immediate_response: str | None = None
        if state is not None and state.meta:
            said = state.meta.get(IMMEDIATE_RESPONSE)
            self.immediate_response = said if isinstance(said, str) else None
        self._requests = requests
        self._asker = asker
        self._connected = connected
        self._answer = answer
        self._check = check
        self._notices = notices
        self._sleep = sleep
        self._pauses: set[PauseTimeout] = set()
        self._followers = 0
        self._driver: asyncio.Task[None] | None = None
        self._failed: Exception | None = None
        self._changed = asyncio.Event()
        self._poll_now = asyncio.Event()
        self._getting = asyncio.Lock()
        self._since: float | None = None  # when this handle saw the first state

    @classmethod
    def answered(cls, answer: t.CallToolResult, asker: Asker) -> TaskHandle:
        """The handle of a call that the server has answered without a task."""
        return cls(None, None, asker=asker, connected=lambda: True, answer=answer)

    def __repr__(self) -> str:
        return f"TaskHandle({self.id!r}, {self.status})"

    @property
    def status(self) -> TaskStatus:
        """The status that was received last."""
        if self.state is None:
            return "completed" if self._answer is not None else "working"
        return self.state.status

    @property
    def ended(self) -> bool:
        """Whether the call has ended, as far as this handle knows."""
        return self._answer is not None or (self.state is not None and self.state.is_terminal)

    async def __aiter__(self) -> AsyncGenerator[Task, None]:
        """Yield the state whenever it has changed, until the task has ended.

        A call that the server answered without a task has no states.

        Raises:
            McpError: The server does not know the task, or a question could not be answered.
            TimedOut: The task has exceeded its own time to live.
            Unreachable: The server cannot be reached.
        """
        if self._requests is None:
            return
        seen: Task | None = None
        async with self._following():
            while True:
                if self.state is not None and self.state != seen:
                    seen = self.state
                    yield seen
                    continue
                if seen is not None and seen.is_terminal:
                    return
                if self._failed is not None:
                    raise self._failed
                await self._changed.wait()

    async def refresh(self) -> Task:
        """Request the current state, and return it.

        Raises:
            McpError: The server does not know the task.
            Unreachable: The server cannot be reached.
            ValueError: The server answered the call without a task.
        """
        if self._requests is None:
            raise ValueError("the server answered the call without a task")
        state = _plain(await self._requests.get())
        self.receive(state)
        return state

    async def result(self) -> t.CallToolResult:
        """Wait until the task has ended, and return the result of the call.

        Cancelling the wait does not cancel the task.

        Raises:
            McpError: The call failed, the server does not know the task, or a question could not be
                answered.
            ProtocolError: The structured content does not fit the tool's output schema.
            TaskCancelled: The task was cancelled.
            TimedOut: The task has exceeded its own time to live.
            Unreachable: The server cannot be reached.
        """
        if self._answer is not None:
            return self._answer
        assert self._requests is not None
        async with self._following():
            while self.state is None or not self.state.is_terminal:
                if self._failed is not None:
                    raise self._failed
                await self._changed.wait()
        async with self._getting:
            if self._answer is None:
                answer = await self._requests.outcome(self.state, self)
                if self._check is not None:
                    self._check(answer)
                self._answer = answer
        return self._answer

    async def cancel(self) -> None:
        """Ask the server to cancel the task. A call that has ended stays as it is.

        The server decides when the task ends: it may still be completed.

        Raises:
            McpError: The server does not know the task, or cannot cancel tasks.
            Unreachable: The server cannot be reached.
        """
        if self._requests is not None and not self.ended:
            await self._requests.cancel()
            self.wake()

    # -- what the requests and the client use ------------------------------------------------------

    @property
    def asker(self) -> Asker:
        """Answers the questions of the task, while all timeouts of waiting calls are paused."""
        return _Pausing(self._asker, self._paused)

    def fail(self, why: Exception) -> None:
        """End the waiting calls with an error. Later ones try again."""
        self._failed = why
        self._announce()

    def wake(self) -> None:
        """Poll now."""
        self._poll_now.set()

    def receive(self, state: Task) -> None:
        """Process a state, from a poll or a notification. The last status is final (`TK4-10`)."""
        if self.state is None or not self.state.is_terminal:
            self.state = state = _plain(state)
            if self._driver is not None and self._requests is not None:
                self._requests.react(state, self)
            self._announce()
            if state.is_terminal:
                self.wake()

    @contextlib.contextmanager
    def pausing(self, pause: PauseTimeout) -> Iterator[None]:
        """Pause a timeout whenever a question of the task is open, while a block runs."""
        self._pauses.add(pause)
        try:
            yield
        finally:
            self._pauses.discard(pause)

    @contextlib.contextmanager
    def _paused(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for pause in self._pauses:
                stack.enter_context(pause())
            yield

    def _announce(self) -> None:
        changed = self._changed
        self._changed = asyncio.Event()
        changed.set()

    # -- polling -----------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _following(self) -> AsyncIterator[None]:
        """A block in which the handle polls. All waiting calls share one polling task."""
        self._followers += 1
        if self._driver is None and not self.ended:
            self._failed = None
            self._driver = asyncio.create_task(self._drive())
        try:
            yield
        finally:
            self._followers -= 1
            driver = self._driver
            if not self._followers and driver is not None:
                self._driver = None
                driver.cancel()
                await asyncio.wait({driver})

    async def _drive(self) -> None:
        assert self._requests is not None
        try:
            if self.state is not None:
                self._requests.react(self.state, self)
            if self._notices is None or self.id is None:
                await self._poll(lambda: False)
                return
            async with self._notices(self.id, self.receive) as are_sent:
                await self._poll(are_sent)
        except Exception as bad:
            self.fail(bad)
        finally:
            if not self.ended:
                await self._requests.stop()

    async def _poll(self, are_sent: Callable[[], bool]) -> None:
        """Poll until the task has ended (`TK4-12`, `TKX-25`)."""
        assert self._requests is not None
        clock = asyncio.get_running_loop().time
        if self._since is None:
            self._since = clock()
        answered = clock()
        own = FIRST_POLL
        wait_first = self.state is not None
        while not self.ended:
            if wait_first:
                await self._until_next_poll(own, are_sent())
                own = min(own * 2, SLOWEST_POLL)
            wait_first = True
            if self.ended:
                return
            try:
                state = await self._requests.get()
            except t.Unreachable:
                if not self._connected() or clock() - answered > PATIENCE:
                    raise
                continue
            answered = clock()
            self.receive(state)
            if not self.ended:
                self._check_ttl(state, clock() - self._since)

    async def _until_next_poll(self, own: float, with_notices: bool) -> None:
        suggested = self.state.poll_interval_ms if self.state is not None else None
        seconds = own
        if suggested is not None:
            seconds = min(max(suggested / 1000, LEAST_INTERVAL), MOST_INTERVAL)
        if with_notices:
            seconds = max(seconds, WITH_NOTICES)
        slept = asyncio.ensure_future(self._sleep(seconds))
        woken = asyncio.ensure_future(self._poll_now.wait())
        try:
            await asyncio.wait({slept, woken}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            slept.cancel()
            woken.cancel()
        self._poll_now.clear()

    def _check_ttl(self, state: Task, seconds: float) -> None:
        """Give a task up that has not ended in its time to live (`TKX-27`)."""
        ttl = state.ttl_ms
        if isinstance(ttl, int) and seconds > ttl / 1000 + SLOWEST_POLL:
            raise t.TimedOut(
                f"The task has not ended within its time to live ({ttl / 1000:g} seconds)."
            )


def _plain(state: Task) -> Task:
    """Return a state without what only its message says, so that equal states are equal."""
    fields = {name: getattr(state, name) for name in Task.__struct_fields__}
    return Task(**{**fields, "meta": None, "result_type": None})


class _Pausing:
    """An asker that pauses timeouts while a question is open."""

    def __init__(self, asker: Asker, pause: PauseTimeout) -> None:
        self._asker = asker
        self._pause = pause

    async def ask(self, request: t.InputRequest, key: str | None = None) -> t.InputResponse:
        """Ask a question."""
        with self._pause():
            return await self._asker.ask(request, key)

    async def once(
        self, name: str, do: Callable[[], Awaitable[Any]], *, idempotent: bool = False
    ) -> Any:
        """Run a side effect as the other asker does."""
        return await self._asker.once(name, do, idempotent=idempotent)
