"""Several servers that share one store, each a process of its own, with a balancer in front of
them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.workers.balancer import Balancer
from tests.workers.programs import WORKER

PATIENCE = 20.0  # seconds


def until(true: Callable[[], Any], what: str = "") -> Any:
    """Look until something is so, and give it; for programs, which tell nobody here when it is."""
    end = time.monotonic() + PATIENCE
    while not (found := true()):
        assert time.monotonic() < end, f"it never came about: {what or true}"
        time.sleep(0.01)
    return found


class Program:
    """One process of the server program."""

    def __init__(self, folder: Path, *, key: str = "17" * 32, **options: Any) -> None:
        self.folder = folder
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "INTERLOCK_STATE_KEY": key}
        self._errors = open(folder / f"stderr-{time.time_ns()}", "w+")  # noqa: SIM115 - closed with the process
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                WORKER,
                str(folder),
                json.dumps({"port": 0, "grace": 2.0, **options}),
            ],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=environment,
            start_new_session=True,
        )
        self.port = 0

    def ready(self) -> Program:
        """Wait until it listens."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("ready"):
                self.port = int(line.split()[1])
                return self
        raise AssertionError(f"the server did not start: {self.errors}")

    @property
    def errors(self) -> str:
        """What it wrote to stderr."""
        self._errors.flush()
        return Path(self._errors.name).read_text()

    @property
    def url(self) -> str:
        """Its endpoint."""
        return f"http://127.0.0.1:{self.port}/mcp"

    @property
    def children(self) -> list[int]:
        """The processes that it has forked and that live."""
        found = (
            Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        )
        return [int(pid) for pid in found if alive(int(pid))]

    def end(self) -> int:
        """Ask it to end, and give its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        """See to it that nothing is left of it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(
                self.process.pid, signal.SIGKILL
            )  # its children too, also where it has gone before them
        self.process.wait(PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._errors.close()


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Cluster:
    """What a test gets: the workers, the balancer, and the folder in which the tools leave their
    marks."""

    def __init__(self, folder: Path, workers: list[Program], balancer: Balancer) -> None:
        self.folder = folder
        self.workers = workers
        self.balancer = balancer

    @property
    def url(self) -> str:
        """The endpoint behind the balancer."""
        return self.balancer.url

    def at(self, number: int) -> str:
        """The endpoint of one worker."""
        return self.workers[number % len(self.workers)].url

    @property
    def marks(self) -> list[str]:
        """What the tools have noted, each with the id of its process."""
        return marks(self.folder)

    def step(self, name: str, number: int, how: str = "") -> None:
        """Let a call of `steps` go on."""
        half = self.folder / f"{name}.{number}.half"
        half.write_text(how)
        half.rename(self.folder / f"{name}.{number}")


def marks(folder: Path) -> list[str]:
    """What the tools of all programs with this folder have noted."""
    file = folder / "marks"
    return file.read_text().splitlines() if file.exists() else []


def noted(folder: Path, what: str, times: int = 1) -> None:
    """Wait until something was noted so many times."""
    until(lambda: sum(line.partition(" ")[2] == what for line in marks(folder)) >= times, what)


@contextmanager
def cluster(folder: Path, count: int, **options: Any) -> Iterator[Cluster]:
    """So many workers with these options, and a balancer in front of them."""
    workers = [Program(folder, **options) for _ in range(count)]
    try:
        for worker in workers:
            worker.ready()
        with Balancer([worker.port for worker in workers]) as balancer:
            yield Cluster(folder, workers, balancer)
    finally:
        for worker in workers:
            worker.close()
