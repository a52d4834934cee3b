"""Lists that a server declares but does not implement count as empty."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from .. import types as t

Items = TypeVar("Items")


async def unless_missing(listing: Awaitable[list[Items]]) -> list[Items] | None:
    """Return the items of a list, or None if the server does not have the method (-32601).

    Servers with hand-written handlers often declare `resources` and answer `resources/list` only.
    The other lists of such a server are still useful.

    Args:
        listing: A call of one of the `list_...` methods of a client, not yet awaited.

    Returns:
        The result of the call; None if the server answers METHOD_NOT_FOUND.

    Raises:
        McpError: The server answers with any other error.
        Unreachable: The server does not respond, or the connection is lost.
    """
    try:
        return await listing
    except t.McpError as bad:
        if bad.code != t.METHOD_NOT_FOUND:
            raise
        return None
