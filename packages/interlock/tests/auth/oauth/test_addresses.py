"""The addresses of authorization: what identifies a server, where its documents are, and which are
used at all.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.auth.oauth.addresses import (
    canonical,
    checked_url,
    identifies,
    is_loopback,
    is_loopback_host,
    metadata_places,
    plain_resource,
    plain_url,
    resource_places,
    same_resource,
    usable,
)
from interlock.auth.oauth.errors import Unauthorized

SERVER = "https://mcp.example.com/mcp"


@pytest.mark.parametrize(
    "url, identifier",
    [
        ("https://mcp.example.com/mcp", "https://mcp.example.com/mcp"),
        ("https://mcp.example.com", "https://mcp.example.com"),
        ("https://mcp.example.com/", "https://mcp.example.com"),
        ("https://mcp.example.com:8443", "https://mcp.example.com:8443"),
        ("https://mcp.example.com:443/x", "https://mcp.example.com/x"),
        ("http://localhost:80/x", "http://localhost/x"),
        ("HTTPS://MCP.Example.COM/Mcp", "https://mcp.example.com/Mcp"),
        ("https://mcp.example.com/mcp#part", "https://mcp.example.com/mcp"),
        ("https://mcp.example.com/mcp/", "https://mcp.example.com/mcp/"),
        ("https://mcp.example.com/mcp?tenant=a", "https://mcp.example.com/mcp?tenant=a"),
        ("https://user:secret@mcp.example.com/mcp", "https://mcp.example.com/mcp"),
        ("http://[::1]:8000/mcp", "http://[::1]:8000/mcp"),
    ],
)
def test_the_identifier_of_a_server(url: str, identifier: str):
    """`AUF-04`, `AUF-05`, `AUF-06`: absolute, most specific, lower case where case says nothing, no
    fragment, no bare slash.
    """
    assert canonical(url) == identifier
    assert canonical(identifier) == identifier


@pytest.mark.parametrize(
    "resource, server, same",
    [
        ("https://h.example/mcp", "https://h.example/mcp", True),
        ("https://h.example/mcp/", "https://h.example/mcp", True),
        ("https://h.example/mcp", "https://h.example/mcp/", True),
        ("HTTPS://H.example:443/mcp", "https://h.example/mcp", True),
        ("https://h.example", "https://h.example/mcp", True),
        ("https://h.example/", "https://h.example/a/mcp", True),
        ("https://h.example/a", "https://h.example/a/mcp", True),
        ("https://h.example/mcp", "https://h.example/mcp?tenant=a", True),
        ("https://h.example/mcp?tenant=a", "https://h.example/mcp?tenant=a", True),
        ("https://h.example/mcp?tenant=b", "https://h.example/mcp?tenant=a", False),
        ("https://h.example/mc", "https://h.example/mcp", False),
        ("https://h.example/MCP", "https://h.example/mcp", False),
        ("https://h.example/mcp/more", "https://h.example/mcp", False),
        ("https://h.example/mcp#x", "https://h.example/mcp", False),
        ("http://h.example/mcp", "https://h.example/mcp", False),
        ("https://h.example:8443/mcp", "https://h.example/mcp", False),
        ("https://evil.example/mcp", "https://h.example/mcp", False),
        ("https://h.example.evil.example/mcp", "https://h.example/mcp", False),
        ("https://h.example@evil.example/mcp", "https://h.example/mcp", False),
        ("https://[::1/mcp", "https://h.example/mcp", False),
        ("https://h.example:x/mcp", "https://h.example/mcp", False),
        ("mcp", "https://h.example/mcp", False),
        ("", "https://h.example/mcp", False),
    ],
)
def test_whether_a_document_is_about_a_server(resource: str, server: str, same: bool):
    """`AU3-07`: the server itself, or what it is beneath; nobody else's."""
    assert identifies(resource, server) is same


@pytest.mark.parametrize(
    "url, plain",
    [
        ("HTTPS://Example.COM:443/a%2db%2f?q#f", "https://example.com/a-b%2F"),
        ("http://[::1]:80", "http://[::1]/"),
        ("http://localhost:8000/mcp", "http://localhost:8000/mcp"),
        ("ftp://example.com/", None),
        ("https://user@example.com/", None),
        ("https://example.com:99999/", None),
        ("/mcp", None),
        ("", None),
    ],
)
def test_plain_urls(url: str, plain: str | None) -> None:
    """RFC 3986, 6.2.2: one form of all that are alike, and none for what is no address."""
    assert plain_url(url) == plain


@pytest.mark.parametrize(
    "one, other, same",
    [
        (SERVER, SERVER + "/", True),
        (SERVER, "HTTPS://MCP.EXAMPLE.COM:443/mcp", True),
        ("https://mcp.example.com", "https://mcp.example.com/", True),
        (SERVER, "https://mcp.example.com/MCP", False),
        (SERVER, "https://mcp.example.com", False),
        (SERVER, SERVER + "?a=1", False),
        (SERVER, "https://mcp.example.com.evil.example/mcp", False),
        (SERVER + "#a", SERVER + "#a", False),
        ("nonsense", "nonsense", False),
    ],
)
def test_resources_are_compared_in_their_canonical_form(one: str, other: str, same: bool) -> None:
    """AUF-06: the scheme and the host in any case, the default port, a trailing slash.

    Nothing else is forgiven.
    """
    assert same_resource(one, other) is same
    assert plain_resource(SERVER + "/") == SERVER


@pytest.mark.parametrize(
    "server, places",
    [
        ("https://h.example", ["https://h.example/.well-known/oauth-protected-resource"]),
        ("https://h.example/", ["https://h.example/.well-known/oauth-protected-resource"]),
        (
            "https://h.example:8443/a/mcp/",
            ["https://h.example:8443/.well-known/oauth-protected-resource/a/mcp",
                "https://h.example:8443/.well-known/oauth-protected-resource"],
        ),
        (
            "https://h.example/mcp?tenant=a",
            ["https://h.example/.well-known/oauth-protected-resource/mcp?tenant=a",
                "https://h.example/.well-known/oauth-protected-resource"],
        ),
    ],
)  # fmt: skip
def test_where_a_servers_metadata_may_be(server: str, places: list[str]):
    """`AU3-05`, and RFC 9728, 3.1: path and query stand behind the well-known part.

    The root comes last.
    """
    assert resource_places(server) == places


@pytest.mark.parametrize(
    "issuer, places",
    [
        (
            "https://as.example",
            ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"],
        ),
        (
            "https://as.example/",
            ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"],
        ),
        (
            "https://as.example/tenant1",
            [
                "/.well-known/oauth-authorization-server/tenant1",
                "/.well-known/openid-configuration/tenant1",
                "/tenant1/.well-known/openid-configuration",
            ],
        ),
        (
            "https://as.example/a/b/",
            [
                "/.well-known/oauth-authorization-server/a/b",
                "/.well-known/openid-configuration/a/b",
                "/a/b/.well-known/openid-configuration",
            ],
        ),
    ],
)
def test_where_an_authorization_servers_metadata_may_be(issuer: str, places: list[str]):
    """`AU3-11`, `AU3-12`: the order is the specification's."""
    assert metadata_places(issuer) == [f"https://as.example{place}" for place in places]


@pytest.mark.parametrize(
    "url, local",
    [
        ("http://localhost/", True),
        ("http://LOCALHOST:1/", True),
        ("http://a.localhost/", True),
        ("http://127.0.0.1/", True),
        ("http://127.9.9.9/", True),
        ("http://[::1]/", True),
        ("http://localhost.example/", False),
        ("http://notlocalhost/", False),
        ("http://127.0.0.1.example/", False),
        ("http://localhost@evil.example/", False),
        ("http://2130706433/", False),
        ("http://127.1/", False),
        ("http://0.0.0.0/", False),
        ("http://[::ffff:127.0.0.1]/", False),
        ("http://[::1%25eth0]/", False),
        ("http://[::1/", False),
        ("", False),
    ],
)
def test_what_is_this_machine(url: str, local: bool):
    """Names and literal addresses of loopback, and none of the odd spellings of an address."""
    assert is_loopback(url) is local


@pytest.mark.parametrize(
    "host, local",
    [("localhost", True), ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True),
        ("a.localhost", False), ("::ffff:127.0.0.1", False), ("", False)],
)  # fmt: skip
def test_what_is_this_machine_to_everybody(host: str, local: bool):
    """`SEC-01`: where the host is resolved by others, as that of an issuer is, a name below
    localhost may be anything.
    """
    assert is_loopback_host(host) is local


USABLE = [
    "https://as.example/token",
    "https://as.example:8443/a?b=c%20d",
    "http://127.0.0.1:1/",
    "http://localhost/x",
    "HTTPS://AS.example/",
]
UNUSABLE = [
    "", "http://as.example/", "ftp://as.example/", "ftp://localhost/", "javascript:alert(1)",
    "JaVaScRiPt:alert(1)", "data:text/html,x",
    "file:///etc/passwd", "vbscript:x", "//as.example/", "/token", "as.example", "https://",
    "https:///x", "https://:443/",
    "https://user@as.example/", "https://user:pw@as.example/", "https://as.example/#f",
    "https://as.example:0/", "https://as.example:x/",
    "https://as.example:99999/", "https://as.example/\n", " https://as.example/",
    "java\nscript:alert(1)", "https://as.example/\\x",
    "http://127.0.0.1:80@as.example/keys", "http://localhost:1@as.example/",
    "https://as.example/\"x", "https://ás.example/", "https://as.example/\x1b[2J", "https://[::1/",
    "http://10.0.0.1/", "http://169.254.169.254/",
]  # fmt: skip


@pytest.mark.parametrize("url", USABLE)
def test_addresses_that_are_used(url: str):
    """`SEC-13`: https, or http to this machine."""
    assert usable(url, what="token_endpoint", step="discovery", document="d") == url
    assert checked_url(url, what="a token endpoint") == url


@pytest.mark.parametrize("url", [*UNUSABLE, None])
def test_addresses_that_are_not(url: str | None):
    """`SEC-13`, `SEC-20`, `SEC-21`, `SEC-22`: a short list of what is, not of what is not."""
    with pytest.raises(Unauthorized) as refused:
        usable(url, what="token_endpoint", step="discovery", document="https://as.example/doc")
    assert refused.value.step == "discovery"
    assert refused.value.document == "https://as.example/doc"
    assert "token_endpoint" in str(refused.value)
    assert str(refused.value).isprintable()
    if url is not None:
        with pytest.raises(
            ValueError, match="cannot be a token endpoint: that is an https address"
        ):
            checked_url(url, what="a token endpoint")


@given(st.one_of(st.text(max_size=40), st.builds("https://{}".format, st.text(max_size=30))))
def test_no_address_is_an_error_of_another_kind(url: str):
    """Whatever a document says: it is used or it is refused, and what is used has no odd character
    in it.
    """
    try:
        used = usable(url, what="x", step="y", document="z")
    except Unauthorized as refused:
        assert str(refused).isprintable()
    else:
        assert used.isascii()
        assert used.isprintable()
        assert used.lower().startswith("https://") or is_loopback(used)
    assert identifies(url, "https://mcp.example/mcp") in (True, False)
