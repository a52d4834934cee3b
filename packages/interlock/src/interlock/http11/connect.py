"""Connecting: TCP and TLS to an origin, directly or through a proxy's tunnel (RFC 9110, 9.3.6),
and error messages that say what to do.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from .. import types as t
from .headers import Origin, bracketed

_LONGEST_HEAD = 64 * 1024

Lookup = Callable[[Origin], Awaitable[Sequence[str]]]
"""Returns the addresses of an origin, at least one, in the order in which they are tried. It may
raise Unreachable.
"""


def tls(ca: str | Path | ssl.SSLContext | None, verify: bool) -> ssl.SSLContext:
    """Return the TLS context: it trusts the system's CAs (or those of SSL_CERT_FILE), those of a
    file or folder, or every server.
    """
    if isinstance(ca, ssl.SSLContext):
        return ca
    if ca is None:
        return _system_tls(verify, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    folder = Path(ca).is_dir()
    return _configured(
        ssl.create_default_context(cafile=None if folder else ca, capath=ca if folder else None),
        verify,
    )


@functools.lru_cache(maxsize=4)
def _system_tls(verify: bool, _file: str | None, _folder: str | None) -> ssl.SSLContext:
    """The context that all clients of a process share, because loading the system's CAs takes 20
    ms.
    """
    return _configured(ssl.create_default_context(), verify)


def _configured(context: ssl.SSLContext, verify: bool) -> ssl.SSLContext:
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["http/1.1"])
    return context


async def dial(
    protocol: asyncio.Protocol,
    place: Origin,
    context: ssl.SSLContext | None,
    agent: str,
    lookup: Lookup | None = None,
) -> None:
    """Connect a protocol to an origin.

    TLS verifies the name of the origin, whatever its address is.

    Args:
        protocol: The protocol.
        place: The origin.
        context: The TLS context, if TLS is used with the origin or the proxy.
        agent: The User-Agent for a proxy.
        lookup: Chooses the addresses of an origin that is reached without a proxy. No other address
            is connected to.

    Raises:
        Unreachable: The proxy refused.
        OSError: There is no connection.
    """
    loop = asyncio.get_running_loop()
    proxy = place.through
    if proxy is None:
        await _straight(
            protocol, place, context, [place.host] if lookup is None else await lookup(place)
        )
        return
    tunnel = _Tunnel(loop.create_future())
    secure = context if proxy.secure else None
    transport: Any
    transport, _ = await loop.create_connection(
        lambda: tunnel,
        proxy.host,
        proxy.port,
        ssl=secure,
        server_hostname=_name(proxy) if secure else None,
    )
    try:
        transport.write(connect_request(place, proxy, agent))
        _check(await tunnel.answer, place, proxy)
        assert context is not None
        transport = (
            await loop.start_tls(transport, protocol, context, server_hostname=_name(place))
            or transport
        )
        protocol.connection_made(transport)
    except BaseException:
        transport.abort()
        raise


async def _straight(
    protocol: asyncio.Protocol,
    place: Origin,
    context: ssl.SSLContext | None,
    addresses: Sequence[str],
) -> None:
    """Connect to the first address that accepts. Raises the OSError of the last one."""
    loop = asyncio.get_running_loop()
    secure, name = (context, _name(place)) if place.secure else (None, None)
    for number, address in enumerate(addresses, 1):
        try:
            await loop.create_connection(
                lambda: protocol, address, place.port, ssl=secure, server_hostname=name
            )
            return
        except OSError as bad:
            if isinstance(bad, ssl.SSLError) or number == len(addresses):
                raise


def _name(place: Origin) -> str:
    return place.host.partition("%")[0]


def connect_request(place: Origin, proxy: Origin, agent: str) -> bytes:
    """Return the request for a tunnel through a proxy."""
    where = f"{bracketed(place.host)}:{place.port}"
    lines = [f"CONNECT {where} HTTP/1.1", f"Host: {where}", f"User-Agent: {agent}"]
    if proxy.pass_word is not None:
        lines.append(f"Proxy-Authorization: {proxy.pass_word}")
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode("latin-1")


def _check(answer: bytes, place: Origin, proxy: Origin) -> None:
    """Raise Unreachable unless the proxy has opened the tunnel."""
    head, end, rest = answer.partition(b"\r\n\r\n")
    first = head.partition(b"\r\n")[0].decode("latin-1")
    version, _, status = first.partition(" ")
    if not version.startswith("HTTP/1."):
        raise t.Unreachable(f"The proxy {proxy} does not speak HTTP/1.1.")
    if not (status[:1] == "2" and status[:3].isdigit()):
        advice = (
            " Put user:password@ before its host in HTTPS_PROXY." if status[:3] == "407" else ""
        )
        raise t.Unreachable(
            f"The proxy {proxy} would not connect to {place}: {status[:200]}.{advice}"
        )
    if not end:
        raise t.Unreachable(
            f"The proxy {proxy} answered with more than {_LONGEST_HEAD} bytes of headers."
        )
    if rest:
        raise t.Unreachable(f"The proxy {proxy} sent data before a request to {place} was sent.")


class _Tunnel(asyncio.Protocol):
    """Waits for the head of the proxy's response."""

    def __init__(self, answer: asyncio.Future[bytes]) -> None:
        self.answer = answer
        self._head = b""

    def data_received(self, data: bytes) -> None:
        """Collect the head of the response, which has no body."""
        self._head += data
        if not self.answer.done() and (
            b"\r\n\r\n" in self._head or len(self._head) > _LONGEST_HEAD
        ):
            self.answer.set_result(self._head)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail, because the proxy has closed the connection."""
        if not self.answer.done():
            self.answer.set_exception(
                exc
                if isinstance(exc, OSError)
                else ConnectionResetError(errno.ECONNRESET, "the proxy closed the connection")
            )


def connection_error(bad: OSError, place: Origin) -> t.Unreachable:
    """Return an error that says why there is no connection, and what to do."""
    next_hop = place if place.through is None else place.through
    if isinstance(bad, ssl.SSLCertVerificationError):
        return t.Unreachable(
            f"{place} shows a certificate that is not trusted: "
            f"{bad.verify_message.rstrip('.')}. If it is your own CA, give it with "
            "SSL_CERT_FILE or ca=."
        )
    if isinstance(bad, ssl.SSLError):
        reason = (bad.reason or str(bad)).replace("_", " ").lower()
        return t.Unreachable(
            f"TLS with {place} failed: {reason}. Check that the server there uses https."
        )
    if isinstance(bad, socket.gaierror):
        return t.Unreachable(
            f"The host {next_hop.host} was not found: {bad.strerror}. Check the name and "
            "the network connection."
        )
    if (
        isinstance(bad, ConnectionRefusedError) or "refused" in str(bad).lower()
    ):  # with several addresses, asyncio raises one OSError without a subclass
        what = "proxy" if place.through is not None else "server"
        return t.Unreachable(
            f"Nothing listens on {next_hop}: the connection was refused. Check that the "
            f"{what} is running, and check the port."
        )
    if (
        isinstance(bad, ConnectionResetError | ConnectionAbortedError | BrokenPipeError)
        and place.secure
    ):
        return t.Unreachable(
            f"TLS with {place} failed: the connection was closed. Check that the server "
            "there uses https."
        )
    return t.Unreachable(f"{next_hop} cannot be reached: {bad.strerror or bad}.")
