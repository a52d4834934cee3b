"""Assertions by others: an enterprise's ID-JAGs about its people, a platform's JWTs about its
workloads.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock.auth.keys import SigningKey
from interlock_issuer.grants.trusted_issuers import TrustedIssuer, Workload
from interlock_issuer.interfaces import User
from tests.issuer.office import OTHER, SERVER, URL, Office, basic, claims_of, error_of, said

KEY = SigningKey.generate()
OTHER_KEY = SigningKey.generate()
IDP = "https://idp.example"
PLATFORM = "https://platform.example"
BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
CLIENT = basic("vault", "a secret/with+signs%")  # may have files:read and files:write

ENTERPRISE = TrustedIssuer(issuer=IDP, jwks={"keys": [KEY.public()]}, users=True)
RUNNERS = TrustedIssuer(
    issuer=PLATFORM,
    jwks={"keys": [KEY.public()]},
    workloads={
        "build": Workload(scopes=("files:read",), resources=(SERVER,), subject="the-build"),
        "spiffe://platform.example/nightly/*": Workload(scopes=("files:read", "files:write")),
    },
)


def office(*trusted: TrustedIssuer, **options: Any) -> Office:
    """An issuer that trusts both, unless others are named."""
    return Office(trusted=trusted or (ENTERPRISE, RUNNERS), **options)


def id_jag(
    place: Office, key: SigningKey = KEY, typ: str | None = "oauth-id-jag+jwt", **changes: Any
) -> dict[str, str]:
    """A right ID-JAG, but for the changes; a claim that is None is left out."""
    now = place.clock.now
    claims: dict[str, Any] = {
        "iss": IDP,
        "sub": "U1",
        "aud": URL,
        "resource": SERVER,
        "client_id": "vault",
        "jti": f"jti-{now}",
        "iat": now,
        "exp": now + 300,
        "scope": "files:read mail",
    }
    claims |= changes
    token = key.sign({name: value for name, value in claims.items() if value is not None}, typ=typ)
    return {"grant_type": BEARER, "assertion": token}


def workload(
    place: Office, key: SigningKey = KEY, typ: str | None = "JWT", **changes: Any
) -> dict[str, str]:
    """The right JWT of a workload, but for the changes."""
    now = place.clock.now
    claims: dict[str, Any] = {
        "iss": PLATFORM,
        "sub": "build",
        "aud": f"{URL}/token",
        "iat": now,
        "exp": now + 300,
        "jti": f"jti-{now}",
    }
    claims |= changes
    token = key.sign({name: value for name, value in claims.items() if value is not None}, typ=typ)
    return {"grant_type": BEARER, "assertion": token, "resource": SERVER}


async def test_an_id_jag() -> None:
    """A token for the resource it names, with the scopes that are asked for, in it, and the
    client's: nothing else (EMA-11).
    """
    place = office()
    tokens = said(
        await place.post("/token", id_jag(place) | {"scope": "files:read files:write"}, CLIENT)
    )
    claims = claims_of(tokens["access_token"])
    assert (claims["sub"], claims["aud"], claims["client_id"], claims["scope"]) == (
        f"{IDP}|U1",
        SERVER,
        "vault",
        "files:read",
    )
    assert "refresh_token" not in tokens
    place.clock.now += 1
    assert said(await place.post("/token", id_jag(place), CLIENT))["scope"] == "files:read"
    place.clock.now += 1
    assert "scope" not in said(await place.post("/token", id_jag(place, scope=None), CLIENT))
    place.clock.now += 1
    assert (
        said(
            await place.post(
                "/token", id_jag(place) | {"scope": "files:read offline_access"}, CLIENT
            )
        )["scope"]
        == "files:read"
    )
    metadata = said(await place.get("/.well-known/oauth-authorization-server"))
    assert BEARER in metadata["grant_types_supported"]
    assert metadata["authorization_grant_profiles_supported"] == [
        "urn:ietf:params:oauth:grant-profile:id-jag"
    ]


BAD_JAGS: dict[str, dict[str, Any]] = {
    "another type": {"typ": "JWT"},
    "no type": {"typ": None},
    "an access token": {"typ": "at+jwt"},
    "another key": {"key": OTHER_KEY},
    "an issuer that nobody trusts": {"iss": "https://evil.example"},
    "an issuer that is not trusted with people": {"iss": PLATFORM},
    "another audience": {"aud": "https://evil.example"},
    "many audiences": {"aud": [URL, "https://evil.example"]},
    "the token endpoint for an audience": {"aud": f"{URL}/token"},
    "our address in another spelling": {"aud": f"{URL}/"},
    "another client": {"client_id": "app"},
    "no client": {"client_id": None},
    "no subject": {"sub": None},
    "a number for a subject": {"sub": 7},
    "no jti": {"jti": None},
    "no iat": {"iat": None},
    "no exp": {"exp": None},
    "expired": {"exp": 1_800_000_000.0 - 60},
    "not yet": {"nbf": 1_800_000_000.0 + 600},
    "from the future": {"iat": 1_800_000_000.0 + 600},
    "too long": {"exp": 1_800_000_000.0 + 200_000},
    "another resource": {"resource": "https://evil.example/mcp"},
    "no resource": {"resource": None},
    "two resources": {"resource": [SERVER, OTHER]},
}


@pytest.mark.parametrize("changes", BAD_JAGS.values(), ids=BAD_JAGS)
async def test_id_jags_that_do_not_hold(changes: dict[str, Any]) -> None:
    """Type, signature, issuer, audience, client, resource, times: each counts (EMA-08, EMA-09)."""
    place = office()
    assert error_of(await place.post("/token", id_jag(place, **changes), CLIENT)) == "invalid_grant"


async def test_an_id_jag_comes_once() -> None:
    """Until it ends, however many bring it at once (EMA-10)."""
    place = office()
    told = id_jag(place)
    replies = await asyncio.gather(*(place.post("/token", told, CLIENT) for _ in range(16)))
    assert sorted(reply.status for reply in replies) == [200, *[400] * 15]
    place.clock.now += 320  # it has ended 20 seconds ago, and clocks may differ by 30
    assert error_of(await place.post("/token", told, CLIENT)) == "invalid_grant"


async def test_who_brings_an_id_jag_must_be_the_client() -> None:
    """Not without showing it, not as another, not as a client that cannot (EMA-08)."""
    place = office()
    assert error_of(await place.post("/token", id_jag(place)), 401) == "invalid_client"
    assert (
        error_of(await place.post("/token", id_jag(place), basic("vault", "wrong")), 401)
        == "invalid_client"
    )
    assert (
        error_of(await place.post("/token", id_jag(place, client_id="app") | {"client_id": "app"}))
        == "unauthorized_client"
    )


async def test_the_resource_of_the_request_is_that_of_the_id_jag() -> None:
    """Asked for another, nothing is given."""
    place = office()
    assert (
        error_of(await place.post("/token", id_jag(place) | {"resource": OTHER}, CLIENT))
        == "invalid_target"
    )
    assert said(await place.post("/token", id_jag(place) | {"resource": f"{SERVER}/"}, CLIENT))


async def test_the_person_of_an_id_jag() -> None:
    """Is whom the configuration makes of it; or nobody."""

    def known(claims: Any) -> User | None:
        return User("anna", claims={"email": claims["email"]}) if claims.get("email") else None

    place = office(TrustedIssuer(issuer=IDP, jwks={"keys": [KEY.public()]}, users=True, user=known))
    claims = claims_of(
        said(await place.post("/token", id_jag(place, email="a@example.com"), CLIENT))[
            "access_token"
        ]
    )
    assert (claims["sub"], claims["email"]) == ("anna", "a@example.com")
    assert error_of(await place.post("/token", id_jag(place, jti="2"), CLIENT)) == "invalid_grant"


async def test_keys_of_an_issuer_that_rotate() -> None:
    """Found by its configuration, fetched again when a token names a new one (EMA-14)."""
    place = office(TrustedIssuer(issuer=IDP, users=True))
    assert (
        error_of(await place.post("/token", id_jag(place), CLIENT), 503)
        == "temporarily_unavailable"
    )
    place.clock.now += 31
    configuration = {"issuer": IDP, "jwks_uri": f"{IDP}/keys"}
    place.world.documents |= {
        f"{IDP}/.well-known/openid-configuration": configuration,
        f"{IDP}/keys": {"keys": [KEY.public()]},
    }
    assert said(await place.post("/token", id_jag(place), CLIENT))
    place.clock.now += 31
    place.world.documents[f"{IDP}/keys"] = {"keys": [KEY.public(), OTHER_KEY.public()]}
    assert said(await place.post("/token", id_jag(place, OTHER_KEY), CLIENT))
    assert said(await place.post("/token", id_jag(place, jti="again"), CLIENT))


@pytest.mark.parametrize(
    "configuration",
    [{"issuer": "https://evil.example"}, {"jwks_uri": "http://10.0.0.1/keys"}, {"jwks_uri": 7}],
)
async def test_a_configuration_that_is_not_the_issuers(configuration: dict[str, Any]) -> None:
    """Is not believed."""
    place = office(TrustedIssuer(issuer=IDP, users=True))
    place.world.documents |= {
        f"{IDP}/.well-known/openid-configuration": {"issuer": IDP, "jwks_uri": f"{IDP}/keys"}
        | configuration,
        f"{IDP}/keys": {"keys": [KEY.public()]},
        "http://10.0.0.1/keys": {"keys": [KEY.public()]},
    }
    assert (
        error_of(await place.post("/token", id_jag(place), CLIENT), 503)
        == "temporarily_unavailable"
    )


def test_trust_is_checked_when_the_issuer_is_made() -> None:
    """Keys come over https (EMA-14, WIF-04), and who takes ID-JAGs knows its resources (EMA-09)."""
    with pytest.raises(ValueError, match="https"):
        office(TrustedIssuer(issuer="http://idp.example"))
    with pytest.raises(ValueError, match="https"):
        office(TrustedIssuer(issuer=IDP, jwks_uri="http://idp.example/keys"))
    with pytest.raises(ValueError, match="https"):
        office(
            TrustedIssuer(issuer=IDP, jwks_uri="http://127.0.0.1:80@idp.example/keys")
        )  # a user of that name, at another host
    with pytest.raises(ValueError, match="resources"):
        office(ENTERPRISE, resources=None)
    office(TrustedIssuer(issuer=IDP, jwks_uri="http://127.0.0.1:9/keys"))  # in development


# -- workloads -------------------------------------------------------------------------------------


@pytest.mark.parametrize("audience", [URL, f"{URL}/token"])
async def test_a_workload(audience: str) -> None:
    """It needs no registration: who it is says its platform, what it may have says the
    configuration (WIF-04).
    """
    place = office()
    tokens = said(
        await place.post(
            "/token", workload(place, aud=audience) | {"scope": "files:read files:write"}
        )
    )
    claims = claims_of(tokens["access_token"])
    assert (claims["sub"], claims["aud"], claims["scope"]) == ("the-build", SERVER, "files:read")
    assert "refresh_token" not in tokens


async def test_workloads_by_the_beginning_of_their_names() -> None:
    """And named so that they are nobody else."""
    place = office()
    subject = "spiffe://platform.example/nightly/7"
    claims = claims_of(
        said(await place.post("/token", workload(place, sub=subject)))["access_token"]
    )
    assert (claims["sub"], claims["scope"]) == (f"{PLATFORM}|{subject}", "files:read files:write")


BAD_WORKLOADS: dict[str, tuple[dict[str, Any], dict[str, str], str]] = {
    "a workload that nobody named": ({"sub": "deploy"}, {}, "invalid_grant"),
    "a name that goes on": ({"sub": "build-evil"}, {}, "invalid_grant"),
    "an issuer that nobody trusts": ({"iss": "https://evil.example"}, {}, "invalid_grant"),
    "an issuer with no such workloads": ({"iss": IDP}, {}, "invalid_grant"),
    "another key": ({"key": OTHER_KEY}, {}, "invalid_grant"),
    "another audience": ({"aud": SERVER}, {}, "invalid_grant"),
    "expired": ({"exp": 1_800_000_000.0 - 60}, {}, "invalid_grant"),
    "no exp": ({"exp": None}, {}, "invalid_grant"),
    "no iat": ({"iat": None}, {}, "invalid_grant"),
    "no jti": ({"jti": None}, {}, "invalid_grant"),
    "an access token": ({"typ": "at+jwt"}, {}, "invalid_grant"),
    "a resource that it may not have": ({}, {"resource": OTHER}, "invalid_target"),
    "a scope that it may not have": ({}, {"scope": "mail"}, "invalid_scope"),
    "nothing": ({}, {"assertion": ""}, "invalid_request"),
    "no JWT": ({}, {"assertion": "x"}, "invalid_grant"),
    "something large": ({}, {"assertion": "x" * 50_000}, "invalid_grant"),
}


@pytest.mark.parametrize("changes, told, error", BAD_WORKLOADS.values(), ids=BAD_WORKLOADS)
async def test_workloads_that_are_not_trusted(
    changes: dict[str, Any], told: dict[str, str], error: str
) -> None:
    """Issuer, name, signature, audience, times (WIF-04)."""
    place = office()
    assert error_of(await place.post("/token", workload(place, **changes) | told)) == error


async def test_the_jwt_of_a_workload_comes_once() -> None:
    """A second time it is somebody else's."""
    place = office()
    told = workload(place)
    assert said(await place.post("/token", told))
    assert error_of(await place.post("/token", told)) == "invalid_grant"


async def test_an_unsigned_assertion() -> None:
    """`none` is no algorithm (EMA-08)."""
    place = office()
    token = workload(place)["assertion"]
    unsigned = "eyJhbGciOiJub25lIn0." + token.split(".")[1] + "."
    assert (
        error_of(await place.post("/token", {"grant_type": BEARER, "assertion": unsigned}))
        == "invalid_grant"
    )


async def test_nobody_is_trusted_unless_somebody_says_so() -> None:
    """Without configuration there is no such grant, and none is listed."""
    place = Office()
    assert error_of(await place.post("/token", workload(place))) == "unsupported_grant_type"
    assert (
        BEARER
        not in said(await place.get("/.well-known/oauth-authorization-server"))[
            "grant_types_supported"
        ]
    )
