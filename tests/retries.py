"""A client of the stateless era that sends its rounds by hand, one retry at a time, for the tests
of questions."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from interlock import Server
from interlock import types as t
from interlock.exchange import AnyResult, Caller, Exchange, Principal, RawResult
from interlock.idempotency import NoPeers
from interlock.input_required import SuspendedCalls
from interlock.store import MemoryStore, RecordStore
from interlock.store.memory.records import MemoryRecords
from interlock.wire.revisions import NEWEST
from interlock.wire.seal import Seal

ABLE = t.ClientCapabilities(
    elicitation=t.ElicitationCapability(form={}, url={}),
    sampling=t.SamplingCapability(tools={}),
    roots=t.RootsCapability(),
)
KEY = b"k" * 32

Tool = Callable[[Exchange], Awaitable[Any]]


def form(message: str) -> t.ElicitRequest:
    """A question to the user."""
    return t.ElicitRequest(
        t.ElicitRequestParams(
            message=message, mode="form", requested_schema={"type": "object", "properties": {}}
        )
    )


def said(result: Any) -> str:
    """The text of a finished call."""
    result = result.decode() if isinstance(result, RawResult) else result
    assert isinstance(result, t.CallToolResult), result
    return result.text


def asked(result: Any) -> dict[str, str]:
    """The questions of a round: message by key."""
    assert isinstance(result, t.InputRequiredResult), result
    assert result.result_type == "input_required"
    questions = result.input_requests or {}
    return {
        key: q.params.message if isinstance(q, t.ElicitRequest) else type(q).__name__
        for key, q in questions.items()
    }


def tool(body: Callable[[Exchange], Awaitable[str]]) -> Tool:
    """The handler for an author's coroutine, like the one that a server builds: its string becomes
    a result."""

    async def run(x: Exchange) -> AnyResult:
        value: Any = await body(x)
        return (
            value
            if isinstance(value, t.Result)
            else t.CallToolResult(content=[t.TextContent(str(value))])
        )

    return run


async def answer_of(x: Exchange, message: str, key: str | None = None) -> str:
    """Ask on an exchange; return the text that the user typed, or the action if there is none."""
    response = await x.asker.ask(form(message), key)
    assert isinstance(response, t.ElicitResult)
    return str((response.content or {}).get("words", response.action))


def words(text: str) -> dict[str, Any]:
    """A client's answer to a form."""
    return {"action": "accept", "content": {"words": text}}


def by_hand(state: str | None, *messages: str) -> t.InputRequiredResult:
    """The result of a tool that manages its rounds itself."""
    return t.InputRequiredResult(
        input_requests={message: form(message) for message in messages} or None, request_state=state
    )


async def manual(x: Exchange) -> Any:
    """A tool of that kind: its state records its progress."""
    given = {key: msgspec.json.decode(raw) for key, raw in (x.params.input_responses or {}).items()}
    match x.params.request_state:
        case None:
            return by_hand("one", "first?")
        case "one":
            return (
                by_hand(f"two {given['first?']['content']['words']}", "second?")
                if "first?" in given
                else by_hand("one", "first?")
            )
        case state:
            return f"{state} {given['second?']['content']['words']}"


class Retries:
    """One call and its retries.

    `told` are the notifications of the server, each with the number of its request.
    """

    def __init__(
        self,
        rounds: SuspendedCalls,
        body: Callable[[Exchange], Awaitable[Any]],
        *,
        arguments: Any = None,
        principal: str = "",
        idempotent: bool = False,
    ) -> None:
        self.is_idempotent = idempotent
        self.rounds = rounds
        self.body = tool(body)
        who = Principal(subject=principal) if principal else None
        self.caller = Caller(NEWEST, ABLE, principal=who)
        self.params = t.CallToolRequestParams(
            name="x", arguments=Raw(json.dumps(arguments or {}).encode())
        )
        self.sent = 0
        self.told: list[tuple[int, Any]] = []

    async def call(
        self, responses: Any = None, state: str | None = None, **changes: Any
    ) -> AnyResult:
        """Send the call; `responses` are the answers by key, `changes` other changes of the
        exchange."""
        self.sent += 1
        number = self.sent
        raw = (
            None
            if responses is None
            else {key: Raw(json.dumps(value).encode()) for key, value in responses.items()}
        )
        params = replace(self.params, input_responses=raw, request_state=state)
        x = Exchange(
            "tools/call",
            params,
            self.caller,
            notify=lambda method, what: self.told.append((number, what)),
        )
        layer = self.rounds.around(self.body, is_idempotent=lambda x: self.is_idempotent)
        return await layer(replace(x, **changes))

    async def retry(self, result: Any, *answers: str, **responses: Any) -> AnyResult:
        """Answer the questions of a round, in order or by key, and send the call again."""
        keys = list(result.input_requests or {})
        given = dict(zip(keys, map(words, answers), strict=False)) | responses
        return await self.call(given, result.request_state)


def share_records(*servers: Server) -> None:
    """Let servers share their records, like workers with one store."""
    records = MemoryStore().records
    for server in servers:
        server.share_calls(records, NoPeers())


def rounds(
    *,
    suspend: bool = True,
    keys: tuple[bytes, ...] = (KEY,),
    seconds: float = 900.0,
    records: RecordStore | None = None,
    **more: Any,
) -> SuspendedCalls:
    """The input-required layer of a server: two of them with the same keys and records stand for
    two workers, or for one server before and after a restart."""
    return SuspendedCalls(
        Seal(list(keys), seconds=seconds), records or MemoryRecords(), suspend=suspend, **more
    )
