"""Memory server: a knowledge graph of entities, observations and relations, with undo.

`interlock serve memory [FILE]` runs it. Without an argument INTERLOCK_MEMORY_DB names the file; the
default is in the user's data folder. Several processes may use one file at the same time. `python
-m interlock_servers.memory import FILE` imports the file of another memory server, and `export`
writes one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from interlock import QuestionSettings, Server, ServerInfo, settings_of

from .graph import Graph
from .limits import PREFIX, MemoryLimits
from .read_tools import add_looking
from .resources import add_resources
from .schema import VARIABLE
from .watch import HistoryWatcher
from .write_tools import add_changing, uris_of

__all__ = ["IMPORTS", "VARIABLE", "Graph", "MemoryLimits", "memory_server", "server", "server_of"]

IMPORTS = "INTERLOCK_MEMORY_IMPORTS"
"""Names the folder from which a model may import files by name; by default there is none."""
INSTRUCTIONS = (
    "This is the memory of earlier conversations. Call search_nodes before you answer a "
    "question that it may cover,and before you create an entity, which may already exist "
    "under another name. Put one fact in each observation, and name relations as verbs: "
    "Ada works_at Acme. Nothing is lost: each change has a number, and undo reverts it."
)


def memory_server(
    path: str | os.PathLike[str] | None = None,
    limits: MemoryLimits | None = None,
    *,
    imports: str | os.PathLike[str] | None = None,
    suspend: bool = True,
) -> Server:
    """Return a server for the graph in the file at `path`; by default the environment's or the
    user's file.

    `imports` is the folder that import_graph may read, by default the environment's; `suspend` is
    as for Server. Nothing is opened before the first call.
    """

    @asynccontextmanager
    async def lifespan(made: Server) -> AsyncIterator[Graph]:
        graph = Graph(Path(path) if path is not None else None, limits)
        graph.imports = (
            Path(imports or os.environ[IMPORTS]) if imports or os.environ.get(IMPORTS) else None
        )
        watcher = HistoryWatcher(made, graph, uris_of)
        graph.watcher = watcher
        try:
            async with watcher.running():
                yield graph
        finally:
            await asyncio.to_thread(graph.close)

    made = Server(
        "memory",
        "1.0.0",
        info=ServerInfo(
            title="Memory", description="A knowledge graph that remembers earlier conversations."
        ),
        instructions=INSTRUCTIONS,
        lifespan=lifespan,
        questions=QuestionSettings(suspend=suspend),
    )
    add_looking(made)
    add_changing(made)
    add_resources(made)
    return made


def server_of(*arguments: str) -> Server:
    """Return the server for the file on the command line, else for the environment's or the user's
    file.

    Raises ValueError or OSError.
    """
    if len(arguments) > 1:
        raise ValueError("One file is one graph: name one file, or none.")
    settings_of(MemoryLimits, PREFIX)
    if arguments and os.path.isdir(arguments[0]):
        raise IsADirectoryError(
            f"{arguments[0]} is a folder. Name a file; if it does not exist, it is created."
        )
    return memory_server(arguments[0] if arguments else None)


server = memory_server()
"""For the file of the environment, or the user's file."""
