"""The names of keys in `_meta`: their grammar, the prefixes that are reserved for MCP (2026-07-28,
"_meta"), and our own."""

from __future__ import annotations

import re
from collections.abc import Iterable

LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_KEY = rf"(?:{LABEL}(?:\.{LABEL})*/)?(?:{NAME})?"
_OWNERS = frozenset({"modelcontextprotocol", "mcp"})

POSITION = "dev.interlock/position"
"""The position of a change notice in its topic. It exists inside one process and is never sent."""
SINCE = "dev.interlock/since"
"""The position from which a listener wants replayed notices. It exists inside one process and is
never sent.
"""


def is_key(key: str) -> bool:
    """Whether a key is well formed: an optional prefix and a name (`MET-02`)."""
    return re.fullmatch(_KEY, key) is not None


def is_reserved(key: str) -> bool:
    """Whether the prefix of a key is reserved for MCP.

    2025-11-25 and later reserve prefixes whose second label is `modelcontextprotocol` or `mcp`
    (`MET-04`). 2025-06-18 reserves those whose last label but one is one of these (`MET-03`). This
    function applies both rules, because one server speaks all revisions.
    """
    prefix, slash, _ = key.partition("/")
    labels = prefix.lower().split(".")
    if not slash or len(labels) < 2:
        return False
    return labels[1] in _OWNERS or labels[-2] in _OWNERS


def check_keys(keys: Iterable[str]) -> list[str]:
    """Check the keys that an author puts into `_meta`.

    Returns:
        The keys that are reserved for MCP and its official extensions.

    Raises:
        ValueError: A key is malformed.
    """
    reserved = []
    for key in keys:
        if not is_key(key):
            raise ValueError(
                f"{key!r} is not a valid key for _meta: write a name of letters, digits, "
                "'-', '_' and '.', after a prefix such as 'com.example/' where it is "
                "your own"
            )
        if is_reserved(key):
            reserved.append(key)
    return reserved
