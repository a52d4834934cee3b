"""The log in a SQLite file: written by its own thread, append-only, shared by several hosts."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from interlock.redaction import Redact
from interlock.store import SqliteError, StoreError, Writer

from ..events import AnyEvent, LogEntry, Notice, SessionDeleted
from . import erasing, queries, records, tables
from .anchors import EVERY, Anchor, write_anchor
from .export import line
from .interface import LogError, SessionRow, Tampered, no_conversation
from .large_bodies import BodyLimits, BodyStore, remove
from .memory import ignore_notice
from .query import wanted

T = TypeVar("T")

RUN = 1_000_000_000  # entry numbers reserved for each opening of the file

_BATCH = 500  # entries in one transaction
_BATCH_BYTES = 8 * 1024 * 1024
_PAGE = 500  # entries read at a time
_MOST_WAITING = 64 * 1024 * 1024  # bytes queued while the file cannot be written
_DROPS = 3600.0  # seconds between two checks of the age of large bodies
_AGAIN = 2.0  # seconds before a failed write is retried


class SqliteLog:
    """Keeps entries in one SQLite file, with two more files beside it while it is open.

    A missing file is created, readable by its owner only. The log is append-only: the file refuses
    to change or delete entries. Each entry has the digest of all entries before it, so `verify`
    detects changes made by other means. `delete` erases the content of a conversation's entries;
    the entries themselves stay, and one more records the deletion.

    `redact` removes secrets from every text before it is written; the return value of `note` still
    contains them. Large texts and JSON values are stored as files in a folder beside the log, and
    the entry has their digest. They are dropped by age and by space (`bodies`). After each
    `anchor_every` entries an anchor is appended to the file `anchor`, for `verify`; keep that file
    on another machine or medium. Entry numbers increase while the file is open; each opening starts
    at another billion. `clock` gives seconds of the wall clock.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        redact: Redact | None = None,
        clock: Callable[[], float] = time.time,
        again: float = _AGAIN,
        bodies: BodyLimits = BodyLimits(),  # noqa: B008 - a frozen value
        anchor: str | os.PathLike[str] | None = None,
        anchor_every: int = EVERY,
    ) -> None:
        self.publish: Callable[[Notice], None] = ignore_notice
        self.path = Path(path).absolute()
        self._redact = redact
        self._clock = clock
        self._again = again
        self._writer = Writer(tables.log_file(self.path))
        self._anchor = Path(anchor).absolute() if anchor is not None else None
        self._anchor_every = anchor_every
        self._anchored = 0  # entry count at the last anchor
        self._anchor_fails = False
        self._bodies = BodyStore(self.path, bodies, clock)
        self._open = False
        self._worded = False
        self._last = 0
        # entries not yet written, oldest first
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._waiting_bytes = 0
        self._dropped = 0
        self._dropped_bodies_at = 0.0  # when the age of bodies was last checked
        self._bad = ""  # the reason of the last failed write
        self._task: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()  # held while writing: by the background task, or a flush

    async def open(self) -> None:
        """See Log."""
        if self._open:
            return
        try:
            await self._writer.open()
        except StoreError as bad:
            raise LogError(f"The log cannot be written: {bad}.") from None
        try:
            self._worded = await self._ask(tables.make_words)
            await self._ask(lambda db: erasing.complete(db, self._bodies, self._worded))
            await self._index()
            self._last = RUN * await self._ask(tables.next_run)
            self._anchored = await self._ask(tables.count)
            await self._drop_bodies()
        except BaseException:
            await self._writer.aclose()
            raise
        self._open = True

    def note(self, event: AnyEvent) -> LogEntry:
        """See Log. Before `open` and after `aclose` events are not kept."""
        at = self._clock()
        if not event.kept or not self._open:
            return LogEntry(seq=0, at=at, event=event)
        self._last += 1
        noted = LogEntry(seq=self._last, at=at, event=event)
        data = records.encode(noted)
        if self._waiting_bytes + len(data) > _MOST_WAITING and self._waiting:
            self._dropped += 1
            return LogEntry(seq=0, at=at, event=event)
        self._waiting.append((self._last, data))
        self._waiting_bytes += len(data)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._write(), name="interlock-log")
        return noted

    async def flush(self) -> None:
        """See Log."""
        self._must_be_open()
        if not await self._write_up_to(self._last):
            raise LogError(self._bad)

    async def aclose(self) -> None:
        """See Log. Entries that cannot be written are lost, and `publish` is told."""
        if not self._open:
            return
        try:
            await self.flush()
        except LogError as bad:
            self.publish(
                Notice(
                    level="error", words=f"{bad} The last {len(self._waiting):,} entries are lost."
                )
            )
        finally:
            if self._anchor is not None and await self._grown():
                await self._write_anchor(self._anchor)
            self._open = False
            task = self._task
            self._task = None
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
            await self._writer.aclose()

    async def read(
        self, session: str | None = None, after: int = 0, limit: int = 1000
    ) -> list[LogEntry]:
        """See Log."""
        place = await self._ask(lambda db: queries.place_of(db, after))
        return [records.show(data) for _, data in await self._page(session, place, limit)]

    async def search(
        self,
        words: str = "",
        *,
        session: str | None = None,
        server: str | None = None,
        kinds: Sequence[str] = (),
        since: float | None = None,
        until: float | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[LogEntry]:
        """See Log."""
        await self._settle()
        for_these = wanted(words, session, server, kinds, since, until)
        worded = self._worded
        place: int | None = None
        if before is not None:
            place = await self._ask(lambda db: queries.place_of(db, before - 1) + 1)
        found: list[bytes] = []
        while len(found) < limit:
            want = limit - len(found)
            page = await self._ask(
                partial(
                    queries.find,
                    bodies=self._bodies,
                    wanted=for_these,
                    before=place,
                    limit=want,
                    worded=worded,
                )
            )
            found += page.found
            if page.next is None:
                break
            place = page.next
        return [records.show(data) for data in found[:limit]]

    async def sessions(self) -> list[SessionRow]:
        """See Log."""
        await self._settle()
        return await self._ask(queries.sessions)

    async def delete(self, session: str) -> LogEntry:
        """See Log.

        The words are also removed from the search index, large bodies from their folder. Copies
        that a file system or a backup keeps are not reached.
        """
        await self.flush()
        count, links = await self._ask(lambda db: erasing.links_of(db, session))
        if not session or not count:
            raise no_conversation(session)
        noted = self.note(SessionDeleted(conversation=session, entries=count, links=links))
        await self.flush()
        await self._ask(
            lambda db: erasing.erase(
                db, self._bodies, session, queries.place_of(db, noted.seq), self._worded
            )
        )
        await self._index()
        # The write-ahead log still has the erased pages, until they are in the file.
        await asyncio.to_thread(self._checkpoint)
        return noted

    async def export(self, write: Callable[[bytes], None], session: str | None = None) -> int:
        """See Log."""
        count = place = 0
        while page := await self._page(session, place, _PAGE):
            for _, data in page:
                write(line(data))
            count += len(page)
            place = page[-1][0]
        return count

    async def anchor(self) -> Anchor:
        """The count and digest of all entries so far; keep them elsewhere for `verify`."""
        await self._settle()
        return await self._ask(self._made_anchor)

    async def verify(self, anchors: Sequence[Anchor] = ()) -> int:
        """Verify the whole file, and return the number of entries.

        Raises Tampered at the first altered entry.

        Without anchors, `verify` cannot detect that the last entries were removed or rewritten
        together with everything that counts them. With anchors, kept apart from the file, the first
        entries must be those that were anchored.
        """
        await self._settle()
        check = queries.ChainCheck(self._bodies)
        while await self._ask(lambda db: check.some(db, _PAGE)):
            pass
        await self._ask(check.end)
        if check.fault is not None:
            raise check.fault
        for each in sorted(anchors, key=lambda anchor: anchor.entries):
            digest = await self._ask(partial(tables.digest_at, place=each.entries))
            if digest is None:
                words = (
                    f"Entries are missing at the end: on {each.day} there were "
                    f"{each.entries:,}, and {check.count:,} are left."
                )
                raise Tampered(words, place=check.count + 1)
            if digest.hex() != each.head:
                words = f"The first {each.entries:,} entries have changed since {each.day}."
                raise Tampered(words, place=each.entries)
        return check.count

    async def erased(self) -> int:
        """The number of entries whose content was erased, because their conversation was
        deleted.
        """
        await self._settle()
        return await self._ask(queries.erased)

    async def dropped(self) -> dict[str, int]:
        """The number of dropped large bodies, by reason: "age" or "space"."""
        await self._settle()
        return await self._ask(queries.dropped)

    async def head(self) -> str:
        """The digest of all entries so far, in hex."""
        await self._settle()
        return (await self._ask(tables.head)).hex()

    # -- writing -----------------------------------------------------------------------------------

    async def _write(self) -> None:
        try:
            while self._waiting:
                if not await self._write_some():
                    await asyncio.sleep(self._again)
        finally:
            self._task = None

    async def _write_up_to(self, seq: int) -> bool:
        """Write all entries up to a number; False if that fails now."""
        while self._waiting and self._waiting[0][0] <= seq:
            if not await self._write_some():
                return False
        return True

    async def _write_some(self) -> bool:
        """Write a batch of queued entries; False if that fails now."""
        async with self._turn:
            batch: list[bytes] = []
            size = 0
            for _, data in self._waiting:
                if len(batch) == _BATCH or (batch and size + len(data) > _BATCH_BYTES):
                    break
                batch.append(data)
                size += len(data)
            try:
                # If this task is cancelled here, the batch is still written. The next attempt skips
                # entries that are in the file already.
                count = await self._writer.ask(
                    lambda db: tables.add(db, batch, self._redact, self._bodies, self._worded)
                )
            except StoreError as bad:
                self._cannot(_reason(bad))
                return False
            for _ in batch:
                self._waiting.popleft()
            self._waiting_bytes -= size
            self._can()
        if self._bodies.grown or time.monotonic() - self._dropped_bodies_at > _DROPS:
            await self._drop_bodies()
        if self._anchor is not None and count - self._anchored >= self._anchor_every:
            await self._write_anchor(self._anchor)
        return True

    async def _grown(self) -> bool:
        """Whether there are entries after the last anchor."""
        with suppress(StoreError):
            return await self._writer.ask(tables.count) > self._anchored
        return False

    async def _write_anchor(self, path: Path) -> None:
        """Append an anchor to its file. A failure is reported once."""
        try:
            made = await self._writer.ask(self._made_anchor)
            self._anchored = made.entries
            await asyncio.to_thread(write_anchor, path, made)
            self._anchor_fails = False
        except (OSError, StoreError) as bad:
            why = bad.strerror if isinstance(bad, OSError) else _reason(bad)
            if not self._anchor_fails:
                words = f"The log is not anchored: {path} cannot be written: {why}."
                self.publish(Notice(level="warning", words=words))
            self._anchor_fails = True

    def _made_anchor(self, db: sqlite3.Connection) -> Anchor:
        return Anchor(entries=tables.count(db), head=tables.head(db).hex(), at=self._clock())

    async def _index(self) -> None:
        """Index the entries that are not in the word index."""
        while self._worded and await self._ask(lambda db: tables.catch_up(db, self._bodies, _PAGE)):
            pass

    def _checkpoint(self) -> None:
        """Move all of the write-ahead log into the file. If another host reads it, the last host to
        close does that.
        """
        with suppress(StoreError, sqlite3.Error), closing(self._writer.file.connect()) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    async def _drop_bodies(self) -> None:
        """Drop large bodies by age and space."""
        self._dropped_bodies_at = time.monotonic()
        with suppress(StoreError):  # they can be dropped later
            files = await self._writer.ask(self._bodies.drop)
            if files:
                await asyncio.to_thread(remove, files)

    def _cannot(self, why: str) -> None:
        words = f"The log {self.path.name} cannot be written: {why}."
        if words != self._bad:
            self._bad = words
            self.publish(
                Notice(
                    level="error",
                    words=f"{words} Entries are kept in memory until it can be written again.",
                )
            )

    def _can(self) -> None:
        if self._bad:
            dropped = self._dropped
            self._dropped = 0
            self._bad = ""
            lost = f" {dropped:,} entries are lost." if dropped else ""
            self.publish(
                Notice(
                    level="warning" if dropped else "info",
                    words=f"The log {self.path.name} can be written again.{lost}",
                )
            )

    # -- reading -----------------------------------------------------------------------------------

    def _must_be_open(self) -> None:
        if not self._open:
            raise LogError("The log is not open.")

    async def _settle(self) -> None:
        """Write the noted entries, as far as possible, so that they can be read."""
        self._must_be_open()
        await self._write_up_to(self._last)

    async def _page(self, session: str | None, place: int, limit: int) -> list[tuple[int, bytes]]:
        await self._settle()
        return await self._ask(lambda db: queries.page(db, self._bodies, session, place, limit))

    async def _ask(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run a query in the writer's thread, after earlier writes."""
        try:
            return await self._writer.ask(work)
        except StoreError as bad:
            raise LogError(f"The log {self.path.name} cannot be read: {_reason(bad)}.") from None


def _reason(bad: StoreError) -> str:
    """The reason of an error, without the file's name."""
    return bad.reason if isinstance(bad, SqliteError) else str(bad)
