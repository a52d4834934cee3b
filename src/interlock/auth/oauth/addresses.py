"""The addresses of authorization: what identifies a server, where its documents are, and which may be used at all."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from .failures import Culprit, Unauthorized

_PORTS = {"http": 80, "https": 443}
_ODD = frozenset(' "<>\\^`{|}')  # characters that no URL has as they are


def canonical(url: str) -> str:
    """The URI that identifies a server: scheme and host in lower case, no default port, fragment or bare slash (`AUF-04` to `AUF-06`)."""
    parts = urlsplit(url)
    path = "" if parts.path == "/" else parts.path
    return f"{origin(url)}{path}" + (f"?{parts.query}" if parts.query else "")


def origin(url: str) -> str:
    """Scheme, host and port of a URL, the port left out where it is the default. Raises ValueError."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _PORTS.get(parts.scheme)) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


def identifies(resource: str, server: str) -> bool:
    """Whether a resource identifier is that of a server: the server's address itself, or one that the server is beneath (`AU3-07`)."""
    try:
        one, other = urlsplit(resource), urlsplit(server)
        if one.fragment or origin(resource) != origin(server):
            return False
    except ValueError:
        return False
    above = one.path.rstrip("/")
    return one.query in ("", other.query) and f"{other.path.rstrip('/')}/".startswith(f"{above}/")


def resource_places(server: str) -> list[str]:
    """Where the metadata of a protected server may be, in the order in which it is looked for (`AU3-05`)."""
    root = f"{origin(server)}/.well-known/oauth-protected-resource"
    parts = urlsplit(server)
    place = parts.path.rstrip("/") + (f"?{parts.query}" if parts.query else "")  # RFC 9728, 3.1: the query goes along
    return [f"{root}{place}", root] if place else [root]


def metadata_places(issuer: str) -> list[str]:
    """Where the metadata of an authorization server may be, in the order in which it is looked for (`AU3-11`, `AU3-12`)."""
    root, path = origin(issuer), urlsplit(issuer).path.rstrip("/")
    if not path:
        return [f"{root}/.well-known/oauth-authorization-server", f"{root}/.well-known/openid-configuration"]
    return [
        f"{root}/.well-known/oauth-authorization-server{path}",
        f"{root}/.well-known/openid-configuration{path}",
        f"{root}{path}/.well-known/openid-configuration",
    ]


def is_loopback(url: str) -> bool:
    """Whether a URL leads to this machine, by its host's name or literal address."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def usable(url: str | None, *, what: str, step: str, document: str, culprit: Culprit = "authorization server") -> str:
    """An address that a document names. Raises Unauthorized unless it is https, or http to this machine (`SEC-13`, `SEC-20`, `SEC-21`)."""
    if not url:
        raise Unauthorized(step, f"there is no {what}", document=document, expected=f"{what} with an https address", culprit=culprit)
    try:
        parts = urlsplit(url)
        known = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(url))
        plain = url.isascii() and url.isprintable() and not _ODD & set(url) and parts.username is None and not parts.fragment
        good = known and plain and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        shown = "".join(c if c.isprintable() else "?" for c in url[:200])
        raise Unauthorized(
            step,
            f"{what} is {shown!r}, which is not to be used",
            document=document,
            expected="an https address (http only to this machine)",
            culprit=culprit,
        )
    return url
