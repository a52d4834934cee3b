"""Users with local accounts: login by name and password, and consent."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from starlette.responses import Response

from ..http.parameters import address_of, form_parameters, query_parameters
from ..http.rate_limit import password_limits
from ..interfaces import PendingRequest, User
from . import consents, page_templates
from .accounts import Account, Accounts, BadAccount, canonical
from .browser_session import Session
from .login_pages import Answer, LoginPages, PageError, PageHandler, Visit

_WRONG = "The name or the password is wrong."


class LocalUsers(LoginPages):
    """The people of `accounts`.

    A log-in holds for `session_seconds` in the browser, and ends with the account and with its
    password.

    `brand` is what stands above each page: the host of the issuer where nothing is given. Tries are
    counted for each account and each address, in the issuer's vault: behind a reverse proxy let the
    web server take the address from it, or all people share one.
    """

    def __init__(
        self, accounts: Accounts, *, brand: str = "", session_seconds: float = 8 * 3600.0
    ) -> None:
        super().__init__(brand=brand)
        self.accounts = accounts
        self._session_seconds = session_seconds

    async def is_active(self, user: User) -> bool:
        """Whether the account is still there, with the password that it had when the person was
        asked.
        """
        account = await self.accounts.find(user.subject)
        return account is not None and user.claims.get("epoch") == _mark(account)

    async def _logged_in(self, visit: Visit) -> Session | None:
        session = await visit.browser.session(visit.vault)
        if session is None:
            return None
        account = await self.accounts.find(session.subject)
        return session if account is not None and session.mark == _mark(account) else None

    async def _require_login(self, visit: Visit, word: str) -> Response | None:
        return visit.to("/login", at=visit.browser.refer(word))

    async def _agreed(
        self, visit: Visit, pending: PendingRequest, session: Session | None, answer: Answer
    ) -> Response:
        if session is None:
            raise PageError(self._error_page("Log in first", "Nobody is logged in here."))
        if answer == "always":
            await consents.remember(visit.vault, session.subject, pending, visit.now)
        user = User(session.subject, session.name, {"name": session.name, "epoch": session.mark})
        return await visit.server.grant(pending.id, user, pending.scopes)

    def _own_pages(self) -> Mapping[str, PageHandler]:
        return {"/login": self._login}

    async def _login(self, visit: Visit) -> Response:
        if visit.request.method == "POST":
            return await self._log_in(visit)
        at = query_parameters(visit.request).get("at", "")
        word = visit.browser.meant(at) if at else ""
        if word is None:
            return self._error_page(
                "Start again",
                "This page belongs to another browser, or has expired. Start again in "
                "the program that sent you here.",
            )
        session = await self._logged_in(visit)
        if session is not None and not word:
            return self._show(
                page_templates.account(
                    session.name or session.subject, visit.form("/logout", ""), brand=self._brand
                ),
                visit,
            )
        return await self._ask_name(visit, at, word)

    async def _ask_name(
        self,
        visit: Visit,
        at: str,
        word: str,
        *,
        name: str = "",
        words: str = "",
        status: int = 200,
    ) -> Response:
        pending = await visit.server.pending(word[1:]) if word.startswith("p") else None
        asker = None if pending is None else pending.client.name or pending.client.host or None
        hint = name or ("" if pending is None else pending.login_hint)
        form = visit.form("/login", at)
        return self._show(
            page_templates.login(form, brand=self._brand, asker=asker, name=hint, words=words),
            visit,
            status=status,
        )

    async def _log_in(self, visit: Visit) -> Response:
        form = await form_parameters(visit.request)
        self._must_be_ours(visit, form)
        at = form.get("at", "")
        name = form.get("name", "")
        word = visit.browser.meant(at) if at else ""
        if word is None:
            return self._error_page(
                "Start again",
                "This page belongs to another browser, or has expired. Start again in "
                "the program that sent you here.",
            )
        try:
            limits = password_limits(canonical(name), address_of(visit.request))
        except BadAccount:
            limits = password_limits("", address_of(visit.request))
        await visit.attempts.claim(limits)
        account = await self.accounts.check(name, form.get("password", ""))
        if account is None:
            return await self._ask_name(visit, at, word, name=name, words=_WRONG, status=403)
        # The attempts at this name from here were the person's own.
        here = next(iter(limits))
        await visit.attempts.reset(here)
        del limits[here]
        await visit.attempts.give_back(limits)
        session = Session(
            subject=account.subject, name=account.display or account.name, mark=_mark(account)
        )
        inside = visit.renewed(
            await visit.browser.log_in(visit.vault, session, visit.now + self._session_seconds)
        )
        if word.startswith("p"):
            return inside.to("/consent", at=inside.browser.refer(word))
        if word.startswith("d"):
            return inside.to("/device", **({"user_code": word[1:]} if word[1:] else {}))
        return inside.to("/login")


def _mark(account: Account) -> str:
    """What changes with the password, and tells nothing else."""
    return hashlib.sha256(f"{account.subject} {account.changed!r}".encode()).hexdigest()[:12]
