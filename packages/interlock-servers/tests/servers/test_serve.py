"""The servers that come with Interlock, run by its command as a host would run them."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner

from interlock import REVISIONS, Client, Stdio
from interlock_servers.commands import serve
from tests.servers.roads import serving


@pytest.mark.matrix(seconds=0.4)
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    "name, tools",
    [
        ("weather", {"get_alerts", "get_forecast", "check_weather"}),
        ("travel", {"search_flights", "find_best_flight", "book_trip"}),
        ("calendar", {"create_event", "list_events"}),
        ("mail", {"send_mail", "create_draft"}),
    ],
)  # the tests of the others show it of each
async def test_interlock_serve(name: str, tools: set[str], tmp_path: Path, revision: str) -> None:
    """`interlock serve NAME` speaks over stdio, under every revision."""
    async with Client(
        Stdio(serving(name), env={"XDG_DATA_HOME": str(tmp_path)}), revision=revision
    ) as client:
        assert client.server_info is not None
        assert client.server_info.name == name
        assert tools <= {tool.name for tool in await client.list_tools()}


async def test_options_of_a_server(tmp_path: Path) -> None:
    """What `interlock serve` does not know goes to the server; what nobody knows is said to be
    none.
    """
    sqlite3.connect(tmp_path / "shop.db").close()
    for options, there in ((["--write=shop"], True), ([], False)):
        async with Client(
            Stdio([*serving("database"), str(tmp_path / "shop.db"), *options])
        ) as client:
            assert ("execute" in {tool.name for tool in await client.list_tools()}) is there
    for typed, words in (
        (["--nonsense"], "No such option '--nonsense'"),
        (["mail", "--nonsense"], "mail takes no arguments"),
    ):
        result = CliRunner().invoke(serve, typed)
        assert (result.exit_code, words in result.output) == (2, True), result.output
