"""Parts of messages that a text prints on their own: each is put to work where it belongs,
and comes out as it went in."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from interlock import Answers, Client, Context, Server, types
from interlock.client.targets import transport_to
from interlock.transport.stdio import Stdio
from interlock.typed.uri_templates import Template
from interlock.wire.codec import decode, encode
from tests.seeds.mirror import Mirror
from tests.seeds.play import put, wired
from tests.seeds.printed import Printed, as_specified, plain, sampling_as_specified

Value = dict[str, Any]


async def tools(listed: list[Value]) -> None:
    """Tools are listed as printed, called with arguments that fit,
    and refused those that do not."""
    mirror = Mirror()
    mirror.tools(listed)
    async with wired(mirror.server) as wire:
        assert (await wire.request("tools/list"))["tools"] == listed
        for tool in listed:
            given = {
                name: sample(schema) for name, schema in tool["inputSchema"]["properties"].items()
            }
            result = await wire.request("tools/call", {"name": tool["name"], "arguments": given})
            assert result == {"content": [{"type": "text", "text": tool["name"]}]}
            wrong = {name: {"no": "such"} for name in given}
            assert (await wire.request("tools/call", {"name": tool["name"], "arguments": wrong}))[
                "isError"
            ]


async def templates(listed: list[Value]) -> None:
    """Templates are listed as printed,
    and a URI that one makes is read with the variables that made it."""
    mirror = Mirror()
    mirror.templates(listed)
    async with wired(mirror.server) as wire:
        assert (await wire.request("resources/templates/list"))["resourceTemplates"] == listed
        for listing in listed:
            template = Template(listing["uriTemplate"])
            values = {name: f"a {name}" for name in template.names}
            uri = template.expand(values)
            (contents,) = (await wire.request("resources/read", {"uri": uri}))["contents"]
            assert (contents["uri"], json.loads(contents["text"])) == (uri, values)


async def resources(listed: list[Value]) -> None:
    """Resources are listed as printed, and can be read and subscribed to."""
    mirror = Mirror()
    mirror.resources(listed)
    async with wired(mirror.server) as wire:
        assert (await wire.request("resources/list"))["resources"] == listed
        for listing in listed:
            assert (await wire.request("resources/read", {"uri": listing["uri"]}))["contents"][0][
                "uri"
            ] == listing["uri"]
            assert await wire.request("resources/subscribe", {"uri": listing["uri"]}) == {}


async def prompts(listed: list[Value]) -> None:
    """Prompts are listed as printed, and got with their arguments;
    one that is required and missing is named."""
    mirror = Mirror()
    mirror.prompts(listed)
    async with wired(mirror.server) as wire:
        assert plain((await wire.request("prompts/list"))["prompts"]) == plain(listed)
        for prompt in listed:
            values = {argument["name"]: "7" for argument in prompt.get("arguments", ())}
            result = await wire.request(
                "prompts/get", {"name": prompt["name"], "arguments": values}
            )
            assert json.loads(result["messages"][0]["content"]["text"]) == values


async def invocation(value: Value) -> None:
    """What a person chose reaches the prompt: numbers and lists travel as their JSON, for the wire
    knows strings only (`PRM-05`)."""
    mirror = Mirror()
    mirror.prompts(
        [{"name": value["prompt"], "arguments": [{"name": name} for name in value["arguments"]]}]
    )
    async with Client(mirror.server) as client:
        got = await client.get_prompt(value["prompt"], value["arguments"])
    (message,) = got.messages
    assert isinstance(message.content, types.TextContent)
    assert json.loads(message.content.text) == {
        name: item if isinstance(item, str) else msgspec.json.encode(item).decode()
        for name, item in value["arguments"].items()
    }


async def prompt_result(value: Value) -> None:
    """Messages, with their embedded resources, come from a prompt as printed."""
    server = Server("prompts")
    server.add_prompt(lambda: msgspec.convert(value, types.GetPromptResult), name="printed")
    async with wired(server) as wire:
        assert await wire.request("prompts/get", {"name": "printed"}) == value


async def sampling(value: Value) -> None:
    """An author's `ctx.sample` says what is printed,
    and gets what the client's model said (`SAM-01`)."""
    wanted = sampling_as_specified(value)
    server = Server("sampling")

    @server.tool
    async def find(ctx: Context) -> str:
        answer = await ctx.sample(
            msgspec.convert(wanted["messages"], list[types.SamplingMessage]),
            max_tokens=wanted["maxTokens"],
            system=wanted.get("systemPrompt"),
            preferences=msgspec.convert(wanted["modelPreferences"], types.ModelPreferences),
        )
        assert isinstance(answer.content, types.TextContent)
        return answer.content.text

    async with wired(server) as wire:
        wire.send(
            {"jsonrpc": "2.0", "id": "find", "method": "tools/call", "params": {"name": "find"}}
        )
        asked = await wire.receive()
        assert (asked["method"], asked["params"]) == ("sampling/createMessage", wanted)
        reply = {
            "role": "assistant",
            "content": {"type": "text", "text": "The third one."},
            "model": "any",
            "stopReason": "endTurn",
        }
        wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": reply})
        assert (await wire.receive())["result"]["content"][0]["text"] == "The third one."


async def roots(listed: list[Value]) -> None:
    """Roots that a client names reach the tool that asks for them (`ROO-01`), whatever they are.

    Our own client names folders only, as the specification has it (`ROO-05`): those go through it
    in both eras, and it refuses others.
    """
    server = Server("roots")

    @server.tool
    async def where(ctx: Context) -> str:
        return encode(types.ListRootsResult(roots=await ctx.roots())).decode()

    async with wired(server) as wire:
        wire.send(
            {"jsonrpc": "2.0", "id": "where", "method": "tools/call", "params": {"name": "where"}}
        )
        asked = await wire.receive()
        assert asked["method"] == "roots/list"
        wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": listed}})
        assert json.loads((await wire.receive())["result"]["content"][0]["text"]) == {
            "roots": listed
        }
    folders = [root for root in listed if root["uri"].startswith("file://")]
    for revision in ("2026-07-28", "2025-11-25"):
        async with Client(
            server,
            revision=revision,
            answers=Answers(roots=msgspec.convert(folders, list[types.Root])),
        ) as client:
            assert json.loads((await client.call_tool("where")).text) == {"roots": folders}


async def configuration(value: Value) -> None:
    """An entry of a host's configuration becomes the command that it names."""
    for entry in value["mcpServers"].values():
        transport = transport_to(entry)
        assert isinstance(transport, Stdio)
        assert transport.command == [entry["command"], *entry["args"]]


async def request(value: Value, answer: Value | None, where: str) -> None:
    """A request without its envelope: sent by its side,
    answered as printed where an answer stands behind it."""
    if as_specified(value)["method"].startswith(("elicitation/", "sampling/", "roots/")):
        async with wired(Mirror().server) as wire:
            await put(wire, value, None, where)
        return
    assert answer is not None, where
    mirror = Mirror()
    if value["method"] == "prompts/get":
        mirror.prompts(
            [
                {
                    "name": value["params"]["name"],
                    "arguments": [{"name": name} for name in value["params"]["arguments"]],
                }
            ]
        )
    mirror.know(value, answer)
    async with wired(mirror.server) as wire:
        assert plain(await wire.request(value["method"], value.get("params"))) == plain(answer)


def of_type(kind: Any) -> Callable[[Value], Awaitable[None]]:
    """A check that a value is read as a protocol type and written again without loss."""

    async def check(value: Value) -> None:
        assert json.loads(encode(decode(json.dumps(value).encode(), kind))) == value

    return check


async def offer(value: Value) -> None:
    """What a server says that it offers is read and written without loss."""
    await of_type(types.ServerCapabilities)(value["capabilities"])


CHECKS: dict[str, Callable[[Value], Awaitable[None]]] = {
    "tool": lambda value: tools([value]),
    "tools": lambda value: tools(value["tools"]),
    "template": lambda value: templates([value]),
    "resources": lambda value: resources(value["resources"]),
    "prompt": lambda value: prompts([value]),
    "prompts": lambda value: prompts(value["prompts"]),
    "prompt table": lambda value: prompts(list(value.values())),
    "invocation": invocation,
    "prompt result": prompt_result,
    "prompt message": of_type(types.PromptMessage),
    "sampling": sampling,
    "root": lambda value: roots([value]),
    "roots": lambda value: roots(value["roots"]),
    "configuration": configuration,
    "implementation": of_type(types.Implementation),
    "offer": offer,
    "list capability": of_type(types.ListChangedCapability),
}


async def check(items: Sequence[Printed], number: int) -> None:
    """Put the fragment at a place of a text to work.
    Raises AssertionError or KeyError where that cannot be done."""
    kind, value, where = items[number]
    if kind == "request":
        following = items[number + 1].value if number + 1 < len(items) else None
        await request(value, following, where)
    else:
        await CHECKS[kind](value)


def sample(schema: Value) -> Any:
    """A value that fits a schema as the texts have them."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "array":
        return [sample(schema["items"])]
    return {"string": "2026-11-21", "number": 1.5, "integer": 1, "boolean": True}[schema["type"]]
