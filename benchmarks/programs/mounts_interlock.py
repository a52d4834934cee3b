"""Mounts of Interlock, for `python -m benchmarks.mounts`: `FIGURE URL`; or `serve PORT`."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager

from call_figures import Opened, measure

from interlock import Client, Server


def kitchen() -> Server:
    """The server that is mounted."""
    server = Server("kitchen")

    @server.tool
    async def order(dish: str) -> str:
        """Order something to eat."""
        return f"one {dish}"

    return server


def served(figure: str, url: str) -> tuple[object, str]:
    """Return the target of the client, and the name of the tool."""
    if figure == "direct":
        return kitchen(), "order"
    if figure == "url":
        return url, "order"
    front = Server("front")
    if figure == "mounted-url":
        front.mount(url, prefix="k")
    elif figure == "mounted":
        front.mount(kitchen(), prefix="k")
    else:
        middle = Server("middle")
        middle.mount(kitchen())
        front.mount(middle, prefix="k")
    return front, "k__order"


@asynccontextmanager
async def front(figure: str, url: str) -> Opened:
    """Open a client of a figure."""
    target, tool = served(figure, url)
    async with Client(target, revision="2026-07-28") as client:
        assert (await client.call_tool(tool, {"dish": "soup"})).text == "one soup"
        yield lambda: client.call_tool(tool, {"dish": "soup"})


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        kitchen().run("http", port=int(sys.argv[2]), log="off")
    else:
        measure(front)
