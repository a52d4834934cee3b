"""Ports in the network namespaces of confined programs, opened by one helper process for all of
them (`listen.py`).
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Final

_PROGRAM: Final = str(Path(__file__).with_name("listen.py"))
_SECONDS = 10.0  # for one answer
_LINK = 3  # the descriptor of the helper's socket in the helper


class NamespacePorts:
    """Opens ports in network namespaces. The helper is started when it is first needed, and ends
    with this process.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._link: socket.socket | None = None
        self._helper = 0  # its process ID
        self._owner = 0  # the process that has started the helper; a fork needs its own

    def prepare(self) -> None:
        """Start the helper, without waiting for it. Raises OSError."""
        with self._lock:
            self._started()

    def open(self, process: int, port: int) -> socket.socket:
        """Return a listening socket on the loopback of a process.

        Args:
            process: The process, which is in namespaces of its own.
            port: The port.

        Raises:
            OSError: The namespaces cannot be entered, or the port cannot be opened.
        """
        with self._lock:
            for is_last in (False, True):
                link = self._started()
                try:
                    return _asked(link, process, port)
                except (ConnectionError, TimeoutError):  # the helper has ended, or hangs
                    self._abandon(link)
                    if is_last:
                        raise
        raise AssertionError  # the loop returns or raises

    def _started(self) -> socket.socket:
        if self._link is not None and self._owner == os.getpid():
            return self._link
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(_SECONDS)
        python = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
        null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
        with theirs:
            self._helper = os.posix_spawn(
                python,
                [python, "-I", "-S", _PROGRAM, str(_LINK)],
                {},
                file_actions=[*null, (os.POSIX_SPAWN_DUP2, theirs.fileno(), _LINK)],
                setsid=True,  # signals of a terminal are not for it
            )
        atexit.register(ours.close)
        self._link = ours
        self._owner = os.getpid()
        return ours

    def _abandon(self, link: socket.socket) -> None:
        """End the helper, if it has not ended, so that neither it nor a zombie is left."""
        self._link = None
        atexit.unregister(link.close)
        link.close()
        with contextlib.suppress(ProcessLookupError, ChildProcessError):  # somebody has waited
            os.kill(self._helper, signal.SIGKILL)
            os.waitpid(self._helper, 0)


def _asked(link: socket.socket, process: int, port: int) -> socket.socket:
    link.send(f"{process} {port}".encode())
    answer, descriptors, _, _ = socket.recv_fds(link, 64, 1)
    if descriptors:
        return socket.socket(fileno=descriptors[0])
    if not answer:
        raise ConnectionResetError("the helper has ended")
    number = int(answer)
    raise OSError(number, os.strerror(number))


@functools.cache
def namespace_ports() -> NamespacePorts:
    """Return the ports of this process."""
    return NamespacePorts()
