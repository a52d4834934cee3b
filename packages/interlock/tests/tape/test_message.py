"""Explanations of messages: what is wrong under a revision, and the message under the others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.tape import explain_message
from interlock.wire.revisions import REVISIONS

OLD, *_, NEW = REVISIONS


def explained(message: Any, sender: Any = "client", revision: str = NEW, method: str = "") -> Any:
    frame = message if isinstance(message, bytes) else json.dumps(message).encode()
    return explain_message(frame, sender=sender, revision=revision, method=method)


def request(method: str, **params: Any) -> Any:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def result(**members: Any) -> Any:
    return {"jsonrpc": "2.0", "id": 1, "result": members}


def test_a_sound_message_has_no_problems() -> None:
    found = explained(request("tools/call", name="add", arguments={"a": 1, "any": [1.50]}))
    assert found.problems == []
    assert set(found.under) == set(REVISIONS)
    assert all(json.loads(text)["params"]["name"] == "add" for text in found.under.values())


@pytest.mark.parametrize(
    "message, given, words",
    [
        (b"{", {}, "not valid JSON"),
        (b'{"id":1}', {}, "jsonrpc"),
        (request("tools/call"), {}, "params: "),
        (request("tools/call", name=3), {}, "params: Expected `str`, got `int`"),
        (request("tools/call", name="x", nam=1), {}, "params.nam: the protocol has no such member"),
        (request("ping"), {}, f"{NEW} has no method ping"),
        (request("tools/list"), {"sender": "server"}, "a message of the client, not of the server"),
        (
            request("completion/complete", ref={"type": "ref/prompt", "name": "x"}, context={},
                    argument={"name": "a", "value": ""}),
            {"revision": OLD},
            f"params.context: {OLD} has no such member",
        ),
        (
            result(content=[], structuredContent={}),
            {"sender": "server", "revision": OLD, "method": "tools/call"},
            f"result.structuredContent: {OLD} has no such member",
        ),
        (
            result(content="text"),
            {"sender": "server", "method": "tools/call"},
            "result: ",
        ),
        (
            result(tools=[{"name": "x", "inputSchema": {}, "icon": "x"}]),
            {"sender": "server", "method": "tools/list"},
            "result.tools[0].icon: the protocol has no such member",
        ),
    ],
)  # fmt: skip
def test_a_problem_is_named(message: Any, given: dict[str, Any], words: str) -> None:
    found = explained(message, **given)
    assert words in " ".join(found.problems)


def test_each_revision_has_its_own_form() -> None:
    found = explained(
        result(content=[{"type": "text", "text": "3"}], structuredContent={"result": 3}),
        "server",
        REVISIONS[2],
        "tools/call",
    )
    under = {each: json.loads(text)["result"] for each, text in found.under.items()}
    assert under[NEW]["resultType"] == "complete"
    assert "structuredContent" in under[REVISIONS[2]]
    assert "structuredContent" not in under[OLD]
    assert "resultType" not in under[REVISIONS[2]]


def test_the_keys_of_a_stateless_request_are_not_in_older_revisions() -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": NEW, "com.example/own": 1}
    found = explained(request("tools/list", _meta=meta))
    assert json.loads(found.under[OLD])["params"] == {"_meta": {"com.example/own": 1}}


def test_a_revision_without_the_method_has_no_such_message() -> None:
    found = explained(request("server/discover"))
    assert [each for each, text in found.under.items() if text] == [NEW]
    asked = result(resultType="input_required", inputRequests={}, requestState="s")
    found = explained(asked, "server", NEW, "tools/call")
    assert [each for each, text in found.under.items() if text] == [NEW]


@pytest.mark.parametrize(
    "message, method",
    [
        (request("tasks/get", taskId="1"), ""),
        (result(taskId="1"), "tasks/get"),
        (result(resultType="task", taskId="1"), "tools/call"),
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no"}}, "tools/call"),
    ],
)
def test_messages_of_extensions_and_errors_are_not_judged(message: Any, method: str) -> None:
    assert explained(message, method=method).problems == []
