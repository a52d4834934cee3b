"""Tokens that are bound to a key of the client's: every way to use one without the key, as a table
(RFC 9449).
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from typing import Any

import pytest

from interlock.auth.guard import Guard
from interlock.auth.keys import SigningKey, dpop_proof
from interlock.auth.oauth.challenges import read_challenges
from interlock.auth.tokens.api_keys import Checked
from interlock.auth.tokens.dpop import BadDpopProof, DpopVerifier
from interlock.exchange import Principal
from interlock.store import MemoryVault
from tests.auth.guarded import ISSUER, KEY, RESOURCE, Got, Inner, ask, bearer, jwt_guard, token
from tests.auth.network import NOW, Clock

MINE = SigningKey.generate()
OTHER = SigningKey.generate()
BOUND = token(cnf={"jkt": MINE.thumbprint})
AGAIN = token(cnf={"jkt": MINE.thumbprint}, jti="2")
PLAIN = token()


def b64(value: Any) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def proof(key: SigningKey = MINE, **changes: Any) -> str:
    return dpop_proof(
        key, **({"method": "POST", "url": RESOURCE, "now": NOW, "access_token": BOUND} | changes)
    )


def shown(*proofs: str, access: str = BOUND, scheme: str = "DPoP") -> list[tuple[str, str]]:
    return [("Authorization", f"{scheme} {access}"), *(("DPoP", one) for one in proofs)]


CLAIMS = {
    "jti": "j",
    "htm": "POST",
    "htu": RESOURCE,
    "iat": NOW,
    "ath": b64(hashlib.sha256(BOUND.encode()).digest()),
}


def crafted(key: dict[str, Any] | None = None, **more: Any) -> str:
    """A proof with another key in its head, or with more claims, signed rightly."""
    return MINE.sign(CLAIMS | more, typ="dpop+jwt", header={"jwk": key or MINE._bare()})


def hs256() -> str:
    """A proof by a secret that it brings itself."""
    signing = (
        f"{b64({'typ': 'dpop+jwt', 'alg': 'HS256', 'jwk': {'kty': 'oct', 'k': 'AAAA'}})}."
        f"{b64(CLAIMS)}"
    )
    return f"{signing}.{b64(hmac.digest(bytes(3), signing.encode(), 'sha256'))}"


def unsigned() -> str:
    """A proof that says it needs no signature."""
    return f"{b64({'typ': 'dpop+jwt', 'alg': 'none', 'jwk': MINE._bare()})}.{b64(CLAIMS)}."


# name, headers, status, error, words
TABLE: list[tuple[str, list[tuple[str, str]], int, str | None, str]] = [
    ("a token with a proof", shown(proof()), 200, None, ""),
    ("the scheme in any case", shown(proof(), scheme="dpop"), 200, None, ""),
    ("the URL with a query, and in another spelling",
        shown(proof(url="HTTPS://mcp.EXAMPLE.com:443/mcp?a=1")), 200, None, ""),
    ("nearly too old", shown(proof(now=NOW - 299)), 200, None, ""),
    ("nearly too new", shown(proof(now=NOW + 299)), 200, None, ""),
    ("with a content digest (DPP-10)", shown(crafted(content_digest="sha-256=:x:")), 200, None, ""),
    ("a token that is bound to nothing, as Bearer", shown(access=PLAIN, scheme="Bearer"), 200, None,
        ""),
    ("a bound token as Bearer (DPP-05)", shown(scheme="Bearer"), 401, "invalid_token", (
        "send it with a DPoP proof"
    )),
    ("a bound token as Bearer, with a proof", shown(proof(), scheme="Bearer"), 401, "invalid_token",
        (
        "send it with a DPoP proof"
    )),
    ("a token that is bound to nothing, as DPoP", shown(proof(access_token=PLAIN), access=PLAIN),
        401, "invalid_token", "not bound to a key"),
    ("no proof", shown(), 401, "invalid_dpop_proof", "the DPoP header is missing"),
    ("two proofs", shown(proof(), proof()), 401, "invalid_dpop_proof", "more than one DPoP header"),
    ("two proofs in one", shown(f"{proof()}, {proof()}"), 401, "invalid_dpop_proof",
        "not a signed JWT"),
    ("nonsense as proof", shown("nonsense"), 401, "invalid_dpop_proof", "not a signed JWT"),
    ("the token as proof", shown(BOUND), 401, "invalid_dpop_proof", "not a DPoP proof"),
    ("another's key (DPP-05)", shown(proof(OTHER)), 401, "invalid_dpop_proof", "a different key"),
    ("the key of the issuer", shown(proof(KEY)), 401, "invalid_dpop_proof", "a different key"),
    ("for another token", shown(proof(access_token=AGAIN)), 401, "invalid_dpop_proof", (
        "another access "
        "token"
    )),
    ("for no token", shown(proof(access_token=None)), 401, "invalid_dpop_proof", (
        "another access "
        "token"
    )),
    ("for another method", shown(proof(method="GET")), 401, "invalid_dpop_proof", "another method"),
    ("for another place", shown(proof(url=RESOURCE + "/x")), 401, "invalid_dpop_proof",
        "another URL"),
    ("for another server", shown(proof(url="https://other.example/mcp")), 401, "invalid_dpop_proof",
        "another URL"),
    ("for the token endpoint", shown(proof(url=f"{ISSUER}/token")), 401, "invalid_dpop_proof",
        "another URL"),
    ("too old", shown(proof(now=NOW - 301)), 401, "invalid_dpop_proof", "too old"),
    ("too new", shown(proof(now=NOW + 301)), 401, "invalid_dpop_proof", "from the future"),
    ("a shared secret", shown(hs256()), 401, "invalid_dpop_proof", "not allowed"),
    ("no signature", shown(unsigned()), 401, "invalid_dpop_proof", "not allowed"),
    ("the private key inside", shown(crafted(MINE.private())), 401, "invalid_dpop_proof",
        "a private or a symmetric key"),
    ("an expired token (DPP-05)", shown(proof(), access=token(exp=1, cnf={"jkt": MINE.thumbprint})),
        401, "invalid_token", "expired"),
    ("another server's token (DPP-05)", shown(proof(), access=token(aud="https://x.example",
        cnf={"jkt": MINE.thumbprint})), 401, "invalid_token", "another server"),
    ("the claim of another's key", shown(proof(), access=token(OTHER,
        cnf={"jkt": MINE.thumbprint})), 401, "invalid_token", "the issuer has no key"),
]  # fmt: skip


def refusal(got: Got, error: str) -> str:
    """The words of a refusal that is about a proof: told by the scheme DPoP alone."""
    assert got.status == 401
    [challenge] = [one for header in got.challenges for one in read_challenges(header)]
    assert (challenge.scheme, challenge.error, got.json["error"]) == ("dpop", error, error)
    assert "ES256" in challenge.parameters["algs"].split()
    assert not [
        name
        for name in challenge.parameters["algs"].split()
        if name.startswith("HS") or name == "none"
    ]
    assert challenge.parameters["resource_metadata"].endswith(
        "/.well-known/oauth-protected-resource/mcp"
    )
    return str(got.json["error_description"])


@pytest.mark.parametrize(
    "headers, status, error, words", [pytest.param(*case[1:], id=case[0]) for case in TABLE]
)
async def test_bound_tokens(
    headers: list[tuple[str, str]], status: int, error: str | None, words: str
) -> None:
    """DPP-04, DPP-05, DPP-10, X-11: what is said of a proof, and of the token beside it."""
    inner = Inner()
    got = await ask(jwt_guard()(inner), headers=headers)
    assert got.status == status
    if error is None:
        assert len(inner.scopes) == 1
        assert b"dpop" not in dict(inner.scopes[0]["headers"])
    elif (
        dict(headers)["Authorization"].startswith("Bearer")
        or error == "invalid_dpop_proof"
        or "bound" in words
    ):
        assert words in refusal(got, error)
        assert inner.scopes == []
    else:
        assert (got.json["error"], inner.scopes) == (error, [])
        assert words in got.json["error_description"]
        assert got.challenges[-1].startswith("DPoP ")


async def test_a_proof_is_good_once() -> None:
    """DPP-04, DPP-06: whoever has seen a request cannot send it again; also not as two at once."""
    inner = Inner()
    one = proof()
    app = jwt_guard()(inner)
    said = await asyncio.gather(*(ask(app, headers=shown(one)) for _ in range(5)))
    assert sorted(got.status for got in said) == [200, 401, 401, 401, 401]
    assert "was used before" in refusal(max(said, key=lambda got: got.status), "invalid_dpop_proof")
    assert (await ask(app, headers=shown(proof()))).status == 200
    assert len(inner.scopes) == 2


async def test_the_same_words_of_another_key_are_another_proof() -> None:
    """DPP-06: nobody can use up the proofs of somebody else."""
    clock = Clock()
    app = jwt_guard(clock)(Inner())
    bound = token(cnf={"jkt": OTHER.thumbprint})
    assert (await ask(app, headers=shown(proof(jti="same")))).status == 200
    assert (
        await ask(app, headers=shown(proof(OTHER, jti="same", access_token=bound), access=bound))
    ).status == 200


async def test_a_proof_that_was_refused_is_not_used_up() -> None:
    """DPP-06: only what was right is remembered, so that a stranger's rubbish takes up no room."""
    app = jwt_guard()(Inner())
    one = proof()
    assert (await ask(app, "GET", headers=shown(one))).status == 401
    assert (await ask(app, "POST", headers=shown(one))).status == 200


async def test_a_proof_is_remembered_for_as_long_as_it_could_be_used() -> None:
    """DPP-06: also one from a clock that is ahead; and it is forgotten then."""
    clock = Clock()
    vault = MemoryVault(clock=clock)
    guard = jwt_guard(clock, vault=vault)
    one = proof(now=NOW + 299)
    app = guard(Inner())
    assert (await ask(app, headers=shown(one))).status == 200
    clock.now = NOW + 598
    assert (await ask(app, headers=shown(one))).json[
        "error_description"
    ] == "the DPoP proof was used before"
    clock.now = NOW + 600
    assert "too old" in (await ask(app, headers=shown(one), **{})).json["error_description"]
    assert await vault.keys("dpop proof") == []


async def test_processes_that_share_a_vault_take_a_proof_once() -> None:
    """DPP-06: two workers, one proof."""
    clock = Clock()
    vault = MemoryVault(clock=clock)
    first, second = (jwt_guard(clock, vault=vault)(Inner()) for _ in range(2))
    one = proof()
    assert (await ask(first, headers=shown(one))).status == 200
    assert (await ask(second, headers=shown(one))).status == 401


async def test_without_room_to_remember_nobody_is_let_in() -> None:
    """DPP-06: a vault that is full is no reason to take proofs twice."""
    clock = Clock()
    app = jwt_guard(clock, vault=MemoryVault(clock=clock, most=1))(Inner())
    assert (await ask(app, headers=shown(proof()))).status == 200
    got = await ask(app, headers=shown(proof()))
    assert (got.status, got.header("retry-after")) == (503, "5")


async def test_nonces_can_be_demanded() -> None:
    """DPP-06: a proof needs a nonce of ours, which the refusal gives, and which ends (RFC 9449,
    9)."""
    clock = Clock()
    inner = Inner()
    app = jwt_guard(clock, dpop_nonces=True)(inner)
    got = await ask(app, headers=shown(proof()))
    nonce = got.header("dpop-nonce")
    assert nonce
    assert "nonce" in refusal(got, "use_dpop_nonce")
    good = await ask(app, headers=shown(proof(nonce=nonce)))
    assert (good.status, len(inner.scopes)) == (200, 1)
    assert good.header("dpop-nonce")  # the next one
    clock.now += 299
    assert (await ask(app, headers=shown(proof(nonce=nonce, now=clock.now)))).status == 200
    clock.now += 2
    refusal(await ask(app, headers=shown(proof(nonce=nonce, now=clock.now))), "use_dpop_nonce")


@pytest.mark.parametrize("forged", ["", "x", "AAAA", "A" * 32, "=", "\u00e9", "A" * 3000])
async def test_forged_nonces(forged: str) -> None:
    """DPP-06: only who runs the server makes nonces."""
    refusal(
        await ask(jwt_guard(dpop_nonces=True)(Inner()), headers=shown(proof(nonce=forged))),
        "use_dpop_nonce",
    )


async def test_a_nonce_of_another_time_or_server_is_not_ours() -> None:
    """DPP-06: the time in a nonce cannot be changed, and another server's are not ours.

    Those of a shared vault are.
    """
    clock = Clock()
    one, other = (jwt_guard(clock, dpop_nonces=True) for _ in range(2))
    nonce = str((await ask(one(Inner()), headers=shown(proof()))).header("dpop-nonce"))
    refusal(await ask(other(Inner()), headers=shown(proof(nonce=nonce))), "use_dpop_nonce")
    changed = nonce[:9] + ("A" if nonce[9] != "A" else "B") + nonce[10:]
    refusal(await ask(one(Inner()), headers=shown(proof(nonce=changed))), "use_dpop_nonce")
    vault = MemoryVault(clock=clock)
    first, second = (jwt_guard(clock, dpop_nonces=True, vault=vault) for _ in range(2))
    nonce = str((await ask(first(Inner()), headers=shown(proof()))).header("dpop-nonce"))
    assert (await ask(second(Inner()), headers=shown(proof(nonce=nonce)))).status == 200


async def test_bound_tokens_can_be_demanded() -> None:
    """DPP-05: with `required`, a token that is bound to nothing is not taken, and a client is not
    told of Bearer.
    """
    app = jwt_guard(dpop="required")(Inner())
    assert "not bound to a key" in refusal(await ask(app, headers=bearer(PLAIN)), "invalid_token")
    assert (await ask(app, headers=shown(proof()))).status == 200
    [challenge] = (await ask(app)).challenges
    assert challenge.startswith("DPoP ")


async def test_without_dpop_a_bound_token_is_not_taken_as_another() -> None:
    """DPP-05: a server that does not check proofs does not take tokens that need one."""
    app = jwt_guard(dpop="off")(Inner())
    got = await ask(app, headers=bearer(BOUND))
    assert (got.status, got.json["error"]) == (401, "invalid_token")
    [challenge] = got.challenges
    assert challenge.startswith("Bearer ")
    assert (await ask(app, headers=shown(proof()))).status == 401
    assert (await ask(app, headers=bearer(PLAIN))).status == 200


@pytest.mark.parametrize(
    "resource, root, path, urls, strange",
    [
        (
            RESOURCE,
            "",
            "/mcp",
            [RESOURCE],
            ["https://mcp.example.com/", "https://mcp.example.com/mcp/"],
        ),
        # A proxy in front of us has cut the path: clients name the address that they have, and
        # others may have the other.
        (
            "https://example.com/tools/mcp",
            "",
            "/mcp",
            ["https://example.com/tools/mcp", "https://example.com/mcp"],
            ["https://example.com/tools"],
        ),
        (
            "https://example.com/a/mcp",
            "/a",
            "/a/mcp",
            ["https://example.com/a/mcp"],
            ["https://example.com/mcp", "https://example.com/a"],
        ),
        (
            RESOURCE,
            "",
            "/else%2Fwhere",
            ["https://mcp.example.com/else%2fwhere"],
            [RESOURCE, "https://mcp.example.com/else/where"],
        ),
    ],
)
async def test_the_url_of_a_proof_is_the_one_that_clients_have(
    resource: str, root: str, path: str, urls: list[str], strange: list[str]
) -> None:
    """DPP-04 (RFC 9449, 4.3, 9): what clients see, not what a proxy has made of it."""
    app = jwt_guard(resource=resource)(Inner())
    access = token(aud=resource, cnf={"jkt": MINE.thumbprint})
    for url in (*urls, *strange):
        headers = shown(proof(url=url, access_token=access), access=access)
        got = await ask(
            app, "POST", path.replace("%2F", "/"), headers, raw_path=path.encode(), root_path=root
        )
        assert (url, got.status) == (url, 200 if url in urls else 401)


async def test_dpop_is_told_of_only_where_somebody_could_bind_a_token() -> None:
    """DPP-05: a verifier without issuers has nobody who binds tokens to keys."""
    app = Guard(Checked(lambda _: Principal(subject="jane")), resource=RESOURCE, clock=Clock())(
        Inner()
    )
    assert [challenge.split()[0] for challenge in (await ask(app)).challenges] == ["Bearer"]
    assert (await ask(app, headers=shown(proof()))).status == 401


async def test_servers_that_share_a_vault_do_not_take_the_proofs_of_each_other_for_theirs() -> None:
    """A `jti` that came to an issuer has not come to the server beside it, nor to another issuer
    (RFC 9449, 11.1).
    """
    vault = MemoryVault(clock=Clock())
    clock = Clock()
    guard, *issuers = (
        DpopVerifier(vault=vault, clock=clock, nonces=False, place=place)
        for place in ("", ISSUER, f"{ISSUER}/two")
    )
    shown = {"method": "POST", "urls": [RESOURCE], "now": NOW, "token": BOUND}
    once = proof(jti="one")
    for each in (guard, *issuers):
        assert await each.check(once, **shown) == MINE.thumbprint
        with pytest.raises(BadDpopProof, match="was used before"):
            await each.check(once, **shown)
