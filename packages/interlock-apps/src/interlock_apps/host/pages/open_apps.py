"""Open MCP Apps: what each may request from the host, always concerning its own server."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from interlock import CallToolResult
from interlock.caches import BoundedCache
from interlock.types import JSONObject, ReadResourceResult

from ...fleet import threat_scan
from ...fleet.events import (
    CallDecided,
    CallEnded,
    Event,
    FeaturesChanged,
    LogEntry,
    Notice,
    ResourceUpdated,
    ServerState,
)
from ...fleet.questions import UrlQuestion
from ...fleet.toolbox import ServerTool
from ...web.app_policy import AppPage, read_page, ui_of
from ...web.app_sandbox import AppSandbox
from ..call_request import CallRequest

if TYPE_CHECKING:
    from ..app import Host

MOST_OPEN = 200
MOST_CALLS = 8  # running calls of one app
MOST_NOES = 3  # denials by the person, after which an app may not ask again
MOST_PAGES = 50  # cached pages
MOST_URL = 8_192
MOST_CONTEXT = 64 * 1024  # bytes, as JSON


class Denied(ValueError):
    """An app may not do this; the message says why."""


class OpenApp(Struct, eq=False):
    """An open app: its server, its conversation, and its running calls."""

    name: str
    server: str
    uri: str
    session: str
    calls: set[asyncio.Task[Any]]
    noes: int = 0
    link: asyncio.Task[Any] | None = None


class OpenApps:
    """Opens apps, and handles their requests (MCP Apps, 2026-01-26).

    `sandbox` provides the addresses of their frames.
    """

    def __init__(self, host: Host, sandbox: AppSandbox) -> None:
        self._host = host
        self._sandbox = sandbox
        self._open: BoundedCache[str, OpenApp] = BoundedCache(
            MOST_OPEN, on_evict=lambda _, opened: _give_up(opened)
        )
        self._pages: BoundedCache[tuple[str, str], AppPage] = BoundedCache(MOST_PAGES)
        self._warned: set[tuple[str, str, str]] = set()
        self._person: set[asyncio.Task[Any]] = set()
        self._callers: dict[str, OpenApp] = {}  # by call, until it is decided
        self._stop_listening = host.listen(self._receive)

    async def open(self, server: str, uri: str, session: str) -> JSONObject:
        """Open an app that one of the server's tools names.

        Raises Denied, BadApp, McpError, Unreachable (`APP-03`, `APP-04`, `APP-07`).
        """
        linked = [
            item
            for item in self._host.toolbox.items
            if item.server == server and ui_of(item.tool) == uri
        ]
        if not self._sandbox.origin:
            raise Denied("Apps cannot be shown here.")
        if not uri or not linked:
            raise Denied(f"No tool of {server} has the app {uri}.")
        if all(item.blocked for item in linked):
            raise Denied(f"The tool of this app is blocked: {linked[0].blocked}")
        page = self._pages.get((server, uri))
        if page is None:
            page = read_page(
                uri, (await self._host.read(server, uri, session=session, by="app")).contents
            )
            self._pages.put((server, uri), page)
        place = self._sandbox.place(page.csp)
        self._publish_origins(server, uri, session, page)
        opened = OpenApp(f"a{secrets.token_hex(8)}", server, uri, session, set())
        self._open.put(opened.name, opened)
        csp = msgspec.to_builtins(page.csp)
        return {
            "app": opened.name,
            "html": page.html,
            "url": place,
            "csp": csp,
            "domains": list(page.csp.domains),
            "refused": [threat_scan.visible(each) for each in page.refused],
            "permissions": list(page.permissions),
            "border": page.border,
        }

    def call(self, app: str, server: str, tool: str, arguments: JSONObject) -> str:
        """Call a tool of the app's own server that is visible to apps; return the id of the call.

        Raises Denied (`APP-08`, `APP-09`).
        """
        opened = self._opened(app)
        if server != opened.server:
            raise Denied(f"An app of {opened.server} may not call tools of {server}.")
        item = self._item(server, tool)
        if not item.for_app:
            raise Denied(f"{tool} is not for apps to call.")
        if len(opened.calls) >= MOST_CALLS:
            raise Denied(f"The app already has {MOST_CALLS} running calls.")
        if opened.noes >= MOST_NOES:
            raise Denied("You denied calls of this app too often. It may not ask again.")
        call = self._begin(item, arguments, opened.session, "app", opened.calls)
        self._callers[call] = opened
        return call

    def call_for_person(self, session: str, server: str, tool: str, arguments: JSONObject) -> str:
        """Call any tool for the person; return the id of the call. Raises Denied."""
        if session and session not in self._host.sessions:
            raise Denied("This conversation is not open here. Start a new one.")
        return self._begin(self._item(server, tool), arguments, session, "person", self._person)

    async def read(self, app: str, uri: str) -> ReadResourceResult:
        """Read a resource of the app's own server. Raises Denied, McpError, Unreachable."""
        opened = self._opened(app)
        return await self._host.read(opened.server, uri, session=opened.session, by="app")

    def link(self, app: str, url: str, call: str) -> str:
        """Ask the person whether the app may open a page, one at a time; return the id of the
        question.

        Raises Denied (`APP-29`).
        """
        opened = self._opened(app)
        if len(url) > MOST_URL or not url.startswith(("https://", "http://")):
            raise Denied("Only http and https addresses can be opened.")
        if opened.link is not None and not opened.link.done():
            raise Denied("A question about another page is still open.")
        entry = self._host.server(opened.server).entry
        host, site, warnings = threat_scan.of_url(url, server=entry.url)
        question = UrlQuestion(
            id=self._host.prompter.new_id(),
            server=opened.server,
            session=opened.session,
            call=call,
            warnings=warnings,
            message="Its app wants to open this page.",
            url=threat_scan.visible(url),
            host=host,
            site=site,
        )
        opened.link = asyncio.get_running_loop().create_task(self._host.prompter.ask(question))
        return question.id

    def context(self, app: str, content: Sequence[Any], structured: JSONObject | None) -> None:
        """Attach the app's content to the person's next message; new content replaces older
        content.

        Raises Denied (`APP-29`).
        """
        opened = self._opened(app)
        session = self._host.sessions.get(opened.session)
        if session is None:
            raise Denied("The conversation has ended.")
        if len(msgspec.json.encode((content, structured))) > MOST_CONTEXT:
            raise Denied(f"The content is larger than {MOST_CONTEXT // 1024} KB.")
        shown = CallToolResult(
            content=list(content),
            structured_content=msgspec.UNSET if structured is None else structured,
        )
        session.beside(opened.server, opened.uri, shown)

    def close(self, app: str) -> None:
        """Close an app, and cancel its calls."""
        opened = self._open.pop(app)
        if opened is not None:
            _give_up(opened)

    def end(self) -> None:
        """Close all apps, and cancel the calls that the person started here."""
        self._stop_listening()
        for app in list(self._open):
            self.close(app)
        for task in self._person:
            task.cancel()

    def _opened(self, app: str) -> OpenApp:
        opened = self._open.get(app)
        if opened is None:
            raise Denied("This app is no longer open.")
        return opened

    def _item(self, server: str, tool: str) -> ServerTool:
        found = next(
            (
                item
                for item in self._host.toolbox.items
                if item.server == server and item.tool.name == tool
            ),
            None,
        )
        if found is None:
            link = self._host.hub.servers.get(server)
            if link is not None and link.state in ("off", "refused"):
                raise Denied(f"The server {server} is stopped. Start it first.")
            raise Denied(f"{server} has no tool {tool}.")
        return found

    def _begin(
        self,
        item: ServerTool,
        arguments: JSONObject,
        session: str,
        by: Literal["app", "person"],
        tasks: set[asyncio.Task[Any]],
    ) -> str:
        call = f"{session or 'host'}.{by}-{secrets.token_hex(4)}"
        work: Coroutine[Any, Any, Any] = self._host.calls.call(
            CallRequest(call=call, session=session, item=item, arguments=arguments, by=by)
        )
        task = asyncio.get_running_loop().create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return call

    def _publish_origins(self, server: str, uri: str, session: str, page: AppPage) -> None:
        """Publish which origins an app may use, once in each conversation, and what it was refused
        (`APP-18`).
        """
        if (not page.csp.domains and not page.refused) or (session, server, uri) in self._warned:
            return
        self._warned.add((session, server, uri))
        words = f"The app {uri} may reach {', '.join(page.csp.domains) or 'nothing outside'}."
        if page.refused:
            words += f" It asked for more, which was denied: {'; '.join(page.refused)}."
        self._host.publish(
            Notice(
                session=session, level="warning", server=server, words=threat_scan.visible(words)
            )
        )

    def _receive(self, noted: LogEntry) -> None:
        """Drop cached pages of changed servers, and count the person's denials for each app."""
        event: Event = noted.event
        if (
            isinstance(event, CallDecided | CallEnded)
            and (opened := self._callers.pop(event.call, None)) is not None
        ):
            opened.noes += (
                isinstance(event, CallDecided) and not event.allow and event.by == "person"
            )
            return
        if isinstance(event, FeaturesChanged | ServerState):
            self._pages.remove_if(lambda key: key[0] == event.server)
        elif isinstance(event, ResourceUpdated):
            self._pages.pop((event.server, event.uri))


def _give_up(opened: OpenApp) -> None:
    """Cancel an app's calls and question."""
    for task in [*opened.calls, *([opened.link] if opened.link is not None else [])]:
        task.cancel()
