"""What servers, and what lies in the log, may do to the page and to its address."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from interlock import Server
from interlock.host.log import MemoryLog
from interlock.host.models.scripted import call
from interlock.host.web.app import WebFace
from interlock.host.web.state import MOST_DESCRIPTION, MOST_SHOWN, plain
from interlock.types import CallToolResult, TextContent
from tests.host.web.asking import ORIGIN, Browser, host_of


async def test_what_a_server_says_of_itself_does_not_fill_the_page() -> None:
    """The state comes again and again; a description of megabytes in it would stop every page (`TOL-24`)."""
    server = Server("big", instructions="i" * 1_000_000)

    @server.tool(description="d" * 1_000_000, title="t" * 1_000_000)
    async def tool() -> str:
        """Nothing."""
        return ""

    async with host_of(big=server) as host:
        face = WebFace(host, origin=ORIGIN)
        state = face._state()
        face.close()
    assert len(msgspec.json.encode(state)) < 5 * MOST_DESCRIPTION
    (shown,) = state["servers"]
    assert shown["instructions"].endswith("(… 990,000 more characters)")
    assert shown["tools"][0]["description"].startswith("ddd")


def test_a_result_of_any_size_is_shown_as_far_as_a_page_can() -> None:
    """All texts of a record together are bounded, and what is left out is told."""
    result = CallToolResult(content=[TextContent(text="a" * MOST_SHOWN), TextContent(text="\u202e" * 100_000)])
    first, second = plain(result)["content"]
    assert first["text"] == "a" * MOST_SHOWN
    assert second["text"] == " (… 100,000 more characters)"


def test_arguments_are_shown_whole() -> None:
    """They may be edited, and what comes back of them is what is called with."""
    text = "a" * (MOST_SHOWN + 1)
    assert plain({"arguments": {"text": text}}) == {"arguments": {"text": text}}


@pytest.mark.parametrize("session", ["a%0d%0aset-cookie:%20x=y", "a%22b", "%C3%A9", "a%00b", "a%0ab"])
async def test_the_name_of_a_conversation_writes_no_header(session: str) -> None:
    """An export is named after its conversation where that is a name."""
    async with host_of("hello") as host:
        face = WebFace(host, origin=ORIGIN)
        browser = Browser(face)
        await browser.enter()
        answer = await browser.ask("GET", f"/api/log.jsonl?session={session}")
        face.close()
    assert answer.headers["content-disposition"] == "attachment"


async def test_a_call_within_a_call_of_the_hosts_own_tools_is_refused() -> None:
    """`use_tool` uses tools of servers; of the host's own it reads resources, which is judged as ever (`HST-06`)."""
    log = MemoryLog()
    nested = {"name": "interlock__use_tool", "arguments": {"name": "interlock__use_tool", "arguments": {}}}
    async with host_of(call("interlock__use_tool", **nested), "done", log=log, one=Server("one")) as host:
        session = host.session()
        ended = await asyncio.wait_for(session.say("go"), 20)
        result = session.messages[2].content[0]  # type: ignore[index,union-attr]  # the result of the use
    assert ended.reason == "done"
    assert result.is_error
