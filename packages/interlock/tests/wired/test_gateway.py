"""The gateway of the guide before a server: every flow comes through it, under every pair of
revisions and over every transport."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from interlock import (
    Answers,
    Client,
    ClientSettings,
    Http,
    McpError,
    ProtocolError,
    Server,
    Stdio,
    TextContent,
    TimedOut,
    ToolError,
    Unreachable,
)
from interlock.protocol.opening import Opened
from interlock.transport.http.server.serve import listening_socket, serve_http
from interlock.types import (
    INTERNAL_ERROR,
    CreateMessageResult,
    ListChangedCapability,
    LoggingMessageNotificationParams,
    ServerCapabilities,
)
from interlock.wire.revisions import HANDSHAKE_REVISIONS, REVISIONS, supports
from tests.docs.pages import blocks
from tests.wired.behind import server_behind

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.matrix(always="memory")]

TOP = Path(__file__).parents[4]
SECONDS = 15  # after which a flow hangs
AT_ONCE = 20


def guide() -> str:
    """The file that the guide shows."""
    page = (TOP / "docs/guide/own-gateway.md").read_text(encoding="utf-8")
    (text,) = [block.text for block in blocks(page, "gateway") if block.title == "gateway.py"]
    return text


def module() -> SimpleNamespace:
    """What the guide's file defines."""
    names: dict[str, Any] = {"__name__": "gateway"}
    exec(guide(), names)
    return SimpleNamespace(**names)


class Pair(NamedTuple):
    """What the client and the gateway speak, and the gateway and the server behind it."""

    transport: str
    ahead: str
    behind: str

    def __str__(self) -> str:
        return f"{self.transport}-{self.ahead}-{self.behind}"

    @property
    def asks(self) -> bool:
        """Whether both revisions have forms."""
        return supports(self.ahead, "elicitation") and supports(self.behind, "elicitation")

    @property
    def shares_a_channel(self) -> bool:
        """Whether a question of the server behind does not say to which call it belongs."""
        return self.transport == "stdio" and self.behind in HANDSHAKE_REVISIONS


PAIRS = [
    Pair(transport, ahead, behind)
    for transport in ("memory", "http", "stdio")
    for ahead in REVISIONS
    for behind in REVISIONS
]


class Chain:
    """A client of a gateway before a server, and the person at the client."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.asked: list[str] = []
        self.logged: list[LoggingMessageNotificationParams] = []
        self.client: Client

    def answer(self, question: Any) -> Any:
        """Answer a form."""
        self.asked.append(question.message)
        if "What size" in question.message:
            return {"value": f"large {question.message.split()[-1][:-1]}"}
        return {"confirm": True}

    def sample(self, request: Any) -> CreateMessageResult:
        """Answer in place of a model."""
        text = request.messages[0].content.text
        return CreateMessageResult(role="assistant", content=TextContent(text), model="clever")


@asynccontextmanager
async def chain_of(pair: Pair, folder: Path) -> AsyncIterator[Chain]:
    """Start the server, the gateway and the client of a pair."""
    chain = Chain(pair)
    async with AsyncExitStack() as stack:
        if pair.transport == "stdio":
            script = folder / "gateway.py"
            script.write_text(guide(), encoding="utf-8")
            command = [sys.executable, "-m", "tests.wired.behind", pair.behind]
            target: Any = Stdio([sys.executable, str(script), *command], cwd=TOP)
        else:
            made = module()
            server = server_behind(pair.behind)
            reached = await served(server, stack) if pair.transport == "http" else server
            front = made.gateway(made.behind(reached))
            target = await served(front, stack) if pair.transport == "http" else front
        chain.client = Client(
            target,
            revision=pair.ahead,
            answers=Answers(elicit=chain.answer, sample=chain.sample, roots="file:///home/ada"),
            on_log=chain.logged.append,
            log_level="info",
            settings=ClientSettings(probe_timeout=SECONDS),
            timeout=SECONDS,
        )
        await stack.enter_async_context(chain.client)
        yield chain


async def served(server: Server, stack: AsyncExitStack) -> Http:
    """Serve a server over HTTP for as long as the stack lasts."""
    sock = listening_socket("127.0.0.1", 0)
    serving = asyncio.create_task(serve_http(server.http_app(), sock, grace=1.0))

    async def end() -> None:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    stack.push_async_callback(end)
    return Http(f"http://127.0.0.1:{sock.getsockname()[1]}/mcp")


@pytest_asyncio.fixture(scope="session", loop_scope="session", params=PAIRS, ids=str)
async def whole_chain(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Chain]:
    """A chain that lives until the next one's turn."""
    async with chain_of(request.param, tmp_path_factory.mktemp("gateway")) as chain:
        yield chain


@pytest_asyncio.fixture(loop_scope="session")
async def chain(whole_chain: Chain) -> AsyncIterator[Chain]:
    """A chain for one test."""
    whole_chain.asked.clear()
    whole_chain.logged.clear()
    yield whole_chain


async def test_the_gateway_offers_what_the_server_behind_offers(chain: Chain) -> None:
    """And says itself who it is."""
    info = chain.client.server_info
    assert info is None or info.name == "gateway"
    capabilities = chain.client.server_capabilities
    assert capabilities.tools is not None
    assert capabilities.resources is not None
    assert capabilities.prompts is not None
    assert {tool.name for tool in await chain.client.list_tools()} >= {"order", "steps"}
    assert [r.uri for r in await chain.client.list_resources()] == ["note://one"]
    read = await chain.client.read_resource("note://one")
    assert read.contents[0].text == "Buy milk"
    prompt = await chain.client.get_prompt("greeting", {"name": "Ada"})
    assert prompt.messages[0].content.text == "Greet Ada."


async def test_two_questions_in_one_call(chain: Chain) -> None:
    """They reach the person, and the tool runs once; a revision without forms ends it with words
    that say so."""
    if not chain.pair.asks:
        with pytest.raises((McpError, ToolError), match="elicitation"):
            (await chain.client.call_tool("order", {"dish": "soup"})).value()
        assert chain.asked == []
        return
    result = await chain.client.call_tool("order", {"dish": "soup"})
    assert chain.asked == ["What size of soup?", "A large soup soup, for sure?"]
    assert result.text == "large soup soup: True (1)"


async def test_sampling(chain: Chain) -> None:
    """The client's model answers; every revision has that."""
    result = await chain.client.call_tool("ponder", {"about": "soup"})
    assert result.text == "clever: Think about soup."


async def test_roots(chain: Chain) -> None:
    """The client's roots; every revision has them."""
    result = await chain.client.call_tool("folders")
    assert json.loads(result.text) == ["file:///home/ada"]


async def test_progress(chain: Chain) -> None:
    """In order, before the result, and to whoever asked for it."""
    received: list[Any] = []
    result = await chain.client.call_tool("steps", {"to": 3}, on_progress=received.append)
    assert result.text == "arrived"
    assert [(p.progress, p.total) for p in received] == [(1, 3), (2, 3), (3, 3)]


async def test_log_messages(chain: Chain) -> None:
    """Those of the level that the client wants."""
    assert (await chain.client.call_tool("say", {"words": "hello"})).text == "said"
    assert [(m.level, m.data) for m in chain.logged] == [("info", "hello")]


async def test_cancelling(chain: Chain) -> None:
    """A call that nobody waits for is cancelled at the server behind."""
    running = asyncio.Event()
    call = asyncio.create_task(
        chain.client.call_tool("hang", {"name": "x"}, on_progress=lambda p: running.set())
    )
    await asyncio.wait_for(running.wait(), SECONDS)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert call.cancelled()
    assert (await chain.client.call_tool("was_cancelled", {"name": "x"})).text == "true"


async def test_a_resource_that_changes(chain: Chain) -> None:
    """Whoever watches it hears of it."""
    async with chain.client.watch(resources=["note://one"]) as changes:
        assert changes.honoured.resource_subscriptions == ["note://one"]
        await chain.client.call_tool("touch")
        change = await asyncio.wait_for(anext(changes), SECONDS)
    assert (change.kind, change.uri) == ("resource", "note://one")


async def test_a_list_that_changes(chain: Chain) -> None:
    """Whoever watches it hears of it."""
    async with chain.client.watch(tools=True) as changes:
        await chain.client.call_tool("grow")
        change = await asyncio.wait_for(anext(changes), SECONDS)
    assert change.kind == "tools"
    assert "grown" in [tool.name for tool in await chain.client.list_tools()]


async def test_errors(chain: Chain) -> None:
    """A tool's own failure, an answer that is an error, and a tool that there is not."""
    failed = await chain.client.call_tool("refuse")
    assert (failed.is_error, failed.text) == (True, "There are no seats left.")
    with pytest.raises(McpError, match="Not like this") as caught:
        await chain.client.call_tool("protest")
    assert (caught.value.code, caught.value.data) == (4711, {"why": "because"})
    with pytest.raises(McpError, match="Unknown tool: nothing"):
        await chain.client.call_tool("nothing")


async def test_many_calls_at_once_on_one_connection(chain: Chain) -> None:
    """Each gets its own result, and its own progress."""
    received: dict[int, list[float]] = {n: [] for n in range(AT_ONCE)}

    async def one(number: int) -> str:
        result = await chain.client.call_tool(
            "count",
            {"number": number},
            on_progress=lambda p: received[number].append(p.progress),
        )
        return result.text

    results = await asyncio.gather(*(one(number) for number in range(AT_ONCE)))
    assert results == [str(number) for number in range(AT_ONCE)]
    assert received == {number: [number] for number in range(AT_ONCE)}


async def test_many_questions_at_once_on_one_connection(chain: Chain) -> None:
    """Each reaches the call that it belongs to, and each tool runs once; where that cannot be told,
    the calls end in words."""
    dishes = [f"dish{number}" for number in range(AT_ONCE)]
    calls = [ordered(chain.client, dish) for dish in dishes]
    if not chain.pair.asks or chain.pair.shares_a_channel:
        unknown = chain.pair.shares_a_channel and supports(chain.pair.behind, "elicitation")
        words = "cannot be told which call" if unknown else "elicitation"
        for bad in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(bad, McpError | ToolError)
            assert words in str(bad)
        assert chain.asked == []
        return
    assert await asyncio.gather(*calls) == [f"large {d} {d}: True (1)" for d in dishes]
    assert len(chain.asked) == 2 * AT_ONCE


async def ordered(client: Client, dish: str) -> str:
    """Order a dish. Raises McpError or ToolError where that fails."""
    words: str = (await client.call_tool("order", {"dish": dish})).value()
    return words


class Broken:
    """A transport to a server that answers `initialize` and nothing else."""

    def __init__(self, why: Exception) -> None:
        self._why = why

    async def open(self, hello: Any) -> Opened:
        """Agree on a revision."""
        return Opened(REVISIONS[-1], None, ServerCapabilities(tools=ListChangedCapability()))

    async def __call__(self, exchange: Any) -> Any:
        """Fail."""
        raise self._why

    def send_notification(self, method: str, params: Any) -> None:
        """Nobody hears it."""

    async def aclose(self) -> None:
        """Nothing to close."""


@pytest.mark.parametrize(
    "why, words",
    [
        (Unreachable("secret/path/of/it is gone"), "cannot be reached"),
        (TimedOut("no answer within 5 seconds"), "did not answer in time"),
        (ProtocolError("the secret cannot be read"), "gave an answer that cannot be read"),
    ],
    ids=["gone", "late", "garbled"],
)
@pytest.mark.parametrize("ahead", [REVISIONS[0], REVISIONS[-1]])
@pytest.mark.parametrize("transport", ["memory", "http"])
async def test_a_server_behind_that_does_not_answer(
    transport: str, ahead: str, why: Exception, words: str
) -> None:
    """The caller is told so, and not in the words of that server, which may name what is not for
    everybody."""
    made = module()
    async with AsyncExitStack() as stack:
        front = made.gateway(made.behind(Broken(why)))
        target: Any = await served(front, stack) if transport == "http" else front
        client = await stack.enter_async_context(Client(target, revision=ahead))
        with pytest.raises(McpError, match=f"The server behind this one {words}") as caught:
            await client.call_tool("order", {"dish": "soup"})
    assert caught.value.code == INTERNAL_ERROR
    assert "secret" not in caught.value.message
