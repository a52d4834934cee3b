"""Tools, prompts and resources that appear and disappear while the server runs."""

from __future__ import annotations

from interlock import Server, ToolError

from .state import CHANGES, PURE, REMOVES, Ctx


async def grow(ctx: Ctx) -> str:
    """Add a tool, a prompt and a resource while the server runs; whoever listens is told that the
    lists are not as they were.
    """
    extras = ctx.lifespan_state.extras
    most = ctx.lifespan_state.limits.extras
    if len(extras) >= most:
        raise ToolError(f"There are already {most} extra tools, the maximum. Call shrink.")
    number = extras[-1] + 1 if extras else 1

    async def extra() -> str:
        return f"I am extra {number}."

    name = f"extra_{number}"
    title = f"Extra {number}"
    ctx.server.add_tool(
        extra, name=name, title=title, description="A tool that came later.", annotations=PURE
    )
    ctx.server.add_prompt(extra, name=name, title=title, description="A prompt that came later.")
    ctx.server.add_resource(
        f"everything://extras/{number}",
        extra,
        name=name,
        title=title,
        description="A resource that came later.",
    )
    extras.append(number)
    return name


async def shrink(ctx: Ctx) -> str:
    """Take the latest extra tool, its prompt and its resource away again."""
    if not ctx.lifespan_state.extras:
        raise ToolError("There is no extra tool. Call grow first.")
    number = ctx.lifespan_state.extras.pop()
    name = f"extra_{number}"
    ctx.server.remove_tool(name)
    ctx.server.remove_prompt(name)
    ctx.server.remove_resource(f"everything://extras/{number}")
    return name


def add_growing(server: Server) -> None:
    """Add the tools of this file to a server."""
    server.tool(title="Grow", annotations=CHANGES)(grow)
    server.tool(title="Shrink", annotations=REMOVES)(shrink)
