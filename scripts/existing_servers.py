"""Runs the existing reference servers, and writes the names of their tools, arguments, prompts and
resources.

    python scripts/existing_servers.py -o packages/interlock-servers/tests/servers/existing.json

None of their text is kept. `docs/guide/reference.md` compares them with ours, tool by tool; the
tests check that the page omits no tool.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from interlock import Client, McpError, Stdio
from scripts import peers

Offer = dict[str, Any]

SECONDS = 60.0  # for a server to start
NPM = {
    "everything": "mcp-server-everything",
    "filesystem": "mcp-server-filesystem",
    "memory": "mcp-server-memory",
    "postgres": "mcp-server-postgres",
    "sequentialthinking": "mcp-server-sequential-thinking",
}
PYTHON = {"fetch": "servers", "git": "servers", "time": "servers", "sqlite": "servers-archived"}
"""The lock of each server that is written in Python."""


def command(name: str, folder: Path) -> list[str]:
    """Return the command of an existing server over stdio, with its data in a folder.

    Installs it first. Raises NotInstalled.
    """
    options: dict[str, Sequence[str]] = {
        "filesystem": [str(folder)],
        "git": ["--repository", str(folder)],
        "sqlite": ["--db-path", str(folder / "existing.db")],
        "postgres": ["postgresql://127.0.0.1:9/none"],  # contacted only when it is called
    }
    if name in PYTHON:
        # Not its script: that contains the path of the temporary folder in which the environment
        # was created.
        start = f"from mcp_server_{name} import main; main()"
        return [str(peers.INSTALLERS[PYTHON[name]]()), "-c", start, *options.get(name, ())]
    script = peers.INSTALLERS["servers-npm"]() / "node_modules" / ".bin" / NPM[name]
    return [str(peers.node()), str(script), *options.get(name, ())]


def environment(name: str, folder: Path) -> dict[str, str]:
    """The environment variables of an existing server that keeps its data in a folder."""
    if name == "fetch":
        return {
            "PATH": str(folder)
        }  # if it found npm, it would install packages outside our locks for its first page
    graph = {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")} if name == "memory" else {}
    return {"PATH": os.environ["PATH"], **graph}


def started(name: str, folder: Path, *options: str) -> Stdio:
    """The transport to an existing server that keeps its data in a folder.

    Raises NotInstalled.
    """
    return Stdio([*command(name, folder), *options], env=environment(name, folder))


async def offer(name: str, folder: Path) -> Offer:
    """The names of an existing server's features. Raises NotInstalled, McpError and
    TimeoutError."""
    # Some tools are listed only for clients that accept questions; no question is answered.
    able: dict[str, Any] = (
        {"elicit": _nobody, "sample": _nobody, "roots": [folder.as_uri()]}
        if name == "everything"
        else {}
    )
    async with asyncio.timeout(SECONDS), Client(started(name, folder), **able) as client:
        tools = {
            tool.name: {
                "arguments": sorted((tool.input_schema or {}).get("properties", {})),
                "required": sorted((tool.input_schema or {}).get("required", [])),
                "structured": tool.output_schema is not None,
            }
            for tool in await client.list_tools()
        }
        return {
            "revision": client.revision,
            "tools": tools,
            "prompts": sorted(prompt.name for prompt in await _listed(client.list_prompts)),
            "resources": len(await _listed(client.list_resources)),
            "templates": sorted(
                one.uri_template for one in await _listed(client.list_resource_templates)
            ),
        }


def _nobody(question: Any) -> None:
    """Answer nothing."""


async def _listed(ask: Callable[[], Awaitable[Sequence[Any]]]) -> Sequence[Any]:
    """A list, empty if the server does not support the method."""
    try:
        return await ask()
    except McpError:
        return []


async def offers() -> dict[str, Offer]:
    """The features of all existing servers."""
    found = {}
    for name in sorted([*NPM, *PYTHON]):
        with tempfile.TemporaryDirectory() as folder:
            if name == "git":
                peers.run(["git", "init", "--quiet", folder])
            found[name] = await offer(name, Path(folder))
    return found


def main(arguments: Sequence[str]) -> int:
    """Write the facts; return 0."""
    parser = argparse.ArgumentParser(
        description="Write what the reference servers of others offer."
    )
    parser.add_argument("-o", "--output", type=Path, required=True, help="the file to be written")
    given = parser.parse_args(arguments)
    given.output.write_text(json.dumps(asyncio.run(offers()), indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
