"""Requirements that no other test names: a first revision with a scheme of one's own, and what no
program of ours brings along or gives away.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, get_args

import pytest

import interlock
from interlock import Client, Context, Server
from interlock.auth import EnterpriseManaged
from interlock.auth.oauth.codes import authorization_request, code_from
from interlock.auth.oauth.documents import ServerMetadata
from interlock.auth.oauth.errors import Culprit, Unauthorized
from interlock.exchange import Principal
from interlock.transport.http.client.transport import Http
from interlock.wire.revisions import R1
from tests.auth.served import guarded
from tests.auth.test_client import call
from tests.auth.test_client_ways import IDP, Forms, options
from tests.auth.world import ISSUER, client
from tests.issuer.office import SERVER as OURS
from tests.issuer.office import Office, basic, error_of
from tests.ports import free_port

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"


class Badges:
    """A scheme of one's own: a header with a badge, which nobody but this server and its clients
    has heard of.
    """

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif dict(scope["headers"]).get(b"x-badge") == b"7":
            await self._app(
                {**scope, "interlock.principal": Principal(subject="badge 7")}, receive, send
            )
        else:
            await send(
                {
                    "type": "http.response.start",
                    "status": 401,
                    "headers": [(b"content-length", b"0")],
                }
            )
            await send({"type": "http.response.body", "body": b""})


async def test_a_scheme_of_ones_own_in_the_first_revision() -> None:
    """AUT-02, AUT-15: 2024-11-05 has no authorization.

    Peers agree on a header, which comes with each request of its transport.
    """
    server = Server("club")

    @server.tool
    async def who(ctx: Context) -> str:
        return ctx.principal.subject if ctx.principal is not None else "nobody"

    async with guarded(server, Badges, free_port(), legacy_sse=True) as url:
        old = url.replace("/mcp", "/sse")
        async with Client(
            Http(old, headers={"X-Badge": "7"}, legacy_sse=True), revision=R1
        ) as member:
            assert member.revision == R1
            assert (await member.call_tool("who")).text == "badge 7"
        with pytest.raises(interlock.types.Unreachable) as caught:
            await Client(Http(old, headers={"X-Badge": "8"}, legacy_sse=True), revision=R1).open()
        assert caught.value.status == 401


def test_no_secret_is_in_what_we_hand_out() -> None:
    """EMA-13: the package, which everybody has, holds no client's secret.

    Whoever has one gives it at run time.
    """
    written = re.compile(
        r"""(?:client_secret|secret|password)["']?\s*[:=]\s*["'][^"'{}\s]{8,}["']""", re.IGNORECASE
    )
    package = Path(interlock.__file__).parent
    assert written.search('client_secret="0123456789abcdef"')
    found = {
        f"{path.relative_to(package)}: {line.strip()}"
        for path in package.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if written.search(line) and not line.lstrip().startswith(("#", "`", "-"))
    }
    assert not found


async def test_without_a_secret_none_is_sent() -> None:
    """EMA-13: a program that was given no secret says who it is, at the company's and at the
    server's, and shows nothing that would be one.
    """
    world = Forms()
    world.judge = lambda form: (
        (200, {"access_token": "jag", "token_type": "N_A", "issued_token_type": ID_JAG})
        if form["grant_type"] == EXCHANGE
        else None
    )
    auth = EnterpriseManaged(
        lambda: "id",
        idp_endpoint=IDP,
        idp_client_id="desk",
        client_id="robot",
        issuer=ISSUER,
        **options(world),
    )
    async with client(world, auth) as c:
        assert await call(c) == "robot"
    assert [form["client_id"] for form in world.forms] == ["desk", "robot"]
    for form in world.forms:
        assert not {"client_secret", "client_assertion"} & form.keys()
    posts = [request for request in world.sent if request.url in (IDP, f"{ISSUER}/token")]
    assert len(posts) == 2
    assert not [
        request
        for request in posts
        if "authorization" in {name.lower() for name, _ in request.headers}
    ]


@pytest.mark.parametrize("state", ["", "&state=another", "&state=mine&state=mine"])
def test_an_answer_without_our_state_is_none(state: str) -> None:
    """EMA-13: `state` is compared before anything else of an answer is looked at."""
    metadata = ServerMetadata(
        issuer=ISSUER,
        authorization_endpoint=f"{ISSUER}/authorize",
        token_endpoint=f"{ISSUER}/token",
    )
    sent_request = authorization_request(
        metadata, state="mine", verifier="v" * 43, redirect_uri="http://127.0.0.1:1/callback"
    )
    with pytest.raises(Unauthorized):
        code_from(f"code=abc{state}", sent_request)
    assert code_from("code=abc&state=mine", sent_request) == "abc"


@pytest.mark.parametrize("audience", [OURS, "https://other.example", ""])
async def test_our_issuer_gives_no_word_for_people_at_other_issuers(audience: str) -> None:
    """EMA-06, EMA-07: it is no company's identity provider: no ID-JAG is had of it, for whatever
    audience, and its metadata promises none.
    """
    place = Office()
    token = (await place.log_in())["access_token"]
    form = {
        "grant_type": EXCHANGE,
        "subject_token": token,
        "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
        "requested_token_type": ID_JAG,
        "resource": OURS,
    }
    wanted = form | ({"audience": audience} if audience else {})
    assert (
        error_of(await place.post("/token", wanted, basic("gateway", "g" * 32)))
        == "invalid_request"
    )


@pytest.mark.parametrize("culprit", get_args(Culprit))
def test_every_failure_says_what_to_do(culprit: Culprit) -> None:
    """At which step, which document, what was expected, what to do: where nobody thought of advice,
    it is who has to repair it.
    """
    bad = Unauthorized(
        "discovery",
        "it is empty",
        document="https://as.example/x",
        expected="a document",
        culprit=culprit,
    )
    words = str(bad)
    assert words.startswith(
        "Authorization failed (discovery at https://as.example/x): it is empty. Expected: a "
        "document. "
    )
    told = words.partition("Expected: a document. ")[2]
    assert told.endswith(".")
    assert bad.advice == ""
    assert (
        str(Unauthorized("token", "no", advice="Do this.", culprit=culprit))
        == "Authorization failed (token): no. Do this."
    )
