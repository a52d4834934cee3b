"""Threads for plain functions: how many there are, what they carry over, and that they end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from interlock import Caller, Exchange, types
from interlock.exchange import ExchangeTransport
from interlock.server.calls import threads as room
from interlock.server.calls.threads import Workers
from interlock.wire.revisions import NEWEST

# seconds; a bound for what does not take any time, so that a fault is a failure and no hanging
LONG = 30.0

variable: ContextVar[str] = ContextVar("variable", default="nothing")


def of_workers() -> set[threading.Thread]:
    """The threads of all pools that run now."""
    return {
        thread for thread in threading.enumerate() if thread.name.startswith("interlock-worker")
    }


class Pool:
    """Makes pools, and knows the threads that they started."""

    def __init__(self) -> None:
        self._before = of_workers()
        self._made: list[Workers] = []

    def __call__(self, threads: int = 64) -> Workers:
        self._made.append(Workers(threads))
        return self._made[-1]

    def threads(self) -> set[threading.Thread]:
        return of_workers() - self._before

    async def ended(self) -> None:
        """Until all their threads have; fails where one does not."""
        for thread in self.threads():
            await asyncio.to_thread(thread.join, LONG)
        assert not self.threads()

    async def aclose(self) -> None:
        for made in self._made:
            made.close()
        await self.ended()


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[Pool]:
    """A maker of pools, whose threads have ended after the test."""
    made = Pool()
    yield made
    await made.aclose()


async def test_a_burst_runs_in_one_thread(pool: Pool, monkeypatch: pytest.MonkeyPatch):
    """Quick calls do not each get a thread: one does them all, and answers each with its own
    result.
    """
    monkeypatch.setattr(
        room, "_PATIENCE", LONG
    )  # no more threads for jobs that lie there only because the machine is slow
    workers = pool()
    answers = await asyncio.gather(
        *(workers.submit(lambda n=n: (n, threading.get_ident())) for n in range(200))
    )
    assert [n for n, _ in answers] == list(range(200))
    assert len({thread for _, thread in answers}) == 1
    assert answers[0][1] != threading.get_ident()


async def test_jobs_that_block_bring_more_threads(pool: Pool):
    """Ten that wait for each other can only all end if all run at once."""
    workers = pool()
    meeting = threading.Barrier(10)
    assert sorted(
        await asyncio.gather(*(workers.submit(lambda: meeting.wait(LONG)) for _ in range(10)))
    ) == list(range(10))


async def test_quick_jobs_are_not_held_up_by_those_that_block(pool: Pool):
    """Submitted after one that blocks, in the same turn of the loop, and done before it."""
    workers = pool()
    go = threading.Event()
    blocked = workers.submit(lambda: go.wait(LONG))
    assert await asyncio.wait_for(workers.submit(lambda: "quick"), LONG) == "quick"
    assert not blocked.done()
    go.set()
    assert await blocked


async def test_no_more_threads_than_allowed(pool: Pool, monkeypatch: pytest.MonkeyPatch):
    """Two threads carry out what four want to block, however long the others lie there."""
    monkeypatch.setattr(room, "_PATIENCE", 0.0)
    workers = pool(2)
    go = threading.Event()
    two_are_in = threading.Barrier(3)
    idents: list[int] = []

    def block(first: bool) -> None:
        idents.append(threading.get_ident())
        if first:
            two_are_in.wait(LONG)
            go.wait(LONG)

    jobs = [workers.submit(lambda n=n: block(n < 2)) for n in range(4)]
    await asyncio.to_thread(two_are_in.wait, LONG)
    for _ in range(10):  # each time the pool finds that nobody has come by
        await asyncio.sleep(0)
    assert (len(idents), len(pool.threads())) == (2, 2)
    go.set()
    await asyncio.gather(*jobs)
    assert len(set(idents)) == 2


async def test_context_variables_come_along(pool: Pool):
    """A job sees the variables of whoever submitted it, and changes none of them for others."""
    workers = pool(1)

    def exchange_variable(value: str) -> str:
        before = variable.get()
        variable.set(value)
        return before

    variable.set("mine")
    assert await workers.submit(lambda: exchange_variable("another")) == "mine"
    assert await workers.submit(variable.get) == "mine"
    assert variable.get() == "mine"


@pytest.mark.parametrize(
    "error",
    [ValueError("no"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()],
    ids=repr,
)
async def test_what_is_raised_reaches_whoever_waits(pool: Pool, error: BaseException):
    """Whatever it is; the thread goes on to the next job."""
    workers = pool(1)

    def fail() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        await workers.submit(fail)
    assert caught.value is error or isinstance(error, asyncio.CancelledError)
    assert await workers.submit(lambda: "next") == "next"


async def test_stop_iteration_is_an_error_like_others(pool: Pool):
    """A future cannot hold it, so it comes as a RuntimeError that says where it was raised."""
    with pytest.raises(RuntimeError, match="StopIteration") as caught:
        await pool(1).submit(lambda: next(iter(())))
    cause = caught.value.__cause__
    assert isinstance(cause, StopIteration)
    assert cause.__traceback__ is not None


async def test_what_is_cancelled_before_it_starts_never_runs(pool: Pool):
    """The one thread is busy; a job that is given up meanwhile is passed over."""
    workers = pool(1)
    go = threading.Event()
    ran = []
    busy = workers.submit(lambda: go.wait(LONG))
    given_up = workers.submit(lambda: ran.append("given up"))
    after = workers.submit(lambda: ran.append("after"))
    given_up.cancel()
    go.set()
    await asyncio.gather(busy, after)
    assert ran == ["after"]


async def test_the_answer_of_what_is_cancelled_while_it_runs_is_dropped(pool: Pool):
    """The function runs to its end, and its thread is free again after that."""
    workers = pool(1)
    started = asyncio.Event()
    go = threading.Event()
    loop = asyncio.get_running_loop()

    def job() -> str:
        loop.call_soon_threadsafe(started.set)
        go.wait(LONG)
        return "too late"

    running = workers.submit(job)
    await asyncio.wait_for(started.wait(), LONG)
    running.cancel()
    go.set()
    assert await workers.submit(lambda: "next") == "next"
    assert running.cancelled()


async def test_closing_leaves_no_threads(pool: Pool):
    """Idle ones and busy ones; what was submitted before is done and answered all the same."""
    workers = pool(2)
    go = threading.Event()
    meeting = threading.Barrier(2)
    await asyncio.gather(
        *(workers.submit(lambda: meeting.wait(LONG)) for _ in range(2))
    )  # two threads, idle by now or soon
    busy = [workers.submit(lambda: go.wait(LONG)) for _ in range(2)]
    waiting = workers.submit(lambda: "in time")
    workers.close()
    go.set()
    assert await asyncio.wait_for(waiting, LONG) == "in time"
    assert await asyncio.gather(*busy) == [True, True]
    await pool.ended()


async def test_what_is_submitted_to_a_closed_pool_is_done(pool: Pool):
    """A call that waited at a gate while its server was closed: it gets a thread, which ends after
    it.
    """
    workers = pool(1)
    workers.close()
    for n in range(3):
        assert await asyncio.wait_for(workers.submit(lambda n=n: n), LONG) == n
    await pool.ended()


def test_threads_end_when_their_loop_has_gone():
    """A loop that was closed while a function still ran: nobody is told of the answer, and nothing
    breaks.
    """
    before = of_workers()
    go = threading.Event()
    started = threading.Event()

    def job() -> None:
        started.set()
        go.wait(LONG)

    async def main() -> set[threading.Thread]:
        workers = Workers(2)
        workers.submit(job)
        await asyncio.to_thread(started.wait, LONG)
        return of_workers() - before

    (thread,) = asyncio.run(main())
    go.set()
    thread.join(LONG)
    assert not thread.is_alive()


outcomes = st.lists(
    st.tuples(st.sampled_from(["value", "error", "cancel"]), st.booleans()), max_size=30
)


@given(outcomes, st.integers(1, 3))
def test_every_job_gets_its_own_outcome(plan: list[tuple[str, bool]], threads: int):
    """However results, errors and cancellations are mixed, and however many turns of the loop lie
    between them.
    """

    def job(n: int, kind: str) -> Callable[[], int]:
        def work() -> int:
            if kind == "error":
                raise ValueError(n)
            return n

        return work

    async def main() -> None:
        workers = Workers(threads)
        futures: list[asyncio.Future[Any]] = []
        for n, (kind, turn) in enumerate(plan):
            futures.append(workers.submit(job(n, kind)))
            if kind == "cancel":
                futures[-1].cancel()
            if turn:
                await asyncio.sleep(0)
        answers = await asyncio.wait_for(asyncio.gather(*futures, return_exceptions=True), LONG)
        workers.close()
        for n, (answer, (kind, _)) in enumerate(zip(answers, plan, strict=True)):
            if kind == "value":
                assert answer == n
            elif kind == "error":
                assert isinstance(answer, ValueError)
                assert answer.args == (n,)
            else:
                assert isinstance(answer, asyncio.CancelledError)

    asyncio.run(main())


class From(ExchangeTransport):
    """A transport from a network address."""

    def __init__(self, address: str) -> None:
        self._address = address

    @property
    def address(self) -> str | None:
        """The address."""
        return self._address


def from_address(address: str) -> Exchange:
    """An exchange of an anonymous caller."""
    caller = Caller(NEWEST, types.ClientCapabilities(), anonymous=True)
    return Exchange("tools/call", None, caller, transport=From(address))


async def test_callers_get_threads_in_turn(pool: Pool):
    """An honest caller waits for one call of a greedy one, and not for all that came before."""
    workers = pool(1)
    started = threading.Event()
    release = threading.Event()
    order: list[str] = []

    def block() -> None:
        started.set()
        release.wait(LONG)

    blocked = workers.submit(block)
    await asyncio.to_thread(started.wait, LONG)
    greedy = from_address("203.0.113.66")
    honest = from_address("203.0.113.7")
    done = [workers.submit(lambda n=n: order.append(f"greedy {n}"), greedy) for n in range(50)]
    done += [workers.submit(lambda n=n: order.append(f"honest {n}"), honest) for n in range(3)]
    release.set()
    await asyncio.wait_for(asyncio.gather(blocked, *done), LONG)
    # The first one waits in front, because nobody else waited when it came.
    assert order[:8] == [
        "greedy 0",
        "greedy 1",
        "honest 0",
        "greedy 2",
        "honest 1",
        "greedy 3",
        "honest 2",
        "greedy 4",
    ]
    assert order[8:] == [f"greedy {n}" for n in range(5, 50)]
