"""How the tests call the tools of a server, and what they want of the answer: its data, its words,
or why it was refused.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock import CallToolResult, Client, TextContent
from interlock.wire.revisions import NEWEST, R4, REVISIONS

STRUCTURED_SINCE = "2025-06-18"

ON_THE_COMMAND_LINE = [
    pytest.param(one, marks=[] if one in (R4, NEWEST) else [pytest.mark.endurance(seconds=0.4)])
    for one in REVISIONS
]
"""The revisions under which a server is started as a program: `make test` takes one of each era."""


def told(client: Client, result: CallToolResult) -> str:
    """The texts of a result that are for reading: not the data, which stand behind them for clients
    that know no structured content.
    """
    assert not result.is_error, result.text
    texts = [block.text for block in result.content if isinstance(block, TextContent)]
    return "\n".join(
        texts if client.revision >= STRUCTURED_SINCE or len(texts) == 1 else texts[:-1]
    )


async def done(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool gives, as data."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.text
    assert isinstance(result.structured_content, dict)
    return result.structured_content


async def words(client: Client, tool: str, **arguments: Any) -> str:
    """What a tool gives to be read."""
    return told(client, await client.call_tool(tool, arguments))


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    """The words of a call that fails."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.text
    return result.text
