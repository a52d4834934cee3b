"""Gathers facts about the way to a host, step by step: proxy, DNS, TCP, TLS."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from ...addresses import is_here
from ...http11.connect import connection_error, tls
from ...http11.headers import Origin, bracketed
from ...http11.proxies import Proxies
from ...redaction import url_without_secrets
from ..facts import NetworkFacts
from ..options import ExamineOptions

_DAY = 24 * 60 * 60.0
_PROXY_PORTS = {"http": 80, "https": 443}


async def network_facts(
    url: str, options: ExamineOptions, environ: Mapping[str, str] = os.environ
) -> NetworkFacts:
    """Return the facts about the way to the host of a URL. Nothing is sent but a TLS handshake."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    origin = Origin(host, port, parts.scheme == "https")
    facts = NetworkFacts(
        url=url_without_secrets(url),
        host=f"{bracketed(host)}:{port}",
        is_secure=origin.secure,
        is_here=is_here(host),
        loopback_proxy=_loopback_proxy(parts.scheme, host, environ),
        expiry_days=options.expiry_days,
    )
    proxy = Proxies.from_environment(environ).toward(parts.scheme, host, port)
    if proxy is not None:
        return await _with_proxy(facts, proxy, options)
    try:
        await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as bad:
        why = getattr(bad, "strerror", None) or bad
        return replace(facts, dns_error=f"the name {host} cannot be resolved: {why}")
    facts = replace(facts, tcp_error=await _tcp_error(origin, options))
    if facts.tcp_error or not origin.secure:
        return facts
    return await _with_tls(facts, origin, options)


def _loopback_proxy(scheme: str, host: str, environ: Mapping[str, str]) -> str:
    """The variable of a proxy that clients without an exception for loopback would use."""
    if not is_here(host):
        return ""
    names = ("HTTPS_PROXY" if scheme == "https" else "HTTP_PROXY", "ALL_PROXY")
    excepted = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    entries = {entry.strip().lstrip(".") for entry in excepted.replace(",", " ").split()}
    if entries & {"*", host} or any("/" in entry for entry in entries):
        return ""
    return next((each for name in names for each in (name, name.lower()) if environ.get(each)), "")


async def _with_proxy(facts: NetworkFacts, proxy: str, options: ExamineOptions) -> NetworkFacts:
    """The facts about the connection to a proxy."""
    shown = url_without_secrets(proxy)
    origin = _proxy_origin(proxy)
    if origin is None:
        words = f"the proxy {shown} is not an http or https URL"
        return replace(facts, proxy=shown, proxy_error=words)
    bad = await _tcp_error(origin, options)
    return replace(facts, proxy=shown, proxy_error=f"The proxy: {bad}" if bad else "")


def _proxy_origin(proxy: str) -> Origin | None:
    """The host and port of a proxy; None if its URL is not valid."""
    try:
        parts = urlsplit(proxy)
        port = parts.port or _PROXY_PORTS.get(parts.scheme, 0)
    except ValueError:
        return None
    if parts.scheme not in _PROXY_PORTS or not parts.hostname:
        return None
    return Origin(parts.hostname, port, False)


async def _tcp_error(origin: Origin, options: ExamineOptions) -> str:
    try:
        async with _connected(origin, None, options):
            return ""
    except TimeoutError:
        return f"there was no connection to {origin} within {options.connect_seconds:g} s"
    except OSError as bad:
        return _why(bad, origin)


async def _with_tls(facts: NetworkFacts, origin: Origin, options: ExamineOptions) -> NetworkFacts:
    """The facts about TLS and the certificate."""
    try:
        async with _connected(origin, tls(options.ca, True), options) as connection:
            certificate: Any = connection.getpeercert() if connection is not None else None
    except ssl.SSLCertVerificationError as bad:
        return replace(facts, tls_error=_why(bad, origin), certificate_error=bad.verify_code)
    except TimeoutError:
        words = f"TLS with {origin} took longer than {options.connect_seconds:g} s"
        return replace(facts, tls_error=words)
    except OSError as bad:
        return replace(facts, tls_error=_why(bad, origin))
    if not certificate:
        return facts
    left = ssl.cert_time_to_seconds(certificate["notAfter"]) - time.time()
    return replace(facts, days_left=left / _DAY)


def _why(bad: OSError, origin: Origin) -> str:
    """Why there is no connection, without the advice, which the rule gives."""
    return str(connection_error(bad, origin)).partition(". ")[0]


@contextlib.asynccontextmanager
async def _connected(
    origin: Origin, context: ssl.SSLContext | None, options: ExamineOptions
) -> AsyncIterator[ssl.SSLObject | None]:
    """A connection with or without TLS, which is closed at the end."""
    async with asyncio.timeout(options.connect_seconds):
        _, writer = await asyncio.open_connection(
            origin.host,
            origin.port,
            ssl=context,
            server_hostname=origin.host if context is not None else None,
        )
    try:
        yield writer.get_extra_info("ssl_object")
    finally:
        writer.transport.abort()
