"""SQL identifiers, page cursors, and text from databases made safe to show."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

import msgspec

from interlock import ToolError
from interlock.cursors import encode_cursor

from ..cursors import read_cursor


def quoted(name: str) -> str:
    """A table or column name as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


class PageCursor(msgspec.Struct, array_like=True):
    """Start of the next page: digest of the call, number of rows before it, digest of the last of
    them.
    """

    call: str
    skip: Annotated[int, msgspec.Meta(ge=1, le=10**12)]
    last: str


def digest(*parts: Any) -> str:
    """A short digest of JSON values."""
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:24]


def cursor_of(place: PageCursor) -> str:
    """A cursor for callers."""
    return encode_cursor(place, "database")


def place_of(cursor: str, call: str) -> PageCursor:
    """Decode a cursor that belongs to a call. Raises ToolError."""
    place = read_cursor(cursor, PageCursor, "database")
    if place.call != call:
        raise ToolError(
            "This cursor belongs to another call. Repeat the call that returned it, with "
            "the same arguments."
        )
    return place
