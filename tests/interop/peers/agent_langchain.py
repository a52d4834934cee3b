"""An agent of LangChain with a scripted model and tools of ours. Run by their own Python.

The agent is the program `langchain_agent.py` of the guide. The tools of LangChain's own adapters
are called too, over our client with the face of their session.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import adapters
import langchain_agent
from agent_turns import Progress, explore, face
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from mcp import McpError

from interlock import Client
from interlock.integrations import langchain_tools


class Scripted(GenericFakeChatModel):
    """A model that says what it was told to."""

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Scripted:
        """Check that every tool has a form for providers."""
        assert all(convert_to_openai_tool(tool)["function"]["name"] for tool in tools)
        return self


async def run(client: Client, calls: list[tuple[str, dict[str, Any]]], report: Progress) -> Any:
    used = [
        {"name": name, "args": arguments, "id": f"call_{number}"}
        for number, (name, arguments) in enumerate(calls)
    ]
    turns = iter([AIMessage("", tool_calls=used), AIMessage("done")])
    messages = await langchain_agent.ask(client, Scripted(messages=turns), "Go.", report)
    assert messages[-1].content == "done"
    seen = [
        [message.content, message.status, message.artifact]
        for message in messages
        if isinstance(message, ToolMessage)
    ]
    if len(calls) > 1:
        seen.append(await directly(client))
        seen.append(await through_their_adapters(client))
        seen.append(await face(client, McpError))
    return seen


async def directly(client: Client) -> Any:
    """Results without a model, and an argument that has the name of a parameter of LangChain's."""
    tools = {tool.name: tool for tool in await langchain_tools(client, only=["ec*", "add"])}
    assert sorted(tools) == ["add", "echo"]
    return await tools["echo"].ainvoke({"text": "hello"})


async def through_their_adapters(client: Client) -> Any:
    """A result and a failure of their adapters' tools, over our session."""
    tools = {tool.name: tool for tool in await adapters.tools(client)}
    added = await tools["add"].ainvoke(
        {"type": "tool_call", "id": "1", "name": "add", "args": {"a": 2, "b": 3}}
    )
    try:
        failed = await tools["fail"].ainvoke(
            {"type": "tool_call", "id": "2", "name": "fail", "args": {}}
        )
    except Exception as bad:  # whatever they raise for it
        failed = bad
    return [str(added.content), added.artifact, "It is broken." in str(failed)]


explore(run)
