"""Servers that the probe breaks: a host finds out once, and remembers it from start to start."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock.configs import Entry
from interlock.types import Implementation
from interlock_apps.fleet.hub import KnownRevisions
from interlock_apps.fleet.hub.known_revisions import MOST_SECONDS
from tests.fleet.hub.keeping import kept
from tests.transport.programs import BROKEN_BY_THE_PROBE, DISCOVERED, old_server, starts

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="watches processes through /proc, which only Linux has"
)
SWALLOWS = BROKEN_BY_THE_PROBE["it dies"]


def entry_of(folder: Path, **program: Any) -> Entry:
    """A server that the probe kills, unless it is told otherwise."""
    return Entry(id="old", command=tuple(old_server(folder, **(SWALLOWS | program))))


async def started(entry: Entry, path: Path, **options: Any) -> str:
    """Start the server in a host of its own; the revision that is spoken."""
    async with kept(entry, revisions=KnownRevisions(path, **options)) as one:
        assert one["old"].state == "up", one["old"].words
        return one["old"].revision


async def test_a_server_that_the_probe_breaks_is_started_twice_once_and_then_once_each_time(
    tmp_path: Path,
) -> None:
    """The host has written down what it found (`ERA-13`, `ERA-14`), for the person alone."""
    path = tmp_path / "revisions.json"
    entry = entry_of(tmp_path)
    for count in (2, 3, 4):
        assert await started(entry, path) == "2024-11-05"
        assert len(starts(tmp_path)) == count
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


async def test_a_server_that_ends_and_is_started_again_is_not_probed_again(tmp_path: Path) -> None:
    """Within one host, too (`ERA-13`)."""
    async with kept(entry_of(tmp_path)) as one:
        await one.hub.restart("old")
        await one.received.state("old", "up", 2)
        assert len(starts(tmp_path)) == 3


async def test_another_command_is_another_server(tmp_path: Path) -> None:
    """What was found out is kept by what is started, not by the name."""
    path = tmp_path / "revisions.json"
    entry = entry_of(tmp_path)
    await started(entry, path)
    other = Entry(id="old", command=(*entry.command, "--verbose"))
    await started(other, path)
    assert len(starts(tmp_path)) == 4


async def test_a_server_that_has_become_a_newer_one_is_opened_and_the_verdict_forgotten(
    tmp_path: Path,
) -> None:
    """2026-07-28 only: it refuses `initialize`, or dies of it (`ERA-14`)."""
    path = tmp_path / "revisions.json"
    for initialize in ("fail()", "sys.exit('initialize?')"):
        await started(entry_of(tmp_path), path)
        entry = entry_of(tmp_path, probe=DISCOVERED, initialize=initialize)
        assert await started(entry, path) == "2026-07-28"
        assert KnownRevisions(path).of(entry) is None


async def test_another_version_of_a_server_is_probed_at_its_next_start(tmp_path: Path) -> None:
    """It still speaks the older revision, but may speak the newer one too."""
    path = tmp_path / "revisions.json"
    await started(entry_of(tmp_path), path)
    entry = entry_of(tmp_path, probe=DISCOVERED, version="2")
    assert await started(entry, path) == "2024-11-05"
    assert await started(entry, path) == "2026-07-28"


async def test_a_verdict_is_not_for_ever(tmp_path: Path) -> None:
    """After 30 days the server is probed again."""
    path = tmp_path / "revisions.json"
    entry = entry_of(tmp_path)
    now = 1_000_000.0
    await started(entry, path, clock=lambda: now)
    assert KnownRevisions(path, clock=lambda: now + MOST_SECONDS - 1).of(entry) is not None
    assert KnownRevisions(path, clock=lambda: now + MOST_SECONDS).of(entry) is None
    assert KnownRevisions(path, clock=lambda: now - 1).of(entry) is None  # the clock was wrong then


async def test_a_start_that_fails_forgets_the_verdict(tmp_path: Path) -> None:
    """Whatever was remembered may be why."""
    path = tmp_path / "revisions.json"
    await started(entry_of(tmp_path), path)
    entry = entry_of(tmp_path, before="sys.exit('no disk')")
    async with kept(entry, revisions=KnownRevisions(path)) as one:
        assert one["old"].state == "down"
    assert KnownRevisions(path).of(entry) is None


@pytest.mark.parametrize("content", ["", "{", "[]", '{"x": {"revision": 5}}', '{"x": {}}'])
async def test_a_file_that_cannot_be_read_counts_as_empty(content: str, tmp_path: Path) -> None:
    """It is only a memory, and is written anew."""
    path = tmp_path / "revisions.json"
    entry = entry_of(tmp_path)
    path.write_text(content)
    await started(entry, path)
    found = KnownRevisions(path).of(entry)
    assert found is not None
    assert (found.revision, found.why, found.server) == ("2024-11-05", "probe", "old 1")


async def test_a_folder_that_cannot_be_written_to_stops_nothing(tmp_path: Path) -> None:
    """It is known until the end of this host then."""
    entry = entry_of(tmp_path)
    assert await started(entry, tmp_path / "nowhere" / "revisions.json") == "2024-11-05"


async def test_two_hosts_write_one_file(tmp_path: Path) -> None:
    """Neither loses what the other one has found."""
    path = tmp_path / "revisions.json"
    one = KnownRevisions(path)
    other = KnownRevisions(path)
    entries = [Entry(id=name, command=(name,)) for name in ("a", "b")]
    info = Implementation(name="s", version="1")
    for verdicts, entry in zip((one, other), entries, strict=True):
        await verdicts.learn(entry, "2024-11-05", "probe", info)
    assert all(KnownRevisions(path).of(entry) for entry in entries)
    await one.forget(entries[0])
    assert [KnownRevisions(path).of(entry) is not None for entry in entries] == [False, True]


async def test_an_entry_that_names_a_revision_is_opened_with_it_at_once(tmp_path: Path) -> None:
    """Nothing has to be found out, and nothing is tried besides."""
    command = tuple(old_server(tmp_path, **SWALLOWS))
    entry = Entry(id="old", command=command, revision="2024-11-05")
    async with kept(entry) as one:
        assert (one["old"].revision, len(starts(tmp_path))) == ("2024-11-05", 1)
    entry = Entry(id="old", command=command, revision="2025-11-25")
    async with kept(entry) as one:
        assert one["old"].state == "down"
        assert "allowed here are 2025-11-25" in one["old"].words
