"""The guard as one table: what is asked, what is said, and what the app behind it saw of it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from interlock.auth.guard import Guard
from interlock.auth.keys import SigningKey, dpop_proof
from interlock.auth.oauth.challenges import find, read_challenges
from interlock.auth.tokens.api_keys import ApiKeys, Checked
from interlock.auth.tokens.dpop import ALGORITHMS
from interlock.auth.tokens.interface import Unverifiable
from interlock.exchange import Principal
from tests.auth.guarded import ISSUER, RESOURCE, Inner, ask, bearer, jwt_guard, token
from tests.auth.network import NOW

WHERE = 'resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"'
NEED = f'Bearer scope="use", {WHERE}'
BAD = 'Bearer error="invalid_token", error_description="{}", scope="use", ' + WHERE
LOW = (
    'Bearer error="insufficient_scope", error_description="the token lacks scopes that '
    'this request needs", scope="use", ' + WHERE
)
GOOD = token()
OTHER = SigningKey.generate()
JANE = ("jane", frozenset({"use"}))

# name, method, path, headers, query -> status, the first challenge, the error of the body, what the
# app saw (None: it was not asked)
TABLE: list[tuple[str, str, str, Any, str, int, str | None, str | None, Any]] = [
    # 401: nobody says who asks (AUT-05, AUT-06, AU3-02, AUS-01)
    ("no token", "POST", "/mcp", {}, "", 401, NEED, "unauthorized", None),
    ("no token, GET", "GET", "/mcp", {}, "", 401, NEED, "unauthorized", None),
    ("no token, DELETE", "DELETE", "/mcp", {}, "", 401, NEED, "unauthorized", None),
    ("no token, elsewhere", "GET", "/anything", {}, "", 401, NEED, "unauthorized", None),
    ("no token, OPTIONS that is no preflight", "OPTIONS", "/mcp", {"Origin": "https://a.example"},
        "", 401, NEED, "unauthorized", None),
    ("another scheme", "POST", "/mcp", {"Authorization": "Basic amFuZTpzZWNyZXQ="}, "", 401, NEED,
        "unauthorized", None),
    ("another scheme, with parameters", "POST", "/mcp", {"Authorization": (
        'Digest username="j", '
        'x="y"'
    )}, "", 401, NEED, "unauthorized", None),
    ("a cookie", "POST", "/mcp", {"Cookie": f"access_token={GOOD}"}, "", 401, NEED, "unauthorized",
        None),
    ("a session in place of a token (SEC-02)", "POST", "/mcp", {"Mcp-Session-Id": "s"}, "", 401,
        NEED, "unauthorized", None),
    ("the token in a header of its own", "POST", "/mcp", {"X-Api-Key": GOOD}, "", 401, NEED,
        "unauthorized", None),
    # 200: who may, is let in, without the token (AUT-07, AUT-08, SEC-06)
    ("a good token", "POST", "/mcp", bearer(GOOD), "", 200, None, None, JANE),
    ("a good token, any case of the scheme", "POST", "/mcp", {"Authorization": f"bEaReR   {GOOD}"},
        "", 200, None, None, JANE),
    ("a good token, GET, with a query", "GET", "/mcp", bearer(GOOD), "a=1&token_access=2", 200,
        None, None, JANE),
    ("a good token, elsewhere", "GET", "/anything", bearer(GOOD), "", 200, None, None, JANE),
    ("an audience among others", "POST", "/mcp", bearer(token(aud=["https://x.example", RESOURCE])),
        "", 200, None, None, JANE),
    ("an audience with upper case (AUF-06)", "POST", "/mcp",
        bearer(token(aud="HTTPS://MCP.Example.COM:443/mcp/")), "", 200, None, None, JANE),
    ("an expired token within the leeway", "POST", "/mcp", bearer(token(exp=NOW - 29)), "", 200,
        None, None, JANE),
    ("a workload (WIF-05)", "POST", "/mcp", bearer(token(sub="spiffe://x/job")), "", 200, None,
        None, ("spiffe://x/job", frozenset({"use"}))),
    # 401: the token is not good (AUT-05, AUT-07, SEC-06, WIF-05)
    ("nonsense", "POST", "/mcp", bearer("nonsense"), "", 401, BAD.format("it is not a signed JWT"),
        "invalid_token", None),
    ("expired", "POST", "/mcp", bearer(token(exp=NOW - 31)), "", 401, BAD.format("it has expired"),
        "invalid_token", None),
    ("not yet", "POST", "/mcp", bearer(token(nbf=NOW + 31)), "", 401, BAD.format(
        "it is not valid "
        "yet"
    ), "invalid_token", None),
    ("no end", "POST", "/mcp", bearer(token(exp=None)), "", 401, BAD.format("it has no exp"),
        "invalid_token", None),
    ("another server's", "POST", "/mcp", bearer(token(aud="https://other.example/mcp")), "", 401,
        BAD.format(
        "it is for another "
        "server"
    ), "invalid_token", None),
    ("a longer audience", "POST", "/mcp", bearer(token(aud=RESOURCE + "/x")), "", 401, BAD.format(
        "it is for another "
        "server"
    ), "invalid_token", None),
    ("the whole host's", "POST", "/mcp", bearer(token(aud="https://mcp.example.com")), "", 401,
        BAD.format(
        "it is for another "
        "server"
    ), "invalid_token", None),
    ("nobody's", "POST", "/mcp", bearer(token(aud=None)), "", 401, BAD.format(
        "it does not name its audience"
    ), "invalid_token", None),
    ("an empty audience", "POST", "/mcp", bearer(token(aud=[])), "", 401, BAD.format(
        "it does not name its audience"
    ), "invalid_token", None),
    ("another issuer's", "POST", "/mcp", bearer(token(iss="https://evil.example")), "", 401,
        BAD.format(
        "it is from another "
        "issuer"
    ), "invalid_token", None),
    ("an issuer that is nearly the same", "POST", "/mcp", bearer(token(iss=ISSUER + "/")), "", 401,
        BAD.format(
        "it is from another "
        "issuer"
    ), "invalid_token", None),
    ("another key's", "POST", "/mcp", bearer(token(OTHER)), "", 401, BAD.format(
        "the issuer has no key with the id that it names"
    ), "invalid_token", None),
    ("no signature", "POST", "/mcp", bearer(GOOD.rpartition(".")[0] + "."), "", 401, BAD.format(
        "its signature is "
        "wrong"
    ), "invalid_token", None),
    ("a proof as token", "POST", "/mcp", bearer(token(typ="dpop+jwt")), "", 401, BAD.format(
        "its type, 'dpop+jwt', is not the one expected "
        "here"
    ), "invalid_token", None),
    ("nobody's behalf", "POST", "/mcp", bearer(token(sub=None, client_id=None)), "", 401,
        BAD.format(
        "it does not name a subject"
    ), "invalid_token", None),
    # 403: the token does not allow it (AUT-06, AUS-04, SEC-25)
    ("without the scope", "POST", "/mcp", bearer(token(scope="other")), "", 403, LOW,
        "insufficient_scope", None),
    ("without any scope", "POST", "/mcp", bearer(token(scope=None)), "", 403, LOW,
        "insufficient_scope", None),
    ("a scope of stars is nothing but its name", "POST", "/mcp", bearer(token(scope="* all use:*")),
        "", 403, LOW, "insufficient_scope", None),
    ("a scope that begins alike", "POST", "/mcp", bearer(token(scope="users us USE")), "", 403, LOW,
        "insufficient_scope", None),
    # 400: shown in a way that no request may (AUT-06)
    ("two headers", "POST", "/mcp", [("Authorization", f"Bearer {GOOD}")] * 2, "", 400, None,
        "invalid_request", None),
    ("two headers, of two", "POST", "/mcp", [("Authorization", "Basic eA=="),
        ("Authorization", f"Bearer {GOOD}")], "", 400, None, "invalid_request", None),
    ("two tokens", "POST", "/mcp", {"Authorization": f"Bearer {GOOD}, Bearer {GOOD}"}, "", 400,
        None, "invalid_request", None),
    ("two words", "POST", "/mcp", {"Authorization": f"Bearer {GOOD} x"}, "", 400, None,
        "invalid_request", None),
    ("no token behind the scheme", "POST", "/mcp", {"Authorization": "Bearer "}, "", 400, None,
        "invalid_request", None),
    ("a token in quotes", "POST", "/mcp", {"Authorization": f'Bearer "{GOOD}"'}, "", 400, None,
        "invalid_request", None),
    ("a token with signs", "POST", "/mcp", {"Authorization": "Bearer a\xe9b"}, "", 400, None,
        "invalid_request", None),
    ("an empty header", "POST", "/mcp", {"Authorization": ""}, "", 400, None, "invalid_request",
        None),
    ("a huge token", "POST", "/mcp", bearer("a" * 20_000), "", 400, None, "invalid_request", None),
    ("a token in the address", "POST", "/mcp", {}, f"access_token={GOOD}", 400, None,
        "invalid_request", None),
    ("a token in the address, too", "POST", "/mcp", bearer(GOOD), f"a=1&access_token={GOOD}", 400,
        None, "invalid_request", None),
    ("a token in the address, disguised", "POST", "/mcp", bearer(GOOD), f"%61ccess%5Ftoken={GOOD}",
        400, None, "invalid_request", None),
    ("a token in the address, without a value", "POST", "/mcp", bearer(GOOD), "access_token", 400,
        None, "invalid_request", None),
    # for everybody
    ("the health check", "GET", "/health", {}, "", 200, None, None, ()),
    ("the health check, with a token", "GET", "/health", bearer(GOOD), "", 200, None, None, ()),
    ("a preflight", "OPTIONS", "/mcp", {"Origin": "https://a.example",
        "Access-Control-Request-Method": "POST"}, "", 200, None, None, ()),
    ("no health check", "GET", "/health/", {}, "", 401, NEED, "unauthorized", None),
    ("no health check either", "GET", "//health", {}, "", 401, NEED, "unauthorized", None),
    ("nor this", "GET", "/health/../mcp", {}, "", 401, NEED, "unauthorized", None),
]  # fmt: skip


@pytest.mark.parametrize(
    "method, path, headers, query, status, challenge, error, saw",
    [pytest.param(*case[1:], id=case[0]) for case in TABLE],
)
async def test_what_is_asked_and_what_is_said(
    method: str,
    path: str,
    headers: Any,
    query: str,
    status: int,
    challenge: str | None,
    error: str | None,
    saw: Any,
) -> None:
    """AUT-04..08, AUT-17, AU3-02, AU3-03, AUS-01, AUS-04, AUF-06, SEC-02, SEC-06, SEC-25, WIF-05:
    every row says which.
    """
    inner = Inner()
    got = await ask(jwt_guard()(inner), method, path, headers, query)
    assert got.status == status
    assert got.challenges == (
        []
        if challenge is None
        else [challenge, challenge.replace("Bearer ", "DPoP ") + f', algs="{" ".join(ALGORITHMS)}"']
    )
    if error is None:
        assert got.body == b"inside"
        [scope] = inner.scopes
        assert not {b"authorization", b"dpop"} & dict(scope["headers"]).keys()
        principal = scope.get("interlock.principal")
        assert saw == (() if principal is None else (principal.subject, principal.scopes))
    else:
        assert inner.scopes == []  # AUT-17: nothing was begun
        assert saw is None
        assert got.json["error"] == error
        assert got.header("cache-control") == "no-store"
        assert got.header("content-type") == "application/json"
        assert GOOD not in got.body.decode()


def words_of(value: Any, seen: set[int]) -> str:
    """All text that can be come by from a value: keys, items and fields, however deep."""
    if id(value) in seen:
        return ""
    seen.add(id(value))
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, dict):
        return " ".join(words_of(part, seen) for pair in value.items() for part in pair)
    if isinstance(value, list | tuple | set | frozenset):
        return " ".join(words_of(part, seen) for part in value)
    fields = getattr(value, "__struct_fields__", ())
    return f"{value!r} " + " ".join(words_of(getattr(value, name), seen) for name in fields)


@pytest.mark.parametrize("path", ["/mcp", "/health"])
async def test_the_app_never_sees_the_token(path: str, caplog: pytest.LogCaptureFixture) -> None:
    """SEC-06, AUT-08, AUT-18: there is no road by which the token could be passed on: not in the
    scope, the principal, nor any log.
    """
    caplog.set_level("DEBUG")
    inner = Inner()
    key = SigningKey.generate()
    bound = token(cnf={"jkt": key.thumbprint})
    app = jwt_guard()(inner)
    proof = dpop_proof(key, method="POST", url=RESOURCE, now=NOW, access_token=bound)
    for shown, headers in (
        (GOOD, bearer(GOOD)),
        (bound, {"Authorization": f"DPoP {bound}", "DPoP": proof}),
    ):
        assert (await ask(app, "POST", path, headers)).status == 200
        scope = inner.scopes.pop()
        everything = (
            words_of(scope, set())
            + words_of(scope.get("interlock.challenge", lambda _: [])(["x"]), set())
            + caplog.text
        )
        for secret in (shown, shown.rpartition(".")[2], proof):
            assert secret not in everything


async def test_refused_tokens_are_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    """AUT-10: a refusal is written to the log with its reason, and without what was shown."""
    caplog.set_level("DEBUG")
    for bad in (token(OTHER), token(exp=1), "nonsense-that-somebody-pasted"):
        got = await ask(jwt_guard()(Inner()), headers=bearer(bad), query="")
        assert got.status == 401
        assert bad not in caplog.text + str(got.pairs) + got.body.decode()
    assert "refused with 401" in caplog.text


async def test_the_principal_is_all_that_was_said() -> None:
    """Subject, issuer, client, scopes from both claims, actor, end and the rest."""
    inner = Inner()
    shown = token(scope="use", scp=["read", "write"], act={"sub": "agent-7"}, tenant="t1")
    await ask(jwt_guard()(inner), headers=bearer(shown))
    assert inner.scopes[0]["interlock.principal"] == Principal(
        subject="jane",
        issuer=ISSUER,
        client="app",
        scopes=frozenset({"use", "read", "write"}),
        actor="agent-7",
        expires=NOW + 600,
        claims={"client_id": "app", "scp": ["read", "write"], "tenant": "t1"},
    )


async def test_the_app_can_ask_for_more() -> None:
    """AUS-04, AUS-08, AUS-09: one challenge names all that the operation needs and what every
    request needs; AUS-14: never offline_access.
    """
    inner = Inner()
    await ask(jwt_guard()(inner), headers=bearer(GOOD))
    headers = inner.scopes[0]["interlock.challenge"](["files:write", "use", "offline_access"])
    asked = find(read_challenges(", ".join(value.decode() for _, value in headers)), "bearer")
    assert asked is not None
    assert (asked.error, asked.scopes) == ("insufficient_scope", ("use", "files:write"))
    assert (
        asked.parameters["resource_metadata"]
        == "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
    )


@pytest.mark.parametrize(
    "has, whole",
    [
        ("admin", {"admin", "files:write", "files:read", "use"}),
        ("files:write", {"files:write", "files:read", "use"}),
        ("files:read", {"files:read", "use"}),
        ("use", {"use"}),
        ("loop", {"loop", "pool", "use"}),
        ("files", None),
        ("admin:x", None),
    ],
)
async def test_scopes_imply_what_they_are_said_to(has: str, whole: set[str] | None) -> None:
    """AUS-10: a scope that has others in it is enough for these, by any number of steps.

    Nothing is implied by the look of a name.
    """
    implies = {
        "admin": ["files:write"],
        "files:write": ["files:read"],
        "files:read": ["use"],
        "loop": ["pool", "use"],
        "pool": ["loop"],
    }
    inner = Inner()
    got = await ask(jwt_guard(implies=implies)(inner), headers=bearer(token(scope=has)))
    if whole is None:
        assert (got.status, inner.scopes) == (403, [])
    else:
        assert inner.scopes[0]["interlock.principal"].scopes == whole


async def test_several_scopes_are_asked_for_at_once() -> None:
    """AUS-08, AUS-14: whoever lacks one is told all."""
    got = await ask(jwt_guard(scopes=["use", "read"])(Inner()), headers=bearer(GOOD))
    assert got.status == 403
    assert 'scope="use read"' in got.challenges[0]
    with pytest.raises(ValueError, match="offline_access"):
        jwt_guard(scopes=["use", "offline_access"])


async def test_web_sockets_are_refused() -> None:
    """AUT-17: what brings no token that could be checked does not come in."""
    sent: list[Any] = []
    inner = Inner()

    async def send(message: Any) -> None:
        sent.append(message)

    await jwt_guard()(inner)({"type": "websocket", "path": "/mcp", "headers": []}, None, send)
    assert (sent, inner.scopes) == ([{"type": "websocket.close", "code": 1008}], [])


async def test_the_lifespan_is_the_apps_own() -> None:
    """It passes through, and at its end the verifier is closed."""
    closed: list[bool] = []

    class Closing(Checked):
        async def aclose(self) -> None:
            closed.append(True)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert scope == {"type": "lifespan"}
        await send({"type": "lifespan.startup.complete"})
        assert closed == []
        await send({"type": "lifespan.shutdown.complete"})

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message["type"])

    await Guard(Closing(lambda _: None), resource=RESOURCE)(app)({"type": "lifespan"}, None, send)
    assert (sent, closed) == (["lifespan.startup.complete", "lifespan.shutdown.complete"], [True])


async def test_who_cannot_be_asked_is_no_reason_to_let_in() -> None:
    """AUT-05: 503 with Retry-After, and no challenge, where it cannot be found out what a token is
    worth.
    """

    def away(_: str) -> None:
        raise Unverifiable("Nobody is there.", seconds=7)

    inner = Inner()
    got = await ask(Guard(Checked(away), resource=RESOURCE)(inner), headers=bearer("some-token"))
    assert (got.status, got.challenges, got.header("retry-after"), inner.scopes) == (
        503,
        [],
        "7",
        [],
    )


async def test_a_verifier_that_breaks_lets_nobody_in() -> None:
    """AUT-17: what went wrong is the web server's to tell."""

    def broken(_: str) -> Any:
        raise RuntimeError("out of order")

    inner = Inner()
    with pytest.raises(RuntimeError, match="out of order"):
        await ask(Guard(Checked(broken), resource=RESOURCE)(inner), headers=bearer("some-token"))
    assert inner.scopes == []


async def test_keys_of_programs_need_no_authorization_server() -> None:
    """AUT-15: no metadata that would lead nowhere, and a challenge that names the server."""
    key = "k" * 32
    inner = Inner()
    app = Guard(
        ApiKeys({"ci": key}, scopes=["use"]), resource=RESOURCE, scopes=["use"], name="Files"
    )(inner)
    got = await ask(app)
    assert got.challenges == ['Bearer scope="use", realm="Files"']
    assert (await ask(app, "GET", "/.well-known/oauth-protected-resource")).status == 401
    assert (await ask(app, headers=bearer(key))).status == 200
    assert inner.scopes[0]["interlock.principal"] == Principal(
        subject="ci", client="ci", scopes=frozenset({"use"})
    )


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"resource": "mcp.example.com"}, "own address"),
        ({"resource": "https://mcp.example.com/mcp#x"}, "own address"),
        ({"resource": "ftp://mcp.example.com"}, "own address"),
        ({"resource": "https://user@mcp.example.com"}, "own address"),
        ({"scopes": ["two words"]}, "not a scope"),
        ({"scopes": ['"']}, "not a scope"),
        ({"implies": {"a": ["b c"]}}, "not a scope"),
        ({"dpop": "always"}, "dpop is"),
    ],
)
def test_settings_that_cannot_be_meant(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        jwt_guard(**settings)


def test_scopes_are_a_list() -> None:
    with pytest.raises(TypeError, match="list"):
        jwt_guard(scopes="use")


def test_a_server_with_fixed_keys_needs_no_cryptography() -> None:
    """The guard alone loads nothing of the extra `auth`, so that programs with keys of their own
    can do without it.
    """
    lines = [
        "import sys",
        "import interlock.auth",
        "from interlock.auth.guard import Guard",
        "from interlock.auth.tokens.api_keys import ApiKeys",
        "Guard(ApiKeys({'ci': 'k' * 32}), resource='https://mcp.example.com/mcp')",
        "print(*sys.modules)",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True
    )
    assert not {"joserfc", "cryptography", "uvicorn", "httptools"} & {
        name.partition(".")[0] for name in done.stdout.split()
    }
