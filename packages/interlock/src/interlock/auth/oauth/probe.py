"""Probes a server without a token, as any client would before a login."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from ... import types as t
from ...http11.fetch import Request
from ...protocol.handshake.messages import OPENING
from ...version import VERSION
from .challenges import Challenge, read_challenges
from .discovery import REVISION
from .steps import Got, Procedure, SendRequest

_OLDER = "2025-11-25"  # the revision for servers that do not support `server/discover`
_STEP = "request"


class ProbeResult(Struct, frozen=True, kw_only=True):
    """A request without a token, and its response.

    Attributes:
        method: The method of the last message.
        tried: All methods that were sent, until one was refused.
        got: The last response.
        challenges: The challenges of that response.
    """

    method: str
    tried: tuple[str, ...]
    got: Got
    challenges: tuple[Challenge, ...]

    @property
    def open(self) -> bool:
        """Whether the server accepted requests without a token."""
        return 200 <= self.got.status < 300


def probe(url: str) -> Procedure[ProbeResult]:
    """Send a server requests without a token until it refuses one: who it is, then its tools.

    Some servers say to anyone who they are, and refuse only later requests. Older servers do not
    support the first request. Raises Unreachable if there is no response.
    """
    tried = ["server/discover"]
    first: Got = yield SendRequest(modern(url, "server/discover"), _STEP)
    got = first
    if 200 <= first.status < 300:
        tried.append("tools/list")
        got = yield from _more(modern(url, "tools/list"))
    elif 400 <= first.status < 500 and first.status not in (401, 403):
        got = yield from _probe_older_server(url, tried)
        if got.status not in (200, 401, 403):  # it supports neither request
            got = first
            tried = tried[:1]
    header = got.headers.get("www-authenticate", "")
    return ProbeResult(
        method=tried[-1], tried=tuple(tried), got=got, challenges=tuple(read_challenges(header))
    )


def _probe_older_server(url: str, tried: list[str]) -> Procedure[Got]:
    """The same for an older server: start a session, and end it."""
    tried.append(OPENING)
    got: Got = yield SendRequest(_handshake(url), _STEP)
    if not 200 <= got.status < 300:
        return got
    session = got.headers.get("mcp-session-id")
    own = (
        ("MCP-Protocol-Version", _OLDER),
        *((("Mcp-Session-Id", session),) if session is not None else ()),
    )
    tried.append("tools/list")
    got = yield from _more(_post(url, "tools/list", {}, own))
    if session is not None:
        yield from _more(Request("DELETE", url, own))
    return got


def _more(request: Request) -> Procedure[Got]:
    """The response to a request after the first one. Only a refusal counts: any other outcome,
    including no response, means that the server admitted us.
    """
    try:
        got: Got = yield SendRequest(request, _STEP)
    except t.Unreachable:
        return Got(200, {}, b"")
    return got if got.status in (401, 403) else Got(200, got.headers, b"")


def modern(url: str, method: str) -> Request:
    """A message of 2026-07-28 that names the client and has no token."""
    about = {
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientInfo": {"name": "interlock", "version": VERSION},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return _post(
        url, method, {"_meta": about}, (("MCP-Protocol-Version", REVISION), ("Mcp-Method", method))
    )


def _handshake(url: str) -> Request:
    params = {
        "protocolVersion": _OLDER,
        "capabilities": {},
        "clientInfo": {"name": "interlock", "version": VERSION},
    }
    return _post(url, OPENING, params, ())


def _post(
    url: str, method: str, params: dict[str, Any], own: tuple[tuple[str, str], ...]
) -> Request:
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    headers = (
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        *own,
    )
    return Request("POST", url, headers, body, again=True)
