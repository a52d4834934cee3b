"""The request log: a line for each request without its contents, and never a wait for a reader."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, Context, Server, Stdio, ToolError
from interlock.server.request_log import RequestEntry, RequestLog, StderrLines, request_log
from interlock.testing import ScriptedAnswers, Way, connect

SCRIPT = """
from interlock import Server
server = Server("logged", "1")
@server.tool
def greet(name: str) -> str:
    return f"Hello {name}"
if __name__ == "__main__":
    server.run()
"""


def make_server() -> Server:
    server = Server("logged", "1")

    @server.tool
    def greet(name: str) -> str:
        return f"Hello {name}"

    @server.tool
    def fail() -> str:
        raise ToolError("no")

    @server.tool
    async def agree(ctx: Context) -> bool:
        return await ctx.confirm("Really?")

    return server


async def test_each_request_has_an_entry(interlock_way: Way) -> None:
    server = make_server()
    entries: list[RequestEntry] = []
    server.log_requests(RequestLog(entries.append))
    answers = ScriptedAnswers(elicit={"Really": {"confirm": True}})
    async with connect(
        server, revision=interlock_way.revision, suspend=interlock_way.suspend, answers=answers
    ) as client:
        await client.call_tool("greet", {"name": "a secret"})
        await client.call_tool("fail")
        await client.call_tool("agree")
        with pytest.raises(Exception, match="nowhere"):
            await client.call_tool("nowhere")
        await client.list_tools()
    calls = [(e.method, e.name, e.outcome) for e in entries if e.method.startswith("tools/")]
    asked = [("tools/call", "agree", "input required")] if interlock_way.revision > "2026" else []
    assert calls == [
        ("tools/call", "greet", "ok"),
        ("tools/call", "fail", "tool error"),
        *asked,
        ("tools/call", "agree", "ok"),
        ("tools/call", "nowhere", "error -32602"),
        ("tools/list", "", "ok"),
    ]
    assert all("secret" not in str(entry) for entry in entries)
    assert all(entry.ms >= 0 for entry in entries)


async def test_a_server_over_stdio_logs_to_stderr(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(SCRIPT)
    lines: list[str] = []
    async with Client([sys.executable, str(script)], on_stderr=lines.append) as client:
        await client.call_tool("greet", {"name": "a secret"})
    (line,) = [line for line in lines if "tools/call" in line]
    assert line.startswith("interlock: tools/call greet: ok, ")
    assert "secret" not in line


@pytest.mark.parametrize("way", ["option", "variable"])
async def test_the_log_as_json(tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "server.py"
    script.write_text(SCRIPT)
    options = ["--log", "json"] if way == "option" else []
    env = {"INTERLOCK_LOG": "json"} if way == "variable" else {}
    lines: list[str] = []
    command = [sys.executable, "-m", "interlock", "run", *options, str(script)]
    async with Client(Stdio(command, env=env, on_stderr=lines.append)) as client:
        await client.call_tool("greet", {"name": "x"})
    (entry,) = [e for e in map(json.loads, lines) if e["method"] == "tools/call"]
    assert entry.items() >= {"event": "request", "name": "greet", "outcome": "ok"}.items()
    assert entry["ms"] >= 0


def test_off_costs_nothing() -> None:
    """No layer is added."""
    assert request_log("off") is None
    with pytest.raises(ValueError, match="text, json or off"):
        request_log("loud")


def test_configured_logging_gets_the_lines(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "interlock.requests"):
        log = request_log("off")
        assert log is not None

        async def run() -> None:
            server = make_server()
            server.log_requests(log)
            async with connect(server) as client:
                await client.call_tool("greet", {"name": "x"})

        asyncio.run(run())
    assert any("tools/call greet: ok" in message for message in caplog.messages)


async def test_nobody_waits_for_a_reader_of_stderr() -> None:
    """Lines are left out while the pipe is full, and the reader is told how many."""
    entry = RequestEntry("tools/call", "x", "", "", "ok", 1.0)
    read_end, write_end = os.pipe()
    try:
        lines = StderrLines(lambda entry: entry.name * 100, write_end)
        for _ in range(200):
            for _ in range(10):
                lines.write(entry)
            lines.flush()
        got = os.read(read_end, 1 << 20)
        lines.write(entry)
        lines.flush()
        got += os.read(read_end, 1 << 20)
    finally:
        os.close(read_end)
        os.close(write_end)
    lines_read = got.decode().splitlines()
    whole = [line for line in lines_read if line == "x" * 100]
    left_out = [int(line.split()[1]) for line in lines_read if line.endswith("log were left out")]
    assert left_out
    assert len(whole) + sum(left_out) == 2001
    assert len(whole) + len(left_out) == len(lines_read)


async def test_a_name_cannot_forge_a_line() -> None:
    entries: list[Any] = []
    server = make_server()
    server.log_requests(RequestLog(entries.append))
    async with connect(server) as client:
        with pytest.raises(Exception, match="."):
            await client.call_tool("x\ninterlock: tools/call forged: ok")
    assert len(str(entries[-1]).splitlines()) == 1
