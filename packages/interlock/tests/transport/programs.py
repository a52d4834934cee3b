"""Programs that are started as servers:

one that speaks just enough of the protocol to be opened, and variations on it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from interlock import types as t
from interlock.exchange import MUTE, Caller, Exchange
from interlock.transport.conversation import Hello
from interlock.wire.revisions import NEWEST

# A server in plain Python: `before` runs first, `during` in place of each tool call, `after` once
# its input has ended.
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
        say({{"id": message["id"], "result": {{"supportedVersions": ["2026-07-28"],
            "capabilities": {{}}}}}})
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


# A server of the handshake era; the names of its variations say what the probe does to it. Each
# start leaves a line in a file.
OLD = """
import json, os, signal, sys, time

with open({starts!r}, "a") as file:
    file.write(f"{{os.getpid()}}\\n")

def starts():
    with open({starts!r}) as file:
        return file.read().split()

number = len(starts())

def say(message):
    sys.stdout.write(json.dumps({{"jsonrpc": "2.0", **message}}) + "\\n")
    sys.stdout.flush()

def fail(code=-32601, words="Method not found"):
    say({{"id": message["id"], "error": {{"code": code, "message": words}}}})

def greet():
    say({{"id": message["id"], "result": {{
        "protocolVersion": "2024-11-05", "capabilities": {{}},
            "serverInfo": {{"name": "old", "version": "{version}"}}
    }}}})

def swallow():
    for line in sys.stdin:
        pass
    sys.exit(0)

probed = False
{before}
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "server/discover":
        probed = True
{probe}
    elif method == "initialize":
{initialize}
    elif method == "tools/call":
{call}
    elif "id" in message:
{other}
"""

NUMBER = (
    """say({"id": message["id"], "result": {"content": [{"type": "text", "text": str(number)}]}})"""
)
EMPTY = """say({"id": message["id"], "result": {}})"""

DISCOVERED = (
    'say({"id": message["id"], "result": '
    '{"supportedVersions": ["2026-07-28"], "capabilities": {}}})'
)

BROKEN_BY_THE_PROBE = {
    "it dies": {"probe": "sys.exit('unknown request')"},
    "it stops reading, and dies of the next message, as the Python SDK did up to 1.8": {
        "probe": "sys.stdin.readline(); sys.exit('unknown request')"
    },
    "it stops reading, and stays": {"probe": "swallow()"},
    "it refuses initialize after the probe, as bridges do": {
        "initialize": "fail(-32600, 'Server already initialized') if probed else greet()"
    },
    "it answers nothing to the probe and refuses initialize": {
        "probe": "pass",
        "initialize": "fail(-32600, 'Server already initialized') if probed else greet()",
    },
    "it refuses initialize, and does not end with its input": {
        "initialize": "fail(-32600, 'Server already initialized') if probed else greet()",
        "before": "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    },
}


def old_server(
    folder: Path,
    *,
    before: str = "",
    probe: str = "fail()",
    initialize: str = "greet()",
    call: str = NUMBER,
    other: str = EMPTY,
    version: str = "1",
) -> list[str]:
    """The command of a server of the handshake era; `starts` says how often it was started."""
    path = folder / "old_server.py"
    program = OLD.format(
        starts=str(folder / "starts"),
        before=before,
        probe="        " + probe.replace("\n", "\n        "),
        initialize="        " + initialize.replace("\n", "\n        "),
        call="        " + call.replace("\n", "\n        "),
        other="        " + other.replace("\n", "\n        "),
        version=version,
    )
    path.write_text(program, encoding="utf-8")
    return [sys.executable, "-S", str(path)]


def starts(folder: Path) -> list[int]:
    """The process ids of the old server, of all its starts."""
    path = folder / "starts"
    return [int(pid) for pid in path.read_text().split()] if path.exists() else []


# A server of both eras whose tools ask by requests of their own, for which the newest revision has
# no way. Each start, and each run of a tool, leaves a line in a file.
ASKER = """
import json, os, sys

def note(name):
    with open(os.path.join({folder!r}, name), "a") as file:
        file.write(f"{{os.getpid()}}\\n")

def say(message):
    sys.stdout.write(json.dumps({{"jsonrpc": "2.0", **message}}) + "\\n")
    sys.stdout.flush()

def answer(**result):
    say({{"id": message["id"], "result": {{"resultType": "complete", **result}}}})

def fail(words):
    say({{"id": message["id"], "error": {{"code": -32600, "message": words}}}})

def result_of(method, text):
    if method == "tools/call":
        return {{"content": [{{"type": "text", "text": text}}]}}
    if method == "prompts/get":
        return {{"messages": [{{"role": "user", "content": {{"type": "text", "text": text}}}}]}}
    return {{"contents": [{{"uri": "a:b", "text": text}}]}}

def ask(method):
    note("runs")
    if not greeted:
        if {in_result!r} and method == "tools/call":
            return answer(isError=True, content=[{{"type": "text", "text": {words!r}}}])
        return fail({words!r})
    say({{"id": "q", "method": "elicitation/create", "params": {{
        "message": "Which size?", "requestedSchema": {{"type": "object",
            "properties": {{"size": {{"type": "string"}}}}}}
    }}}})
    while line := sys.stdin.readline():
        reply = json.loads(line)
        if reply.get("id") == "q":
            return answer(**result_of(method, json.dumps(reply.get("result", {{}}).get("content"))))
        backlog.append(line)

def lines():
    while line := (backlog.pop(0) if backlog else sys.stdin.readline()):
        yield line

note("starts")
greeted = False
backlog = []
HAS = {{"tools": {{}}, "prompts": {{}}, "resources": {{}}}}
SCHEMA = {{"type": "object"}}
TOOLS = [
    {{"name": "order", "inputSchema": SCHEMA}},
    {{"name": "look", "inputSchema": SCHEMA, "annotations": {{"readOnlyHint": True}}}},
    {{"name": "wait", "inputSchema": SCHEMA}},
]
for line in lines():
    message = json.loads(line)
    method = message.get("method")
    if method == "server/discover":
        answer(supportedVersions=["2026-07-28"], capabilities=HAS)
    elif method == "initialize" and {older!r}:
        greeted = True
        answer(protocolVersion="2025-11-25", capabilities=HAS,
            serverInfo={{"name": "asker", "version": "1"}})
    elif method == "tools/list":
        answer(tools=TOOLS)
    elif method == "prompts/list":
        answer(prompts=[{{"name": "plan"}}])
    elif method in ("resources/list", "resources/templates/list"):
        answer(resources=[], resourceTemplates=[])
    elif method == "tools/call" and message["params"]["name"] == "wait":
        waiting = message
    elif method in ("tools/call", "prompts/get", "resources/read"):
        ask(method)
    elif method == "ping" or method == "completion/complete":
        answer(completion={{"values": []}})
        if method == "completion/complete":
            message = waiting
            answer(**result_of("tools/call", "waited"))
    elif "id" in message:
        fail("Method not found")
"""

NO_BACK_CHANNEL = (
    "Cannot send 'elicitation/create': this transport context has no back-channel for "
    "server-initiated requests."
)
UNAVAILABLE = "elicitation via server-initiated requests is unavailable on 2026-07-28 connections."


def asking_server(
    folder: Path, *, words: str = NO_BACK_CHANNEL, in_result: bool = False, older: bool = True
) -> list[str]:
    """The command of such a server; `older` says whether it speaks an older revision at all."""
    path = folder / "asker.py"
    path.write_text(
        ASKER.format(folder=str(folder), words=words, in_result=in_result, older=older),
        encoding="utf-8",
    )
    return [sys.executable, "-S", str(path)]


def count(folder: Path, name: str) -> int:
    """How many lines were left in one of its files, "starts" or "runs"."""
    path = folder / name
    return len(path.read_text().split()) if path.exists() else 0
