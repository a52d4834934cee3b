"""Names of workers that tell when a process has ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from interlock.store import MemoryStore
from interlock.store.process_names import has_ended, name_of_process
from interlock.store.worker_messages import WorkerMessages

SLEEP = """
import signal
from interlock.store.process_names import name_of_process
print(name_of_process(), flush=True)
signal.pause()
"""


@pytest.fixture
def sleeper() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process, and the name that it gave itself."""
    if not os.path.exists("/proc/self/ns/pid"):
        pytest.skip("only Linux says when another process started")
    with subprocess.Popen([sys.executable, "-c", SLEEP], stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout is not None
        yield one, one.stdout.readline().strip()
        one.kill()


async def test_a_killed_process_is_dead_though_its_lease_lasts(
    sleeper: tuple[subprocess.Popen[str], str],
) -> None:
    """At once, and also before its parent has waited for it. A stopped one may continue."""
    process, name = sleeper
    messages = WorkerMessages(MemoryStore())
    store = messages._store
    await store.workers.heartbeat(name, until=time.time() + 50)
    await messages.beat_once()
    assert await messages.is_alive(name)
    process.send_signal(signal.SIGSTOP)
    assert not has_ended(name)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - it is killed
    assert has_ended(name)  # a zombie
    process.wait()
    assert has_ended(name)
    assert await store.workers.is_alive(name, now=time.time())
    assert not await messages.is_alive(name)


def test_a_later_process_with_the_same_id_is_another_one() -> None:
    name = name_of_process()
    assert not has_ended(name)
    if "-" in name:
        first, _, started = name.rpartition("-")
        assert has_ended(f"{first}-{int(started) - 1}")


@pytest.mark.parametrize(
    "name", ["", "0a1b2c3d4e5f", "a-b", "a-b-c-d", "a-00000000-1-1", "a--1-1", "a-b--1-1"]
)
def test_nothing_is_known_of_other_names(name: str) -> None:
    """Random names, and those of other machines and containers."""
    assert not has_ended(name)


@pytest.mark.parametrize("pid", ["x", "", "-1", "9" * 30])
def test_a_name_without_a_process_means_nothing(pid: str) -> None:
    random, _, rest = name_of_process().partition("-")
    machine = rest.partition("-")[0]
    assert not has_ended(f"{random}-{machine}-{pid}-1")


def test_names_of_one_process_differ() -> None:
    assert name_of_process() != name_of_process()
