"""How clients prove who they are: with secrets and signed assertions, one way at a time, and nobody
else with theirs.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
from typing import Any

import pytest

from interlock.auth.keys import SigningKey, assertion
from interlock.http11.fetch import Request
from interlock_issuer.interfaces import Client
from tests.auth.network import Answer
from tests.issuer.exchange import Sent, ask
from tests.issuer.office import SERVER, URL, Office, World, basic, claims_of, error_of, said

KEY = SigningKey.generate()
OTHER_KEY = SigningKey.generate()
TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
SECRET = "a secret/with+signs%"
MACHINE = Client(
    id="machine",
    jwks={"keys": [KEY.public()]},
    grants=("client_credentials",),
    scopes=("files:read",),
)
VAULT = Client(
    id="vault", secret=SECRET, grants=("client_credentials",), scopes=("files:read", "files:write")
)
OPEN = Client(id="open", redirect_uris=("https://app.example/back",))
ASKED = {"grant_type": "client_credentials"}


def office(**options: Any) -> Office:
    """An issuer that knows one client of each kind."""
    return Office(clients=[MACHINE, VAULT, OPEN], **options)


def signed(place: Office, key: SigningKey = KEY, **changes: Any) -> dict[str, str]:
    """A right assertion of the machine, but for the changes."""
    told: dict[str, Any] = {
        "issuer": "machine",
        "subject": "machine",
        "audience": URL,
        "now": place.clock.now,
    }
    return ASKED | {
        "client_assertion_type": TYPE,
        "client_assertion": assertion(key, **(told | changes)),
    }


@pytest.mark.parametrize("audience", [URL, f"{URL}/token"])
async def test_private_key_jwt(audience: str) -> None:
    """No client_id is needed beside it; the token is the client's own (CCR-05, AU2-09)."""
    place = office()
    tokens = said(
        await place.post(
            "/token", signed(place, audience=audience) | {"scope": "files:read", "resource": SERVER}
        )
    )
    claims = claims_of(tokens["access_token"])
    assert (claims["sub"], claims["client_id"], claims["aud"], claims["scope"]) == (
        "machine",
        "machine",
        SERVER,
        "files:read",
    )
    assert "refresh_token" not in tokens
    assert "sid" not in claims


def forged(place: Office, header: dict[str, Any]) -> str:
    """The claims of the machine behind a header of ours, signed by nobody, or with what everybody
    knows for a secret.
    """
    claims = {
        "iss": "machine",
        "sub": "machine",
        "aud": URL,
        "exp": place.clock.now + 60,
        "iat": place.clock.now,
        "jti": "x",
    }
    body = ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in (header, claims)
    )
    mac = hmac.digest(json.dumps(KEY.public()).encode(), body.encode(), "sha256")
    return (
        f"{body}."
        f"{base64.urlsafe_b64encode(mac).decode().rstrip('=') if header['alg'] != 'none' else ''}"
    )


FORGED: dict[str, dict[str, Any]] = {
    "none": {"alg": "none"},
    "None": {"alg": "None"},
    "a public key for a secret": {"alg": "HS256", "kid": KEY.kid},
    "a key of its own": {"alg": "ES256", "jwk": OTHER_KEY.public()},
    "keys elsewhere": {"alg": "ES256", "jku": "https://evil.example/keys", "kid": OTHER_KEY.kid},
}


@pytest.mark.parametrize("header", FORGED.values(), ids=FORGED)
async def test_forged_assertions(header: dict[str, Any]) -> None:
    """Without a signature, or with one by what everybody has: `none`, HS, a key that the token
    brings.
    """
    place = office()
    told = ASKED | {"client_assertion_type": TYPE, "client_assertion": forged(place, header)}
    assert error_of(await place.post("/token", told), 401) == "invalid_client"
    assert place.world.asked == []


WRONG: dict[str, dict[str, Any]] = {
    "another key": {"key": OTHER_KEY},
    "another audience": {"audience": "https://evil.example"},
    "our address in another spelling": {"audience": f"{URL}/"},
    "another issuer": {"issuer": "vault"},
    "another subject": {"subject": "vault"},
    "a client that has no keys": {"issuer": "vault", "subject": "vault"},
    "expired": {"seconds": -60},
    "a day long": {"seconds": 86_400},
    "an access token by its type": {"typ": "at+jwt"},
    "an ID-JAG by its type": {"typ": "oauth-id-jag+jwt"},
}


@pytest.mark.parametrize("changes", WRONG.values(), ids=WRONG)
async def test_wrong_assertions(changes: dict[str, Any]) -> None:
    """Each part of it counts."""
    place = office()
    assert error_of(await place.post("/token", signed(place, **changes)), 401) == "invalid_client"


async def test_an_assertion_for_many_is_for_nobody() -> None:
    """Who else it is for could use it here."""
    place = office()
    claims = {"iss": "machine", "sub": "machine", "exp": place.clock.now + 60, "jti": "1"}
    for audience, status in (
        ([URL, "https://evil.example"], 401),
        ([], 401),
        (None, 401),
        ([URL], 200),
    ):
        told = {
            "client_assertion_type": TYPE,
            "client_assertion": KEY.sign(claims | {"aud": audience}),
        }
        assert (await place.post("/token", ASKED | told)).status == status


async def test_an_assertion_comes_once() -> None:
    """A second time it is somebody else's; without a jti one could not know."""
    place = office()
    told = signed(place)
    assert said(await place.post("/token", told))
    assert error_of(await place.post("/token", told), 401) == "invalid_client"
    claims = {"iss": "machine", "sub": "machine", "aud": URL, "exp": place.clock.now + 60}
    assert (
        error_of(await place.post("/token", told | {"client_assertion": KEY.sign(claims)}), 401)
        == "invalid_client"
    )


async def test_keys_that_rotate() -> None:
    """A key that is new is fetched for, though not again and again.

    While the place is away the keys that were there hold (EMA-14).
    """
    where = "https://machine.example/keys"
    client = Client(id="machine", jwks_uri=where, grants=("client_credentials",))
    place = Office(clients=[client])
    assert error_of(await place.post("/token", signed(place)), 503) == "temporarily_unavailable"
    place.world.documents[where] = {"keys": [KEY.public()]}
    assert error_of(await place.post("/token", signed(place)), 503) == "temporarily_unavailable"
    assert len(place.world.asked) == 1  # nor is a place that is away asked again and again
    place.clock.now += 31
    assert said(await place.post("/token", signed(place)))
    place.world.documents[where] = {"keys": [OTHER_KEY.public()]}
    asked = len(place.world.asked)
    assert error_of(await place.post("/token", signed(place, OTHER_KEY)), 401) == "invalid_client"
    assert len(place.world.asked) == asked  # it was asked a moment ago
    place.clock.now += 31
    assert said(await place.post("/token", signed(place, OTHER_KEY)))
    assert error_of(await place.post("/token", signed(place)), 401) == "invalid_client"
    place.clock.now += 4000
    place.world.documents.clear()
    assert said(await place.post("/token", signed(place, OTHER_KEY)))


async def test_only_so_many_keys_are_fetched_at_once() -> None:
    """Who names many slow addresses does not keep us busy, nor others out whose keys are known
    (EMA-14).
    """
    gate = asyncio.Event()
    full = asyncio.Event()
    waiting: list[str] = []

    class Slow(World):
        """A world in which all places but one are slow."""

        async def __call__(self, request: Request) -> Answer:
            if not request.url.endswith("/machine"):
                waiting.append(request.url)
                if len(waiting) == 16:
                    full.set()
                await gate.wait()
            return await super().__call__(request)

    names = ["machine", *(f"m{n}" for n in range(17))]
    world = Slow()
    world.documents = {f"https://keys.example/{name}": {"keys": [KEY.public()]} for name in names}
    clients = [
        Client(id=name, jwks_uri=f"https://keys.example/{name}", grants=("client_credentials",))
        for name in names
    ]
    place = Office(clients=clients, fetch=world)
    assert said(await place.post("/token", signed(place)))
    slow = [
        asyncio.create_task(place.post("/token", signed(place, issuer=name, subject=name)))
        for name in names[1:-1]
    ]
    await full.wait()
    last = {"issuer": names[-1], "subject": names[-1]}
    assert (
        error_of(await place.post("/token", signed(place, **last)), 503)
        == "temporarily_unavailable"
    )
    assert said(await place.post("/token", signed(place)))
    gate.set()
    assert {reply.status for reply in await asyncio.gather(*slow)} == {200}
    assert len(waiting) == 16
    assert said(await place.post("/token", signed(place, **last)))


def test_keys_of_configured_clients_are_at_usable_addresses() -> None:
    """Not where they could be changed on their way, nor where a part of the address hides another
    (EMA-14).
    """
    for place in ("http://keys.example/", "http://127.0.0.1:80@keys.example/"):
        with pytest.raises(ValueError, match="https"):
            Office(clients=[Client(id="machine", jwks_uri=place, method="private_key_jwt")])


@pytest.mark.parametrize("secret", [SECRET, "a+secret%2Fwith%2Bsigns%25"], ids=["bare", "encoded"])
async def test_basic(secret: str) -> None:
    """As RFC 6749 has it, form-encoded, and as most send it."""
    tokens = said(
        await office().post("/token", ASKED | {"resource": SERVER}, basic("vault", secret))
    )
    assert tokens["scope"] == "files:read files:write"


async def test_the_secret_in_the_body() -> None:
    """Is taken as well (CCR-05)."""
    assert said(
        await office().post("/token", ASKED | {"client_id": "vault", "client_secret": SECRET})
    )["access_token"]


NOT_PROVEN: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "no secret": ({"client_id": "vault"}, {}),
    "a wrong one": ({"client_id": "vault", "client_secret": "x"}, {}),
    "an unknown client": ({"client_id": "nobody", "client_secret": SECRET}, {}),
    "no client": ({}, {}),
    "a bearer token": ({}, {"authorization": f"Bearer {SECRET}"}),
    "no base64": ({}, {"authorization": "Basic !!!"}),
    "no colon": ({}, {"authorization": "Basic " + base64.b64encode(b"vault").decode()}),
    "two headers": (
        {},
        {
            "authorization": (
                f"{basic('vault', SECRET)['authorization']}, "
                f"{basic('vault', SECRET)['authorization']}"
            )
        },
    ),
    "a secret for a client with keys": ({"client_id": "machine", "client_secret": "x"}, {}),
    "a secret for a client that has none": ({"client_id": "open", "client_secret": "x"}, {}),
    "an assertion that is none": ({"client_assertion_type": TYPE, "client_assertion": "x.y.z"}, {}),
}


@pytest.mark.parametrize("told, headers", NOT_PROVEN.values(), ids=NOT_PROVEN)
async def test_who_has_not_shown_who_it_is(told: dict[str, str], headers: dict[str, str]) -> None:
    """401, and how to do it."""
    reply = await office().post("/token", ASKED | told, headers)
    assert error_of(reply, 401) == "invalid_client"
    assert (reply.header("www-authenticate") or "").startswith("Basic ")


AMBIGUOUS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "header and body": ({"client_id": "vault", "client_secret": SECRET}, basic("vault", SECRET)),
    "header and assertion": (
        {"client_assertion_type": TYPE, "client_assertion": "x"},
        basic("vault", SECRET),
    ),
    "two ids": ({"client_id": "machine"}, basic("vault", SECRET)),
    "half an assertion": ({"client_assertion_type": TYPE}, {}),
    "another kind of assertion": ({"client_assertion_type": "saml2", "client_assertion": "x"}, {}),
}


@pytest.mark.parametrize("told, headers", AMBIGUOUS.values(), ids=AMBIGUOUS)
async def test_one_way_at_a_time(told: dict[str, str], headers: dict[str, str]) -> None:
    """Nobody chooses which of two is believed (RFC 6749, 2.3)."""
    assert error_of(await office().post("/token", ASKED | told, headers)) == "invalid_request"


async def test_nobody_lets_itself_in() -> None:
    """The grant without a person is for clients of the configuration that authenticate."""
    grants = ("client_credentials",)
    place = Office(clients=[Client(id="open", grants=grants)])
    assert (
        error_of(await place.post("/token", ASKED | {"client_id": "open"})) == "unauthorized_client"
    )
    told = said(
        await place.register(
            {
                "redirect_uris": ["https://app.example/back"],
                "grant_types": ["authorization_code", *grants],
            }
        ),
        201,
    )
    assert told["grant_types"] == ["authorization_code"]
    headers = basic(told["client_id"], told["client_secret"])
    assert error_of(await place.post("/token", ASKED, headers)) == "unauthorized_client"


async def test_no_more_scopes_than_the_client_may_have() -> None:
    """What it may not have is left out; where nothing is left it is an error."""
    place = office()
    told = await place.post("/token", signed(place) | {"scope": "files:read files:write mail"})
    assert said(told)["scope"] == "files:read"
    assert (
        error_of(await place.post("/token", signed(place) | {"scope": "mail"})) == "invalid_scope"
    )


async def test_parameters_in_the_query() -> None:
    """Secrets do not belong into addresses, which are written down everywhere."""
    place = office()
    form = {"content-type": "application/x-www-form-urlencoded"}
    reply = await ask(
        place.issuer,
        Sent(
            "POST",
            "/token",
            "client_id=vault&client_secret=x",
            form,
            b"grant_type=client_credentials",
        ),
    )
    assert error_of(reply) == "invalid_request"


# -- guesses ---------------------------------------------------------------------------------------

ENDPOINTS = {"/token": ASKED, "/introspect": {"token": "x"}, "/revoke": {"token": "x"}}


@pytest.mark.parametrize("path", ENDPOINTS)
@pytest.mark.parametrize("way", ["body", "header"])
async def test_wrong_client_secrets_are_throttled(path: str, way: str) -> None:
    """After ten the address has to wait, and the right secret is no exception: it would be a guess
    that succeeds.
    """
    place = office()

    async def guess(secret: str, address: str = "203.0.113.9") -> Any:
        told = {"client_id": "vault", "client_secret": secret} if way == "body" else {}
        shown = basic("vault", secret) if way == "header" else {}
        return await place.post(path, ENDPOINTS[path] | told, shown, address=address)

    for number in range(10):
        assert error_of(await guess(f"wrong {number}"), 401) == "invalid_client"
    for secret in ("wrong", SECRET):
        late = await guess(secret)
        assert error_of(late, 429) == "temporarily_unavailable"
        assert 0 < int(late.header("retry-after") or "") <= 900
    assert (await guess(SECRET, "203.0.113.10")).status == 200  # the honest client elsewhere
    place.clock.now += int(late.header("retry-after") or "")
    assert error_of(await guess("wrong again"), 401) == "invalid_client"
    again = await guess(SECRET)
    assert again.status == 429
    place.clock.now += int(again.header("retry-after") or "")
    assert (await guess(SECRET)).status == 200
    assert error_of(await guess("a slip"), 401) == "invalid_client"  # all is forgiven by then
    assert (await guess(SECRET)).status == 200


async def test_an_address_cannot_guess_at_many_clients() -> None:
    """It has thirty tries in all, whichever client each is for, and another network has its own."""
    many = [Client(id=f"c{n}", secret=f"secret {n}",
        grants=("client_credentials",)) for n in range(40)]  # fmt: skip
    place = Office(clients=many)

    async def guess(client: str, secret: str, address: str) -> int:
        form = ASKED | {"client_id": client, "client_secret": secret, "resource": SERVER}
        return (await place.post("/token", form, address=address)).status

    first = [await guess(f"c{n}", "wrong", "2001:db8::1") for n in range(40)]
    assert first == [401] * 30 + [429] * 10
    assert await guess("c39", "secret 39", "2001:db8::2") == 429  # the same network
    assert await guess("c39", "secret 39", "2001:db8:1::1") == 200


async def test_right_client_secrets_are_not_counted() -> None:
    """However often a client comes, and in spite of a slip now and then."""
    place = office()
    form = ASKED | {"client_id": "vault", "resource": SERVER}
    for _ in range(40):
        assert (await place.post("/token", form | {"client_secret": SECRET})).status == 200
    for _ in range(20):
        assert (await place.post("/token", form | {"client_secret": "x"})).status == 401
        assert (await place.post("/token", form | {"client_secret": SECRET})).status == 200
