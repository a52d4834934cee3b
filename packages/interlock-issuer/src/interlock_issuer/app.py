"""The authorization server as an ASGI app: its routes, and what its login pages may ask of it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Unpack

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from interlock import Fetch, SafeFetch, Unreachable
from interlock.store import Vault, open_vault

from . import metadata
from .clients.authentication import Authentication
from .clients.keys import ClientKeys
from .clients.metadata_documents import MetadataDocuments
from .clients.registration import Registration
from .clients.registry import Clients
from .grants.authorization import (
    Authorization,
    RedirectableError,
    RedirectTarget,
    UnredirectableError,
    is_trusted,
)
from .grants.device_flow import MARK, DeviceConsent, DeviceFlow
from .grants.introspection import TokenStatus
from .grants.token_endpoint import TokenEndpoint
from .grants.trusted_issuers import TrustedIssuer, TrustedIssuers
from .grants.user_grants import Grants
from .http.endpoints import Answer, Boundary, Endpoint, ProgramEndpoint
from .http.error_responses import OAuthError, unavailable
from .http.parameters import address_of, form_parameters
from .http.responses import json_response, redirect_response, text_response
from .in_process import InProcessVerifier
from .interfaces import Client, PendingRequest, User, Users
from .login.no_users import NoUsers
from .settings import OFFLINE, IssuerOptions, settled
from .tokens.access_tokens import AccessTokens
from .tokens.dpop import DpopProofs
from .tokens.signing_keys import SigningKeys

_CACHED = ("cache-control", "public, max-age=300")
# Errors that are answered without a page, where the client wants none (OpenID Connect Core 1.0,
# 3.1.2.6).
_WITHOUT_PAGE = frozenset(
    {"login_required", "consent_required", "interaction_required", "account_selection_required"}
)


class Issuer:
    """A small authorization server, as an ASGI app (OAuth 2.1; 2026-07-28, "Authorization").

    Args:
        url: Its address: https, or http on loopback for development.
        users: Knows the users and asks them. Without it only programs on their own behalf get
            tokens.
        vault: Where records are kept: a Vault, or the URL of one.
        clients: Clients that are known beforehand.
        fetch: Gets documents and keys of clients: `interlock.SafeFetch` if nothing is given.
        trusted: Issuers whose assertions are accepted.
        **options: See `IssuerOptions`.

    Raises:
        ValueError: The address, a resource or a redirect URI is not allowed.
    """

    def __init__(
        self,
        url: str,
        users: Users | None = None,
        *,
        vault: Vault | str = "memory:",
        clients: Sequence[Client] = (),
        fetch: Fetch | None = None,
        trusted: Sequence[TrustedIssuer] = (),
        **options: Unpack[IssuerOptions],
    ) -> None:
        self.users: Users = users or NoUsers()
        self.settings = settled(url, options)
        self._own_vault = isinstance(vault, str)
        self.vault: Vault = open_vault(vault) if isinstance(vault, str) else vault
        self._own_fetch = fetch is None
        self._fetch: Fetch = (
            fetch if fetch is not None else SafeFetch(loopback=self.settings.is_loopback)
        )
        self._build(clients, trusted)

    def _build(self, clients: Sequence[Client], trusted: Sequence[TrustedIssuer]) -> None:
        """Put the parts together."""
        settings = self.settings
        vault = self.vault
        self._documents = MetadataDocuments(self._fetch, settings.clock)
        self._keys = ClientKeys(self._fetch, settings.clock)
        self._clients = Clients(settings, vault, self._documents, clients)
        self._authentication = Authentication(settings, vault, self._clients, self._keys)
        self._authorization = Authorization(settings, vault, self._clients)
        self._registration = Registration(settings, self._clients)
        self._devices = DeviceFlow(settings, vault, self._clients)
        self._grants = Grants(settings, vault)
        self._signing_keys = SigningKeys(settings, vault)
        # A trusted issuer may be inside the network: its keys may come from any address.
        self._trust = TrustedIssuers(
            settings, vault, None if self._own_fetch else self._fetch, trusted
        )
        access_tokens = AccessTokens(settings, vault, self._signing_keys)
        self._status = TokenStatus(access_tokens, self._grants, self._is_active)
        self._tokens = TokenEndpoint(
            settings=settings,
            access_tokens=access_tokens,
            grants=self._grants,
            clients=self._clients,
            authentication=self._authentication,
            proofs=DpopProofs(settings, vault),
            devices=self._devices,
            trust=self._trust,
            status=self._status,
            is_active=self._is_active,
        )
        self._metadata = metadata.document(settings, self._trust)
        self._router: ASGIApp | None = None

    # -- the ASGI app -----------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one ASGI connection."""
        if self._router is None:
            self._router = Boundary(self._routes(), loopback=self.settings.is_loopback)
        await self._router(scope, receive, send)

    def verifier(self) -> InProcessVerifier:
        """Return what verifies its tokens at a server in the same process.

        It needs no network, and sees at once what has been revoked.
        """
        return InProcessVerifier(self.settings.url, self, self._status.claims)

    async def count_registrations(self) -> int:
        """Return the number of clients that have registered themselves."""
        return await self._clients.repository.count()

    async def aclose(self) -> None:
        """Close what it has opened itself."""
        for part in (self._documents, self._keys, self._trust):
            await part.aclose()
        if self._own_fetch:
            await self._fetch.aclose()
        if self._own_vault:
            await self.vault.aclose()

    def _routes(self) -> Router:
        root = self.settings.path
        programs: dict[str, dict[str, Answer]] = {
            **{place: {"GET": self._describe} for place in metadata.places(self.settings)},
            f"{root}/jwks": {"GET": self._jwks},
            f"{root}/token": {"POST": self._tokens.answer},
            f"{root}/register": {"POST": self._registration.answer},
            f"{root}/revoke": {"POST": self._revoke},
            f"{root}/introspect": {"POST": self._introspect},
            f"{root}/device_authorization": {"POST": self._start_device},
        }
        return Router(
            [
                *(Route(path, ProgramEndpoint(handlers)) for path, handlers in programs.items()),
                Route(f"{root}/authorize", Endpoint(self._authorize)),
                *self.users.routes(self),
            ],
            redirect_slashes=False,
            default=_nothing_here,
            lifespan=self._lifespan,
        )

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: object) -> AsyncIterator[None]:
        yield
        await self.aclose()

    # -- what login pages may ask (AuthorizationServer) --------------------------------------------

    async def pending(self, id: str) -> PendingRequest | None:
        """A request that waits for a person, also that of a device.

        None where there is none, or it is over.
        """
        return await (self._devices if id.startswith(MARK) else self._authorization).get(id)

    async def device(self, user_code: str) -> PendingRequest | None:
        """The request of the device that shows a code, in any case, with or without the dash (RFC
        8628, 3.3).
        """
        return await self._devices.find(user_code)

    async def grant(self, id: str, user: User, scopes: Sequence[str]) -> Response:
        """The person agrees, to these of the scopes that were asked for; once.

        The browser goes back with a code.
        """
        if id.startswith(MARK):
            waiting = await self._devices.get(id)
            if waiting is not None:
                agreed = DeviceConsent(user, _among(scopes, waiting), waiting.resource)
                if await self._devices.decide(id, agreed):
                    return self.users.device_page(waiting, True)
            return self._over()
        pending = await self._authorization.pop(id)
        if pending is None:
            return self._over()
        code = await self._grants.code(pending, user, _among(scopes, pending))
        return redirect_response(
            RedirectTarget(pending.redirect_uri, pending.state).answer(
                self.settings.url, {"code": code}
            )
        )

    async def deny(self, id: str, error: str = "access_denied", words: str = "") -> Response:
        """The person says no, or cannot be asked; once. The browser goes back with the error."""
        if id.startswith(MARK):
            waiting = await self._devices.get(id)
            if waiting is not None and await self._devices.decide(id, None):
                return self.users.device_page(waiting, False)
            return self._over()
        pending = await self._authorization.pop(id)
        if pending is None:
            return self._over()
        why = OAuthError(error, words)
        if error in _WITHOUT_PAGE:
            return self._unasked(pending.client, pending.redirect_uri, pending.state, why)
        return redirect_response(self._back(pending.redirect_uri, pending.state, why))

    # -- routes ------------------------------------------------------------------------------------

    async def _describe(self, request: Request) -> Response:
        return json_response(self._metadata, headers=[_CACHED])

    async def _jwks(self, request: Request) -> Response:
        return json_response(await self._signing_keys.public(), headers=[_CACHED])

    async def _revoke(self, request: Request) -> Response:
        form = await form_parameters(request)
        return await self._status.revoke(form, await self._authentication.client(request, form))

    async def _introspect(self, request: Request) -> Response:
        form = await form_parameters(request)
        return await self._status.introspect(form, await self._authentication.client(request, form))

    async def _start_device(self, request: Request) -> Response:
        form = await form_parameters(request)
        client = await self._authentication.client(request, form)
        return await self._devices.answer(
            client, form.get("scope"), form.get("resource"), address_of(request)
        )

    async def _authorize(self, request: Request) -> Response:
        """Judge the request, and have the person asked."""
        if request.method not in ("GET", "POST"):
            return text_response(405, "GET or POST.", [("allow", "GET, POST")])
        try:
            pending = await self._authorization.judge(request)
        except UnredirectableError as astray:
            return self.users.error_page("This request cannot continue", astray.words)
        except RedirectableError as unfit:
            return self._unasked(unfit.client, unfit.redirect_uri, unfit.state, unfit.why)
        return await self.users.start(self, request, pending)

    # -- small things ------------------------------------------------------------------------------

    def _back(self, redirect_uri: str, state: str | None, why: OAuthError) -> str:
        """The address to which a refusal goes, with who refuses."""
        parameters = {"error": why.error} | (
            {"error_description": why.description} if why.words else {}
        )
        return RedirectTarget(redirect_uri, state).answer(self.settings.url, parameters)

    def _unasked(
        self, client: Client, redirect_uri: str, state: str | None, why: OAuthError
    ) -> Response:
        """Refuse a request before the person was asked. If an unknown client chose the redirect
        URI, the person decides whether to follow it.
        """
        onward = self._back(redirect_uri, state, why)
        if is_trusted(client, redirect_uri):
            return redirect_response(onward)
        return self.users.error_page(
            "The request is invalid",
            f"{why.error}: {why.words or 'the user was not asked'}.",
            onward,
        )

    def _over(self) -> Response:
        return self.users.error_page(
            "This has ended",
            "The request was already answered, or took too long. Start again in the "
            "program that sent you here.",
        )

    async def _is_active(self, user: User) -> bool:
        try:
            return await self.users.is_active(user)
        except Unreachable as silent:  # nothing is decided, and nothing spent
            raise unavailable(
                "the issuer cannot check now whether the user's account is still valid"
            ) from silent


def _among(scopes: Sequence[str], pending: PendingRequest) -> tuple[str, ...]:
    """The scopes that were asked for, as far as they are granted.

    In the order in which they were asked for.
    """
    granted = {*scopes, OFFLINE}
    return tuple(scope for scope in pending.scopes if scope in granted)


async def _nothing_here(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1000})
        return
    await text_response(404, "There is no page at this address.")(scope, receive, send)
