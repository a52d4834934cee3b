"""Starts third-party programs, and drives a client through its steps: one JSON line for each step,
and one line back (`peers/steps.py`)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts import peers

PEERS = Path(__file__).parent / "peers"
PATIENCE = 300  # seconds; the first start of some packages compiles thousands of files
"""Seconds to wait for a line; the program itself gives up a hanging step earlier."""

MAN: dict[str, Any] = {
    "elicitation/create": {"action": "accept", "content": {"name": "Ann", "age": 42}},
    "sampling/createMessage": {
        "role": "assistant",
        "content": {"type": "text", "text": "Paris"},
        "model": "m",
        "stopReason": "endTurn",
    },
    "roots/list": {"roots": [{"uri": "file:///srv/data"}]},
}
"""The default answers of the user, the model and the roots on the client's side."""


def command_of(role: str, maker: str, installed: Callable[[str], Path]) -> list[str]:
    """The command that starts a maker's program: "client", "server" or "conformance"."""
    program = PEERS / f"{role}_{maker.replace('-', '_')}"
    if not maker.startswith("typescript"):
        return [str(installed(maker)), str(program.with_suffix(".py"))]
    place = installed("typescript")
    put_programs(place)
    return [str(peers.node()), str(place / program.with_suffix(".mjs").name)]


def put_programs(place: Path) -> None:
    """Copy our JavaScript programs into a peer's folder: Node looks for packages beside a
    program."""
    for file in PEERS.glob("*.mjs"):
        copy = place / file.name
        if not copy.exists() or copy.read_bytes() != file.read_bytes():
            fresh = place / f".{file.name}.{os.getpid()}"  # atomic: others may read it now
            shutil.copy2(file, fresh)
            fresh.replace(copy)


@dataclass
class Step:
    """The results of one step of the program."""

    heard: list[list[Any]]
    asked: list[list[Any]]
    saw: Any = None
    error: dict[str, Any] | None = None

    @property
    def result(self) -> Any:
        """The result of the call; raises AssertionError if the call failed."""
        assert self.error is None, self.error
        return self.saw

    @property
    def text(self) -> str:
        """The text of a tool's result."""
        return "\n".join(
            block["text"] for block in self.result["content"] if block["type"] == "text"
        )


class Driver:
    """A client program under the test's control."""

    def __init__(self, process: asyncio.subprocess.Process, stderr: Any) -> None:
        self._process = process
        self._stderr = stderr

    async def do(
        self, what: str, *, answers: dict[str, Any] = MAN, until: int = 0, **given: Any
    ) -> Step:
        """Run one step."""
        return await self.say({"do": what, "with": given, "answers": answers, "until": until})

    async def call(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        answers: dict[str, Any] = MAN,
        until: int = 0,
    ) -> Step:
        """Let the program call a tool."""
        return await self.do(
            "call", answers=answers, until=until, name=name, arguments=arguments or {}
        )

    async def say(self, line: dict[str, Any]) -> Step:
        """Send one line and return the answer line."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(line).encode() + b"\n")
        said = await asyncio.wait_for(self._process.stdout.readline(), PATIENCE)
        if not said:
            self._stderr.seek(0)
            raise AssertionError(
                f"the client program has ended at {line}:\n{self._stderr.read()[-6000:].decode()}"
            )
        return Step(**json.loads(said))


@contextlib.asynccontextmanager
async def on_the_web(
    program: Sequence[str], port: int, *, kill: bool = False, env: dict[str, str] | None = None
) -> AsyncIterator[None]:
    """Run a server program that listens at a port; at the end, ask it to stop, or kill it."""
    with tempfile.TemporaryFile() as output:
        null = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            *program, stdin=null, stdout=output, stderr=output, env=env
        )
        try:
            async with asyncio.timeout(PATIENCE):
                while not await _listens(port):
                    if process.returncode is not None:
                        output.seek(0)
                        raise AssertionError(
                            f"the server program has ended:\n{output.read()[-6000:].decode()}"
                        )
            yield
        finally:
            if process.returncode is None:
                (process.kill if kill else process.terminate)()
            try:
                await asyncio.wait_for(process.wait(), 5)
            except TimeoutError:  # some servers wait for their clients to disconnect first
                process.kill()
                await process.wait()


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        await asyncio.sleep(0.02)
        return False
    writer.close()
    await writer.wait_closed()
    return True


@contextlib.asynccontextmanager
async def led(program: Sequence[str], **opening: Any) -> AsyncIterator[Driver]:
    """Start a client program for a server; at the end it must close the conversation and exit with
    0."""
    with tempfile.TemporaryFile() as stderr:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *program, stdin=pipe, stdout=pipe, stderr=stderr, limit=16 * 1024 * 1024
        )
        driver = Driver(process, stderr)
        try:
            await driver.say(opening)
            yield driver
            assert process.stdin is not None
            process.stdin.close()
            status = await asyncio.wait_for(process.wait(), PATIENCE)
            stderr.seek(0)
            assert status == 0, stderr.read().decode(errors="replace")[-3000:]
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
