"""The servers that come with Interlock, run by its command as a host would run them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from interlock import Client


@pytest.mark.parametrize(
    "name, tools",
    [
        ("weather", {"get_alerts", "get_forecast", "check_weather"}),
        ("travel", {"search_flights", "find_best_flight", "book_trip"}),
        ("calendar", {"create_event", "list_events"}),
        ("mail", {"send_mail", "create_draft"}),
        ("files", {"list_files", "search_files"}),
        ("everything", {"echo", "book_table", "tick"}),
    ],
)
async def test_interlock_serve(name: str, tools: set[str], tmp_path: Path) -> None:
    """`interlock serve NAME` speaks over stdio, under either era."""
    serve = {"command": sys.executable, "args": ["-m", "interlock", "serve", name], "env": {"XDG_DATA_HOME": str(tmp_path)}}
    for revision in ("2026-07-28", "2024-11-05"):
        async with Client(serve, revision=revision) as client:
            assert client.server_info is not None
            assert client.server_info.name == name
            assert tools <= {tool.name for tool in await client.list_tools()}
