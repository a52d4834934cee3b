"""The acts of the feature panels, over servers in this process: what the page is given, and what
the server was sent.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from interlock import AnyResult, Context, Exchange, Handler, InterlockError, Server
from interlock_apps.inspector.act import run_act
from interlock_apps.inspector.acts import ACTS
from interlock_apps.inspector.session import Inspector
from tests.inspector.stage import inspecting, server_target
from tests.web.offers import travel, weather

HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"
REVISIONS = pytest.mark.parametrize("revision", [HANDSHAKE, STATELESS])


async def act(inspector: Inspector, name: str, /, **params: Any) -> Any:
    """Run an act as the page does; the outcome as the page gets it."""
    body = msgspec.json.encode({"act": name, **params})
    value = await run_act(ACTS, inspector, body)
    return msgspec.json.decode(msgspec.json.encode(value))


async def state_where(inspector: Inspector, holds: Any, connection: str = "travel") -> Any:
    """The state of a connection, once a condition holds."""
    met: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def look(_: object = None) -> None:
        state = msgspec.json.decode(msgspec.json.encode(inspector.connections[connection].state()))
        if holds(state) and not met.done():
            met.set_result(state)

    stop = inspector.events.listen(look)
    try:
        look()
        async with asyncio.timeout(60):
            return await met
    finally:
        stop()


async def ended(inspector: Inspector, call: str, connection: str = "travel") -> Any:
    """A call once it has ended."""

    def is_over(state: Any) -> bool:
        found = {one["id"]: one["status"] for one in state["features"]["calls"]}
        return found.get(call, "running") != "running"

    await state_where(inspector, is_over, connection)
    return await act(inspector, "getCall", connection=connection, call=call)


@REVISIONS
async def test_a_tool_is_listed_and_called(tmp_path: Path, revision: str) -> None:
    async with inspecting(
        tmp_path, server_target("travel", travel(), revision=revision)
    ) as inspector:
        tools = await act(inspector, "listTools", connection="travel")
        search = next(tool for tool in tools if tool["name"] == "search_flights")
        assert search["annotations"]["readOnlyHint"] is True
        arguments = {"origin": "BER", "destination": "BCN", "date": "2026-07-01"}
        begun = await act(
            inspector,
            "callTool",
            connection="travel",
            tool="search_flights",
            arguments=arguments,
        )
        call = await ended(inspector, begun["call"])
        assert call["status"] == "done"
        assert call["result"]["structuredContent"]["result"][0]["flight"] == "VY 8301"
        assert call["violations"] == []
        answer = await act(
            inspector,
            "toolCommand",
            connection="travel",
            tool="search_flights",
            arguments=arguments,
        )
        assert answer["command"] == (
            "interlock call travel.py search_flights origin=BER destination=BCN "
            f"date=2026-07-01 --revision {revision}"
        )


async def test_a_failure_of_a_tool_and_an_error_of_the_protocol(tmp_path: Path) -> None:
    async with inspecting(tmp_path, server_target("travel", travel())) as inspector:
        begun = await act(
            inspector, "callTool", connection="travel", tool="cancel", arguments={"booking": 7}
        )
        failed = await ended(inspector, begun["call"])
        assert failed["status"] == "failed"
        assert failed["result"]["isError"] is True
        begun = await act(inspector, "callTool", connection="travel", tool="nothing")
        unknown = await ended(inspector, begun["call"])
        assert unknown["status"] == "failed"
        assert unknown["error"]["code"] == -32602


async def test_a_result_that_does_not_fit_its_schema(tmp_path: Path) -> None:
    """The client does not check results here, so that they are shown; the panel says what is
    wrong.
    """
    async with inspecting(tmp_path, server_target("liar", liar())) as inspector:
        await act(inspector, "listTools", connection="liar")
        begun = await act(inspector, "callTool", connection="liar", tool="count")
        call = await ended(inspector, begun["call"], "liar")
        assert call["status"] == "done"
        assert len(call["violations"]) == 1
        assert "/count" in call["violations"][0]


async def test_progress_and_cancellation(tmp_path: Path) -> None:
    async with inspecting(tmp_path, server_target("travel", travel())) as inspector:
        begun = await act(inspector, "callTool", connection="travel", tool="compare")

        def shows(state: Any) -> bool:
            progress = state["features"]["calls"][0]["progress"]
            return bool(progress) and progress["progress"] == 3

        await state_where(inspector, shows)
        await act(inspector, "cancelCall", connection="travel", call=begun["call"])
        call = await ended(inspector, begun["call"])
        assert call["status"] == "cancelled"
        assert call["result"] is None


@REVISIONS
async def test_resources_templates_prompts_and_completion(tmp_path: Path, revision: str) -> None:
    async with inspecting(
        tmp_path,
        server_target("travel", travel(), revision=revision),
        server_target("weather", weather(), revision=revision),
    ) as inspector:
        listed = await act(inspector, "listResources", connection="weather")
        assert listed["resources"] == []
        template = listed["templates"][0]["uriTemplate"]
        ref = {"type": "ref/resource", "uri": template}
        found = await act(
            inspector, "complete", server="weather", ref=ref, argument="city", value="ba"
        )
        assert "Barcelona" in found["values"]
        values = {"city": "Park City", "date": "today"}
        expanded = await act(
            inspector, "expandTemplate", connection="weather", template=template, values=values
        )
        read = await act(inspector, "readResource", connection="weather", uri=expanded["uri"])
        assert '"clear"' in read["contents"][0]["text"]
        assert read["command"].startswith(
            "interlock read weather.py weather://forecast/Park%20City"
        )
        prompts = await act(inspector, "listPrompts", connection="travel")
        assert [one["name"] for one in prompts] == ["plan-vacation"]
        got = await act(
            inspector,
            "getPrompt",
            connection="travel",
            name="plan-vacation",
            arguments={"destination": "Bari"},
        )
        assert "Bari" in got["messages"][0]["content"]["text"]
        assert got["command"].startswith(
            "interlock prompt travel.py plan-vacation destination=Bari"
        )


@REVISIONS
async def test_a_subscription_reports_what_changed(tmp_path: Path, revision: str) -> None:
    server = travel()
    async with inspecting(
        tmp_path, server_target("travel", server, revision=revision)
    ) as inspector:
        uri = "trips://preferences"
        made = await act(inspector, "subscribe", connection="travel", uris=[uri])

        def granted(state: Any) -> bool:
            return state["features"]["subscriptions"][0]["granted"] is not None

        await state_where(inspector, granted)
        server.updated(uri)
        state = await state_where(
            inspector, lambda state: state["features"]["subscriptions"][0]["count"] == 1
        )
        change = state["features"]["subscriptions"][0]["changes"][0]
        assert (change["kind"], change["uri"]) == ("resource", uri)
        await act(inspector, "unsubscribe", connection="travel", subscription=made["subscription"])
        await state_where(inspector, lambda state: state["features"]["subscriptions"][0]["ended"])
        await act(inspector, "unsubscribe", connection="travel", subscription=made["subscription"])
        await state_where(inspector, lambda state: state["features"]["subscriptions"] == [])


@REVISIONS
async def test_the_user_answers_a_form(tmp_path: Path, revision: str) -> None:
    """A wrong value is refused with its field; the right ones reach the tool."""
    async with inspecting(
        tmp_path, server_target("travel", travel(), revision=revision)
    ) as inspector:
        begun = await act(
            inspector,
            "callTool",
            connection="travel",
            tool="book_hotel",
            arguments={"city": "Bari"},
        )
        state = await state_where(inspector, lambda state: state["questions"])
        (question,) = state["questions"]
        assert question["call"] == begun["call"]
        assert question["tool"] == "book_hotel"
        assert [field["name"] for field in question["fields"]] == [
            "name", "seat", "nights", "insurance"
        ]  # fmt: skip

        async def answer(content: dict[str, Any]) -> Any:
            given = {"action": "send", "content": content}
            return await act(
                inspector,
                "answerQuestion",
                connection="travel",
                question=question["id"],
                answer=given,
            )

        assert set((await answer({"name": "A", "seat": "aisle"}))["wrong"]) == {"name"}
        assert (await answer({"name": "Ada", "seat": "aisle"}))["wrong"] is None
        call = await ended(inspector, begun["call"])
        assert (
            call["result"]["content"][0]["text"] == "Booked 7 nights in Bari for Ada, aisle side."
        )
        with pytest.raises(ValueError, match="no longer open"):
            await answer({"name": "Ada", "seat": "aisle"})


@REVISIONS
async def test_a_rule_answers_and_the_first_that_fits_wins(tmp_path: Path, revision: str) -> None:
    async with inspecting(
        tmp_path, server_target("travel", travel(), revision=revision)
    ) as inspector:
        content = {"name": "Ada", "seat": "window"}
        rules = [
            {"method": "sampling/createMessage", "answer": "text", "text": "VY 8301"},
            {"tool": "other", "answer": "decline"},
            {"tool": "book_hotel", "message": "WHO SLEEPS", "answer": "accept", "content": content},
            {"answer": "decline"},
        ]
        await act(inspector, "setRules", connection="travel", rules=rules)
        booked = await act(
            inspector,
            "callTool",
            connection="travel",
            tool="book_hotel",
            arguments={"city": "Bari"},
        )
        call = await ended(inspector, booked["call"])
        assert "for Ada, window side" in call["result"]["content"][0]["text"]
        sampled = await act(
            inspector,
            "callTool",
            connection="travel",
            tool="find_best_flight",
            arguments={"destination": "Bari"},
        )
        call = await ended(inspector, sampled["call"])
        assert call["result"]["content"][0]["text"] == "The model says: VY 8301"


@REVISIONS
async def test_a_rule_answers_as_recorded(tmp_path: Path, revision: str) -> None:
    """The answer that the user gave once is on the tape, and answers the same question again. A
    question that no tape has waits for the user, and says why.
    """
    async with inspecting(
        tmp_path, server_target("travel", travel(), revision=revision)
    ) as inspector:
        asked = {"connection": "travel", "tool": "book_hotel"}
        first = await act(inspector, "callTool", **asked, arguments={"city": "Bari"})
        state = await state_where(inspector, lambda state: state["questions"])
        content = {"name": "Grace", "seat": "aisle", "nights": 2}
        await act(
            inspector,
            "answerQuestion",
            connection="travel",
            question=state["questions"][0]["id"],
            answer={"action": "send", "content": content},
        )
        await ended(inspector, first["call"])
        await act(inspector, "setRules", connection="travel", rules=[{"answer": "recording"}])
        again = await act(inspector, "callTool", **asked, arguments={"city": "Bari"})
        call = await ended(inspector, again["call"])
        assert "2 nights in Bari for Grace" in call["result"]["content"][0]["text"]
        await act(inspector, "callTool", **asked, arguments={"city": "Lisbon"})
        state = await state_where(inspector, lambda state: state["questions"])
        assert "No tape has an answer" in state["questions"][0]["problem"]


async def test_a_refused_sampling_is_an_error_of_the_server(tmp_path: Path) -> None:
    async with inspecting(tmp_path, server_target("travel", travel())) as inspector:
        begun = await act(
            inspector,
            "callTool",
            connection="travel",
            tool="find_best_flight",
            arguments={"destination": "Bari"},
        )
        state = await state_where(inspector, lambda state: state["questions"])
        (question,) = state["questions"]
        assert question["request"]["maxTokens"] == 200
        await act(
            inspector,
            "answerQuestion",
            connection="travel",
            question=question["id"],
            answer={"action": "decline"},
        )
        call = await ended(inspector, begun["call"])
        assert call["status"] == "failed"


@REVISIONS
async def test_the_roots_are_given_when_the_server_asks(tmp_path: Path, revision: str) -> None:
    server = Server("rooted")

    @server.tool()
    async def where(ctx: Context) -> list[str]:
        """The roots."""
        return [root.uri for root in await ctx.roots()]

    async with inspecting(
        tmp_path, server_target("rooted", server, revision=revision)
    ) as inspector:
        await act(inspector, "setRoots", connection="rooted", roots=[str(tmp_path)])
        begun = await act(inspector, "callTool", connection="rooted", tool="where")
        call = await ended(inspector, begun["call"], "rooted")
        assert call["result"]["structuredContent"]["result"] == [tmp_path.as_uri()]
        with pytest.raises(ValueError, match="not a folder"):
            await act(inspector, "setRoots", connection="rooted", roots=["https://x.example"])


async def test_a_skill_is_read_and_its_files_are_checked(tmp_path: Path) -> None:
    server = Server("shop")
    text = "---\nname: refunds\ndescription: Refund an order.\n---\n\n# How\n"
    server.add_skill("acme/refunds", {"SKILL.md": text, "letter.md": "Dear customer\n"})
    async with inspecting(tmp_path, server_target("shop", server)) as inspector:
        listed = await act(inspector, "listSkills", connection="shop")
        (skill,) = listed["skills"]
        assert skill["name"] == "refunds"
        checked = await act(inspector, "checkSkill", connection="shop", uri=skill["uri"])
        assert [(one["path"], one["fits"]) for one in checked["files"]] == [
            ("SKILL.md", True),
            ("letter.md", True),
        ]
        read = await act(
            inspector, "readSkill", connection="shop", uri=skill["uri"], path="letter.md"
        )
        assert read["text"] == "Dear customer\n"


async def test_nothing_is_sent_over_a_closed_connection(tmp_path: Path) -> None:
    async with inspecting(tmp_path, server_target("travel", travel())) as inspector:
        await inspector.connections["travel"].close()
        with pytest.raises(InterlockError, match="not connected"):
            await act(inspector, "listTools", connection="travel")


async def test_a_connection_that_closes_ends_its_calls_and_questions(tmp_path: Path) -> None:
    async with inspecting(tmp_path, server_target("travel", travel())) as inspector:
        begun = await act(
            inspector,
            "callTool",
            connection="travel",
            tool="book_hotel",
            arguments={"city": "Bari"},
        )
        await state_where(inspector, lambda state: state["questions"])
        await inspector.connections["travel"].close()
        call = await ended(inspector, begun["call"])
        assert call["status"] in ("cancelled", "failed")
        assert inspector.connections["travel"].state()["questions"] == []


def liar() -> Server:
    """A server whose result does not fit its output schema."""
    server = Server("liar")

    @server.tool()
    def count() -> dict[str, int]:
        """Count to one."""
        return {"count": 1}

    def lying(handler: Handler) -> Handler:
        async def handle(exchange: Exchange) -> AnyResult:
            result = await handler(exchange)
            if exchange.method != "tools/call":
                return result
            return replace(result, structured_content={"count": "many"})

        return handle

    server.use(lying)
    return server
