"""Documents of strangers that are too large, or never end: bounded on the way to hosts that the
user named, too.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from interlock.auth import sender
from interlock.auth.keys import SigningKey
from interlock.auth.oauth.discovery import find_metadata
from interlock.auth.oauth.documents import LONGEST_DOCUMENT
from interlock.auth.oauth.errors import Unauthorized
from interlock.auth.sender import HttpClients, perform
from interlock.auth.tokens.interface import Unverifiable
from interlock.auth.tokens.introspection import Introspection
from interlock.auth.tokens.jwt import Jwt
from interlock.auth.tokens.remote_keys import RemoteKeys
from interlock.http11.fetch import Request
from interlock.http11.safe_fetch import SafeFetch
from interlock.types import Unreachable
from interlock_issuer import Issuer, TrustedIssuer
from tests.auth.guarded import ISSUER, KEY, RESOURCE, token
from tests.auth.network import NOW
from tests.auth.served import served
from tests.ports import free_port


class Place:
    """A web server that answers every request with a document of `size` bytes, and with `drips`
    never comes to its end.
    """

    def __init__(self, document: dict[str, Any], *, size: int = 0, drips: bool = False) -> None:
        self.body = (
            msgspec.json.encode(document).rstrip(b"}") + b',"filler":"' + b"x" * size + b'"}'
        )
        self.drips = drips
        self.asked = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one connection."""
        if scope["type"] == "lifespan":
            for word in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{word}.complete"})
            return
        self.asked += 1
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"application/json")],
            }
        )
        await send({"type": "http.response.body", "body": self.body, "more_body": self.drips})
        while self.drips and (await receive())["type"] != "http.disconnect":
            pass


def metadata(url: str) -> dict[str, Any]:
    return {
        "issuer": url,
        "authorization_endpoint": f"{url}/authorize",
        "token_endpoint": f"{url}/token",
    }


@pytest.mark.parametrize(
    "size, good",
    [(LONGEST_DOCUMENT // 2, True), (LONGEST_DOCUMENT, False), (4 * LONGEST_DOCUMENT, False)],
)
async def test_metadata_that_is_too_large_is_not_read(size: int, good: bool) -> None:
    """SEC-12: what has more bytes than any such document is none, although its host is one that the
    user named.
    """
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    async with served(Place(metadata(url), size=size), port):
        clients = HttpClients(url)
        try:
            if good:
                assert (await perform(find_metadata(url), clients))[0].issuer == url
            else:
                with pytest.raises(Unauthorized, match="does not publish its endpoints"):
                    await perform(find_metadata(url), clients)
        finally:
            await clients.aclose()


async def test_metadata_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-12: a body that drips is waited for no longer than an answer may take."""
    monkeypatch.setattr(sender, "_SECONDS", 0.3)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    place = Place(metadata(url), drips=True)
    async with served(place, port), asyncio.timeout(30):
        clients = HttpClients(url)
        with pytest.raises(Unauthorized, match="did not answer within"):
            await perform(find_metadata(url), clients)
        await clients.aclose()
    assert place.asked == 2  # both places where it may be


@pytest.mark.parametrize(
    "size, drips, good", [(1000, False, True), (512 * 1024, False, False), (1000, True, False)]
)
async def test_keys_that_are_too_large_or_never_end(size: int, drips: bool, good: bool) -> None:
    """AUT-05: keys are read within bounds of size and time.

    Without them nobody is let in, and nobody is told that a token is bad.
    """
    port = free_port()
    async with (
        served(Place({"keys": [KEY.public()]}, size=size, drips=drips), port),
        asyncio.timeout(30),
    ):
        place = f"http://127.0.0.1:{port}/jwks"
        verifier = Jwt(
            ISSUER, keys=RemoteKeys(ISSUER, jwks_uri=place, patience=0.3 if drips else 10.0)
        )
        if good:
            assert (
                await verifier.verify(token(), resource=RESOURCE, now=NOW)
            ).principal.subject == "jane"
        else:
            with pytest.raises(Unverifiable):
                await verifier.verify(token(), resource=RESOURCE, now=NOW)
        await verifier.aclose()


async def test_a_key_server_that_whoever_runs_us_named_may_be_anywhere() -> None:
    """SEC-14: the addresses of keys and of introspection that the configuration has are nobody
    else's choice; what a document names is.
    """
    named = Jwt(ISSUER, jwks_uri="https://keys.inside.example:8443/jwks")
    asked = Introspection(ISSUER, client_id="me", endpoint="https://inside.example/introspect")
    for clients, known in (
        (named._keys._roads, "https://keys.inside.example:8443/jwks"),
        (asked._roads, "https://inside.example/introspect"),
    ):
        assert clients.of(known) is clients.of(f"{ISSUER}/.well-known/openid-configuration")
        assert clients.of(known) is not clients.of("https://elsewhere.example/jwks")
        await clients.aclose()
    port = free_port()
    key = SigningKey.generate("ES256")
    async with served(Place({"keys": [key.public()]}), port):
        here = Jwt(ISSUER, jwks_uri=f"http://127.0.0.1:{port}/jwks")
        assert (
            await here.verify(token(key), resource=RESOURCE, now=NOW)
        ).principal.subject == "jane"
        with pytest.raises(Unreachable):
            await here._keys._roads.of("http://127.0.0.2/")(Request("GET", "http://127.0.0.2/"))
        await here.aclose()
    assert KEY.thumbprint != key.thumbprint


async def test_issuers_that_ours_was_told_to_trust_may_be_inside() -> None:
    """EMA-14, SEC-14: a company's identity provider may have a private address, as whoever runs the
    issuer named it; clients may not.
    """
    inside = "https://idp.inside.example"
    trusting = Issuer(
        "https://issuer.example",
        trusted=[TrustedIssuer(issuer=inside, jwks_uri="https://10.0.0.5/jwks")],
    )
    keys = trusting._trust._keys[inside]
    assert isinstance(keys, RemoteKeys)
    own = keys._roads.of(f"{inside}/.well-known/openid-configuration")
    assert not isinstance(own, SafeFetch)
    assert keys._roads.of("https://10.0.0.5/jwks") is own
    assert isinstance(keys._roads.of("https://10.0.0.6/jwks"), SafeFetch)
    assert isinstance(
        trusting._keys._at("https://10.0.0.5/jwks")._roads.of("https://10.0.0.5/jwks"), SafeFetch
    )
    assert isinstance(trusting._documents._fetch, SafeFetch)
    await trusting.aclose()
