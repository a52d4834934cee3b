"""Client, authorization server and guard of the house together, over real sockets: every revision,
every way to log in.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs

import pytest
from msgspec import Struct

from interlock import Client, ClientSettings, Context, Server
from interlock.auth import (
    ClientCredentials,
    EnterpriseManaged,
    Guard,
    Jwt,
    OAuth,
    SigningKey,
    WorkloadIdentity,
)
from interlock.store import open_vault
from interlock.transport.http.client.transport import Http
from interlock.wire.revisions import R1, R5, REVISIONS
from interlock_issuer import Issuer
from interlock_issuer.grants.trusted_issuers import TrustedIssuer, Workload
from interlock_issuer.interfaces import Client as Known
from tests.auth.robot import Robot
from tests.auth.served import guarded, served
from tests.issuer.office import Clock, Willing
from tests.ports import free_port

MANY = 64
KEY = SigningKey.generate()
IDP_KEY = SigningKey.generate()
IDP = "https://idp.example"
PLATFORM = "https://platform.example"


class Place(Struct):
    """What is served: the server's address and its authorization server's, their clock and people,
    and a barrier in the tool `meet`.
    """

    url: str
    issuer: str
    clock: Clock
    people: Willing
    barrier: asyncio.Barrier

    def client(self, auth: Any, revision: str) -> Client:
        url = self.url.removesuffix("/mcp") + "/sse" if revision == R1 else self.url
        return Client(
            Http(url, auth=auth, legacy_sse=revision == R1),
            revision=revision,
            settings=ClientSettings(cache=False),
        )

    def login(self, **options: Any) -> OAuth:
        return OAuth(agent=Robot, clock=self.clock, **options)


def offer(barrier: asyncio.Barrier) -> Server:
    """Who asks, a meeting, and something that needs more."""
    server = Server("place")

    @server.tool
    async def who(ctx: Context) -> str:
        assert ctx.principal is not None
        return (
            f"{ctx.principal.subject} {' '.join(sorted(ctx.principal.scopes - {'offline_access'}))}"
        )

    @server.tool
    async def meet() -> str:
        await barrier.wait()
        return "met"

    @server.tool(scopes=["files:write"])
    async def write() -> str:
        return "written"

    return server


@asynccontextmanager
async def place(
    *, revision: str = R5, nonces: bool = False, dpop: Any = "allowed", **options: Any
) -> AsyncIterator[Place]:
    """A guarded server and its authorization server, on this machine.

    With two endpoints what is guarded is above both.
    """
    clock = Clock()
    people = Willing()
    barrier = asyncio.Barrier(MANY)
    ports = (free_port(), free_port())
    at, url = (f"http://127.0.0.1:{port}" for port in ports)
    vault = open_vault("memory:")
    vault._clock = clock
    issuer = Issuer(
        at,
        people,
        clock=clock,
        dpop=dpop,
        dpop_nonces=nonces,
        vault=vault,
        resources=[url, f"{url}/mcp"],
        **options,
    )
    guard = Guard(
        Jwt(at),
        resource=url if revision == R1 else None,
        scopes=["use"],
        clock=clock,
        dpop=dpop,
        dpop_nonces=nonces,
    )
    async with (
        served(issuer, ports[0]),
        guarded(offer(barrier), guard, ports[1], legacy_sse=True) as mcp,
    ):
        Robot.visited = 0
        yield Place(mcp, at, clock, people, barrier)


async def said(c: Client, tool: str = "who") -> str:
    return str((await c.call_tool(tool)).content[0].text)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_log_in_calls_and_renewal(revision: str) -> None:
    """AUT-03, AUT-04, AUS-05, AUS-13: one log-in, 64 calls that meet in the server, a renewal under
    all of them, and a step-up.
    """
    async with place(revision=revision) as there:
        auth = there.login()
        async with there.client(auth, revision) as c:
            assert await said(c) == "anna use"
            assert await asyncio.gather(*(said(c, "meet") for _ in range(MANY))) == ["met"] * MANY
            there.clock.now += 700
            assert await asyncio.gather(*(said(c, "meet") for _ in range(MANY))) == ["met"] * MANY
            assert len(there.people.begun) == 1
            if (
                revision != R1
            ):  # whose answers come on a stream, where there is no status to say it with
                assert await said(c, "write") == "written"
                assert await said(c) == "anna files:write use"
                assert [
                    set(pending.scopes) - {"offline_access"} for pending in there.people.begun
                ] == [{"use"}, {"use", "files:write"}]
        assert await auth.to(there.client(auth, revision)._transport.url).revoke()


async def test_the_next_program(tmp_path: Any) -> None:
    """AUS-13: with a vault in a file the second program needs nobody,
    also after the token's end."""
    async with place() as there:
        for _ in range(3):
            auth = there.login(vault=f"sqlite:{tmp_path / 'vault'}")
            async with there.client(auth, R5) as c:
                assert await said(c) == "anna use"
            await auth.aclose()
            there.clock.now += 700
        assert len(there.people.begun) == 1


@pytest.mark.parametrize("nonces", [False, True])
@pytest.mark.parametrize("revision", REVISIONS)
async def test_bound_tokens(revision: str, nonces: bool) -> None:
    """DPP-01 to DPP-03: both demand proofs, with and without nonces.

    64 calls at once, nonces that end, a renewal.
    """
    async with place(revision=revision, nonces=nonces, dpop="required") as there:
        async with there.client(there.login(dpop=True), revision) as c:
            assert await said(c) == "anna use"
            assert await asyncio.gather(*(said(c, "meet") for _ in range(MANY))) == ["met"] * MANY
            there.clock.now += 2000  # tokens, and nonces of both
            assert await asyncio.gather(*(said(c, "meet") for _ in range(MANY))) == ["met"] * MANY
        assert len(there.people.begun) == 1


@pytest.mark.parametrize("key", [None, KEY], ids=["secret", "key"])
async def test_a_program_on_its_own_behalf(key: SigningKey | None) -> None:
    """CCR-01 to CCR-06: by a secret or a JWT, with a step-up, for 64 calls at once."""
    grants = ("client_credentials",)
    shown: dict[str, Any] = (
        {"secret": "hush"} if key is None else {"jwks": {"keys": [key.public()]}}
    )
    async with place(clients=[Known(id="robot", grants=grants, **shown)]) as there:
        auth = ClientCredentials(
            "robot",
            "hush" if key is None else None,
            key=key,
            issuer=there.issuer,
            clock=there.clock,
        )
        async with there.client(auth, R5) as c:
            assert await said(c) == "robot use"
            assert await asyncio.gather(*(said(c, "meet") for _ in range(MANY))) == ["met"] * MANY
            there.clock.now += 700
            assert await asyncio.gather(*(said(c, "meet") for _ in range(MANY))) == ["met"] * MANY
            assert await said(c, "write") == "written"


async def test_a_workload() -> None:
    """WIF-01 to WIF-05: a platform's JWT, made anew for each token."""
    runner = TrustedIssuer(
        issuer=PLATFORM,
        jwks={"keys": [IDP_KEY.public()]},
        workloads={"build": Workload(scopes=("use",))},
    )
    async with place(trusted=[runner]) as there:
        made = []

        def vouch() -> str:
            now = there.clock.now
            made.append(now)
            claims = {
                "iss": PLATFORM,
                "sub": "build",
                "aud": f"{there.issuer}/token",
                "iat": now,
                "exp": now + 300,
                "jti": f"j{len(made)}",
            }
            return IDP_KEY.sign(claims)

        async with there.client(WorkloadIdentity(vouch, clock=there.clock), R5) as c:
            assert (await said(c)).endswith(" use")
            there.clock.now += 700
            assert await asyncio.gather(*(said(c, "meet") for _ in range(MANY))) == ["met"] * MANY
        assert len(made) == 2


async def test_a_company_speaks_for_its_people() -> None:
    """EMA-01 to EMA-03: an identity provider on this machine exchanges, the authorization server
    takes its word, the guard the token.
    """
    port = free_port()
    idp = f"http://127.0.0.1:{port}"
    jags: list[str] = []

    async def exchange(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for word in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{word}.complete"})
            return
        form = {
            name: values[0] for name, values in parse_qs((await receive())["body"].decode()).items()
        }
        assert form["subject_token"] == "the-id-token"
        now = there.clock.now
        claims = {
            "iss": IDP,
            "sub": "U1",
            "aud": form["audience"],
            "resource": form["resource"],
            "client_id": "desk",
            "scope": "use",
        }
        jags.append(
            IDP_KEY.sign(
                claims | {"iat": now, "exp": now + 300, "jti": f"j{len(jags)}"},
                typ="oauth-id-jag+jwt",
            )
        )
        body = (
            f'{{"access_token":"{jags[-1]}","token_type":"N_A",'
            '"issued_token_type":"urn:ietf:params:oauth:token-type:id-jag"}'
        ).encode()
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-length", b"%d" % len(body))],
            }
        )
        await send({"type": "http.response.body", "body": body})

    trusted = TrustedIssuer(issuer=IDP, jwks={"keys": [IDP_KEY.public()]}, users=True)
    fake = Known(
        id="desk",
        grants=("urn:ietf:params:oauth:grant-type:jwt-bearer",),
        jwks={"keys": [KEY.public()]},
    )
    async with served(exchange, port), place(trusted=[trusted], clients=[fake]) as there:
        auth = EnterpriseManaged(
            lambda: "the-id-token", idp_endpoint=f"{idp}/token", idp_client_id="desk-at-idp",
            idp_client_secret="hush",
            client_id="desk", key=KEY, issuer=there.issuer, clock=there.clock,
        )  # fmt: skip
        async with there.client(auth, R5) as c:
            assert await said(c) == f"{IDP}|U1 use"
            there.clock.now += 700
            assert await asyncio.gather(*(said(c, "meet") for _ in range(MANY))) == ["met"] * MANY
        assert len(jags) == 2
