"""Attempts to escape from a sandbox, run inside it: `python attempts.py SCENE`.

It prints one JSON object: for each attempt what it reached, or null where it was stopped.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import platform
import signal
import socket
import struct
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

ATTEMPTS: dict[str, Callable[[dict[str, Any]], object]] = {}
LIBC = ctypes.CDLL(None, use_errno=True)


class StoppedError(Exception):
    """The attempt reached nothing."""


def attempt(function: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, Any]], object]:
    """Register an attempt: it returns what it reached, or raises."""
    ATTEMPTS[function.__name__] = function
    return function


def called(result: int) -> int:
    """The result of a C function, or its error."""
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def system_call(x86: int, arm: int, *arguments: object) -> int:
    """Make a system call by its number."""
    number = x86 if platform.machine() == "x86_64" else arm
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return called(LIBC.syscall(ctypes.c_long(number), *words))


# -- files -----------------------------------------------------------------------------------------


@attempt
def read_outside(scene: dict[str, Any]) -> object:
    return Path(scene["secret"]).read_text()


@attempt
def read_by_dots(scene: dict[str, Any]) -> object:
    return Path("../secret/key").read_text()


@attempt
def read_by_found_symlink(scene: dict[str, Any]) -> object:
    return Path("link").read_text()


@attempt
def read_by_own_symlink(scene: dict[str, Any]) -> object:
    os.symlink(scene["secret"], "own")
    try:
        return Path("own").read_text()
    finally:
        os.unlink("own")


@attempt
def read_by_hard_link(scene: dict[str, Any]) -> object:
    os.link(scene["secret"], "hard")
    try:
        return Path("hard").read_text()
    finally:
        os.unlink("hard")


@attempt
def read_by_moving(scene: dict[str, Any]) -> object:
    os.rename(scene["movable"], "moved")
    return Path("moved").read_text()


@attempt
def read_home(scene: dict[str, Any]) -> object:
    return Path(scene["home"], ".ssh/id").read_text()


@attempt
def list_home(scene: dict[str, Any]) -> object:
    return [each for each in os.listdir(scene["home"]) if each == ".ssh"] or stop()


@attempt
def read_shadow(scene: dict[str, Any]) -> object:
    return Path("/etc/shadow").read_text()[:10]


@attempt
def write_outside(scene: dict[str, Any]) -> object:
    return Path(scene["writable"]).write_text("changed")


@attempt
def write_program(scene: dict[str, Any]) -> object:
    with open(__file__, "ab"):
        return "opened"


@attempt
def write_system(scene: dict[str, Any]) -> object:
    path = Path("/usr/interlock-canary")
    path.write_text("x")
    seen = Path(scene["secret"]).parent.parent.exists()
    path.unlink()
    return seen or stop()


@attempt
def move_out(scene: dict[str, Any]) -> object:
    Path("mine").write_text("mine")
    os.rename("mine", scene["outside"])
    return "moved"


@attempt
def truncate_outside(scene: dict[str, Any]) -> object:
    os.truncate(scene["writable"], 0)
    return "truncated"


@attempt
def write_hook(scene: dict[str, Any]) -> object:
    return Path(".git/hooks/pre-commit").write_text("#!/bin/sh\n")


@attempt
def make_device(scene: dict[str, Any]) -> object:
    os.mknod("device", 0o600 | 0o060000, os.makedev(7, 0))
    os.unlink("device")
    return "made"


@attempt
def mount_over(scene: dict[str, Any]) -> object:
    os.makedirs("mnt", exist_ok=True)
    called(LIBC.mount(b"none", b"mnt", b"tmpfs", 0, None))
    LIBC.umount(b"mnt")
    return "mounted"


@attempt
def kernel_setting(scene: dict[str, Any]) -> object:
    path = Path("/proc/sys/kernel/core_pattern")
    return path.write_text(path.read_text())


@attempt
def kernel_memory(scene: dict[str, Any]) -> object:
    os.close(os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK))
    return "opened"


# -- processes -------------------------------------------------------------------------------------


@attempt
def signal_victim(scene: dict[str, Any]) -> object:
    os.kill(scene["victim"], 0)
    return "signalled"


@attempt
def kill_starter(scene: dict[str, Any]) -> object:
    os.kill(scene["starter"], signal.SIGURG)  # which is ignored
    return "signalled"


@attempt
def trace_victim(scene: dict[str, Any]) -> object:
    called(LIBC.ptrace(16, scene["victim"], None, None))
    os.waitpid(scene["victim"], 0)
    LIBC.ptrace(17, scene["victim"], None, None)
    return "attached"


@attempt
def read_victim_memory(scene: dict[str, Any]) -> object:
    buffer = ctypes.create_string_buffer(8)
    local = struct.pack("@PN", ctypes.addressof(buffer), 8)
    remote = struct.pack("@PN", scene["address"], 8)
    system_call(310, 270, scene["starter"], local, 1, remote, 1, 0)
    return buffer.raw.decode("latin-1")


@attempt
def environment_of_starter(scene: dict[str, Any]) -> object:
    found = Path(f"/proc/{scene['starter']}/environ").read_bytes()
    return b"CANARY" in found or stop()


@attempt
def command_of_victim(scene: dict[str, Any]) -> object:
    found = Path(f"/proc/{scene['victim']}/cmdline").read_bytes()
    return b"CANARY" in found or stop()


@attempt
def files_of_starter(scene: dict[str, Any]) -> object:
    return Path(f"/proc/{scene['starter']}/root{scene['secret']}").read_text()


@attempt
def descriptor_of_starter(scene: dict[str, Any]) -> object:
    return Path(f"/proc/{scene['starter']}/fd/{scene['descriptor']}").read_text()


@attempt
def stolen_descriptor(scene: dict[str, Any]) -> object:
    pidfd = os.pidfd_open(scene["starter"])
    found = system_call(438, 438, pidfd, scene["descriptor"], 0)
    os.lseek(found, 0, os.SEEK_SET)
    return b"CANARY" in os.read(found, 100) or stop()


@attempt
def inherited_descriptor(scene: dict[str, Any]) -> object:
    for number in range(3, 256):
        with contextlib.suppress(OSError):
            os.lseek(number, 0, os.SEEK_SET)
            if b"CANARY" in os.read(number, 100):
                return number
    return stop()


@attempt
def inherited_variable(scene: dict[str, Any]) -> object:
    return os.environ["CANARY_VARIABLE"]


@attempt
def become_root(scene: dict[str, Any]) -> object:
    """A program with the set-user-id bit would run as root."""
    if LIBC.prctl(39, 0, 0, 0, 0) == 1:  # no new privileges
        stop()
    return "programs may give privileges"


@attempt
def keep_capabilities(scene: dict[str, Any]) -> object:
    head = ctypes.create_string_buffer(struct.pack("=II", 0x20080522, 0))
    data = ctypes.create_string_buffer(24)
    called(LIBC.capget(head, data))
    return any(data.raw[:8]) or stop()


# -- terminals and memory that processes share -----------------------------------------------------


@attempt
def type_into_terminal(scene: dict[str, Any]) -> object:
    terminal = os.open(scene["terminal"], os.O_RDWR | os.O_NOCTTY)
    os.write(terminal, b"typed")
    return "typed"


@attempt
def push_into_terminal(scene: dict[str, Any]) -> object:
    """TIOCSTI, on a terminal of its own: the call itself has to be forbidden."""
    _, terminal = os.openpty()
    fcntl.ioctl(terminal, 0x5412, b"x")
    return "pushed"


@attempt
def shared_memory_file(scene: dict[str, Any]) -> object:
    return Path(scene["shared"]).read_text()


@attempt
def shared_memory_segment(scene: dict[str, Any]) -> object:
    called(LIBC.shmget(scene["segment"], 0, 0))
    return "found"


@attempt
def keyring(scene: dict[str, Any]) -> object:
    # the user's keyring, which all processes of the user share
    return system_call(250, 219, 0, -4, 1)


# -- network ---------------------------------------------------------------------------------------


@attempt
def loopback(scene: dict[str, Any]) -> object:
    with socket.create_connection(("127.0.0.1", scene["port"]), 3) as connected:
        return connected.recv(10).decode()


@attempt
def loopback_fast_open(scene: dict[str, Any]) -> object:
    with socket.socket() as connected:
        connected.sendto(b"x", 0x20000000, ("127.0.0.1", scene["port"]))
        return connected.recv(10).decode()


@attempt
def own_address(scene: dict[str, Any]) -> object:
    """Services of this machine listen on its other addresses too."""
    with socket.create_connection(("127.0.0.2", scene["port"]), 3) as connected:
        return connected.recv(10).decode()


@attempt
def datagram(scene: dict[str, Any]) -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(("127.0.0.1", scene["datagrams"]))
        sender.send(b"?")
        return sender.recv(10).decode()


@attempt
def name_query(scene: dict[str, Any]) -> object:
    """DNS carries data out, even where nothing else does."""
    query = b"\0\1\1\0\0\1\0\0\0\0\0\0\6canary\4test\0\0\1\0\1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(("127.0.0.1", scene["datagrams"]))
        sender.send(query)
        return sender.recv(10).decode()


@attempt
def unix_socket(scene: dict[str, Any]) -> object:
    with socket.socket(socket.AF_UNIX) as connected:
        connected.connect(scene["socket"])
        return connected.recv(10).decode()


@attempt
def abstract_socket(scene: dict[str, Any]) -> object:
    with socket.socket(socket.AF_UNIX) as connected:
        connected.connect(f"\0{scene['abstract']}")
        return connected.recv(10).decode()


@attempt
def multipath_tcp(scene: dict[str, Any]) -> object:
    """Landlock looks at plain TCP only."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262) as connected:
        connected.settimeout(3)
        connected.connect(("127.0.0.1", scene["port"]))
        return connected.recv(10).decode()


@attempt
def asynchronous_calls(scene: dict[str, Any]) -> object:
    """io_uring makes calls that no filter sees."""
    parameters = ctypes.create_string_buffer(120)
    os.close(system_call(425, 425, 2, parameters))
    return "opened"


@attempt
def proxy_to_loopback(scene: dict[str, Any]) -> object:
    return tunnel("127.0.0.1", scene["port"])


@attempt
def proxy_to_localhost(scene: dict[str, Any]) -> object:
    return tunnel("localhost", scene["port"])


@attempt
def proxy_to_mapped_address(scene: dict[str, Any]) -> object:
    return tunnel("[::ffff:127.0.0.1]", scene["port"])


@attempt
def proxy_to_odd_spelling(scene: dict[str, Any]) -> object:
    return tunnel("2130706433", scene["port"])


@attempt
def proxy_to_metadata(scene: dict[str, Any]) -> object:
    return tunnel("169.254.169.254", 80) if "https_proxy" in os.environ else stop()


@attempt
def proxy_by_plain_http(scene: dict[str, Any]) -> object:
    if "http_proxy" not in os.environ:
        with socket.create_connection(("127.0.0.1", scene["port"]), 3) as connected:
            return connected.recv(10).decode()
    os.environ["no_proxy"] = ""
    url = f"http://127.0.0.1:{scene['port']}/"
    with contextlib.suppress(urllib.error.HTTPError):
        return urllib.request.urlopen(url, timeout=5).read().decode()
    return stop()


def tunnel(host: str, port: int) -> object:
    """What answers through the proxy; without a proxy, directly."""
    proxy = os.environ.get("https_proxy", "")
    if not proxy:
        name = "127.0.0.1" if host in ("localhost", "2130706433", "[::ffff:127.0.0.1]") else host
        with socket.create_connection((name, port), 3) as connected:
            return connected.recv(10).decode()
    at = proxy.rpartition("/")[2].partition(":")
    with socket.create_connection((at[0], int(at[2])), 5) as connected:
        connected.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n".encode())
        answer = connected.recv(1000).decode()
    return answer if answer.split()[1] == "200" else stop()


# --------------------------------------------------------------------------------------------------


def stop() -> object:
    """Say that the attempt reached nothing."""
    raise StoppedError


def main() -> None:
    """Make every attempt, and print what each reached."""
    scene = json.loads(sys.argv[1])
    reached: dict[str, object] = {}
    for name, function in ATTEMPTS.items():
        try:
            reached[name] = function(scene)
        except Exception as bad:
            reached[name] = None
            print(f"{name}: {bad!r}", file=sys.stderr)
    print(json.dumps(reached), flush=True)


if __name__ == "__main__":
    main()
