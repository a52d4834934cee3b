"""Tools over every cell of the matrix: what they take, what they give, and how they fail."""

from __future__ import annotations

import base64
import re

import pytest

from interlock import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    McpError,
    ResourceLink,
    TextContent,
    ToolError,
)
from interlock.types import INVALID_PARAMS
from interlock.wire.revisions import R1, R2, R3, R4, R5
from tests.wired.cells import Cell
from tests.wired.state import PNG, WAV

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_listing(cell: Cell):
    """Every tool is listed, in order, as far as the revision has words for it (`TOL-02`, `TOL-05`,
    `TOL-20`, `TOL-29`)."""
    tools = await cell.client.list_tools()
    assert [tool.name for tool in tools][:4] == ["hello", "add", "value", "place"]
    assert tools == await cell.client.list_tools()
    hello = tools[0]
    assert hello.description == "Greet somebody."
    assert hello.input_schema["properties"]["name"] == {
        "type": "string",
        "description": "whom to greet",
    }
    assert (hello.annotations is not None) == (cell.revision >= R2)
    assert (hello.title == "Say hello") == (cell.revision >= R3)
    assert (hello.icons is not None) == (cell.revision >= R4)
    by_name = {tool.name: tool for tool in tools}
    assert (by_name["place"].output_schema is not None) == (cell.revision >= R3)
    assert (by_name["words"].output_schema is not None) == (cell.revision >= R5)
    assert by_name["by_schema"].input_schema["properties"] == {
        "n": {"type": "integer", "minimum": 1}
    }


async def test_text_and_numbers(cell: Cell):
    """Text comes as text, in place and from threads; a number is structured too (`TOL-11`,
    `TOL-12`)."""
    assert (await cell.client.call_tool("hello", {"name": "Ada"})).content == [
        TextContent("Hello, Ada!")
    ]
    result = await cell.client.call_tool("add", {"a": 2})
    assert result.content == [TextContent("3")]
    assert result.value() == (3 if cell.revision >= R3 else "3")
    assert result.is_error is False


@pytest.mark.parametrize("kind", ["image", "bytes"])
async def test_pictures(cell: Cell, kind: str):
    """Pictures come as image blocks, bytes that are one too (`TOL-12`)."""
    (block,) = (await cell.client.call_tool("value", {"kind": kind})).content
    assert block == ImageContent(data=base64.b64encode(PNG).decode(), mime_type="image/png")


async def test_sound(cell: Cell):
    """Sound comes as audio, and as words to the oldest revision, which has none (`TOL-12`)."""
    (block,) = (await cell.client.call_tool("value", {"kind": "audio"})).content
    if cell.revision == R1:
        assert block == TextContent(f"[audio, audio/wav, {len(WAV)} bytes]")
    else:
        assert block == AudioContent(data=base64.b64encode(WAV).decode(), mime_type="audio/wav")


async def test_files_and_links(cell: Cell):
    """Files are embedded; a link is a link where the revision has it, else words (`TOL-12`,
    `TOL-13`)."""
    (file,) = (await cell.client.call_tool("value", {"kind": "file"})).content
    assert isinstance(file, EmbeddedResource)
    assert (file.resource.text, file.resource.mime_type) == ("a,b\n1,2\n", "text/csv")
    (embedded,) = (await cell.client.call_tool("value", {"kind": "embedded"})).content
    assert isinstance(embedded, EmbeddedResource)
    assert embedded.resource.uri == "note://one"
    (link,) = (await cell.client.call_tool("value", {"kind": "link"})).content
    if cell.revision >= R3:
        assert link == ResourceLink(uri="note://one", name="one", mime_type="text/plain")
    else:
        assert link == TextContent("[resource one: note://one]")


async def test_odds_and_ends(cell: Cell):
    """Nothing, difficult text, several blocks, and a result made by hand."""
    assert (await cell.client.call_tool("value", {"kind": "none"})).content == []
    assert (await cell.client.call_tool("value", {"kind": "text"})).text == "äöü \u0000 \U0001f600"
    mixed = (await cell.client.call_tool("value", {"kind": "mixed"})).content
    assert [type(block) for block in mixed] == [TextContent, ImageContent, TextContent]
    made = await cell.client.call_tool("value", {"kind": "result"})
    assert made.text == "by hand"
    assert made.meta is not None
    assert made.meta["example.com/made"] == "by hand"


async def test_structured_content(cell: Cell):
    """Data is structured content where the revision has it, and its JSON is the text for all
    (`TOL-06`, `TOL-09`, `TOL-11`)."""
    result = await cell.client.call_tool("place", {"name": "Ulm", "colour": "blue"})
    expected = {"name": "Ulm", "north": 48.4, "tags": ["blue"]}
    assert result.text == '{"name":"Ulm","north":48.4,"tags":["blue"]}'
    assert result.value() == (expected if cell.revision >= R3 else result.text)
    assert (
        await cell.client.call_tool("value", {"kind": "mapping"})
    ).text == '{"a":[1,2.5,null,true]}'
    assert (await cell.client.call_tool("numbers", {"count": 3})).value() == (
        [0, 1, 2] if cell.revision >= R3 else "[0,1,2]"
    )
    assert (await cell.client.call_tool("forecast", {"days": 4})).text == '{"days":4,"rain":true}'


async def test_structured_content_that_is_no_object(cell: Cell):
    """Any JSON value in the newest revision; the older ones, which want an object, get the text
    alone (`TOL-06`, `TOL-07`)."""
    result = await cell.client.call_tool("words", {"text": "one two"})
    assert result.text == '["one","two"]'
    assert result.value() == (["one", "two"] if cell.revision >= R5 else result.text)


async def test_unknown_tools(cell: Cell):
    """An unknown tool is the error -32602 in every revision (`TOL-15`)."""
    with pytest.raises(McpError, match="no-such-tool") as caught:
        await cell.client.call_tool("no-such-tool")
    assert caught.value.code == INVALID_PARAMS


@pytest.mark.parametrize(
    "tool, arguments, words",
    [
        ("add", {"a": "two"}, r"\$\.a"),
        ("add", {}, "`?a`?"),
        ("add", {"a": 1, "c": 3}, "c"),
        ("forecast", {"days": 99}, r"\$\.days"),
        ("by_schema", {"n": 0}, "n"),
        ("place", {"name": "Ulm", "colour": "green"}, r"\$\.colour"),
    ],
)
async def test_bad_arguments(cell: Cell, tool: str, arguments: dict, words: str):
    """Arguments that do not fit: words for the model since 2025-11-25, before that the error -32602
    (`TOL-16`)."""
    if cell.revision <= R3:
        with pytest.raises(McpError, match=words) as caught:
            await cell.client.call_tool(tool, arguments)
        assert caught.value.code == INVALID_PARAMS
    else:
        result = await cell.client.call_tool(tool, arguments)
        assert result.is_error
        assert re.search(words, result.text)


async def test_failures_for_the_model(cell: Cell):
    """A ToolError becomes a result with `isError` and its words, several of a group become several
    lines (`TOL-15`)."""
    result = await cell.client.call_tool("refuse")
    assert (result.is_error, result.text) == (True, "There are no seats left.")
    with pytest.raises(ToolError, match="no seats"):
        result.value()
    group = await cell.client.call_tool("crash", {"how": "group"})
    assert (group.is_error, group.text) == (True, "one thing\nanother thing")


@pytest.mark.parametrize("how", ["error", "exit"])
async def test_crashes(cell: Cell, how: str):
    """What nobody foresaw becomes a plain sentence with a reference, and tells nothing of the
    inside (`ERR-20`)."""
    result = await cell.client.call_tool("crash", {"how": how})
    assert result.is_error
    assert re.fullmatch(r"The tool crash failed \(reference [0-9a-f]{8}\)\.", result.text)


async def test_results_that_are_not_as_declared(cell: Cell):
    """A result that does not fit its schema never leaves the server (`TOL-09`)."""
    result = await cell.client.call_tool("lie")
    assert result.is_error
    assert "does not fit what it declares (reference" in result.text
    assert "many" not in result.text


async def test_questions_without_a_context(cell: Cell):
    """Who could not read the answers cannot ask: it is a fault of the tool, not half a result
    (`MRT-02`, `RPC-19`)."""
    result = await cell.client.call_tool("ask_in_vain")
    assert result.is_error
    assert "does not fit what it declares (reference" in result.text


async def test_protocol_errors_of_a_tool(cell: Cell):
    """An McpError is sent as it is."""
    with pytest.raises(McpError) as caught:
        await cell.client.call_tool("protest")
    assert (caught.value.code, caught.value.message, caught.value.data) == (
        4711,
        "Not like this.",
        {"why": "because"},
    )


async def test_lifespan_and_caller(cell: Cell):
    """A tool sees the lifespan's state and who asks, alike in both eras (`STA-03`)."""
    assert (await cell.client.call_tool("state_is")).text == "true"
    who = (await cell.client.call_tool("who")).text
    assert f'"revision":"{cell.revision}"' in who
    assert '"name":"interlock"' in who


async def test_meta_travels(cell: Cell):
    """`_meta` reaches the server's middleware, and what that adds comes back (`MET-01`)."""
    result = await cell.client.call_tool(
        "hello", {"name": "Ada"}, meta={"example.com/mark": [1, "ü"]}
    )
    assert result.meta is not None
    assert result.meta["example.com/mark"] == [1, "ü"]
    info = result.meta.get("io.modelcontextprotocol/serverInfo")
    assert (info or {}).get("name") == (None if cell.handshake else "wired")
