"""Clients of other makers are recorded, and the recordings replay without a difference: to the
same server, and as a mock server to the same client."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.tape import TapeFile, replay_recording, server_process
from tests.interop import catalogue
from tests.interop.driver import command_of, led, on_the_web
from tests.ports import free_port

pytestmark = [pytest.mark.interop]

SERVER = [sys.executable, catalogue.__file__]
CLIENTS = [
    ("python-1", "legacy"),
    ("python-2", "auto"),
    ("python-2", "legacy"),
    ("typescript-1", "legacy"),
    ("typescript-2", "auto"),
    ("fastmcp", "auto"),
]


async def converse(program: list[str], mode: str, **target: Any) -> list[Any]:
    """What a client sees of a server."""
    seen: list[Any] = []
    async with led(program, mode=mode, log_level="info", **target) as client:
        for name, arguments in (
            ("add", {"a": 1, "b": 2}),
            ("weather", {"city": "Oslo"}),
            ("echo", {"text": "é 🎈\n\u2028"}),
            ("fail", {}),
            ("add", {"a": 3, "b": 4}),
            ("ask_model", {"prompt": "Capital of France?"}),
        ):
            step = await client.call(name, arguments)
            seen.append([step.saw, step.error])
    return seen


@pytest.mark.parametrize("peer, mode", CLIENTS)
async def test_a_recording_replays(
    peer: str, mode: str, tmp_path: Path, installed: Callable[[str], Path]
) -> None:
    program = command_of("client", peer, installed)
    path = tmp_path / "session.tape"
    recorder = [sys.executable, "-m", "interlock", "record", "-o", str(path), "--", *SERVER]
    seen = await converse(program, mode, command=recorder)
    assert seen == await converse(program, mode, command=SERVER)
    with TapeFile(path) as tape:
        assert tape.problems == []
        assert tape.verify() == []
        calls = [row for row in tape.rows if row.kind == "request" and row.method == "tools/call"]
        assert len(calls) >= 6
        assert all(row.partner >= 0 for row in calls)
        conversations = [tape.conversation(name) for name in tape.connections]
    for conversation in conversations:
        async with server_process(SERVER) as channel:
            assert await replay_recording(conversation, channel) == []
    mock = [sys.executable, "-m", "interlock", "replay", str(path), "--as", "server"]
    assert await converse(program, mode, command=mock) == seen


@pytest.mark.parametrize("peer, mode", CLIENTS)
async def test_a_recording_over_http(
    peer: str, mode: str, tmp_path: Path, installed: Callable[[str], Path]
) -> None:
    """Through the reverse proxy a client sees what it sees without; a mock server that is made of
    the recording gives it the same.
    """
    program = command_of("client", peer, installed)
    path = tmp_path / "web.tape"
    port = free_port()
    proxy = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    recorder = [sys.executable, "-m", "interlock", "record", "-o", str(path)]
    async with on_the_web([*SERVER, str(port)], port):
        direct = await converse(program, mode, url=url, road="http")
        async with on_the_web([*recorder, "--http", f":{proxy}", url], proxy):
            seen = await converse(program, mode, url=f"http://127.0.0.1:{proxy}/mcp", road="http")
    assert seen == direct
    with TapeFile(path) as tape:
        assert tape.problems == []
        assert tape.verify() == []
        calls = [row for row in tape.rows if row.kind == "request" and row.method == "tools/call"]
        assert all(row.partner >= 0 for row in calls)
    mock = [sys.executable, "-m", "interlock", "replay", str(path), "--as", "server"]
    assert await converse(program, mode, command=mock) == seen
