"""The audit trail: who called what, when and how it ended, in a file that shows changes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock import AuditTrail, Client, Context, McpError, Server, ToolError
from interlock import types as t
from interlock.exchange import AnyResult, Caller, Exchange, Principal
from interlock.store.audit_log import AuditLog
from interlock.wire.revisions import R5


def entries(path: Path) -> list[dict[str, Any]]:
    """The lines of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the trail is."""
    return tmp_path / "audit.jsonl"


def audited(trail: AuditTrail) -> Server:
    """A server whose calls end in several ways."""
    server = Server("s", middleware=[trail])

    @server.tool
    async def pay(card: str) -> str:
        return f"paid with {card}"

    @server.tool
    async def fail() -> str:
        raise ToolError("secret reason")

    @server.tool
    async def ask(ctx: Context) -> str:
        return f"got {await ctx.elicit('how many?', int)}"

    @server.resource("thing://1")
    async def thing() -> str:
        return "a secret"

    return server


async def test_each_call_has_its_start_and_its_end(path: Path):
    """And no contents: neither arguments nor results."""
    trail = AuditTrail(path)
    async with Client(audited(trail)) as client:
        await client.list_tools()
        await client.call_tool("pay", {"card": "4711"})
        await client.call_tool("fail")
        await client.read_resource("thing://1")
        with pytest.raises(McpError):
            await client.read_resource("thing://2")
    found = entries(path)
    assert [(each["event"], each["name"], each.get("outcome")) for each in found] == [
        ("started", "pay", None),
        ("ended", "pay", "ok"),
        ("started", "fail", None),
        ("ended", "fail", "tool error"),
        ("started", "thing://1", None),
        ("ended", "thing://1", "ok"),
        ("started", "thing://2", None),
        ("ended", "thing://2", "error -32602"),
    ]
    for start, end in zip(found[::2], found[1::2], strict=True):
        assert start["id"] == end["id"]
        assert end["seconds"] >= 0
        assert start["time"] <= end["time"]
    assert len({each["id"] for each in found}) == 4
    words = path.read_text()
    assert "4711" not in words
    assert "secret" not in words
    assert path.stat().st_mode & 0o777 == 0o600
    assert trail.check().entries == 8
    assert trail.check().broken is None


async def test_a_call_that_asks_is_one_call(path: Path):
    """The question, its answer and the result belong to one start and one end."""
    async with Client(audited(AuditTrail(path)), elicit=lambda question: {"value": 3}) as client:
        assert (await client.call_tool("ask")).text == "got 3"
    assert [each["event"] for each in entries(path)] == ["started", "ended"]
    assert entries(path)[-1]["outcome"] == "ok"


def exchange(caller: Caller, name: str = "pay", *, replayed: bool = False) -> Exchange:
    """A call by somebody."""
    params = t.CallToolRequestParams(name=name)
    return Exchange("tools/call", params, caller, replayed=replayed)


async def test_the_caller_is_named(path: Path):
    """By subject, issuer, client and program; a session id is a secret and not there."""

    async def handler(x: Exchange) -> AnyResult:
        return t.CallToolResult(content=[])

    principal = Principal(subject="alice", issuer="https://login", client="desk", actor="bot")
    info = t.Implementation(name="program", version="2")
    handle = AuditTrail(path)(handler)
    await handle(exchange(Caller(R5, info=info, principal=principal, session="s-1")))
    await handle(exchange(Caller(R5, anonymous=True), replayed=True))
    named, _, anonymous, _ = entries(path)
    for name, value in {
        "subject": "alice",
        "issuer": "https://login",
        "client": "desk",
        "actor": "bot",
        "program": "program 2",
        "anonymous": False,
    }.items():
        assert named[name] == value
    assert "s-1" not in path.read_text()
    assert (anonymous["subject"], anonymous["anonymous"], anonymous["replayed"]) == (
        None,
        True,
        True,
    )


@pytest.mark.parametrize("name", ["\x00" * 100_000, "\ud800" * 1000, "😀" * 5000, "a\nb"])
async def test_no_name_evades_the_trail(path: Path, name: str):
    """A caller chooses the name; it is shortened, and stays one line."""

    async def handler(x: Exchange) -> AnyResult:
        return t.CallToolResult(content=[])

    trail = AuditTrail(path)
    info = t.Implementation(name=name, version=name)
    principal = Principal(subject=name, issuer=name, client=name, actor=name)
    caller = Caller(R5, info=info, principal=principal)
    await trail(handler)(exchange(caller, name))
    assert trail.check().entries == len(path.read_text().splitlines()) == 2
    assert trail.check().broken is None


async def test_a_cancelled_call_has_its_end(path: Path):
    entered = asyncio.Event()

    async def handler(x: Exchange) -> AnyResult:
        entered.set()
        await asyncio.Event().wait()
        raise AssertionError

    call = asyncio.ensure_future(AuditTrail(path)(handler)(exchange(Caller(R5))))
    await entered.wait()
    call.cancel()
    await asyncio.wait({call})
    assert call.cancelled()
    assert [each.get("outcome") for each in entries(path)] == [None, "cancelled"]


@pytest.mark.parametrize("required", [False, True])
async def test_a_trail_that_cannot_be_written(tmp_path: Path, required: bool):
    """Fail-closed: no call runs without its entry. Otherwise calls run, and the log warns."""
    trail = AuditTrail(tmp_path / "no such folder" / "audit.jsonl", required=required)
    async with Client(audited(trail)) as client:
        if required:
            with pytest.raises(McpError) as caught:
                await client.call_tool("pay", {"card": "1"})
            assert caught.value.data == {"reason": "audit"}
        else:
            assert (await client.call_tool("pay", {"card": "1"})).text == "paid with 1"
        assert await client.list_tools()


def test_the_chain_shows_what_was_changed(path: Path):
    """A changed, removed, inserted or exchanged line; a cut end shows by the last hash."""
    log = AuditLog(path)
    for n in range(5):
        log.append({"n": n})
    whole = log.check()
    assert (whole.entries, whole.broken) == (5, None)
    lines = path.read_bytes().splitlines(keepends=True)
    for broken, changed in [
        (3, [*lines[:1], lines[1].replace(b'"n":1', b'"n":7'), *lines[2:]]),
        (3, [*lines[:2], *lines[3:]]),
        (1, lines[1:]),
        (3, [*lines[:2], lines[1], *lines[2:]]),
        (2, [lines[0], lines[2], lines[1], *lines[3:]]),
        (6, [*lines, b"words\n"]),
        (5, [*lines[:4], lines[4][:-1]]),
    ]:
        path.write_bytes(b"".join(changed))
        assert log.check().broken == broken, changed
    path.write_bytes(b"".join(lines[:4]))
    assert log.check().broken is None
    assert log.check().last != whole.last


def test_a_line_that_a_killed_process_has_begun_does_not_spoil_the_next(path: Path):
    """The next entry begins on a line of its own, and the check names the broken line."""
    log = AuditLog(path)
    log.append({"n": 0})
    with path.open("ab") as file:
        file.write(b'{"n":')
    log.append({"n": 1})
    last = path.read_bytes().splitlines()[-1]
    assert json.loads(last)["n"] == 1
    assert log.check().broken == 2


def test_many_processes_write_one_chain(path: Path):
    program = (
        "import sys; from interlock.store.audit_log import AuditLog\n"
        "log = AuditLog(sys.argv[1])\n"
        "for n in range(100): log.append({'n': n})"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, str(path)]) for _ in range(3)]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert (AuditLog(path).check().entries, AuditLog(path).check().broken) == (300, None)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit of the file size")
def test_a_full_disk_leaves_no_part_of_a_line(path: Path):
    """The system writes a part of the line only: it is taken back, and the chain goes on later."""
    log = AuditLog(path)
    log.append({"n": 0})
    before = path.read_bytes()
    program = (
        "import resource, sys; from interlock.store.audit_log import AuditLog\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({len(before) + 10}, {len(before) + 10}))\n"
        "try: AuditLog(sys.argv[1]).append({'n': 1})\n"
        "except OSError: print('refused')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "refused\n"
    assert path.read_bytes() == before
    log.append({"n": 1})
    assert (log.check().entries, log.check().broken) == (2, None)
