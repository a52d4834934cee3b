"""What a server says of itself, shared by all its connections."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from .. import types as t
from ..exchange import Caller, Principal, RawResult
from ..wire.codec import encode
from ..wire.jsonrpc import Frame, encode_json, request_reader, stamped_response
from ..wire.revisions import (
    HANDSHAKE_REVISIONS,
    METHODS,
    REVISIONS,
    STATELESS_REVISIONS,
    Side,
    speaks,
)
from .extensions import NO_EXTENSIONS, ExtensionMessages
from .metadata import trace_of

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


class Identity:
    """What a server says of itself, shared by all its connections.

    `capabilities` is asked for each caller, for features come and go and not every caller sees all of them; `extensions`
    are the messages of the server's extensions.
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
        self.info, self.capabilities, self.instructions = info, capabilities, instructions
        self.revisions = tuple(r for r in REVISIONS if r in revisions)
        self.handshakes = any(r in HANDSHAKE_REVISIONS for r in self.revisions)
        self.stamp = b'"resultType":"complete","_meta":{"%b":%b}' % (
            SERVER_INFO.encode(),
            encode_json(info),
        )
        self._stateless = frozenset(self.revisions) & frozenset(STATELESS_REVISIONS)
        self.offer(extensions)

    def offer(self, extensions: ExtensionMessages) -> None:
        """Have these messages of extensions from now on; before the server runs."""
        self.extensions = extensions
        self.requests: dict[str, type[Any]] = {**_core_requests(), **extensions.requests}
        for method in ("initialize", "subscriptions/listen"):
            if (changed := extensions.params_of(method)) is not None:
                self.requests[method] = changed
        plain = not (extensions.requests or extensions.listens or extensions.core)
        self.read_request = _core_reader() if plain else request_reader(self.requests)

    def seen_by(self, change: Callable[[Caller], Caller]) -> Identity:
        """The same server for callers about whom its transport knows more than their connections do."""
        other, capabilities = copy(self), self.capabilities
        other.capabilities = lambda caller: capabilities(change(caller))
        return other

    def offered(self, caller: Caller, *, tells: bool) -> t.ServerCapabilities:
        """The capabilities for a handshake peer; where there is no way on which it could be told of changes, without any word of those."""
        offered = self.extensions.shown(self.capabilities(caller), caller.revision)
        if tells:
            return offered
        return replace(
            offered,
            tools=offered.tools and t.ListChangedCapability(),
            prompts=offered.prompts and t.ListChangedCapability(),
            resources=offered.resources and t.ResourcesCapability(),
        )

    def stamped(self, result: t.Result) -> t.Result:
        """A result with what the stateless era wants in it: `resultType`, and who answers, where it says neither of itself."""
        meta = {SERVER_INFO: self.info, **(result.meta or {})}
        return replace(result, meta=meta, result_type=result.result_type or "complete")

    def stamp_of(self, result: RawResult, revision: str) -> bytes:
        """The members that go to the head of a result that is encoded already; none where there are none."""
        own = b"" if result.meta is t.NOTHING else bytes(result.meta)[1:-1]
        if revision not in STATELESS_REVISIONS:
            return b'"_meta":{%b}' % own if own else b""
        return b"%b,%b}" % (self.stamp[:-1], own) if own else self.stamp

    def serves(self, revision: str, method: str) -> bool:
        """Whether there is such a method in a revision."""
        return (speaks(revision, method) and method in self.requests) or self.extensions.asks(
            revision, method
        )

    def stateless_caller(
        self,
        method: str,
        meta: t.RequestMeta,
        principal: Principal | None,
        session: str | None = None,
    ) -> Caller | None:
        """Who asks, by what a request of the stateless era says itself; None where it is to be refused."""
        revision, capabilities = meta.protocol_version, meta.client_capabilities
        if (
            capabilities is None
            or revision not in self._stateless
            or not self.serves(revision, method)
        ):
            return None
        return Caller(
            revision,
            capabilities,
            meta.client_info,
            meta.log_level,
            principal,
            session,
            trace=trace_of(meta),
        )

    def plain_answer(self, id: t.RequestId, caller: Caller, result: object) -> Frame | None:
        """The response of the stateless era to a request whose result says nothing of itself; None for whatever else a handler gave."""
        if isinstance(result, RawResult):
            return stamped_response(id, self.stamp_of(result, caller.revision), result.body)
        if (
            not isinstance(result, t.Result)
            or result.meta is not None
            or result.result_type is not None
        ):
            return None
        return stamped_response(id, self.stamp, encode(result, caller.revision))
