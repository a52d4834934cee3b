"""Runs the reference servers of others, and writes what they offer: names of tools, their
arguments, prompts, resources.

    python scripts/existing_servers.py -o packages/interlock-servers/tests/servers/existing.json

Not a sentence of theirs is kept. `docs/guide/reference.md` compares them with ours, tool by tool;
the tests see that it leaves none out.
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

SECONDS = 60.0  # for a server to begin
NPM = {
    "everything": "mcp-server-everything",
    "filesystem": "mcp-server-filesystem",
    "memory": "mcp-server-memory",
    "postgres": "mcp-server-postgres",
    "sequentialthinking": "mcp-server-sequential-thinking",
}
PYTHON = {"fetch": "servers", "git": "servers", "time": "servers", "sqlite": "servers-archived"}
"""In which of our locks each of those is that are written in Python."""


def command(name: str, folder: Path) -> list[str]:
    """What starts a server of others over stdio, with its data in a folder.

    Installs it first. Raises NotInstalled.
    """
    options: dict[str, Sequence[str]] = {
        "filesystem": [str(folder)],
        "git": ["--repository", str(folder)],
        "sqlite": ["--db-path", str(folder / "existing.db")],
        "postgres": ["postgresql://127.0.0.1:9/none"],  # which it asks only when it is called
    }
    if name in PYTHON:
        # Not its script: that has the path of the workshop in which the environment was made.
        start = f"from mcp_server_{name} import main; main()"
        return [str(peers.INSTALLERS[PYTHON[name]]()), "-c", start, *options.get(name, ())]
    script = peers.INSTALLERS["servers-npm"]() / "node_modules" / ".bin" / NPM[name]
    return [str(peers.node()), str(script), *options.get(name, ())]


def environment(name: str, folder: Path) -> dict[str, str]:
    """The environment of a server of others that keeps its data in a folder."""
    if name == "fetch":
        return {
            "PATH": str(folder)
        }  # where it found npm, it would install what no lock of ours names, at its first page
    graph = {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")} if name == "memory" else {}
    return {"PATH": os.environ["PATH"], **graph}


def started(name: str, folder: Path, *options: str) -> Stdio:
    """How a client reaches a server of others that keeps its data in a folder.

    Raises NotInstalled.
    """
    return Stdio([*command(name, folder), *options], env=environment(name, folder))


async def offer(name: str, folder: Path) -> Offer:
    """What a server of others offers, in names. Raises NotInstalled, McpError and TimeoutError."""
    # Some tools are there only for those who can be asked; nobody is.
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
    """A list, empty where the server does not know the method."""
    try:
        return await ask()
    except McpError:
        return []


async def offers() -> dict[str, Offer]:
    """What all of them offer."""
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
