"""The whole diagnosis, from the first refusal to what a login would do."""

from __future__ import annotations

from collections.abc import Sequence

from ..oauth.addresses import canonical
from ..oauth.challenges import find
from ..oauth.discovery import Site
from ..oauth.steps import Procedure
from .findings import Report
from .issuers import Who, issuer_metadata, prospects
from .servers import anonymous_request, protection

_MOST_ISSUERS = 5


def examine(
    url: str,
    report: Report,
    *,
    who: Who | None = None,
    issuer: str | None = None,
    known: Sequence[str] = (),
) -> Procedure[None]:
    """Check everything that a login to the server at a URL would use, without logging in.

    Args:
        url: The URL of the server.
        report: Gets the findings.
        who: The client that would log in.
        issuer: The only authorization server that the client can use.
        known: The authorization servers at which the client is registered. Errors of all other
            authorization servers are reported as remarks.
    """
    who = who or Who()
    answer = yield from anonymous_request(url, report)
    if answer is None:
        return
    found = yield from protection(url, answer, report)
    if found is None or not found.issuers:
        return
    chosen = issuer or next((one for one in found.issuers if one in known), found.issuers[0])
    if chosen not in found.issuers:
        report.wrong_that(
            f"the server trusts {', '.join(found.issuers)}",
            culprit="client",
            expected=(f"{chosen}, where this client is registered"),
            advice=(
                "Register the client with an authorization server that the server trusts, and "
                "give its issuer."
            ),
        )
    for other in (chosen, *[one for one in found.issuers if one != chosen][: _MOST_ISSUERS - 1]):
        report.lenient = other != chosen
        metadata = yield from issuer_metadata(other, found.legacy, report)
        if metadata is not None and not report.lenient:
            resource = found.protected.resource if found.protected is not None else canonical(url)
            site = Site(
                resource=resource,
                metadata=metadata[0],
                document=metadata[1],
                protected=found.protected,
                legacy=found.legacy,
            )
            prospects(site, find(answer.challenges, "bearer", "dpop"), who, report)
    report.lenient = False
