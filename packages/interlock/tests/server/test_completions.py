"""Suggestions: what functions and types say, in which order, how many; and what cannot be
completed.
"""

from __future__ import annotations

import enum
from typing import Any, Literal

import pytest

from interlock import Client, Context, McpError, Server
from interlock import types as t
from tests.server.by_hand import R4, exchange


class Colour(enum.Enum):
    RED = "red"
    DARK_RED = "dark red"
    BLUE = "blue"


async def completed(
    server: Server, of: str, argument: str, value: str = "", **known: str
) -> t.Completion:
    ref: Any = t.ResourceTemplateReference(uri=of) if "://" in of else t.PromptReference(name=of)
    context = t.CompletionContext(arguments=known) if known else None
    params = t.CompleteRequestParams(
        ref=ref, argument=t.CompletionArgument(name=argument, value=value), context=context
    )
    result = await server.handle(exchange("completion/complete", params))
    assert isinstance(result, t.CompleteResult)
    return result.completion


def server_of_all() -> Server:
    server = Server("completing")

    @server.prompt
    async def paint(
        colour: Colour,
        size: Literal["small", "Large", "extra large"],
        really: bool = True,
        title: str = "",
    ) -> str:
        return ""

    @server.resource("paint://{colour}/{number}")
    async def paints(colour: Colour, number: int) -> str:
        return ""

    server.add_resource("paint://all", "text")
    return server


@pytest.mark.parametrize(
    "of, argument, value, values",
    [
        ("paint", "colour", "", ["red", "dark red", "blue"]),
        ("paint", "colour", "r", ["red", "dark red"]),
        ("paint", "colour", "RE", ["red", "dark red"]),
        ("paint", "colour", "e", ["red", "dark red", "blue"]),
        ("paint", "colour", "green", []),
        ("paint", "size", "l", ["Large", "small", "extra large"]),
        ("paint", "really", "", ["true", "false"]),
        ("paint", "really", "t", ["true"]),
        ("paint://{colour}/{number}", "colour", "b", ["blue"]),
        ("paint://{colour}/{number}", "number", "1", []),
        ("paint", "title", "a", []),
        ("paint://all", "anything", "a", []),
    ],
)
async def test_choices_of_types(of: str, argument: str, value: str, values: list[str]):
    """What begins with what was typed comes first, then what holds it; without regard to case
    (`CMP-02`, `CMP-05`).
    """
    found = await completed(server_of_all(), of, argument, value)
    assert found == t.Completion(values=values, total=len(values), has_more=False)


@pytest.mark.parametrize(
    "of, argument, words",
    [
        ("draw", "colour", "Unknown prompt: draw"),
        ("paint://{other}", "colour", r"Unknown resource template: paint://\{other\}"),
        ("paint", "shade", "Unknown argument shade of prompt: paint"),
        (
            "paint://{colour}/{number}",
            "shade",
            r"Unknown argument shade of resource template: paint://\{colour\}/\{number\}",
        ),
    ],
)
async def test_what_cannot_be_completed(of: str, argument: str, words: str):
    """The error -32602 names it, also where a function completes everything (`CMP-04`)."""
    server = server_of_all()
    for _ in range(2):
        with pytest.raises(McpError, match=words) as caught:
            await completed(server, of, argument)
        assert caught.value.code == t.INVALID_PARAMS
        server.completion(lambda value: [value])
    await server.aclose()


@pytest.mark.parametrize("revision", [R4, "2026-07-28"])
async def test_the_capability(revision: str):
    """It is declared where something can be completed; without it the method does not exist
    (`CMP-01`, `ERR-10`).
    """
    server = Server("completing")

    @server.prompt
    async def write(topic: str) -> str:
        return topic

    async with Client(server, revision=revision) as client:
        assert client.server_capabilities.completions is None
        with pytest.raises(McpError) as caught:
            await client.complete("write", "topic", "a")
        assert caught.value.code == t.METHOD_NOT_FOUND
    server.completion(lambda value: [f"{value}!"])
    async with Client(server, revision=revision) as client:
        assert client.server_capabilities.completions == {}
        assert (await client.complete("write", "topic", "a")).values == ["a!"]


async def test_functions_get_what_they_ask_for():
    """By the names of their parameters, in any combination, plain or async (`CMP-03`)."""
    server = server_of_all()
    seen: list[Any] = []

    @server.completion("paint", "title")
    async def titles(
        value: str, arguments: dict[str, str], ref: Any, argument: Any, context: Any, ctx: Context
    ) -> list[str]:
        seen.append((value, arguments, ref, argument, context, ctx.caller.revision))
        return [f"{arguments.get('colour', 'some')} {value}"]

    assert (await completed(server, "paint", "title", "car", colour="red")).values == ["red car"]
    assert (await completed(server, "paint", "title", "car")).values == ["some car"]
    ref = t.PromptReference(name="paint")
    argument = t.CompletionArgument(name="title", value="car")
    assert seen == [
        (
            "car",
            {"colour": "red"},
            ref,
            argument,
            t.CompletionContext(arguments={"colour": "red"}),
            "2026-07-28",
        ),
        ("car", {}, ref, argument, None, "2026-07-28"),
    ]

    @server.completion("paint://{colour}/{number}", "number")
    def numbers() -> list[int]:
        return [1, 2]

    assert (await completed(server, "paint://{colour}/{number}", "number", "9")).values == [
        "1",
        "2",
    ]
    await server.aclose()


async def test_who_is_asked_first():
    """The argument's own function, then the choices of its type, then the function for
    everything.
    """
    server = server_of_all()

    @server.completion()
    async def anything(argument: Any) -> list[str]:
        return [f"any {argument.name}"]

    assert (await completed(server, "paint", "title")).values == ["any title"]
    assert (await completed(server, "paint", "colour", "b")).values == ["blue"]

    @server.completion("paint", "colour")
    async def colours(value: str) -> list[str]:
        return ["own"]

    assert (await completed(server, "paint", "colour", "b")).values == ["own"]
    assert (await completed(server, "paint://{colour}/{number}", "colour", "b")).values == ["blue"]


@pytest.mark.parametrize(
    "given, made",
    [
        (None, t.Completion(values=[], total=0, has_more=False)),
        ([], t.Completion(values=[], total=0, has_more=False)),
        ("one", t.Completion(values=["one"], total=1, has_more=False)),
        (("a", "b"), t.Completion(values=["a", "b"], total=2, has_more=False)),
        (
            [str(n) for n in range(100)],
            t.Completion(values=[str(n) for n in range(100)], total=100, has_more=False),
        ),
        (
            [str(n) for n in range(101)],
            t.Completion(values=[str(n) for n in range(100)], total=101, has_more=True),
        ),
        (
            (str(n) for n in range(101)),
            t.Completion(values=[str(n) for n in range(100)], total=101, has_more=True),
        ),
        (
            t.Completion(values=["a"], total=7, has_more=True),
            t.Completion(values=["a"], total=7, has_more=True),
        ),
        (
            t.Completion(values=[str(n) for n in range(101)], total=5000),
            t.Completion(values=[str(n) for n in range(100)], total=5000, has_more=True),
        ),
        (
            t.Completion(values=[str(n) for n in range(101)]),
            t.Completion(values=[str(n) for n in range(100)], total=101, has_more=True),
        ),
    ],
)
async def test_at_most_a_hundred_are_sent(given: Any, made: t.Completion):
    """And what is left out is said (`CMP-02`)."""
    server = server_of_all()

    @server.completion("paint", "title")
    async def titles() -> Any:
        return given

    assert await completed(server, "paint", "title") == made


async def test_misfortunes():
    """An error of the function is an internal error that tells nothing of the inside; an McpError
    is sent as it is (`CMP-04`, `ERR-20`).
    """
    server = server_of_all()

    @server.completion("paint", "title")
    async def titles(value: str) -> list[str]:
        if value == "refused":
            raise McpError(-32001, "Not for you.")
        raise LookupError("the secret word")

    with pytest.raises(
        McpError, match=r"^The completion failed \(reference [0-9a-f]{8}\)\. \(code -32603\)$"
    ):
        await completed(server, "paint", "title", "a")
    with pytest.raises(McpError, match="Not for you"):
        await completed(server, "paint", "title", "refused")


def test_functions_that_want_something_else():
    """It is said when the function is taken in."""
    server = server_of_all()
    with pytest.raises(
        TypeError,
        match=(
            "a completion function is given value, arguments, ref, argument, context, a Context or"
            " dependencies, not 'prefix'"
        ),
    ):

        @server.completion
        async def complete(prefix: str) -> list[str]:
            return []

    for arguments in (("paint",), (None, "colour")):
        with pytest.raises(
            TypeError, match="name both what is completed and its argument, or neither"
        ):
            server.completion(*arguments)
