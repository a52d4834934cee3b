"""Large pages of lists: rejected above a size limit, and decoded in pieces that do not block the
event loop for long.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from .. import types as t
from ..exchange import AnyResult
from ..wire.codec import decode
from ..wire.jsonrpc import READ_ERRORS, Malformed
from ..wire.revisions import METHODS

LARGE = 256 * 1024  # the size in bytes above which a page is decoded in pieces
# bytes of items that are decoded in one turn of the event loop, unless one item is larger
_PIECE = 64 * 1024
DEFAULT_LIST_ITEMS = 100_000
DEFAULT_LIST_BYTES = 64 * 1024 * 1024

LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resource_templates",
}
"""The methods whose results are pages, with the name of the field of items."""

_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_items = msgspec.json.Decoder(list[Raw]).decode
_encode = msgspec.json.Encoder().encode


class ListLimits(Struct, frozen=True):
    """The maximum size of a list over all its pages, in items and in bytes of JSON."""

    items: int = DEFAULT_LIST_ITEMS
    bytes: int = DEFAULT_LIST_BYTES

    def check(self, method: str, items: int, size: int) -> None:
        """Raise ProtocolError if a list, or a page of it, is larger."""
        if items > self.items:
            raise t.ProtocolError(
                f"The server's {method} has more than {self.items:,} items; max_list_items allows "
                "more."
            )
        if size > self.bytes:
            raise t.ProtocolError(
                f"The server's {method} has more than {self.bytes:,} bytes; max_list_bytes allows "
                "more."
            )


async def read_page(method: str, raw: Raw, limits: ListLimits) -> AnyResult | None:
    """Read a page of a list, as `read_result` does.

    Returns:
        The page; None if the result is not a page of items. Then use `read_result`.

    Raises:
        ProtocolError: The page exceeds the limits, or an item is invalid.
    """
    limits.check(method, 0, len(raw))
    kind: Any = METHODS[method].result
    field = LISTS[method]
    name = next(f.encode_name for f in msgspec.structs.fields(kind) if f.name == field)
    try:
        members = _decode_members(raw)
        items = _decode_items(members[name])
    except (KeyError, *READ_ERRORS):
        return None
    limits.check(method, len(items), 0)
    members[name] = Raw(b"[]")
    try:
        page = decode(_encode(members), kind)
        if page.result_type not in (None, "complete"):
            return None
        read: list[Any] = []
        element = _element(kind, field)
        for piece in _pieces(items):
            read += decode(piece, element)
            await asyncio.sleep(0)
    except Malformed as bad:
        raise t.ProtocolError(f"The server's answer to {method} cannot be read: {bad}") from None
    result: AnyResult = replace(page, **{field: read})
    return result


def _element(kind: Any, field: str) -> Any:
    """Return the type of the list of items."""
    return next(f.type for f in msgspec.structs.fields(kind) if f.name == field)


def _pieces(items: list[Raw]) -> Any:
    """Yield the items as JSON lists of about 64 KiB each."""
    piece: list[Raw] = []
    size = 0
    for item in items:
        piece.append(item)
        size += len(item)
        if size >= _PIECE:
            yield b"[" + b",".join(piece) + b"]"
            piece = []
            size = 0
    if piece:
        yield b"[" + b",".join(piece) + b"]"
