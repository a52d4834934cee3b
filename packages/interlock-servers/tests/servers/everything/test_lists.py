"""Resources, templates, prompts, completions, lists in pages, and all that changes while the
everything server runs.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode

import pytest

from interlock import Client, McpError, Server, types
from interlock_servers.everything import CLOCK, COUNTER, everything_server
from tests.servers.everything.scripted_client import PROMPTS, URIS, soon

# -- resources -------------------------------------------------------------------------------------


async def test_resources(client: Client) -> None:
    """Text, bytes, several contents at once, what asks, and what is not to be had (`RES-02`,
    `RES-06`).
    """
    listed = {resource.uri: resource for resource in await client.list_resources()}
    assert len(listed) == 11
    assert all(resource.title for resource in listed.values())
    (text,) = (await client.read_resource("everything://docs/readme.md")).contents
    assert (text.mime_type, text.text) == (
        "text/markdown",
        "# Everything\n\nA text that never changes.\n",
    )
    for uri, opening in (
        ("everything://picture.png", b"\x89PNG"),
        ("everything://sound.wav", b"RIFF"),
        ("everything://docs/data.bin", b"\0\1"),
    ):
        (contents,) = (await client.read_resource(uri)).contents
        data = b64decode(contents.blob or "")
        assert data.startswith(opening)
        assert listed[uri].size == len(data)
    several = (await client.read_resource("everything://shelf")).contents
    assert [(contents.uri, contents.text is None) for contents in several] == [
        ("everything://note", False),
        ("everything://bytes", True),
    ]
    with pytest.raises(McpError, match="never to be had") as refused:
        await client.read_resource("everything://refused")
    assert (refused.value.code, refused.value.data) == (
        types.INTERNAL_ERROR,
        {"why": "to show an error"},
    )
    with pytest.raises(McpError, match="not found") as lost:
        await client.read_resource("everything://nowhere")
    assert lost.value.code == (
        types.INVALID_PARAMS if client.revision == "2026-07-28" else types.RESOURCE_NOT_FOUND
    )


async def test_what_may_be_kept(server: Server) -> None:
    """For how long and for whom, by the author's word or by the result's own (`CAC-01`)."""
    async with Client(server) as client:
        kept = {
            uri: await client.read_resource(uri)
            for uri in ("everything://docs/readme.md", "everything://stamped", COUNTER)
        }
    assert [(result.ttl_ms, result.cache_scope) for result in kept.values()] == [
        (3_600_000, "public"),
        (60_000, "public"),
        (0, "private"),
    ]


@pytest.mark.parametrize("template", URIS)
async def test_templates_with_each_operator(client: Client, template: str) -> None:
    """Each operator of RFC 6570 stands in a template, and what it names can be read (`RES-13`)."""
    listed = {each.uri_template: each for each in await client.list_resource_templates()}
    assert listed.keys() == URIS.keys()
    assert listed[template].title
    uri, text = URIS[template]
    (contents,) = (await client.read_resource(uri)).contents
    assert (contents.uri, contents.text) == (uri, text)


async def test_a_template_that_has_no_such_resource(client: Client) -> None:
    """A greeting in a language that is not known, and a number that is too large (`RES-06`)."""
    for uri in ("everything://greetings/latin/Ann", "everything://numbers/251"):
        with pytest.raises(McpError):
            await client.read_resource(uri)


# -- what changes ----------------------------------------------------------------------------------


async def test_a_resource_that_changes(client: Client) -> None:
    """Who watches the counter hears of each tick, and reads the new number (`SUB-01`, `LSN-02`)."""
    async with client.watch(resources=[COUNTER]) as changes:
        await client.call_tool("tick")
        change = await anext(changes)
        assert (change.kind, change.uri) == ("resource", COUNTER)
        (contents,) = (await client.read_resource(COUNTER)).contents
        assert json.loads(contents.text or "") == {"count": 1}
        assert (await client.call_tool("read_counter")).text == contents.text


async def test_a_resource_that_changes_by_itself(client: Client, server: Server) -> None:
    """Who watches the clock hears of each tick though nobody calls; a second clock is refused, and
    in the end it stops (`SUB-02`).
    """
    async with client.watch(resources=[CLOCK]) as changes:
        assert not (await client.call_tool("start_clock", {"ticks": 3, "seconds": 0.02})).is_error
        assert "running already" in (await client.call_tool("start_clock")).text
        async with asyncio.timeout(20):
            for _ in range(3):
                assert (await soon(changes)).uri == CLOCK
            await server.lifespan_state.ticking
        (contents,) = (await client.read_resource(CLOCK)).contents
        assert json.loads(contents.text or "") == {"ticks": 3}
        assert not (await client.call_tool("start_clock", {"ticks": 1, "seconds": 0.001})).is_error


async def test_the_clock_stops_with_the_server(server: Server) -> None:
    """Nothing is left running when the last client goes."""
    async with Client(server) as client:
        await client.call_tool("start_clock", {"ticks": 10, "seconds": 5})
        ticking = server.lifespan_state.ticking
    assert ticking.cancelled()


async def test_features_that_come_and_go(client: Client, server: Server) -> None:
    """A tool, a prompt and a resource are added and taken away; listeners hear of it, lists have it
    (`TOL-18`, `PRM-08`, `RES-09`).
    """
    async with client.watch(tools=True, prompts=True, resources=True) as changes:
        name = (await client.call_tool("grow")).text
        assert {(await soon(changes)).kind for _ in range(3)} == {"tools", "prompts", "resources"}
        assert name in [tool.name for tool in await client.list_tools()]
        assert (await client.call_tool(name)).text == "I am extra 1."
        assert (await client.read_resource("everything://extras/1")).contents[
            0
        ].text == "I am extra 1."
        assert (await client.call_tool("shrink")).text == name
        assert {(await soon(changes)).kind for _ in range(3)} == {"tools", "prompts", "resources"}
        assert name not in [prompt.name for prompt in await client.list_prompts()]
        await client.call_tool("grow")
    assert len(server.lifespan_state.extras) == 1


async def test_what_came_goes_with_the_last_client(server: Server) -> None:
    """The next one to use the server finds it as it was."""
    for _ in range(2):
        async with Client(server) as client:
            assert (await client.call_tool("grow")).text == "extra_1"
            assert "extra_1" in [tool.name for tool in await client.list_tools()]
    assert server.tools.get("extra_1") is None
    assert server.prompts.get("extra_1") is None
    assert server.resources.get("everything://extras/1") is None


# -- prompts, completions, pages -------------------------------------------------------------------


async def test_prompts(client: Client) -> None:
    """One message, and several with pictures, sound, resources and links (`PRM-02`, `PRM-04`)."""
    listed = {prompt.name: prompt for prompt in await client.list_prompts()}
    assert listed.keys() == PROMPTS.keys()
    assert all(prompt.title and prompt.description for prompt in listed.values())
    (code, language) = listed["review"].arguments or []
    assert (code.title, code.description, code.required) == ("Code", "what to review.", True)
    assert (language.title, language.required) == ("Language", False)
    kinds = {}
    for name in ("hello", "review", "trip", "listen", "look_up", "annotated"):
        got = await client.get_prompt(name, PROMPTS[name])
        kinds[name] = [(message.role, type(message.content).__name__) for message in got.messages]
    assert kinds == {
        "hello": [("user", "TextContent")],
        "review": [("user", "TextContent")],
        "trip": [
            ("user", "TextContent"),
            ("user", "ImageContent"),
            ("assistant", "TextContent"),
            ("user", "EmbeddedResource"),
        ],
        "listen": [("user", "TextContent"), ("user", "AudioContent")],
        "look_up": [
            ("user", "TextContent"),
            ("user", "ResourceLink"),
            ("user", "EmbeddedResource"),
        ],
        "annotated": [("user", "TextContent"), ("user", "EmbeddedResource")],
    }
    assert (await client.get_prompt("repeat", {"word": "hey", "times": "3"})).messages[
        0
    ].content == types.TextContent("hey hey hey")


@pytest.mark.parametrize(
    "name, arguments, words",
    [
        ("review", {}, "Missing required argument"),
        ("review", {"code": "x", "language": "cobol"}, "does not fit"),
        ("hello", {"to": "Ann"}, "Unknown argument"),
        ("repeat", {"word": "hey", "times": "often"}, "does not fit"),
        ("nobody", {}, "Unknown prompt"),
        ("refused", {}, "never to be had"),
    ],
)
async def test_prompts_that_cannot_be_had(
    client: Client, name: str, arguments: dict[str, str], words: str
) -> None:
    """An error says why (`PRM-05`)."""
    with pytest.raises(McpError, match=words):
        await client.get_prompt(name, arguments)


async def test_completion(client: Client) -> None:
    """Of a Literal, of an argument in the light of another, of a template's variable; a hundred of
    many (`CMP-02`, `CMP-03`).
    """
    assert (await client.complete("review", "language", "ru")).values == ["rust"]
    assert (await client.complete("trip", "country", "f")).values == ["france"]
    assert (await client.complete("trip", "city", "b", arguments={"country": "spain"})).values == [
        "Barcelona",
        "Bilbao",
    ]
    assert (
        await client.complete("everything://greetings/{language}/{name}", "language", "s")
    ).values == ["spanish"]
    numbers = await client.complete("everything://numbers/{number}", "number", "")
    assert (len(numbers.values), numbers.total, numbers.has_more) == (100, 250, True)
    last = await client.complete("everything://numbers/{number}", "number", "24")
    assert (len(last.values), last.total, last.has_more) == (10, 10, False)
    words = await client.complete("repeat", "word", "word-1")
    assert (len(words.values), words.total, words.has_more) == (10, 111, True)
    with pytest.raises(McpError, match="Unknown"):
        await client.complete("nobody", "word", "")


@pytest.mark.parametrize(
    "method, items, sizes",
    [
        ("tools/list", "tools", [8] * 11 + [3]),
        ("resources/list", "resources", [8, 3]),
        ("resources/templates/list", "resource_templates", [8, 2]),
        ("prompts/list", "prompts", [8, 1]),
    ],
)
async def test_pages(client: Client, method: str, items: str, sizes: list[int]) -> None:
    """Each list comes in pages, and a cursor that was not given is refused (`PAG-05`, `TOL-29`)."""
    found = []
    cursor = None
    while True:
        page = await client.request(method, types.ListToolsRequestParams(cursor=cursor))
        assert isinstance(page, types.PaginatedResult)
        found.append(len(getattr(page, items)))
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found == sizes
    with pytest.raises(McpError, match="cursor"):
        await client.request(method, types.ListToolsRequestParams(cursor="nonsense"))


async def test_one_page_holds_all_unless_small_pages_are_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Many clients never ask for a second page, and would see a part of the tools only."""
    for size, pages in ((None, [90]), ("40", [40, 40, 10])):
        if size is not None:
            monkeypatch.setenv("INTERLOCK_EVERYTHING_PAGE_SIZE", size)
        found = []
        cursor = None
        async with Client(everything_server()) as client:
            while len(found) < len(pages):
                page = await client.request(
                    "tools/list", types.ListToolsRequestParams(cursor=cursor)
                )
                assert isinstance(page, types.ListToolsResult)
                found.append(len(page.tools))
                cursor = page.next_cursor
        assert (found, cursor) == (pages, None)


async def test_icons(server: Server) -> None:
    """On the server, a tool, a prompt, a resource, a template and a link: of each theme and type,
    all of them held by data: URIs (`ICO-01`, `ICO-05`).
    """
    async with Client(server) as client:
        info = client.server_info
        assert info is not None
        assert (info.title, info.website_url) == ("Everything", "https://example.com/everything")
        bearers = [
            info,
            *(tool for tool in await client.list_tools() if tool.name == "echo"),
            *(prompt for prompt in await client.list_prompts() if prompt.name == "review"),
            *(
                resource
                for resource in await client.list_resources()
                if resource.uri.endswith("readme.md")
            ),
            *(
                template
                for template in await client.list_resource_templates()
                if "greetings" in template.uri_template
            ),
            (await client.call_tool("links")).content[1],
        ]
    for bearer in bearers:
        icons = getattr(bearer, "icons", None) or []
        kinds = [(icon.mime_type, icon.sizes, icon.theme) for icon in icons]
        assert kinds == [
            ("image/svg+xml", ["any"], "light"),
            ("image/svg+xml", ["any"], "dark"),
            ("image/png", ["8x8"], None),
        ]
        assert all(icon.src.startswith(f"data:{icon.mime_type}") for icon in icons)
    assert len(bearers) == 6
