"""How a client finds out who vouches for whom."""

from __future__ import annotations

from typing import Any

import pytest

from interlock import types as t
from interlock.auth.oauth.challenges import Challenge
from interlock.auth.oauth.discovery import find_metadata, find_resource, find_site
from interlock.auth.oauth.errors import Unauthorized
from interlock.auth.oauth.flow import LogIn, OwnBehalf, still_trusted
from interlock.auth.oauth.members import Grant, Member
from interlock.auth.oauth.registration import ClientIdentity
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

NAMED = "https://mcp.example/elsewhere/metadata"
PAGE = (200, b"<!doctype html><title>Welcome</title>", {"content-type": "text/html"})


def challenged(named: str = NAMED, **more: str) -> Challenge:
    """A challenge that names where the metadata is."""
    return Challenge("bearer", {"resource_metadata": named, **more})


@pytest.mark.parametrize(
    "challenge, answers, found, asked",
    [
        (challenged(), {NAMED: resource()}, NAMED, [NAMED]),
        (challenged(), {PROTECTED: resource()}, PROTECTED, [NAMED, PROTECTED]),
        (
            challenged(),
            {NAMED: t.Unreachable("No."), ROOT: resource()},
            ROOT,
            [NAMED, PROTECTED, ROOT],
        ),
        (challenged(PROTECTED), {ROOT: resource()}, ROOT, [PROTECTED, ROOT]),
        (Challenge("bearer"), {PROTECTED: resource()}, PROTECTED, [PROTECTED]),
        (None, {PROTECTED: resource(), ROOT: resource()}, PROTECTED, [PROTECTED]),
        (None, {ROOT: resource(resource="https://mcp.example")}, ROOT, [PROTECTED, ROOT]),
        (None, {PROTECTED: PAGE, ROOT: resource()}, ROOT, [PROTECTED, ROOT]),
        (None, {PROTECTED: (200, b"[]"), ROOT: resource()}, ROOT, [PROTECTED, ROOT]),
        (None, {PROTECTED: (401, {}), ROOT: resource()}, ROOT, [PROTECTED, ROOT]),
        (None, {PROTECTED: (500, {}), ROOT: resource()}, ROOT, [PROTECTED, ROOT]),
        (None, {PROTECTED: t.Unreachable("No."), ROOT: resource()}, ROOT, [PROTECTED, ROOT]),
        (None, {}, "", [PROTECTED, ROOT]),
        (None, {PROTECTED: PAGE, ROOT: PAGE}, "", [PROTECTED, ROOT]),
        (None, {PROTECTED: (401, {}), ROOT: (403, {})}, "", [PROTECTED, ROOT]),
    ],
)
def test_where_a_servers_metadata_is_found(
    challenge: Challenge | None, answers: dict[str, Any], found: str, asked: list[str]
):
    """`AU3-04`, `AU3-05`, `AU3-06`: what the challenge names first, then by path, then at the root.

    None is the way of 2025-03-26.
    """
    player = Player(answers)
    protected, document = player.play(find_resource(SERVER, challenge))
    assert (document, protected is not None) == (found, found != "")
    assert player.asked == asked
    for request in player.requests:
        assert dict(request.headers) == {
            "Accept": "application/json",
            "MCP-Protocol-Version": "2026-07-28",
        }


@pytest.mark.parametrize(
    "challenge, answers, words, culprit",
    [
        (challenged(), {}, "not available (status 404)", "server"),
        (challenged(), {NAMED: (500, {}), PROTECTED: PAGE}, "not available (status 404)", "server"),
        (challenged(), {NAMED: PAGE}, "that is not JSON", "server"),
        (
            challenged(),
            {NAMED: {"authorization_servers": [ISSUER]}},
            "missing required field `resource`",
            "server",
        ),
        (challenged(), {NAMED: {"resource": 1}}, "Expected `str`, got `int`", "server"),
        (None, {PROTECTED: (503, {}), ROOT: (404, {})}, "not available", "server"),
        (None, {PROTECTED: t.Unreachable("No route to it.")}, "not available", "server"),
        (
            None,
            {PROTECTED: resource(resource="https://other.example/mcp")},
            "the document is about 'https://other.example/mcp'",
            "server",
        ),
        (
            None,
            {PROTECTED: resource(resource="https://mcp.example/mcp/deeper")},
            "the document is about",
            "server",
        ),
        (
            challenged(),
            {NAMED: resource(resource="https://evil.example/mcp")},
            "a `resource` that is https://mcp.example/mcp",
            "server",
        ),
        (
            None,
            {PROTECTED: resource(authorization_servers=[])},
            "names no authorization server",
            "server",
        ),
        (
            None,
            {PROTECTED: resource(authorization_servers=["http://as.example"])},
            "not to be used",
            "server",
        ),
        (
            None,
            {PROTECTED: resource(authorization_servers=["javascript:alert(1)"])},
            "not to be used",
            "server",
        ),
        (
            challenged("javascript:alert(1)"),
            {},
            "resource_metadata is 'javascript:alert(1)', which is not to be used",
            "server",
        ),
        (challenged("http://mcp.example/x"), {}, "not to be used", "server"),
        (challenged("https://user:pw@mcp.example/x"), {}, "not to be used", "server"),
        (challenged("/relative"), {}, "not to be used", "server"),
        (challenged("https://mcp.example/\x1b[2J"), {}, "not to be used", "server"),
    ],
)
def test_what_a_server_says_that_cannot_be_relied_on(
    challenge: Challenge | None, answers: dict[str, Any], words: str, culprit: str
):
    """`AU3-07`, `SEC-13`, `SEC-20`: the step, the document, what was expected, and who has to
    repair it.
    """
    player = Player({METADATA: metadata(), **answers})
    with pytest.raises(Unauthorized) as refused:
        player.play(find_site(SERVER, challenge))
    assert words in str(refused.value)
    assert refused.value.step == "discovery"
    assert refused.value.culprit == culprit
    assert refused.value.document
    assert refused.value.expected
    assert METADATA not in player.asked


def test_one_of_several_authorization_servers():
    """`AU3-08`, `AUR-17`: the first, or one where the client is registered already.

    Or the only one that the user named.
    """
    two = "https://two.example"
    answers = {
        PROTECTED: resource(authorization_servers=[ISSUER, two]), METADATA: metadata(),
        f"{two}/.well-known/oauth-authorization-server": metadata(issuer=two),
    }  # fmt: skip

    def chosen(**options: Any) -> str:
        return Player(answers).play(find_site(SERVER, None, **options)).metadata.issuer

    assert chosen() == ISSUER
    assert chosen(known=[two]) == two
    assert chosen(known=["https://three.example", two, ISSUER]) == ISSUER
    assert chosen(issuer=two) == two
    with pytest.raises(
        Unauthorized, match="the server now trusts https://as.example, https://two.example"
    ) as refused:
        chosen(issuer="https://three.example")
    assert refused.value.culprit == "client"


def test_an_authorization_server_that_the_user_named_must_be_usable_too():
    """`SEC-13`: what the user says is no reason to send anything unprotected."""
    plain = "http://as.example"
    player = Player(elsewhere(plain))
    with pytest.raises(Unauthorized, match="not to be used"):
        player.play(find_site(SERVER, None, issuer=plain))
    assert player.asked == [PROTECTED]


PLACES = {
    "https://as.example": [
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
    ],
    "https://as.example/t/1": [
        "/.well-known/oauth-authorization-server/t/1",
        "/.well-known/openid-configuration/t/1",
        "/t/1/.well-known/openid-configuration",
    ],
}


@pytest.mark.parametrize(
    "missing",
    [(404, {}), (500, {}), PAGE, t.Unreachable("No.")],
    ids=["404", "500", "page", "silence"],
)
@pytest.mark.parametrize(
    "issuer, at", [(issuer, at) for issuer, places in PLACES.items() for at in range(len(places))]
)
def test_where_an_authorization_servers_metadata_is_found(issuer: str, at: int, missing: Any):
    """`AU3-11`, `AU3-12`: each place in its turn, whatever the ones before it answer."""
    places = [f"https://as.example{place}" for place in PLACES[issuer]]
    player = Player(
        {place: missing for place in places[:at]}
        | {place: metadata(issuer=issuer) for place in places[at:]}
    )
    found, document = player.play(find_metadata(issuer))
    assert (found.issuer, document) == (issuer, places[at])
    assert player.asked == places[: at + 1]


def test_where_there_is_no_metadata_each_place_is_told():
    """Every failure says which document was looked for, and why it could not be had."""
    with pytest.raises(Unauthorized) as refused:
        Player({METADATA: PAGE}).play(find_metadata(ISSUER))
    assert (
        f"{METADATA} (a body that is not JSON), {ISSUER}/.well-known/openid-configuration "
        "(status 404)" in str(refused.value)
    )
    assert refused.value.culprit == "authorization server"


@pytest.mark.parametrize(
    "issuer, says",
    [
        ("https://as.example", "https://as.example/"),
        ("https://as.example/", "https://as.example"),
        ("https://as.example", "https://AS.example"),
        ("https://as.example", "https://as.example:443"),
        ("https://as.example", "HTTPS://as.example"),
        ("https://as.example/t/1", "https://as.example/t/1/"),
        ("https://as.example/t/1", "https://as.example/t%2F1"),
        ("https://as.example", "https://honest.example"),
        ("https://as.example", ""),
    ],
)
def test_metadata_of_another_issuer_is_not_used(issuer: str, says: str):
    """`AU3-13`: identical to the letter, for the one may pretend to be the other."""
    places = [f"https://as.example{place}" for place in PLACES[issuer.rstrip("/")]]
    player = Player({place: metadata(issuer=says) for place in places})
    with pytest.raises(Unauthorized, match="exactly") as refused:
        player.play(find_metadata(issuer))
    assert refused.value.document == places[0]
    assert player.asked == places[:1]


@pytest.mark.parametrize("methods", [None, [], ["plain"], ["s256"]])
def test_without_pkce_nothing_is_begun(methods: list[str] | None):
    """`AU3-14`, `AUF-02`: refused where it is not said, unless the user knows better.

    S256 is used then all the same.
    """
    answers = world(metadata=metadata(code_challenge_methods_supported=methods))
    player = Player(answers)
    with pytest.raises(Unauthorized, match="assume_pkce=True") as refused:
        player.log_in()
    assert refused.value.document == METADATA
    assert player.asked == [PROTECTED, METADATA]
    assert player.forms() == []
    knowing = Player(answers)
    knowing.log_in(assume_pkce=True)
    assert knowing.visited["code_challenge_method"] == "S256"


def test_pkce_is_not_asked_of_ways_without_a_code():
    """`AU3-14` protects codes.

    A program on its own behalf, and a code for another device, have none that travels through a
    browser.
    """
    answers = world(
        metadata=metadata(
            code_challenge_methods_supported=None, device_authorization_endpoint=f"{ISSUER}/device"
        )
    )
    member = Member(issuer=ISSUER, client_id="c", client_secret="s")
    assert Player(answers).log_in(OwnBehalf(member=member)).access_token == "secret-access"
    device = {"device_code": "d", "user_code": "u", "verification_uri": f"{ISSUER}/enter"}
    player = Player({**answers, f"{ISSUER}/device": device})
    assert (
        player.log_in(LogIn(identity=ClientIdentity(given=member), device=True)).access_token
        == "secret-access"
    )


LEGACY = "https://mcp.example/.well-known/oauth-authorization-server"


def test_a_server_that_is_its_own_authorization_server():
    """`AU2-02`, `AU2-03`, `AU2-04`, `AU2-07`: no metadata of its own, so its origin has that of an
    authorization server (2025-03-26).
    """
    own = {
        name: value.replace(ISSUER, "https://mcp.example") if isinstance(value, str) else value
        for name, value in metadata().items()
    }
    player = Player(
        {
            LEGACY: own,
            "https://mcp.example/register": {"client_id": "c"},
            "https://mcp.example/token": token(),
        }
    )
    grant = player.log_in()
    assert player.asked == [PROTECTED, ROOT, LEGACY]
    assert all(
        ("MCP-Protocol-Version", "2026-07-28") in request.headers
        for request in player.requests
        if request.method == "GET"
    )
    assert (
        grant.resource
        == SERVER
        == player.visited["resource"]
        == player.forms("https://mcp.example/token")[0]["resource"]
    )
    assert grant.issuer == "https://mcp.example"
    assert player.visited["code_challenge_method"] == "S256"


@pytest.mark.parametrize(
    "answer", [(404, {}), PAGE, t.Unreachable("No.")], ids=["404", "page", "silence"]
)
def test_a_server_without_any_metadata(answer: Any):
    """`AU2-05`, `AU2-07`: the endpoints are where 2025-03-26 puts them, at the root, and PKCE is
    done all the same.
    """
    player = Player(
        {
            LEGACY: answer,
            "https://mcp.example/register": {"client_id": "c"},
            "https://mcp.example/token": token(),
        }
    )
    grant = player.log_in()
    assert grant.token_endpoint == "https://mcp.example/token"
    assert player.visited["code_challenge_method"] == "S256"
    assert [request.url for request in player.requests][-2:] == [
        "https://mcp.example/register",
        "https://mcp.example/token",
    ]


def test_a_server_that_wants_something_else_than_oauth():
    """A server that wants a key of its own looks like one of 2025-03-26 until nobody registers: the
    words say what it may be.
    """
    with pytest.raises(Unauthorized, match="It may require an API key or a token") as refused:
        Player({}).log_in()
    assert refused.value.step == "registration"
    assert refused.value.culprit == "server"


@pytest.mark.parametrize(
    "says", ["https://other.example", "https://mcp.example.evil.example", "http://mcp.example"]
)
def test_a_legacy_server_may_not_be_another(says: str):
    """`AU3-13` holds for the older way too."""
    with pytest.raises(Unauthorized, match="exactly 'https://mcp.example'"):
        Player({LEGACY: metadata(issuer=says)}).log_in()


def test_a_client_of_a_named_issuer_does_not_go_the_older_way():
    """`AUR-17`, `AUR-19`: credentials of one authorization server are not shown to another."""
    given = Member(issuer=ISSUER, client_id="c", client_secret="secret-client")
    player = Player({LEGACY: metadata(issuer="https://mcp.example")})
    with pytest.raises(Unauthorized, match="names no authorization server"):
        player.log_in(LogIn(identity=ClientIdentity(given=given)))
    assert player.forms("https://mcp.example/token") == []


@pytest.mark.parametrize(
    "server",
    ["http://mcp.example/mcp", "ftp://localhost/mcp", "ftp://mcp.example", "ws://localhost/"],
)
def test_a_token_does_not_travel_unprotected(server: str):
    """`SEC-13`, `AUT-04`: nothing is asked, found or sent for a server without https, unless it is
    this machine.
    """
    player = Player({})
    with pytest.raises(Unauthorized, match="must not be sent unencrypted"):
        player.log_in(server=server)
    assert player.steps == []


@pytest.mark.parametrize("server", ["HTTPS://MCP.example/mcp", "https://mcp.example:443/mcp"])
def test_a_server_may_be_spelled_otherwise(server: str):
    """`AUF-06`: upper case in scheme and host is the same server."""
    assert Player(world()).log_in(server=server).resource == SERVER


def test_a_development_server_on_this_machine():
    """`SEC-13`: http will do on loopback, for the server and for its authorization server."""
    server = "http://127.0.0.1:8000/mcp"
    issuer = "http://localhost:9000"
    answers = {
        "http://127.0.0.1:8000/.well-known/oauth-protected-resource/mcp": {"resource": server,
            "authorization_servers": [issuer]},
        f"{issuer}/.well-known/oauth-authorization-server": {
            "issuer": issuer, "authorization_endpoint": f"{issuer}/authorize",
            "token_endpoint": f"{issuer}/token",
            "registration_endpoint": f"{issuer}/register",
            "code_challenge_methods_supported": ["S256"],
        },
        f"{issuer}/register": {"client_id": "c"}, f"{issuer}/token": token(),
    }  # fmt: skip
    assert Player(answers).log_in(server=server).issuer == issuer


@pytest.mark.parametrize(
    "name", ["authorization_endpoint", "token_endpoint", "registration_endpoint"]
)
@pytest.mark.parametrize(
    "url",
    ["http://as.example/x", "javascript:alert(1)", "https://u:p@as.example/", "file:///x", ""],
)
def test_endpoints_are_https(name: str, url: str):
    """`SEC-13`, `SEC-20`: nothing is opened and nothing is sent."""
    player = Player(world(metadata=metadata(**{name: url})))
    with pytest.raises(Unauthorized) as refused:
        player.log_in()
    assert refused.value.document == METADATA
    assert name in str(refused.value)
    assert player.forms() == player.forms(url) == []


@pytest.mark.parametrize(
    "answers, trusted",
    [
        ({PROTECTED: resource()}, True),
        ({PROTECTED: resource(authorization_servers=["https://new.example", ISSUER])}, True),
        ({PROTECTED: resource(authorization_servers=["https://new.example"])}, False),
        ({PROTECTED: resource(resource="https://mcp.example")}, False),
        ({}, True),
    ],
)
def test_whether_an_authorization_server_is_still_trusted(answers: dict[str, Any], trusted: bool):
    """`AUT-09`, `AUR-18`: a token is refreshed only where the server still names the one that gave
    it.
    """
    grant = Grant(
        resource=SERVER,
        issuer=ISSUER,
        client_id="c",
        token_endpoint=f"{ISSUER}/token",
        access_token="a",
    )
    assert Player(answers).play(still_trusted(SERVER, None, grant)) is trusted
