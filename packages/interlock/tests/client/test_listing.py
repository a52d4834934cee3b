"""Lists over all their pages, and results that are held against the schemas that were listed."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from interlock import Client, ClientSettings, McpError, ProtocolError, Server, ServerLimits
from interlock import types as t
from interlock.client import app
from interlock.wire.revisions import NEWEST, R3, R4
from tests.client.peers import SILENCE, Peer, complete, text

BOTH = pytest.mark.parametrize("revision", [R4, NEWEST])

LISTS: dict[str, tuple[Any, str, Any]] = {
    # method, the client's call, where the items are, and one of them by name
    "tools/list": (
        lambda c: c.list_tools(),
        "tools",
        lambda name: {"name": name, "inputSchema": {"type": "object"}},
    ),
    "prompts/list": (lambda c: c.list_prompts(), "prompts", lambda name: {"name": name}),
    "resources/list": (
        lambda c: c.list_resources(),
        "resources",
        lambda name: {"name": name, "uri": f"x:{name}"},
    ),
    "resources/templates/list": (
        lambda c: c.list_resource_templates(),
        "resourceTemplates",
        lambda name: {"name": name, "uriTemplate": f"x:{name}/{{y}}"},
    ),
}
EVERY_LIST = pytest.mark.parametrize("method", LISTS)


def paging(method: str, pages: dict[Any, tuple[list[str], Any]], revision: str = NEWEST) -> Peer:
    """A server whose list has these pages, by cursor: the names on them, and the next cursor (...
    for none).
    """
    _, field, item = LISTS[method]

    def page(message: dict[str, Any]) -> Any:
        cursor = message["params"].get("cursor", ...) if "params" in message else ...
        if cursor not in pages:
            return McpError(t.INVALID_PARAMS, f"no such cursor: {cursor}")
        names, following = pages[cursor]
        return complete(
            **{field: [item(name) for name in names]},
            **({} if following is ... else {"nextCursor": following}),
        )

    return Peer({method: page}, revision)


PAGES: dict[str, tuple[dict[Any, tuple[list[str], Any]], list[str]]] = {
    # the pages, and all there is on them
    "one": ({...: (["a", "b"], ...)}, ["a", "b"]),
    "none at all": ({...: ([], ...)}, []),
    "three": ({...: (["a"], "2"), "2": (["b", "c"], "3"), "3": (["d"], ...)}, ["a", "b", "c", "d"]),
    "an empty page between": ({...: (["a"], "2"), "2": ([], "3"), "3": (["d"], ...)}, ["a", "d"]),
    "an empty cursor": ({...: (["a"], ""), "": (["b"], "x"), "x": (["c"], ...)}, ["a", "b", "c"]),
    "cursors without sense": ({...: (["a"], "ü \n{}"), "ü \n{}": (["b"], ...)}, ["a", "b"]),
    "a cursor that is null": ({...: (["a"], None)}, ["a"]),
    "a name twice": ({...: (["a"], "2"), "2": (["a"], ...)}, ["a", "a"]),
}


@BOTH
@EVERY_LIST
@pytest.mark.parametrize("pages, names", PAGES.values(), ids=PAGES)
async def test_all_pages(
    method: str, pages: dict[Any, tuple[list[str], Any]], names: list[str], revision: str
):
    """Until there is no cursor; an empty one is one like any other (`PAG-01`, `PAG-02`, `PAG-03`,
    `PAG-06`, `TOL-29`, `PRM-11`).
    """
    async with paging(method, pages, revision) as peer, Client(peer.channel) as client:
        assert [item.name for item in await LISTS[method][0](client)] == names
        assert peer.count(method) == len(pages)


@EVERY_LIST
@pytest.mark.parametrize("cursor", ["again", ""])
async def test_a_cursor_that_comes_twice(method: str, cursor: str):
    """A list that has no end is an error, and not waited for."""
    async with (
        paging(method, {...: (["a"], cursor), cursor: (["b"], cursor)}) as peer,
        Client(peer.channel) as client,
    ):
        with pytest.raises(ProtocolError, match=f"same cursor of {method}"):
            await LISTS[method][0](client)
        assert peer.count(method) == 2


async def test_a_list_with_ever_new_cursors(monkeypatch: pytest.MonkeyPatch):
    """There is a bound for that too."""
    monkeypatch.setattr(app, "MOST_PAGES", 20)
    endless = {(str(n) if n else ...): ([str(n)], str(n + 1)) for n in range(30)}
    async with paging("tools/list", endless) as peer, Client(peer.channel) as client:
        with pytest.raises(ProtocolError, match="more than 20 pages"):
            await client.list_tools()
        assert peer.count("tools/list") == 20


def big(method: str, names: int, size: int = 0) -> dict[str, Any]:
    """A page of many items, each with so many bytes of description."""
    _, field, item = LISTS[method]
    return complete(**{field: [{**item(f"n{n}"), "description": "d" * size} for n in range(names)]})


@EVERY_LIST
async def test_a_large_page_is_read_in_pieces(method: str):
    """So that everything else in the loop goes on meanwhile; the items are the same."""
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with (
        Peer({method: big(method, 3000, 1000)}) as peer,
        Client(peer.channel) as client,
    ):
        running = asyncio.create_task(others())
        items = await LISTS[method][0](client)
        running.cancel()
    assert [item.name for item in items] == [f"n{n}" for n in range(3000)]
    assert items[-1].description == "d" * 1000
    assert turns > 3000 * 1000 // (64 * 1024)


async def test_a_large_page_of_other_shapes_is_an_error():
    """Of one call; and what is unknown in an item does not matter."""
    many = [{"name": f"n{n}", "inputSchema": {"type": "object"}} for n in range(10_000)]
    async with (
        Peer(
            {
                "tools/list": [
                    complete(tools=[*many, {"name": "bad"}]),
                    complete(tools={"a": "b" * 1_000_000}),
                    complete(other=many),
                    complete(tools=[*many, {**many[0], "new": 1}], nextCursor=None),
                ]
            }
        ) as peer,
        Client(peer.channel) as client,
    ):
        for words in ("missing required field", "Expected `array`", "missing required field"):
            with pytest.raises(ProtocolError, match=words):
                await client.list_tools()
        assert len(await client.list_tools()) == 10_001


async def test_a_page_of_a_million_tools_is_refused_before_it_is_read():
    """By the number of its items, which is known before any of them is decoded."""
    item = b'{"name":"t","inputSchema":{"type":"object"}}'
    page = b'{"resultType":"complete","tools":[%b]}' % b",".join([item] * 1_000_000)

    def answer(message: dict[str, Any]) -> Any:
        id = str(message["id"]).encode()
        peer.own.send([b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id, page)])
        return SILENCE

    async with Peer({"tools/list": answer}) as peer, Client(peer.channel) as client:
        with pytest.raises(ProtocolError, match="more than 100,000 items; max_list_items"):
            await client.list_tools()


@BOTH
@EVERY_LIST
async def test_a_list_has_a_bound_over_all_its_pages(method: str, revision: str):
    """In items and in bytes, whichever comes first; what is below both is given out."""
    _, field, item = LISTS[method]

    def page(message: dict[str, Any]) -> Any:
        number = int(message["params"].get("cursor", 0)) if "params" in message else 0
        items = [{**item(f"{number}-{n}"), "description": "d" * 1000} for n in range(10)]
        return complete(**{field: items}, nextCursor=str(number + 1))

    for settings, words, pages in [
        (ClientSettings(max_list_items=35), "more than 35 items; max_list_items", 4),
        (ClientSettings(max_list_bytes=25_000), "more than 25,000 bytes; max_list_bytes", 3),
    ]:
        async with (
            Peer({method: page}, revision) as peer,
            Client(peer.channel, settings=settings) as client,
        ):
            with pytest.raises(ProtocolError, match=words):
                await LISTS[method][0](client)
            assert peer.count(method) == pages
    single = {method: big(method, 35, 1000)}
    for settings, fits in [
        (ClientSettings(max_list_items=35), True),
        (ClientSettings(max_list_bytes=1000), False),
    ]:
        async with (
            Peer(single, revision) as peer,
            Client(peer.channel, settings=settings) as client,
        ):
            if fits:
                assert len(await LISTS[method][0](client)) == 35
            else:
                with pytest.raises(ProtocolError, match="more than 1,000 bytes"):
                    await LISTS[method][0](client)


async def test_a_page_that_is_refused():
    """What came before it is not given out as if it were all."""
    async with paging("tools/list", {...: (["a"], "2")}) as peer, Client(peer.channel) as client:
        with pytest.raises(McpError, match="no such cursor: 2"):
            await client.list_tools()


@BOTH
async def test_pages_of_a_server(revision: str):
    """Both sides together, and one page by hand."""
    server = Server("long", limits=ServerLimits(page_size=2))
    for n in range(5):
        server.add_resource(f"x:{n}", "text", name=str(n))
    async with Client(server, revision=revision) as client:
        assert [resource.name for resource in await client.list_resources()] == list("01234")
        page = await client.request("resources/list", t.ListResourcesRequestParams())
        assert isinstance(page, t.ListResourcesResult)
        assert [resource.name for resource in page.resources] == ["0", "1"]
        assert page.next_cursor


# -- output schemas -------------------------------------------------------------------------------

SUM = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}


def selling(*results: dict[str, Any], schema: Any = SUM, revision: str = NEWEST) -> Peer:
    """A server with a tool of this output schema, which gives these results in turn."""
    tool = {
        "name": "add",
        "inputSchema": {"type": "object"},
        **({} if schema is None else {"outputSchema": schema}),
    }
    return Peer({"tools/list": complete(tools=[tool]), "tools/call": list(results)}, revision)


CHECKED: dict[str, tuple[dict[str, Any], str]] = {
    # a result, and what is wrong with it
    "as it says": (text(structuredContent={"sum": 3}), ""),
    "with more": (text(structuredContent={"sum": 3, "more": None}), ""),
    "of another kind": (text(structuredContent={"sum": "3"}), "/sum"),
    "with less": (text(structuredContent={}), "sum"),
    "a list": (text(structuredContent=[3]), "does not fit"),
    "null": (text(structuredContent=None), "does not fit"),
    "nothing": (text(), "gave no structured content"),
    "a failure": (text("no", isError=True), ""),
    "a failure with something": (text("no", isError=True, structuredContent={"sum": "?"}), ""),
}


@pytest.mark.parametrize("revision", [R3, R4, NEWEST])
@pytest.mark.parametrize("result, trouble", CHECKED.values(), ids=CHECKED)
async def test_results_fit_their_schema(result: dict[str, Any], trouble: str, revision: str):
    """Once the tool was listed; failures are words for the model, and free (`TOL-09`, `TOL-10`,
    `TOL-25`).
    """
    async with selling(result, result, revision=revision) as peer, Client(peer.channel) as client:
        await client.call_tool("add")  # nothing is known of it yet
        await client.list_tools()
        if not trouble:
            await client.call_tool("add")
        else:
            with pytest.raises(ProtocolError, match=trouble) as caught:
                await client.call_tool("add")
            assert "The tool add" in str(caught.value) or "of the tool add" in str(caught.value)


async def test_results_that_nobody_wants_checked():
    async with (
        selling(text(structuredContent=[])) as peer,
        Client(peer.channel, settings=ClientSettings(validate=False)) as client,
    ):
        await client.list_tools()
        assert (await client.call_tool("add")).structured_content == []


async def test_tools_without_a_schema():
    """Others that have one do not matter to them."""
    async with (
        selling(text(structuredContent=[]), schema=None) as peer,
        Client(peer.channel) as client,
    ):
        await client.list_tools()
        assert (await client.call_tool("add")).structured_content == []


ANY_JSON: dict[str, tuple[Any, Any, bool]] = {
    # a schema that is no object's, a value, and whether it fits
    "a list": ({"type": "array", "items": {"type": "integer"}}, [1, 2], True),
    "no such list": ({"type": "array", "items": {"type": "integer"}}, [1, "2"], False),
    "a number": ({"type": "number", "minimum": 1}, 0.5, False),
    "null": ({"type": "null"}, None, True),
    "no bounds": ({}, {"x": 1}, True),
    "nothing fits": ({"not": {}}, {"x": 1}, False),
}


@pytest.mark.parametrize("schema, value, fits", ANY_JSON.values(), ids=ANY_JSON)
async def test_schemas_of_any_json(schema: Any, value: Any, fits: bool):
    """(`TOL-07`)"""
    async with (
        selling(text(structuredContent=value), schema=schema) as peer,
        Client(peer.channel) as client,
    ):
        await client.list_tools()
        if fits:
            assert (await client.call_tool("add")).structured_content == value
        else:
            with pytest.raises(ProtocolError, match="does not fit"):
                await client.call_tool("add")


UNUSABLE: dict[str, Any] = {
    "no type of JSON": {"type": "integre"},
    "no keyword's value": {"properties": []},
    "a reference to the network": {"$ref": "https://example.com/schema.json"},
    "a reference to nothing": {"$ref": "#/$defs/none"},
    "a dialect of long ago": {"$schema": "http://json-schema.org/draft-03/schema#"},
    "a pattern that is none": {"type": "string", "pattern": "("},
}


@pytest.mark.parametrize("schema", UNUSABLE.values(), ids=UNUSABLE)
async def test_schemas_that_cannot_be_used(schema: Any, caplog: pytest.LogCaptureFixture):
    """It is said in the log, and the tool can be used all the same (`JSC-02`, `JSC-05`, `JSC-06`,
    `JSC-07`).
    """
    async with (
        selling(*[text(structuredContent={"x": 1})] * 2, schema=schema) as peer,
        Client(peer.channel) as client,
    ):
        with caplog.at_level(logging.WARNING, "interlock.client"):
            assert [tool.name for tool in await client.list_tools()] == ["add"]
            for _ in range(2):
                assert (await client.call_tool("add")).structured_content == {"x": 1}
        assert caplog.text.count("the output schema of the tool 'add' cannot be used") == 1


async def test_what_is_known_is_what_was_listed_last():
    """A tool that has changed, or has lost its schema, is not held to the old one; nor is one after
    a notice of change.
    """
    fits = text(structuredContent={"sum": 3})
    other = text(structuredContent={"total": 3})
    tool = {"name": "add", "inputSchema": {"type": "object"}}
    lists = [
        complete(tools=[{**tool, "outputSchema": SUM}]),
        complete(tools=[tool]),
        complete(tools=[{**tool, "outputSchema": SUM}]),
        complete(tools=[]),
        complete(tools=[{**tool, "outputSchema": SUM}]),
    ]
    async with (
        Peer({"tools/list": lists, "tools/call": [fits, other, other, other]}) as peer,
        Client(peer.channel) as client,
    ):
        await client.list_tools()
        await client.call_tool("add")
        await client.list_tools()  # without a schema
        await client.call_tool("add")
        await client.list_tools()
        await client.list_tools()  # it is gone
        await client.call_tool("add")
        await client.list_tools()
        peer.tell("notifications/tools/list_changed")
        await client.ping()  # the notice came before the answer
        await client.call_tool("add")


async def test_a_schema_that_is_kept():
    """A list that is answered from what was kept is known as well."""
    tool = {"name": "add", "inputSchema": {"type": "object"}, "outputSchema": SUM}
    async with (
        Peer({"tools/list": complete(tools=[tool], ttlMs=60_000), "tools/call": text()}) as peer,
        Client(peer.channel) as client,
    ):
        for _ in range(2):
            await client.list_tools()
            with pytest.raises(ProtocolError):
                await client.call_tool("add")
        assert peer.count("tools/list") == 1
