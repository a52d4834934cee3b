"""A gateway as a program: started by its command, asked until it is ready, and ended."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from interlock import Client, Http
from tests.ports import free_port

PAGE = re.compile(r"http://127\.0\.0\.1:\d+/\?token=\S+")

PATIENCE = 60.0
"""Seconds after which a program that does not answer has failed."""


class RunningGateway:
    """A gateway that runs, and its files.

    Attributes:
        process: Its process; with workers that of the supervisor.
        port: The port that it listens at.
        folder: The folder with its settings, pins and data.
    """

    def __init__(self, process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
        self.process = process
        self.port = port
        self.folder = folder

    def url(self, view: str = "") -> str:
        """The URL of a view."""
        return f"http://127.0.0.1:{self.port}{f'/{view}' if view else ''}/mcp"

    def client(self, view: str = "", *, headers: Mapping[str, str] = {}, **options: Any) -> Client:
        """A client of a view. Headers are sent with each request."""
        options.setdefault("timeout", PATIENCE)
        return Client(Http(self.url(view), headers=dict(headers)), **options)

    @property
    def errors(self) -> str:
        """What it has written to stderr."""
        return (self.folder / "gateway.log").read_text(encoding="utf-8", errors="replace")

    async def page(self) -> str:
        """The URL of its page, with the token. It is written a moment after the first answer."""
        until = time.monotonic() + PATIENCE
        while (found := PAGE.search(self.errors)) is None:
            assert time.monotonic() < until, self.errors[-6000:]
            await asyncio.sleep(0.02)
        return found[0]

    def audit(self) -> list[dict[str, Any]]:
        """The entries of its audit."""
        path = self.folder / "audit.jsonl"
        if not path.exists():
            return []
        lines = path.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run another command of the gateway, with the same settings."""
        return subprocess.run(
            [sys.executable, "-m", "interlock", "gateway", *arguments],
            cwd=self.folder,
            env=environment(self.folder),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )


def environment(folder: Path, more: Mapping[str, str] = {}) -> dict[str, str]:
    """The environment of a gateway whose data are in a folder."""
    return {**os.environ, "XDG_DATA_HOME": str(folder / "data"), **more}


@contextmanager
def running(
    folder: Path,
    settings: str,
    *options: str,
    env: Mapping[str, str] = {},
    port: int | None = None,
) -> Iterator[RunningGateway]:
    """Run a gateway until the block ends.

    Args:
        folder: A folder for its files.
        settings: The text of its gateway.toml.
        options: Further options of the command.
        env: Further variables of its environment.
        port: The port to listen at; any free one by default.
    """
    port = free_port() if port is None else port
    (folder / "gateway.toml").write_text(settings, encoding="utf-8")
    command = [sys.executable, "-m", "interlock", "gateway", "gateway.toml"]
    with (
        (folder / "gateway.log").open("wb") as log,
        subprocess.Popen(
            [*command, "--http", f":{port}", *options],
            cwd=folder,
            env=environment(folder, env),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        ) as process,
    ):
        gateway = RunningGateway(process, port, folder)
        try:
            await_ready(gateway)
            yield gateway
        finally:
            end(process)


def await_ready(gateway: RunningGateway) -> None:
    """Return once a gateway answers. Raises AssertionError if it does not."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and gateway.process.poll() is None:
        try:
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            opener.open(f"http://127.0.0.1:{gateway.port}/health", timeout=5).close()
            return
        except urllib.error.HTTPError:
            return  # it answers, and is not ready: a required server is away
        except OSError:
            time.sleep(0.02)
    raise AssertionError(f"the gateway does not answer:\n{gateway.errors[-6000:]}")


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process and what it has started."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)  # its own group, which it was started with


@asynccontextmanager
async def gateway(
    folder: Path, settings: str, *options: str, env: Mapping[str, str] = {}
) -> AsyncIterator[RunningGateway]:
    """Run a gateway until the block ends, without stopping the event loop."""
    block = running(folder, settings, *options, env=env)
    made = await asyncio.to_thread(block.__enter__)
    try:
        yield made
    finally:
        await asyncio.to_thread(block.__exit__, None, None, None)
