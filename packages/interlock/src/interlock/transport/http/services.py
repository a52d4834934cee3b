"""The shared services of one HTTP endpoint: the handler, the server's identity, limits, clock,
counters and logs.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...exchange import ExchangeTransport, Handler
from ...protocol.events import RequestReceived
from ...protocol.handshake.server import ServerConnection
from ...protocol.identity import Identity
from ...protocol.streams import PostResponse
from ..serve import Serving
from .access_log import AccessLog
from .error_responses import ErrorResponder
from .limits import Limits
from .requests import EndpointRequest
from .responses import ResponseWriter
from .running_calls import RunningCalls
from .shutdown import Shutdown
from .ticker import Ticker


@dataclass(frozen=True, slots=True)
class Services:
    """The collaborators that the parts of one endpoint share. None of them refers to a part."""

    handler: Handler
    identity: Identity
    limits: Limits
    log: AccessLog
    errors: ErrorResponder
    ticker: Ticker
    calls: RunningCalls
    shutdown: Shutdown

    def serve_alone(
        self,
        event: RequestReceived,
        response: PostResponse,
        request: EndpointRequest,
        transport: ExchangeTransport,
        *,
        cancels: bool,
    ) -> tuple[Serving, ResponseWriter]:
        """Make a connection for one stateless request, and the writer of its response.

        Args:
            event: The request.
            response: The possible forms of its response.
            request: Its POST.
            transport: The transport, as its handler sees it.
            cancels: Whether the client's disconnect cancels it.
        """
        connection = ServerConnection(self.identity, principal=event.caller.principal, shared=False)
        connection.adopt(event)
        reply = ResponseWriter(response, request, connection, cancels=cancels)
        serving = Serving(
            self.handler,
            connection,
            reply.transmit,
            drain=reply.drain,
            queued=lambda: reply.queued,
            transport=transport,
        )
        return serving, reply
