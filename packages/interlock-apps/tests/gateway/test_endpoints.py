"""The endpoints of a gateway over HTTP: tokens for each view, readiness, a graceful end, and logins
over several workers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from interlock import Answers, Client, Http, HttpFetch, Principal, Request, Server, Unreachable
from interlock.auth import ClientCredentials
from interlock.store import MemoryVault
from interlock_apps.gateway.program import Gateway
from interlock_issuer import Client as Known
from interlock_issuer import Issuer
from tests.auth.served import served
from tests.gateway.behind import gateway_of, kitchen, names_of, settings_of, with_servers
from tests.gateway.test_identity import browser, town, visiting
from tests.ports import free_port


async def status_of(url: str) -> tuple[int, bytes]:
    """Return the status and the body of a GET."""
    fetch = HttpFetch()
    try:
        response = await fetch(Request("GET", url))
        return response.status, await response.read(1 << 20)
    finally:
        await fetch.aclose()


@asynccontextmanager
async def guarded_gateway() -> AsyncIterator[tuple[str, str]]:
    """Serve an authorization server and a gateway that accepts its tokens. Yields both URLs."""
    ports = (free_port(), free_port())
    at, front = (f"http://127.0.0.1:{port}" for port in ports)
    till = Known(id="till", secret="of the till", grants=("client_credentials",))
    issuer = Issuer(
        at,
        resources=[f"{front}/mcp", f"{front}/guests/mcp", f"{front}/staff/mcp"],
        scopes={"staff": "Do what the staff may do"},
        clients=[till],
        vault=MemoryVault(),
    )
    text = with_servers(
        "north",
        more=f"""
        [listen]
        http = ":{ports[1]}"
        guard = "{at}"
        [views.guests]
        tools = ["north__menu"]
        [views.staff]
        scopes = ["staff"]
        """,
    )
    gateway = gateway_of(settings_of(text), {"north": kitchen("north")})
    serving = gateway.server.serve_http(port=ports[1], guard=gateway.front())
    async with served(issuer, ports[0]), serving:
        yield at, front


def credentials(**options: Any) -> ClientCredentials:
    """The credentials of a program."""
    return ClientCredentials("till", "of the till", **options)


async def test_each_view_has_tokens_of_its_own() -> None:
    async with guarded_gateway() as (_, front):
        for path, count in (("/mcp", 2), ("/guests/mcp", 1), ("/staff/mcp", 2)):
            async with Client(f"{front}{path}", auth=credentials()) as client:
                assert len(await names_of(client)) == count
            with pytest.raises(Unreachable, match="401"):
                await Client(f"{front}{path}").open()
            metadata = f"{front}/.well-known/oauth-protected-resource{path}"
            status, body = await status_of(metadata)
            assert status == 200
            assert f'"resource":"{front}{path}"'.encode() in body.replace(b" ", b"")


async def test_a_token_for_one_view_is_not_valid_at_another() -> None:
    async with guarded_gateway() as (_, front):
        auth = credentials()
        guests = f"{front}/guests/mcp"
        async with Client(guests, auth=auth) as client:
            await names_of(client)
            grant = await auth.to(guests).grant()
            assert grant is not None
            token = grant.access_token
        async with Client(Http(guests, token=token)) as client:
            assert await names_of(client) == ["north__menu"]
        for other in ("/mcp", "/staff/mcp"):
            with pytest.raises(Unreachable, match="401"):
                await Client(Http(f"{front}{other}", token=token)).open()


async def test_a_gateway_whose_required_server_is_down_is_not_ready() -> None:
    port = free_port()
    text = f"""
    [listen]
    http = ":{port}"
    [servers.down]
    command = ["/nonexistent/program"]
    required = true
    """
    gateway = Gateway(settings_of(text))
    async with gateway.server.serve_http(port=port, guard=gateway.front()):
        url = f"http://127.0.0.1:{port}"
        assert await status_of(f"{url}/health/ready") == (
            503,
            b'{"status":"unready","servers":["down"]}',
        )
        assert (await status_of(f"{url}/health/live"))[0] == 200
        assert (await status_of(f"{url}/nothing/mcp"))[0] == 404


async def test_calls_of_every_view_end_before_the_gateway_does() -> None:
    entered = asyncio.Event()
    may_end = asyncio.Event()
    server = Server("slow")

    @server.tool
    async def work() -> str:
        """Work until it may end."""
        entered.set()
        await may_end.wait()
        return "done"

    port = free_port()
    text = with_servers("slow", more=f'[listen]\nhttp = ":{port}"\n[views.few]\n')
    gateway = gateway_of(settings_of(text), {"slow": server})
    serving = gateway.server.serve_http(port=port, guard=gateway.front())
    async with serving:
        client = Client(f"http://127.0.0.1:{port}/few/mcp")
        await client.open()
        call = asyncio.create_task(client.call_tool("slow__work"))
        await entered.wait()
        ending = asyncio.create_task(serving.__aexit__(None, None, None))
        await asyncio.sleep(0.3)  # the shutdown has begun: nothing says when
        assert not call.done()
        may_end.set()
        assert (await call).text == "done"
        await client.aclose()
        await ending


async def test_a_login_goes_on_at_another_worker() -> None:
    """One worker begins the login, another shows the page and receives the redirect, and both use
    the token."""
    pages: list[str] = []
    async with town() as there, browser() as mine:
        # Another worker: the same settings and vault, without an endpoint.
        other = Gateway(there.gateway.settings, vault=there.vault)
        who = Principal(subject="ada", issuer="https://login.example", client="c")
        async with Client(
            other.server.transport(principal=who),
            answers=Answers(elicit=visiting(mine, pages)),
            timeout=30,
        ) as at_other:
            assert (await at_other.call_tool("crm__who")).text == "anna"
        async with there.client("ada") as here:
            assert await names_of(here) == ["crm__who"]
            assert (await here.call_tool("crm__who")).text == "anna"
    assert len(pages) == 1
