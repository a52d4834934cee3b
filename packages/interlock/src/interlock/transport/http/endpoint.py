"""The MCP endpoint: admits an HTTP request, reads it, classifies it, and passes it to the stateless
or the session part.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...exchange import Principal
from ...protocol.http import (
    Accepted,
    EndpointRules,
    EndsSession,
    HttpRefusal,
    InSession,
    ListensInSession,
    OpensSession,
    Stateless,
    judge,
)
from .admission import Admission
from .authorization import PRINCIPAL, Scope
from .legacy.incoming import SessionRequest
from .legacy.sessions import SessionEndpoint
from .request_bodies import BodyReader
from .responses import Receive, Send
from .services import Services
from .stateless import StatelessEndpoint


class McpEndpoint:
    """Serves requests at the endpoint's path."""

    __slots__ = ("_admission", "_bodies", "_rules", "_services", "_sessions", "_stateless")

    def __init__(
        self,
        services: Services,
        rules: EndpointRules,
        admission: Admission,
        bodies: BodyReader,
        stateless: StatelessEndpoint,
        sessions: SessionEndpoint,
    ) -> None:
        self._services = services
        self._rules = rules
        self._admission = admission
        self._bodies = bodies
        self._stateless = stateless
        self._sessions = sessions

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Classify a request, and run it."""
        pairs: list[tuple[bytes, bytes]] = scope["headers"]
        headers = dict(pairs)
        repeated = [] if len(headers) == len(pairs) else _repeated(pairs)
        if b"accept" in repeated:  # a list in several headers is one list
            headers[b"accept"] = b", ".join(value for name, value in pairs if name == b"accept")
        if await self._admission.has_refused(headers, scope, send):  # before the body is read
            return
        method = scope["method"]
        body = await self._bodies.read(headers, receive, send) if method == "POST" else b""
        if body is None:
            return
        verdict = judge(self._rules, self._services.identity, method, headers, repeated, body)
        if isinstance(verdict, HttpRefusal):
            await self._services.errors.send(send, verdict)
            return
        principal: Principal | None = scope.get(PRINCIPAL)
        if isinstance(verdict, Stateless):
            await self._stateless.answer(verdict, body, principal, headers, scope, receive, send)
            return
        if isinstance(verdict, Accepted):
            await self._stateless.accept_notification(body, principal, scope, send)
            return
        x = SessionRequest(body, headers, principal, scope, receive, send)
        match verdict:
            case InSession():
                await self._sessions.post(x, verdict)
            case OpensSession():
                await self._sessions.open(x)
            case ListensInSession():
                await self._sessions.listen(x, verdict)
            case EndsSession():
                await self._sessions.end_session(x, verdict)


def _repeated(pairs: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
    """Return the names of headers that occur more than once."""
    seen: set[bytes] = set()
    repeated = []
    for name, _ in pairs:
        if name in seen:
            repeated.append(name)
        seen.add(name)
    return repeated
