"""Contract check of a client transport: answers reach their requests, and none hangs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import Raw

from ... import types as t
from ...client.answers import Answers
from ...exchange import Caller, Exchange, Notify, silent
from ...transport.conversation import ClientTransport, Hello
from ...wire.revisions import LAST_HANDSHAKE, NEWEST, Era, era
from .promises import promise_of, require, within

MakeTransport = Callable[[], Awaitable[ClientTransport]]

CAPABILITIES = t.ClientCapabilities(elicitation=t.ElicitationCapability(form={}))
INFO = t.Implementation(name="interlock-contract", version="1")


async def check_client_transport(
    make_transport: MakeTransport,
    *,
    revisions: tuple[str, ...] = (LAST_HANDSHAKE, NEWEST),
    patience: float = 20.0,
) -> None:
    """Check that client transports keep the contract of `interlock.ClientTransport`.

    Args:
        make_transport: Makes a new, unopened transport to a server made by
            `interlock.testing.probe_server` (over stdio: `python -m interlock.testing.probe`).
        revisions: The revisions to check.
        patience: Seconds that each step waits.

    Raises:
        AssertionError: A promise is broken; the message names it.
    """
    for revision in revisions:
        for step in (_answers, _answers_many, _carries_large, _notifies, _asks, _cancels, _ends):
            transport = await make_transport()
            try:
                who = f"under {revision}, a client transport"
                async with within(patience, who, promise_of(step)):
                    await step(_Opened(transport, revision))
            finally:
                await transport.aclose()


class _Opened:
    """A transport, the Hello it was opened with, and the notifications that it has received."""

    def __init__(self, transport: ClientTransport, revision: str) -> None:
        self.transport = transport
        self.revision = revision
        self.notifications: list[tuple[str, Any]] = []
        self.answers = Answers(elicit=lambda params: {"value": "Ada"}, url=False)
        self.caller = Caller(revision, CAPABILITIES, INFO)

    async def open(self) -> None:
        hello = Hello(
            info=INFO,
            capabilities=CAPABILITIES,
            asker=self.answers,
            notify=lambda method, params: self.notifications.append((method, params)),
            revisions=(self.revision,),
        )
        opened = await self.transport.open(hello)
        require(
            opened.revision == self.revision,
            f"only {self.revision} was offered, but {opened.revision} was negotiated",
        )
        name = opened.info.name if opened.info is not None else None
        require(
            name == "interlock-probe",
            f"the server is interlock-probe, but `open` returned {name!r}",
        )

    async def call(self, tool: str, notify: Notify = silent, **arguments: Any) -> Any:
        """Call a tool of the probe and return its result."""
        params = t.CallToolRequestParams(name=tool, arguments=Raw(msgspec.json.encode(arguments)))
        caller = msgspec.structs.replace(self.caller, log_level="debug")
        return await self.transport(
            Exchange("tools/call", params, caller, notify=notify, asker=self.answers)
        )


async def _answers(opened: _Opened) -> None:
    """a request returns its result, and an error of the server raises McpError"""
    await opened.open()
    result = await opened.call("echo", text="Grüße")
    require(
        isinstance(result, t.CallToolResult) and result.text == "Grüße",
        f"`echo` returned {result!r}",
    )
    try:
        result = await opened.call("no such tool")
    except t.McpError as bad:
        require(
            bad.code == t.INVALID_PARAMS,
            f"an unknown tool must be error -32602, but it was {bad!r}",
        )
    else:
        raise AssertionError(f"an unknown tool must be an error, but the result was {result!r}")


async def _answers_many(opened: _Opened) -> None:
    """each of many concurrent requests gets its own response"""
    await opened.open()
    results = await asyncio.gather(*(opened.call("echo", text=str(n)) for n in range(200)))
    texts = [result.text for result in results]
    wrong = [(n, text) for n, text in enumerate(texts) if text != str(n)]
    require(
        not wrong,
        f"{len(wrong)} of 200 got another's response, such as (sent, received) = {wrong[:1]}",
    )


async def _carries_large(opened: _Opened) -> None:
    """messages of a megabyte arrive unchanged in both directions"""
    await opened.open()
    text = "ü" * 500_000
    require(
        (await opened.call("echo", text=text)).text == text,
        "an argument of a megabyte was returned changed",
    )
    require(
        len((await opened.call("large", size=1_000_000)).text) == 1_000_000,
        "a result of a megabyte has another size",
    )


async def _notifies(opened: _Opened) -> None:
    """notifications of a request reach the `notify` of its exchange before the response, and other
    notifications the `notify` of the Hello
    """
    await opened.open()
    progress: list[list[float]] = [[], []]

    async def counted(steps: list[float]) -> list[float]:
        result = await opened.call(
            "count", lambda method, params: steps.append(params.progress), to=3
        )
        require(result.text == "counted to 3", f"`count` returned {result!r}")
        return list(steps)

    for steps in await asyncio.gather(*map(counted, progress)):
        require(
            steps == [1, 2, 3],
            f"progress 1, 2, 3 was sent, but before the response its exchange received {steps}",
        )
    await opened.call("say", text="psst")
    said = [
        params.data for method, params in opened.notifications if method == "notifications/message"
    ]
    require(
        said == ["psst"], f"the server logged 'psst' once, but the Hello's notify received {said}"
    )


async def _asks(opened: _Opened) -> None:
    """a question of the server reaches the asker of the exchange; in the stateless era it is
    returned as a result
    """
    await opened.open()
    result = await opened.call("ask", question="Who?")
    if era(opened.revision) is Era.HANDSHAKE:
        require(
            isinstance(result, t.CallToolResult) and result.text == "Hello, Ada!",
            f"`ask` returned {result!r}",
        )
        return
    asks = isinstance(result, t.InputRequiredResult) and list(result.input_requests or ()) == [
        "name"
    ]
    require(asks, f"the question must be returned unanswered, but `ask` returned {result!r}")


async def _cancels(opened: _Opened) -> None:
    """cancelling the waiting task cancels its call at the server, and no other call"""
    await opened.open()
    running = asyncio.Event()
    task = asyncio.create_task(
        opened.call("hang", lambda method, params: running.set(), name="one")
    )
    await running.wait()
    task.cancel()
    ended = await asyncio.gather(task, return_exceptions=True)
    require(
        isinstance(ended[0], asyncio.CancelledError),
        f"the waiting task was cancelled, but it ended with {ended[0]!r}",
    )
    names = (await opened.call("cancellations")).structured_content["result"]
    require(names == ["one"], f"the call 'one' was cancelled, but the server saw {names}")


async def _ends(opened: _Opened) -> None:
    """closing ends waiting calls with Unreachable, later calls raise Unreachable, and a second
    close does nothing
    """
    await opened.open()
    running = asyncio.Event()
    task = asyncio.create_task(
        opened.call("hang", lambda method, params: running.set(), name="two")
    )
    await running.wait()
    await opened.transport.aclose()
    await opened.transport.aclose()
    ended = await asyncio.gather(task, return_exceptions=True)
    require(
        isinstance(ended[0], t.Unreachable),
        f"a call that waited when the transport was closed ended with {ended[0]!r}",
    )
    try:
        result = await opened.call("echo", text="?")
    except t.Unreachable:
        return
    raise AssertionError(f"a call after closing returned {result!r}")
