"""A real PostgreSQL for a run of the tests, and a database with a reader and an owner in it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from interlock_servers.database.postgres.pool import ANY_ROLE
from tests.servers.database.cluster import Cluster, running
from tests.servers.database.postgres.scratch_database import ScratchDatabase, scratch_database_of


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests has configured nothing for PostgreSQL."""
    for name in (
        "PGHOST",
        "PGPORT",
        "PGUSER",
        "PGDATABASE",
        "PGPASSWORD",
        "PGSERVICE",
        "PGSSLMODE",
        ANY_ROLE,
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The server."""
    with running() as found:
        yield found


@pytest.fixture(scope="session")
def database(cluster: Cluster) -> Iterator[ScratchDatabase]:
    """The database, which is the same for all tests of a process: what they change they make
    themselves.
    """
    with scratch_database_of(cluster) as made:
        yield made


@pytest.fixture
async def scratch(database: ScratchDatabase) -> AsyncIterator[ScratchDatabase]:
    """The same, with its superuser there to look into it."""
    await database.open()
    yield database
    await database.close()


@pytest.fixture
def loot() -> Iterator[Path]:
    """An empty folder in which every user of the machine may write."""
    folder = Path(tempfile.mkdtemp(prefix="illoot-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)
