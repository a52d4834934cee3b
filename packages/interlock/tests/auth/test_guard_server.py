"""A guarded server as it runs: on a real web server, in both eras, with people who have tokens and
people who have what is others'.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from interlock import Context, Server
from interlock.auth.guard import Guard
from interlock.auth.oauth.challenges import find, read_challenges
from interlock.auth.tokens.jwt import Jwt
from interlock.wire.revisions import HANDSHAKE_REVISIONS
from tests.auth.guarded import ISSUER, KEY, RESOURCE, token
from tests.protocol.frames import initialize, notification
from tests.protocol.offered import Offered, modern, offered
from tests.transport.raw_web import Reply, Web, listening, serving, tool

pytestmark = pytest.mark.asyncio(loop_scope="module")
METADATA = "/.well-known/oauth-protected-resource"


def files() -> Server:
    """A server with something for everybody, and something for who may write."""
    server = Server("files")

    @server.tool
    async def who(ctx: Context) -> str:
        return ctx.principal.subject if ctx.principal is not None else "nobody"

    @server.tool(scopes=["files:write"])
    async def write() -> str:
        return "written"

    return server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def web() -> AsyncIterator[Web]:
    """It, guarded."""
    guard = Guard(
        Jwt(ISSUER, keys={"keys": [KEY.public()]}),
        resource=RESOURCE,
        scopes=["use"],
        implies={"admin": ["files:write"]},
    )
    async with serving(files(), guard=guard, legacy_sse=True, hosts=["mcp.example.com"]) as shared:
        yield shared


def of(subject: str | None, x: Offered, **claims: Any) -> Offered:
    """A request with somebody's token, which is good now."""
    if subject is not None:
        now = time.time()
        x.headers["authorization"] = (
            f"Bearer {token(sub=subject, **{'iat': now, 'exp': now + 600} | claims)}"
        )
    return x


def text(reply: Reply) -> Any:
    return reply.json["result"]["content"][0]["text"]


async def test_who_asks_is_known_in_the_stateless_era(web: Web) -> None:
    """AUT-05, SEC-02: each request by its own token."""
    for name in ("jane", "joe"):
        assert (
            text(await web.ask(of(name, modern("tools/call", {"name": "who", "arguments": {}}))))
            == name
        )
    assert (
        await web.ask(of(None, modern("tools/call", {"name": "who", "arguments": {}})))
    ).status == 401


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
async def test_the_session_of_another_is_none(web: Web, revision: str) -> None:
    """SEC-02, SEC-03, SEC-05: who has the id of a session and a good token of his own gets nothing,
    and neither does who has no token.
    """
    opened = await web.ask(of("jane", offered(initialize(0, revision))))
    assert opened.status == 200
    session = {
        "mcp_session_id": opened.headers["mcp-session-id"],
        "mcp_protocol_version": revision if revision >= "2025-06-18" else None,
    }

    def said(body: bytes, **more: Any) -> Offered:
        return offered(body, **{**session, **more})

    assert (
        await web.ask(of("jane", said(notification("notifications/initialized"))))
    ).status == 202
    attempts = {
        "a call": lambda: said(tool(1, "who")),
        "a notification": lambda: said(notification("notifications/cancelled", {"requestId": 1})),
        "its stream": lambda: said(
            b"", method="GET", accept="text/event-stream", content_type=None
        ),
        "its end": lambda: said(b"", method="DELETE", content_type=None),
    }
    for name, attempt in attempts.items():
        assert (name, (await web.ask(of("mallory", attempt()))).status) == (name, 404)
        assert (
            name,
            (await web.ask(of("jane", attempt(), client_id="another program"))).status,
        ) == (name, 404)
        assert (
            name,
            (await web.ask(of("jane", attempt(), iss="https://evil.example"))).status,
        ) == (name, 401)
        assert (name, (await web.ask(of(None, attempt()))).status) == (name, 401)
    reply = await web.ask(of("jane", said(tool(2, "who"), accept="application/json")))
    assert (reply.status, "jane" in reply.body.decode()) == (200, True)


async def test_a_scope_that_a_tool_needs_is_asked_for(web: Web) -> None:
    """AUS-04, AUS-08, AUS-10: 403 with one challenge for the tool and the server.

    A scope that has it in it is enough.
    """
    call = {"name": "write", "arguments": {}}
    refused = await web.ask(of("jane", modern("tools/call", call)))
    assert refused.status == 403
    challenge = find(read_challenges(refused.headers["www-authenticate"]), "bearer")
    assert challenge is not None
    assert (challenge.error, challenge.scopes) == ("insufficient_scope", ("use", "files:write"))
    assert challenge.parameters["resource_metadata"] == f"https://mcp.example.com{METADATA}/mcp"
    for scope in ("use files:write", "use admin"):
        assert text(await web.ask(of("jane", modern("tools/call", call), scope=scope))) == "written"


async def test_what_clients_may_ask_for_is_in_the_metadata(web: Web) -> None:
    """AU3-01, AUS-09, SEC-25: the scopes of the server and of its tools.

    The first token needs only the server's.
    """
    reply = await web.ask(offered(b"", method="GET"), METADATA + "/mcp")
    assert (reply.json["scopes_supported"], reply.json["authorization_servers"]) == (
        ["use", "files:write"],
        [ISSUER],
    )
    first = await web.ask(modern("tools/list"))
    assert (first.status, 'scope="use"' in first.headers["www-authenticate"]) == (401, True)


async def test_strange_hosts_and_pages_are_refused_with_a_token_too(web: Web) -> None:
    """SEC-01: the guard does not stand in the place of the checks behind it."""
    for headers in ({"origin": "https://evil.example"}, {"host": "evil.example"}):
        assert (await web.ask(of("jane", modern("tools/list", **headers)))).status == 403


async def test_the_old_transport_is_guarded_too(web: Web) -> None:
    """AUT-05: every place of the server is; a slash too many leads to the place itself."""
    for path in ("/sse", "/messages", "/anything"):
        assert (
            await web.ask(offered(b"", method="GET", accept="text/event-stream"), path)
        ).status == 401
    assert (await web.ask(offered(b"", method="GET"), "/health")).status == 200


async def test_a_stream_ends_with_its_token(web: Web) -> None:
    """AUT-05: who listens is not listened to for longer than his token says."""
    line = await web.begin(of("jane", listening(toolsListChanged=True), exp=time.time() + 1.0))
    reply = await line.rest()
    assert b"acknowledged" in reply.body


async def test_a_server_that_is_tried_out_needs_no_address() -> None:
    """AU3-03, AUT-07: on the same machine, by the address that the client uses."""
    guard = Guard(Jwt(ISSUER, keys={"keys": [KEY.public()]}))
    async with serving(files(), guard=guard) as web:
        here = f"127.0.0.1:{web.port}"
        reply = await web.ask(offered(b"", method="GET", host=here), METADATA)
        assert reply.json["resource"] == f"http://{here}/mcp"
        call = {"name": "who", "arguments": {}}
        assert (
            text(
                await web.ask(
                    of("jane", modern("tools/call", call, host=here), aud=f"http://{here}/mcp")
                )
            )
            == "jane"
        )
        assert (await web.ask(of("jane", modern("tools/call", call, host=here)))).status == 401
        assert (
            await web.ask(
                of(
                    "jane",
                    modern("tools/call", call, host="localhost:1"),
                    aud="http://localhost:1/mcp",
                )
            )
        ).status == 500
