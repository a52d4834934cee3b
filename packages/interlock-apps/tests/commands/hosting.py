"""What the tests of the host's commands share: the commands as programs, configurations, and the
page that talks to a host.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
from click.testing import CliRunner

from interlock.cli.program import program

PATIENCE = 60.0
KEYS = (
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "OPENROUTER_API_KEY",
    "INTERLOCK_MODEL",
    "INTERLOCK_MODEL_URL",
)

# A server whose tool asks the model of the client, one that says it only reads, and one that tells
# which process it is.
CURIOUS = """
import os, pathlib
from interlock import Context, Server, ToolAnnotations

server = Server("curious")
if "TRACE" in os.environ:
    pathlib.Path(os.environ["TRACE"]).write_text(str(os.getpid()))

@server.tool
async def wonder(ctx: Context) -> str:
    answer = await ctx.sample("What is it?", max_tokens=50)
    content = answer.content if isinstance(answer.content, list) else [answer.content]
    return f"The model said: {content[0].text}"

@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def look() -> str:
    return "seen"
"""


@dataclass
class Ended:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str


def environment(**more: str) -> dict[str, str]:
    """That of the test, without keys of whoever runs it."""
    return {name: value for name, value in os.environ.items() if name not in KEYS} | more


async def started(*words: str | Path, **env: str) -> asyncio.subprocess.Process:
    """The command, begun as a program."""
    pipe = asyncio.subprocess.PIPE
    command = [sys.executable, "-m", "interlock", *map(str, words)]
    return await asyncio.create_subprocess_exec(
        *command,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        env=environment(**env),
        limit=16 * 1024 * 1024,
    )


async def ran(*words: str | Path, stdin: str = "", **env: str) -> Ended:
    """The command, run as a program."""
    process = await started(*words, **env)
    try:
        out, err = await asyncio.wait_for(process.communicate(stdin.encode()), PATIENCE)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())


async def ran_here(*words: str | Path, stdin: str = "", **env: str) -> Ended:
    """The command, run in a thread of this process: a second less, where the test is of no
    program.
    """
    variables: dict[str, str | None] = {**dict.fromkeys(KEYS), **env}
    command = partial(
        CliRunner().invoke,
        program,
        [str(word) for word in words],
        input=stdin,
        env=variables,
        catch_exceptions=False,
    )
    result = await asyncio.to_thread(command)
    return Ended(result.exit_code, result.stdout, result.stderr)


def written(path: Path, servers: dict[str, Path], **env: str) -> Path:
    """A configuration of servers in files of Python, which leave marks everywhere: they run without
    a sandbox.
    """
    entries = {
        id: {
            "command": sys.executable,
            "args": ["-P", "-m", "interlock", "run", str(file)],
            "env": env,
            "sandbox": False,
        }
        for id, file in servers.items()
    }
    path.write_text(json.dumps({"mcpServers": entries}), encoding="utf-8")
    return path


class Page:
    """What the page of a host does, without its looks."""

    def __init__(
        self, process: asyncio.subprocess.Process, address: str, client: httpx2.AsyncClient
    ) -> None:
        self.process = process
        self.address = address
        self.client = client
        self.pid = process.pid
        self._csrf = ""

    async def enter(self) -> None:
        """Open the address, as a browser does."""
        page = await self.client.get(self.address, follow_redirects=True)
        found = re.search(r'name="interlock-csrf" content="([^"]+)"', page.text)
        assert found is not None, page.text[:500]
        self._csrf = found[1]
        self.client.base_url = page.url  # where the page lies, which nobody can guess

    async def act(self, act: str, **given: Any) -> Any:
        """Have something done; its value."""
        answer = (
            await self.client.post(
                "/api/act", json={"act": act, **given}, headers={"x-interlock": self._csrf}
            )
        ).json()
        assert answer["ok"], answer
        return answer["value"]

    @asynccontextmanager
    async def events(self) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """The stream of events."""
        async with self.client.stream("GET", "/api/events", timeout=PATIENCE) as response:
            assert response.status_code == 200
            yield _events(response)

    async def until(self, fits: Callable[[dict[str, Any]], Any]) -> Any:
        """Watch until there is an event, or a state, of which `fits` makes something; that is
        returned.
        """
        async with asyncio.timeout(PATIENCE), self.events() as events:
            return await seen(events, fits)

    async def ended(self, number: signal.Signals) -> int:
        """Send a signal, and wait for the end."""
        self.process.send_signal(number)
        return await asyncio.wait_for(self.process.wait(), 20)


async def seen(events: AsyncIterator[dict[str, Any]], fits: Callable[[dict[str, Any]], Any]) -> Any:
    """The first that `fits` makes something of."""
    async for each in events:
        if found := fits(each):
            return found
    raise AssertionError("the stream has ended")


async def _events(response: httpx2.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line[6:])


@asynccontextmanager
async def hosting(*words: str | Path, **env: str) -> AsyncIterator[Page]:
    """`interlock host`, or `demo`, from when it has printed its address to the end of the block."""
    process = await started(*words, **env)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        said = b""
        async with asyncio.timeout(PATIENCE):
            while (found := re.search(rb"(http://127\.0\.0\.1:\d+)(/\?token=\S+)", said)) is None:
                line = await process.stdout.readline()
                assert line, f"{said.decode()}{(await process.stderr.read()).decode()}"
                said += line
        async with httpx2.AsyncClient(
            base_url=found[1].decode(), trust_env=False, timeout=PATIENCE
        ) as client:
            yield Page(process, found[2].decode(), client)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def noted(kind: str, **fields: Any) -> Callable[[dict[str, Any]], Any]:
    """Fits an event of a kind, with these fields."""

    def fits(each: dict[str, Any]) -> Any:
        event = each["noted"]["event"] if each["kind"] == "noted" else {}
        return event if event.get("type") == kind and event.items() >= fields.items() else None

    return fits


def server_is(id: str, state: str) -> Callable[[dict[str, Any]], Any]:
    """Fits a state in which a server is so."""

    def fits(each: dict[str, Any]) -> Any:
        servers = each["state"]["servers"] if each["kind"] == "state" else []
        return next(
            (server for server in servers if (server["id"], server["state"]) == (id, state)), None
        )

    return fits


def is_alive(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
