"""No attempt to escape reaches anything, as root and as an ordinary user, under each mechanism."""

from __future__ import annotations

import json

import pytest

from tests.sandbox.cells import MECHANISMS, USERS, run_beside

NOT_COVERED = {
    "bubblewrap": set(),
    # a hole in a folder that is open cannot be said, so hooks of git are writable
    "landlock": {"write_hook"},
}
"""What a mechanism does not stop; `docs/design/sandbox.md` names it."""

ONLY_AS_ROOT = {
    "read_shadow", "write_system", "write_program", "make_device", "mount_over", "kernel_setting",
    "kernel_memory", "keep_capabilities", "push_into_terminal",
}  # fmt: skip
ONLY_ON_SOME_KERNELS = {"multipath_tcp", "asynchronous_calls", "kernel_memory", "make_device"}
ONLY_IN_CLOUDS = {"proxy_to_metadata"}


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_no_attempt_reaches_anything(mechanism: str, user: str) -> None:
    """Each attempt is stopped, but for those that the documentation names."""
    ran = run_beside(mechanism, user, "attempts.py")
    assert ran.stdout, ran.stderr
    reached = json.loads(ran.stdout)
    assert len(reached) >= 45
    assert {name for name, what in reached.items() if what is not None} == NOT_COVERED[mechanism]


@pytest.mark.parametrize("user", USERS)
def test_each_attempt_works_without_a_sandbox(user: str) -> None:
    """The attempts are real: without a sandbox each reaches what it is after."""
    ran = run_beside("none", user, "attempts.py")
    assert ran.stdout, ran.stderr
    failed = {name for name, what in json.loads(ran.stdout).items() if what is None}
    assert failed <= ONLY_ON_SOME_KERNELS | ONLY_IN_CLOUDS | (
        ONLY_AS_ROOT if user == "ordinary" else set()
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_resources_are_limited(mechanism: str) -> None:
    """A program of an ordinary user gets no more processes, memory and processor time than its
    policy says: a fork bomb fizzles out.
    """
    policy = {"processes": 60, "memory": "64M", "seconds_cpu": 1}
    ran = run_beside(mechanism, "ordinary", "bombs.py", policy)
    assert ran.code > 128, ran  # ended by a signal
    processes, memory = map(int, ran.stdout.split())
    assert 0 < processes < 60
    assert 0 < memory < 64


def test_the_processes_of_root_cannot_be_limited() -> None:
    """The kernel does not count them, so the start is refused."""
    ran = run_beside("bubblewrap", "root", "bombs.py", {"processes": 60})
    assert ran.stdout == ""
    assert "the kernel does not limit the processes of root" in ran.stderr
