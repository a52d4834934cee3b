"""Servers that need an older revision, remembered for the next start (`ERA-14`)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from interlock import REVISIONS, Implementation
from interlock.configs import Entry
from interlock.store import file_lock, write_atomic

log = logging.getLogger("interlock_apps.host")

MOST_SECONDS = 30 * 24 * 3600.0
"""How long a record counts. After that, a server that was not upgraded costs one more probe."""
_MOST = 1_000  # records; the oldest are dropped first
_PATIENCE = 10.0  # seconds to wait while another host writes

Why = Literal["probe", "questions"]


class RevisionRecord(Struct, frozen=True, kw_only=True):
    """What is known about a server.

    Attributes:
        revision: The revision to offer in the handshake, before any probe.
        why: "probe": `server/discover` breaks the server. "questions": it can ask only under this
            revision.
        server: The name and version that the server gave. Another version may be able to do more.
        at: When this was recorded, in seconds since 1970.
    """

    revision: str
    why: Why
    server: str
    at: float


class KnownRevisions:
    """Records of servers that need an older revision, by what is started (`Entry.digest`).

    They are kept in a file or in memory. The file is only a cache: an unreadable one counts as
    empty, and a failed write is logged. A record is never final. If a server refuses the handshake,
    it is probed. A record is dropped when a start with it fails, when the server reports another
    version, and after `MOST_SECONDS`.

    Args:
        path: The file, in an existing folder; None: in memory.
        clock: The time in seconds since 1970.
    """

    def __init__(self, path: Path | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock
        self._verdicts = self._read()

    def of(self, entry: Entry) -> RevisionRecord | None:
        """The record about the server of an entry, or None."""
        verdict = self._verdicts.get(entry.digest)
        if verdict is None or verdict.revision not in REVISIONS:
            return None
        age = self._clock() - verdict.at
        return verdict if 0 <= age < MOST_SECONDS else None

    async def learn(
        self, entry: Entry, revision: str, why: Why, info: Implementation | None
    ) -> None:
        """Record the revision that a server needs."""
        verdict = RevisionRecord(revision=revision, why=why, server=said(info), at=self._clock())
        self._verdicts[entry.digest] = verdict
        await asyncio.to_thread(self._write, entry.digest, verdict)

    async def forget(self, entry: Entry) -> None:
        """Drop the record about the server of an entry: it may no longer hold."""
        if self._verdicts.pop(entry.digest, None) is not None:
            await asyncio.to_thread(self._write, entry.digest, None)

    def _read(self) -> dict[str, RevisionRecord]:
        if self.path is None:
            return {}
        with contextlib.suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode(self.path.read_bytes(), type=dict[str, RevisionRecord])
        return {}

    def _write(self, digest: str, verdict: RevisionRecord | None) -> None:
        """Write one record to the file; records that other hosts wrote meanwhile stay."""
        if self.path is None:
            return
        try:
            with file_lock(self.path.with_name(f".{self.path.name}.turn"), patience=_PATIENCE):
                verdicts = self._read()
                verdicts.pop(digest, None)
                if verdict is not None:
                    verdicts[digest] = verdict
                newest = sorted(verdicts.items(), key=lambda item: item[1].at)[-_MOST:]
                write_atomic(self.path, msgspec.json.format(msgspec.json.encode(dict(newest))))
        except OSError as bad:
            log.warning("the revision that a server needs could not be saved: %s", bad)


def said(info: Implementation | None) -> str:
    """The name and version that a server reports, for comparison."""
    return "" if info is None else f"{info.name} {info.version}"
