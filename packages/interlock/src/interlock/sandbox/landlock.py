"""Landlock: a thread gives up files, TCP, and signals to others, for itself and every process that
it starts from then on.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Sequence
from typing import Final

from . import seccomp

LEAST_ABI: Final = 6
"""The oldest version of Landlock that is used: the first that scopes signals (Linux 6.12)."""

_CREATE = 444
_ADD_RULE = 445
_RESTRICT = 446
_VERSION = 1
_PATH_BENEATH = 1
_PATH_ONLY = os.O_PATH | os.O_CLOEXEC if hasattr(os, "O_PATH") else 0

_EXECUTE = 1 << 0
_WRITE_FILE = 1 << 1
_READ_FILE = 1 << 2
_READ_FOLDER = 1 << 3
_TRUNCATE = 1 << 14
_DEVICE_CONTROL = 1 << 15
_EVERYTHING = (1 << 16) - 1
_MAKE_DEVICES = 1 << 6 | 1 << 11
_READ = _EXECUTE | _READ_FILE | _READ_FOLDER
_WRITE = _EVERYTHING & ~_MAKE_DEVICES & ~_DEVICE_CONTROL
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _DEVICE_CONTROL
_TCP = 1 << 0 | 1 << 1  # bind, connect
_SCOPES = 1 << 0 | 1 << 1  # abstract Unix sockets, signals

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# Of /proc only what is about the machine: the files of other processes are there too.
_MACHINE_FACTS = (
    "/proc/cpuinfo", "/proc/filesystems", "/proc/loadavg", "/proc/meminfo", "/proc/stat",
    "/proc/sys", "/proc/uptime", "/proc/version",
)  # fmt: skip

_NO_NEW_PRIVILEGES = 38
_CAPABILITIES = struct.Struct("=II")
_CAPABILITY_VERSION = 0x20080522


def problem() -> str:
    """Return why Landlock cannot be used here; empty if it can."""
    abi = _call(_CREATE, None, 0, _VERSION, check=False)
    if abi < 0:
        return "this kernel has no Landlock, or it is switched off"
    if abi < LEAST_ABI:
        return (
            f"this kernel has version {abi} of Landlock, which cannot keep a program from "
            f"signalling your other processes; version {LEAST_ABI} is in Linux 6.12"
        )
    if not seccomp.is_known_machine():
        return f"the system calls of {os.uname().machine} are not known"
    return ""


class Ruleset:
    """The rules of one confined program.

    Args:
        read: The folders and files that it may read.
        write: Those that it may write as well.
        tcp: Whether it may open and accept TCP connections.

    Raises:
        OSError: The kernel refuses a rule.
    """

    def __init__(self, read: Sequence[str], write: Sequence[str], *, tcp: bool) -> None:
        head = struct.pack("=QQQ", _EVERYTHING, 0 if tcp else _TCP, _SCOPES)
        self._fd = _call(_CREATE, head, len(head), 0)
        try:
            for path in (*read, *filter(os.path.exists, _MACHINE_FACTS)):
                self._allow(path, _READ)
            for path in write:
                self._allow(path, _WRITE)
            for path in _DEVICES:
                self._allow(path, _READ_FILE | _WRITE_FILE)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close its descriptor. The threads that it restricts stay restricted."""
        os.close(self._fd)

    def _allow(self, path: str, rights: int) -> None:
        beneath = os.open(path, _PATH_ONLY)
        try:
            if not stat.S_ISDIR(os.fstat(beneath).st_mode):
                rights &= _OF_FILES
            rule = struct.pack("=Qi", rights, beneath)
            _call(_ADD_RULE, self._fd, _PATH_BENEATH, rule, 0)
        finally:
            os.close(beneath)

    def restrict_thread(self) -> None:
        """Restrict this thread, and the processes that it starts, for good.

        The thread also gives up every capability, so that root is confined like any user.

        Raises:
            OSError: The kernel refuses.
        """
        libc = _library()
        zero = ctypes.c_ulong(0)
        if libc.prctl(_NO_NEW_PRIVILEGES, ctypes.c_ulong(1), zero, zero, zero) != 0:
            _raise()
        _call(_RESTRICT, self._fd, 0)
        head = ctypes.create_string_buffer(_CAPABILITIES.pack(_CAPABILITY_VERSION, 0))
        none = ctypes.create_string_buffer(24)  # effective, permitted, inheritable; twice 32 bits
        if libc.capset(head, none) != 0:
            _raise()


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: int | bytes | None, check: bool = True) -> int:
    """Make a system call. Raises OSError if it fails, unless the result is to be checked."""
    buffers: list[ctypes.Array[ctypes.c_char]] = []
    converted: list[object] = [ctypes.c_long(number)]
    for argument in arguments:
        if isinstance(argument, bytes):
            buffers.append(ctypes.create_string_buffer(argument, len(argument)))
            converted.append(buffers[-1])
        else:
            converted.append(None if argument is None else ctypes.c_long(argument))
    result = int(_library().syscall(*converted))
    if result < 0 and check:
        _raise()
    return result


def _raise() -> None:
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number))
