"""The Server: its decorators, what it says of itself, the options it is made with, and the states
that travel between its copies.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from interlock import (
    Client,
    Context,
    Icon,
    McpError,
    QuestionSettings,
    Server,
    ServerInfo,
    ServerLimits,
)
from interlock import types as t
from interlock.server.state_key import STATE_KEY_VARIABLE
from interlock.wire.revisions import HANDSHAKE_REVISIONS, NEWEST, REVISIONS
from tests.retries import share_records
from tests.server.by_hand import R4, exchange, listed, read, text
from tests.server.wire import Peer

NEWEST_FIRST = list(reversed(REVISIONS))


async def work() -> str:
    """Work."""
    return "done"


# Decorators.


@pytest.mark.parametrize(
    "decorate, name, title",
    [
        (lambda of: of, "work", None),
        (lambda of: of(), "work", None),
        (lambda of: of("other"), "other", None),
        (lambda of: of(None), "work", None),
        (lambda of: of(title="Work!"), "work", "Work!"),
        (lambda of: of("other", title="Work!"), "other", "Work!"),
        (lambda of: of(name="other"), "other", None),
        (lambda of: of(name="other", title="Work!"), "other", "Work!"),
    ],
)
@pytest.mark.parametrize("kind", ["tool", "prompt"])
async def test_with_and_without_parentheses(decorate: Any, name: str, title: str | None, kind: str):
    """However it is written, the feature is there, and the function is what it was."""
    server = Server("decorated")
    assert decorate(getattr(server, kind))(work) is work
    (found,) = (await listed(server, f"{kind}s/list"))[f"{kind}s"]
    assert (found["name"], found.get("title"), found["description"]) == (name, title, "Work.")


def test_decorators_that_are_misread():
    """A resource without its URI, a name given twice, a name that is none: words that say what to
    write.
    """
    server = Server("decorated")
    with pytest.raises(
        TypeError, match=r"a resource needs a URI: @server\.resource\('docs://readme'\)"
    ):
        server.resource(work)  # type: ignore[arg-type]  # that is the mistake
    with pytest.raises(TypeError, match="two names are given: 'a' and 'b'"):
        server.tool("a", name="b")(work)
    with pytest.raises(TypeError, match="two names are given: 'a' and 'b'"):
        server.prompt("a", name="b")(work)
    with pytest.raises(TypeError, match="a name is a string, not 5"):
        server.tool(5)(work)  # type: ignore[call-overload]  # that is the mistake
    assert (len(server.tools), len(server.resources), len(server.prompts)) == (0, 0, 0)


async def test_methods_of_objects():
    """Registered once they are bound; one of a class is refused in words."""

    class Shop:
        def __init__(self, price: int) -> None:
            self.price = price

        async def buy(self, count: int) -> int:
            """Buy some."""
            return self.price * count

    server = Server("decorated")
    server.add_tool(Shop(3).buy)
    server.add_tool(Shop(5).buy, name="buy_dear")
    assert (
        await text(server, "buy", {"count": 2}),
        await text(server, "buy_dear", {"count": 2}),
    ) == ("6", "10")
    with pytest.raises(TypeError, match="self"):
        server.add_tool(Shop.buy, name="unbound")


# What it says of itself.


@pytest.mark.parametrize("revision", [R4, NEWEST])
async def test_what_a_server_says_of_itself(revision: str):
    """Name, version, title, words, website, pictures and instructions reach the client."""
    icon = Icon(src="https://example.com/a.png")
    server = Server(
        "self",
        "1.2",
        info=ServerInfo(
            title="Self", description="Words.", website_url="https://example.com", icons=[icon]
        ),
        instructions="Ask nicely.",
    )
    async with Client(server, revision=revision) as client:
        expected = t.Implementation(
            name="self",
            version="1.2",
            title="Self",
            description="Words.",
            website_url="https://example.com",
            icons=[icon],
        )
        assert client.server_info == expected
        assert client.instructions == "Ask nicely."
    assert server.name == "self"


async def test_capabilities():
    """Of tools, prompts and resources those that there are, or were: a list that has become empty
    is still a list (`STA-11`, `TOL-01`).
    """
    server = Server("self")
    assert server.capabilities() == t.ServerCapabilities(logging={})
    server.add_tool(work)
    server.add_resource("docs://{name}", lambda name: name)
    listed_ones = t.ListChangedCapability(list_changed=True)
    resources = t.ResourcesCapability(subscribe=True, list_changed=True)
    assert server.capabilities() == t.ServerCapabilities(
        logging={}, tools=listed_ones, resources=resources
    )
    server.add_prompt(work)
    server.completion(lambda value: [value])
    server.remove_tool("work")
    server.remove_resource("docs://{name}")
    whole = t.ServerCapabilities(
        logging={}, completions={}, tools=listed_ones, resources=resources, prompts=listed_ones
    )
    assert server.capabilities() == whole
    assert (await listed(server, "tools/list"))["tools"] == []


@pytest.mark.parametrize("revision", [R4, NEWEST])
@pytest.mark.parametrize(
    "method, params, lacking",
    [
        ("tools/list", {}, "tools"),
        ("tools/call", {"name": "work"}, "tools"),
        ("prompts/list", {}, "prompts"),
        ("prompts/get", {"name": "work"}, "prompts"),
        ("resources/list", {}, "resources"),
        ("resources/templates/list", {}, "resources"),
        ("resources/read", {"uri": "docs://a"}, "resources"),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "a"}, "argument": {"name": "a", "value": ""}},
            "completions",
        ),
    ],
)
async def test_what_is_not_offered_does_not_exist(
    method: str, params: dict[str, Any], lacking: str, revision: str
):
    """A method whose capability is not declared is unknown: -32601 (`ERR-10`, `RES-01`, `PRM-01`,
    `CMP-01`).
    """
    peer = await Peer.of(Server("empty"), revision)
    error = (await peer.ask(method, params))["error"]
    assert error["code"] == t.METHOD_NOT_FOUND
    assert error["message"] == f"Method not found: {method} (this server has no {lacking})"
    await peer.aclose()


# Options.


@pytest.mark.parametrize(
    "options, words",
    [
        ({"page_size": 0}, "page_size must be 1 or more, not 0"),
        ({"threads": 0}, "threads must be 1 or more, not 0"),
        ({"calls_per_peer": 0}, "calls_per_peer must be 1 or more"),
        ({"concurrency": 0}, "concurrency must be 1 or more"),
        ({"queue": -1}, "queue must be 0 or more, not -1"),
        ({"list_ttl_ms": -1}, "list_ttl_ms must be 0 or more"),
        ({"timeout": 0}, "timeout must be more than 0 seconds"),
    ],
)
def test_limits_that_cannot_be(options: dict[str, Any], words: str):
    """They are refused when the record is made, not when the first client comes."""
    with pytest.raises(ValueError, match=words):
        ServerLimits(**options)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"revisions": []}, "unknown revisions: none given"),
        ({"revisions": "2026-07-29"}, "unknown revisions: 2026-07-29; known are 2024-11-05, "),
        ({"revisions": ["2026-07-28", "2024-11-6"]}, "unknown revisions: 2024-11-6"),
        (
            {"questions": QuestionSettings(state_keys=[b"short"])},
            "at least one key of 16 random bytes or more",
        ),
    ],
)
def test_options_without_sense(options: dict[str, Any], words: str):
    """They are refused when the server is made, not when the first client comes."""
    with pytest.raises(ValueError, match=words):
        Server("options", **options)


@pytest.mark.parametrize("revisions", [[NEWEST], NEWEST])
async def test_a_server_of_the_stateless_era_only(revisions: Any):
    """`initialize` is answered with an error that names what it speaks, and so is everything else
    of the other era (`ERA-03`).
    """
    peer = await Peer.of(Server("stateless", revisions=revisions), None)
    hello = {
        "protocolVersion": R4,
        "capabilities": {},
        "clientInfo": {"name": "peer", "version": "1"},
    }
    error = (await peer.ask("initialize", hello))["error"]
    assert error["code"] == t.UNSUPPORTED_PROTOCOL_VERSION == -32022
    assert error["data"] == {"supported": [NEWEST], "requested": R4}
    assert (await peer.ask("initialize", {"protocolVersion": 5}))["error"]["data"] == {
        "supported": [NEWEST]
    }
    for method in ("tools/list", "ping"):
        error = (await peer.ask(method))["error"]
        assert (error["code"], error["data"]) == (t.INVALID_PARAMS, {"supported": [NEWEST]})
    peer.revision = NEWEST
    assert (await peer.ask("server/discover"))["result"]["supportedVersions"] == [NEWEST]
    await peer.aclose()


async def test_a_server_of_the_handshake_era_only():
    """Stateless requests are answered with the error that names what it speaks; clients find their
    way (`ERA-02`).
    """
    server = Server("handshake", revisions=HANDSHAKE_REVISIONS)
    server.add_tool(work)
    peer = await Peer.of(server)
    for method in ("server/discover", "tools/list"):
        error = (await peer.ask(method))["error"]
        assert error["code"] == t.UNSUPPORTED_PROTOCOL_VERSION
        assert error["data"] == {
            "supported": list(reversed(HANDSHAKE_REVISIONS)),
            "requested": NEWEST,
        }
    await peer.aclose()
    async with Client(server) as client:
        assert client.revision == R4
        assert (await client.call_tool("work")).text == "done"


@pytest.mark.parametrize(
    "wanted, agreed",
    [
        ("2025-06-18", "2025-06-18"),
        ("2024-11-05", "2025-06-18"),
        ("2099-01-01", "2025-06-18"),
        (R4, "2025-06-18"),
    ],
)
async def test_a_server_of_some_revisions(wanted: str, agreed: str):
    """A handshake settles on what was asked for, or else on the newest that there is (`LIF-05`)."""
    server = Server("some", revisions=[NEWEST, "2025-03-26", "2025-06-18"])
    peer = await Peer.of(server, None)
    hello = {
        "protocolVersion": wanted,
        "capabilities": {},
        "clientInfo": {"name": "peer", "version": "1"},
    }
    assert (await peer.ask("initialize", hello))["result"]["protocolVersion"] == agreed
    await peer.aclose()
    result = await server.handle(exchange("server/discover", t.DiscoverRequestParams()))
    assert isinstance(result, t.DiscoverResult)
    assert result.supported_versions == [NEWEST, "2025-06-18", "2025-03-26"]


async def test_discovery():
    """Versions newest first, and the hints of the lists (`STA-08`, `STA-10`, `CAC-01`)."""
    server = Server("discovered", limits=ServerLimits(list_ttl_ms=1000), instructions="Ask nicely.")
    result = await server.handle(exchange("server/discover", t.DiscoverRequestParams()))
    assert isinstance(result, t.DiscoverResult)
    assert (result.supported_versions, result.ttl_ms, result.cache_scope) == (
        NEWEST_FIRST,
        1000,
        "public",
    )
    assert (result.instructions, result.capabilities) == ("Ask nicely.", server.capabilities())


async def test_methods_that_nobody_knows():
    """By hand as well as over a connection (`ERR-10`)."""
    with pytest.raises(McpError, match="Method not found: tools/dance") as caught:
        await Server("empty").handle(exchange("tools/dance", t.Params()))
    assert caught.value.code == t.METHOD_NOT_FOUND


# States that travel through clients.


def asking(name: str = "asking", **options: Any) -> tuple[Server, list[str]]:
    """A server with a tool that asks twice, and what its runs have seen."""
    server = Server(name, **options)
    seen: list[str] = []

    @server.tool
    async def book(day: str, ctx: Context) -> str:
        seen.append("begun")
        seat = await ctx.elicit("Which seat?", str, key="seat")
        seen.append(f"seat {seat}")
        meal = await ctx.elicit("Which meal?", str, key="meal")
        return f"{day} {seat} {meal}"

    return server, seen


async def book(
    peer: Peer, *, state: str | None = None, day: str = "Monday", **answers: str
) -> dict[str, Any]:
    """One round of a call of that tool: the response."""
    params: dict[str, Any] = {"name": "book", "arguments": {"day": day}}
    if state is not None:
        params["requestState"] = state
        params["inputResponses"] = {
            key: {"action": "accept", "content": {"value": value}} for key, value in answers.items()
        }
    return await peer.ask("tools/call", params)


KEY = b"k" * 16
OLDER_KEY = b"o" * 16


@pytest.mark.parametrize(
    "suspend, other_suspend", [(True, True), (True, False), (False, True), (False, False)]
)
async def test_a_call_that_another_worker_goes_on_with(suspend: bool, other_suspend: bool):
    """Suspended on one server, resumed on another with the same key: there it runs again from the
    top, with the answers (`MRT-07`).
    """
    (one, seen), (other, seen_by_other) = (
        asking(questions=QuestionSettings(state_keys=[KEY], suspend=suspend)),
        asking(questions=QuestionSettings(state_keys=[KEY], suspend=other_suspend)),
    )
    share_records(one, other)
    first = await Peer.of(one)
    second = await Peer.of(other)
    asked = (await book(first))["result"]
    assert list(asked["inputRequests"]) == ["seat"]
    asked = (await book(second, state=asked["requestState"], seat="7B"))["result"]
    assert list(asked["inputRequests"]) == ["meal"]
    done = (await book(first, state=asked["requestState"], meal="soup"))["result"]
    assert done["content"] == [{"type": "text", "text": "Monday 7B soup"}]
    assert seen == ["begun", "begun", "seat 7B"]
    assert seen_by_other == ["begun", "seat 7B"]
    await first.aclose()
    await second.aclose()


@pytest.mark.parametrize(
    "keys, other_keys, understood",
    [
        ([KEY], [KEY], True),
        ([KEY], [OLDER_KEY, KEY], True),
        ([KEY, OLDER_KEY], [KEY], True),
        ([OLDER_KEY, KEY], [KEY], False),
        ([KEY], [OLDER_KEY], False),
        ([KEY], [], False),
        ([], [], False),
    ],
)
async def test_keys(keys: list[bytes], other_keys: list[bytes], understood: bool):
    """The first one seals and all of them open; a state of another key is the error -32602, never a
    second question (`MRT-08`).
    """
    (one, _), (other, seen) = (
        asking(questions=QuestionSettings(state_keys=keys)),
        asking(questions=QuestionSettings(state_keys=other_keys)),
    )
    share_records(one, other)
    first = await Peer.of(one)
    second = await Peer.of(other)
    asked = (await book(first))["result"]
    answer = await book(second, state=asked["requestState"], seat="7B")
    if understood:
        assert list(answer["result"]["inputRequests"]) == ["meal"]
    else:
        assert answer["error"]["code"] == t.INVALID_PARAMS
        assert answer["error"]["message"].startswith("Invalid requestState: ")
        assert seen == []
    await first.aclose()
    await second.aclose()


async def test_a_state_outlives_an_upgrade_of_its_server():
    """It is bound to the name of the server, and not to its version: a rolling upgrade keeps the
    confirmations. A server with another name cannot use it.
    """
    questions = QuestionSettings(state_keys=[KEY])
    before, _ = asking(questions=questions, version="1.0.0")
    after, _ = asking(questions=questions, version="2.0.0")
    other, seen = asking("other", questions=questions, version="1.0.0")
    share_records(before, after, other)
    peers = [await Peer.of(server) for server in (before, after, other)]
    state = (await book(peers[0]))["result"]["requestState"]
    refused = await book(peers[2], state=state, seat="7B")
    assert refused["error"]["code"] == t.INVALID_PARAMS
    assert seen == []
    asked = (await book(peers[1], state=state, seat="7B"))["result"]
    assert list(asked["inputRequests"]) == ["meal"]
    for peer in peers:
        await peer.aclose()


async def test_a_state_is_of_one_call(monkeypatch: pytest.MonkeyPatch):
    """For other arguments it is none, though the key is right; the key may come from the
    environment (`MRT-08`).
    """
    monkeypatch.setenv(STATE_KEY_VARIABLE, KEY.hex())
    (one, _), (other, _) = asking(), asking(questions=QuestionSettings(state_keys=[KEY]))
    share_records(one, other)
    first = await Peer.of(one)
    second = await Peer.of(other)
    state = (await book(first))["result"]["requestState"]
    assert (await book(second, state=state, day="Tuesday", seat="7B"))["error"][
        "code"
    ] == t.INVALID_PARAMS
    assert "inputRequests" in (await book(second, state=state, seat="7B"))["result"]
    await first.aclose()
    await second.aclose()


@pytest.mark.parametrize(
    "value, words",
    [
        ("not hexadecimal", "INTERLOCK_STATE_KEY does not hold a hexadecimal key"),
        ("abcd", "16 random bytes"),
        ("17" * 32 + ",", "16 random bytes"),
        ("17" * 32 + ",words", "INTERLOCK_STATE_KEY does not hold a hexadecimal key"),
    ],
)
def test_keys_of_the_environment_that_are_none(
    value: str, words: str, monkeypatch: pytest.MonkeyPatch
):
    """The server is not made with a key that protects nothing."""
    monkeypatch.setenv(STATE_KEY_VARIABLE, value)
    with pytest.raises(ValueError, match=words):
        Server("keys")


@pytest.mark.parametrize("forwards", [True, False])
@pytest.mark.parametrize(
    "before, after",
    [
        ("17" * 32, f"{'17' * 32},{'18' * 32}"),
        (f"{'17' * 32},{'18' * 32}", f"{'18' * 32},{'17' * 32}"),
        (f"{'18' * 32},{'17' * 32}", "18" * 32),
    ],
)
async def test_the_key_of_the_environment_can_be_rotated(
    before: str, after: str, forwards: bool, monkeypatch: pytest.MonkeyPatch
):
    """First every server learns to open the new key, then they seal with it, and then the old one
    goes. While some servers have taken a step and others have not, each opens what any has sealed.
    """
    monkeypatch.setenv(STATE_KEY_VARIABLE, before)
    one, _ = asking()
    monkeypatch.setenv(STATE_KEY_VARIABLE, after)
    other, _ = asking()
    share_records(one, other)
    first = await Peer.of(one if forwards else other)
    second = await Peer.of(other if forwards else one)
    state = (await book(first))["result"]["requestState"]
    assert "inputRequests" in (await book(second, state=state, seat="7B"))["result"]
    await first.aclose()
    await second.aclose()


# Resources by their templates.


def library() -> Server:
    server = Server("library")

    def reading(words: str) -> Any:
        async def function(**values: Any) -> str:
            return f"{words} {values}"

        return function

    @server.resource("docs://shelf/{name}")
    async def one(name: str) -> str:
        return f"one {name}"

    @server.resource("docs://shelf/special-{name}")
    async def special(name: str) -> str:
        return f"special {name}"

    @server.resource("docs://shelf/{name}/{number}")
    async def page(name: str, number: int) -> str:
        return f"page {name} {number + 1}"

    @server.resource("docs://tree/{+path}")
    async def tree(path: str) -> str | None:
        return f"tree {path}" if path != "nothing" else None

    @server.resource("docs://search{?query,limit}")
    async def search(query: str, limit: int = 10) -> str:
        return f"search {query} {limit}"

    server.add_resource("docs://shelf/fixed", "the fixed one")
    return server


@pytest.mark.parametrize(
    "uri, words",
    [
        ("docs://shelf/a", "one a"),
        ("docs://shelf/gr%C3%B6%C3%9Fe%20b", "one größe b"),
        ("docs://shelf/special-a", "special a"),
        ("docs://shelf/fixed", "the fixed one"),
        ("docs://shelf/a/1", "page a 2"),
        ("docs://tree/a/b/c", "tree a/b/c"),
        ("docs://search?query=tea", "search tea 10"),
        ("docs://search?limit=3&query=tea", "search tea 3"),
    ],
)
async def test_which_resource_a_uri_is(uri: str, words: str):
    """A fixed one first, then the template that says most about it; variables come decoded and
    typed (`RES-13`).
    """
    assert (await read(library(), uri)).contents == [
        t.ResourceContents(uri=uri, mime_type="text/plain", text=words)
    ]


@pytest.mark.parametrize(
    "uri",
    [
        "docs://shelf/",
        "docs://shelf",
        "docs://shelf/a/b/c",
        "docs://shelf/..",
        "docs://shelf/%2E%2E",
        "docs://shelf/a%2F..%2Fb",
        "docs://shelf/a%5Cb",
        "docs://shelf/a%00",
        "docs://tree/../etc",
        "docs://tree/a/../../b",
        "docs://tree/%2Fetc/passwd",
        "docs://tree//etc/passwd",
        "docs://tree/nothing",
        "docs://search",
        "docs://search?limit=3",
        "docs://search?query=a&other=b",
        "docs://elsewhere",
        "",
        "\x00",
    ],
)
async def test_what_is_no_resource(uri: str):
    """Unknown, climbing out of its place, or without what its function needs: not found, with the
    URI.

    (`RES-05`, `RES-06`, `RES-07`, `RES-08`)
    """
    with pytest.raises(McpError, match="Resource not found: ") as caught:
        await read(library(), uri)
    assert (caught.value.code, caught.value.data) == (t.INVALID_PARAMS, {"uri": uri})


async def test_variables_that_do_not_fit():
    """The template is the right one, and its variable is not: the error says which."""
    with pytest.raises(McpError, match="Argument number does not fit: Expected `int`") as caught:
        await read(library(), "docs://shelf/a/first")
    assert caught.value.code == t.INVALID_PARAMS


async def test_templates_that_come_and_go():
    """The best one is sought among those that are there now; what may be watched is what may be
    read.
    """
    server = library()
    caller = exchange("ping", None).caller
    assert server.visibility.can_watch("docs://shelf/special-a", caller)
    assert not server.visibility.can_watch("docs://elsewhere", caller)
    assert not server.visibility.can_watch("docs://shelf/..", caller)
    server.remove_resource("docs://shelf/special-{name}")
    assert (await read(server, "docs://shelf/special-a")).contents[0].text == "one special-a"
    server.remove_resource("docs://shelf/fixed")
    assert (await read(server, "docs://shelf/fixed")).contents[0].text == "one fixed"
    server.add_resource("docs://shelf/f{rest}", lambda rest: f"new {rest}")
    assert (await read(server, "docs://shelf/fixed")).contents[0].text == "new ixed"
    await server.aclose()


async def test_freshness_of_resources():
    """The feature's hints, unless the result has its own (`CAC-01`)."""
    server = Server("fresh")

    @server.resource("docs://a", ttl_ms=5000, cache_scope="public")
    async def a() -> str:
        return ""

    @server.resource("docs://b/{name}", ttl_ms=5000)
    async def b(name: str) -> t.ReadResourceResult:
        return t.ReadResourceResult(contents=[], ttl_ms=7 if name == "own" else None)

    server.add_resource("docs://c", "text", ttl_ms=9, cache_scope="public")
    hints = [
        (r.ttl_ms, r.cache_scope)
        for r in [
            await read(server, uri)
            for uri in ("docs://a", "docs://b/own", "docs://b/x", "docs://c")
        ]
    ]
    assert hints == [(5000, "public"), (7, "private"), (5000, "private"), (9, "public")]


# The end.


async def test_closing_a_server_ends_what_is_open():
    """Subscriptions end in good order, calls that wait for an answer are given up, and new peers
    are served as before (`LSN-11`).
    """
    server, _ = asking()
    server.add_tool(work)
    async with (
        Client(server, elicit=lambda params: None) as client,
        client.watch(tools=True) as changes,
    ):
        peer = await Peer.of(server)
        assert "inputRequests" in (await book(peer))["result"]
        assert (len(server.suspended_calls), len(server.listeners)) == (1, 1)
        await server.aclose()
        async with asyncio.timeout(30):
            with pytest.raises(StopAsyncIteration):
                await anext(changes)
        assert (len(server.suspended_calls), len(server.listeners)) == (0, 0)
        assert (await client.call_tool("work")).text == "done"
        await peer.aclose()


async def test_one_peer_may_have_so_many_requests_open():
    """The next one is refused at once; another peer does not notice."""
    server = Server("busy", limits=ServerLimits(calls_per_peer=2))
    go = asyncio.Event()
    entered = asyncio.Semaphore(0)

    @server.tool
    async def stay() -> str:
        entered.release()
        await go.wait()
        return "done"

    peer = await Peer.of(server)
    other = await Peer.of(server)
    open_ones = [peer.begin("tools/call", {"name": "stay"}) for _ in range(2)]
    async with asyncio.timeout(30):
        await entered.acquire()
        await entered.acquire()
        refused = await peer.ask("tools/call", {"name": "stay"})
        assert refused["error"]["data"] == {"reason": "busy"}
        assert "2 requests are running on this connection" in refused["error"]["message"]
        assert "result" in await other.ask("tools/list")
        go.set()
        for id in open_ones:
            assert "result" in await peer.answer(id)
    assert "result" in await peer.ask("tools/call", {"name": "stay"})
    await peer.aclose()
    await other.aclose()
