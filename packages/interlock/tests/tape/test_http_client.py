"""A recorded client over HTTP: heads and messages of an exchange have its number on the tape."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock import Client, Context, Http, Server
from interlock.tape import HttpHead, RecordedFetch, Recorder, TapeFile
from interlock.wire.revisions import REVISIONS


def make_server() -> Server:
    server = Server("web", "1")

    @server.tool
    async def work(ctx: Context) -> str:
        ctx.progress(1, 2, "half")
        return "done"

    return server


@pytest.mark.parametrize("revision", [REVISIONS[1], REVISIONS[-1]])
async def test_an_exchange_is_on_the_tape(tmp_path: Path, revision: str) -> None:
    path = tmp_path / "web.tape"
    fetch = RecordedFetch()
    with Recorder(path) as recorder:
        async with make_server().serve_http(port=0) as web:
            tap = fetch.record(recorder.connection())
            transport = Http(
                web.url, fetch=fetch, tap=tap, headers={"Authorization": "Bearer secret-of-mine"}
            )
            async with Client(transport, revision=revision) as client:
                result = await client.call_tool("work", on_progress=lambda _: None)
                assert result.text == "done"
            await fetch.aclose()
    assert b"secret-of-mine" not in path.read_bytes()
    with TapeFile(path) as tape:
        (call,) = [row for row in tape.rows if row.name == "work" and row.kind == "request"]
        same = [row for row in tape.rows if row.exchange == call.exchange]
        kinds = [row.kind for row in same]
        assert kinds == ["request", "http", "http", "notification", "response"]
        heads = [tape.read(row) for row in same if row.kind == "http"]
        first, second = (head for head in heads if isinstance(head, HttpHead))
        assert first.request.startswith("POST ")
        assert second.status == 200
        assert all(row.exchange for row in tape.rows if row.sender or row.kind == "http")


async def test_requests_at_a_time_are_told_apart(tmp_path: Path) -> None:
    """Each task has its own exchange."""
    import asyncio

    path = tmp_path / "web.tape"
    fetch = RecordedFetch()
    with Recorder(path) as recorder:
        async with make_server().serve_http(port=0) as web:
            transport = Http(web.url, fetch=fetch, tap=fetch.record(recorder.connection()))
            async with Client(transport) as client:
                await asyncio.gather(*(client.call_tool("work") for _ in range(10)))
            await fetch.aclose()
    with TapeFile(path) as tape:
        calls = [row for row in tape.rows if row.name == "work" and row.kind == "request"]
        assert len({call.exchange for call in calls}) == 10
        for call in calls:
            assert tape.rows[call.partner].exchange == call.exchange
