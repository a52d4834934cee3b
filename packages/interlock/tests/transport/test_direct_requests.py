"""Requests that Interlock's own server passes to the endpoint without ASGI: what stands before the
endpoint is not passed by, and tools see what they see through ASGI.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import Context, Server
from interlock.auth import ApiKeys, Guard
from interlock.auth.tokens.credentials import Credentials
from interlock.transport.http.app import HttpApp
from interlock.transport.http.requests import send_body
from interlock.transport.http.server.serve import listening_socket, serve_http
from tests.transport.raw_web import Reply, Web, call, serving

KEY = "ada-and-twenty-more-characters"
RESOURCE = "https://store.example/mcp"


class Closed(HttpApp):
    """An endpoint whose class lets nobody in."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Refuse."""
        await send_body(send, 418, b"closed", b"text/plain")


class Wrapper:
    """An app around the endpoint that lets nobody in, and has all attributes of the endpoint."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Refuse."""
        await send_body(send, 418, b"closed", b"text/plain")


@pytest.mark.parametrize("how", ["subclass", "wrapper"])
async def test_what_stands_before_the_endpoint_sees_each_request(how: str) -> None:
    """A subclass with its own `__call__`, and a wrapper that looks like the endpoint."""
    app: Any = Server("store").http_app()
    if how == "subclass":
        app.__class__ = Closed
    else:
        app = Wrapper(app)
    sock = listening_socket("127.0.0.1", 0)
    web = Web(sock.getsockname()[1], app)
    task = asyncio.create_task(serve_http(app, sock, grace=0.2))
    try:
        assert (await web.ask(call("add", {"a": 1}))).status == 418
    finally:
        task.cancel()
        await task


async def test_what_stands_before_the_guard_sees_each_request() -> None:
    """A guard that is wrapped admits nobody by itself."""
    guard = Guard(ApiKeys({"ada": KEY}, scopes=["use"]), resource=RESOURCE, scopes=["use"])
    async with serving(store(), guard=lambda app: Wrapper(guard(app))) as web:
        x = call("seen", authorization=f"Bearer {KEY}")
        await guard.judge(guard.site({"path": "/mcp"}), {}, Credentials("bearer", KEY))
        assert (await web.ask(x)).status == 418


def store() -> Server:
    """A server that says what it sees of a request."""
    server = Server("store")

    @server.tool
    async def seen(ctx: Context) -> str:
        assert ctx.principal is not None
        assert ctx.request is not None
        return f"{ctx.principal.subject} {sorted(ctx.request.headers)}"

    @server.tool(scopes=["write"])
    async def write() -> str:
        return "written"

    return server


async def test_a_known_token_is_used_like_a_new_one() -> None:
    """The first request of a token goes through ASGI, later ones do not. The tool sees the
    principal and never the token; a missing scope is challenged; an invalid token is refused.
    """
    guard = Guard(ApiKeys({"ada": KEY}, scopes=["use"]), resource=RESOURCE, scopes=["use"])
    async with serving(store(), guard=guard) as web:

        async def ask(tool: str, key: str, **more: Any) -> Reply:
            x = call(tool, authorization=f"Bearer {key}", **more)
            return await web.ask(x)

        first, second, third = [await ask("seen", KEY) for _ in range(3)]
        said = first.json["result"]["content"][0]["text"]
        assert said.startswith("ada ['accept'")
        assert "authorization" not in said
        assert second.json == first.json == third.json
        for _ in range(2):
            denied = await ask("write", KEY)
            assert denied.status == 403
            assert 'scope="use write"' in denied.headers["www-authenticate"]
        assert (await ask("seen", f"{KEY}x")).status == 401
        assert (await ask("seen", KEY, dpop="a proof")).json == first.json
        assert (await web.ask(call("seen"))).status == 401


async def test_a_known_token_expires() -> None:
    """A verdict is kept for a minute at most, whatever was asked meanwhile."""
    now = 1_000_000.0
    verifier = ApiKeys({"ada": KEY}, scopes=["use"])
    guard = Guard(verifier, resource=RESOURCE, scopes=["use"], clock=lambda: now)
    async with serving(store(), guard=guard) as web:
        x = call("seen", authorization=f"Bearer {KEY}")
        assert [(await web.ask(x)).status for _ in range(2)] == [200, 200]
        verifier._known.clear()  # the key is taken back
        assert (await web.ask(x)).status == 200
        now += 61
        assert (await web.ask(x)).status == 401
