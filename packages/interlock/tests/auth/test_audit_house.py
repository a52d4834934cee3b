"""A guard before the issuer's own tokens takes them no longer than what stands behind them:
revoked, ended elsewhere, or not to be known.
"""

from __future__ import annotations

import pytest

from interlock import types as t
from interlock.auth.tokens.interface import BadToken, Unverifiable
from interlock.store import StoreError
from interlock_issuer.interfaces import User
from tests.issuer.office import OTHER, SERVER, Office
from tests.proxy.test_proxy import Street


async def test_a_token_that_was_revoked_is_not_taken() -> None:
    """What was revoked at the issuer is good for nothing at the server beside it, long before its
    end (AUT-05, AUT-10).
    """
    office = Office()
    tokens = await office.log_in()
    others = await office.log_in()
    verifier = office.issuer.verifier()
    verified = await verifier.verify(tokens["access_token"], resource=SERVER, now=office.clock.now)
    assert (verified.principal.subject, verified.principal.client) == ("anna", "app")
    assert verified.seconds <= 30
    await office.post("/revoke", {"token": tokens["refresh_token"], "client_id": "app"})
    with pytest.raises(BadToken, match="revoked"):
        await verifier.verify(tokens["access_token"], resource=SERVER, now=office.clock.now)
    await verifier.verify(others["access_token"], resource=SERVER, now=office.clock.now)
    await office.post("/revoke", {"token": others["access_token"], "client_id": "app"})
    with pytest.raises(BadToken, match="revoked"):
        await verifier.verify(others["access_token"], resource=SERVER, now=office.clock.now)


async def test_a_person_who_is_gone_is_not_taken() -> None:
    """Whose account was removed, or has another password, has lost what was granted.

    The audience is looked at all the same (AUT-07).
    """
    office = Office()
    token = (await office.log_in())["access_token"]
    verifier = office.issuer.verifier()
    with pytest.raises(BadToken, match="another server"):
        await verifier.verify(token, resource=OTHER, now=office.clock.now)
    office.people.standing = False
    with pytest.raises(BadToken, match="revoked"):
        await verifier.verify(token, resource=SERVER, now=office.clock.now)


async def test_the_session_of_a_third_party_is_asked_about_before_a_token_is_honoured() -> None:
    """A token of the proxy dies with the session at the provider, and not only when it is to be
    renewed (AU2-10).
    """
    street = Street()
    tokens = await street.renew(await street.tokens())
    street.clock.now += 3300
    tokens = await street.renew(tokens)
    street.elsewhere.revoke()
    street.clock.now += (
        245  # the provider's token is at its end, and ours has half of its time left
    )
    verifier = street.proxy.verifier()
    with pytest.raises(BadToken, match="revoked"):
        await verifier.verify(tokens["access_token"], resource=SERVER, now=street.clock.now)


@pytest.mark.parametrize(
    "trouble", [t.Unreachable("The provider is away."), StoreError("The vault is away.")]
)
async def test_where_it_cannot_be_known_nobody_is_let_in(
    trouble: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider that is away, or a vault, is no reason to believe a token, and none to say that it
    is bad.
    """
    office = Office()
    token = (await office.log_in())["access_token"]

    async def stands(person: User) -> bool:
        raise trouble

    monkeypatch.setattr(office.people, "is_active", stands)
    with pytest.raises(Unverifiable):
        await office.issuer.verifier().verify(token, resource=SERVER, now=office.clock.now)
