"""One form request to an endpoint of an authorization server."""

from __future__ import annotations

from ... import types as t
from ...http11.fetch import Request
from .errors import Unauthorized
from .steps import Got, Procedure, SendRequest


def post(request: Request, step: str) -> Procedure[Got]:
    """Send a request and return the response.

    Raises Unauthorized with the culprit "network" if there is no response.
    """
    try:
        got: Got = yield SendRequest(request, step)
    except t.Unreachable as bad:
        raise Unauthorized(
            step,
            f"no answer came ({str(bad).rstrip('.')})",
            document=request.url,
            expected="an answer",
            culprit="network",
        ) from bad
    return got
