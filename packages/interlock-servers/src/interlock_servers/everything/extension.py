"""An extension of the protocol with a method of its own (2026-07-28, "Extensions")."""

from __future__ import annotations

from interlock import Exchange, Extension, McpError, Method, types

ECHO = "com.example/echo"
"""The id of the extension."""

METHOD = "example/echo"
MOST = 1000


class EchoParams(types.Params, frozen=True, kw_only=True):
    """Params of `example/echo`."""

    text: str


class EchoResult(types.Result, frozen=True, kw_only=True):
    """Result of `example/echo`."""

    text: str


async def echo(x: Exchange) -> EchoResult:
    """Return the same text. Raises McpError (-32602) if it is too long."""
    params: EchoParams = x.params
    if len(params.text) > MOST:
        raise McpError(types.INVALID_PARAMS, f"At most {MOST} characters are echoed.")
    return EchoResult(text=params.text)


def echo_extension() -> Extension:
    """The extension for the server.

    Clients need not declare it, so any client can try it.
    """
    method = Method(EchoParams, EchoResult, echo, open_to_all=True)
    return Extension(ECHO, settings={"most": MOST}, methods={METHOD: method})
