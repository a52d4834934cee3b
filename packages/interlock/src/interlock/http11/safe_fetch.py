"""The SSRF-safe fetcher (server-side request forgery): it fetches URLs that somebody else chose,
from the public internet only.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import urljoin, urlsplit

from msgspec.structs import replace

from .. import types as t
from ..addresses import Address, is_here, is_loopback, is_metadata, meant, peculiarity
from ..redaction.urls import url_without_secrets
from .client import HttpFetch
from .fetch import Request, Response
from .headers import Origin, bracketed, target
from .proxies import Proxies

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns all addresses of a host, for a port. Raises OSError if there are none."""

_NO_PROXY = Proxies()
_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
_ALMOST_ADDRESS = re.compile(
    r"(.*\.)?(\d+|0x[0-9a-f]*)"
)  # 127.1, 0x7f000001, 2130706433: operating systems read these as IPv4 addresses
_INSIDE = (
    ".local",
    ".internal",
    ".home.arpa",
)  # names that are never public (RFC 6762, RFC 8375, and names that ICANN reserved)
# Ports from 1024 on that are not for web servers: those that browsers block, and stores without
# access control.
_SHUNNED = frozenset(
    {
        1719,
        1720,
        1723,
        2049,
        3659,
        4045,
        4190,
        5060,
        5061,
        6000,
        6379,
        6566,
        *range(6665, 6670),
        6679,
        6697,
        10080,
        11211,
    }
)
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_LONGEST_SHOWN = 200


Rule = Literal[
    "url",
    "user",
    "here",
    "plain",
    "port",
    "hosts",
    "never",
    "name",
    "blind",
    "proxy",
    "address",
    "metadata",
    "redirect",
    "downgrade",
]
"""The rule that blocked a request."""


class BlockedAddress(t.Unreachable):
    """A rule of the fetcher blocks the request, or the redirect that it led to. Nothing was sent to
    that address.

    Attributes:
        words: The message without `advice`.
        rule: The rule.
        advice: How to permit the request.
        status: The status of the redirect, if there was one.
    """

    def __init__(
        self, words: str, rule: Rule, advice: str = "", *, status: int | None = None
    ) -> None:
        super().__init__(f"{words} {advice}".rstrip(), status=status)
        self.words = words
        self.rule = rule
        self.advice = advice


async def resolve(host: str, port: int) -> list[str]:
    """All addresses that the system resolves a host to. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(one[4][0]) for one in found]


class SafeFetch:
    """The SSRF-safe `Fetch`, for URLs that a peer chose: metadata, client ID documents, keys, icons
    (2026-07-28, "Server-Side Request Forgery").

    - Schemes: https only. `plain` and `loopback` also permit http.
    - Ports: 443 (80 for http) and those from 1024 on, except for some on which other services
      listen. A URL with a user or a password is refused.
    - Addresses: public ones only. A name is resolved once. All of its addresses must be public,
      because the choice among them is left to chance. The connection goes to the address that was
      checked, while TLS and `Host` keep the name: changing the DNS record in between gains nothing.
      Unusual spellings of an IP address are refused.
    - Redirects: none, unless `most_redirects` or `give_redirects` is given.

    An egress proxy resolves names itself, so the proxy has to block internal addresses. IP
    addresses in a URL are checked here even then. Names that are never public are sent to it only
    if `hosts` contains them.

    Args:
        loopback: Also permits this machine, by http too, for development: "localhost", names below
            it, 127.0.0.0/8 and ::1. A name that merely resolves to this machine is refused even
            then.
        plain: Also permits http to public hosts, where anyone on the network path can read and
            change the content.
        limit: The largest body, in bytes, also after decompression.
        seconds: The time from the call to the end of the body.
        most_redirects: How many redirects are followed. Only those of GET and HEAD are, each is
            checked like a new request, and none leads from https to http. A redirect to another
            site keeps no request header but `Accept`.
        give_redirects: Returns redirects as responses. The caller follows them with `onward`.
        hosts: If given, the only hosts that are contacted: names, "*.example.com" for all names
            below one, and addresses.
        never: Hosts that are never contacted. A name that resolves to such an address is refused
            too.
        networks: Private networks that may be reached as well, such as "10.1.0.0/16". The metadata
            service of a cloud never is.
        resolve: Resolves a name to its addresses.
        ca: The certificate authorities to trust, as for `HttpFetch`.
        proxies: The egress proxies to use; None for those of the environment.
    """

    def __init__(
        self,
        *,
        loopback: bool = False,
        plain: bool = False,
        limit: int = 1024 * 1024,
        seconds: float = 10.0,
        most_redirects: int = 0,
        give_redirects: bool = False,
        hosts: Iterable[str] | None = None,
        never: Iterable[str] = (),
        networks: Iterable[str] = (),
        resolve: Resolve = resolve,
        ca: str | Path | ssl.SSLContext | None = None,
        proxies: Proxies | None = None,
    ) -> None:
        self.loopback = loopback
        self.plain = plain
        self.limit = limit
        self.seconds = seconds
        self.most_redirects = most_redirects
        self.give_redirects = give_redirects
        self._hosts = None if hosts is None else [_entry(host) for host in hosts]
        self._never = [_entry(host) for host in never]
        self._networks = [ipaddress.ip_network(network) for network in networks]
        self._resolve = resolve
        self._http = HttpFetch(
            ca=ca,
            proxies=proxies,
            connect_seconds=seconds,
            keep_seconds=5.0,
            lookup=self._addresses,
        )
        way = target("http://any.invalid/", self._http.proxies, "").place
        # an http URL is requested from the proxy itself, without a tunnel
        self._proxy = None if way.host == "any.invalid" else way

    async def __call__(self, request: Request) -> Response:
        """Send a request; return as soon as the head of the response has arrived.

        Reading the body raises ProtocolError over the limit, and TimedOut.

        Raises:
            BlockedAddress: A rule forbids the address.
            ConnectionLost, TimedOut, Unreachable: As with any Fetch.
            ValueError: A header cannot be sent.
        """
        place = self._judged(request.url)
        until = asyncio.get_running_loop().time() + self.seconds
        words = f"{place} did not answer to the end within {self.seconds:g} seconds."
        hops = 0
        async with _until(until, words):
            while (
                location := _redirect(answer := await self._http(request))
            ) is not None and not self.give_redirects:
                await answer.aclose()
                hops += 1
                if hops > self.most_redirects or request.method not in ("GET", "HEAD"):
                    rule = (
                        "which is not followed"
                        if not self.most_redirects
                        else "which exceeds the limit of redirects"
                    )
                    there = _shown(_joined(request.url, location))
                    raise BlockedAddress(
                        f"{place} redirects to {there} (status {answer.status}), {rule}.",
                        "redirect",
                        "The document must be at the given address itself.",
                        status=answer.status,
                    )
                request, place = self._onward(request, place, location, answer.status)
        return LimitedResponse(answer, self.limit, until, words)

    def examine(self, url: str) -> None:
        """Raise BlockedAddress if a URL alone shows that it is blocked. The addresses of its host
        are checked when it is fetched.
        """
        self._judged(url)

    def onward(self, request: Request, status: int, location: str) -> Request:
        """Return the request that follows a redirect, for a caller that checks each hop itself.

        It applies the rules of `most_redirects` to a single redirect.

        Args:
            request: The GET or HEAD request that was redirected.
            status: The status of the response.
            location: The Location header of the response.

        Raises:
            BlockedAddress: The redirect must not be followed.
        """
        return self._onward(request, self._judged(request.url), location, status)[0]

    async def route(
        self, host: str, port: int, *, secure: bool = True
    ) -> tuple[Origin, list[str], Origin | None]:
        """Check a host for a caller that opens the connection itself, such as a proxy.

        Args:
            host: A name or an address.
            port: The port.
            secure: Whether TLS will be used, as with an https URL.

        Returns:
            The origin, the checked addresses to connect to, and the egress proxy. With an egress
            proxy there are no addresses, because it resolves the name itself.

        Raises:
            BlockedAddress: A rule forbids the host or one of its addresses.
            OSError: The host was not found.
        """
        url = f"{'https' if secure else 'http'}://{bracketed(host)}:{port}/"
        place = self._judged(url)
        to = target(url, self._http.proxies, "").place
        through = to.through if secure else to
        if self._way_to(place) is not None and through is not None:
            return place, [], through
        return place, await self._addresses(place), None

    async def aclose(self) -> None:
        """Close every connection. Running requests raise Unreachable."""
        await self._http.aclose()

    def _judged(self, url: str) -> Origin:
        """The origin of a URL, parsed as the HTTP client parses it. Raises BlockedAddress if the
        URL alone is blocked.
        """
        try:
            place = target(url, _NO_PROXY, "").place
        except ValueError:
            raise BlockedAddress(
                f"{_shown(url)} is no {'http or ' if self.plain else ''}https URL.",
                "url",
            ) from None
        if "@" in urlsplit(url).netloc:
            raise BlockedAddress(
                f"{place} is blocked: the URL contains a user name or a password.",
                "user",
                "Remove them.",
            )
        here = is_here(place.host)
        if here and not self.loopback:
            raise BlockedAddress(
                f"{place} is blocked: it is this machine itself.",
                "here",
                "In development, loopback=True allows it.",
            )
        if not place.secure and not here and not self.plain:
            raise BlockedAddress(
                f"{place} is blocked: only https is encrypted in transit.",
                "plain",
                "Use its https address.",
            )
        if place.port in _SHUNNED or (
            place.port < 1024 and place.port != (443 if place.secure else 80)
        ):
            usual = 443 if place.secure else 80
            raise BlockedAddress(
                f"{place} is blocked: its port is not one of a web server.",
                "port",
                f"Use {usual}, or one from 1024 on.",
            )
        if self._hosts is not None and not any(_covers(entry, place.host) for entry in self._hosts):
            raise BlockedAddress(
                f"{place} is blocked: it is not among the allowed hosts.",
                "hosts",
                "Add it to hosts= if it should be.",
            )
        if any(_covers(entry, place.host) for entry in self._never):
            raise _never(place)
        if (address := _address(place.host)) is not None:
            self._judge(address, place)
        elif _ALMOST_ADDRESS.fullmatch(place.host) or not _NAME.fullmatch(place.host):
            raise BlockedAddress(
                f"{place} is blocked: its host is neither a name nor an address in its usual form.",
                "name",
            )
        elif (
            self._hosts is None
            and ("." not in place.host or place.host.endswith(_INSIDE))
            and self._way_to(place) is not None
        ):
            # the proxy resolves the name, so its addresses cannot be checked here
            raise BlockedAddress(
                f"{place} is blocked: no public host has such a name, so the proxy is not "
                "used for it.",
                "blind",
                "Add it to hosts= if it is yours.",
            )
        if self._is_proxy(place) and self._way_to(place) is None:
            raise BlockedAddress(f"{place} is blocked: it is the proxy itself.", "proxy")
        return place

    def _way_to(self, place: Origin) -> str | None:
        """The proxy for an origin."""
        return self._http.proxies.toward(
            "https" if place.secure else "http", place.host, place.port
        )

    def _is_proxy(self, place: Origin) -> bool:
        return self._proxy is not None and (place.host, place.port) == (
            self._proxy.host,
            self._proxy.port,
        )

    def _judge(self, address: Address, place: Origin) -> None:
        """Raise BlockedAddress if this origin must not have this address."""
        if any(_covers(entry, str(address)) for entry in self._never):
            raise _never(place)
        if is_here(place.host):
            if not is_loopback(address):
                raise BlockedAddress(
                    f"{place} should be this machine, but it is not.",
                    "address",
                    "Check its hosts file.",
                )
            return
        kind = peculiarity(address)
        if kind is None or (
            not is_metadata(address)
            and any(meant(address) in network for network in self._networks)
        ):
            return
        secret = is_metadata(address)
        advice = "" if secret else "If it is your own network, allow it with networks=."
        raise BlockedAddress(
            f"{place} is blocked: it resolves to {kind}.",
            "metadata" if secret else "address",
            advice,
        )

    async def _addresses(self, place: Origin) -> list[str]:
        """The checked addresses to connect to. Raises BlockedAddress and OSError."""
        if self._is_proxy(
            place
        ):  # a proxy may have a private address; `_judged` blocks requests for the proxy itself
            return [place.host]
        literal = _address(place.host)
        found = (
            [literal]
            if literal is not None
            else [_address(text) for text in await self._resolve(place.host, place.port)]
        )
        if not found:
            raise socket.gaierror(socket.EAI_NONAME, "it has no address")
        for address in found:
            if address is None:
                raise BlockedAddress(
                    f"{place} is blocked: it does not resolve to a valid address.", "address"
                )
            self._judge(address, place)
        return list(dict.fromkeys(map(str, found)))

    def _onward(
        self, request: Request, place: Origin, location: str, status: int
    ) -> tuple[Request, Origin]:
        """The request that follows a redirect, and its origin. Raises BlockedAddress."""
        url = _joined(request.url, location)
        words = f"{place} redirects to {_shown(url)} (status {status})"
        try:
            onward = self._judged(url)
        except BlockedAddress as bad:
            raise BlockedAddress(
                f"{words}. {bad.words}", bad.rule, bad.advice, status=status
            ) from None
        if (place.secure and not onward.secure) or (
            is_here(onward.host) and not is_here(place.host)
        ):
            raise BlockedAddress(
                f"{words}, which is less secure than the original address, so the "
                "redirect is not followed.",
                "downgrade",
                status=status,
            )
        headers = (
            request.headers
            if onward == place
            else tuple(one for one in request.headers if one[0].lower() == "accept")
        )
        return replace(request, url=url, headers=headers), onward


class LimitedResponse:
    """A response with bounds on size and time; it implements `Response`."""

    def __init__(self, answer: Response, limit: int, until: float, words: str) -> None:
        self.status = answer.status
        self.headers = answer.headers
        self._answer = answer
        self._limit = limit
        self._until = until
        self._words = words
        self._size = 0

    async def read(self, limit: int) -> bytes:
        """Return the whole body.

        Raises:
            ConnectionLost: The connection broke.
            TimedOut: The time is over.
            ProtocolError: The body has more than `limit` bytes, or more than the fetcher allows.
        """
        async with _until(self._until, self._words):
            return await self._answer.read(min(limit, self._limit))

    def chunks(self) -> LimitedResponse:
        """Iterate over the body in pieces as they arrive; raises what `read` raises."""
        self._pieces = self._answer.chunks()
        return self

    def __aiter__(self) -> LimitedResponse:
        return self

    async def __anext__(self) -> bytes:
        async with _until(self._until, self._words):
            piece = await anext(self._pieces, None)
        if piece is None:
            raise StopAsyncIteration
        self._size += len(piece)
        if self._size > self._limit:
            await self.aclose()
            raise t.ProtocolError(f"the answer has more than {self._limit} bytes")
        return piece

    async def aclose(self) -> None:
        """Stop reading. If the body was not read to its end, the connection is closed."""
        await self._answer.aclose()


@asynccontextmanager
async def _until(moment: float, words: str) -> AsyncIterator[None]:
    """A block that raises TimedOut with these words at a time of the event loop's clock."""
    try:
        async with asyncio.timeout_at(moment):
            yield
    except TimeoutError:
        raise t.TimedOut(words) from None


def _redirect(answer: Response) -> str | None:
    """The Location of a redirect; None for any other response."""
    return answer.headers.get("location") if answer.status in _REDIRECTS else None


def _joined(url: str, location: str) -> str:
    """The target of a redirect. The header was decoded as Latin-1, but may be UTF-8, because some
    sites send unescaped umlauts.
    """
    with contextlib.suppress(UnicodeError):
        location = location.encode("latin-1").decode()
    try:
        return urljoin(url, location)
    except ValueError:
        return location


def _address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _entry(host: str) -> str:
    """A host of an allow-list in normal form, with a leading dot for all names below it. Raises
    ValueError for an invalid host.
    """
    name = host.removeprefix("*.")
    return host[1 : len(host) - len(name)] + _usual(
        target(f"https://{bracketed(name)}/", _NO_PROXY, "").place.host
    )


def _covers(entry: str, host: str) -> bool:
    return host.endswith(entry) if entry.startswith(".") else _usual(host) == entry


def _usual(host: str) -> str:
    """A host in normal form, because an address has several spellings, and IPv4 addresses have IPv6
    forms.
    """
    address = _address(host)
    return host if address is None else str(meant(address))


def _never(place: Origin) -> BlockedAddress:
    return BlockedAddress(
        f"{place} is blocked: it is among the hosts that are never contacted.",
        "never",
        "They are set in never=.",
    )


def _shown(url: str) -> str:
    return repr(url_without_secrets(url)[:_LONGEST_SHOWN])
