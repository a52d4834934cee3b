"""Access control of a page on loopback: a one-time address, a cookie, a CSRF token, and headers.

Any program and any web site on this machine can reach a port of loopback. Therefore a page answers
only requests with its own Host, without a foreign Origin, and from the browser that opened the
one-time address; acts need a token that only the page knows.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

HEADER = "x-interlock"
"""The request header that carries the CSRF token."""

NO_ACCESS = (
    "No access: this browser has no cookie of this {what}, or the {what} has been restarted.\n"
    "Open the address that it printed last. Each address works once. If it was used already, "
    "{again} {kept}"
)
USED = (
    "This address was used already, or it does not belong to this {what}. Each address works once."
    "\n"
    "If the page is open already, use that one. Otherwise {again} {kept}"
)
AGAIN = "stop the {what} where it runs (Ctrl+C) and start it again: it prints a new address."


class PageGuard:
    """Admits one person's browser to a page on loopback.

    Args:
        origin: Scheme, host and port of the page.
        what: The name of the page in error responses; also part of the cookie's name.
        frames: An origin that may be shown in frames; none by default.
        kept: What a restart does not lose, in a sentence for error responses.
        again: How to get a new address, for error responses; by default by a restart.
    """

    def __init__(
        self,
        origin: str,
        *,
        what: str = "host",
        frames: str = "",
        kept: str = "",
        again: str = "",
    ) -> None:
        self.origin = origin
        self.csrf = secrets.token_urlsafe(24)
        """The token that the page sends with each act."""
        # Cookies ignore ports: a cookie for all of 127.0.0.1 would be sent to every other server on
        # this machine, and would admit any program that reads it. So the page has an unguessable
        # path, and the cookie is limited to that path.
        self.place = f"/{secrets.token_urlsafe(16)}"
        self._what = what
        self._words = {"what": what, "kept": kept, "again": again or AGAIN.format(what=what)}
        self._token: str | None = secrets.token_urlsafe(24)
        self._cookie = secrets.token_urlsafe(32)
        self._headers = _headers(frames)

    @property
    def entry(self) -> str:
        """The address that admits a browser once; used up, it is replaced by a new one."""
        self._token = self._token or secrets.token_urlsafe(24)
        return f"{self.origin}/?token={self._token}"

    def renew(self) -> str:
        """Return a new address; the one before no longer works, whether it was used or not."""
        self._token = None
        return self.entry

    async def serve(self, app: Any, scope: Any, receive: Any, send: Any) -> None:
        """Run an ASGI app for admitted requests below the page's path."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        answer = self._answer(request)
        if answer is not None:
            await answer(scope, receive, send)
            return
        within = {**scope, "path": scope["path"].removeprefix(self.place) or "/"}
        await app(within, receive, self._with_headers(send))

    def _answer(self, request: Request) -> Response | None:
        """The refusal of a request, or the redirect after its token; None to let the app answer."""
        if f"http://{request.headers.get('host', '')}" != self.origin:
            return PlainTextResponse(f"This server answers only as {self.origin}.", 421)
        path = request.scope["path"]
        origin = request.headers.get("origin")
        site = request.headers.get("sec-fetch-site")
        top = path in ("/", f"{self.place}/")
        if origin not in (None, self.origin) or (site in ("cross-site", "same-site") and not top):
            return PlainTextResponse("Requests from other sites are not allowed.", 403)
        if path == "/" and request.method == "GET" and "token" in request.query_params:
            return self._admit(request.query_params["token"])
        within = path.startswith(f"{self.place}/")
        if not within or not _same(request.cookies.get(self._cookie_name, ""), self._cookie):
            return PlainTextResponse(NO_ACCESS.format(**self._words), 401)
        if request.method not in ("GET", "HEAD") and not _same(
            request.headers.get(HEADER, ""), self.csrf
        ):
            return PlainTextResponse("The request does not come from our page; reload it.", 403)
        return None

    def _admit(self, token: str) -> Response:
        if self._token is None or not _same(token, self._token):
            return PlainTextResponse(USED.format(**self._words), 401, headers=self._headers)
        self._token = None
        answer = RedirectResponse(f"{self.place}/", 303, headers=self._headers)
        answer.set_cookie(
            self._cookie_name, self._cookie, httponly=True, samesite="strict", path=self.place
        )
        return answer

    @property
    def _cookie_name(self) -> str:
        """The name includes the port: pages on several ports have separate cookies."""
        return f"interlock-{self._what}-{self.origin.rpartition(':')[2]}"

    def _with_headers(self, send: Any) -> Any:
        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                # Files of the program may be cached; nothing else may.
                cached = any(name.lower() == b"cache-control" for name, _ in message["headers"])
                ours = {
                    name.encode(): value.encode()
                    for name, value in self._headers.items()
                    if not (cached and name == "cache-control")
                }
                kept = [pair for pair in message["headers"] if pair[0].lower() not in ours]
                message = {**message, "headers": [*kept, *ours.items()]}
            await send(message)

        return sending


def _headers(frames: str) -> dict[str, str]:
    """The security headers of every response."""
    # Granted only to a frame, and only after the person allowed it.
    lent = f'(self "{frames}")' if frames else "()"
    framed = frames or "'none'"
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "media-src data: blob:; connect-src 'self'; font-src 'self'; "
        f"frame-src {framed}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return {
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": f"camera={lent}, microphone={lent}, geolocation={lent}",
        "origin-agent-cluster": "?1",
        "cache-control": "no-store",
    }


def _same(given: str, own: str) -> bool:
    """Compare two secrets in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), own.encode())
