"""Lists in pages: every item once whatever comes and goes, an order that stays, and bytes that are
kept until something changes.
"""

from __future__ import annotations

import asyncio
import base64
import threading
from typing import Any

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from interlock import Client, McpError, Server, ServerLimits
from interlock import types as t
from interlock.cursors import encode_cursor
from interlock.wire.revisions import NEWEST, REVISIONS
from tests.server.by_hand import OLDEST, listed, pages_of

METHODS = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
}


def stocked(count: int, **options: Any) -> Server:
    """A server with so many features of each kind."""
    server = Server("stocked", **options)

    async def feature() -> str:
        """One of many."""
        return ""

    async def template(name: str) -> str:
        return name

    for n in range(count):
        server.add_tool(feature, name=f"f{n}")
        server.add_prompt(feature, name=f"f{n}")
        server.add_resource(f"docs://f{n}", "text")
        server.add_resource(f"docs://f{n}/{{name}}", template)
    return server


def keys(page: dict[str, Any], what: str) -> list[str]:
    field = {"resources": "uri", "resourceTemplates": "uriTemplate"}.get(what, "name")
    return [item[field] for item in page[what]]


@pytest.mark.parametrize("what", METHODS)
@pytest.mark.parametrize(
    "count, size, pages",
    [(0, 3, 1), (1, 3, 1), (3, 3, 1), (4, 3, 2), (7, 3, 3), (6, 3, 2), (3, 1, 3)],
)
async def test_pages(what: str, count: int, size: int, pages: int):
    """As many pages as it takes, in the order of adding; the last one has no cursor, and is not
    empty (`PAG-02`, `PAG-06`, `TOL-20`).
    """
    server = stocked(count, limits=ServerLimits(page_size=size))
    if not count:
        server.changed("tools")
        server.changed("prompts")
        server.changed("resources")
    found: list[list[str]] = []
    cursor: str | None = None
    while not found or cursor is not None:
        page = await listed(server, METHODS[what], cursor)
        found.append(keys(page, what))
        cursor = page.get("nextCursor")
    assert [len(page) for page in found[:-1]] == [size] * (pages - 1)
    whole = await listed(stocked(count), METHODS[what]) if count else {what: []}
    assert [key for page in found for key in page] == keys(whole, what)
    assert len(keys(whole, what)) == count


@pytest.mark.parametrize("what", METHODS)
@pytest.mark.parametrize(
    "cursor",
    [
        "made up",
        "",
        "é",
        "====",
        base64.urlsafe_b64encode(b"1").decode(),
        *(encode_cursor(place, "tools") for place in (None, -1, 1, 1.5, "1", [1], b"", b"1")),
        encode_cursor((1).to_bytes(6), "extras"),
        encode_cursor((1).to_bytes(6), "tools", [b"k" * 16]),
    ],
)
async def test_cursors_that_nobody_gave(what: str, cursor: str):
    """They are the error -32602 (`PAG-05`)."""
    with pytest.raises(McpError, match="Invalid cursor") as caught:
        await listed(stocked(3, limits=ServerLimits(page_size=1)), METHODS[what], cursor)
    assert caught.value.code == t.INVALID_PARAMS


async def test_a_cursor_of_huge_numbers():
    """A place that no list reaches is behind all that there is."""
    page = await listed(stocked(3), "tools/list", encode_cursor(b"\xff" * 6, "tools"))
    assert page["tools"] == []
    assert "nextCursor" not in page


async def test_workers_understand_each_others_cursors():
    """A second server that was made alike goes on where the first one stopped (`PAG-05`)."""
    one = stocked(5, limits=ServerLimits(page_size=2))
    other = stocked(5, limits=ServerLimits(page_size=2))
    first = await listed(one, "tools/list")
    assert keys(await listed(other, "tools/list", first["nextCursor"]), "tools") == ["f2", "f3"]


async def test_a_page_after_a_removal():
    """What the cursor points behind has gone, and come back at the end: nothing between is missed
    or told twice (`PAG-05`).
    """
    server = stocked(5, limits=ServerLimits(page_size=2))
    first = await listed(server, "tools/list")
    tool = server.tools.get("f1")
    assert tool is not None
    server.remove_tool("f1")
    assert keys(await listed(server, "tools/list", first["nextCursor"]), "tools") == ["f2", "f3"]
    server.tools.add(tool)
    second = await listed(server, "tools/list", first["nextCursor"])
    assert keys(second, "tools") == ["f2", "f3"]
    assert keys(await listed(server, "tools/list", second["nextCursor"]), "tools") == ["f4", "f1"]


async def test_what_is_replaced_keeps_its_place():
    """The order stays as it was (`TOL-20`)."""
    server = stocked(3)

    async def feature() -> str:
        """Another one."""
        return ""

    server.add_tool(feature, name="f1", replace=True)
    tools = (await listed(server, "tools/list"))["tools"]
    assert [(tool["name"], tool["description"]) for tool in tools] == [
        ("f0", "One of many."),
        ("f1", "Another one."),
        ("f2", "One of many."),
    ]


@pytest.mark.parametrize("method", METHODS.values())
async def test_freshness(method: str):
    """Every page carries the same hints, and only the newest revision has them (`CAC-01`,
    `CAC-06`).
    """
    server = stocked(3, limits=ServerLimits(page_size=2, list_ttl_ms=5000))
    first = await listed(server, method)
    second = await listed(server, method, first["nextCursor"])
    for page in (first, second):
        assert (page["ttlMs"], page["cacheScope"]) == (5000, "public")
    assert not {"ttlMs", "cacheScope"} & (await listed(server, method, revision=OLDEST)).keys()


async def test_lists_are_kept_until_something_changes():
    """The same bytes for the same question, other ones for another revision, and new ones after a
    change.
    """
    server = stocked(2)
    pages = pages_of(server)
    for revision in REVISIONS:
        assert pages.page("tools", None, revision) is pages.page("tools", None, revision)
    assert pages.page("tools", None, OLDEST) != pages.page("tools", None, NEWEST)
    before = pages.page("tools", None, NEWEST)
    server.remove_tool("f0")
    assert pages.page("tools", None, NEWEST) is before  # nobody has told this one
    pages.clear()
    assert [
        tool["name"] for tool in msgspec.json.decode(pages.page("tools", None, NEWEST))["tools"]
    ] == ["f1"]


async def test_cursors_do_not_fill_the_memory():
    """Whoever makes up cursor after cursor finds that few answers are kept."""
    pages = pages_of(stocked(1))
    for place in range(1, 2000):
        pages.page("tools", encode_cursor(place.to_bytes(6), "tools"), NEWEST)
    assert len(pages._pages) <= 1024


@pytest.mark.parametrize("change", ["add", "remove", "replace"])
async def test_a_change_shows_at_once(change: str):
    """Adding, removing and replacing, also from a thread."""
    server = stocked(2)
    assert keys(await listed(server, "tools/list"), "tools") == ["f0", "f1"]

    async def feature() -> str:
        """Another one."""
        return ""

    act = {
        "add": lambda: server.add_tool(feature, name="f2"),
        "remove": lambda: server.remove_tool("f1"),
        "replace": lambda: server.add_tool(feature, name="f1", replace=True),
    }[change]
    await asyncio.to_thread(act)
    tools = (await listed(server, "tools/list"))["tools"]
    assert [tool["name"] for tool in tools] == {
        "add": ["f0", "f1", "f2"],
        "remove": ["f0"],
        "replace": ["f0", "f1"],
    }[change]
    assert (tools[-1]["description"] == "Another one.") is (change != "remove")


class Sly:
    """A feature during whose listing a thread changes the list."""

    key = "sly"
    scopes: frozenset[str] = frozenset()

    def __init__(self, server: Server) -> None:
        self.server = server
        self.done = False

    @property
    def listing(self) -> t.Tool:
        if not self.done:
            self.done = True
            thread = threading.Thread(target=self.server.remove_tool, args=("f0",))
            thread.start()
            thread.join()
        return t.Tool(name="sly", input_schema={"type": "object"})


async def test_a_change_while_a_list_is_made():
    """The list that was begun before it is not kept: the next question finds what there is."""
    server = stocked(1)
    server.tools.add(Sly(server))  # type: ignore[arg-type]  # it only has what a list wants of it
    await listed(server, "tools/list")
    assert keys(await listed(server, "tools/list"), "tools") == ["sly"]


class Pages(RuleBasedStateMachine):
    """Somebody turns pages while tools come and go."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()

    @initialize(size=st.integers(1, 3), count=st.integers(0, 6))
    def build(self, size: int, count: int) -> None:
        self.server = stocked(count, limits=ServerLimits(page_size=size))
        self.server.changed("tools")
        self.made = count
        self.begin()

    @rule()
    def begin(self) -> None:
        self.cursor: str | None = None
        self.seen: list[str] = []
        self.throughout = {tool.key for tool in self.server.tools}
        self.ever = set(self.throughout)

    @rule()
    def turn(self) -> None:
        page = self.loop.run_until_complete(listed(self.server, "tools/list", self.cursor))
        self.seen += keys(page, "tools")
        self.cursor = page.get("nextCursor")
        if self.cursor is None:
            for name in self.throughout:
                assert self.seen.count(name) == 1
            assert set(self.seen) <= self.ever
            self.begin()

    @rule()
    def add(self) -> None:
        self.put(f"f{self.made}")
        self.made += 1

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        if names := [tool.key for tool in self.server.tools]:
            name = data.draw(st.sampled_from(names))
            self.server.remove_tool(name)
            self.throughout.discard(name)

    @rule(data=st.data())
    def replace(self, data: st.DataObject) -> None:
        if names := [tool.key for tool in self.server.tools]:
            self.put(data.draw(st.sampled_from(names)), replace=True)

    @rule(data=st.data())
    def put_back(self, data: st.DataObject) -> None:
        if gone := sorted(
            {f"f{n}" for n in range(self.made)} - {tool.key for tool in self.server.tools}
        ):
            self.put(data.draw(st.sampled_from(gone)))

    def put(self, name: str, *, replace: bool = False) -> None:
        async def feature() -> None: ...

        self.server.add_tool(feature, name=name, replace=replace)
        self.ever.add(name)

    def teardown(self) -> None:
        self.loop.close()


TestPages = Pages.TestCase


async def test_a_client_turns_all_pages():
    """The client's list is the whole, whatever the size of the pages (`PAG-01`, `PAG-02`)."""
    async with Client(stocked(5, limits=ServerLimits(page_size=2))) as client:
        assert [tool.name for tool in await client.list_tools()] == ["f0", "f1", "f2", "f3", "f4"]
        assert len(await client.list_resource_templates()) == 5
