"""The liveness check of workers decides by times that it is given: a table of who is replaced."""

from __future__ import annotations

import asyncio

import pytest

from interlock import WorkerLimits
from interlock.server.run.heartbeats import HeartbeatSender, HeartbeatTable, is_debugged
from interlock.server.run.liveness import Heartbeats, LivenessMonitor

MIB = 2**20


def reasons(limits: WorkerLimits, now: float, beats: Heartbeats) -> list[tuple[str, bool]]:
    """Check one worker, and give what is found."""
    found = LivenessMonitor(limits).check(now, {7: beats})
    assert set(found) <= {7}
    return [(each.reason, each.at_once) for each in found.values()]


@pytest.mark.parametrize(
    "process,loop,found",
    [
        (100.0, 100.0, None),
        (96.5, 96.5, None),  # 3.5 s without a heartbeat
        (96.0, 96.0, "has not run for 4 s"),
        (100.0, 94.0, None),  # the loop is blocked for 6 s
        (100.0, 70.5, None),
        (100.0, 70.0, "has an event loop that has been blocked for 30 s"),
        (50.0, 50.0, "has not run for 50 s"),
    ],
)
def test_a_silent_worker_is_killed(process: float, loop: float, found: str | None):
    expected = [] if found is None else [(found, True)]
    assert reasons(WorkerLimits(), 100.0, Heartbeats(process, loop)) == expected


@pytest.mark.parametrize("loop", [70.0, 0.5])
def test_a_blocked_worker_is_kept_where_the_limit_is_off(loop: float):
    assert reasons(WorkerLimits(blocked_seconds=None), 100.0, Heartbeats(100.0, loop)) == []


@pytest.mark.parametrize(
    "requests,memory,excess,found",
    [
        (999, 9 * MIB, 0.0, None),
        (1000, 9 * MIB, 0.0, "has received 1000 requests"),
        (1000, 9 * MIB, 0.1, None),
        (1100, 9 * MIB, 0.1, "has received 1100 requests"),
        (0, 10 * MIB, 0.0, "uses 10 MiB of memory"),
        (0, 10 * MIB, 0.1, None),
        (0, 11 * MIB, 0.1, "uses 11 MiB of memory"),
    ],
)
def test_a_worker_is_recycled(requests: int, memory: int, excess: float, found: str | None):
    """By requests or memory, each worker at a different count; it may end in good order."""
    limits = WorkerLimits(requests=1000, memory=10 * MIB)
    expected = [] if found is None else [(found, False)]
    beats = Heartbeats(100.0, 100.0, requests, memory, excess)
    assert reasons(limits, 100.0, beats) == expected


def test_a_worker_that_asks_for_a_successor_is_replaced_in_good_order():
    beats = Heartbeats(100.0, 100.0, wants_replacement=True)
    assert reasons(WorkerLimits(), 100.0, beats) == [("is drained by an operator", False)]


def test_workers_get_one_fresh_period_after_the_supervisor_was_asleep():
    """They may have been asleep too, so the old heartbeats prove nothing; one period later they
    do."""
    monitor = LivenessMonitor(WorkerLimits(blocked_seconds=6.0))
    workers = {1: Heartbeats(100.0, 100.0), 2: Heartbeats(100.0, 100.0)}
    assert monitor.check(100.0, workers) == {}
    assert monitor.check(160.0, workers) == {}
    workers[1] = Heartbeats(163.5, 100.0)  # it runs again, and its loop is still blocked
    for tenth in range(1601, 1640):
        assert monitor.check(tenth / 10, workers) == {}
    assert set(monitor.check(164.0, workers)) == {2}
    for tenth in range(1641, 1660):
        workers[1] = Heartbeats(tenth / 10, 100.0)
        assert monitor.check(tenth / 10, {1: workers[1]}) == {}
    workers[1] = Heartbeats(166.0, 100.0)
    assert monitor.check(166.0, {1: workers[1]})[1].reason.endswith("blocked for 6 s")


@pytest.mark.parametrize(
    "wrong", [{"blocked_seconds": 0}, {"requests": 0}, {"memory": -1}, {"jitter": -0.1}]
)
def test_limits_that_make_no_sense_are_refused(wrong: dict[str, float]):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        WorkerLimits(**wrong)


def test_a_row_counts_from_its_first_heartbeat():
    table = HeartbeatTable(2)
    table.reset(0, 0.05)
    assert table.read(0) is None
    table.write(0, 2.0, 1.0, 3, 4096)
    assert table.read(0) == Heartbeats(2.0, 1.0, 3, 4096, 0.05)
    assert table.read(1) is None
    table.mark_replaced(0)
    assert table.is_replaced(0)
    assert not table.is_replaced(1)
    table.request_replacement(0)
    assert table.read(0) == Heartbeats(2.0, 1.0, 3, 4096, 0.05, wants_replacement=True)
    table.reset(0, 0.0)
    assert table.read(0) is None
    assert not table.is_replaced(0)
    table.close()


async def test_both_heartbeats_go_on():
    table = HeartbeatTable(1)
    table.reset(0, 0.0)
    HeartbeatSender(table, 0).started(lambda: 42)

    async def after(loop: float) -> Heartbeats:
        # The thread tells nobody here when it has written.
        while (beats := table.read(0)) is None or beats.loop <= loop:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        return beats

    async with asyncio.timeout(20):
        first = await after(0.0)
        second = await after(first.loop)
    assert second.process > first.process
    assert second.requests == 42
    assert second.memory > MIB


def test_a_debugger_in_the_stack_is_recognized():
    space: dict[str, object] = {"__name__": "pdb", "sys": __import__("sys")}
    exec("def prompt():\n    return sys._getframe()", space)
    assert is_debugged(space["prompt"]())  # type: ignore[operator]  # made by exec
    assert not is_debugged(None)
    assert not is_debugged(__import__("sys")._getframe())
