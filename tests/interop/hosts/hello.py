"""The server that the hosts connect to: the one of the quickstarts, with a tool that asks."""

from __future__ import annotations

from interlock import Context, Server, ToolAnnotations

server = Server("hello")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def greet(name: str) -> str:
    """Greet somebody.

    Args:
        name: The name of the person.
    """
    return f"Hello, {name}!"


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def greet_the_user(ctx: Context) -> str:
    """Greet the user, after asking for the name."""
    name = await ctx.elicit("What is your name?", str)
    return f"Hello, {name}!"
