"""Spellings of other SDKs that Interlock accepts, and those that it explains instead."""

from __future__ import annotations

import signal
import socket
from typing import Any

import pytest

from interlock import REVISIONS, Client, Context, Server, TextContent

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:Logging is deprecated:DeprecationWarning"),
]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_context_methods_may_be_awaited_or_not(revision: str) -> None:
    """Both forms send the same messages and the same progress."""
    server = Server("habits")

    @server.tool
    async def work(ctx: Context) -> str:
        await ctx.info("awaited", logger_name="part")
        ctx.warning("not awaited")
        await ctx.report_progress(1, total=3, message="one")
        ctx.report_progress(progress=2)
        return "done"

    said: list[tuple[Any, ...]] = []
    seen: list[tuple[Any, ...]] = []
    async with Client(
        server,
        revision=revision,
        log_level="debug",
        on_log=lambda one: said.append((one.level, one.data, one.logger)),
    ) as client:
        result = await client.call_tool("work", on_progress=lambda *one: seen.append(one))
    assert result.text == "done"
    assert said == [("info", "awaited", "part"), ("warning", "not awaited", None)]
    assert len(seen) == 2


async def test_annotations_may_be_a_dict() -> None:
    """The names are those of the protocol; others are an error that lists them."""
    server = Server("habits")

    @server.tool(annotations={"readOnlyHint": True, "title": "Look"})
    def look() -> str:
        return "there"

    async with Client(server) as client:
        (tool,) = await client.list_tools()
    assert tool.annotations is not None
    assert (tool.annotations.read_only_hint, tool.annotations.title) == (True, "Look")
    with pytest.raises(ValueError, match="unknown annotations: read_only; known are"):
        server.tool("other", annotations={"read_only": True})(look)
    with pytest.raises(ValueError, match="annotations: "):
        server.tool("other", annotations={"readOnlyHint": "maybe"})(look)


def test_streamable_http_is_http(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server listens, and ends when it is told to."""
    server = Server("habits")
    ready: list[Any] = []

    def end(address: Any) -> None:
        ready.append(address)
        signal.raise_signal(signal.SIGINT)

    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        server.run("streamable-http", sock=sock, on_ready=end)
    assert len(ready) == 1


def test_content_blocks_have_their_type() -> None:
    """`block.type` can be read; the constructor takes no type, which could contradict the class."""
    assert TextContent("x").type == "text"
    with pytest.raises(TypeError):
        TextContent(type="text", text="x")  # type: ignore[call-arg]  # reason: the point of the test
