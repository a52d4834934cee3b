"""The farm's table: its rows match the locks, and the guide matches the rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts import peers
from tests.architecture import locks
from tests.interop import farm
from tests.interop.farm import Peer

ROWS = {
    f"{role} {peer.name} {peer.version} {number}": peer
    for role, of in farm.ROLES.items()
    for number, peer in enumerate(of)
}


def locked(peer: Peer) -> str:
    """The version of a row's package in the lock that the row names."""
    if peer.lock in peers.NPM:
        folder, _, _ = peers.NPM[peer.lock]
        lock = Path(peers.INTEROP, folder, "package-lock.json").read_text(encoding="utf-8")
        version: str = json.loads(lock)["packages"][f"node_modules/{peer.package}"]["version"]
        return version
    return locks.pins(peers.ROOT / "requirements" / f"peers-{peer.lock}.txt")[peer.package]


@pytest.mark.parametrize("peer", ROWS.values(), ids=ROWS)
def test_a_row_names_the_version_that_is_installed(peer: Peer) -> None:
    """A new lock without a new version in the table fails here."""
    assert peer.lock in peers.INSTALLERS
    assert peer.version == locked(peer)


def test_no_two_rows_have_one_label() -> None:
    """The labels identify the results of a run."""
    labels = [row[-1] for row in farm.facts()]
    assert len(labels) == len(set(labels))


def test_every_row_says_how_it_is_started_over_each_transport() -> None:
    """A server's row has a command for each transport that it has a revision for."""
    for peer in farm.SERVERS:
        assert peer.start.keys() == peer.revisions.keys(), peer
        assert set(peer.aside) <= peer.revisions.keys(), peer


def test_the_guide_has_the_table() -> None:
    """`python -m tests.interop.farm --write` updates it."""
    assert farm.page_with(farm.markdown()) == farm.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "results, ending",
    [({}, "remark"), ({"server Python SDK 1.2.0 stdio": "ok"}, "result  remark")],
    ids=["without results", "with results"],
)
def test_the_table_is_printed(results: dict[str, str], ending: str) -> None:
    """One line for each row, with its result; a row that did not run says so."""
    lines = farm.table(results).splitlines()
    assert lines[0].split() == [*farm.HEADINGS[:-1], *ending.split()]
    assert len(lines) == 1 + len(farm.facts())
    assert ("did not run" in lines[-1]) == bool(results)
