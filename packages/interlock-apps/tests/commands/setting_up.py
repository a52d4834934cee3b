"""A host that is set up while it runs, as `interlock host` makes it, and its page in a browser."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from interlock.models.local import LocalServer
from interlock_apps.commands.host_factory import host_of, setup_of
from interlock_apps.commands.options import HostCommandOptions
from interlock_apps.fleet.questions import AnyQuestion, Decision
from interlock_apps.host.app import Host
from interlock_apps.host.pages.serving import serve
from interlock_apps.host.pages.site import HostSite
from interlock_apps.host.setup.host_setup import HostSetup
from interlock_apps.host.setup.jobs import SetupJob
from tests.web.stage import Stage

# A server that reads, writes and complains: it names its process, so that a test sees it started.
GARDEN = """
import pathlib, sys
from interlock import Server, ToolAnnotations

server = Server("garden", "2.1.0")
print("watering the plants", file=sys.stderr, flush=True)

@server.tool(title="Look at a plant", annotations=ToolAnnotations(read_only_hint=True))
def look(plant: str) -> str:
    "Say how a plant is."
    return f"The {plant} is thirsty."

@server.tool(title="Water a plant", annotations=ToolAnnotations(destructive_hint=False))
def water(plant: str) -> str:
    "Water a plant."
    return f"The {plant} was watered."

if __name__ == "__main__":
    server.run()
"""


class Recorder:
    """A user who allows everything, and remembers the questions."""

    def __init__(self) -> None:
        self.asked: list[AnyQuestion] = []

    async def answer(self, question: AnyQuestion) -> Decision:
        """See UserInterface."""
        self.asked.append(question)
        return Decision(allow=True)


def garden(home: Path) -> Path:
    """Write the server into a file."""
    file = home / "garden.py"
    file.write_text(GARDEN, encoding="utf-8")
    return file


def entry(file: Path, **more: Any) -> dict[str, Any]:
    """The entry of a server in a file of Python, without a sandbox."""
    return {"command": sys.executable, "args": [str(file)], "sandbox": False, **more}


def write_servers(path: Path, **servers: dict[str, Any]) -> Path:
    """Write a configuration."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}, indent=2) + "\n", encoding="utf-8")
    return path


def options(*configs: Path, models: Sequence[str] = ()) -> HostCommandOptions:
    """As if it had been typed."""
    return HostCommandOptions(
        configs=configs,
        models_file=None,
        models=tuple(models),
        policy_file=None,
        trust=(),
        roots=(),
        lock=None,
        log_file=None,
    )


@asynccontextmanager
async def set_up(
    *configs: Path, models: Sequence[str] = (), opened: bool = True
) -> AsyncIterator[tuple[Host, HostSetup, Recorder]]:
    """A host, its setup, and a user who allows what is asked."""
    given = options(*configs, models=models)
    host = host_of(given, ask=False, empty=True)
    setup = setup_of(host, given)
    user = Recorder()
    host.prompter.person = user
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(host.aclose)
        stack.push_async_callback(setup.aclose)
        await host.log.open()
        if opened:
            await host.open()
        yield host, setup, user


async def outcome(job: SetupJob) -> dict[str, Any]:
    """Wait for the end of a job; return its last event, but for lines of stderr."""
    known = 0
    while not job.done:
        known += len(await job.after(known, 60))
    return [event for event in job.events if event["kind"] != "stderr"][-1]


async def up(host: Host, server: str) -> None:
    """Wait until a server is up."""
    await until(host, server, "up")


async def until(host: Host, server: str, state: str) -> None:
    """Wait until a server is in a state."""
    reached = asyncio.Event()
    end = host.listen(
        lambda _: (
            reached.set()
            if server in host.hub.servers and host.hub.servers[server].state == state
            else None
        )
    )
    try:
        if server not in host.hub.servers or host.hub.servers[server].state != state:
            await asyncio.wait_for(reached.wait(), 60)
    finally:
        end()


@asynccontextmanager
async def set_up_page(
    chromium: Any, *configs: Path, local: Sequence[LocalServer] = ()
) -> AsyncIterator[tuple[Stage, Host, HostSetup]]:
    """The same, with its page in a browser. The user is the page.

    Args:
        chromium: The browser.
        configs: The configuration files.
        local: Where model servers of this machine are looked for.
    """
    async with set_up(*configs, opened=False) as (host, setup, _):
        setup.models.local_servers = tuple(local)
        ready: asyncio.Future[HostSite] = asyncio.get_running_loop().create_future()
        work = asyncio.create_task(serve(host, on_ready=ready.set_result, setup=setup))
        either: list[asyncio.Future[Any]] = [work, ready]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            await work
        opening = asyncio.create_task(host.open())  # a question may be open meanwhile
        stage = Stage(host, ready.result(), {}, chromium)
        try:
            yield stage, host, setup
        finally:
            await stage.aclose()
            for task in (work, opening):
                task.cancel()
            await asyncio.gather(work, opening, return_exceptions=True)
    assert stage.troubles == []
