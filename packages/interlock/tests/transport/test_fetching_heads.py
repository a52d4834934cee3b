"""The pure parts of the HTTP client: URLs taken apart, heads that say no more than was meant, and
which proxy leads where.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.http11.fetch import Request
from interlock.http11.headers import Origin, head, target
from interlock.http11.proxies import Proxies


def lines(
    url: str,
    *headers: tuple[str, str],
    method: str = "GET",
    body: bytes = b"",
    proxies: Proxies | None = None,
) -> list[str]:
    found = head(Request(method, url, headers, body), target(url, proxies or Proxies(), "a"))
    text = found.decode("latin-1")
    assert text.endswith("\r\n\r\n")
    return text[:-4].split("\r\n")


@pytest.mark.parametrize(
    "url, place, first, host",
    [
        ("http://a.example", Origin("a.example", 80, False), "/", "a.example"),
        ("HTTPS://A.Example:443/x", Origin("a.example", 443, True), "/x", "a.example"),
        (
            "http://a.example:443/x?y=z&q=%20#f",
            Origin("a.example", 443, False),
            "/x?y=z&q=%20",
            "a.example:443",
        ),
        ("http://a.example?y", Origin("a.example", 80, False), "/?y", "a.example"),
        ("http://a.example./", Origin("a.example", 80, False), "/", "a.example"),
        ("http://[::1]:8000/mcp", Origin("::1", 8000, False), "/mcp", "[::1]:8000"),
        ("https://[2001:DB8::1]", Origin("2001:db8::1", 443, True), "/", "[2001:db8::1]"),
        ("http://[fe80::1%25eth0]/", Origin("fe80::1%eth0", 80, False), "/", "[fe80::1]"),
        (
            "http://bücher.example/ü?ü",
            Origin("xn--bcher-kva.example", 80, False),
            "/%C3%BC?%C3%BC",
            "xn--bcher-kva.example",
        ),
        ("http://under_score:1/{a}|b", Origin("under_score", 1, False), "/{a}|b", "under_score:1"),
    ],
)
def test_where_a_url_leads(url: str, place: Origin, first: str, host: str):
    """Host and port, IPv6 and names of other alphabets too; the fragment stays at home."""
    assert target(url, Proxies(), "a").place == place
    assert lines(url) == [
        f"GET {first} HTTP/1.1",
        f"Host: {host}",
        "Accept-Encoding: identity",
        "User-Agent: a",
    ]


@pytest.mark.parametrize(
    "url",
    ["", "/mcp", "a.example/mcp", "ftp://a.example/", "http://", "http:///x", "http://:80/",
        "http://a:b/", "http://a:99999/", "http://a:0/",
     "http://a b/", "http://a/ b", "http://a/\r\nX: y", "http://a\n/", "http://[::1/",
     "http://[zz]/", "http://a%0d%0ab/", "http://a%2fb/", "ws://a/",
     "http://-\u3002\u3002/"],
)  # fmt: skip
def test_urls_that_lead_nowhere(url: str):
    """Each is a ValueError, before anything is sent."""
    with pytest.raises(ValueError, match="URL is needed|name of a host"):
        target(url, Proxies(), "a")


def test_a_url_that_is_refused_keeps_its_secrets():
    """Error messages end in logs."""
    with pytest.raises(ValueError, match="is needed") as caught:
        target("http://ann:secret@a.example:bad/x?token=secret", Proxies(), "a")
    assert "secret" not in str(caught.value)
    assert "a.example" in str(caught.value)


@pytest.mark.parametrize(
    "name, value",
    [("A", "b\r\nC: d"), ("A", "b\n"), ("A", "\r"), ("A", "b\0"), ("A", "\x7f"), ("A", "b\u0100"),
        ("A", "\u2028"), ("A\r\nB", "c"), ("A B", "c"),
     ("A:", "c"), ("", "c"), ("Ä", "c"), ("A\n", "c"), ("Content-Length", "3"),
         ("transfer-encoding", "chunked"), ("Connection", "close"), ("Upgrade", "x"),
     ("Expect", "100-continue")],
)  # fmt: skip
def test_headers_that_would_say_more(name: str, value: str):
    """A line's end in a name or a value, and what only the client itself may say: ValueError."""
    for _ in range(2):  # nothing is remembered as sound
        with pytest.raises(ValueError, match="header"):
            lines("http://a.example/", (name, value))


def test_methods_that_would_say_more():
    """The first line is one line."""
    for method in ("GET /x HTTP/1.1\r\nA: b", "", "A B", "G\0"):
        with pytest.raises(ValueError, match="not a method"):
            lines("http://a.example/", method=method)


names = st.text("abcXYZ-_!~09", min_size=1, max_size=8).filter(
    lambda name: name.lower() not in ("te",)
)
values = st.text(st.characters(codec="latin-1", exclude_categories=["Cc"]), max_size=12) | st.text(
    "a\t ", max_size=4
)


@given(headers=st.lists(st.tuples(names, values), max_size=5), body=st.binary(max_size=3))
def test_every_sound_header_goes_out_as_it_is(headers: list[tuple[str, str]], body: bytes):
    """In order, with names as they were written, one line each."""
    found = lines("http://a.example/", *headers, method="POST", body=body)
    assert found[4:] == [
        *(f"{name}: {value}" for name, value in headers),
        f"Content-Length: {len(body)}",
    ]


@given(name=st.text(max_size=6), value=st.text(max_size=6))
def test_no_header_becomes_two(name: str, value: str):
    """Whatever it is made of: one line more, or a ValueError."""
    try:
        found = lines("http://a.example/", (name, value))
    except ValueError:
        return
    assert len(found) == len(lines("http://a.example/")) + (
        name.lower() not in ("host", "user-agent", "accept-encoding")
    )
    assert f"{name}: {value}" in found
    assert not re.search(r"[\r\n\0]", name + value)


def test_a_length_is_named_where_there_is_a_body_or_could_be_one():
    """POST without a body says so; GET and DELETE say nothing."""
    assert lines("http://a/", method="POST")[-1] == "Content-Length: 0"
    assert lines("http://a/", method="DELETE")[-1].startswith("User-Agent")
    assert lines("http://a/", method="DELETE", body=b"x")[-1] == "Content-Length: 1"


ENVIRONMENTS = [
    ({}, "http", None),
    ({"HTTP_PROXY": "http://p:1"}, "http", "http://p:1"),
    ({"HTTP_PROXY": "http://p:1"}, "https", None),
    ({"HTTPS_PROXY": "p:1"}, "https", "http://p:1"),
    ({"https_proxy": "http://low:1", "HTTPS_PROXY": "http://up:1"}, "https", "http://low:1"),
    ({"ALL_PROXY": "http://all:1", "HTTP_PROXY": "http://p:1"}, "https", "http://all:1"),
    ({"all_proxy": "http://all:1", "HTTP_PROXY": "http://p:1"}, "http", "http://p:1"),
    ({"REQUEST_METHOD": "GET", "HTTP_PROXY": "http://evil:1"}, "http", None),
    ({"REQUEST_METHOD": "GET", "http_proxy": "http://p:1"}, "http", "http://p:1"),
    ({"REQUEST_METHOD": "GET", "HTTPS_PROXY": "http://p:1"}, "https", "http://p:1"),
    ({"HTTP_PROXY": ""}, "http", None),
]


@pytest.mark.parametrize("environ, scheme, proxy", ENVIRONMENTS)
def test_the_proxy_that_the_environment_names(
    environ: dict[str, str], scheme: str, proxy: str | None
):
    """Lower case first; HTTP_PROXY never in a CGI program, where a stranger's header would set
    it.
    """
    assert Proxies.from_environment(environ).toward(scheme, "site.example", 80) == proxy


@pytest.mark.parametrize(
    "but_for, host, port, direct",
    [
        ("", "a.example", 80, False),
        ("a.example", "a.example", 80, True),
        ("A.Example", "a.example.", 80, True),
        ("a.example", "sub.a.example", 80, True),
        ("a.example", "aa.example", 80, False),
        (".a.example", "sub.a.example", 80, True),
        ("*.a.example", "sub.a.example", 80, True),
        ("a.example:81", "a.example", 80, False),
        ("a.example:80", "a.example", 80, True),
        ("x, a.example ,y", "a.example", 80, True),
        ("x a.example", "a.example", 80, True),
        ("*", "a.example", 80, True),
        ("10.0.0.0/8", "10.1.2.3", 80, True),
        ("10.0.0.0/8", "11.1.2.3", 80, False),
        ("10.0.0.0/8", "a.example", 80, False),
        ("10.1.2.3", "10.1.2.3", 80, True),
        ("10.1.2.3:81", "10.1.2.3", 80, False),
        ("2.3", "10.1.2.3", 80, False),
        ("2001:db8::/32", "2001:db8::1", 80, True),
        ("[2001:db8::1]:80", "2001:db8:0::1", 80, True),
        ("2001:db8::1", "2001:db8::1", 80, True),
        ("bad/mask", "10.1.2.3", 80, False),
        ("", "localhost", 80, True),
        ("", "127.0.0.9", 80, True),
        ("", "::1", 80, True),
        (",, .", "a.example", 80, False),
    ],
)
def test_hosts_that_no_proxy_is_asked_for(but_for: str, host: str, port: int, direct: bool):
    """Names with all below them, addresses, networks, ports; and what is on this machine,
    always.
    """
    assert Proxies("http://p:1", "http://p:1", but_for).toward("http", host, port) == (
        None if direct else "http://p:1"
    )


def test_what_is_no_proxy_is_refused_when_it_is_needed():
    """SOCKS is not spoken; the words name no password."""
    with pytest.raises(
        ValueError, match="a proxy's http or https URL is needed, not 'socks5://p:1'"
    ):
        target("http://a.example/", Proxies("socks5://me:secret@p:1"), "a")
    assert target("http://localhost/", Proxies("socks5://p:1"), "a").place == Origin(
        "localhost", 80, False
    )
