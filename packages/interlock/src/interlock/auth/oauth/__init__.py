"""The rules of OAuth that MCP uses, without I/O: documents, addresses, PKCE.

The procedures of the client are generators that yield the steps to be done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy_names import lazily

if TYPE_CHECKING:
    from .addresses import (
        checked_url,
        is_loopback,
        is_loopback_host,
        origin,
        plain_resource,
        same_resource,
    )
    from .codes import challenge_of
    from .documents import (
        ClientMetadata,
        ServerMetadata,
        TokenAnswer,
        cache_seconds,
        read_document,
        read_error,
    )

_ROOMS = {
    ".addresses": (
        "checked_url",
        "is_loopback",
        "is_loopback_host",
        "origin",
        "plain_resource",
        "same_resource",
    ),
    ".codes": ("challenge_of",),
    ".documents": (
        "ClientMetadata",
        "ServerMetadata",
        "TokenAnswer",
        "cache_seconds",
        "read_document",
        "read_error",
    ),
}

__all__ = [
    "ClientMetadata",
    "ServerMetadata",
    "TokenAnswer",
    "cache_seconds",
    "challenge_of",
    "checked_url",
    "is_loopback",
    "is_loopback_host",
    "origin",
    "plain_resource",
    "read_document",
    "read_error",
    "same_resource",
]

__getattr__, __dir__ = lazily(__name__, _ROOMS)
