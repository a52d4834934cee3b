"""The page of a host: its acts, its feed, the export of its log, and the origin of MCP Apps."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from interlock import InterlockError

from ...web.app_policy import DECLARED
from ...web.app_sandbox import AppSandbox
from ...web.page_guard import PageGuard
from ...web.page_site import PageSite
from ..attachments import (
    MOST_TOGETHER,
    AttachedFile,
    FileRefused,
    check_file,
    size_in_words,
)
from .act_reader import read_act
from .act_runner import ActRunner
from .feed import HostFeed
from .user import PageUser

if TYPE_CHECKING:
    from ..app import Host
    from ..setup.host_setup import HostSetup

KEPT = "The log keeps what was said."


class HostSite(PageSite):
    """The page of a host, for one person at this machine.

    Args:
        host: The host to show. The page answers its questions from now on.
        origin: Scheme, host and port of the page.
        apps_origin: The other origin, for MCP Apps; "" for no apps.
        title: The title at the top of the page.
        demo: The note about the demonstration; "" if it is none.
        again: How to get another address of the page, for error responses; by default by a restart.
        setup: Changes the servers and the models of the host; None if they are not in files.
    """

    def __init__(
        self,
        host: Host,
        *,
        origin: str,
        apps_origin: str = "",
        title: str = "Interlock",
        demo: str = "",
        again: str = "",
        setup: HostSetup | None = None,
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
        self._host_feed = HostFeed(
            host, title=title, demo=demo, apps_origin=apps_origin, setup=setup
        )
        self._acts = ActRunner(host, user, self.sandbox, setup)
        super().__init__(
            "interlock_apps.host.pages",
            guard=PageGuard(origin, what="host", frames=apps_origin, again=again, kept=KEPT),
            feed=self._host_feed,
            routes=[
                Route("/api/log.jsonl", self._export),
                Route("/api/file", self._upload, methods=["POST"]),
                Route("/api/conversation.{form:str}", self._export_conversation),
            ],
        )

    async def act(self, body: bytes) -> Any:
        """See PageSite."""
        return await self._acts.run(read_act(body))

    async def refresh(self) -> None:
        """See PageSite."""
        await self._host_feed.refresh()

    def close(self) -> None:
        """End the event streams. Turns belong to the host, which ends them."""
        super().close()
        self._acts.close()

    async def _upload(self, request: Request) -> Response:
        """Take a file for a message of a conversation, or of a new one with a model."""
        data = bytearray()
        async for piece in request.stream():
            data += piece
            if len(data) > MOST_TOGETHER:
                words = f"A file can have at most {size_in_words(MOST_TOGETHER)}."
                return JSONResponse({"ok": False, "words": words}, 413)
        file = AttachedFile(request.query_params.get("name", "file"), bytes(data))
        session = self.host.sessions.get(request.query_params.get("session", ""))
        try:
            model = (
                session.model if session else self.host.model(request.query_params.get("model", ""))
            )
            mime = check_file(file, model)
        except (FileRefused, ValueError) as bad:
            return JSONResponse({"ok": False, "words": str(bad)})
        value = {
            "file": self._acts.uploads.add(file),
            "name": file.name,
            "mimeType": mime,
            "size": len(file.data),
        }
        return JSONResponse({"ok": True, "value": value})

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

    async def _export_conversation(self, request: Request) -> Response:
        """A conversation as a file for readers: Markdown or HTML."""
        session = request.query_params.get("session", "")
        conversations = self.host.conversations
        forms = {
            "md": ("text/markdown", conversations.to_markdown),
            "html": ("text/html", conversations.to_html),
        }
        media_type, export = forms.get(request.path_params["form"], ("", None))
        if export is None:
            return Response("There is no such form of a conversation.", 404)
        try:
            text = await export(session)
        except (InterlockError, ValueError) as bad:
            return Response(str(bad), 404, media_type="text/plain")
        form = request.path_params["form"]
        name = f"conversation-{re.sub(r'[^A-Za-z0-9]', '', session)}.{form}"
        return Response(
            text.encode("utf-8", "replace"),
            media_type=f"{media_type}; charset=utf-8",
            headers={"content-disposition": f'attachment; filename="{name}"'},
        )


async def _each(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
