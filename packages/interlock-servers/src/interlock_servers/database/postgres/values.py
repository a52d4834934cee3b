"""Converts values of PostgreSQL to JSON, and arguments to values that PostgreSQL accepts.

Values without an exact Python type are read as PostgreSQL's text: dates before Christ, infinite
dates, months in intervals.
"""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from interlock import ToolError

from ..engine import Json, Statement
from ..values import bytes_of
from .driver import Connection, Driver, set_text

_TEXTS = (
    "interval",
    "bit",
    "varbit",
    "money",
    "point",
    "line",
    "lseg",
    "box",
    "path",
    "polygon",
    "circle",
    "tid",
    "pg_snapshot",
    "txid_snapshot",
    "pg_lsn",
)
_TIMES = ("date", "timestamp", "timestamptz", "time", "timetz")
# PostgreSQL's numbers of types that the driver needs by number
_NUMBERED = {
    18: "char",
    2249: "record",
    3904: "int4range",
    3906: "numrange",
    3908: "tsrange",
    3910: "tstzrange",
    3912: "daterange",
    3926: "int8range",
    4451: "int4multirange",
    4532: "nummultirange",
    4533: "tsmultirange",
    4534: "tstzmultirange",
    4535: "datemultirange",
    4536: "int8multirange",
}
_OFFSET = re.compile(r"([+-]\d\d)$")


async def register_codecs(connection: Connection) -> None:
    """Register codecs on a new connection for types that the driver's own codecs do not convert
    exactly.

    This sends nothing to the server.
    """
    for name in _TEXTS:
        await connection.set_type_codec(name, schema="pg_catalog", encoder=_written, decoder=str)
    for oid, name in _NUMBERED.items():
        set_text(connection, oid, name, _written, str)
    for name in _TIMES:
        await connection.set_type_codec(name, schema="pg_catalog", encoder=_written, decoder=_time)
    for name in ("json", "jsonb"):
        await connection.set_type_codec(
            name, schema="pg_catalog", encoder=_json_written, decoder=_json
        )
    await connection.set_type_codec(
        "numeric", schema="pg_catalog", encoder=_written, decoder=decimal.Decimal
    )
    await connection.set_type_codec(
        "float4", schema="pg_catalog", encoder=_written, decoder=float
    )  # so that 0.1 stays 0.1


def plain(value: Any, driver: Driver) -> Any:
    """A value for `cell_of`: composite values become objects, ranges texts, arrays lists."""
    if isinstance(value, driver.record):
        return {name: plain(one, driver) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one, driver) for one in value]
    if isinstance(value, driver.range):
        return _range(value)
    return value


def arguments_of(statement: Statement) -> Sequence[Any]:
    """The values for $1, $2 and so on. Raises ToolError for named parameters."""
    given = statement.parameters
    if isinstance(given, Mapping):
        if given:
            raise ToolError(
                "PostgreSQL's parameters have no names: write $1, $2 in the SQL, and give a list "
                "of values."
            )
        return ()
    return [_argument(one) for one in given]


def _argument(value: Json) -> Any:
    data = bytes_of(value)
    if data is not None:
        return data
    return [_argument(one) for one in value] if isinstance(value, list) else value


def _written(value: object) -> str:
    """A number or a text, as input text for a PostgreSQL type."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | decimal.Decimal):
        raise TypeError("a text or a number is expected")
    return str(value)


def _json_written(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _json(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


def _number(text: str) -> float | decimal.Decimal:
    """A number with a fraction; a Decimal if a float would lose digits."""
    number = float(text)
    exact = decimal.Decimal(text)
    return number if math.isfinite(number) and decimal.Decimal(repr(number)) == exact else exact


def _time(text: str) -> str:
    """ISO 8601 if the year allows it; otherwise PostgreSQL's text."""
    if text.endswith(" BC"):
        return text
    return _OFFSET.sub(r"\1:00", text.replace(" ", "T", 1)) if ":" in text else text


_DECODER = msgspec.json.Decoder(float_hook=_number)


def _range(value: Any) -> str:
    if value.isempty:
        return "empty"
    below, above = ("" if one is None else str(one) for one in (value.lower, value.upper))
    return f"{'[' if value.lower_inc else '('}{below},{above}{']' if value.upper_inc else ')'}"
