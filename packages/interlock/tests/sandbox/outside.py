"""The scene of the attempts, and their start: `outside.py MECHANISM FOLDER POLICY COMMAND...`.

It runs as the user whom the test chose, makes everything that a confined program must not reach,
and starts COMMAND with the scene as its last argument: in a sandbox, or for comparison without one
(`none`). Its exit code is that of the command.
"""

from __future__ import annotations

import asyncio
import atexit
import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from interlock.sandbox import Sandbox, run_confined
from interlock.transport.stdio import inherited_environment

CANARY = b"CANARY\n"


def main() -> None:
    """Make the scene and run the command."""
    mechanism, folder, policy, *command = sys.argv[1:]
    scene = made(Path(folder))
    os.chdir(scene["work"])
    words = [*command, json.dumps(scene)]
    if mechanism == "none":
        sys.exit(subprocess.run(words, close_fds=False).returncode)
    given: dict[str, Any] = {"mechanism": mechanism, **json.loads(policy)}
    code = asyncio.run(
        run_confined(
            Sandbox(**given),
            words,
            env=inherited_environment(),
            cwd=scene["work"],
            report=lambda refused: print(f"sandbox: {refused}", file=sys.stderr),
        )
    )
    sys.exit(code)


def made(folder: Path) -> dict[str, Any]:
    """Everything that a confined program must not reach."""
    for name in ("work/.git/hooks", "secret", "home/.ssh"):
        (folder / name).mkdir(parents=True)
    for name in ("secret/key", "secret/movable", "secret/writable", "home/.ssh/id"):
        (folder / name).write_bytes(CANARY)
    (folder / "work/link").symlink_to(folder / "secret/key")
    descriptor = os.open(folder / "secret/key", os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    shared = Path(f"/dev/shm/interlock-canary-{os.getpid()}")
    shared.write_bytes(CANARY)
    buffer = ctypes.create_string_buffer(CANARY)
    keep.append(buffer)
    victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)  # CANARY"])
    _, terminal = os.openpty()
    segment = 0x494C0000 | os.getpid() & 0xFFFF
    libc = ctypes.CDLL(None)
    memory = libc.shmget(segment, 4096, 0o1666)
    abstract = f"interlock-canary-{os.getpid()}"
    greeting(unix(str(folder / "secret/socket")))
    greeting(unix(f"\0{abstract}"))

    def clean_up() -> None:
        victim.kill()
        shared.unlink()
        libc.shmctl(memory, 0, None)

    atexit.register(clean_up)
    return {
        "work": str(folder / "work"),
        "secret": str(folder / "secret/key"),
        "writable": str(folder / "secret/writable"),
        "movable": str(folder / "secret/movable"),
        "outside": str(folder / "secret/moved-out"),
        "home": str(folder / "home"),
        "descriptor": descriptor,
        "starter": os.getpid(),
        "victim": victim.pid,
        "address": ctypes.addressof(buffer),
        "terminal": os.ttyname(terminal),
        "shared": str(shared),
        "segment": segment,
        "port": greeting(socket.create_server(("0.0.0.0", 0))),
        "datagrams": echoing(),
        "socket": str(folder / "secret/socket"),
        "abstract": abstract,
    }


keep: list[object] = []


def unix(path: str) -> socket.socket:
    """A listening Unix socket."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    return listener


def greeting(listener: socket.socket) -> Any:
    """Greet everyone who connects; return the port."""

    def serve() -> None:
        while True:
            connected, _ = listener.accept()
            with connected:
                connected.sendall(CANARY)

    threading.Thread(target=serve, daemon=True).start()
    name = listener.getsockname()
    return name[1] if isinstance(name, tuple) else 0


def echoing() -> Any:
    """Answer every datagram; return the port."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            _, sender = receiver.recvfrom(1000)
            receiver.sendto(CANARY, sender)

    threading.Thread(target=serve, daemon=True).start()
    return receiver.getsockname()[1]


if __name__ == "__main__":
    main()
