"""The everything server over each road, under each revision: as a program, over HTTP, in sessions
and without, and after a break.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from interlock import (
    REVISIONS,
    Answers,
    Client,
    Fetch,
    Http,
    HttpFetch,
    McpError,
    Request,
    Response,
)
from interlock_servers.everything import COUNTER, everything_server
from tests.servers.calls import refusal, words
from tests.servers.everything.scripted_client import model, person, soon
from tests.servers.roads import over_http, serving


@pytest.fixture
async def url() -> AsyncIterator[str]:
    """Where the server is served."""
    async with over_http(everything_server()) as address:
        yield address


async def round_trip(client: Client) -> None:
    """What each revision can do: results, failures, progress, logs, questions, changes."""
    seen: list[float] = []
    assert await words(client, "measure", place="Rome") == "Rome: 4 °C, cloudy."
    assert await words(client, "list_primes", most=5) == "2, 3, 5"
    assert "meant to fail" in await refusal(client, "fail")
    assert (
        await client.call_tool("work", {"steps": 2}, on_progress=lambda p: seen.append(p.progress))
    ).text == "Done in 2 steps."
    assert seen == [1, 2]
    assert await words(client, "ask_model", question="Well?") == "Yes."
    assert await words(client, "list_roots") == "srv: file:///srv"
    if client.revision >= "2025-06-18":
        assert (await client.call_tool("book_table", {"day": "Friday"})).text.startswith(
            "Booked for Guest: 4 on Friday"
        )
    else:
        assert (await client.call_tool("book_table", {"day": "Friday"})).is_error
    if client.revision >= "2025-11-25":
        assert (await client.call_tool("ask_model_with_tools", {"question": "Well?"})).value()[
            "rounds"
        ] == 2
    assert await words(client, "mirror", region="eu-west", shard=3) == "Taken: region, shard."
    async with client.watch(tools=True, resources=[COUNTER]) as changes:
        await client.call_tool("tick")
        assert (await soon(changes)).uri == COUNTER
        await client.call_tool("grow")
        assert (await soon(changes)).kind == "tools"
        await client.call_tool("shrink")


@pytest.mark.parametrize("revision", REVISIONS)
async def test_over_stdio(revision: str) -> None:
    """`interlock serve everything`, as a host starts it."""
    async with Client(
        serving("everything"),
        revision=revision,
        answers=Answers(elicit=person, sample=model, roots=["/srv"]),
    ) as client:
        assert client.revision == revision
        await round_trip(client)


@pytest.mark.parametrize("revision", REVISIONS)
async def test_over_http(url: str, revision: str) -> None:
    """One address for all revisions; the tool with mirrored arguments too (`XMH-07`, `XMH-19`)."""
    async with Client(
        url, revision=revision, answers=Answers(elicit=person, sample=model, roots=["/srv"])
    ) as client:
        assert client.revision == revision
        await client.list_tools()  # so that the client knows which arguments are mirrored
        await round_trip(client)


async def test_arguments_in_headers(url: str) -> None:
    """What is repeated in headers has to be the same there, and what is nested is repeated too
    (`XMH-11` to `XMH-14`).
    """
    headers: list[dict[str, str]] = []

    class Noting:
        """Fetches as it should, and notes the headers."""

        def __init__(self, inner: Fetch) -> None:
            self.inner = inner

        async def __call__(self, request: Request) -> Response:
            headers.append(
                {
                    name.lower(): value
                    for name, value in request.headers
                    if name.lower().startswith("mcp-param")
                }
            )
            return await self.inner(request)

        async def aclose(self) -> None:
            await self.inner.aclose()

    async with Client(Http(url, fetch=Noting(HttpFetch())), revision="2026-07-28") as client:
        await client.list_tools()
        given: dict[str, Any] = {
            "region": "Zürich",
            "shard": 3,
            "urgent": True,
            "customer": {"tier": "paid"},
        }
        assert (await client.call_tool("mirror", given)).value() == {"arguments": given}
    sent = headers[-1]
    assert (sent["mcp-param-shard"], sent["mcp-param-urgent"], sent["mcp-param-tier"]) == (
        "3",
        "true",
        "paid",
    )
    assert sent["mcp-param-region"].startswith("=?base64?")


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_work_that_outlives_its_stream(url: str, revision: str) -> None:
    """In 2025-11-25 the server closes the stream, the client comes back for the rest, and hears
    what was said meanwhile (`HTL-15`).
    """
    said: list[Any] = []
    async with Client(
        url, revision=revision, log_level="info", on_log=lambda p: said.append(p.data)
    ) as client:
        words = (await client.call_tool("come_back_later")).text
    assert words == ("You came back." if revision == "2025-11-25" else "You have never been away.")
    assert said == ["The stream is about to be closed.", "The work is done."]


async def test_scopes_over_the_web(url: str) -> None:
    """Who comes over HTTP without a guard has no scope, and is told which one is lacking; over
    stdio there is nothing to lack (`AUT-17`).
    """
    async with Client(url) as client:
        with pytest.raises(McpError, match="everything:more"):
            await client.call_tool("with_scope")
    async with Client(everything_server()) as client:
        assert (await client.call_tool("with_scope")).text.startswith("You have everything:more")


async def test_visits_of_others(url: str) -> None:
    """A visit is of use to the session that was sent to it, and to no other (`ELI-29`)."""
    async with (
        Client(url, revision="2025-11-25", elicit=person) as ann,
        Client(url, revision="2025-11-25", elicit=person) as bob,
    ):
        with pytest.raises(McpError) as refused:
            await ann.call_tool("open_account")
        id = refused.value.data["elicitations"][0]["elicitationId"]
        assert (await bob.call_tool("finish_visit", {"id": id})).is_error
        assert not (await ann.call_tool("finish_visit", {"id": id})).is_error
        with pytest.raises(McpError):
            await bob.call_tool("open_account")
        assert (await ann.call_tool("open_account")).text == "The account is open."
