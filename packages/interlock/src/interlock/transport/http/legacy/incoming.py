"""One HTTP request to the endpoint, with its body, for the session that it belongs to."""

from __future__ import annotations

from msgspec import Struct

from interlock.exchange import Principal

from ..authorization import Scope
from ..responses import Receive, Send


class SessionRequest(Struct):
    """The request, and the `send` for its response."""

    body: bytes
    headers: dict[bytes, bytes]
    principal: Principal | None
    scope: Scope
    receive: Receive
    send: Send
