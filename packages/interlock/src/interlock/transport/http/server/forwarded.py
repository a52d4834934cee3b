"""Forwarded headers (`X-Forwarded-For`, `X-Forwarded-Proto`): the client's address and scheme,
accepted from trusted proxies only.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

from ....logs import limited

log = limited("interlock.server")

_FOR = b"x-forwarded-for"
_PROTO = b"x-forwarded-proto"
_TELLING = frozenset({_FOR, b"forwarded", b"x-real-ip"})
_SCHEMES = {b"http": "http", b"https": "https"}
_MOST_HOPS = 50

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class TrustedProxies:
    """The proxies whose forwarded headers are trusted.

    Args:
        names: Addresses, networks, "unix" for clients of a Unix socket, or "*" for everyone.

    Raises:
        ValueError: A name is none of these.
    """

    __slots__ = ("_all", "_networks", "_unix", "_warned")

    def __init__(self, names: Iterable[str] = ()) -> None:
        given = [name.strip() for name in names]
        self._all = "*" in given
        self._unix = "unix" in given
        self._networks = [_network(name) for name in given if name not in ("*", "unix", "")]
        self._warned = False

    def __bool__(self) -> bool:
        """Whether any proxy is trusted."""
        return self._all or self._unix or bool(self._networks)

    def trusts(self, address: str | None) -> bool:
        """Whether an address belongs to a trusted proxy; None is a Unix socket."""
        if self._all:
            return True
        if address is None:
            return self._unix
        if not self._networks:
            return False
        try:
            known = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return False
        plain = getattr(known, "ipv4_mapped", None) or known
        return any(plain in network for network in self._networks)

    def origin(
        self,
        client: tuple[str, int] | None,
        scheme: str,
        headers: Sequence[tuple[bytes, bytes]],
    ) -> tuple[tuple[str, int] | None, str]:
        """Return the client's address and scheme, as a trusted proxy reports them.

        In a chain of addresses the last one that is not a trusted proxy counts. Hazard: everything
        before it may be forged.
        """
        hops: list[str] = []
        proto = scheme
        for name, value in headers:
            if name == _FOR:
                hops += [hop.strip() for hop in value.decode("latin-1").split(",")]
            elif name == _PROTO:
                proto = _SCHEMES.get(value.strip().lower(), proto)
        for hop in reversed(hops[-_MOST_HOPS:]):
            if hop and (self._all or not self.trusts(_bare(hop))):
                if self._all:
                    return (_bare(hops[0]), 0), proto
                return (_bare(hop), 0), proto
        return ((_bare(hops[0]), 0) if hops and hops[0] else client), proto

    def warn_of(
        self, client: tuple[str, int] | None, headers: Sequence[tuple[bytes, bytes]]
    ) -> None:
        """Warn once about a forwarded header from a proxy that is not trusted."""
        if self._warned or not any(name in _TELLING for name, _ in headers):
            return
        self._warned = True
        name = "unix" if client is None else client[0]
        log.warning(
            "a request from %s has forwarded headers, which are ignored: every client behind that"
            " proxy counts as one. If it is your proxy, name it: proxies=[%r]",
            name,
            name,
        )


def _network(name: str) -> _Network:
    try:
        return ipaddress.ip_network(name, strict=False)
    except ValueError:
        raise ValueError(f"a proxy is an address or a network, and {name!r} is neither") from None


def _bare(hop: str) -> str:
    """Return the address of a hop without its port."""
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop
