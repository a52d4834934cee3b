"""Devices without a browser: two codes, one person, and polls that are not too many."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock_issuer.interfaces import Client, PendingRequest
from tests.issuer.office import SERVER, URL, Office, claims_of, error_of, said

DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
TV = Client(id="tv", name="The TV", grants=(DEVICE, "refresh_token"))
RADIO = Client(id="radio", grants=(DEVICE,))


def office() -> Office:
    """An issuer that knows two devices."""
    return Office(clients=[TV, RADIO])


async def begin(place: Office) -> dict[str, Any]:
    """The two codes."""
    return said(
        await place.post(
            "/device_authorization", {"client_id": "tv", "scope": "files:read", "resource": SERVER}
        )
    )


async def poll(place: Office, codes: dict[str, Any], client: str = "tv") -> Any:
    """Ask whether somebody has decided."""
    return await place.post(
        "/token", {"grant_type": DEVICE, "client_id": client, "device_code": codes["device_code"]}
    )


async def found(place: Office, code: str) -> PendingRequest:
    """The request behind a code."""
    pending = await place.issuer.device(code)
    assert pending is not None
    return pending


async def test_a_device_logs_in() -> None:
    """Codes, a poll too early, the person, tokens; once (RFC 8628)."""
    place = office()
    codes = await begin(place)
    assert (codes["verification_uri"], codes["expires_in"], codes["interval"]) == (
        f"{URL}/device",
        600,
        5,
    )
    assert codes["verification_uri_complete"] == f"{URL}/device?user_code={codes['user_code']}"
    assert error_of(await poll(place, codes)) == "authorization_pending"
    typed = codes["user_code"].lower().replace("-", " ")
    pending = await found(place, typed)
    assert (pending.client.name, pending.scopes, pending.resource, pending.is_device) == (
        "The TV",
        ("files:read",),
        SERVER,
        True,
    )
    assert (pending.user_code, pending.redirect_host) == (codes["user_code"], "")
    assert await place.issuer.pending(pending.id) == pending
    reply = await place.grant(pending.id, place.people.person, pending.scopes)
    assert (reply.status, reply.body) == (200, b"done True")
    place.clock.now += 5
    tokens = said(await poll(place, codes))
    claims = claims_of(tokens["access_token"])
    assert (claims["sub"], claims["aud"], claims["scope"], claims["client_id"]) == (
        "anna",
        SERVER,
        "files:read",
        "tv",
    )
    assert error_of(await poll(place, codes)) == "invalid_grant"
    again = said(await place.refresh(tokens["refresh_token"], client_id="tv"))
    assert claims_of(again["access_token"])["sid"] == claims["sid"]
    assert await place.issuer.device(codes["user_code"]) is None


async def test_no_more_than_was_asked_for() -> None:
    """What the page grants beyond is not given."""
    place = office()
    codes = await begin(place)
    pending = await found(place, codes["user_code"])
    await place.grant(pending.id, place.people.person, ["files:write", "mail"])
    assert "scope" not in said(await poll(place, codes))


async def test_a_person_who_says_no() -> None:
    """Is heard once; a yes after it is none."""
    place = office()
    codes = await begin(place)
    pending = await found(place, codes["user_code"])
    assert (await place.deny(pending.id)).body == b"done False"
    assert (await place.grant(pending.id, place.people.person, pending.scopes)).status == 400
    assert error_of(await poll(place, codes)) == "access_denied"
    assert error_of(await poll(place, codes)) == "invalid_grant"


async def test_polls_that_are_too_many() -> None:
    """Each of them makes the wait longer (RFC 8628, 3.5)."""
    place = office()
    codes = await begin(place)
    assert error_of(await poll(place, codes)) == "authorization_pending"
    place.clock.now += 1
    assert error_of(await poll(place, codes)) == "slow_down"
    place.clock.now += 6
    assert error_of(await poll(place, codes)) == "slow_down"
    place.clock.now += 15
    assert error_of(await poll(place, codes)) == "authorization_pending"


async def test_time_is_over() -> None:
    """Ten minutes; the device is told to begin again, and nobody can decide any more."""
    place = office()
    codes = await begin(place)
    pending = await found(place, codes["user_code"])
    place.clock.now += 601
    assert error_of(await poll(place, codes)) == "expired_token"
    assert await place.issuer.device(codes["user_code"]) is None
    assert (await place.grant(pending.id, place.people.person, ())).status == 400
    place.clock.now += 301
    assert error_of(await poll(place, codes)) == "invalid_grant"


async def test_another_client_gets_nothing() -> None:
    """Nor does it end anything."""
    place = office()
    codes = await begin(place)
    pending = await found(place, codes["user_code"])
    await place.grant(pending.id, place.people.person, pending.scopes)
    assert error_of(await poll(place, codes, "radio")) == "invalid_grant"
    assert said(await poll(place, codes))


async def test_many_polls_at_once() -> None:
    """One gets the tokens."""
    place = office()
    codes = await begin(place)
    pending = await found(place, codes["user_code"])
    await place.grant(pending.id, place.people.person, pending.scopes)
    replies = await asyncio.gather(*(poll(place, codes) for _ in range(32)))
    assert sorted(reply.status for reply in replies) == [200, *[400] * 31]


async def test_a_decision_among_polls() -> None:
    """A poll that comes between does not undo it."""
    place = office()
    codes = await begin(place)
    pending = await found(place, codes["user_code"])
    await asyncio.gather(
        *(poll(place, codes) for _ in range(8)),
        place.grant(pending.id, place.people.person, pending.scopes),
    )
    assert said(await poll(place, codes))


async def test_two_decisions_at_once() -> None:
    """One of them counts, and it is the one that the person saw."""
    place = office()
    codes = await begin(place)
    pending = await found(place, codes["user_code"])
    yes, no = await asyncio.gather(
        place.grant(pending.id, place.people.person, pending.scopes),
        place.deny(pending.id),
    )
    assert {yes.status, no.status} == {200, 400}
    assert (await poll(place, codes)).status == yes.status


@pytest.mark.parametrize(
    "code", ["", "BCDF", "AEIO-UAEI", "BCDF-GHJK-LMNP", "B" * 5000, "BCDF-GHJK"]
)
async def test_codes_that_are_none(code: str) -> None:
    """Nobody is found."""
    place = office()
    await begin(place)
    assert await place.issuer.device(code) is None


async def test_who_may_not() -> None:
    """A client without the grant, an unknown one, a scope and a resource that there are not."""
    place = Office(clients=[TV, Client(id="app", redirect_uris=("https://app.example/back",))])
    for told, status, error in (
        ({"client_id": "app"}, 400, "unauthorized_client"),
        ({"client_id": "nobody"}, 401, "invalid_client"),
        ({"client_id": "tv", "scope": "admin"}, 400, "invalid_scope"),
        ({"client_id": "tv", "resource": "https://evil.example/"}, 400, "invalid_target"),
    ):
        assert error_of(await place.post("/device_authorization", told), status) == error
    assert (
        error_of(await place.post("/token", {"grant_type": DEVICE, "client_id": "tv"}))
        == "invalid_request"
    )
    assert (
        await place.authorize(client_id="tv", redirect_uri="https://app.example/back")
    ).status == 400
