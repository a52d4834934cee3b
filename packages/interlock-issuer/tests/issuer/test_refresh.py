"""Refresh tokens: each is spent once, and who brings one that was spent ends it for everybody."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from interlock import Unreachable
from interlock.store import open_vault
from interlock_issuer.interfaces import Client, User
from tests.issuer.office import BACK, OTHER, SERVER, URL, Office, basic, claims_of, error_of, said


async def test_rotation() -> None:
    """Each use gives the next one, with a new access token about the same (AUT-12)."""
    office = Office()
    first = await office.log_in()
    second = said(await office.refresh(first["refresh_token"]))
    third = said(await office.refresh(second["refresh_token"], scope="files:read", resource=SERVER))
    assert len({tokens["refresh_token"] for tokens in (first, second, third)}) == 3
    claims = [claims_of(tokens["access_token"]) for tokens in (first, second, third)]
    assert {(c["sub"], c["aud"], c["client_id"], c["sid"]) for c in claims} == {
        ("anna", SERVER, "app", claims[0]["sid"])
    }
    assert len({c["jti"] for c in claims}) == 3
    assert (second["scope"], third["scope"]) == ("files:read files:write", "files:read")
    fourth = said(await office.refresh(third["refresh_token"]))
    assert fourth["scope"] == "files:read files:write"  # fewer scopes are fewer for one token


@pytest.mark.parametrize("thief_first", [True, False])
async def test_reuse_ends_the_family(thief_first: bool) -> None:
    """A token that was spent comes again: thief and owner lose everything, in either order (RFC
    9700, 4.14.2).
    """
    office = Office()
    first = await office.log_in()
    one = said(await office.refresh(first["refresh_token"]))
    if not thief_first:
        one = said(await office.refresh(one["refresh_token"]))
    assert (await office.introspect(one["access_token"]))["active"] is True
    assert error_of(await office.refresh(first["refresh_token"])) == "invalid_grant"
    assert error_of(await office.refresh(one["refresh_token"])) == "invalid_grant"
    assert await office.introspect(one["access_token"]) == {"active": False}


async def test_64_at_once() -> None:
    """One succeeds, and since the others had the same secret the family ends."""
    office = Office()
    tokens = await office.log_in()
    replies = await asyncio.gather(*(office.refresh(tokens["refresh_token"]) for _ in range(64)))
    assert sorted(reply.status for reply in replies) == [200, *[400] * 63]
    (won,) = [said(reply) for reply in replies if reply.status == 200]
    assert error_of(await office.refresh(won["refresh_token"])) == "invalid_grant"


async def test_nobody_can_say_whether_the_person_still_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where who would know is away the client is told to come again, and its token is not spent."""
    office = Office()
    tokens = await office.log_in()

    async def away(person: User) -> bool:
        raise Unreachable("no route")

    with monkeypatch.context() as broken:
        broken.setattr(office.people, "is_active", away)
        reply = await office.refresh(tokens["refresh_token"])
        assert error_of(reply, 503) == "temporarily_unavailable"
        assert reply.header("retry-after") == "30"
    assert said(await office.refresh(tokens["refresh_token"]))["access_token"]


@pytest.mark.parametrize("kind", ["sqlite", "file"])
async def test_the_same_among_processes(kind: str, tmp_path: Path) -> None:
    """Two issuers with one vault on disk, and many programs: one code gives one set of tokens, one
    refresh token one next.
    """
    vaults = [open_vault(f"{kind}:///{tmp_path.as_posix().lstrip('/')}/vault") for _ in range(2)]
    one, two = (Office(vault=vault) for vault in vaults)
    code = await one.code()
    replies = await asyncio.gather(*((one, two)[n % 2].redeem(code) for n in range(8)))
    assert sorted(reply.status for reply in replies) == [200, *[400] * 7]
    tokens = await two.log_in()
    replies = await asyncio.gather(
        *((one, two)[n % 2].refresh(tokens["refresh_token"]) for n in range(8))
    )
    assert sorted(reply.status for reply in replies) == [200, *[400] * 7]
    for vault in vaults:
        await vault.aclose()


MORE = {
    "a scope more": ({"scope": "files:read mail"}, "invalid_scope"),
    "another resource": ({"resource": OTHER}, "invalid_target"),
    "another client": ({"client_id": "second"}, "invalid_grant"),
    "no client": ({"client_id": None}, "invalid_client"),
    "an access token for a refresh token": ({"refresh_token": "a.b.c"}, "invalid_grant"),
    "nothing": ({"refresh_token": None}, "invalid_request"),
}


@pytest.mark.parametrize("changes, error", MORE.values(), ids=MORE)
async def test_no_more_than_was_granted(changes: dict[str, str | None], error: str) -> None:
    """Neither scopes nor resources nor clients; and the token is not lost by the attempt."""
    office = Office()
    tokens = await office.log_in(scope="files:read")
    assert (
        error_of(
            await office.refresh(tokens["refresh_token"], **changes),
            401 if error == "invalid_client" else 400,
        )
        == error
    )
    assert said(await office.refresh(tokens["refresh_token"]))["scope"] == "files:read"


async def test_it_ends_when_it_is_not_used() -> None:
    """After 30 days without use; not before."""
    office = Office()
    tokens = await office.log_in()
    for _ in range(3):
        office.clock.now += 29 * 86_400
        tokens = said(await office.refresh(tokens["refresh_token"]))
    office.clock.now += 31 * 86_400
    assert error_of(await office.refresh(tokens["refresh_token"])) == "invalid_grant"


async def test_and_some_day_in_any_case() -> None:
    """180 days after the person was asked, and no access token lives longer."""
    office = Office(session_seconds=1000.0)
    tokens = await office.log_in()
    office.clock.now += 700
    tokens = said(await office.refresh(tokens["refresh_token"]))
    assert tokens["expires_in"] == 300
    office.clock.now += 300
    assert error_of(await office.refresh(tokens["refresh_token"])) == "invalid_grant"


async def test_who_no_longer_stands_gets_no_more() -> None:
    """An account that was removed: nothing is given on its behalf, and what was given no longer
    holds.
    """
    office = Office()
    tokens = await office.log_in()
    office.people.standing = False
    assert await office.introspect(tokens["access_token"]) == {"active": False}
    tokens = await office.log_in()
    assert error_of(await office.refresh(tokens["refresh_token"])) == "invalid_grant"
    office.people.standing = True
    assert (
        error_of(await office.refresh(tokens["refresh_token"])) == "invalid_grant"
    )  # it has ended


async def test_a_client_that_has_none() -> None:
    """Who does not say that it refreshes gets no refresh token, and cannot be made to use one
    (AUS-11, AUS-13).
    """
    office = Office(
        clients=[Client(id="app", redirect_uris=(BACK,), grants=("authorization_code",))]
    )
    tokens = await office.log_in()
    assert "refresh_token" not in tokens
    assert error_of(await office.refresh("x" * 20 + "." + "y" * 40)) == "unauthorized_client"


async def test_offline_access_is_taken() -> None:
    """It is listed, so that clients may ask for it (AUS-12)."""
    office = Office()
    assert (
        "offline_access"
        in said(await office.get("/.well-known/oauth-authorization-server"))["scopes_supported"]
    )
    tokens = await office.log_in(scope="files:read offline_access")
    assert (tokens["scope"], "refresh_token" in tokens) == ("files:read offline_access", True)


async def test_a_confidential_client_refreshes_as_itself() -> None:
    """The token alone is nothing."""
    office = Office()
    headers = basic("vault", "a secret/with+signs%")
    tokens = said(
        await office.redeem(await office.code(client_id="vault"), headers, client_id=None)
    )
    assert (
        error_of(await office.refresh(tokens["refresh_token"], client_id="vault"), 401)
        == "invalid_client"
    )
    assert (
        claims_of(
            said(await office.refresh(tokens["refresh_token"], headers, client_id=None))[
                "access_token"
            ]
        )["iss"]
        == URL
    )
