"""The connect page: a person lets the gateway use their account at one server.

Hazard: whoever gets another person to open a link here could try to use that person's account (the
confused deputy). So the person logs in at the authorization server that guards the gateway first,
and has to be the principal that the account will belong to. The page names that principal, each
link works once, the redirects are accepted only in the browser that began, and every step is a
request of this page.
"""

from __future__ import annotations

import asyncio
import hmac
import html
import logging
import secrets
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from interlock import Unreachable
from interlock.store import StoreError

from .identity import DONE, LOCAL, POLL_SECONDS, ConnectRecords, ConnectTicket, digest
from .person_login import REDIRECT_PATH, PersonLogin

log = logging.getLogger("interlock_apps.gateway")

COOKIE = "interlock-connect"
"""The name of the cookie that binds a login to one browser. Over https it has the prefix `__Host-`,
so that no other host can set it."""

_COOKIE_SECONDS = 900
_MOST_BODY = 4096
_MOST_QUERY = 8192
_EXCHANGE_SECONDS = 20.0  # the longest time that the last page waits for the end of the login
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:4rem auto;padding:0 1rem;"
    "color:#1a1a1a;background:#fff}button{font:inherit;padding:.6rem 1.2rem;border-radius:.4rem;"
    "border:1px solid #1a4fa0;background:#1a4fa0;color:#fff;cursor:pointer}code{font-size:.95em}"
    "a{color:#1a4fa0}"
    "@media(prefers-color-scheme:dark){body{color:#eee;background:#161616}a{color:#8ab4f8}"
    "button{background:#8ab4f8;border-color:#8ab4f8;color:#111}}"
)


class ConnectPage:
    """The connect pages of all servers, as an ASGI app below `/connect/`.

    Args:
        records: The records of logins.
        public_url: The URL of the gateway for browsers.
        login: Finds out who is in front of a browser; None for a gateway without a guard, whose
            callers are all the person at this machine.
    """

    def __init__(
        self, records: ConnectRecords, public_url: str, login: PersonLogin | None = None
    ) -> None:
        self._records = records
        self._login = login
        self._host = urlsplit(public_url).netloc
        self._is_secure = public_url.startswith("https://")
        self._cookie = f"__Host-{COOKIE}" if self._is_secure else COOKIE
        self._app = Starlette(
            routes=[
                Route(REDIRECT_PATH, self._identify, methods=["GET"]),
                Route("/connect/{server}", self._show, methods=["GET"]),
                Route("/connect/{server}", self._start, methods=["POST"]),
                Route("/connect/{server}/callback", self._finish, methods=["GET"]),
            ]
        )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request, or the lifespan of a server for this page alone."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        if request.headers.get("host", "") != self._host:  # a page of another site
            answer: Response = _page(
                "Not this address", f"<p>Open this page at {_shown(self._host)}.</p>", 421
            )
            await answer(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        except StoreError as bad:
            log.error("the connect page cannot reach its vault: %s", bad)
            answer = _unavailable("The gateway cannot log anyone in now.")
            await answer(scope, receive, send)

    async def aclose(self) -> None:
        """End the logins of persons that this process has begun."""
        if self._login is not None:
            await self._login.aclose()

    async def _show(self, request: Request) -> Response:
        """Name the server and the principal, and ask the person to go on."""
        ticket = request.query_params.get("ticket", "")
        record = await self._records.look(digest(ticket))
        server = request.path_params["server"]
        if record is None or record.server != server:
            return _expired()
        browser = request.cookies.get(self._cookie) or secrets.token_urlsafe(32)
        answer = _page(f"Connect {record.server}", self._question(record, ticket, browser))
        answer.set_cookie(
            self._cookie,
            browser,
            max_age=_COOKIE_SECONDS,
            path="/" if self._is_secure else "/connect/",
            httponly=True,
            secure=self._is_secure,
            samesite="lax",  # the redirects come from other sites
        )
        return answer

    def _question(self, record: ConnectTicket, ticket: str, browser: str) -> str:
        name = _shown(record.server)
        program = f" The program that asks is {_shown(record.client)}." if record.client else ""
        query = parse_qs(urlsplit(record.url).query)
        scopes = " ".join(query.get("scope", [])).split()
        wanted = ", ".join(f"<code>{_shown(scope)}</code>" for scope in scopes[:50])
        first = ""
        if self._needs_person(record) and self._login is not None:
            issuer = _shown(urlsplit(self._login.issuer).netloc)
            first = f"<p>You log in at <code>{issuer}</code> first, to show that it is you.</p>"
        return (
            f"<p>The gateway at <code>{_shown(self._host)}</code> asks to use your account at"
            f" <strong>{name}</strong>, for <strong>{_shown(record.subject)}</strong>.{program}</p>"
            + (f"<p>It asks for these scopes: {wanted}.</p>" if wanted else "")
            + "<p>Go on only if that is you, and if you have just asked for it: whoever uses the"
            " gateway under this name will act with your account.</p>"
            f'{first}<form method="post" action="/connect/{name}">'
            f'<input type="hidden" name="ticket" value="{_shown(ticket)}">'
            f'<input type="hidden" name="form" value="{_form(browser, ticket)}">'
            f"<button>Log in to {name}</button></form>"
        )

    def _needs_person(self, record: ConnectTicket) -> bool:
        """Whether the person has to be identified. All callers without a token are one."""
        return self._login is not None and record.principal != LOCAL

    async def _start(self, request: Request) -> Response:
        """Send the browser to the authorization server that guards the gateway, or without one to
        that of the server.
        """
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return _foreign()
        body = await request.body() if _is_small(request) else b""
        if len(body) > _MOST_BODY:
            return _expired()
        fields = parse_qs(body.decode("ascii", "replace"))
        ticket = fields.get("ticket", [""])[0]
        form = fields.get("form", [""])[0]
        browser = request.cookies.get(self._cookie, "")
        if not browser or not hmac.compare_digest(form, _form(browser, ticket)):
            return _foreign()
        key = digest(ticket)
        record = await self._records.look(key)
        if record is None or record.server != request.path_params["server"]:
            return _expired()
        if self._login is not None and self._needs_person(record):
            try:
                return _onward(await self._login.start(key, browser))
            except Unreachable as bad:
                log.error("the connect page cannot identify persons: %s", bad)
                return _unavailable("The gateway cannot find out who you are now.")
        started = await self._records.start(key, browser)
        return _expired() if started is None else _onward(started.url)

    async def _identify(self, request: Request) -> Response:
        """Receive the redirect of the authorization server that guards the gateway, and send the
        browser to that of the server, if the right person has logged in.
        """
        browser = request.cookies.get(self._cookie, "")
        state = request.query_params.get("state", "")
        login = await self._records.finish(state, browser, "", _query(request))
        if login is None or self._login is None:
            return _foreign()
        person = await self._login.person(state)
        if person.problem:
            return _page("Not connected", f"<p>{_shown(person.problem)}</p>", 403)
        record = await self._records.look(login.ticket)
        if record is None:
            return _expired()
        if (person.issuer, person.subject) != (record.issuer, record.subject):
            log.warning(
                "%s: %r opened the connect page of %r, and was refused",
                record.server,
                person.subject,
                record.subject,
            )
            return _page(
                "Not connected",
                f"<p>You are logged in as <strong>{_shown(person.subject)}</strong>, and this link"
                " belongs to somebody else. Nothing was connected. If somebody sent you the link,"
                " do not use it: your account would have become theirs.</p>",
                403,
            )
        started = await self._records.start(login.ticket, browser)
        if started is None:
            return _expired()
        return RedirectResponse(started.url, 303, headers=_headers())

    async def _finish(self, request: Request) -> Response:
        """Receive the redirect of the server's authorization server."""
        browser = request.cookies.get(self._cookie, "")
        state = request.query_params.get("state", "")
        server = request.path_params["server"]
        login = await self._records.finish(state, browser, server, _query(request))
        if login is None:
            return _foreign()
        outcome = await self._outcome(login.ticket)
        if outcome is None:
            return _page("Almost done", "<p>The login goes on. You can close this page.</p>")
        if outcome != DONE:
            return _page("Not connected", f"<p>{_shown(outcome.decode())}</p>")
        return _page(
            "Connected",
            f"<p>The gateway now uses your account at {_shown(server)}."
            " You can close this page: your call goes on by itself.</p>",
        )

    async def _outcome(self, ticket: str) -> bytes | None:
        """Return how a login has ended, which another worker may run; None if it goes on."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _EXCHANGE_SECONDS
        while loop.time() < until:
            outcome = await self._records.outcome(ticket)
            if outcome is not None:
                return outcome
            await asyncio.sleep(POLL_SECONDS / 2)
        return None


def _query(request: Request) -> str:
    """Return the query of a redirect; empty if it is too long, which is no answer."""
    query = request.url.query
    return query if len(query) <= _MOST_QUERY else ""


def _is_small(request: Request) -> bool:
    length = request.headers.get("content-length", "")
    return length.isdigit() and int(length) <= _MOST_BODY


def _form(browser: str, ticket: str) -> str:
    """Return the value that only the page shown in this browser has (CSRF)."""
    return digest(f"{browser} {ticket}")


def _shown(text: str) -> str:
    return html.escape("".join(c if c.isprintable() else "?" for c in text[:200]))


def _expired() -> Response:
    words = "<p>This link was used already, or it has expired. Make your call again.</p>"
    return _page("This link cannot be used", words, 404)


def _foreign() -> Response:
    words = (
        "<p>This login was not begun in this browser, or it has ended. Nothing was connected. Make"
        " your call again, and open the new link in one browser.</p>"
    )
    return _page("Not connected", words, 403)


def _unavailable(words: str) -> Response:
    return _page("Try again later", f"<p>{words} The log of the gateway says why.</p>", 503)


def _onward(url: str) -> Response:
    """Lead the browser to another site. A redirect of a form would have to name every site on the
    way in `form-action`, and an authorization server may lead on to others.
    """
    where = _shown(urlsplit(url).netloc)
    link = html.escape(url)
    body = f'<p>You are led to <a href="{link}">{where}</a>.</p>'
    return _page("One moment", body, head=f'<meta http-equiv="refresh" content="0;url={link}">')


def _page(title: str, body: str, status: int = 200, *, head: str = "") -> HTMLResponse:
    text = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{head}<title>{_shown(title)}</title><style>{_STYLE}</style>"
        f"<main><h1>{_shown(title)}</h1>{body}</main></html>"
    )
    return HTMLResponse(text, status, headers=_headers())


def _headers() -> dict[str, str]:
    return {
        "content-security-policy": (
            "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self';"
            " frame-ancestors 'none'"
        ),
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cache-control": "no-store",
    }
