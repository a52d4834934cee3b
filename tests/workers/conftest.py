"""The clusters that the worker tests share: three workers over Redis, and three over SQLite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.workers.clusters import Cluster, cluster

STORES = ("redis", "sqlite")


@pytest.fixture(scope="session", params=STORES)
def workers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, redis_url: str) -> Iterator[Cluster]:
    """Three workers behind a balancer, for all tests that break nothing."""
    folder = tmp_path_factory.mktemp(request.param)
    store = f"{redis_url}/1" if request.param == "redis" else f"sqlite://{folder}/store.db"
    with cluster(folder, 3, store=store, legacy_sse=True) as made:
        yield made


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path, redis_url: str) -> str:
    """A place for a cluster of one's own."""
    return f"{redis_url}/2" if request.param == "redis" else f"sqlite://{tmp_path}/store.db"
