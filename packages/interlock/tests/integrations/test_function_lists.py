"""Function lists: what a model gets, which calls run, and what it reads of them.

The packages of the providers have their test in `tests/interop`.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from interlock import Client, Context, Image, Server, ToolError, Unreachable
from interlock.integrations import FunctionList, function_list

PIXEL = b"\x89PNG\r\n\x1a\n"
INTERFACES = ["openai", "openai-responses", "anthropic", "gemini"]


def kitchen() -> Server:
    """A server with a tool of each kind."""
    server = Server("kitchen")

    @server.tool
    async def order(dish: str, size: int = 1) -> str:
        """Order something to eat."""
        return f"{size} {dish}"

    @server.tool(name="menu.today")
    async def menu() -> dict[str, list[str]]:
        """What there is."""
        return {"dishes": ["soup"]}

    @server.tool
    async def picture() -> Image:
        return Image(data=PIXEL, format="png")

    @server.tool
    async def burn() -> str:
        raise ToolError("It is burnt.")

    @server.tool(meta={"ui": {"visibility": ["app"]}})
    async def redraw() -> str:
        return "drawn"

    return server


def names(functions: FunctionList) -> list[str]:
    """The names in the definitions."""
    flat = [one.get("function", one) for one in functions.definitions]
    listed = [part for one in flat for part in one.get("functionDeclarations", [one])]
    return [one["name"] for one in listed]


def answer(interface: str, *calls: tuple[str, Any]) -> Any:
    """A model's answer with these calls, as plain data. A text in place of arguments is sent as it
    is, where the interface has arguments as text."""
    parts = [(f"c{number}", name, given) for number, (name, given) in enumerate(calls)]

    def text(given: Any) -> str:
        return given if isinstance(given, str) else json.dumps(given)

    if interface == "openai":
        used = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": text(given)}}
            for id, name, given in parts
        ]
        return {"choices": [{"message": {"role": "assistant", "tool_calls": used}}]}
    if interface == "openai-responses":
        items = [
            {"type": "function_call", "call_id": id, "name": name, "arguments": text(given)}
            for id, name, given in parts
        ]
        return {"output": [{"type": "reasoning", "id": "r"}, *items]}
    if interface == "anthropic":
        blocks = [
            {"type": "tool_use", "id": id, "name": name, "input": given}
            for id, name, given in parts
        ]
        return {"role": "assistant", "content": [{"type": "text", "text": "So."}, *blocks]}
    uses = [{"functionCall": {"id": id, "name": name, "args": given}} for id, name, given in parts]
    return {"candidates": [{"content": {"role": "model", "parts": [{"text": "So."}, *uses]}}]}


def results(interface: str, messages: list[Any]) -> list[tuple[str, str, bool]]:
    """The results in what `run` returned: the ID of the call, the text, and whether it failed."""
    if interface == "openai":
        told = [one for one in messages if one["role"] == "tool"]
        flat = [(one["tool_call_id"], one["content"]) for one in told]
    elif interface == "openai-responses":
        flat = [(one["call_id"], one["output"]) for one in messages]
    elif interface == "anthropic":
        return [
            (one["tool_use_id"], one["content"][0].get("text", ""), one.get("is_error", False))
            for one in messages[0]["content"]
        ]
    else:
        return [
            (one["id"], *next((text, kind == "error") for kind, text in one["response"].items()))
            for part in messages[0]["parts"]
            if (one := part.get("functionResponse"))
        ]
    mark = "[The call failed.]\n"
    return [(id, str(text).removeprefix(mark), str(text).startswith(mark)) for id, text in flat]


@pytest.mark.parametrize("interface", INTERFACES)
async def test_calls_and_failures_in_each_interface(interface: Any) -> None:
    """The results are in the order of the calls; whatever a model can react to is a result."""
    async with Client(kitchen()) as client:
        functions = await function_list(client, interface)
        order, menu, picture, burn = names(functions)
        assert (order, picture, burn) == ("order", "picture", "burn")
        assert menu.startswith("menu_today_")
        said = await functions.run(
            answer(
                interface,
                (menu, {}),
                (order, {"dish": "soup", "size": 2}),
                (burn, {}),
                (order, {"size": "x"}),
                ("redraw", {}),
            )
        )
        found = results(interface, said)
        assert [id for id, _, _ in found] == ["c0", "c1", "c2", "c3", "c4"]
        assert found[0][1:] == ('{"dishes":["soup"]}', False)
        assert found[1][1:] == ("2 soup", False)
        assert found[2][1:] == ("It is burnt.", True)
        assert found[3][2]
        assert found[4][1:] == ("There is no tool 'redraw'.", True)
        assert await functions.run(answer(interface)) == []


@pytest.mark.parametrize("interface", INTERFACES)
async def test_pictures_reach_only_models_that_accept_them(interface: Any) -> None:
    """Otherwise a text says what was left out."""
    async with Client(kitchen()) as client:
        call = answer(interface, ("picture", {}))
        seeing = await function_list(client, interface)
        blind = await function_list(client, interface, images=False)
        assert "iVBOR" in json.dumps(await seeing.run(call))
        told = json.dumps(await blind.run(call))
        assert "iVBOR" not in told
        assert "was left out" in told


@pytest.mark.parametrize("arguments", ["{", "[1]", '"soup"'])
async def test_arguments_that_are_not_an_object_fail(arguments: str) -> None:
    """A model may write anything; it reads what was wrong."""
    async with Client(kitchen()) as client:
        functions = await function_list(client, "openai")
        (found,) = results("openai", await functions.run(answer("openai", ("order", arguments))))
        assert found[1].startswith("The arguments are not ")
        assert found[2]


async def test_a_choice_of_tools_holds_for_calls_too() -> None:
    """A model cannot call what it was not offered, and a new list is read with `refresh`."""
    server = kitchen()
    async with Client(server) as client:
        functions = await function_list(client, "anthropic", only=["menu.*", "stir*"])
        assert len(names(functions)) == 1
        refused = await functions.run(answer("anthropic", ("order", {"dish": "soup"})))
        assert results("anthropic", refused)[0][2]

        @server.tool
        async def stir() -> str:
            return "stirred"

        await functions.refresh()
        assert names(functions)[1:] == ["stir"]
        said = await functions.run(answer("anthropic", ("stir", {})))
        assert results("anthropic", said) == [("c0", "stirred", False)]


async def test_cancelling_a_run_cancels_its_calls() -> None:
    """Both calls end when the run is cancelled; progress says that they have begun."""
    server = Server("slow")
    ended: list[str] = []

    @server.tool
    async def wait(name: str, ctx: Context) -> str:
        ctx.progress(1, 2, name)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append(name)
            raise
        return name

    begun: set[str] = set()
    both = asyncio.Event()

    def report(tool: str, progress: Any) -> None:
        begun.add(f"{tool} {progress.message}")
        if len(begun) == 2:
            both.set()

    async with Client(server) as client:
        functions = await function_list(client, "openai", on_progress=report)
        calls = answer("openai", ("wait", {"name": "a"}), ("wait", {"name": "b"}))
        run = asyncio.ensure_future(functions.run(calls))
        await both.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert begun == {"wait a", "wait b"}
    assert sorted(ended) == ["a", "b"]


async def test_a_call_that_takes_too_long_is_a_result() -> None:
    """The client's own limit holds."""
    server = Server("slow")

    @server.tool
    async def wait() -> str:
        await asyncio.Event().wait()
        return ""

    async with Client(server) as client:
        functions = await function_list(client, "openai")
        client.timeout = 0.01
        (found,) = results("openai", await functions.run(answer("openai", ("wait", {}))))
        assert found[2]


async def test_without_a_server_a_run_fails() -> None:
    """No further call could succeed."""
    async with Client(kitchen()) as client:
        functions = await function_list(client, "openai")
    with pytest.raises(Unreachable):
        await functions.run(answer("openai", ("order", {"dish": "soup"})))


async def test_wrong_interfaces_and_answers_are_named() -> None:
    """The errors of an author."""
    async with Client(kitchen()) as client:
        with pytest.raises(ValueError, match="openai-responses, anthropic, gemini"):
            await function_list(client, "bard")  # type: ignore[arg-type]  # wrong on purpose
        functions = await function_list(client, "openai")
        with pytest.raises(TypeError, match="a chat completion or its message"):
            await functions.run("hello")
