"""What the proxy sets down while somebody is away at the provider is sealed: who reads or writes
the store can neither use nor forge it.
"""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import msgspec

from interlock.auth.oauth.codes import challenge_of
from tests.proxy.elsewhere import ACME
from tests.proxy.test_proxy import Street

KIND = "upstream-state"


async def test_the_state_is_encrypted_in_the_store() -> None:
    """The record tells nothing of the request, the verifier or the browser (SEC-11, AUT-10)."""
    street = Street()
    sent = dict(parse_qsl(urlsplit(await street.agreed(street.visitor())).query))
    (key,) = await street.vault.keys(KIND)
    kept = await street.vault.get(KIND, key) or b""
    assert kept
    assert sent["state"] not in key
    for word in (
        b"verifier",
        b"pending",
        b"binder",
        b"{",
        sent["nonce"].encode(),
        sent["state"].encode(),
    ):
        assert word not in kept
    assert challenge_of(kept.decode()) != sent["code_challenge"]


async def test_a_state_that_was_written_by_another_hand_is_none() -> None:
    """A record in plain words, one of another log-in, and one of a session, lead nowhere.

    The provider is not asked (SEC-11).
    """
    street = Street()
    visitor = street.visitor()
    other = street.visitor()
    await street.agreed(other)
    (strange,) = await street.vault.keys(KIND)
    swapped = await street.vault.get(KIND, strange) or b""
    plain = msgspec.json.encode({"pending": "x", "verifier": "v" * 43, "nonce": "n", "binder": "b"})
    for forged in (plain, swapped, b"", b"e" * 200, b"\xff"):
        there = street.elsewhere.visit(await street.agreed(visitor))
        (mine,) = set(await street.vault.keys(KIND)) - {strange}
        await street.vault.put(KIND, mine, forged)
        reply = await visitor.get(there)
        assert reply.status == 400
        assert not [sent for sent in street.elsewhere.sent if sent.url == ACME.token_endpoint]
        await street.vault.remove(KIND, mine)
