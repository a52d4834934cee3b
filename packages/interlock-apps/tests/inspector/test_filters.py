"""The filter language of the timeline, by a table."""

from __future__ import annotations

import pytest

from interlock.tape import TapeRow
from interlock_apps.inspector.filters import FilterError, FilterRow, parse_filter

ROWS = {
    "call": FilterRow(
        TapeRow(0, 0, 0, "request", "client", method="tools/call", name="search", id=3, partner=1),
        "a.py",
        0.5,
        False,
        lambda: b'{"client":{"method":"tools/call","params":{"q":"Lisbon"}}}',
    ),
    "answer": FilterRow(
        TapeRow(1, 0, 0, "response", "server", method="tools/call", name="search", id=3, partner=0),
        "a.py",
        0.5,
        False,
        lambda: b'{"server":{"result":{}}}',
    ),
    "failed": FilterRow(
        TapeRow(2, 0, 0, "request", "client", method="tools/call", name="book", id="x", partner=9),
        "b.py",
        0.02,
        True,
        lambda: b"{}",
    ),
    "list": FilterRow(
        TapeRow(3, 0, 0, "request", "client", method="tools/list", id=5),
        "b.py",
        None,
        False,
        lambda: b"{}",
    ),
    "question": FilterRow(
        TapeRow(4, 0, 0, "request", "server", method="elicitation/create", id=1, partner=8),
        "a.py",
        3.0,
        False,
        lambda: b"{}",
    ),
    "progress": FilterRow(
        TapeRow(5, 0, 0, "notification", "server", method="notifications/progress"),
        "a.py",
        None,
        False,
        lambda: b"{}",
    ),
    "stderr": FilterRow(
        TapeRow(6, 0, 0, "stderr"), "a.py", None, False, lambda: b'{"stderr":"No Lisbon"}'
    ),
    "http": FilterRow(TapeRow(7, 0, 0, "http"), "b.py", None, False, lambda: b"{}"),
}


@pytest.mark.parametrize(
    "text, shown",
    [
        ("", set(ROWS)),
        ("   ", set(ROWS)),
        ("method:tools/call", {"call", "answer", "failed"}),
        ("method:tools/*", {"call", "answer", "failed", "list"}),
        ("method:tools/list,elicitation/create", {"list", "question"}),
        ("tool:search", {"call", "answer"}),
        ("tool:s*,book", {"call", "answer", "failed"}),
        ("method:tools/call tool:search slower:200ms", {"call", "answer"}),
        ("slower:1s", {"question"}),
        ("slower:0.5s", {"call", "answer", "question"}),
        ("faster:100", {"failed"}),
        ("slower:0.05m", {"question"}),
        ("error", {"failed"}),
        ("method:tools/call -error", {"call", "answer"}),
        ("-message", {"stderr", "http"}),
        ("request", {"call", "failed", "list", "question"}),
        ("response", {"answer"}),
        ("notification", {"progress"}),
        ("question", {"question"}),
        ("unanswered", {"list"}),
        ("stderr", {"stderr"}),
        ("http", {"http"}),
        ("kind:http,stderr", {"http", "stderr"}),
        ("from:server", {"answer", "question", "progress"}),
        ("from:client,server connection:b.py", {"failed", "list"}),
        ("connection:b*", {"failed", "list", "http"}),
        ("id:x", {"failed"}),
        ("id:3", {"call", "answer"}),
        ('"lisbon"', {"call", "stderr"}),
        ('text:"no LISBON"', {"stderr"}),
        ('-"lisbon" request', {"failed", "list", "question"}),
    ],
)
def test_a_filter_shows_these_rows(text: str, shown: set[str]) -> None:
    matches = parse_filter(text)
    assert {name for name, row in ROWS.items() if matches(row)} == shown


@pytest.mark.parametrize(
    "text, words",
    [
        ("search", "'search' is not a word of the filter. The words are error, request"),
        ("search", 'write it in quotes: "search"'),
        ("methd:tools/call", "There is no filter methd:. There are method:, tool:"),
        ("method:", "Cannot read 'method:'|'method:' is not a word"),
        ("method:,", "method: needs a value, such as method:tools/call"),
        ("slower:soon", "slower:soon is not a duration, such as slower:200ms"),
        ("from:model", "from:model is unknown; it is from:client or from:server"),
        ('"open', "a quote is open or misplaced"),
        ('text:""', "A text to search for is empty"),
        ("error " * 31, "at most 30 terms; this one has 31"),
    ],
)
def test_a_wrong_filter_is_explained(text: str, words: str) -> None:
    with pytest.raises(FilterError) as found:
        parse_filter(text)
    assert any(one in str(found.value) for one in words.split("|"))
