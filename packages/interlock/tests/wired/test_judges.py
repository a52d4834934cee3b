"""The official judges can say no: messages that are wrong in one way each are found out."""

from __future__ import annotations

import json

import pytest

from interlock.tape import Line
from interlock.wire.revisions import R1, R3, R4, R5
from tests.wired.official import AT_HAND, Judge

if not AT_HAND:
    pytest.skip(
        "the official schemas are not beside this repository (../shared/spec/schema)",
        allow_module_level=True,
    )

META = {
    "io.modelcontextprotocol/protocolVersion": R5,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
}


def judged(revision: str, *messages: tuple[str, object]) -> list[str]:
    """What is found in the last of some messages."""
    judge = Judge(revision)
    found = []
    for sender, message in messages:
        text = json.dumps({"jsonrpc": "2.0", **message} if isinstance(message, dict) else message)
        found = list(
            judge.problems(Line("client" if sender == "client" else "server", text.encode()))
        )
    return found


def asking(method: str, **params: object) -> tuple[str, object]:
    """A request of the client."""
    return "client", {"id": 1, "method": method, "params": params}


TOOL = {"name": "x", "inputSchema": {"type": "object"}}
NESTED = {"type": "object", "properties": {"inner": {"type": "object"}}}

GOOD = [
    (R1, [asking("tools/call", name="x")]),
    (R5, [asking("tools/call", name="x", _meta=META)]),
    (
        R5,
        [
            asking("tools/list", _meta=META),
            (
                "server",
                {
                    "id": 1,
                    "result": {
                        "resultType": "complete",
                        "tools": [],
                        "ttlMs": 0,
                        "cacheScope": "public",
                    },
                },
            ),
        ],
    ),
    (R4, [asking("ping"), ("server", {"id": 1, "result": {}})]),
]
BAD = [
    (R1, [asking("tools/call", arguments={})], "name"),
    (R1, [asking("elicitation/create", message="?")], "has no elicitation/create"),
    (R1, [asking("tools/call", name="x", task={})], "task"),
    (R5, [asking("tools/call", name="x")], "_meta"),
    (R5, [asking("ping", _meta=META)], "has no ping"),
    (
        R5,
        [asking("tools/list", _meta=META), ("server", {"id": 1, "result": {"tools": []}})],
        "resultType",
    ),
    (
        R5,
        [
            asking("tools/list", _meta=META),
            ("server", {"id": 1, "error": {"code": -32002, "message": "?"}}),
        ],
        "not to be used",
    ),
    (
        R1,
        [
            asking("tools/list"),
            ("server", {"id": 1, "result": {"tools": [{**TOOL, "title": "X"}]}}),
        ],
        "title",
    ),
    (
        R4,
        [
            asking("tools/list"),
            ("server", {"id": 1, "result": {"tools": [{**TOOL, "titel": "X"}]}}),
        ],
        "titel",
    ),
    (
        R4,
        [
            (
                "server",
                {
                    "id": 1,
                    "method": "elicitation/create",
                    "params": {"message": "?", "requestedSchema": NESTED},
                },
            )
        ],
        "anyOf",
    ),
    (
        R3,
        [asking("tools/list"), ("server", {"id": 1, "result": {"tools": [], "ttlMs": 1}})],
        "ttlMs",
    ),
    (
        R4,
        [asking("ping"), ("server", {"id": 1, "result": {"resultType": "complete"}})],
        "resultType",
    ),
    (R4, [asking("ping"), ("server", {"id": 2, "result": {}})], "was not made"),
    (R4, [("server", {"id": 1, "error": {"code": "x", "message": "?"}})], "code"),
    (R4, [("server", [])], "no JSON object"),
]


@pytest.mark.parametrize("revision, messages", GOOD)
def test_good_messages_pass(revision: str, messages: list):
    """The judges are not merely strict."""
    assert judged(revision, *messages) == []


@pytest.mark.parametrize("revision, messages, words", BAD)
def test_bad_messages_do_not(revision: str, messages: list, words: str):
    """Each in the words of the schema, with what is wrong in it."""
    assert any(words in problem for problem in judged(revision, *messages)), judged(
        revision, *messages
    )
