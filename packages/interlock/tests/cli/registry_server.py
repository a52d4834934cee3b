"""A local MCP registry that speaks the official interface (v0.1), for the tests of its commands."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

OFFICIAL = "io.modelcontextprotocol.registry/official"


class LocalRegistry:
    """The content of a registry.

    Attributes:
        servers: The published documents, newest last.
        status: The status of a server by its name; "active" if there is none.
        keys: The public key of each domain, as its TXT record says it.
        github: The user of each GitHub token, and of each token of a GitHub Actions job.
        requests: The method and path of every request.
    """

    def __init__(self) -> None:
        self.servers: list[dict[str, Any]] = []
        self.status: dict[str, str] = {}
        self.keys: dict[str, str] = {}
        self.github: dict[str, str] = {}
        self.requests: list[str] = []
        self.address = ""

    def answer(self, method: str, path: str, body: Any, token: str) -> tuple[int, Any]:
        """Return the status and the body of a response."""
        self.requests.append(f"{method} {path}")
        parts = urlsplit(path)
        steps = [unquote(step) for step in parts.path.strip("/").split("/")]
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if (method, steps) == ("GET", ["v0.1", "servers"]):
            return self._list(query)
        if method == "GET" and steps[:2] == ["v0.1", "servers"] and steps[3:4] == ["versions"]:
            return self._one(steps[2], steps[4])
        if method == "POST" and steps[:2] == ["v0.1", "auth"]:
            return self._login(steps[2], body)
        if (method, steps) == ("POST", ["v0.1", "publish"]):
            return self._publish(body, token)
        if (method, steps) == ("GET", ["actions"]):  # what GitHub Actions offers to a job
            is_job = token == "job" and query == {"api-version": "2", "audience": "mcp-registry"}
            return (200, {"count": 1, "value": "oidc_1"}) if is_job else (401, {})
        return 404, {"error": "no such path"}

    def _list(self, query: dict[str, str]) -> tuple[int, Any]:
        found = [one for one in self.servers if query.get("search", "") in one["name"]]
        if query.get("version") == "latest":
            found = list({one["name"]: one for one in found}.values())
        start = int(query.get("cursor", "0"))
        end = start + min(int(query.get("limit", "30")), 2)  # small pages, so that cursors are used
        metadata: dict[str, Any] = {"count": len(found[start:end])}
        if end < len(found):
            metadata["nextCursor"] = str(end)
        return 200, {
            "servers": [self._shown(one) for one in found[start:end]],
            "metadata": metadata,
        }

    def _one(self, name: str, version: str) -> tuple[int, Any]:
        found = [
            one
            for one in self.servers
            if one["name"] == name and version in ("latest", one["version"])
        ]
        if not found:
            return 404, {"title": "Not Found", "status": 404, "detail": "Server not found"}
        return 200, self._shown(found[-1])

    def _shown(self, server: dict[str, Any]) -> dict[str, Any]:
        return {
            "server": server,
            "_meta": {OFFICIAL: {"status": self.status.get(server["name"], "active")}},
        }

    def _login(self, kind: str, body: Any) -> tuple[int, Any]:
        if kind in ("github-at", "github-oidc"):
            member = "github_token" if kind == "github-at" else "oidc_token"
            user = self.github.get(body.get(member, ""))
            if user is None:
                return 401, {"title": "Unauthorized", "detail": "Token exchange failed"}
            return 200, {"registry_token": f"io.github.{user}/", "expires_at": 1}
        if kind in ("dns", "http"):  # the same record, of the domain or of its site
            record = self.keys.get(body["domain"], "")
            key = base64.b64decode(record.partition("p=")[2])
            try:
                Ed25519PublicKey.from_public_bytes(key).verify(
                    bytes.fromhex(body["signed_timestamp"]), body["timestamp"].encode()
                )
            except Exception:
                return 401, {"title": "Unauthorized", "detail": "signature verification failed"}
            reversed_domain = ".".join(reversed(body["domain"].split(".")))
            return 200, {"registry_token": f"{reversed_domain}/", "expires_at": 1}
        return 404, {"error": "no such login"}

    def _publish(self, body: Any, token: str) -> tuple[int, Any]:
        if not token:
            return 401, {"title": "Unauthorized", "detail": "no token"}
        if not body["name"].startswith(token):
            return 403, {"title": "Forbidden", "detail": "You do not have permission to publish"}
        if any(
            (one["name"], one["version"]) == (body["name"], body["version"]) for one in self.servers
        ):
            return 400, {"title": "Bad Request", "errors": [{"message": "duplicate version"}]}
        self.servers.append(body)
        return 200, self._shown(body)


@contextmanager
def serving() -> Iterator[LocalRegistry]:
    """Serve a registry on loopback."""
    registry = LocalRegistry()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
            status, answer = registry.answer(self.command, self.path, body, token)
            text = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def do_GET(self) -> None:
            self._do()

        def do_POST(self) -> None:
            self._do()

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        registry.address = f"http://127.0.0.1:{server.server_port}"
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()
