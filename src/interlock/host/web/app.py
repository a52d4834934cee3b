"""The ASGI app of the web face: the page, the stream of events, the acts, and the bolts on the door."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import AsyncIterator
from importlib import resources
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import (
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ..log import SessionRow
from .acts import read_act
from .apart import Apart
from .apps import DECLARED
from .doing import Doing, Mistake
from .feed import Feed
from .person import AtThePage
from .state import state

if TYPE_CHECKING:
    from ..app import Host

COOKIE, HEADER = "interlock-host", "x-interlock"
MOST_PAST = 200  # conversations of the log in the page's list
MOST_BODY = 8 * 1024 * 1024
NOT_LET_IN = (
    "You are not let in here: this browser has no cookie of this host, or the host was started anew since.\n"
    "Open the address that `interlock host` or `interlock demo` printed last. Each address works once. If it was used already, end "
    "the host where it runs (Ctrl+C) and start it again: it prints a new one. What was said is in its log, and stays."
)
USED = (
    "This address was used already, or is none of this host's. Each one works once.\n"
    "Where the page is open already, use that one. Otherwise end the host where it runs (Ctrl+C) and start it again: it prints a new "
    "address. What was said is in its log, and stays."
)


class WebFace:
    """The web face of a host, for one person at this machine.

    `entry` is the address to open, with a token that lets in once; `origin` is scheme, host and port of this face, `apps_origin` that
    under which apps of servers are shown. `title` and `demo` are shown at the top.
    """

    def __init__(
        self,
        host: Host,
        *,
        origin: str,
        apps_origin: str = "",
        title: str = "Interlock",
        demo: str = "",
    ) -> None:
        self.host, self.origin, self.apps_origin = host, origin, apps_origin
        self._title, self._demo = title, demo
        self._person = AtThePage()
        host.prompter.person = self._person
        if apps_origin:
            host.declare(DECLARED)
        self.apart = Apart(apps_origin, origin)
        """The ASGI app of the other origin."""
        self._doing = Doing(host, self._person, self.apart)
        self._token: str | None = secrets.token_urlsafe(24)
        self._cookie, self._csrf = secrets.token_urlsafe(32), secrets.token_urlsafe(24)
        # Cookies know no ports: one for all of 127.0.0.1 would be sent to whatever else serves pages on this machine, and whoever has it is
        # let in. So the page lies at a place that nobody can guess, and the cookie is for that place.
        self.place = f"/{secrets.token_urlsafe(16)}"
        self._closing = asyncio.Event()
        self._past: list[SessionRow] = []  # as of when a page last came
        static = resources.files("interlock.host.web") / "static"
        self._page = (static / "index.html").read_text(encoding="utf-8")
        self.app = Starlette(
            routes=[
                Route("/", self._index),
                Route("/api/events", self._events),
                Route("/api/act", self._act, methods=["POST"]),
                Route("/api/log.jsonl", self._export),
                Mount("/static", StaticFiles(directory=str(static))),
            ]
        )

    @property
    def entry(self) -> str:
        """The address that lets in once; a new one where the last was used."""
        self._token = self._token or secrets.token_urlsafe(24)
        return f"{self.origin}/?token={self._token}"

    def close(self) -> None:
        """End the streams; the turns that were begun here are the host's to end."""
        self._closing.set()
        self._doing.close()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """The ASGI app, behind its bolts."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        refusal = self._refusal(request)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        within = {**scope, "path": scope["path"].removeprefix(self.place) or "/"}
        await self.app(within, receive, self._with_headers(send))

    # -- the bolts ---------------------------------------------------------------------------------------------------

    def _refusal(self, request: Request) -> Response | None:
        """Why a request is not let in: another name for this machine, another site's page, no cookie, no proof that our page sent it."""
        if f"http://{request.headers.get('host', '')}" != self.origin:
            return PlainTextResponse(f"This is {self.origin}, and nothing else.", 421)
        origin, site, path = (
            request.headers.get("origin"),
            request.headers.get("sec-fetch-site"),
            request.scope["path"],
        )
        if origin not in (None, self.origin) or (
            site in ("cross-site", "same-site") and path not in ("/", f"{self.place}/")
        ):
            return PlainTextResponse("Other sites may not use this.", 403)
        if path == "/" and request.method == "GET" and "token" in request.query_params:
            return None
        within = path.startswith(f"{self.place}/")
        if not within or not _same(request.cookies.get(self._cookie_name, ""), self._cookie):
            return PlainTextResponse(NOT_LET_IN, 401)
        if request.method not in ("GET", "HEAD") and not _same(
            request.headers.get(HEADER, ""), self._csrf
        ):
            return PlainTextResponse("The request does not come from our page; reload it.", 403)
        return None

    @property
    def _cookie_name(self) -> str:
        """Hosts at several ports of this machine each have their own."""
        return f"{COOKIE}-{self.origin.rpartition(':')[2]}"

    def _with_headers(self, send: Any) -> Any:
        frames = self.apps_origin or "'none'"
        lent = (
            f'(self "{self.apps_origin}")' if self.apps_origin else "()"
        )  # to a frame only, and only where the person has said so
        policy = (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src data: blob:; "
            f"connect-src 'self'; font-src 'self'; frame-src {frames}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
            "require-trusted-types-for 'script'; trusted-types 'none'"
        )
        more = {
            "content-security-policy": policy,
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cross-origin-opener-policy": "same-origin",
            "cross-origin-resource-policy": "same-origin",
            "permissions-policy": f"camera={lent}, microphone={lent}, geolocation={lent}",
            "origin-agent-cluster": "?1",
            "cache-control": "no-store",
        }
        extra = [(name.encode(), value.encode()) for name, value in more.items()]

        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                names = set(more)
                kept = [
                    pair for pair in message["headers"] if pair[0].decode().lower() not in names
                ]
                message = {**message, "headers": [*kept, *extra]}
            await send(message)

        return sending

    # -- routes ---------------------------------------------------------------------------------------------------------

    async def _index(self, request: Request) -> Response:
        token = request.query_params.get("token")
        if token is not None:
            if self._token is None or not _same(token, self._token):
                return PlainTextResponse(USED, 401)
            self._token = None
            answer: Response = RedirectResponse(f"{self.place}/", 303)
            answer.set_cookie(
                self._cookie_name, self._cookie, httponly=True, samesite="strict", path=self.place
            )
            return answer
        return Response(self._page.replace("@TOKEN@", self._csrf), media_type="text/html")

    async def _act(self, request: Request) -> Response:
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > MOST_BODY:
                return JSONResponse({"ok": False, "words": "That is too much at once."}, 413)
        try:
            act = read_act(body)
        except msgspec.MsgspecError as bad:
            return JSONResponse({"ok": False, "words": f"Not understood: {bad}"}, 400)
        try:
            value = await self._doing.do(act)
        except Mistake as bad:
            return _json({"ok": False, "words": str(bad)})
        return _json({"ok": True, "value": value})

    async def _export(self, request: Request) -> Response:
        session = request.query_params.get("session")
        await self.host.log.flush()
        pieces: list[bytes] = []
        await self.host.log.export(pieces.append, session)
        name = f"interlock-{session or 'log'}.jsonl"
        plain = name.isascii() and name.isprintable() and '"' not in name
        headers = {
            "content-disposition": f'attachment; filename="{name}"' if plain else "attachment"
        }
        return StreamingResponse(_each(pieces), media_type="application/jsonl", headers=headers)

    async def _events(self, request: Request) -> Response:
        await self.host.log.flush()
        self._past = (await self.host.log.sessions())[:MOST_PAST]
        feed = Feed(self.host, self._state, self._closing)
        return StreamingResponse(
            feed.stream(), media_type="text/event-stream", headers={"x-accel-buffering": "no"}
        )

    def _state(self) -> dict[str, Any]:
        return state(
            self.host,
            title=self._title,
            demo=self._demo,
            apps_origin=self.apps_origin,
            past=self._past,
        )


def _same(given: str, own: str) -> bool:
    """Whether a secret was given, whatever signs it is written in; how long that takes tells nothing of it."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), own.encode())


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")


async def _each(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
