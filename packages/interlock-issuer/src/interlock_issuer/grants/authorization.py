"""The authorization endpoint: validates a request before anybody is asked or redirected."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct
from starlette.requests import Request

from interlock.store import Vault

from ..clients import redirect_uris
from ..clients.registry import Clients
from ..http.error_responses import OAuthError
from ..http.parameters import BadParameters, address_of, form_parameters, query_parameters
from ..http.rate_limit import RequestLimiter
from ..interfaces import Client, PendingRequest
from ..repository import Repository
from ..settings import CODE, Settings

MOST_PENDING = 10_000
_LONGEST = 4096  # characters of a parameter
_CHALLENGE = re.compile(r"[A-Za-z0-9_\-]{43}")
_THUMBPRINT = _CHALLENGE


class UnredirectableError(Exception):
    """A request that cannot be answered where it says: the person sees it on a page (RFC 6749,
    4.1.2.1).
    """

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


class RedirectableError(Exception):
    """A request that is refused at the client's redirect URI, which is known to be the client's."""

    def __init__(
        self, client: Client, redirect_uri: str, state: str | None, why: OAuthError
    ) -> None:
        super().__init__(why.words)
        self.client = client
        self.redirect_uri = redirect_uri
        self.state = state
        self.why = why


def is_trusted(client: Client, redirect_uri: str) -> bool:
    """Whether a person may be redirected without a question: only to a URI that no unknown client
    has chosen (open redirector; AUT-19; RFC 9700, 4.11.2).
    """
    return client.source == "configured" or redirect_uris.is_loopback(redirect_uri)


class RedirectTarget(Struct, frozen=True):
    """Where an answer goes."""

    redirect_uri: str
    state: str | None

    def answer(self, issuer: str, parameters: Mapping[str, str]) -> str:
        """The address with the parameters of an answer, always with who gives it (RFC 9207; AUF-12,
        AUF-13)."""
        state = {} if self.state is None else {"state": self.state}
        return redirect_uris.with_answer(self.redirect_uri, {**parameters, **state, "iss": issuer})


class Authorization:
    """Judges requests, and keeps those that wait for a person."""

    def __init__(self, settings: Settings, vault: Vault, clients: Clients) -> None:
        self._settings = settings
        self._clients = clients
        self._repository = Repository(
            vault, "pending", PendingRequest, settings.clock, MOST_PENDING
        )
        self._limiter = RequestLimiter("authorize", settings.clock)

    async def judge(self, request: Request) -> PendingRequest:
        """The request, valid, and kept. Raises Astray and Unfit."""
        try:
            parameters = (
                query_parameters(request)
                if request.method == "GET"
                else await form_parameters(request)
            )
        except BadParameters as bad:
            raise UnredirectableError(f"The request cannot be read: {bad}.") from None
        if long := next(
            (name for name, value in parameters.items() if len(value) > _LONGEST), None
        ):
            raise UnredirectableError(f"The request cannot be read: {long[:40]} is too long.")
        try:
            client = await self._clients.find(parameters.get("client_id"), address_of(request))
        except OAuthError as bad:
            raise UnredirectableError(
                f"The program that sent you here is unknown: {bad.words}."
            ) from None
        uri = _redirect_uri(client, parameters.get("redirect_uri"))
        try:
            pending = self._read(client, uri, parameters)
            if await self._limiter.is_over(address_of(request)) or await self._repository.is_full():
                raise OAuthError("temporarily_unavailable", "too many requests are waiting")
        except OAuthError as why:
            raise RedirectableError(client, uri, parameters.get("state"), why) from None
        await self._repository.put(pending.id, pending, pending.until)
        return pending

    async def get(self, id: str) -> PendingRequest | None:
        """A request that waits."""
        return await self._repository.get(id)

    async def pop(self, id: str) -> PendingRequest | None:
        """A request that waits, and does so no longer: it is decided once."""
        return await self._repository.pop(id)

    def _read(self, client: Client, uri: str, parameters: Mapping[str, str]) -> PendingRequest:
        for name, error in (
            ("request", "request_not_supported"),
            ("request_uri", "request_uri_not_supported"),
        ):
            if name in parameters:
                raise OAuthError(error, f"the parameter {name} is not supported")
        if parameters.get("response_type") != "code":
            raise OAuthError(
                "unsupported_response_type" if "response_type" in parameters else "invalid_request",
                "response_type must be code",
            )
        if CODE not in client.grants:
            raise OAuthError("unauthorized_client", "this client may not request a code")
        if parameters.get("response_mode", "query") != "query":
            raise OAuthError("invalid_request", "the only supported response_mode is query")
        if (
            not _CHALLENGE.fullmatch(parameters.get("code_challenge", ""))
            or parameters.get("code_challenge_method") != "S256"
        ):
            raise OAuthError(
                "invalid_request",
                "PKCE is required: a code_challenge, and code_challenge_method=S256",
            )
        thumbprint = parameters.get("dpop_jkt")
        if thumbprint is not None and not _THUMBPRINT.fullmatch(thumbprint):
            raise OAuthError("invalid_request", "dpop_jkt is not a thumbprint")
        return PendingRequest(
            id=self._settings.random(18),
            client=client,
            until=self._settings.now() + self._settings.pending_seconds,
            scopes=self._settings.wanted_scopes(parameters.get("scope"), client.scopes),
            resource=self._settings.wanted_resource(parameters.get("resource")),
            redirect_uri=uri,
            state=parameters.get("state"),
            challenge=parameters["code_challenge"],
            thumbprint=thumbprint if self._settings.dpop != "off" else None,
            prompt=parameters.get("prompt", "")[:100],
            login_hint=parameters.get("login_hint", "")[:200],
        )


def _redirect_uri(client: Client, asked: str | None) -> str:
    """The redirect URI of a request. Raises Astray for one that is not the client's (AUF-14)."""
    if asked is None:
        if len(client.redirect_uris) != 1:
            raise UnredirectableError(
                "The program that sent you here did not give a redirect URI (redirect_uri)."
            )
        return client.redirect_uris[0]
    if not redirect_uris.matches(client.redirect_uris, asked):
        raise UnredirectableError(
            "The program that sent you here gave a redirect URI (redirect_uri) that it "
            "has not registered."
        )
    return asked
