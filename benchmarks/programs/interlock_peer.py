"""Interlock as a peer: its roles are those of `Peer` in `roster.py`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from urllib.parse import urlsplit

from tools import catalogue


def build(name: str):
    from interlock import Server

    server = Server("bench")
    thread = False if name == "in-place" else None
    for tool in catalogue("plain" if name == "changing" else name):
        server.tool(thread=thread)(tool)
    if name == "changing":

        @server.tool
        async def announce() -> str:
            server.changed("tools")
            return "announced"

    return server


def guard():
    from interlock.auth import Guard, Jwt

    lock = json.loads(os.environ["BENCHMARK_LOCK"])
    return Guard(Jwt(lock["issuer"], keys=lock["jwks"]), resource=lock["audience"], scopes=["use"])


def oauth():
    """Log in like a user who consents at once."""
    from interlock.auth import OAuth
    from interlock.http11.client import HttpFetch
    from interlock.http11.fetch import Request

    class Agreeing:
        async def listen(self, preferred):
            return "http://127.0.0.1:39998/callback"

        async def visit(self, url, redirect_uri):
            fetch = HttpFetch()
            answer = await fetch(Request("GET", url))
            await answer.aclose()
            await fetch.aclose()
            return urlsplit(answer.headers["location"]).query

        async def aclose(self):
            pass

    return OAuth(agent=Agreeing)


async def call_from(target, revision: str, **options) -> None:
    from orders import obey

    from interlock import Client

    async with Client(target, revision=revision, **options) as client:

        async def call() -> int:
            result = await client.call_tool("aadd", {"a": 1, "b": 2})
            return result.structured_content["result"]

        await obey(call)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["server", name]:
            build(name).run()
        case ["web", _, name, port, "stored" | "workers" as mode]:
            with tempfile.TemporaryDirectory() as folder:
                build(name).run(
                    "http",
                    host="127.0.0.1",
                    port=int(port),
                    store=f"sqlite:///{folder}/store.db",
                    workers=2 if mode == "workers" else 1,
                )
        case ["web", _, name, port, "roomy"]:
            from interlock import Limits

            build(name).run(
                "http", host="127.0.0.1", port=int(port), limits=Limits(sessions=200_000)
            )
        case ["web", _, name, port, mode]:
            build(name).run("http", host="127.0.0.1", port=int(port), stream=mode == "events")
        case ["guarded", _, name, port, mode]:
            build(name).run(
                "http", host="127.0.0.1", port=int(port), stream=mode == "events", guard=guard()
            )
        case ["locked-client", revision, url]:
            asyncio.run(call_from(url, revision, auth=oauth()))
        case ["web-client", revision, url]:
            asyncio.run(call_from(url, revision))
        case ["client", revision, *words]:
            asyncio.run(call_from(words, revision))
        case ["memory", revision]:
            asyncio.run(call_from(build("plain"), revision))
