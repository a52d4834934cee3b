"""An authorization server in the same process as the endpoint that it gives tokens for, behind one
guard.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from interlock import Client, Context, Request, Server
from interlock.auth import ClientCredentials, Guard
from interlock.http11.client import HttpFetch
from interlock_issuer import Client as Known
from interlock_issuer import Issuer
from tests.auth.served import guarded
from tests.ports import free_port

TILL = Known(id="till", secret="only used in this test", grants=("client_credentials",))
ORIGIN = ("Origin", "https://inspector.example")


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """A guarded server with its issuer beside it."""
    server = Server("shop")
    port = free_port()

    @server.tool(scopes=["shop:order"])
    async def order(what: str, ctx: Context) -> str:
        """Order something."""
        assert ctx.principal is not None
        return f"{what} for {ctx.principal.client}"

    here = f"http://127.0.0.1:{port}"
    issuer = Issuer(
        here, resources=[f"{here}/mcp"], scopes={"shop:order": "Order in your name"}, clients=[TILL]
    )
    async with guarded(
        server, Guard(issuer, resource=f"{here}/mcp"), port, cors="https://inspector.example"
    ) as address:
        yield address


@pytest.fixture
async def fetch() -> AsyncIterator[HttpFetch]:
    """A client of HTTP alone."""
    made = HttpFetch()
    yield made
    await made.aclose()


async def test_one_process_is_enough(url: str) -> None:
    """The client finds the issuer where the server is, as one of 2025-03-26 would too (`AU2-01`,
    `AU2-06`), and its tokens are good.
    """
    async with Client(url, auth=ClientCredentials("till", "only used in this test")) as client:
        assert (await client.call_tool("order", {"what": "tea"})).text == "tea for till"


PLACES = {
    "/.well-known/oauth-authorization-server": 200,
    "/jwks": 200,
    "/authorize": 400,
    "/nothing": 404,
    "/health": 200,
    "/.well-known/oauth-protected-resource/mcp": 200,
    "/.well-known/oauth-protected-resource": 200,
    "/mcp": 401,
    "/mcp/beneath": 401,
}


@pytest.mark.parametrize("path, status", PLACES.items())
async def test_whose_a_path_is(url: str, fetch: HttpFetch, path: str, status: int) -> None:
    """The issuer has all that is not the endpoint's, and what is the endpoint's stays guarded."""
    response = await fetch(Request("GET", url.removesuffix("/mcp") + path))
    await response.aclose()
    assert response.status == status


@pytest.mark.parametrize("path", ["/token", "/register"])
async def test_pages_may_ask_the_issuer(url: str, fetch: HttpFetch, path: str) -> None:
    """Pages that are welcome at the endpoint are welcome there too: a client in a browser has to
    get a token somewhere.
    """
    asked = (
        ORIGIN,
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "content-type, dpop"),
    )
    response = await fetch(Request("OPTIONS", url.removesuffix("/mcp") + path, asked))
    await response.aclose()
    assert (response.status, response.headers["access-control-allow-origin"]) == (204, ORIGIN[1])
    assert "dpop" in response.headers["access-control-allow-headers"]


async def test_pages_can_read_why_they_are_refused(url: str, fetch: HttpFetch) -> None:
    """The challenge is exposed to the pages that are welcome."""
    response = await fetch(
        Request("POST", url, (ORIGIN, ("Content-Type", "application/json")), b"{}")
    )
    await response.aclose()
    assert response.status == 401
    assert response.headers["access-control-allow-origin"] == "https://inspector.example"
    assert "www-authenticate" in response.headers["access-control-expose-headers"]


async def test_nobody_can_log_in_where_there_are_no_people(url: str, fetch: HttpFetch) -> None:
    """An issuer for programs has pages only to say so."""
    response = await fetch(Request("GET", url.removesuffix("/mcp") + "/login"))
    await response.aclose()
    assert response.status == 404
