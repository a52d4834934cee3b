"""A client that is known by a document of its own, with and without a key, through the whole client
and over no wire.
"""

from __future__ import annotations

from urllib.parse import parse_qs

import msgspec
import pytest

from interlock.auth import OAuth, SigningKey
from interlock.auth.keys import KeySet
from interlock.http11.fetch import Request
from tests.auth.oauth.player import BACK, ISSUER, Answer, metadata, token, visited, world

DOCUMENT = "https://app.example/client.json"
SERVER = "https://mcp.example/mcp"


class Paper:
    """A response that is written down: fulfils the seam `Response`."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status = status
        self.headers = {"content-type": "application/json"}
        self._body = body

    async def read(self, limit: int) -> bytes:
        """All of it."""
        return self._body[:limit]

    async def aclose(self) -> None:
        """Nothing is open."""


class Papers:
    """Fulfils the seam `Fetch` from a world that is written down."""

    def __init__(self, answers: dict[str, Answer]) -> None:
        self.answers = answers
        self.sent = []

    async def __call__(self, request: Request) -> Paper:
        """What is written down for an address."""
        self.sent.append(request)
        answer = self.answers.get(request.url, (404, {}))
        status, value = answer[:2] if isinstance(answer, tuple) else (200, answer)
        return Paper(status, msgspec.json.encode(value))

    async def aclose(self) -> None:
        """Nothing is open."""


class Willing:
    """Fulfils the seam `Agent`: a person who agrees at once."""

    async def listen(self, preferred) -> str:
        """Where the browser comes back to."""
        return BACK

    async def visit(self, url: str, redirect_uri: str) -> str:
        """A code for whoever asks."""
        return f"code=c&state={visited(url)['state']}"

    async def show_code(self, step) -> None:
        """Never asked."""

    async def aclose(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("keyed", [True, False])
async def test_a_document_with_a_key_signs_at_log_in_and_at_refresh(keyed: bool):
    """`AUR-05`, `AUR-06`, `AUR-12`: the client id is the address of the document, and the assertion
    is in its name.
    """
    key = SigningKey.generate() if keyed else None
    told = metadata(
        client_id_metadata_document_supported=True,
        token_endpoint_auth_methods_supported=["none", "private_key_jwt"],
    )
    fetch = Papers(world(metadata=told, token=token(expires_in=1)))
    server = OAuth(
        document=DOCUMENT, key=key, agent=Willing, fetch=fetch, clock=lambda: 1_000_000.0
    ).to(SERVER)
    grant = await server.renew()
    await server.renew()
    forms = [
        {name: values[0] for name, values in parse_qs(r.body.decode()).items()}
        for r in fetch.sent
        if r.url == f"{ISSUER}/token"
    ]
    assert [form["grant_type"] for form in forms] == ["authorization_code", "refresh_token"]
    assert grant.client_id == DOCUMENT
    for form in forms:
        assert form["client_id"] == DOCUMENT
        if key is None:
            assert "client_assertion" not in form
        else:
            _, claims = KeySet.read({"keys": [key.public()]}).verify(
                form["client_assertion"], algorithms=["ES256"]
            )
            assert (claims["iss"], claims["sub"], claims["aud"]) == (DOCUMENT, DOCUMENT, ISSUER)
