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
"""Inside one process, never sent: the position of a change notice in its topic."""
SINCE = "dev.interlock/since"
"""Inside one process, never sent: the position from which a listener wants to hear."""


def is_key(key: str) -> bool:
    """Whether a key has the form that the specification demands: an optional prefix and a name
    (`MET-02`)."""
    return re.fullmatch(_KEY, key) is not None


def is_reserved(key: str) -> bool:
    """Whether the prefix of a key is reserved for MCP.

    2025-11-25 and later reserve prefixes whose second label is `modelcontextprotocol` or `mcp`
    (`MET-04`), 2025-06-18 those
    whose last label but one is (`MET-03`). A key that any of them reserves is reserved here,
    because one server speaks all.
    """
    prefix, slash, _ = key.partition("/")
    labels = prefix.lower().split(".")
    if not slash or len(labels) < 2:
        return False
    return labels[1] in _OWNERS or labels[-2] in _OWNERS


def check_keys(keys: Iterable[str]) -> list[str]:
    """Check the keys that an author puts into `_meta`.

    Returns:
        Those that are reserved for MCP and its official extensions.

    Raises:
        ValueError: A key does not have the form that the specification demands.
    """
    reserved = []
    for key in keys:
        if not is_key(key):
            raise ValueError(
                f"{key!r} is no key for _meta: write a name of letters, digits, '-', '_' and '.', "
                "after a prefix such as"
                " 'com.example/' where it is your own"
            )
        if is_reserved(key):
            reserved.append(key)
    return reserved
