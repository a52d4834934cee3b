"""Tape files: what a recorder writes is opened by its index, whole or torn, and a change shows in
the hash chain.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.tape import (
    ConnectionEnd,
    HttpHead,
    Line,
    Recorder,
    StderrText,
    Tape,
    TapeError,
    TapeFile,
    TapeHeader,
    TapeIndex,
)
from interlock.tape.format import is_json


def encoded(message: Any) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def request(id: int | str, method: str = "tools/call", **params: Any) -> bytes:
    return encoded({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def result(id: int | str, **members: Any) -> bytes:
    return encoded({"jsonrpc": "2.0", "id": id, "result": members})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.tape"


def record(path: Path, *frames: tuple[str, bytes], **options: Any) -> None:
    with Recorder(path, **options) as recorder:
        connection = recorder.connection()
        for sender, frame in frames:
            connection(sender, frame)


def test_each_line_has_a_row(path: Path) -> None:
    now = iter([10.0, *(10.0 + n for n in range(1, 20))])
    with Recorder(
        path, about={"command": ["x"]}, clock=lambda: next(now), wall_clock=lambda: 1000.0
    ) as recorder:
        first = recorder.connection()
        second = recorder.connection()
        exchange = recorder.next_exchange()
        first("client", request(1, name="search"))
        first("server", result(1, isError=True))
        first("client", b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        second.http_request(exchange, "POST", "/mcp", [("Accept", "*/*")])
        second.frames("client", [request("a", "resources/read", uri="x://y")], exchange)
        second.http_response(exchange, 200, [("Content-Type", "application/json")])
        second.frames(
            "server",
            [encoded({"jsonrpc": "2.0", "id": "a", "error": {"code": -1, "message": "no"}})],
            exchange,
        )
        first("server", b"not json")
        first("client", b'[{"jsonrpc":"2.0","method":"x"}]')
        first.stderr("Listening\n")
        first.end(-15)
    with TapeFile(path) as tape:
        assert [(row.kind, row.sender, row.connection) for row in tape.rows] == [
            ("header", "", ""),
            ("request", "client", "1"),
            ("response", "server", "1"),
            ("notification", "client", "1"),
            ("http", "", "2"),
            ("request", "client", "2"),
            ("http", "", "2"),
            ("error", "server", "2"),
            ("bytes", "server", "1"),
            ("batch", "client", "1"),
            ("stderr", "", "1"),
            ("exit", "", "1"),
        ]
        call = tape.rows[1]
        assert (call.method, call.name, call.id, call.at) == ("tools/call", "search", 1, 1001.0)
        answer = tape.rows[2]
        assert (answer.method, answer.name, answer.failed) == ("tools/call", "search", True)
        assert (call.partner, answer.partner, tape.duration(call)) == (2, 1, 1.0)
        assert tape.rows[5].name == "x://y"
        assert tape.rows[7].failed
        assert tape.rows[7].exchange == exchange
        assert tape.connections == ["1", "2"]
        assert tape.problems == []
        assert tape.verify() == []
        lines = [tape.read(row) for row in tape.rows]
        assert isinstance(lines[0], TapeHeader)
        assert lines[0].about["command"] == ["x"]
        assert lines[1] == Line("client", request(1, name="search"), 1.0, "1")
        assert isinstance(lines[4], HttpHead)
        assert (lines[4].request, lines[4].headers) == ("POST /mcp", [("Accept", "*/*")])
        assert isinstance(lines[6], HttpHead)
        assert lines[6].status == 200
        assert lines[8] == Line("server", b"not json", 8.0, "1")
        assert lines[10] == StderrText("Listening\n", 10.0, "1")
        assert lines[11] == ConnectionEnd(-15, 11.0, "1")
        assert len(tape.conversation("2")) == 2
    assert len(Tape.load(path)) == 7


@given(st.lists(st.tuples(st.sampled_from(["client", "server"]), st.binary(min_size=1))))
def test_all_bytes_come_back(frames: list[tuple[str, bytes]]) -> None:
    """Whatever a peer sends, JSON or not; but for white space around JSON."""
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"interlock-{os.getpid()}-any.tape"
    path.unlink(missing_ok=True)
    try:
        record(path, *frames)
        with TapeFile(path) as tape:
            found = [(line.sender, line.frame) for line in tape.conversation()]
            assert tape.verify() == []
    finally:
        path.unlink(missing_ok=True)
    assert found == [(s, f.strip() if is_json(f) else f) for s, f in frames]


def test_a_second_recording_is_another_section(path: Path) -> None:
    """The chain goes on, and the connections of both are told apart."""
    record(path, ("client", request(1)))
    record(path, ("server", result(1)))
    with TapeFile(path) as tape:
        assert tape.connections == ["1", "2:1"]
        assert [row.partner for row in tape.rows] == [-1] * 4
        assert tape.verify() == []


def test_a_torn_last_line_is_named_and_appended_to(path: Path) -> None:
    record(path, ("client", request(1)), ("server", result(1)))
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    with TapeFile(path) as tape:
        assert [row.kind for row in tape.rows] == ["header", "request"]
        assert tape.problems == [
            f"the last line, at byte {tape.rows[-1].offset + tape.rows[-1].length + 1}, is cut off"
        ]
    assert len(Tape.load(path)) == 1
    record(path, ("client", request(2)))
    with TapeFile(path) as tape:
        assert [row.kind for row in tape.rows] == [
            "header",
            "request",
            "bytes",
            "header",
            "request",
        ]
        assert len(tape.problems) == 1
        assert len(tape.verify()) == 1


def test_a_running_recording_is_read(path: Path) -> None:
    with Recorder(path) as recorder:
        connection = recorder.connection()
        with TapeFile(path) as tape:
            assert [row.kind for row in tape.rows] == ["header"]
            connection("client", request(1))
            assert [row.kind for row in tape.refresh()] == ["request"]
            assert tape.refresh() == []
            connection("server", result(1))
            (row,) = tape.refresh()
            assert tape.rows[row.partner].kind == "request"


@pytest.mark.parametrize("change", ["alter", "remove", "insert"])
def test_a_change_breaks_the_chain(path: Path, change: str) -> None:
    record(path, *[("client", request(n, "ping")) for n in range(5)])
    lines = path.read_bytes().splitlines(keepends=True)
    if change == "alter":
        lines[3] = lines[3].replace(b"ping", b"pong")
    elif change == "remove":
        del lines[3]
    else:
        lines.insert(3, lines[2])
    path.write_bytes(b"".join(lines))
    with TapeFile(path) as tape:
        (words,) = tape.verify()
        assert words.startswith(f"The line at byte {tape.rows[3].offset} does not follow")


def test_two_recorders_take_two_files(path: Path) -> None:
    with Recorder(path) as one, Recorder(path) as other:
        assert one.path == path
        assert other.path == path.with_name("session-2.tape")


def test_threads_record_at_once(path: Path) -> None:
    """Each thread's messages stay in order, and the chain holds."""
    with Recorder(path) as recorder:

        def run() -> None:
            connection = recorder.connection()
            for n in range(200):
                connection("client", request(n, "ping"))

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with TapeFile(path) as tape:
        assert tape.verify() == []
        for name in tape.connections:
            ids = [line.message["id"] for line in tape.conversation(name)]
            assert ids == list(range(200))


def test_files_that_are_no_tapes(path: Path) -> None:
    path.write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(TapeError, match="is not a tape"):
        TapeFile(path)
    with pytest.raises(TapeError, match="is not a recorded tape"):
        Recorder(path)
    path.write_bytes(b'{"tape":2,"about":{}}\n')
    with pytest.raises(TapeError, match="update Interlock"):
        TapeFile(path)


def test_a_tape_by_hand_opens(path: Path) -> None:
    path.write_bytes(
        b'{"about":{"title":"x"}}\n{"remark":"r"}\n{"client":{"method":"ping","id":1}}'
    )
    with TapeFile(path) as tape:
        assert [row.kind for row in tape.rows] == ["header", "remark", "request"]
        assert tape.problems == []


@given(st.binary())
def test_no_line_breaks_the_index(line: bytes) -> None:
    """It becomes a row or a problem, never another error than that of the version."""
    index = TapeIndex()
    for each in (line, b'{"client":%b}' % line, b'{"server":{"id":1,"result":%b}}' % line):
        if b"\n" not in each:
            try:
                index.add(each, 0)
            except TapeError as bad:
                assert "version" in str(bad)


UNUSUAL = [
    ({"id": 1, "method": "x", "params": [1]}, "request"),
    ({"id": 1, "result": "text"}, "response"),
    ({"id": 1, "result": None}, "response"),
    ({"id": 1, "result": {}, "error": None}, "response"),
    ({"id": 1, "error": "text"}, "error"),
    ({"id": None, "error": {"code": 1}}, "error"),
    ({"id": 1.5, "method": "x"}, "notification"),
    ({"method": "x", "params": {"name": 1, "uri": None}}, "notification"),
    ({}, "bytes"),
    (None, "bytes"),
    ([], "batch"),
]


@pytest.mark.parametrize("message, kind", UNUSUAL)
def test_unusual_messages_have_a_kind(message: Any, kind: str) -> None:
    index = TapeIndex()
    row = index.add(b'{"client":%b}' % msgspec.json.encode(message), 0)
    assert row is not None
    assert row.kind == kind
    assert index.problems == []


def test_a_disk_that_is_full_stops_only_the_recording(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Recorder(path) as recorder:
        connection = recorder.connection()
        connection("client", request(1))

        def full(descriptor: int, data: Any) -> int:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(os, "write", full)
            connection("client", request(2))
        connection("client", request(3))
    assert recorder.failure == "No space left on device"
    assert "Recording to" in caplog.text
    assert len(Tape.load(path)) == 1


def test_a_tape_is_indexed_in_pieces(path: Path) -> None:
    """`most` bytes at a time, in whole lines, with the rows of one pass; lines that are appended
    meanwhile come after them.
    """
    with Recorder(path) as recorder:
        connection = recorder.connection()
        for number in range(100):
            connection("client", request(number))
            connection("server", result(number))
        with TapeFile(path) as whole, TapeFile(path, most=1000) as tape:
            assert 0 < len(tape.rows) < 201
            assert tape.behind > 0
            connection("client", request("late"))
            while tape.behind:
                before = len(tape.rows)
                assert 0 < len(tape.refresh(1000)) < 100
                assert len(tape.rows) > before
            assert tape.rows[:-1] == whole.rows
            assert tape.rows[-1].id == "late"
            assert tape.refresh(1000) == []


def test_a_line_that_is_cut_off_is_not_behind(path: Path) -> None:
    record(path, ("client", request(1)))
    with TapeFile(path) as tape:
        with open(path, "ab") as file:
            file.write(b'{"at":1,"cli')
        assert tape.behind == 12
        assert tape.refresh() == []
        assert tape.behind == 0
        with open(path, "ab") as file:
            file.write(b'ent":{"jsonrpc":"2.0","id":2,"method":"ping"}}\n')
        assert tape.behind > 0
        assert [row.method for row in tape.refresh()] == ["ping"]


def test_a_message_has_the_revision_of_its_handshake(path: Path) -> None:
    named = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    record(
        path,
        ("client", request(1, "initialize", protocolVersion="2025-11-25")),
        ("server", result(1, protocolVersion="2025-06-18")),
        ("client", request(2, "tools/list")),
        ("server", result(2, tools=[])),
        ("client", request(3, "tools/list", **named)),
        ("server", result(3, tools=[])),
    )
    with TapeFile(path) as tape:
        found = [tape.revision(row) for row in tape.rows]
    assert found == ["", "", *["2025-06-18"] * 3, *["2026-07-28"] * 2]
