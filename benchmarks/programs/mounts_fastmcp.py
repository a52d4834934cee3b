"""Mounts of FastMCP, for `python -m benchmarks.mounts`: `FIGURE URL`. FastMCP's Python runs it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any

from call_figures import Opened, measure
from fastmcp import Client, FastMCP
from fastmcp.server import create_proxy


def kitchen() -> Any:
    """The server that is mounted."""
    server = FastMCP("kitchen")

    @server.tool
    async def order(dish: str) -> str:
        """Order something to eat."""
        return f"one {dish}"

    return server


def served(figure: str, url: str) -> tuple[Any, str]:
    """Return the target of the client, and the name of the tool."""
    if figure == "direct":
        return kitchen(), "order"
    if figure == "url":
        return url, "order"
    front = FastMCP("front")
    if figure == "mounted-url":
        front.mount(create_proxy(url), namespace="k")
    elif figure == "mounted":
        front.mount(kitchen(), namespace="k")
    else:
        middle = FastMCP("middle")
        middle.mount(kitchen())
        front.mount(middle, namespace="k")
    return front, "k_order"


@asynccontextmanager
async def front(figure: str, url: str) -> Opened:
    """Open a client of a figure."""
    target, tool = served(figure, url)
    async with Client(target) as client:
        assert (await client.call_tool(tool, {"dish": "soup"})).content[0].text == "one soup"
        yield lambda: client.call_tool(tool, {"dish": "soup"})


if __name__ == "__main__":
    measure(front)
