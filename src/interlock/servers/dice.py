"""Dice with an app: a tool whose result hosts with a web face show as a small page, in which one can roll again (MCP Apps, 2026-01-26)."""

from __future__ import annotations

import random
from importlib import resources
from typing import Annotated, Any

from msgspec import Meta

from interlock import Server, ToolAnnotations, ToolResult

TABLE = "ui://everything/dice"
MIME_TYPE = "text/html;profile=mcp-app"
SAFE = ToolAnnotations(read_only_hint=True, open_world_hint=False)


def _roll(count: int) -> ToolResult[dict[str, Any]]:
    dice = [random.randint(1, 6) for _ in range(count)]  # a game, nothing that has to be secret
    rolled = {"dice": dice, "total": sum(dice)}
    said = f"Rolled {', '.join(map(str, dice))}: {sum(dice)} in all."  # hosts without apps, and the model, have it in words
    return ToolResult(rolled, said)


def offer(server: Server) -> None:
    """Give a server a tool with an app, a tool for that app alone, and the app's page."""

    @server.tool(
        title="Roll dice",
        annotations=SAFE,
        output_schema=SCHEMA,
        meta={"ui": {"resourceUri": TABLE}},
    )
    async def roll_dice(count: Annotated[int, Meta(ge=1, le=10)] = 2) -> ToolResult[dict[str, Any]]:
        """Roll dice; hosts that have apps show them on a table."""
        return _roll(count)

    @server.tool(
        title="Roll again",
        annotations=SAFE,
        output_schema=SCHEMA,
        meta={"ui": {"resourceUri": TABLE, "visibility": ["app"]}},
    )
    async def roll_again(
        count: Annotated[int, Meta(ge=1, le=10)] = 2,
    ) -> ToolResult[dict[str, Any]]:
        """Roll once more, as the button on the table wants it."""
        return _roll(count)

    @server.resource(TABLE, name="dice", title="A table for dice", mime_type=MIME_TYPE)
    async def table() -> str:
        """The page of the app: it needs nothing from outside, so it declares nothing."""
        return (resources.files("interlock.servers") / "dice.html").read_text(encoding="utf-8")


SCHEMA = {
    "type": "object",
    "properties": {
        "dice": {"type": "array", "items": {"type": "integer"}},
        "total": {"type": "integer"},
    },
    "required": ["dice", "total"],
}
