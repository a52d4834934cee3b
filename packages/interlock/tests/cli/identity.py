"""A guarded MCP endpoint and its authorization server in one small site, which can be made wrong in
every way that sites are.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.loopback import Loopback, Quiet

Answer = tuple[int, dict[str, str], bytes]
_RESULTS: dict[str, dict[str, Any]] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "shop", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "buy", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "bought"}]},
    "ping": {},
}
RESOURCE = "/.well-known/oauth-protected-resource/mcp"
AUTHORITY = "/.well-known/oauth-authorization-server/login"
SECRETS = ("access-", "refresh-", "secret-", "code-")
"""What every secret of this site begins with."""


class Identity(Loopback):
    """The site. `resource` and `authority` are its documents and `challenge` the header of its 401,
    to be changed or set to None; `answers` are those for whole paths, before all else. `asked` is
    what it was asked: method, path, headers, form.
    """

    def __init__(self) -> None:
        super().__init__(self._handler())
        self.url = f"{self.root}/mcp"
        self.issuer = f"{self.root}/login"
        self.challenge: str | None = (
            f'Bearer resource_metadata="{self.root}{RESOURCE}", scope="shop:read"'
        )
        self.resource: dict[str, Any] | None = {
            "resource": self.url,
            "authorization_servers": [self.issuer],
        }
        self.authority: dict[str, Any] | None = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.root}/authorize",
            "token_endpoint": f"{self.root}/token",
            "registration_endpoint": f"{self.root}/register",
            "revocation_endpoint": f"{self.root}/revoke",
            "device_authorization_endpoint": f"{self.root}/device",
            "code_challenge_methods_supported": ["S256"],
            "response_types_supported": ["code"],
            "grant_types_supported": [
                "authorization_code",
                "refresh_token",
                "urn:ietf:params:oauth:grant-type:device_code",
            ],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
            "authorization_response_iss_parameter_supported": True,
        }
        self.answers: dict[str, Answer] = {}
        self.asked: list[tuple[str, str, dict[str, str], dict[str, str]]] = []
        self.good: set[str] = set()  # tokens that it takes
        self.seconds: float = 600
        self.refreshes = True
        self.needs: str | None = None  # a scope without which tools cannot be called
        self._codes: dict[str, dict[str, str]] = {}
        self._numbers = itertools.count(1)

    def forms(self, path: str) -> list[dict[str, str]]:
        """The forms that were posted to a path."""
        return [form for method, where, _, form in self.asked if method == "POST" and where == path]

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        """Status, headers and body for a request."""
        parts = urlsplit(target)
        is_form = headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
        form = dict(parse_qsl(body.decode())) if is_form else {}
        self.asked.append((method, parts.path, headers, form))
        if parts.path in self.answers:
            return self.answers[parts.path]
        match parts.path:
            case "/mcp":
                return self._mcp(headers, json.loads(body or b"{}"))
            case "/authorize":
                return self._authorize(dict(parse_qsl(parts.query)))
            case "/token":
                return self._token(form)
            case "/register":
                return as_json(
                    {**json.loads(body), "client_id": f"client-{next(self._numbers)}"}, 201
                )
            case "/revoke":
                self.good.discard(form["token"])
                return as_json({})
            case "/device":
                code = f"code-{next(self._numbers)}"
                self._codes[code] = {}
                return as_json(
                    {
                        "device_code": code,
                        "user_code": "ABCD-EFGH",
                        "verification_uri": f"{self.root}/enter",
                        "expires_in": 60,
                        "interval": 1,
                    }
                )
            case path if path == RESOURCE and self.resource is not None:
                return as_json(self.resource)
            case path if path == AUTHORITY and self.authority is not None:
                return as_json(self.authority)
        return 404, {"Content-Type": "text/plain"}, b"nothing here"

    def _mcp(self, headers: dict[str, str], message: dict[str, Any]) -> Answer:
        token = headers.get("authorization", "").removeprefix("Bearer ")
        if self.challenge is not None and token not in self.good:
            return 401, {"WWW-Authenticate": self.challenge}, b""
        if "id" not in message:
            return 202, {}, b""
        if message["method"] == "tools/call" and self.needs is not None:
            return (
                403,
                {"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{self.needs}"'},
                b"",
            )
        result = _RESULTS.get(message["method"])
        if result is None:
            return 400, {}, b"unknown method"
        return as_json({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _authorize(self, query: dict[str, str]) -> Answer:
        code = f"code-{next(self._numbers)}"
        self._codes[code] = query
        back = {"code": code, "state": query["state"], "iss": self.issuer}
        return 302, {"Location": f"{query['redirect_uri']}?{urlencode(back)}"}, b""

    def _token(self, form: dict[str, str]) -> Answer:
        scope = "shop:read"
        match form["grant_type"]:
            case "authorization_code":
                asked = self._codes.pop(form["code"])
                digest = (
                    base64.urlsafe_b64encode(
                        hashlib.sha256(form["code_verifier"].encode()).digest()
                    )
                    .decode()
                    .rstrip("=")
                )
                if (
                    digest != asked["code_challenge"]
                    or form["redirect_uri"] != asked["redirect_uri"]
                ):
                    return as_json({"error": "invalid_grant"}, 400)
                scope = asked.get("scope", scope)
            case "refresh_token":
                if form["refresh_token"] not in self.good:
                    return as_json({"error": "invalid_grant"}, 400)
                self.good.discard(form["refresh_token"])
            case _:
                self._codes.pop(form["device_code"])
        access = f"access-{next(self._numbers)}"
        refresh = f"refresh-{next(self._numbers)}"
        self.good |= {access, refresh}
        given = {
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": self.seconds,
            "scope": scope,
        }
        return as_json({**given, **({"refresh_token": refresh} if self.refreshes else {})})

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        site = self

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
                headers = {name.lower(): value for name, value in self.headers.items()}
                status, own, answer = site.answer(self.command, self.path, headers, body)
                self.send_response(status)
                for name, value in own.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

        return Handler


def as_json(data: Any, status: int = 200) -> Answer:
    """An answer of JSON."""
    return status, {"Content-Type": "application/json"}, json.dumps(data).encode()


def page(status: int = 200) -> Answer:
    """An answer of HTML."""
    return (
        status,
        {"Content-Type": "text/html; charset=utf-8"},
        b"<!doctype html><title>Welcome</title>",
    )


def browser(folder: Path) -> str:
    """A value for the variable BROWSER: a browser that goes where it is sent, and where that sends
    it on to.
    """
    script = folder / "browser.py"
    script.write_text(
        "import sys, urllib.request\nurllib.request.urlopen(sys.argv[1], timeout=20).read()\n",
        encoding="utf-8",
    )
    return f"{sys.executable} -I {script} %s"
