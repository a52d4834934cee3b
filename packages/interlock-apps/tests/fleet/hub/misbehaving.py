"""A server in plain Python that does what servers should not: how it starts is its second argument,
the rest are its tools.

Its first argument is a file to which each process of it adds its number.
"""

import json
import os
import signal
import subprocess
import sys
import time

pids = sys.argv[1]
start = sys.argv[2]
era = "2026-07-28" if start != "older" else "2025-06-18"


def note(pid):
    with open(pids, "a", encoding="ascii") as file:
        file.write(f"{pid}\n")


def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(id, result):
    say(
        {
            "id": id,
            "result": {"resultType": "complete", **result} if era == "2026-07-28" else result,
        }
    )


def words(id, text):
    answer(id, {"content": [{"type": "text", "text": text}]})


def complain(text):
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def call(id, name, arguments):
    if name == "die":
        complain("before the end")
        complain(f"the key is {os.environ.get('KEY', 'nowhere')}")
        os._exit(7)
    if name == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "hang":
        return
    if name == "block":
        time.sleep(3600)
    if name == "leave":  # something stays behind that holds the pipes open
        child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(3600)"])
        note(child.pid)
        os._exit(5)
    if name == "garbage":
        for line in (
            "no JSON",
            "[1, 2",
            "{}",
            "null",
            '{"jsonrpc":"2.0","id":{},"result":1}',
            "\x00\xff",
            "x" * 100_000,
        ):
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
    if name == "lines":
        for number in range(arguments["count"]):
            sys.stderr.write(f"line {number}\n")
        sys.stderr.write("x" * 100_000 + "\n")
        sys.stderr.flush()
    if name == "fail":
        say(
            {
                "id": id,
                "error": {
                    "code": -32603,
                    "message": f"bad key {os.environ['KEY']}",
                    "data": {"key": os.environ["KEY"]},
                },
            }
        )
        return
    words(id, str(os.getpid()))


note(os.getpid())
if start == "fails":
    complain(f"no config; key {os.environ.get('KEY', 'nowhere')}")
    sys.exit(3)
if start == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(3600)
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    id = message.get("id")
    if start == "mute":
        continue
    if method == "server/discover" and era == "2026-07-28":
        answer(
            id,
            {
                "supportedVersions": [era],
                "capabilities": {"tools": {}},
                "ttlMs": 0,
                "cacheScope": "private",
            },
        )
    elif method == "initialize":
        answer(
            id,
            {
                "protocolVersion": era,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "x", "version": "1"},
            },
        )
    elif method == "ping":
        if start != "older" or not os.path.exists(pids + ".silent"):
            answer(id, {})
    elif method == "tools/list":
        if start == "falls":
            sys.exit(4)
        answer(
            id,
            {
                "tools": [{"name": "pid", "inputSchema": {"type": "object"}}],
                "ttlMs": 0,
                "cacheScope": "private",
            },
        )
    elif method == "tools/call":
        call(id, message["params"]["name"], message["params"].get("arguments") or {})
    elif id is not None:
        say({"id": id, "error": {"code": -32601, "message": "no such method"}})
if start == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(3600)
