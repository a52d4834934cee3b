"""The inspector's page in a browser: timeline, messages, filter, edit and send, saved calls, two
connections side by side, and a tape offline.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock import REVISIONS
from interlock.tape import Recorder
from interlock_apps.inspector.targets import InspectorTarget
from tests.inspector.stage import InspectorStage, inspected
from tests.web.stage import TELEPHONE, shot

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="session")]


async def call(stage: InspectorStage, tool: str, connection: str = "travel", **given: Any) -> Any:
    """Call a tool over a connection of the inspector."""
    client = stage.inspector.connections[connection].client
    assert client is not None
    return await client.call_tool(tool, given)


def rows(page: Any, words: str) -> Any:
    """The rows of the timeline whose text has these words, in this order."""
    pattern = re.compile(words.replace(", ", ".*").replace("/", "."))
    return page.get_by_role("listbox", name="Messages").get_by_role("option", name=pattern)


async def search(stage: InspectorStage) -> Any:
    return await call(stage, "search_flights", origin="VIE", destination="BCN", date="2026-12-01")


async def test_the_timeline_shows_messages_as_they_come(chromium: Any, tmp_path: Path) -> None:
    """Each request and its response is a row; a call that comes later is added."""
    async with inspected(chromium, tmp_path) as stage:
        page = await stage.page()
        await rows(page, "server/discover").first.wait_for()
        await search(stage)
        await rows(page, "from the client, tools/call, search_flights").wait_for()
        await rows(page, "response to, tools/call, search_flights").wait_for()
        await call(stage, "cancel", booking=3)
        await rows(page, "from the client, tools/call, cancel, failed").wait_for()
        await shot(page, "inspector-timeline")


async def test_a_message_is_shown_in_detail(chromium: Any, tmp_path: Path) -> None:
    """Indented, raw, and as each revision would have it; its response is one click away."""
    async with inspected(chromium, tmp_path) as stage:
        await search(stage)
        page = await stage.page()
        await rows(page, "from the client, tools/call, search_flights").click()
        panel = page.get_by_role("complementary", name="Message")
        await panel.get_by_text('"destination": "BCN"').wait_for()
        await (
            panel.get_by_role("region", name="the command")
            .get_by_text("interlock call travel.py search_flights")
            .wait_for()
        )
        await shot(page, "inspector-message")
        await panel.get_by_role("button", name="tools/call search_flights").click()
        await panel.get_by_text("Response", exact=True).wait_for()
        await (
            panel.get_by_role("group", name="View").get_by_role("button", name="Revisions").click()
        )
        await panel.get_by_text('"resultType": "complete"').wait_for()
        await (
            panel.get_by_role("group", name="Revision", exact=True)
            .get_by_role("button", name=REVISIONS[0])
            .click()
        )
        text = panel.get_by_role("region", name=f"the message under {REVISIONS[0]}")
        await text.wait_for()
        assert "structuredContent" not in await text.inner_text()
        # A reload shows the same.
        await page.reload()
        await panel.get_by_text('"structuredContent"').wait_for()
        await panel.get_by_role("button", name="Close the message").click()
        await panel.wait_for(state="detached")


async def test_a_filter_is_typed_and_kept(chromium: Any, tmp_path: Path) -> None:
    async with inspected(chromium, tmp_path) as stage:
        await search(stage)
        await call(stage, "cancel", booking=3)
        page = await stage.page()
        field = page.get_by_role("searchbox", name="Filter")
        await field.fill("tool:search* request")
        await page.get_by_text("1 line", exact=True).wait_for()
        await rows(page, "search_flights").wait_for()
        await page.reload()
        await page.get_by_text("1 line", exact=True).wait_for()
        assert await field.input_value() == "tool:search* request"
        await field.fill("serch")
        await page.get_by_text("'serch' is not a word of the filter").wait_for()
        await shot(page, "inspector-filter")
        await field.fill("")
        await page.get_by_role("button", name="Errors").click()
        await page.get_by_text("2 lines", exact=True).wait_for()
        assert await field.input_value() == "error"


async def test_a_request_is_edited_and_sent_again(chromium: Any, tmp_path: Path) -> None:
    """The result is a new row, and is shown."""
    async with inspected(chromium, tmp_path) as stage:
        await call(stage, "cancel", booking=3)
        page = await stage.page()
        await rows(page, "from the client, tools/call, cancel").click()
        panel = page.get_by_role("complementary", name="Message")
        await panel.get_by_text("Edit and send again").click()
        params = panel.get_by_label("Params")
        await params.fill('{"name": "cancel"')
        await panel.get_by_text("Not JSON").wait_for()
        assert await panel.get_by_role("button", name="Send").is_disabled()
        await params.fill('{"name": "cancel", "arguments": {"booking": "four"}, "odd": 1}')
        await panel.get_by_role("button", name="Send").click()
        await panel.get_by_text("params.odd: the protocol has no such member.").wait_for()
        await panel.get_by_text('"booking": "four"').wait_for()
        await (
            panel.get_by_role("list", name="Related messages").get_by_text("Answered by").wait_for()
        )
        await shot(page, "inspector-sent")


async def test_a_call_is_saved_run_and_deleted(chromium: Any, tmp_path: Path) -> None:
    async with inspected(chromium, tmp_path) as stage:
        await search(stage)
        page = await stage.page()
        await rows(page, "from the client, tools/call, search_flights").click()
        panel = page.get_by_role("complementary", name="Message")
        await panel.get_by_text("Edit and send again").click()
        await panel.get_by_label("Name of the saved call").fill("Vienna")
        await panel.get_by_role("button", name="Save").click()
        await page.get_by_text("Saved as Vienna.").wait_for()
        await page.get_by_role("tab", name="Saved calls").click()
        await page.get_by_role("heading", name="Vienna").wait_for()
        await page.get_by_role("button", name="As a command: Vienna").click()
        await (
            page.get_by_role("region", name="Command", exact=True).get_by_text("--json").wait_for()
        )
        await page.get_by_role("button", name="Run as a test: Vienna").click()
        await (
            page.get_by_role("region", name="Test", exact=True)
            .get_by_text('call = "search_flights"')
            .wait_for()
        )
        await shot(page, "inspector-saved")
        await page.get_by_role("button", name="Run Vienna").click()
        await panel.get_by_text('"origin": "VIE"').wait_for()
        await rows(page, "from the client, tools/call, search_flights").nth(1).wait_for()
        await page.get_by_role("tab", name="Saved calls").click()
        await page.get_by_role("button", name="Delete Vienna").click()
        await page.get_by_text("There are no saved calls.").wait_for()


async def test_the_revision_of_a_connection_is_changed(chromium: Any, tmp_path: Path) -> None:
    async with inspected(chromium, tmp_path) as stage:
        page = await stage.page()
        side = page.get_by_role("navigation", name="Connections")
        await side.get_by_role("button", name="travel").click()
        await side.get_by_label("Revision").select_option(REVISIONS[1])
        await side.get_by_text(f"connected · {REVISIONS[1]}").wait_for()
        assert stage.inspector.connections["travel"].revision == REVISIONS[1]
        await side.get_by_role("button", name="Connect again").click()
        await side.get_by_role("button", name="travel (2)").wait_for()
        await side.get_by_role("button", name="Disconnect").click()
        await side.get_by_text("not connected").wait_for()
        await side.get_by_role("button", name="Connect", exact=True).click()
        # Not the other connection, which has the same words.
        await side.get_by_role("button", name=f"travel connected · {REVISIONS[1]}").wait_for()


async def test_a_connection_becomes_a_test(chromium: Any, tmp_path: Path) -> None:
    async with inspected(chromium, tmp_path) as stage:
        await search(stage)
        await call(stage, "cancel", booking=3)
        page = await stage.page("connection=travel")
        await page.get_by_role("button", name="As a test").click()
        text = page.get_by_role("dialog", name="A test of travel").get_by_role("region")
        await text.get_by_text('call = "search_flights"').wait_for()
        assert 'expect.error = "tool"' in await text.inner_text()
        await shot(page, "inspector-connection-test")
        await page.keyboard.press("Escape")
        await text.wait_for(state="detached")


async def test_two_connections_are_compared(chromium: Any, tmp_path: Path) -> None:
    async with inspected(chromium, tmp_path) as stage:
        page = await stage.page("tab=compare")
        await page.get_by_role("button", name="Compare what they offer").click()
        await page.get_by_text("would break callers").wait_for()
        await page.get_by_text("search_flights").first.click()
        await (
            page.get_by_role("region", name="Second version")
            .get_by_text("Not offered.")
            .first.wait_for()
        )
        for name in ("travel", "weather"):
            side = page.get_by_role("listbox", name=f"Messages of {name}")
            await side.get_by_role("option", name="tools/list").first.wait_for()
        await shot(page, "inspector-compare")


async def test_a_tape_is_shown_offline(chromium: Any, tmp_path: Path) -> None:
    """100,000 messages: the list is virtual, and its end is reached at once."""
    path = tmp_path / "long.tape"
    with Recorder(path) as recorder:
        connection = recorder.connection()
        frame = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t%d"}}'
        for start in range(0, 50_000, 1000):
            numbers = range(start, start + 1000)
            connection.frames("client", [(frame % (n, n)).encode() for n in numbers])
            connection.frames(
                "server", [b'{"jsonrpc":"2.0","id":%d,"result":{}}' % n for n in numbers]
            )
    tape = InspectorTarget("long.tape", "long.tape", tape=path)
    async with inspected(chromium, tmp_path, tape, servers={}) as stage:
        page = await stage.page()
        await page.get_by_text("100,000 lines", exact=True).wait_for()
        await rows(page, "t49999").first.wait_for()
        box = page.get_by_role("listbox", name="Messages")
        await box.focus()
        await page.keyboard.press("Home")
        await rows(page, "tools/call, t0, 0.000").first.wait_for()
        assert await box.get_by_role("option").count() < 100
        await shot(page, "inspector-tape")
        await page.get_by_role("searchbox", name="Filter").fill("tool:t4999? request")
        await page.get_by_text("10 lines", exact=True).wait_for()


async def test_the_timeline_is_used_by_keyboard(chromium: Any, tmp_path: Path) -> None:
    async with inspected(chromium, tmp_path) as stage:
        await search(stage)
        page = await stage.page()
        await rows(page, "search_flights").first.wait_for()
        box = page.get_by_role("listbox", name="Messages")
        await box.focus()
        await page.keyboard.press("ArrowDown")
        panel = page.get_by_role("complementary", name="Message")
        await panel.wait_for()
        first = await box.get_attribute("aria-activedescendant")
        await page.keyboard.press("ArrowDown")
        await page.wait_for_function(
            "was => document.querySelector('.timeline-box')"
            ".getAttribute('aria-activedescendant') !== was",
            arg=first,
        )
        await panel.focus()
        await page.keyboard.press("Escape")
        await panel.wait_for(state="detached")
        await page.get_by_role("tab", name="Timeline").focus()
        await page.keyboard.press("ArrowRight")
        assert await page.evaluate("document.activeElement.getAttribute('role')") == "tab"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_the_page_fits_a_telephone(chromium: Any, tmp_path: Path, dark: bool) -> None:
    async with inspected(chromium, tmp_path) as stage:
        await search(stage)
        page = await stage.page(size=TELEPHONE, dark=dark)
        await rows(page, "from the client, tools/call, search_flights").wait_for()
        await shot(page, f"inspector-telephone-{dark}")
        wide = await page.evaluate("document.documentElement.scrollWidth")
        assert wide <= TELEPHONE["width"]
        await rows(page, "from the client, tools/call, search_flights").click()
        panel = page.get_by_role("complementary", name="Message")
        await panel.get_by_text('"destination": "BCN"').wait_for()
        await shot(page, f"inspector-telephone-message-{dark}")
        await panel.get_by_role("button", name="Close the message").click()
        await page.get_by_role("button", name="Connections", exact=True).click()
        await (
            page.get_by_role("navigation", name="Connections")
            .get_by_role("button", name="weather")
            .click()
        )
        await page.get_by_role("heading", name="weather").wait_for()


def write_conversation(path: Path) -> None:
    """A call over HTTP with a question, progress, a log line and stderr, and a call that fails."""
    now = iter(n / 10 for n in range(100))

    def message(**members: Any) -> bytes:
        return msgspec.json.encode({"jsonrpc": "2.0", **members})

    with Recorder(path, clock=lambda: next(now), wall_clock=lambda: 1790000000.0) as recorder:
        tap = recorder.connection()
        book = {"name": "book", "arguments": {"city": "Bari"}, "_meta": {"progressToken": 1}}
        tap.frames("client", [message(id=1, method="tools/call", params=book)], 1)
        tap.http_request(1, "POST", "/mcp", [("Mcp-Method", "tools/call")])
        tap.http_response(1, 200, [("Content-Type", "text/event-stream")])
        progress = {"progressToken": 1, "progress": 1, "total": 3, "message": "Looking for rooms"}
        tap.frames("server", [message(method="notifications/progress", params=progress)], 1)
        ask = {"message": "Which seat?", "requestedSchema": {"type": "object", "properties": {}}}
        tap.frames("server", [message(id=7, method="elicitation/create", params=ask)], 1)
        tap.frames("client", [message(id=7, result={"action": "decline"})], 2)
        said = {"level": "info", "data": "No seat was chosen"}
        tap.frames("server", [message(method="notifications/message", params=said)], 1)
        tap.stderr("booking: no seat\n")
        tap.frames("server", [message(id=1, result={"content": []})], 1)
        tap.frames("client", [message(id=2, method="tools/call", params={"name": "fail"})], 3)
        tap.frames("server", [message(id=2, error={"code": -32602, "message": "No."})], 3)


async def test_lanes_bars_and_arrows_are_drawn(chromium: Any, tmp_path: Path) -> None:
    """Each lane has its marks; what belongs to a call is linked with it, and listed beside it."""
    write_conversation(tmp_path / "web.tape")
    tape = InspectorTarget("web.tape", "web.tape", tape=tmp_path / "web.tape")
    async with inspected(chromium, tmp_path, tape, servers={}) as stage:
        page = await stage.page()
        await page.get_by_text("11 lines", exact=True).wait_for()
        drawn = await page.evaluate(
            """() => Object.fromEntries([...document.querySelectorAll(".lanes path, .bars path")]
              .map(one => [one.getAttribute("class"), one.getAttribute("d").split("M").length - 1]))
            """
        )
        names = ("of-client", "of-server", "of-stderr", "of-http", "links", "bar", "failed")
        assert {name: drawn[name] for name in names} == {
            "of-client": 6,  # a line and a head for each of three messages
            "of-server": 10,
            "of-stderr": 1,
            "of-http": 2,
            "links": 4,  # progress, question, log message, stderr
            "bar": 2,
            "failed": 1,
        }
        await shot(page, "inspector-lanes")
        await rows(page, "from the client, tools/call, book").click()
        panel = page.get_by_role("complementary", name="Message")
        related = panel.get_by_role("list", name="Related messages")
        await related.get_by_text("Looking for rooms").wait_for()
        await related.get_by_text("No seat was chosen").wait_for()
        await related.get_by_text("booking: no seat").wait_for()
        await panel.get_by_role("button", name="HTTP").click()
        await panel.get_by_role("heading", name="POST /mcp").wait_for()
        await panel.get_by_text("text/event-stream").wait_for()
        await shot(page, "inspector-http")
