"""The headers of a client's requests: revision, session, and the parts of the body that headers
repeat (2026-07-28, "Request Metadata").
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from interlock import types as t
from interlock.exchange import Exchange
from interlock.http11.headers import header_name
from interlock.logs import limited
from interlock.protocol.extensions import NO_EXTENSIONS
from interlock.protocol.handshake.messages import is_opening
from interlock.schema import SchemaError, header_parameters
from interlock.types.base import NOTHING
from interlock.wire.http import argument_value, encode_value
from interlock.wire.jsonrpc import READ_ERRORS
from interlock.wire.revisions import supports

log = limited("interlock.client")

Pairs = tuple[tuple[str, str], ...]
BOTH = "application/json, text/event-stream"
STREAM = "text/event-stream"
_OURS = frozenset({"accept", "content-type", "last-event-id"})
_SENDABLE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


class RequestHeaders:
    """Makes the headers of the requests to one server. `own` are the user's headers for each
    request.

    Headers of the protocol are removed from `own`. Raises ValueError for a header that cannot be
    sent.
    """

    def __init__(self, own: Mapping[str, str]) -> None:
        self._own: Pairs = tuple(
            (name, value) for name, value in own.items() if _is_free(name, value)
        )
        self._mirrors: dict[
            str, dict[str, tuple[str, ...]]
        ] = {}  # by tool: the arguments that headers repeat
        self.extensions = NO_EXTENSIONS  # the extensions of the client
        self._plain: dict[tuple[str, str], Pairs] = {}

    def post(self, x: Exchange, session: str | None) -> Pairs:
        """Return the headers of a POST with a request."""
        revision = x.caller.revision
        method = x.method
        head = self._plain.get((revision, method))
        if head is None:
            head = self._plain[revision, method] = self._head(revision, method)
        if not supports(revision, "mirrored_headers"):
            return head if session is None else (*head, ("Mcp-Session-Id", session))
        named = self.extensions.mirror(method, x.params)
        if named is None:
            return head
        arguments = x.params.arguments if method == "tools/call" else NOTHING
        return (*head, *self._mirrored(method, named, arguments))

    def request(
        self,
        revision: str,
        method: str,
        session: str | None,
        name: str | None = None,
        arguments: Raw = NOTHING,
    ) -> Pairs:
        """Return the headers of a POST with a request that has not been decoded.

        Args:
            revision: The revision of the request.
            method: Its method.
            session: The session, if there is one.
            name: The value that the header `Mcp-Name` repeats, if there is one.
            arguments: The arguments of a call of a tool.
        """
        head = self._head(revision, method)
        if not supports(revision, "mirrored_headers"):
            return head if session is None else (*head, ("Mcp-Session-Id", session))
        return head if name is None else (*head, *self._mirrored(method, name, arguments))

    def _mirrored(self, method: str, name: str, arguments: Raw) -> Pairs:
        """Return the headers that repeat the name and the arguments of a request."""
        mirrors = self._mirrors.get(name) if method == "tools/call" else None
        return (
            ("Mcp-Name", encode_value(name)),
            *(_arguments(mirrors, arguments) if mirrors else ()),
        )

    def message(self, revision: str, session: str | None) -> Pairs:
        """Return the headers of a POST with a notification or a response."""
        head = self._head(revision, None)
        return head if session is None else (*head, ("Mcp-Session-Id", session))

    def get(self, revision: str, session: str | None, last_event: str | None) -> Pairs:
        """Return the headers of a GET that opens a stream (`HTL-24`)."""
        head = [*self._own, ("Accept", STREAM)]
        if supports(revision, "version_header"):
            head.append(("MCP-Protocol-Version", revision))
        if session is not None:
            head.append(("Mcp-Session-Id", session))
        if last_event is not None:
            head.append(
                ("Last-Event-ID", last_event.encode().decode("latin-1"))
            )  # as UTF-8, as it was received
        return tuple(head)

    def _head(self, revision: str, method: str | None) -> Pairs:
        head = [*self._own, ("Content-Type", "application/json"), ("Accept", BOTH)]
        stateless = supports(revision, "mirrored_headers")
        is_first = method is not None and is_opening(method)  # its body names the revision
        if stateless or (supports(revision, "version_header") and not is_first):  # `HTL-47`
            head.append(("MCP-Protocol-Version", revision))
        if stateless and method is not None:
            head.append(("Mcp-Method", method))
        return tuple(head)

    # -- arguments that headers repeat -------------------------------------------------------------

    def learn(self, result: t.ListToolsResult) -> t.ListToolsResult:
        """Record the mirrored arguments of tools. Returns the result without the tools whose
        annotations break the rules (`XMH-08`).
        """
        good: list[t.Tool] = []
        for tool in result.tools:
            try:
                mirrors = header_parameters(tool.input_schema)
            except SchemaError as bad:
                log.warning("the tool %r is left out: %s", tool.name, bad)  # `XMH-09`
                self._mirrors.pop(tool.name, None)
                continue
            good.append(tool)
            if mirrors:
                self._mirrors[tool.name] = mirrors
            else:
                self._mirrors.pop(tool.name, None)
        return result if len(good) == len(result.tools) else replace(result, tools=good)

    def knows(self, tool: str) -> dict[str, tuple[str, ...]] | None:
        """Return the known mirrored arguments of a tool."""
        return self._mirrors.get(tool)


def _is_free(name: str, value: str) -> bool:
    """Whether the user may set a header."""
    header_name(name)
    if not _SENDABLE.fullmatch(value):
        raise ValueError(
            f"the value of {name} has characters that a header cannot have; is there a line's end "
            "in it, or a typed quote?"
        )
    if name.lower() in _OURS or name.lower().startswith("mcp-"):
        log.warning("the header %s is left out: the protocol says what is in it", name)
        return False
    return True


def _arguments(mirrors: Mapping[str, tuple[str, ...]], arguments: Raw) -> list[tuple[str, str]]:
    """Return the headers that repeat arguments (`XMH-11` to `XMH-16`)."""
    try:
        values: Any = msgspec.json.decode(arguments)
    except READ_ERRORS:
        return []
    headers: list[tuple[str, str]] = []
    for token, path in mirrors.items():
        value = values
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        said = argument_value(value)
        if said is not None:
            headers.append((f"Mcp-Param-{token}", said))
    return headers
