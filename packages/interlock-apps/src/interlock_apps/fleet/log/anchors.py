"""Anchors of the log: the head of its hash chain, kept elsewhere to detect truncation.

The hash chain has no key. It shows that an entry was changed, but not that the last entries were
removed together with everything that counted them. An anchor records how many entries there were at
a time, and the digest of all of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from .interface import LogError

EVERY = 100
"""Entries between two anchors."""


class Anchor(Struct, frozen=True, kw_only=True):
    """The state of a log at one time.

    Attributes:
        entries: The number of entries.
        head: The digest of all entries, in hex.
        at: Seconds of the wall clock.
    """

    entries: int
    head: str
    at: float

    @property
    def day(self) -> str:
        """The date, for display."""
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(self.at))


def write_anchor(path: Path, anchor: Anchor) -> None:
    """Append an anchor to a file, as a line of JSON. Raises OSError."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, line_of(anchor))
        os.fsync(file)
    finally:
        os.close(file)


def line_of(anchor: Anchor) -> bytes:
    """An anchor as a line of JSON."""
    return msgspec.json.encode(anchor) + b"\n"


def read_anchors(path: Path) -> Sequence[Anchor]:
    """The anchors of a file.

    Raises LogError for a file that cannot be read, has no anchors, or has an invalid line.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as bad:
        raise LogError(f"The anchors in {path} cannot be read: {bad.strerror}.") from None
    found: list[Anchor] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.append(msgspec.json.decode(line, type=Anchor))
        except msgspec.DecodeError as bad:
            raise LogError(f"Line {number} of {path} is not an anchor of a log: {bad}") from None
    if not found:
        raise LogError(f"There is no anchor in {path}.")
    return found
