"""Results of the filesystem server's tools, as data and as text."""

from __future__ import annotations

import math
import os
import stat
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeVar

from msgspec import Struct, field

from interlock.untrusted.invisible import visible_line as plain

from .resolve import kind_of

Data = TypeVar("Data")


class FolderEntry(Struct, rename="camel", omit_defaults=True):
    """Something in a folder. `size` is in bytes, of files; `modified` is ISO 8601."""

    path: str
    kind: str
    size: int | None = None
    modified: str | None = None
    target: str | None = None

    def line(self) -> str:
        """The entry in one line."""
        if self.kind == "file":
            return (
                f"{plain(self.path)}  {self.size:,} bytes"
                if self.size is not None
                else plain(self.path)
            )
        return plain(self.path) + ("/" if self.kind == "folder" else f"  ({self.kind})")


class FolderEntries(Struct, rename="camel"):
    """Entries that were found.

    `complete` is false if there are more, and `reason` says why they are missing.
    """

    path: str
    entries: list[FolderEntry]
    complete: bool = True
    reason: str | None = None

    def words(self) -> str:
        """One line for each entry."""
        lines = [entry.line() for entry in self.entries] or ["There is nothing."]
        return "\n".join(
            [*lines, *([] if self.complete else [f"... {self.reason or 'there are more'}"])]
        )


class FileInfo(Struct, rename="camel", omit_defaults=True):
    """All that there is to know of a file or folder.

    `mode` is octal; `version` changes whenever the file does.
    """

    path: str
    uri: str
    kind: str
    size: int
    modified: str
    created: str | None
    mode: str
    owner: int
    group: int
    links: int
    version: str
    mime_type: str | None = None
    sha256: str | None = None
    target: str | None = None


class ReadResult(Struct, rename="camel", omit_defaults=True):
    """What was read, but for the content itself, which stands beside this.

    Lines count from 1, bytes from 0; `last` belongs to it.

    `complete` is false where the file has more, `cut` is true where more was asked for than an
    answer may hold: then the first line to read next is `nextLine`, or the first byte `nextOffset`,
    where a single line is too long. `version` may be sent with a change, which then fails where the
    file is not the same.
    """

    path: str
    uri: str
    kind: str
    mime_type: str
    size: int
    version: str
    complete: bool
    cut: bool = False
    encoding: str | None = None
    first_line: int | None = None
    last_line: int | None = None
    lines: int | None = None
    offset: int | None = None
    length: int | None = None
    next_line: int | None = None
    next_offset: int | None = None


class ReadResults(Struct):
    """Results of reading several files, in order. `error` says why one could not be read."""

    files: list[ReadAttempt]


class ReadAttempt(Struct, omit_defaults=True):
    """One of several files."""

    path: str
    read: ReadResult | None = None
    error: str | None = None


class WriteResult(Struct, rename="camel", omit_defaults=True):
    """A file after a change, or, where `dry_run`, as it would be; `replacements` counts the places
    that an edit changed.

    What changed stands beside this, as a unified diff.
    """

    path: str
    uri: str
    created: bool
    size: int
    version: str | None = None
    replacements: int | None = None
    dry_run: bool = False


class MoveResult(Struct, rename="camel", omit_defaults=True):
    """What was moved or copied. `left_out` names special and unreadable files."""

    source: str
    target: str
    files: int | None = None
    bytes: int | None = None
    left_out: list[str] = field(default_factory=list)


class LineMatch(Struct, omit_defaults=True):
    """A line that matches. `line` counts from 1."""

    path: str
    line: int
    text: str
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


class LineMatches(Struct, rename="camel"):
    """The lines that were found; `complete` is false where there may be more, and `reason` says
    why.
    """

    hits: list[LineMatch]
    files: int
    complete: bool = True
    reason: str | None = None

    def words(self) -> str:
        """In the format of grep."""
        lines: list[str] = []
        for hit in self.hits:
            lines += [
                f"{plain(hit.path)}-{hit.line - len(hit.before) + n}-{plain(text)}"
                for n, text in enumerate(hit.before)
            ]
            lines.append(f"{plain(hit.path)}:{hit.line}:{plain(hit.text)}")
            lines += [
                f"{plain(hit.path)}-{hit.line + 1 + n}-{plain(text)}"
                for n, text in enumerate(hit.after)
            ]
        return "\n".join(
            [
                *(lines or ["Nothing was found."]),
                *([] if self.complete else [f"... {self.reason or 'there are more'}"]),
            ]
        )


class TrashedItem(Struct, rename="camel"):
    """An item in the trash: its original path, and since when it is there."""

    id: str
    path: str
    kind: str
    trashed: str


class TrashContents(Struct):
    """What is in the trash, the latest first; `problems` names what cannot be read."""

    items: list[TrashedItem]
    problems: list[str] = field(default_factory=list)


class TrashEmptied(Struct):
    """What was deleted for good."""

    removed: list[str]


class AllowedFolders(Struct):
    """The folders that may be touched, and in what ways they are limited; `problems` says which
    ones could not be opened, and why.
    """

    folders: list[str]
    limits: dict[str, Any]
    problems: list[str] = field(default_factory=list)


def when(seconds: float) -> str:
    """A time in ISO 8601."""
    return _second(math.floor(seconds))


@lru_cache(1024)  # files in a folder often have few different times
def _second(seconds: int) -> str:
    try:
        return (
            datetime.fromtimestamp(seconds, UTC)
            .isoformat(timespec="seconds")
            .replace("+00:00", "Z")
        )
    except (ValueError, OverflowError, OSError):
        return "1970-01-01T00:00:00Z"  # a date that the calendar cannot represent


def version_of(found: os.stat_result) -> str:
    """A text that changes whenever the file changes or is replaced."""
    return f"{found.st_ino:x}.{found.st_mtime_ns:x}.{found.st_size:x}"


def entry_of(path: str, found: os.stat_result, target: str | None = None) -> FolderEntry:
    """A file or folder as a list entry."""
    size = found.st_size if stat.S_ISREG(found.st_mode) else None
    return FolderEntry(path, kind_of(found.st_mode), size, when(found.st_mtime), target)
