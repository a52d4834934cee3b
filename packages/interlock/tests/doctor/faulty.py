"""Small servers that owe nothing to this library, and that can be made wrong in one way at a time:
over stdio from a plan, over HTTP from a site.
"""

from __future__ import annotations

import copy
import json
import queue
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.loopback import Quiet

Plan = dict[str, Any]
Answer = tuple[int, dict[str, str], bytes]

SERVER = """
import json, sys, threading

plan = json.load(open(sys.argv[1], encoding="utf-8"))
for line in plan.get("noise", ()):
    print(line, flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] == plan.get("dies_at"):
        raise SystemExit("I do not know this.")
    found = plan["results"].get(message["method"], {"error": {"code": -32601, "message": "none"}})
    if "pages" in found:
        found = found["pages"][message.get("params", {}).get("cursor", "")]
    kind = "error" if "error" in found else "result"
    answer = {"jsonrpc": "2.0", "id": message["id"], kind: found.get("error", found)}
    print(json.dumps(answer), flush=True)
if "stays" in plan:
    threading.Event().wait()
"""
SILENT = "import sys\nfor line in sys.stdin:\n    pass\n"
"""A server that reads and never answers."""

TOOL = {
    "name": "search",
    "description": "Search the notes.",
    "inputSchema": {
        "type": "object",
        "properties": {"text": {"type": "string", "description": "The words to find."}},
        "required": ["text"],
    },
    "annotations": {"readOnlyHint": True},
}
"""A tool without a fault."""

SOUND: Plan = {
    "results": {
        "initialize": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "sound", "version": "1"},
        },
        "tools/list": {"tools": [TOOL]},
    }
}
"""The plan of a server of the handshake era without a fault."""

_HINTS = {"ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
SOUND_STATELESS: Plan = {
    "results": {
        "server/discover": {
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "sound", "version": "1"}},
            **_HINTS,
        },
        "tools/list": {"tools": [TOOL], **_HINTS},
    }
}
"""The plan of a server of 2026-07-28 without a fault."""


def tool(**members: Any) -> dict[str, Any]:
    """The tool with other members; None takes one away."""
    made = {**copy.deepcopy(TOOL), **members}
    return {name: value for name, value in made.items() if value is not None}


def schema(**members: Any) -> dict[str, Any]:
    """The tool with an input schema of these members."""
    return tool(inputSchema={"type": "object", **members})


def plan_of(plan: Plan, **results: Any) -> Plan:
    """A plan with other results, by method with _ for the slash."""
    made = copy.deepcopy(plan)
    for name, result in results.items():
        made["results"][name.replace("_", "/")] = result
    return made


def offering(
    *tools: dict[str, Any], prompts: Any = None, resources: Any = None, templates: Any = None
) -> Plan:
    """The plan of a server with these tools, and perhaps others."""
    made = plan_of(SOUND, tools_list={"tools": list(tools) or [TOOL]})
    capabilities = made["results"]["initialize"]["capabilities"]
    if prompts is not None:
        capabilities["prompts"] = {}
        made["results"]["prompts/list"] = {"prompts": prompts}
    if resources is not None or templates is not None:
        capabilities["resources"] = {}
        made["results"]["resources/list"] = {"resources": resources or []}
        made["results"]["resources/templates/list"] = {"resourceTemplates": templates or []}
    return made


PYTHON: str = getattr(sys, "_base_executable", sys.executable)
"""The interpreter that no environment belongs to. That of the tests may be below the folder for
temporary files, which is a finding by itself."""


def command_of(folder: Path, plan: Plan) -> list[str]:
    """Write the server and its plan into a folder; return its command."""
    folder.mkdir(exist_ok=True)
    script = folder / "planned.py"
    script.write_text(SERVER, encoding="utf-8")
    planned = folder / "plan.json"
    planned.write_text(json.dumps(plan), encoding="utf-8")
    return [PYTHON, str(script), str(planned)]


class _QuietServer(ThreadingHTTPServer):
    """A server that prints nothing about connections that break, as those of the tests do."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing."""


class FaultySite:
    """An MCP server of 2025-11-25 at `url`, in a thread of its own, with sessions.

    Attributes:
        answers: Answers to whole requests, such as "POST /mcp", before all else.
        plan: The results of its methods.
        session: The id of its only session; empty for none.
        unknown_status: The status of a request with another session id.
        is_fragile: Whether it answers no request after the end of a session.
        checks_host: Whether it refuses requests for another host.
        stream: What GET and subscriptions/listen return: "" for no stream, or an event stream that
            is "silent" or "cut".
        legacy: Whether it speaks only HTTP+SSE, at /sse.
    """

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.answers: dict[str, Answer] = {}
        self.plan = copy.deepcopy(SOUND)
        self.session = "session-1"
        self.unknown_status = 404
        self.checks_host = True
        self.is_fragile = False
        self.is_broken = False
        self.stream = ""
        self.legacy = False
        self._streams: list[queue.SimpleQueue[bytes | None]] = []  # of HTTP+SSE, the newest last
        self._over = threading.Event()
        self._http = _QuietServer(("127.0.0.1", 0), _handler(self))
        if context is not None:
            self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        self.address = f"127.0.0.1:{self._http.server_port}"
        self.root = f"{'http' if context is None else 'https'}://{self.address}"
        self.url = f"{self.root}/mcp"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the site, and its streams."""
        self._over.set()
        for stream in self._streams:
            stream.put(None)
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        """Status, headers and body for a request."""
        if (found := self.answers.get(f"{method} {path}")) is not None:
            return found
        if self.legacy and (method, path) == ("POST", "/messages"):
            if response := self._response(json.loads(body))[2]:
                self._streams[-1].put(response)
            return 202, {}, b""
        if path != "/mcp" or self.legacy:
            return 404, {"Content-Type": "text/plain"}, b"nothing here"
        if self.is_broken:
            return 500, {"Content-Type": "text/plain"}, b"Internal Server Error"
        self.is_broken = self.is_fragile and method == "DELETE"
        if self.checks_host and headers.get("host") != self.address:
            return 403, {"Content-Type": "text/plain"}, b"this host is not allowed"
        if headers.get("mcp-session-id", self.session) != self.session:
            return self.unknown_status, {"Content-Type": "text/plain"}, b"no such session"
        if method != "POST":
            return (405, {}, b"") if method == "GET" else (204, {}, b"")
        return self._response(json.loads(body))

    def _response(self, message: dict[str, Any]) -> Answer:
        if "id" not in message:
            return 202, {}, b""
        found = self.plan["results"].get(message["method"])
        if found is None:
            return 400, {"Content-Type": "text/plain"}, b"unknown method"
        kind = {"Content-Type": "application/json"}
        if message["method"] == "initialize" and self.session:
            kind["Mcp-Session-Id"] = self.session
        data = {"jsonrpc": "2.0", "id": message["id"], "result": found}
        return 200, kind, json.dumps(data).encode()

    def events(self, method: str, path: str, body: bytes) -> Iterator[bytes] | None:
        """The pieces of the event stream that a request gets; None if it gets none."""
        if self.legacy and (method, path) == ("GET", "/sse"):
            return self._legacy_events()
        listens = method == "GET" or b"subscriptions/listen" in body
        return self._silence() if self.stream and listens and path == "/mcp" else None

    def _silence(self) -> Iterator[bytes]:
        if self.stream == "silent":
            self._over.wait()
        yield b""

    def _legacy_events(self) -> Iterator[bytes]:
        stream: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._streams.append(stream)
        yield b"event: endpoint\ndata: /messages\n\n"
        while (frame := stream.get()) is not None:
            yield b"event: message\ndata: " + frame + b"\n\n"


def _handler(site: FaultySite) -> type[BaseHTTPRequestHandler]:
    class Handler(Quiet, BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def do_DELETE(self) -> None:
            self._answer()

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            pieces = site.events(self.command, self.path, body)
            if pieces is not None:
                self._stream(pieces)
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, own, answer = site.answer(self.command, self.path, headers, body)
            self.send_response(status)
            for name, value in own.items():
                self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def _stream(self, pieces: Iterator[bytes]) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            for piece in pieces:
                try:
                    self.wfile.write(piece)
                    self.wfile.flush()
                except OSError:
                    return

    return Handler


@contextmanager
def closing_listener() -> Iterator[str]:
    """The URL of a port that accepts connections and closes them at once."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    listener.accept()[0].close()
                except OSError:
                    return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
