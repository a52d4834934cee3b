"""Clients made with the official SDKs of Python and TypeScript drive an Interlock server over stdio
and HTTP.

Each feature, in every mode that these clients offer, and in every revision: the server's revisions
are limited for that.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.interop import catalogue
from tests.interop.driver import Driver, command_of, led, on_the_web
from tests.ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.asyncio(loop_scope="module")]

R1 = "2024-11-05"
R2 = "2025-03-26"
R3 = "2025-06-18"
R4 = "2025-11-25"
R5 = "2026-07-28"


@dataclass(frozen=True)
class Way:
    """One combination: the client, its mode, the revisions of the server, the expected revision,
    and the transport.

    The transports are stdio, http (Streamable HTTP) and sse (HTTP with SSE of 2024-11-05).
    """

    peer: str
    mode: str
    speaks: str
    serves: tuple[str, ...] = ()
    road: str = "stdio"

    def __str__(self) -> str:
        return f"{self.peer} {self.mode} {self.speaks} {self.road}"


WAYS = [
    Way("python-2", "auto", R5),
    Way("python-2", R5, R5),
    Way("python-2", "legacy", R4),
    *(Way("python-2", "auto", revision, (revision,)) for revision in (R4, R3, R2, R1)),
    Way("python-1", "legacy", R4),
    *(Way("python-1", "legacy", revision, (revision,)) for revision in (R3, R2, R1)),
    Way("typescript-2", "auto", R5),
    Way("typescript-2", R5, R5),
    Way("typescript-2", "legacy", R4),
    *(Way("typescript-2", "auto", revision, (revision,)) for revision in (R4, R3, R2, R1)),
    Way("typescript-1", "legacy", R4),
    *(Way("typescript-1", "legacy", revision, (revision,)) for revision in (R3, R2, R1)),
    Way("python-2", "auto", R5, road="http"),
    Way("python-2", "legacy", R4, road="http"),
    Way("python-2", "auto", R3, (R3,), road="http"),
    Way("python-1", "legacy", R4, road="http"),
    Way("python-1", "legacy", R2, (R2,), road="http"),
    Way("typescript-2", "auto", R5, road="http"),
    Way("typescript-2", "legacy", R4, road="http"),
    Way("typescript-2", "auto", R2, (R2,), road="http"),
    Way("typescript-1", "legacy", R4, road="http"),
    Way("typescript-1", "legacy", R3, (R3,), road="http"),
    Way("python-2", "legacy", R4, road="sse"),
    Way("python-1", "legacy", R1, (R1,), road="sse"),
    Way("typescript-2", "legacy", R4, road="sse"),
    Way("typescript-1", "legacy", R1, (R1,), road="sse"),
]


@dataclass
class Talk:
    """A client program that is connected to the catalogue."""

    way: Way
    client: Driver

    @property
    def stateless(self) -> bool:
        return self.way.speaks == R5

    @property
    def of_python(self) -> bool:
        return self.way.peer.startswith("python")


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=WAYS, ids=str)
async def talk(
    request: pytest.FixtureRequest, installed: Callable[[str], Path]
) -> AsyncIterator[Talk]:
    """One conversation for all tests of a combination."""
    way: Way = request.param
    async with contextlib.AsyncExitStack() as stack:
        target: dict[str, Any] = {"command": [sys.executable, catalogue.__file__, *way.serves]}
        if way.road != "stdio":
            port = free_port()
            await stack.enter_async_context(
                on_the_web([sys.executable, catalogue.__file__, str(port), *way.serves], port)
            )
            target = {
                "url": f"http://127.0.0.1:{port}/{'sse' if way.road == 'sse' else 'mcp'}",
                "road": way.road,
            }
        program = command_of("client", way.peer, installed)
        client = await stack.enter_async_context(
            led(program, mode=way.mode, log_level="info", **target)
        )
        yield Talk(way, client)


async def test_what_they_agree_on(talk: Talk) -> None:
    """The revision, and the server's description of itself (`LIF-03`, `LIF-06`, `LIF-15`)."""
    who = (await talk.client.do("who")).result
    assert who["revision"] == talk.way.speaks
    if talk.way.mode == R5 and talk.of_python:
        return  # with a pinned revision this client sends nothing before the first call
    assert who["instructions"] == "Try everything."
    assert who["server"].items() >= {"name": "catalogue", "version": "1.2.3"}.items()
    capabilities = who["capabilities"]
    assert {"tools", "resources", "prompts", "logging"} <= capabilities.keys()
    assert ("completions" in capabilities) == (talk.way.speaks >= R2)


async def test_the_list_of_tools(talk: Talk) -> None:
    """Names, descriptions and schemas, with an output schema if the revision supports it (`TOL-02`,
    `TOL-05`)."""
    tools = {tool["name"]: tool for tool in (await talk.client.do("list_tools")).result["tools"]}
    assert len(tools) == 16
    add = tools["add"]
    assert add["description"] == "Add two integers."
    assert add["inputSchema"]["properties"] == {"a": {"type": "integer"}, "b": {"type": "integer"}}
    assert add["inputSchema"]["required"] == ["a", "b"]
    assert ("outputSchema" in add) == (talk.way.speaks >= R3)


async def test_structured_results(talk: Talk) -> None:
    """Structured content if the revision supports it, and its JSON as text; the client validates it
    against the schema (`TOL-09`, `TOL-11`)."""
    added = await talk.client.call("add", {"a": 1, "b": 2})
    weather = await talk.client.call("weather", {"city": "Oslo"})
    assert (added.text, weather.text) == ("3", '{"city":"Oslo","celsius":21.5}')
    if talk.way.speaks >= R3:
        assert added.result["structuredContent"] == {"result": 3}
        assert weather.result["structuredContent"] == {"city": "Oslo", "celsius": 21.5}


@pytest.mark.parametrize(
    "text",
    ["", "é ü 🎈", 'line\nline\r\n\u2028\u2029\x00\t"\\', "x" * 200_000],
    ids=["empty", "signs", "breaks", "long"],
)
async def test_text_survives(talk: Talk, text: str) -> None:
    """Any text is returned unchanged (`RPC-12`, `STD-01`)."""
    assert (await talk.client.call("echo", {"text": text})).text == text


async def test_content_of_each_kind(talk: Talk) -> None:
    """Images, audio, links and resources; content that a revision does not support is not sent
    (`TOL-12`)."""
    picture, *sound = (await talk.client.call("media")).result["content"]
    assert picture.items() >= {"type": "image", "mimeType": "image/png"}.items()
    assert base64.b64decode(picture["data"]) == catalogue.PIXEL
    assert [block["type"] for block in sound] == (["audio"] if talk.way.speaks >= R2 else ["text"])
    text, link, inside = (await talk.client.call("links")).result["content"]
    assert text["text"] == "Two of them:"
    assert link["type"] == ("resource_link" if talk.way.speaks >= R3 else "text")
    assert "note://board" in str(link)
    assert inside["resource"] == {
        "uri": "note://inside",
        "mimeType": "text/plain",
        "text": "inside",
    }


async def test_failures(talk: Talk) -> None:
    """A tool's failure is a result, an unknown tool is an error, and invalid arguments give the
    error that the revision requires (`TOL-15`, `TOL-16`)."""
    broken = await talk.client.call("fail")
    assert (broken.result["isError"], broken.text) == (True, "It is broken.")
    unknown = await talk.client.call("nowhere")
    assert unknown.error is not None
    assert unknown.error["code"] == -32602
    wrong = await talk.client.call("add", {"a": "one"})
    if talk.way.speaks >= R4:
        assert wrong.result["isError"]
    else:
        assert wrong.error is not None
        assert wrong.error["code"] == -32602


async def test_logging(talk: Talk) -> None:
    """Messages from the requested level on: the client sets the level with each request, or once
    (`LOG-03`, `LOG-06`)."""
    if not talk.stateless:
        await talk.client.do("set_level", level="info")
    step = await talk.client.call("chatter", until=2)
    assert [(method, params["level"], params["data"]) for method, params in step.heard] == [
        ("notifications/message", "info", "two"),
        ("notifications/message", "warning", "three"),
    ]


async def test_progress(talk: Talk) -> None:
    """Each report reaches the callback of its call, in order (`PRG-02`)."""
    if talk.way.road == "sse" and not talk.of_python:
        # That SDK drops progress that it reads together with the result, and over TCP the server
        # cannot see what the client has read.
        return
    heard = 3 if talk.of_python else 0  # the other program does not record callbacks
    step = await talk.client.do(
        "call", name="count", arguments={"to": 3}, progress=True, until=heard
    )
    words = [f"at {n}" if talk.way.speaks >= R2 else None for n in (1, 2, 3)]
    assert step.result["reported"] == [[n, 3, words[n - 1]] for n in (1, 2, 3)]


async def test_elicitation(talk: Talk) -> None:
    """A form: accepted, declined, dismissed; in a revision without forms the call fails with a
    message (`LIF-17`)."""
    for answer, text in (
        ({"action": "accept", "content": {"name": "Ann", "age": 42}}, "accept Ann 42"),
        ({"action": "decline"}, "decline"),
        ({"action": "cancel"}, "cancel"),
    ):
        step = await talk.client.call("ask_guest", answers={"elicitation/create": answer})
        if talk.way.speaks < R3:
            assert step.result["isError"]
            assert step.asked == []
            continue
        assert step.text == text
        ((method, params),) = step.asked
        assert (method, params["message"]) == ("elicitation/create", "Who are you?")
        assert params["requestedSchema"]["properties"] == {
            "name": {"type": "string"},
            "age": {"type": "integer"},
        }


async def test_elicitation_by_url(talk: Talk) -> None:
    """A page to visit, from 2025-11-25 on; in older revisions no question is asked (`ELI-03`,
    `ELI-17`)."""
    step = await talk.client.call("ask_visit")
    if talk.way.speaks < R4:
        assert step.result["isError"]
        assert step.asked == []
    else:
        ((_, params),) = step.asked
        assert (params["mode"], params["url"]) == ("url", "https://example.com/sign-in")
        assert step.text == "visited"


async def test_sampling(talk: Talk) -> None:
    """The client's model is asked, and its answer reaches the tool; a refusal does too (`SAM-05`,
    `SAM-07`)."""
    step = await talk.client.call("ask_model", {"prompt": "Where?"})
    assert step.text == "Paris"
    ((_, params),) = step.asked
    assert params["maxTokens"] == 50
    assert params["messages"] == [{"role": "user", "content": {"type": "text", "text": "Where?"}}]
    refused = await talk.client.call("ask_model", {"prompt": "Where?"}, answers={})
    if talk.stateless:
        assert refused.error is not None  # there, a client that declines cancels the call itself
    else:
        assert refused.result["isError"]


async def test_roots(talk: Talk) -> None:
    """The client's roots reach the tool (`ROO-01`, `ROO-04`)."""
    assert (await talk.client.call("ask_roots")).text == "file:///srv/data"


async def test_several_questions_in_one_call(talk: Talk) -> None:
    """Two calls with questions, one after the other: each answer reaches its question."""
    for n in range(3):
        answers = {"elicitation/create": {"action": "accept", "content": {"name": "Ann", "age": n}}}
        step = await talk.client.call("ask_guest", answers=answers)
        assert (
            step.result.get("isError") if talk.way.speaks < R3 else step.text == f"accept Ann {n}"
        )


async def test_cancellation(talk: Talk) -> None:
    """A call that its caller cancels is cancelled in the server (`CAN-05`, `STD-12`)."""

    async def cancelled() -> int:
        return int((await talk.client.call("cancellations")).text)

    before = await cancelled()
    assert (await talk.client.do("call_and_cancel", name="wait")).result == "given up"
    async with asyncio.timeout(
        10
    ):  # the notification, or the end of the connection, may still be in transit
        while await cancelled() != before + 1:
            pass
    assert [await cancelled() for _ in range(5)] == [before + 1] * 5


async def test_resources(talk: Talk) -> None:
    """Listed and read, text and binary, static and by template (`RES-02`, `RES-07`, `RES-13`)."""
    resources = {r["uri"]: r for r in (await talk.client.do("list_resources")).result["resources"]}
    assert {uri: r["mimeType"] for uri, r in resources.items()} == {
        "note://board": "text/plain",
        "note://pixel": "image/png",
    }
    (template,) = (await talk.client.do("list_resource_templates")).result["resourceTemplates"]
    assert template["uriTemplate"] == "note://people/{name}"
    (board,) = (await talk.client.do("read", uri="note://board")).result["contents"]
    assert board == {"uri": "note://board", "mimeType": "text/plain", "text": "Nothing new."}
    (pixel,) = (await talk.client.do("read", uri="note://pixel")).result["contents"]
    assert base64.b64decode(pixel["blob"]) == catalogue.PIXEL
    (person,) = (await talk.client.do("read", uri="note://people/ada")).result["contents"]
    assert person == {"uri": "note://people/ada", "mimeType": "text/plain", "text": "This is ada."}
    missing = (await talk.client.do("read", uri="note://none")).error
    assert missing is not None
    new_code = (
        talk.stateless or talk.way.peer == "typescript-2"
    )  # which maps the old code to the new one
    assert (missing["code"], missing["data"]) == (
        -32602 if new_code else -32002,
        {"uri": "note://none"},
    )


async def test_prompts(talk: Talk) -> None:
    """Listed and filled in, with several messages, images and resources; rejected without a
    required argument (`PRM-02`, `PRM-03`)."""
    prompts = {p["name"]: p for p in (await talk.client.do("list_prompts")).result["prompts"]}
    assert prompts["greet"]["arguments"] == [{"name": "name", "required": True}]
    greeting = (await talk.client.do("prompt", name="greet", arguments={"name": "Ann"})).result[
        "messages"
    ]
    assert [(m["role"], m["content"]["text"]) for m in greeting] == [
        ("user", "Greet Ann."),
        ("assistant", "Hello, Ann!"),
    ]
    picture = (await talk.client.do("prompt", name="picture")).result["messages"]
    assert [m["content"]["type"] for m in picture] == ["image", "resource"]
    for name in ("greet", "nowhere"):
        refused = (await talk.client.do("prompt", name=name)).error
        assert refused is not None
        assert refused["code"] == -32602


async def test_completion(talk: Talk) -> None:
    """For an argument of a prompt and for a variable of a template (`CMP-02`)."""
    for of in ({"prompt": "greet"}, {"template": "note://people/{name}"}):
        step = await talk.client.do("complete", argument="name", value="a", **of)
        assert step.result["completion"]["values"] == ["ada", "alan"]


async def test_ping(talk: Talk) -> None:
    """Answered in the handshake era; removed in the stateless era (`PNG-01`,
    `PNG-04`)."""
    step = await talk.client.do("ping")
    if talk.stateless:
        assert step.error is not None
    else:
        assert step.result == {}


async def test_subscriptions(talk: Talk) -> None:
    """The client is notified of watched resources, but not before and after it watches them
    (`SUB-02`, `SUB-05`, `LSN-03`, `LSN-13`)."""
    if talk.stateless:
        wanted: dict[str, Any] = {
            "tools_list_changed": True,
            "resource_subscriptions": ["note://board"],
        }
        step = await talk.client.do("listen", wanted=wanted, tools=["touch", "grow"])
        assert step.result["honored"] == {
            "toolsListChanged": True,
            "resourceSubscriptions": ["note://board"],
        }
        assert step.result["events"] == [
            ["notifications/resources/updated", "note://board"],
            ["notifications/tools/list_changed", None],
        ]
        return
    await talk.client.do("subscribe", uri="note://board")
    updated = await talk.client.call("touch", until=1)
    assert [(method, params["uri"]) for method, params in updated.heard] == [
        ("notifications/resources/updated", "note://board")
    ]
    await talk.client.do("unsubscribe", uri="note://board")
    quiet = await talk.client.call("touch")
    grown = await talk.client.call("grow", until=1)
    assert [method for method, _ in quiet.heard + grown.heard] == [
        "notifications/tools/list_changed"
    ]
    assert "extra" in {
        tool["name"] for tool in (await talk.client.do("list_tools")).result["tools"]
    }
