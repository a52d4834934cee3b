"""Programs that are started as servers: one that speaks just enough of the protocol to be opened, and variations on it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from interlock import types as t
from interlock.exchange import MUTE, Caller, Exchange
from interlock.transport.conversation import Hello
from interlock.wire.revisions import NEWEST

# A server in plain Python: `before` runs first, `during` in place of each tool call, `after` once its input has ended.
SERVER = """
import json, os, signal, subprocess, sys, time

def say(message):
    sys.stdout.write(json.dumps({{"jsonrpc": "2.0", **message}}) + "\\n")
    sys.stdout.flush()

def answer(words):
    say({{"id": message["id"], "result": {{"content": [{{"type": "text", "text": words}}]}}}})

{before}
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "server/discover":
        say({{"id": message["id"], "result": {{"supportedVersions": ["2026-07-28"], "capabilities": {{}}}}}})
    elif message.get("method") == "tools/call":
{during}
{after}
"""


def server(
    folder: Path, *, before: str = "", during: str = 'answer("fine")', after: str = ""
) -> list[str]:
    """The command of such a server."""
    indented = "\n".join(f"        {line}" for line in during.splitlines())
    path = folder / "server.py"
    path.write_text(SERVER.format(before=before, during=indented, after=after), encoding="utf-8")
    return [sys.executable, "-S", str(path)]


def hello(**more: Any) -> Hello:
    """What a client says that can be asked nothing."""
    info = t.Implementation(name="c", version="1")
    said: dict[str, Any] = {
        "info": info,
        "capabilities": t.ClientCapabilities(),
        "asker": MUTE,
        "notify": lambda method, params: None,
    }
    return Hello(**(said | more))


def call(name: str = "x") -> Exchange:
    """A tool call, ready to be carried."""
    return Exchange("tools/call", t.CallToolRequestParams(name=name), Caller(NEWEST))
