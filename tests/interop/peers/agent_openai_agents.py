"""An agent of the OpenAI Agents SDK with a scripted model and tools of ours. Run by their own
Python.

The agent is the program `agents_sdk.py` of the guide.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import agents_sdk
from agent_turns import Progress, explore, face
from agents import Model, ModelResponse, Usage
from mcp import MCPError
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from interlock import Client
from interlock.integrations import openai_agents_server


class Scripted(Model):
    """A model that makes its calls in the first turn, and is done in the second."""

    def __init__(self, calls: list[tuple[str, dict[str, Any]]]) -> None:
        self.calls = calls
        self.seen: list[Any] = []
        self.offered: list[str] = []

    async def get_response(self, *_: Any, input: Any, tools: Any, **__: Any) -> Any:
        """The next turn."""
        if isinstance(input, list) and any(
            item.get("type") == "function_call_output" for item in input
        ):
            self.seen = [
                item["output"] for item in input if item.get("type") == "function_call_output"
            ]
            text = ResponseOutputText(text="done", type="output_text", annotations=[])
            said: list[Any] = [
                ResponseOutputMessage(
                    id="m", content=[text], role="assistant", status="completed", type="message"
                )
            ]
        else:
            self.offered = [tool.name for tool in tools]
            said = [
                ResponseFunctionToolCall(
                    call_id=f"call_{number}",
                    name=name,
                    arguments=json.dumps(arguments),
                    type="function_call",
                )
                for number, (name, arguments) in enumerate(self.calls)
            ]
        return ModelResponse(output=said, usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        """Not used: the agent does not stream."""
        raise NotImplementedError


async def run(client: Client, calls: list[tuple[str, dict[str, Any]]], report: Progress) -> Any:
    model = Scripted(calls)
    result = await agents_sdk.ask(client, model, "Go.", report)
    assert result.final_output == "done"
    assert "add" in model.offered
    seen = [*model.seen]
    if len(calls) > 1:
        async with openai_agents_server(client) as server:
            resources = await server.list_resources()
            board = await server.read_resource("note://board")
            prompt = await server.get_prompt("greet", {"name": "Ann"})
        seen.append(await face(client, MCPError))
        seen.append(
            [
                server.name,
                [str(one.uri) for one in resources.resources],
                board.contents[0].text,
                prompt.messages[0].content.text,
            ]
        )
    return seen


explore(run)
