"""One form request to an endpoint of an authorization server."""

from __future__ import annotations

from ... import types as t
from ...http11.fetch import Request
from .errors import Unauthorized
from .steps import Got, Procedure, SendRequest


def post(request: Request, step: str) -> Procedure[Got]:
    """The answer to a request.

    Raises Unauthorized where there is none; its culprit is then the network.
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
