"""The common part of the programs that run agents of other frameworks with tools of ours.

Called as `program.py TARGET`: TARGET is the JSON of `{"command": [...]}` or `{"url": ...}`, and the
last line of stdout is the JSON of what the program found.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from interlock import Client
from interlock.integrations import client_session

try:
    from mcp import ClientSession
    from mcp.types import PromptReference
except ImportError:  # the program has no use for `face`
    pass
else:
    GREET = PromptReference(type="ref/prompt", name="greet")

PATIENCE = 20
"""Seconds to wait for what must happen."""

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("add", {"a": 1, "b": 2}),
    ("weather", {"city": "Oslo"}),
    ("media", {}),
    ("fail", {}),
    ("ask_guest", {}),
    ("add", {"a": "one"}),
    ("count", {"to": 2}),
]
"""The calls that the scripted model makes in its first turn; then it says "done"."""

Progress = Callable[[str, Any], None]
Run = Callable[[Client, list[tuple[str, dict[str, Any]]], Progress], Awaitable[Any]]
"""Runs an agent whose model makes some calls; returns what the model then saw."""


async def _explore(run: Run) -> dict[str, Any]:
    target = json.loads(sys.argv[1])
    reported: list[Any] = []

    def report(tool: str, params: Any) -> None:
        reported.append([tool, params.progress, params.total, params.message])

    answer = {"name": "Ann", "age": 42}
    given = target.get("command") or target["url"]
    async with Client(given, elicit=lambda _: answer) as client:
        running = asyncio.Event()
        task = asyncio.ensure_future(
            run(client, [("wait", {})], lambda tool, params: running.set())
        )
        await running.wait()
        task.cancel()
        await asyncio.wait({task})
        async with asyncio.timeout(PATIENCE):
            while not (await client.call_tool("cancellations")).value():
                pass  # the cancellation is on its way
        seen = await run(client, CALLS, report)
    return {
        "seen": seen,
        "reported": reported,
        "cancelled": task.cancelled(),
    }


async def face(client: Client, error: type[Exception]) -> dict[str, Any]:
    """What callers of `mcp.ClientSession` see of a client; `error` is the error of the package."""
    reported: list[Any] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        reported.append([progress, total, message])

    async with client_session(client) as session:
        opened = plain(await session.initialize())
        await session.send_ping()
        counted = await session.call_tool("count", {"to": 1}, progress_callback=report)
        templates = plain(await session.list_resource_templates())
        completed = plain(await session.complete(GREET, {"name": "name", "value": "a"}))
        errors = []
        for name, seconds in (("nowhere", None), ("wait", 0.05)):
            try:
                await session.call_tool(name, {}, seconds)
            except error as bad:
                errors.append(bad.error.code)
        listed = [
            len(plain(found)[kind])
            for kind, found in (
                ("tools", await session.list_tools()),
                ("prompts", await session.list_prompts()),
                ("resources", await session.list_resources()),
            )
        ]
    return {
        "server": opened["serverInfo"]["name"],
        "is a session": isinstance(session, ClientSession),
        "counted": plain(counted)["content"][0]["text"],
        "reported": reported,
        "template": templates["resourceTemplates"][0]["uriTemplate"],
        "completed": completed["completion"]["values"],
        "errors": errors,
        "listed": listed,
    }


def plain(model: Any) -> Any:
    """The JSON of a type of the mcp package."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def explore(run: Run) -> None:
    """Run the calls and a cancellation, and print what was found."""
    print(json.dumps(asyncio.run(_explore(run))))
