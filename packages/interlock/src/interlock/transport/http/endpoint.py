"""The MCP endpoint: admits an HTTP request, reads it, classifies it, and passes it to the stateless
or the session part.
"""

from __future__ import annotations

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
from ...store.errors import StoreError
from .admission import Admission
from .error_responses import store_away
from .legacy.sessions import SessionEndpoint
from .request_bodies import BodyReader
from .requests import EndpointRequest
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

    async def serve(self, request: EndpointRequest) -> None:
        """Classify a request, and run it."""
        try:
            # before the body is read
            refusal = self._admission.check(request)
            if refusal is None and self._admission.has_rate:
                refusal = await self._admission.check_rate(request)
            if refusal is not None:
                await self._services.errors.send(request, refusal)
                return
            if request.head.method == "POST":
                body = self._bodies.take(request)
                if body is None and (body := await self._bodies.read(request)) is None:
                    return
                request.body = body
            verdict = judge(self._rules, self._services.identity, request.head, request.body)
            match verdict:
                case Stateless():
                    await self._stateless.answer(verdict, request)
                case InSession():
                    await self._sessions.post(request, verdict)
                case HttpRefusal():
                    await self._services.errors.send(request, verdict)
                case Accepted():
                    await self._stateless.accept_notification(request)
                case OpensSession():
                    await self._sessions.open(request)
                case ListensInSession():
                    await self._sessions.listen(request, verdict)
                case EndsSession():
                    await self._sessions.end_session(request, verdict)
        except StoreError:
            await self._services.errors.send(request, store_away())
