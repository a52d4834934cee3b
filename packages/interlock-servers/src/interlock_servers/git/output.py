"""Reads git's output while git runs: windows of long output, the fields before a patch, errors."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

from ..processes import CHUNK, Process

MOST_ERRORS = 16 * 1024  # bytes of git's error messages that are kept
_STEPS = re.compile(rb"\((\d{1,12})/(\d{1,12})\)")

OnProgress = Callable[[int, int], None]


class Preamble:
    """Finds the end of the part before a patch.

    It consists of fields that each end with NUL, followed by a list that ends with two NULs.
    """

    def __init__(self, fields: int = 0) -> None:
        self._left = fields
        self._at = 0

    def length(self, data: bytes | bytearray) -> int | None:
        """Its length; None while it is incomplete. Each call gets all data so far."""
        while self._left:
            found = data.find(b"\0", self._at)
            if found < 0:
                return None
            self._left -= 1
            self._at = found + 1
        found = data.find(b"\0\0", self._at)
        self._at = max(self._at, len(data) - 1)
        return found + 2 if found >= 0 else None


async def split_preamble(
    process: Process, preamble: Preamble, most: int
) -> tuple[bytes, bytearray]:
    """Read up to the end of the preamble; return it, and the data read beyond it."""
    kept = bytearray()
    while len(kept) <= most and (chunk := await process.stdout.read(CHUNK)):
        kept += chunk
        if (end := preamble.length(kept)) is not None:
            return bytes(kept[:end]), kept[end:]
    return bytes(kept), bytearray()


async def skip_output(
    process: Process, begun: bytearray, skip: int, seen: hashlib._Hash
) -> bytearray:
    """Skip `skip` bytes, of which `begun` were read already; return the data read beyond them."""
    left = skip
    chunk = bytes(begun)
    while left and (chunk := chunk or await process.stdout.read(CHUNK)):
        seen.update(chunk[:left])
        rest = chunk[left:]
        left = max(0, left - len(chunk))
        chunk = rest
    return bytearray(chunk)


async def read_errors(process: Process, errors: bytearray, on_progress: OnProgress | None) -> None:
    """Keep the beginning of git's error messages; report progress lines instead of keeping them."""
    assert process.stderr is not None
    while chunk := await process.stderr.read(CHUNK):
        if on_progress is not None:
            for done, total in _STEPS.findall(chunk):
                on_progress(int(done), int(total))
            lines = re.split(rb"[\r\n]", chunk)
            chunk = b"\n".join(one for one in lines if one and not _STEPS.search(one)) + b"\n"
        errors += chunk[: MOST_ERRORS - len(errors)]


def character_boundary(data: bytearray, end: int) -> int:
    """The last index up to `end` that does not split a UTF-8 character."""
    while end > 1 and data[end] & 0xC0 == 0x80:
        end -= 1
    return end
