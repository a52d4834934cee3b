"""The identity of a server: its info, capabilities, revisions and messages, shared by all its
connections.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import lru_cache
from typing import Any
from weakref import WeakSet

from msgspec.structs import replace

from .. import types as t
from ..exchange import Caller, RawResult
from ..wire.jsonrpc import Frame, encode_json, request_reader
from ..wire.revisions import (
    HANDSHAKE_REVISIONS,
    METHODS,
    REVISIONS,
    STATELESS_REVISIONS,
    Side,
    speaks,
)
from .extensions import NO_EXTENSIONS, ExtensionMessages

SERVER_INFO = "io.modelcontextprotocol/serverInfo"


def _core_requests() -> dict[str, type[Any]]:
    """The requests of the core protocol that a client sends, with their params types."""
    return {
        method: row.params
        for method, row in METHODS.items()
        if row.result and row.sender is not Side.SERVER
    }


@lru_cache(maxsize=1)
def _core_reader() -> Callable[[Frame], Any]:
    """The reader of the core protocol's requests, made once for all servers."""
    return request_reader(_core_requests())


def _as_is(caller: Caller) -> Caller:
    return caller


class Identity:
    """What a server says of itself.

    Args:
        info: Its name and version.
        capabilities: Returns the capabilities for a caller: features come and go, and not every
            caller sees all of them.
        instructions: How a model should use the server.
        revisions: The revisions that it supports.
        extensions: The messages of its extensions.
    """

    def __init__(
        self,
        info: t.Implementation,
        capabilities: Callable[[Caller], t.ServerCapabilities],
        *,
        instructions: str | None = None,
        revisions: tuple[str, ...] = REVISIONS,
        extensions: ExtensionMessages = NO_EXTENSIONS,
    ) -> None:
        self.info = info
        self.capabilities = capabilities
        self._seen_as: Callable[[Caller], Caller] = _as_is
        self._instructions = [instructions]  # one list for all copies (`seen_by`)
        self.revisions = tuple(r for r in REVISIONS if r in revisions)
        self.handshakes = any(r in HANDSHAKE_REVISIONS for r in self.revisions)
        self.stamp = b'"resultType":"complete","_meta":{"%b":%b}' % (
            SERVER_INFO.encode(),
            encode_json(info),
        )
        self.stateless_revisions = frozenset(self.revisions) & frozenset(STATELESS_REVISIONS)
        # The same server as other transports see it.
        self._others: WeakSet[Identity] = WeakSet()
        self.offer(extensions)

    @property
    def instructions(self) -> str | None:
        """How a model should use the server."""
        return self._instructions[0]

    @instructions.setter
    def instructions(self, text: str | None) -> None:
        self._instructions[0] = text

    def offer(self, extensions: ExtensionMessages) -> None:
        """Set the messages of the extensions, for all transports."""
        for identity in (self, *self._others):
            identity._set(extensions)

    def _set(self, extensions: ExtensionMessages) -> None:
        self.extensions = extensions
        self.requests: dict[str, type[Any]] = {**_core_requests(), **extensions.requests}
        for method in ("initialize", "subscriptions/listen"):
            if (changed := extensions.params_of(method)) is not None:
                self.requests[method] = changed
        plain = not (extensions.requests or extensions.listens or extensions.core)
        self.read_request = _core_reader() if plain else request_reader(self.requests)

    def seen_by(self, change: Callable[[Caller], Caller]) -> Identity:
        """The same server, for callers that its transport knows more about than their connections
        do.
        """
        other = copy(self)
        capabilities = self.capabilities
        other.capabilities = lambda caller: capabilities(change(caller))
        other._seen_as = change
        self._others.add(other)
        return other

    def offered(self, caller: Caller) -> t.ServerCapabilities:
        """Return the capabilities to declare to a caller, under its revision."""
        anonymous = self._seen_as(caller).anonymous
        return self.extensions.shown(
            self.capabilities(caller), caller.revision, anonymous=anonymous
        )

    def stamped(self, result: t.Result) -> t.Result:
        """A result with the members of the stateless era: `resultType`, and the server's info."""
        meta = {SERVER_INFO: self.info, **(result.meta or {})}
        return replace(result, meta=meta, result_type=result.result_type or "complete")

    def stamp_of(self, result: RawResult, revision: str) -> bytes:
        """The members to put at the head of a result that is encoded already; may be empty."""
        own = b"" if result.meta is t.NOTHING else bytes(result.meta)[1:-1]
        if revision not in STATELESS_REVISIONS:
            return b'"_meta":{%b}' % own if own else b""
        return b"%b,%b}" % (self.stamp[:-1], own) if own else self.stamp

    def serves(self, revision: str, method: str) -> bool:
        """Whether the server has a method under a revision."""
        return (speaks(revision, method) and method in self.requests) or self.extensions.asks(
            revision, method
        )

    def may_notify(self, caller: Caller, method: str) -> bool:
        """Whether a notification may go to a caller."""
        return speaks(caller.revision, method) or self.extensions.tells(method, caller)
