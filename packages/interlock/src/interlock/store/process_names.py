"""Names of workers that tell the other workers of the same machine when the process has ended.

Heartbeats say that a worker is dead only after some of them have been missing. On the same machine
the kernel knows it at once. A name holds the machine, the process ID and the start time
of its process, so it never means a later process with the same ID.
"""

from __future__ import annotations

import os
from functools import cache

_DEAD = frozenset("ZX")  # states of a process that has ended: nobody has waited for it yet


def name_of_process() -> str:
    """Return a new name for a worker in this process: random, and followed by the process where
    the system has `/proc`.
    """
    name = os.urandom(6).hex()
    machine = _machine()
    started = _state(os.getpid())[1]
    return f"{name}-{machine}-{os.getpid()}-{started}" if machine and started else name


def has_ended(name: str) -> bool:
    """Whether the process of a worker has certainly ended.

    Args:
        name: The name of the worker.

    Returns:
        False if it runs, and if nothing is known: it is on another machine or in another container,
        or its name does not hold the process.
    """
    _, _, process = name.partition("-")
    machine, _, rest = process.partition("-")
    if not machine or machine != _machine():
        return False
    pid, _, started = rest.partition("-")
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError, OverflowError):
        return False
    state, now = _state(int(pid))
    return bool(state) and (state in _DEAD or now != started)


@cache
def _machine() -> str:
    """Return a digest of what process IDs belong to: the machine since its start, and the PID
    namespace (a container); empty where they are unknown.
    """
    import hashlib  # late: only for servers that run tasks

    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
    words = f"{boot} {namespace} {os.uname().nodename}"
    return hashlib.blake2s(words.encode(), digest_size=4).hexdigest()


def _state(pid: int) -> tuple[str, str]:
    """Return the state of a process, and when it started, in ticks since the start of the machine;
    empty if the system does not say.
    """
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()  # the name may hold anything
        return fields[0], fields[19]
    except (OSError, IndexError):
        return "", ""
