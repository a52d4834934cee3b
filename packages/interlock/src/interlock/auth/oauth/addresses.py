"""URLs of OAuth: resource identifiers, well-known addresses, and which URLs may be used."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from ...addresses import is_here
from .errors import Culprit, Unauthorized

_PORTS = {"http": 80, "https": 443}
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ODD = frozenset(' "<>\\^`{|}')  # characters that a URL contains only in escaped form


def canonical(url: str) -> str:
    """The URI that identifies a server: scheme and host in lower case, no default port, fragment or
    bare slash (`AUF-04` to `AUF-06`).
    """
    parts = urlsplit(url)
    path = "" if parts.path == "/" else parts.path
    return f"{origin(url)}{path}" + (f"?{parts.query}" if parts.query else "")


def origin(url: str) -> str:
    """Scheme, host and port of a URL, without the default port. Raises ValueError."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _PORTS.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


def plain_url(url: str) -> str | None:
    """A URL in the normal form for comparisons (RFC 3986, 6.2.2), without query and fragment; None
    if it is not a URL.
    """
    try:
        parts = urlsplit(url)
        root = origin(url)
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname or parts.username is not None:
        return None
    return f"{root}{_ESCAPE.sub(_plain_escape, parts.path) or '/'}"


def _plain_escape(escape: re.Match[str]) -> str:
    character = chr(int(escape[1], 16))
    return character if character in _UNRESERVED else escape[0].upper()


def plain_resource(url: str) -> str | None:
    """The identifier of an MCP server in the normal form for comparisons: scheme and host in lower
    case, no trailing slash; None if it is not a valid identifier.

    The query is part of it; a fragment is not allowed (2026-07-28, "Authorization", "Canonical
    Server URI").
    """
    if "#" in url:
        return None
    plain = plain_url(url)
    _, mark, query = url.partition("?")
    return None if plain is None else plain.rstrip("/") + (f"?{query}" if mark else "")


def same_resource(one: str, other: str) -> bool:
    """Whether two identifiers name the same MCP server: scheme and host in any case, with or
    without a trailing slash (RFC 8707, 2).
    """
    return plain_resource(one) == plain_resource(other) is not None


def identifies(resource: str, server: str) -> bool:
    """Whether a resource identifier covers a server: it is the server's URL, or a parent of it
    (`AU3-07`).
    """
    try:
        one = urlsplit(resource)
        other = urlsplit(server)
        if one.fragment or origin(resource) != origin(server):
            return False
    except ValueError:
        return False
    above = one.path.rstrip("/")
    return one.query in ("", other.query) and f"{other.path.rstrip('/')}/".startswith(f"{above}/")


def resource_places(server: str) -> list[str]:
    """The possible URLs of a protected server's metadata, in the order in which they are tried
    (`AU3-05`).
    """
    root = f"{origin(server)}/.well-known/oauth-protected-resource"
    parts = urlsplit(server)
    place = parts.path.rstrip("/") + (
        f"?{parts.query}" if parts.query else ""
    )  # RFC 9728, 3.1: the query is kept
    return [f"{root}{place}", root] if place else [root]


def metadata_places(issuer: str) -> list[str]:
    """The possible URLs of an authorization server's metadata, in the order in which they are tried
    (`AU3-11`, `AU3-12`).
    """
    root = origin(issuer)
    path = urlsplit(issuer).path.rstrip("/")
    if not path:
        return [
            f"{root}/.well-known/oauth-authorization-server",
            f"{root}/.well-known/openid-configuration",
        ]
    return [
        f"{root}/.well-known/oauth-authorization-server{path}",
        f"{root}/.well-known/openid-configuration{path}",
        f"{root}{path}/.well-known/openid-configuration",
    ]


def is_loopback(url: str) -> bool:
    """Whether a URL points to this machine, by the name or literal address of its host."""
    try:
        return is_here(urlsplit(url).hostname or "")
    except ValueError:
        return False


def is_loopback_host(host: str) -> bool:
    """Whether a host is "localhost" or a loopback address.

    A name below "localhost" is not enough if another program resolves it.
    """
    return is_here(host) and not host.endswith(".localhost")


def is_protected(url: str) -> bool:
    """Whether requests to a URL cannot be read on the network: by https, or by http on this
    machine.
    """
    scheme = url.partition(":")[0].lower()
    return scheme == "https" or (scheme == "http" and is_loopback(url))


def is_usable(url: str) -> bool:
    """Whether a URL is protected, and in a notation that all parsers read alike (`SEC-13`,
    `SEC-20`, `SEC-21`).
    """
    try:
        parts = urlsplit(url)
        plain = (
            url.isascii()
            and url.isprintable()
            and not _ODD & set(url)
            and parts.username is None
            and not parts.fragment
        )
        return is_protected(url) and plain and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def checked_url(url: str, *, what: str) -> str:
    """Return a configured URL. Raises ValueError unless it is usable."""
    if not is_usable(url):
        raise ValueError(
            f"{url!r} cannot be {what}: that is an https address, or http to this machine"
        )
    return url


def usable(
    url: str | None,
    *,
    what: str,
    step: str,
    document: str,
    culprit: Culprit = "authorization server",
) -> str:
    """Return a URL from a document. Raises Unauthorized unless it is usable."""
    if not url:
        raise Unauthorized(
            step,
            f"{what} is missing",
            document=document,
            expected=f"{what}, an https address",
            culprit=culprit,
        )
    if not is_usable(url):
        shown = "".join(c if c.isprintable() else "?" for c in url[:200])
        raise Unauthorized(
            step,
            f"{what} is {shown!r}, which is not to be used",
            document=document,
            expected="an https address (http only to this machine)",
            culprit=culprit,
        )
    return url
