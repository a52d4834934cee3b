"""The JSON-RPC error codes that a server may send under a revision (2026-07-28, "Error Codes").

Handlers may raise any `McpError`, and forwarders pass on what a server of another revision
answered. A code that the
caller's revision does not have is replaced when the error is sent, because its receiver would take
it for something else.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from .. import types as t
from ..wire.revisions import ERRORS, error_code, supports

RESERVED: Final = range(-32099, -32019)
"""The codes that only the specification defines, from 2026-07-28 on (`ERR-02`)."""
_DEFINED: Final = frozenset(code for codes in ERRORS.values() for code in codes.values())
_encode = msgspec.json.Encoder().encode


def sendable(code: int, data: Any, revision: str) -> tuple[int, Any]:
    """Return the code and data that an error has under a revision.

    Args:
        code: The code that a handler gave.
        data: The detail that a handler gave.
        revision: The caller's revision.

    Returns:
        Both as they were where the revision has the code. "Resource not found" gets the code of the
        revision (`ERR-12`,
        `ERR-14`). A code that is reserved and not defined, or whose data are not what its
        definition demands, becomes
        an internal error without data (`ERR-02`, `ERR-15`).
    """
    if code == t.RESOURCE_NOT_FOUND:
        return error_code("resource_not_found", revision), data
    if code == t.URL_ELICITATION_REQUIRED:
        if supports(revision, "elicitation_ids") and _asks_for_visits(data):
            return code, data
        return t.INTERNAL_ERROR, None
    if code in RESERVED and code not in _DEFINED:
        return t.INTERNAL_ERROR, None
    return code, data


def _asks_for_visits(data: Any) -> bool:
    """Whether the data of "URL elicitation required" are questions with an URL and an id each
    (`ERR-15`)."""
    try:
        plain = msgspec.json.decode(_encode(data))
    except (TypeError, ValueError, RecursionError):
        return False
    asked = plain.get("elicitations") if isinstance(plain, dict) else None
    return isinstance(asked, list) and bool(asked) and all(_is_visit(one) for one in asked)


def _is_visit(asked: Any) -> bool:
    if not isinstance(asked, dict) or asked.get("mode") != "url":
        return False
    return all(isinstance(asked.get(name), str) for name in ("message", "url", "elicitationId"))
