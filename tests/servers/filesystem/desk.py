"""How the tests of the filesystem server call its tools."""

from __future__ import annotations

from typing import Any

from interlock import Client


async def done(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool gives, as data."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.text
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def words(client: Client, tool: str, **arguments: Any) -> str:
    """What a tool gives, as text."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.text
    return result.text


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    """The words of a call that fails."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.text
    return result.text
