"""Where people arrive with a browser: the pages that are the same however they log in - consent, devices, log-out, and the last word."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlencode, urlsplit

from msgspec import Struct

from ...store.vaults.seam import Vault
from . import consents, pages
from .browser import Browser, Session
from .seam import Pending
from .style import POLICY
from .throttle import Throttle, Throttled, codes
from .web import Asked, BadForm, Reply, page, redirect

if TYPE_CHECKING:
    from .app import Issuer

Answer = Literal[
    "once", "always", "before"
]  # that a person has given now, that shall be remembered, or that is remembered

_GONE = "This request has ended, or was made in another browser. Go back to the program that you came from and start again there."
_STRANGE = "This form was not sent from the page that we gave you. Go back and try again."


class Visit(Struct, frozen=True):
    """One request by a browser, with all that belongs to it; `path` is below that of the issuer."""

    issuer: Issuer
    asked: Asked
    browser: Browser
    path: str

    @property
    def vault(self) -> Vault:
        """Where records are kept."""
        return self.issuer.vault

    @property
    def now(self) -> float:
        """Seconds of the wall clock."""
        return self.issuer.settings.now()

    @property
    def throttle(self) -> Throttle:
        """What counts tries."""
        return Throttle(self.vault, self.issuer.settings.clock)

    def to(self, path: str, **parameters: str) -> Reply:
        """A redirect to another of our pages; never to any other address."""
        query = f"?{urlencode(parameters)}" if parameters else ""
        return redirect(f"{self.issuer.settings.url}{path}{query}", headers=[self.browser.header])

    def form(self, path: str, at: str) -> pages.Form:
        """A form for one of our pages."""
        return pages.Form(
            action=f"{self.issuer.settings.path}{path}", at=at, token=self.browser.token(path, at)
        )

    def renewed(self, browser: Browser) -> Visit:
        """The same with the browser under another name."""
        return Visit(self.issuer, self.asked, browser, self.path)


class Refused(Exception):
    """A visit that goes no further, with the page that says so."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


class Lobby(ABC):
    """What all People have in common; who they are, and what happens once they have agreed, say those that are made of it.

    `brand` is what stands above each page: the host of the issuer where nothing is given.
    """

    def __init__(self, *, brand: str = "") -> None:
        self._brand = brand

    # -- what differs --------------------------------------------------------------------------------------------------

    @abstractmethod
    async def _logged_in(self, visit: Visit) -> Session | None:
        """Who is logged in here and still may be."""

    @abstractmethod
    async def _let_in(self, visit: Visit, word: str) -> Reply | None:
        """Have somebody log in first, and then go on with what `word` refers to; None where consent comes first."""

    @abstractmethod
    async def _agreed(
        self, visit: Visit, pending: Pending, session: Session | None, answer: Answer
    ) -> Reply:
        """The person has agreed, now or before."""

    def _told(self, told: pages.Consent) -> pages.Consent:
        """What the consent page says besides."""
        return told

    def _others(self) -> Mapping[str, Callable[[Visit], Awaitable[Reply]]]:
        """Pages of its own, by path."""
        return {}

    # -- what the issuer calls -----------------------------------------------------------------------------------------

    async def begin(self, issuer: Issuer, asked: Asked, pending: Pending) -> Reply:
        """The first step for a request that is valid: to log in, to be asked, or straight on where all that has been done before."""
        self._name(issuer)
        visit = Visit(issuer, asked, Browser.of(issuer.settings.url, asked), "/authorize")
        prompts = pending.prompt.split()
        session = (
            None
            if "login" in prompts or "select_account" in prompts
            else await self._logged_in(visit)
        )
        remembered = session is not None and await consents.covers(
            visit.vault, session.subject, pending
        )
        if remembered:
            return await self._agreed(visit, pending, session, "before")
        if "none" in prompts:  # OpenID Connect Core, 3.1.2.6: no page may be shown
            return await issuer.deny(
                pending.id, "login_required" if session is None else "consent_required"
            )
        word = f"p{pending.id}"
        if session is None and (reply := await self._let_in(visit, word)) is not None:
            return reply
        return visit.to("/consent", at=visit.browser.refer(word))

    async def answer(self, issuer: Issuer, asked: Asked) -> Reply | None:
        """The pages; None for a path that is none of them."""
        self._name(issuer)
        root = issuer.settings.path
        if not asked.path.startswith(f"{root}/"):
            return None
        visit = Visit(
            issuer, asked, Browser.of(issuer.settings.url, asked), asked.path[len(root) :]
        )
        try:
            return await self._route(visit)
        except Refused as refused:
            return refused.reply
        except BadForm as bad:
            return self._sorry(
                "That cannot be read", f"What the browser sent cannot be read: {bad}."
            )
        except Throttled as throttled:
            words = f"There were too many tries. Wait {_span(throttled.seconds)} and try again."
            return self._sorry("Wait a little", words, status=429).adding(
                ("retry-after", str(int(throttled.seconds) + 1))
            )

    def misfortune(self, title: str, words: str, onward: str | None = None) -> Reply:
        """A page for an error that may not be redirected."""
        return self._show(
            pages.message(title, words, brand=self._brand, bad=True, onward=onward), status=400
        )

    def done(self, pending: Pending, granted: bool) -> Reply:
        """The last page for a device."""
        words = (
            "You can close this page and go back to your device."
            if granted
            else "The device was not connected. You can close this page."
        )
        return self._show(pages.message("Done" if granted else "Denied", words, brand=self._brand))

    # -- the pages -----------------------------------------------------------------------------------------------------

    async def _route(self, visit: Visit) -> Reply | None:
        own = {
            "/consent": self._consent,
            "/device": self._device,
            "/logout": self._logout,
            **self._others(),
        }
        page = own.get(visit.path)
        if page is not None and visit.asked.method not in ("GET", "POST"):
            return self._sorry("That cannot be done", "This page takes GET and POST.", status=405)
        return None if page is None else await page(visit)

    async def _consent(self, visit: Visit) -> Reply:
        """The question, and the answer to it."""
        posted = visit.asked.method == "POST"
        fields = visit.asked.form if posted else visit.asked.parameters
        if posted:
            self._must_be_ours(visit, fields)
        pending, word = await self._pending(visit, fields)
        session = await self._logged_in(visit)
        if session is None and (reply := await self._let_in(visit, word)) is not None:
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
                await visit.issuer.deny(pending.id, "access_denied", "The person said no."),
            )
        return self._onward(
            visit,
            pending,
            await self._agreed(
                visit, pending, session, "always" if fields.get("remember") == "yes" else "once"
            ),
        )

    def _ask(self, visit: Visit, pending: Pending, session: Session | None, word: str) -> Reply:
        at = visit.browser.refer(word)
        client, meanings = pending.client, visit.issuer.settings.scopes
        known = {"configured": "registered", "registered": "itself", "document": "document"}[
            client.source
        ]
        told = pages.Consent(
            form=visit.form("/consent", at),
            asker=pages.Asker(
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
        return self._show(pages.consent(self._told(told), brand=self._brand), visit)

    async def _device(self, visit: Visit) -> Reply:
        """The page for the code of a device. It is typed, or at least looked at: a link alone connects nothing (RFC 8628, 5.4)."""
        if visit.asked.method != "POST":
            user_code = visit.asked.parameters.get("user_code", "")[:40]
            if (
                await self._logged_in(visit) is None
                and (reply := await self._let_in(visit, f"d{user_code}")) is not None
            ):
                return reply
            return self._show(
                pages.code(visit.form("/device", ""), brand=self._brand, user_code=user_code), visit
            )
        form = visit.asked.form
        self._must_be_ours(visit, form)
        claimed = codes(visit.asked.address)
        await visit.throttle.claim(claimed)
        pending = await visit.issuer.device(form.get("user_code", ""))
        if pending is None:
            words = "There is no device with this code, or it has ended. Look at the device again."
            return self._show(
                pages.code(visit.form("/device", ""), brand=self._brand, words=words),
                visit,
                status=404,
            )
        await visit.throttle.release(*claimed)
        return visit.to("/consent", at=visit.browser.refer(f"p{pending.id}"))

    async def _logout(self, visit: Visit) -> Reply:
        """Log out, and on to what the person was asked, as whoever logs in next."""
        if visit.asked.method != "POST":
            raise Refused(
                self._sorry(
                    "That cannot be done", "Logging out takes a click on our own page.", status=405
                )
            )
        form = visit.asked.form
        self._must_be_ours(visit, form)
        word = visit.browser.meant(form.get("at", ""))
        await visit.browser.log_out(visit.vault)
        left = visit.renewed(visit.browser.renewed())
        if word and (reply := await self._let_in(left, word)) is not None:
            return reply
        if word:
            return left.to("/consent", at=left.browser.refer(word))
        return self._show(
            pages.message("Logged out", "You can close this page.", brand=self._brand), left
        )

    # -- what they share -----------------------------------------------------------------------------------------------

    def _name(self, issuer: Issuer) -> None:
        self._brand = self._brand or urlsplit(issuer.settings.url).netloc

    def _must_be_ours(self, visit: Visit, form: dict[str, str]) -> None:
        """Refuse a form that did not come from our page in this browser (SEC-08)."""
        if not visit.browser.sent(visit.path, form, visit.asked):
            raise Refused(self._sorry("That did not work", _STRANGE, status=403))

    async def _pending(self, visit: Visit, fields: dict[str, str]) -> tuple[Pending, str]:
        """The request that this browser was sent here with, and the word that refers to it. No form says anything else about it."""
        word = visit.browser.meant(fields.get("at", "")) or ""
        pending = await visit.issuer.pending(word[1:]) if word.startswith("p") else None
        if pending is None:
            raise Refused(self._sorry("Start again", _GONE))
        return pending, word

    def _onward(self, visit: Visit, pending: Pending, reply: Reply) -> Reply:
        """What leads away from us after a form, as a page that leads away."""
        url = reply.header("location")
        if url is None or url.startswith(f"{visit.issuer.settings.url}/"):
            return reply
        kept = tuple(pair for pair in reply.headers if pair[0].lower() == "set-cookie")
        to = urlsplit(url).hostname or pending.client.name or "the program"
        name = (
            pending.client.name or pending.client.host or to
            if url.startswith(pending.redirect_uri or "\0")
            else to
        )
        words = "If nothing happens, click on the button. Then you can close this page."
        return self._show(pages.onward(url, brand=self._brand, to=name, words=words)).adding(*kept)

    def _sorry(self, title: str, words: str, *, status: int = 400) -> Reply:
        return self._show(pages.message(title, words, brand=self._brand, bad=True), status=status)

    def _show(self, html: str, visit: Visit | None = None, *, status: int = 200) -> Reply:
        return page(
            html, status, policy=POLICY, headers=[visit.browser.header] if visit is not None else []
        )


_MEANINGS = {
    "offline_access": "Go on while you are not there, until you take it back",
    "openid": "Know who you are",
    "profile": "Know your name",
    "email": "Know your e-mail address",
}


def _span(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 90 else f"{seconds / 60:.0f} minutes"
