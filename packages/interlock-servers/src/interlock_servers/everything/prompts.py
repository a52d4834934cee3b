"""Prompts with and without arguments, in one message and in several, with every kind of content."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from interlock import (
    Audio,
    EmbeddedResource,
    Image,
    McpError,
    ResourceLink,
    Server,
    TextContent,
    assistant,
    types,
    user,
)

from .content import BYTES, ICONS, NOTE
from .samples import png, wav
from .state import COUNTER, MADE_BY, Ctx

CITIES = {
    "france": ["Lyon", "Nantes", "Paris"],
    "japan": ["Kyoto", "Osaka", "Tokyo"],
    "spain": ["Barcelona", "Bilbao", "Madrid"],
}
WORDS = [f"word-{number}" for number in range(1000)]
HINTS = types.Annotations(
    audience=["assistant"], priority=0.7, last_modified="2026-01-01T00:00:00Z"
)


async def review(
    code: Annotated[str, Meta(title="Code", description="what to review.")],
    language: Annotated[Literal["python", "rust", "typescript"], Meta(title="Language")] = "python",
) -> str:
    """Ask for a review.

    Args:
        language: what it is written in; a Literal completes by itself.
    """
    return f"Please review this {language} code:\n\n{code}"


async def trip(country: str, city: str) -> list[Any]:
    """A conversation with a picture and an embedded resource, in several messages."""
    notes = types.ResourceContents(
        uri=f"everything://notes/{city}",
        mime_type="text/plain",
        text=f"{city} is in {country.title()}.",
    )
    return [
        user(f"I would like to see {city}. This is how I imagine it:", Image(data=png(90))),
        assistant("A fine choice. What do you know of it?"),
        user(notes),
    ]


async def hello() -> str:
    """A prompt without arguments."""
    return "Say hello, in a language of your choice."


async def listen() -> list[Any]:
    """A prompt with a sound in it."""
    return [user("What do you hear?", Audio(data=wav()))]


async def look_up() -> list[Any]:
    """A prompt with a link to a resource, and with embedded bytes."""
    return [
        user(
            "Look this up:",
            ResourceLink(uri=COUNTER, name="counter", title="A counter"),
            EmbeddedResource(resource=BYTES),
        )
    ]


async def annotated() -> types.GetPromptResult:
    """A prompt by hand: its result has a description and `_meta` of its own, and what it holds is
    annotated.
    """
    content: list[types.ContentBlock] = [
        TextContent("For the model.", annotations=HINTS, meta=MADE_BY),
        EmbeddedResource(resource=NOTE, annotations=HINTS),
    ]
    messages = [types.PromptMessage(role="user", content=block) for block in content]
    return types.GetPromptResult(description="Made by hand.", messages=messages, meta=MADE_BY)


async def repeat(word: str, times: Annotated[int, Meta(ge=1, le=10)] = 2) -> str:
    """A prompt whose second argument is a number, which may be left out.

    Args:
        word: what is said; there are a thousand suggestions, of which a hundred are sent.
        times: how often.
    """
    return " ".join([word] * times)


async def ask_first(ctx: Ctx) -> str:
    """A prompt that asks the user for what it needs; only 2025-06-18 and later can."""
    return f"Write a poem about {await ctx.elicit('What shall the poem be about?', str)}."


async def refused() -> str:
    """A prompt that cannot be had: an error with a code and data."""
    raise McpError(
        types.INTERNAL_ERROR, "This prompt is never to be had.", {"why": "to show an error"}
    )


async def complete_country(value: str) -> list[str]:
    """The countries that begin like this."""
    return [country for country in CITIES if country.startswith(value.lower())]


async def complete_city(value: str, arguments: dict[str, str]) -> list[str]:
    """The cities of the country that was given before."""
    return [
        city
        for city in CITIES.get(arguments.get("country", ""), [])
        if city.lower().startswith(value.lower())
    ]


async def complete_word(value: str) -> types.Completion:
    """Ten words at a time, with how many there are: a completion by hand."""
    found = [word for word in WORDS if word.startswith(value)]
    return types.Completion(values=found[:10], total=len(found), has_more=len(found) > 10)


def add_prompting(server: Server) -> None:
    """Give a server the prompts of this file."""
    server.prompt(title="Review code", icons=ICONS, meta=MADE_BY)(review)
    server.prompt(title="Plan a trip")(trip)
    server.prompt(title="Say hello")(hello)
    server.prompt(title="Listen")(listen)
    server.prompt(title="Look something up")(look_up)
    server.prompt("annotated", title="By hand")(annotated)
    server.prompt(title="Repeat")(repeat)
    server.prompt(title="Ask first")(ask_first)
    server.prompt("refused", title="Never to be had")(refused)
    server.completion("trip", "country")(complete_country)
    server.completion("trip", "city")(complete_city)
    server.completion("repeat", "word")(complete_word)
