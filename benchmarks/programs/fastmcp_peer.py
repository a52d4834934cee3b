"""FastMCP as a peer: its roles are those of `Peer` in `roster.py`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from urllib.parse import parse_qs, urlsplit

from tools import catalogue, is_prose, serve_web


def build(name: str, **guarded):
    from fastmcp import FastMCP

    server = FastMCP("bench", **guarded)
    for tool in catalogue(name):
        if is_prose(tool):
            server.tool(output_schema=None)(tool)
        else:
            server.tool()(tool)
    return server


def guard():
    """Bearer tokens by JWT."""
    from fastmcp.server.auth import RemoteAuthProvider
    from fastmcp.server.auth.providers.jwt import JWTVerifier

    lock = json.loads(os.environ["BENCHMARK_LOCK"])
    verifier = JWTVerifier(
        public_key=lock["pem"],
        issuer=lock["issuer"],
        audience=lock["audience"],
        algorithm="RS256",
        required_scopes=["use"],
    )
    base = lock["audience"].removesuffix("/mcp")
    return {
        "auth": RemoteAuthProvider(
            token_verifier=verifier, authorization_servers=[lock["issuer"]], base_url=base
        )
    }


def oauth():
    """Log in like a user who consents at once."""
    import httpx2
    from fastmcp.client.auth import OAuth
    from mcp.shared.auth import AuthorizationCodeResult

    class Agreeing(OAuth):
        async def redirect_handler(self, authorization_url: str) -> None:
            async with httpx2.AsyncClient() as http:
                answer = await http.get(authorization_url, follow_redirects=False)
            self.said = parse_qs(urlsplit(answer.headers["location"]).query)

        async def callback_handler(self):
            return AuthorizationCodeResult(
                code=self.said["code"][0], state=self.said["state"][0], iss=self.said["iss"][0]
            )

    return Agreeing()


async def call_from(target, revision: str, **options) -> None:
    from fastmcp import Client
    from orders import obey

    async with Client(
        target, mode=revision if revision >= "2026" else "legacy", **options
    ) as client:

        async def call() -> int:
            result = await client.call_tool("aadd", {"a": 1, "b": 2})
            return result.structured_content["result"]

        await obey(call)


def command(words: list[str]):
    from fastmcp.client.transports import StdioTransport

    return StdioTransport(words[0], words[1:])


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["server", name]:
            build(name).run("stdio", show_banner=False)
        case ["web", _, name, port, mode]:
            serve_web(build(name).http_app(json_response=mode == "json"), int(port))
        case ["guarded", _, name, port, mode]:
            serve_web(build(name, **guard()).http_app(json_response=mode == "json"), int(port))
        case ["locked-client", revision, url]:
            asyncio.run(call_from(url, revision, auth=oauth()))
        case ["web-client", revision, url]:
            asyncio.run(call_from(url, revision))
        case ["client", revision, *words]:
            asyncio.run(call_from(command(words), revision))
        case ["memory", revision]:
            asyncio.run(call_from(build("plain"), revision))
