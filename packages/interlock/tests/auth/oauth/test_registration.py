"""Who a client is to an authorization server."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from interlock import types as t
from interlock.auth.oauth.errors import Unauthorized
from interlock.auth.oauth.flow import LogIn
from interlock.auth.oauth.members import Member
from interlock.auth.oauth.registration import ClientIdentity, check_document
from tests.auth.oauth.player import (
    BACK,
    ISSUER,
    METADATA,
    PROTECTED,
    Player,
    elsewhere,
    metadata,
    resource,
    token,
    world,
)

DOCUMENT = "https://app.example/client.json"
GIVEN = Member(issuer=ISSUER, client_id="given")
KEPT = Member(
    issuer=ISSUER, client_id="kept", method="none", redirect_uris=(BACK,), source="dynamic"
)
READS = {"client_id_metadata_document_supported": True}


def a_log_in(**identity: Any) -> LogIn:
    """A log-in of a client with this identity."""
    return LogIn(identity=ClientIdentity(**identity))


@pytest.mark.parametrize(
    "identity, known, said, client_id",
    [
        ({"given": GIVEN, "document": DOCUMENT}, KEPT, READS, "given"),
        ({"document": DOCUMENT}, KEPT, READS, DOCUMENT),
        ({"document": DOCUMENT}, KEPT, {}, "kept"),
        ({"document": DOCUMENT}, None, {}, "dynamic"),
        ({}, KEPT, READS, "kept"),
        ({}, None, READS, "dynamic"),
        ({}, KEPT, {"registration_endpoint": None}, "kept"),
    ],
)
def test_the_order_in_which_a_client_is_known(
    identity: dict[str, Any], known: Member | None, said: dict[str, Any], client_id: str
):
    """`AUR-04`, `AUR-11`: registered before, by its document, kept from earlier, registered there
    and then.
    """
    player = Player(world(metadata=metadata(**said)), kept={} if known is None else {ISSUER: known})
    grant = player.log_in(a_log_in(**identity))
    assert grant.client_id == client_id == player.visited["client_id"]
    assert len(player.registrations) == (client_id == "dynamic")


@pytest.mark.parametrize(
    "identity, expected",
    [
        ({}, "registration_endpoint"),
        ({"document": DOCUMENT}, "client_id_metadata_document_supported"),
    ],
)
def test_where_nobody_can_register_the_user_is_asked(identity: dict[str, Any], expected: str):
    """`AUR-04`: the last way is the user's, who is told what to give."""
    with pytest.raises(Unauthorized, match="give its client_id") as refused:
        Player(world(metadata=metadata(registration_endpoint=None))).log_in(a_log_in(**identity))
    assert refused.value.step == "registration"
    assert refused.value.culprit == "client"
    assert expected in refused.value.expected


def test_a_document_serves_at_every_authorization_server():
    """`AUR-05`, `AUR-20`: the client id is the address itself; nothing is registered or kept."""
    player = Player(world(metadata=metadata(**READS)))
    grant = player.log_in(a_log_in(document=DOCUMENT))
    assert grant.client_id == DOCUMENT == player.forms()[0]["client_id"]
    assert player.kept == {}


def test_a_document_may_have_keys():
    """`AUR-06`: with a key the client signs; without one it shows nothing."""
    player = Player(world(metadata=metadata(**READS)), key=True)
    assert player.log_in(a_log_in(document=DOCUMENT)).method == "private_key_jwt"
    assert player.forms()[0]["client_assertion"] == f"secret-assertion for {ISSUER}"
    plain = Player(world(metadata=metadata(**READS)))
    assert plain.log_in(a_log_in(document=DOCUMENT)).method == "none"
    assert "client_assertion" not in plain.forms()[0]


@pytest.mark.parametrize("url", ["https://app.example", "https://app.example/",
    "http://app.example/c", "http://localhost/c", "app", "", "https://u@a.example/c",
    "https://a.example/c#f"])  # fmt: skip
def test_what_cannot_be_a_document(url: str):
    """`AUR-05`: https with a path, and nothing odd."""
    with pytest.raises(ValueError, match="cannot be a client's document"):
        check_document(url)
    assert check_document(DOCUMENT) == DOCUMENT


@pytest.mark.parametrize(
    "kept, serves",
    [
        (KEPT, True),
        (replace(KEPT, until=1_000_100.0), True),
        (replace(KEPT, until=1_000_010.0), False),
        (replace(KEPT, until=1.0), False),
        (replace(KEPT, redirect_uris=("http://127.0.0.1:1/callback",)), False),
        (replace(KEPT, redirect_uris=("http://127.0.0.1:1/callback", BACK)), True),
        (replace(KEPT, redirect_uris=()), False),
    ],
)
def test_whether_an_earlier_registration_still_serves(kept: Member, serves: bool):
    """`AUT-14`, `AUR-17`: not where its secret has ended, nor where the browser comes back to
    another address.
    """
    player = Player(world(), kept={ISSUER: kept})
    player.log_in()
    assert player.visited["client_id"] == ("kept" if serves else "dynamic")
    assert player.kept[ISSUER].client_id == ("kept" if serves else "dynamic")


def test_what_is_registered_is_bound_to_its_issuer():
    """`AUR-17`, `AUR-18`: where the server names another authorization server, the client registers
    there, and shows nothing of the old.
    """
    other = "https://new.example"
    answers = {
        PROTECTED: resource(authorization_servers=[other]),
        f"{other}/.well-known/oauth-authorization-server": {
            **metadata(issuer=other), "token_endpoint": f"{other}/token",
            "registration_endpoint": f"{other}/register",
        },
        f"{other}/register": {"client_id": "new", "client_secret": "secret-new"},
        f"{other}/token": token(),
    }  # fmt: skip
    player = Player(answers, kept={ISSUER: replace(KEPT, client_secret="secret-old")})
    grant = player.log_in()
    assert (grant.issuer, grant.client_id) == (other, "new")
    assert player.kept[ISSUER].client_id == "kept"
    assert player.kept[other].client_secret == "secret-new"
    assert all(
        b"secret-old" not in request.body and "kept" not in request.url
        for request in player.requests
    )


def test_credentials_that_were_given_stay_with_their_issuer():
    """`AUR-17`, `AUR-19`: with another authorization server there is an error,
    and nothing is sent."""
    other = "https://new.example"
    player = Player(elsewhere(other))
    with pytest.raises(Unauthorized, match="Register the client with the new authorization server"):
        player.log_in(a_log_in(given=replace(GIVEN, client_secret="secret-client")))
    assert all(request.method == "GET" for request in player.requests)


def test_credentials_without_an_issuer_belong_to_the_first_one_met():
    """`AUR-17`: that one is kept, without the secret, and is the only one from then on."""
    given = Member(issuer="", client_id="given", client_secret="secret-client")
    player = Player(world())
    assert player.log_in(a_log_in(given=given)).issuer == ISSUER
    (kept,) = player.kept.values()
    assert (kept.issuer, kept.client_id, kept.client_secret) == (ISSUER, "given", None)
    other = "https://new.example"
    answers = {
        PROTECTED: resource(authorization_servers=[other]),
        f"{other}/.well-known/oauth-authorization-server": metadata(issuer=other),
    }
    later = Player(answers, kept=player.kept)
    with pytest.raises(
        Unauthorized, match=f"registered at {ISSUER}, but the server now trusts {other}"
    ):
        later.log_in(a_log_in(given=given))
    assert all(request.method == "GET" for request in later.requests)


def test_what_a_client_says_of_itself():
    """`AUR-13`, `AUR-14`, `AUS-11`, `AUT-14`: native, with its redirect URI, and with refresh
    tokens among its grants.
    """
    player = Player(world())
    player.log_in(
        a_log_in(name="Bench", uri="https://bench.example", dpop=True), wanted=["files:read"]
    )
    assert player.registrations == [
        {
            "client_name": "Bench",
            "client_uri": "https://bench.example",
            "redirect_uris": [BACK],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
            "scope": "files:read",
            "dpop_bound_access_tokens": True,
        }
    ]


@pytest.mark.parametrize(
    "redirect_uri, first",
    [
        (BACK, "native"),
        ("http://localhost:3000/cb", "native"),
        ("http://[::1]:3000/cb", "native"),
        ("https://app.example/cb", "web"),
    ],
)
@pytest.mark.parametrize("error", ["invalid_redirect_uri", "invalid_client_metadata"])
def test_a_registration_that_is_refused_is_tried_as_the_other_type(
    redirect_uri: str, first: str, error: str
):
    """`AUR-13`, `AUR-14`, `AUR-15`, `AUR-16`: native for this machine, web for https.

    The other where redirect URIs are the trouble.
    """
    player = Player(
        world(register=[(400, {"error": error}), (201, {"client_id": "second"})]),
        redirect_uri=redirect_uri,
    )
    assert player.log_in().client_id == "second"
    assert [sent["application_type"] for sent in player.registrations] == [
        first,
        "web" if first == "native" else "native",
    ]
    assert {tuple(sent["redirect_uris"]) for sent in player.registrations} == {(redirect_uri,)}


@pytest.mark.parametrize(
    "answers, sent",
    [
        ([None], [("native", "a x")]),
        (["invalid_client_metadata", None], [("native", "a x"), ("native", None)]),
        (
            ["invalid_client_metadata", "invalid_redirect_uri", None],
            [("native", "a x"), ("native", None), ("web", None)],
        ),
        (
            ["invalid_client_metadata", "invalid_client_metadata", None],
            [("native", "a x"), ("native", None), ("web", None)],
        ),
        (["invalid_redirect_uri", None], [("native", "a x"), ("web", "a x")]),
    ],
)
def test_scopes_that_an_authorization_server_does_not_know_are_left_out(
    answers: list[str | None], sent: list[tuple[str, str | None]]
):
    """`AUR-15`, `AUR-16`: all scopes that the client may come to ask for are registered, but no
    registration fails for them.
    """
    register = [
        (201, {"client_id": "c"}) if error is None else (400, {"error": error}) for error in answers
    ]
    player = Player(world(protected=resource(scopes_supported=["x"]), register=register))
    player.log_in(wanted=["a"])
    assert [(told["application_type"], told.get("scope")) for told in player.registrations] == sent


@pytest.mark.parametrize(
    "told, wanted, again",
    [
        ({}, ["a"], False),
        ({}, ["x"], False),
        ({}, ["new"], True),
        ({"scope": "a"}, ["x"], False),
        ({"scope": "a x new"}, ["new"], False),
    ],
)
def test_a_registration_serves_for_its_scopes(told: dict[str, Any], wanted: list[str], again: bool):
    """`AUS-06`: a step up to what was registered, or wished for then, needs no new registration.

    To more than that it does.
    """
    player = Player(
        world(
            protected=resource(scopes_supported=["x"]), register=(201, {"client_id": "c", **told})
        )
    )
    player.log_in(wanted=["a"])
    player.log_in(wanted=wanted)
    assert len(player.registrations) == 1 + again


@pytest.mark.parametrize(
    "answer, words, tries",
    [
        (
            (400, {"error": "invalid_redirect_uri", "error_description": "no loopback here"}),
            "invalid_redirect_uri: no loopback here",
            2,
        ),
        ((400, {"error": "invalid_redirect_uri"}), "invalid_redirect_uri", 2),
        (
            (403, {"error": "access_denied", "error_description": "members only"}),
            "access_denied: members only",
            1,
        ),
        ((401, b"<html>"), "status 401", 1),
        ((500, b""), "status 500", 1),
        ((201, b"<html>"), "that is not JSON", 1),
        ((201, {"client_secret": "secret-client"}), "missing required field `client_id`", 1),
        ((201, {"client_id": 7}), "Expected `str`, got `int`", 1),
        (t.Unreachable("The line is cut."), "no answer came (The line is cut)", 1),
        (
            (400, {"error": "x", "error_description": "\x1b[2J\r\nSet-Cookie: a=b"}),
            "x: ?[2J??Set-Cookie: a=b",
            1,
        ),
    ],
)
def test_a_registration_that_fails_says_why(answer: Any, words: str, tries: int):
    """`AUR-15`, `AUR-16`: what the authorization server said, and what the user can do.

    The person is not troubled.
    """
    player = Player(world(register=answer))
    with pytest.raises(Unauthorized) as refused:
        player.log_in()
    assert words in str(refused.value)
    assert str(refused.value).isprintable()
    assert refused.value.step == "registration"
    assert refused.value.document == f"{ISSUER}/register"
    assert len(player.registrations) == tries
    assert player.forms() == []
    assert player.kept == {}


@pytest.mark.parametrize(
    "supported, told, method, secret",
    [
        (None, {}, "none", None),
        (["none"], {}, "none", None),
        (
            ["client_secret_basic", "client_secret_post"],
            {"client_secret": "secret-client"},
            "client_secret_basic",
            "secret-client",
        ),
        (
            ["client_secret_post"],
            {"client_secret": "secret-client"},
            "client_secret_post",
            "secret-client",
        ),
        (None, {"client_secret": "secret-client"}, "client_secret_basic", "secret-client"),
        (
            ["none"],
            {"client_secret": "secret-client", "token_endpoint_auth_method": "client_secret_post"},
            "client_secret_post",
            "secret-client",
        ),
        (
            None,
            {"client_secret": "secret-client", "token_endpoint_auth_method": "none"},
            "none",
            "secret-client",
        ),
        (["private_key_jwt"], {}, "none", None),
    ],
)
def test_the_method_that_both_sides_agree_on(
    supported: list[str] | None, told: dict[str, Any], method: str, secret: str | None
):
    """`AUR-12`: what the authorization server answers counts, else what it supports.

    Without a secret where that can be.
    """
    player = Player(
        world(
            metadata=metadata(token_endpoint_auth_methods_supported=supported),
            register=(201, {"client_id": "c", **told}),
        )
    )
    assert player.log_in().method == method
    assert player.kept[ISSUER].client_secret == secret
    (form,) = player.forms()
    assert ("client_secret" in form) is (method == "client_secret_post")
    (sent,) = [request for request in player.requests if request.url == f"{ISSUER}/token"]
    assert ("Authorization" in dict(sent.headers)) is (method == "client_secret_basic")


def test_a_secret_that_ends_is_kept_until_then():
    """RFC 7591, 3.2.1: 0 is never."""
    for told, until in ((2_000_000, 2_000_000.0), (0, None), (None, None)):
        player = Player(
            world(
                register=(
                    201,
                    {"client_id": "c", "client_secret": "s", "client_secret_expires_at": told},
                )
            )
        )
        player.log_in()
        assert player.kept[ISSUER].until == until


@pytest.mark.parametrize("error", ["invalid_client", "unauthorized_client"])
def test_a_client_that_was_forgotten_there_is_forgotten_here(error: str):
    """An authorization server that lost its clients is not asked in vain for ever: the next log-in
    begins with a registration.
    """
    player = Player(world(token=[(401, {"error": error}), token()]), kept={ISSUER: KEPT})
    with pytest.raises(Unauthorized) as refused:
        player.log_in()
    assert refused.value.code == error
    assert player.kept == {}
    assert player.log_in().client_id == "dynamic"


def test_a_client_that_was_given_is_not_forgotten():
    """What the user gave is theirs to repair."""
    player = Player(world(token=(401, {"error": "invalid_client"})), kept={ISSUER: KEPT})
    with pytest.raises(Unauthorized, match="correct its credentials"):
        player.log_in(a_log_in(given=GIVEN))
    assert player.kept == {ISSUER: KEPT}


def test_a_device_registers_without_a_redirect_uri():
    """RFC 8628: there is no browser that comes back."""
    device = {"device_code": "d", "user_code": "u", "verification_uri": f"{ISSUER}/enter"}
    said = metadata(device_authorization_endpoint=f"{ISSUER}/device")
    player = Player(world(metadata=said, **{f"{ISSUER}/device": device}))
    player.log_in(LogIn(identity=ClientIdentity(), device=True))
    (sent,) = player.registrations
    assert sent["grant_types"] == ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"]
    assert "redirect_uris" not in sent
    assert METADATA in player.asked
