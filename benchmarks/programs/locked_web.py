"""The HTTP server for measurements of clients with a token: it uses no SDK and has its own
authorization server, and each call takes a second.

It consents to every log-in at once. It supports the stateless era only, and its own cost is not
counted.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from urllib.parse import parse_qs, urlencode, urlsplit

import httptools
from fixed_server import answers

SECONDS = 1.0  # that each call takes
TOKEN = "a-token-of-this-server"
TABLE = {method: end.rstrip() for method, end in answers(True).items()}
REASONS = {
    200: b"OK",
    201: b"Created",
    302: b"Found",
    400: b"Bad Request",
    401: b"Unauthorized",
    404: b"Not Found",
}


def reply(status: int, body: bytes = b"", **headers: str) -> bytes:
    """Return a whole answer."""
    fields = {
        "Content-Type": "application/json",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items()).encode()
    return b"HTTP/1.1 %d %b\r\n%bContent-Length: %d\r\n\r\n%b" % (
        status,
        REASONS[status],
        lines,
        len(body),
        body,
    )


class AuthorizationServer:
    """The authorization server."""

    def __init__(self, at: str) -> None:
        self.at = at
        self.codes: dict[str, str] = {}

    def answer(self, method: str, url: str, body: bytes) -> bytes:
        """Return the whole answer to a request that is not for the MCP endpoint."""
        parts = urlsplit(url)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path.startswith("/.well-known/oauth-protected-resource"):
            return self._say(
                {
                    "resource": f"{self.at}/mcp",
                    "authorization_servers": [self.at],
                    "scopes_supported": ["use"],
                }
            )
        if parts.path == "/.well-known/oauth-authorization-server":
            return self._say(self._metadata())
        if parts.path == "/register" and method == "POST":
            return reply(201, json.dumps({**json.loads(body), "client_id": "the-client"}).encode())
        if parts.path == "/authorize":
            code = f"code-{len(self.codes)}"
            self.codes[code] = asked["code_challenge"]
            back = urlencode({"code": code, "state": asked["state"], "iss": self.at})
            return reply(302, Location=f"{asked['redirect_uri']}?{back}")
        if parts.path == "/token" and method == "POST":
            return self._token(
                {name: values[0] for name, values in parse_qs(body.decode()).items()}
            )
        return reply(404)

    def _token(self, form: dict[str, str]) -> bytes:
        shown = (
            base64.urlsafe_b64encode(
                hashlib.sha256(form.get("code_verifier", "").encode()).digest()
            )
            .decode()
            .rstrip("=")
        )
        if self.codes.pop(form.get("code", ""), None) != shown:
            return reply(400, b'{"error":"invalid_grant"}')
        return self._say(
            {"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600, "scope": "use"}
        )

    def _metadata(self) -> dict[str, object]:
        endpoints = {f"{name}_endpoint": f"{self.at}/{path}" for name, path in PLACES.items()}
        return {
            "issuer": self.at,
            **endpoints,
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": True,
        }

    @staticmethod
    def _say(document: dict[str, object]) -> bytes:
        return reply(200, json.dumps(document).encode())


PLACES = {"authorization": "authorize", "token": "token", "registration": "register"}


class Connection(asyncio.Protocol):
    """One connection of a client."""

    issuer: AuthorizationServer

    def connection_made(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.parser = httptools.HttpRequestParser(self)
        self.on_message_begin()

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_message_begin(self) -> None:
        self.url = b""
        self.body = b""
        self.token = b""

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"authorization":
            self.token = value

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        method = self.parser.get_method().decode()
        if not self.url.startswith(b"/mcp"):
            self.transport.write(self.issuer.answer(method, self.url.decode(), self.body))
        elif self.token != f"Bearer {TOKEN}".encode():
            place = f"{self.issuer.at}/.well-known/oauth-protected-resource/mcp"
            self.transport.write(
                reply(
                    401, b"{}", WWW_Authenticate=f'Bearer resource_metadata="{place}", scope="use"'
                )
            )
        else:
            message = json.loads(self.body)
            whole = reply(
                200,
                b'{"jsonrpc":"2.0","id":'
                + json.dumps(message["id"]).encode()
                + TABLE[message["method"]],
            )
            wait = SECONDS if message["method"] == "tools/call" else 0.0
            asyncio.get_running_loop().call_later(wait, self.transport.write, whole)


async def main() -> None:
    """Listen on a free port, print it, and answer until the process is killed."""
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    Connection.issuer = AuthorizationServer(f"http://127.0.0.1:{port}")
    print(port, flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
