"""An agent of Pydantic AI with a scripted model and tools of ours. Run by their own Python.

The agent is the program `pydantic_agent.py` of the guide.
"""

from __future__ import annotations

from typing import Any

import pydantic_agent
from agent_turns import Progress, explore
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from interlock import Client


async def run(client: Client, calls: list[tuple[str, dict[str, Any]]], report: Progress) -> Any:
    offered: list[str] = []

    def say(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart("done")])
        offered.extend(tool.name for tool in info.function_tools)
        return ModelResponse(parts=[ToolCallPart(name, arguments) for name, arguments in calls])

    result = await pydantic_agent.ask(client, FunctionModel(say), "Go.", report)
    assert result.output == "done"
    assert "add" in offered
    return [
        [plain(part.content), getattr(part, "outcome", "")]
        for message in result.all_messages()
        for part in message.parts
        if isinstance(part, ToolReturnPart | RetryPromptPart)
    ]


def plain(value: Any) -> Any:
    """JSON for a value."""
    if isinstance(value, BinaryContent):
        return [value.media_type, len(value.data)]
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value


explore(run)
