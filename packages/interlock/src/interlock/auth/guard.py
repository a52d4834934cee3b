"""The guard: ASGI middleware that admits only requests with a token for this server."""

from __future__ import annotations

import ipaddress
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from msgspec.structs import replace

from ..exchange import Principal
from ..logs import limited
from ..store.vaults.interface import Vault
from .error_responses import (
    WELL_KNOWN,
    GuardedServer,
    Refusal,
    Terms,
    checked_resource,
    checked_scopes,
    malformed,
    misconfigured,
    unavailable,
)
from .oauth.addresses import origin
from .tokens.credentials import SECRET_HEADERS, Credentials, MalformedCredentials, read
from .tokens.dpop import BadDpopProof, DpopVerifier
from .tokens.interface import BadToken, LocalIssuer, Unverifiable, Verified, Verifier, verifying
from .tokens.verdict_cache import Verdicts, key_of

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

_log = limited("interlock.auth")
_ANYBODY: list[tuple[bytes, bytes]] = [
    (b"access-control-allow-origin", b"*")
]  # the metadata is public, also for web pages
_MOST_SITES = 64
_RESOURCE = (
    "The operator of this server must configure its public address: Guard(..., "
    "resource='https://mcp.example.com/mcp'). It is guessed only for clients on the same "
    "machine."
)


class Guard:
    """The guard of an ASGI app: `guard(app)` admits only requests with a token for this server
    (2026-07-28, "Authorization").

    The app finds the Principal in its scope under "interlock.principal", and under
    "interlock.challenge" a function from scopes to the headers of a 403 that requests them. It
    never sees the token: the headers `Authorization` and `DPoP` are removed. WebSockets are
    refused.

    Args:
        verifier: Verifies tokens: `Jwt`, `Introspection`, `ApiKeys`, `Checked`, or `AnyOf` several.
            An `Issuer` or an `OAuthProxy` is also served, at all paths that do not belong to the
            app.
        resource: The canonical URI of this server, which tokens must be issued for. It can be
            omitted only if clients run on the same machine.
        scopes: The scopes that every request needs. Single tools, resources and prompts can require
            more.
        name: The name of the server, for people.
        documentation: The URL of its documentation, for people.
        scopes_supported: The scopes that clients may request; by default `scopes` and those of the
            server's features.
        implies: Scopes that include others: `{"files:write": ["files:read"]}`. The spelling of a
            scope implies nothing.
        dpop: Whether tokens may, or must, be bound to a key of the client (RFC 9449).
        dpop_nonces: Whether DPoP proofs need a nonce.
        vault: Records used DPoP proofs; shared if several processes serve.
        public: Paths without authorization.
        clock: Returns the time in seconds of the wall clock.
        path: The path of the MCP endpoint, if the app does not provide it.

    Raises:
        ValueError: Settings contradict each other.
    """

    def __init__(
        self,
        verifier: Verifier | LocalIssuer,
        *,
        resource: str | None = None,
        scopes: Sequence[str] = (),
        name: str | None = None,
        documentation: str | None = None,
        scopes_supported: Sequence[str] | None = None,
        implies: Mapping[str, Sequence[str]] | None = None,
        dpop: Literal["off", "allowed", "required"] = "allowed",
        dpop_nonces: bool = False,
        vault: Vault | None = None,
        public: Sequence[str] = ("/health", "/health/live", "/health/ready"),
        clock: Callable[[], float] = time.time,
        path: str | None = None,
    ) -> None:
        if dpop not in ("off", "allowed", "required"):
            raise ValueError(f"dpop is 'off', 'allowed' or 'required', not {dpop!r}")
        self.beside = (
            verifier
            if isinstance(verifier, LocalIssuer) and not isinstance(verifier, type)
            else None
        )
        verifier = verifying(verifier if self.beside is None else self.beside.verifier())
        self.verifier = verifier
        self.path = path
        self.clock = clock
        self.public = frozenset(public)
        self.resource = None if resource is None else checked_resource(resource)
        self.scopes = checked_scopes(scopes)
        self._implied = _closures(implies or {})
        self._features: Callable[[], Iterable[str]] = tuple
        has_issuers = bool(verifier.issuers)  # otherwise no verifier can bind a token to a key
        self.terms = Terms(
            issuers=tuple(verifier.issuers),
            scopes=self.scopes,
            supported=None if scopes_supported is None else tuple(scopes_supported),
            features=lambda: self._features(),
            name=name,
            documentation=documentation,
            bearer=dpop != "required",
            dpop=dpop == "required" or (dpop == "allowed" and has_issuers),
        )
        self._schemes = ("bearer",) if dpop == "off" else ("bearer", "dpop")
        self._verdicts = Verdicts(self._verify)
        self._proofs = DpopVerifier(vault=vault, clock=clock, nonces=dpop_nonces)
        self._sites: dict[tuple[str, str], GuardedServer] = {}

    def __call__(self, app: ASGIApp) -> Guarded:
        """Return the app with the guard in front."""
        own = getattr(app, "path", None)
        if self.path is None and isinstance(own, str):
            self.path = own
        return Guarded(self, app)

    def learn(self, path: str, scopes: Callable[[], Iterable[str]]) -> None:
        """Set the path of the endpoint, and the function that returns the scopes of its
        features.
        """
        self.path = self.path or path
        self._features = scopes

    async def aclose(self) -> None:
        """Close the verifier."""
        for each in (self.verifier, self.beside):
            close = getattr(each, "aclose", None)
            if close is not None:
                await close()

    # -- the URI of this server --------------------------------------------------------------------

    @property
    def endpoint(self) -> str:
        """The path of the MCP endpoint."""
        return self.path or "/mcp"

    def site(self, scope: Scope) -> GuardedServer:
        """The server that a request is for. Raises ValueError if its URI is not configured."""
        root = scope.get("root_path", "")
        resource = self.resource
        if resource is None:
            own = root if root and _beneath(scope) in ("", "/") else root + self.endpoint
            resource = _local(scope) + own.rstrip("/")
        site = self._sites.get((resource, root))
        if site is None:
            if len(self._sites) >= _MOST_SITES:
                self._sites.clear()
            beneath = (
                f"{root}{WELL_KNOWN}"
                if root
                else f"{WELL_KNOWN}{urlsplit(resource).path.rstrip('/')}"
            )
            site = self._sites[resource, root] = GuardedServer(
                self.terms, resource, origin(resource) + beneath
            )  # if the app is mounted, paths above the mount point belong to others
        return site

    # -- the principal of a request ----------------------------------------------------------------

    async def judge(
        self, site: GuardedServer, scope: Scope, credentials: Credentials
    ) -> Principal | Refusal:
        """Return the principal of a request, or the error response.

        Args:
            site: The server that the request is for.
            scope: The ASGI scope of the request.
            credentials: The credentials of the request.
        """
        if not credentials.token:
            return site.unauthorized()
        now = self.clock()
        try:
            key = key_of(credentials.token, site.resource)
            verified = self._verdicts.known(key, now)
            if verified is None:
                verified = await self._verdicts.find_out(key, credentials.token, site.resource, now)
            if (
                credentials.scheme == "dpop"
                or verified.thumbprint is not None
                or not self.terms.bearer
            ):
                await self._check_proof(site, scope, credentials, verified, now)
        except BadToken as bad:
            return site.unauthorized(str(bad), dpop=credentials.scheme == "dpop")
        except BadDpopProof as bad:
            return site.unauthorized(str(bad), error=bad.error, dpop=True, nonce=bad.nonce)
        except Unverifiable as away:
            return unavailable(str(away), away.seconds)
        principal = verified.principal
        if not principal.scopes.issuperset(self.scopes):
            return site.forbidden(self.scopes)
        return principal

    async def _verify(self, token: str, resource: str, now: float) -> Verified:
        """Verify a token, and add the scopes that its scopes imply (`AUS-10`)."""
        verified = await self.verifier.verify(token, resource=resource, now=now)
        had = verified.principal.scopes
        whole = had.union(*(self._implied[scope] for scope in had if scope in self._implied))
        return (
            verified
            if whole == had
            else replace(verified, principal=replace(verified.principal, scopes=whole))
        )

    async def _check_proof(
        self,
        site: GuardedServer,
        scope: Scope,
        credentials: Credentials,
        verified: Verified,
        now: float,
    ) -> None:
        """Raise BadDpopProof unless the sender of the request proves that it has the key that the
        token is bound to.
        """
        if verified.thumbprint is None:
            raise BadDpopProof(
                "the token is not bound to a key: the DPoP scheme requires a DPoP-bound token",
                error="invalid_token",
            )
        if credentials.scheme != "dpop":
            raise BadDpopProof(
                "the token is bound to a key: send it with a DPoP proof",
                error="invalid_token",
            )
        if len(credentials.proofs) != 1:
            raise BadDpopProof(
                "the DPoP header is missing"
                if not credentials.proofs
                else "there is more than one DPoP header"
            )
        urls = [site.origin + _raw_path(scope)]
        if _beneath(scope) in ("", "/", self.endpoint):
            urls.append(
                site.resource
            )  # the URI that clients use, even if a reverse proxy has changed it
        await self._proofs.check(
            credentials.proofs[0],
            method=scope["method"],
            urls=urls,
            now=now,
            token=credentials.token,
            thumbprint=verified.thumbprint,
        )

    def nonce(self, credentials: Credentials) -> str | None:
        """The nonce for the client's next proof, if nonces are required (RFC 9449, 8.2)."""
        return (
            self._proofs.nonce(self.clock())
            if self._proofs.nonces and credentials.scheme == "dpop"
            else None
        )


class GuardedToken:
    """The bearer token of a request, for all later requests with the same head."""

    __slots__ = ("_guard", "_key", "challenge")

    def __init__(self, guard: Guard, site: GuardedServer, token: str) -> None:
        self._guard = guard
        self._key = key_of(token, site.resource)
        self.challenge = site.challenge

    def principal(self) -> Principal | None:
        """Return the principal, if the token was verified a short time ago and is still valid."""
        guard = self._guard
        verified = guard._verdicts.known(self._key, guard.clock())
        if verified is None or verified.thumbprint is not None:
            return None
        principal = verified.principal
        return principal if principal.scopes.issuperset(guard.scopes) else None


class Guarded:
    """An ASGI app with a guard in front."""

    def __init__(self, guard: Guard, app: ASGIApp) -> None:
        self.guard = guard
        self.app = app
        self._paths: frozenset[str] = frozenset(getattr(app, "paths", ()))
        self._knows: Callable[[str], bool] = getattr(app, "knows", lambda path: False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection: an authorized HTTP request, or the lifespan."""
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def read_token(
        self, path: str, query: bytes, headers: Sequence[tuple[bytes, bytes]]
    ) -> tuple[GuardedToken, list[tuple[bytes, bytes]]] | None:
        """Return the token of a request to the app, and the headers without credentials. None if
        the request has to be served as ASGI: it has no plain bearer token, or the guard needs more
        than the token.
        """
        guard = self.guard
        if guard.resource is None or not guard.terms.bearer or path in guard.public:
            return None
        try:
            credentials, shown = read(headers, query, guard._schemes)
        except MalformedCredentials:
            return None
        if credentials.scheme != "bearer":
            return None
        site = guard.site({"root_path": "", "path": path})
        return GuardedToken(guard, site, credentials.token), shown

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        guard = self.guard
        path = _beneath(scope)
        if guard.beside is not None and not self._is_ours(path):
            await guard.beside(scope, receive, send)
            return
        if path in guard.public or _is_preflight(scope):
            shown = [pair for pair in scope["headers"] if pair[0] not in SECRET_HEADERS]
            await self.app({**scope, "headers": shown}, receive, send)
            return
        try:
            site = guard.site(scope)
        except ValueError as bad:
            await _refuse(scope, send, misconfigured(str(bad)))
            return
        if (
            path.startswith(WELL_KNOWN)
            and (answer := self._metadata(site, scope, path)) is not None
        ):
            await _send(scope, send, *answer)
            return
        try:
            credentials, headers = read(
                scope["headers"], scope.get("query_string", b""), guard._schemes
            )
        except MalformedCredentials as bad:
            await _refuse(scope, send, malformed(str(bad)))
            return
        verdict = await guard.judge(site, scope, credentials)
        if isinstance(verdict, Refusal):
            await _refuse(scope, send, verdict)
            return
        if (nonce := guard.nonce(credentials)) is not None:
            send = _adding((b"dpop-nonce", nonce.encode()), send)
        inner = {
            **scope,
            "headers": headers,
            "interlock.principal": verdict,
            "interlock.challenge": site.challenge,
        }
        await self.app(inner, receive, send)

    def _is_ours(self, path: str) -> bool:
        """Whether a path is the app's, or that of its metadata."""
        endpoint = self.guard.endpoint
        return (
            path == endpoint
            or path in self._paths
            or self._knows(path)
            or path in self.guard.public
            or path.startswith((f"{endpoint}/", WELL_KNOWN))
        )

    def _metadata(
        self, site: GuardedServer, scope: Scope, path: str
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes] | None:
        """The server's metadata, if the request is for it.

        None if it is for another resource (`AU3-03`).
        """
        named = path[len(WELL_KNOWN) :].rstrip("/")
        root = scope.get("root_path", "")
        if not self.guard.terms.issuers or named not in (
            "",
            site.path,
            self.guard.endpoint,
            root + self.guard.endpoint,
        ):
            return None
        if scope["method"] in ("GET", "HEAD"):
            kept = [
                *_ANYBODY,
                (b"content-type", b"application/json"),
                (b"cache-control", b"max-age=60"),
                (b"vary", b"host"),
            ]
            return 200, kept, site.document()
        if scope["method"] == "OPTIONS":
            allowed = [
                (b"access-control-allow-methods", b"GET, HEAD"),
                (b"access-control-allow-headers", b"*"),
            ]
            return 204, [*_ANYBODY, *allowed, (b"access-control-max-age", b"600")], b""
        return 405, [*_ANYBODY, (b"allow", b"GET, HEAD, OPTIONS")], b""

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the lifespan of the app; at its end the verifier is closed too."""

        async def closing(message: Message) -> None:
            if message["type"] in ("lifespan.shutdown.complete", "lifespan.shutdown.failed"):
                await self.guard.aclose()
            await send(message)

        await self.app(scope, receive, closing)


def _closures(implies: Mapping[str, Sequence[str]]) -> dict[str, frozenset[str]]:
    """All scopes that each scope implies, directly or indirectly."""
    direct = {scope: checked_scopes(others) for scope, others in implies.items()}
    whole: dict[str, frozenset[str]] = {}
    for scope in direct:
        found = set()
        left = [scope]
        while left:
            if (one := left.pop()) not in found:
                found.add(one)
                left.extend(direct.get(one, ()))
        whole[scope] = frozenset(found)
    return whole


def _beneath(scope: Scope) -> str:
    """The path of a request below the mount point of the app."""
    root = scope.get("root_path", "")
    path = str(scope["path"])
    return path[len(root) :] if root and (path == root or path.startswith(f"{root}/")) else path


def _raw_path(scope: Scope) -> str:
    """The path as the client wrote it."""
    raw = scope.get("raw_path")
    return raw.partition(b"?")[0].decode("latin-1") if raw else quote(scope["path"])


def _local(scope: Scope) -> str:
    """Scheme, host and port of a server on this machine, as a client on this machine uses them.

    Raises ValueError for any other server.

    The host that the client uses must be the address at which the request arrived. Otherwise a
    token for another server on this machine would be accepted here.
    """
    server = scope.get("server") or ("", None)
    named = dict(scope["headers"]).get(b"host", b"").decode("latin-1").lower()
    try:
        address = ipaddress.ip_address(server[0])
        parts = urlsplit(f"//{named}")
        port = parts.port or {"http": 80, "https": 443}[scope.get("scheme", "http")]
        good = (
            address.is_loopback
            and port == server[1]
            and (parts.hostname == "localhost" or parts.hostname == str(address))
        )
    except (ValueError, KeyError):
        good = False
    if not good:
        raise ValueError(_RESOURCE)
    return origin(f"{scope.get('scheme', 'http')}://{named}")


def _is_preflight(scope: Scope) -> bool:
    """Whether a request is a CORS preflight (Fetch standard, "CORS-preflight request"), which never
    has a token.
    """
    if scope["method"] != "OPTIONS":
        return False
    names = {name for name, _ in scope["headers"]}
    return (
        b"origin" in names
        and b"access-control-request-method" in names
        and not _beneath(scope).startswith(WELL_KNOWN)
    )


def _adding(header: tuple[bytes, bytes], send: Send) -> Send:
    async def adding(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), header]}
        await send(message)

    return adding


async def _refuse(scope: Scope, send: Send, refusal: Refusal) -> None:
    client = scope.get("client") or ("?",)
    level = logging.INFO if refusal.usual else logging.WARNING
    words = "refused with %d: %s %.200r from %s: %s"
    _log.log(
        level,
        words,
        refusal.status,
        scope["method"],
        scope["path"],
        client[0],
        refusal.body.decode(),
    )
    await _send(scope, send, refusal.status, refusal.headers, refusal.body)


async def _send(
    scope: Scope, send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes
) -> None:
    length = [(b"content-length", b"%d" % len(body))] if status != 204 else []
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *length]})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
