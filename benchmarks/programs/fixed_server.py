"""The server for measurements of clients: it uses no SDK and gives one fixed answer to each
request. Its own cost is not counted."""

from __future__ import annotations

import json
import os
from typing import Any

ADD: dict[str, Any] = {
    "name": "aadd",
    "description": "Add two integers.",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    },
    "outputSchema": {
        "type": "object",
        "properties": {"result": {"type": "integer"}},
        "required": ["result"],
    },
}
SELF = {"name": "fixed", "version": "1.0.0"}
FRESH = {"ttlMs": 3_600_000, "cacheScope": "public"}
SUM = {
    "content": [{"type": "text", "text": "3"}],
    "structuredContent": {"result": 3},
    "isError": False,
}


def answers(stateless: bool) -> dict[str, bytes]:
    """Return the end of the answer to each method, after the id."""
    results: dict[str, dict[str, Any]] = {
        "initialize": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": SELF,
        },
        "server/discover": {
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
            **FRESH,
        },
        "tools/list": {"tools": [ADD], **(FRESH if stateless else {})},
        "tools/call": SUM,
        "ping": {},
    }
    if stateless:
        note = {"io.modelcontextprotocol/serverInfo": SELF}
        results = {
            method: {"resultType": "complete", **result, "_meta": note}
            for method, result in results.items()
        }
    return {
        method: b',"result":' + json.dumps(result, separators=(",", ":")).encode() + b"}\n"
        for method, result in results.items()
    }


def main() -> None:
    """Answer until standard input ends; one write answers all requests of one read."""
    tables = {False: answers(False), True: answers(True)}
    rest = b""
    while chunk := os.read(0, 65536):
        *lines, rest = (rest + chunk).split(b"\n")
        out = []
        for line in lines:
            message = json.loads(line)
            if "id" in message:
                table = tables[b"io.modelcontextprotocol/protocolVersion" in line]
                out.append(
                    b'{"jsonrpc":"2.0","id":'
                    + json.dumps(message["id"]).encode()
                    + table[message["method"]]
                )
        data = memoryview(b"".join(out))
        while data:
            data = data[os.write(1, data) :]


if __name__ == "__main__":
    main()
