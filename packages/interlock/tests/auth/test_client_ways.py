"""Programs that log in without a person: by a secret or a key, by their platform's word, by their
company's; and where documents may be.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from interlock import Client
from interlock import types as t
from interlock.auth import (
    ClientCredentials,
    EnterpriseManaged,
    OAuth,
    SigningKey,
    Unauthorized,
    WorkloadIdentity,
)
from interlock.auth.keys import KeySet, check_times
from interlock.auth.sender import HttpClients
from interlock.http11.fetch import Request
from interlock.http11.safe_fetch import BlockedAddress
from interlock.transport.http.client.transport import Http
from interlock.wire.revisions import R1, R4, R5
from tests.auth.network import NOW
from tests.auth.served import served
from tests.auth.test_client import MANY, call
from tests.auth.world import ISSUER, SERVER, Person, Token, World, client
from tests.ports import free_port

KEY = SigningKey.generate("ES256")
IDP = "https://idp.example.org/token"


class Forms(World):
    """A world whose token endpoint answers a form as the test says; `forms` are those that came."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[dict[str, str]] = []
        self.urls: list[str] = []
        self.judge: Any = lambda form: None

    async def __call__(self, request: Any) -> Any:
        if request.url == IDP:
            self.sent.append(request)
            return self._token(request)
        return await super().__call__(request)

    def _token(self, request: Any) -> Any:
        form = {
            name: values[0]
            for name, values in parse_qs(request.body.decode(), keep_blank_values=True).items()
        }
        self.forms.append(form)
        self.urls.append(request.url)
        said = self.judge(form)
        if said is not None:
            return self._answer(*said)
        return self._give(
            Token(
                form["resource"],
                form.get("client_id", ""),
                tuple(form.get("scope", "").split()),
                0,
                None,
                "robot",
            ),
            False,
        )


def options(world: World) -> dict[str, Any]:
    return {"fetch": world, "clock": world.clock}


@pytest.mark.parametrize("count", [1, MANY])
async def test_a_program_with_a_secret(count: int) -> None:
    """CCR-01, CCR-02, CCR-04: the grant, HTTP Basic, the resource.

    No registration, no person, one token for all who wait.
    """
    world = World()
    auth = ClientCredentials("robot", "hush-secret", issuer=ISSUER, **options(world))
    async with client(world, auth) as c:
        assert await asyncio.gather(*(call(c) for _ in range(count))) == ["jane"] * count
        world.revoke()
        assert await asyncio.gather(*(call(c) for _ in range(count))) == ["jane"] * count
    asked = world.to("/token")
    assert len(asked) == 2
    form = parse_qs(asked[0].body.decode())
    assert form["grant_type"] == ["client_credentials"]
    assert form["resource"] == [SERVER]
    assert "client_secret" not in form
    assert dict(asked[0].headers)["Authorization"].startswith("Basic ")
    assert not world.clients
    assert "hush" not in repr(vars(auth))


async def test_a_program_with_a_key() -> None:
    """CCR-02, CCR-03, X-10: a fresh assertion each time, for the authorization server, by the
    client, for about a minute.
    """
    world = Forms()
    async with client(
        world, ClientCredentials("robot", key=KEY, issuer=ISSUER, scopes="a b", **options(world))
    ) as c:
        assert await call(c) == "robot"
        world.revoke()
        assert await call(c) == "robot"
    seen = set()
    for form in world.forms:
        assert form["grant_type"] == "client_credentials"
        assert (
            form["client_assertion_type"]
            == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        )
        assert form["scope"].split()[:2] == ["a", "b"]
        _, claims = KeySet([KEY.public()]).verify(form["client_assertion"])
        check_times(claims, now=NOW, needs=("exp", "iat"))
        assert (claims["iss"], claims["sub"], claims["aud"]) == ("robot", "robot", ISSUER)
        assert claims["exp"] - claims["iat"] <= 300
        seen.add(claims["jti"])
    assert len(seen) == len(world.forms) == 2


async def test_a_program_steps_up_or_is_told() -> None:
    """CCR-06: `insufficient_scope` leads to another token with the union, and to an error where
    that is not given.
    """
    world = Forms()
    world.needs["write"] = "files:write"
    async with client(
        world, ClientCredentials("robot", "hush", issuer=ISSUER, **options(world))
    ) as c:
        await call(c)
        assert await call(c, "write") == "robot"
        assert set(world.forms[-1]["scope"].split()) == {"use", "files:write"}
        world.needs["rule"] = "admin"
        world.judge = lambda form: (
            (400, {"error": "invalid_scope"}) if "admin" in form.get("scope", "") else None
        )
        with pytest.raises(Unauthorized, match="invalid_scope"):
            await call(c, "rule")
        assert await call(c, "write") == "robot"


async def test_a_workload(tmp_path: Path) -> None:
    """WIF-01: the platform's JWT as it is, read anew each time, the resource, and no client id
    where there is none.
    """
    world = Forms()
    file = tmp_path / "token"
    file.write_text("one.two.three\n")
    async with client(world, WorkloadIdentity(file, **options(world))) as c:
        assert await call(c) == "robot"
        file.write_text("four.five.six")
        world.revoke()
        assert await call(c) == "robot"
    assert [form["assertion"] for form in world.forms] == ["one.two.three", "four.five.six"]
    assert {form["grant_type"] for form in world.forms} == {
        "urn:ietf:params:oauth:grant-type:jwt-bearer"
    }
    assert all(form["resource"] == SERVER and "client_id" not in form for form in world.forms)
    assert not world.clients


async def test_an_assertion_that_is_refused_is_not_presented_twice() -> None:
    """WIF-03: one attempt, no other grant, and an error that says so."""
    world = Forms()
    world.judge = lambda form: (
        400,
        {"error": "invalid_grant", "error_description": "unknown workload"},
    )

    async def vouched() -> str:
        return "one.two.three"

    with pytest.raises(Unauthorized, match="unknown workload"):
        await client(world, WorkloadIdentity(vouched, client_id="w", **options(world))).open()
    assert len(world.forms) == 1
    assert world.forms[0]["client_id"] == "w"


@pytest.mark.parametrize("given", [lambda: "", lambda: None, lambda: b"x", "there-is-no-such-file"])
async def test_what_does_not_vouch_is_not_sent(given: Any) -> None:
    """WIF-01: an empty or missing assertion ends in words, and nothing goes out."""
    world = Forms()
    with pytest.raises(Unauthorized) as caught:
        await client(world, WorkloadIdentity(given, **options(world))).open()
    assert caught.value.culprit == "client"
    assert not world.forms


@pytest.mark.parametrize("revision", [R5, R4, R1])
async def test_a_function_that_fails_fails_the_call(revision: str) -> None:
    """WIF-01: what the user's own function raises reaches who called, in every revision.

    Nobody waits for an answer that cannot come.
    """
    world = Forms()
    world.revision = revision
    given = ["one.two.three"]
    async with client(world, WorkloadIdentity(lambda: given.pop(), **options(world))) as c:
        assert await call(c) == "robot"
        world.revoke()
        with pytest.raises(
            t.Unreachable if revision == R1 else IndexError, match="pop from empty list"
        ):
            await call(c)


async def test_a_company_speaks_for_its_people() -> None:
    """EMA-01 to EMA-03, EMA-12: the ID token is exchanged at the company, what comes of it
    presented at the server's; neither in an address.
    """
    world = Forms()
    world.extra["authorization_grant_profiles_supported"] = [
        "urn:ietf:params:oauth:grant-profile:id-jag"
    ]

    def judge(form: dict[str, str]) -> Any:
        if form["grant_type"].endswith("token-exchange"):
            answer = {
                "access_token": "jag-secret",
                "token_type": "N_A",
                "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
            }
            return 200, answer
        return None

    world.judge = judge
    auth = EnterpriseManaged(
        lambda: "id-secret", idp_endpoint=IDP, idp_client_id="desk",
        idp_client_secret="desk-secret", client_id="robot", key=KEY, issuer=ISSUER,
        **options(world),
    )  # fmt: skip
    async with client(world, auth) as c:
        assert await call(c) == "robot"
    exchange, bearer = world.forms
    assert world.urls == [IDP, f"{ISSUER}/token"]
    assert exchange["requested_token_type"] == "urn:ietf:params:oauth:token-type:id-jag"
    assert exchange["audience"] == ISSUER
    assert exchange["resource"] == bearer["resource"] == SERVER
    assert exchange["subject_token"] == "id-secret"
    assert bearer["assertion"] == "jag-secret"
    _, claims = KeySet([KEY.public()]).verify(bearer["client_assertion"])
    assert claims["aud"] == ISSUER
    first = next(request for request in world.sent if request.url == IDP)
    assert dict(first.headers)["Authorization"].startswith("Basic ")  # EMA-02
    assert not any("secret" in request.url for request in world.sent)


async def test_an_authorization_server_that_takes_no_word_of_a_company() -> None:
    """EMA-04: it is seen in its metadata, before anything is sent."""
    world = Forms()
    world.extra["authorization_grant_profiles_supported"] = ["something-else"]
    auth = EnterpriseManaged(
        lambda: "id",
        idp_endpoint=IDP,
        idp_client_id="desk",
        client_id="robot",
        issuer=ISSUER,
        **options(world),
    )
    with pytest.raises(Unauthorized, match="id-jag"):
        await client(world, auth).open()
    assert not world.forms


def test_one_way_to_show_who_it_is() -> None:
    """CCR-02: a secret or a key, one of them."""
    for wrong in ({}, {"client_secret": "x", "key": KEY}):
        with pytest.raises(ValueError, match="one of them"):
            ClientCredentials("robot", **wrong)


# -- where documents may be, over real sockets -----------------------------------------------------


@pytest.mark.parametrize(
    "place",
    [
        "https://127.0.0.1:{port}",
        "https://localhost:{port}",
        "https://10.0.0.1",
        "https://169.254.169.254",
        "https://[::1]:{port}",
    ],
)
async def test_a_public_server_cannot_send_us_into_a_private_network(place: str) -> None:
    """SEC-13: what a challenge names is fetched from public addresses only.

    Nobody is asked, and nobody in there is called.
    """
    world = World()
    person = Person(world)
    async with doors() as (port, knocked):
        at = place.format(port=port)
        world.challenge = f'Bearer resource_metadata="{at}/latest"'
        with pytest.raises(Unauthorized) as caught:
            await Client(
                Http(world.server, fetch=world, auth=OAuth(clock=world.clock, agent=person))
            ).open()
        assert caught.value.step == "discovery"
        assert not knocked
        http_clients = HttpClients(SERVER)
        with pytest.raises(BlockedAddress):  # and not because nobody answers there
            await http_clients.of(at)(Request("GET", f"{at}/latest"))
        await http_clients.aclose()
        assert not knocked
    assert not world.visits


async def test_hosts_that_the_user_names_may_be_private() -> None:
    """SEC-13: `hosts` allows them.

    A server on this machine may name an authorization server on this machine, and no other private
    one.
    """
    async with doors() as (port, knocked):
        for http_clients in (
            HttpClients(SERVER, ["127.0.0.1"]),
            HttpClients("http://127.0.0.1:1/mcp"),
            HttpClients("http://localhost:1/mcp"),
        ):
            response = await http_clients.of(f"http://127.0.0.1:{port}/")(
                Request("GET", f"http://127.0.0.1:{port}/here")
            )
            assert response.status == 200
            await response.aclose()
            with pytest.raises(BlockedAddress):
                await http_clients.of("https://10.0.0.1/")(Request("GET", "https://10.0.0.1/"))
            await http_clients.aclose()
        assert knocked == ["/here"] * 3


@asynccontextmanager
async def doors() -> AsyncIterator[tuple[int, list[str]]]:
    """A listener on this machine: its port, and the paths that it was asked for."""
    port = free_port()
    knocked = []

    async def inside(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for word in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{word}.complete"})
            return
        knocked.append(scope["path"])
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
        )
        await send({"type": "http.response.body", "body": b"{}"})

    async with served(inside, port):
        yield port, knocked
