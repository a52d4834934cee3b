"""Users who log in at another provider, at which the proxy is one client for all of its own.

That one id is what makes a proxy a confused deputy: who has agreed to it upstream once may never be
asked there again, whoever sends them. So a person is asked here first, for each client anew, and
nothing that leads on exists before they have agreed ("Security Best Practices", "Confused Deputy
Problem").
"""

from __future__ import annotations

import hashlib
import hmac
import inspect
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from starlette.responses import Response
from starlette.routing import BaseRoute

from interlock import Fetch, HttpFetch, Principal
from interlock import types as t
from interlock.auth import Unauthorized
from interlock.logs import limited
from interlock.store import BadSeal, Seal, Vault

from ..http.parameters import query_parameters
from ..http.responses import redirect_response
from ..interfaces import AuthorizationServer, PendingRequest, User
from ..login import consents, page_templates
from ..login.browser_session import Session, cookie_name, set_cookie
from ..login.login_pages import Answer, LoginPages, PageHandler, Visit
from ..providers import Provider
from ..repository import digest
from .provider_client import ProviderClient, UpstreamUser
from .sessions import UpstreamSessions

Admit = Callable[[Mapping[str, Any]], bool | Awaitable[bool]]

CLAIM = "upstream"  # in our tokens: the name of the session at the provider
_KIND = "upstream-state"
_SECONDS = 600  # that a log-in at the provider may take
_STRANGE = (
    "This answer does not belong to a login that was started in this browser, or it was "
    "used before. Start again in the program that sent you here."
)
_PROMPTS = (
    "none",
    "login",
    "select_account",
)  # which a client may ask for there; consent is asked for here
# What the errors of a provider are called in our own answer; any other is its own failure, and none
# of the client's business.
_ERRORS = frozenset(
    (
        "access_denied",
        "login_required",
        "consent_required",
        "interaction_required",
        "temporarily_unavailable",
    )
)

log = limited("interlock.auth")


class _LoginState(Struct, frozen=True, kw_only=True):
    """What was set down when a person, having agreed, was sent to the provider.

    Sealed, under the digest of `state`, for one use.

    `binder` is the digest of the cookie of their browser; `agreed` is who agreed, where that was
    before and not just now.
    """

    pending: str
    verifier: str
    nonce: str
    binder: str
    agreed: str = ""
    remember: bool = False


class Upstream(LoginPages):
    """The people of `provider`, where this server is registered with `client_id` and the redirect
    URI that `redirect_uri` says.

    `scopes` are those asked for upstream, else the provider's own. `admit` is told what the
    provider said of a person, and whether they may come in; everybody may, unless it is given, so
    give it where anybody can have an account. `keys` (16 random bytes or more each; the first
    closes, all open) seal the provider's tokens, and what is set down of a log-in, in the vault;
    without them the client secret does. `callback` is the path, below the issuer's, to which the
    provider sends people back.
    """

    def __init__(
        self,
        provider: Provider,
        client_id: str,
        client_secret: str | None = None,
        *,
        scopes: Sequence[str] | None = None,
        admit: Admit | None = None,
        keys: Sequence[bytes] = (),
        callback: str = "/callback",
        brand: str = "",
        session_seconds: float = 8 * 3600.0,
        fetch: Fetch | None = None,
    ) -> None:
        super().__init__(brand=brand)
        if not isinstance(provider, Provider):
            raise TypeError(
                "users must log in at a provider, such as "
                f"presets.get('github').provider(); not at a {type(provider).__name__}"
            )
        if provider.method != "none" and client_secret is None:
            raise ValueError(
                f"{provider.name} authenticates clients with a secret: give client_secret"
            )
        if not keys and client_secret is None:
            raise ValueError(
                "a client without a secret needs keys= to encrypt the provider's tokens"
            )
        self.provider = provider
        self.client_id = client_id
        self.scopes = tuple(provider.scopes if scopes is None else scopes)
        self._secret = client_secret
        self._fetch = fetch if fetch is not None else HttpFetch()
        self._admit = admit
        self._callback = callback
        self._session_seconds = session_seconds
        self._keys = list(keys) or [
            hashlib.sha256(f"interlock upstream {client_id} {client_secret}".encode()).digest()
        ]
        self._seal = Seal(self._keys, seconds=_SECONDS, encrypt=True)
        self._parts: tuple[Vault, ProviderClient, UpstreamSessions] | None = None

    def redirect_uri(self, server: AuthorizationServer) -> str:
        """The redirect URI that has to be registered at the provider."""
        return f"{server.settings.url}{self._callback}"

    def bind(self, server: AuthorizationServer) -> None:
        """Use the vault and the clock of an issuer, before it gets its first request."""
        if self._parts is None or self._parts[0] is not server.vault:
            clock = server.settings.clock
            client = ProviderClient(self.provider, self.client_id, self._secret, self._fetch, clock)
            sessions = UpstreamSessions(server.vault, client, self._keys, clock)
            self._parts = server.vault, client, sessions

    async def is_active(self, person: User) -> bool:
        """Whether the person's session at the provider has not ended (AU2-10).

        Raises Unreachable where the provider cannot be asked.
        """
        session = person.claims.get(CLAIM)
        return isinstance(session, str) and await self._sessions.is_active(session, person.subject)

    async def upstream_token(self, principal: Principal) -> str:
        """An access token of the provider for who calls, for calls of our own to its API (AUT-18).

        Never to be given to anybody.

        Raises Unauthorized where the session at the provider has ended, or the principal has none;
        Unreachable where it cannot be asked.
        """
        session = principal.claims.get(CLAIM)
        if not isinstance(session, str):
            what = f"the token of the request was not issued after a login at {self.provider.name}"
            raise Unauthorized("request", what, advice="Log in again.", culprit="client")
        return await self._sessions.token(session, principal.subject)

    async def aclose(self) -> None:
        """Close the connections to the provider."""
        if self._parts is not None:
            await self._parts[1].aclose()
        await self._fetch.aclose()

    # -- before the log-in -------------------------------------------------------------------------

    def routes(self, server: AuthorizationServer) -> Sequence[BaseRoute]:
        """Return the login pages, and the redirect URI to which the provider sends users back."""
        self.bind(server)
        return super().routes(server)

    async def _logged_in(self, visit: Visit) -> Session | None:
        return await visit.browser.session(visit.vault)

    async def _require_login(self, visit: Visit, word: str) -> Response | None:
        return None  # consent comes first, and the log-in after it

    def _with_upstream(self, consent: page_templates.Consent) -> page_templates.Consent:
        return msgspec.structs.replace(
            consent,
            person=None,
            logout=None,
            upstream=self.provider.name,
            upstream_scopes=self.scopes,
        )

    async def _agreed(
        self, visit: Visit, pending: PendingRequest, session: Session | None, answer: Answer
    ) -> Response:
        """Set down where the person will come back to, now that they have agreed and not before
        (SEC-11), and send them to the provider.
        """
        state, binder, verifier, nonce = (secrets.token_urlsafe(32) for _ in range(4))
        journey = _LoginState(
            pending=pending.id,
            verifier=verifier,
            nonce=nonce,
            binder=digest(binder),
            agreed=session.subject if answer == "before" and session is not None else "",
            remember=answer == "always",
        )
        key = digest(state)
        sealed = self._seal.close(msgspec.to_builtins(journey), _binding(key), visit.now)
        await visit.vault.put(_KIND, key, sealed.encode(), until=visit.now + _SECONDS)
        challenge = (
            urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        )
        url = self.provider.visit(
            client_id=self.client_id,
            redirect_uri=self.redirect_uri(visit.server),
            state=state,
            challenge=challenge,
            nonce=nonce,
            scopes=self.scopes,
            prompt=next((prompt for prompt in pending.prompt.split() if prompt in _PROMPTS), ""),
        )
        base = visit.server.settings.url
        reply = visit.browser.identify(redirect_response(url))
        return set_cookie(reply, base, _cookie(base, state), binder, seconds=_SECONDS)

    # -- after it ----------------------------------------------------------------------------------

    def _own_pages(self) -> Mapping[str, PageHandler]:
        return {self._callback: self._back}

    async def _back(self, visit: Visit) -> Response:
        """Receive the browser that comes back from the provider."""
        if visit.request.method != "GET":
            return self._error_page("Method not allowed", "This page accepts GET only.", status=405)
        given = query_parameters(visit.request)
        state = given.get("state", "")
        login = await self._pending_login(visit, state)
        if login is None:
            return self._error_page("Start again", _STRANGE)
        base = visit.server.settings.url
        reply = await self._answered(visit, login, given)
        return set_cookie(reply, base, _cookie(base, state), "", seconds=0)

    async def _answered(
        self, visit: Visit, login: _LoginState, given: Mapping[str, str]
    ) -> Response:
        if not self._is_from_provider(given):  # nothing in it may be shown, or passed on
            return self._error_page(
                "Start again",
                f"This answer is not from {self.provider.name}, or not for this login.",
            )
        pending = await visit.server.pending(login.pending)
        if pending is None:
            return self._error_page(
                "Start again",
                "This request has ended. Start again in the program that sent you here.",
            )
        if "code" in given:
            return await self._arrived(visit, pending, login, given["code"])
        error = given.get("error", "")
        return await visit.server.deny(
            pending.id,
            error if error in _ERRORS else "server_error",
            f"{self.provider.name} denied the login.",
        )

    async def _pending_login(self, visit: Visit, state: str) -> _LoginState | None:
        """What was set down for this state and this browser.

        Nobody gets it twice, and no other browser can use it up.
        """
        key = digest(state)
        journey = self._read(visit, key, await visit.vault.get(_KIND, key)) if state else None
        if journey is None:
            return None
        binder = visit.request.cookies.get(_cookie(visit.server.settings.url, state), "")
        if not hmac.compare_digest(digest(binder), journey.binder):
            return None
        return self._read(visit, key, await visit.vault.pop(_KIND, key))

    def _read(self, visit: Visit, key: str, kept: bytes | None) -> _LoginState | None:
        """What is kept under a key; None where it was not set down here."""
        if kept is None:
            return None
        try:
            return msgspec.convert(
                self._seal.open(kept.decode("latin-1"), _binding(key), visit.now), type=_LoginState
            )
        except (BadSeal, msgspec.ValidationError):
            return None

    def _is_from_provider(self, given: Mapping[str, str]) -> bool:
        """Whether the answer says that it comes from the provider, or need not say so (RFC 9207,
        2.4).
        """
        issuer = given.get("iss")
        return issuer == self.provider.issuer if issuer is not None else not self.provider.sends_iss

    async def _arrived(
        self, visit: Visit, pending: PendingRequest, journey: _LoginState, code: str
    ) -> Response:
        try:
            answer = await self._provider_client.redeem(
                code, self.redirect_uri(visit.server), journey.verifier
            )
            somebody = await self._provider_client.who(answer, journey.nonce)
        except t.Unreachable as failed:
            log.warning("the login at %s failed: %s", self.provider.name, failed)
            return await visit.server.deny(
                pending.id,
                "server_error",
                f"The login at {self.provider.name} failed.",
            )
        if not await self._is_admitted(somebody):
            return await visit.server.deny(
                pending.id, "access_denied", "This account is not allowed here."
            )
        subject = f"{self.provider.issuer}#{somebody.subject}"
        session = Session(subject=subject, name=somebody.name)
        browser = await visit.browser.log_in(
            visit.vault, session, visit.now + self._session_seconds
        )
        inside = visit.renewed(browser)
        if (
            journey.agreed and journey.agreed != subject
        ):  # it was somebody else who agreed: this person has to be asked
            return inside.to("/consent", at=browser.refer(f"p{pending.id}"))
        if journey.remember:
            await consents.remember(visit.vault, subject, pending, visit.now)
        claims = {CLAIM: await self._sessions.begin(subject, answer), "name": somebody.name}
        reply = await visit.server.grant(
            pending.id, User(subject, somebody.name, claims), pending.scopes
        )
        return browser.identify(reply)

    async def _is_admitted(self, somebody: UpstreamUser) -> bool:
        if self._admit is None:
            return True
        verdict = self._admit(somebody.claims)
        return bool(await verdict if inspect.isawaitable(verdict) else verdict)

    @property
    def _provider_client(self) -> ProviderClient:
        return self._bound[1]

    @property
    def _sessions(self) -> UpstreamSessions:
        return self._bound[2]

    @property
    def _bound(self) -> tuple[Vault, ProviderClient, UpstreamSessions]:
        if self._parts is None:
            raise RuntimeError(
                "these users belong to no issuer yet: pass them to one, or call bind"
            )
        return self._parts


def _cookie(url: str, state: str) -> str:
    """The cookie of one log-in, so that two at once do not disturb each other."""
    return cookie_name(url, f"state-{digest(state)[:16]}")


def _binding(key: str) -> bytes:
    """What a record is sealed for, so that no other one can be put in its place."""
    return f"{_KIND} {key}".encode()
