"""The sealed state of the newest revision: it is bound to its request, and a false one is an error,
not a second question."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from interlock import (
    Client,
    Context,
    InputRequiredResult,
    McpError,
    Principal,
    QuestionSettings,
    Server,
)
from interlock import types as t
from interlock.exchange import Exchange
from interlock.testing import Clock, connect
from interlock.wire.revisions import NEWEST, R5
from tests.retries import share_records
from tests.wired.cells import Cell, since
from tests.wired.server import make_server

pytestmark = pytest.mark.asyncio(loop_scope="session")
stateless = since(R5)

YES = {"value": {"action": "accept", "content": {"value": True}}}


def call(name: str, arguments: dict[str, Any], **more: Any) -> t.CallToolRequestParams:
    """The params of a tool call."""
    return t.CallToolRequestParams(name=name, arguments=Raw(msgspec.json.encode(arguments)), **more)


async def put(client: Client, params: Any, method: str = "tools/call") -> Any:
    """Carry one request to the server and back, and no further: questions come back as they are."""
    return await client._transport(Exchange(method, params, client.caller))


async def asked(client: Client, name: str, arguments: dict[str, Any]) -> tuple[str, str]:
    """The key of the only question that a tool asks, and the state that comes with it."""
    result = await put(client, call(name, arguments))
    assert isinstance(result, InputRequiredResult)
    (key,) = result.input_requests or {}
    assert result.request_state
    return key, result.request_state


def accepted(key: str, **content: Any) -> dict[str, Raw]:
    """The answer to one question."""
    return {key: Raw(msgspec.json.encode({"action": "accept", "content": content}))}


@stateless
async def test_a_round_by_hand(cell: Cell):
    """A retry brings the answers and the state, with a new id, and gets the next question or the
    result (`MRT-14`, `MRT-18`)."""
    key, state = await asked(cell.client, "book", {"day": "Monday"})
    second = await put(
        cell.client,
        call("book", {"day": "Monday"}, input_responses=accepted(key, row=3), request_state=state),
    )
    assert isinstance(second, InputRequiredResult)
    (other,) = second.input_requests or {}
    assert other != key
    assert second.request_state != state
    done = await put(
        cell.client,
        call(
            "book",
            {"day": "Monday"},
            input_responses=accepted(other, confirm=True),
            request_state=second.request_state,
        ),
    )
    assert done.text == "Booked A3 for Monday."


@stateless
@pytest.mark.parametrize("change", ["first", "middle", "last", "cut", "made up", "empty"])
async def test_tampered_states(cell: Cell, change: str):
    """A state that was changed is the error -32602 (`MRT-06`, `MRT-07`)."""
    key, state = await asked(cell.client, "book", {"day": "Monday"})
    at = {"first": 0, "middle": len(state) // 2, "last": len(state) - 2}.get(change)
    if at is not None:
        false = state[:at] + ("A" if state[at] != "A" else "B") + state[at + 1 :]
    else:
        false = {"cut": state[:-8], "made up": "not a state", "empty": ""}[change]
    with pytest.raises(McpError, match="requestState") as caught:
        await put(
            cell.client,
            call(
                "book", {"day": "Monday"}, input_responses=accepted(key, row=3), request_state=false
            ),
        )
    assert caught.value.code == t.INVALID_PARAMS


@stateless
@pytest.mark.parametrize(
    "method, params",
    [
        ("tools/call", call("book", {"day": "Tuesday"})),
        ("tools/call", call("book_in_thread", {"day": "Monday"})),
        ("tools/call", call("charge", {"name": "x"})),
        ("prompts/get", t.GetPromptRequestParams(name="curious")),
        ("resources/read", t.ReadResourceRequestParams(uri="book://1/ask")),
    ],
)
async def test_foreign_states(cell: Cell, method: str, params: Any):
    """A state is bound to its method, name and arguments: with another request it is an error
    (`MRT-08`, `MRT-17`)."""
    _, state = await asked(cell.client, "book", {"day": "Monday"})
    false = msgspec.structs.replace(params, request_state=state)
    if getattr(params, "name", None) == "book_in_thread":
        false = msgspec.structs.replace(call("book_in_thread", {}), request_state=state)
    with pytest.raises(McpError, match="requestState") as caught:
        await put(cell.client, false, method)
    assert caught.value.code == t.INVALID_PARAMS


@stateless
async def test_other_arguments_in_another_order(cell: Cell):
    """The same arguments in another order are the same request."""
    key, state = await asked(cell.client, "book", {"day": "Monday"})
    raw = Raw(b'{ "day" : "Monday" }')
    params = t.CallToolRequestParams(
        name="book", arguments=raw, input_responses=accepted(key, row=3), request_state=state
    )
    assert isinstance(await put(cell.client, params), InputRequiredResult)


@stateless
async def test_missing_and_unknown_answers(cell: Cell):
    """A needed answer that is missing is asked for again; unknown keys are ignored (`MRT-21`,
    `MRT-22`)."""
    key, state = await asked(cell.client, "book", {"day": "Monday"})
    again = await put(
        cell.client,
        call(
            "book",
            {"day": "Monday"},
            input_responses=accepted("nobody asked", row=1),
            request_state=state,
        ),
    )
    assert isinstance(again, InputRequiredResult)
    assert list(again.input_requests or ()) == [key]
    second = await put(
        cell.client,
        call(
            "book",
            {"day": "Monday"},
            input_responses=accepted(key, row=9),
            request_state=again.request_state,
        ),
    )
    assert isinstance(second, InputRequiredResult)
    assert (
        next(iter((second.input_requests or {}).values())).params.message == "Book A9 for Monday?"
    )  # type: ignore[union-attr]  # a form


@stateless
@pytest.mark.parametrize(
    "answer", [b"null", b"7", b'{"action":"perhaps"}', b'{"content":{}}', b"[]"]
)
async def test_malformed_answers(cell: Cell, answer: bytes):
    """A malformed answer is an error, and never completes the call (`MRT-20`, `CFQ-06`)."""
    cell.excused = "client"
    key, state = await asked(cell.client, "book", {"day": "Monday"})
    with pytest.raises(McpError, match="inputResponses") as caught:
        await put(
            cell.client,
            call(
                "book", {"day": "Monday"}, input_responses={key: Raw(answer)}, request_state=state
            ),
        )
    assert caught.value.code == t.INVALID_PARAMS


@stateless
async def test_a_retry_twice(cell: Cell):
    """The same retry sent twice does not run what happens once a second time, whichever of the two
    comes first (`MRT-09`, `CAN-08`)."""
    name = f"twice {len(cell.tape)}"
    key, state = await asked(cell.client, "charge", {"name": name})
    retry = call(
        "charge", {"name": name}, input_responses=accepted(key, value=True), request_state=state
    )
    one, other = await asyncio.gather(put(cell.client, retry), put(cell.client, retry))
    assert isinstance(one, InputRequiredResult)
    assert isinstance(other, InputRequiredResult)
    (next_key,) = one.input_requests or {}
    done = await put(
        cell.client,
        call(
            "charge",
            {"name": name},
            input_responses=accepted(next_key, value=True),
            request_state=other.request_state,
        ),
    )
    assert done.text.startswith("[1,")


@stateless
async def test_another_worker_goes_on(cell: Cell):
    """A state that another process gave is good as long as both have the key, where once or more
    is enough: the tool runs again with the answers (`RPC-25`, `MRT-24`)."""
    key, state = await asked(cell.client, "book", {"day": "Monday"})
    server = make_server(suspend=False)
    async with connect(server, revision=NEWEST, answers=cell.client._answers) as elsewhere:
        second = await put(
            elsewhere,
            call(
                "book", {"day": "Monday"}, input_responses=accepted(key, row=3), request_state=state
            ),
        )
        assert isinstance(second, InputRequiredResult)
        (other,) = second.input_requests or {}
        params = call(
            "book",
            {"day": "Monday"},
            input_responses=accepted(other, confirm=True),
            request_state=second.request_state,
        )
        assert (await put(elsewhere, params)).text == "Booked A3 for Monday."


@stateless
async def test_a_state_of_another_memory_is_refused(cell: Cell):
    """A process that has the key, but not the records, does not know whether it was used."""
    key, state = await asked(cell.client, "book", {"day": "Monday"})
    retry = call(
        "book", {"day": "Monday"}, input_responses=accepted(key, row=3), request_state=state
    )
    async with connect(make_server(), revision=NEWEST, answers=cell.client._answers) as elsewhere:
        with pytest.raises(McpError, match="may have happened") as caught:
            await put(elsewhere, retry)
    assert caught.value.data == {"reason": "may_have_happened"}


@stateless
async def test_what_was_done_elsewhere_is_not_done_again(cell: Cell):
    """What `ctx.once` did under one worker is not done again under the next one (`MRT-24`)."""
    server = make_server(suspend=False)
    name = f"elsewhere {len(cell.tape)}"
    key, state = await asked(cell.client, "charge", {"name": name})
    async with connect(server, revision=NEWEST, answers=cell.client._answers) as elsewhere:
        second = await put(
            elsewhere,
            call(
                "charge",
                {"name": name},
                input_responses=accepted(key, value=True),
                request_state=state,
            ),
        )
        (other,) = second.input_requests
        params = call(
            "charge",
            {"name": name},
            input_responses=accepted(other, value=True),
            request_state=second.request_state,
        )
        assert (await put(elsewhere, params)).text == "[1,1,2]"
        assert server.lifespan_state.noted == {f"{name} runs": 2, f"{name} second": 1}


async def test_the_state_of_another_principal():
    """A state is bound to whom it was given: with another principal it is an error (`MRT-08`,
    `SEC-05`)."""
    server = make_server()
    for principal in (Principal(subject="ada"), None):
        async with Client(
            server.transport(principal=principal), revision=NEWEST, elicit=lambda params: True
        ) as client:
            if principal is not None:
                key, state = await asked(client, "book", {"day": "Monday"})
                continue
            with pytest.raises(McpError, match="requestState"):
                await put(
                    client,
                    call(
                        "book",
                        {"day": "Monday"},
                        input_responses=accepted(key, row=3),
                        request_state=state,
                    ),
                )


@pytest.mark.parametrize("suspend", [True, False], ids=["suspended", "replayed"])
async def test_expired_states(suspend: bool):
    """A state is good for as long as the server says, and no longer (`MRT-08`)."""
    clock = Clock()
    async with connect(
        make_server(), revision=NEWEST, suspend=suspend, clock=clock, elicit=lambda params: True
    ) as client:
        key, state = await asked(client, "book", {"day": "Monday"})
        clock.advance(61)
        with pytest.raises(McpError, match="expired") as caught:
            await put(
                client,
                call(
                    "book",
                    {"day": "Monday"},
                    input_responses=accepted(key, row=3),
                    request_state=state,
                ),
            )
        assert caught.value.code == t.INVALID_PARAMS


@pytest.mark.parametrize("suspend", [True, False])
@pytest.mark.parametrize(
    "name, version, good", [("shop", "2.0", True), ("shop", "1.0", True), ("other", "1.0", False)]
)
async def test_a_state_is_good_at_servers_of_the_same_name_only(
    name: str, version: str, good: bool, suspend: bool
):
    """Several services of one machine may have the same key in their environment; what one
    confirmed is not for another."""

    def server(name: str, version: str) -> Server:
        made = Server(
            name, version, questions=QuestionSettings(state_keys=[b"k" * 32], suspend=suspend)
        )

        @made.tool
        async def buy(ctx: Context) -> str:
            return "bought" if await ctx.confirm("Buy it?") else "not bought"

        return made

    one = server("shop", "1.0")
    other = server(name, version)
    share_records(one, other)
    async with (
        Client(one, elicit=lambda question: True) as first,
        Client(other, elicit=lambda question: True) as second,
    ):
        key, state = await asked(first, "buy", {})
        answers = {key: Raw(b'{"action":"accept","content":{"confirm":true}}')}
        retry = call("buy", {}, input_responses=answers, request_state=state)
        if good:
            result = await put(second, retry)
            assert result.text == "bought"
        else:
            with pytest.raises(McpError, match="Invalid requestState"):
                await put(second, retry)
