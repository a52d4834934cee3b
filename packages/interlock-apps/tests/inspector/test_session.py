"""The session of an inspector, over real servers: connections, the tape that they share, requests
as they were typed, and saved calls.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock import REVISIONS, ClientTransport, Context, InterlockError, Server, Stdio
from interlock.tape import RecordedConnection, Recorder
from interlock_apps.inspector.act import run_act
from interlock_apps.inspector.acts import ACTS
from interlock_apps.inspector.session import Inspector
from interlock_apps.inspector.targets import InspectorTarget
from interlock_apps.web.page_site import ActError
from tests.inspector.stage import inspecting, server_target
from tests.web.offers import travel


async def act(inspector: Inspector, name: str, /, **params: Any) -> Any:
    """Run an act as the page does, and return its value as the page gets it."""
    body = msgspec.json.encode({"act": name, **params})
    value = await run_act(ACTS, inspector, body)
    return msgspec.json.decode(msgspec.json.encode(value))


async def rows(inspector: Inspector, filter: str = "", **more: Any) -> list[dict[str, Any]]:
    """The rows that the page gets for a filter."""
    found = await act(inspector, "rows", recording="live", filter=filter, count=500, **more)
    assert found["total"] == len(found["rows"])
    return list(found["rows"])


def adder() -> Server:
    server = Server("adder", "1.0")

    @server.tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return server


@pytest.mark.parametrize("revision", ["auto", *REVISIONS])
async def test_a_connection_has_the_revision_that_was_asked_for(
    tmp_path: Path, revision: str
) -> None:
    async with inspecting(tmp_path, server_target("adder", adder(), revision=revision)) as it:
        connection = it.connections["adder"]
        assert connection.status == "open"
        assert connection.revision == (REVISIONS[-1] if revision == "auto" else revision)
        assert connection.client is not None
        result = await connection.client.call_tool("add", {"a": 1, "b": 2})
        assert result.text == "3"
        (call,) = await rows(it, "tool:add request")
        assert (call["sender"], call["connection"]) == ("client", "adder")
        assert call["duration"] >= 0


async def test_the_revision_is_changed_by_connecting_again(tmp_path: Path) -> None:
    async with inspecting(tmp_path, server_target("adder", adder())) as it:
        await act(it, "connect", connection="adder", revision=REVISIONS[1])
        assert it.connections["adder"].revision == REVISIONS[1]
        await act(it, "connect", connection="adder", revision="auto")
        assert it.connections["adder"].revision == REVISIONS[-1]
        with pytest.raises(ActError, match="Unknown revision '1999-01-01'"):
            await act(it, "connect", connection="adder", revision="1999-01-01")
        # Each connection of the tape has the name of the inspector's.
        assert {row["connection"] for row in await rows(it)} == {"adder"}


async def test_a_server_that_cannot_be_reached_is_a_failed_connection(tmp_path: Path) -> None:
    """The inspector goes on, and says why."""

    def transport(tap: RecordedConnection) -> ClientTransport:
        return Stdio(
            [sys.executable, "-c", "import sys; sys.exit('no database')"],
            tap=tap,
            on_stderr=lambda line: tap.stderr(f"{line}\n"),
        )

    target = InspectorTarget("broken", "broken", transport=transport)
    async with inspecting(tmp_path, target, server_target("adder", adder())) as it:
        assert it.connections["broken"].status == "failed"
        assert "no database" in it.connections["broken"].words
        assert it.connections["adder"].status == "open"
        (line,) = await rows(it, "stderr")
        assert (line["kind"], line["summary"]) == ("stderr", "no database")


@pytest.mark.parametrize("revision", [REVISIONS[-1], REVISIONS[-2]])
async def test_params_are_sent_as_they_were_typed(tmp_path: Path, revision: str) -> None:
    """Unknown members, wrong types and unknown methods reach the server, which answers."""
    async with inspecting(tmp_path, server_target("adder", adder(), revision=revision)) as it:
        sent = await act(
            it,
            "send",
            connection="adder",
            method="tools/call",
            params=(
                '{"name": "add", "arguments": {"a": 1, "b": 12345678901234567890}, "odd": [1.50]}'
            ),
        )
        message = await act(it, "message", **sent)
        assert '"odd":[1.50]' in message["raw"].replace(" ", "")
        assert "12345678901234567890" in message["raw"]
        assert "params.odd: the protocol has no such member." in message["problems"]
        for method, params, words in [
            ("tools/call", '{"name": 7}', "params"),
            ("no/such", "{}", "no method no/such"),
        ]:
            sent = await act(it, "send", connection="adder", method=method, params=params)
            await it.connections["adder"].settled()
            message = await act(it, "message", **sent)
            assert message["row"]["failed"]
            assert message["partner"]["kind"] == "error"
            assert words in " ".join(message["problems"]) or method == "no/such"


@pytest.mark.parametrize(
    "params, words",
    [("{", "not JSON"), ("[1]", "must be a JSON object"), ("3", "must be a JSON object")],
)
async def test_only_a_json_object_is_sent(tmp_path: Path, params: str, words: str) -> None:
    async with inspecting(tmp_path, server_target("adder", adder())) as it:
        with pytest.raises(ActError, match=words):
            await act(it, "send", connection="adder", method="ping", params=params)


async def test_a_message_shows_what_each_revision_would_have(tmp_path: Path) -> None:
    async with inspecting(tmp_path, server_target("adder", adder())) as it:
        client = it.connections["adder"].client
        assert client is not None
        await client.call_tool("add", {"a": 1, "b": 2})
        (call,) = await rows(it, "tool:add response")
        message = await act(it, "message", recording="live", row=call["number"])
        under = {each: msgspec.json.decode(text) for each, text in message["under"].items()}
        assert message["revision"] == REVISIONS[-1]
        assert message["problems"] == []
        assert under[REVISIONS[-1]]["result"]["resultType"] == "complete"
        assert "structuredContent" in under[REVISIONS[2]]["result"]
        assert "structuredContent" not in under[REVISIONS[0]]["result"]
        asked = await act(it, "message", recording="live", row=call["partner"])
        # Not the keys of `_meta` that the client sets.
        assert msgspec.json.decode(asked["request"]["params"]) == {
            "name": "add",
            "arguments": {"a": 1, "b": 2},
        }
        assert asked["request"]["command"] == (
            """interlock call adder.py add --json '{"a":1,"b":2}'"""
        )


async def test_what_belongs_to_a_call_is_found(tmp_path: Path) -> None:
    """Progress and log lines of a call are its children."""
    server = Server("slow")

    @server.tool
    async def work(ctx: Context) -> str:
        ctx.progress(1, 2, "half")
        return "done"

    async with inspecting(tmp_path, server_target("slow", server)) as it:
        client = it.connections["slow"].client
        assert client is not None
        await client.call_tool("work", on_progress=lambda _: None)
        (call,) = await rows(it, "tool:work request")
        message = await act(it, "message", recording="live", row=call["number"])
        assert [one["method"] for one in message["children"]] == ["notifications/progress"]
        (progress,) = await rows(it, "notification")
        assert progress["parent"] == call["number"]
        assert progress["summary"] == "half"


async def test_a_filter_that_cannot_be_read_is_refused_in_words(tmp_path: Path) -> None:
    async with inspecting(tmp_path, server_target("adder", adder())) as it:
        with pytest.raises(ValueError, match="'serch' is not a word of the filter"):
            await rows(it, "serch")


async def test_calls_are_saved_run_again_and_deleted(tmp_path: Path) -> None:
    target = server_target("adder", adder())
    async with inspecting(tmp_path, target) as it:
        await act(
            it,
            "saveCall",
            name="sum",
            connection="adder",
            method="tools/call",
            params='{"name":"add","arguments":{"a":2,"b":3}}',
        )
        assert [call["name"] for call in it.state()["saved"]] == ["sum"]
    # Another inspector of the same user has them too.
    with Recorder(tmp_path / "other.tape") as recorder:
        it = Inspector([server_target("adder", adder())], recorder, calls=tmp_path / "calls.json")
        await it.open()
        sent = await act(it, "runCall", name="sum")
        await it.connections["adder"].settled()
        message = await act(it, "message", **sent)
        assert message["row"]["name"] == "add"
        assert message["partner"]["kind"] == "response"
        command = await act(it, "callCommand", name="sum")
        assert command == """interlock call adder.py add --json '{"a":2,"b":3}'"""
        test = await act(it, "callTest", name="sum")
        suite = tomllib.loads(test)
        assert suite["target"] == "adder.py"
        (step,) = suite["test"][0]["step"]
        assert (step["call"], step["arguments"]) == ("add", {"a": 2, "b": 3})
        assert step["expect"]["equal"]["/structuredContent"] == {"result": 5}
        whole = tomllib.loads(await act(it, "connectionTest", connection="adder"))
        assert len(whole["test"][0]["step"]) == 2
        await act(it, "deleteCall", name="sum")
        assert it.state()["saved"] == []
        with pytest.raises(ActError, match="no saved call 'sum'"):
            await act(it, "runCall", name="sum")
        await it.aclose()


async def test_a_tape_opens_offline_with_the_same_view(tmp_path: Path) -> None:
    """Nothing of a tape is run: its connection is recorded, and cannot be opened."""
    async with inspecting(tmp_path, server_target("travel", travel())) as it:
        client = it.connections["travel"].client
        assert client is not None
        await client.call_tool("cancel", {"booking": 3})
        live = await rows(it)
    (tmp_path / "later").mkdir()
    tape = InspectorTarget("old.tape", "old.tape", tape=tmp_path / "live.tape")
    async with inspecting(tmp_path / "later", tape) as it:
        (name,) = it.connections
        assert it.connections[name].status == "recorded"
        found = await act(it, "rows", recording="old.tape", count=500)
        assert [row["kind"] for row in found["rows"]] == [row["kind"] for row in live]
        failed = await act(it, "rows", recording="old.tape", filter="error request")
        assert [row["name"] for row in failed["rows"]] == ["cancel"]
        with pytest.raises(ActError, match="not a server that the command line named"):
            await act(it, "connect", connection=name)
        with pytest.raises(InterlockError, match="is not connected"):
            await act(it, "send", connection=name, method="ping")


async def test_a_recording_is_appended_to_an_earlier_one(tmp_path: Path) -> None:
    """The connections of both are told apart."""
    for _ in range(2):
        async with inspecting(tmp_path, server_target("adder", adder())) as it:
            client = it.connections["adder"].client
            assert client is not None
            await client.call_tool("add", {"a": 1, "b": 2})
            found = await rows(it, "tool:add request")
            names = [row["connection"] for row in found]
            statuses = {one["name"]: one["status"] for one in it.state()["connections"]}
    assert names == ["live.tape/1", "adder"]
    assert statuses == {"adder": "open", "live.tape/1": "recorded"}


async def test_a_tape_is_followed_while_another_program_writes_it(tmp_path: Path) -> None:
    with Recorder(tmp_path / "growing.tape") as recorder:
        connection = recorder.connection()
        connection("client", b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
        target = InspectorTarget("growing", "growing.tape", tape=tmp_path / "growing.tape")
        async with inspecting(tmp_path, target) as it:
            found = await act(it, "rows", recording="growing", filter="unanswered")
            assert found["total"] == 1
            connection("server", b'{"jsonrpc":"2.0","id":1,"result":{}}')
            found = await act(it, "rows", recording="growing")
            assert found["total"] == 2
            # The request was shown as unanswered before, and is not any more.
            found = await act(it, "rows", recording="growing", filter="unanswered")
            assert found["total"] == 0


async def test_a_target_is_connected_twice_under_two_revisions(tmp_path: Path) -> None:
    async with inspecting(tmp_path, server_target("travel", travel())) as it:
        name = await act(it, "duplicate", connection="travel")
        await act(it, "connect", connection=name, revision=REVISIONS[0])
        assert it.connections[name].revision == REVISIONS[0]
        found = await act(it, "compare", one="travel", other=name)
        names = {change["name"] for change in found["changes"]}
        assert "search_flights" in names  # 2024-11-05 has no output schemas
        both = next(one for one in found["features"] if one["name"] == "search_flights")
        assert "outputSchema" in both["one"]
        assert "outputSchema" not in both["other"]
