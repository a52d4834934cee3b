"""One cell of the matrix after the other; every message of every test is held against the official
schema of its revision."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.wired.cells import PLACES, Cell
from tests.wired.official import AT_HAND


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=PLACES, ids=str)
async def whole_cell(request: pytest.FixtureRequest) -> AsyncIterator[Cell]:
    """A cell that lives until the next one's turn."""
    cell = Cell(request.param)
    await cell.client.open()
    yield cell
    await cell.aclose()


@pytest_asyncio.fixture(loop_scope="session")
async def cell(whole_cell: Cell) -> AsyncIterator[Cell]:
    """A cell for one test, whose messages are judged at its end."""
    yield whole_cell
    if problems := whole_cell.problems():
        pytest.fail("not as the official schema has it:\n" + "\n".join(problems), pytrace=False)


def pytest_report_header() -> str:
    """Say whether the judges are there."""
    if AT_HAND:
        return "wired matrix: official schemas judge every message"
    return "wired matrix: official schemas are not beside this repository, so they do not judge"
