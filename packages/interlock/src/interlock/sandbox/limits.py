"""Resource limits of a confined program, set by a shell that becomes the program."""

from __future__ import annotations

import os
from collections.abc import Sequence

from .errors import SandboxUnavailable
from .policy import SandboxPolicy

_NOT_SET = 126


def limited(sandbox: SandboxPolicy, command: Sequence[str]) -> list[str]:
    """Return the command that sets the limits of a policy and becomes a command.

    The memory is limited as RLIMIT_DATA, which counts what a process can write and no other process
    shares. The address space is not limited: runtimes such as Node reserve much more than they use.

    Args:
        sandbox: The policy.
        command: The program as an absolute path, and its arguments.

    Raises:
        SandboxUnavailable: A limit cannot be enforced.
    """
    steps: list[str] = []
    if sandbox.processes is not None:
        if os.geteuid() == 0:
            raise SandboxUnavailable(
                "The server was not started: the kernel does not limit the processes of root. Run "
                "it as another user, or take out the limit of processes."
            )
        number = sandbox.processes
        # the letter differs between shells
        steps.append(
            f"if (ulimit -u {number}) 2>/dev/null; then ulimit -u {number}; "
            f"else ulimit -p {number}; fi"
        )
    if sandbox.memory_bytes is not None:
        steps.append(f"ulimit -d {sandbox.memory_bytes >> 10}")
    if sandbox.seconds_cpu is not None:
        steps.append(f"ulimit -t {sandbox.seconds_cpu}")
    if not steps:
        return list(command)
    script = " && ".join([*(f"{{ {step}; }}" for step in steps), 'exec "$@"'])
    return ["/bin/sh", "-c", f"{script}; exit {_NOT_SET}", "sh", *command]
