"""Programs for the fault tests: an honest server, servers that misbehave, and a client that can be
killed."""

from __future__ import annotations

HONEST = """
import asyncio, os, sys, time
from interlock import Context, Server

server = Server("honest")

@server.tool
async def add(a: int, b: int) -> int:
    return a + b

@server.tool
def double(n: int) -> int:
    return n * 2

@server.tool
async def wait_for_ever(ctx: Context) -> str:
    ctx.progress(1)
    await asyncio.Event().wait()
    return "never"

@server.tool
def block_for_ever(ctx: Context) -> str:
    ctx.progress(1)
    while not ctx.cancelled:
        time.sleep(0.01)
    return "never"

@server.tool
async def text(size: int) -> str:
    return "x" * size

@server.tool
async def length(text: str) -> int:
    return len(text)

@server.tool
async def noise() -> str:
    print("this must not reach the wire")
    os.system("echo nor must this")
    return "quiet"

@server.tool
async def pid() -> int:
    return os.getpid()

@server.tool
async def memory() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

@server.tool
async def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))

server.run(limit=int(sys.argv[1]) if len(sys.argv) > 1 else 64 * 1024 * 1024)
"""

# Answers `initialize`, `server/discover` and lists by the book, and `tools/call` as its argument
# says.
MISBEHAVING = """
import json, sys
how = sys.argv[1]
def say(message):
    sys.stdout.write(json.dumps(message) + "\\n"); sys.stdout.flush()
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    id, method = message["id"], message["method"]
    if method == "server/discover":
        found = {"resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}}}
        say({"jsonrpc": "2.0", "id": id, "result": found})
        continue
    answer = {"jsonrpc": "2.0", "id": id,
        "result": {"content": [{"type": "text", "text": message["params"]["name"]}]}}
    if how == "silent":
        continue
    if how == "twice":
        say(answer)
        say({**answer, "result": {"content": [{"type": "text", "text": "the second"}]}})
    elif how == "garbage":
        sys.stdout.write("Traceback (most recent call last):\\n{\\"jsonrpc\\": \\n")
        sys.stdout.write("[1, 2\\n\\u00ff\\n\\n{}\\n")
        say(answer)
    elif how == "half":
        sys.stdout.write(json.dumps(answer)[:20]); sys.stdout.flush(); sys.exit(3)
    elif how == "huge":
        say({**answer, "result": {"content": [{"type": "text", "text": "y" * int(sys.argv[2])}]}})
    elif how == "dies":
        sys.stderr.write("I give up\\n"); sys.exit(7)
"""

CLIENT = """
import asyncio, sys
from interlock import Client

async def main():
    async with Client([sys.executable, sys.argv[1]]) as client:
        print((await client.call_tool("pid")).value(), flush=True)
        await client.call_tool("wait_for_ever",
            on_progress=lambda _: print("under way", flush=True))

asyncio.run(main())
"""
