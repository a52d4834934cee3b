"""Features that ask for scopes, over every cell of the matrix: whoever runs a server at this
machine has all of them, a stranger has none."""

from __future__ import annotations

import pytest

from interlock import Client, McpError
from interlock.types import FORBIDDEN
from tests.wired.cells import Cell

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def refusal(client: Client, what: str) -> McpError | None:
    """How an operation is refused; None where it is not."""
    try:
        match what:
            case "tool":
                assert (await client.call_tool("open_vault")).text == "open"
            case "require":
                assert (await client.call_tool("ring", {"times": 2})).text == "dingding"
            case "resource":
                assert (await client.read_resource("vault://gold")).contents[0].text == "gold"
            case "template":
                assert (await client.read_resource("vault://drawers/3")).contents[
                    0
                ].text == "drawer 3"
            case "prompt":
                assert len((await client.get_prompt("combination")).messages) == 1
            case "subscription":
                async with client.watch(resources=["vault://gold"]):
                    pass
    except McpError as bad:
        return bad
    return None


NEEDED = {
    "tool": {"vault:open"},
    "require": {"bell:loud", "bell:long"},
    "resource": {"vault:open"},
    "template": {"vault:open", "vault:drawers"},
    "prompt": {"vault:open"},
    "subscription": {"vault:open"},
}


@pytest.mark.parametrize("what", NEEDED)
async def test_who_may(cell: Cell, what: str):
    """All of it in memory and over stdio, where credentials are those of whoever started the
    server; nothing of it over HTTP without a guard, with one error that names every scope
    (`AUT-01`, `AUT-17`, `AUS-08`)."""
    bad = await refusal(cell.client, what)
    if cell.transport in ("memory", "stdio"):
        assert bad is None
    else:
        assert bad is not None
        assert (bad.code, set(bad.data["requiredScopes"])) == (FORBIDDEN, NEEDED[what])


async def test_who_sees(cell: Cell):
    """Lists hold it for whoever may use it; what asks for a scope only when it is called is there
    for all, and works for all that do not need one."""
    seen = cell.transport in ("memory", "stdio")
    tools = {tool.name for tool in await cell.client.list_tools()}
    assert "ring" in tools
    assert ("open_vault" in tools) == seen
    assert ("vault://gold" in {one.uri for one in await cell.client.list_resources()}) == seen
    assert (
        "vault://drawers/{number}"
        in {one.uri_template for one in await cell.client.list_resource_templates()}
    ) == seen
    assert ("combination" in {one.name for one in await cell.client.list_prompts()}) == seen
    assert (await cell.client.call_tool("ring", {"times": 1})).text == "ding"
