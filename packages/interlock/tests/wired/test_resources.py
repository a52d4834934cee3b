"""Resources over every cell of the matrix: reading them, their templates, and what cannot be
read."""

from __future__ import annotations

import base64

import pytest

from interlock import McpError
from interlock import types as t
from interlock.types import INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND
from interlock.wire.revisions import R2, R3, R5
from tests.wired.cells import Cell
from tests.wired.state import PNG

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_lists(cell: Cell):
    """Resources and templates are listed apart, with what the revision has words for (`RES-01`,
    `RES-13`, `RES-15`)."""
    resources = {resource.uri: resource for resource in await cell.client.list_resources()}
    assert {"note://static", "file:///pixel.png", "config://settings", "count://reads"} <= set(
        resources
    )
    static = resources["note://static"]
    assert (static.title == "A note") == (cell.revision >= R3)
    assert static.size == 21
    assert resources["file:///pixel.png"].size == len(PNG)
    templates = {
        template.uri_template: template for template in await cell.client.list_resource_templates()
    }
    for_all = {"note://{name}", "travel://activities/{city}/{category}", "book://{page}/ask"}
    assert set(templates) - {"vault://drawers/{number}"} == for_all
    assert templates["note://{name}"].mime_type == "text/markdown"


async def test_reading(cell: Cell):
    """Text and bytes, with their MIME types (`RES-02`, `RES-07`)."""
    (text,) = (await cell.client.read_resource("note://static")).contents
    assert (text.text, text.mime_type, text.blob) == ("Nothing changes here.", "text/plain", None)
    (picture,) = (await cell.client.read_resource("file:///pixel.png")).contents
    assert base64.b64decode(picture.blob or "") == PNG
    assert picture.mime_type == "image/png"
    (data,) = (await cell.client.read_resource("config://settings")).contents
    assert (data.text, data.mime_type) == ('{"dark":true,"version":3}', "application/json")
    (code,) = (await cell.client.read_resource("file:///offers.py")).contents
    assert (code.text or "").startswith('"""The matrix')
    assert code.mime_type == "text/x-python"


async def test_templates(cell: Cell):
    """A URI that a template matches is read with its variables, typed as the function has them
    (`RES-13`)."""
    (note,) = (await cell.client.read_resource("note://two")).contents
    assert (note.uri, note.text, note.mime_type) == ("note://two", "Call Ada", "text/markdown")
    (found,) = (await cell.client.read_resource("travel://activities/New%20York/museums")).contents
    assert found.text == '["museums of New York"]'
    with pytest.raises(McpError) as caught:
        await cell.client.read_resource("travel://activities/Ulm/bars")
    assert caught.value.code == INVALID_PARAMS


@pytest.mark.parametrize(
    "uri", ["note://nobody", "nothing://here", "file:///pixel.jpg", "note://../one", "note://a%2Fb"]
)
async def test_what_is_not_there(cell: Cell, uri: str):
    """An unknown URI is an error with the code of its revision, never an empty result (`RES-04`,
    `RES-05`, `RES-06`, `ERR-12`)."""
    with pytest.raises(McpError) as caught:
        await cell.client.read_resource(uri)
    assert caught.value.code == (INVALID_PARAMS if cell.revision >= R5 else RESOURCE_NOT_FOUND)
    assert caught.value.data == {"uri": uri}


async def test_what_breaks(cell: Cell):
    """A resource that cannot be read is an internal error that tells nothing of the inside
    (`RES-04`, `ERR-20`)."""
    with pytest.raises(McpError, match=r"broken://resource failed \(reference") as caught:
        await cell.client.read_resource("broken://resource")
    assert caught.value.code == INTERNAL_ERROR
    assert "secret" not in str(caught.value)


async def test_reading_from_a_tool(cell: Cell):
    """A tool reads its server's resources as a client would."""
    assert (await cell.client.call_tool("read_inside", {"uri": "note://one"})).text == "Buy milk"
    with pytest.raises(McpError, match="Resource not found"):
        await cell.client.call_tool("read_inside", {"uri": "note://nobody"})


async def test_pages(cell: Cell):
    """Lists come in pages with opaque cursors; a made-up cursor is the error -32602 (`PAG-01`,
    `PAG-02`, `PAG-05`, `PAG-06`)."""
    first = await cell.client.request("tools/list", t.ListToolsRequestParams())
    assert isinstance(first, t.ListToolsResult)
    assert len(first.tools) == 7
    assert first.next_cursor
    second = await cell.client.request(
        "tools/list", t.ListToolsRequestParams(cursor=first.next_cursor)
    )
    assert isinstance(second, t.ListToolsResult)
    assert not {tool.name for tool in first.tools} & {tool.name for tool in second.tools}
    for method, params in (
        ("tools/list", t.ListToolsRequestParams),
        ("resources/list", t.ListResourcesRequestParams),
        ("resources/templates/list", t.ListResourceTemplatesRequestParams),
        ("prompts/list", t.ListPromptsRequestParams),
    ):
        with pytest.raises(McpError, match="cursor") as caught:
            await cell.client.request(method, params(cursor="made up"))
        assert caught.value.code == INVALID_PARAMS


async def test_what_may_be_kept(cell: Cell):
    """Hints travel in the newest revision, and the client heeds them: no second request while the
    first is fresh (`CAC-01`, `CAC-07`)."""
    cell.client.invalidate(
        "notifications/resources/updated",
        t.ResourceUpdatedNotificationParams(uri="config://settings"),
    )
    start = len(cell.tape)
    first = await cell.client.read_resource("config://settings")
    assert (first.ttl_ms, first.cache_scope) == (
        (60_000, "public") if cell.revision >= R5 else (None, None)
    )
    assert await cell.client.read_resource("config://settings") == first
    assert len(cell.since(start).methods("client")) == (1 if cell.revision >= R5 else 2)
    one, other = [
        (await cell.client.read_resource("count://reads")).contents[0].text for _ in range(2)
    ]
    assert one != other  # nothing was said of keeping it


async def test_prompts(cell: Cell):
    """Prompts are listed with their arguments and written with them (`PRM-01`, `PRM-03`, `PRM-04`,
    `PRM-05`)."""
    prompts = {prompt.name: prompt for prompt in await cell.client.list_prompts()}
    trip = prompts["trip"]
    assert (trip.title == "Plan a trip") == (cell.revision >= R3)
    assert [(a.name, a.required) for a in trip.arguments or ()] == [
        ("city", True),
        ("days", False),
        ("colour", False),
    ]
    assert (trip.arguments or [])[0].description == "where to"
    written = await cell.client.get_prompt("trip", {"city": "Ulm", "days": 3, "colour": "blue"})
    assert written.description == "Plan a trip."
    assert [message.role for message in written.messages] == [
        "user",
        "assistant",
        "user",
        "user",
        "user",
    ]
    assert [getattr(message.content, "text", None) for message in written.messages] == [
        "Plan 3 days in Ulm.",
        "With pleasure.",
        None,
        None,
        "blue",
    ]
    assert (await cell.client.get_prompt("plain")).messages[0].content.text == "Tell me a story."  # type: ignore[union-attr]  # text


@pytest.mark.parametrize(
    "name, arguments, words",
    [
        ("nobody", {}, "Unknown prompt: nobody"),
        ("trip", {}, "Missing required argument: city"),
        ("trip", {"city": "Ulm", "hotel": "yes"}, "Unknown argument: hotel"),
        ("trip", {"city": "Ulm", "days": "many"}, "days"),
    ],
)
async def test_bad_prompts(cell: Cell, name: str, arguments: dict, words: str):
    """An unknown prompt, a missing, unknown or unfit argument are the error -32602 (`PRM-02`,
    `PRM-07`)."""
    with pytest.raises(McpError, match=words) as caught:
        await cell.client.get_prompt(name, arguments)
    assert caught.value.code == INVALID_PARAMS


async def test_broken_prompts(cell: Cell):
    """A prompt that fails is an internal error that tells nothing of the inside (`PRM-02`,
    `ERR-20`)."""
    with pytest.raises(McpError, match=r"broken_prompt failed \(reference") as caught:
        await cell.client.get_prompt("broken_prompt")
    assert caught.value.code == INTERNAL_ERROR


async def test_completion(cell: Cell):
    """Arguments are completed, with what is known besides where the revision carries it (`CMP-01`,
    `CMP-02`, `CMP-03`)."""
    assert (cell.client.server_capabilities.completions is not None) == (cell.revision >= R2)
    found = await cell.client.complete("trip", "city", "ur")
    assert (found.values, found.total, found.has_more) == (["Urbino"], 1, False)
    known = await cell.client.complete("trip", "city", "u", arguments={"days": "1"})
    assert known.values == (["Ulm"] if cell.revision >= R3 else ["Ulm", "Urbino", "Utrecht"])
    many = await cell.client.complete("travel://activities/{city}/{category}", "city", "x")
    assert (len(many.values), many.total, many.has_more) == (100, 150, True)
    assert (
        await cell.client.complete("travel://activities/{city}/{category}", "category", "m")
    ).values == ["museums"]
    assert (await cell.client.complete("trip", "colour", "")).values == ["red", "blue"]


@pytest.mark.parametrize(
    "ref, argument", [("nobody", "city"), ("trip", "hotel"), ("nothing://{here}", "here")]
)
async def test_bad_completion(cell: Cell, ref: str, argument: str):
    """What is not there cannot be completed: -32602 (`CMP-04`)."""
    with pytest.raises(McpError) as caught:
        await cell.client.complete(ref, argument, "")
    assert caught.value.code == INVALID_PARAMS
