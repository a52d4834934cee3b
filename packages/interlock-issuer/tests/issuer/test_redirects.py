"""Redirect URIs: what may be registered, and that nothing but the same matches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_issuer.clients import redirect_uris

FINE = [
    "https://app.example/back",
    "https://app.example",
    "https://app.example:8443/back?a=1",
    "https://[2001:db8::1]/back",
    "http://127.0.0.1/",
    "http://127.0.0.1:53682/callback",
    "http://[::1]:1/",
    "http://localhost",
    "http://localhost:3000/callback?x=y",
]
BAD = {
    "http to somewhere": "http://app.example/back",
    "javascript": "javascript:alert(1)",
    "javascript that looks like https": "javascript://app.example/%0aalert(1)",
    "data": "data:text/html,x",
    "a private scheme": "myapp://back",
    "a scheme turned domain": "com.example.app:/back",
    "capitals": "HTTPS://app.example/",
    "a fragment": "https://app.example/#x",
    "an empty fragment": "https://app.example/#",
    "a user": "https://user@app.example/",
    "a user that looks like a host": "https://app.example@evil.example/",
    "a backslash": "https://app.example\\@evil.example/",
    "a blank": "https://app.example/a b",
    "a line": "https://app.example/\r\n",
    "a tab": "https://app.example/\t",
    "no host": "https:///back",
    "no slashes": "https:app.example",
    "no port": "https://app.example:port/",
    "a port too high": "https://app.example:70000/",
    "a loopback port too high": "http://127.0.0.1:70000/",
    "port zero": "http://127.0.0.1:0/",
    "loopback in octal": "http://0177.0.0.1/",
    "loopback as a number": "http://2130706433/",
    "a name that begins like loopback": "http://127.0.0.1.evil.example/",
    "localhost as a user": "http://localhost@evil.example/",
    "localhost below a domain": "http://localhost.evil.example/",
    "something relative": "/back",
    "nothing": "",
    "too long": "https://app.example/" + "x" * 3000,
    "not ASCII": "https://äpp.example/",
    "a quote": 'https://app.example/"',
}


@pytest.mark.parametrize("uri", FINE)
def test_what_may_be_registered(uri: str) -> None:
    """https anywhere, http on loopback (AUT-11)."""
    assert redirect_uris.problem(uri) == ""
    assert redirect_uris.matches([uri], uri)


@pytest.mark.parametrize("uri", BAD.values(), ids=BAD)
def test_what_may_not(uri: str) -> None:
    """Everything else, and each with a reason."""
    assert redirect_uris.problem(uri)
    assert (
        not redirect_uris.is_loopback(uri)
        or "port" in redirect_uris.problem(uri)
        or "characters" in redirect_uris.problem(uri)
    )


def test_private_schemes_by_configuration() -> None:
    """Only those named, and never as a way around the rest."""
    assert redirect_uris.problem("myapp://back", ["myapp"]) == ""
    assert redirect_uris.problem("other://back", ["myapp"])
    assert redirect_uris.problem("myapp://back#x", ["myapp"])


LOOPBACK = "http://127.0.0.1:53682/callback?a=1"
SAME = [
    "http://127.0.0.1:1/callback?a=1",
    "http://127.0.0.1/callback?a=1",
    "http://127.0.0.1:65535/callback?a=1",
]
DIFFERENT = [
    "http://127.0.0.1:1/callback",
    "http://127.0.0.1:1/callback?a=2",
    "http://127.0.0.1:1/callback/",
    "http://localhost:53682/callback?a=1",
    "http://[::1]:53682/callback?a=1",
    "http://127.0.0.2:53682/callback?a=1",
    "https://127.0.0.1:53682/callback?a=1",
    "http://127.0.0.1:0/callback?a=1",
    "http://127.0.0.1:99999/callback?a=1",
    "http://127.0.0.1:/callback?a=1",
    "http://127.0.0.1:1@evil.example/callback?a=1",
    "http://127.0.0.1:1/callback?a=1#x",
    "http://127.0.0.1:1/callback?a=1\n",
]


@pytest.mark.parametrize("uri", SAME)
def test_a_loopback_port_may_differ(uri: str) -> None:
    """A program takes the port that is free (RFC 8252, 7.3)."""
    assert redirect_uris.matches([LOOPBACK], uri)


@pytest.mark.parametrize("uri", DIFFERENT)
def test_and_nothing_else(uri: str) -> None:
    """Neither host nor path nor query."""
    assert not redirect_uris.matches([LOOPBACK], uri)


_addresses = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["https://", "http://", "HTTPS://", "https:/", ""]),
    st.sampled_from(
        [
            "app.example",
            "APP.example",
            "app.example.",
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost",
            "[::1]",
            "a@b",
            "app.example:443",
        ]
    ),
    st.sampled_from(["", "/", "//", "/a", "/A", "/%61", "/a/", "/a/../a", "/a;b", "\\a"]),
    st.sampled_from(["", "?", "?a", "?a=1", "#", "#a", " ", "\n"]),
)


@given(_addresses | st.text(max_size=20), _addresses | st.text(max_size=20))
def test_no_two_strings_match_but_for_loopback_ports(one: str, other: str) -> None:
    """Whatever they are: who registered one gets nothing at the other (AUF-14)."""
    if redirect_uris.matches([one], other) and one != other:
        assert redirect_uris.is_loopback(one)
        assert redirect_uris.is_loopback(other)
        assert _without_port(one) == _without_port(other)


def _without_port(uri: str) -> str:
    """By another way than the one on trial:
    the digits between a colon and what follows the host."""
    scheme = uri[:7]
    rest = uri[7:]
    end = next((n for n, c in enumerate(rest) if c in "/?"), len(rest))
    host = rest[:end]
    path = rest[end:]
    name, colon, port = host.rpartition(":")
    return scheme + (name if colon and port.isdigit() and not name.endswith(":") else host) + path


@given(
    st.sampled_from(FINE),
    st.dictionaries(
        st.text("abc", min_size=1, max_size=3), st.text(max_size=10), min_size=1, max_size=3
    ),
)
def test_an_answer_stays_at_its_address(uri: str, answer: dict[str, str]) -> None:
    """Whatever the values are: the address is the one registered, and they are behind its question
    mark.
    """
    sent = redirect_uris.with_answer(uri, answer)
    assert sent.startswith(uri)
    assert sent[len(uri)] in "?&"
    assert sent.isascii()
    assert sent.isprintable()
    assert "#" not in sent
