"""Statelessness: state has a name that the client sends, lists do not depend on connections, and
questions belong to who was asked."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from interlock import (
    Client,
    ClientSettings,
    Context,
    InputRequiredResult,
    McpError,
    Principal,
    QuestionSettings,
    Server,
    ServerLimits,
)
from interlock import types as t
from interlock.exchange import AnyResult, Exchange, Handler
from interlock.protocol.handshake.server import ServerConnection
from interlock.testing import ScriptedAnswers
from interlock.wire.revisions import NEWEST, REVISIONS
from tests.protocol.frames import asked as asked_of
from tests.protocol.frames import stamped

PAGE = "https://example.com/sign-in"


def shop(**options: Any) -> Server:
    """A server that asks, and that has lists of several pages."""
    server = Server("shop", limits=ServerLimits(page_size=2), **options)
    server.visits = 0  # type: ignore[attr-defined]  # how often the person has been at the page

    for name in "abcde":
        server.tool(name=f"tool_{name}")(lambda: "done")

    @server.tool
    async def buy(ctx: Context) -> str:
        return "bought" if await ctx.confirm("Buy it?") else "left"

    @server.tool
    async def open_account(ctx: Context) -> str:
        """Ask for a visit until the page says that the person was there."""
        for _ in range(5):
            await ctx.elicit_url("Sign in.", PAGE)
            if server.visits:  # type: ignore[attr-defined]  # as above
                return "open"
        return "given up"

    return server


async def names(client: Client) -> list[str]:
    """The tools, in the order in which they are listed."""
    return [tool.name for tool in await client.list_tools()]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_lists_do_not_depend_on_connections_or_on_what_came_before(revision: str) -> None:
    """The same list on two connections, also after calls, reads and questions on one of them
    (`STA-14`)."""
    server = shop()
    answers = ScriptedAnswers(elicit=[{"confirm": True}])
    async with (
        Client(
            server, revision=revision, settings=ClientSettings(cache=False), answers=answers
        ) as busy,
        Client(server, revision=revision, settings=ClientSettings(cache=False)) as idle,
    ):
        before = await names(busy)
        await busy.call_tool("tool_a")
        if revision >= "2025-06-18":
            assert (await busy.call_tool("buy")).text == "bought"
        with pytest.raises(McpError):
            await busy.call_tool("nobody")
        assert len(before) == 7
        assert await names(busy) == await names(idle) == before


async def test_a_cursor_is_good_on_any_connection() -> None:
    """What goes from one page to the next is the cursor alone; without it the list begins anew
    (`RPC-28`)."""
    server = shop()
    async with Client(server) as one, Client(server) as two:
        first = await one.request("tools/list", t.ListToolsRequestParams())
        assert isinstance(first, t.ListToolsResult)
        following = await two.request(
            "tools/list", t.ListToolsRequestParams(cursor=first.next_cursor)
        )
        again = await one.request("tools/list", t.ListToolsRequestParams())
        assert isinstance(following, t.ListToolsResult)
        assert isinstance(again, t.ListToolsResult)
    assert [tool.name for tool in again.tools] == [tool.name for tool in first.tools]
    assert {tool.name for tool in following.tools}.isdisjoint(tool.name for tool in first.tools)


def principal(subject: str = "ann", client: str = "app") -> Principal:
    """Somebody who was let in."""
    return Principal(subject=subject, issuer="https://login.example", client=client)


async def ask(server: Server, who: Principal | None, params: t.CallToolRequestParams) -> Any:
    """Send one call on a connection of its own; questions come back as they are."""
    transport = server.transport(principal=who)
    async with Client(transport, revision=NEWEST, elicit=lambda asked: True) as client:
        return await transport(Exchange("tools/call", params, client.caller))


def retry(asked: Any, name: str, answer: bytes) -> t.CallToolRequestParams:
    """The call again, with an answer to its only question."""
    assert isinstance(asked, InputRequiredResult)
    (key,) = asked.input_requests or {}
    return t.CallToolRequestParams(
        name=name, input_responses={key: Raw(answer)}, request_state=asked.request_state
    )


AGREED = b'{"action":"accept"}'
OTHERS = {
    "another person": principal("bob"),
    "the same person with another client": principal(client="other"),
    "nobody": None,
}


@pytest.mark.parametrize("suspend", [True, False], ids=["suspended", "replayed"])
@pytest.mark.parametrize("who", OTHERS.values(), ids=OTHERS)
async def test_a_visit_is_bound_to_the_person_and_the_client(
    who: Principal | None, suspend: bool
) -> None:
    """Whoever takes the state of another's question is refused, and the one who was asked goes on,
    on any connection (`ELI-30`, `RPC-28`)."""
    server = shop(questions=QuestionSettings(suspend=suspend))
    asked = await ask(server, principal(), t.CallToolRequestParams(name="open_account"))
    server.visits = 1  # type: ignore[attr-defined]  # see `shop`
    again = retry(asked, "open_account", AGREED)
    with pytest.raises(McpError, match="requestState") as caught:
        await ask(server, who, again)
    assert caught.value.code == t.INVALID_PARAMS
    assert (await ask(server, principal(), again)).text == "open"


@pytest.mark.parametrize("suspend", [True, False], ids=["suspended", "replayed"])
async def test_a_visit_is_asked_for_again_until_it_is_over(suspend: bool) -> None:
    """The answer says that the person agreed, and not that they are done: the server decides by
    what it knows (`ELI-24`)."""
    server = shop(questions=QuestionSettings(suspend=suspend))
    asked = await ask(server, None, t.CallToolRequestParams(name="open_account"))
    for _ in range(2):
        asked = await ask(server, None, retry(asked, "open_account", AGREED))
        assert isinstance(asked, InputRequiredResult)
    server.visits = 1  # type: ignore[attr-defined]  # see `shop`
    assert (await ask(server, None, retry(asked, "open_account", AGREED))).text == "open"


async def test_a_retry_declares_what_the_first_request_declared() -> None:
    """The same capabilities; and the server judges a retry by its own `_meta`, not by the first
    request's (`STA-16`)."""
    server = shop()
    sent: list[t.ClientCapabilities] = []

    def noting(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            if x.method == "tools/call":
                sent.append(x.caller.capabilities)
            return await handler(x)

        return handle

    server.use(noting)
    async with Client(server, revision=NEWEST, elicit=lambda asked: {"confirm": True}) as client:
        assert (await client.call_tool("buy")).text == "bought"
    assert len(set(map(repr, sent))) == 1
    assert sent[0].elicitation is not None


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_client_never_asks_for_a_task(revision: str) -> None:
    """Whatever a tool says of tasks: 2026-07-28 has none in its core, and no message of ours holds
    `task` (`TOL-28`)."""
    tape: list[dict[str, Any]] = []
    server = Server("s")
    server.tool(name="work")(lambda: "done")
    transport = server.transport(tap=lambda sender, frame: tape.append(msgspec.json.decode(frame)))
    async with Client(transport, revision=revision) as client:
        assert len(await client.list_tools()) == 1
        await client.call_tool("work")
    calls = [message for message in tape if message.get("method") == "tools/call"]
    assert len(calls) == 1
    assert "task" not in calls[0]["params"]
    (listed,) = [m["result"]["tools"][0] for m in tape if "tools" in (m.get("result") or {})]
    assert "execution" not in listed


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_crash_writes_nothing_to_the_log_of_the_client(revision: str) -> None:
    """Only what an author writes reaches a client's log; no exception, no argument, no path does
    (`LOG-08`)."""
    server = Server("s")

    @server.tool
    async def work(password: str, ctx: Context) -> None:
        ctx.log.error("it failed")
        raise RuntimeError(f"cannot log in with {password}")

    received: list[str] = []
    transport = server.transport(tap=lambda sender, frame: received.append(f"{sender}{frame!r}"))
    async with Client(transport, revision=revision, log_level="debug", on_log=print) as client:
        result = await client.call_tool("work", {"password": "hunter2"})
    assert result.is_error
    said = [frame for frame in received if frame.startswith("server")]
    assert len([frame for frame in said if "notifications/message" in frame]) == 1
    assert not any("hunter2" in frame or "RuntimeError" in frame for frame in said)


SINCE_TITLES = [revision for revision in REVISIONS if revision >= "2025-06-18"]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_titles_and_annotations_travel(revision: str) -> None:
    """Titles for display beside names, where the revision has them, and whom content is for
    everywhere (`MET-07`, `MET-08`)."""
    server = Server("s")
    notes = t.Annotations(audience=["user"], priority=0.5)

    @server.tool(name="work", title="The work")
    def work() -> t.TextContent:
        return t.TextContent(text="done", annotations=notes)

    server.prompt(name="ask", title="The question")(lambda: "ask")
    server.resource("a://b", name="b", title="The resource")(lambda: "b")
    server.resource("a://{x}", name="x", title="The template")(lambda x: x)
    async with Client(server, revision=revision) as client:
        listed = [
            *await client.list_tools(),
            *await client.list_prompts(),
            *await client.list_resources(),
            *await client.list_resource_templates(),
        ]
        (content,) = (await client.call_tool("work")).content
    titles = ["The work", "The question", "The resource", "The template"]
    names_of = [one.name for one in listed]
    assert names_of == ["work", "ask", "b", "x"]
    assert [one.title for one in listed] == (titles if revision in SINCE_TITLES else [None] * 4)
    assert isinstance(content, t.TextContent)
    assert content.annotations == notes


async def test_an_older_roots_capability_is_tolerated() -> None:
    """`roots.listChanged` in the capabilities of a request of the newest revision is no mistake
    (`ROO-09`)."""
    server = Server("s")

    @server.tool
    async def folders(ctx: Context) -> str:
        return " ".join(root.uri for root in await ctx.roots())

    capabilities = {"roots": {"listChanged": True}}
    connection = ServerConnection(server.identity)
    event = asked_of(connection, stamped(1, "tools/list", clientCapabilities=capabilities))
    assert event.caller.capabilities.roots is not None
    result = await server.handle(
        Exchange("tools/call", t.CallToolRequestParams(name="folders"), event.caller)
    )
    assert isinstance(result, InputRequiredResult)
