"""The token endpoint: each grant type and what it returns (RFC 6749, 3.2)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from interlock.auth.oauth import same_resource

from ..clients.authentication import Authentication
from ..clients.registry import Clients
from ..http.error_responses import OAuthError, invalid_grant
from ..http.parameters import form_parameters
from ..http.responses import with_headers
from ..interfaces import Client, User
from ..settings import BEARER, CODE, CREDENTIALS, DEVICE, EXCHANGE, REFRESH, Settings
from ..tokens.access_tokens import AccessTokens, TokenSpec, for_person
from ..tokens.dpop import DpopProofs
from .device_flow import DeviceFlow
from .introspection import TokenStatus, is_for
from .trusted_issuers import TrustedIssuers
from .user_grants import Grant, Grants, IssuedGrant

ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
_JWT = "urn:ietf:params:oauth:token-type:jwt"
_LONGEST = 4096  # characters of a parameter, but for those that are tokens
_TOKENS = frozenset({"assertion", "client_assertion", "subject_token"})
_MOST_ACTORS = 8
_Form = Mapping[str, str]


class TokenEndpoint:
    """Answers `/token`; `is_active` says of a person whether anything may
    be done on their behalf."""

    def __init__(
        self,
        settings: Settings,
        access_tokens: AccessTokens,
        grants: Grants,
        clients: Clients,
        authentication: Authentication,
        proofs: DpopProofs,
        devices: DeviceFlow,
        trust: TrustedIssuers,
        status: TokenStatus,
        is_active: Callable[[User], Awaitable[bool]],
    ) -> None:
        self._settings = settings
        self._access_tokens = access_tokens
        self._grants = grants
        self._clients = clients
        self._authentication = authentication
        self._proofs = proofs
        self._devices = devices
        self._trust = trust
        self._status = status
        self._is_active = is_active
        self._kinds: dict[str, Callable[[_Form, Client, str | None], Awaitable[Response]]] = {
            CODE: self._code,
            REFRESH: self._refresh,
            CREDENTIALS: self._credentials,
            DEVICE: self._device,
            EXCHANGE: self._exchange,
        }

    async def answer(self, request: Request) -> Response:
        """Give tokens. Raises Refusal and BadForm."""
        form = await form_parameters(request)
        if request.url.query:
            raise OAuthError("invalid_request", "send the parameters in the body")
        if long := next(
            (name for name, value in form.items() if len(value) > _LONGEST and name not in _TOKENS),
            None,
        ):
            raise OAuthError("invalid_request", f"{long[:40]} is too long")
        kind = form.get("grant_type")
        if kind is None:
            raise OAuthError("invalid_request", "the grant_type is missing")
        if kind == BEARER and self._trust:
            reply = await self._assertion(request, form)
        elif kind in self._kinds:
            client = await self._authentication.client(request, form)
            if kind not in client.grants:
                raise OAuthError("unauthorized_client", "this client may not use this grant")
            reply = await self._kinds[kind](
                form, client, await self._proofs.thumbprint(request, client)
            )
            await self._clients.keep(client)
        else:
            raise OAuthError("unsupported_grant_type", "this grant_type is not supported")
        return with_headers(reply, *await self._proofs.headers())

    async def _code(self, form: _Form, client: Client, thumbprint: str | None) -> Response:
        """A code for the first tokens (OAuth 2.1, 4.1.3)."""
        if "code" not in form:
            raise OAuthError("invalid_request", "the code is missing")
        held = await self._grants.redeem(
            form["code"], client, form.get("redirect_uri"), form.get("code_verifier"), thumbprint
        )
        try:
            self._check_resource(form, held.grant.resource)
        except OAuthError:
            await self._grants.end(held.sid)
            raise
        return await self._held(held, client, held.grant.scopes, thumbprint)

    async def _refresh(self, form: _Form, client: Client, thumbprint: str | None) -> Response:
        """A refresh token for the next ones (OAuth 2.1, 4.3)."""
        if "refresh_token" not in form:
            raise OAuthError("invalid_request", "the refresh_token is missing")
        sid, grant = await self._grants.find(form["refresh_token"], client)
        if not await self._is_active(grant.person):
            await self._grants.end(sid)
            raise invalid_grant("the grant has ended: the user must log in again")
        if grant.thumbprint is not None and (
            thumbprint is None or (client.is_public and thumbprint != grant.thumbprint)
        ):
            raise OAuthError(
                "invalid_dpop_proof",
                "the refresh token is bound to a key: send a DPoP proof made with that key",
            )
        self._check_resource(form, grant.resource)
        scopes = _narrowed(form.get("scope"), grant)
        held = await self._grants.rotate(form["refresh_token"], grant, client)
        return await self._held(held, client, scopes, thumbprint)

    async def _credentials(self, form: _Form, client: Client, thumbprint: str | None) -> Response:
        """A token for a client on its own behalf (RFC 6749, 4.4)."""
        if client.is_public or client.source != "configured":
            raise OAuthError(
                "unauthorized_client",
                "this grant_type is only for configured clients that authenticate",
            )
        asked = form.get("scope")
        scopes = (
            (client.scopes or ())
            if asked is None
            else self._settings.wanted_scopes(asked, client.scopes)
        )
        target = self._settings.wanted_resource(form.get("resource"))
        return await self._access_tokens.answer(
            TokenSpec(
                client=client,
                subject=client.id,
                resource=target,
                scopes=scopes,
                thumbprint=thumbprint,
            )
        )

    async def _device(self, form: _Form, client: Client, thumbprint: str | None) -> Response:
        """A device that asks whether somebody has decided (RFC 8628, 3.4)."""
        if "device_code" not in form:
            raise OAuthError("invalid_request", "the device_code is missing")
        agreed = await self._devices.poll(form["device_code"], client)
        held = await self._grants.begin(
            client, agreed.person, agreed.scopes, agreed.resource, thumbprint
        )
        return await self._held(held, client, agreed.scopes, thumbprint)

    async def _exchange(self, form: _Form, client: Client, thumbprint: str | None) -> Response:
        """A token that a server was sent, for one with which it calls the next server on behalf of
        the same person (RFC 8693).
        """
        if client.is_public or client.resource is None:
            raise OAuthError(
                "unauthorized_client",
                "this grant_type is only for configured clients that are also a resource",
            )
        if (
            form.get("subject_token_type") not in (ACCESS_TOKEN, _JWT)
            or "subject_token" not in form
        ):
            raise OAuthError(
                "invalid_request",
                "the subject_token must be issued by this issuer, with "
                f"subject_token_type={ACCESS_TOKEN}",
            )
        if "actor_token" in form or "actor_token_type" in form:
            raise OAuthError(
                "invalid_request", "actor_token is not supported: the actor is the client itself"
            )
        if form.get("requested_token_type", ACCESS_TOKEN) not in (ACCESS_TOKEN, _JWT):
            raise OAuthError("invalid_request", "only access tokens can be requested")
        claims = await self._status.claims(form["subject_token"])
        if claims is None or not is_for(client, claims):
            raise OAuthError(
                "invalid_request",
                "the subject_token is not valid, or was not issued for this client",
            )
        target = self._settings.wanted_resource(form.get("resource") or form.get("audience"))
        had = str(claims.get("scope", "")).split()
        allowed = [scope for scope in had if client.scopes is None or scope in client.scopes]
        scopes = (
            tuple(allowed)
            if "scope" not in form
            else self._settings.wanted_scopes(form["scope"], allowed)
        )
        order = TokenSpec(
            client=client,
            subject=claims["sub"],
            resource=target,
            scopes=tuple(scope for scope in scopes if scope in allowed),
            claims=claims,
            thumbprint=thumbprint,
            sid=claims.get("sid"),
            until=claims["exp"],
            actor=_actor(client, claims),
        )
        return await self._access_tokens.answer(order, issued_type=ACCESS_TOKEN)

    async def _assertion(self, request: Request, form: _Form) -> Response:
        """A JWT by somebody who is trusted: about a person (ID-JAG), or about a workload, which
        needs no registration.
        """
        token = form.get("assertion")
        if token is None:
            raise OAuthError("invalid_request", "the assertion is missing")
        scope = form.get("scope")
        resource = form.get("resource")
        if self._trust.is_id_jag(token):
            client = await self._authentication.client(request, form)
            thumbprint = await self._proofs.thumbprint(request, client)
            order = await self._trust.person(token, client, scope, resource)
        else:
            thumbprint = await self._proofs.thumbprint(request, None)
            order = await self._trust.workload(token, scope, resource)
        return await self._access_tokens.answer(replace(order, thumbprint=thumbprint))

    async def _held(
        self, held: IssuedGrant, client: Client, scopes: tuple[str, ...], thumbprint: str | None
    ) -> Response:
        """The tokens of a grant in use."""
        grant = held.grant
        order = TokenSpec(
            client=client,
            subject=grant.person.subject,
            resource=grant.resource,
            scopes=scopes,
            claims=for_person(grant.person),
            thumbprint=thumbprint,
            sid=held.sid,
            until=grant.begun + self._settings.session_seconds,
        )
        return await self._access_tokens.answer(order, refresh=held.refresh)

    def _check_resource(self, form: _Form, granted: str) -> None:
        """Raise Refusal where a token is asked for another resource than was granted (RFC 8707,
        2.2).
        """
        asked = form.get("resource")
        if asked is not None and not same_resource(asked, granted):
            raise OAuthError("invalid_target", "the grant is for another resource")


def _narrowed(asked: str | None, grant: Grant) -> tuple[str, ...]:
    """The scopes of the next access token: as granted, or fewer (RFC 6749, 6).

    Raises Refusal for more.
    """
    if asked is None:
        return grant.scopes
    wanted = tuple(dict.fromkeys(asked.split()))
    if not set(wanted) <= set(grant.scopes):
        raise OAuthError(
            "invalid_scope", "the request exceeds the granted scopes: the user must consent again"
        )
    return wanted


def _actor(client: Client, claims: Mapping[str, Any]) -> dict[str, Any]:
    """Who acts now, and on whose behalf that one did (RFC 8693, 4.1).

    Raises Refusal for a chain without end.
    """
    before = claims.get("act")
    depth = 1
    link = before
    while isinstance(link, Mapping):
        link = link.get("act")
        depth = depth + 1
    if depth > _MOST_ACTORS:
        raise OAuthError("invalid_request", "the delegation chain is too long")
    return {"sub": client.id} | ({} if before is None else {"act": before})
