"""The call tree: which call a retry with answers goes on with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from interlock.tape import Recorder, TapeFile
from interlock_apps.web.tape_view.call_tree import CallTree


def call(id: int, name: str, **params: Any) -> tuple[str, bytes]:
    """A call of a tool."""
    message = {"id": id, "method": "tools/call", "params": {"name": name, **params}}
    return "client", json.dumps({"jsonrpc": "2.0", **message}).encode()


def asks(id: int, state: str) -> tuple[str, bytes]:
    """An answer that asks questions."""
    result = {"resultType": "input_required", "requestState": state, "inputRequests": {"q": {}}}
    return "server", json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode()


def done(id: int) -> tuple[str, bytes]:
    """A complete answer."""
    result = {"resultType": "complete", "content": []}
    return "server", json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode()


def parents(path: Path, *lines: tuple[str, bytes]) -> Iterator[tuple[int, int]]:
    """The requests of a tape that belong to another one: their ids, and the ids of those."""
    with Recorder(path) as recorder:
        connection = recorder.connection()
        for sender, frame in lines:
            connection.frames("client" if sender == "client" else "server", [frame])
    with TapeFile(path) as tape:
        tree = CallTree(tape)
        tree.extend()
        for row in tape.rows:
            parent = tree.parent(row.number)
            if row.kind == "request" and parent >= 0:
                assert row.number in tree.retries(parent)
                assert isinstance(row.id, int)
                first = tape.rows[parent].id
                assert isinstance(first, int)
                yield row.id, first


def test_each_retry_belongs_to_the_first_request(tmp_path: Path) -> None:
    """Also in a second round, and with another call of the same tool at the same time."""
    found = dict(
        parents(
            tmp_path / "x.tape",
            call(1, "order"),
            call(2, "order"),
            asks(1, "s1"),
            asks(2, "s2"),
            call(3, "order", requestState="s2", inputResponses={"q": {}}),
            call(4, "order", requestState="s1", inputResponses={"q": {}}),
            asks(3, "s3"),
            done(4),
            call(5, "order", requestState="s3", inputResponses={"q": {}}),
            done(5),
            call(6, "order"),
            done(6),
        )
    )
    assert found == {3: 2, 4: 1, 5: 2}


def test_a_retry_without_a_state_belongs_to_the_only_call_that_waits(tmp_path: Path) -> None:
    """The state is optional. What was asked on no recorded call belongs to none."""
    found = dict(
        parents(
            tmp_path / "x.tape",
            call(1, "pay"),
            asks(1, "s"),
            call(2, "pay", inputResponses={"q": {}}),
            done(2),
            call(3, "pay", inputResponses={"q": {}}),
            call(4, "other", requestState="s"),
        )
    )
    assert found == {2: 1}
