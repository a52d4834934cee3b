"""The policy of a sandbox, as an object that confines the start of a program."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .policy import SandboxPolicy


class Sandbox(SandboxPolicy, frozen=True, kw_only=True):
    """What a confined program may use. The default is the profile for servers of other authors.

    Whatever the policy, the program can read the system's programs and libraries and the folders of
    its own program, and it can write to its working folder, to a home folder of its own, and to a
    temporary folder. It cannot reach the rest of your home folder, other processes, or Unix
    sockets. Its environment has the variables that every child gets (HOME, PATH and the like),
    those that its starter names, and those of `env`.

    Attributes:
        read: Further folders and files that it may read.
        write: Further folders and files that it may read and write.
        deny_read: Folders and files that it may not read, even within a folder that it may.
        deny_write: Folders and files that it may not write, even within a folder that it may.
        hosts: The hosts that it may contact by HTTP and HTTPS, through a proxy: "public" for every
            host with a public address; or names, "*.example.com" for all names below one, and
            addresses; or () for none. "all": the network of the machine is open to it.
        deny_hosts: Hosts that it may not contact although `hosts` includes them.
        env: Names of variables of this process that it gets as well.
        memory: The private memory of each of its processes in bytes, or a text such as "1G"; None
            for no limit.
        seconds_cpu: The processor time of each of its processes, in seconds; None for no limit.
        processes: The number of its processes, threads included; None for no limit. Under Landlock
            all processes of the user count. The processes of root cannot be limited.
        home: The folder that it gets as its home, where its caches are; None for a temporary one.
        mechanism: The only mechanism to use; None for the first that works.

    Raises:
        ValueError: A value is invalid.
    """

    def confine(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | os.PathLike[str] | None,
        report: Callable[[str], None],
    ) -> Any:
        """Return the confined start of a command, for a transport (see `Confinement`).

        Args:
            command: The program and its arguments.
            env: Its environment, without the variables of `Sandbox.env`.
            cwd: Its working folder; None for that of this process.
            report: Called with a sentence about each thing that was refused.
        """
        from .confined import Confined  # late: policies are read where nothing is started

        return Confined(self, command, env=env, cwd=cwd, report=report)
