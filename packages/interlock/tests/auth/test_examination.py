"""The examination of a server's authorization: every fault is found, said to whom it belongs, and
does not hide the next one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from interlock import types as t
from interlock.auth.diagnose import Finding, Report, examine
from interlock.auth.diagnose.issuers import Who
from interlock.auth.oauth.steps import Got, SendRequest

URL = "https://shop.example/v1/mcp"
ISSUER = "https://login.example/shop"
NAMED, ROOTED = (
    f"https://shop.example/.well-known/oauth-protected-resource{path}" for path in ("/v1/mcp", "")
)
OAUTH = "https://login.example/.well-known/oauth-authorization-server/shop"
OPENID = "https://login.example/.well-known/openid-configuration/shop"
APPENDED = f"{ISSUER}/.well-known/openid-configuration"
OLDER = "https://shop.example/.well-known/oauth-authorization-server"
AWAY = "nobody listens there."


class World:
    """What stands at which address: `mcp` is what the endpoint answers to each method.

    None is a place that cannot be reached.
    """

    def __init__(self) -> None:
        self.url = URL
        self.challenge = f'Bearer resource_metadata="{NAMED}", scope="read"'
        self.mcp: dict[str, Got | None] = {}
        self.resource: dict[str, Any] = {
            "resource": URL,
            "authorization_servers": [ISSUER],
            "scopes_supported": ["read", "write"],
        }
        self.authority: dict[str, Any] = {
            "issuer": ISSUER,
            "authorization_endpoint": f"{ISSUER}/authorize",
            "token_endpoint": f"{ISSUER}/token",
            "registration_endpoint": f"{ISSUER}/register",
            "revocation_endpoint": f"{ISSUER}/revoke",
            "code_challenge_methods_supported": ["S256"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "authorization_response_iss_parameter_supported": True,
        }
        self.places: dict[str, Got | None] = {}
        self.documents: dict[str, dict[str, Any]] = {NAMED: self.resource, OAUTH: self.authority}
        self.asked: list[str] = []

    def answer(self, step: SendRequest) -> Got:
        """What comes of a request. Raises Unreachable."""
        request = step.request
        assert not any(name.lower() == "authorization" for name, _ in request.headers)
        self.asked.append(f"{request.method} {request.url}")
        if request.url == self.url:
            method = json.loads(request.body)["method"] if request.body else request.method
            got = self.mcp.get(
                method,
                Got(401, {"www-authenticate": self.challenge} if self.challenge else {}, b""),
            )
        elif request.url in self.places:
            got = self.places[request.url]
        elif request.url in self.documents:
            got = Got(
                200,
                {"content-type": "application/json"},
                json.dumps(self.documents[request.url]).encode(),
            )
        else:
            got = Got(404, {}, b"")
        if got is None:
            raise t.Unreachable(AWAY)
        return got

    def examined(self, **given: Any) -> Report:
        """The report on this world."""
        report = Report()
        walk = examine(self.url, report, **given)
        came: Got | None = None
        failed: Exception | None = None
        while True:
            try:
                step = walk.throw(failed) if failed is not None else walk.send(came)
            except StopIteration:
                return report
            assert isinstance(step, SendRequest)
            came = None
            failed = None
            try:
                came = self.answer(step)
            except t.Unreachable as bad:
                failed = bad


def test_a_good_server_has_nothing_wrong_and_nothing_remarkable() -> None:
    """Four parts, each line good or plain.

    Nothing is asked for but documents, with no token anywhere.
    """
    world = World()
    report = world.examined()
    assert {finding.level for finding in report.findings} == {"ok", "info"}
    assert list(dict.fromkeys(finding.part for finding in report.findings)) == [
        "A request without a token",
        "The server's metadata (protected resource)",
        f"The authorization server {ISSUER}",
        "What a log-in would do",
    ]
    assert world.asked == [f"POST {URL}", f"GET {NAMED}", f"GET {OAUTH}"]


def test_an_open_server_needs_nothing() -> None:
    """No fault where there is no protection.

    Who has said so already may be asked in an older way, and leaves no session behind.
    """
    world = World()
    world.mcp = {method: Got(200, {}, b"{}") for method in ("server/discover", "tools/list")}
    world.documents = {}
    assert not world.examined().wrong
    world.mcp = {
        "server/discover": Got(400, {}, b""),
        "initialize": Got(200, {"mcp-session-id": "s"}, b"{}"),
        "tools/list": Got(400, {}, b"not initialized"),
        "DELETE": Got(200, {}, b""),
    }
    world.asked.clear()
    assert not world.examined().wrong
    assert f"DELETE {URL}" in world.asked
    world.mcp["tools/list"] = world.mcp["DELETE"] = None
    assert not world.examined().wrong


@pytest.mark.parametrize(
    "first",
    [{"server/discover": Got(200, {}, b"{}")}, {"server/discover": Got(400, {}, b"")}],
    ids=["new", "old"],
)
def test_a_server_that_refuses_only_what_comes_second(first: dict[str, Got | None]) -> None:
    """It tells anybody who it is, and wants a token for the rest."""
    world = World()
    world.mcp = first
    report = world.examined()
    assert not report.wrong
    assert report.findings[0].words.endswith("refused with 401, as it should be")


def change(document: str, **members: Any) -> Callable[[World], None]:
    """A world whose document has other members; None takes one away."""

    def apply(world: World) -> None:
        target: dict[str, Any] = getattr(world, document)
        target.update(members)
        for name in [name for name, value in members.items() if value is None]:
            del target[name]

    return apply


def place(url: str, got: Got | None) -> Callable[[World], None]:
    """A world with something else at a place."""

    def apply(world: World) -> None:
        world.places[url] = got

    return apply


def says(status: int, **headers: str) -> Callable[[World], None]:
    """A world whose endpoint answers everything so."""
    got = Got(status, headers, b"")
    return lambda world: world.mcp.update(
        {method: got for method in ("server/discover", "initialize", "tools/list")}
    )


def nothing(world: World) -> None:
    """No metadata anywhere."""
    world.documents.pop(NAMED)
    world.challenge = "Bearer"


def moved(url: str, resource: str) -> Callable[[World], None]:
    """The server at another address, saying of itself that it is `resource`."""

    def apply(world: World) -> None:
        world.url = url
        world.resource["resource"] = resource

    return apply


HTML = Got(200, {"content-type": "text/html"}, b"<!doctype html>")
FAULTS: dict[str, tuple[Callable[[World], None], str, str]] = {
    "unreachable": (lambda world: world.mcp.update({"server/discover": None}), "network", (
        "no answer: nobody "
        "listens"
    )),
    "403": (says(403), "server", "refused with 403"),
    "404": (says(404), "person", "no MCP endpoint here"),
    "redirect": (says(307, location="https://shop.example/mcp/"), "person",
        "a redirect to https://shop.example/mcp/"),
    "500": (says(500), "server", ": 500"),
    "http": (moved("http://shop.example/v1/mcp", URL), "server", "not encrypted in transit"),
    "no metadata": (nothing, "server", "does not name its authorization server"),
    "named and missing": (lambda world: world.documents.pop(NAMED) and None, "server", (
        "does not name its authorization server"
    )),
    "named by http": (
        lambda world: setattr(world, "challenge",
            'Bearer resource_metadata="http://shop.example/prm"'),
        "server",
        "resource_metadata is 'http://shop.example/prm', which is not to be used",
    ),
    "metadata away": (place(NAMED, None), "server", "does not name its authorization server"),
    "metadata HTML": (place(NAMED, HTML), "server", "does not name its authorization server"),
    "metadata a list": (
        place(NAMED, Got(200, {}, b"[]")), "server", "does not name its authorization server"),
    "foreign": (change("resource", resource="https://other.example/mcp"), "server",
        "about https://other.example/mcp"),
    "below": (change("resource", resource=f"{URL}/deeper"), "server", f"about {URL}/deeper"),
    "no resource": (change("resource", resource=None), "server", "`resource` is missing"),
    "resource a number": (change("resource", resource=7), "server", (
        "`resource` is 7, which does not "
        "fit"
    )),
    "no authorization server": (change("resource", authorization_servers=[]), "server", (
        "names no authorization "
        "server"
    )),
    "authorization servers missing": (change("resource", authorization_servers=None), "server", (
        "names no authorization "
        "server"
    )),
    "authorization servers a text": (change("resource", authorization_servers=ISSUER), "server", (
        "`authorization_servers` is "
        ""
    )),
    "authorization server by http": (
        change("resource", authorization_servers=["http://login.example/shop"]),
        "server",
        "the authorization server is 'http://login.example/shop', which is not to be used",
    ),
    "authorization server away": (
        lambda world: world.places.update({OAUTH: None, OPENID: None, APPENDED: None}),
        "network",
        "it cannot be reached",
    ),
    "authorization server mute": (lambda world: world.documents.pop(OAUTH) and None,
        "authorization server", (
        "does not name its endpoints"
    )),
    "issuer mismatch": (change("authority", issuer="https://other.example"), "authorization server",
        "`issuer` is https://other.example"),
    "issuer with a slash": (change("authority", issuer=f"{ISSUER}/"), "server",
        f"`issuer` is {ISSUER}/"),
    "no issuer": (change("authority", issuer=None), "authorization server", "`issuer` is missing"),
    "no PKCE": (change("authority", code_challenge_methods_supported=None), "authorization server",
        (
        "does not declare PKCE"
    )),
    "plain PKCE": (change("authority", code_challenge_methods_supported=["plain"]),
        "authorization server", "PKCE with plain only"),
    "no token endpoint": (change("authority", token_endpoint=None), "authorization server",
        "token_endpoint is missing"),
    "authorization by http": (
        change("authority", authorization_endpoint="http://login.example/a"),
        "authorization server",
        "authorization_endpoint is 'http://login.example/a', which is not to be used",
    ),
    "registration by javascript": (
        change("authority", registration_endpoint="javascript:alert(1)"),
        "authorization server",
        "registration_endpoint is 'javascript:alert(1)'",
    ),
    "no codes": (change("authority", response_types_supported=["token"]), "authorization server",
        "it does not issue authorization codes"),
    "no code grant": (change("authority", grant_types_supported=["implicit"]),
        "authorization server", "does not support authorization_code"),
    "no registration": (change("authority", registration_endpoint=None), "client", (
        "it does not register clients dynamically"
    )),
    "documents only": (
        change("authority", registration_endpoint=None, client_id_metadata_document_supported=True),
        "client",
        "it accepts clients only by their metadata documents",
    ),
    "strange methods": (
        change("authority", token_endpoint_auth_methods_supported=["tls_client_auth"]),
        "client",
        "clients must authenticate by tls_client_auth",
    ),
    "secrets as proofs": (
        change("authority", dpop_signing_alg_values_supported=["HS256"]),
        "authorization server",
        "it accepts proofs signed with HS256",
    ),
    "bound by nobody": (
        change("resource", dpop_bound_access_tokens_required=True),
        "authorization server",
        "accepts only tokens that are bound to a key (DPoP), and the authorization "
        "server issues none",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_found_and_is_somebodys(name: str) -> None:
    """What is wrong, what was expected, and who has to repair it (`AU3-01` to `AU3-15`, `AUF-02`,
    `AUR-04`, `AUT-06`, `SEC-13`).
    """
    make, culprit, words = FAULTS[name]
    world = World()
    make(world)
    found = [finding for finding in world.examined().wrong if words in finding.words]
    assert [finding.culprit for finding in found] == [culprit], world.examined().findings
    assert found[0].expected


REMARKS: dict[str, tuple[Callable[[World], None], str, str]] = {
    "no challenge": (lambda world: setattr(world, "challenge", ""), "server",
        "it has no WWW-Authenticate"),
    "basic": (lambda world: setattr(world, "challenge", 'Basic realm="x"'), "server",
        "asks for basic"),
    "no metadata named": (lambda world: setattr(world, "challenge", "Bearer"), "server", (
        "does not give the address of the metadata"
    )),
    "an error": (
        lambda world: setattr(world, "challenge", (
            f'Bearer resource_metadata="{NAMED}", '
            'error="invalid_token"'
        )),
        "server",
        "says invalid_token, although no token was sent",
    ),
    "offline": (
        lambda world: setattr(world, "challenge", (
            f'Bearer resource_metadata="{NAMED}", '
            'scope="offline_access"'
        )),
        "server",
        "asks for offline_access",
    ),
    "offline listed": (change("resource", scopes_supported=["offline_access"]), "server", (
        "`scopes_supported` has "
        "offline_access"
    )),
    "no header": (change("resource", bearer_methods_supported=["body"]), "server", (
        "does not accept tokens in the header"
    )),
    "no iss": (change("authority", authorization_response_iss_parameter_supported=None),
        "authorization server", "does not identify itself"),
    "no refresh": (change("authority", grant_types_supported=["authorization_code"]),
        "authorization server", "no refresh tokens"),
    "scopes unknown": (change("authority", scopes_supported=["other"]), "authorization server",
        "does not list read"),
}  # fmt: skip


@pytest.mark.parametrize("name", REMARKS)
def test_what_could_be_better_keeps_nobody_out(name: str) -> None:
    """A remark, and nothing wrong (`AU3-03`, `AUS-14`, `AUF-13`)."""
    make, culprit, words = REMARKS[name]
    world = World()
    make(world)
    report = world.examined()
    assert not report.wrong
    (found,) = [finding for finding in report.findings if finding.level == "remark"]
    assert words in found.words
    assert found.culprit == culprit


def test_one_fault_does_not_hide_the_next() -> None:
    """Whoever repairs them sees all of them at once."""
    world = World()
    world.resource["resource"] = "https://other.example/mcp"
    world.authority.update(
        issuer="https://third.example", token_endpoint="http://login.example/token"
    )
    del (
        world.authority["registration_endpoint"],
        world.authority["code_challenge_methods_supported"],
    )
    assert [finding.culprit for finding in world.examined().wrong] == [
        "server",
        *["authorization server"] * 3,
        "client",
    ]


@pytest.mark.parametrize(
    "url, resource, words",
    [
        (URL, URL.replace("https", "http"), "configure its public address"),
        (URL, "http://127.0.0.1:8000/mcp", "configure its public address"),
        (
            URL,
            "https://shop.example/v2/mcp",
            "If https://shop.example/v2/mcp is the server's correct address",
        ),
        (URL, "https://other.example/mcp", "A token for another server"),
    ],
)
def test_a_foreign_resource_is_explained(url: str, resource: str, words: str) -> None:
    """The usual reasons are told apart (`AU3-07`)."""
    world = World()
    world.resource["resource"] = resource
    (found,) = world.examined().wrong
    assert words in found.advice


def test_the_places_are_those_of_a_log_in() -> None:
    """In their order, and the first with a document ends the search (`AU3-05`, `AU3-11`)."""
    world = World()
    world.documents = {ROOTED: world.resource, APPENDED: world.authority}
    report = world.examined()
    assert world.asked == [
        f"POST {URL}",
        *[f"GET {url}" for url in (NAMED, ROOTED, OAUTH, OPENID, APPENDED)],
    ]
    assert [
        finding.level for finding in report.findings if finding.level in ("remark", "wrong")
    ] == ["remark"]  # the named place


def test_a_server_of_2025_03_26_is_its_own_authorization_server() -> None:
    """Without metadata of its own, and with some at its origin (`AU2-01` to `AU2-03`)."""
    world = World()
    nothing(world)
    base = "https://shop.example"
    world.documents[OLDER] = {**world.authority, "issuer": f"{base}/"}
    report = world.examined()
    assert not report.wrong
    assert any(
        "its own authorization server, as in 2025-03-26" in finding.words
        for finding in report.findings
    )


def test_other_authorization_servers_are_looked_at_without_blame() -> None:
    """What is wrong with one that would not be used is a remark.

    The client's own issuer is the one that is used (`AU3-08`).
    """
    world = World()
    broken = "https://broken.example"
    world.resource["authorization_servers"] = [ISSUER, broken]
    report = world.examined()
    assert not report.wrong
    assert [finding.part for finding in report.findings if finding.level == "remark"] == [
        f"The authorization server {broken}"
    ]
    assert world.examined(issuer=broken).wrong
    (stranger,) = world.examined(issuer="https://old.example").wrong[:1]
    assert (stranger.culprit, stranger.expected) == (
        "client",
        "https://old.example, where this client is registered",
    )


@pytest.mark.parametrize(
    "who, words",
    [
        (Who(client_id="abc"), "the client is registered, as abc"),
        (
            Who(document="https://me.example/client"),
            "identified by its metadata document, https://me.example/client",
        ),
    ],
)
def test_a_client_that_is_known_needs_no_registration(who: Who, words: str) -> None:
    """By its id, or by its document (`AUR-03`, `AUR-04`, `AUR-11`)."""
    world = World()
    del world.authority["registration_endpoint"]
    world.authority["client_id_metadata_document_supported"] = True
    report = world.examined(who=who)
    assert not report.wrong
    assert any(words in finding.words for finding in report.findings if finding.level == "ok")


def test_what_strangers_say_cannot_steer_a_terminal() -> None:
    """Nor drown the rest."""
    world = World()
    world.resource["resource"] = "https://x\x1b[2J\u202e.example/" + "a" * 5000
    received: list[Finding] = []
    report = Report(received.append)
    assert not report.findings
    (found,) = world.examined().wrong
    assert found.words.isprintable()
    assert len(found.words) < 400
