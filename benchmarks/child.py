"""A measured process: its pipes, its processor time in nanoseconds and its resident memory, read
from outside."""

from __future__ import annotations

import os
import select
import subprocess
import threading
import time
from pathlib import Path

PATIENCE = 60.0  # seconds in which any single measurement must end
TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


class Fault(Exception):
    """A peer did not do its part; the text says what failed, with the tail of its standard
    error."""


class Child:
    """A child process whose standard input and output we control."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.command = command
        self._stderr = os.memfd_create("stderr")
        self.started = time.perf_counter_ns()
        self.process = subprocess.Popen(
            command,
            bufsize=0,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.stdin = self.process.stdin.fileno()
        self.stdout = self.process.stdout.fileno()
        os.set_blocking(self.stdin, False)
        self._traffic = select.poll()
        self._traffic.register(self.stdin, select.POLLOUT)
        self._traffic.register(self.stdout, select.POLLIN)

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the program; its own children exit when their pipes close."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        os.close(self._stderr)

    def read(self) -> bytes:
        """Return the available bytes of its standard output; wait for at least one."""
        chunk = os.read(self.stdout, 65536)
        if not chunk:
            raise self.fault("ended, or was stopped because it took too long")
        return chunk

    def read_line(self) -> bytes:
        """Return everything up to the end of a line; only valid when no further output can
        follow."""
        chunks = [self.read()]
        while not chunks[-1].endswith(b"\n"):
            chunks.append(self.read())
        return b"".join(chunks)

    def push(self, data: memoryview) -> memoryview:
        """Write as much as the pipe accepts without blocking; return the rest."""
        try:
            return data[os.write(self.stdin, data) :]
        except BlockingIOError:
            return data

    def speaks(self) -> bool:
        """Wait until the program can be written to or read from; return whether it has output."""
        return any(event & ~select.POLLOUT for _, event in self._traffic.poll())

    def write(self, data: bytes) -> None:
        """Write the whole message; for messages far smaller than the pipe, which a live program
        always reads."""
        if self.push(memoryview(data)):
            raise self.fault("does not read its standard input")

    def watched(self) -> Watch:
        """Return a context that kills the program when it takes longer than `PATIENCE`."""
        return Watch(self.process)

    def processor(self, *, alone: bool = False) -> int:
        """Return the processor time, in nanoseconds, of all threads of the program and, unless
        `alone`, of its descendants."""
        if alone:
            return processor_of(self.process.pid)
        return sum(processor_of(pid) for pid in family(self.process.pid)) + reaped_by(
            self.process.pid
        )

    def resident(self) -> int:
        """Return the resident memory of the program and its descendants, in bytes."""
        pages = (
            Path(f"/proc/{pid}/statm").read_text().split()[1] for pid in family(self.process.pid)
        )
        return sum(int(count) for count in pages) * PAGE

    def fault(self, words: str) -> Fault:
        """Return an error that says what went wrong, with the last lines of the program's
        stderr."""
        end = os.fstat(self._stderr).st_size
        tail = os.pread(self._stderr, 600, max(0, end - 600)).decode(errors="replace")
        return Fault(f"{' '.join(self.command[:3])} {words}\n{tail}")


class Watch:
    """Kills a process that has not finished its work in time, so that no measurement can hang."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._timer = threading.Timer(PATIENCE, process.kill)
        self._timer.daemon = True

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()


def processor_of(pid: int) -> int:
    """Return the processor time of one process, of all its threads, running or ended, in
    nanoseconds."""
    # The id of a process's clock is computed from its process id, as clock_getcpuclockid(3) does on
    # Linux.
    return time.clock_gettime_ns((~pid << 3) | 2)


def reaped_by(pid: int) -> int:
    """Return the processor time of the children a process has already waited for, in nanoseconds,
    exact to a clock tick."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) * TICK


def family(pid: int) -> list[int]:
    """Return a process and all its running descendants."""
    found = [pid]
    for parent in found:  # grows while we walk it
        for thread in Path(f"/proc/{parent}/task").glob("*/children"):
            found += [int(child) for child in thread.read_text().split()]
    return found
