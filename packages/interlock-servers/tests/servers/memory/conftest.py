"""A graph in a file of its own, a server over it and a client with a person who agrees, for the
tests of the memory server.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock import Server
from interlock_servers.memory import Graph, MemoryLimits, memory_server

QUICK = MemoryLimits(sync=False, polling=0.02)


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests has named no file and no folder."""
    for name in ("INTERLOCK_MEMORY_DB", "INTERLOCK_MEMORY_IMPORTS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the graph is."""
    return tmp_path / "memory" / "graph.db"


@pytest.fixture
def server(path: Path) -> Server:
    """A server over it."""
    return memory_server(path, QUICK)


@pytest.fixture
def graph(path: Path) -> Iterator[Graph]:
    """The graph, without a server."""
    made = Graph(path, QUICK)
    yield made
    made.close()
