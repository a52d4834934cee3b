"""The official clients of Python and TypeScript log in to a guarded server of ours through our
authorization server."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from interlock import Client, Context, Server
from interlock.auth import Guard, Jwt, OAuth
from interlock_issuer import Accounts, Issuer, LocalUsers
from tests.auth.served import guarded, served
from tests.interop import person
from tests.interop.driver import command_of
from tests.interop.walker import Walker
from tests.ports import free_port

pytestmark = pytest.mark.interop

SCOPES = {"shop:read": "See what there is", "shop:order": "Order in your name"}


def shop() -> Server:
    """A server with a tool that requires the read scope, and one that requires the order scope."""
    server = Server("shop")

    @server.tool
    async def who(ctx: Context) -> str:
        """Who asks."""
        assert ctx.principal is not None
        return f"{ctx.principal.subject} with {' '.join(sorted(ctx.principal.scopes))}"

    @server.tool(scopes=["shop:order"])
    async def order(what: str) -> str:
        """Order something."""
        return f"ordered {what}"

    return server


@pytest.fixture
async def url(tmp_path: Path) -> AsyncIterator[str]:
    """The guarded shop, whose clients log in at an authorization server of ours."""
    accounts = Accounts(tmp_path / "accounts.db")
    await accounts.add(person.NAME, person.PASSWORD)
    ports = free_port(), free_port()
    here = f"http://127.0.0.1:{ports[1]}/mcp"
    issuer = Issuer(
        f"http://127.0.0.1:{ports[0]}", LocalUsers(accounts), resources=[here], scopes=SCOPES
    )
    guard = Guard(Jwt(issuer.settings.url), resource=here, scopes=["shop:read"])
    async with served(issuer, ports[0]), guarded(shop(), guard, ports[1]) as address:
        yield address


@pytest.mark.parametrize("maker", ["python-2", "python-1", "typescript-2", "typescript-1"])
async def test_an_official_client_logs_in(
    url: str, maker: str, installed: Callable[[str], Path]
) -> None:
    """It discovers the authorization server, registers, lets a user log in, and logs in again when
    it needs more scopes (`AU3-01`, `AUS-04`)."""
    command = command_of("login", maker, installed)
    python = [] if maker.startswith("python") else [sys.executable]
    process = await asyncio.create_subprocess_exec(
        *command,
        url,
        *python,
        person.__file__,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        printed, complaints = await process.communicate()
    assert process.returncode == 0, complaints.decode()
    told = json.loads(printed)
    assert "shop:read" in told["who"].split()
    assert told["ordered"] == "ordered tea"
    assert told["tools"] == ["who"]
    assert told["visits"] == 2


async def test_our_own_client_does_the_same(url: str) -> None:
    """Our client gets the same results as the others."""
    async with Client(url, auth=OAuth(agent=Walker)) as client:
        assert [tool.name for tool in await client.list_tools()] == ["who"]
        assert "shop:read" in (await client.call_tool("who")).text.split()
        assert (await client.call_tool("order", {"what": "tea"})).text == "ordered tea"
