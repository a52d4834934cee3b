"""What the issuer says of itself and where; what it may be called; the keys with which it signs."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from interlock.auth.keys import ASYMMETRIC, KeySet
from interlock.auth.oauth.documents import ServerMetadata
from tests.issuer.exchange import Sent, ask
from tests.issuer.office import BACK, URL, Office, claims_of, header_of, said

OAUTH = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"


async def test_the_document() -> None:
    """All that clients of any revision look for in it (AU2-06, AU3-09, AU3-10, AU3-15, AUF-13,
    CCR-05, DPP-07).
    """
    office = Office()
    reply = await office.get(OAUTH)
    told = msgspec.json.decode(reply.body, type=ServerMetadata)
    assert (
        reply.status,
        reply.header("content-type"),
        reply.header("access-control-allow-origin"),
    ) == (200, "application/json", "*")
    assert told.issuer == URL
    assert told.code_challenge_methods_supported == ["S256"]
    assert told.response_types_supported == ["code"]
    assert told.authorization_response_iss_parameter_supported is True
    assert told.client_id_metadata_document_supported is True
    methods = told.token_endpoint_auth_methods_supported or []
    assert {"none", "private_key_jwt", "client_secret_basic", "client_secret_post"} == set(methods)
    assert (
        told.dpop_signing_alg_values_supported
        == list(ASYMMETRIC)
        == told.token_endpoint_auth_signing_alg_values_supported
    )
    assert not any(
        name == "none" or name.startswith("HS") for name in told.dpop_signing_alg_values_supported
    )
    assert {"authorization_code", "refresh_token", "client_credentials"} < set(
        told.grant_types_supported or []
    )
    assert told.scopes_supported == ["files:read", "files:write", "mail", "offline_access"]


async def test_every_endpoint_that_is_named_is_there() -> None:
    """With the method that belongs to it; all of them below the issuer, on https (AUT-11)."""
    office = Office()
    told = said(await office.get(OAUTH))
    places = {name: url for name, url in told.items() if name.endswith(("_endpoint", "_uri"))}
    assert len(places) == 7
    for name, url in places.items():
        assert url.startswith(f"{URL}/")
        method = "GET" if name in ("jwks_uri", "authorization_endpoint") else "POST"
        asked = Sent(
            method,
            url.removeprefix(URL),
            headers={"content-type": "application/x-www-form-urlencoded"},
        )
        assert (await ask(office.issuer, asked)).status not in (404, 405), name


PLACES = {
    "": [OAUTH, OPENID],
    "/tenant/one": [f"{OAUTH}/tenant/one", f"{OPENID}/tenant/one", f"/tenant/one{OPENID}"],
}


@pytest.mark.parametrize("path, places", PLACES.items(), ids=["root", "path"])
async def test_its_places(path: str, places: list[str]) -> None:
    """Those of RFC 8414 and of OpenID Connect, whatever the issuer's path (AU3-10)."""
    office = Office(f"{URL}{path}")
    for place in places:
        reply = await ask(office.issuer, Sent("GET", place))
        assert said(reply)["issuer"] == f"{URL}{path}"
    head = await ask(office.issuer, Sent("HEAD", places[0]))
    assert head.status == 200
    if path:
        assert (
            await ask(office.issuer, Sent("GET", OAUTH))
        ).status == 404  # that would be another issuer
        tokens = await office.log_in()
        assert claims_of(tokens["access_token"])["iss"] == f"{URL}{path}"


BAD_URLS = [
    "http://issuer.example",
    "https://",
    "issuer.example",
    "https://a.example?x=1",
    "https://a.example#x",
    "https://u@a.example",
    "ftp://a",
]


@pytest.mark.parametrize("url", BAD_URLS)
def test_what_is_no_issuer(url: str) -> None:
    """https, without query and fragment (AUT-11; RFC 8414, 2)."""
    with pytest.raises(ValueError, match="issuer is"):
        Office(url)


def test_what_is_one() -> None:
    """In development http on loopback; a slash at the end is none of its name."""
    for url in ("http://127.0.0.1:8080", "http://localhost:1/x", "http://[::1]:9"):
        assert Office(url).issuer.settings.is_loopback
    assert Office("https://a.example/x/").issuer.settings.url == "https://a.example/x"
    with pytest.raises(ValueError, match="resource"):
        Office(resources=["/mcp"])


HOSTS = {
    "127.0.0.1:8080": 200,
    "localhost:8080": 200,
    "[::1]:8080": 200,
    "evil.example": 403,
    "127.0.0.1.evil.example": 403,
    "[": 403,
}


@pytest.mark.parametrize("host, status", HOSTS.items())
async def test_no_name_is_rebound_to_a_local_issuer(host: str, status: int) -> None:
    """A page elsewhere whose name is turned to this machine gets nothing (SEC-01)."""
    reply = await Office("http://127.0.0.1:8080").get(OAUTH, host=host)
    assert reply.status == status


# -- keys ------------------------------------------------------------------------------------------


async def keys(office: Office) -> KeySet:
    """The keys that it shows now."""
    return KeySet.read(said(await office.get("/jwks")))


async def test_keys_rotate_and_tokens_hold_on() -> None:
    """A new key each month.

    The next is shown before it signs, the last as long as its tokens live, and not for ever.
    """
    office = Office(key_seconds=1000.0, access_seconds=600.0)
    office.clock.now = 1_000_000.0
    old = (await office.log_in())["access_token"]
    assert len(await keys(office)) == 1
    office.clock.now += 950
    soon = await keys(office)
    assert len(soon) == 2
    office.clock.now += 50
    new = (await office.log_in())["access_token"]
    assert header_of(new)["kid"] != header_of(old)["kid"]
    assert soon.verify(new)[1]["iss"] == URL  # who has fetched the keys before knows the new one
    shown = await keys(office)
    assert shown.verify(old)[1]["iss"] == shown.verify(new)[1]["iss"] == URL
    office.clock.now += 901
    assert len(await keys(office)) == 2  # the present one and the next
    assert all(
        key["kid"] != header_of(old)["kid"] for key in said(await office.get("/jwks"))["keys"]
    )


async def test_processes_that_begin_at_once_have_one_key() -> None:
    """Each makes one, one is kept; and what one signs another knows."""
    one = Office()
    others = [Office(vault=one.vault) for _ in range(4)]
    shown = await asyncio.gather(*(office.get("/jwks") for office in [one, *others]))
    assert len({reply.body for reply in shown}) == 1
    token = (await one.log_in())["access_token"]
    assert (await others[0].introspect(token))["active"] is True


async def test_no_private_part_is_shown() -> None:
    """Only what verifies."""
    for algorithm in ("ES256", "EdDSA"):
        (key,) = said(await Office(algorithm=algorithm).get("/jwks"))["keys"]
        assert set(key) <= {"kty", "crv", "x", "y", "n", "e", "kid", "alg", "use"}
        assert (key["alg"], key["use"]) == (algorithm, "sig")


async def test_a_new_process_goes_on_with_everything() -> None:
    """Whatever was begun at one ends at another: requests, codes, refresh tokens, registrations."""
    one = Office()
    two = Office(vault=one.vault)
    id = said(
        await one.register({"redirect_uris": [BACK], "token_endpoint_auth_method": "none"}), 201
    )["client_id"]
    tokens = said(await two.redeem(await one.code(client_id=id), client_id=id))
    again: dict[str, Any] = said(await one.refresh(tokens["refresh_token"], client_id=id))
    assert (await two.introspect(again["access_token"]))["active"] is True
