"""Assembles the database server: tools, resources, prompt and the watcher of schemas."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager

from interlock import Server, ServerInfo, ToolAnnotations

from .databases import Databases, given_of
from .limits import DatabaseLimits
from .read_tools import describe_tables, explain, list_databases, list_tables, query
from .resources import add_library
from .watch import SchemaWatcher
from .write_tools import execute

INSTRUCTIONS = (
    "list_databases lists the databases, list_tables and describe_tables show their contents. "
    "query runs one read-only statement. Pass values as parameters. Long results come in pages: "
    "call again with `cursor`."
)
_SLACK = 60.0  # seconds for a call in addition to its statements
_READS = (
    (list_databases, "Databases"),
    (list_tables, "Tables"),
    (describe_tables, "Describe tables"),
    (query, "Query"),
    (explain, "Explain a query"),
)


def database_server(
    targets: Sequence[str | os.PathLike[str]],
    *,
    write: bool | Collection[str] = False,
    limits: DatabaseLimits | None = None,
) -> Server:
    """Return a server for databases: files, `sqlite:///` or `postgresql://` URLs, each optionally
    with a name and `=` in front.

    `write` lists the databases that callers may change, or is True for all; only then there is a
    tool that writes. `limits` default to those of the environment. Nothing is opened before the
    first client connects. Raises ValueError for an invalid target.
    """
    databases = Databases(targets, write, limits)

    @asynccontextmanager
    async def lifespan(made: Server) -> AsyncIterator[Databases]:
        await databases.open()
        watcher = SchemaWatcher(made, databases)
        databases.announce_changes = watcher.look_now
        try:
            async with watcher.running():
                yield databases
        finally:
            await databases.close()

    made = Server(
        "database",
        "1.0.0",
        info=ServerInfo(title="Databases", description="Query databases and show their schemas."),
        instructions=INSTRUCTIONS,
        lifespan=lifespan,
    )
    seconds = databases.limits.seconds + _SLACK
    for tool, title in _READS:
        # SQL functions can read the clock and return random numbers, but cannot reach anything
        # outside.
        made.add_tool(
            tool,
            title=title,
            annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
            timeout=seconds,
        )
    if databases.writable:
        hints = ToolAnnotations(
            read_only_hint=False,
            destructive_hint=True,
            idempotent_hint=False,
            open_world_hint=False,
        )
        made.add_tool(execute, title="Change a database", annotations=hints, timeout=seconds)
    add_library(made, databases)
    return made


def server_of(*words: str) -> Server:
    """Return the server for command-line arguments, or for the databases of the environment.

    `--write=NAME` makes a database writable.

    Raises ValueError for an invalid target.
    """
    targets, write = given_of(words)
    return database_server(targets, write=write)
