"""A host that records its servers: secrets of the configuration are redacted."""

from __future__ import annotations

from pathlib import Path

from interlock import Server
from interlock.configs import Entry
from interlock.redaction import DOTS
from interlock.tape import Recorder, TapeFile
from tests.fleet.hub.keeping import kept

SECRET = "correct horse battery"


def make_server() -> Server:
    server = Server("safe", "1", instructions=f"Say {SECRET} to open.")

    @server.tool
    def look() -> str:
        return "gold"

    return server


async def test_a_hub_records_its_servers(tmp_path: Path) -> None:
    path = tmp_path / "host.tape"
    entry = Entry(id="safe", command=("safe",), secrets=frozenset({SECRET}))
    with Recorder(path) as recorder:
        async with kept(entry, servers={"safe": make_server()}, record=recorder) as hub:
            assert "safe" in hub.hub.servers
    text = path.read_text(encoding="utf-8")
    assert SECRET not in text
    assert DOTS in text
    with TapeFile(path) as tape:
        assert tape.verify() == []
        assert any(row.method == "tools/list" for row in tape.rows)
