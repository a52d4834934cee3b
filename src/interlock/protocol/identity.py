"""What a server says of itself, shared by all its connections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import types as t
from ..wire.jsonrpc import encode_json
from ..wire.revisions import METHODS, REVISIONS, Side

SERVER_INFO = "io.modelcontextprotocol/serverInfo"


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
        self.methods = methods or {}
        self.stamp = b'"resultType":"complete","_meta":{"%b":%b}' % (SERVER_INFO.encode(), encode_json(info))
        self.requests: dict[str, type[Any]] = {m: row.params for m, row in METHODS.items() if row.result and row.sender is not Side.SERVER}
        self.requests.update(self.methods)
