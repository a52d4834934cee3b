"""Interlock's client uses the catalogue of third-party servers over stdio and HTTP: the official
SDKs of Python and TypeScript, and FastMCP."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from interlock import Answers, Client, ClientSettings, Http, McpError, Stdio, types
from tests.interop import catalogue
from tests.interop.driver import command_of, on_the_web
from tests.ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.asyncio(loop_scope="module")]

R1, R2, R3, R4, R5 = REVISIONS = (
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
)
PIXEL = base64.b64encode(catalogue.PIXEL).decode()


@dataclass(frozen=True)
class Maker:
    """The maker of a server, the newest revision that it speaks, and its differences from the
    others.

    `unfiltered`: sends log messages of every level in the handshake era, whatever level was
    requested. `unwatched`: has no subscriptions. `unlisted`: does not declare list changes in the
    handshake era. `lenient`: answers an unknown tool with a failed result; `codes` are the error
    codes of an unavailable prompt.
    """

    name: str
    newest: str = R5
    unfiltered: bool = False
    unwatched: bool = False
    unlisted: bool = False
    lenient: bool = False
    codes: tuple[int, ...] = (-32602,)


MAKERS = [
    Maker("interlock"),
    Maker("python-2", unfiltered=True, unlisted=True, lenient=True, codes=(0, -32603)),
    Maker("python-1", R4, unfiltered=True, unlisted=True, lenient=True, codes=(0,)),
    Maker("fastmcp", unwatched=True, lenient=True, codes=(-32602, -32603)),
    Maker("typescript-2"),
    Maker("typescript-1", R4, lenient=True),
]
TALKS = [
    (maker, revision, "stdio")
    for maker in MAKERS
    for revision in (None, *REVISIONS[: REVISIONS.index(maker.newest)])
]
WEB = {
    "python-2": (None, R4, R2),
    "python-1": (None, R3),
    "fastmcp": (None, R4),
    "typescript-2": (None, R4, R3),
    "typescript-1": (None, R2),
}
TALKS += [
    (maker, revision, "streamable-http") for maker in MAKERS for revision in WEB.get(maker.name, ())
]
TALKS += [(maker, None, "sse") for maker in MAKERS if maker.name in ("python-1", "typescript-1")]


@dataclass
class Talk:
    """An open client, with the questions and messages that it received, and its answers."""

    maker: Maker
    client: Client
    forms: list[types.ElicitRequestParams] = field(default_factory=list)
    samplings: list[types.CreateMessageRequestParams] = field(default_factory=list)
    logged: list[tuple[str, Any]] = field(default_factory=list)
    reply: Any = None
    stirred: asyncio.Event = field(default_factory=asyncio.Event)

    def elicit(self, params: types.ElicitRequestParams) -> Any:
        self.forms.append(params)
        return self.reply

    def sample(self, params: types.CreateMessageRequestParams) -> str:
        self.samplings.append(params)
        return "Paris"

    def log(self, message: types.LoggingMessageNotificationParams) -> None:
        data = (
            message.data["msg"] if isinstance(message.data, dict) else message.data
        )  # FastMCP wraps its log messages
        self.logged.append((message.level, data))
        self.stirred.set()

    async def has_logged(self, words: str) -> None:
        """Wait for a message: some servers send it over the session's own stream, which may be
        slower than the answer."""
        async with asyncio.timeout(30):
            while not any(said == words for _, said in self.logged):
                self.stirred.clear()
                await self.stirred.wait()

    async def text(self, tool: str, **arguments: Any) -> str:
        """The text of a tool's result; the tool must not fail."""
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.text
        return result.text

    async def failure(self, tool: str, arguments: dict[str, Any] | None = None) -> int | None:
        """The error code of a failed call, or None for a result with isError; any other outcome
        fails the test."""
        try:
            result = await self.client.call_tool(tool, arguments)
        except McpError as bad:
            return bad.code
        assert result.is_error
        return None


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="module",
    params=TALKS,
    ids=lambda p: f"{p[0].name} {p[1] or 'auto'} {p[2]}",
)
async def talk(
    request: pytest.FixtureRequest, installed: Callable[[str], Path]
) -> AsyncIterator[Talk]:
    """One conversation with one maker's server, in a given revision, or in the negotiated one."""
    maker, revision, road = request.param
    talk = Talk(maker, None)  # type: ignore[arg-type]  # the client is made with the talk's own methods, so it comes second
    command = (
        [sys.executable, catalogue.__file__]
        if maker.name == "interlock"
        else command_of("server", maker.name, installed)
    )
    port = free_port()
    target = (
        Stdio(command)
        if road == "stdio"
        else Http(f"http://127.0.0.1:{port}/{'sse' if road == 'sse' else 'mcp'}")
    )
    # A server of both eras that starts slowly would be used in the older one.
    patience = 30.0 if maker.newest == "2026-07-28" else None
    talk.client = Client(
        target,
        revision=revision,
        answers=Answers(elicit=talk.elicit, sample=talk.sample, roots=["file:///srv/data"]),
        on_log=talk.log,
        log_level="debug",
        timeout=30,
        settings=ClientSettings(probe_timeout=patience),
    )
    async with contextlib.AsyncExitStack() as stack:
        if road != "stdio":
            await stack.enter_async_context(on_the_web([*command, road, str(port)], port))
        await stack.enter_async_context(talk.client)
        assert talk.client.revision == (revision or maker.newest)
        yield talk


async def test_what_it_says_of_itself(talk: Talk) -> None:
    """Name, version, instructions and capabilities arrive in both eras."""
    assert talk.client.server_info is not None
    assert (talk.client.server_info.name, talk.client.server_info.version) == ("catalogue", "1.2.3")
    assert talk.client.instructions == "Try everything."
    can = talk.client.server_capabilities
    assert None not in (can.tools, can.prompts, can.resources, can.logging)


async def test_the_list_of_tools(talk: Talk) -> None:
    """Each tool with its description and schema (`TOL-02`)."""
    tools = {tool.name: tool for tool in await talk.client.list_tools()}
    expected = {tool.key for tool in catalogue.server.tools.all()} - (
        {"touch"} if talk.maker.unwatched else set()
    )
    assert tools.keys() - {"extra"} == expected
    assert tools["add"].description == "Add two integers."
    assert [(name, p["type"]) for name, p in tools["add"].input_schema["properties"].items()] == [
        ("a", "integer"),
        ("b", "integer"),
    ]
    assert sorted(tools["add"].input_schema["required"]) == ["a", "b"]


async def test_structured_results(talk: Talk) -> None:
    """Structured content matches the schema of its tool (`TOL-09`, `TOL-10`); without it the text
    has the same data."""
    await talk.client.list_tools()
    added = await talk.client.call_tool("add", {"a": 1, "b": 2})
    assert added.text == "3"
    assert added.value() in (3, "3")
    weather = await talk.client.call_tool("weather", {"city": "Oslo"})
    if talk.maker.name != "interlock" or talk.client.revision >= R3:
        assert (added.value(), weather.value()) == (3, {"city": "Oslo", "celsius": 21.5})


@pytest.mark.parametrize(
    "text",
    ["", "é ü 🎈", 'line\nline\r\n\u2028\u2029\x00\t"\\', "x" * 200_000],
    ids=["empty", "signs", "breaks", "long"],
)
async def test_text_survives(talk: Talk, text: str) -> None:
    """Any text is returned unchanged (`RPC-12`, `STD-01`)."""
    assert await talk.text("echo", text=text) == text


async def test_calls_side_by_side(talk: Talk) -> None:
    """Forty concurrent calls, each with its own answer (`RPC-05`)."""
    sums = await asyncio.gather(*(talk.text("add", a=n, b=n) for n in range(40)))
    assert sums == [str(2 * n) for n in range(40)]


async def test_content_of_each_kind(talk: Talk) -> None:
    """Images, audio, links and resources (`TOL-12`)."""
    picture, sound = (await talk.client.call_tool("media")).content
    assert isinstance(picture, types.ImageContent)
    assert (picture.data, picture.mime_type) == (PIXEL, "image/png")
    if isinstance(sound, types.TextContent):
        assert talk.client.revision == R1
    else:
        assert isinstance(sound, types.AudioContent)
        assert (base64.b64decode(sound.data), sound.mime_type) == (catalogue.WAV, "audio/wav")
    text, link, inside = (await talk.client.call_tool("links")).content
    assert text == types.TextContent("Two of them:")
    assert isinstance(link, types.ResourceLink) or talk.client.revision < R3
    assert isinstance(inside, types.EmbeddedResource)
    assert inside.resource == types.ResourceContents(
        uri="note://inside", mime_type="text/plain", text="inside"
    )


async def test_failures(talk: Talk) -> None:
    """A tool's failure is a result; the maker chooses the error for an unknown tool or invalid
    arguments, but there is always an answer (`TOL-15`)."""
    broken = await talk.client.call_tool("fail")
    assert broken.is_error
    assert "It is broken." in broken.text
    for tool, arguments in (("nowhere", {}), ("add", {"a": "one"})):
        code = await talk.failure(tool, arguments)
        assert code == -32602 or (code is None and (tool == "add" or talk.maker.lenient))


async def test_logging(talk: Talk) -> None:
    """First messages of every level, then only warnings (`LOG-03`, `LOG-06`)."""
    talk.logged.clear()
    await talk.text("chatter")
    await talk.has_logged("three")
    assert talk.logged == [("debug", "one"), ("info", "two"), ("warning", "three")]
    talk.logged.clear()
    await talk.client.set_log_level("warning")
    await talk.text("chatter")
    await talk.has_logged("three")
    await talk.client.set_log_level("debug")
    assert talk.logged[-1] == ("warning", "three")
    assert len(talk.logged) == (3 if talk.maker.unfiltered and talk.client.revision < R5 else 1)


async def test_progress(talk: Talk) -> None:
    """Each report reaches its call, in order (`PRG-02`)."""
    heard: list[tuple[float, float | None]] = []
    result = await talk.client.call_tool(
        "count", {"to": 3}, on_progress=lambda p: heard.append((p.progress, p.total))
    )
    assert result.text == "counted to 3"
    assert heard == [(1, 3), (2, 3), (3, 3)]


async def test_elicitation(talk: Talk) -> None:
    """A form: accepted, declined, dismissed; in a revision without forms, no question is asked and
    the call fails (`LIF-12`)."""
    for reply, text in (
        ({"name": "Ann", "age": 42}, "accept Ann 42"),
        (False, "decline"),
        (None, "cancel"),
    ):
        talk.reply = reply
        talk.forms.clear()
        if talk.client.revision < R3:
            await talk.failure("ask_guest")
            assert talk.forms == []
        else:
            assert await talk.text("ask_guest") == text
            (asked,) = talk.forms
            assert asked.message == "Who are you?"
            fields = (asked.requested_schema or {})["properties"]
            assert {name: what["type"] for name, what in fields.items()} == {
                "name": "string",
                "age": "integer",
            }


async def test_elicitation_by_url(talk: Talk) -> None:
    """A page to visit, in the revisions that support it (`ELI-17`, `ERR-18`)."""
    talk.reply = True
    talk.forms.clear()
    if talk.client.revision < R4:
        await talk.failure("ask_visit")
        assert talk.forms == []
    else:
        assert await talk.text("ask_visit") == "visited"
        assert [(asked.mode, asked.url) for asked in talk.forms] == [
            ("url", "https://example.com/sign-in")
        ]


async def test_sampling(talk: Talk) -> None:
    """The model's answer reaches the tool (`SAM-05`)."""
    talk.samplings.clear()
    assert await talk.text("ask_model", prompt="Where?") == "Paris"
    (asked,) = talk.samplings
    assert asked.max_tokens == 50
    assert asked.messages == [
        types.SamplingMessage(role="user", content=types.TextContent("Where?"))
    ]


async def test_roots(talk: Talk) -> None:
    """The roots reach the tool (`ROO-01`)."""
    assert await talk.text("ask_roots") == "file:///srv/data"


async def test_cancellation(talk: Talk) -> None:
    """A cancelled call is cancelled in the server, and the conversation continues (`CAN-05`,
    `STD-12`)."""
    before = int(await talk.text("cancellations"))
    waiting = asyncio.Event()
    call = asyncio.create_task(talk.client.call_tool("wait", on_progress=lambda _: waiting.set()))
    await asyncio.wait_for(waiting.wait(), 30)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    async with asyncio.timeout(
        10
    ):  # the notification, or the end of the connection, may still be in transit
        while int(await talk.text("cancellations")) != before + 1:
            pass


async def test_resources(talk: Talk) -> None:
    """Listed and read, text and binary, static and by template (`RES-02`, `RES-07`, `RES-13`)."""
    listed = {resource.uri: resource.mime_type for resource in await talk.client.list_resources()}
    assert listed == {"note://board": "text/plain", "note://pixel": "image/png"}
    assert [template.uri_template for template in await talk.client.list_resource_templates()] == [
        "note://people/{name}"
    ]
    for uri, mime_type, text, blob in (
        ("note://board", "text/plain", "Nothing new.", None),
        ("note://pixel", "image/png", None, PIXEL),
        ("note://people/ada", "text/plain", "This is ada.", None),
    ):
        (contents,) = (await talk.client.read_resource(uri)).contents
        assert (contents.uri, contents.mime_type, contents.text, contents.blob) == (
            uri,
            mime_type,
            text,
            blob,
        )
    with pytest.raises(McpError):
        await talk.client.read_resource("note://none")


async def test_prompts(talk: Talk) -> None:
    """Listed and filled in, with several messages, images and resources (`PRM-02`,
    `PRM-03`)."""
    prompts = {prompt.name: prompt for prompt in await talk.client.list_prompts()}
    assert [
        (argument.name, argument.required) for argument in prompts["greet"].arguments or ()
    ] == [("name", True)]
    greeting = (await talk.client.get_prompt("greet", {"name": "Ann"})).messages
    assert [(message.role, message.content) for message in greeting] == [
        ("user", types.TextContent("Greet Ann.")),
        ("assistant", types.TextContent("Hello, Ann!")),
    ]
    picture, inside = [
        message.content for message in (await talk.client.get_prompt("picture")).messages
    ]
    assert picture == types.ImageContent(data=PIXEL, mime_type="image/png")
    assert isinstance(inside, types.EmbeddedResource)
    for name in ("greet", "nowhere"):
        with pytest.raises(McpError) as refused:
            await talk.client.get_prompt(name)
        assert refused.value.code in talk.maker.codes


async def test_completion(talk: Talk) -> None:
    """For an argument of a prompt and for a variable of a template (`CMP-02`)."""
    for of in ("greet", "note://people/{name}"):
        assert (await talk.client.complete(of, "name", "a")).values == ["ada", "alan"]


async def test_ping(talk: Talk) -> None:
    """The server answers (`PNG-01`, `PNG-04`)."""
    await talk.client.ping()


async def test_subscriptions(talk: Talk) -> None:
    """The client is notified of watched resources, and a cached list is fetched again after a
    change (`SUB-02`, `LSN-06`)."""
    resources = talk.client.server_capabilities.resources
    if talk.client.revision < R5 and not (
        resources and resources.subscribe
    ):  # an undeclared capability is not used (`LIF-12`, `SUB-01`)
        async with talk.client.watch(resources=["note://board"]) as changes:
            assert changes.honoured.resource_subscriptions is None
        return
    if talk.maker.unwatched:
        with pytest.raises(McpError) as refused:
            async with talk.client.watch(resources=["note://board"]):
                pass
        assert refused.value.code == -32601
        return
    async with talk.client.watch(tools=True, resources=["note://board"]) as changes:
        assert changes.honoured.resource_subscriptions == ["note://board"]
        assert changes.honoured.tools_list_changed is (
            None if talk.maker.unlisted and talk.client.revision < R5 else True
        )
        await talk.text("touch")
        assert (await asyncio.wait_for(anext(changes), 30)).uri == "note://board"
        await talk.text("grow")
        assert (await asyncio.wait_for(anext(changes), 30)).kind == "tools"
    assert "extra" in {tool.name for tool in await talk.client.list_tools()}
