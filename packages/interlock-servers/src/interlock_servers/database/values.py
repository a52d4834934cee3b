"""Converts values of databases to JSON and back, and collects the rows of a page."""

from __future__ import annotations

import base64
import binascii
import datetime
import decimal
import math
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from interlock import ToolError

from .engine import Ended, Json, RowRange

SAFE = 2**53 - 1  # the largest integer that every JSON parser reads exactly
WIDE = 256 * 1024  # bytes of one row
_ENCODER = msgspec.json.Encoder()


def cell_of(value: object, most: int) -> Json:
    """A value as JSON, of at most about `most` bytes.

    Numbers, texts, booleans and null stay as they are. Integers beyond 2**53 and decimals become
    texts with all their digits; NaN and the infinities become texts. Times become ISO 8601. Bytes
    become {"base64": ..., "bytes": the number of bytes}, cut if there are too many. A text that is
    too long becomes {"text": its beginning, "characters": its length}. Lists and objects stay as
    they are; if too long, they are cut as JSON text. Any other value becomes its Python text.
    """
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return _text(value, most)
    if isinstance(value, int):
        return int(value) if -SAFE <= value <= SAFE else _text(str(value), most)
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        if math.isnan(value):
            return "NaN"
        if value > 0:
            return "Infinity"
        return "-Infinity"
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes(bytes(value), most)
    if isinstance(value, Sequence | Mapping):
        return _nested(value, most)
    return _text(_as_text(value), most)


def _as_text(value: object) -> str:
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return msgspec.json.encode(value).decode()[1:-1]  # an ISO 8601 duration
    if isinstance(value, decimal.Decimal):
        return (
            format(value, "f")
            if value.is_finite() and -200 < value.adjusted() < 200
            else str(value)
        )
    if isinstance(value, uuid.UUID):
        return str(value)
    return str(value)


def _text(text: str, most: int) -> Json:
    # a lone surrogate is not Unicode
    whole = text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
    if len(whole) * 4 <= most or len(whole.encode()) <= most:
        return whole
    return {"text": whole[:most].encode()[:most].decode("utf-8", "ignore"), "characters": len(text)}


def _bytes(data: bytes, most: int) -> Json:
    kept = data if len(data) * 4 <= most * 3 else data[: most * 3 // 4]
    return {"base64": base64.b64encode(kept).decode(), "bytes": len(data)}


def _nested(value: object, most: int) -> Json:
    made = _within(value, most, 0)
    encoded = _ENCODER.encode(made)
    return made if len(encoded) <= most else _text(encoded.decode(), most)


def _within(value: object, most: int, depth: int) -> Json:
    if depth < 50:
        if isinstance(value, Mapping):
            return {str(key): _within(one, most, depth + 1) for key, one in value.items()}
        if isinstance(value, Sequence) and not isinstance(
            value, str | bytes | bytearray | memoryview
        ):
            return [_within(one, most, depth + 1) for one in value]
    elif isinstance(value, Mapping | Sequence) and not isinstance(
        value, str | bytes | bytearray | memoryview
    ):
        return _text(str(value), most)
    return cell_of(value, most)


def bytes_of(value: Json) -> bytes | None:
    """The bytes of a parameter {"base64": ...}; None for any other value.

    Raises ToolError for invalid Base64.
    """
    if (
        not isinstance(value, Mapping)
        or "base64" not in value
        or not value.keys() <= {"base64", "bytes"}
    ):
        return None
    try:
        return base64.b64decode(value["base64"], validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise ToolError('A parameter {"base64": ...} does not hold Base64.') from None


class RowCollector:
    """Collects the rows of a page one by one."""

    def __init__(self, page: RowRange, columns: int) -> None:
        """`columns` is the number of values in a row: with more values, each has less space."""
        self._page = page
        self._size = page.size
        self._cell = max(16, min(page.cell, WIDE // max(1, columns)))
        self.rows: list[list[Json]] = []
        self.ended: Ended = "all"

    def add(self, row: Sequence[Any]) -> bool:
        """Add a row if there is space; return whether there was.

        If not, `ended` says why, and no further rows should be added.
        """
        if len(self.rows) >= self._page.most:
            self.ended = "rows"
            return False
        made = [cell_of(value, self._cell) for value in row]
        self._size -= len(_ENCODER.encode(made)) + 1
        if self._size < 0 and len(self.rows) >= self._page.free:
            self.ended = "bytes"
            return False
        self.rows.append(made)
        return True
