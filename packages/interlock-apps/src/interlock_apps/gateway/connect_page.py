"""The connect page: a person lets the gateway use their account at one server.

Hazard: whoever gets another person to open a link here could try to use that person's account. So
the page names the principal that the account will belong to, each link works once, the redirect is
accepted only in the browser that began, and every step is a request of this page.
"""

from __future__ import annotations

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

from interlock.store import StoreError

from .identity import ConnectRecords, ConnectTicket, digest

log = logging.getLogger("interlock_apps.gateway")

COOKIE = "interlock-connect"
"""The name of the cookie that binds a login to one browser."""

_MOST_BODY = 4096
_MOST_QUERY = 8192
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:4rem auto;padding:0 1rem;"
    "color:#1a1a1a;background:#fff}button{font:inherit;padding:.6rem 1.2rem;border-radius:.4rem;"
    "border:1px solid #1a4fa0;background:#1a4fa0;color:#fff;cursor:pointer}code{font-size:.95em}"
    "@media(prefers-color-scheme:dark){body{color:#eee;background:#161616}"
    "button{background:#8ab4f8;border-color:#8ab4f8;color:#111}}"
)


class ConnectPage:
    """The connect pages of all servers, as an ASGI app below `/connect/`.

    Args:
        records: The records of logins.
        public_url: The URL of the gateway for browsers.
    """

    def __init__(self, records: ConnectRecords, public_url: str) -> None:
        self._records = records
        self._host = urlsplit(public_url).netloc
        self._is_secure = public_url.startswith("https://")
        self._app = Starlette(
            routes=[
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
            answer = _page(
                "Not this address", f"<p>Open this page at {_shown(self._host)}.</p>", 421
            )
            await answer(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        except StoreError as bad:
            log.error("the connect page cannot reach its vault: %s", bad)
            answer = _page("Try again later", "<p>The gateway cannot log anyone in now.</p>", 503)
            await answer(scope, receive, send)

    async def _show(self, request: Request) -> Response:
        """Name the server and the principal, and ask the person to go on."""
        ticket = request.query_params.get("ticket", "")
        record = await self._records.look(ticket)
        server = request.path_params["server"]
        if record is None or record.server != server:
            return _expired()
        browser = request.cookies.get(COOKIE) or secrets.token_urlsafe(32)
        name = _shown(record.server)
        body = (
            f"<p>The gateway at <code>{_shown(self._host)}</code> asks to use your account at"
            f" <strong>{name}</strong>, for <strong>{_shown(record.subject)}</strong>.</p>"
            "<p>Go on only if that is you, and if you have just asked for it: whoever uses the"
            " gateway under this name will act with your account.</p>"
            f'<form method="post" action="/connect/{name}">'
            f'<input type="hidden" name="ticket" value="{_shown(ticket)}">'
            f'<input type="hidden" name="form" value="{_form(browser, ticket)}">'
            f"<button>Log in to {name}</button></form>"
        )
        answer = _page(f"Connect {record.server}", body, allowed=_origin(record))
        self._set_cookie(answer, browser, server)
        return answer

    async def _start(self, request: Request) -> Response:
        """Send the browser to the authorization server."""
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return _foreign()
        body = await request.body() if _is_small(request) else b""
        if len(body) > _MOST_BODY:
            return _expired()
        fields = parse_qs(body.decode("ascii", "replace"))
        ticket = fields.get("ticket", [""])[0]
        form = fields.get("form", [""])[0]
        browser = request.cookies.get(COOKIE, "")
        if not browser or not hmac.compare_digest(form, _form(browser, ticket)):
            return _foreign()
        known = await self._records.look(ticket)
        if known is None or known.server != request.path_params["server"]:
            return _expired()
        record = await self._records.start(ticket, browser)
        if record is None:
            return _expired()
        return RedirectResponse(record.url, 303, headers=_headers(""))

    async def _finish(self, request: Request) -> Response:
        """Receive the redirect of the authorization server."""
        query = request.url.query
        state = request.query_params.get("state", "")
        browser = request.cookies.get(COOKIE, "")
        server = request.path_params["server"]
        if len(query) > _MOST_QUERY or not state or not browser:
            return _foreign()
        if not await self._records.finish(state, browser, server, query):
            return _foreign()
        if "error" in request.query_params:
            return _page("Not connected", "<p>The login was declined. You can close this page.</p>")
        return _page(
            "Connected",
            f"<p>The gateway now uses your account at {_shown(server)}."
            " You can close this page: your call goes on by itself.</p>",
        )

    def _set_cookie(self, answer: Response, browser: str, server: str) -> None:
        answer.set_cookie(
            COOKIE,
            browser,
            max_age=900,
            path=f"/connect/{server}",
            httponly=True,
            secure=self._is_secure,
            samesite="lax",  # the redirect comes from another site
        )


def _is_small(request: Request) -> bool:
    length = request.headers.get("content-length", "")
    return length.isdigit() and int(length) <= _MOST_BODY


def _form(browser: str, ticket: str) -> str:
    """Return the value that only the page shown in this browser has (CSRF)."""
    return digest(f"{browser} {ticket}")


def _origin(record: ConnectTicket) -> str:
    parts = urlsplit(record.url)
    return f"{parts.scheme}://{parts.netloc}"


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


def _page(title: str, body: str, status: int = 200, *, allowed: str = "") -> HTMLResponse:
    text = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_shown(title)}</title><style>{_STYLE}</style>"
        f"<main><h1>{_shown(title)}</h1>{body}</main></html>"
    )
    return HTMLResponse(text, status, headers=_headers(allowed))


def _headers(allowed: str) -> dict[str, str]:
    """Return the security headers; `allowed` is the origin that the form leads to."""
    return {
        "content-security-policy": (
            "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none';"
            f" form-action 'self' {allowed}; frame-ancestors 'none'"
        ),
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cache-control": "no-store",
    }
