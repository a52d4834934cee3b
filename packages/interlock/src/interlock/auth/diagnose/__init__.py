"""Diagnosis of a server's authorization, without logging in: what is wrong, and who can fix it."""

from __future__ import annotations

from collections.abc import Sequence

from ..oauth.steps import Got
from ..sender import HttpClients, OnExchange, perform
from .findings import Finding, Report
from .issuers import Who
from .walk import examine

__all__ = ["Finding", "Got", "OnExchange", "Report", "Who", "diagnose", "examine"]


async def diagnose(
    url: str,
    report: Report,
    *,
    who: Who | None = None,
    issuer: str | None = None,
    hosts: Sequence[str] = (),
    on_exchange: OnExchange | None = None,
) -> None:
    """Check everything that a login to the server at a URL would use, without logging in.

    Nothing is registered, requested or stored, and no credential is sent.

    Args:
        url: The URL of the server.
        report: Gets the findings.
        who: The client that would log in.
        issuer: The only authorization server that the client can use.
        hosts: Hosts of authorization servers that may have a private address.
        on_exchange: Called with each HTTP request and its response, or the reason for none.
    """
    clients = HttpClients(url, hosts)
    try:
        await perform(
            examine(url, report, who=who, issuer=issuer), clients, on_exchange=on_exchange
        )
    finally:
        await clients.aclose()
