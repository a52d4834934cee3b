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
from .promises import promise_of

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
                async with asyncio.timeout(patience):
                    await step(_Opened(transport, revision))
            except AssertionError as bad:
                raise AssertionError(
                    f"under {revision} a client transport promises that {promise_of(step)}: {bad}"
                ) from None
            except TimeoutError:
                words = (
                    f"under {revision} a client transport promises that {promise_of(step)}: it"
                    " still"
                    f" waits after {patience:g} seconds"
                )
                raise AssertionError(words) from None
            except Exception as bad:
                raise AssertionError(
                    f"under {revision} a client transport promises that {promise_of(step)}: it"
                    " raised"
                    f" {bad!r}"
                ) from bad
            finally:
                await transport.aclose()


class _Opened:
    """A transport, the Hello it was opened with, and the notifications that it has received."""

    def __init__(self, transport: ClientTransport, revision: str) -> None:
        self.transport = transport
        self.revision = revision
        self.heard: list[tuple[str, Any]] = []
        self.answers = Answers(elicit=lambda params: {"value": "Ada"}, url=False)
        self.caller = Caller(revision, CAPABILITIES, INFO)

    async def open(self) -> None:
        hello = Hello(
            info=INFO,
            capabilities=CAPABILITIES,
            asker=self.answers,
            notify=lambda method, params: self.heard.append((method, params)),
            revisions=(self.revision,),
        )
        opened = await self.transport.open(hello)
        _require(
            opened.revision == self.revision,
            f"only {self.revision} was allowed, yet {opened.revision} was agreed on",
        )
        name = opened.info.name if opened.info is not None else None
        _require(
            name == "interlock-probe", f"the server is interlock-probe, yet `open` says {name!r}"
        )

    async def call(self, tool: str, notify: Notify = silent, **arguments: Any) -> Any:
        """Call a tool of the probe and return its result."""
        params = t.CallToolRequestParams(name=tool, arguments=Raw(msgspec.json.encode(arguments)))
        caller = msgspec.structs.replace(self.caller, log_level="debug")
        return await self.transport(
            Exchange("tools/call", params, caller, notify=notify, asker=self.answers)
        )


async def _answers(opened: _Opened) -> None:
    """a request is answered, and an error of the server is raised as McpError"""
    await opened.open()
    result = await opened.call("echo", text="Grüße")
    _require(
        isinstance(result, t.CallToolResult) and result.text == "Grüße", f"`echo` gave {result!r}"
    )
    try:
        result = await opened.call("no such tool")
    except t.McpError as bad:
        _require(
            bad.code == t.INVALID_PARAMS, f"an unknown tool is error -32602, yet it was {bad!r}"
        )
    else:
        raise AssertionError(f"an unknown tool is an error, yet the result was {result!r}")


async def _answers_many(opened: _Opened) -> None:
    """many requests at once each get their own answer"""
    await opened.open()
    results = await asyncio.gather(*(opened.call("echo", text=str(n)) for n in range(200)))
    texts = [result.text for result in results]
    wrong = [(n, text) for n, text in enumerate(texts) if text != str(n)]
    _require(
        not wrong, f"{len(wrong)} of 200 got another's answer, such as (asked, got) = {wrong[:1]}"
    )


async def _carries_large(opened: _Opened) -> None:
    """a megabyte goes through in both directions"""
    await opened.open()
    text = "ü" * 500_000
    _require((await opened.call("echo", text=text)).text == text, "a megabyte came back changed")
    _require(
        len((await opened.call("large", size=1_000_000)).text) == 1_000_000,
        "a result of a megabyte came back changed",
    )


async def _notifies(opened: _Opened) -> None:
    """notifications reach the `notify` of the exchange they belong to before its answer, and other
    ones that of the Hello
    """
    await opened.open()
    heard: list[list[float]] = [[], []]

    async def counted(steps: list[float]) -> list[float]:
        result = await opened.call(
            "count", lambda method, params: steps.append(params.progress), to=3
        )
        _require(result.text == "counted to 3", f"`count` gave {result!r}")
        return list(steps)

    for steps in await asyncio.gather(*map(counted, heard)):
        _require(
            steps == [1, 2, 3],
            f"the progress of a call was 1, 2, 3, yet by its answer its exchange had heard {steps}",
        )
    await opened.call("say", text="psst")
    said = [params.data for method, params in opened.heard if method == "notifications/message"]
    _require(
        said == ["psst"], f"the server logged 'psst' once, yet the Hello's notify heard {said}"
    )


async def _asks(opened: _Opened) -> None:
    """a question of the server reaches the asker of the exchange, or comes back as a result where
    the era has it so
    """
    await opened.open()
    result = await opened.call("ask", question="Who?")
    if era(opened.revision) is Era.HANDSHAKE:
        _require(
            isinstance(result, t.CallToolResult) and result.text == "Hello, Ada!",
            f"`ask` gave {result!r}",
        )
        return
    asks = isinstance(result, t.InputRequiredResult) and list(result.input_requests or ()) == [
        "name"
    ]
    _require(
        asks, f"the question comes back as it is, for others to answer, yet `ask` gave {result!r}"
    )


async def _cancels(opened: _Opened) -> None:
    """cancelling the waiting task cancels the call at the server, and leaves the rest alone"""
    await opened.open()
    running = asyncio.Event()
    task = asyncio.create_task(
        opened.call("hang", lambda method, params: running.set(), name="one")
    )
    await running.wait()
    task.cancel()
    ended = await asyncio.gather(task, return_exceptions=True)
    _require(
        isinstance(ended[0], asyncio.CancelledError),
        f"the waiting task was cancelled, yet it ended with {ended[0]!r}",
    )
    names = (await opened.call("cancellations")).structured_content["result"]
    _require(names == ["one"], f"the call 'one' was cancelled, yet the server saw {names}")


async def _ends(opened: _Opened) -> None:
    """closing wakes whoever waits with Unreachable, twice is no fault, and after it every call is
    Unreachable
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
    _require(
        isinstance(ended[0], t.Unreachable),
        f"a call that waits when the transport is closed ends with {ended[0]!r}",
    )
    try:
        result = await opened.call("echo", text="?")
    except t.Unreachable:
        return
    raise AssertionError(f"a call after closing gave {result!r}")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)
