"""A shop in a SQLite file of its own folder, and clients of servers over it, for the tests of the
database server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from interlock import Client
from interlock_servers.database import database_server
from tests.servers.database import shop as shops


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The file; nothing else is in its folder."""
    (tmp_path / "shop").mkdir()
    return shops.shop(tmp_path / "shop" / "shop.db")


@pytest.fixture
async def client(shop: Path) -> AsyncIterator[Client]:
    """A client of a server that only reads; it checks results against the output schemas."""
    async with Client(database_server([shop])) as opened:
        await opened.list_tools()
        yield opened


@pytest.fixture
async def writer(shop: Path) -> AsyncIterator[Client]:
    """A client of a server that may change the shop."""
    async with Client(database_server([shop], write=["shop"])) as opened:
        await opened.list_tools()
        yield opened
