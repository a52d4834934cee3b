"""The authorization code: where the person is sent, and what is believed of what the browser brings
back.
"""

from __future__ import annotations

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.auth.oauth.codes import AuthorizationRequest, address, challenge_of, code_from
from interlock.auth.oauth.errors import Denied, Unauthorized
from interlock.auth.oauth.flow import LogIn
from interlock.auth.oauth.registration import ClientIdentity
from tests.auth.oauth.player import BACK, ISSUER, SERVER, Player, metadata, query, visited, world


def request(*, says_issuer: bool = False, issuer: str = ISSUER) -> AuthorizationRequest:
    """What was noted before the person was sent away."""
    return AuthorizationRequest(
        issuer=issuer, says_issuer=says_issuer, state="right", verifier="v" * 43, redirect_uri=BACK
    )


def test_the_address_has_all_that_is_asked():
    """`AUF-01`, `AUF-02`, `AUF-03`, `AUT-13`: S256, the resource, the state, and no scope where
    none is wanted.
    """
    url = address(f"{ISSUER}/authorize", request(), client_id="c&d", resource=SERVER, scopes=())
    assert visited(url) == {
        "response_type": "code",
        "client_id": "c&d",
        "redirect_uri": BACK,
        "state": "right",
        "code_challenge": base64.urlsafe_b64encode(hashlib.sha256(b"v" * 43).digest())
        .decode()
        .rstrip("="),
        "code_challenge_method": "S256",
        "resource": SERVER,
    }
    more = address(
        f"{ISSUER}/a?p=1",
        request(),
        client_id="c",
        resource=SERVER,
        scopes=["a", "b"],
        thumbprint="t",
        prompt="login",
    )
    assert more.startswith(f"{ISSUER}/a?p=1&response_type=code&")
    assert (
        visited(more).items()
        >= {"scope": "a b", "dpop_jkt": "t", "prompt": "login", "p": "1"}.items()
    )


def test_the_challenge_is_that_of_the_rfc():
    """`AUF-01`: RFC 7636, appendix B."""
    assert (
        challenge_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
        == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    )


def test_each_log_in_has_a_state_and_a_verifier_of_its_own():
    """`AUF-07`, `AUT-13`: what was noted belongs to one visit.

    The verifier is sent with the code and is long enough.
    """
    player = Player(world())
    player.log_in()
    first = (player.visited["state"], player.forms()[-1]["code_verifier"])
    player.log_in()
    second = (player.visited["state"], player.forms()[-1]["code_verifier"])
    assert not set(first) & set(second)
    assert 43 <= len(second[1]) <= 128
    assert player.visited["code_challenge"] == challenge_of(second[1])


OTHERS = [
    "https://evil.example",
    f"{ISSUER}/",
    "https://AS.example",
    "HTTPS://as.example",
    f"{ISSUER}:443",
    "https://as.example%2F",
    "",
    " ",
]


@pytest.mark.parametrize("says_issuer", [True, False])
@pytest.mark.parametrize("outcome", ["code", "error"])
@pytest.mark.parametrize("said", [ISSUER, None, *OTHERS])
def test_whose_answer_it_is(says_issuer: bool, outcome: str, said: str | None):
    """`AUF-08`, `AUF-09`, `AUF-10`, `AUF-11`: every row of the specification's table, for codes and
    for errors alike.
    """
    fields = (
        {"state": "right", "code": "secret-code"}
        if outcome == "code"
        else {"state": "right", "error": "bad", "error_description": "evil words"}
    )
    come = query(**fields, **({} if said is None else {"iss": said}))
    good = said == ISSUER or (said is None and not says_issuer)
    if good and outcome == "code":
        assert code_from(come, request(says_issuer=says_issuer)) == "secret-code"
        return
    with pytest.raises(Unauthorized) as refused:
        code_from(come, request(says_issuer=says_issuer))
    assert ("evil words" in str(refused.value)) is good
    assert refused.value.code == ("bad" if good else "")
    assert ("paste the whole address" in refused.value.advice) is (
        said is None and says_issuer
    )  # whoever pasted a bare code hears why
    if not good:
        assert "bad" not in str(refused.value)
        assert ISSUER in refused.value.expected


@pytest.mark.parametrize("iss, same", [("https%3A%2F%2Fas.example", True),
    ("https://as.example", True), ("https:%2F/as%2Eexample", True),
        ("https%253A%252F%252Fas.example", False)])  # fmt: skip
def test_the_issuer_is_compared_once_decoded(iss: str, same: bool):
    """`AUF-10`: decoded as a form is, once, and then to the letter."""
    come = f"code=c&state=right&iss={iss}"
    if same:
        assert code_from(come, request(says_issuer=True)) == "c"
    else:
        with pytest.raises(Unauthorized, match="another authorization server"):
            code_from(come, request(says_issuer=True))


@pytest.mark.parametrize(
    "come",
    [
        "code=secret-code",
        "code=secret-code&state=",
        "code=secret-code&state=wrong",
        "code=secret-code&state=right%20",
        "code=secret-code&state=RIGHT",
        "error=evil&error_description=evil&state=wrong",
        "code=secret-code&amp;state=right",
        "code=secret-code;state=right",
        "",
    ],
)
def test_an_answer_to_another_question_is_discarded(come: str):
    """`AUT-13`: a missing or different state; nothing of it is shown."""
    with pytest.raises(Unauthorized, match="`state` differs") as refused:
        code_from(come, request())
    assert "evil" not in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("name", ["state", "iss", "code", "error"])
def test_no_parameter_may_come_twice(name: str):
    """Whoever appends to an answer gains nothing: two of one are none."""
    with pytest.raises(Unauthorized, match=f"has {name} twice"):
        code_from(f"{name}=right&state=right&code=c&iss=https://as.example&{name}=other", request())


def test_a_code_is_a_value_and_no_more():
    """What is encoded in a code does not become another parameter,
    here or at the token endpoint."""
    player = Player(world(), back="code=a%26client_id%3Devil%26state%3Dwrong&state={state}")
    player.log_in()
    assert player.forms()[0]["code"] == "a&client_id=evil&state=wrong"
    assert player.forms()[0]["client_id"] == "dynamic"


@pytest.mark.parametrize(
    "come, what",
    [
        ("state=right", "no code"),
        ("state=right&code=", "no code"),
        ("&".join(["a=b"] * 101), "more than a hundred"),
    ],
)
def test_an_answer_without_a_code(come: str, what: str):
    """What is not there cannot be exchanged."""
    with pytest.raises(Unauthorized, match=what):
        code_from(come, request())


@pytest.mark.parametrize(
    "come",
    [
        "?code=c&state=right",
        "code=c&state=right#frag",
        "x=1&x=2&code=c&state=right",
        "state=right&code=c&session_state=s",
    ],
)
def test_answers_may_have_more_in_them(come: str):
    """RFC 6749, 4.1.2: what is not known is ignored."""
    assert code_from(come, request()) == "c"


def test_who_said_no_said_no():
    """A person's no is Denied, any other error Unauthorized.

    The words are shown, but do not steer a terminal.
    """
    with pytest.raises(Denied, match="access_denied: not now") as denied:
        code_from("state=right&error=access_denied&error_description=not+now", request())
    assert denied.value.culprit == "person"
    with pytest.raises(Unauthorized) as refused:
        code_from(
            query(state="right", error="server_error", error_description="\x1b]0;x\x07\nline"),
            request(),
        )
    assert not isinstance(refused.value, Denied)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("said, come", [(True, "code=secret-code&state={state}"),
    (True, "code=secret-code&state={state}&iss=https://evil.example"),
        (False, "code=secret-code&state={state}&iss=https://evil.example"),
            (False, "code=secret-code&state=wrong")])  # fmt: skip
def test_a_code_of_doubtful_origin_is_sent_nowhere(said: bool, come: str):
    """`AUF-08`, `AUF-11`, `AUT-13`: mix-up and injection end before anything is sent to a token
    endpoint.
    """
    player = Player(
        world(metadata=metadata(authorization_response_iss_parameter_supported=said)), back=come
    )
    with pytest.raises(Unauthorized) as refused:
        player.log_in()
    assert refused.value.step == "log-in"
    assert "The code was not sent to anyone" in str(refused.value)
    assert player.forms() == []


@given(
    st.one_of(
        st.text(max_size=80),
        st.text("abcdeiorst=&%20+;#?", max_size=80).map(lambda s: "state=right&" + s),
    )
)
def test_no_answer_is_an_error_of_another_kind(come: str):
    """Whatever a browser brings, there is a code or there are words."""
    for says_issuer in (True, False):
        try:
            assert code_from(come, request(says_issuer=says_issuer))
        except Unauthorized as refused:
            assert str(refused).isprintable()


def test_the_prompt_is_handed_on():
    """What the user wants of the authorization server's page."""
    player = Player(world())
    player.log_in(LogIn(identity=ClientIdentity(), prompt="consent"))
    assert player.visited["prompt"] == "consent"
