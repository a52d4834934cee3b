"""Features for some only: over memory and stdio they are the person's at this machine, over the
network without a guard nobody's."""

from __future__ import annotations

from interlock import Context, Server


def add_scoped(server: Server) -> None:
    """A tool, a resource, a template and a prompt that ask for scopes, and a tool that asks when it
    is called."""

    @server.tool(scopes=["vault:open"])
    async def open_vault() -> str:
        """Open it."""
        return "open"

    @server.tool
    async def ring(times: int, ctx: Context) -> str:
        """Ring once, or, where that is allowed, more often."""
        if times > 1:
            ctx.require("bell:loud", "bell:long")
        return "ding" * times

    server.add_resource("vault://gold", "gold", scopes=["vault:open"])

    @server.resource("vault://drawers/{number}", scopes=["vault:open", "vault:drawers"])
    async def drawer(number: int) -> str:
        """What is in it."""
        return f"drawer {number}"

    @server.prompt(scopes=["vault:open"])
    async def combination() -> str:
        """How to open it."""
        return "Left, right, left."
