"""Development mode: what the author sees of an error, and that callers see nothing of it
otherwise.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import pytest

from interlock import Client, Context, McpError, Server, ToolError
from interlock.server.calls.development import MOST_CHARACTERS, describe, warnings_of

HANDSHAKE = "2024-11-05"
STATELESS = "2026-07-28"
SECRET = "postgres://admin:hunter2@db"


def disk_full() -> str:
    raise ValueError(f"disk full at {SECRET}")


async def in_a_library() -> str:
    return str(json.loads("{"))


def wrong_type() -> int:
    return "one"  # the mistake under test


def not_a_number() -> float:
    return float("nan")


def no_json() -> dict[str, Any]:
    return {"a": object()}


async def several() -> str:
    raise ExceptionGroup("of a task group", [ValueError("a"), ExceptionGroup("", [KeyError("b")])])


def habit(ctx: Context) -> str:
    ctx.report()  # the mistake under test
    return ""


def exits() -> str:
    raise SystemExit("bye")


FAILING: list[tuple[Callable[..., Any], tuple[str, ...]]] = [
    (disk_full, ("ValueError: disk full", "test_development.py:", ", in disk_full)")),
    (in_a_library, ("JSONDecodeError: Expecting", "test_development.py:", ", in in_a_library)")),
    (wrong_type, ("Expected `int`, got `str`", "test_development.py:", ", in wrong_type)")),
    (not_a_number, ("nan, which JSON does not have", ", in not_a_number)")),
    (no_json, ("object cannot be written as JSON", ", in no_json)")),
    (several, ("ValueError: a (", "; KeyError: 'b'")),
    (habit, ("AttributeError: Context has no attribute 'report'", ", in habit)")),
    (exits, ("SystemExit: bye (", ", in exits)")),
]


@pytest.mark.parametrize("revision", [HANDSHAKE, STATELESS])
@pytest.mark.parametrize(
    "function, words", FAILING, ids=lambda given: getattr(given, "__name__", "")
)
async def test_the_author_sees_type_message_and_place(
    function: Callable[..., Any], words: tuple[str, ...], revision: str
):
    """Beside the reference by which the traceback is found in the log."""
    server = Server("dev")
    server.dev = True
    server.add_tool(function, name="work")
    async with Client(server, revision=revision) as client:
        result = await client.call_tool("work")
    assert result.is_error
    assert "(reference " in result.text
    for word in words:
        assert word in result.text


@pytest.mark.parametrize("revision", [HANDSHAKE, STATELESS])
@pytest.mark.parametrize("function", [function for function, _ in FAILING])
async def test_a_caller_sees_only_the_reference(function: Callable[..., Any], revision: str):
    """Without development mode, which nothing but its author can switch on (`ERR-20`)."""
    server = Server("production")
    server.add_tool(function, name="work")
    async with Client(server, revision=revision) as client:
        text = (await client.call_tool("work")).text
    assert text.endswith(").")
    assert ".py" not in text
    assert "Error" not in text
    assert SECRET not in text


@pytest.mark.parametrize("dev", [False, True])
async def test_resources_prompts_completions_and_middleware(dev: bool):
    """Whatever of the author's code an answer comes from, its error is shown, or hidden."""
    server = Server("dev")
    server.dev = dev

    @server.resource("a://b")
    def resource() -> str:
        raise OSError("gone")

    @server.prompt
    def prompt(word: str = "") -> str:
        raise OSError("gone")

    @server.completion("prompt", "word")
    def complete(value: str) -> list[str]:
        raise OSError("gone")

    @server.use
    def layer(handler: Any) -> Any:
        async def handle(x: Any) -> Any:
            if x.method == "tools/list":
                raise OSError("gone")
            return await handler(x)

        return handle

    @server.tool
    def fine() -> str:
        return "fine"

    async with Client(server) as client:
        for asked in (
            client.read_resource("a://b"),
            client.get_prompt("prompt"),
            client.complete("prompt", "word"),
            client.list_tools(),
        ):
            with pytest.raises(McpError) as caught:
                await asked
            shown = "OSError: gone (" in str(caught.value)
            assert shown is dev
            assert ("test_development.py:" in str(caught.value)) is dev
        assert (await client.call_tool("fine")).text == "fine"


@pytest.mark.parametrize("dev", [False, True])
async def test_what_is_meant_for_the_caller_stays_as_it_is(dev: bool):
    """A ToolError and a JSON-RPC error have no place and no reference."""
    server = Server("dev")
    server.dev = dev

    @server.tool
    def tool() -> str:
        raise ToolError("no luck")

    @server.tool
    def refusing() -> str:
        raise McpError(-32602, "not that")

    async with Client(server) as client:
        assert (await client.call_tool("tool")).text == "no luck"
        with pytest.raises(McpError, match=r"^not that \(code -32602\)$"):
            await client.call_tool("refusing")


async def test_development_mode_can_be_switched_after_the_first_use():
    """The handlers that were put together before are put together anew."""
    server = Server("dev")
    server.add_tool(disk_full)
    for dev in (False, True, False):
        server.dev = dev
        async with Client(server) as client:
            assert ("disk full" in (await client.call_tool("disk_full")).text) is dev


def test_a_description_is_bounded():
    """An error may carry megabytes; a model and a terminal get their beginning."""
    assert len(describe(ValueError("x" * 1_000_000))) == MOST_CHARACTERS


def test_a_parameter_called_ctx_without_annotation_is_warned_of():
    """It would be an argument that no caller can know; a decorated function is looked through."""
    server = Server("dev")

    def around(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    @server.tool
    @around
    def forgot(ctx, city: str) -> str:  # the mistake under test
        return city

    @server.prompt
    def also(context) -> str:  # the mistake under test
        return ""

    @server.tool
    def right(ctx: Context, context: str) -> str:
        return context

    forgotten, other = warnings_of(server)
    assert forgotten.startswith("tool forgot: the parameter 'ctx' has no annotation")
    assert forgotten.endswith("ctx: Context")
    assert other.startswith("prompt also: the parameter 'context'")
