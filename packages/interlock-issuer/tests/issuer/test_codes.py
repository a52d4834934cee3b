"""The authorization code: who gets one and what it gives.

And everybody who should not get anything.
"""

from __future__ import annotations

import asyncio
from urllib.parse import urlencode

import pytest

from interlock.auth.keys import KeySet
from interlock.auth.oauth.codes import challenge_of
from interlock_issuer.interfaces import Client
from tests.issuer.exchange import Sent, ask
from tests.issuer.office import (
    BACK,
    CHALLENGE,
    OTHER,
    SERVER,
    URL,
    VERIFIER,
    Office,
    answer_of,
    basic,
    claims_of,
    error_of,
    header_of,
    request,
    said,
)


async def test_a_log_in() -> None:
    """From the request to tokens that say all that a server needs (AUT-16, AUT-12, AUF-12):
    short-lived, for one resource.
    """
    office = Office()
    reply = await office.authorize()
    back = answer_of(reply)
    assert reply.status == 303
    assert (back["state"], back["iss"], set(back)) == ("a state", URL, {"code", "state", "iss"})
    answer = await office.redeem(back["code"])
    tokens = said(answer)
    assert answer.header("cache-control") == "no-store"
    assert answer.header("access-control-allow-origin") == "*"
    assert (tokens["token_type"], tokens["expires_in"], tokens["scope"]) == (
        "Bearer",
        600,
        "files:read files:write",
    )
    keys = KeySet.read(said(await office.get("/jwks")))
    header, claims = keys.verify(tokens["access_token"], algorithms=["ES256"], typ=["at+jwt"])
    assert header["typ"] == "at+jwt"
    assert (claims["iss"], claims["aud"], claims["sub"], claims["client_id"]) == (
        URL,
        SERVER,
        "anna",
        "app",
    )
    assert (claims["exp"] - claims["iat"], claims["email"]) == (600, "anna@example.com")
    assert claims["jti"]
    assert "cnf" not in claims


async def test_a_post_is_as_good() -> None:
    """The endpoint takes a form too (RFC 6749, 3.1)."""
    office = Office()
    assert answer_of(await office.post("/authorize", request()))["code"]


async def test_a_person_who_says_no() -> None:
    """The client hears it, with whose answer it is (AUF-12)."""
    office = Office()
    office.people.will = "deny"
    told = answer_of(await office.authorize())
    assert told == {
        "error": "access_denied",
        "error_description": "No.",
        "state": "a state",
        "iss": URL,
    }


async def test_a_decision_is_taken_once() -> None:
    """A second yes, or a no after it, leads nowhere; so does one that comes too late."""
    office = Office()
    office.people.will = "wait"
    await office.authorize()
    (pending,) = office.people.begun
    assert (await office.grant(pending.id, office.people.person, pending.scopes)).status == 303
    for again in (
        office.grant(pending.id, office.people.person, pending.scopes),
        office.deny(pending.id),
    ):
        assert (await again).status == 400
    await office.authorize()
    office.clock.now += 601
    assert (await office.grant(office.people.begun[1].id, office.people.person, ())).status == 400


async def test_scopes_can_be_granted_in_part_and_never_more() -> None:
    """What the person leaves out is left out; what was not asked for is not had."""
    office = Office()
    office.people.will = "wait"
    await office.authorize(scope="files:read files:write")
    reply = await office.grant(
        office.people.begun[0].id, office.people.person, ["files:read", "mail"]
    )
    assert said(await office.redeem(answer_of(reply)["code"]))["scope"] == "files:read"


STRAY = {
    "no client": {"client_id": None},
    "an unknown client": {"client_id": "nobody"},
    "a client with an endless name": {"client_id": "x" * 5000},
    "no redirect URI where there are two": {"client_id": "second", "redirect_uri": None},
    "another host": {"redirect_uri": "https://evil.example/back"},
    "a path below": {"redirect_uri": f"{BACK}/more"},
    "a path above": {"redirect_uri": "https://app.example/"},
    "a path around": {"redirect_uri": f"{BACK}/../../evil"},
    "a trailing slash": {"redirect_uri": f"{BACK}/"},
    "a query": {"redirect_uri": f"{BACK}?next=https://evil.example"},
    "a fragment": {"redirect_uri": f"{BACK}#evil"},
    "a user": {"redirect_uri": "https://app.example@evil.example/back"},
    "a user before": {"redirect_uri": "https://evil.example@app.example/back"},
    "a port": {"redirect_uri": "https://app.example:8443/back"},
    "the usual port": {"redirect_uri": "https://app.example:443/back"},
    "http": {"redirect_uri": "http://app.example/back"},
    "a scheme in capitals": {"redirect_uri": "HTTPS://app.example/back"},
    "a host in capitals": {"redirect_uri": "https://APP.example/back"},
    "a path in capitals": {"redirect_uri": "https://app.example/Back"},
    "an escaped letter": {"redirect_uri": "https://app.example/%62ack"},
    "a backslash": {"redirect_uri": "https://app.example\\@evil.example/back"},
    "a blank behind": {"redirect_uri": f"{BACK} "},
    "a line": {"redirect_uri": f"{BACK}\r\nSet-Cookie: a=b"},
    "a host below": {"redirect_uri": "https://app.example.evil.example/back"},
    "javascript": {"redirect_uri": "javascript:alert(1)"},
    "an endless state": {"state": "x" * 5000},
    "two of another client": {"client_id": "app", "redirect_uri": "https://second.example/back"},
}


@pytest.mark.parametrize("changes", STRAY.values(), ids=STRAY)
async def test_no_redirect_before_client_and_address_are_known(
    changes: dict[str, str | None],
) -> None:
    """Open redirects: whatever is wrong with either, the person sees a page and goes nowhere
    (AUF-14, AUT-11, AUT-19).
    """
    office = Office()
    reply = await office.authorize(**changes)
    assert reply.status == 400
    assert reply.header("location") is None
    assert reply.body.endswith(b"\n")  # nowhere to go on to
    assert not office.people.begun


REPEATED = ["client_id", "redirect_uri", "state", "code_challenge", "response_type", "scope"]


@pytest.mark.parametrize("name", REPEATED)
async def test_a_parameter_that_comes_twice(name: str) -> None:
    """Nobody chooses which of two is meant: not the first, not the last, not even of two that are
    equal (RFC 6749, 3.1).
    """
    office = Office()
    told = request()
    reply = await office.get("/authorize", urlencode([*told.items(), (name, told[name])]))
    assert (reply.status, reply.header("location")) == (400, None)


UNREADABLE = {
    "a giant query": "client_id=" + "x" * 20_000,
    "a hundred": "&".join(f"a{n}=1" for n in range(100)),
    "no UTF-8": "client_id=%ff",
}


@pytest.mark.parametrize(
    "query", [*UNREADABLE.values(), "client_id=a%00b"], ids=[*UNREADABLE, "a NUL"]
)
async def test_a_request_that_cannot_be_read(query: str) -> None:
    """It is refused on a page, however large it is."""
    reply = await Office().get("/authorize", query)
    assert (reply.status, reply.header("location")) == (400, None)
    assert len(reply.body) < 1000


UNFIT = {
    "no challenge": ({"code_challenge": None}, "invalid_request"),
    "a plain challenge": (
        {"code_challenge_method": "plain", "code_challenge": VERIFIER},
        "invalid_request",
    ),
    "a challenge whose method is not said": ({"code_challenge_method": None}, "invalid_request"),
    "a short challenge": ({"code_challenge": "abc"}, "invalid_request"),
    "an implicit grant": ({"response_type": "token"}, "unsupported_response_type"),
    "a hybrid one": ({"response_type": "code token"}, "unsupported_response_type"),
    "no response type": ({"response_type": None}, "invalid_request"),
    "a fragment for the answer": ({"response_mode": "fragment"}, "invalid_request"),
    "a request object": ({"request": "e30.e30."}, "request_not_supported"),
    "one by address": ({"request_uri": "https://evil.example/"}, "request_uri_not_supported"),
    "a scope that there is not": ({"scope": "admin"}, "invalid_scope"),
    "a scope with a quote": ({"scope": 'files:read"'}, "invalid_scope"),
    "another resource": ({"resource": "https://evil.example/mcp"}, "invalid_target"),
    "a resource with a fragment": ({"resource": f"{SERVER}#x"}, "invalid_target"),
    "two resources": ({"resource": f"{SERVER} {OTHER}"}, "invalid_target"),
    "a key that is none": ({"dpop_jkt": "short"}, "invalid_request"),
}


@pytest.mark.parametrize("changes, error", UNFIT.values(), ids=UNFIT)
async def test_what_is_refused_at_the_redirect_uri(
    changes: dict[str, str | None], error: str
) -> None:
    """The client is known and configured: it hears what is wrong, with its state and with who says
    so (AUF-12).
    """
    office = Office()
    told = answer_of(await office.authorize(**changes))
    assert (told["error"], told["state"], told["iss"]) == (error, "a state", URL)
    assert "code" not in told
    assert not office.people.begun


async def test_a_stranger_gets_nobody_redirected_by_an_error() -> None:
    """Who registered itself with any address may not use us to send people there: they see a page,
    and may go on (AUT-19).
    """
    office = Office()
    registered = said(
        await office.register(
            {"redirect_uris": ["https://phishing.example/"], "token_endpoint_auth_method": "none"}
        ),
        201,
    )
    reply = await office.authorize(
        client_id=registered["client_id"], redirect_uri="https://phishing.example/", scope="admin"
    )
    assert (reply.status, reply.header("location")) == (400, None)
    assert (
        reply.body.decode()
        .splitlines()[-1]
        .startswith("https://phishing.example/?error=invalid_scope")
    )
    here = said(
        await office.register(
            {"redirect_uris": ["http://127.0.0.1/"], "token_endpoint_auth_method": "none"}
        ),
        201,
    )
    reply = await office.authorize(
        client_id=here["client_id"], redirect_uri="http://127.0.0.1:7/", scope="admin"
    )
    assert (
        answer_of(reply, "http://127.0.0.1:7/")["error"] == "invalid_scope"
    )  # the person's own machine


async def test_nor_by_asking_for_no_page() -> None:
    """`prompt=none` has an answer at once.

    At a stranger's address it is a page all the same (AUT-19; RFC 9700, 4.11.2).
    """
    office = Office()
    office.people.will = "wait"
    metadata = {
        "redirect_uris": ["https://phishing.example/"],
        "token_endpoint_auth_method": "none",
    }
    id = said(await office.register(metadata), 201)["client_id"]
    await office.authorize(client_id=id, redirect_uri="https://phishing.example/", prompt="none")
    await office.authorize(prompt="none")
    stranger, known = office.people.begun
    assert stranger.prompt == "none"
    reply = await office.deny(stranger.id, "login_required")
    assert (reply.status, reply.header("location")) == (400, None)
    assert answer_of(await office.deny(known.id, "login_required"))["error"] == "login_required"


async def test_the_redirect_uri_may_be_left_out_where_there_is_one() -> None:
    """And the answer goes there; a query that it has stays."""
    client = Client(id="q", redirect_uris=("https://app.example/back?a=1",))
    reply = await Office(clients=[client]).authorize(client_id="q", redirect_uri=None)
    assert (reply.header("location") or "").startswith("https://app.example/back?a=1&code=")


async def test_a_resource_need_not_be_named() -> None:
    """Clients of 2025-03-26 name none: it is the first that is configured.

    Where none is, tokens are for nobody but the issuer.
    """
    assert claims_of((await Office().log_in(resource=None))["access_token"])["aud"] == SERVER
    assert (
        claims_of((await Office(resources=None).log_in(resource=None))["access_token"])["aud"]
        == URL
    )


RESOURCES = {
    "another case": ("HTTPS://MCP.example/mcp", SERVER),
    "the usual port": ("https://mcp.example:443/mcp", SERVER),
    "a slash": ("https://mcp.example/mcp/", SERVER),
}


@pytest.mark.parametrize("asked, given", RESOURCES.values(), ids=RESOURCES)
async def test_a_resource_is_known_in_any_spelling(asked: str, given: str) -> None:
    """And stands in the token as it is configured."""
    assert claims_of((await Office().log_in(resource=asked))["access_token"])["aud"] == given


ANY = {
    "two of them": ("https://any.example/mcp https://other.example/mcp", False),
    "https": ("https://any.example/mcp", True),
    "loopback": ("http://127.0.0.1:9/mcp", True),
    "http": ("http://any.example/mcp", False),
}


@pytest.mark.parametrize("resource, taken", ANY.values(), ids=ANY)
async def test_any_resource_where_none_is_configured(resource: str, taken: bool) -> None:
    """https, or loopback."""
    told = answer_of(await Office(resources=None).authorize(resource=resource))
    assert ("code" in told) is taken
    assert taken or told["error"] == "invalid_target"


# -- at the token endpoint -------------------------------------------------------------------------

WRONG = {
    "no verifier": {"code_verifier": None},
    "a wrong verifier": {"code_verifier": "w" * 43},
    "the challenge for a verifier": {"code_verifier": CHALLENGE},
    "a short verifier": {"code_verifier": "v"},
    "another redirect URI": {"redirect_uri": "https://evil.example/back"},
    "a redirect URI that is nearly right": {"redirect_uri": f"{BACK}/"},
    "another client": {"client_id": "second"},
    "another resource": {"resource": OTHER},
}


@pytest.mark.parametrize("changes", WRONG.values(), ids=WRONG)
async def test_code_injection(changes: dict[str, str | None]) -> None:
    """A code is of use only to who asked for it, with what only that one knows.

    Tried wrongly once, it is of no use at all.
    """
    office = Office()
    code = await office.code()
    assert error_of(await office.redeem(code, **changes)) in ("invalid_grant", "invalid_target")
    assert error_of(await office.redeem(code)) == "invalid_grant"


async def test_a_verifier_that_can_be_guessed() -> None:
    """One of three letters is none, although its challenge fits (RFC 7636, 4.1)."""
    office = Office()
    code = await office.code(code_challenge=challenge_of("abc"))
    assert error_of(await office.redeem(code, code_verifier="abc")) == "invalid_grant"


async def test_the_redirect_uri_need_not_be_repeated() -> None:
    """OAuth 2.1 has it no more at the token endpoint; PKCE does its work."""
    office = Office()
    assert said(await office.redeem(await office.code(), redirect_uri=None))["access_token"]


NO_CODES = ["", "x", "a.b", "." * 50, "x" * 18 + "." + "y" * 43, "x" * 60_000]


@pytest.mark.parametrize("code", NO_CODES, ids=range(len(NO_CODES)))
async def test_what_is_no_code(code: str) -> None:
    """It is refused, whatever it is."""
    assert error_of(await Office().redeem(code)) in ("invalid_grant", "invalid_request")


async def test_half_a_code_is_none() -> None:
    """The name of the record without its secret gives nothing, and ends nothing."""
    office = Office()
    code = await office.code()
    assert error_of(await office.redeem(f"{code.partition('.')[0]}.{'z' * 43}")) == "invalid_grant"
    assert said(await office.redeem(code))["access_token"]


async def test_a_code_holds_for_a_minute() -> None:
    """Not longer."""
    office = Office()
    code = await office.code()
    office.clock.now += 61
    assert error_of(await office.redeem(code)) == "invalid_grant"


async def test_a_code_that_comes_twice_ends_what_it_gave() -> None:
    """One of the two has stolen it: neither keeps anything (RFC 6749, 4.1.2)."""
    office = Office()
    code = await office.code()
    tokens = said(await office.redeem(code))
    assert (await office.introspect(tokens["access_token"]))["active"] is True
    assert error_of(await office.redeem(code)) == "invalid_grant"
    assert await office.introspect(tokens["access_token"]) == {"active": False}
    assert error_of(await office.refresh(tokens["refresh_token"])) == "invalid_grant"


async def test_64_redemptions_at_once() -> None:
    """One succeeds."""
    office = Office()
    code = await office.code()
    replies = await asyncio.gather(*(office.redeem(code) for _ in range(64)))
    assert sorted(reply.status for reply in replies) == [200, *[400] * 63]


async def test_a_confidential_client_must_be_itself() -> None:
    """A code and the verifier are not enough (AUT-16)."""
    office = Office()
    secret = "a secret/with+signs%"
    for headers in ({}, basic("vault", "wrong"), basic("vault", "")):
        code = await office.code(client_id="vault")
        assert (
            error_of(await office.redeem(code, headers, client_id="vault"), 401) == "invalid_client"
        )
        assert said(await office.redeem(code, basic("vault", secret), client_id=None))[
            "access_token"
        ]


async def test_nothing_secret_is_kept() -> None:
    """Whoever reads the vault cannot use what is there: no code, no refresh token, no secret of a
    client in it.
    """
    office = Office()
    code = await office.code()
    tokens = said(await office.redeem(await office.code()))
    registered = said(await office.register({"redirect_uris": [BACK]}), 201)
    device = said(await office.post("/device_authorization", {"client_id": "app"}), 400)
    assert device["error"] == "unauthorized_client"
    kept = repr(vars(office.vault._table))
    assert "anna" in kept
    for secret in (
        code,
        tokens["refresh_token"],
        registered["client_secret"],
        tokens["access_token"],
    ):
        assert all(part not in kept for part in secret.split("."))


async def test_claims_of_people_never_stand_for_those_of_the_issuer() -> None:
    """Whatever an account or an upstream provider says of somebody, it makes them nobody else and
    gives them nothing.
    """
    office = Office()
    evil = {
        "sub": "root",
        "aud": OTHER,
        "scope": "admin",
        "scp": ["admin"],
        "act": {"sub": "x"},
        "cnf": {"jkt": "x"},
        "exp": 9e9,
        "name": "A",
    }
    office.people.person = type(office.people.person)("anna", None, evil)
    claims = claims_of((await office.log_in(scope=None))["access_token"])
    assert (claims["sub"], claims["aud"], claims["name"]) == ("anna", SERVER, "A")
    assert not {"scope", "scp", "act", "cnf"} & set(claims)


async def test_methods_and_paths() -> None:
    """Each endpoint has its methods; browsers' programs may ask before they ask."""
    office = Office()
    assert (await office.get("/token")).status == 405
    assert (await office.get("/nothing")).status == 404
    assert (await office.get("/login")).body == b"login"
    preflight = await ask(office.issuer, Sent("OPTIONS", "/token"))
    assert preflight.status == 204
    assert "DPoP" in (preflight.header("access-control-allow-headers") or "")
    assert (await ask(office.issuer, Sent("OPTIONS", "/authorize"))).status == 405
    assert (
        error_of(
            await office.post("/token", "grant_type=authorization_code&grant_type=refresh_token")
        )
        == "invalid_request"
    )
    assert (
        error_of(await office.post("/token", "{}", {"content-type": "application/json"}))
        == "invalid_request"
    )
    assert (
        error_of(await office.post("/token", {"grant_type": "password"}))
        == "unsupported_grant_type"
    )
    assert error_of(await office.post("/token", {})) == "invalid_request"
    assert (
        error_of(
            await office.post("/token", {"grant_type": "authorization_code", "state": "x" * 9000})
        )
        == "invalid_request"
    )
    assert header_of((await office.log_in())["access_token"])["alg"] == "ES256"
