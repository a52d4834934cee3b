"""What every server of the travel scenario has: titles, annotations, schemas of its results, completions and a page of documentation."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from interlock import Client

DOCS = Path(__file__).parents[2] / "docs" / "servers"
PROSE = {"get_alerts"}  # the tutorial's tool, whose answer is a text to be read


@pytest.mark.parametrize("name", ["travel", "calendar", "mail", "weather"])
async def test_each_server_says_what_its_tools_do_and_give(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`TOL-04`, `TOL-05`, `CMP-01`."""
    monkeypatch.setenv("INTERLOCK_TRAVEL_DB", str(tmp_path / "travel.db"))
    monkeypatch.setenv("INTERLOCK_CALENDAR_FOLDER", str(tmp_path / "calendar"))
    monkeypatch.setenv("INTERLOCK_MAIL_FOLDER", str(tmp_path / "mail"))
    async with Client(import_module(f"interlock.servers.{name}").server) as client:
        tools = await client.list_tools()
        assert len(tools) >= 3
        assert [tool.name for tool in tools if tool.annotations is None or not tool.description] == []
        assert {tool.name for tool in tools if tool.output_schema is None} <= PROSE
        assert client.server_capabilities.completions is not None
        assert await client.list_resource_templates()
    page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    assert [tool.name for tool in tools if tool.name not in page] == []
    assert f"interlock serve {name}" in page
