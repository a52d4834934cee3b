"""What a server says to a client that shows no token: asked as any client would ask it, before anybody has logged in."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from ...fetch import Request
from ...version import VERSION
from .challenges import Challenge, read_challenges
from .discovery import REVISION
from .steps import Got, Procedure, Send

_OLDER = "2025-11-25"  # what servers that know no `server/discover` are asked in
_STEP = "request"


class Knock(Struct, frozen=True, kw_only=True):
    """A request without a token and what came of it: `method` is that of the message, `tried` are all methods until one was refused.

    `open` says that nothing that was tried was refused for lack of a token.
    """

    method: str
    tried: tuple[str, ...]
    got: Got
    challenges: tuple[Challenge, ...]

    @property
    def open(self) -> bool:
        """Whether the server answered a stranger."""
        return 200 <= self.got.status < 300


def knock(url: str) -> Procedure[Knock]:
    """Ask a server without a token until it refuses: what it is, and what tools it has. Raises Unreachable where it cannot be asked.

    There are servers that tell anybody who they are, and refuse only what follows; and older ones, which do not know the first question.
    """
    tried = ["server/discover"]
    got: Got = yield Send(modern(url, "server/discover"), _STEP)
    if 200 <= got.status < 300:
        tried.append("tools/list")
        got = yield Send(modern(url, "tools/list"), _STEP)
    elif 400 <= got.status < 500 and got.status not in (401, 403):
        tried.append("initialize")
        first = got
        got = yield Send(_handshake(url), _STEP)
        session = got.headers.get("mcp-session-id")
        if 200 <= got.status < 300:
            tried.append("tools/list")
            got = yield Send(_older(url, "tools/list", {}, session), _STEP)
            if got.status not in (401, 403):  # it may want more of a handshake than this, and has let us begin one
                got = Got(200, got.headers, b"")
            if session is not None:
                yield Send(Request("DELETE", url, (("Mcp-Session-Id", session), ("MCP-Protocol-Version", _OLDER))), _STEP)
        elif got.status not in (401, 403):
            got, tried = first, tried[:1]
    header = got.headers.get("www-authenticate", "")
    return Knock(method=tried[-1], tried=tuple(tried), got=got, challenges=tuple(read_challenges(header)))


def modern(url: str, method: str) -> Request:
    """A message of 2026-07-28 that says who asks, and holds no token."""
    about = {
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientInfo": {"name": "interlock", "version": VERSION},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return _post(url, method, {"_meta": about}, (("MCP-Protocol-Version", REVISION), ("Mcp-Method", method)))


def _handshake(url: str) -> Request:
    params = {"protocolVersion": _OLDER, "capabilities": {}, "clientInfo": {"name": "interlock", "version": VERSION}}
    return _post(url, "initialize", params, ())


def _older(url: str, method: str, params: dict[str, Any], session: str | None) -> Request:
    own = (("MCP-Protocol-Version", _OLDER), *((("Mcp-Session-Id", session),) if session is not None else ()))
    return _post(url, method, params, own)


def _post(url: str, method: str, params: dict[str, Any], own: tuple[tuple[str, str], ...]) -> Request:
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    headers = (("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream"), *own)
    return Request("POST", url, headers, body, again=True)
