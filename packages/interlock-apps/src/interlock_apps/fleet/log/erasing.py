"""Erases the content of deleted conversations in the log's file.

An entry `sessionDeleted` of the chain records each deletion, so that nobody can erase unnoticed. It
is written first: a deletion that was interrupted is completed when the log is opened.

The entries of a log that an earlier version wrote have their content in the chain itself. Once it
is erased, the links before and after such an entry can no longer be computed, so the entry of the
deletion has a digest of them.
"""

from __future__ import annotations

import hashlib
import sqlite3
from typing import Any

from ..events import SessionDeleted
from . import records
from .large_bodies import MARK, BodyStore, references_of
from .tables import DATA, READABLE, SOURCE, text_of_entry, unfile_words

DELETED = records.kind_of_type(SessionDeleted)


def links_of(db: sqlite3.Connection, session: str) -> tuple[int, str]:
    """How many entries of a conversation can be erased, and the digest of the links of those that
    have their content in the chain; "" for none.
    """
    ((count,),) = db.execute(
        f"SELECT COUNT(*) FROM {SOURCE} WHERE session = ? AND {READABLE}", (session,)
    ).fetchall()
    links = hashlib.sha256()
    chained = db.execute(
        "SELECT coalesce(before.digest, zeroblob(32)), entries.digest FROM entries LEFT JOIN "
        "contents ON contents.place = entries.place LEFT JOIN entries AS before ON before.place = "
        "entries.place - 1 WHERE entries.session = ? AND contents.place IS NULL ORDER BY "
        "entries.place",
        (session,),
    ).fetchall()
    for before, digest in chained:
        links.update(before + digest)
    return count, links.hexdigest() if chained else ""


def erase(
    db: sqlite3.Connection, bodies: BodyStore, session: str, before: int, worded: bool
) -> None:
    """Erase the content of a conversation's entries before a place: the texts, their words in the
    index, and their large bodies, unless other entries have the same.
    """
    rows: list[tuple[int, bytes]] = db.execute(
        f"SELECT entries.place, {DATA} FROM {SOURCE} WHERE session = ? AND entries.place < ? AND "
        f"{READABLE}",
        (session, before),
    ).fetchall()
    if not rows:
        return
    if worded:
        _unfile(db, bodies, rows)
    for place, _ in rows:
        if not db.execute(
            "UPDATE contents SET salt = NULL, data = NULL WHERE place = ?", (place,)
        ).rowcount:
            db.execute("UPDATE entries SET data = x'' WHERE place = ?", (place,))
    gone = {each.sha256 for _, data in rows for each in references_of(data)}
    if gone:
        for (data,) in db.execute(
            f"SELECT {DATA} FROM {SOURCE} WHERE {READABLE} AND instr({DATA}, ?)", (MARK,)
        ):
            gone -= {each.sha256 for each in references_of(data)}
        bodies.remove(gone)


def complete(db: sqlite3.Connection, bodies: BodyStore, worded: bool) -> None:
    """Complete the deletions that were recorded, and interrupted."""
    recorded = db.execute("SELECT place, data FROM entries WHERE kind = ?", (DELETED,)).fetchall()
    for place, data in recorded:
        event = records.show(data).event
        if isinstance(event, SessionDeleted):
            erase(db, bodies, event.conversation, place, worded)


def _unfile(db: sqlite3.Connection, bodies: BodyStore, rows: list[tuple[int, bytes]]) -> None:
    if any(bodies.has_dropped(db, data) for _, data in rows):
        # The words of a dropped body are in the index, and no longer known: it is made again.
        db.execute("INSERT INTO words (words) VALUES ('delete-all')")
        return
    for place, data in rows:
        unfile_words(db, place, text_of_entry(bodies.whole(db, data)))
    # Without this, the words would stay in the older segments of the index.
    db.execute("INSERT INTO words (words) VALUES ('optimize')")


class DeletionCheck:
    """Checks that each erased content belongs to a conversation that an entry says was deleted."""

    def __init__(self) -> None:
        self._lost: dict[str, tuple[int, int]] = {}  # the first such entry, not yet explained
        self._links: dict[str, Any] = {}

    def see_erased(self, session: str, place: int, seq: int, link: bytes = b"") -> None:
        """Process an entry without its content; `link`: the digests before it and of it, if its
        content was in the chain.
        """
        self._lost.setdefault(session, (place, seq))
        if link:
            self._links.setdefault(session, hashlib.sha256()).update(link)

    def explain(self, data: bytes) -> bool:
        """Process the entry of a deletion; False if its links are not those that were seen."""
        event = records.show(data).event
        if not isinstance(event, SessionDeleted):
            return False
        self._lost.pop(event.conversation, None)
        links = self._links.get(event.conversation)
        return links is None or links.hexdigest() == event.links

    def unexplained(self) -> tuple[int, int] | None:
        """The place and the number of the first entry whose content nobody said was erased."""
        return min(self._lost.values(), default=None)
