"""An issuer to try things on: its clock is ours, its people agree at once, and the documents of the
world lie in a dictionary.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

import starlette.requests
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from interlock import types as t
from interlock.auth.keys import SigningKey, dpop_proof
from interlock.http11.fetch import Request
from interlock.store.vaults.blobs import RecordTable
from interlock.store.vaults.memory import MemoryVault
from interlock_issuer.app import Issuer
from interlock_issuer.http.responses import html_response
from interlock_issuer.interfaces import AuthorizationServer, Client, PendingRequest, User
from tests.auth.network import Answer, Clock
from tests.issuer.exchange import Reply, Sent, ask

T = TypeVar("T")
URL = "https://issuer.example"
SERVER = "https://mcp.example/mcp"
OTHER = "https://other.example/mcp"
BACK = "https://app.example/back"
VERIFIER = "v" * 43
CHALLENGE = (
    base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
)
FORM = {"content-type": "application/x-www-form-urlencoded"}

APP = Client(id="app", name="The App", redirect_uris=(BACK,))
SECOND = Client(id="second", redirect_uris=(BACK, "https://second.example/back"))
CONFIDENTIAL = Client(
    id="vault",
    redirect_uris=(BACK,),
    secret="a secret/with+signs%",
    grants=(
        "authorization_code",
        "refresh_token",
        "client_credentials",
        "urn:ietf:params:oauth:grant-type:jwt-bearer",
    ),
    scopes=("files:read", "files:write"),
)
GATEWAY = Client(
    id="gateway",
    secret="g" * 32,
    resource=SERVER,
    grants=("urn:ietf:params:oauth:grant-type:token-exchange",),
    scopes=("files:read",),
)
SCOPES = {
    "files:read": "Read your files.",
    "files:write": "Change your files.",
    "mail": "Send mail.",
}


class Willing:
    """People who do what they are told: "grant", "deny", or "wait" for the test to decide."""

    def __init__(self) -> None:
        self.will = "grant"
        self.person = User("anna", "Anna", {"email": "anna@example.com"})
        self.standing = True
        self.begun: list[PendingRequest] = []

    def routes(self, server: AuthorizationServer) -> list[BaseRoute]:
        """One page of its own."""

        async def login(request: starlette.requests.Request) -> Response:
            return html_response("login")

        return [Route(f"{server.settings.path}/login", login)]

    async def start(
        self,
        server: AuthorizationServer,
        request: starlette.requests.Request,
        pending: PendingRequest,
    ) -> Response:
        """Decide at once."""
        self.begun.append(pending)
        if self.will == "grant":
            return await server.grant(pending.id, self.person, pending.scopes)
        if self.will == "deny":
            return await server.deny(pending.id, "access_denied", "No.")
        return html_response("waiting")

    async def is_active(self, user: User) -> bool:
        """What the test says."""
        return self.standing

    def error_page(self, title: str, words: str, onward: str | None = None) -> Response:
        """The words as they are."""
        return html_response(f"{title}\n{words}\n{onward or ''}", 400)

    def device_page(self, pending: PendingRequest, granted: bool) -> Response:
        """The last page."""
        return html_response(f"done {granted}")


class World:
    """A Fetch: the documents that there are, by address.

    One that is not there cannot be reached; an exception is raised as it is.
    """

    def __init__(self) -> None:
        self.documents: dict[str, Any] = {}
        self.headers: dict[str, str] = {"content-type": "application/json"}
        self.status = 200
        self.asked: list[str] = []

    async def __call__(self, request: Request) -> Answer:
        """The document."""
        self.asked.append(request.url)
        found = self.documents.get(request.url)
        if found is None:
            raise t.Unreachable("refused: 10.0.0.7 is a private address")
        return Answer(found, self.status, dict(self.headers))

    async def aclose(self) -> None:
        """Nothing is open."""


class Unhurried(MemoryVault):
    """A vault in which others may come between any two steps, as they do where it is a server or a
    file.
    """

    async def _do(self, work: Callable[[RecordTable, float], T], *, writes: bool = True) -> T:
        await asyncio.sleep(0)
        return await super()._do(work, writes=writes)


class Office:
    """The issuer and all around it."""

    def __init__(self, url: str = URL, **options: Any) -> None:
        self.clock = Clock()
        self.people = Willing()
        self.world = World()
        self.vault = Unhurried(clock=self.clock)
        given: dict[str, Any] = {
            "clients": [APP, SECOND, CONFIDENTIAL, GATEWAY],
            "scopes": SCOPES,
            "resources": [SERVER, OTHER],
            "vault": self.vault,
            "fetch": self.world,
            "clock": self.clock,
        }
        self.issuer = Issuer(url, self.people, **(given | options))
        self.root = urlsplit(url).path

    async def get(
        self, path: str, parameters: Mapping[str, str] | str = "", **headers: str
    ) -> Reply:
        """Ask with GET."""
        query = parameters if isinstance(parameters, str) else urlencode(parameters)
        return await ask(
            self.issuer,
            Sent("GET", self.root + path, query, headers, address="203.0.113.9", secure=True),
        )

    async def post(
        self,
        path: str,
        form: Mapping[str, str] | str,
        headers: Mapping[str, str] | None = None,
        address: str = "203.0.113.9",
    ) -> Reply:
        """Send a form."""
        body = form if isinstance(form, str) else urlencode(form)
        asked = Sent(
            "POST",
            self.root + path,
            "",
            FORM | dict(headers or {}),
            body.encode(),
            address=address,
            secure=True,
        )
        return await ask(self.issuer, asked)

    async def register(self, metadata: Mapping[str, Any] | bytes, **headers: str) -> Reply:
        """Register a client."""
        body = metadata if isinstance(metadata, bytes) else json.dumps(metadata).encode()
        sent = {"content-type": "application/json"} | headers
        return await ask(
            self.issuer,
            Sent("POST", f"{self.root}/register", "", sent, body, address="203.0.113.9"),
        )

    async def grant(self, id: str, person: User, scopes: Sequence[str]) -> Reply:
        """Let a person consent."""
        return Reply.of(await self.issuer.grant(id, person, scopes))

    async def deny(self, id: str, error: str = "access_denied", words: str = "") -> Reply:
        """Let a person refuse."""
        return Reply.of(await self.issuer.deny(id, error, words))

    async def authorize(self, **changes: str | None) -> Reply:
        """Send a person there, with a request that is right but for the changes."""
        return await self.get("/authorize", request(**changes))

    async def code(self, **changes: str | None) -> str:
        """A code."""
        return answer_of(await self.authorize(**changes))["code"]

    async def redeem(
        self, code: str, headers: Mapping[str, str] | None = None, **changes: str | None
    ) -> Reply:
        """Bring a code to the token endpoint, rightly but for the changes."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": "app",
            "redirect_uri": BACK,
            "code_verifier": VERIFIER,
        }
        return await self.post("/token", without_none(form | changes), headers)

    async def refresh(
        self, token: str, headers: Mapping[str, str] | None = None, **changes: str | None
    ) -> Reply:
        """Spend a refresh token."""
        form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": "app"}
        return await self.post("/token", without_none(form | changes), headers)

    async def log_in(self, **changes: str | None) -> dict[str, Any]:
        """The first tokens."""
        return said(await self.redeem(await self.code(**changes)))

    async def introspect(self, token: str) -> dict[str, Any]:
        """What the server for which it is meant hears of a token."""
        return said(await self.post("/introspect", {"token": token}, basic("gateway", "g" * 32)))

    def proof(self, key: SigningKey, **changes: Any) -> dict[str, str]:
        """The header of a DPoP proof for the token endpoint."""
        told: dict[str, Any] = {
            "method": "POST",
            "url": f"{self.issuer.settings.url}/token",
            "now": self.clock.now,
        }
        return {"dpop": dpop_proof(key, **(told | changes))}


def request(**changes: str | None) -> dict[str, str]:
    """The parameters of a right authorization request, but for the changes."""
    told: dict[str, str | None] = {
        "response_type": "code",
        "client_id": "app",
        "redirect_uri": BACK,
        "state": "a state",
        "scope": "files:read files:write",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "resource": SERVER,
    }
    return without_none(told | changes)


def without_none(told: Mapping[str, str | None]) -> dict[str, str]:
    """What is there."""
    return {name: value for name, value in told.items() if value is not None}


def answer_of(reply: Reply, at: str = BACK) -> dict[str, str]:
    """The parameters with which the browser comes back; each stands there once."""
    location = reply.header("location")
    assert location is not None, (reply.status, reply.body)
    assert location.startswith(f"{at}?")
    pairs = parse_qsl(urlsplit(location).query, keep_blank_values=True)
    assert len(pairs) == len(dict(pairs))
    return dict(pairs)


def said(reply: Reply, status: int = 200) -> dict[str, Any]:
    """The JSON of a reply."""
    assert reply.status == status, (reply.status, reply.body)
    found: dict[str, Any] = json.loads(reply.body)
    return found


def error_of(reply: Reply, status: int = 400) -> str:
    """The error code of a refusal."""
    told = said(reply, status)
    assert set(told) == {"error", "error_description"}
    return str(told["error"])


def basic(id: str, secret: str) -> dict[str, str]:
    """The header with which a client authenticates."""
    return {"authorization": "Basic " + base64.b64encode(f"{id}:{secret}".encode()).decode()}


def claims_of(token: str) -> dict[str, Any]:
    """The claims of a token, which nobody has verified."""
    body = token.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return found


def header_of(token: str) -> dict[str, Any]:
    """The header of a token."""
    head = token.split(".")[0]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    return found
