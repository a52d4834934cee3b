"""Servers for the fault tests, gone after them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.web import Site

MakeSite = Callable[..., Site]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[MakeSite]:
    """Makes a server with options of its own; all are gone after the test."""
    made: list[Site] = []

    def make(**options: object) -> Site:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(Site(folder, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One server for all tests of a module that leave it as they found it."""
    one = Site(tmp_path_factory.mktemp("site"))
    yield one
    one.close()
