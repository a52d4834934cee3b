"""The travel examples of the tutorials, shown working through the client,
whether a tool that asks waits or runs again."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from interlock import Answers, Client, McpError, types
from tests.seeds.travel import server

REVISIONS = ["2026-07-28", "2025-11-25", "2025-06-18"]


@pytest.fixture(params=["suspended", "replayed"])
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Whether a tool that asks waits where it stands, or is run again with the answers."""
    before = server.suspended_calls.suspend
    server.suspended_calls.suspend = request.param == "suspended"
    yield request.param
    server.suspended_calls.suspend = before


@pytest.fixture(params=REVISIONS)
async def client(request: pytest.FixtureRequest, way: str) -> AsyncIterator[Client]:
    """A client whose person, model and folders answer."""
    roots = [
        types.Root(uri="file:///home/agent/plans", name="Plans"),
        types.Root(uri="file:///home/agent/passports"),
    ]
    async with Client(
        server,
        revision=request.param,
        answers=Answers(
            elicit=answer, sample=lambda p: f"{p.max_tokens}: the early one", roots=roots
        ),
    ) as made:
        yield made


def answer(params: types.ElicitRequestParams) -> dict[str, Any]:
    """A person who wants to see the sea; the rest is as the form suggests."""
    assert params.requested_schema is not None
    assert params.requested_schema["required"] == ["confirmBooking"]
    assert set(params.requested_schema["properties"]["seatPreference"]["enum"]) == {
        "window",
        "aisle",
        "any",
    }
    return {"confirmBooking": True, "roomType": "sea"}


async def test_templates(client: Client) -> None:
    """One URI of each template is read, and what a template has not is not found (`RES-13`)."""
    assert len(await client.list_resource_templates()) == 3
    for uri, value in {
        "travel://activities/barcelona/museums": ["Museu Picasso", "MNAC"],
        "weather://forecast/paris/2024-06-15": {
            "city": "paris",
            "date": "2024-06-15",
            "sky": "clear",
        },
        "travel://flights/NYC/BCN": {"from": "NYC", "to": "BCN"},
        "calendar://events/2024": [{"day": "2024-06-15", "what": "fly"}],
    }.items():
        (contents,) = (await client.read_resource(uri)).contents
        assert json.loads(contents.text or "") == value
    with pytest.raises(McpError, match="not found"):
        await client.read_resource("travel://activities/atlantis/museums")


async def test_completion(client: Client) -> None:
    """Three letters of a city, and of an airport once the other one is known (`CMP-02`,
    `CMP-03`)."""
    assert (await client.complete("weather://forecast/{city}/{date}", "city", "Par")).values == [
        "Paris",
        "Park City",
    ]
    flights = "travel://flights/{origin}/{destination}"
    if client.revision >= "2025-06-18":
        found = await client.complete(flights, "destination", "Bar", arguments={"origin": "NYC"})
        assert found.values == ["Barbados (BGI)", "Barcelona (BCN)"]
        assert (
            await client.complete(flights, "destination", "Bar", arguments={"origin": "BGI"})
        ).values == ["Barcelona (BCN)"]


async def test_the_prompt(client: Client) -> None:
    """Text, number and list arrive as what they are, though the wire has only strings (`PRM-02`,
    `PRM-05`)."""
    (prompt,) = await client.list_prompts()
    assert prompt.name == "plan-vacation"
    assert [(a.name, a.required) for a in prompt.arguments or ()] == [
        ("destination", True),
        ("duration", False),
        ("budget", False),
        ("interests", False),
    ]
    arguments = {
        "destination": "Barcelona",
        "duration": 5,
        "budget": 2500,
        "interests": ["markets", "churches", "parks"],
    }
    (message,) = (await client.get_prompt("plan-vacation", arguments)).messages
    assert isinstance(message.content, types.TextContent)
    assert (
        message.content.text
        == "Plan 5 days in Barcelona for 2500.0, with markets and churches and parks."
    )
    with pytest.raises(McpError, match="duration"):
        await client.get_prompt("plan-vacation", {"destination": "Barcelona", "duration": "a week"})


async def test_elicitation(client: Client) -> None:
    """The form comes back as a value, what was left out as its default (`ELI-12`)."""
    assert (await client.call_tool("bookVacation")).text == "Booked: any, sea, insurance False"


async def test_sampling(client: Client) -> None:
    """The client's model chooses (`SAM-01`)."""
    assert (await client.call_tool("findBestFlight")).text == "1200: the early one"


async def test_roots(client: Client) -> None:
    """The client's folders (`ROO-01`)."""
    found = (await client.call_tool("listDocuments")).value()
    assert [root["name"] for root in found] == ["Plans", None]


@pytest.mark.parametrize("tool", ["bookVacation", "findBestFlight", "listDocuments"])
@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_client_that_cannot_be_asked(tool: str, revision: str) -> None:
    """Without person, model or folders the call fails and says what is missing;
    nothing is skipped (`ERR-08`)."""
    async with Client(server, revision=revision) as client:
        if revision == "2026-07-28":
            with pytest.raises(McpError, match="capability") as refused:
                await client.call_tool(tool)
            assert refused.value.code == types.MISSING_CLIENT_CAPABILITY
        else:
            result = await client.call_tool(tool)
            assert result.is_error
            assert "cannot be asked" in result.text
