"""What refusals of the handshake era say besides their status, over a real socket: the id of the
request, and no length where there is no body.
"""

from __future__ import annotations

from typing import Any

import pytest

from interlock import types as t
from interlock.transport.http.limits import Limits
from interlock.wire.revisions import R2, R4
from tests.protocol.frames import initialize, notification, request
from tests.protocol.offered import offered
from tests.transport.raw_web import House, serving

ADD = {"name": "add", "arguments": {"a": 1}}


@pytest.mark.parametrize("revision", [R2, R4])
@pytest.mark.parametrize("method", ["tools/call", "no/such"])
@pytest.mark.parametrize("id", [7, "seven"])
async def test_a_refused_request_is_told_its_id(revision: str, method: str, id: Any):
    """Where the session is gone, and where none is named: the request was read, so its id is known
    (`RPC-09`, `CFQ-01`).
    """
    async with serving(House().server) as web:
        session = await web.greet(revision)
        body = request(id, method, ADD)
        nameless = await web.ask(session.said(body, mcp_session_id=None))
        assert (nameless.status, nameless.json["id"], nameless.code) == (400, id, t.INVALID_REQUEST)
        await session.end()
        gone = await session.ask(body)
        assert (gone.status, gone.json["id"], gone.code) == (404, id, t.INVALID_REQUEST)
        told = await session.ask(notification("notifications/initialized"))
        assert told.status == 404
        assert "id" not in told.json


async def test_a_greeting_that_is_refused_is_told_its_id():
    """One session too many (`RPC-09`, `CFQ-01`)."""
    async with serving(House().server, limits=Limits(sessions=1)) as web:
        await web.greet()
        reply = await web.ask(offered(initialize("two", R4)))
        assert (reply.status, reply.json["id"]) == (503, "two")


async def test_a_response_that_can_have_no_body_names_no_length():
    """204 says so by itself (RFC 9110, section 8.6); the connection is good for the next
    request.
    """
    async with serving(House().server) as web:
        session = await web.greet()
        reply = await session.end()
        assert (reply.status, reply.body) == (204, b"")
        assert "content-length" not in reply.headers
        assert "transfer-encoding" not in reply.headers


@pytest.mark.parametrize("origin", ["https://evil.example", None])
@pytest.mark.parametrize("length", ["999999999999", "20", None])
async def test_a_stranger_is_refused_before_anything_is_read(
    origin: str | None, length: str | None
):
    """Where a request comes from is looked at first (`SEC-01`, `HTM-22`): no body is waited for, be
    it too large, unfinished or without a length.
    """
    async with serving(House().server) as web:
        line = await web.line()
        source = f"host: 127.0.0.1\r\norigin: {origin}" if origin else "host: evil.example"
        framing = "transfer-encoding: chunked" if length is None else f"content-length: {length}"
        await line.send(
            (
                f"POST /mcp HTTP/1.1\r\n{source}\r\ncontent-type: "
                f"application/json\r\n{framing}\r\n\r\n"
            ).encode()
        )
        assert await line.head() == 403
