"""Running an author's function, in the event loop or in a thread, within its limits."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

from ... import types as t
from ...quotas import holder_of_exchange
from ...typed.progress import Progress
from ..catalogue.features import HIDDEN_CONTEXT, Call, Injection
from .context import Context, RunningCall
from .dependencies import DependencyScope
from .environment import CallEnvironment
from .threads import Workers


class FunctionRunner:
    """Runs functions for one server in one event loop. Plain functions run in at most `threads`
    threads.
    """

    def __init__(self, environment: CallEnvironment, threads: int) -> None:
        self._environment = environment
        self._threads = threads
        self.loop = asyncio.get_running_loop()
        self._workers: Workers | None = None

    async def run(self, call: Call, values: dict[str, Any], running: RunningCall) -> Any:
        """Call the function with `values`, and with a Context if it has a parameter for one.

        Raises what the function raises, and TimedOut after the timeout.
        """
        # Even a function without a Context parameter needs a Context: the progress of a generator,
        # the cancellation of a thread and the pause of a timeout go through it.
        context = running.context = Context(running.exchange, self._environment, self.loop)
        if call.context is not None:
            values[call.context] = context
        else:
            context._is_declared = False
        if call.gate is None and call.timeout is None:
            if call.waits:
                return await call.function(**values)
            return await self._run(call, values, context)
        if call.gate is None:
            return await self._run_within_timeout(call, values, context)
        async with call.gate.slot(holder_of_exchange(running.exchange)):
            return await self._run_within_timeout(call, values, context)

    async def _run(self, call: Call, values: dict[str, Any], context: Context[Any]) -> Any:
        if call.waits:
            return await call.function(**values)
        if call.yields:
            return await _last(call.function(**values), context)
        if call.injection is not None:
            return await self._run_injected(call.injection, values, context)
        pace = call.pace
        if call.in_place:
            value = call.function(**values)
        elif pace is not None and pace.is_quick:
            value = pace.run(partial(call.function, **values), in_place=True)
        else:
            work: Callable[[], Any] = partial(call.function, **values)
            if pace is not None:
                work = partial(pace.run, work, in_place=False)
            if self._workers is None:
                self._workers = Workers(self._threads)
            try:
                value = await self._workers.submit(work, context._exchange)
            except asyncio.CancelledError:
                context.abandon()
                raise
        if inspect.isawaitable(
            value
        ):  # a plain function that wraps an async one, as some decorators do
            return await value
        return await _last(value, context) if inspect.isasyncgen(value) else value

    async def _run_injected(
        self, injection: Injection, values: dict[str, Any], context: Context[Any]
    ) -> Any:
        """Provide the dependencies of a function, run it, and clean up."""
        values.pop(HIDDEN_CONTEXT, None)
        workers = self._workers
        if workers is None:
            workers = self._workers = Workers(self._threads)

        def in_thread(work: Callable[[], Any]) -> asyncio.Future[Any]:
            return workers.submit(work, context._exchange)

        async with DependencyScope(context, in_thread, self._environment.overrides) as scope:
            needed = await scope.values(injection.needs)
            return await self._run(injection.call, {**values, **needed}, context)

    async def _run_within_timeout(
        self, call: Call, values: dict[str, Any], context: Context[Any]
    ) -> Any:
        if call.timeout is None:
            return await self._run(call, values, context)
        deadline = asyncio.timeout(call.timeout)
        context._pauses = pausing(deadline, call.timeout, self.loop.time)
        try:
            async with deadline:
                return await self._run(call, values, context)
        except TimeoutError:
            if deadline.expired():
                raise t.TimedOut(
                    f"The call took longer than {call.timeout:g} seconds and was stopped."
                ) from None
            raise
        finally:
            context._pauses = None  # a question that outlives the call pauses no timeout

    def close(self) -> None:
        """End the threads."""
        if self._workers is not None:
            self._workers.close()


def pausing(
    deadline: asyncio.Timeout, seconds: float, now: Callable[[], float]
) -> Callable[[bool], None]:
    """Return a function that pauses a timeout while questions to a person are open, and resumes it
    after the last one.
    """
    left = seconds
    open_questions = 0

    def pause(begins: bool) -> None:
        nonlocal left, open_questions
        open_questions += 1 if begins else -1
        if deadline.expired():
            return
        if begins and open_questions == 1:
            when = deadline.when()
            left = max(0.0, when - now()) if when is not None else left
            deadline.reschedule(None)
        elif open_questions == 0:
            deadline.reschedule(now() + left)

    return pause


async def _last(items: AsyncIterator[Any], context: Context[Any]) -> Any:
    """Return the last item of an async generator. Send each Progress that it yields as it comes."""
    value: Any = None
    try:
        async for item in items:
            if isinstance(item, Progress):
                context.progress(item.progress, item.total, item.message)
            else:
                value = item
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()
    return value
