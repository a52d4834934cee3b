"""An extension of the protocol, with a method of its own, as anybody may make one (2026-07-28, "Extensions")."""

from __future__ import annotations

from collections.abc import Mapping

from interlock import Exchange, Handler, McpError, types

ECHO = "com.example/echo"
"""The id under which the extension is offered."""

METHOD = "example/echo"
MOST = 1000


class EchoParams(types.Params, frozen=True, kw_only=True):
    """Params of `example/echo`."""

    text: str


class EchoResult(types.Result, frozen=True, kw_only=True):
    """What was said, said again."""

    text: str


async def echo(x: Exchange) -> EchoResult:
    """Say the same again. Raises McpError (-32602) for what is too long."""
    params: EchoParams = x.params
    if len(params.text) > MOST:
        raise McpError(types.INVALID_PARAMS, f"At most {MOST} characters are echoed.")
    return EchoResult(text=params.text)


def echo_extension() -> Mapping[str, tuple[type[types.Params], Handler]]:
    """The methods of the extension."""
    return {METHOD: (EchoParams, echo)}
