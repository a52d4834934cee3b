"""The everything server: each feature is there, works under both eras, and says what it should."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from collections.abc import AsyncIterator
from typing import Any

import pytest

from interlock import Client, McpError, TimedOut, ToolError, types
from interlock.servers.everything import COUNTER, server


@pytest.fixture(params=["2026-07-28", "2025-11-25"])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """A client that answers all questions, under the newest revision of each era."""
    async with Client(server, revision=request.param, elicit=answer, sample=lambda p: f"{p.system_prompt} Yes.", roots=["/srv"]) as opened:
        yield opened


def answer(params: types.ElicitRequestParams) -> Any:
    """A person who says yes and wants a window."""
    if params.mode == "url":
        return True
    fields = (params.requested_schema or {})["properties"]
    return {name: value for name, value in ANSWERS.items() if name in fields}


ANSWERS: dict[str, Any] = {"guests": 4, "seat": "window", "confirm": True, "colour": "green"}

# tool -> arguments, and the text of the result; None where a test of its own looks at it
CALLS: dict[str, tuple[dict[str, Any], str | None]] = {
    "echo": ({"text": "hm"}, "hm"),
    "add": ({"a": 2, "b": 3}, "5"),
    "divide": ({"a": 3, "b": 4}, "0.75"),
    "is_even": ({"number": 3}, "false"),
    "nothing": ({}, ""),
    "some_bytes": ({"length": 3}, None),
    "picture": ({"red": 1}, None),
    "sound": ({}, None),
    "document": ({}, None),
    "links": ({}, None),
    "mixture": ({}, "Text first."),
    "measure": ({"place": "Rome"}, '{"place":"Rome","celsius":4.0,"sky":"cloudy"}'),
    "count_words": ({"text": "a b A"}, '{"a":2,"b":1}'),
    "whole_result": ({}, "For the user's eyes."),
    "convert": ({"celsius": 20}, "68 °F"),
    "broken": ({}, None),
    "roll_dice": ({"count": 3}, None),
    "roll_again": ({"count": 1}, None),
    "work": ({"steps": 2}, "Done in 2 steps."),
    "count_down": ({}, "Lift-off."),
    "log_levels": ({}, "Wrote 8 messages."),
    "sleep": ({"seconds": 0}, "Slept for 0 seconds."),
    "sleep_in_thread": ({"seconds": 0.01}, "Slept for 0.01 seconds."),
    "too_slow": ({}, None),
    "one_at_a_time": ({"seconds": 0}, "My turn is over."),
    "who_am_i": ({}, None),
    "book_table": ({"day": "Friday"}, "Booked for Guest: 4 on Friday (window), deposit number 1."),
    "sign_in": ({}, "The person went to the page."),
    "ask_model": ({"question": "Well?"}, "Answer in one sentence. Yes."),
    "list_roots": ({}, '["file:///srv"]'),
    "ask_by_hand": ({}, "The colour is green, after round 1."),
    "tick": ({}, "1"),
    "read_counter": ({}, '{"count":0}'),
    "grow": ({}, None),
    "shrink": ({}, None),
}


async def test_no_tool_is_left_out(client: Client) -> None:
    """The table knows every tool; each has a description and says truly what it does to the world (`TOL-04`)."""
    tools = await client.list_tools()
    assert [tool.name for tool in tools] == list(CALLS)
    for tool in tools:
        assert tool.description, tool.name
        assert tool.annotations is not None, tool.name
    changing = {tool.name for tool in tools if tool.annotations and not tool.annotations.read_only_hint}
    assert changing == {"book_table", "tick", "grow", "shrink"}


@pytest.mark.parametrize("name", [name for name, (_, text) in CALLS.items() if text is not None])
async def test_each_kind_of_result(client: Client, name: str) -> None:
    """Each tool gives the text of the table, and data where its type says so (`TOL-09`, `TOL-11`)."""
    arguments, text = CALLS[name]
    await client.list_tools()  # so that results are checked against the output schemas
    result = await client.call_tool(name, arguments)
    assert not result.is_error
    assert result.text == text


async def test_data_comes_as_data(client: Client) -> None:
    """Numbers, truth values, lists and objects are structured content."""
    assert (await client.call_tool("add", {"a": 2, "b": 3})).value() == 5
    assert (await client.call_tool("is_even", {"number": 2})).value() is True
    assert (await client.call_tool("measure", {"place": "Rome"})).value() == {"place": "Rome", "celsius": 4.0, "sky": "cloudy"}
    assert (await client.call_tool("list_roots")).value() == ["file:///srv"]


@pytest.mark.parametrize("name", ["roll_dice", "roll_again"])
async def test_a_tool_with_an_app(client: Client, name: str) -> None:
    """It says in words what its app would show, and names a page that is there and is one (`APP-03`, `APP-04`, `APP-05`)."""
    tool = next(tool for tool in await client.list_tools() if tool.name == name)
    ui = (tool.meta or {})["ui"]
    assert ui.get("visibility", ["model", "app"]) == (["app"] if name == "roll_again" else ["model", "app"])
    result = await client.call_tool(name, {"count": 4})
    rolled = result.structured_content
    assert isinstance(rolled, dict)
    assert len(rolled["dice"]) == 4
    assert sum(rolled["dice"]) == rolled["total"]
    assert result.text == f"Rolled {', '.join(map(str, rolled['dice']))}: {rolled['total']} in all."
    (page,) = (await client.read_resource(ui["resourceUri"])).contents
    assert (page.uri, page.mime_type) == (ui["resourceUri"], "text/html;profile=mcp-app")
    assert (page.text or "").startswith("<!doctype html>")


async def test_media_and_links(client: Client) -> None:
    """Pictures, sound, files, bytes and links are content blocks of their kinds (`TOL-12`)."""
    kinds = {name: [type(block) for block in (await client.call_tool(name)).content] for name in ("picture", "sound", "document", "links")}
    assert kinds == {
        "picture": [types.ImageContent],
        "sound": [types.AudioContent],
        "document": [types.EmbeddedResource],
        "links": [types.ResourceLink, types.ResourceLink],
    }
    (picture,) = (await client.call_tool("picture")).content
    assert isinstance(picture, types.ImageContent)
    assert (picture.mime_type, b64decode(picture.data)[:4]) == ("image/png", b"\x89PNG")
    (held,) = (await client.call_tool("some_bytes", {"length": 3})).content
    assert isinstance(held, types.EmbeddedResource)
    assert b64decode(held.resource.blob or "") == b"\0\1\2"


@pytest.mark.parametrize(
    "name, arguments, words",
    [
        ("divide", {"a": 1, "b": 0}, "Nothing can be divided by zero"),
        ("convert", {"celsius": 1, "fahrenheit": 1}, "convert"),
        ("add", {"a": "one", "b": 2}, "a"),
        ("too_slow", {}, "longer than 0.1 seconds"),
        ("shrink", {}, "Call grow first"),
    ],
)
async def test_failures_are_words_for_the_model(client: Client, name: str, arguments: dict[str, Any], words: str) -> None:
    """A tool's misfortune is a result that says so (`TOL-15`, `TOL-16`)."""
    result = await client.call_tool(name, arguments)
    assert result.is_error
    assert words in result.text
    with pytest.raises(ToolError):
        result.value()


async def test_what_nobody_foresaw_stays_inside(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    """The client gets a reference, the log the reason (`ERR-20`)."""
    result = await client.call_tool("broken")
    assert result.is_error
    assert "log only" not in result.text
    assert result.text.rpartition("reference ")[2].rstrip(").") in caplog.text


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
async def test_progress_and_logs(revision: str) -> None:
    """Progress comes to who asked for it, messages from the wanted level on (`PRG-02`, `LOG-03`, `LOG-06`)."""
    seen: list[float] = []
    said: list[Any] = []
    async with Client(server, revision=revision, log_level="warning", on_log=lambda p: said.append(p.level)) as client:
        await client.call_tool("work", {"steps": 3}, on_progress=lambda p: seen.append(p.progress))
        await client.call_tool("count_down", {"start": 2}, on_progress=lambda p: seen.append(p.progress))
        await client.call_tool("log_levels")
    assert seen == [1, 2, 3, 1, 2]
    assert said == ["warning", "error", "critical", "alert", "emergency"]


async def test_cancellation(client: Client) -> None:
    """A call that nobody waits for ends, in place and in a thread, and the server goes on (`CAN-05`)."""
    for name in ("sleep", "sleep_in_thread"):
        with pytest.raises(TimedOut):
            await client.call_tool(name, {"seconds": 60}, timeout=0.05)
    assert (await client.call_tool("echo", {"text": "still here"})).text == "still here"


async def test_limits(client: Client) -> None:
    """One call runs, one waits, a third is refused."""
    calls = [asyncio.create_task(client.call_tool("one_at_a_time")) for _ in range(3)]
    done = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(one).__name__ for one in done] == ["CallToolResult", "CallToolResult", "McpError"]
    assert "busy" in str(done[2])


async def test_nobody_there_to_ask() -> None:
    """A client that cannot be asked fails the call, and nothing is booked (`ERR-08`)."""
    async with Client(server, revision="2025-11-25") as client:
        result = await client.call_tool("book_table", {"day": "Friday"})
        assert result.is_error
    async with Client(server) as client:
        with pytest.raises(McpError, match="elicitation"):
            await client.call_tool("book_table", {"day": "Friday"})


async def test_a_no_is_a_no() -> None:
    """Declining the form ends the call in words; a no to the confirmation books nothing."""
    async with Client(server, elicit=lambda p: False) as client:
        assert "declined" in (await client.call_tool("book_table", {"day": "Friday"})).text
    async with Client(server, elicit=lambda p: {"guests": 2} if p.message.startswith("A table") else False) as client:
        assert (await client.call_tool("book_table", {"day": "Friday"})).text == "Nothing was booked."


async def test_resources(client: Client) -> None:
    """Fixed text, bytes, a template and what it has not (`RES-02`, `RES-06`)."""
    assert [resource.uri for resource in await client.list_resources()] == [
        "ui://everything/dice",
        "everything://docs/readme.md",
        "everything://picture.png",
        COUNTER,
    ]
    (text,) = (await client.read_resource("everything://docs/readme.md")).contents
    assert (text.mime_type, text.text) == ("text/markdown", "# Everything\n\nA text that never changes.\n")
    (picture,) = (await client.read_resource("everything://picture.png")).contents
    assert b64decode(picture.blob or "").startswith(b"\x89PNG")
    (greeting,) = (await client.read_resource("everything://greetings/french/Ann%20Lee")).contents
    assert greeting.text == "Bonjour, Ann Lee!"
    with pytest.raises(McpError, match="not found"):
        await client.read_resource("everything://greetings/latin/Ann")


async def test_a_resource_that_changes(client: Client) -> None:
    """Who watches the counter hears of each tick, and reads the new number (`SUB-01`, `LSN-02`)."""
    async with client.watch(resources=[COUNTER]) as changes:
        await client.call_tool("tick")
        change = await anext(changes)
        assert (change.kind, change.uri) == ("resource", COUNTER)
        (contents,) = (await client.read_resource(COUNTER)).contents
        assert json.loads(contents.text or "") == {"count": 1}


async def test_tools_that_come_and_go(client: Client) -> None:
    """A tool and a prompt are added and taken away; listeners hear of it, lists have it (`TOL-18`, `PRM-08`)."""
    async with client.watch(tools=True, prompts=True) as changes:
        name = (await client.call_tool("grow")).text
        assert {(await anext(changes)).kind, (await anext(changes)).kind} == {"tools", "prompts"}
        assert name in [tool.name for tool in await client.list_tools()]
        assert (await client.call_tool(name)).text == "I am extra 1."
        assert (await client.call_tool("shrink")).text == name
        assert {(await anext(changes)).kind, (await anext(changes)).kind} == {"tools", "prompts"}
        assert name not in [prompt.name for prompt in await client.list_prompts()]


async def test_prompts(client: Client) -> None:
    """One message, and several with a picture and a resource (`PRM-02`, `PRM-04`)."""
    review = await client.get_prompt("review", {"code": "x = 1"})
    assert [message.content for message in review.messages] == [types.TextContent("Please review this python code:\n\nx = 1")]
    trip = await client.get_prompt("trip", {"country": "spain", "city": "Bilbao"})
    assert [(message.role, type(message.content)) for message in trip.messages] == [
        ("user", types.TextContent),
        ("user", types.ImageContent),
        ("assistant", types.TextContent),
        ("user", types.EmbeddedResource),
    ]
    with pytest.raises(McpError, match="Missing required argument"):
        await client.get_prompt("review")


async def test_completion(client: Client) -> None:
    """Of a Literal, of a prompt's argument in the light of another, and of a template's variable (`CMP-02`, `CMP-03`)."""
    assert (await client.complete("review", "language", "ru")).values == ["rust"]
    assert (await client.complete("trip", "country", "f")).values == ["france"]
    assert (await client.complete("trip", "city", "b", arguments={"country": "spain"})).values == ["Barcelona", "Bilbao"]
    template = (await client.list_resource_templates())[0].uri_template
    assert (await client.complete(template, "language", "s")).values == ["spanish"]


async def test_pages(client: Client) -> None:
    """The list of tools comes in pages of ten, and the client follows them (`PAG-05`, `TOL-29`)."""
    sizes, cursor = [], None
    while True:
        page = await client.request("tools/list", types.ListToolsRequestParams(cursor=cursor))
        assert isinstance(page, types.ListToolsResult)
        sizes.append(len(page.tools))
        cursor = page.next_cursor
        if cursor is None:
            break
    assert sizes == [10, 10, 10, 5]
    with pytest.raises(McpError, match="cursor"):
        await client.request("tools/list", types.ListToolsRequestParams(cursor="nonsense"))


async def test_the_caller_is_known(client: Client) -> None:
    """The server knows who asks, by revision and era (`STA-02`)."""
    known = json.loads((await client.call_tool("who_am_i")).text)
    assert known["revision"] == client.revision
    assert known["client"] == "interlock"
