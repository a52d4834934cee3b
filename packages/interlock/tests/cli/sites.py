"""Web sites for the command to talk to: a small MCP server that is not Interlock's, and addresses
that are no server at all.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.loopback import Loopback, Quiet

_RESULTS: dict[str, dict[str, Any]] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "stranger", "version": "0"},
    },
    "tools/list": {"tools": [{"name": "hello", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "hello"}]},
    "ping": {},
}
ODD: dict[str, tuple[int, str, bytes]] = {
    "/missing": (404, "text/plain", b"nothing here"),
    "/page": (200, "text/html", b"<!doctype html><title>Welcome</title>"),
    "/locked": (401, "text/plain", b""),
    "/closed": (403, "text/plain", b"not you"),
    "/ill": (500, "text/html", b"<h1>Oh no</h1>"),
    "/busy": (429, "text/plain", b""),
}
"""Paths that answer everything in one way: status, content type and body."""


class Site(Loopback):
    """A server at `url` of the revision 2025-06-18 that answers by hand; `heads` are the headers of
    what it was asked.

    At `/endless` it answers everything but calls of tools.
    """

    def __init__(self) -> None:
        self._over = threading.Event()
        self.heads: list[dict[str, str]] = []
        super().__init__(self._handler())
        self.url = f"{self.root}/mcp"

    def answer(self, path: str, body: bytes) -> tuple[int, str, bytes]:
        """Status, content type and body for a POST."""
        if path in ODD:
            return ODD[path]
        message = json.loads(body)
        if path == "/endless" and message["method"] == "tools/call":
            self._over.wait()
        if "id" not in message:
            return 202, "text/plain", b""
        result = _RESULTS.get(message["method"])
        if result is None:
            return 400, "text/plain", b"Bad Request: no valid session ID"
        return (
            200,
            "application/json",
            json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode(),
        )

    def close(self) -> None:
        """End it, and calls that are never answered."""
        self._over.set()
        super().close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        site = self

        class Handler(Quiet, BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                site.heads.append({name.lower(): value for name, value in self.headers.items()})
                self._send(
                    *site.answer(self.path, self.rfile.read(int(self.headers["Content-Length"])))
                )

            def do_GET(self) -> None:
                self._send(*ODD.get(self.path, (405, "text/plain", b"")))

            def _send(self, status: int, kind: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        return Handler
