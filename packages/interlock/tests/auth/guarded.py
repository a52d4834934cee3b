"""What the tests of the guard share: an issuer and its tokens, an app that writes down what it
sees, and one request to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from interlock.auth.guard import Guard
from interlock.auth.keys import SigningKey
from interlock.auth.tokens.jwt import Jwt
from tests.auth.network import NOW, Answer, Clock, Told

ISSUER = "https://login.example.com"
RESOURCE = "https://mcp.example.com/mcp"
KEY = SigningKey.generate()


JWKS = f"{ISSUER}/jwks"


def issuer_pages(*keys: SigningKey, **headers: str) -> dict[str, Told]:
    """The metadata and the keys of the issuer."""
    metadata = {
        "issuer": ISSUER,
        "jwks_uri": JWKS,
        "introspection_endpoint": f"{ISSUER}/introspect",
    }
    return {
        f"{ISSUER}/.well-known/oauth-authorization-server": Answer(metadata),
        JWKS: Answer(
            {"keys": [key.public() for key in keys]},
            headers={name.replace("_", "-"): value for name, value in headers.items()},
        ),
    }


def token(
    key: SigningKey = KEY,
    *,
    typ: str | None = "at+jwt",
    header: dict[str, Any] | None = None,
    **changes: Any,
) -> str:
    """A good token, with changes; None leaves a claim out."""
    claims = {
        "iss": ISSUER,
        "sub": "jane",
        "aud": RESOURCE,
        "client_id": "app",
        "scope": "use",
        "iat": NOW,
        "exp": NOW + 600,
        "jti": "1",
    }
    return key.sign(
        {name: value for name, value in (claims | changes).items() if value is not None},
        typ=typ,
        header=header,
    )


def jwt_guard(
    clock: Callable[[], float] | None = None, *, verifier: Any = None, **settings: Any
) -> Guard:
    """A guard that takes the tokens above."""
    by = verifier or Jwt(ISSUER, keys={"keys": [KEY.public()]})
    return Guard(
        by, **({"resource": RESOURCE, "scopes": ["use"], "clock": clock or Clock()} | settings)
    )


class Inner:
    """The app behind a guard: answers 200 and writes down what it saw."""

    path = "/mcp"

    def __init__(self) -> None:
        self.scopes: list[dict[str, Any]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        if scope["type"] != "http":
            return
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"x-inside", b"yes")]}
        )
        await send({"type": "http.response.body", "body": b"inside"})


class Got(Struct):
    """What came back."""

    status: int
    pairs: list[tuple[bytes, bytes]]
    body: bytes

    @property
    def challenges(self) -> list[str]:
        """The challenges of the one header, each as it was written."""
        header = self.header("www-authenticate")
        return [] if header is None else re.split(r", (?=DPoP )", header)

    def header(self, name: str) -> str | None:
        found = [value.decode() for own, value in self.pairs if own == name.encode()]
        assert len(found) < 2, f"{name} came twice"
        return found[0] if found else None

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def scope_of(
    method: str, path: str, headers: Any = (), query: str = "", **changes: Any
) -> dict[str, Any]:
    """An ASGI scope, as a web server makes it."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    whole = [(name.lower().encode(), value.encode("latin-1")) for name, value in pairs]
    if b"host" not in dict(whole):
        whole.insert(0, (b"host", b"mcp.example.com"))
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "https",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": whole,
        "client": ("203.0.113.7", 4711),
        "server": ("10.0.0.1", 443),
        **changes,
    }


async def ask(
    app: Any,
    method: str = "POST",
    path: str = "/mcp",
    headers: Any = (),
    query: str = "",
    body: bytes = b"",
    **changes: Any,
) -> Got:
    """One request to an ASGI app."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope_of(method, path, headers, query, **changes), receive, send)
    assert [message["type"] for message in sent[:1]] == ["http.response.start"]
    return Got(
        sent[0]["status"],
        list(sent[0]["headers"]),
        b"".join(message.get("body", b"") for message in sent[1:]),
    )


def bearer(value: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {value}"}
