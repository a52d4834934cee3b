"""Pagination cursors of the tools: what a caller passes back to get the next page."""

from __future__ import annotations

from typing import Annotated, TypeVar

from msgspec import Meta

from interlock import ToolError
from interlock.cursors import InvalidCursor, decode_cursor

T = TypeVar("T")
_Number = Annotated[int, Meta(ge=0, lt=2**62)]


def read_cursor(cursor: str, kind: type[T], purpose: str) -> T:
    """Decode a cursor.

    A cursor comes from the caller and can be forged: `kind` defines all that it may contain. Raises
    ToolError.
    """
    try:
        return decode_cursor(cursor.strip(), kind, purpose)
    except InvalidCursor:
        raise ToolError(
            "This is not a cursor of this tool. Pass the cursor of the previous page, or "
            "no cursor to start again."
        ) from None


def read_number(cursor: str | None, purpose: str) -> int:
    """The number in a cursor; 0 without a cursor. Raises ToolError."""
    return 0 if cursor is None else read_cursor(cursor, _Number, purpose)
