"""Our guarded server and our client use a third-party identity server (oidc-provider, which is
certified)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, Context, Server, Unreachable
from interlock.auth import ClientCredentials, Denied, Guard, Jwt, OAuth, Unauthorized
from scripts import peers
from tests.auth import served
from tests.interop.person import NAME
from tests.interop.walker import Walker
from tests.ports import free_port

pytestmark = pytest.mark.interop

SERVER = Path(__file__).parent / "oidc_provider" / "server.mjs"
SECRET = "a secret that is only used in this test"


@pytest.fixture(scope="module")
def ports() -> tuple[int, int]:
    """The ports of the identity server and the MCP server."""
    return free_port(), free_port()


@pytest.fixture(scope="module")
def issuer(installed: Callable[[str], Path], ports: tuple[int, int]) -> Iterator[str]:
    """The identity server, for all tests of this module."""
    module = installed("oidc-provider") / "node_modules" / "oidc-provider" / "lib" / "index.js"
    node = str(peers.node(peers.OLDEST_NODE_OF_THE_SUITE))
    command = [node, str(SERVER), str(module), str(ports[0]), f"http://127.0.0.1:{ports[1]}/mcp"]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield f"http://127.0.0.1:{ports[0]}"
        process.terminate()


def shop() -> Server:
    """A server with a tool that requires the read scope, and one that requires the write scope."""
    server = Server("shop")

    @server.tool
    async def who(ctx: Context) -> str:
        """Who asks."""
        assert ctx.principal is not None
        return (
            f"{ctx.principal.subject} of {ctx.principal.issuer} with "
            f"{' '.join(sorted(ctx.principal.scopes))}"
        )

    @server.tool(scopes=["demo:write"])
    async def order(what: str) -> str:
        """Order something."""
        return f"ordered {what}"

    return server


def guarded(issuer: str, port: int, **options: Any) -> AbstractAsyncContextManager[str]:
    """The shop behind a guard that trusts an issuer."""
    guard = Guard(
        Jwt(issuer), resource=f"http://127.0.0.1:{port}/mcp", scopes=["demo:read"], **options
    )
    return served.guarded(shop(), guard, port)


@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
@pytest.mark.parametrize("dpop", [False, True], ids=["bearer", "dpop"])
async def test_a_person_logs_in_and_steps_up(
    issuer: str, ports: tuple[int, int], revision: str, dpop: bool
) -> None:
    """Discovery by OpenID Connect, registration, PKCE, resource indicators, `iss`, nonces; then
    more scopes (`AUS-05`, `AUS-06`)."""
    async with (
        guarded(issuer, ports[1]) as url,
        Client(url, revision=revision, auth=OAuth(agent=Walker, dpop=dpop)) as client,
    ):
        assert (await client.call_tool("who")).text == f"{NAME} of {issuer} with demo:read"
        assert (await client.call_tool("order", {"what": "tea"})).text == "ordered tea"
        assert (
            await client.call_tool("who")
        ).text == f"{NAME} of {issuer} with demo:read demo:write"


async def test_a_token_is_refreshed(issuer: str, ports: tuple[int, int]) -> None:
    """The refresh token is exchanged for new tokens, and so is the next one."""
    auth = OAuth(agent=Walker, prompt="consent")
    async with guarded(issuer, ports[1]) as url, Client(url, auth=auth) as client:
        first = await auth.to(url).grant()
        assert first is not None
        assert first.refresh_token is not None
        again = await auth.to(url).renew()
        assert again.access_token != first.access_token
        assert (await auth.to(url).renew()).refresh_token not in (None, first.refresh_token)
        assert (await client.call_tool("who")).text.startswith(NAME)


async def test_a_program_on_its_own_behalf(issuer: str, ports: tuple[int, int]) -> None:
    """It logs in with a secret; operations outside its scopes stay forbidden (`CCR-01`,
    `CCR-06`)."""
    auth = ClientCredentials("machine", SECRET, issuer=issuer)
    async with guarded(issuer, ports[1]) as url, Client(url, auth=auth) as client:
        assert "demo:read" in (await client.call_tool("who")).text
        with pytest.raises(Unauthorized):
            await client.call_tool("order", {"what": "tea"})


async def test_a_wrong_secret(issuer: str, ports: tuple[int, int]) -> None:
    """The error reports the identity server's rejection with its step, and without the secret."""
    async with guarded(issuer, ports[1]) as url:
        with pytest.raises(Unauthorized) as caught:
            async with Client(url, auth=ClientCredentials("machine", "another", issuer=issuer)):
                pass
    assert (caught.value.step, caught.value.code, caught.value.culprit) == (
        "token",
        "invalid_client",
        "client",
    )
    assert "another" not in str(caught.value)
    assert not isinstance(caught.value, Denied)


async def test_a_token_for_another_server(issuer: str, ports: tuple[int, int]) -> None:
    """It is rejected, although it is from the right issuer (`AUT-07`)."""
    auth = OAuth(agent=Walker)
    async with guarded(issuer, ports[1]) as url, Client(url, auth=auth):
        grant = await auth.to(url).grant()
    assert grant is not None
    async with guarded(issuer, free_port()) as other:
        with pytest.raises(Unreachable, match="401"):
            async with Client(other, token=grant.access_token):
                pass
