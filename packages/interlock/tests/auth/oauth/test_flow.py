"""The whole dance: scopes, programs on their own behalf, companies, workloads, and what holds for
all of them.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import types as t
from interlock.auth.oauth.addresses import is_loopback
from interlock.auth.oauth.challenges import Challenge
from interlock.auth.oauth.errors import Unauthorized
from interlock.auth.oauth.flow import Enterprise, GrantFlow, LogIn, OwnBehalf, Workload
from interlock.auth.oauth.grants import renewed
from interlock.auth.oauth.members import Grant, Member
from interlock.auth.oauth.registration import ClientIdentity
from interlock.auth.oauth.steps import Listen, SendRequest, ShowCode, Visit
from tests.auth.oauth.player import (
    ISSUER,
    METADATA,
    PROTECTED,
    ROOT,
    SERVER,
    Player,
    elsewhere,
    metadata,
    resource,
    token,
    world,
)

IDP = "https://idp.example/token"
BEFORE = Grant(
    resource=SERVER,
    issuer=ISSUER,
    client_id="c",
    token_endpoint=f"{ISSUER}/token",
    access_token="a",
    asked=("old", "a"),
)


@pytest.mark.parametrize(
    "challenged, listed, wanted, before, offline, asked",
    [
        ("a b", ["x"], (), None, False, "a b"),
        ("a b", None, (), None, False, "a b"),
        (None, ["x", "y"], (), None, False, "x y"),
        (None, None, (), None, False, None),
        (None, [], (), None, False, None),
        ("", ["x"], (), None, False, None),
        ("a", ["x"], ["mine"], None, False, "mine a"),
        (None, None, ["mine", "mine"], None, False, "mine"),
        ("new a", ["x"], (), BEFORE, False, "old a new"),
        ("new", ["x"], ["mine"], BEFORE, False, "old a mine new"),
        (None, ["x"], (), BEFORE, False, "old a"),
        ("a", ["x"], (), None, True, "a offline_access"),
        ("a offline_access", ["x"], (), None, True, "a offline_access"),
        (None, None, (), None, True, None),
    ],
)
def test_which_scopes_are_asked_for(
    challenged: str | None,
    listed: list[str] | None,
    wanted: list[str],
    before: Grant | None,
    offline: bool,
    asked: str | None,
):
    """`AUS-02`, `AUS-03`, `AUS-05`, `AUS-06`, `AUS-12`: the challenge, else what is listed, else
    none; the union at a step-up.
    """
    known = ["offline_access"] if offline else ["email"]
    player = Player(
        world(
            protected=resource(scopes_supported=listed), metadata=metadata(scopes_supported=known)
        )
    )
    challenge = Challenge("bearer", {} if challenged is None else {"scope": challenged})
    grant = player.log_in(challenge=challenge, wanted=wanted, before=before)
    assert player.visited.get("scope") == asked
    assert grant.asked == tuple((asked or "").split())


def test_a_step_up_after_a_step_up_keeps_all():
    """`AUS-06`: what was asked for once is asked for again, though the authorization server granted
    less.
    """
    player = Player(world(token=token(scope="a")))
    first = player.log_in(challenge=Challenge("bearer", {"scope": "a b"}))
    second = player.log_in(challenge=Challenge("bearer", {"scope": "c"}), before=first)
    assert (first.scopes, second.asked) == (("a",), ("a", "b", "c"))


def test_the_scopes_of_a_challenge_are_those_of_a_program_too():
    """`CCR-06`: a program on its own behalf steps up as well.

    `offline_access` is nothing for it (`AUS-12`).
    """
    player = Player(world(metadata=metadata(scopes_supported=["offline_access"])))
    player.log_in(
        ways()["own behalf"], challenge=Challenge("bearer", {"scope": "c"}), before=BEFORE
    )
    assert player.forms()[0]["scope"] == "old a c"


def ways() -> dict[str, GrantFlow]:
    """One of each way to a token."""
    given = Member(issuer=ISSUER, client_id="c", client_secret="secret-client")
    provider = Member(issuer="", client_id="sso", client_secret="secret-sso")
    return {
        "log-in": LogIn(identity=ClientIdentity()),
        "log-in of a known client": LogIn(identity=ClientIdentity(given=given)),
        "device": LogIn(identity=ClientIdentity(), device=True),
        "own behalf": OwnBehalf(member=given),
        "workload": Workload(assertion=lambda: "secret-workload"),
        "enterprise": Enterprise(
            id_token=lambda: "secret-id", provider=provider, provider_endpoint=IDP, member=given
        ),
    }


def everything(**changes: Any) -> dict[str, Any]:
    """A world in which each way leads to a token."""
    parts = {
        "metadata": metadata(device_authorization_endpoint=f"{ISSUER}/device"),
        f"{ISSUER}/device": {
            "device_code": "secret-device",
            "user_code": "code",
            "verification_uri": f"{ISSUER}/enter",
        },
        IDP: token(
            access_token="secret-jag",
            token_type="N_A",
            issued_token_type="urn:ietf:params:oauth:token-type:id-jag",
        ),
        **changes,
    }
    return world(**parts)


@pytest.mark.parametrize("way", ways())
def test_the_server_is_named_in_every_request(way: str):
    """`AUF-03`, `AUF-04`, `CCR-04`, `WIF-01`, `EMA-01`: `resource` stands in each request for a
    code, a token, or a refresh.
    """
    player = Player(everything())
    grant = player.log_in(ways()[way])
    player.play(renewed(grant, Member(issuer=ISSUER, client_id=grant.client_id), player.means))
    forms = [
        form for url in (f"{ISSUER}/token", f"{ISSUER}/device", IDP) for form in player.forms(url)
    ]
    assert len(forms) >= 2
    assert {form["resource"] for form in forms} == {SERVER} == {grant.resource}
    if any(isinstance(step, Visit) for step in player.steps):
        assert player.visited["resource"] == SERVER


@pytest.mark.parametrize("way", ways())
def test_no_secret_stands_in_an_address(way: str):
    """`AUT-04`: tokens, secrets and assertions travel in bodies and headers."""
    player = Player(everything())
    player.log_in(ways()[way])
    urls = [step.request.url for step in player.steps if isinstance(step, SendRequest)] + [
        s.url for s in player.steps if isinstance(s, Visit)
    ]
    assert "secret" not in " ".join(urls)


FAILURES: list[Any] = [(400, {"error": "invalid_grant", "error_description": "no"}), (500, b"oh"),
    (200, b"{"), (200, {"access_token": 5}), t.Unreachable("Cut.")]  # fmt: skip


@pytest.mark.parametrize("way", ways())
@pytest.mark.parametrize(
    "place", [PROTECTED, METADATA, f"{ISSUER}/register", f"{ISSUER}/token", f"{ISSUER}/device", IDP]
)
@pytest.mark.parametrize("failure", range(len(FAILURES)))
def test_a_failure_says_where_and_shows_nothing_secret(way: str, place: str, failure: int):
    """At each place and for each way: the step, the document, who has to repair it.

    And no token, code, secret or assertion.
    """
    player = Player(everything(**{place: FAILURES[failure]}), key=False)
    try:
        player.log_in(ways()[way])
    except Unauthorized as refused:
        assert refused.step in (
            "discovery",
            "registration",
            "token",
            "token exchange",
            "device code",
            "log-in",
        )
        assert refused.culprit in ("server", "authorization server", "client", "person", "network")
        assert refused.document or "http" in str(refused)
        assert not [
            word
            for word in ("secret", "random-")
            if word in f"{refused!r} {refused.args} {vars(refused)}"
        ]
    assert "secret" not in " ".join(player.notes)


# -- a program on its own behalf -------------------------------------------------------------------


@pytest.mark.parametrize("key", [True, False])
def test_a_program_on_its_own_behalf(key: bool):
    """`CCR-01` to `CCR-04`: registered before, by secret or by a signed assertion for the
    authorization server; discovery as ever.
    """
    member = Member(
        issuer="",
        client_id="c",
        client_secret=None if key else "secret-client",
        method="private_key_jwt" if key else "",
    )
    player = Player(
        world(
            metadata=metadata(authorization_endpoint=None, code_challenge_methods_supported=None)
        ),
        key=key,
    )
    grant = player.log_in(OwnBehalf(member=member), wanted=["a"])
    assert player.asked == [PROTECTED, METADATA]
    assert player.registrations == []
    (form,) = player.forms()
    assert (
        form.items()
        >= {"grant_type": "client_credentials", "resource": SERVER, "scope": "a"}.items()
    )
    assert form.get("client_assertion") == (f"secret-assertion for {ISSUER}" if key else None)
    assert grant.method == ("private_key_jwt" if key else "client_secret_basic")
    assert not [step for step in player.steps if isinstance(step, Visit | Listen)]


def test_a_program_does_not_register():
    """`CCR-01`: its credentials are those of one authorization server, whatever the server names
    today.
    """
    other = "https://new.example"
    player = Player(elsewhere(other))
    with pytest.raises(Unauthorized, match="Register the client with the new authorization server"):
        player.log_in(ways()["own behalf"])
    assert player.forms() == []


@pytest.mark.parametrize("methods", [["private_key_jwt"], ["client_secret_basic"], None])
def test_what_a_program_uses_of_what_is_listed(methods: list[str] | None):
    """`CCR-05`: a secret is presented as a secret, a key as an assertion,
    whatever else is listed."""
    player = Player(world(metadata=metadata(token_endpoint_auth_methods_supported=methods)))
    assert player.log_in(ways()["own behalf"]).method == "client_secret_basic"


# -- a company's identity provider -----------------------------------------------------------------


def test_a_company_vouches_for_its_person():
    """`EMA-01`, `EMA-02`, `EMA-03`: the log-in is exchanged for an assertion to the authorization
    server, and that for a token.
    """
    player = Player(everything(), key=False)
    grant = player.log_in(ways()["enterprise"], wanted=["a"])
    assert player.forms(IDP) == [
        {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
            "audience": ISSUER,
            "resource": SERVER,
            "subject_token": "secret-id",
            "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
            "scope": "a",
        }
    ]
    (exchange,) = [request for request in player.requests if request.url == IDP]
    assert dict(exchange.headers)["Authorization"].startswith("Basic ")
    assert player.forms() == [
        {
            "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
            "assertion": "secret-jag",
            "resource": SERVER,
            "scope": "a",
        }
    ]
    assert grant.access_token == "secret-access"


def test_a_company_client_may_have_a_document():
    """`EMA-05`: the address of its document is its client id at the authorization server."""
    document = Member(issuer=ISSUER, client_id="https://app.example/client.json", method="none")
    whole = ways()["enterprise"]
    assert isinstance(whole, Enterprise)
    way = Enterprise(
        id_token=whole.id_token, provider=whole.provider, provider_endpoint=IDP, member=document
    )
    player = Player(everything())
    player.log_in(way)
    assert player.forms()[0]["client_id"] == "https://app.example/client.json"


def test_the_key_of_one_client_does_not_speak_for_another():
    """`EMA-02`: at the identity provider another client is known, so that the assertion of this one
    is not shown there.
    """
    given = Member(issuer=ISSUER, client_id="c", method="private_key_jwt")
    provider = Member(issuer="", client_id="sso")
    player = Player(everything(token=token(token_type="DPoP")), key=True, dpop=True)
    player.log_in(
        Enterprise(
            id_token=lambda: "secret-id", provider=provider, provider_endpoint=IDP, member=given
        )
    )
    assert "client_assertion" not in player.forms(IDP)[0]
    assert player.forms(IDP)[0]["client_id"] == "sso"
    assert "client_assertion" in player.forms()[0]
    assert [url for _, url, _ in player.proofs] == [f"{ISSUER}/token"]


@pytest.mark.parametrize(
    "profiles, begun",
    [
        (None, True),
        (["urn:ietf:params:oauth:grant-profile:id-jag"], True),
        ([], False),
        (["x"], False),
    ],
)
def test_whether_a_company_may_vouch(profiles: list[str] | None, begun: bool):
    """`EMA-04`: where the authorization server says what it takes, the identity provider is not
    troubled in vain.
    """
    player = Player(everything(metadata=metadata(authorization_grant_profiles_supported=profiles)))
    if begun:
        player.log_in(ways()["enterprise"])
    else:
        with pytest.raises(Unauthorized, match="does not accept assertions of a company"):
            player.log_in(ways()["enterprise"])
    assert bool(player.forms(IDP)) is begun


@pytest.mark.parametrize(
    "answer, words",
    [
        (
            token(issued_token_type="urn:ietf:params:oauth:token-type:access_token"),
            "issued urn:ietf:params:oauth:token-type:access_token",
        ),
        ((400, {"error": "invalid_target"}), "invalid_target"),
        ((401, {"error": "invalid_client"}), "correct its credentials"),
    ],
)
def test_an_identity_provider_that_does_not_vouch(answer: Any, words: str):
    """`EMA-01`: without the assertion nothing is asked of the authorization server."""
    player = Player(everything(**{IDP: answer}))
    with pytest.raises(Unauthorized) as refused:
        player.log_in(ways()["enterprise"])
    assert words in str(refused.value)
    assert refused.value.step == "token exchange"
    assert refused.value.document == IDP
    assert player.forms() == []


@pytest.mark.parametrize("place", ["http://idp.example/token", "javascript:x", ""])
def test_an_identity_provider_is_asked_over_https(place: str):
    """`SEC-13`: an identity token does not travel unprotected."""
    asked: list[str] = []
    whole = Enterprise(
        id_token=lambda: asked.append("id") or "id", provider=Member(issuer="", client_id="sso"),
        provider_endpoint=place,
        member=Member(issuer=ISSUER, client_id="c"),
    )  # fmt: skip
    with pytest.raises(Unauthorized, match="the identity provider's token endpoint"):
        Player(everything()).log_in(whole)
    assert asked == []


# -- workloads -------------------------------------------------------------------------------------


@pytest.mark.parametrize("client_id", ["", "known"])
def test_a_platform_vouches_for_its_workload(client_id: str):
    """`WIF-01`: its JWT as it is, the server as the resource, and nothing registered."""
    player = Player(world(), key=True)
    grant = player.log_in(
        Workload(assertion=lambda: "secret-workload", client_id=client_id), wanted=["a"]
    )
    (form,) = player.forms()
    assert form == {
        "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "assertion": "secret-workload",
        "resource": SERVER,
        "scope": "a",
        **({"client_id": client_id} if client_id else {}),
    }
    assert player.registrations == []
    assert grant.access_token == "secret-access"


@pytest.mark.parametrize(
    "error",
    [
        "invalid_grant",
        "invalid_client",
        "unsupported_grant_type",
        "unauthorized_client",
        "use_dpop_nonce",
    ],
)
def test_an_assertion_that_is_refused_is_presented_once(error: str):
    """`WIF-03`: neither again unchanged, nor by another kind of grant."""
    calls: list[int] = []
    player = Player(world(token=(400, {"error": error}, {"dpop-nonce": "n"})))
    with pytest.raises(Unauthorized, match=error):
        player.log_in(Workload(assertion=lambda: f"secret-{len(calls)}{calls.append(1) or ''}"))
    assert len(player.forms()) == len(calls) == 1
    assert player.registrations == []


# -- whatever peers send ---------------------------------------------------------------------------

URLS = st.sampled_from(
    [SERVER, ISSUER, f"{ISSUER}/", f"{ISSUER}/token", f"{ISSUER}/x y", "http://as.example",
        "http://localhost:1/x", "javascript:alert(1)", "",
     "//x", "https://", "https://u:p@h/", "https://[::1", "https://h:x/",
     "https://evil.example/\x1b[2J", "https://evil.example/"]
)  # fmt: skip
SCALARS = st.one_of(
    URLS,
    st.none(),
    st.booleans(),
    st.integers(-(10**6), 10**30),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
)
VALUES = st.one_of(
    SCALARS,
    st.lists(SCALARS, max_size=3),
    st.dictionaries(st.text(max_size=4), SCALARS, max_size=2),
)
NAMES = st.sampled_from([
    "resource", "authorization_servers", "scopes_supported", "issuer", "authorization_endpoint",
    "token_endpoint", "registration_endpoint",
    "device_authorization_endpoint", "code_challenge_methods_supported",
    "token_endpoint_auth_methods_supported", "client_id", "client_secret",
    "client_id_metadata_document_supported", "authorization_response_iss_parameter_supported",
    "token_endpoint_auth_method",
    "client_secret_expires_at", "access_token", "token_type", "expires_in", "refresh_token",
    "scope", "error", "error_description",
    "device_code", "user_code", "verification_uri", "verification_uri_complete", "interval",
    "issued_token_type",
])  # fmt: skip
CHANGES = st.dictionaries(NAMES, VALUES, max_size=3)
STATUSES = st.sampled_from([200, 200, 200, 201, 302, 400, 401, 403, 404, 429, 500])
PLACES = [
    PROTECTED,
    ROOT,
    METADATA,
    f"{ISSUER}/register",
    f"{ISSUER}/token",
    f"{ISSUER}/device",
    IDP,
]


@st.composite
def worlds(draw: st.DrawFn) -> dict[str, Any]:
    """A world in which some of the documents are not what they should be."""
    whole = everything()
    for place in draw(st.sets(st.sampled_from(PLACES), min_size=1, max_size=4)):
        good = whole.get(place)
        kind = draw(st.integers(0, 5))
        if kind == 0:
            whole[place] = t.Unreachable("Cut.")
        elif kind == 1:
            whole[place] = (draw(STATUSES), draw(st.binary(max_size=20)))
        elif kind == 2:
            whole[place] = (draw(STATUSES), draw(VALUES))
        else:
            value = good[1] if isinstance(good, tuple) else good or resource()
            whole[place] = (
                draw(STATUSES) if kind == 3 else 200,
                {**value, **draw(CHANGES)},
                {"dpop-nonce": "n"},
            )
    return whole


@given(
    worlds(),
    st.sampled_from(list(ways())),
    st.booleans(),
    st.booleans(),
    st.text("code=rt&si%20", max_size=30),
)
def test_whatever_peers_send_there_is_a_grant_or_there_are_words(
    answers: dict[str, Any], way: str, dpop: bool, key: bool, back: str
):
    """`SEC-13`, `SEC-20`, `SEC-22`: no other exception, and no address is used that is neither
    https nor of this machine.
    """
    player = Player(
        answers,
        dpop=dpop,
        key=key,
        back=f"code=c&state={{state}}&{back}" if back else "code=c&state={state}",
    )
    challenge = Challenge("bearer", {"resource_metadata": ROOT}) if key else None
    try:
        assert isinstance(player.log_in(ways()[way], challenge=challenge), Grant)
    except Unauthorized as refused:
        assert str(refused).isprintable()
    for step in player.steps:
        if isinstance(step, SendRequest):
            urls = [step.request.url]
        elif isinstance(step, Visit):
            urls = [step.url]
        else:
            urls = []
        if isinstance(step, ShowCode):
            urls = [url for url in (step.verification_uri, step.complete) if url is not None]
        for url in urls:
            assert url.startswith("https://") or (url.startswith("http://") and is_loopback(url))
            assert url.isascii()
            assert url.isprintable()
    assert len(player.steps) < 1000


@pytest.mark.parametrize("bad", [t.TimedOut("Nobody logged in."), t.Unreachable("Gone.")])
def test_a_person_who_does_not_come_back(bad: t.Unreachable):
    """What the agent says is what is said; nothing is sent."""
    player = Player(world(), back=bad)
    with pytest.raises(type(bad)) as refused:
        player.log_in()
    assert refused.value is bad
    assert player.forms() == []
