"""The contract check of sources: servers and clients keep it, and each broken promise is named."""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Client, McpError, Offered, Server, Source
from interlock.testing import check_source
from interlock.types import CallToolResult, Tool


def server() -> Server:
    made = Server("made")

    @made.tool
    async def greet(name: str = "Ada") -> str:
        """Greet."""
        return name

    made.add_resource("note://one", "one")
    return made


async def test_a_server_is_a_source() -> None:
    made: list[Server] = []

    async def make() -> Source:
        made.append(server())
        return made[-1].as_source()

    async def change(source: Source) -> None:
        made[-1].add_tool(lambda: "new", name="new")

    await check_source(make, change=change)


async def test_a_client_is_a_source() -> None:
    made: list[Server] = []

    async def make() -> Source:
        made.append(server())
        return Client(made[-1]).as_source()

    async def change(source: Source) -> None:
        made[-1].add_tool(lambda: "new", name="new")

    await check_source(make, change=change)


class Plain:
    """A source with one tool."""

    name = "plain"

    def __init__(self) -> None:
        self._tools = [Tool(name="one", input_schema={"type": "object"})]
        self._changed: list[Any] = []

    @property
    def offered(self) -> Offered | None:
        return Offered(tools=self._tools)

    async def open(self) -> None:
        """Nothing to open."""

    async def aclose(self) -> None:
        """Nothing to close."""

    def listen(self, changed: Any) -> Any:
        self._changed.append(changed)
        return lambda: self._changed.remove(changed)

    async def handle(self, x: Any, /) -> Any:
        if x.method != "tools/call":
            raise McpError(-32601, "Method not found")
        if x.params.name != "one":
            raise McpError(-32602, "Unknown tool")
        return CallToolResult(content=[])

    def rename(self) -> None:
        self._tools = [Tool(name="two", input_schema={"type": "object"})]
        for changed in list(self._changed):
            changed()


async def rename(source: Any) -> None:
    """Change the lists of a Plain."""
    source.rename()


async def test_a_source_of_an_author_keeps_the_contract() -> None:
    async def make() -> Source:
        return Plain()

    await check_source(make, change=rename)


class NeverRead(Plain):
    @property
    def offered(self) -> Offered | None:
        return None


class ListedTwice(Plain):
    @property
    def offered(self) -> Offered | None:
        return Offered(tools=[*self._tools, *self._tools])


class KnowsEverything(Plain):
    async def handle(self, x: Any, /) -> Any:
        return CallToolResult(content=[])


class KnowsNothing(Plain):
    async def handle(self, x: Any, /) -> Any:
        raise McpError(-32601, "Method not found")


class NeverStops(Plain):
    def listen(self, changed: Any) -> Any:
        self._changed.append(changed)
        return lambda: None


@pytest.mark.parametrize(
    "kind, words",
    [
        (NeverRead, "`offered` was None"),
        (ListedTwice, "the tools one are listed twice"),
        (KnowsEverything, "tools/call was answered with"),
        (KnowsNothing, "it does not know its tool one"),
        (NeverStops, "a listener that was stopped was called"),
    ],
)
async def test_each_broken_promise_is_named(kind: type[Plain], words: str) -> None:
    async def make() -> Source:
        return kind()

    with pytest.raises(AssertionError, match=words):
        await check_source(make, change=rename)
