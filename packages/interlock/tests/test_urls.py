"""Signs that a URL is not what it seems: borrowed names, nested hosts, and the end of a host that
says whose it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.untrusted.urls import WELL_KNOWN, dangers, examine, site_of

BORROWED = [
    ("https://accounts.google.com.evil.example/login", "evil.example", "brand"),
    ("https://google.evil.example/", "evil.example", "brand"),
    ("https://login.paypal.secure.evil.example/", "evil.example", "brand"),
    ("https://paypal-login.example/", "paypal-login.example", "brand"),
    ("https://secure-paypal.com/", "secure-paypal.com", "brand"),
    ("https://google.zip/", "google.zip", "brand"),
    ("https://paypa1.com/", "paypa1.com", "brand"),
    ("https://micros0ft-login.net/", "micros0ft-login.net", "brand"),
    ("https://xn--pple-43d.com/", "аpple.com", "brand"),  # a Cyrillic letter
    ("https://google.github.io/", "google.github.io", "brand"),
    ("https://google.io/", "google.io", "brand"),
    ("https://mybank.com.evil.example/", "evil.example", "nested"),
    ("https://www.mybank.com.login.evil.co.uk/", "evil.co.uk", "nested"),
    ("https://user@accounts.google.com.evil.example/", "evil.example", "brand"),
]


@pytest.mark.parametrize("url, site, kind", BORROWED, ids=[case[0] for case in BORROWED])
def test_borrowed_names_are_called_out(url: str, site: str, kind: str) -> None:
    """ELI-26: a name of somebody else in a host is pointed at first, with the end that says whose
    the host is."""
    found = examine(url)
    assert found.site == site
    assert found.dangers[0].kind == kind
    assert site in found.dangers[0].words
    assert dangers(url)[0] == found.dangers[0].words


@pytest.mark.parametrize(
    "url",
    [
        "https://accounts.google.com/o/oauth2/auth?client_id=x",
        "https://www.google.de/",
        "https://www.amazon.co.uk/ap/signin",
        "https://login.microsoftonline.com/common/oauth2",
        "https://github.com/login/oauth/authorize",
        "https://kim.github.io/",
        "https://zoom.us/oauth",
        "https://example.com/google.com/paypal",
        "https://pineapple.example/",
        "https://slackware.example/",
        "https://my-app.vercel.app/callback",
        "https://www.gov.uk/",
        "https://travel.example.org/?next=https://paypal.com",
        "http://localhost:8000/google.com",
    ],
)
def test_ordinary_addresses_have_no_dangers(url: str) -> None:
    """ELI-26: the well-known sites themselves, words that only contain a name, and names beyond the
    host."""
    assert dangers(url) == ()


@pytest.mark.parametrize(
    "host, site",
    [
        ("example.com", "example.com"),
        ("a.b.example.com", "example.com"),
        ("a.bbc.co.uk", "bbc.co.uk"),
        ("a.kim.github.io", "kim.github.io"),
        ("github.io", "github.io"),
        ("files.s3.amazonaws.com", "files.s3.amazonaws.com"),
        ("localhost", "localhost"),
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1"),
    ],
)
def test_the_site_of_a_host(host: str, site: str) -> None:
    """The registered part, with the suffixes that are known."""
    assert site_of(host) == site


def test_a_servers_own_site_is_not_accused() -> None:
    """A company's own host of a well-known kind, named by that company's server."""
    assert examine("https://github.corp.example/x", own="https://mcp.corp.example/").dangers == ()
    assert examine("https://github.corp.example/x").dangers[0].kind == "brand"


@given(
    st.sampled_from(sorted(WELL_KNOWN)),
    st.sampled_from(["evil.example", "evil-site.net", "x.y.evil.co.uk"]),
    st.sampled_from(["{}.com.{}", "www.{}.com.{}", "{}.{}", "{}-login.{}", "login-{}.{}"]),
)
def test_every_well_known_name_is_found_before_another_site(
    name: str, site: str, shape: str
) -> None:
    """ELI-26: whichever way the name is put in front."""
    assert examine(f"https://{shape.format(name, site)}/").dangers[0].kind == "brand"


@given(st.text(max_size=60))
def test_any_text_is_examined(text: str) -> None:
    """Total: what is no URL is said to be none, and its site is the end of its host."""
    found = examine(text)
    assert found.host.endswith(found.site)
    assert dangers(f"https://{text}/") is not None
