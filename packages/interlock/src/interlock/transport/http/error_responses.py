"""The error responses of the HTTP endpoint, their lines in the security log, and 403 challenges for
missing scopes.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from ... import types as t
from ...protocol.http import HttpRefusal, error
from ...quotas import busy_error
from ...store.errors import store_unreachable
from ...wire import jsonrpc
from ...wire.jsonrpc import Malformed
from .access_log import AccessLog
from .authorization import missing_scopes
from .requests import EndpointRequest, Pairs

CLOSE = ((b"connection", b"close"),)


def busy(
    id: t.RequestId | None,
    what: str = "",
    seconds: int = 1,
    headers: Sequence[tuple[bytes, bytes]] = (),
) -> HttpRefusal:
    """Return the refusal of one request too many: 503.

    Args:
        id: The ID of the request.
        what: The resource that is used up, such as "streams"; empty if it is not known.
        seconds: The time after which the client may try again, in seconds.
        headers: Further headers.
    """
    bad = busy_error(what, seconds)
    later = (b"retry-after", b"%d" % seconds)
    return error(503, bad.code, bad.message, bad.data, id=id, headers=[later, *headers])


def store_away() -> HttpRefusal:
    """Return the refusal for a request that needs the store, which is unreachable. The store has
    logged the reason.
    """
    bad = store_unreachable()
    later = [(b"retry-after", b"5")]
    return error(503, bad.code, bad.message, bad.data, headers=later)


def request_id(body: bytes) -> t.RequestId | None:
    """Return the ID of the request in a body, for its error response (`RPC-09`)."""
    try:
        envelope = jsonrpc.open_envelope(body)
    except Malformed:
        return None
    return None if envelope.method is UNSET or envelope.id is UNSET else envelope.id


class ErrorResponder:
    """Sends error responses, and logs those that concern security."""

    __slots__ = ("_log",)

    def __init__(self, log: AccessLog) -> None:
        self._log = log

    async def send(self, request: EndpointRequest, refusal: HttpRefusal) -> None:
        """Send a refusal as the complete response."""
        self._log.refused(refusal)
        await request.respond(refusal.status, refusal.body, headers=refusal.headers[1:])

    def status(
        self,
        request: EndpointRequest,
        denied: Sequence[Sequence[str]],
        answers: int,
        status: int = 200,
    ) -> tuple[int, Pairs]:
        """Return the status and headers of a JSON response (`AUS-04`, `AUT-06`).

        Args:
            request: The request.
            denied: The missing scopes of each refused call.
            answers: The number of responses in the body.
            status: The status if at least one call was not refused.
        """
        if not denied or len(denied) < answers:
            return status, ()
        scopes, headers = missing_scopes(denied, request.challenge)
        self._log.refused(
            HttpRefusal(403, why=f"insufficient scope: this needs {' '.join(scopes)}")
        )
        return 403, headers
