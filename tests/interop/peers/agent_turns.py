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
        seen = await run(client, CALLS, report)
        running = asyncio.Event()
        task = asyncio.ensure_future(
            run(client, [("wait", {})], lambda tool, params: running.set())
        )
        await running.wait()
        task.cancel()
        await asyncio.wait({task})
        cancelled = 0
        async with asyncio.timeout(PATIENCE):
            while not cancelled:  # the cancellation is on its way
                cancelled = (await client.call_tool("cancellations")).value()
    return {
        "seen": seen,
        "reported": reported,
        "cancelled": [task.cancelled(), cancelled],
    }


def explore(run: Run) -> None:
    """Run the calls and a cancellation, and print what was found."""
    print(json.dumps(asyncio.run(_explore(run))))
