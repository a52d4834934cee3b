"""A walk past all that the everything server has, and what of the protocol went over the wire
meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from interlock import Client, McpError, TimedOut, types
from interlock.tape import Tape
from interlock.testing import ScriptedAnswers
from interlock.wire.codec import field_span
from interlock.wire.revisions import METHODS, TYPES, Side, has, speaks
from interlock_servers.everything import CLOCK, COUNTER
from tests.servers.everything.scripted_client import CALLS, PROMPTS, URIS, soon

COMPLETIONS = [
    ("review", "language", "r"),
    ("trip", "country", "s"),
    ("repeat", "word", "w"),
    ("everything://numbers/{number}", "number", ""),
]


async def walk(client: Client) -> None:
    """Use everything once."""
    for name, (arguments, _) in CALLS.items():
        with suppress(McpError, TimedOut):
            await client.call_tool(
                name,
                arguments,
                on_progress=lambda _: None,
                timeout=0.05 if name == "wait_for_cancel" else 30,
            )
    for kind in ("required", "none"):
        await client.call_tool("ask_model_with_tools", {"question": "Well?", "choice": kind})
    for context in ("none", "allServers"):
        await client.call_tool("ask_model_closely", {"question": "Well?", "context": context})
    if "2025-06-18" <= client.revision < "2026":  # later a question cannot be taken back
        nobody = ScriptedAnswers(elicit={"Quickly": lambda _: asyncio.Event().wait()})
        await client.call_tool("ask_in_a_hurry", {"seconds": 0.01}, asker=nobody)
    for uri, _ in URIS.values():
        await client.read_resource(uri)
    for resource in await client.list_resources():
        with suppress(McpError):
            await client.read_resource(resource.uri)
    for name, given in PROMPTS.items():
        with suppress(McpError):
            await client.get_prompt(name, given)
    for of, argument, value in COMPLETIONS:
        await client.complete(of, argument, value)
    await client.list_tools()
    await client.list_prompts()
    await client.list_resource_templates()
    async with (
        client.watch(tools=True, prompts=True, resources=True) as lists,
        client.watch(resources=[COUNTER, CLOCK]) as single,
    ):
        await client.call_tool("grow")
        assert {(await soon(lists)).kind for _ in range(3)} == {"tools", "prompts", "resources"}
        await client.call_tool("tick")
        await client.call_tool("start_clock", {"ticks": 1, "seconds": 0.001})
        assert {(await soon(single)).uri for _ in range(2)} == {COUNTER, CLOCK}
        await client.call_tool("shrink")


Seen = set[tuple[str, str]]
"""Types and their fields, or a field's value, as `("Tool", "icons")` and `("Icon",
"theme=dark")`.
"""


def told(tape: Tape) -> Seen:
    """What the server has said, in the words of the protocol's types."""
    seen: Seen = set()
    asked: dict[Any, str] = {}
    for line in tape.lines:
        message = line.message
        if line.sender == "client":
            if "id" in message and "method" in message:
                asked[message["id"]] = message["method"]
        elif "method" in message:
            if (row := METHODS.get(message["method"])) is not None:
                seen.add(("", message["method"]))
                _look(row.params, message.get("params", {}), seen)
        elif (
            "result" in message
            and message["id"] in asked
            and (row := METHODS.get(asked[message["id"]])) is not None
        ):
            seen.add(("", asked[message["id"]]))
            by_question = message["result"].get("resultType") == "input_required"
            _look(types.InputRequiredResult if by_question else row.result, message["result"], seen)
    return seen


def _look(kind: Any, value: Any, seen: Seen) -> None:
    """Note the fields of a value that stands where a type is expected."""
    for member in _members(kind):
        origin = get_origin(member)
        parts = get_args(member)
        if origin is list and isinstance(value, list):
            for item in value:
                _look(parts[0], item, seen)
        elif origin is dict and isinstance(value, dict):
            for item in value.values():
                _look(parts[1], item, seen)
        elif _is_ours(member) and isinstance(value, dict) and _is_tagged(member, value):
            seen.add((member.__name__, ""))
            for name, hint in _fields(member):
                if name in value:
                    seen.add((member.__name__, name))
                    seen |= {
                        (member.__name__, f"{name}={choice}")
                        for choice in _choices(hint)
                        if _holds(value[name], choice)
                    }
                    _look(hint, value[name], seen)


def expected(revision: str) -> Seen:
    """All that a server of a revision can say, by the table of history."""
    wanted: Seen = set()
    for method, row in METHODS.items():
        if not speaks(revision, method):
            continue
        if row.sender is not Side.CLIENT:
            if revision < "2026" or row.result is None:  # later its questions travel in results
                wanted.add(("", method))
            _reach(row.params, revision, wanted)
        if row.sender is not Side.SERVER and row.result is not None:
            wanted.add(("", method))
            _reach(row.result, revision, wanted)
    if has(revision, TYPES[types.InputRequiredResult]):
        _reach(types.InputRequiredResult, revision, wanted)
    return wanted


def _reach(kind: Any, revision: str, wanted: Seen) -> None:
    """Note all that can stand where a type is expected."""
    for member in _members(kind):
        parts = get_args(member)
        if get_origin(member) in (list, dict):
            _reach(parts[-1], revision, wanted)
        elif (
            _is_ours(member)
            and has(revision, TYPES.get(member))
            and (member.__name__, "") not in wanted
        ):
            wanted.add((member.__name__, ""))
            for name, hint in _fields(member):
                if has(revision, field_span(member, name)):
                    wanted.add((member.__name__, name))
                    wanted |= {(member.__name__, f"{name}={choice}") for choice in _choices(hint)}
                    _reach(hint, revision, wanted)


def _members(kind: Any) -> Sequence[Any]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _is_ours(kind: Any) -> bool:
    return (
        isinstance(kind, type)
        and issubclass(kind, types.WireType)
        and kind is not types.UnknownContent
    )


def _is_tagged(kind: Any, value: dict[str, Any]) -> bool:
    config = kind.__struct_config__
    return config.tag_field is None or value.get(config.tag_field) == config.tag


def _fields(kind: Any) -> Iterator[tuple[str, Any]]:
    hints = get_type_hints(kind)
    for known in msgspec.structs.fields(kind):
        yield known.encode_name, hints[known.name]


def _choices(hint: Any) -> list[Any]:
    found = [
        choice
        for member in _members(hint)
        if get_origin(member) is Literal
        for choice in get_args(member)
    ]
    return found + [
        c
        for member in _members(hint)
        if get_origin(member) is list
        for c in _choices(get_args(member)[0])
    ]


def _holds(value: Any, choice: Any) -> bool:
    return bool(value == choice or (isinstance(value, list) and choice in value))
