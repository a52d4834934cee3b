"""Dice with an MCP App: a page shows the roll and has a button to roll again (2026-01-26)."""

from __future__ import annotations

import random
from typing import Annotated, Any

from msgspec import Meta

from interlock import Server, ToolAnnotations, ToolResult

TABLE = "ui://everything/dice"
SAFE = ToolAnnotations(read_only_hint=True, open_world_hint=False)


def _roll(count: int) -> ToolResult[dict[str, Any]]:
    dice = [random.randint(1, 6) for _ in range(count)]  # a game: no need for secrecy
    rolled = {"dice": dice, "total": sum(dice)}
    # Text for hosts without apps, and for the model
    said = f"Rolled {', '.join(map(str, dice))}: {sum(dice)} in all."
    return ToolResult(rolled, said)


def offer(server: Server) -> None:
    """Add a tool with an app, a tool for that app alone, and the app's page."""

    @server.tool(
        title="Roll dice",
        annotations=SAFE,
        output_schema=SCHEMA,
    )
    async def roll_dice(count: Annotated[int, Meta(ge=1, le=10)] = 2) -> ToolResult[dict[str, Any]]:
        """Roll dice; hosts that have apps show them on a table."""
        return _roll(count)

    @server.tool(
        title="Roll again",
        annotations=SAFE,
        output_schema=SCHEMA,
    )
    async def roll_again(
        count: Annotated[int, Meta(ge=1, le=10)] = 2,
    ) -> ToolResult[dict[str, Any]]:
        """Roll once more, as the button on the table does."""
        return _roll(count)

    app = server.app(  # it needs no other origins, so it declares none
        "dice.html",
        tool=roll_dice,
        uri=TABLE,
        title="A table for dice",
        description="Shows the dice that were rolled, and rolls them again.",
    )
    app.link(roll_again, visibility=("app",))  # a button of the page calls it


SCHEMA = {
    "type": "object",
    "properties": {
        "dice": {"type": "array", "items": {"type": "integer"}},
        "total": {"type": "integer"},
    },
    "required": ["dice", "total"],
}
