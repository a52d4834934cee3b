"""Limits of the filesystem server. Each can be set by an environment variable."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

PREFIX = "INTERLOCK_FILESYSTEM_"


class FilesystemLimits(Struct, frozen=True, kw_only=True):
    """Sizes are in bytes, times in seconds. `INTERLOCK_FILESYSTEM_READ` sets `read`, and so on.

    `hard_links` says what may be done with files that have more than one name, since the other one
    may be outside. `mounts` says whether other file systems that are mounted within a folder belong
    to it.
    """

    read: int = 256 * 1024  # of text in one answer
    media: int = 5 * 1024 * 1024  # of a picture or a sound
    scanned: int = 256 * 1024 * 1024  # read through to get at a line
    written: int = 32 * 1024 * 1024  # of a file that is written or changed
    copied: int = 1024 * 1024 * 1024  # in one copy
    searched: int = 8 * 1024 * 1024  # of one file whose text is searched
    files: int = 50  # read at once
    entries: int = 1_000  # in one answer
    walked: int = 500_000  # entries that one call looks at
    depth: int = 64  # of folders in folders
    watched: int = 10_000  # entries that are watched
    seconds: float = 60.0  # that a call may take
    # Of processor time for a regular expression, beside one for each 4 MiB that it searches
    matching: float = 2.0
    waiting: float = 10.0  # for others who write into the same folder
    polling: float = 1.0  # between two looks at what is watched
    hard_links: Literal["refuse", "read", "allow"] = "refuse"
    mounts: bool = False
    sync: bool = True  # whether what was written is on the disk before the answer
