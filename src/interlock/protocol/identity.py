"""What a server says of itself, shared by all its connections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from .. import types as t
from ..wire.jsonrpc import Frame, encode_json, request_reader
from ..wire.revisions import HANDSHAKE_REVISIONS, METHODS, REVISIONS, Side

SERVER_INFO = "io.modelcontextprotocol/serverInfo"


def _core_requests() -> dict[str, type[Any]]:
    """The requests of the core protocol that a client sends, with their params types."""
    return {method: row.params for method, row in METHODS.items() if row.result and row.sender is not Side.SERVER}


@lru_cache(maxsize=1)
def _core_reader() -> Callable[[Frame], Any]:
    """The reader of the core protocol's requests, made once for all servers."""
    return request_reader(_core_requests())


class Identity:
    """What a server says of itself, shared by all its connections.

    `capabilities` is asked each time, for features come and go; `methods` are those of extensions, with their params types.
    """

    def __init__(
        self,
        info: t.Implementation,
        capabilities: Callable[[], t.ServerCapabilities],
        *,
        instructions: str | None = None,
        revisions: tuple[str, ...] = REVISIONS,
        methods: Mapping[str, type[Any]] | None = None,
    ) -> None:
        self.info, self.capabilities, self.instructions = info, capabilities, instructions
        self.revisions = tuple(r for r in REVISIONS if r in revisions)
        self.handshakes = any(r in HANDSHAKE_REVISIONS for r in self.revisions)
        self.methods = methods or {}
        self.stamp = b'"resultType":"complete","_meta":{"%b":%b}' % (SERVER_INFO.encode(), encode_json(info))
        self.requests = {**_core_requests(), **self.methods}
        self.read_request = _core_reader() if not self.methods else request_reader(self.requests)

    def stamped(self, result: t.Result) -> t.Result:
        """A result with what the stateless era wants in it: `resultType`, and who answers, where it says neither of itself."""
        meta = {SERVER_INFO: self.info, **(result.meta or {})}
        return replace(result, meta=meta, result_type=result.result_type or "complete")
