"""Deleting a conversation: nothing of it is left in the files, and the chain stays whole."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.types import CallToolResult, SamplingMessage, TextContent
from interlock_apps.fleet.events import (
    AnyEvent,
    CallEnded,
    Notice,
    PersonSaid,
    SessionBegan,
    SessionDeleted,
)
from interlock_apps.fleet.log import BodyLimits, LogError, SqliteLog, Tampered, erasing, tables

SMALL = BodyLimits(inline=1000)
NEEDLE = "xylophone"


def said(session: str, text: str) -> PersonSaid:
    return PersonSaid(
        session=session, messages=(SamplingMessage(role="user", content=TextContent(text=text)),)
    )


def ended(session: str, text: str) -> CallEnded:
    return CallEnded(
        session=session, call="c", result=CallToolResult(content=[TextContent(text=text)])
    )


def talk(session: str, word: str = NEEDLE) -> list[AnyEvent]:
    """A conversation with a word in its title, in a message and in a large result."""
    return [
        SessionBegan(session=session, title=f"About {word}", model="m"),
        said(session, f"Buy a {word}."),
        ended(session, f"{word} {session} " * 500),
    ]


async def opened(path: Path, limits: BodyLimits = SMALL) -> SqliteLog:
    log = SqliteLog(path, bodies=limits)
    await log.open()
    return log


def bytes_of(path: Path) -> bytes:
    """All bytes of the log: its file, those beside it, and its bodies as they are stored."""
    return b"".join(file.read_bytes() for file in path.parent.rglob("*") if file.is_file())


async def test_nothing_is_left_of_it(tmp_path: Path) -> None:
    """No word, neither in the pages of the file nor in the index, and no large body but those that
    another conversation has too.
    """
    path = tmp_path / "log.db"
    log = await opened(path)
    for event in (*talk("a"), *talk("b", "trumpet"), ended("a", "shared " * 900)):
        log.note(event)
    log.note(ended("b", "shared " * 900))
    anchor = await log.anchor()
    folder = path.with_name("log.db.bodies")
    assert len(list(folder.iterdir())) == 3
    assert NEEDLE.encode() in bytes_of(path)
    deletion = (await log.delete("a")).event
    assert deletion == SessionDeleted(conversation="a", entries=4)
    assert NEEDLE.encode() not in bytes_of(path)
    assert len(list(folder.iterdir())) == 2
    assert await log.search(NEEDLE) == []
    assert len(await log.search("trumpet")) == 3
    assert await log.verify([anchor, await log.anchor()]) == 9
    assert await log.erased() == 4
    await log.aclose()
    log = await opened(path)
    assert NEEDLE.encode() not in bytes_of(path)
    assert [row.id for row in await log.sessions()] == ["b"]
    assert await log.verify([anchor]) == 9
    await log.aclose()


async def test_words_of_a_dropped_body_leave_the_index(tmp_path: Path) -> None:
    """They are no longer known when the conversation is deleted; the index is made again."""
    log = await opened(tmp_path / "log.db", BodyLimits(inline=1000, total=0))
    for event in (*talk("a"), *talk("b", "trumpet")):
        log.note(event)
    await log.flush()
    log.note(Notice(level="info", words="one more"))
    await log.flush()
    assert not list((tmp_path / "log.db.bodies").iterdir())
    assert len(await log.search(NEEDLE)) == 3
    await log.delete("a")
    assert await log.search(NEEDLE) == []
    assert len(await log.search("trumpet")) == 3
    assert len(await log.search("more")) == 1
    await log.aclose()


async def test_an_interrupted_deletion_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry is written first; whoever opens the log next erases."""
    path = tmp_path / "log.db"
    log = await opened(path)
    for event in talk("a"):
        log.note(event)
    with monkeypatch.context() as patch:

        def dies(*_: object) -> None:
            raise sqlite3.OperationalError("disk I/O error")

        patch.setattr(erasing, "erase", dies)
        with pytest.raises(LogError):
            await log.delete("a")
    assert len(await log.read("a")) == 3
    await log.aclose()
    log = await opened(path)
    assert await log.read("a") == []
    assert await log.verify() == 4
    await log.aclose()
    assert NEEDLE.encode() not in bytes_of(path)


@pytest.mark.parametrize("of_version_1", [False, True])
async def test_a_deletion_hides_no_other_change(tmp_path: Path, of_version_1: bool) -> None:
    """An entry beside erased ones that somebody alters is found, also in a log of version 1, whose
    erased contents were in the chain.
    """
    path = tmp_path / "log.db"
    session = "s1" if of_version_1 else "s"
    if of_version_1:
        packed = Path(__file__).with_name("version-1.db.gz").read_bytes()
        path.write_bytes(gzip.decompress(packed))
    log = await opened(path)
    if not of_version_1:
        log.note(Notice(level="info", words="before"))
        for event in talk(session):
            log.note(event)
        log.note(Notice(level="info", words="after"))
    entries = len(await log.read())
    erased = len(await log.read(session))
    assert erased
    await log.delete(session)
    assert await log.verify() == entries + 1
    assert await log.erased() == erased
    assert await log.read(session) == []
    await log.aclose()
    with closing(sqlite3.connect(path)) as db:
        places = db.execute(
            "SELECT place FROM entries WHERE session = '' ORDER BY place"
        ).fetchall()
    for (place,) in places[:-1]:
        copy = tmp_path / f"{place}.db"
        copy.write_bytes(path.read_bytes())
        with closing(sqlite3.connect(copy)) as db:
            # With the digest that the altered entry would have: only what follows can tell.
            db.execute("DROP TRIGGER entries_are")
            ((data,),) = db.execute("SELECT data FROM entries WHERE place = ?", (place,)).fetchall()
            before = db.execute(
                "SELECT digest FROM entries WHERE place = ?", (place - 1,)
            ).fetchall()
            altered = data.replace(b'"words":"', b'"words":"not ')
            digest = tables.digest(before[0][0] if before else b"\0" * 32, altered)
            db.execute(
                "UPDATE entries SET data = ?, digest = ? WHERE place = ?", (altered, digest, place)
            )
            db.commit()
        log = await opened(copy)
        with pytest.raises(Tampered):
            await log.verify()
        await log.aclose()


@settings(max_examples=15)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=12))
async def test_any_order_of_writing_and_deleting(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, bool]]
) -> None:
    """Also of a conversation that somebody goes on writing after it was deleted."""
    log = await opened(tmp_path_factory.mktemp("log") / "log.db")
    kept: dict[str, int] = {}
    total = 0
    for number, (session, deletes) in enumerate(steps):
        total += 1
        if not deletes:
            log.note(said(session, f"number {number}"))
            kept[session] = kept.get(session, 0) + 1
        elif kept.pop(session, 0):
            await log.delete(session)
        else:
            total -= 1
            with pytest.raises(LogError):
                await log.delete(session)
    assert {s: len(await log.read(s)) for s in kept} == kept
    assert await log.verify() == total
    await log.aclose()
