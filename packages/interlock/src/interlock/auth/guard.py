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
from .tokens.interface import BadToken, House, Unverifiable, Verified, Verifier, verifying
from .tokens.verdict_cache import Verdicts, key_of

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

_log = limited("interlock.auth")
_ANYBODY: list[tuple[bytes, bytes]] = [
    (b"access-control-allow-origin", b"*")
]  # the metadata is for everybody, web pages too
_MOST_SITES = 64
_RESOURCE = (
    "Whoever runs this server has to say which address clients have for it: Guard(..., "
    "resource='https://mcp.example.com/mcp'). "
    "It is only guessed where a client on the same machine asks."
)


class Guard:
    """Authorization before an ASGI app: `guard(app)` is the app that only who is allowed to can use
    (2026-07-28, "Authorization").

    - `verifier` says what tokens are worth: `Jwt`, `Introspection`, `ApiKeys`, `Checked`, or
      `AnyOf` several. An `Issuer`, or an `OAuthProxy`, is served beside the app: what is for none
      of the app's own paths goes there.
    - `resource` is the server's own URI, as its clients have it: tokens must be meant for it. Only
      where clients are on the same machine it may be left out.
    - `scopes` are those that every request needs; those of single tools, resources and prompts are
      theirs to demand.
    - `name` and `documentation` (an address) tell people what this is; `scopes_supported` are the
      scopes that clients may ask for, by default these and those of the server's features.
    - `implies` says which scopes have others in them: `{"files:write": ["files:read"]}`. Nothing is
      implied by the look of a scope.
    - `dpop` says whether tokens may, or must, be bound to a key of the client's (RFC 9449);
      `dpop_nonces` demands nonces in the proofs. `vault` remembers which proofs have come: where
      several processes serve, one that they share.
    - `public` are paths that anybody may read; `path` is that of the MCP endpoint, where the app
      does not say it itself.
    - `clock` gives the seconds of the wall clock.

    The app finds the Principal in its scope under "interlock.principal", and under
    "interlock.challenge" a function that takes scopes and gives the headers of a 403 that asks for
    them. It never sees the token: the headers `Authorization` and `DPoP` are not passed on. Web
    sockets are refused. Raises ValueError for settings that cannot be meant.
    """

    def __init__(
        self,
        verifier: Verifier | House,
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
        public: Sequence[str] = ("/health",),
        clock: Callable[[], float] = time.time,
        path: str | None = None,
    ) -> None:
        if dpop not in ("off", "allowed", "required"):
            raise ValueError(f"dpop is 'off', 'allowed' or 'required', not {dpop!r}")
        self.beside = (
            verifier if isinstance(verifier, House) and not isinstance(verifier, type) else None
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
        has_issuers = bool(verifier.issuers)  # else there is nobody who could bind a token to a key
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
        """The app, guarded."""
        own = getattr(app, "path", None)
        if self.path is None and isinstance(own, str):
            self.path = own
        return Guarded(self, app)

    def learn(self, path: str, scopes: Callable[[], Iterable[str]]) -> None:
        """What stands behind it: the path of the endpoint, and all scopes that its features ask
        for, whenever that is asked.
        """
        self.path = self.path or path
        self._features = scopes

    async def aclose(self) -> None:
        """Close what the verifier has opened."""
        for each in (self.verifier, self.beside):
            close = getattr(each, "aclose", None)
            if close is not None:
                await close()

    # -- which server this is ----------------------------------------------------------------------

    @property
    def endpoint(self) -> str:
        """The path of the MCP endpoint."""
        return self.path or "/mcp"

    def site(self, scope: Scope) -> GuardedServer:
        """The server that a request is for. Raises ValueError where nobody said which that is."""
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
            )  # mounted: what is above is not ours
        return site

    # -- who asks ----------------------------------------------------------------------------------

    async def judge(
        self, site: GuardedServer, scope: Scope, credentials: Credentials
    ) -> Principal | Refusal:
        """On whose behalf a request is made; or what to say in place of an answer."""
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
        """What the verifier says, with the scopes that those of the token imply (`AUS-10`)."""
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
        """Raise BadProof unless the request shows that its sender has the key to which the token is
        bound.
        """
        if verified.thumbprint is None:
            raise BadDpopProof(
                "the token is bound to no key, and only such are taken with DPoP",
                error="invalid_token",
            )
        if credentials.scheme != "dpop":
            raise BadDpopProof(
                "the token is bound to a key: it is only good with a DPoP proof",
                error="invalid_token",
            )
        if len(credentials.proofs) != 1:
            raise BadDpopProof(
                "there is not one DPoP header"
                if not credentials.proofs
                else "there is more than one DPoP header"
            )
        urls = [site.origin + _raw_path(scope)]
        if _beneath(scope) in ("", "/", self.endpoint):
            urls.append(
                site.resource
            )  # what clients call it, whatever stands before us made of that
        await self._proofs.check(
            credentials.proofs[0],
            method=scope["method"],
            urls=urls,
            now=now,
            token=credentials.token,
            thumbprint=verified.thumbprint,
        )

    def nonce(self, credentials: Credentials) -> str | None:
        """The nonce with which the client shall come the next time, where nonces are demanded (RFC
        9449, 8.2).
        """
        return (
            self._proofs.nonce(self.clock())
            if self._proofs.nonces and credentials.scheme == "dpop"
            else None
        )


class Guarded:
    """An app with its guard; an ASGI app itself. `app` is what it guards."""

    def __init__(self, guard: Guard, app: ASGIApp) -> None:
        self.guard = guard
        self.app = app
        self._paths: frozenset[str] = frozenset(getattr(app, "paths", ()))
        self._knows: Callable[[str], bool] = getattr(app, "knows", lambda path: False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection: an HTTP request that may come in, or the lifespan."""
        if scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

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
        """The metadata of the server, where somebody asks for that.

        None where it is for another place (`AU3-03`).
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
        """The lifespan is the app's own; at its end the verifier is closed too."""

        async def closing(message: Message) -> None:
            if message["type"] in ("lifespan.shutdown.complete", "lifespan.shutdown.failed"):
                await self.guard.aclose()
            await send(message)

        await self.app(scope, receive, closing)


def _closures(implies: Mapping[str, Sequence[str]]) -> dict[str, frozenset[str]]:
    """All that each scope implies, by however many steps."""
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
    """The path of a request beneath the place where the app is mounted."""
    root = scope.get("root_path", "")
    path = str(scope["path"])
    return path[len(root) :] if root and (path == root or path.startswith(f"{root}/")) else path


def _raw_path(scope: Scope) -> str:
    """The path as the client wrote it."""
    raw = scope.get("raw_path")
    return raw.partition(b"?")[0].decode("latin-1") if raw else quote(scope["path"])


def _local(scope: Scope) -> str:
    """Scheme, host and port of a server on this machine, as a client here calls it.

    Raises ValueError for any other.

    The host that the client names must be the one at which it has arrived: else a token for another
    server here would be good for this.
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
    """Whether a browser asks what it may ask (Fetch standard, "CORS-preflight request"): that
    brings no token, ever.
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
