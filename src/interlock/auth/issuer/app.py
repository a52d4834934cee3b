"""The issuer as an app: its routes, and what the people behind it may ask of it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from urllib.parse import urlsplit

from ...fetch import Fetch
from ...store.vaults.places import open_vault
from ...store.vaults.seam import Vault
from ...transport.public import SafeFetch
from ...types import Unreachable
from ..oauth.addresses import is_loopback_host
from . import metadata
from .authentication import Authentication
from .authorization import Astray, Authorization, Place, Unfit, is_trusted
from .clientkeys import ClientKeys
from .clients import Clients
from .device import MARK, Agreed, Devices
from .grants import Grants
from .inhouse import Own
from .keyring import Keyring
from .minting import Mint
from .nobody import Nobody
from .papers import Papers
from .proofs import Proofs
from .refusals import Refusal, away
from .registration import Registration
from .seam import Client, Pending, People, Person
from .settings import OFFLINE, Dpop, Settings, settled
from .standing import Standing
from .tokens import Tokens
from .trust import Trust, TrustedIssuer
from .web import Asked, BadForm, Receive, Reply, Scope, Send, converse, json, plain, redirect

_DAY = 86_400.0
# Browsers' programs may call what takes no cookies (the inspector does); pages are for the person alone.
_OPEN = (
    ("access-control-allow-origin", "*"),
    ("access-control-expose-headers", "DPoP-Nonce, WWW-Authenticate, Retry-After"),
)
_PREFLIGHT = (
    *_OPEN,
    ("access-control-allow-methods", "GET, POST, OPTIONS"),
    ("access-control-allow-headers", "Authorization, Content-Type, DPoP, MCP-Protocol-Version"),
    ("access-control-max-age", "86400"),
)
_KEPT = ("cache-control", "public, max-age=300")
# What is answered without a page where the client wants none (OpenID Connect Core 1.0, 3.1.2.6).
_UNASKED = frozenset(
    {"login_required", "consent_required", "interaction_required", "account_selection_required"}
)
_Route = Callable[[Asked], Awaitable[Reply]]


class Issuer:
    """A small authorization server, as an ASGI app (OAuth 2.1; 2026-07-28, "Authorization").

    `url` is its address: https, or http on loopback for development. `people` knows the persons and asks them; without it only programs on
    their own behalf get tokens. `vault` keeps its
    records: a Vault, or the URL of one. `resources` are the servers that it gives tokens for; None takes any https address and any on
    loopback. `scopes` are all scopes with the sentence that the consent page says of each; empty takes any. `clients` are known
    beforehand; with `registration` others register themselves, with `cimd` others have a document for an id. `fetch` gets those
    documents and keys: the guarded fetcher where nothing is given. `trusted` are issuers whose assertions are taken. `schemes` are
    private ones that redirect URIs may have. All times are seconds; `key_seconds` is how long a key signs.
    Raises ValueError for what cannot be.
    """

    def __init__(
        self,
        url: str,
        people: People | None = None,
        *,
        vault: Vault | str = "memory:",
        resources: Sequence[str] | None = None,
        scopes: Mapping[str, str] | None = None,
        clients: Sequence[Client] = (),
        registration: bool = True,
        cimd: bool = True,
        fetch: Fetch | None = None,
        dpop: Dpop = "allowed",
        dpop_nonces: bool = False,
        access_seconds: float = 600.0,
        refresh_seconds: float = 30 * _DAY,
        session_seconds: float = 180 * _DAY,
        key_seconds: float = 30 * _DAY,
        algorithm: str = "ES256",
        schemes: Sequence[str] = (),
        trusted: Sequence[TrustedIssuer] = (),
        clock: Callable[[], float] = time.time,
        random: Callable[[int], str] = secrets.token_urlsafe,
    ) -> None:
        address, known = settled(url, resources)
        self.people: People = people or Nobody()
        self.settings = Settings(
            url=address,
            resources=known,
            scopes=dict(scopes or {}),
            registration=registration,
            cimd=cimd,
            dpop=dpop,
            dpop_nonces=dpop_nonces,
            access_seconds=access_seconds,
            refresh_seconds=refresh_seconds,
            session_seconds=session_seconds,
            key_seconds=key_seconds,
            algorithm=algorithm,
            schemes=tuple(schemes),
            clock=clock,
            random=random,
        )
        self._own_vault = isinstance(vault, str)
        self.vault: Vault = open_vault(vault) if isinstance(vault, str) else vault
        self._own_fetch = fetch is None
        self._fetch: Fetch = (
            fetch if fetch is not None else SafeFetch(loopback=self.settings.is_loopback)
        )
        self._build(clients, trusted)

    def _build(self, clients: Sequence[Client], trusted: Sequence[TrustedIssuer]) -> None:
        """Put the parts together."""
        settings, vault = self.settings, self.vault
        self._papers, self._keys = (
            Papers(self._fetch, settings.clock),
            ClientKeys(self._fetch, settings.clock),
        )
        self._clients = Clients(settings, vault, self._papers, clients)
        self._authentication = Authentication(settings, vault, self._clients, self._keys)
        self._authorization = Authorization(settings, vault, self._clients)
        self._registration = Registration(settings, self._clients)
        self._devices = Devices(settings, vault, self._clients)
        self._grants = Grants(settings, vault)
        self._keyring = Keyring(settings, vault)
        self._trust = Trust(
            settings, vault, None if self._own_fetch else self._fetch, trusted
        )  # whom we trust may be inside
        mint = Mint(settings, vault, self._keyring)
        self._standing = Standing(mint, self._grants, self._stands)
        self._tokens = Tokens(
            settings=settings,
            mint=mint,
            grants=self._grants,
            clients=self._clients,
            authentication=self._authentication,
            proofs=Proofs(settings, vault),
            devices=self._devices,
            trust=self._trust,
            standing=self._standing,
            stands=self._stands,
        )
        self._metadata = metadata.document(settings, self._trust)
        root = settings.path
        self._open: dict[str, dict[str, _Route]] = {
            **{place: {"GET": self._describe} for place in metadata.places(settings)},
            f"{root}/jwks": {"GET": self._jwks},
            f"{root}/token": {"POST": self._tokens.answer},
            f"{root}/register": {"POST": self._registration.answer},
            f"{root}/revoke": {"POST": self._revoke},
            f"{root}/introspect": {"POST": self._introspect},
            f"{root}/device_authorization": {"POST": self._begin_device},
        }

    # -- what is asked of it --------------------------------------------------------------------------------------------

    async def answer(self, asked: Asked) -> Reply:
        """The answer to any request."""
        if self.settings.is_loopback and not _is_here(asked.headers.get("host")):
            return plain(
                403, "This server is for this machine: call it by localhost or 127.0.0.1."
            )  # SEC-01: no name is rebound to it
        routes = self._open.get(asked.path)
        if routes is not None:
            return await self._program(asked, routes)
        if asked.path == f"{self.settings.path}/authorize":
            if asked.method not in ("GET", "POST"):
                return plain(405, "GET or POST.", [("allow", "GET, POST")])
            return await self._authorize(asked)
        reply = await self.people.answer(self, asked)
        return plain(404, "There is nothing here.") if reply is None else reply

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI app."""
        await converse(self.answer, scope, receive, send, closing=self.aclose)

    def verifier(self) -> Own:
        """What verifies its tokens at a server in the same process, without a network, and sees what has been revoked."""
        return Own(self.settings.url, self.answer, self._standing.claims)

    async def aclose(self) -> None:
        """Let go of what it has opened itself."""
        for part in (self._papers, self._keys, self._trust):
            await part.aclose()
        if self._own_fetch:
            await self._fetch.aclose()
        if self._own_vault:
            await self.vault.aclose()

    # -- what the people behind it may ask ------------------------------------------------------------------------------

    async def pending(self, id: str) -> Pending | None:
        """A request that waits for a person, also that of a device; None where there is none, or it is over."""
        return await (self._devices if id.startswith(MARK) else self._authorization).get(id)

    async def device(self, user_code: str) -> Pending | None:
        """The request of the device that shows a code, in any case, with or without the dash (RFC 8628, 3.3)."""
        return await self._devices.find(user_code)

    async def grant(self, id: str, person: Person, scopes: Sequence[str]) -> Reply:
        """The person agrees, to these of the scopes that were asked for; once. The browser goes back with a code."""
        if id.startswith(MARK):
            waiting = await self._devices.get(id)
            if waiting is not None:
                agreed = Agreed(person, _among(scopes, waiting), waiting.resource)
                if await self._devices.decide(id, agreed):
                    return self.people.done(waiting, True)
            return self._over()
        pending = await self._authorization.take(id)
        if pending is None:
            return self._over()
        code = await self._grants.code(pending, person, _among(scopes, pending))
        return redirect(
            Place(pending.redirect_uri, pending.state).answer(self.settings.url, {"code": code})
        )

    async def deny(self, id: str, error: str = "access_denied", words: str = "") -> Reply:
        """The person says no, or cannot be asked; once. The browser goes back with the error."""
        if id.startswith(MARK):
            waiting = await self._devices.get(id)
            if waiting is not None and await self._devices.decide(id, None):
                return self.people.done(waiting, False)
            return self._over()
        pending = await self._authorization.take(id)
        if pending is None:
            return self._over()
        why = Refusal(error, words)
        if error in _UNASKED:
            return self._unasked(pending.client, pending.redirect_uri, pending.state, why)
        return redirect(self._back(pending.redirect_uri, pending.state, why))

    # -- routes ---------------------------------------------------------------------------------------------------------

    async def _program(self, asked: Asked, routes: Mapping[str, _Route]) -> Reply:
        """The answer to a program."""
        if asked.method == "OPTIONS":
            return Reply(204, _PREFLIGHT)
        route = routes.get("GET" if asked.method == "HEAD" else asked.method)
        if route is None:
            return plain(
                405, f"{', '.join(routes)}.", [("allow", ", ".join([*routes, "OPTIONS"])), *_OPEN]
            )
        try:
            return (await route(asked)).adding(*_OPEN)
        except BadForm as bad:
            return Refusal("invalid_request", str(bad)).reply().adding(*_OPEN)
        except Refusal as refusal:
            return refusal.reply().adding(*_OPEN)

    async def _describe(self, asked: Asked) -> Reply:
        return json(self._metadata, headers=[_KEPT])

    async def _jwks(self, asked: Asked) -> Reply:
        return json(await self._keyring.public(), headers=[_KEPT])

    async def _revoke(self, asked: Asked) -> Reply:
        form = asked.form
        return await self._standing.revoke(form, await self._authentication.client(asked, form))

    async def _introspect(self, asked: Asked) -> Reply:
        form = asked.form
        return await self._standing.introspect(form, await self._authentication.client(asked, form))

    async def _begin_device(self, asked: Asked) -> Reply:
        form = asked.form
        client = await self._authentication.client(asked, form)
        return await self._devices.answer(
            client, form.get("scope"), form.get("resource"), asked.address
        )

    async def _authorize(self, asked: Asked) -> Reply:
        """Judge the request, and have the person asked."""
        try:
            pending = await self._authorization.judge(asked)
        except Astray as astray:
            return self.people.misfortune("This does not lead anywhere", astray.words)
        except Unfit as unfit:
            return self._unasked(unfit.client, unfit.redirect_uri, unfit.state, unfit.why)
        return await self.people.begin(self, asked, pending)

    # -- small things ---------------------------------------------------------------------------------------------------

    def _back(self, redirect_uri: str, state: str | None, why: Refusal) -> str:
        """The address to which a refusal goes, with who refuses."""
        told = {"error": why.error} | ({"error_description": why.description} if why.words else {})
        return Place(redirect_uri, state).answer(self.settings.url, told)

    def _unasked(self, client: Client, redirect_uri: str, state: str | None, why: Refusal) -> Reply:
        """A refusal before anybody was asked: at a place that a stranger chose the person decides whether to go there."""
        onward = self._back(redirect_uri, state, why)
        if is_trusted(client, redirect_uri):
            return redirect(onward)
        return self.people.misfortune(
            "The request is not right", f"{why.error}: {why.words or 'nobody was asked'}.", onward
        )

    def _over(self) -> Reply:
        return self.people.misfortune(
            "This is over",
            "The request was answered already, or took too long. Begin again where you came from.",
        )

    async def _stands(self, person: Person) -> bool:
        try:
            return await self.people.stands(person)
        except Unreachable as silent:  # nothing is decided, and nothing spent
            raise away("it cannot be found out now whether the person may still go on") from silent


def _among(scopes: Sequence[str], pending: Pending) -> tuple[str, ...]:
    """The scopes that were asked for, as far as they are granted; in the order in which they were asked for."""
    granted = {*scopes, OFFLINE}
    return tuple(scope for scope in pending.scopes if scope in granted)


def _is_here(host: str | None) -> bool:
    """Whether a Host header names this machine; none at all comes from no browser."""
    if host is None:
        return True
    try:
        return is_loopback_host(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False
