"""The tools of the everything server: each is there, says what it is, and gives what it says."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from typing import Any

import msgspec
import pytest

from interlock import (
    Answers,
    Caller,
    Client,
    Context,
    Exchange,
    McpError,
    Server,
    TimedOut,
    ToolError,
    types,
)
from interlock.schema import compile as compile_schema
from interlock_servers.everything import server_of
from interlock_servers.everything.output_schemas import OUTPUTS
from interlock_servers.everything.progress import count_primes, sleep_in_thread
from interlock_servers.everything.schemas import DIALECTS, VARIANTS
from tests.servers.everything.scripted_client import APPS, CALLS, model, person

ALL_VARIANTS = {**VARIANTS, **DIALECTS}
CHANGING = {
    "book_table",
    "tick",
    "grow",
    "shrink",
    "start_clock",
    "wait_for_cancel",
    "open_account",
    "finish_visit",
}
GIVES_CONTENT = {
    "echo",
    "nothing",
    "some_bytes",
    "picture",
    "sound",
    "document",
    "links",
    "mixture",
    "annotated",
    "whole_result",
    "convert",
    "broken",
    "fail",
    "fail_with_content",
    "refuse",
    "too_slow",
    "one_at_a_time",
    "with_scope",
    "work",
    "count_up",
    "count_down",
    "log_levels",
    "sleep",
    "sleep_in_thread",
    "come_back_later",
    "wait_for_cancel",
    "book_table",
    "order_pizza",
    "ask_as_tasks",
    "ask_in_a_hurry",
    "ask_by_hand",
    "sign_in",
    "visit_page",
    "open_account",
    "finish_visit",
    "ask_model",
    "show_model",
    "talk_to_model",
    "read_counter",
    "start_clock",
    "grow",
    "shrink",
    "greet",
    "slow_compute",
    "failing_job",
    "protocol_error_job",
    "confirm_delete",
    "multi_input",
    "test_tool_with_task",
}


async def test_nobody_who_uses_it_is_broken(server: Server, interlock_catalogue: Any) -> None:
    """Tools, prompts, resources and templates are those of the snapshot (`TOL-02`, `RES-02`,
    `PRM-02`).
    """
    async with Client(server, answers=Answers(extensions=APPS)) as client:
        assert not (await interlock_catalogue(client, "everything_catalogue.json")).breaking


async def test_no_tool_is_left_out(client: Client) -> None:
    """The table knows every tool; those that change something say so, and those that give data have
    a schema (`TOL-02`, `TOL-10`).
    """
    tools = await client.list_tools()
    assert {tool.name for tool in tools} == set(CALLS)
    for tool in tools:
        hints = tool.annotations
        assert hints is not None, tool.name
        assert hints.read_only_hint is (tool.name not in CHANGING), tool.name
        if client.revision == "2026-07-28":
            assert (tool.output_schema is None) == (tool.name in GIVES_CONTENT), tool.name


@pytest.mark.parametrize("name", [name for name in CALLS if name not in CHANGING])
async def test_hints_are_true(server: Server, name: str) -> None:
    """What only reads leaves the server's board as it was, and may be called again with the same
    outcome (`TOL-04`).
    """
    async with Client(
        server, answers=Answers(elicit=person, sample=model, roots=["/srv"])
    ) as client:
        before = msgspec.to_builtins(server.lifespan_state)
        first = await outcome(client, name)
        assert msgspec.to_builtins(server.lifespan_state) == before
        again = await outcome(client, name)
        if name not in (
            "roll_dice",
            "roll_again",
            "broken",
            "contradict",
        ):  # chance, and a reference
            assert again == first
        assert len(server.tools) == len(CALLS)


async def outcome(client: Client, name: str, arguments: dict[str, Any] | None = None) -> Any:
    """The result of a tool, or its error."""
    try:
        result = await client.call_tool(name, CALLS[name][0] if arguments is None else arguments)
    except McpError as bad:
        return bad.code, bad.message
    return result.text, msgspec.to_builtins(result.content), result.structured_content


@pytest.mark.parametrize("name", sorted(CHANGING - {"wait_for_cancel"}))
async def test_what_changes_something_says_so(server: Server, name: str) -> None:
    """Each of these leaves something behind, and does so again (`TOL-04`)."""
    async with Client(server, revision="2025-11-25", elicit=person) as client:
        given = [CALLS[name][0]] * 2
        if name == "finish_visit":
            given = [{"id": await asked_to_visit(client)} for _ in range(2)]
        if name == "shrink":
            await client.call_tool("grow")
            await client.call_tool("grow")
        seen = [board_of(server)]
        for arguments in given:
            await outcome(client, name, arguments)
            if server.lifespan_state.ticking is not None:
                await server.lifespan_state.ticking
            seen.append(board_of(server))
        assert len(set(seen)) == 3


def board_of(server: Server) -> Any:
    """What the server remembers."""
    board = {
        name: value for name, value in vars(server.lifespan_state).items() if name != "ticking"
    }
    return json.dumps(msgspec.to_builtins(board)), len(server.tools)


async def asked_to_visit(client: Client) -> str:
    """The id of the page that `open_account` sends to."""
    with pytest.raises(McpError) as refused:
        await client.call_tool("open_account")
    return str(refused.value.data["elicitations"][0]["elicitationId"])


@pytest.mark.parametrize("name", [name for name, (_, text) in CALLS.items() if text is not None])
async def test_each_kind_of_result(client: Client, name: str) -> None:
    """Each tool gives the text of the table, and data where its type says so (`TOL-09`,
    `TOL-11`).
    """
    arguments, text = CALLS[name]
    await client.list_tools()  # so that results are checked against the output schemas
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.text
    assert result.text == text


async def test_data_comes_as_data(client: Client) -> None:
    """Numbers, truth values, lists and objects are structured content, and words are not the same
    once more.
    """
    assert (await client.call_tool("add", {"a": 2, "b": 3})).value() == 5
    assert (await client.call_tool("is_even", {"number": 2})).value() is True
    assert (await client.call_tool("measure", {"place": "Rome"})).value() == {
        "place": "Rome",
        "celsius": 4.0,
        "sky": "cloudy",
    }
    assert (await client.call_tool("list_roots")).value() == ["file:///srv"]
    assert sorted((await client.call_tool("side_by_side", {"tasks": 3})).value()) == [1, 2, 3]


@pytest.mark.parametrize(
    "name, data",
    [
        ("list_primes", [2, 3, 5, 7, 11]),
        ("name_season", "winter"),
        ("halve", 1.5),
        ("is_leap_year", False),
        ("middle_name", None),
        ("draw_shape", {"kind": "circle", "radius": 2.0}),
        (
            "draw_tree",
            {
                "root": {
                    "name": "A",
                    "children": [{"name": "A1", "children": []}, {"name": "A2", "children": []}],
                }
            },
        ),
    ],
)
async def test_output_schemas_of_each_kind(client: Client, name: str, data: Any) -> None:
    """Arrays and single values in 2026-07-28; before it what is no object is not sent, and the
    words are (`TOL-06`, `TOL-07`).
    """
    schema = OUTPUTS[name][2]
    listed = next(tool for tool in await client.list_tools() if tool.name == name)
    result = await client.call_tool(name, CALLS[name][0])
    assert result.text == CALLS[name][1]
    if client.revision == "2026-07-28" or schema["type"] == "object":
        assert listed.output_schema == schema
        assert result.structured_content == data
    else:
        assert listed.output_schema is None
        assert result.structured_content is msgspec.UNSET


@pytest.mark.parametrize("name", ALL_VARIANTS)
async def test_input_schemas_of_each_kind(client: Client, name: str) -> None:
    """Each is listed as it was written, takes what fits and says what does not (`JSC-01`, `TOL-08`,
    `TOL-16`).
    """
    variant = ALL_VARIANTS[name]
    listed = next(tool for tool in await client.list_tools() if tool.name == name)
    assert listed.input_schema == variant.schema
    assert (await client.call_tool(name, variant.fits)).value() == {"arguments": variant.fits}
    for misfit in variant.misfits:
        refused = await client.call_tool(name, misfit)
        assert refused.is_error, misfit
        assert name in refused.text


KEYWORDS = [
    "$schema",
    "$id",
    "$ref",
    "$defs",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$comment",
    "type",
    "enum",
    "const",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "writeOnly",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "items",
    "prefixItems",
    "contains",
    "minContains",
    "maxContains",
    "minItems",
    "maxItems",
    "uniqueItems",
    "unevaluatedItems",
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
    "oneOf",
    "anyOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
]


def test_no_keyword_is_left_out() -> None:
    """Each keyword of JSON Schema 2020-12 that says something of a value stands in a schema of a
    tool (`JSC-01`).
    """
    found: set[str] = set()

    def walk(schema: Any) -> None:
        if isinstance(schema, dict):
            found.update(schema)
            for value in schema.values():
                walk(value)
        elif isinstance(schema, list):
            for value in schema:
                walk(value)

    for variant in VARIANTS.values():
        compile_schema(variant.schema)
        walk(variant.schema)
    assert set(KEYWORDS) - found == set()


async def test_media_and_links(client: Client) -> None:
    """Pictures, sound, files, bytes and links are content blocks of their kinds (`TOL-12`)."""
    kinds = {
        name: [type(block) for block in (await client.call_tool(name)).content]
        for name in ("picture", "sound", "document", "links")
    }
    assert kinds == {
        "picture": [types.ImageContent],
        "sound": [types.AudioContent],
        "document": [types.EmbeddedResource],
        "links": [types.ResourceLink, types.ResourceLink],
    }
    (picture,) = (await client.call_tool("picture")).content
    assert isinstance(picture, types.ImageContent)
    assert (picture.mime_type, b64decode(picture.data)[:4]) == ("image/png", b"\x89PNG")
    (held,) = (await client.call_tool("some_bytes", {"length": 3})).content
    assert isinstance(held, types.EmbeddedResource)
    assert b64decode(held.resource.blob or "") == b"\0\1\2"
    for block in (await client.call_tool("annotated")).content:
        assert not isinstance(block, types.UnknownContent)
        assert block.annotations is not None
        assert block.annotations.audience in (["user"], ["assistant"])
        assert block.meta == {"example.com/made-by": "everything"}


@pytest.mark.parametrize("name", ["roll_dice", "roll_again"])
async def test_a_tool_with_an_app(client: Client, name: str) -> None:
    """It says in words what its app would show, and names a page that is there and is one
    (`APP-03`, `APP-04`, `APP-05`).
    """
    tool = next(tool for tool in await client.list_tools() if tool.name == name)
    ui = (tool.meta or {})["ui"]
    assert ui.get("visibility", ["model", "app"]) == (
        ["app"] if name == "roll_again" else ["model", "app"]
    )
    result = await client.call_tool(name, {"count": 4})
    rolled = result.structured_content
    assert isinstance(rolled, dict)
    assert len(rolled["dice"]) == 4
    assert sum(rolled["dice"]) == rolled["total"]
    assert result.text == f"Rolled {', '.join(map(str, rolled['dice']))}: {rolled['total']} in all."
    (page,) = (await client.read_resource(ui["resourceUri"])).contents
    assert (page.uri, page.mime_type) == (ui["resourceUri"], "text/html;profile=mcp-app")
    assert (page.text or "").startswith("<!doctype html>")


@pytest.mark.parametrize(
    "name, arguments, words",
    [
        ("divide", {"a": 1, "b": 0}, "Division by zero is not possible"),
        ("convert", {"celsius": 1, "fahrenheit": 1}, "convert"),
        ("add", {"a": "one", "b": 2}, "a"),
        ("fail", {"words": "No."}, "No."),
        ("fail_with_content", {}, "This failed in two ways.\nThe second one failed too."),
        ("too_slow", {}, "longer than 0.1 seconds"),
        ("sleep", {"seconds": 3000}, "At most 60 seconds"),
        ("sleep_in_thread", {"seconds": 3000}, "At most 60 seconds"),
        ("start_clock", {"ticks": 100, "seconds": 5}, "60 seconds at most"),
        ("finish_visit", {"id": "none"}, "Call open_account first"),
        ("shrink", {}, "Call grow first"),
    ],
)
async def test_failures_are_words_for_the_model(
    client: Client, name: str, arguments: dict[str, Any], words: str
) -> None:
    """A tool's misfortune is a result that says so (`TOL-15`, `TOL-16`)."""
    result = await client.call_tool(name, arguments, timeout=20)
    assert result.is_error
    assert words in result.text
    with pytest.raises(ToolError):
        result.value()


@pytest.mark.parametrize(
    "kind, code",
    [
        ("invalid request", -32600),
        ("method not found", -32601),
        ("invalid params", -32602),
        ("internal error", -32603),
        ("of its own", -31999),
    ],
)
async def test_errors_with_a_code(client: Client, kind: str, code: int) -> None:
    """The error of the protocol arrives with its code and its data (`ERR-01`)."""
    with pytest.raises(McpError) as refused:
        await client.call_tool("refuse", {"kind": kind})
    assert (refused.value.code, refused.value.data) == (code, {"kind": kind})


@pytest.mark.parametrize("name", ["broken", "contradict"])
async def test_what_nobody_foresaw_stays_inside(
    client: Client, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    """The client gets a reference, the log the reason: of a fault, and of a promise that was not
    kept (`ERR-20`, `TOL-09`).
    """
    result = await client.call_tool(name)
    assert result.is_error
    assert "log only" not in result.text
    assert result.text.rpartition("reference ")[2].rstrip(").") in caplog.text


async def test_cancellation(client: Client) -> None:
    """A call that nobody waits for ends, in place and in a thread, and the server goes on
    (`CAN-05`).
    """
    for name in ("sleep", "sleep_in_thread"):
        with pytest.raises(TimedOut):
            await client.call_tool(name, {"seconds": 60}, timeout=0.05)
    assert (await client.call_tool("cancellations")).value() == 0
    begun = asyncio.Event()
    call = asyncio.create_task(
        client.call_tool("wait_for_cancel", on_progress=lambda progress: begun.set())
    )
    async with asyncio.timeout(30):
        await begun.wait()
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert (await client.call_tool("cancellations")).value() == 1


async def test_threads_that_nobody_waits_for(server: Server) -> None:
    """What works in a thread looks whether anybody still waits, and stops where nobody does
    (`CAN-05`).
    """
    params = types.CallToolRequestParams(name="sleep_in_thread")
    ctx: Any = Context(
        Exchange("tools/call", params, Caller("2026-07-28")),
        server.environment,
        asyncio.get_running_loop(),
    )
    await server.enter()
    try:
        assert sleep_in_thread(0.01, ctx) == "Slept for 0.01 seconds."
        assert count_primes(ctx, 100) == 25
        ctx.abandon()
        assert sleep_in_thread(1, ctx) == "The call was cancelled."
        assert count_primes(ctx, 100) == 0
    finally:
        await server.leave()


async def test_limits(client: Client) -> None:
    """One call runs, one waits, a third is refused."""
    calls = [asyncio.create_task(client.call_tool("one_at_a_time")) for _ in range(3)]
    done = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(one).__name__ for one in done] == ["CallToolResult", "CallToolResult", "McpError"]
    assert "busy" in str(done[2])


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
async def test_progress_and_logs(revision: str, server: Server) -> None:
    """Progress comes to who asked for it, with a total and without; messages from the wanted level
    on (`PRG-02`, `LOG-03`, `LOG-06`).
    """
    seen: list[Any] = []
    said: list[Any] = []
    receive: Any = lambda p: seen.append((p.progress, p.total, p.message))  # noqa: E731 - as short as it is
    async with Client(
        server,
        revision=revision,
        log_level="warning",
        on_log=lambda p: said.append((p.level, p.logger)),
    ) as client:
        await client.call_tool("work", {"steps": 1}, on_progress=receive)
        await client.call_tool("count_up", {"to": 2}, on_progress=receive)
        await client.call_tool("count_down", {"start": 1}, on_progress=receive)
        await client.call_tool("log_levels")
        assert seen == [(1, 1, "step 1 of 1"), (1, None, None), (2, None, None), (1, 1, "1")]
        seen.clear()
        await client.call_tool("count_primes", {"most": 1000}, on_progress=receive)
        await client.call_tool("side_by_side", {"tasks": 3}, on_progress=receive)
    assert [progress for progress, total, _ in seen if total == 31] == [
        2,
        3,
        5,
        7,
        11,
        13,
        17,
        19,
        23,
        29,
        31,
    ]
    assert [progress for progress, total, _ in seen if total == 3] == [1, 2, 3]
    assert said == [
        (level, "levels") for level in ("warning", "error", "critical", "alert", "emergency")
    ]


async def test_the_caller_is_known(client: Client) -> None:
    """The server knows who asks, by revision and era, what it can do, and what stood in `_meta`
    (`STA-02`, `MET-01`).
    """
    known = (await client.call_tool("who_am_i")).value()
    assert (known["revision"], known["client"]) == (client.revision, "interlock")
    assert known["capabilities"].keys() >= {"elicitation", "roots", "sampling"}
    trace = {
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "example.com/x": [1],
    }
    shown = (await client.call_tool("show_meta", meta=trace)).value()["meta"]
    assert shown.items() >= trace.items()


async def test_limits_of_the_environment_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is set by its name."""
    monkeypatch.setenv("INTERLOCK_EVERYTHING_SECONDS", "0.5")
    monkeypatch.setenv("INTERLOCK_EVERYTHING_EXTRAS", "1")
    async with Client(server_of()) as client:
        assert "At most 0.5 seconds" in (await client.call_tool("sleep", {"seconds": 1})).text
        await client.call_tool("grow")
        assert "the maximum" in (await client.call_tool("grow")).text
