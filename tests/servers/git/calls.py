"""Calls of tools, and what came of them, for the tests of the git server."""

from __future__ import annotations

from typing import Any

from interlock import Client


async def data(client: Client, tool: str, **arguments: Any) -> Any:
    """What a call gives, as data."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.text
    return result.structured_content


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    """The words of a call that fails."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.text
    return result.text


def paths(changes: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """What changed how."""
    return [(one["change"], one["path"]) for one in changes]
