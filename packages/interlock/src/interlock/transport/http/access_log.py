"""The access log and the security log of an HTTP endpoint: requests with their outcome, refusals
and sessions.

One JSON object a line, through the loggers `interlock.access` (one line for each request, level
INFO) and `interlock.security` (refusals and sessions). The lines contain no bodies, arguments,
tokens or session IDs: a session is represented by a digest.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Sequence
from typing import Any

from ...logs import JsonLine, limited
from ...protocol.http import HttpRefusal
from .requests import EndpointRequest, Message, Scope, Send

access = logging.getLogger("interlock.access")
security = limited("interlock.security")
_LONGEST = 200  # characters of any value that a client has chosen
_TELLING = frozenset({401, 403, 404, 408, 413, 421, 429, 503})


def digest(session: str) -> str:
    """Return a digest of a session ID, to correlate lines. It cannot be used as the ID."""
    return hashlib.blake2b(session.encode("utf-8", "replace"), digest_size=6).hexdigest()


class AccessLog:
    """Writes the access log and the security log. If the access log is off, it costs nothing."""

    @property
    def is_on(self) -> bool:
        """Whether a handler receives the access log."""
        return access.isEnabledFor(logging.INFO)

    def watching(self, scope: Scope, send: Send) -> Send:
        """Return a `send` that logs the request once its response is complete."""
        began = time.perf_counter()
        status = 0
        sent = 0

        async def watched(message: Message) -> None:
            nonlocal status, sent
            await send(message)
            if message["type"] == "http.response.start":
                status = message["status"]
                return
            sent += len(message.get("body", b""))
            if not message.get("more_body", False):
                headers = dict(scope["headers"])
                line: dict[str, Any] = {
                    "event": "request",
                    "address": _address(scope.get("client")),
                    "method": scope["method"],
                    "path": scope["path"][:_LONGEST],
                    "status": status,
                    "bytes": sent,
                    "ms": round((time.perf_counter() - began) * 1000, 1),
                }
                for header, name in (
                    (b"mcp-method", "rpc"),
                    (b"mcp-name", "name"),
                    (b"mcp-protocol-version", "revision"),
                ):
                    if header in headers:
                        line[name] = headers[header][:_LONGEST].decode("latin-1")
                if b"mcp-session-id" in headers:
                    line["session"] = digest(headers[b"mcp-session-id"].decode("latin-1"))
                access.info("%s", JsonLine("request", line))

        return watched

    def refused(self, refused: HttpRefusal) -> None:
        """Log a refused request."""
        if refused.status in _TELLING:
            line = {
                "event": "refused",
                "status": refused.status,
                "why": refused.why[: 2 * _LONGEST],
            }
            security.warning("%s", JsonLine(("refused", refused.status), line))

    def session(self, what: str, session: str, request: EndpointRequest) -> None:
        """Log the start or the end of a session."""
        if security.isEnabledFor(logging.INFO):
            line = {
                "event": f"session {what}",
                "session": digest(session),
                "address": _address(request.client),
            }
            security.info("%s", JsonLine("session", line))

    def stolen(self, session: str, request: EndpointRequest) -> None:
        """Log the use of a session by a caller that it does not belong to."""
        line = {
            "event": "session of another principal",
            "session": digest(session),
            "address": _address(request.client),
        }
        security.warning("%s", JsonLine("stolen", line))


def _address(client: Sequence[Any] | None) -> str:
    return str(client[0])[:_LONGEST] if client else ""
