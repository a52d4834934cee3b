"""Limits of the filesystem server. Each can be set by an environment variable."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

PREFIX = "INTERLOCK_FILESYSTEM_"


class FilesystemLimits(Struct, frozen=True, kw_only=True):
    """Sizes are in bytes, times in seconds. `INTERLOCK_FILESYSTEM_READ` sets `read`, and so on.

    `hard_links` says what may be done with files that have more than one name, because another name
    may be outside. `mounts` says whether file systems mounted inside a folder belong to it.
    """

    read: int = 256 * 1024  # of text in one result
    media: int = 5 * 1024 * 1024  # of an image or audio
    scanned: int = 256 * 1024 * 1024  # read to find a line
    written: int = 32 * 1024 * 1024  # of a file that is written or changed
    copied: int = 1024 * 1024 * 1024  # in one copy
    searched: int = 8 * 1024 * 1024  # of one file that is searched for text
    files: int = 50  # read at once
    entries: int = 1_000  # in one result
    walked: int = 500_000  # entries examined in one call
    depth: int = 64  # of nested folders
    watched: int = 10_000  # watched entries
    seconds: float = 60.0  # for a call
    # Processor time for a regular expression, plus one second for each 4 MiB that it searches
    matching: float = 2.0
    waiting: float = 10.0  # for others who write to the same folder
    polling: float = 1.0  # between two checks of watched entries
    hard_links: Literal["refuse", "read", "allow"] = "refuse"
    mounts: bool = False
    sync: bool = True  # whether data is on disk before the result is sent
