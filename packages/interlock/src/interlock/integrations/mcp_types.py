"""Our types and errors as those of the `mcp` package, versions 1 and 2."""

from __future__ import annotations

from typing import Any, NoReturn

from .. import types as t
from .model_calls import wire_form

try:
    from mcp import types
    from mcp.shared import exceptions
except ImportError as missing:
    raise ImportError("The package mcp is missing: pip install mcp") from missing

IS_FIRST = hasattr(exceptions, "McpError")
"""Whether this is version 1."""

_TIMED_OUT_1 = 408  # what version 1 calls a timeout, which has no constant for it


def as_mcp(name: str, value: Any) -> Any:
    """Return a protocol type, or data of its JSON, as the type of this name."""
    data = value if isinstance(value, dict) else wire_form(value)
    structured = data.get("structuredContent")
    if IS_FIRST and structured is not None and not isinstance(structured, dict):
        data["structuredContent"] = {"result": structured}  # version 1 knows objects only
    return getattr(types, name).model_validate(data)


def raise_as_mcp(error: t.InterlockError) -> NoReturn:
    """Raise an error of a client as the error that callers of the `mcp` package expect."""
    data: Any = None
    if isinstance(error, t.McpError):
        code = error.code
        message = error.message
        data = error.data
    else:
        code = types.CONNECTION_CLOSED
        if isinstance(error, t.TimedOut):
            code = _TIMED_OUT_1 if IS_FIRST else types.REQUEST_TIMEOUT
        message = str(error)
    if IS_FIRST:
        details = types.ErrorData(code=code, message=message, data=data)
        raise exceptions.McpError(details) from error
    raise exceptions.MCPError(code, message, data) from error
