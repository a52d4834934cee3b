"""Login pages: consent, devices and logout, which all kinds of users share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Literal
from urllib.parse import urlencode, urlsplit

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from interlock.store import Vault

from ..http.endpoints import Endpoint
from ..http.parameters import BadParameters, address_of, form_parameters, query_parameters
from ..http.rate_limit import AttemptLimiter, RateLimited, code_limits
from ..http.responses import html_response, redirect_response, with_headers
from ..interfaces import AuthorizationServer, PendingRequest
from . import consents
from . import page_templates as pages
from .browser_session import Browser, Session
from .style import POLICY

Answer = Literal["once", "always", "before"]
"""Consent given now, consent to be remembered, or consent remembered from before."""

_GONE = (
    "This request has ended, or was started in another browser. Go back to the program "
    "that sent you here and start again."
)
_STRANGE = "This form was not sent from our page. Go back and try again."


class Visit(Struct, frozen=True):
    """One request of a browser to a login page; `path` is below the issuer's path."""

    server: AuthorizationServer
    request: Request
    browser: Browser
    path: str

    @property
    def vault(self) -> Vault:
        """Where records are kept."""
        return self.server.vault

    @property
    def now(self) -> float:
        """Seconds of the wall clock."""
        return self.server.settings.now()

    @property
    def attempts(self) -> AttemptLimiter:
        """Limits how often passwords can be guessed."""
        return AttemptLimiter(self.vault, self.server.settings.clock)

    def to(self, path: str, **parameters: str) -> Response:
        """A redirect to another of our pages; never to any other address."""
        query = f"?{urlencode(parameters)}" if parameters else ""
        return self.browser.identify(redirect_response(f"{self.server.settings.url}{path}{query}"))

    def form(self, path: str, at: str) -> pages.Form:
        """A form for one of our pages."""
        return pages.Form(
            action=f"{self.server.settings.path}{path}", at=at, token=self.browser.token(path, at)
        )

    def renewed(self, browser: Browser) -> Visit:
        """The same with the browser under another name."""
        return replace(self, browser=browser)


class PageError(Exception):
    """A page that ends a visit with an error."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status_code)
        self.response = response


PageHandler = Callable[[Visit], Awaitable[Response]]


class LoginPages(ABC):
    """What all People have in common.

    Who they are, and what happens once they have agreed, say those that are made of it.

    `brand` is what stands above each page: the host of the issuer where nothing is given.
    """

    def __init__(self, *, brand: str = "") -> None:
        self._brand = brand

    # -- what differs ------------------------------------------------------------------------------

    @abstractmethod
    async def _logged_in(self, visit: Visit) -> Session | None:
        """Who is logged in here and still may be."""

    @abstractmethod
    async def _require_login(self, visit: Visit, word: str) -> Response | None:
        """Have somebody log in first, and then go on with what `word` refers to.

        None where consent comes first.
        """

    @abstractmethod
    async def _agreed(
        self, visit: Visit, pending: PendingRequest, session: Session | None, answer: Answer
    ) -> Response:
        """The person has agreed, now or before."""

    def _with_upstream(self, consent: pages.Consent) -> pages.Consent:
        """What the consent page says besides."""
        return consent

    def _own_pages(self) -> Mapping[str, PageHandler]:
        """Pages of its own, by path."""
        return {}

    # -- what the issuer calls ---------------------------------------------------------------------

    def routes(self, server: AuthorizationServer) -> Sequence[BaseRoute]:
        """Return the login pages, below the issuer's path."""
        self._use_brand(server)
        pages = {
            "/consent": self._consent,
            "/device": self._device,
            "/logout": self._logout,
            **self._own_pages(),
        }
        root = server.settings.path
        return [
            Route(f"{root}{path}", Endpoint(partial(self._answer, server, path, page)))
            for path, page in pages.items()
        ]

    async def start(
        self, server: AuthorizationServer, request: Request, pending: PendingRequest
    ) -> Response:
        """Start with a valid request: the login, the consent page, or the grant itself."""
        self._use_brand(server)
        visit = Visit(server, request, Browser.of(server.settings.url, request), "/authorize")
        prompts = pending.prompt.split()
        session = None
        if "login" not in prompts and "select_account" not in prompts:
            session = await self._logged_in(visit)
        if session is not None and await consents.covers(visit.vault, session.subject, pending):
            return await self._agreed(visit, pending, session, "before")
        if "none" in prompts:  # OpenID Connect Core, 3.1.2.6: no page may be shown
            return await server.deny(
                pending.id, "login_required" if session is None else "consent_required"
            )
        word = f"p{pending.id}"
        if session is None and (reply := await self._require_login(visit, word)) is not None:
            return reply
        return visit.to("/consent", at=visit.browser.refer(word))

    def error_page(self, title: str, words: str, onward: str | None = None) -> Response:
        """A page for an error that may not be redirected."""
        return self._show(
            pages.message(title, words, brand=self._brand, bad=True, onward=onward), status=400
        )

    def device_page(self, pending: PendingRequest, granted: bool) -> Response:
        """The last page for a device."""
        words = (
            "You can close this page and go back to your device."
            if granted
            else "The device was not connected. You can close this page."
        )
        return self._show(pages.message("Done" if granted else "Denied", words, brand=self._brand))

    # -- the pages ---------------------------------------------------------------------------------

    async def _answer(
        self, server: AuthorizationServer, path: str, page: PageHandler, request: Request
    ) -> Response:
        visit = Visit(server, request, Browser.of(server.settings.url, request), path)
        if request.method not in ("GET", "POST"):
            return self._error_page(
                "Method not allowed", "This page accepts GET and POST.", status=405
            )
        try:
            return await page(visit)
        except PageError as error:
            return error.response
        except BadParameters as bad:
            return self._error_page("Invalid request", f"The request cannot be read: {bad}.")
        except RateLimited as limited:
            words = f"Too many attempts. Wait {_span(limited.seconds)} and try again."
            return with_headers(
                self._error_page("Wait a little", words, status=429),
                ("retry-after", str(int(limited.seconds) + 1)),
            )

    async def _consent(self, visit: Visit) -> Response:
        """The question, and the answer to it."""
        posted = visit.request.method == "POST"
        fields = await form_parameters(visit.request) if posted else query_parameters(visit.request)
        if posted:
            self._must_be_ours(visit, fields)
        pending, word = await self._pending(visit, fields)
        session = await self._logged_in(visit)
        if session is None and (reply := await self._require_login(visit, word)) is not None:
            return reply
        if not posted:
            if session is not None and await consents.covers(visit.vault, session.subject, pending):
                return self._onward(
                    visit, pending, await self._agreed(visit, pending, session, "before")
                )
            return self._ask(visit, pending, session, word)
        if fields.get("answer") != "yes":
            return self._onward(
                visit,
                pending,
                await visit.server.deny(
                    pending.id, "access_denied", "The user denied the request."
                ),
            )
        return self._onward(
            visit,
            pending,
            await self._agreed(
                visit, pending, session, "always" if fields.get("remember") == "yes" else "once"
            ),
        )

    def _ask(
        self, visit: Visit, pending: PendingRequest, session: Session | None, word: str
    ) -> Response:
        at = visit.browser.refer(word)
        client = pending.client
        meanings = visit.server.settings.scopes
        known = {"configured": "registered", "registered": "itself", "document": "document"}[
            client.source
        ]
        consent = pages.Consent(
            form=visit.form("/consent", at),
            asker=pages.ClientView(
                name=client.name or client.host or client.id, host=client.host or None, known=known
            ),
            redirect=pending.redirect_uri or None,
            scopes=[
                (scope, meanings.get(scope, "") or _MEANINGS.get(scope, ""))
                for scope in pending.scopes
            ],
            resources=[pending.resource] if pending.resource else [],
            person=None if session is None else session.name or session.subject,
            user_code=pending.user_code or None,
            remember=consents.may_remember(pending),
            logout=None if session is None else visit.form("/logout", at),
        )
        return self._show(pages.consent(self._with_upstream(consent), brand=self._brand), visit)

    async def _device(self, visit: Visit) -> Response:
        """The page for the code of a device.

        It is typed, or at least looked at: a link alone connects nothing (RFC 8628, 5.4).
        """
        if visit.request.method != "POST":
            user_code = query_parameters(visit.request).get("user_code", "")[:40]
            if (
                await self._logged_in(visit) is None
                and (reply := await self._require_login(visit, f"d{user_code}")) is not None
            ):
                return reply
            return self._show(
                pages.code(visit.form("/device", ""), brand=self._brand, user_code=user_code), visit
            )
        form = await form_parameters(visit.request)
        self._must_be_ours(visit, form)
        limits = code_limits(address_of(visit.request))
        await visit.attempts.claim(limits)
        pending = await visit.server.device(form.get("user_code", ""))
        if pending is None:
            words = (
                "No device has this code, or the code has expired. Check the code on the device."
            )
            return self._show(
                pages.code(visit.form("/device", ""), brand=self._brand, words=words),
                visit,
                status=404,
            )
        await visit.attempts.give_back(limits)
        return visit.to("/consent", at=visit.browser.refer(f"p{pending.id}"))

    async def _logout(self, visit: Visit) -> Response:
        """Log out, and on to what the person was asked, as whoever logs in next."""
        if visit.request.method != "POST":
            raise PageError(
                self._error_page(
                    "Method not allowed", "To log out, use the button on our own page.", status=405
                )
            )
        form = await form_parameters(visit.request)
        self._must_be_ours(visit, form)
        word = visit.browser.meant(form.get("at", ""))
        await visit.browser.log_out(visit.vault)
        left = visit.renewed(visit.browser.renewed())
        if word and (reply := await self._require_login(left, word)) is not None:
            return reply
        if word:
            return left.to("/consent", at=left.browser.refer(word))
        return self._show(
            pages.message("Logged out", "You can close this page.", brand=self._brand), left
        )

    # -- what they share ---------------------------------------------------------------------------

    def _use_brand(self, server: AuthorizationServer) -> None:
        self._brand = self._brand or urlsplit(server.settings.url).netloc

    def _must_be_ours(self, visit: Visit, form: dict[str, str]) -> None:
        """Refuse a form that did not come from our page in this browser (SEC-08)."""
        if not visit.browser.sent(visit.path, form, visit.request):
            raise PageError(self._error_page("Login failed", _STRANGE, status=403))

    async def _pending(self, visit: Visit, fields: dict[str, str]) -> tuple[PendingRequest, str]:
        """The request that this browser was sent here with, and the word that refers to it.

        No form says anything else about it.
        """
        word = visit.browser.meant(fields.get("at", "")) or ""
        pending = await visit.server.pending(word[1:]) if word.startswith("p") else None
        if pending is None:
            raise PageError(self._error_page("Start again", _GONE))
        return pending, word

    def _onward(self, visit: Visit, pending: PendingRequest, reply: Response) -> Response:
        """What leads away from us after a form, as a page that leads away."""
        url = reply.headers.get("location")
        if url is None or url.startswith(f"{visit.server.settings.url}/"):
            return reply
        cookies = [("set-cookie", value) for value in reply.headers.getlist("set-cookie")]
        to = urlsplit(url).hostname or pending.client.name or "the program"
        name = (
            pending.client.name or pending.client.host or to
            if url.startswith(pending.redirect_uri or "\0")
            else to
        )
        words = "If nothing happens, click the button. Then you can close this page."
        page = pages.onward(url, brand=self._brand, to=name, words=words)
        return with_headers(self._show(page), *cookies)

    def _error_page(self, title: str, words: str, *, status: int = 400) -> Response:
        return self._show(pages.message(title, words, brand=self._brand, bad=True), status=status)

    def _show(self, html: str, visit: Visit | None = None, *, status: int = 200) -> Response:
        response = html_response(html, status, policy=POLICY)
        return response if visit is None else visit.browser.identify(response)


_MEANINGS = {
    "offline_access": "Keep access while you are away, until you revoke it",
    "openid": "Know who you are",
    "profile": "Know your name",
    "email": "Know your e-mail address",
}


def _span(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 90 else f"{seconds / 60:.0f} minutes"
