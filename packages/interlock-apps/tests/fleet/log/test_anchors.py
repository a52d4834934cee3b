"""Anchors: the count and head of the log, kept where it is not, show that its end was cut off,
which the chain alone cannot.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from interlock_apps.fleet.events import Notice
from interlock_apps.fleet.log import Anchor, LogError, SqliteLog, Tampered, read_anchors


async def written(path: Path, count: int, anchor: Path | None = None, **options: int) -> SqliteLog:
    """A log with so many entries, written one by one and open."""
    log = SqliteLog(path, anchor=anchor, **options)
    await log.open()
    for number in range(count):
        log.note(Notice(level="info", words=f"entry {number}"))
        await log.flush()
    return log


def cut(path: Path, left: int) -> None:
    """What somebody does who knows the file: the end is removed, and all that would show it is put
    right.
    """
    with closing(sqlite3.connect(path)) as db:
        triggers = db.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall()
        for name, _ in triggers:
            db.execute(f"DROP TRIGGER {name}")
        db.execute("DELETE FROM entries WHERE place > ?", (left,))
        db.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'entries'", (left,))
        for _, sql in triggers:
            db.execute(sql)
        db.commit()


async def test_a_cut_tail_is_found_by_an_anchor(tmp_path: Path) -> None:
    """Without one the file passes; an anchor of the time before says how many are missing."""
    path = tmp_path / "log.db"
    log = await written(path, 20)
    early = await log.anchor()
    assert early.entries == 20
    for number in range(71):
        log.note(Notice(level="info", words=f"more {number}"))
    late = await log.anchor()
    assert await log.verify([late, early]) == 91
    await log.aclose()
    cut(path, 71)
    log = SqliteLog(path)
    await log.open()
    assert await log.verify() == 71
    assert await log.verify([early]) == 71
    with pytest.raises(Tampered, match="there were 91, and 71 are left"):
        await log.verify([early, late])
    await log.aclose()


async def test_a_tail_that_was_written_anew_is_found(tmp_path: Path) -> None:
    """As many entries, with a sound chain of their own."""
    log = await written(tmp_path / "log.db", 10)
    kept = await log.anchor()
    await log.aclose()
    cut(tmp_path / "log.db", 5)
    log = await written(tmp_path / "log.db", 7)
    assert await log.verify() == 12
    with pytest.raises(Tampered, match="The first 10 entries have changed"):
        await log.verify([kept])
    await log.aclose()


async def test_anchors_are_written_by_themselves(tmp_path: Path) -> None:
    """After each so many entries, and once more at the end; a log that is opened again goes on."""
    path = tmp_path / "log.db"
    anchors = tmp_path / "anchors.jsonl"
    for count in (25, 3, 0):
        await (await written(path, count, anchors, anchor_every=10)).aclose()
    found = read_anchors(anchors)
    assert [anchor.entries for anchor in found] == [10, 20, 25, 28]
    log = SqliteLog(path)
    await log.open()
    assert await log.verify(found) == 28
    await log.aclose()


async def test_anchors_that_cannot_be_written_are_told_once(tmp_path: Path) -> None:
    """The log goes on."""
    log = SqliteLog(tmp_path / "log.db", anchor=tmp_path / "away" / "anchors", anchor_every=1)
    told: list[str] = []
    log.publish = lambda notice: told.append(notice.words)
    await log.open()
    for number in range(3):
        log.note(Notice(level="info", words=f"entry {number}"))
        await log.flush()
    assert len(told) == 1
    assert "is not anchored" in told[0]
    assert "No such file" in told[0]
    assert await log.verify() == 3
    await log.aclose()


@pytest.mark.parametrize(
    "text, words",
    [("", "no anchor"), ("\n\n", "no anchor"), ("x\n", "Line 1"), ('{"entries": 1}\n', "Line 1")],
)
def test_files_that_are_no_anchors(tmp_path: Path, text: str, words: str) -> None:
    """Are refused with the reason: nobody shall think that a log was compared with something."""
    (tmp_path / "a").write_text(text)
    with pytest.raises(LogError, match=words):
        read_anchors(tmp_path / "a")
    with pytest.raises(LogError, match="cannot be read"):
        read_anchors(tmp_path / "nothing")


async def test_a_log_without_entries_can_be_anchored(tmp_path: Path) -> None:
    """Its head is the digest before the first."""
    log = await written(tmp_path / "log.db", 0)
    empty = await log.anchor()
    assert empty == Anchor(entries=0, head="00" * 32, at=empty.at)
    log.note(Notice(level="info", words="first"))
    assert await log.verify([empty]) == 1
    await log.aclose()
