"""Sampling: plain, with all parameters, with images and audio, and as a conversation."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from interlock import AudioContent, ImageContent, Server, TextContent, ToolResult, types

from .samples import png, wav
from .state import ASKS, MADE_BY, Ctx

CHEAP = types.ModelPreferences(
    hints=[types.ModelHint(name="haiku"), types.ModelHint(name="mini")],
    cost_priority=0.9,
    speed_priority=0.8,
    intelligence_priority=0.1,
)
Question = Annotated[
    str, Meta(min_length=1, max_length=2000, description="What the model is asked.")
]
Whole = Literal["none", "thisServer", "allServers"]


@dataclass
class ModelReply:
    """What a model replied, which model it was, and why it stopped."""

    text: str
    model: str
    stop_reason: str | None = None


def blocks_of(answer: types.CreateMessageResult) -> list[types.SamplingContent]:
    """The blocks of an answer, which may have one or several."""
    return answer.content if isinstance(answer.content, list) else [answer.content]


def words_of(answer: types.CreateMessageResult) -> str:
    """The text of an answer."""
    return "\n".join(block.text for block in blocks_of(answer) if isinstance(block, TextContent))


async def ask_model(question: Question, ctx: Ctx) -> str:
    """Ask the client's own model."""
    return words_of(await ctx.sample(question, system="Answer in one sentence.", max_tokens=200))


async def ask_model_closely(
    question: Question,
    ctx: Ctx,
    temperature: Annotated[float, Meta(ge=0, le=2)] = 0.2,
    most: Annotated[int, Meta(ge=1, le=4096)] = 300,
    context: Whole = "thisServer",
) -> ToolResult[ModelReply]:
    """Ask the client's model with all that a server may wish for: how it answers, which model, how
    much, and where it stops.

    Args:
        question: what the model is asked.
        temperature: how daring it is.
        most: how many tokens it may say.
        context: what of the conversation with this server, or all, it should know; a client that
            does not take this is not sent it.
    """
    answer = await ctx.sample(
        question,
        system="You are brief, and you say when you do not know.",
        max_tokens=most,
        temperature=temperature,
        stop=["\n\n", "END"],
        preferences=CHEAP,
        include_context=context,
        metadata={"purpose": "a demonstration"},
    )
    reply = ModelReply(words_of(answer), answer.model, answer.stop_reason)
    return ToolResult(reply, reply.text)


async def show_model(ctx: Ctx) -> str:
    """Show the client's model a picture and a sound, and ask what they are."""
    picture = ImageContent(
        data=base64.b64encode(png(200)).decode(), mime_type="image/png", meta=MADE_BY
    )
    sound = AudioContent(data=base64.b64encode(wav()).decode(), mime_type="audio/wav", meta=MADE_BY)
    messages = [types.SamplingMessage(role="user", content=block) for block in (picture, sound)]
    return words_of(
        await ctx.sample([*messages, "What did you see, and what did you hear?"], max_tokens=200)
    )


async def talk_to_model(ctx: Ctx) -> str:
    """Show the client's model a conversation to go on with: words of both sides, several blocks in
    one message, `_meta`.
    """
    seen = types.Annotations(audience=["assistant"], priority=0.9)
    messages = [
        types.SamplingMessage(
            role="user",
            content=TextContent("I think of an animal.", annotations=seen, meta=MADE_BY),
            meta=MADE_BY,
        ),
        types.SamplingMessage(role="assistant", content=TextContent("Does it have feathers?")),
        types.SamplingMessage(
            role="user", content=[TextContent("It does."), TextContent("It cannot fly.")]
        ),
    ]
    return words_of(await ctx.sample(messages, max_tokens=50))


def add_sampling(server: Server) -> None:
    """Give a server the tools of this file."""
    server.tool(title="Ask the model", annotations=ASKS)(ask_model)
    server.tool(title="Ask the model closely", annotations=ASKS)(ask_model_closely)
    server.tool(title="Show the model", annotations=ASKS)(show_model)
    server.tool(title="Talk to the model", annotations=ASKS)(talk_to_model)
