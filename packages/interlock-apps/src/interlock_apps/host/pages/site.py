"""The ASGI app of the host's page: routes for the page, the event stream, the acts and the log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from importlib import resources
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ...web.app_policy import DECLARED
from ...web.app_sandbox import AppSandbox
from ...web.event_stream import EventStream
from ...web.page_guard import PageGuard
from .act_runner import ActError, ActRunner
from .acts import read_act
from .feed import HostFeed
from .user import PageUser

if TYPE_CHECKING:
    from ..app import Host

MOST_BODY = 8 * 1024 * 1024
"""Bytes of one request."""


class HostSite:
    """The page of a host, for one person at this machine.

    Args:
        host: The host to show. The page answers its questions from now on.
        origin: Scheme, host and port of the page.
        apps_origin: The other origin, for MCP Apps; "" for no apps.
        title: The title at the top of the page.
        demo: The note about the demonstration; "" if it is none.
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
        self.host = host
        self.origin = origin
        self.apps_origin = apps_origin
        user = PageUser()
        host.prompter.person = user
        if apps_origin:
            host.declare(DECLARED)
        self.sandbox = AppSandbox(apps_origin, origin)
        """The ASGI app of the other origin."""
        self.feed = HostFeed(host, title=title, demo=demo, apps_origin=apps_origin)
        self.closing = asyncio.Event()
        """Ends the event streams when set."""
        self._guard = PageGuard(origin, what="host", frames=apps_origin)
        self._acts = ActRunner(host, user, self.sandbox)
        static = resources.files("interlock_apps.host.pages") / "static"
        kit = resources.files("interlock_apps.web") / "kit"
        self._page = (static / "index.html").read_text(encoding="utf-8")
        self._app = Starlette(
            routes=[
                Route("/", self._index),
                Route("/api/events", self._events),
                Route("/api/act", self._act, methods=["POST"]),
                Route("/api/log.jsonl", self._export),
                Mount("/static", StaticFiles(directory=str(static))),
                Mount("/kit", StaticFiles(directory=str(kit))),
            ]
        )

    @property
    def entry(self) -> str:
        """The address that admits a browser once; used up, it is replaced by a new one."""
        return self._guard.entry

    @property
    def place(self) -> str:
        """The unguessable path of the page."""
        return self._guard.place

    def close(self) -> None:
        """End the event streams. Turns belong to the host, which ends them."""
        self.closing.set()
        self._acts.close()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """The ASGI app."""
        await self._guard.serve(self._app, scope, receive, send)

    async def _index(self, _: Request) -> Response:
        return Response(self._page.replace("@TOKEN@", self._guard.csrf), media_type="text/html")

    async def _act(self, request: Request) -> Response:
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > MOST_BODY:
                return JSONResponse({"ok": False, "words": "The request is too large."}, 413)
        try:
            act = read_act(body)
        except msgspec.MsgspecError as bad:
            return JSONResponse({"ok": False, "words": f"Not understood: {bad}"}, 400)
        try:
            value = await self._acts.run(act)
        except ActError as bad:
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

    async def _events(self, _: Request) -> Response:
        await self.feed.refresh()
        stream = EventStream(self.feed, self.closing).stream()
        return StreamingResponse(
            stream, media_type="text/event-stream", headers={"x-accel-buffering": "no"}
        )


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")


async def _each(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
