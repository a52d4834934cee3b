"""How much the database server does at most in one call; all of it can be set in the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec
from msgspec import Struct

PREFIX = "INTERLOCK_DATABASE_"


class Limits(Struct, frozen=True, kw_only=True):
    """Sizes are in bytes, times in seconds. `INTERLOCK_DATABASE_ROWS` sets `rows`, and so on."""

    rows: int = 1_000  # in one page, whatever a call asks for
    page: int = 100  # rows in one page where a call does not say
    bytes: int = 256 * 1024  # of the rows of one page, as JSON
    cell: int = 4 * 1024  # of one value; a longer one is cut and marked
    value: int = 16 * 1024 * 1024  # of one value while a statement runs, inside the engine
    memory: int = 256 * 1024 * 1024  # that SQLite may take for one connection
    statement: int = 100_000  # of the text of one statement
    statements: int = 50  # in one transaction that changes something
    tables: int = 100  # that are described in one answer
    seconds: float = 30.0  # that a statement may run
    waiting: float = 10.0  # for a free connection, and for others who have locked the database
    connections: int = 4  # to each database; as many statements run at once
    telling: float = 1.0  # between two notices of how far a statement is
    polling: float = 5.0  # between two looks at whether a schema has changed, while somebody wants to know


def limits_of(environment: Mapping[str, str] = os.environ) -> Limits:
    """The limits that an environment sets. Raises ValueError, which names the variable, for one that is no limit."""
    given: dict[str, object] = {}
    for known in msgspec.structs.fields(Limits):
        variable = PREFIX + known.name.upper()
        text = environment.get(variable)
        if not text:
            continue
        try:
            value = msgspec.convert(text.strip(), known.type, strict=False)
        except msgspec.ValidationError as bad:
            raise ValueError(f"{variable}={text}: {bad}") from None
        if not 0 < value < float("inf"):
            raise ValueError(f"{variable}={text}: it has to be more than 0")
        given[known.name] = value
    return Limits(**given)  # type: ignore[arg-type]  # each was converted to the type of its field
