"""The egress proxy of a sandbox: HTTP CONNECT and plain HTTP, to the hosts of an allow-list, whose
addresses are checked after resolution (SSRF).
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import socket
import ssl
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from ..addresses import is_here
from ..http11.connect import connect_request, tls
from ..http11.headers import Origin, bracketed
from ..http11.proxies import Proxies
from ..http11.safe_fetch import BlockedAddress, SafeFetch
from ..logs import limited
from .policy import SandboxPolicy
from .refusals import host_refusal

log = limited("interlock.sandbox")

_AUTHORITY = re.compile(
    r"(?P<host>[A-Za-z0-9_.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):(?P<port>\d{1,5})"
)
_HEAD_SECONDS = 30.0
_CONNECT_SECONDS = 20.0
_MOST_CONNECTIONS: Final = 256
_LONGEST_HEAD = 64 * 1024
_PIECE = 64 * 1024
_NOT_FORWARDED = frozenset({"connection", "keep-alive", "proxy-connection", "proxy-authorization"})


class _BadRequest(Exception):
    """The program sent something that is not a request for a proxy."""


class EgressProxy:
    """Connects one confined program to the hosts that its policy allows.

    Each connection is logged. A connection that is refused gets 403 with the reason.

    Args:
        sandbox: The policy.
        name: The name of the program, for the log.
        report: Called with a sentence about each host that is refused, once.
        proxies: The egress proxies of this machine; None for those of the environment.
    """

    def __init__(
        self,
        sandbox: SandboxPolicy,
        name: str,
        report: Callable[[str], None],
        proxies: Proxies | None = None,
    ) -> None:
        named = None if sandbox.hosts == "public" else tuple(sandbox.hosts)
        self._judge = SafeFetch(
            plain=True,
            loopback=named is not None and any(map(is_here, named)),
            hosts=named,
            never=sandbox.deny_hosts,
            networks=[host for host in named or () if _is_address(host)],
            proxies=proxies,
        )
        self._name = name
        self._report = report
        self._reported: set[tuple[str, int]] = set()
        self._admitted: set[int] | None = None
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    def admit_only(self) -> Callable[[int], None]:
        """Serve only connections that are announced; return the function that announces the local
        port of one, from any thread.
        """
        admitted: set[int] = set()
        self._admitted = admitted
        return admitted.add

    async def serve(self, listener: socket.socket) -> None:
        """Accept the connections of a listening socket, which the proxy closes."""
        self._server = await asyncio.start_server(self._accept, sock=listener, limit=_LONGEST_HEAD)

    async def aclose(self) -> None:
        """Close every connection."""
        if self._server is not None:
            self._server.close()
        for task in self._serving:
            task.cancel()
        if self._serving:
            await asyncio.wait(self._serving)
        await self._judge.aclose()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            peer = writer.get_extra_info("peername")
            if self._admitted is not None:
                if peer is None or peer[1] not in self._admitted:
                    return  # another program of this machine
                self._admitted.discard(peer[1])
            if len(self._serving) <= _MOST_CONNECTIONS:
                await self._serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass  # the program, or the host, closed the connection
        finally:
            self._serving.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(_HEAD_SECONDS):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, _, lines = head.partition("\r\n")
        method, _, rest = first.partition(" ")
        target = rest.rpartition(" ")[0]
        try:
            host, port, path = _destination(method, target)
        except (_BadRequest, ValueError) as bad:
            _answer(writer, 400, f"{bad}")
            await writer.drain()
            return
        tunnel = method == "CONNECT"
        try:
            place, addresses, through = await self._judge.route(
                host, port, secure=tunnel and port != 80
            )
            upstream = await _open(place, addresses, through, tunnel)
        except BlockedAddress as bad:
            self._refuse(host, port, bad)
            _answer(writer, 403, str(bad))
            await writer.drain()
            return
        except (OSError, TimeoutError) as bad:
            log.info("%s: %s:%s cannot be reached: %s", self._name, host, port, bad)
            _answer(writer, 502, f"{host}:{port} cannot be reached: {bad}")
            await writer.drain()
            return
        log.info("%s: %s %s:%s", self._name, method, host, port)
        there, back = upstream
        try:
            if tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                back.write(_rewritten(method, place, path, lines, through))
            await asyncio.gather(_copy(reader, back), _copy(there, writer))
        finally:
            back.close()

    def _refuse(self, host: str, port: int, bad: BlockedAddress) -> None:
        log.warning("%s: refused %s:%s: %s", self._name, host, port, bad.words)
        if (host, port) not in self._reported and len(self._reported) < _MOST_CONNECTIONS:
            self._reported.add((host, port))
            self._report(host_refusal(host, port, bad.rule, bad.words))


def _destination(method: str, target: str) -> tuple[str, int, str]:
    """Return host, port and path of a request. Raises _BadRequest and ValueError."""
    if method == "CONNECT":
        found = _AUTHORITY.fullmatch(target)
        if found is None:
            raise _BadRequest("CONNECT needs HOST:PORT")
        return found["host"].strip("[]"), int(found["port"]), ""
    parts = urlsplit(target)
    if parts.scheme != "http" or not parts.hostname or "@" in parts.netloc:
        raise _BadRequest("this is a proxy: it takes CONNECT HOST:PORT and http:// URLs")
    found = _AUTHORITY.fullmatch(f"{bracketed(parts.hostname)}:{parts.port or 80}")
    if found is None:
        raise _BadRequest("the host is not a name or an address")
    query = f"?{parts.query}" if parts.query else ""
    return parts.hostname, parts.port or 80, f"{parts.path or '/'}{query}"


def _rewritten(method: str, place: Origin, path: str, lines: str, through: Origin | None) -> bytes:
    """Return the head of a plain request for the host, whose connection ends with the response."""
    kept = [
        line
        for line in lines.split("\r\n")
        if line and line.partition(":")[0].strip().lower() not in (*_NOT_FORWARDED, "host")
    ]
    host = str(place).partition("://")[2]
    target = path if through is None else f"{place}{path}"
    own = [f"Host: {host}", "Connection: close"]
    if through is not None and through.pass_word is not None:
        own.append(f"Proxy-Authorization: {through.pass_word}")
    return "\r\n".join([f"{method} {target} HTTP/1.1", *own, *kept, "", ""]).encode("latin-1")


async def _open(
    place: Origin, addresses: list[str], through: Origin | None, tunnel: bool
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first address that accepts, or to the egress proxy. Raises OSError."""
    if through is not None:
        return await _open_through(place, through, tunnel)
    failed = OSError("it has no address")
    for address in addresses:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                return await asyncio.open_connection(address, place.port)
        except OSError as bad:  # TimeoutError is one
            failed = bad
    raise failed


async def _open_through(
    place: Origin, through: Origin, tunnel: bool
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect through the egress proxy of this machine. Raises OSError."""
    context: ssl.SSLContext | None = tls(None, True) if through.secure else None
    async with asyncio.timeout(_CONNECT_SECONDS):
        reader, writer = await asyncio.open_connection(
            through.host, through.port, ssl=context, limit=_LONGEST_HEAD
        )
        if tunnel:
            writer.write(connect_request(place, through, "interlock"))
            answer = await reader.readuntil(b"\r\n\r\n")
            status = answer.split(b" ", 2)[1:2]
            if not status or not status[0].startswith(b"2"):
                writer.close()
                raise OSError(f"the proxy {through} would not connect to it")
    return reader, writer


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the end of one direction."""
    with contextlib.suppress(OSError):
        while piece := await reader.read(_PIECE):
            writer.write(piece)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


def _answer(writer: asyncio.StreamWriter, status: int, words: str) -> None:
    body = f"{words}\n".encode()
    phrase = {400: "Bad Request", 403: "Forbidden", 502: "Bad Gateway"}[status]
    head = (
        f"HTTP/1.1 {status} {phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode() + body)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
