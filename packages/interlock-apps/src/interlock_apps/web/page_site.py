"""The ASGI app of a page on loopback: its files, its event stream, and the acts that it sends."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import resources
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from .event_stream import EventStream, Feed
from .page_files import PageFiles
from .page_guard import PageGuard

MOST_BODY = 8 * 1024 * 1024
"""Bytes of one request."""


class ActError(Exception):
    """An act failed; the message is for the person."""


class PageSite(ABC):
    """The page of one person at this machine.

    Args:
        package: The package whose folder `static` has the files of the page.
        guard: Admits the person's browser.
        feed: The content of the page.
        routes: Further routes.
    """

    def __init__(
        self,
        package: str,
        *,
        guard: PageGuard,
        feed: Feed[Any],
        routes: Sequence[BaseRoute] = (),
    ) -> None:
        self.feed = feed
        self.closing = asyncio.Event()
        """Ends the event streams when set."""
        self._guard = guard
        static = resources.files(package) / "static"
        kit = resources.files("interlock_apps.web") / "kit"
        files = PageFiles({"static": static, "kit": kit})
        self._page = files.page("static/index.html")
        self._app = Starlette(
            routes=[
                Route("/", self._index),
                Route("/api/events", self._events),
                Route("/api/act", self._act, methods=["POST"]),
                *routes,
                *(
                    Route(f"{version}/{folder}/{{path:path}}", files.answer)
                    for version in ("", f"/{files.version}")
                    for folder in ("static", "kit")
                ),
            ]
        )

    @abstractmethod
    async def act(self, body: bytes) -> Any:
        """Run the act of a request; return its outcome as JSON values.

        Raises:
            msgspec.MsgspecError: The body is not an act.
            ActError: The act failed; the message is for the person.
        """

    async def refresh(self) -> None:  # noqa: B027  # a page may have nothing to prepare
        """Prepare the state, before the stream of another page begins."""

    @property
    def entry(self) -> str:
        """The address that admits a browser once; used up, it is replaced by a new one."""
        return self._guard.entry

    def new_entry(self) -> str:
        """A new address that admits another browser once; an earlier one that is unused ends."""
        return self._guard.renew()

    @property
    def place(self) -> str:
        """The unguessable path of the page."""
        return self._guard.place

    def close(self) -> None:
        """End the event streams."""
        self.closing.set()

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
            value = await self.act(body)
        except msgspec.MsgspecError as bad:
            return JSONResponse({"ok": False, "words": f"Not understood: {bad}"}, 400)
        except ActError as bad:
            return _json({"ok": False, "words": str(bad)})
        return _json({"ok": True, "value": value})

    async def _events(self, _: Request) -> Response:
        await self.refresh()
        stream = EventStream(self.feed, self.closing).stream()
        return StreamingResponse(
            stream, media_type="text/event-stream", headers={"x-accel-buffering": "no"}
        )


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")
