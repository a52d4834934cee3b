"""The metadata of a guarded server, at all its places; and which server it is,
where nobody said."""

from __future__ import annotations

from typing import Any

import pytest

from interlock.auth.guard import Guard
from interlock.auth.oauth.addresses import identifies, resource_places
from interlock.auth.oauth.challenges import read_challenges
from interlock.auth.tokens.api_keys import Checked
from interlock.auth.tokens.dpop import ALGORITHMS
from tests.auth.guarded import ISSUER, RESOURCE, Inner, ask, bearer, jwt_guard, token

ROOT = "/.well-known/oauth-protected-resource"


@pytest.mark.parametrize("path", [ROOT, ROOT + "/", ROOT + "/mcp", ROOT + "/mcp/"])
async def test_the_metadata_is_at_all_its_places(path: str) -> None:
    """AU3-01, AU3-03: at the root form and at the form with the path of the server, for everybody,
    from every page.
    """
    inner = Inner()
    app = jwt_guard(name="Files", documentation="https://mcp.example.com/docs")(inner)
    got = await ask(app, "GET", path)
    assert (got.status, got.header("access-control-allow-origin"), got.header("content-type")) == (
        200,
        "*",
        "application/json",
    )
    assert got.json == {
        "resource": RESOURCE,
        "authorization_servers": [ISSUER],
        "scopes_supported": ["use"],
        "bearer_methods_supported": ["header"],
        "resource_name": "Files",
        "resource_documentation": "https://mcp.example.com/docs",
        "dpop_signing_alg_values_supported": list(ALGORITHMS),
    }
    head = await ask(app, "HEAD", path)
    assert (head.status, head.body, head.header("content-length")) == (200, b"", str(len(got.body)))
    allowed = await ask(
        app,
        "OPTIONS",
        path,
        {"Origin": "https://page.example", "Access-Control-Request-Method": "GET"},
    )
    assert (allowed.status, allowed.body, allowed.header("access-control-allow-methods")) == (
        204,
        b"",
        "GET, HEAD",
    )
    assert (await ask(app, "POST", path)).status == 405
    assert inner.scopes == []


async def test_clients_find_it_where_they_look() -> None:
    """AU3-02, AU3-03: the place that a challenge names, and both that a client tries without one,
    have a document about the server.
    """
    app = jwt_guard()(Inner())
    [first, *_] = read_challenges((await ask(app)).challenges[0])
    places = [first.parameters["resource_metadata"], *resource_places(RESOURCE)]
    for place in places:
        got = await ask(app, "GET", place.removeprefix("https://mcp.example.com"))
        assert identifies(got.json["resource"], RESOURCE)


@pytest.mark.parametrize(
    "path",
    [
        ROOT + "/other",
        ROOT + "x",
        ROOT + "/mcp/x",
        "/.well-known/oauth-authorization-server",
        "/.well-known/",
    ],
)
async def test_other_places_are_guarded(path: str) -> None:
    """AUT-17: a place that is not this server's is not answered with its metadata."""
    assert (await ask(jwt_guard()(Inner()), "GET", path)).status == 401


async def test_scopes_of_the_features_are_listed_and_offline_access_never() -> None:
    """AUS-14, AUS-09, SEC-25: the metadata lists all scopes there are.

    A challenge for a first token asks only for what all need.
    """
    guard = jwt_guard()
    guard.learn("/mcp", lambda: ["files:write", "files:read", "offline_access", "use"])
    app = guard(Inner())
    assert (await ask(app, "GET", ROOT)).json["scopes_supported"] == [
        "use",
        "files:read",
        "files:write",
    ]
    assert 'scope="use"' in (await ask(app)).challenges[0]
    own = jwt_guard(scopes_supported=["use", "offline_access", "more"])
    assert (await ask(own(Inner()), "GET", ROOT)).json["scopes_supported"] == ["use", "more"]


async def test_nothing_is_said_of_scopes_where_there_are_none() -> None:
    app = jwt_guard(scopes=[], dpop="off")(Inner())
    assert "scopes_supported" not in (await ask(app, "GET", ROOT)).json
    assert (await ask(app)).challenges == [
        f'Bearer resource_metadata="https://mcp.example.com{ROOT}/mcp"'
    ]


async def test_dpop_is_told_as_it_is() -> None:
    """DPP-04: whether tokens may be bound to a key, or must be."""
    off = await ask(jwt_guard(dpop="off")(Inner()), "GET", ROOT)
    assert not [name for name in off.json if "dpop" in name]
    must = await ask(jwt_guard(dpop="required")(Inner()), "GET", ROOT)
    assert must.json["dpop_bound_access_tokens_required"] is True
    [only] = (await ask(jwt_guard(dpop="required")(Inner()))).challenges
    assert only.startswith("DPoP ")


@pytest.mark.parametrize(
    "resource, root, path, place",
    [
        (RESOURCE, "", "/mcp", f"https://mcp.example.com{ROOT}/mcp"),
        ("https://mcp.example.com", "", "/", f"https://mcp.example.com{ROOT}"),
        ("https://mcp.example.com/", "", "/", f"https://mcp.example.com{ROOT}"),
        (
            "https://example.com/a/mcp",
            "/a",
            "/a/mcp",
            f"https://example.com/a{ROOT}",
        ),  # the root of the host is not ours
        ("https://example.com/a", "/a", "/a/", f"https://example.com/a{ROOT}"),
        ("HTTPS://Example.COM:443/Mcp/", "", "/mcp", f"https://example.com{ROOT}/Mcp"),
    ],
)
async def test_where_the_metadata_is_said_to_be_it_is(
    resource: str, root: str, path: str, place: str
) -> None:
    """AU3-03, AUF-06: also where the app is mounted beneath another, which has the root of the
    host.
    """
    app = jwt_guard(resource=resource)(Inner())
    [first, *_] = read_challenges((await ask(app, "POST", path, root_path=root)).challenges[0])
    assert first.parameters["resource_metadata"] == place
    got = await ask(app, "GET", place.partition(".com")[2], root_path=root)
    assert got.json["resource"] == resource.rstrip("/").replace(
        "HTTPS://Example.COM:443", "https://example.com"
    )


HERE: dict[str, Any] = {"server": ("127.0.0.1", 8000), "scheme": "http"}


async def request(host: str, **changes: Any) -> Any:
    """A request to a server that nobody has told its address."""
    guard = Guard(Checked(lambda _: None, issuers=[ISSUER]))
    return await ask(guard(Inner()), "POST", "/mcp", {"Host": host}, **{**HERE, **changes})


@pytest.mark.parametrize(
    "host, server, resource",
    [
        ("localhost:8000", ("127.0.0.1", 8000), "http://localhost:8000"),
        ("LocalHost:8000", ("127.0.0.1", 8000), "http://localhost:8000"),
        ("127.0.0.1:8000", ("127.0.0.1", 8000), "http://127.0.0.1:8000"),
        ("[::1]:8000", ("::1", 8000), "http://[::1]:8000"),
        ("localhost", ("127.0.0.1", 80), "http://localhost"),
    ],
)
async def test_on_the_same_machine_the_address_is_the_one_that_the_client_uses(
    host: str, server: Any, resource: str
) -> None:
    """AU3-03: so that a server can be tried without being told its address."""
    got = await request(host, server=server)
    assert (got.status, f'resource_metadata="{resource}{ROOT}/mcp"' in got.challenges[0]) == (
        401,
        True,
    )


@pytest.mark.parametrize(
    "host, changes",
    [
        ("mcp.example.com", {}),  # a proxy on this machine, or a page that had its name point here
        ("localhost:9000", {}),  # another server here: its tokens are not ours (AUT-07)
        ("127.0.0.2:8000", {}),
        ("localhost.example.com:8000", {}),
        ("", {}),
        ("localhost:x", {}),
        ("localhost:8000", {"server": ("10.0.0.1", 8000)}),
        ("localhost:8000", {"server": None}),
        ("localhost:8000", {"server": ("testserver", 8000)}),
    ],
)
async def test_elsewhere_somebody_has_to_say_which_server_this_is(host: str, changes: Any) -> None:
    """AUT-07: an address that a request could choose says nothing of whom a token is for."""
    got = await request(host, **changes)
    assert (got.status, got.json["error"]) == (500, "server_error")
    assert "resource=" in got.json["error_description"]


async def test_a_token_for_another_name_of_this_machine_is_not_taken() -> None:
    """AUT-07: the verdict on a token is one for each address, and is not carried from one to the
    other.
    """
    app = jwt_guard(resource=None)(Inner())
    shown = bearer(token(aud="http://localhost:8000/mcp"))
    for host, status in (("localhost:8000", 200), ("127.0.0.1:8000", 401), ("localhost:8000", 200)):
        assert (await ask(app, "POST", "/mcp", {**shown, "Host": host}, **HERE)).status == status
