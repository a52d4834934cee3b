"""seccomp: a filter of system calls, and the broker of the calls that connect sockets."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import platform
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterable
from typing import Final, Literal, NamedTuple

Sockets = Literal["none", "brokered", "no unix", "any"]
"""The sockets that a filter permits: none at all; TCP, whose connections a broker opens; all but
Unix sockets; all.
"""


class _Machine(NamedTuple):
    """The numbers of one architecture."""

    arch: int
    seccomp: int
    numbers: dict[str, int]


_MACHINES: Final = {
    "x86_64": _Machine(
        0xC000003E,
        317,
        {
            "ioctl": 16, "socket": 41, "connect": 42, "sendto": 44, "sendmsg": 46, "bind": 49,
            "listen": 50, "ptrace": 101, "add_key": 248, "request_key": 249, "keyctl": 250,
            "sendmmsg": 307, "process_vm_readv": 310, "process_vm_writev": 311,
            "shmget": 29, "shmat": 30, "semget": 64, "msgget": 68, "mq_open": 240,
        },
    ),
    "aarch64": _Machine(
        0xC00000B7,
        277,
        {
            "ioctl": 29, "socket": 198, "connect": 203, "sendto": 206, "sendmsg": 211, "bind": 200,
            "listen": 201, "ptrace": 117, "add_key": 217, "request_key": 218, "keyctl": 219,
            "sendmmsg": 269, "process_vm_readv": 270, "process_vm_writev": 271,
            "shmget": 194, "shmat": 196, "semget": 190, "msgget": 186, "mq_open": 180,
        },
    ),
}  # fmt: skip
_IO_URING_SETUP = 425
_PIDFD_GETFD = 438
_PIDFD_THREAD = os.O_EXCL
_X32 = 0x40000000  # the second set of numbers on x86_64

_ALLOW = 0x7FFF0000
_NOTIFY = 0x7FC00000
_KILL = 0x80000000
_FAIL = 0x00050000
_LOAD = 0x20
_MASK = 0x54
_RETURN = 0x06
_EQUAL = 0x15
_AT_LEAST = 0x35
_ANY_BIT = 0x45
_NUMBER = 0
_ARCH = 4

_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: they type into a terminal
_FAST_OPEN = 0x20000000  # MSG_FASTOPEN: connects without the call that connects

_SET_FILTER = 1
_NEW_LISTENER = 8
_RECEIVE = 0xC0502100
_ANSWER = 0xC0182101
_STILL_VALID = 0x40082102
_NOTICE = struct.Struct("=QIIiIQ6Q")
_REPLY = struct.Struct("=QqiI")


def is_known_machine() -> bool:
    """Whether the numbers of this machine's system calls are known."""
    return platform.machine() in _MACHINES


def compiled(sockets: Sockets) -> bytes:
    """Return the filter as a program of the kernel's packet filter (BPF).

    It forbids what no confined program needs and no other layer forbids: to type into a terminal,
    to read the keyring of the user, to look into other processes, and io_uring, whose operations
    seccomp does not see.

    Args:
        sockets: The sockets that are permitted.
    """
    machine = _MACHINES[platform.machine()]
    program = [_one(_LOAD, _ARCH), _jump(_EQUAL, machine.arch, 1, 0), _one(_RETURN, _KILL)]
    program.append(_one(_LOAD, _NUMBER))
    if platform.machine() == "x86_64":
        program += [_jump(_AT_LEAST, _X32, 0, 1), _one(_RETURN, _KILL)]
    blocks: list[tuple[int, list[bytes]]] = [(_IO_URING_SETUP, [_fail(errno.ENOSYS)])]
    forbidden = ["ptrace", "process_vm_readv", "process_vm_writev"]
    forbidden += ["add_key", "request_key", "keyctl"]
    if sockets != "any":  # bubblewrap gives it a namespace of its own for these
        forbidden += ["shmget", "shmat", "semget", "msgget", "mq_open"]
    blocks += [(machine.numbers[name], [_fail(errno.EPERM)]) for name in forbidden]
    terminal = [_one(_LOAD, _argument(1))]
    for request in _TERMINAL_INPUT:
        terminal += [_jump(_EQUAL, request, 0, 1), _fail(errno.EPERM)]
    blocks.append((machine.numbers["ioctl"], [*terminal, _one(_RETURN, _ALLOW)]))
    blocks += [(machine.numbers[name], block) for name, block in _socket_blocks(sockets)]
    for number, block in blocks:
        program += [_jump(_EQUAL, number, 0, len(block)), *block]
    program.append(_one(_RETURN, _ALLOW))
    return b"".join(program)


def _socket_blocks(sockets: Sockets) -> Iterable[tuple[str, list[bytes]]]:
    """Yield what is done at each call of sockets."""
    allow = _one(_RETURN, _ALLOW)
    fail = _fail(errno.EACCES)
    if sockets == "none":
        yield "socket", [fail]
    if sockets == "no unix":
        yield (
            "socket",
            [_one(_LOAD, _argument(0)), _jump(_EQUAL, socket.AF_UNIX, 0, 1), fail, allow],
        )
    if sockets == "brokered":
        yield (
            "socket",
            [
                _one(_LOAD, _argument(0)),
                _jump(_EQUAL, socket.AF_INET, 2, 0),
                _jump(_EQUAL, socket.AF_INET6, 1, 0),
                fail,
                _one(_LOAD, _argument(1)),
                _one(_MASK, 0xF),
                _jump(_EQUAL, socket.SOCK_STREAM, 1, 0),
                fail,
                _one(_LOAD, _argument(2)),
                _jump(_EQUAL, 0, 2, 0),
                _jump(_EQUAL, socket.IPPROTO_TCP, 1, 0),
                fail,
                allow,
            ],
        )
        yield "connect", [_one(_RETURN, _NOTIFY)]
        yield "bind", [fail]
        yield "listen", [fail]
        for name, flags in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)):
            yield (
                name,
                [_one(_LOAD, _argument(flags)), _jump(_ANY_BIT, _FAST_OPEN, 0, 1), fail, allow],
            )


def _one(code: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, 0, 0, value)


def _jump(code: int, value: int, if_true: int, if_false: int) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _fail(number: int) -> bytes:
    return _one(_RETURN, _FAIL | number)


def _argument(number: int) -> int:
    """The place of the lower half of an argument; both architectures are little-endian."""
    return 16 + 8 * number


def install(program: bytes, *, listener: bool) -> int | None:
    """Install a filter for this thread and the processes that it starts; return the descriptor of
    its notices. The thread must have given up new privileges.

    Raises:
        OSError: The kernel refuses.
    """
    code = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(
        ctypes.c_long(_MACHINES[platform.machine()].seccomp),
        ctypes.c_long(_SET_FILTER),
        ctypes.c_long(_NEW_LISTENER if listener else 0),
        ctypes.create_string_buffer(head, len(head)),
    )
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(result) if listener else None


class ConnectBroker:
    """Opens the TCP connections of a confined program: those to its proxy, and no others.

    The program's own `connect` is forbidden by Landlock. Its calls come here, and this process
    connects a duplicate of its socket, to an address that the program cannot change after the
    check. The broker has a thread, because connecting and reading notices block.

    Args:
        notices: The descriptor of the filter's notices, which the broker closes.
        proxy: The address of the proxy.
        admit: Called with the local port of each connection before it is made.
        refused: Called with the address that the program wanted, from the broker's thread.
    """

    def __init__(
        self,
        notices: int,
        proxy: tuple[str, int],
        admit: Callable[[int], None],
        refused: Callable[[str, int], None],
    ) -> None:
        self._notices = notices
        self._proxy = proxy
        self._admit = admit
        self._refused = refused
        self._wake, self._waker = os.pipe()
        self._thread = threading.Thread(
            target=self._run, name="interlock sandbox connections", daemon=True
        )

    def start(self) -> None:
        """Start to answer."""
        self._thread.start()

    def close(self) -> None:
        """Stop. Later calls of the program fail."""
        os.close(self._waker)
        self._thread.join()

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._notices, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        try:
            while True:
                ready = dict(poll.poll())
                if self._wake in ready or ready.get(self._notices, 0) & ~select.POLLIN:
                    return  # closed, or no process is left
                with contextlib.suppress(OSError):  # the process ended meanwhile
                    self._answer()
        finally:
            os.close(self._notices)
            os.close(self._wake)

    def _answer(self) -> None:
        notice = bytearray(_NOTICE.size)
        fcntl.ioctl(self._notices, _RECEIVE, notice, True)
        identity, process, _, _, _, _, number, address, size, *_ = _NOTICE.unpack(notice)
        try:
            self._connect(identity, process, number & 0xFFFFFFFF, address, size & 0xFFFFFFFF)
            failed = 0
        except OSError as bad:
            failed = bad.errno or errno.EACCES
        fcntl.ioctl(self._notices, _ANSWER, bytearray(_REPLY.pack(identity, 0, -failed, 0)), True)

    def _connect(self, identity: int, process: int, number: int, address: int, size: int) -> None:
        """Connect the socket of the program, or raise the error that its call returns."""
        wanted = _read_memory(process, address, min(size, 28))
        fcntl.ioctl(self._notices, _STILL_VALID, struct.pack("=Q", identity))
        place = _address(wanted)
        if place != self._proxy:
            if place is not None:
                self._refused(*place)
            raise OSError(errno.EACCES, "not the proxy")
        with socket.socket(fileno=_duplicate(process, number)) as connected:
            # The process may have ended, and its number belong to another one by now.
            fcntl.ioctl(self._notices, _STILL_VALID, struct.pack("=Q", identity))
            kind = connected.type
            if connected.family != socket.AF_INET or kind != socket.SOCK_STREAM:
                raise OSError(errno.EACCES, "not a TCP socket")
            with contextlib.suppress(OSError):  # connected before: connecting again says so
                connected.bind(("127.0.0.1", 0))
            self._admit(connected.getsockname()[1])
            connected.connect(self._proxy)


def _read_memory(process: int, address: int, size: int) -> bytes:
    with open(f"/proc/{process}/mem", "rb", buffering=0) as memory:
        return os.pread(memory.fileno(), size, address)


def _address(raw: bytes) -> tuple[str, int] | None:
    """Return host and port of a socket address; None for another family."""
    if len(raw) < 8:
        raise OSError(errno.EINVAL, "no address")
    family = int.from_bytes(raw[:2], "little")
    port = int.from_bytes(raw[2:4], "big")
    if family == socket.AF_INET:
        return socket.inet_ntop(socket.AF_INET, raw[4:8]), port
    if family == socket.AF_INET6 and len(raw) >= 24:
        return socket.inet_ntop(socket.AF_INET6, raw[8:24]), port
    return None


def _duplicate(process: int, number: int) -> int:
    """Return a duplicate of a descriptor of another process."""
    pidfd = os.pidfd_open(process, _PIDFD_THREAD)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        found = libc.syscall(
            ctypes.c_long(_PIDFD_GETFD),
            ctypes.c_long(pidfd),
            ctypes.c_long(number),
            ctypes.c_long(0),
        )
        if found < 0:
            raise OSError(ctypes.get_errno(), "the descriptor cannot be had")
        return int(found)
    finally:
        os.close(pidfd)
