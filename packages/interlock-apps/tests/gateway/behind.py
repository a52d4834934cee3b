"""Gateways in this process, with servers of this process behind them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from interlock import Client, Context, Server
from interlock.store import MemoryVault
from interlock_apps.gateway.program import Gateway
from interlock_apps.gateway.settings import Settings, parse_settings

HERE = Path("gateway.toml")


def settings_of(text: str) -> Settings:
    """Read settings from text."""
    return parse_settings(text, HERE, {})


def with_servers(*names: str, more: str = "") -> str:
    """Return settings with these servers, whose commands are never started."""
    servers = "".join(f'[servers.{name}]\ncommand = ["{name}"]\n' for name in names)
    return f"{servers}{more}"


def kitchen(name: str = "kitchen") -> Server:
    """A server with a tool of each kind, a resource and a prompt."""
    server = Server(name)

    @server.tool
    async def order(dish: str, ctx: Context) -> str:
        """Order something to eat."""
        ctx.progress(1, 2, "asking")
        if not await ctx.confirm(f"One {dish}?"):
            return "nothing"
        return f"{name}: {dish}"

    @server.tool
    async def menu() -> str:
        """Show what there is to eat."""
        return f"{name}: soup"

    @server.resource("kitchen://board")
    async def board() -> str:
        """The board."""
        return f"board of {name}"

    @server.prompt
    async def cook(dish: str) -> str:
        """How to cook something."""
        return f"Cook {dish} at {name}"

    return server


def gateway_of(settings: Settings, servers: Mapping[str, Any], **options: Any) -> Gateway:
    """Return a gateway whose servers are in this process."""
    return Gateway(
        settings,
        vault=options.pop("vault", None) or MemoryVault(),
        transports=lambda entry: servers[entry.id],
        **options,
    )


@asynccontextmanager
async def connected(gateway: Gateway, view: str = "", **options: Any) -> AsyncIterator[Client]:
    """Connect a client to a view of a gateway, in memory."""
    async with Client(gateway.view(view).server, **options) as client:
        yield client


async def names_of(client: Client) -> list[str]:
    """Return the names of all tools."""
    return [tool.name for tool in await client.list_tools()]
