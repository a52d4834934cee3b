"""The page of the everything server: its tables name all that there is, nothing that is not, and
the right revisions.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from interlock import types
from interlock.wire.codec import field_span
from interlock.wire.revisions import METHODS, NEWEST, OLDEST, TYPES
from interlock_servers.everything import ECHO, EverythingLimits, server

PAGE = Path(__file__).parents[5] / "docs" / "servers" / "everything.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line[:1] == "|"
]
TABLE = [row for row in ROWS if len(row) == 4 and row[0] != "feature" and set(row[0]) != {"-"}]
OFFERED = {
    feature.key
    for shelf in (server.tools, server.prompts, server.resources, server.templates)
    for feature in shelf.all()
}
NO_FEATURE = {
    "initialize",
    "notifications/initialized",
    "ping",
    "server/discover",  # what opens a conversation and keeps it
    "tools/list",
    "tools/call",
    "resources/list",
    "prompts/list",
    "resources/unsubscribe",  # said by all, or by its counterpart
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/subscriptions/acknowledged",
}


def named(cell: str) -> set[str]:
    """What stands in a cell as code."""
    return set(re.findall(r"`([^`]+)`", cell))


def test_all_that_there_is_stands_in_the_tables() -> None:
    """Each tool, prompt, resource and template; and nothing else."""
    shown = set().union(*(named(row[2]) for row in TABLE))
    assert OFFERED - shown == set()
    assert shown - OFFERED == {ECHO}


def test_all_that_the_protocol_has_stands_in_the_tables() -> None:
    """Each method, but for those that are no feature by themselves."""
    wire = set().union(*(named(row[1]) for row in TABLE))
    assert METHODS.keys() - wire == NO_FEATURE


@pytest.mark.parametrize("row", [row for row in TABLE if named(row[1])], ids=lambda row: row[0])
def test_the_revisions_are_right(row: list[str]) -> None:
    """As the table of history has them."""
    (wire,) = named(row[1])
    if "Mcp-" in wire or wire == "example/echo":
        return
    if wire in METHODS:
        span = METHODS[wire].since, METHODS[wire].until
    else:
        kind, _, name = wire.partition(".")
        type_ = getattr(types, kind)
        span = (field_span(type_, name) if name else TYPES.get(type_)) or (OLDEST, NEWEST)
    first, last = span
    words = {(True, True): "all", (False, True): f"{first} on", (True, False): f"to {last}"}
    assert row[3] == (
        f"{first} only" if first == last != NEWEST else words[first == OLDEST, last == NEWEST]
    )


@pytest.mark.parametrize("limit", EverythingLimits.__struct_fields__)
def test_limits_are_as_stated(limit: str) -> None:
    """Each with its variable and what it is unless set."""
    (row,) = [row for row in ROWS if named(row[0]) == {f"INTERLOCK_EVERYTHING_{limit.upper()}"}]
    assert row[2] == f"{getattr(EverythingLimits(), limit):g}"
