"""A small world in memory for clients that log in: an MCP server and its authorization server
behind one `Fetch`, and a person.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote_plus, urlencode, urlsplit

import msgspec
from msgspec import Struct

from interlock import Client, ClientSettings
from interlock import types as t
from interlock.auth import Authorization, OAuth
from interlock.auth.keys import WantsNonce, check_dpop
from interlock.auth.oauth.steps import ShowCode
from interlock.http11.fetch import Request
from interlock.transport.http.client.transport import Http
from interlock.wire.revisions import R1, R5
from tests.auth.network import Clock

SERVER = "https://mcp.example.com/mcp"
ISSUER = "https://login.example.com"


class Answer:
    """An answer whose body comes at once, or, where it is a stream, when the test says so.

    The world knows which are open.
    """

    def __init__(
        self,
        world: World,
        status: int,
        headers: dict[str, str],
        body: bytes,
        stream: asyncio.Queue[bytes | None] | None,
    ) -> None:
        self.status = status
        self.headers = headers
        self._world = world
        self._body = body
        self._stream = stream
        world.open.add(self)

    async def read(self, limit: int) -> bytes:
        if len(self._body) > limit:
            raise t.ProtocolError("too long")
        await self.aclose()
        return self._body

    async def chunks(self) -> AsyncIterator[bytes]:
        if self._stream is None:
            yield self._body
        else:
            while (chunk := await self._stream.get()) is not None:
                yield chunk
        await self.aclose()

    async def aclose(self) -> None:
        self._world.open.discard(self)
        if self._stream is not None:
            self._stream.put_nowait(None)


class Token(Struct):
    """What the authorization server knows of an access token."""

    resource: str
    client: str
    scopes: tuple[str, ...]
    until: float
    jkt: str | None = None
    subject: str = "jane"


class World:
    """The web as the client sees it.

    `sent` are all requests, `spent` the refresh tokens that were taken, `visits` the log-ins.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        server: str = SERVER,
        issuer: str = ISSUER,
        revision: str = R5,
    ) -> None:
        self.clock = clock or Clock()
        self.server = server
        self.issuer = issuer
        self.revision = revision
        self.sent: list[Request] = []
        self.open: set[Answer] = set()
        self.tokens: dict[str, Token] = {}
        self.refresh: dict[str, Token] = {}
        self.spent: Counter[str] = Counter()
        self.dead: Counter[str] = Counter()  # presented, and not good any more
        self.codes: dict[str, dict[str, str]] = {}
        self.clients: dict[str, dict[str, Any]] = {}
        self.visits: list[dict[str, str]] = []
        self.calls: Counter[str] = Counter()  # of tools, that were let in
        self.needs: dict[str, str] = {}  # scopes, by tool
        self.grants: Callable[[tuple[str, ...]], tuple[str, ...]] = lambda asked: asked
        self.seconds: Any = 600  # what `expires_in` says
        self.lives: float | None = (
            None  # how long a token really lasts, where that is something else
        )
        self.offers_refresh = True
        self.dpop = False
        self.nonce: dict[str, str] = {}  # by "as" and "server": demanded of proofs
        self.proofs: Counter[str] = Counter()
        self.trouble: dict[
            str, Any
        ] = {}  # by path: what to answer in place of the right answer, or what to raise
        self.gates: dict[str, asyncio.Event] = {}  # by path: what answers wait for
        self.entered: dict[
            str, asyncio.Semaphore
        ] = {}  # by path: told of each request that stands before a gate
        self.barrier: asyncio.Barrier | None = None  # in the tool "meet"
        self.challenge = 'Bearer resource_metadata="{metadata}", scope="use"'
        self.issuers: list[str] | None = None
        self.extra: dict[str, Any] = {}  # members of the authorization server's metadata
        self.streams: list[asyncio.Queue[bytes | None]] = []
        self.cancelled = 0
        self.ended = 0
        self._made = 0

    # -- what the test looks at --------------------------------------------------------------------

    def to(self, path: str) -> list[Request]:
        """The requests to a path."""
        return [request for request in self.sent if urlsplit(request.url).path == path]

    @property
    def to_server(self) -> list[Request]:
        return [request for request in self.sent if request.url.startswith(self.server)]

    def revoke(self) -> None:
        """All access tokens are good no more."""
        self.tokens.clear()

    def gate(self, path: str) -> asyncio.Event:
        """From now on requests to a path wait."""
        self.entered[path] = asyncio.Semaphore(0)
        self.gates[path] = asyncio.Event()
        return self.gates[path]

    async def knocked(self, path: str, times: int = 1) -> None:
        """Wait until requests stand before the gate of a path."""
        for _ in range(times):
            await self.entered[path].acquire()

    # -- the seam ----------------------------------------------------------------------------------

    async def __call__(self, request: Request) -> Any:
        self.sent.append(request)
        path = urlsplit(request.url).path
        if path in self.gates:
            self.entered[path].release()
            try:
                await self.gates[path].wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        trouble = self.trouble.get(path)
        if isinstance(trouble, list):
            trouble = trouble.pop(0) if trouble else None
        if isinstance(trouble, Exception):
            raise trouble
        if isinstance(trouble, tuple):
            return self._answer(trouble[0], trouble[1])
        if request.url.startswith(self.server) and path == urlsplit(self.server).path:
            return await self._serve(request)
        return self._page(request, path)

    async def aclose(self) -> None:
        """Nothing to close."""

    def _answer(
        self,
        status: int,
        body: Any = None,
        stream: asyncio.Queue[bytes | None] | None = None,
        **headers: str,
    ) -> Answer:
        if body is None:
            whole = b""
        elif isinstance(body, bytes):
            whole = body
        else:
            whole = json.dumps(body).encode()
        kind = "text/event-stream" if stream is not None else "application/json"
        named = {"content-type": kind} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        return Answer(self, status, named, whole, stream)

    # -- the MCP server ----------------------------------------------------------------------------

    async def _serve(self, request: Request) -> Answer:
        token = self._let_in(request)
        if isinstance(token, Answer):
            return token
        fresh = {"dpop_nonce": self.nonce["server"]} if "server" in self.nonce else {}
        if request.method == "GET":
            if self.revision == R1:
                self.streams.append(asyncio.Queue())
                self.streams[-1].put_nowait(b"event: endpoint\ndata: /mcp?to=1\n\n")
                return self._answer(200, stream=self.streams[-1])
            self.streams.append(asyncio.Queue())
            self.streams[-1].put_nowait(b": hello\n\n")
            return self._answer(200, stream=self.streams[-1], **fresh)
        if request.method == "DELETE":
            self.ended += 1
            return self._answer(200, None)
        message = json.loads(request.body)
        if "id" not in message or "method" not in message:
            return self._answer(202, None)
        answer = await self._do(message, token)
        if isinstance(answer, Answer):
            return answer
        if self.revision == R1 and "to=1" in request.url:
            self.streams[-1].put_nowait(
                b"event: message\ndata: " + json.dumps(answer).encode() + b"\n\n"
            )
            return self._answer(202, None)
        session = {"mcp_session_id": "s1"} if message["method"] == "initialize" else {}
        return self._answer(200 if "result" in answer else 400, answer, **session, **fresh)

    def _let_in(self, request: Request) -> Token | Answer:
        """The token that a request came with; or the refusal."""
        headers = {name.lower(): value for name, value in request.headers}
        scheme, _, value = headers.get("authorization", "").partition(" ")
        token = self.tokens.get(value)
        if token is None or token.until <= self.clock() or token.resource != self.server:
            return self._refuse("invalid_token" if value else "")
        if (token.jkt is not None) != (scheme == "DPoP"):
            return self._refuse("invalid_token")
        if scheme == "DPoP":
            wrong, shown = self._proof(headers.get("dpop"), request, "server", value)
            if wrong or shown != token.jkt:
                nonce = {"dpop_nonce": self.nonce["server"]} if wrong == "use_dpop_nonce" else {}
                return self._answer(
                    401,
                    {"error": wrong},
                    www_authenticate=f'DPoP error="{wrong or "invalid_token"}", algs="ES256"',
                    **nonce,
                )
        return token

    def _refuse(self, error: str) -> Answer:
        header = self.challenge.format(
            metadata=f"{self.origin}/.well-known/oauth-protected-resource/mcp"
        )
        return self._answer(
            401, {"error": error}, www_authenticate=header + (f', error="{error}"' if error else "")
        )

    def _proof(
        self, proof: str | None, request: Request, who: str, token: str | None
    ) -> tuple[str, str | None]:
        """What is wrong with a proof, nothing where it is right; and whose it is."""
        wanted = self.nonce.get(who)
        if proof is None:
            return "invalid_dpop_proof", None
        try:
            shown = check_dpop(
                proof, method=request.method, url=request.url, now=self.clock(), access_token=token,
                nonce_ok=None if wanted is None else lambda nonce: nonce == wanted,
            )  # fmt: skip
        except WantsNonce:
            return "use_dpop_nonce", None
        self.proofs[shown.jti] += 1
        return "", shown.thumbprint

    async def _do(self, message: dict[str, Any], token: Token) -> dict[str, Any] | Answer:
        method = message["method"]
        id = message["id"]

        def result(**members: Any) -> dict[str, Any]:
            own = {"resultType": "complete"} if self.revision == R5 else {}
            return {"jsonrpc": "2.0", "id": id, "result": own | members}

        info = {"name": "world", "version": "1"}
        if method == "server/discover" and self.revision == R5:
            return result(
                supportedVersions=[R5],
                capabilities={"tools": {}},
                serverInfo=info,
                ttlMs=0,
                cacheScope="private",
            )
        if method == "initialize" and self.revision != R5:
            return result(
                protocolVersion=self.revision, capabilities={"tools": {}}, serverInfo=info
            )
        if method == "tools/call":
            name = message["params"]["name"]
            lacking = set(self.needs.get(name, "").split()) - set(token.scopes)
            if lacking:
                header = f'Bearer error="insufficient_scope", scope="{self.needs[name]}"'
                return self._answer(403, {"error": "insufficient_scope"}, www_authenticate=header)
            if name == "meet":
                assert self.barrier is not None
                await self.barrier.wait()
            self.calls[name] += 1
            return result(content=[{"type": "text", "text": token.subject}])
        return {"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}}

    # -- the authorization server ------------------------------------------------------------------

    @property
    def origin(self) -> str:
        parts = urlsplit(self.server)
        return f"{parts.scheme}://{parts.netloc}"

    def _page(self, request: Request, path: str) -> Answer:
        at = request.url.partition("?")[0]
        if at.startswith(self.origin) and path.startswith("/.well-known/oauth-protected-resource"):
            body = {
                "resource": self.server,
                "authorization_servers": self.issuers or [self.issuer],
                "scopes_supported": ["use"],
            }
            return self._answer(200, body)
        if not request.url.startswith(self.issuer):
            return self._answer(404, None)
        match path:
            case "/.well-known/oauth-authorization-server":
                return self._answer(200, self._metadata())
            case "/register":
                asked = json.loads(request.body)
                client = f"c{len(self.clients) + 1}"
                self.clients[client] = asked
                return self._answer(201, {**asked, "client_id": client})
            case "/token":
                return self._token(request)
        return self._answer(404, None)

    def _metadata(self) -> dict[str, Any]:
        at = self.issuer
        return {
            "issuer": at,
            "authorization_endpoint": f"{at}/authorize",
            "token_endpoint": f"{at}/token",
            "registration_endpoint": f"{at}/register",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": [
                "none",
                "client_secret_basic",
                "client_secret_post",
                "private_key_jwt",
            ],
            "authorization_response_iss_parameter_supported": True,
            **self.extra,
        }

    def authorize(self, url: str) -> str:
        """What a browser brings back from the authorization endpoint once the person has agreed."""
        assert url.startswith(f"{self.issuer}/authorize?")
        asked = dict(parse_qsl(urlsplit(url).query))
        self.visits.append(asked)
        self._made += 1
        code = f"code-{self._made}"
        self.codes[code] = asked
        return urlencode({"code": code, "state": asked["state"], "iss": self.issuer})

    def _token(self, request: Request) -> Answer:
        form = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
        headers = {name.lower(): value for name, value in request.headers}
        jkt = None
        if self.dpop or "dpop" in headers:
            wrong, jkt = self._proof(headers.get("dpop"), request, "as", None)
            if wrong:
                return self._answer(
                    400,
                    {"error": wrong},
                    **({"dpop_nonce": self.nonce["as"]} if wrong == "use_dpop_nonce" else {}),
                )
        basic = headers.get("authorization", "").removeprefix("Basic ")
        if basic:
            form["client_id"], form["client_secret"] = map(
                unquote_plus, base64.b64decode(basic).decode().split(":")
            )
        match form["grant_type"]:
            case "authorization_code":
                asked = self.codes.pop(form["code"], None)
                if (
                    asked is None
                    or _s256(form["code_verifier"]) != asked["code_challenge"]
                    or form["client_id"] not in self.clients
                ):
                    return self._answer(400, {"error": "invalid_grant"})
                scopes = tuple(asked.get("scope", "").split())
                return self._give(
                    Token(asked["resource"], form["client_id"], self.grants(scopes), 0, jkt)
                )
            case "refresh_token":
                return self._renew(form)
            case "client_credentials":
                return self._give(
                    Token(
                        form["resource"],
                        form.get("client_id", ""),
                        tuple(form.get("scope", "").split()),
                        0,
                        jkt,
                    ),
                    False,
                )
        return self._answer(400, {"error": "unsupported_grant_type"})

    def _renew(self, form: dict[str, str]) -> Answer:
        known = self.refresh.pop(form["refresh_token"], None)
        if form.get("client_id") not in self.clients:
            return self._answer(401, {"error": "invalid_client"})
        if known is None or known.client != form["client_id"]:
            self.dead[form["refresh_token"]] += 1
            return self._answer(
                400, {"error": "invalid_grant", "error_description": "\x1b[31mgone\x1b[0m"}
            )
        self.spent[form["refresh_token"]] += 1
        return self._give(known)

    def _give(self, token: Token, lasting: bool = True) -> Answer:
        self._made += 1
        access = f"access-{self._made}-secret"
        refresh = f"refresh-{self._made}-secret"
        if self.lives is not None:
            lives = self.lives
        elif isinstance(self.seconds, int | float):
            lives = float(self.seconds)
        else:
            lives = 600.0
        self.tokens[access] = Token(
            token.resource,
            token.client,
            token.scopes,
            self.clock() + lives,
            token.jkt,
            token.subject,
        )
        body = {
            "access_token": access,
            "token_type": "DPoP" if token.jkt else "Bearer",
            "scope": " ".join(token.scopes),
        }
        if self.seconds is not None:
            body["expires_in"] = self.seconds
        if lasting and self.offers_refresh:
            self.refresh[refresh] = token
            body["refresh_token"] = refresh
        return self._answer(200, body)


class Person:
    """Logs in at once, or when the gate opens; `here` are the agents that are open now."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.gate: asyncio.Event | None = None
        self.asked = asyncio.Semaphore(0)
        self.answers: Callable[[str], str] | Exception = world.authorize
        self.made = 0
        self.here = 0

    def __call__(self) -> Person:
        self.made += 1
        self.here += 1
        return self

    async def listen(self, preferred: Any) -> str:
        return "http://127.0.0.1:33418/callback"

    async def visit(self, url: str, redirect_uri: str) -> str:
        self.asked.release()
        if self.gate is not None:
            await self.gate.wait()
        if isinstance(self.answers, Exception):
            raise self.answers
        return self.answers(url)

    async def show_code(self, step: ShowCode) -> None:
        raise AssertionError("nobody asked for a code")

    async def aclose(self) -> None:
        self.here -= 1


def login(world: World, person: Person | None = None, **options: Any) -> OAuth:
    """A log-in in this world."""
    return OAuth(agent=person or Person(world), fetch=world, clock=world.clock, **options)


def client(
    world: World, auth: Authorization, *, settings: ClientSettings | None = None, **options: Any
) -> Client:
    """A client of the world's server."""
    revision = {} if world.revision == R5 else {"revision": world.revision}
    legacy = {"legacy_sse": True} if world.revision == R1 else {}
    return Client(
        Http(world.server, fetch=world, auth=auth, **legacy),
        settings=msgspec.structs.replace(settings or ClientSettings(), cache=False),
        **revision,
        **options,
    )


def token_of(request: Request) -> str | None:
    """The token that a request was sent with."""
    found = [value for name, value in request.headers if name.lower() == "authorization"]
    assert len(found) < 2
    return found[0].partition(" ")[2] if found else None


@contextmanager
def nothing_left() -> Iterator[None]:
    """No task is there at the end that was not there at the beginning."""
    before = asyncio.all_tasks()
    yield
    left = asyncio.all_tasks() - before
    assert not left, left


def _s256(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
