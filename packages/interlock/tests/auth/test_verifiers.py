"""The verifiers, each by a table: signed tokens, tokens that their issuer is asked about, fixed
keys, functions, and several at once.
"""

from __future__ import annotations

import asyncio
import base64
from typing import Any
from urllib.parse import parse_qs

import pytest

from interlock import types as t
from interlock.auth.guard import Guard
from interlock.auth.keys import KeySet, SigningKey
from interlock.auth.tokens.any_of import AnyOf
from interlock.auth.tokens.api_keys import ApiKeys, Checked
from interlock.auth.tokens.interface import BadToken, Unverifiable, Verified, Verifier
from interlock.auth.tokens.introspection import Introspection
from interlock.auth.tokens.jwt import Jwt
from interlock.auth.tokens.verdict_cache import Verdicts
from interlock.exchange import Principal
from tests.auth.guarded import ISSUER, KEY, RESOURCE, Inner, ask, bearer, issuer_pages, token
from tests.auth.network import NOW, Answer, Clock, Web

KEYS = {"keys": [KEY.public()]}
ASK = f"{ISSUER}/introspect"
ELSEWHERE = "https://login.other.example"


async def judge(
    by: Verifier, shown: str, *, now: float = NOW, resource: str = RESOURCE
) -> Verified | str:
    """The verdict, or the words of the refusal."""
    try:
        return await by.verify(shown, resource=resource, now=now)
    except BadToken as bad:
        return str(bad)


# -- signed tokens ---------------------------------------------------------------------------------

JWTS: list[tuple[str, dict[str, Any], dict[str, Any], Any]] = [
    ("the server's own URI", {}, {}, "jane"),
    ("an audience of its own", {"audience": "api://mcp"}, {"aud": "api://mcp"}, "jane"),
    ("one of several", {"audience": ["a", "b"]}, {"aud": "b"}, "jane"),
    (
        "the URI is not enough where another audience is named",
        {"audience": "api://mcp"},
        {},
        "it is for another server",
    ),
    (
        "an own audience in another case",
        {"audience": "api://mcp"},
        {"aud": "API://mcp"},
        "it is for another server",
    ),
    (
        "an audience elsewhere",
        {"audience": "app", "audience_claims": ["client_id"]},
        {"aud": None},
        "jane",
    ),
    (
        "a client as audience, by mistake",
        {"audience_claims": ["aud"]},
        {"aud": None},
        "it does not name its audience",
    ),
    ("an audience that is a number", {}, {"aud": 7}, "it does not name its audience"),
    (
        "an algorithm that is not allowed",
        {"algorithms": ["RS256"]},
        {},
        "its algorithm, 'ES256', is not allowed",
    ),
    (
        "a type that is not allowed",
        {"types": ["at+jwt"]},
        {"typ": "JWT"},
        "its type, 'JWT', is not the one expected here",
    ),
    ("the usual types", {}, {"typ": "JWT"}, "jane"),
    ("no type", {}, {"typ": None}, "jane"),
    (
        "another issuer of the same",
        {"also": ["https://old.example"]},
        {"iss": "https://old.example"},
        "jane",
    ),
    ("no issuer", {}, {"iss": None}, "it is from another issuer"),
    ("a list of issuers", {}, {"iss": [ISSUER]}, "it is from another issuer"),
    ("a claim that is needed", {"required": {"tenant": "t1"}}, {"tenant": "t1"}, "jane"),
    (
        "a claim that holds what is needed",
        {"required": {"groups": "staff"}},
        {"groups": ["a", "staff"]},
        "jane",
    ),
    ("a claim that only is there", {"required": {"email": None}}, {"email": "x"}, "jane"),
    (
        "a claim that is not there",
        {"required": {"email": None}},
        {},
        "it does not have the required email",
    ),
    (
        "a claim with another value",
        {"required": {"tenant": "t1"}},
        {"tenant": "t2"},
        "it does not have the required tenant",
    ),
    (
        "a claim that has the value in it",
        {"required": {"tenant": "t1"}},
        {"tenant": "xt1x"},
        "it does not have the required tenant",
    ),
    ("a subject elsewhere", {"subject_claims": ["email"]}, {"email": "j@x.example"}, "j@x.example"),
    ("a client on its own behalf", {}, {"sub": None}, "app"),
    (
        "a subject that is a number",
        {},
        {"sub": 7, "client_id": None},
        "it does not name a subject",
    ),
    ("no leeway", {"leeway": 0}, {"exp": NOW}, "it has expired"),
    ("an end that is a word", {}, {"exp": "tomorrow"}, "its exp is not a time"),
    (
        "bound to a certificate",
        {},
        {"cnf": {"x5t#S256": "x"}},
        "it is bound to its sender in an unsupported way",
    ),
    (
        "bound to nothing that can be read",
        {},
        {"cnf": "x"},
        "it is bound to its sender in an unsupported way",
    ),
    (
        "bound to an empty key",
        {},
        {"cnf": {"jkt": ""}},
        "it is bound to its sender in an unsupported way",
    ),
]


@pytest.mark.parametrize(
    "settings, claims, said", [pytest.param(*case[1:], id=case[0]) for case in JWTS]
)
async def test_signed_tokens(settings: dict[str, Any], claims: dict[str, Any], said: str) -> None:
    """AUT-05, AUT-07, SEC-06, WIF-05: what is taken and what is not, by setting and claim."""
    verdict = await judge(Jwt(ISSUER, keys=KEYS, **settings), token(**claims))
    assert (verdict if isinstance(verdict, str) else verdict.principal.subject) == said


async def test_the_issuer_of_a_principal_is_the_tokens_own() -> None:
    """SEC-03: a subject is unique within its issuer only;
    those of two tenants must not become one."""
    by = Jwt(ISSUER, also=["https://tenant.example"], keys=KeySet.read(KEYS))
    one, other = [
        await by.verify(token(iss=issuer), resource=RESOURCE, now=NOW)
        for issuer in (ISSUER, "https://tenant.example")
    ]
    assert one.principal.key != other.principal.key


@pytest.mark.parametrize("algorithm", ["none", "HS256", "RS1", ""])
def test_algorithms_that_nobody_may_allow(algorithm: str) -> None:
    """AUT-05: neither tokens without a signature nor shared secrets can be switched on."""
    with pytest.raises(ValueError, match="cannot be allowed"):
        Jwt(ISSUER, keys=KEYS, algorithms=["ES256", algorithm])


@pytest.mark.parametrize("key, words", [("RS256", None), ("PS256", "not that of the key")])
async def test_a_key_for_one_algorithm_is_not_taken_for_another(
    key: str, words: str | None
) -> None:
    """AUT-05: key confusion: RSA keys sign two ways, and a key that says which is only good for
    that.
    """
    rsa = SigningKey.generate("RS256")
    shown = token(SigningKey.from_jwk(rsa.private(), key))
    verdict = await judge(Jwt(ISSUER, keys={"keys": [rsa.public()]}), shown)
    assert (
        verdict == f"its algorithm, '{key}', is {words} it names"
        if words
        else isinstance(verdict, Verified)
    )


# -- verdicts that are kept ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "seconds, expires, known_at, not_at",
    [
        (60.0, NOW + 600, NOW + 59.9, NOW + 60),
        (600.0, NOW + 6000, NOW + 59.9, NOW + 60),  # a minute at most
        (60.0, NOW + 10, NOW + 9.9, NOW + 10),  # never beyond the end
        (60.0, None, NOW + 59.9, NOW + 60),
        (5.0, None, NOW + 4.9, NOW + 5),
        (60.0, NOW + 600, NOW, NOW - 1),  # the clock was set back
        (0.0, None, None, NOW),
    ],
)
async def test_how_long_a_verdict_is_kept(
    seconds: float, expires: float | None, known_at: float | None, not_at: float
) -> None:
    """AUT-05: repeated calls verify nothing; what has ended or was withdrawn does not live on."""

    async def say(shown: str, resource: str, now: float) -> Verified:
        return Verified(Principal(subject="jane", expires=expires), None, seconds)

    verdicts = Verdicts(say)
    await verdicts.find_out(b"k", "x", RESOURCE, NOW)
    if known_at is not None:
        assert verdicts.known(b"k", known_at) is not None
    assert verdicts.known(b"k", not_at) is None
    assert verdicts.known(b"other", NOW) is None


async def test_verdicts_are_bounded_and_bad_ones_are_not_kept() -> None:
    async def say(shown: str, resource: str, now: float) -> Verified:
        if shown == "bad":
            raise BadToken("no")
        return Verified(Principal(subject=shown))

    verdicts = Verdicts(say, most=3)
    for name in ("a", "b", "c"):
        await verdicts.find_out(name.encode(), name, RESOURCE, NOW)
    assert verdicts.known(b"a", NOW) is not None  # used, and so not the first to go
    await verdicts.find_out(b"d", "d", RESOURCE, NOW)
    assert [name for name in (b"a", b"b", b"c", b"d") if verdicts.known(name, NOW)] == [
        b"a",
        b"c",
        b"d",
    ]
    with pytest.raises(BadToken):
        await verdicts.find_out(b"e", "bad", RESOURCE, NOW)
    assert verdicts.known(b"e", NOW) is None


# -- introspection ---------------------------------------------------------------------------------

ACTIVE = {
    "active": True,
    "sub": "jane",
    "aud": RESOURCE,
    "scope": "use read",
    "client_id": "app",
    "exp": NOW + 600,
    "iss": ISSUER,
}


def asking(answer: Any, **settings: Any) -> tuple[Introspection, Web]:
    web = Web(
        issuer_pages() | {ASK: answer if isinstance(answer, Answer | Exception) else Answer(answer)}
    )
    return Introspection(
        ISSUER, **({"client_id": "mcp", "client_secret": "s3cret%", "fetch": web} | settings)
    ), web


ANSWERS: list[tuple[str, Any, str]] = [
    ("good", ACTIVE, "jane"),
    ("no end, no issuer", {k: v for k, v in ACTIVE.items() if k not in ("exp", "iss")}, "jane"),
    ("not active", {"active": False}, "it is unknown, has expired or was revoked"),
    (
        "not active, with the rest",
        ACTIVE | {"active": False},
        "it is unknown, has expired or was revoked",
    ),
    ("nearly active", ACTIVE | {"active": "true"}, "it is unknown, has expired or was revoked"),
    ("active, or so", ACTIVE | {"active": 1}, "it is unknown, has expired or was revoked"),
    ("nothing said", {}, "it is unknown, has expired or was revoked"),
    ("another server's", ACTIVE | {"aud": "https://other.example/mcp"}, "it is for another server"),
    ("nobody's", {k: v for k, v in ACTIVE.items() if k != "aud"}, "it does not name its audience"),
    ("expired", ACTIVE | {"exp": NOW - 31}, "it has expired"),
    ("not yet", ACTIVE | {"nbf": NOW + 31}, "it is not valid yet"),
    ("an end that is a word", ACTIVE | {"exp": "x"}, "its exp is not a time"),
    ("another issuer's", ACTIVE | {"iss": "https://evil.example"}, "it is from another issuer"),
    (
        "bound to a certificate",
        ACTIVE | {"cnf": {"x5t#S256": "x"}},
        "it is bound to its sender in an unsupported way",
    ),
]


@pytest.mark.parametrize("answer, said", [pytest.param(*case[1:], id=case[0]) for case in ANSWERS])
async def test_what_the_issuer_says(answer: dict[str, Any], said: str) -> None:
    """AUT-05, AUT-07, SEC-06 (RFC 7662, 2.2): `active` and nothing like it.

    The audience is checked as for any token.
    """
    verdict = await judge(asking(answer)[0], "opaque")
    assert (verdict if isinstance(verdict, str) else verdict.principal.subject) == said
    if not isinstance(verdict, str):
        assert (verdict.principal.scopes, verdict.principal.client) == ({"use", "read"}, "app")


@pytest.mark.parametrize(
    "away",
    [
        t.Unreachable("nobody is there"),
        Answer(status=500),
        Answer(status=401),
        Answer(status=302),
        Answer(b"<html>"),
        Answer([ACTIVE]),
        Answer(b" " * 300_000),
    ],
)
async def test_an_issuer_that_cannot_be_asked(away: Any, caplog: pytest.LogCaptureFixture) -> None:
    """AUT-05: nobody is let in, and nobody's token is called bad, because somebody else does not
    answer.
    """
    caplog.set_level("DEBUG")
    with pytest.raises(Unverifiable):
        await judge(asking(away)[0], "opaque-token")
    assert "cannot introspect" in caplog.text
    assert "opaque-token" not in caplog.text
    assert "s3cret" not in caplog.text


async def test_an_issuer_that_never_answers_is_given_up_and_not_crowded() -> None:
    """AUT-05: a wait has an end; beyond so many at once nobody else is asked about."""
    by, web = asking(ACTIVE, patience=0.02, most=2)
    web.hold()
    said = await asyncio.gather(
        *(judge(by, f"opaque-{n}") for n in range(3)), return_exceptions=True
    )
    assert [type(bad) for bad in said] == [Unverifiable] * 3
    assert len(web.asked) == 2


@pytest.mark.parametrize(
    "settings, header, form",
    [
        ({}, "mcp:s3cret%25", {}),
        ({"method": "client_secret_post"}, None, {"client_id": "mcp", "client_secret": "s3cret%"}),
        ({"client_secret": None}, None, {"client_id": "mcp"}),
    ],
)
async def test_who_asks_says_who_it_is(
    settings: dict[str, Any], header: str | None, form: dict[str, str]
) -> None:
    by, web = asking(ACTIVE, **settings)
    await judge(by, "opaque")
    sent = web.asked[-1]
    assert (sent.method, sent.url) == ("POST", ASK)
    assert {name: value for name, [value] in parse_qs(sent.body.decode()).items()} == form | {
        "token": "opaque",
        "token_type_hint": "access_token",
    }
    authorization = dict(sent.headers).get("Authorization")
    assert (
        authorization and base64.b64decode(authorization.removeprefix("Basic ")).decode()
    ) == header


async def test_who_asks_may_sign() -> None:
    own = SigningKey.generate()
    by, web = asking(ACTIVE, client_secret=None, key=own)
    await judge(by, "opaque")
    form = parse_qs(web.asked[-1].body.decode())
    claims = KeySet.read({"keys": [own.public()]}).verify(form["client_assertion"][0])[1]
    assert (claims["iss"], claims["sub"], claims["aud"], claims["exp"] - claims["iat"]) == (
        "mcp",
        "mcp",
        ISSUER,
        60,
    )


async def test_the_endpoint_comes_by_tls_only() -> None:
    """AUT-10: tokens are shown to nobody in the open."""
    with pytest.raises(ValueError, match="introspection endpoint"):
        asking(ACTIVE, endpoint="http://login.example.com/introspect")
    by, web = asking(ACTIVE)
    web.pages |= {
        f"{ISSUER}/.well-known/oauth-authorization-server": Answer(
            {"issuer": ISSUER, "introspection_endpoint": "http://x.example/i"}
        )
    }
    with pytest.raises(Unverifiable):
        await judge(by, "opaque")
    assert not [request for request in web.asked if request.method == "POST"]


async def test_an_answer_that_tells_the_token_again_does_not_bring_it_to_the_app() -> None:
    """SEC-06: not even where the issuer repeats it."""
    by, _ = asking(
        ACTIVE
        | {"access_token": "opaque-token", "extra": {"was": ["opaque-token"]}, "tenant": "t1"}
    )
    verdict = await judge(by, "opaque-token")
    assert isinstance(verdict, Verified)
    assert verdict.principal.claims == {"client_id": "app", "tenant": "t1"}


async def test_a_token_that_was_withdrawn_dies_within_seconds() -> None:
    """AUT-05: the issuer is asked again after `seconds`, and once for however many calls before."""
    by, web = asking(ACTIVE, seconds=30)
    clock = Clock()
    app = Guard(by, resource=RESOURCE, clock=clock)(Inner())
    for _ in range(5):
        assert (await ask(app, headers=bearer("opaque"))).status == 200
    web.pages[ASK] = Answer({"active": False})
    clock.now += 29
    assert (await ask(app, headers=bearer("opaque"))).status == 200
    clock.now += 1
    assert (await ask(app, headers=bearer("opaque"))).status == 401
    assert web.count(ASK) == 2


# -- fixed keys ------------------------------------------------------------------------------------

CI = "ci-" + "x" * 30
OPS = "ops-" + "y" * 30


async def test_fixed_keys() -> None:
    by = ApiKeys({"ci": CI, "ops": ApiKeys.digest(OPS)}, scopes={"ops": ["admin"]})
    assert isinstance(by, Verifier)
    for shown, who, scopes in ((CI, "ci", frozenset()), (OPS, "ops", frozenset({"admin"}))):
        verdict = await judge(by, shown)
        assert isinstance(verdict, Verified)
        assert (verdict.principal.subject, verdict.principal.scopes) == (who, scopes)
    for bad in (
        "",
        "x",
        CI + "x",
        CI[:-1],
        CI.upper(),
        ApiKeys.digest(OPS),
        ApiKeys.digest(CI),
        "\udc80",
    ):
        assert await judge(by, bad) == "it is not a known API key"


def test_a_fixed_key_is_not_kept() -> None:
    """AUT-10: only its digest is."""
    by = ApiKeys({"ci": CI})
    assert CI not in repr(vars(by)) + repr(by)


@pytest.mark.parametrize(
    "keys, scopes, kind",
    [
        ({"ci": "tiny"}, (), ValueError),
        ({"ci": "sha256:abc"}, (), ValueError),
        ({"ci": "sha256:" + "z" * 64}, (), ValueError),
        ({"ci": CI}, "admin", TypeError),
        ({"ci": CI}, {"ci": "admin"}, TypeError),
        ({"ci": CI}, {"cj": ["admin"]}, ValueError),
    ],
)
def test_fixed_keys_that_cannot_be_meant(
    keys: dict[str, str], scopes: Any, kind: type[Exception]
) -> None:
    with pytest.raises(kind) as refused:
        ApiKeys(keys, scopes=scopes)
    assert all(key not in str(refused.value) for key in keys.values())


# -- functions -------------------------------------------------------------------------------------


async def test_functions_of_the_users() -> None:
    async def later(shown: str) -> Principal | None:
        return Principal(subject=shown) if shown == "jane" else None

    for by in (
        Checked(later),
        Checked(lambda shown: Principal(subject=shown) if shown == "jane" else None),
    ):
        verdict = await judge(by, "jane")
        assert isinstance(verdict, Verified)
        assert verdict.principal.subject == "jane"
        assert await judge(by, "mallory") == "it is unknown"


async def test_a_function_is_asked_each_time_unless_it_says_otherwise() -> None:
    """AUT-05: a user's word is not kept without leave."""
    asked: list[str] = []

    def check(shown: str) -> Principal:
        asked.append(shown)
        return Principal(subject="jane")

    for seconds, times in ((0.0, 3), (10.0, 1)):
        asked.clear()
        app = Guard(Checked(check, seconds=seconds), resource=RESOURCE, clock=Clock())(Inner())
        for _ in range(3):
            assert (await ask(app, headers=bearer("x"))).status == 200
        assert len(asked) == times


async def test_what_a_function_says_must_be_a_principal_that_has_not_ended() -> None:
    assert (
        await judge(Checked(lambda _: Principal(subject="jane", expires=NOW)), "x")
        == "it has expired"
    )
    with pytest.raises(TypeError, match="bool"):
        await judge(Checked(lambda _: True), "x")  # type: ignore[arg-type, return-value]  # what somebody may write all the same


# -- several ---------------------------------------------------------------------------------------


async def test_several_verifiers() -> None:
    """AUT-05: programs with keys, people with tokens of one issuer or of another."""
    other = SigningKey.generate()
    by = AnyOf(
        ApiKeys({"ci": CI}),
        Jwt(ISSUER, keys=KEYS),
        Jwt(ELSEWHERE, keys={"keys": [other.public()]}, audience="api"),
        asking(ACTIVE | {"sub": "opaque-jane"})[0],
    )
    assert by.issuers == (ISSUER, ELSEWHERE)
    for shown, said in (
        (CI, "ci"),
        (token(), "jane"),
        (token(other, iss=ELSEWHERE, aud="api"), "jane"),
        ("opaque", "opaque-jane"),
        (token(other, iss=ELSEWHERE), "it is for another server"),
        (token(iss="https://evil.example"), "it is not a known API key"),
    ):
        verdict = await judge(by, shown)
        assert (verdict if isinstance(verdict, str) else verdict.principal.subject) == said


async def test_no_issuer_sees_the_tokens_of_another() -> None:
    """AUT-08: a token goes to who may have made it, be it good or bad.

    What does not say where it is from, in turn.
    """
    by, web = asking(ACTIVE)
    both = AnyOf(Jwt(ELSEWHERE, keys=KEYS), by)
    for bad in (
        token(iss=ELSEWHERE, exp=1),
        token(iss=ELSEWHERE, aud="x"),
        token(iss="https://evil.example"),
    ):
        assert isinstance(await judge(both, bad), str)
    assert web.asked == []
    assert isinstance(await judge(both, "opaque"), Verified)
    assert web.count(ASK) == 1


@pytest.mark.parametrize(
    "shown",
    ["", "a.b.c", "....", "a.\xff.c", "a." + "W" * 9000 + ".c", "a.W10.c", "a.eyJpc3MiOjd9.c"],
)
async def test_several_verifiers_take_no_nonsense(shown: str) -> None:
    assert await judge(AnyOf(Jwt(ISSUER, keys=KEYS)), shown) in (
        "it is not a signed JWT",
        "it is from another issuer",
    )


async def test_several_are_at_least_one_and_are_closed_together() -> None:
    with pytest.raises(ValueError, match="one verifier"):
        AnyOf()
    await AnyOf(ApiKeys({"ci": CI}), asking(ACTIVE)[0]).aclose()
