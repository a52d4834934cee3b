"""The official SDKs' clients call each fixture of `everything.py`, and the two tools of a server
from the tutorials, in both eras, over stdio and HTTP."""

from __future__ import annotations

import base64
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.interop import everything, weather
from tests.interop.answers import ANSWERS, FORM
from tests.interop.driver import MAN, Driver, command_of, led, on_the_web
from tests.ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.asyncio(loop_scope="module")]

WAYS = [(maker, mode) for maker in ("python-2", "typescript-2") for mode in ("auto", "legacy")]
WAYS += [("python-1", "legacy"), ("typescript-1", "legacy")]
PERSON = {**MAN, "elicitation/create": {"action": "accept", "content": FORM}}


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="module",
    params=[(*way, road) for road in ("stdio", "http") for way in WAYS],
    ids=" ".join,
)
async def client(
    request: pytest.FixtureRequest, installed: Callable[[str], Path]
) -> AsyncIterator[Driver]:
    """A client that is connected to `everything.py`; over HTTP `test_reconnection` makes it
    reconnect with `Last-Event-ID` (`HTL-15`)."""
    maker, mode, road = request.param
    async with contextlib.AsyncExitStack() as stack:
        server = [sys.executable, everything.__file__]
        target: dict[str, Any] = {"command": [*server, "--stdio"]}
        if road == "http":
            port = free_port()
            await stack.enter_async_context(on_the_web([*server, "--port", str(port)], port))
            target = {"url": f"http://127.0.0.1:{port}/mcp", "road": road}
        yield await stack.enter_async_context(
            led(command_of("client", maker, installed), mode=mode, log_level="debug", **target)
        )


@pytest.mark.parametrize("tool", ANSWERS)
async def test_answers(client: Driver, tool: str) -> None:
    """Each tool with one text as its result; its questions arrive as requests or in rounds,
    depending on the era (`MRT-11`, `MRT-14`)."""
    arguments, expected = ANSWERS[tool]
    step = await client.call(tool, arguments, answers=PERSON)
    assert step.text == expected


async def test_every_tool_is_listed(client: Driver) -> None:
    """Each tool has a description and a schema, and the schema with many keywords is unchanged
    (`TOL-02`, `TOL-08`)."""
    tools = {tool["name"]: tool for tool in (await client.do("list_tools")).result["tools"]}
    assert tools.keys() >= ANSWERS.keys()
    assert all(
        tool["description"] and tool["inputSchema"]["type"] == "object" for tool in tools.values()
    )
    assert tools["json_schema_2020_12_tool"]["inputSchema"] == everything.CONTACT
    assert (
        tools["test_x_mcp_header"]["inputSchema"]["properties"]["region"]["x-mcp-header"]
        == "Region"
    )


async def test_content_and_failure(client: Driver) -> None:
    """Images, audio, resources, and a failing tool (`TOL-12`, `TOL-15`)."""
    (picture,) = (await client.call("test_image_content")).result["content"]
    assert base64.b64decode(picture["data"]) == everything.DOT
    (sound,) = (await client.call("test_audio_content")).result["content"]
    assert (sound["type"], sound["mimeType"]) == ("audio", "audio/wav")
    blocks = (await client.call("test_multiple_content_types")).result["content"]
    assert [block["type"] for block in blocks] == ["text", "image", "resource"]
    failed = await client.call("test_error_handling")
    assert (failed.result["isError"], failed.text) == (
        True,
        "This tool intentionally returns an error for testing",
    )


async def test_logging_and_progress(client: Driver) -> None:
    """Messages that a tool sends during its call arrive during the call (`LOG-06`, `PRG-02`)."""
    logged = await client.call("test_tool_with_logging", until=3)
    assert [
        params["data"] for method, params in logged.heard if method == "notifications/message"
    ] == [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ]
    step = await client.do("call", name="test_tool_with_progress", progress=True)
    assert step.result["reported"][:2] == [
        [0, 100, None],
        [50, 100, None],
    ]  # the last one arrives with the result, and some clients drop it


async def test_forms(client: Driver) -> None:
    """Defaults and choices of each kind reach the user unchanged (`ELI-12`)."""
    step = await client.call("test_elicitation_sep1034_defaults", answers=PERSON)
    fields = step.asked[0][1]["requestedSchema"]["properties"]
    assert [fields[name]["default"] for name in ("name", "age", "score", "status", "verified")] == [
        "John Doe",
        30,
        95.5,
        "active",
        True,
    ]
    choice = {
        "untitledSingle": "option1",
        "titledSingle": "value2",
        "legacyEnum": "opt3",
        "untitledMulti": ["option1", "option2"],
    }
    chosen: dict[str, Any] = {"elicitation/create": {"action": "accept", "content": choice}}
    step = await client.call("test_elicitation_sep1330_enums", answers=chosen)
    assert step.asked[0][1]["requestedSchema"] == everything.CHOICES
    assert json.loads(step.text.partition("content=")[2]) == choice


async def test_resources_prompts_and_completion(client: Driver) -> None:
    """The rest of the fixtures, in one go (`RES-02`, `RES-13`, `PRM-03`, `CMP-02`)."""
    resources = {r["uri"] for r in (await client.do("list_resources")).result["resources"]}
    skill = "skill://office/letters/"
    assert resources == {
        "test://static-text",
        "test://static-binary",
        "test://watched-resource",
        f"{skill}SKILL.md",  # clients without support for skills see plain resources (`SKL-06`)
        f"{skill}dot.png",
        f"{skill}invoice/SKILL.md",
        f"{skill}templates/formal/long.md",
        f"{skill}templates/short.md",
    }
    (data,) = (await client.do("read", uri="test://template/123/data")).result["contents"]
    assert json.loads(data["text"]) == {
        "id": "123",
        "templateTest": True,
        "data": "Data for ID: 123",
    }
    prompt = (
        await client.do(
            "prompt", name="test_prompt_with_arguments", arguments={"arg1": "a", "arg2": "b"}
        )
    ).result
    assert prompt["messages"][0]["content"]["text"] == "Prompt with arguments: arg1='a', arg2='b'"
    asking = (
        await client.do("prompt", name="test_input_required_result_prompt", answers=PERSON)
    ).result
    assert asking["messages"][0]["content"]["text"] == "Use this context: a rainy day"
    found = (
        await client.do(
            "complete", prompt="test_prompt_with_arguments", argument="arg1", value="part"
        )
    ).result
    assert found["completion"]["values"] == ["party"]


@pytest.mark.parametrize("maker, mode", WAYS)
async def test_weather(maker: str, mode: str, installed: Callable[[str], Path]) -> None:
    """The tutorials' shape: two tools whose parameters are described in their docstrings."""
    async with led(
        command_of("client", maker, installed),
        command=[sys.executable, weather.__file__],
        mode=mode,
    ) as client:
        tools = {tool["name"]: tool for tool in (await client.do("list_tools")).result["tools"]}
        assert tools.keys() == {"get_alerts", "get_forecast"}
        state = tools["get_alerts"]["inputSchema"]["properties"]["state"]
        assert (state["type"], state["description"]) == (
            "string",
            "Two-letter US state code (e.g. CA, NY)",
        )
        assert tools["get_forecast"]["inputSchema"]["required"] == ["latitude", "longitude"]
        alerts = await client.call("get_alerts", {"state": "CA"})
        assert alerts.text == "Event: Heat Advisory\nArea: Central Valley\nSeverity: Moderate"
        forecast = await client.call("get_forecast", {"latitude": 37, "longitude": -122.25})
        assert forecast.text == "Tonight at 37.0, -122.2: 55°F, clear."
        assert (await client.call("get_forecast", {"latitude": "north"})).result["isError"]
