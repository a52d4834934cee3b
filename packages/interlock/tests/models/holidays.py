"""A journey for the rule-based model: what the tools give, and a conversation that goes on until it
wants nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from interlock.types import (
    CreateMessageRequestParams,
    SamplingMessage,
    TextContent,
    Tool,
    ToolResultContent,
    ToolUseContent,
)
from interlock_apps.demo.planner import Planner
from tests.models.asking import received, said

TOOLS = {
    "travel": ("search_flights", "search_hotels", "find_best_flight", "book_trip"),
    "weather": ("check_weather",),
    "calendar": ("create_event",),
    "mail": ("send_mail",),
}
PROMPT = (
    "Please plan my vacation in Barcelona.\n\nDestination: Barcelona\nDeparture date: "
    "2024-06-15\nReturn date: 2024-06-22\nBudget: 3000\nTravelers: 2"
)
PREFERENCES = (
    "# Travel preferences\n\n- Home airport: Boston (BOS)\n- Flights: direct, in the morning; "
    "an aisle seat\n- Hotels: by the sea, up to $200 a night"
)
MOST = 20  # steps


def flight(id: str, price: int, departs: str = "08:15") -> dict[str, Any]:
    """A flight as the travel server gives it."""
    return {
        "id": id,
        "airline": "Catalan Wings",
        "date": id[-10:],
        "departs": departs,
        "arrives": "22:15",
        "price": price,
        "stops": 0,
    }


def hotel(id: str, night: int, rating: float, *features: str) -> dict[str, Any]:
    """A hotel for seven nights."""
    return {
        "id": id,
        "name": id.title(),
        "area": "Old town",
        "price_per_night": night,
        "total": 7 * night,
        "rating": rating,
        "features": list(features),
    }


OUT = flight("CW101-2024-06-15", 412)
DEAR = flight("AX101-2024-06-15", 586, "05:00")
BACK = flight("CW102-2024-06-22", 402)
CHEAP_OUT = flight("BJ102-2024-06-15", 298, "23:20")
HOTELS = [
    hotel("palace", 900, 9.9, "by the sea"),
    hotel("mar", 196, 9.1, "by the sea"),
    hotel("inn", 80, 8.0),
    hotel("beach", 150, 7.0, "private beach"),
]
BOOKING = {
    "id": "BK-2024-0001",
    "total": 3150,
    "travelers": 2,
    "insurance": True,
    "room": "Sea view",
    "outbound": OUT,
    "return_flight": BACK,
    "hotel": {"name": "Mar", "area": "Old town"},
    "contact": {"email": "ada@example.com"},
}


class World:
    """What each tool gives: data, a function of the arguments, or words of an error (a text).

    `calls` is what was called.
    """

    def __init__(self, **changed: Any) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.gives: dict[str, Any] = {
            "check_weather": {"highCelsius": 26, "lowCelsius": 17, "rainDays": 4},
            "search_flights": lambda given: {
                "flights": [DEAR, OUT, CHEAP_OUT] if given["date"] == "2024-06-15" else [BACK]
            },
            "search_hotels": {"hotels": HOTELS},
            "find_best_flight": lambda given: {
                "picks": [{"flight": OUT if given["date"] == "2024-06-15" else BACK}]
            },
            "book_trip": {"booked": True, "booking": BOOKING},
            "create_event": {"id": "1"},
            "send_mail": {"how": "smtp"},
            **changed,
        }

    def result(self, use: ToolUseContent) -> ToolResultContent:
        """What a call gives."""
        name = use.name.rpartition("__")[2]
        self.calls.append((name, dict(use.input)))
        gives = self.gives[name]
        data = gives(use.input) if callable(gives) else gives
        if isinstance(data, str):
            return ToolResultContent(tool_use_id=use.id, content=[TextContent(data)], is_error=True)
        return ToolResultContent(
            tool_use_id=use.id,
            content=[
                TextContent(f"A line before.\n{msgspec.json.encode(data).decode()}\nAnd one after.")
            ],
        )

    def given(self, name: str) -> list[dict[str, Any]]:
        """The arguments of the calls of a tool."""
        return [arguments for called, arguments in self.calls if called == name]


async def planned(
    world: World, *before: SamplingMessage, without: Sequence[str] = ()
) -> tuple[list[str], list[SamplingMessage]]:
    """Go on until nothing more is wanted: what the model said in each step, and the whole
    conversation.
    """
    tools = [
        Tool(name=f"{server}__{name}", input_schema={"type": "object"})
        for server, names in TOOLS.items()
        for name in names
        if not {server, name} & set(without)
    ]
    messages = list(before)
    texts = list[str]()
    for _ in range(MOST):
        _, last = await received(
            Planner(),
            CreateMessageRequestParams(messages=messages, tools=tools or None, max_tokens=1000),
        )
        content = last.result.content
        assert isinstance(content, list)
        texts.append(" ".join(block.text for block in content if isinstance(block, TextContent)))
        messages.append(SamplingMessage(role="assistant", content=content))
        uses = [block for block in content if isinstance(block, ToolUseContent)]
        assert last.result.stop_reason == ("toolUse" if uses else "endTurn")
        if not uses:
            return texts, messages
        assert {use.name for use in uses} <= {tool.name for tool in tools}
        messages.append(said("user", *(world.result(use) for use in uses)))
    raise AssertionError(f"it goes on and on: {texts}")


def names(world: World) -> list[str]:
    """The tools that were called, in order."""
    return [name for name, _ in world.calls]


async def asked(text: str) -> str:
    """What it answers to a server that asks a model."""
    _, last = await received(
        Planner(), CreateMessageRequestParams(messages=[said("user", text)], max_tokens=1000)
    )
    (block,) = last.result.content  # type: ignore[misc]  # it always gives a list
    assert isinstance(block, TextContent)
    return block.text
