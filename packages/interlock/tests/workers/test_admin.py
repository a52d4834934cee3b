"""`interlock admin` on a running server: what it shows, what it ends, and who may use it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from interlock import Client, HttpFetch, McpError, Request, Server
from interlock.cli.program import program
from interlock.wire.revisions import R4, R5
from tests.workers.clusters import PATIENCE, Program, noted, until

Start = Callable[..., Program]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts programs that are gone at the end of the test."""
    made: list[Program] = []

    def begin(**options: Any) -> Program:
        made.append(Program(tmp_path, admin=str(tmp_path / "admin"), **options))
        return made[-1]

    yield begin
    for each in made:
        each.close()


async def admin(server: Path | str, command: str, *words: str) -> str:
    """Run `interlock admin COMMAND SERVER ...`, and return what it prints."""
    where = server if isinstance(server, str) else str(server / "admin")
    line = ["admin", command, where, *words]
    done = await asyncio.to_thread(CliRunner().invoke, program, line)
    assert done.exit_code == 0, done.output
    return done.stdout


async def rows(server: Path | str, command: str, *, count: int) -> list[dict[str, Any]]:
    """Return the rows of a command, once there are so many."""
    # Each try starts after the one before: a server tells nobody here when a call begins.
    while True:
        found: list[dict[str, Any]] = json.loads(await admin(server, command, "--json"))
        if len(found) == count:
            return found


async def test_calls_are_shown_and_ended(start: Start, tmp_path: Path):
    """Those of both eras, at any worker; their clients get an error."""
    server = start(workers=2).ready()
    async with asyncio.timeout(60):
        for revision in (R4, R5):
            async with Client(server.url, revision=revision) as client:
                call = asyncio.ensure_future(client.call_tool("hang", {"name": revision}))
                await asyncio.to_thread(noted, tmp_path, f"{revision} hangs")
                (row,) = await rows(tmp_path, "calls", count=1)
                assert (row["method"], row["name"]) == ("tools/call", "hang")
                assert int(row["id"].partition("-")[0]) in server.children
                assert "has ended" in await admin(tmp_path, "end", row["id"])
                with pytest.raises(McpError, match="operator of the server has ended"):
                    await call
                await asyncio.to_thread(noted, tmp_path, f"{revision} was cancelled")
                assert await rows(tmp_path, "calls", count=0) == []
                assert (await client.call_tool("count", {"to": 2})).value() == 2
    assert server.end() == 0


async def test_a_suspended_call_is_shown_and_ended(start: Start, tmp_path: Path):
    """An answer that comes later gets an error, and nothing runs again."""
    server = start(workers=2).ready()
    asked = asyncio.Event()
    go_on = asyncio.Event()

    async def answer(*about: object) -> dict[str, int]:
        asked.set()
        await go_on.wait()
        return {"value": 7}

    async with asyncio.timeout(60), Client(server.url, revision=R5, elicit=answer) as client:
        call = asyncio.ensure_future(client.call_tool("ask", {"question": "q"}))
        await asked.wait()
        (row,) = await rows(tmp_path, "suspended", count=1)
        assert row["name"] == "ask"
        assert "suspended call" in await admin(tmp_path, "end", row["id"])
        assert await rows(tmp_path, "suspended", count=0) == []
        go_on.set()
        with pytest.raises(McpError, match="operator of the server has ended"):
            await call
    noted(tmp_path, "asks q", 1)
    assert (tmp_path / "marks").read_text().count("asks q") == 1
    assert server.end() == 0


async def test_sessions_are_shown_and_ended(start: Start, tmp_path: Path):
    """The whole ID is not shown, because it would let its reader use the session."""
    server = start(workers=2).ready()
    async with asyncio.timeout(60), Client(server.url, revision=R4) as client:
        await client.call_tool("pid")
        session = client._transport.trips.session
        (row,) = await rows(tmp_path, "sessions", count=1)
        assert session.startswith(row["id"])
        assert len(row["id"]) == 12 < len(session)
        assert row["revision"] == R4
        assert session not in await admin(tmp_path, "sessions")
        assert "session" in await admin(tmp_path, "end", row["id"])
        assert await rows(tmp_path, "sessions", count=0) == []
        missing = CliRunner().invoke(program, ["admin", "end", str(tmp_path / "admin"), row["id"]])
        assert missing.exit_code == 1
    assert server.end() == 0


async def test_workers_are_shown_and_drained(start: Start, tmp_path: Path):
    """One of them is replaced after its calls; then all end, and leave no socket behind."""
    server = start(workers=2).ready()
    await asyncio.to_thread(noted, tmp_path, "entered", 2)
    before = server.children
    async with asyncio.timeout(60):
        found = await rows(tmp_path, "workers", count=2)
        assert sorted(row["pid"] for row in found) == sorted(before)
        await admin(tmp_path, "drain", str(before[0]))
        await asyncio.to_thread(
            until, lambda: len(server.children) == 2 and before[0] not in server.children
        )
        assert before[1] in server.children
        await rows(tmp_path, "workers", count=2)
        assert "shutting down" in await admin(tmp_path, "drain")
        assert await asyncio.to_thread(server.process.wait, PATIENCE) == 0
    assert list((tmp_path / "admin").iterdir()) == []
    gone = CliRunner().invoke(program, ["admin", "workers", str(tmp_path / "admin")])
    assert gone.exit_code != 0
    assert "No server runs" in gone.output


def test_a_folder_that_others_may_open_is_refused(start: Start, tmp_path: Path):
    (tmp_path / "admin").mkdir(mode=0o755)
    server = start()
    assert server.process.wait(PATIENCE) == 1
    assert "chmod 700" in server.errors


async def test_only_the_owner_can_open_the_folder(start: Start, tmp_path: Path):
    """A single process has a socket too, and ends by itself."""
    server = start().ready()
    assert (tmp_path / "admin").stat().st_mode & 0o777 == 0o700
    async with asyncio.timeout(60):
        (row,) = await rows(tmp_path, "workers", count=1)
        assert row["pid"] == server.process.pid
        await admin(tmp_path, "drain")
        assert await asyncio.to_thread(server.process.wait, PATIENCE) == 0


SECRET = "5" * 40


async def test_the_admin_path_does_the_same_over_http(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """For all workers, whichever of them the request reaches."""
    monkeypatch.setenv("INTERLOCK_ADMIN_SECRET", SECRET)
    server = start(workers=2, admin_path="/admin").ready()
    url = server.url.replace("/mcp", "/admin")
    before = server.children
    async with asyncio.timeout(60):
        found = await rows(url, "workers", count=2)
        assert sorted(row["pid"] for row in found) == sorted(before)
        async with Client(server.url, revision=R4) as client:
            call = asyncio.ensure_future(client.call_tool("hang", {"name": "long"}))
            await asyncio.to_thread(noted, tmp_path, "long hangs")
            (row,) = await rows(url, "calls", count=1)
            (session,) = await rows(url, "sessions", count=1)
            line = ["top", url, "--interval", "0.1", "--once"]
            shown = await asyncio.to_thread(CliRunner().invoke, program, line)
            assert shown.stdout.startswith("2 processes, 1 running, ")
            assert session["id"] in shown.stdout
            assert "has ended" in await admin(url, "end", row["id"])
            with pytest.raises(McpError, match="operator of the server has ended"):
                await call
        levels = await admin(url, "log-level", "debug")
        assert levels.splitlines() == [
            f"The process {pid} is logging at debug." for pid in sorted(before, key=str)
        ]
        await admin(url, "drain", str(before[0]))
        await asyncio.to_thread(
            until, lambda: len(server.children) == 2 and before[0] not in server.children
        )
        assert "shutting down" in await admin(url, "drain")
        assert await asyncio.to_thread(server.process.wait, PATIENCE) == 0


@pytest.mark.parametrize(
    "headers, body, status",
    [
        ((), b'{"command":"workers"}', 401),
        ((("Authorization", f"Bearer {SECRET}x"),), b'{"command":"workers"}', 401),
        ((("Authorization", f"Basic {SECRET}"),), b'{"command":"workers"}', 401),
        (
            (("Authorization", f"Bearer {SECRET}"), ("Origin", "http://127.0.0.1")),
            b'{"command":"workers"}',
            403,
        ),
        ((("Authorization", f"bearer {SECRET}"),), b'{"command":"workers"}', 200),
        ((("Authorization", f"Bearer {SECRET}"),), b'{"command":"shutdown"}', 400),
        ((("Authorization", f"Bearer {SECRET}"),), b'{"command":"drain","pid":"1"}', 400),
        ((("Authorization", f"Bearer {SECRET}"),), b"[", 400),
    ],
)
async def test_the_admin_path_wants_its_secret(
    tmp_path: Path, headers: tuple[tuple[str, str], ...], body: bytes, status: int
):
    """Web pages cannot use it, and a command that ends a process names it."""
    serving = Server("x").serve_http(
        port=0, admin=tmp_path / "admin", admin_path="/admin", admin_secret=SECRET
    )
    fetch = HttpFetch()
    async with serving as http:
        url = http.url.replace("/mcp", "/admin")
        response = await fetch(Request("POST", url, headers, body))
        assert response.status == status
        answer = json.loads(await response.read(10_000))
        assert ("error" in answer) == (status != 200)
        assert (await fetch(Request("GET", url, headers))).status == 405
    await fetch.aclose()


@pytest.mark.parametrize(
    "options, words",
    [
        ({"admin_path": "/admin", "admin_secret": SECRET}, "needs admin"),
        ({"admin": "x", "admin_path": "/admin"}, "at least 32 characters"),
        ({"admin": "x", "admin_path": "/admin", "admin_secret": "short"}, "at least 32 characters"),
        ({"admin": "x", "admin_path": "admin", "admin_secret": SECRET}, "a path such as"),
        ({"admin": "x", "admin_path": "/mcp", "admin_secret": SECRET}, "in the way"),
    ],
)
async def test_the_admin_path_is_never_open(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], words: str
):
    monkeypatch.delenv("INTERLOCK_ADMIN_SECRET", raising=False)
    with pytest.raises(ValueError, match=words):
        async with Server("x").serve_http(port=0, **options):
            pass


@pytest.mark.parametrize(
    "secret, url, words",
    [
        ("", "http://127.0.0.1:1/admin", "Put the secret"),
        (SECRET, "http://shop.example/admin", "Use https"),
        (SECRET, "ftp://127.0.0.1/admin", "no URL"),
        (SECRET, "http://127.0.0.1:1/admin", "127.0.0.1:1"),
    ],
)
def test_a_secret_is_not_sent_in_the_clear(
    monkeypatch: pytest.MonkeyPatch, secret: str, url: str, words: str
):
    monkeypatch.setenv("INTERLOCK_ADMIN_SECRET", secret)
    refused = CliRunner().invoke(program, ["top", url])
    assert refused.exit_code == 1
    assert words in refused.output


def test_the_command_line_wants_a_secret_for_the_admin_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("INTERLOCK_ADMIN_SECRET", raising=False)
    line = ["run", "x.py", "--http", ":0", "--admin-path", "/admin"]
    refused = CliRunner().invoke(program, line)
    assert (refused.exit_code, "needs --admin" in refused.output) == (2, True)
    refused = CliRunner().invoke(program, [*line, "--admin", str(tmp_path)])
    assert (refused.exit_code, "INTERLOCK_ADMIN_SECRET" in refused.output) == (2, True)
