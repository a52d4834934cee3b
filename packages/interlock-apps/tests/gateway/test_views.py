"""Views: which servers and tools each offers, tool search, and catalogues of principals."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import Answers, Client, Context, McpError, Principal, Server
from interlock.types import (
    ListResourcesRequestParams,
    ListResourcesResult,
    ListToolsRequestParams,
    ListToolsResult,
)
from interlock.wire.revisions import REVISIONS
from interlock_apps.gateway.search import MOST_LISTED
from tests.gateway.behind import (
    connected,
    gateway_of,
    kitchen,
    names_of,
    settings_of,
    with_servers,
)

SERVERS = {"north": kitchen("north"), "south": kitchen("south")}


@pytest.mark.parametrize("revision", REVISIONS)
async def test_all_servers_with_their_prefixes(revision: str) -> None:
    gateway = gateway_of(settings_of(with_servers("north", "south")), SERVERS)
    progress: list[Any] = []
    async with connected(gateway, revision=revision, elicit=lambda q: {"confirm": True}) as client:
        assert await names_of(client) == [
            "north__order",
            "north__menu",
            "south__order",
            "south__menu",
        ]
        assert (await client.call_tool("south__menu")).text == "south: soup"
        if client.caller.supports("elicitation"):
            ordered = await client.call_tool(
                "north__order", {"dish": "pie"}, on_progress=progress.append
            )
            assert ordered.text == "north: pie"
            assert [each.message or "asking" for each in progress] == ["asking"]
        prompt = await client.get_prompt("south__cook", {"dish": "pie"})
        assert "at south" in str(prompt.messages[0].content)
        # Both have this URI: that of the later one has its prefix.
        uris = [resource.uri for resource in await client.list_resources()]
        assert uris == ["kitchen://board", "kitchen://south/board"]
        board = await client.read_resource("kitchen://south/board")
        assert board.contents[0].text == "board of south"


async def test_a_view_has_its_own_servers_and_tools() -> None:
    more = """
    [views.guests]
    servers = ["north"]
    tools = ["north__m*"]
    without = ["kitchen://*"]
    """
    gateway = gateway_of(settings_of(with_servers("north", "south", more=more)), SERVERS)
    async with connected(gateway, "guests") as client:
        assert await names_of(client) == ["north__menu"]
        assert await client.list_resources() == []
        for hidden in ("north__order", "south__menu"):
            with pytest.raises(McpError):
                await client.call_tool(hidden, {"dish": "x"})
        with pytest.raises(McpError):
            await client.read_resource("kitchen://board")
    async with connected(gateway) as client:
        assert len(await names_of(client)) == 4


async def test_a_server_without_a_prefix_keeps_its_names() -> None:
    text = '[servers.north]\ncommand = ["north"]\nprefix = ""\n'
    async with connected(gateway_of(settings_of(text), SERVERS)) as client:
        assert await names_of(client) == ["order", "menu"]


async def test_a_call_opens_only_the_server_that_it_needs() -> None:
    gateway = gateway_of(settings_of(with_servers("north", "south")), SERVERS)
    async with connected(gateway) as client:
        assert [state.condition for state in gateway.upstreams()] == ["idle", "idle"]
        await client.call_tool("south__menu")
        assert [state.condition for state in gateway.upstreams()] == ["idle", "up"]


def many(count: int) -> Server:
    """A server with many tools."""
    server = Server("many")
    for number in range(count):

        def run(number: int = number) -> str:
            return f"ran {number}"

        server.add_tool(run, name=f"tool_{number}", description=f"Move the {number}th crate.")
    return server


@pytest.mark.parametrize("personal", [False, True])
async def test_a_large_view_offers_search(personal: bool) -> None:
    more = "shared = false\n" if personal else ""
    gateway = gateway_of(
        settings_of(with_servers("many", more=more)), {"many": many(MOST_LISTED + 1)}
    )
    async with connected(gateway) as client:
        assert await names_of(client) == ["search_tools", "call_tool"]
        found = await client.call_tool("search_tools", {"words": "move the 7th crate", "limit": 2})
        assert "many__tool_7" in found.text
        inner = {"name": "many__tool_7", "arguments": {}}
        assert (await client.call_tool("call_tool", inner)).text == "ran 7"
        assert (await client.call_tool("many__tool_7")).text == "ran 7"
        unknown = {"name": "many__nothing"}
        with pytest.raises(McpError, match="many__nothing"):
            await client.call_tool("call_tool", unknown)
        assert (await client.call_tool("search_tools", {})).is_error


async def test_a_small_view_lists_its_tools_unless_it_always_searches() -> None:
    more = '[views.always]\nsearch = "always"\n[views.never]\nsearch = "never"\n'
    servers = {"many": many(MOST_LISTED + 1)}
    gateway = gateway_of(settings_of(with_servers("many", more=more)), servers)
    async with connected(gateway, "always") as client:
        assert await names_of(client) == ["search_tools", "call_tool"]
    async with connected(gateway, "never") as client:
        assert len(await names_of(client)) == MOST_LISTED + 1


async def test_each_principal_has_a_process_and_a_catalogue() -> None:
    made: list[Server] = []

    def fresh() -> Server:
        server = kitchen(f"kitchen {len(made)}")
        made.append(server)
        return server

    class Fresh(dict[str, Any]):
        def __getitem__(self, key: str) -> Any:
            return fresh()

    gateway = gateway_of(settings_of(with_servers("k", more="shared = false\n")), Fresh())
    front = gateway.view("").server
    texts = {}
    async with gateway.lifespan(front):
        for subject in ("ada", "bob", "ada"):
            who = Principal(subject=subject, issuer="https://login.example", client="c")
            async with Client(front.transport(principal=who)) as client:
                texts[subject] = (await client.call_tool("k__menu")).text
        assert len(made) == 2
        assert texts == {"ada": "kitchen 0: soup", "bob": "kitchen 1: soup"}
        # A tool that appears for one principal appears for nobody else.
        made[0].add_tool(lambda: "secret", name="adas")
        for subject, has in (("ada", True), ("bob", False)):
            who = Principal(subject=subject, issuer="https://login.example", client="c")
            async with Client(front.transport(principal=who)) as client:
                if has:
                    await until_listed(client, "k__adas")
                else:
                    assert "k__adas" not in await names_of(client)


async def test_a_new_catalogue_does_not_make_room_for_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All others are in use: there is one too many until a request has ended."""
    monkeypatch.setattr("interlock_apps.gateway.views._MOST_PRINCIPALS", 1)
    begun = asyncio.Event()
    finish = asyncio.Event()
    slow = Server("slow")

    @slow.tool
    async def wait() -> str:
        """Wait for the test."""
        begun.set()
        await finish.wait()
        return "done"

    gateway = gateway_of(settings_of(with_servers("s", more="shared = false\n")), {"s": slow})
    front = gateway.view("").server
    ada, bob = (
        Principal(subject=name, issuer="https://login.example", client="c")
        for name in ("ada", "bob")
    )
    async with (
        gateway.lifespan(front),
        Client(front.transport(principal=ada)) as first,
        Client(front.transport(principal=bob)) as second,
    ):
        waiting = asyncio.create_task(first.call_tool("s__wait"))
        await begun.wait()
        for _ in range(3):
            assert await names_of(second) == ["s__wait"]
        finish.set()
        assert (await waiting).text == "done"
        assert (await second.call_tool("s__wait")).text == "done"
        assert (await first.call_tool("s__wait")).text == "done"


async def until_listed(client: Client, name: str) -> None:
    """Wait until a tool is listed."""
    async with client.watch(tools=True) as changes:
        if name in await names_of(client):
            return
        async for _ in changes:
            if name in await names_of(client):
                return


async def test_sampling_and_roots_reach_the_caller() -> None:
    asking = Server("asking")

    @asking.tool
    async def ask(ctx: Context) -> str:
        """Ask the model and for the roots."""
        said = await ctx.sample("hello")
        roots = await ctx.roots()
        return f"{said.content.text} {roots[0].uri}"

    gateway = gateway_of(settings_of(with_servers("a")), {"a": asking})
    answers = Answers(sample=lambda params: "model says hi", roots="file:///home/ada")
    async with connected(gateway, answers=answers) as client:
        assert (await client.call_tool("a__ask")).text == "model says hi file:///home/ada"


@pytest.mark.parametrize("personal", [False, True])
async def test_lists_are_never_shared_by_caches(personal: bool) -> None:
    more = "shared = false\n" if personal else ""
    gateway = gateway_of(settings_of(with_servers("north", more=more)), SERVERS)
    async with connected(gateway, revision=REVISIONS[-1]) as client:
        for method, params, kind in (
            ("tools/list", ListToolsRequestParams(), ListToolsResult),
            ("resources/list", ListResourcesRequestParams(), ListResourcesResult),
        ):
            listed = await client.request(method, params, kind)
            assert listed.cache_scope == "private"
