"""Tasks that start eagerly do their first step at once, and are ordinary tasks in every other
respect."""

from __future__ import annotations

import asyncio
import gc
import weakref
from contextvars import ContextVar
from typing import Any

import pytest

from interlock.eager import start_eagerly

word: ContextVar[str] = ContextVar("word", default="outside")
FOR_EVER = 3600


def start(work: Any) -> asyncio.Future[Any]:
    return start_eagerly(work, asyncio.get_running_loop())


async def test_an_error_of_a_coroutine_that_keeps_its_task_is_not_logged_as_lost() -> None:
    """The task that the coroutine keeps has the same outcome, and nobody retrieves it there."""
    kept: list[Any] = []
    lost: list[Any] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: lost.append(context))

    async def bad() -> None:
        kept.append(asyncio.current_task())
        raise ValueError("broken")

    assert isinstance(start(bad()).exception(), ValueError)
    with pytest.raises(ValueError, match="broken"):
        await kept[0]
    assert isinstance(start(bad()).exception(), ValueError)
    await asyncio.wait([kept[1]])
    kept.clear()
    gc.collect()
    assert not lost


async def test_what_never_waits_is_done_at_once() -> None:
    """Its result and its error are there without a turn of the loop."""

    async def quick() -> str:
        return "done"

    async def bad() -> None:
        raise ValueError("broken")

    async def gives_up() -> None:
        raise asyncio.CancelledError

    done = start(quick())
    failed = start(bad())
    cancelled = start(gives_up())
    assert done.done()
    assert done.result() == "done"
    assert isinstance(failed.exception(), ValueError)
    assert cancelled.cancelled()
    assert await done == "done"


async def test_every_step_is_done_in_one_task_and_context() -> None:
    """Which is neither the task nor the context that started it."""
    outer = asyncio.current_task()
    tasks: list[Any] = []

    async def work() -> str:
        tasks.append(asyncio.current_task())
        token = word.set("inside")
        await asyncio.sleep(0)
        tasks.append(asyncio.current_task())
        inside = word.get()
        word.reset(token)
        return inside

    task = start(work())
    assert asyncio.current_task() is outer
    assert word.get() == "outside"
    assert await task == "inside"
    assert tasks == [task, task]
    assert task is not outer


async def test_timeouts_and_groups_that_began_in_the_first_step_hold() -> None:
    """They belong to the task, not to whoever started it."""

    async def timed() -> str:
        try:
            async with asyncio.timeout(0):
                await asyncio.sleep(FOR_EVER)
        except TimeoutError:
            return "in time"
        return "never"

    async def grouped() -> str:
        async def fail() -> None:
            raise ValueError("broken")

        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(fail())
                await asyncio.sleep(FOR_EVER)
        except ExceptionGroup as group_error:
            return str(group_error.exceptions[0])
        return "never"

    async with asyncio.timeout(30):
        assert await start(timed()) == "in time"
        assert await start(grouped()) == "broken"


@pytest.mark.parametrize("turns", [0, 1, 2])
async def test_it_is_cancelled_wherever_it_waits(turns: int) -> None:
    """Before its second step too; it puts things in order first."""
    seen: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(FOR_EVER)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    task = start(work())
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled"]


async def test_a_future_that_is_done_before_the_second_step_is_seen() -> None:
    """Nothing that the first step waits for is lost."""
    answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def work() -> str:
        return await answer

    task = start(work())
    answer.set_result("heard")
    async with asyncio.timeout(30):
        assert await task == "heard"


async def test_starts_within_starts_make_no_new_tasks() -> None:
    """A call starts one, and the layer for questions another: both are used again."""
    loop = asyncio.get_running_loop()
    made: list[Any] = []

    def make(loop: Any, work: Any, **more: Any) -> Any:
        made.append(work)
        return asyncio.Task(work, loop=loop, **more)

    async def inner() -> int:
        return 1

    async def outer() -> int:
        return await start(inner()) + 1

    assert await start(outer()) == 2
    loop.set_task_factory(make)
    try:
        assert await start(outer()) == 2
    finally:
        loop.set_task_factory(None)
    assert made == []


async def test_a_task_that_has_ended_keeps_nothing_alive() -> None:
    """What its coroutine and its context referred to goes without a garbage collection: a server
    would otherwise keep the requests of minutes.
    """

    class Request:
        """What a coroutine holds."""

    current: ContextVar[Request] = ContextVar("current")

    async def work(request: Request) -> None:
        current.set(request)
        await asyncio.sleep(0)

    gc.collect()
    gc.disable()
    try:
        request = Request()
        gone = weakref.ref(request)
        await start(work(request))
        del request
        await asyncio.sleep(0)  # the loop refers to what woke this test until the turn is over
        assert gone() is None
    finally:
        gc.enable()
