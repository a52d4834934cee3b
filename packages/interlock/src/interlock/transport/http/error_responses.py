"""The error responses of the HTTP endpoint, their lines in the security log, and 403 challenges for
missing scopes.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from ... import types as t
from ...protocol.http import HttpRefusal, error
from ...wire import jsonrpc
from ...wire.jsonrpc import Malformed
from .access_log import AccessLog
from .authorization import missing_scopes
from .requests import EndpointRequest, Pairs

CLOSE = ((b"connection", b"close"),)


def busy(id: t.RequestId | None, headers: Sequence[tuple[bytes, bytes]] = ()) -> HttpRefusal:
    """Return the refusal for one request too many: 503, with a retry after a second."""
    words = "The server is busy. Try again later."
    return error(
        503,
        t.INTERNAL_ERROR,
        words,
        {"reason": "busy"},
        id=id,
        headers=[(b"retry-after", b"1"), *headers],
    )


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
