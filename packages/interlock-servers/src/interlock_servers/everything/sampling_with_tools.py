"""Sampling with tools: the client's model calls tools that run here, until it answers with text."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from msgspec import Meta

from interlock import Server, TextContent, ToolError, ToolResult, types
from interlock.schema import compile as compile_schema

from .sampling import blocks_of
from .state import ASKS, MADE_BY, Ctx

CAPITALS = {
    "france": "Paris",
    "germany": "Berlin",
    "japan": "Tokyo",
    "peru": "Lima",
    "spain": "Madrid",
}
SYSTEM = "Use the tools where they help. Answer in one sentence."


def capital(country: str) -> dict[str, Any]:
    """The capital of a country. Raises ToolError where it is not known."""
    found = CAPITALS.get(country.casefold())
    if found is None:
        raise ToolError(f"The capital of {country} is unknown. Known are {', '.join(CAPITALS)}.")
    return {"capital": found}


def total(numbers: list[float]) -> dict[str, Any]:
    """The sum of some numbers."""
    return {"sum": sum(numbers)}


def _tool(
    name: str, title: str, words: str, properties: dict[str, Any], gives: dict[str, Any]
) -> types.Tool:
    inner: dict[str, Any] = {"type": "object", "additionalProperties": False}
    return types.Tool(
        name=name,
        title=title,
        description=words,
        input_schema={**inner, "properties": properties, "required": list(properties)},
        output_schema={**inner, "properties": gives, "required": list(gives)},
        annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
        meta=MADE_BY,
    )


NUMBERS = {"type": "array", "items": {"type": "number"}, "maxItems": 100}
TOOLS = [
    _tool(
        "capital",
        "Capital",
        "The capital of a country.",
        {"country": {"type": "string"}},
        {"capital": {"type": "string"}},
    ),
    _tool(
        "total",
        "Total",
        "The sum of some numbers.",
        {"numbers": NUMBERS},
        {"sum": {"type": "number"}},
    ),
]
"""The tools for the model.

They are for the model alone: the server does not list them.
"""

_RUN: dict[str, Any] = {"capital": capital, "total": total}
_SCHEMAS = {tool.name: compile_schema(tool.input_schema) for tool in TOOLS}


@dataclass
class ToolUse:
    """One tool call of the model, and its result."""

    tool: str
    input: dict[str, Any]
    output: Any = None
    error: str | None = None


@dataclass
class ModelAnswer:
    """The model's final answer, the number of rounds, and the tools that it used."""

    text: str
    model: str
    rounds: int
    uses: list[ToolUse] = field(default_factory=list)


async def run(block: types.ToolUseContent) -> tuple[ToolUse, types.ToolResultContent]:
    """Run one tool for the model. Errors are returned to the model, which may try again."""
    output: Any = None
    error: str | None = None
    try:
        if block.name not in _RUN:
            raise ToolError(f"There is no tool {block.name}. There are {', '.join(_RUN)}.")
        if wrong := _SCHEMAS[block.name].check(block.input):
            raise ToolError("; ".join(f"{v.path or '/'}: {v.message}" for v in wrong))
        output = await asyncio.to_thread(_RUN[block.name], **block.input)
    except ToolError as bad:
        words = error = str(bad)
    else:
        words = ", ".join(f"{name}: {value}" for name, value in output.items())
    content: list[types.ContentBlock] = [TextContent(words)]
    if error is not None:
        result = types.ToolResultContent(tool_use_id=block.id, content=content, is_error=True)
    else:
        result = types.ToolResultContent(
            tool_use_id=block.id, content=content, structured_content=output, meta=MADE_BY
        )
    return ToolUse(block.name, block.input, output, error), result


async def ask_model_with_tools(
    question: Annotated[str, Meta(min_length=1, max_length=2000)],
    ctx: Ctx,
    choice: Literal["auto", "required", "none"] = "auto",
) -> ToolResult[ModelAnswer]:
    """Ask the client's model, and give it tools: one knows capitals, one adds.

    What it calls is run here, several at once where it asks for several, and it is asked again with
    what they gave, until it answers in words. In the last round it has to.

    Args:
        question: what the model is asked.
        choice: whether the model may, must or must not use tools at first.
    """
    messages = [types.SamplingMessage(role="user", content=TextContent(question))]
    uses: list[ToolUse] = []
    most = ctx.lifespan_state.limits.rounds
    for number in range(1, most + 1):
        if number == 1:
            mode: Literal["auto", "required", "none"] = choice
        elif number == most:
            mode = "none"
        else:
            mode = "auto"
        answer = await ctx.sample(
            messages,
            system=SYSTEM,
            max_tokens=500,
            tools=TOOLS,
            tool_choice=types.ToolChoice(mode=mode),
            key=f"round-{number}",
        )
        blocks = blocks_of(answer)
        wanted = [block for block in blocks if isinstance(block, types.ToolUseContent)]
        if not wanted:
            text = "\n".join(block.text for block in blocks if isinstance(block, TextContent))
            return ToolResult(ModelAnswer(text, answer.model, number, uses), text)
        ctx.progress(number, most, f"the model uses {', '.join(block.name for block in wanted)}")
        done = await asyncio.gather(*map(run, wanted))
        uses += [use for use, _ in done]
        # The model's message is sent back unchanged, including its `_meta` (`SAM-21`), followed by
        # a message with nothing but the results (`SAM-14`).
        messages.append(types.SamplingMessage(role="assistant", content=blocks))
        messages.append(types.SamplingMessage(role="user", content=[result for _, result in done]))
    raise ToolError(f"The model called tools in {most} rounds without an answer.")


def add_answering(server: Server) -> None:
    """Give a server the tool of this file."""
    server.tool(title="Ask the model, with tools", annotations=ASKS)(ask_model_with_tools)
