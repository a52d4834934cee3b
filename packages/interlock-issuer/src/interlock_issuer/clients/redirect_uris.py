"""Redirect URIs: which may be registered, and which match (RFC 9700, 2.1; RFC 8252, 7.3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from urllib.parse import urlencode, urlsplit

LONGEST = 2048
_LOOPBACK = re.compile(
    r"(?P<host>http://(?:127\.0\.0\.1|\[::1\]|localhost))(?P<port>:[0-9]{1,5})?(?P<rest>(?:[/?].*)?)",
    re.DOTALL,
)
# What an address may be made of (RFC 3986, 2), so that no browser reads it in another way than we
# do: no backslash, blank or quote.
_PLAIN = re.compile(r"[A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=%]+")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9\-.]*[A-Za-z0-9])?")
_SCHEME = re.compile(r"[a-z][a-z0-9+.\-]*")


def is_loopback(uri: str) -> bool:
    """Whether a redirect URI leads to a program on this machine, which has another port each time
    (RFC 8252, 7.3).
    """
    return _LOOPBACK.fullmatch(uri) is not None


def problem(uri: str, schemes: Sequence[str] = ()) -> str:
    """What is wrong with a URI that is to be registered; nothing where it is fine.

    https, or http on a loopback address (AUT-11), or one of `schemes`: private ones that the
    configuration allows (RFC 8252, 7.1).
    """
    if len(uri) > LONGEST:
        return f"it is longer than {LONGEST} characters"
    if not _PLAIN.fullmatch(uri):
        return "it has a fragment, or characters that a URI cannot have"
    loopback = _LOOPBACK.fullmatch(uri)
    if loopback is not None:
        return (
            "" if int((loopback["port"] or ":1")[1:]) in range(1, 65536) else "its port is invalid"
        )
    scheme, colon, rest = uri.partition(":")
    if colon and scheme in schemes and _SCHEME.fullmatch(scheme):
        return ""
    if scheme != "https" or not rest.startswith("//"):
        return "it must be https, or http on 127.0.0.1, [::1] or localhost"
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError:
        return "it is not an address"
    if "@" in parts.netloc:
        return "it contains a user name"
    if (
        parts.hostname is None
        or port == 0
        or not (_HOST.fullmatch(parts.hostname) or parts.netloc.startswith("["))
    ):
        return "its host is invalid"
    return ""


def matches(registered: Iterable[str], uri: str) -> bool:
    """Whether a URI is one of those registered: the same string, but for the port on a loopback
    address (AUT-11, AUF-14).
    """
    return any(uri == known or _but_for_the_port(known, uri) for known in registered)


def _but_for_the_port(known: str, uri: str) -> bool:
    one = _LOOPBACK.fullmatch(known)
    other = _LOOPBACK.fullmatch(uri)
    if one is None or other is None or problem(uri):
        return False
    return (one["host"], one["rest"]) == (other["host"], other["rest"])


def with_answer(uri: str, answer: dict[str, str]) -> str:
    """A redirect URI with the parameters of an authorization response behind those that it has
    already.
    """
    return f"{uri}{'&' if '?' in uri else '?'}{urlencode(answer)}"
