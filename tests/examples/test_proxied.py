"""The proxy: hidden arguments, and middleware around somebody else's server."""

from __future__ import annotations

from typing import Any

import pytest

from examples.proxied import proxied
from interlock import Client, Context, McpError, Server, ToolError
from interlock.testing import Clock


def people(calls: list[Any]) -> Server:
    """The server behind."""
    server = Server("people")

    @server.tool
    async def find_people(
        q: str, limit: int = 5, session_cookie: str = "", debug: bool = False
    ) -> list[str]:
        """Find people."""
        calls.append((q, limit, session_cookie, debug))
        return [f"{q} {number}" for number in range(2)]

    @server.tool
    async def get_profile(name: str) -> str:
        """Return a profile."""
        if name == "nobody":
            raise ToolError("No file /var/lib/people/nobody.")
        return name * (100_000 if name == "x" else 1)

    @server.tool
    async def long_report(ctx: Context) -> str:
        """Write a report."""
        for step in range(1, 4):
            ctx.progress(step, 3)
        return f"done: {await ctx.confirm('Send it?')}"

    @server.tool
    async def delete_everybody() -> str:
        """Not for everyone."""
        return "gone"

    return server


async def test_the_tools_of_the_proxy() -> None:
    calls: list[Any] = []
    async with Client(proxied(Client(people(calls)), timing=bool)) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert list(tools) == ["people__search", "people__get_profile", "people__long_report"]
        search = tools["people__search"]
        assert list(search.input_schema["properties"]) == ["name"]
        assert search.annotations is not None
        assert search.annotations.read_only_hint is True
        for _ in range(2):
            found = await client.call_tool("people__search", {"name": "Ada"})
            assert found.value() == ["Ada 0", "Ada 1"]
        with pytest.raises(McpError, match="Unknown tool"):
            await client.call_tool("people__delete_everybody")
    assert calls == [("Ada", 20, "", False)]  # the second call came from the cache


async def test_errors_sizes_rates_progress_and_questions() -> None:
    timed: list[str] = []
    progress: list[float] = []
    proxy = proxied(
        Client(people([])), timing=lambda entry: timed.append(entry.outcome), clock=Clock()
    )
    async with Client(proxy, elicit=lambda question: {"confirm": True}) as client:
        missing = await client.call_tool("people__get_profile", {"name": "nobody"})
        assert missing.text == "No file the store/nobody."
        large = await client.call_tool("people__get_profile", {"name": "x"})
        assert "at most 50,000 are allowed" in large.text
        report = await client.call_tool(
            "people__long_report", on_progress=lambda p: progress.append(p.progress)
        )
        assert report.text == "done: True"
        assert progress == [1, 2, 3]
        for number in range(3):
            await client.call_tool("people__search", {"name": str(number)})
        with pytest.raises(McpError, match="Too many requests"):
            await client.call_tool("people__search", {"name": "one more"})
    assert "tool error" in timed
    assert "error -32603" in timed
