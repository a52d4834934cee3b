"""The token endpoint: how a client shows who it is, what comes back, and what is made of it."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import unquote_plus

import pytest
from msgspec.structs import replace

from interlock import types as t
from interlock.auth.oauth.documents import ServerMetadata
from interlock.auth.oauth.errors import Denied, Unauthorized
from interlock.auth.oauth.flow import LogIn
from interlock.auth.oauth.grants import authenticated, renewed
from interlock.auth.oauth.members import Grant, Member
from interlock.auth.oauth.registration import ClientIdentity
from interlock.auth.oauth.steps import ShowCode, Wait
from tests.auth.oauth.player import ISSUER, SERVER, Player, metadata, token, world

SECRET = "secret client:/+é"
TOKEN = f"{ISSUER}/token"
A_GRANT = Grant(
    resource=SERVER, issuer=ISSUER, client_id="c", token_endpoint=TOKEN, access_token="secret-old",
    refresh_token="secret-refresh",
    asked=("a", "b"), scopes=("a",), revocation_endpoint=f"{ISSUER}/revoke", method="none",
)  # fmt: skip
PUBLIC = Member(issuer=ISSUER, client_id="c")


@pytest.mark.parametrize(
    "method, secret, key, supported, expected",
    [
        ("", None, False, None, "none"),
        ("", None, False, ["client_secret_basic"], "none"),
        ("", SECRET, False, None, "client_secret_basic"),
        ("", SECRET, False, ["client_secret_basic", "client_secret_post"], "client_secret_basic"),
        ("", SECRET, False, ["client_secret_post", "client_secret_basic"], "client_secret_basic"),
        ("", SECRET, False, ["client_secret_post"], "client_secret_post"),
        ("", SECRET, False, ["private_key_jwt"], "client_secret_basic"),
        ("", SECRET, False, [], "client_secret_basic"),
        ("", None, True, None, "private_key_jwt"),
        ("", None, True, ["client_secret_basic"], "private_key_jwt"),
        ("", SECRET, True, ["private_key_jwt", "client_secret_basic"], "private_key_jwt"),
        ("", SECRET, True, None, "client_secret_basic"),
        ("none", SECRET, True, ["client_secret_basic"], "none"),
        ("client_secret_post", SECRET, True, ["client_secret_basic"], "client_secret_post"),
        ("client_secret_basic", SECRET, False, ["client_secret_post"], "client_secret_basic"),
        ("client_secret_basic", None, False, None, "none"),
        ("private_key_jwt", None, True, None, "private_key_jwt"),
    ],
)
def test_how_a_client_shows_who_it_is(
    method: str, secret: str | None, key: bool, supported: list[str] | None, expected: str
):
    """`AUR-12`, `CCR-02`, `CCR-03`: the way that was agreed on, else the one that both know.

    And one way only.
    """
    member = Member(issuer=ISSUER, client_id="client id", client_secret=secret, method=method)
    said = ServerMetadata(issuer=ISSUER, token_endpoint_auth_methods_supported=supported)
    headers, form = authenticated(
        {"a": "b"}, member, said, (lambda audience: f"for {audience}") if key else None
    )
    if expected == "client_secret_basic":
        ((name, value),) = headers
        pair = base64.b64decode(value.removeprefix("Basic ")).decode()
        assert name == "Authorization"
        assert [unquote_plus(part) for part in pair.split(":")] == ["client id", SECRET]
        assert form == {"a": "b"}
        return
    assert headers == ()
    more = {
        "none": {},
        "client_secret_post": {"client_secret": SECRET},
        "private_key_jwt": {
            "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            "client_assertion": f"for {ISSUER}",
        },
    }[expected]
    assert form == {"a": "b", "client_id": "client id", **more}


@pytest.mark.parametrize(
    "method, words",
    [
        ("private_key_jwt", "has none"),
        ("tls_client_auth", "not supported"),
        ("client_secret_jwt", "not supported"),
    ],
)
def test_ways_that_cannot_be_gone(method: str, words: str):
    """`AUR-12`: what was agreed on and cannot be done is said, and nothing weaker is tried."""
    with pytest.raises(Unauthorized, match=words) as refused:
        authenticated(
            {},
            Member(issuer=ISSUER, client_id="c", client_secret=SECRET, method=method),
            None,
            None,
        )
    assert refused.value.culprit == "client"
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "answer, words, culprit, code",
    [
        ((401, {"error": "invalid_client", "error_description": "who?"}), "invalid_client: who?",
            "client", "invalid_client"),
        ((400, {"error": "invalid_grant"}), "Log in again", "person", "invalid_grant"),
        ((400, {"error": "invalid_scope"}), "Request other scopes", "client", "invalid_scope"),
        ((400, {"error": "invalid_target"}), "does not know this server", "server",
            "invalid_target"),
        ((400, {"error": "unauthorized_client"}), "may not use this grant type", "client",
            "unauthorized_client"),
        ((400, {"error": "unsupported_grant_type"}), "does not support this grant type",
            "authorization server", "unsupported_grant_type"),
        ((400, {"error": "of_their_own"}), "refused (of_their_own)", "authorization server",
            "of_their_own"),
        ((200, {"error": "bad_verification_code", "error_description": (
            "The code passed is "
            "incorrect."
        )}), "bad_verification_code: The code", "authorization server", "bad_verification_code"),
        ((503, b"<html>"), "refused (status 503)", "authorization server", ""),
        ((302, b""), "refused (status 302)", "authorization server", ""),
        ((200, b"<html>"), "that is not JSON", "authorization server", ""),
        ((200, b""), "that is not JSON", "authorization server", ""),
        ((200, {"token_type": "Bearer"}), "missing required field `access_token`",
            "authorization server", ""),
        ((200, token(access_token="")), "a token that does not fit into a header",
            "authorization server", ""),
        ((200, token(access_token="a\r\nX: y")), "a token that does not fit into a header",
            "authorization server", ""),
        ((200, token(access_token="töken")), "a token that does not fit into a header",
            "authorization server", ""),
        ((200, token(token_type="mac")), "a token of the type 'mac'", "authorization server", ""),
        ((200, token(token_type="N_A")), "a token of the type 'N_A'", "authorization server", ""),
        (t.Unreachable("The line is cut."), "no answer came (The line is cut)", "network", ""),
        ((400, {"error": "x", "error_description": "\x1b[2J"}), "x: ?[2J", "authorization server",
            "x"),
    ],
)  # fmt: skip
def test_what_a_token_endpoint_refuses(answer: Any, words: str, culprit: str, code: str):
    """Each failure says the step, the document, what it was, and what to do.

    And shows nothing that is secret.
    """
    player = Player(
        world(token=answer, register=(201, {"client_id": "c", "client_secret": "secret-client"}))
    )
    with pytest.raises(Unauthorized) as refused:
        player.log_in()
    bad = refused.value
    assert words in str(bad)
    assert (bad.step, bad.document, bad.culprit, bad.code) == ("token", TOKEN, culprit, code)
    assert str(bad).isprintable()
    assert "secret-" not in str(bad)
    assert len(player.forms()) == 1


def test_a_persons_no_at_the_token_endpoint():
    """`access_denied` is Denied wherever it comes."""
    with pytest.raises(Denied):
        Player(world(token=(400, {"error": "access_denied"}))).log_in()


@pytest.mark.parametrize(
    "told, grant",
    [
        ({}, {"expires": 1_003_600.0, "token_type": "Bearer", "refresh_token": "secret-refresh"}),
        ({"token_type": "bearer"}, {"token_type": "Bearer"}),
        ({"expires_in": "60"}, {"expires": 1_000_060.0}),
        ({"expires_in": "soon"}, {"expires": None}),
        ({"expires_in": "nan"}, {"expires": None}),
        ({"expires_in": "inf"}, {"expires": None}),
        ({"expires_in": None}, {"expires": None}),
        ({"refresh_token": None}, {"refresh_token": None}),
        ({"scope": "x y"}, {"scopes": ("x", "y"), "asked": ("a", "b")}),
        ({"scope": ""}, {"scopes": (), "asked": ("a", "b")}),
        ({}, {"scopes": ("a", "b"), "asked": ("a", "b")}),
        (
            {},
            {
                "issuer": ISSUER,
                "resource": SERVER,
                "token_endpoint": TOKEN,
                "client_id": "dynamic",
                "method": "none",
                "key": None,
            },
        ),
    ],
)
def test_what_is_kept_of_a_grant(told: dict[str, Any], grant: dict[str, Any]):
    """`AUS-13`, `AUT-09`: no refresh token is assumed, nor that all scopes were granted.

    Whose it is stands beside it.
    """
    got = Player(world(token=token(**told))).log_in(wanted=["a", "b"])
    assert {name: getattr(got, name) for name in grant} == grant


@pytest.mark.parametrize("seconds, at, stale", [(3600, 0, False), (3600, 3569, False),
    (3600, 3570, True), (10, 8, False), (10, 9, True), (0, 0, True), (-5, 0, True)])  # fmt: skip
def test_a_token_near_its_end_is_stale(seconds: float, at: float, stale: bool):
    """Half a minute before its end, or a tenth of its time where that is short."""
    grant = replace(A_GRANT, issued=100.0, expires=100.0 + seconds)
    assert grant.is_stale(100.0 + at) is stale
    assert not replace(A_GRANT, expires=None).is_stale(1e12)


# -- refreshing ------------------------------------------------------------------------------------


def test_a_refresh():
    """`AUF-03`, `AUS-13`: the resource goes along.

    A new refresh token takes the old one's place, else the old one goes on.
    """
    player = Player(
        {
            TOKEN: [
                token(access_token="new", refresh_token="secret-second"),
                token(access_token="newer", refresh_token=None),
            ]
        }
    )
    grant = player.play(renewed(A_GRANT, PUBLIC, player.means))
    assert player.forms() == [
        {
            "grant_type": "refresh_token",
            "refresh_token": "secret-refresh",
            "resource": SERVER,
            "client_id": "c",
        }
    ]
    assert (grant.access_token, grant.refresh_token, grant.asked, grant.scopes) == (
        "new",
        "secret-second",
        ("a", "b"),
        ("a",),
    )
    again = player.play(renewed(grant, PUBLIC, player.means))
    assert (again.access_token, again.refresh_token) == ("newer", "secret-second")
    assert again == replace(grant, access_token="newer")


@pytest.mark.parametrize(
    "method", ["client_secret_post", "client_secret_basic", "private_key_jwt", "none"]
)
def test_a_refresh_shows_who_it_is_as_the_log_in_did(method: str):
    """`AUR-12`: there is no metadata at hand then, and the first way of two would not do
    everywhere.
    """
    supported = {"none": None}.get(method, [method])
    given = Member(
        issuer=ISSUER, client_id="c", client_secret=None if method == "none" else "secret-client"
    )
    player = Player(
        world(metadata=metadata(token_endpoint_auth_methods_supported=supported)),
        key=method == "private_key_jwt",
    )
    grant = player.log_in(LogIn(identity=ClientIdentity(given=given)))
    assert grant.method == method
    again = player.play(renewed(grant, given, player.means))
    assert again.method == method
    first, second = (request for request in player.requests if request.url == TOKEN)
    assert (
        ("Authorization" in dict(first.headers))
        is ("Authorization" in dict(second.headers))
        is (method == "client_secret_basic")
    )
    shown = [{name for name in form if name.startswith("client_")} for form in player.forms()]
    assert shown[0] == shown[1]


@pytest.mark.parametrize(
    "answer, code",
    [
        ((400, {"error": "invalid_grant"}), "invalid_grant"),
        (t.Unreachable("Cut."), ""),
        ((500, b""), ""),
    ],
)
def test_a_refresh_that_fails(answer: Any, code: str):
    """Its code tells whether the person has to log in again, and its words show no token."""
    player = Player({TOKEN: answer})
    with pytest.raises(Unauthorized) as refused:
        player.play(renewed(A_GRANT, PUBLIC, player.means))
    assert (refused.value.step, refused.value.code, refused.value.document) == (
        "refresh",
        code,
        TOKEN,
    )
    assert "secret-" not in str(refused.value)
    assert len(player.forms()) == 1


# -- proofs ----------------------------------------------------------------------------------------


def test_a_token_is_bound_to_a_key():
    """`DPP-03`: the proof goes with the token request, its thumbprint with the code, and the key is
    kept with the tokens.
    """
    player = Player(world(token=token(token_type="DPoP")), dpop=True)
    grant = player.log_in()
    assert player.proofs == [("POST", TOKEN, None)]
    assert player.visited["dpop_jkt"] == "thumb"
    assert (grant.token_type, grant.key) == ("DPoP", {"kty": "EC", "d": "secret-key"})
    (sent,) = [request for request in player.requests if request.url == TOKEN]
    assert dict(sent.headers)["DPoP"] == "proof 1"


BOUND = token(token_type="DPoP")
WANTS_NONCE = (400, {"error": "use_dpop_nonce"}, {"dpop-nonce": "n1"})


@pytest.mark.parametrize(
    "answers, nonces, good",
    [
        ([WANTS_NONCE, BOUND], [None, "n1"], True),
        ([(401, {"error": "use_dpop_nonce"}, {"dpop-nonce": "n2"}), BOUND], [None, "n2"], True),
        (
            [WANTS_NONCE, (400, {"error": "use_dpop_nonce"}, {"dpop-nonce": "n2"})],
            [None, "n1"],
            False,
        ),
        ([(400, {"error": "use_dpop_nonce"})], [None], False),
        ([(400, {"error": "invalid_grant"}, {"dpop-nonce": "n1"})], [None], False),
        ([(200, BOUND, {"dpop-nonce": "n1"})], [None], True),
    ],
)
def test_a_nonce_is_honoured_once(answers: list[Any], nonces: list[str | None], good: bool):
    """`DPP-03`: a fresh proof with the nonce that the authorization server wants.

    And no more than that.
    """
    player = Player(world(token=answers), dpop=True, key=True)
    if good:
        assert player.log_in().access_token == "secret-access"
    else:
        with pytest.raises(Unauthorized):
            player.log_in()
    assert [nonce for _, _, nonce in player.proofs] == nonces


def test_a_token_that_is_not_bound_is_not_taken_for_one():
    """`DPP-01`: who asked for tokens that are of no use to a thief hears it where there are none.

    No logins are stored.
    """
    player = Player(world(token=token()), dpop=True)
    with pytest.raises(Unauthorized, match="not bound to the client's key") as caught:
        player.log_in()
    assert caught.value.culprit == "authorization server"


def test_without_a_key_no_nonce_is_heeded():
    """A nonce that nobody can use is no reason to send a code twice."""
    player = Player(world(token=[WANTS_NONCE, token()]))
    with pytest.raises(Unauthorized, match="use_dpop_nonce"):
        player.log_in()
    assert len(player.forms()) == 1


# -- codes for another device ----------------------------------------------------------------------

DEVICE = f"{ISSUER}/device"
TOLD = {
    "device_code": "secret-device",
    "user_code": "WDJB-MJHT",
    "verification_uri": f"{ISSUER}/enter",
    "expires_in": 600,
    "interval": 5,
}
PENDING = (400, {"error": "authorization_pending"})


def by_device(player: Player, given: Member | None = PUBLIC) -> Grant:
    """A log-in with a code for another device."""
    return player.log_in(LogIn(identity=ClientIdentity(given=given), device=True), wanted=["a"])


def a_device(*answers: Any, told: Any = TOLD, **changes: Any) -> Player:
    """A world with a device endpoint whose token endpoint answers so, one after another."""
    return Player(
        world(
            metadata=metadata(device_authorization_endpoint=DEVICE, **changes),
            token=list(answers),
            **{DEVICE: told},
        )
    )


def test_a_code_is_entered_on_another_device():
    """RFC 8628, and `AUF-03`: shown, waited for at the pace that is asked, with the resource in
    both requests.
    """
    player = a_device(
        PENDING, (400, {"error": "slow_down"}), (200, {"error": "authorization_pending"}), token()
    )
    assert by_device(player).access_token == "secret-access"
    assert [step for step in player.steps if isinstance(step, ShowCode)] == [
        ShowCode("WDJB-MJHT", f"{ISSUER}/enter", None, 600)
    ]
    assert [step.seconds for step in player.steps if isinstance(step, Wait)] == [5, 5, 10, 10]
    assert player.forms(DEVICE) == [{"resource": SERVER, "scope": "a", "client_id": "c"}]
    grant_type = "urn:ietf:params:oauth:grant-type:device_code"
    assert (
        player.forms()
        == [
            {
                "grant_type": grant_type,
                "device_code": "secret-device",
                "resource": SERVER,
                "client_id": "c",
            }
        ]
        * 4
    )


def test_a_line_that_breaks_while_a_code_is_waited_for():
    """RFC 8628, 3.5: asked again, at half the pace."""
    player = a_device(t.Unreachable("Cut."), token())
    assert by_device(player).access_token == "secret-access"
    assert [step.seconds for step in player.steps if isinstance(step, Wait)] == [5, 10]


@pytest.mark.parametrize(
    "answers, told, words, code",
    [
        ([PENDING], TOLD, "not entered in time", "expired_token"),
        ([PENDING], {**TOLD, "expires_in": 0}, "not entered in time", "expired_token"),
        ([PENDING], {**TOLD, "expires_in": -1}, "not entered in time", "expired_token"),
        (
            [PENDING],
            {**TOLD, "expires_in": 1e300, "interval": 1e300},
            "not entered in time",
            "expired_token",
        ),
        ([(400, {"error": "expired_token"})], TOLD, "Log in again", "expired_token"),
        ([(400, {"error": "access_denied"})], TOLD, "refused (access_denied)", "access_denied"),
        ([t.Unreachable("Cut.")], TOLD, "not entered in time", "expired_token"),
        ([], (400, {"error": "invalid_client"}), "correct its credentials", "invalid_client"),
        (
            [],
            (200, {"error": "device_flow_disabled"}),
            "device_flow_disabled",
            "device_flow_disabled",
        ),
        ([], {**TOLD, "verification_uri": "javascript:alert(1)"}, "not to be used", ""),
        ([], {**TOLD, "verification_uri": "http://as.example/enter"}, "not to be used", ""),
        ([], {**TOLD, "verification_uri_complete": "file:///etc/passwd"}, "not to be used", ""),
        ([], {"user_code": "x"}, "missing required field", ""),
    ],
)
def test_a_code_for_another_device_that_leads_nowhere(
    answers: list[Any], told: Any, words: str, code: str
):
    """Nothing is shown that is not to be visited (`SEC-20`), and nothing is waited for for ever."""
    player = a_device(*answers, told=told)
    with pytest.raises(Unauthorized) as refused:
        by_device(player)
    assert words in str(refused.value)
    assert refused.value.code == code
    assert "secret-" not in str(refused.value)
    assert player.now <= 1_000_000 + 3600
    assert "javascript" not in str([step for step in player.steps if isinstance(step, ShowCode)])


def test_where_no_codes_for_other_devices_are_given():
    """The other ways to log in are named."""
    with pytest.raises(Unauthorized, match="paste the address") as refused:
        by_device(Player(world()))
    assert "device_authorization_endpoint" in refused.value.expected
