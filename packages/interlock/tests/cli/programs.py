"""Servers as their authors would write them, for the command to talk to."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

EVERYDAY = '''
import asyncio
import os

from interlock import Context, Image, Server

mcp = Server("everyday", "1.2", instructions="Use it every day.")


@mcp.tool
def add(a: int, b: int = 2) -> int:
    """Add two numbers.

    The second line.
    """
    return a + b


@mcp.tool
def echo(text: str) -> str:
    return text


@mcp.tool
def tagged(tags: list[str], depth: int | str = 0) -> dict[str, object]:
    return {"tags": tags, "depth": depth}


@mcp.tool
def fail() -> str:
    from interlock import ToolError

    raise ToolError("no luck")


@mcp.tool
def picture() -> Image:
    return Image(data=b"\\x89PNG\\r\\n", format="png")


@mcp.tool
def variable(name: str) -> str:
    return os.environ.get(name, "not set")


@mcp.tool
async def hang(ctx: Context) -> str:
    ctx.log.warning(f"hanging in {os.getpid()}")
    await asyncio.Event().wait()
    return "never"


@mcp.tool
async def work(ctx: Context) -> str:
    ctx.progress(1, 2, "half")
    ctx.log.error({"part": "done"})
    ctx.log.debug("unheard")
    return "worked"


@mcp.tool
def folders(ctx: Context) -> list[str]:
    return [root.uri for root in ctx.wait(ctx.roots())]


@mcp.tool
def bell() -> str:
    return "\\x1b[31mred\\x07"


@mcp.resource("note://{name}")
def note(name: str) -> str:
    return f"a note on {name}"


@mcp.resource("photo://one", mime_type="image/jpeg")
def photo() -> bytes:
    return b"\\xff\\xd8\\xff\\x00"


@mcp.prompt
def greet(name: str, style: str = "plain") -> str:
    """Greet somebody."""
    return f"Greet {name} in a {style} way."


@mcp.completion("greet", "style")
def styles(value: str, arguments: dict[str, str]) -> list[str]:
    known = ["plain", "polite", "pirate"] if arguments.get("name") != "king" else ["polite"]
    return [style for style in known if style.startswith(value)]


if __name__ == "__main__":
    raise SystemExit("this part is not for `interlock run`")
'''

QUESTIONS = """
from dataclasses import dataclass
from typing import Literal

from interlock import Context, Server

server = Server("questions")


@dataclass
class Seat:
    row: int
    side: Literal["window", "aisle"]
    meal: str = "none"
    quiet: bool = False


@server.tool
async def book(ctx: Context) -> str:
    seat = await ctx.elicit("Which seat?", Seat)
    if not await ctx.confirm(f"Book row {seat.row}?"):
        return "nothing booked"
    return f"{seat.row} {seat.side} {seat.meal} {seat.quiet}"


@server.tool
async def confirm(ctx: Context) -> str:
    return "yes" if await ctx.confirm("Really?") else "no"


@server.tool
async def sign_in(ctx: Context) -> str:
    await ctx.elicit_url("Sign in first.", "https://example.com/sign-in")
    return "signed in"
"""

# A server that owes nothing to this library: one that answers by hand, of the handshake era, and
# only as a script.
STRANGER = """
import json, os, sys

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] == "initialize":
        result = {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}},
            "serverInfo": {"name": "stranger", "version": "0"}}
    elif message["method"] == "tools/list":
        result = {"tools": [{"name": "arguments", "inputSchema": {"type": "object"}}]}
    elif message["method"] == "tools/call":
        params = message["params"]
        told = [params.get("arguments"), sys.argv[1:], os.environ.get("SECRET")]
        result = {"content": [{"type": "text", "text": json.dumps(told)}]}
    elif message["method"] == "ping":
        result = {}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"],
            "error": {"code": -32601, "message": "no such method"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""

# As old servers with hand-written handlers do: it declares all three, and has only some of their
# lists.
LACKING = """
import json, sys

LISTS = {
    "tools/list": {"tools": [{"name": "query", "inputSchema": {"type": "object"}}]},
    "resources/list": {"resources": [{"uri": "memo://insights", "name": "insights"}]},
    "prompts/list": {"prompts": [{"name": "demo"}]},
}
for name in sys.argv[1:]:
    del LISTS[name]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "initialize":
        answer["result"] = {
            "protocolVersion": "2024-11-05",
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
            "serverInfo": {"name": "lacking", "version": "0"},
        }
    elif message["method"] in LISTS:
        answer["result"] = LISTS[message["method"]]
    elif message["method"] == "tools/call":
        answer["result"] = {"content": [{"type": "text", "text": "called"}]}
    else:
        answer["error"] = {"code": -32601, "message": "Method not found"}
    print(json.dumps(answer), flush=True)
"""


@contextmanager
def listening(path: Path, text: str) -> Iterator[str]:
    """Write a server to a file and run it as a program that listens on a Unix socket beside it.

    Yields its address, a target for the commands. Tests that are not about starting a server share
    one.
    """
    path.write_text(text, encoding="utf-8")
    where = ["--transport", "unix", "--path", str(path.with_suffix(".sock"))]
    command = [sys.executable, "-m", "interlock", "run", str(path), *where]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield process.stderr.readline().removeprefix("Listening at ").strip()
        finally:
            process.terminate()
