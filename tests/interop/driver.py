"""Starts the programs of other makers, and leads a client through its steps: a JSON line to it for
each, a line back (`peers/steps.py`)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts import peers

PEERS = Path(__file__).parent / "peers"
PATIENCE = 60
"""Seconds to wait for a line; a step that hangs is given up by the program itself, and sooner."""

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
"""The person, the model and the folders on the client's side, where a step says nothing else."""


def command_of(role: str, maker: str, installed: Callable[[str], Path]) -> list[str]:
    """The command that starts a maker's program, "client" or "server"."""
    program = PEERS / f"{role}_{maker.replace('-', '_')}"
    if not maker.startswith("typescript"):
        return [str(installed(maker)), str(program.with_suffix(".py"))]
    place = installed("typescript")
    put_programs(place)
    return [str(peers.node()), str(place / program.with_suffix(".mjs").name)]


def put_programs(place: Path) -> None:
    """Put our JavaScript programs into a peer's place: Node looks for packages beside a program."""
    for file in PEERS.glob("*.mjs"):
        copy = place / file.name
        if not copy.exists() or copy.read_bytes() != file.read_bytes():
            fresh = place / f".{file.name}.{os.getpid()}"  # whole at once: others may read it now
            shutil.copy2(file, fresh)
            fresh.replace(copy)


@dataclass
class Step:
    """What the program saw at one step."""

    heard: list[list[Any]]
    asked: list[list[Any]]
    saw: Any = None
    error: dict[str, Any] | None = None

    @property
    def result(self) -> Any:
        """What the call returned; an AssertionError where it failed."""
        assert self.error is None, self.error
        return self.saw

    @property
    def text(self) -> str:
        """The text of a tool's result."""
        return "\n".join(
            block["text"] for block in self.result["content"] if block["type"] == "text"
        )


class Driver:
    """A client program that is led."""

    def __init__(self, process: asyncio.subprocess.Process, stderr: Any) -> None:
        self._process = process
        self._stderr = stderr

    async def do(
        self, what: str, *, answers: dict[str, Any] = MAN, until: int = 0, **given: Any
    ) -> Step:
        """Have one thing done."""
        return await self.say({"do": what, "with": given, "answers": answers, "until": until})

    async def call(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        answers: dict[str, Any] = MAN,
        until: int = 0,
    ) -> Step:
        """Have a tool called."""
        return await self.do(
            "call", answers=answers, until=until, name=name, arguments=arguments or {}
        )

    async def say(self, line: dict[str, Any]) -> Step:
        """Send one line and return the one that comes back."""
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


def free_port() -> int:
    """A port of loopback that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


@contextlib.asynccontextmanager
async def on_the_web(
    program: Sequence[str], port: int, *, kill: bool = False, env: dict[str, str] | None = None
) -> AsyncIterator[None]:
    """A server program that listens at a port, from when it does so until the end, when it is told
    to leave, or killed."""
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
            except TimeoutError:  # some servers wait for their clients to leave first
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
    """A client program, started and told whom to talk to; at the end it must close the conversation
    and leave with 0."""
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
            assert await asyncio.wait_for(process.wait(), PATIENCE) == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
