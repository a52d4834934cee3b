"""The official Python SDK as a peer: its roles are those of `Peer` in `roster.py`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from urllib.parse import parse_qs, urlsplit

from tools import catalogue, is_prose, serve_web


def build(name: str, **guarded):
    from mcp.server import MCPServer

    server = MCPServer("bench", log_level="WARNING", **guarded)
    for tool in catalogue(name):
        server.tool(structured_output=False if is_prose(tool) else None)(tool)
    return server


async def call_from(target, revision: str) -> None:
    from mcp.client.client import Client
    from orders import obey

    async with Client(target, mode=revision if revision >= "2026" else "legacy") as client:

        async def call() -> int:
            result = await client.call_tool("aadd", {"a": 1, "b": 2})
            return result.structured_content["result"]

        await obey(call)


def guard():
    """Bearer tokens by JWT, verified with the library that comes with the SDK."""
    import jwt
    from mcp.server.auth.provider import AccessToken
    from mcp.server.auth.settings import AuthSettings

    lock = json.loads(os.environ["BENCHMARK_LOCK"])

    class Verifier:
        async def verify_token(self, token: str):
            try:
                claims = jwt.decode(
                    token,
                    lock["pem"],
                    algorithms=["RS256"],
                    audience=lock["audience"],
                    issuer=lock["issuer"],
                )
            except jwt.InvalidTokenError:
                return None
            return AccessToken(
                token=token,
                client_id=claims["client_id"],
                scopes=claims["scope"].split(),
                expires_at=claims["exp"],
                resource=lock["audience"],
                subject=claims["sub"],
                claims=claims,
            )

    settings = AuthSettings(
        issuer_url=lock["issuer"], resource_server_url=lock["audience"], required_scopes=["use"]
    )
    return {"token_verifier": Verifier(), "auth": settings}


async def call_locked(url: str, revision: str) -> None:
    """Log in like a user who consents at once, and call."""
    from mcp.client.auth import OAuthClientProvider
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

    class Storage:
        tokens = client = None

        async def get_tokens(self):
            return self.tokens

        async def set_tokens(self, tokens):
            self.tokens = tokens

        async def get_client_info(self):
            return self.client

        async def set_client_info(self, client):
            self.client = client

    said: dict[str, list[str]] = {}

    async def visit(address: str) -> None:
        async with create_mcp_http_client() as http:
            answer = await http.get(address, follow_redirects=False)
        said.update(parse_qs(urlsplit(answer.headers["location"]).query))

    async def came():
        return AuthorizationCodeResult(
            code=said["code"][0], state=said["state"][0], iss=said["iss"][0]
        )

    metadata = OAuthClientMetadata(
        client_name="bench", redirect_uris=["http://127.0.0.1:39998/callback"]
    )
    auth = OAuthClientProvider(url, metadata, Storage(), visit, came)
    async with create_mcp_http_client(auth=auth) as http:
        await call_from(streamable_http_client(url, http_client=http), revision)


def command(words: list[str]):
    from mcp.client.stdio import StdioServerParameters, stdio_client

    return stdio_client(StdioServerParameters(command=words[0], args=words[1:]))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["server", name]:
            build(name).run("stdio")
        case ["web", _, name, port, mode]:
            serve_web(build(name).streamable_http_app(json_response=mode == "json"), int(port))
        case ["guarded", _, name, port, mode]:
            serve_web(
                build(name, **guard()).streamable_http_app(json_response=mode == "json"), int(port)
            )
        case ["locked-client", revision, url]:
            asyncio.run(call_locked(url, revision))
        case ["web-client", revision, url]:
            asyncio.run(call_from(url, revision))
        case ["client", revision, *words]:
            asyncio.run(call_from(command(words), revision))
        case ["memory", revision]:
            asyncio.run(call_from(build("plain"), revision))
