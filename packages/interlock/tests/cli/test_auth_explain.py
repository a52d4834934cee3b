"""`interlock auth explain`: a real site that is made wrong in every way, and what a person and a
machine are told of it.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator

import pytest

from tests.cli.conftest import Command
from tests.cli.identity import AUTHORITY, RESOURCE, Identity, as_json, page
from tests.cli.sites import Site

GOOD = """\
The authorization of {root}/mcp

1  A request without a token
   ok      POST server/discover: refused with 401, as it should be
   ok      WWW-Authenticate: Bearer \
resource_metadata="{root}/.well-known/oauth-protected-resource/mcp", scope="shop:read"
           it needs the scopes shop:read

2  The server's metadata (protected resource)
   ok      found at {root}/.well-known/oauth-protected-resource/mcp
   ok      it is about {root}/mcp
   ok      it trusts {root}/login

3  The authorization server {root}/login
   ok      its metadata was found at {root}/.well-known/oauth-authorization-server/login
   ok      `issuer` is {root}/login, exactly as expected
   ok      `authorization_endpoint` is {root}/authorize
   ok      `token_endpoint` is {root}/token
   ok      it protects codes with PKCE (S256)
   ok      it identifies itself in its answers (`iss`, RFC 9207)

4  What a log-in would do
   ok      it supports dynamic client registration (RFC 7591); not tried, because that would leave \
a client behind
           clients authenticate by none, client_secret_basic
   ok      it would request shop:read
   ok      it issues refresh tokens: a log-in lasts
           it does not bind tokens to a key (DPoP)
           a log-in without a browser here is possible (--device)

Nothing prevents: interlock auth login {root}/mcp
"""


@pytest.fixture
def site() -> Iterator[Identity]:
    """A guarded server and its authorization server."""
    made = Identity()
    yield made
    made.close()


def test_a_good_server(interlock: Command, site: Identity) -> None:
    """The whole page, to the letter; nothing but documents was asked for, and nobody was
    registered.
    """
    result = interlock("auth", "explain", site.url)
    assert result.stdout == GOOD.format(root=site.root)
    assert (result.exit_code, result.stderr) == (0, "")
    assert [(method, path) for method, path, _, _ in site.asked] == [
        ("POST", "/mcp"),
        ("GET", RESOURCE),
        ("GET", AUTHORITY),
    ]


def test_an_open_server(interlock: Command) -> None:
    """Nothing is wrong with a server that lets anybody in."""
    open_one = Site()
    try:
        result = interlock("auth", "explain", open_one.url)
    finally:
        open_one.close()
    assert result.exit_code == 0
    assert "the server accepts requests without a token" in result.stdout
    assert result.stdout.endswith("No log-in is needed.\n")


def no_words(site: Identity) -> None:
    """Nothing says who vouches for anybody."""
    site.challenge = "Bearer"
    site.resource = None


def authority(**members: object) -> Callable[[Identity], None]:
    """Other members of the authorization server's metadata; None takes one away."""

    def apply(site: Identity) -> None:
        assert site.authority is not None
        site.authority.update(
            {
                name: str(value).format(root=site.root) if isinstance(value, str) else value
                for name, value in members.items()
            }
        )
        for name in [name for name, value in members.items() if value is None]:
            del site.authority[name]

    return apply


def resource(**members: object) -> Callable[[Identity], None]:
    """Other members of the server's metadata."""
    return lambda site: None if site.resource is None else site.resource.update(members)


def elsewhere(site: Identity) -> None:
    """The authorization server is at a port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    resource(authorization_servers=[f"http://127.0.0.1:{port}"])(site)


FAULTS: dict[str, tuple[Callable[[Identity], object], str, str]] = {
    "PRM missing": (no_words, "server", "the server does not name its authorization server"),
    "PRM is a page": (
        lambda site: site.answers.update({RESOURCE: page()}),
        "server",
        "200 with text/html that is not a JSON object",
    ),
    "PRM moved": (
        lambda site: site.answers.update(
            {RESOURCE: (302, {"Location": "https://far.example/"}, b"")}
        ),
        "server",
        "302, a redirect to https://far.example/, which is not followed",
    ),
    "foreign resource": (
        resource(resource="https://other.example/mcp"),
        "server",
        "the document is about https://other.example/mcp",
    ),
    "no authorization server": (
        resource(authorization_servers=[]),
        "server",
        "it names no authorization server",
    ),
    "authorization server by http": (
        resource(authorization_servers=["http://far.example"]),
        "server",
        "which is not to be used",
    ),
    "authorization server away": (elsewhere, "network", "it cannot be reached"),
    "authorization server mute": (
        lambda site: setattr(site, "authority", None),
        "authorization server",
        "does not name its endpoints",
    ),
    "issuer mismatch": (
        authority(issuer="https://other.example"),
        "authorization server",
        "`issuer` is https://other.example",
    ),
    "issuer with a slash": (
        authority(issuer="{root}/login/"),
        "server",
        "in `authorization_servers`",
    ),
    "no PKCE": (
        authority(code_challenge_methods_supported=None),
        "authorization server",
        "does not declare PKCE",
    ),
    "no registration": (
        authority(registration_endpoint=None),
        "client",
        "it does not register clients dynamically",
    ),
    "http endpoint": (
        authority(token_endpoint="http://far.example/t"),
        "authorization server",
        "token_endpoint is 'http://far.example/t'",
    ),
    "no endpoint": (
        authority(authorization_endpoint=None),
        "authorization server",
        "authorization_endpoint is missing",
    ),
    "no JSON": (
        lambda site: site.answers.update({AUTHORITY: page()}),
        "authorization server",
        "200 with text/html that is not a JSON object",
    ),
    "out of shape": (
        authority(token_endpoint=5),
        "authorization server",
        "`token_endpoint` is 5, which does not fit",
    ),
    "403 to strangers": (
        lambda site: site.answers.update({"/mcp": as_json({}, 403)}),
        "server",
        "refused with 403",
    ),
    "no endpoint of MCP": (
        lambda site: site.answers.update({"/mcp": page(404)}),
        "person",
        "no MCP endpoint here",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault(interlock: Command, site: Identity, name: str) -> None:
    """Exit code 1; what, what instead, and who has to repair it, for people and for machines
    (`AU3-07`, `AU3-13`, `AU3-14`, `SEC-13`).
    """
    make, culprit, words = FAULTS[name]
    make(site)
    shown = interlock("auth", "explain", site.url)
    assert (shown.exit_code, shown.stderr) == (1, "")
    assert words in shown.stdout
    assert "   wrong   " in shown.stdout
    assert "           to repair  by " in shown.stdout
    data = json.loads(interlock("auth", "explain", site.url, "--json").stdout)
    wrong = [finding for finding in data["findings"] if finding["level"] == "wrong"]
    assert data["wrong"] == len(wrong) > 0
    assert culprit in data["culprits"]
    assert all(finding["expected"] and finding["culprit"] for finding in wrong)
    assert {path for _, path, _, _ in site.asked} & {"/register", "/token", "/authorize"} == set()


def test_it_goes_on_past_the_first_fault(interlock: Command, site: Identity) -> None:
    """All that is wrong is said at once, and in the end once more, by who has to repair it."""
    resource(resource="https://other.example/mcp")(site)
    authority(
        issuer="https://third.example",
        code_challenge_methods_supported=None,
        registration_endpoint=None,
    )(site)
    lines = interlock("auth", "explain", site.url).stdout.splitlines()
    assert lines[lines.index("4 things are wrong.") :] == [
        "4 things are wrong.",
        "   For the operator of the server:",
        "     - the document is about https://other.example/mcp",
        "   For the operator of the authorization server:",
        "     - `issuer` is https://third.example",
        "     - its metadata does not declare PKCE",
        "   For you, with options of this command:",
        "     - it does not register clients dynamically",
    ]


def test_what_the_client_says_of_itself_counts(interlock: Command, site: Identity) -> None:
    """Who is registered by hand lacks nothing."""
    authority(registration_endpoint=None)(site)
    assert interlock("auth", "explain", site.url, "--client-id", "abc").exit_code == 0
    assert (
        interlock(
            "auth", "explain", site.url, "--client-id", "abc", "--issuer", "https://other.example"
        ).exit_code
        == 1
    )
    assert interlock("auth", "explain", site.url, "--document", "https://me.example").exit_code == 2
    assert interlock("auth", "explain", "shop").exit_code == 2


def test_nobody_is_there(interlock: Command) -> None:
    """Then there is one thing to say."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    result = interlock("auth", "explain", f"http://127.0.0.1:{port}/mcp")
    assert result.exit_code == 1
    assert "no answer:" in result.stdout
    assert "One thing is wrong." in result.stdout
