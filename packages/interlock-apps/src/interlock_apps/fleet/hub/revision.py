"""The revision that one server needs, kept across its restarts."""

from __future__ import annotations

from interlock import Client
from interlock.configs import Entry

from .known_revisions import KnownRevisions, said
from .timeouts import CleanupTasks


class ServerRevision:
    """What is known about the revision of one server (`ERA-13`, `ERA-14`)."""

    def __init__(self, entry: Entry, known: KnownRevisions, cleanup: CleanupTasks) -> None:
        self._entry = entry
        self._known = known
        self._cleanup = cleanup
        self._spoken: str | None = None  # in this run

    @property
    def known(self) -> str | None:
        """The revision that worked before, in this run or an earlier one."""
        if self._spoken is None and (record := self._known.of(self._entry)) is not None:
            return record.revision
        return self._spoken

    def opened(self, client: Client) -> None:
        """Record the revision after an opening, and drop a record about another version."""
        self._spoken = client.revision
        record = self._known.of(self._entry)
        info = client.server_info
        if client.probe_failed:
            self._cleanup.start(self._known.learn(self._entry, client.revision, "probe", info))
        elif record is None:
            return
        elif not client.caller.supports("ping"):
            self.forget()
        elif not record.server:
            self._cleanup.start(self._known.learn(self._entry, client.revision, record.why, info))
        elif record.server != said(info):
            self.forget()

    def require(self, revision: str) -> None:
        """Record that the server can ask questions only under this revision.

        The server's version is recorded at the next opening: some servers give another name under
        another revision.
        """
        self._spoken = revision
        self._cleanup.start(self._known.learn(self._entry, revision, "questions", None))

    def forget(self) -> None:
        """Drop the record, so that the next start probes again."""
        self._spoken = None
        self._cleanup.start(self._known.forget(self._entry))
