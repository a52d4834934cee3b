"""The ring buffer of messages: what it keeps, what belongs together, and what it redacts."""

from __future__ import annotations

import json
from contextvars import ContextVar

from hypothesis import given
from hypothesis import strategies as st

from interlock import Client, Server
from interlock.tape import Line, TapeBuffer

CALL: ContextVar[str] = ContextVar("call", default="")


def request(id: int, method: str = "tools/call", **params: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()


def response(id: int, text: str = "ok") -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "result": {"text": text}}).encode()


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 400)), max_size=60),
    st.integers(50, 2_000),
    st.integers(1, 30),
)
def test_it_never_keeps_more_than_it_may(
    sent: list[tuple[bool, int]], most_bytes: int, most: int
) -> None:
    """Whatever is sent, the bytes and the number of messages stay below their limits, and the
    newest message that fits is there.
    """
    buffer = TapeBuffer(most_bytes=most_bytes, most_messages=most, mark=lambda: "m")
    tap = buffer.connection()
    for from_client, size in sent:
        tap("client" if from_client else "server", b"x" * size)
        assert buffer.size <= most_bytes
    excerpt = buffer.excerpt("m")
    if excerpt is not None:
        assert 1 <= len(excerpt.rows) <= most


async def test_the_messages_of_one_call() -> None:
    """Requests carry the mark of where they were sent; responses follow them by their id. Messages
    before the first one, and of other connections, are no part of it.
    """
    server = Server("s")

    @server.tool
    async def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    buffer = TapeBuffer(mark=CALL.get)
    async with Client(server, record=buffer) as client, Client(server, record=buffer) as other:
        await client.call_tool("double", {"number": 1})
        await other.call_tool("double", {"number": 9})
        CALL.set("second")
        await client.call_tool("double", {"number": 2})
        CALL.set("")
        await client.call_tool("double", {"number": 3})
    excerpt = buffer.excerpt("second")
    assert excerpt is not None
    (asked, answer), later = excerpt.rows[:2], excerpt.rows[2:]
    assert (asked.kind, asked.method, asked.name) == ("request", "tools/call", "double")
    assert excerpt.marks[0] == "second"
    assert (answer.kind, answer.partner) == ("response", asked.number)
    assert excerpt.duration(asked) is not None
    assert "second" not in excerpt.marks[1:]
    line = excerpt.read(asked)
    assert isinstance(line, Line)
    assert line.message["params"]["arguments"] == {"number": 2}
    assert {row.connection for row in later} <= {asked.connection}
    assert buffer.excerpt("never") is None


def test_secrets_are_redacted_when_they_are_read() -> None:
    """Also those that become known only after the message was sent."""
    buffer = TapeBuffer(mark=lambda: "c", clock=lambda: 5.0)
    tap = buffer.connection("shop")
    tap("client", request(1, name="buy", arguments={"card": "hunter2-hunter2", "password": "p4ss"}))
    buffer.redactor.add("hunter2-hunter2")
    excerpt = buffer.excerpt("c")
    assert excerpt is not None
    raw = excerpt.raw(excerpt.rows[0])
    assert b"hunter2" not in raw
    assert b"p4ss" not in raw
    assert excerpt.rows[0].at == 5.0
    assert excerpt.rows[0].connection == "shop"


def test_a_huge_message_is_cut() -> None:
    """One message does not push out all others."""
    buffer = TapeBuffer(most_bytes=1_000_000, mark=lambda: "c")
    tap = buffer.connection()
    tap("client", request(1))
    tap("server", response(1, "x" * 2_000_000))
    excerpt = buffer.excerpt("c")
    assert excerpt is not None
    assert [row.kind for row in excerpt.rows] == ["request", "bytes"]
    assert buffer.size < 100_000


def test_the_secrets_of_a_cut_message_are_redacted() -> None:
    """The part that is kept is no JSON, in which a secret would be found by its name."""
    buffer = TapeBuffer(most_bytes=4_000, mark=lambda: "c")
    tap = buffer.connection()
    tap("client", request(1, arguments={"password": "correct horse", "body": "x" * 5_000}))
    excerpt = buffer.excerpt("c")
    assert excerpt is not None
    raw = excerpt.raw(excerpt.rows[0])
    assert b"password" in raw
    assert b"correct horse" not in raw
