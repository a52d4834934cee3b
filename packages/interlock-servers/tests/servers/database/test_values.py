"""Values as JSON and back: exact where JSON is exact, marked where they are cut, whatever is in
them.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import math
import sqlite3
import uuid
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock import ToolError
from interlock_servers.database import DatabaseLimits
from interlock_servers.database.engine import RowRange, Statement
from interlock_servers.database.sqlite_authorizer import Authorizer, opened
from interlock_servers.database.sqlite_queries import RunningCall, SqliteSession
from interlock_servers.database.values import SAFE, WIDE, RowCollector, bytes_of, cell_of

MOST = 100
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-SAFE, SAFE) | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    "value, cell",
    [
        (None, None), (True, True), (SAFE, SAFE), (-SAFE, -SAFE), (SAFE + 1, "9007199254740992"),
            (-(2**63), "-9223372036854775808"),
        (0.1, 0.1), (math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity"),
        (decimal.Decimal("1.10"), "1.10"), (decimal.Decimal("1E+3"), "1000"),
            (decimal.Decimal("NaN"), "NaN"),
        (b"\0\xff", {"base64": "AP8=", "bytes": 2}), (memoryview(b"a"),
            {"base64": "YQ==", "bytes": 1}),
        (datetime.date(2026, 1, 5), "2026-01-05"), (datetime.time(1, 2, 3), "01:02:03"),
        (datetime.datetime(2026, 1, 5, 1, 2, 3, 40, tzinfo=datetime.UTC),
            "2026-01-05T01:02:03.000040+00:00"),
        (datetime.timedelta(days=1, seconds=2), "P1DT2S"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ([1, None, [b"a"]], [1, None, [{"base64": "YQ==", "bytes": 1}]]),
            ({"a": decimal.Decimal(1)}, {"a": "1"}),
        ("\ud800", "\\ud800"), ("x" * 101, {"text": "x" * 100, "characters": 101}),
            ("é" * 51, {"text": "é" * 50, "characters": 51}),
        (b"x" * 76, {"base64": base64.b64encode(b"x" * 75).decode(), "bytes": 76}),
    ],
)  # fmt: skip
def test_values(value: object, cell: Any) -> None:
    """Each kind of value as it stands in a result."""
    assert cell_of(value, MOST) == cell


@given(JSON, st.integers(16, 300))
def test_no_value_is_too_large(value: Any, most: int) -> None:
    """A value is itself or a part of itself that says so, and has about the bytes that it may
    have.
    """
    cell = cell_of(value, most)
    if cell != value:
        assert set(cell) == {"text", "characters"}
        assert len(cell["text"].encode()) <= most
        assert cell["characters"] >= len(cell["text"])
    assert (
        len(msgspec.json.encode(cell)) <= 6 * most + 100
    )  # control characters take six bytes each


@given(
    st.lists(st.lists(TEXTS | st.integers() | st.none(), min_size=3, max_size=3)),
    st.integers(0, 20),
    st.integers(0, 500),
    st.integers(1, 2),
)
def test_pages_of_rows(rows: list[list[Any]], most: int, size: int, free: int) -> None:
    """The first rows in their order, as many as may be, and why there are not more; the first are
    always there.
    """
    collected = RowCollector(RowRange(0, most, size, MOST, free), 3)
    kept = [row for row in rows if collected.ended == "all" and collected.add(row)]
    assert len(collected.rows) == len(kept) <= most
    assert collected.rows == [[cell_of(value, MOST) for value in row] for row in rows[: len(kept)]]
    assert len(kept) >= min(free, most, len(rows))
    if collected.ended == "all":
        assert len(kept) == len(rows)
    elif collected.ended == "rows":
        assert len(kept) == most < len(rows)
    if len(kept) > free:
        assert len(msgspec.json.encode(collected.rows)) <= size + 2


def test_a_row_of_many_columns() -> None:
    """Each has less room."""
    collected = RowCollector(RowRange(0, 1, 100, 4096), 2_000)
    assert collected.add(["x" * 1_000] * 2_000)
    assert len(msgspec.json.encode(collected.rows)) < 2 * WIDE


# -- through SQLite --------------------------------------------------------------------------------

STORED = (
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | TEXTS | st.binary()
)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteSession]:
    """A reading connection, in this process."""
    path = tmp_path_factory.mktemp("values") / "x.db"
    sqlite3.connect(path).close()
    limits = DatabaseLimits(memory=0)
    authorizer = Authorizer()
    connection = opened(path, authorizer, limits, write=False)
    yield SqliteSession(connection, authorizer, limits, RunningCall(1, 1_000))
    connection.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STORED, min_size=1, max_size=5))
def test_there_and_back(work: SqliteSession, values: list[Any]) -> None:
    """What is sent as a parameter comes back as it was, and what comes back may be sent again."""
    sent = [
        {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value
        for value in values
    ]
    page = RowRange(0, 1, 10**6, 10**6)
    sql = f"SELECT {', '.join('?' for _ in sent)}"
    (row,) = work.rows(Statement(sql, sent), page).rows
    assert row == [cell_of(value, 10**6) for value in values]
    again = [
        value
        for value in row
        if not isinstance(value, str) or value not in ("Infinity", "-Infinity")
    ]
    assert work.rows(Statement(f"SELECT {', '.join('?' for _ in again) or 1}", again), page).rows[
        0
    ] == (again or [1])


def test_texts_that_are_no_unicode(work: SqliteSession) -> None:
    """They are written out, and the rest of the row is there."""
    found = work.rows(Statement("SELECT CAST(x'61ff62' AS TEXT), 1"), RowRange(0, 1, 1000, 1000))
    assert found.rows == [["a\\xffb", 1]]


@given(st.binary())
def test_bytes_as_parameters(value: bytes) -> None:
    """As they come in results, and nothing else is taken for them."""
    assert bytes_of(cell_of(value, 10**6)) == value
    for other in (None, 1, "YQ==", ["base64"], {"base64": "YQ==", "more": 1}, {"bytes": 1}):
        assert bytes_of(other) is None
    with pytest.raises(ToolError):
        bytes_of({"base64": 1})
