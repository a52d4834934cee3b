"""Tasks through a gateway: those of one revision are those of the other; a personal server's are
waited for."""

from __future__ import annotations

import pytest

from interlock import Client, Context, Server, Tasks
from tests.gateway.behind import connected, gateway_of, names_of, settings_of

BOTH = ("2025-11-25", "2026-07-28")


def slow() -> Server:
    """A server whose tool can be a task that asks."""
    server = Server("slow", extensions=[Tasks()])

    @server.tool(task="optional")
    async def work(ctx: Context) -> str:
        """Work, if the person agrees."""
        return f"agreed {await ctx.confirm('sure?')}"

    return server


async def outcome(client: Client) -> tuple[bool, str]:
    """Start the tool. Returns whether it became a task, and its result."""
    assert await names_of(client) == ["slow__work"]
    handle = await client.start_tool("slow__work")
    return handle.id is not None, (await handle.result()).text


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("behind", BOTH)
@pytest.mark.parametrize("front", BOTH)
async def test_tasks_of_either_revision(front: str, behind: str, shared: bool) -> None:
    text = f'[servers.slow]\ncommand = ["slow"]\nrevision = "{behind}"\n'
    settings = settings_of(f"{text}shared = {str(shared).lower()}\n")
    gateway = gateway_of(settings, {"slow": slow()})
    async with connected(gateway, revision=front, elicit=lambda q: {"confirm": True}) as client:
        assert await outcome(client) == (shared, "agreed True")
