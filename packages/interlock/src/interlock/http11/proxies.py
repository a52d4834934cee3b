"""Proxy settings: which proxy is used for a host, read from the environment (HTTPS_PROXY, NO_PROXY)
with the usual rules.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from ..addresses import is_here


class Proxies:
    """The proxies for http and https URLs, and the hosts that are reached without a proxy.

    This machine ("localhost", names below it, and loopback addresses) is always reached without a
    proxy.

    Args:
        http: The proxy for http URLs, like "http://user:password@proxy:3128"; None for no proxy.
        https: The proxy for https URLs.
        but_for: The value of NO_PROXY: names, which include all names below them, addresses, and
            networks like "10.0.0.0/8", each with an optional port; or "*" for all hosts.
    """

    def __init__(
        self, http: str | None = None, https: str | None = None, but_for: str = ""
    ) -> None:
        self.http = http or None
        self.https = https or None
        self._but_for = [entry.strip().lower() for entry in but_for.replace(",", " ").split()]

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Proxies:
        """Read HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY; lower case takes precedence over
        upper case.

        In a CGI program (REQUEST_METHOD is set) HTTP_PROXY is a header of the request, chosen by
        its sender, and is ignored (httpoxy).
        """

        def said(name: str) -> str:
            value = environ.get(name.lower(), "")
            return value or (
                ""
                if name == "HTTP_PROXY" and "REQUEST_METHOD" in environ
                else environ.get(name, "")
            )

        every = said("ALL_PROXY")
        return cls(said("HTTP_PROXY") or every, said("HTTPS_PROXY") or every, said("NO_PROXY"))

    def toward(self, scheme: str, host: str, port: int) -> str | None:
        """The URL of the proxy for a host; None if it is reached without one."""
        proxy = self.https if scheme == "https" else self.http
        if proxy is None:
            return None
        host = host.lower().rstrip(".")
        if is_here(host):
            return None
        address = _address(host)
        if any(_names(entry, host, port, address) for entry in self._but_for):
            return None
        return proxy if "://" in proxy else f"http://{proxy}"


def _names(
    entry: str, host: str, port: int, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None
) -> bool:
    """Whether an entry of NO_PROXY matches a host."""
    if entry == "*":
        return True
    if "/" in entry:
        try:
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name = entry
    of_port = ""
    if entry.startswith("["):
        name, _, of_port = entry[1:].partition("]")
        of_port = of_port.removeprefix(":")
    elif entry.count(":") == 1:
        name, _, of_port = entry.partition(":")
    if of_port and of_port != str(port):
        return False
    if address is not None:
        return _address(name) == address
    name = name.removeprefix("*").lstrip(".").rstrip(".")
    return bool(name) and (host == name or host.endswith(f".{name}"))


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
