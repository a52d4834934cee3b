"""HTTP errors as exceptions of a client: JSON-RPC errors, ended sessions, redirects and status
codes, each with advice.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urljoin, urlsplit

import msgspec
from msgspec import UNSET

from interlock import types as t
from interlock.http11.fetch import Response
from interlock.redaction.urls import url_without_secrets
from interlock.wire import jsonrpc
from interlock.wire.jsonrpc import Malformed

_WORDS = 300  # characters of an unreadable response that an error quotes

_ADVICE = {
    401: (
        "The server wants to know who asks: let the client log in (auth=OAuth(), "
        "or `interlock auth login`), or give a token."
    ),
    403: (
        "The server does not let this client in: is the token right, "
        "and the address the one by which the server knows itself?"
    ),
    404: "Is this the address of the server's MCP endpoint, path and all?",
    405: "Is this the address of the server's MCP endpoint, path and all?",
    407: "Put user:password@ before the proxy's host in HTTPS_PROXY.",
    413: "The message is larger than the server takes.",
    429: "The server has too much to do: try again later.",
}


class SessionGone(t.Unreachable):
    """The server no longer has the session, and has not run the request."""


def rejects_protocol(status: int | None) -> bool:
    """Whether a status means that the server does not support this transport or era. A server
    failure and a request for authorization do not mean that (`ERA-15`).
    """
    return status is not None and 400 <= status < 500 and status not in (401, 403, 407, 408, 429)


def may_pass(status: int | None) -> bool:
    """Whether a refusal with this status may be temporary; None stands for no response."""
    return status is None or status >= 500 or status in (408, 425, 429)


def resolve(url: str, reference: str) -> str | None:
    """Return the URL of a reference in a response from `url`; None for another origin, to which
    nothing is sent.

    The same origin means the same scheme, host and port. A change from http to https on the default
    ports is allowed. Invalid URLs, and URLs with other user information, are rejected.
    """
    try:
        target = urljoin(url, reference.strip())
        ours = urlsplit(url)
        theirs = urlsplit(target)
        who = theirs.netloc.rpartition("@")[0]
        if ours.hostname != theirs.hostname or who not in ("", ours.netloc.rpartition("@")[0]):
            return None
        if not (target.isascii() and target.isprintable()) or " " in target:
            return None
        if ours.scheme == theirs.scheme:
            return target if _port(ours) == _port(theirs) else None
        return (
            target
            if ours.scheme == "http"
            and theirs.scheme == "https"
            and _port(ours) == 80
            and _port(theirs) == 443
            else None
        )
    except ValueError:
        return None


def _port(parts: Any) -> int:
    return int(parts.port or (443 if parts.scheme == "https" else 80))


def session_of(response: Response) -> str | None:
    """Return the ID of the session that a response opens. Raises ProtocolError for an ID that
    cannot be sent in a header (`HTL-38`).
    """
    id = response.headers.get("mcp-session-id")
    if id is not None and not (id and all("!" <= c <= "~" for c in id)):
        raise t.ProtocolError(
            "The server gave a session id with characters that it may not have, so that it cannot "
            "be sent back."
        )
    return id


def error_of(body: bytes) -> t.McpError | None:
    """Return the JSON-RPC error in a body, whatever its ID; None for any other body."""
    try:
        envelope = jsonrpc.open_envelope(body)
    except Malformed:
        try:
            said = msgspec.json.decode(body, type=dict[str, Any]).get(
                "error"
            )  # an error with a null ID or without one
            return (
                t.McpError(int(said["code"]), str(said["message"]), said.get("data"))
                if isinstance(said, dict)
                else None
            )
        except (
            msgspec.DecodeError,
            UnicodeDecodeError,
            RecursionError,
            KeyError,
            TypeError,
            ValueError,
        ):
            return None
    if envelope.error is UNSET or envelope.error is None:
        return None
    return t.McpError(envelope.error.code, envelope.error.message, envelope.error.data)


def refusal(url: str, response: Response, body: bytes) -> t.Unreachable:
    """Return the exception for a refusal, with advice."""
    status = response.status
    error = error_of(body)
    if error is not None:
        said = f": {error.message}"
    elif body:
        said = f": {shown(body)}"
    else:
        said = ""
    advice = _ADVICE.get(
        status,
        "The server, or a proxy before it, is in trouble: its log should say more."
        if status >= 500
        else "",
    )
    later = response.headers.get("retry-after", "")
    if later.isdecimal() and len(later) < 9 and may_pass(status):
        advice = f"{advice} It asks to wait {later} seconds.".strip()
    words = f"{url_without_secrets(url)} answered with status {status}{said}"
    return t.Unreachable(f"{words.rstrip('.')}. {advice}".rstrip(), status=status)


def shown(body: bytes) -> str:
    """Return the beginning of an unreadable body, in one line."""
    text = " ".join(
        "".join(
            c if c.isprintable() else " " for c in body[:_WORDS].decode("utf-8", "replace")
        ).split()
    )
    return f"{text}..." if len(body) > _WORDS else text
