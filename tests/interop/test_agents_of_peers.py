"""Agents of LangChain, Pydantic AI and OpenAI Agents, and the packages of three model providers,
call tools of ours: the programs of the guide, with scripted models, over stdio and HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import TOP, blocks
from tests.interop import catalogue
from tests.interop.driver import PATIENCE, PEERS, on_the_web
from tests.models.providers import Act, Answer, Site
from tests.ports import free_port

pytestmark = pytest.mark.interop

LIBRARY = TOP / "packages" / "interlock" / "src"
PAGE = TOP / "docs" / "guide" / "frameworks.md"
FACE = {
    "server": "catalogue",
    "is a session": True,
    "counted": "counted to 1",
    "reported": [[1, 1, "at 1"]],
    "template": "note://people/{name}",
    "completed": ["ada", "alan"],
    "listed": [16, 2, 2],
}
REPORTED = [["count", 1, 2, "at 1"], ["count", 2, 2, "at 2"]]


@contextlib.asynccontextmanager
async def served(way: str) -> AsyncIterator[dict[str, Any]]:
    """The target of a client: the catalogue over stdio or HTTP."""
    if way == "stdio":
        yield {"command": [sys.executable, catalogue.__file__]}
        return
    port = free_port()
    async with on_the_web([sys.executable, catalogue.__file__, str(port)], port):
        yield {"url": f"http://127.0.0.1:{port}/mcp"}


async def found_by(program: str, python: Path, folder: Path, *arguments: str) -> dict[str, Any]:
    """Run a program of `peers` beside the programs of the guide; return the JSON of its last
    line."""
    for block in blocks(PAGE.read_text(encoding="utf-8"), PAGE.name):
        if block.language == "py":
            name = block.text.splitlines()[0].removeprefix("# ")
            (folder / name).write_text(block.text, encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        str(python),
        str(PEERS / program),
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(LIBRARY), str(folder)]),
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
        },
    )
    try:
        output, errors = await asyncio.wait_for(process.communicate(), PATIENCE)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, errors.decode(errors="replace")[-6000:]
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    return found


async def explored(
    name: str, way: str, installed: Callable[[str], Path], folder: Path
) -> dict[str, Any]:
    """What an agent's model saw of the calls in `peers/agent_turns.py`."""
    python = installed(name)
    async with served(way) as target:
        program = f"agent_{name.replace('-', '_')}.py"
        return await found_by(program, python, folder, json.dumps(target))


@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_an_agent_of_langchain(
    way: str, installed: Callable[[str], Path], tmp_path: Path
) -> None:
    """Results, data, a picture, failures, a question, progress and cancellation; and the tools of
    their adapters over our session."""
    found = await explored("langchain", way, installed, tmp_path)
    added, weather, media, failed, guest, wrong, counted, echoed, theirs, face = found["seen"]
    assert added == ["3", "success", {"structured_content": {"result": 3}}]
    assert weather[2] == {"structured_content": {"city": "Oslo", "celsius": 21.5}}
    assert [block["type"] for block in media[0]] == ["image", "text"]
    assert media[0][0]["mime_type"] == "image/png"
    assert failed[:2] == ["It is broken.", "error"]
    assert guest[:2] == ["accept Ann 42", "success"]
    assert wrong[1] == "error"
    assert counted[0] == "counted to 2"
    assert echoed == "hello"
    assert "5" in theirs[0]
    assert theirs[2]
    assert face == {**FACE, "errors": [-32602, 408]}
    assert found["reported"] == REPORTED
    assert found["cancelled"]


@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_an_agent_of_pydantic_ai(
    way: str, installed: Callable[[str], Path], tmp_path: Path
) -> None:
    """Results as data, a picture, failures, a question, progress and cancellation."""
    found = await explored("pydantic-ai", way, installed, tmp_path)
    added, weather, media, failed, guest, wrong, counted = found["seen"]
    assert added == [3, "success"]
    assert weather == [{"city": "Oslo", "celsius": 21.5}, "success"]
    assert [kind for kind, _ in media[0]] == ["image/png", "audio/wav"]
    assert failed == ["It is broken.", "failed"]
    assert guest == ["accept Ann 42", "success"]
    assert wrong[1] == "failed"
    assert counted == ["counted to 2", "success"]
    assert found["reported"] == REPORTED
    assert found["cancelled"]


@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_an_agent_of_openai_agents(
    way: str, installed: Callable[[str], Path], tmp_path: Path
) -> None:
    """Results, a picture, failures, a question, progress and cancellation; prompts and
    resources."""
    found = await explored("openai-agents", way, installed, tmp_path)
    *seen, face, rest = found["seen"]
    added, weather, media, failed, guest, wrong, counted = map(str, seen)
    assert "3" in added
    assert "21.5" in weather
    assert "data:image/png;base64," in media
    assert "It is broken." in failed
    assert "accept Ann 42" in guest
    assert "Invalid arguments" in wrong
    assert "counted to 2" in counted
    assert rest == ["catalogue", ["note://board", "note://pixel"], "Nothing new.", "Greet Ann."]
    assert face == {**FACE, "errors": [-32602, -32001]}
    assert found["reported"] == REPORTED
    assert found["cancelled"]


CALLS = Answer((("add", {"a": 1, "b": 2}), ("media", {}), ("fail", {}), ("ask_guest", {})))
ITEMS = [
    {
        "type": "function_call",
        "id": f"fc_{name}",
        "call_id": f"call_{name}",
        "name": name,
        "arguments": json.dumps(arguments),
    }
    for name, arguments in CALLS.parts  # type: ignore[misc]  # all of them are calls
]
SAID = {
    "type": "message",
    "id": "m",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "done", "annotations": []}],
}


@pytest.mark.parametrize("way", ["stdio", "http"])
@pytest.mark.parametrize("interface", ["openai", "openai-responses", "anthropic", "gemini"])
async def test_the_packages_of_providers(
    interface: str, way: str, installed: Callable[[str], Path], tmp_path: Path
) -> None:
    """The package sends our functions, and then the results of the calls in the interface's
    form."""
    python = installed("providers")
    turns: list[Act | Answer | str] = [CALLS, "done"]
    if interface == "openai-responses":
        turns = [
            Act(body={"id": "r", "object": "response", "output": output})
            for output in (ITEMS, [SAID])
        ]
    async with Site(*turns) as site, served(way) as target:
        url = {"anthropic": site.anthropic, "gemini": site.root}.get(interface, site.openai)
        found = await found_by(
            "agent_providers.py", python, tmp_path, json.dumps(target), interface, url
        )
    assert found == {"said": "done"}
    first, second = (asked.body for asked in site.asked)
    assert "Add two integers." in json.dumps(first["tools"])
    CHECKS[interface](second)


def check_openai(body: dict[str, Any]) -> None:
    """Tool messages, and the picture in a message of the user."""
    *_, added, media, failed, guest, shown = body["messages"]
    assert (added["role"], added["tool_call_id"], added["content"]) == ("tool", "call_add_0", "3")
    assert "follows" in media["content"]
    assert failed["content"] == "[The call failed.]\nIt is broken."
    assert guest["content"] == "accept Ann 42"
    assert shown["role"] == "user"
    assert [part["type"] for part in shown["content"]] == ["text", "image_url"]


def check_responses(body: dict[str, Any]) -> None:
    """Outputs of function calls, one with a picture."""
    outputs = [one for one in body["input"] if one.get("type") == "function_call_output"]
    added, media, failed, guest = outputs
    assert added == {"type": "function_call_output", "call_id": "call_add", "output": "3"}
    assert [part["type"] for part in media["output"]] == ["input_image", "input_text"]
    assert failed["output"] == "[The call failed.]\nIt is broken."
    assert guest["output"] == "accept Ann 42"


def check_anthropic(body: dict[str, Any]) -> None:
    """Tool results, with the picture inside."""
    added, media, failed, guest = body["messages"][-1]["content"]
    assert added["content"] == [{"type": "text", "text": "3"}]
    assert added["tool_use_id"] == "toolu_0"
    assert [part["type"] for part in media["content"]] == ["image", "text"]
    assert (failed["is_error"], failed["content"][0]["text"]) == (True, "It is broken.")
    assert guest["content"][0]["text"] == "accept Ann 42"


def check_gemini(body: dict[str, Any]) -> None:
    """Function responses, and picture and sound after them."""
    added, media, failed, guest, *shown = body["contents"][-1]["parts"]
    assert added["functionResponse"]["response"] == {"output": "3"}
    assert added["functionResponse"]["name"] == "add"
    assert "follows" in media["functionResponse"]["response"]["output"]
    assert failed["functionResponse"]["response"] == {"error": "It is broken."}
    assert guest["functionResponse"]["response"] == {"output": "accept Ann 42"}
    data = [part["inlineData"] for part in shown if "inlineData" in part]
    kinds = [one.get("mimeType") or one["mime_type"] for one in data]  # as the package writes it
    assert kinds == ["image/png", "audio/wav"]


CHECKS = {
    "openai": check_openai,
    "openai-responses": check_responses,
    "anthropic": check_anthropic,
    "gemini": check_gemini,
}
