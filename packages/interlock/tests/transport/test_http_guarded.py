"""The guard of `interlock.auth` before a server with scopes, as authors put it there:
`http_app(guard=...)`, alone and mounted.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from interlock import Context, Principal, Server
from interlock.auth.guard import Guard
from interlock.auth.oauth.challenges import read_challenges
from interlock.auth.tokens.api_keys import Checked
from interlock.wire.revisions import HANDSHAKE_REVISIONS
from tests.protocol.frames import initialize
from tests.protocol.offered import Offered, modern, offered
from tests.transport.raw_web import Web, call, serving, tool

pytestmark = pytest.mark.asyncio(loop_scope="module")

ISSUER = "https://login.example.com"
TOKENS = {
    "ada": Principal(subject="ada", scopes=frozenset({"use"})),
    "eve": Principal(subject="eve"),
    "bob": Principal(subject="bob", scopes=frozenset({"use", "files"})),
}


def guard(**options: Any) -> Guard:
    """A guard who knows three people; `files` stands for reading and writing."""
    implies = {"files": ["files:read", "files:write"]}
    return Guard(Checked(TOKENS.get, issuers=[ISSUER]), scopes=["use"], implies=implies, **options)


def store() -> Server:
    """A server with something for everybody who is let in, and something for some."""
    server = Server("store")

    @server.tool
    async def who(ctx: Context) -> str:
        assert ctx.principal is not None
        return ctx.principal.subject

    @server.tool(scopes=["files:read", "files:write"])
    async def swap() -> str:
        return "swapped"

    return server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def web() -> AsyncIterator[Web]:
    """The store, guarded; on loopback the guard knows its address by itself."""
    async with serving(store(), guard=guard(), legacy_sse=True) as shared:
        yield shared


def at(web: Web, x: Offered, token: str | None = None) -> Offered:
    """A request to this port, with a token."""
    x.headers["host"] = f"127.0.0.1:{web.port}"
    if token is not None:
        x.headers["authorization"] = f"Bearer {token}"
    return x


async def test_a_retry_is_guarded_like_any_request() -> None:
    """The answer to a question comes with a request of its own: without a token, or with one that
    has been revoked, it does not resume the call; nor does the token of somebody else."""
    revoked: set[str] = set()

    def known(token: str) -> Principal | None:
        return None if token in revoked else TOKENS.get(token)

    server = Server("store")
    ran: list[str] = []

    @server.tool
    async def order(ctx: Context) -> str:
        ran.append("order")
        return str(await ctx.confirm("Sure?"))

    doorman = Guard(Checked(known, issuers=[ISSUER]), scopes=["use"])
    async with serving(server, guard=doorman) as web:

        def request(token: str | None, **more: Any) -> Offered:
            x = modern("tools/call", {"name": "order", "arguments": {}, **more})
            capabilities = "io.modelcontextprotocol/clientCapabilities"
            x.body["params"]["_meta"][capabilities] = {"elicitation": {"form": {}}}
            return at(web, x, token)

        asked = (await web.ask(request("ada"))).json["result"]
        yes = {"action": "accept", "content": {"confirm": True}}
        answer = {
            "inputResponses": dict.fromkeys(asked["inputRequests"], yes),
            "requestState": asked["requestState"],
        }
        assert (await web.ask(request(None, **answer))).status == 401
        assert (await web.ask(request("bob", **answer))).json["error"]["code"] == -32602
        revoked.add("ada")
        assert (await web.ask(request("ada", **answer))).status == 401
        revoked.clear()
        done = (await web.ask(request("ada", **answer))).json["result"]
        assert (done["content"][0]["text"], ran) == ("True", ["order"])


async def test_the_three_answers(web: Web) -> None:
    """401 where there is no good token, 403 where it is good for less than is asked, 400 for a
    request that makes no sense; each challenge leads to the metadata, which lists the scopes of the
    features (`AUT-06`, `AUS-04`, `AUS-08`, `AUS-10`).
    """
    for token, status in ((None, 401), ("mallory", 401), ("eve", 403), ("ada", 200), ("bob", 200)):
        reply = await web.ask(at(web, call("who"), token))
        assert reply.status == status
        if status != 200:
            (challenge, *_) = read_challenges(reply.headers["www-authenticate"])
            metadata = challenge.parameters["resource_metadata"]
            path = metadata.removeprefix(f"http://127.0.0.1:{web.port}")
            document = (
                await web.ask(at(web, offered(b"", method="GET", content_type=None)), path)
            ).json
            assert document["resource"] == f"http://127.0.0.1:{web.port}/mcp"
            assert set(document["scopes_supported"]) == {"use", "files:read", "files:write"}
    twice = at(web, call("who"), "ada")
    twice.twice = ["authorization"]
    assert (await web.ask(twice)).status == 400
    refused = await web.ask(at(web, call("swap"), "ada"))
    (challenge,) = (
        one
        for one in read_challenges(refused.headers["www-authenticate"])
        if one.scheme == "bearer"
    )
    assert (refused.status, challenge.error) == (403, "insufficient_scope")
    assert set(challenge.scopes or ()) >= {"files:read", "files:write"}
    assert "resource_metadata" in challenge.parameters
    assert (await web.ask(at(web, call("swap"), "bob"))).json["result"]["content"][0][
        "text"
    ] == "swapped"
    seen = {
        who: {
            one["name"]
            for one in (await web.ask(at(web, modern("tools/list", {}), who))).json["result"][
                "tools"
            ]
        }
        for who in ("ada", "bob")
    }
    assert seen == {"ada": {"who"}, "bob": {"who", "swap"}}


@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
async def test_a_session_behind_it(web: Web, revision: str) -> None:
    """Every request shows its token, also within a session, and the id of a session is none
    (`SEC-02`, `AUT-05`).
    """
    assert (await web.ask(at(web, offered(initialize(0, revision))))).status == 401
    reply = await web.ask(at(web, offered(initialize(0, revision)), "bob"))
    id = reply.headers["mcp-session-id"]
    for token, name, status in (
        (None, "who", 401),
        ("ada", "who", 404),
        ("bob", "who", 200),
        ("bob", "swap", 200),
        ("eve", "who", 403),
    ):
        x = offered(
            tool(1, name),
            mcp_session_id=id,
            mcp_protocol_version=revision if revision >= "2025-06-18" else None,
        )
        assert (await web.ask(at(web, x, token))).status == status


async def test_mounted(web: Web) -> None:
    """Beneath a path of somebody else's app the guard stands before the same endpoint."""
    app = store().http_app(
        guard=guard(resource="https://shop.example/api/mcp"), hosts="shop.example"
    )

    async def ask(path: str, token: str | None) -> tuple[int, dict[str, str]]:
        x = call(
            "who", host="shop.example", authorization=None if token is None else f"Bearer {token}"
        )
        sent: list[Any] = []
        body = json.dumps(x.body).encode()

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(name.encode(), value.encode()) for name, value in x.headers.items()]
        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "root_path": "/api",
            "headers": headers,
            "query_string": b"",
            "scheme": "https",
        }
        await app(scope, receive, send)
        return sent[0]["status"], {
            name.decode(): value.decode() for name, value in sent[0]["headers"]
        }

    status, headers = await ask("/api/mcp", None)
    assert status == 401
    assert "https://shop.example/" in headers["www-authenticate"]
    assert (await ask("/api/mcp", "ada"))[0] == 200
    assert (await ask("/api/other", None))[0] == 401
    await app.aclose()
