"""What the middleware of an extension can do on either side, and what of an extension can be read
(SEP-3371)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from interlock import (
    Client,
    Context,
    Extension,
    Handler,
    InputRequiredResult,
    McpError,
    Middleware,
    Server,
    types,
)
from interlock.exchange import AnyResult, Exchange
from interlock.tape import Tape

SIDES = ("server", "client")


def wrapping(around: Callable[[Handler, Exchange], Any]) -> Middleware:
    """Middleware of one async function, which gets the handler and the exchange."""

    def layer(handler: Handler) -> Handler:
        async def handle(x: Exchange) -> AnyResult:
            result: AnyResult = await around(handler, x)
            return result

        return handle

    return layer


def make_server(*extensions: Extension) -> Server:
    server = Server("points", extensions=extensions)

    @server.tool
    async def echo(ctx: Context, text: str) -> str:
        """Says it again, with the metadata of the request."""
        return f"{text} {ctx.meta.get('com.example/note')} {ctx.meta.get('com.example/kept')}"

    @server.tool
    async def count(ctx: Context) -> str:
        """Reports three times."""
        for number in (1, 2, 3):
            ctx.progress(number, 3)
            await asyncio.sleep(0)  # what was said leaves at the end of a turn of the loop
            await asyncio.sleep(0)
        return "counted"

    @server.tool
    async def fail() -> str:
        """Fails in the protocol."""
        raise McpError(-42, "No.")

    return server


@contextlib.asynccontextmanager
async def wired(side: str, around: Callable[[Handler, Exchange], Any], **options: Any) -> Any:
    """A client of a server, where the extension of one side has the middleware; both are given two
    extensions."""
    mine = Extension("com.example/points", settings={"of": side}, middleware=[wrapping(around)])
    other = Extension("com.example/other", settings={"most": 3})
    on_server = [mine, other] if side == "server" else [other]
    on_client = [mine, other] if side == "client" else [other]
    server = make_server(*on_server)
    tape = Tape()
    async with Client(server.transport(tap=tape.record), extensions=on_client, **options) as client:
        client_tape: Any = (client, server, tape)
        yield client_tape


@pytest.mark.parametrize("side", SIDES)
async def test_it_acts_before_and_after_or_answers_itself(side: str):
    """Core requests pass it in both directions, and what it answers itself goes no further
    (`SDX-16`, `SDX-17`)."""
    seen: list[str] = []

    async def around(handler: Handler, x: Exchange) -> AnyResult:
        if x.method == "prompts/list":
            return types.ListPromptsResult(prompts=[types.Prompt(name="early")])
        seen.append(f"before {x.method}")
        result = await handler(x)
        seen.append(f"after {x.method}")
        return result

    async with wired(side, around) as (client, _, _):
        seen.clear()
        assert (await client.call_tool("echo", {"text": "a"})).value() == "a None None"
        assert seen == ["before tools/call", "after tools/call"]
        assert [prompt.name for prompt in await client.list_prompts()] == ["early"]
        assert len(seen) == 2


@pytest.mark.parametrize("side", SIDES)
async def test_it_changes_params_results_and_metadata(side: str):
    """The change reaches the other side, and entries of `_meta` that nobody knows survive
    (`SDX-18`, `SDX-19`)."""

    async def around(handler: Handler, x: Exchange) -> AnyResult:
        if x.method != "tools/call":
            return await handler(x)
        meta = {**msgspec.json.decode(x.params.meta), "com.example/note": "added"}
        del meta["com.example/gone"]
        arguments = msgspec.Raw(b'{"text":"changed"}')
        params = replace(x.params, arguments=arguments, meta=msgspec.Raw(msgspec.json.encode(meta)))
        result: Any = await handler(replace(x, params=params))
        return replace(result, meta={**(result.meta or {}), "com.example/label": "new"})

    async with wired(side, around) as (client, _, _):
        meta = {"com.example/kept": "k", "com.example/gone": "g"}
        result = await client.call_tool("echo", {"text": "a"}, meta=meta)
        assert result.value() == "changed added k"
        assert result.meta["com.example/label"] == "new"


async def test_it_answers_with_an_intermediate_result():
    """A question in place of the result; the client answers it, and the answer comes with the retry
    (`SDX-18`)."""

    async def around(handler: Handler, x: Exchange) -> AnyResult:
        if x.method != "tools/call" or x.params.input_responses:
            return await handler(x)
        form = types.ElicitRequestParams(message="Sure?", requested_schema={"type": "object"})
        return InputRequiredResult(input_requests={"sure": types.ElicitRequest(form)})

    asked: list[str] = []

    def elicit(params: types.ElicitRequestParams) -> bool:
        asked.append(params.message)
        return True

    async with wired("server", around, elicit=elicit) as (client, _, _):
        assert (await client.call_tool("echo", {"text": "a"})).value() == "a None None"
    assert asked == ["Sure?"]


@pytest.mark.parametrize("side", SIDES)
async def test_it_sees_who_asks_and_what_the_peer_has(side: str):
    """Capabilities, also of other extensions, and the name of the client; none of it is sent for
    that (`SDX-06`, `SDX-07`, `SDX-20`)."""
    seen: list[Any] = []

    async def around(handler: Handler, x: Exchange) -> AnyResult:
        seen.append(
            (x.caller.capabilities.extensions, x.caller.info.name if x.caller.info else None)
        )
        return await handler(x)

    async with wired(side, around, info=types.Implementation(name="reader", version="1")) as (
        client,
        server,
        _,
    ):
        await client.call_tool("echo", {"text": "a"})
        declared = {"com.example/other": {"most": 3}}
        both = {"com.example/points": {"of": side}, **declared}
        assert seen[-1] == (both if side == "client" else declared, "reader")
        assert client.server_capabilities.extensions == (both if side == "server" else declared)
        assert [e.id for e in (client if side == "client" else server).extensions] == list(both)


@pytest.mark.parametrize("side", SIDES)
async def test_it_suppresses_notifications_as_they_come(side: str):
    """One is left out, the others come in order, each before the next is made, and the call goes on
    (`SDX-21`, `SDX-22`, `SDX-23`)."""
    seen: list[Any] = []

    async def around(handler: Handler, x: Exchange) -> AnyResult:
        outer = x.notify

        def notify(method: str, params: Any) -> None:
            seen.append(f"passes {params.progress:g}")
            if params.progress != 2:
                outer(method, params)

        return await handler(replace(x, notify=notify) if x.method == "tools/call" else x)

    def on_progress(params: types.ProgressNotificationParams) -> None:
        seen.append(f"heard {params.progress:g}")

    async with wired(side, around) as (client, _, _):
        result = await client.call_tool("count", on_progress=on_progress)
        assert result.value() == "counted"
    assert [one for one in seen if one.startswith("passes")] == ["passes 1", "passes 2", "passes 3"]
    assert [one for one in seen if one.startswith("heard")] == ["heard 1", "heard 3"]
    assert seen.index("heard 1") < seen.index("passes 3")


@pytest.mark.parametrize("side", SIDES)
async def test_errors_and_cancellation_pass_through_it_and_it_ends(side: str):
    """An error comes as it is; a call that is cancelled ends the middleware by its `finally`
    (`SDX-20`, `SDX-23`, `SDX-24`)."""
    ended: list[str] = []
    waits = asyncio.Event()

    async def around(handler: Handler, x: Exchange) -> AnyResult:
        if x.method != "tools/call":
            return await handler(x)
        try:
            if x.params.name == "echo":
                waits.set()
                await asyncio.Event().wait()
            return await handler(x)
        except BaseException as bad:
            ended.append(type(bad).__name__)
            raise

    async with wired(side, around) as (client, _, _):
        with pytest.raises(McpError) as refused:
            await client.call_tool("fail")
        assert (refused.value.code, refused.value.message) == (-42, "No.")
        call = asyncio.create_task(client.call_tool("echo", {"text": "a"}))
        await waits.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await client.call_tool("count")).value() == "counted"
    assert ended == ["McpError", "CancelledError"]


async def test_several_extensions_stand_side_by_side():
    """Those that are given can be told on either side before anything is sent (`SDX-02`,
    `SDX-04`)."""
    extensions = [Extension("com.example/a"), Extension("org.example/b")]
    server = make_server(*extensions)
    client = Client(server, extensions=extensions)
    assert [extension.id for extension in server.extensions] == ["com.example/a", "org.example/b"]
    assert [extension.id for extension in client.extensions] == ["com.example/a", "org.example/b"]


async def test_an_extension_that_nobody_uses_changes_no_message():
    """Only the capabilities say that it is there; without extensions they do not mention any
    (`SDX-29`, `EXT-05`)."""

    async def messages(*extensions: Extension) -> list[bytes]:
        tape = Tape()
        server = make_server(*extensions)
        async with Client(server.transport(tap=tape.record)) as client:
            await client.call_tool("echo", {"text": "a"})
            await client.list_tools()
        return [entry.frame for entry in tape]

    plain = await messages()
    extended = await messages(Extension("com.example/a", settings={"b": 1}))
    assert b"extensions" not in b"".join(plain)
    said = b',"extensions":{"com.example/a":{"b":1}}'
    assert [frame.replace(said, b"") for frame in extended] == plain
