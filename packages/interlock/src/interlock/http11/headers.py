"""Request headers as bytes: the origin and target of a URL, without credentials or anything else
that must not be sent.
"""

from __future__ import annotations

import base64
import re
from urllib.parse import SplitResult, quote, unquote, urlsplit

from msgspec import Struct

from ..redaction.urls import url_without_secrets
from ..wire.http import is_numeric
from .fetch import Request
from .proxies import Proxies

_PORTS = {"http": 80, "https": 443}
_NO_URL = re.compile(r"[\x00-\x20\x7f]")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_BRACKETS = re.compile(
    r"([^@]*@)?\[[^\[\]@]*:[^\[\]@]*\](:\d*)?"
)  # brackets contain only an IPv6 address, and only a user and a port may surround them
_OURS = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_DEFAULTS = frozenset(
    {"accept-encoding", "authorization", "host", "proxy-authorization", "user-agent"}
)
_MOST_NAMES = 1000

_names: dict[str, str] = {}  # a cache of valid header names, with their lower case
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


class Origin(Struct, frozen=True):
    """The destination of a connection: a host and port, with or without TLS, possibly through a
    proxy.
    """

    host: str
    port: int
    secure: bool
    through: Origin | None = None
    pass_word: str | None = None
    """The value of `Proxy-Authorization`, if this is a proxy that requires one."""

    def __str__(self) -> str:
        """The beginning of a URL, without user and password."""
        port = "" if self.port == (443 if self.secure else 80) else f":{self.port}"
        return f"{'https' if self.secure else 'http'}://{bracketed(self.host)}{port}"


class Target(Struct, frozen=True):
    """A parsed URL: the origin to connect to, the site that is requested, and the first lines of
    each request.
    """

    place: Origin
    site: str
    first: str
    """The request line after the method, and `Host`."""
    defaults: dict[str, str]
    """Default header lines, by name in lower case. They are sent unless the request has a header of
    the name.
    """
    whole: str
    """All of these lines, for a request without such headers of its own."""


def target(url: str, proxies: Proxies, agent: str) -> Target:
    """Parse a URL. Raises ValueError unless it is an http or https URL."""
    parts = _split(url, "an http or https URL", ("http", "https"))
    secure = parts.scheme == "https"
    site = Origin(_host(parts), parts.port or _PORTS[parts.scheme], secure)
    proxy = proxies.toward(parts.scheme, site.host, site.port)
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~?-._[]|^\\`{}\"<>") + (
        f"?{quote(parts.query, safe=_QUERY)}" if parts.query else ""
    )
    place = site
    defaults = {
        "user-agent": f"User-Agent: {agent}\r\n",
        "accept-encoding": "Accept-Encoding: identity\r\n",
    }
    if proxy is not None:
        through = _proxy(proxy)
        if secure:
            place = Origin(site.host, site.port, True, through)
        else:
            place = through
            path = f"{site}{path}"
            if through.pass_word is not None:
                defaults["proxy-authorization"] = f"Proxy-Authorization: {through.pass_word}\r\n"
    if (pass_word := _basic(parts)) is not None:
        defaults["authorization"] = f"Authorization: {pass_word}\r\n"
    host = str(site).partition("://")[2]
    first = f" {path} HTTP/1.1\r\n"
    defaults["host"] = f"Host: {host}\r\n"
    return Target(place, str(site), first, defaults, first + "".join(reversed(defaults.values())))


_QUERY = "/%:@!$&'()*+,;=~?-._[]|^\\`{}\"<>"


def _split(url: str, what: str, schemes: tuple[str, ...]) -> SplitResult:
    try:
        parts = urlsplit(url)
        sound = (
            not _NO_URL.search(url)
            and parts.scheme in schemes
            and parts.hostname
            and parts.port != 0
        )
    except ValueError:
        sound = False
    if not sound:
        raise ValueError(f"{what} is needed, not {url_without_secrets(url)!r}")
    return urlsplit(url)


def is_address(url: str) -> bool:
    """Whether a string is an http or https URL with a host."""
    try:
        _host(_split(url, "an http or https URL", ("http", "https")))
    except ValueError:
        return False
    return True


def _host(parts: SplitResult) -> str:
    host = unquote(parts.hostname or "")
    if "[" in parts.netloc and not _BRACKETS.fullmatch(parts.netloc):
        host = ""
    if not host.isascii():
        try:
            host = host.encode("idna").decode()
        except UnicodeError:
            host = ""
    host = host.rstrip(".")
    if not (
        re.fullmatch(r"[a-z0-9_\-.]+", host) or is_numeric(host)
    ):  # checked after IDNA, which can produce "@" or "/"
        raise ValueError(f"{parts.hostname!r} is not the name of a host")
    return host


def bracketed(host: str) -> str:
    """A host as in URLs and `Host`: an IPv6 address in brackets, without its zone."""
    return f"[{host.partition('%')[0]}]" if ":" in host else host


def _proxy(url: str) -> Origin:
    parts = _split(url, "a proxy's http or https URL", ("http", "https"))
    return Origin(
        _host(parts),
        parts.port or _PORTS[parts.scheme],
        parts.scheme == "https",
        None,
        _basic(parts),
    )


def _basic(parts: SplitResult) -> str | None:
    """User and password of a URL as the value of a header (RFC 7617)."""
    if not parts.username and not parts.password:
        return None
    both = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return f"Basic {base64.b64encode(both.encode()).decode()}"


def head(request: Request, to: Target) -> bytes:
    """The head of a request as bytes. Raises ValueError for an invalid method or header, and for a
    header that the client itself writes.
    """
    method = request.method
    size = len(request.body)
    own: list[str] = []
    given: set[str] | None = None
    for name, value in request.headers:
        low = _names.get(name) or header_name(name)
        if not (value.isascii() and value.isprintable()) and not _VALUE.fullmatch(value):
            raise ValueError(f"the header {name} has characters that a header cannot have")
        if low in _DEFAULTS:
            given = {low} if given is None else given | {low}
        own.append(f"{name}: {value}\r\n")
    if method not in _WITH_BODY and not _TOKEN.fullmatch(method):
        raise ValueError(f"{method!r} is not a method")
    length = f"Content-Length: {size}\r\n\r\n" if size or method in _WITH_BODY else "\r\n"
    if given is None:
        return f"{method}{to.whole}{''.join(own)}{length}".encode("latin-1")
    defaults = "".join([line for name, line in reversed(to.defaults.items()) if name not in given])
    return f"{method}{to.first}{defaults}{''.join(own)}{length}".encode("latin-1")


def header_name(name: str) -> str:
    """A header name in lower case. Raises ValueError if it is invalid, or if the client itself
    writes the header.
    """
    low = name.lower()
    if not _TOKEN.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of a header")
    if low in _OURS:
        raise ValueError(f"the header {name} is written by the HTTP client itself")
    if len(_names) >= _MOST_NAMES:
        _names.clear()
    _names[name] = low
    return low
