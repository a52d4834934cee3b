"""Mounts: names, selection, transformation, visibility, changes, and the routes of all kinds of
features, with servers in this process and with clients as sources."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from interlock import (
    Caller,
    CallToolResult,
    Change,
    Client,
    Context,
    EmbeddedResource,
    Exchange,
    Feature,
    Handler,
    McpError,
    Offered,
    Principal,
    ResourceContents,
    ResourceLink,
    Server,
    Tasks,
    TextContent,
    ToolAnnotations,
    Transform,
    Unreachable,
)
from interlock.client.source import ClientSource
from interlock.server.changes import MemoryBus
from interlock.server.sources.uris import with_prefix, without_prefix
from interlock.types import ClientCapabilities, Tool
from tests.ports import free_port

SECONDS = 15  # after which a test hangs


def kitchen() -> Server:
    """A server with a feature of each kind."""
    server = Server("kitchen")

    @server.tool(tags=["food"])
    async def order(dish: str, size: int = 1, debug: bool = False) -> str:
        """Order something to eat.

        Args:
            dish: What to eat.
            size: How much.
            debug: More words.
        """
        return f"{size} {dish}{' (debug)' if debug else ''}"

    @server.tool(tags=["admin"])
    async def close_all() -> str:
        """Close the kitchen."""
        return "closed"

    @server.tool
    async def look() -> CallToolResult:
        """Return a link and an embedded resource."""
        page = ResourceContents(uri="menu://today", text="soup")
        return CallToolResult(
            content=[
                ResourceLink(uri="menu://today", name="menu"),
                EmbeddedResource(resource=page),
            ]
        )

    @server.prompt
    async def greeting(name: str) -> str:
        """A greeting."""
        return f"Greet {name}."

    server.add_resource("menu://today", "soup")

    @server.resource("dish://{name}")
    async def dish(name: str) -> str:
        """A dish."""
        return f"a {name}"

    @server.completion("greeting", "name")
    async def names(value: str) -> list[str]:
        return [name for name in ("ada", "bob") if name.startswith(value)]

    return server


def bar() -> Server:
    """A server with names and URIs of the kitchen."""
    server = Server("bar")

    @server.tool
    async def order(drink: str) -> str:
        """Order something to drink."""
        return f"a glass of {drink}"

    server.add_resource("menu://today", "wine")

    @server.resource("dish://{name}")
    async def dish(name: str) -> str:
        """A snack."""
        return f"a {name} snack"

    return server


async def eventually(holds: Any) -> None:
    """Let the event loop run until a condition holds."""
    async with asyncio.timeout(SECONDS):
        while not holds():  # noqa: ASYNC110 - nothing tells when it holds
            await asyncio.sleep(0)


async def names_of(client: Client) -> list[str]:
    return [tool.name for tool in await client.list_tools()]


@pytest.fixture(params=["server", "client"])
def source_of(request: pytest.FixtureRequest) -> Any:
    """Turns a server into what is mounted: itself, or a client of it."""
    return (lambda server: server) if request.param == "server" else Client


# -- names, routes ---------------------------------------------------------------------------------


async def test_every_kind_of_feature_is_reached_through_a_mount(source_of: Any) -> None:
    front = Server("front")
    front.mount(source_of(kitchen()), prefix="kitchen")
    async with Client(front) as client:
        assert await names_of(client) == [
            "kitchen__order",
            "kitchen__close_all",
            "kitchen__look",
        ]
        assert (await client.call_tool("kitchen__order", {"dish": "soup"})).text == "1 soup"
        prompt = await client.get_prompt("kitchen__greeting", {"name": "Ada"})
        assert prompt.messages[0].content == TextContent("Greet Ada.")
        assert [r.uri for r in await client.list_resources()] == ["menu://today"]
        assert (await client.read_resource("menu://today")).contents[0].text == "soup"
        templates = await client.list_resource_templates()
        assert [template.uri_template for template in templates] == ["dish://{name}"]
        assert (await client.read_resource("dish://pea")).contents[0].text == "a pea"
        completion = await client.complete("kitchen__greeting", "name", "a")
        assert completion.values == ["ada"]


async def test_own_features_stay_beside_those_of_a_source(source_of: Any) -> None:
    front = Server("front")

    @front.tool
    async def order() -> str:
        """Order."""
        return "own"

    front.add_resource("own://one", "mine")
    front.mount(source_of(kitchen()), prefix="k")
    async with Client(front) as client:
        assert (await client.call_tool("order")).text == "own"
        assert (await client.call_tool("k__order", {"dish": "pea"})).text == "1 pea"
        assert (await client.read_resource("own://one")).contents[0].text == "mine"
        with pytest.raises(McpError, match="Unknown tool: nothing"):
            await client.call_tool("nothing")
        with pytest.raises(McpError, match="Resource not found"):
            await client.read_resource("nothing://here")


async def test_mounts_of_mounts() -> None:
    middle = Server("middle")
    middle.mount(kitchen(), prefix="kitchen")
    front = Server("front")
    front.mount(middle, prefix="m")
    async with Client(front) as client:
        assert "m__kitchen__order" in await names_of(client)
        assert (await client.call_tool("m__kitchen__order", {"dish": "soup"})).text == "1 soup"


def test_a_server_is_not_mounted_in_itself() -> None:
    middle = Server("middle")
    front = Server("front")
    front.mount(middle)
    with pytest.raises(ValueError, match="front cannot be mounted in middle"):
        middle.mount(front)
    with pytest.raises(ValueError, match="front cannot be mounted in front"):
        front.mount(front)


def test_two_tools_of_one_name_are_an_error_that_names_both_sources() -> None:
    front = Server("front")
    front.mount(kitchen())
    with pytest.raises(ValueError, match=r"'order' of bar: kitchen has one of this name"):
        front.mount(bar())
    assert [tool.key for tool in front.tools] == ["order", "close_all", "look"]
    assert [mount.source.name for mount in front.mounts] == ["kitchen"]


async def test_a_name_that_arrives_later_and_is_taken_is_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    front = Server("front")
    front.mount(kitchen(), without=["menu://*", "dish://*"])
    mount = front.mount(Client(bar()))
    async with Client(front) as client:
        assert (await client.call_tool("order", {"dish": "soup"})).text == "1 soup"
        assert (await client.read_resource("menu://today")).contents[0].text == "wine"
    (words,) = mount.left_out
    assert "'order' of bar" in words
    assert "kitchen has one of this name" in words
    assert words in caplog.text


async def test_a_name_becomes_free_when_the_other_source_gives_it_up() -> None:
    back = kitchen()
    front = Server("front")
    front.mount(back, without=["menu://*", "dish://*"])
    front.mount(Client(bar()))
    async with Client(front) as client:
        assert (await client.call_tool("order", {"dish": "soup"})).text == "1 soup"
        back.remove_tool("order")
        assert (await client.call_tool("order", {"drink": "tea"})).text == "a glass of tea"


# -- URIs ------------------------------------------------------------------------------------------


async def test_a_uri_that_two_sources_have_gets_the_prefix_of_the_later_one(
    source_of: Any,
) -> None:
    front = Server("front")
    front.mount(bar(), prefix="bar")
    front.mount(source_of(kitchen()), prefix="k")
    async with Client(front) as client:
        uris = [resource.uri for resource in await client.list_resources()]
        assert uris == ["menu://today", "menu://k/today"]
        assert (await client.read_resource("menu://today")).contents[0].text == "wine"
        read = (await client.read_resource("menu://k/today")).contents[0]
        assert (read.uri, read.text) == ("menu://k/today", "soup")
        templates = [t.uri_template for t in await client.list_resource_templates()]
        assert templates == ["dish://{name}", "dish://k/{name}"]
        read = (await client.read_resource("dish://k/pea")).contents[0]
        assert (read.uri, read.text) == ("dish://k/pea", "a pea")
        link, embedded = (await client.call_tool("k__look")).content
        assert isinstance(link, ResourceLink)
        assert isinstance(embedded, EmbeddedResource)
        assert (link.uri, embedded.resource.uri) == ("menu://k/today", "menu://k/today")


async def test_the_page_of_an_app_moves_with_its_resource(tmp_path: Any) -> None:
    page = tmp_path / "page.html"
    page.write_text("<!doctype html><title>x</title>", encoding="utf-8")

    def with_app() -> Server:
        server = Server("dashboard")

        @server.tool
        async def show() -> str:
            """Show."""
            return "shown"

        server.app(page, tool=show)
        return server

    front = Server("front")
    front.mount(with_app(), prefix="one")
    front.mount(with_app(), prefix="two")
    async with Client(front) as client:
        tools = {tool.name: (tool.meta or {})["ui"] for tool in await client.list_tools()}
        assert tools["one__show"]["resourceUri"] == "ui://dashboard/page"
        assert tools["two__show"]["resourceUri"] == "ui://two/dashboard/page"
        read = await client.read_resource("ui://two/dashboard/page")
        assert "<title>x</title>" in (read.contents[0].text or "")
        assert "io.modelcontextprotocol/ui" in (client.server_capabilities.extensions or {})


async def test_a_resource_that_no_list_has_is_read_from_the_source_that_has_it() -> None:
    back = kitchen()

    @back.resource("hidden://{+path}")
    async def hidden(path: str) -> str | None:
        """A secret place."""
        return path if path == "here" else None

    front = Server("front")
    front.mount(bar(), prefix="bar")
    front.mount(Client(Unlisted(back)), prefix="k")
    async with Client(front) as client:
        assert (await client.read_resource("hidden://here")).contents[0].text == "here"
        with pytest.raises(McpError, match="Resource not found"):
            await client.read_resource("hidden://elsewhere")


def Unlisted(server: Server) -> Server:  # noqa: N802 - a server in another form
    """A server that does not list one of its templates."""

    def without_template(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> Any:
            result: Any = await handler(x)
            if x.method == "resources/templates/list":
                read = result.decode()
                left = [t for t in read.resource_templates if "hidden" not in t.uri_template]
                return type(read)(resource_templates=left)
            return result

        return handle

    server.use(without_template)
    return server


# -- selection, change -----------------------------------------------------------------------------


async def test_tools_are_selected_by_name_and_tag(source_of: Any) -> None:
    async def selected(**options: Any) -> list[str]:
        front = Server("front")
        front.mount(source_of(kitchen()), **options)
        async with Client(front) as client:
            return await names_of(client)

    assert await selected(tools="o*") == ["order"]
    assert await selected(without=["close_*", "look"]) == ["order"]
    assert await selected(with_tags="food") == ["order"]
    assert await selected(without_tags=["admin"]) == ["order", "look"]


async def test_a_tool_is_changed_on_its_way(source_of: Any) -> None:
    seen: list[str] = []

    def noting(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> Any:
            seen.append(x.params.name)
            return await handler(x)

        return handle

    front = Server("front")
    change = Transform(
        name="eat",
        title="Eat",
        description="Have something to eat.",
        annotations=ToolAnnotations(read_only_hint=True),
        tags=["meals"],
        rename={"dish": "food"},
        describe={"dish": "What you like."},
        defaults={"dish": "soup"},
        fix={"size": 3},
        hide=["debug"],
        around=noting,
    )
    front.mount(source_of(kitchen()), prefix="k", tools="order", change={"order": change})
    async with Client(front) as client:
        (tool,) = await client.list_tools()
        assert (tool.name, tool.title, tool.description) == (
            "k__eat",
            "Eat",
            "Have something to eat.",
        )
        assert tool.annotations == ToolAnnotations(read_only_hint=True)
        assert (tool.meta or {})["interlock/tags"] == ["meals"]
        properties = tool.input_schema["properties"]
        assert list(properties) == ["food"]
        assert properties["food"]["description"] == "What you like."
        assert properties["food"]["default"] == "soup"
        assert "required" not in tool.input_schema
        assert (await client.call_tool("k__eat", {"food": "pea"})).text == "3 pea"
        assert (await client.call_tool("k__eat")).text == "3 soup"
        for hidden in ("size", "debug", "dish"):
            refused = await client.call_tool("k__eat", {hidden: 1})
            assert refused.is_error
            assert f"$.{hidden}: not an argument of this tool" in refused.text
    assert seen == ["order", "order"]


@pytest.mark.parametrize(
    "change, words",
    [
        (Transform(hide=["dish"]), "'dish' is required, so it cannot be hidden"),
        (Transform(fix={"sise": 1}), "fix= names 'sise'; its arguments are: dish, size, debug"),
        (Transform(rename={"dish": "size"}), "two arguments would have the name 'size'"),
        (Transform(hide="debug"), "hide= is a list of names"),
    ],
)
def test_a_change_that_does_not_fit_is_an_error(change: Transform, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Server("front").mount(kitchen(), change={"order": change})


def test_a_change_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="change= names 'ordr', which is not a feature of kitchen"):
        Server("front").mount(kitchen(), change={"ordr": Transform(name="x")})
    with pytest.raises(ValueError, match="only tools have arguments"):
        Server("front").mount(kitchen(), change={"greeting": Transform(hide=["name"])})


async def test_features_are_disabled_and_enabled_while_the_server_runs() -> None:
    front = Server("front")
    front.mount(kitchen(), prefix="k")

    @front.tool(tags=["admin"])
    async def stop() -> str:
        """Stop."""
        return "stopped"

    async with Client(front) as client, client.watch(tools=True) as changes:
        front.disable("k__look", tags="admin")
        assert await names_of(client) == ["k__order"]
        await asyncio.wait_for(anext(changes), SECONDS)
        with pytest.raises(McpError, match="Unknown tool: stop"):
            await client.call_tool("stop")
        with pytest.raises(ValueError, match="there is a tool 'stop' already"):
            front.add_tool(stop)
        front.enable(tags=["admin"])
        assert sorted(await names_of(client)) == ["k__close_all", "k__order", "stop"]
        assert (await client.call_tool("stop")).text == "stopped"


# -- versions --------------------------------------------------------------------------------------


def versioned(name: str, version: str) -> Server:
    """A server with a tool `order` of a version, and one without a version."""
    server = Server(name)

    @server.tool(version=version)
    async def order() -> str:
        return version

    server.add_tool(lambda: "help", name=f"help_{name}")
    return server


async def test_the_highest_version_of_a_name_is_offered() -> None:
    """In any order of the mounts; the next one follows when a source gives it up."""
    front = Server("front")
    old = versioned("old", "1.9")
    mounts = [
        front.mount(one) for one in (old, versioned("new", "1.10"), versioned("mid", "1.9.5"))
    ]
    assert [mount.outdated for mount in mounts] == [["order"], [], ["order"]]
    assert [mount.left_out for mount in mounts] == [[], [], []]
    async with Client(front) as client:
        assert sorted(await names_of(client)) == ["help_mid", "help_new", "help_old", "order"]
        listed = {tool.name: tool for tool in await client.list_tools()}
        assert listed["order"].meta == {"interlock/version": "1.10"}
        assert (await client.call_tool("order")).text == "1.10"
        await front.unmount(mounts[1])
        assert (await client.call_tool("order")).text == "1.9.5"
        old.add_tool(lambda: "2", name="order", version="2", replace=True)
        assert (await client.call_tool("order")).text == "2"
        old.remove_tool("order")
        assert (await client.call_tool("order")).text == "1.9.5"


async def test_a_mount_chooses_versions(source_of: Any) -> None:
    """By comparisons; a feature without a version is included. `Transform` sets another."""
    front = Server("front")
    source = source_of(versioned("api", "2.1"))
    front.mount(source, versions=">=2, <3", change={"order": Transform(version="7")})
    front.mount(versioned("none", "3.0"), prefix="n", versions=">3")
    front.mount(versioned("same", "3.0"), prefix="s", versions="3")
    async with Client(front) as client:
        listed = {tool.name: tool for tool in await client.list_tools()}
        assert sorted(listed) == ["help_api", "n__help_none", "order", "s__help_same", "s__order"]
        assert listed["order"].meta == {"interlock/version": "7"}


def test_equal_versions_and_a_missing_one_are_still_an_error() -> None:
    """Nothing says which of the two is wanted."""
    front = Server("front")
    front.mount(versioned("one", "1"))
    with pytest.raises(ValueError, match="one has one of this name already"):
        front.mount(versioned("two", "1.0"))
    plain = Server("plain")
    plain.add_tool(lambda: "x", name="order")
    with pytest.raises(ValueError, match="one has one of this name already"):
        front.mount(plain)


@pytest.mark.parametrize("versions", ["", ">=", "=>2", "two", ">=1.2.3.4.5"])
def test_a_malformed_comparison_of_versions(versions: str) -> None:
    with pytest.raises(ValueError, match="version"):
        Server("front").mount(kitchen(), versions=versions)


def test_a_malformed_version() -> None:
    with pytest.raises(ValueError, match="'1.x' is no version"):
        Server("s").add_tool(lambda: "x", name="x", version="1.x")


# -- instructions ----------------------------------------------------------------------------------


async def test_the_instructions_of_sources_follow_those_of_the_server() -> None:
    """Labelled, through mounts of mounts; a mount can replace them or leave them out."""
    bar = Server("bar", instructions="Only in the evening.")
    back = Server("kitchen", instructions="Order before noon.\u200b")
    front = Server("front", instructions="Be polite.")
    front.mount(Client(back), prefix="k")
    other = Server("other")
    other.mount(back, prefix="k")
    back.mount(bar)
    front.mount(Server("quiet", instructions="Never."), instructions=False)
    front.mount(Server("loud", instructions="Shout."), instructions="Whisper.")
    gone = front.mount(Server("gone", instructions="Gone."))
    await front.unmount(gone)
    async with Client(front) as client:
        assert client.instructions == (
            "Be polite.\n\n"
            "Instructions of kitchen, whose tools begin with k__:\nOrder before noon.\n\n"
            "Instructions of bar:\nOnly in the evening.\n\n"
            "Instructions of loud:\nWhisper."
        )
    async with Client(other) as client:
        assert "Instructions of bar:\nOnly in the evening." in (client.instructions or "")


async def test_instructions_of_sources_are_limited() -> None:
    """A source can neither fill the prompt nor tell callers of what they do not see."""
    front = Server("front")
    front.mount(Server("hidden", instructions="A secret."), visible=(subject, lambda *_: False))
    for number in range(9):
        front.mount(Server(f"s{number}", instructions="x" * 50_000))
    async with Client(front) as client:
        told = client.instructions or ""
    assert len(told) < 11_000
    assert told.startswith("Instructions of s0:\nxxx")
    assert told.endswith("(Instructions of further sources were left out.)")
    assert "secret" not in told
    async with Client({"a": Server("one", instructions="First."), "b": kitchen()}) as client:
        assert client.instructions == "Instructions of one, whose tools begin with a__:\nFirst."


# -- visibility ------------------------------------------------------------------------------------


def subject(caller: Caller) -> str:
    return caller.principal.subject if caller.principal else ""


async def listed_for(front: Server, name: str) -> list[str]:
    async with Client(front.transport(principal=Principal(subject=name))) as client:
        return await names_of(client)


async def test_a_mount_is_visible_per_caller() -> None:
    front = Server("front")
    back = kitchen()

    def sees(key: str, feature: Feature) -> bool:
        return "admin" not in feature.tags or key == "root"

    front.mount(back, prefix="k", visible=(subject, sees))
    assert await listed_for(front, "root") == ["k__order", "k__close_all", "k__look"]
    assert await listed_for(front, "ada") == ["k__order", "k__look"]
    async with Client(front.transport(principal=Principal(subject="ada"))) as client:
        with pytest.raises(McpError, match="Unknown tool: k__close_all"):
            await client.call_tool("k__close_all")


async def test_hooks_of_a_server_and_of_its_source_both_decide() -> None:
    back = kitchen()

    @back.visible(subject)
    def inner(key: str, feature: Feature) -> bool:
        return feature.name != "look" or key == "root"

    front = Server("front")
    front.mount(back, prefix="k")

    @front.visible(subject)
    def outer(key: str, feature: Feature) -> bool:
        return feature.name != "k__order" or key == "ada"

    assert await listed_for(front, "root") == ["k__close_all", "k__look"]
    assert await listed_for(front, "ada") == ["k__order", "k__close_all"]


async def test_scopes_of_a_source_hold_at_the_front() -> None:
    back = Server("back")

    @back.tool(scopes="pay")
    async def pay() -> str:
        """Pay."""
        return "paid"

    front = Server("front")
    front.mount(back)
    assert front.scopes == {"pay"}
    assert await listed_for(front, "ada") == []


# -- changes at run time ---------------------------------------------------------------------------


async def test_what_a_source_adds_and_removes_appears_at_once(source_of: Any) -> None:
    back = kitchen()
    front = Server("front")
    front.mount(source_of(back), prefix="k")
    async with Client(front) as client, client.watch(tools=True, resources=True) as changes:
        back.add_tool(lambda: "new", name="grown")
        assert (await asyncio.wait_for(anext(changes), SECONDS)).kind == "tools"
        assert "k__grown" in await names_of(client)
        back.remove_tool("grown")
        assert (await asyncio.wait_for(anext(changes), SECONDS)).kind == "tools"
        assert "k__grown" not in await names_of(client)
        back.add_resource("new://one", "new")
        assert (await asyncio.wait_for(anext(changes), SECONDS)).kind == "resources"
        assert (await client.read_resource("new://one")).contents[0].text == "new"


async def test_the_lists_of_a_front_stay_bytes_until_they_change() -> None:
    """They are not encoded again for each caller."""
    back = kitchen()
    middle = Server("middle")
    middle.mount(back)
    front = Server("front")
    front.mount(middle, prefix="k")
    caller = Caller("2026-07-28", ClientCapabilities())
    first = front.catalogue.page("tools", None, caller)
    assert b"k__order" in first
    assert front.catalogue.page("tools", None, caller) is first
    back.remove_tool("order")
    async with Client(front) as client:
        assert "k__order" not in await names_of(client)
    assert front.catalogue.page("tools", None, caller) is not first


async def test_a_list_is_current_in_the_same_turn_through_two_mounts() -> None:
    back = Server("back")
    middle = Server("middle")
    middle.mount(back)
    front = Server("front")
    front.mount(middle)
    back.add_tool(lambda: "early", name="early")
    async with Client(front) as client:
        assert await names_of(client) == ["early"]
        back.add_tool(lambda: "late", name="late")
        assert await names_of(client) == ["early", "late"]
        assert (await client.call_tool("late")).text == "late"


async def test_a_subscription_reaches_the_source_and_ends_there(source_of: Any) -> None:
    back = kitchen()
    front = Server("front")
    front.mount(bar(), prefix="bar")
    front.mount(source_of(back), prefix="k")
    async with Client(front) as client:
        async with client.watch(resources=["menu://k/today", "menu://nowhere"]) as changes:
            assert changes.honoured.resource_subscriptions == ["menu://k/today"]
            back.updated("menu://today")
            change = await asyncio.wait_for(anext(changes), SECONDS)
            assert (change.kind, change.uri) == ("resource", "menu://k/today")
            watching = [one for one in back.listeners if one._uris]
            assert len(watching) == 1
        await eventually(lambda: not [one for one in back.listeners if one._uris])


async def test_many_listeners_share_one_subscription_of_a_client() -> None:
    back = kitchen()
    front = Server("front")
    front.mount(Client(back))
    async with Client(front) as one, Client(front) as other:
        watch_one = one.watch(resources="menu://today")
        watch_other = other.watch(resources="menu://today")
        async with watch_one as first, watch_other as second:
            assert len([listener for listener in back.listeners if listener._uris]) == 1
            back.updated("menu://today")
            for changes in (first, second):
                assert (await asyncio.wait_for(anext(changes), SECONDS)).uri == "menu://today"


async def test_unmounting_removes_the_features_and_closes_the_source() -> None:
    back = kitchen()
    opened: list[str] = []

    @asynccontextmanager
    async def life(server: Server) -> AsyncIterator[str]:
        opened.append("open")
        yield "state"
        opened.append("closed")

    other = Server("other", lifespan=life)

    @other.tool
    async def state(ctx: Context) -> str:
        """Return the state of the lifespan."""
        return str(ctx.lifespan_state)

    front = Server("front")
    front.mount(back, prefix="k")
    mount = front.mount(other)
    async with Client(front) as client:
        assert (await client.call_tool("state")).text == "state"
        await front.unmount(mount)
        assert opened == ["open", "closed"]
        assert "state" not in await names_of(client)
        later = front.mount(other, prefix="again")
        assert (await client.call_tool("again__state")).text in ("state", "None")
        assert later in front.mounts
    assert opened[-1] == "closed"


# -- skills, tasks ---------------------------------------------------------------------------------

SKILL = "---\nname: refunds\ndescription: How to refund.\n---\n\nSay sorry.\n"


def with_skill(name: str) -> Server:
    server = Server(name)
    server.add_skill("refunds", {"SKILL.md": SKILL, "letter.txt": name})
    return server


async def test_skills_come_through_a_mount(source_of: Any) -> None:
    front = Server("front")
    front.mount(source_of(with_skill("one")), prefix="one")
    front.mount(source_of(with_skill("two")), prefix="two")
    async with Client(front) as client:
        skills = await client.list_skills()
        uris = [skill.uri for skill in skills]
        assert uris == ["skill://refunds/SKILL.md", "skill://two/refunds/SKILL.md"]
        assert [await skill.read("letter.txt") for skill in skills] == ["one", "two"]
        files = await client.read_directory("skill://two/refunds")
        assert [file.uri for file in files] == [
            "skill://two/refunds/SKILL.md",
            "skill://two/refunds/letter.txt",
        ]
        skill = await client.skill("skill://two/refunds/SKILL.md")
        assert "Say sorry." in await skill.read()


def with_task() -> Server:
    server = Server("worker", extensions=[Tasks()])

    @server.tool(task="required")
    async def bake(ctx: Context) -> str:
        """Bake."""
        ok = await ctx.confirm("Bake?")
        return f"baked: {ok}"

    return server


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_task_of_a_source_is_a_task_of_the_front(source_of: Any, revision: str) -> None:
    front = Server("front", extensions=[Tasks()])
    front.mount(source_of(with_task()), prefix="w")
    async with Client(
        front, revision=revision, elicit=lambda question: {"confirm": True}
    ) as client:
        started = await client.start_tool("w__bake")
        assert (await started.result()).text == "baked: True"
        assert (await client.call_tool("w__bake")).text == "baked: True"


async def test_a_front_without_tasks_waits(source_of: Any) -> None:
    front = Server("front")
    front.mount(source_of(with_task()))
    async with Client(front, elicit=lambda question: {"confirm": True}) as client:
        assert (await client.call_tool("bake")).text == "baked: True"


# -- sources that fail, sources of one's own -------------------------------------------------------


async def test_a_source_that_is_down_does_not_stop_the_server(tmp_path: Any) -> None:
    front = Server("front")
    front.mount(kitchen(), prefix="k")
    down = front.mount(f"unix://{tmp_path}/nobody.sock", prefix="down")
    async with Client(front) as client:
        assert (await client.call_tool("k__order", {"dish": "soup"})).text == "1 soup"
        assert not any(name.startswith("down") for name in await names_of(client))
    assert down.source.problem is not None


class Clocks:
    """A source of an author's own."""

    name = "clocks"

    def __init__(self) -> None:
        self.offered = Offered(tools=[tool("paris")])
        self.is_open = False
        self._changed: list[Any] = []

    async def open(self) -> None:
        self.is_open = True

    async def aclose(self) -> None:
        self.is_open = False

    def listen(self, changed: Any) -> Any:
        self._changed.append(changed)
        return lambda: self._changed.remove(changed)

    def add(self, name: str) -> None:
        self.offered = Offered(tools=[*self.offered.tools, tool(name)])
        for changed in self._changed:
            changed()

    async def handle(self, x: Exchange, /) -> Any:
        if x.method == "tools/call":
            return CallToolResult(content=[TextContent(f"noon in {x.params.name}")])
        raise McpError(-32601, "Method not found")


def tool(name: str) -> Tool:
    return Tool(name=name, input_schema={"type": "object"})


async def test_a_source_of_an_author() -> None:
    source = Clocks()
    front = Server("front")
    front.mount(source, prefix="clock")
    async with Client(front) as client:
        assert source.is_open
        source.add("oslo")
        assert await names_of(client) == ["clock__paris", "clock__oslo"]
        assert (await client.call_tool("clock__oslo")).text == "noon in oslo"
    assert not source.is_open


async def test_a_source_that_cannot_open_stops_the_server() -> None:
    class Broken(Clocks):
        async def open(self) -> None:
            raise Unreachable("the disk is gone")

    front = Server("front")
    good = Clocks()
    front.mount(good)
    front.mount(Broken(), prefix="b")
    with pytest.raises(Unreachable, match="the disk is gone"):
        await Client(front).open()
    assert not good.is_open


# -- one client of several targets -----------------------------------------------------------------


async def test_one_client_of_several_servers(tmp_path: Any) -> None:
    targets = {
        "kitchen": kitchen(),
        "bar": bar(),
        "down": f"unix://{tmp_path}/nobody.sock",
    }
    async with Client(targets, elicit=lambda question: {"confirm": True}) as client:
        assert {"kitchen__order", "bar__order"} <= set(await names_of(client))
        assert (await client.call_tool("bar__order", {"drink": "tea"})).text == "a glass of tea"
        assert (await client.read_resource("menu://bar/today")).contents[0].text == "wine"
        assert list(client.unreachable) == ["down"]


async def test_the_targets_of_a_client_are_opened_at_the_same_time() -> None:
    """Each waits until the other has begun."""
    both = asyncio.Barrier(2)

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        await both.wait()
        yield

    targets = {name: Server(name, lifespan=lifespan) for name in ("a", "b")}
    async with asyncio.timeout(SECONDS), Client(targets) as client:
        assert client.unreachable == {}


async def test_a_configuration_with_several_servers() -> None:
    entry = {"command": "/nowhere/server", "args": ["--token", "secret"]}
    client = Client(
        {"mcpServers": {"a": entry, "b": {"url": "http://user:pw@127.0.0.1:1/mcp?k=1"}}}
    )
    async with client:
        assert await client.list_tools() == []
    labels = [mount.source.name for mount in client._many.mounts]
    assert labels == ["server", "http://127.0.0.1:1/mcp"]


# -- middleware and state --------------------------------------------------------------------------


async def test_a_mounted_server_keeps_its_middleware_and_its_caller() -> None:
    seen: list[tuple[str, str]] = []

    def noting(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> Any:
            if x.method == "tools/call":
                seen.append((x.params.name, subject(x.caller)))
            return await handler(x)

        return handle

    back = kitchen()
    back.use(noting)
    front = Server("front")
    front.mount(back, prefix="k")
    async with Client(front.transport(principal=Principal(subject="ada"))) as client:
        await client.call_tool("k__order", {"dish": "soup"})
    assert seen == [("order", "ada")]


async def test_a_client_that_is_mounted_gets_no_principal() -> None:
    seen: list[Principal | None] = []

    def noting(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> Any:
            seen.append(x.caller.principal)
            return await handler(x)

        return handle

    back = kitchen()
    back.use(noting)
    front = Server("front")
    front.mount(Client(back), prefix="k")
    async with Client(front.transport(principal=Principal(subject="ada"))) as client:
        await client.call_tool("k__order", {"dish": "soup"})
    assert set(seen) == {None}


async def test_a_server_without_mounts_has_none_of_the_handlers() -> None:
    plain = Server("plain")
    assert plain.mounts == ()
    assert plain.handlers.method("tools/call") == plain.handlers.call_tool
    with pytest.raises(ValueError, match="not mounted in plain"):
        await plain.unmount(Server("other").mount(kitchen()))


# -- a server behind that comes and goes -----------------------------------------------------------


async def test_a_source_appears_when_its_server_does_and_heals_after_a_restart() -> None:
    port = free_port()
    again = asyncio.Event()
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await again.wait()
        again.clear()

    back = kitchen()
    source = ClientSource(Client(f"http://127.0.0.1:{port}/mcp"), sleep=sleep)
    front = Server("front")
    front.mount(source, prefix="k")
    async with Client(front) as client, client.watch(tools=True) as changes:
        assert await names_of(client) == []
        assert source.problem is not None
        async with back.serve_http(port=port, grace=0.1):
            again.set()
            assert (await asyncio.wait_for(anext(changes), SECONDS)).kind == "tools"
            assert (await client.call_tool("k__order", {"dish": "pea"})).text == "1 pea"
            assert source.problem is None
        await eventually(lambda: len(pauses) == 2)
        with pytest.raises(McpError, match="cannot be reached"):
            await client.call_tool("k__order", {"dish": "pea"})
        assert "k__order" in await names_of(client)  # its last list stays
        back.add_tool(lambda: "new", name="grown")
        async with back.serve_http(port=port, grace=0.1):
            again.set()
            assert (await asyncio.wait_for(anext(changes), SECONDS)).kind == "tools"
            assert (await client.call_tool("k__grown")).text == "new"
    assert set(pauses) == {1.0}  # a server that has answered is tried again soon


def test_a_client_belongs_to_one_mount() -> None:
    client = Client(kitchen())
    Server("one").mount(client)
    with pytest.raises(ValueError, match="the client of kitchen is mounted already"):
        Server("two").mount(client)


async def test_a_watched_resource_is_watched_again_after_a_restart() -> None:
    port = free_port()

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(0.01)

    front = Server("front")
    front.mount(ClientSource(Client(f"http://127.0.0.1:{port}/mcp"), sleep=sleep))
    back = kitchen()
    async with AsyncExitStack() as both:
        async with back.serve_http(port=port, grace=0.1):
            client = await both.enter_async_context(Client(front))
            changes = await both.enter_async_context(client.watch(resources="menu://today"))
            assert changes.honoured.resource_subscriptions == ["menu://today"]
            back.updated("menu://today")
            assert (await asyncio.wait_for(anext(changes), SECONDS)).uri == "menu://today"
        async with back.serve_http(port=port, grace=0.1):
            # it may have changed meanwhile
            assert (await asyncio.wait_for(anext(changes), SECONDS)).uri == "menu://today"
            await eventually(lambda: any(one._uris for one in back.listeners))
            back.updated("menu://today")
            assert (await asyncio.wait_for(anext(changes), SECONDS)).uri == "menu://today"


@pytest.mark.parametrize("uri", ["menu://today", "file:///a/b", "urn:isbn:1", "ui://x/y/z.html"])
def test_a_prefix_of_a_uri_can_be_taken_away_again(uri: str) -> None:
    moved = with_prefix(uri, "crm")
    assert moved != uri
    assert without_prefix(moved, "crm") == uri
    assert without_prefix(uri, "crm") is None
    assert without_prefix(moved, "cr") is None


async def test_a_fixed_argument_that_a_header_would_repeat() -> None:
    back = Server("back")

    @back.tool(
        input_schema={
            "type": "object",
            "properties": {
                "region": {"type": "string", "x-mcp-header": "Region"},
                "zone": {"type": "string", "x-mcp-header": "Zone"},
            },
        }
    )
    async def where(arguments: dict[str, Any]) -> str:
        """Say where."""
        return f"{arguments['region']} {arguments['zone']}"

    front = Server("front")
    change = Transform(fix={"region": "north"}, rename={"zone": "part"})
    front.mount(back, change={"where": change})
    async with front.serve_http(port=0) as http, Client(http.url) as client:
        (listed,) = await client.list_tools()
        assert listed.input_schema["properties"]["part"]["x-mcp-header"] == "Zone"
        assert (await client.call_tool("where", {"part": "a"})).text == "north a"


class LateBus(MemoryBus):
    """A bus that delivers changes later, as one that other workers share."""

    def publish(self, change: Change) -> None:
        asyncio.get_running_loop().call_soon(super().publish, change)


async def test_the_removal_of_a_hidden_feature_is_announced_to_nobody_else() -> None:
    back = kitchen()
    front = Server("front")
    front.bus = LateBus()
    front.mount(back, visible=(subject, lambda key, feature: key == "root"))
    front.add_tool(lambda: "own", name="own")
    front.add_resource("own://zero", "zero")

    async with (
        Client(front.transport(principal=Principal(subject="ada"))) as ada,
        Client(front.transport(principal=Principal(subject="root"))) as root,
        ada.watch(tools=True, resources=True) as of_ada,
        root.watch(tools=True) as of_root,
    ):
        back.remove_tool("look")
        assert (await asyncio.wait_for(anext(of_root), SECONDS)).kind == "tools"
        front.add_resource("own://one", "one")
        # the first change that ada hears of
        assert (await asyncio.wait_for(anext(of_ada), SECONDS)).kind == "resources"


async def test_development_mode_explains_the_errors_of_mounted_servers() -> None:
    back = Server("back")

    @back.tool
    async def fail() -> str:
        """Fail."""
        raise KeyError("the reason")

    front = Server("front")
    front.mount(back, prefix="early")
    front.dev = True
    front.mount(back, prefix="late")
    async with Client(front) as client:
        for name in ("early__fail", "late__fail"):
            assert "the reason" in (await client.call_tool(name)).text
