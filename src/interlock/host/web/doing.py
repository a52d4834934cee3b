"""Does what the page asks: one function for each act."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from interlock.types import InterlockError

from ..events import LogEntry, ModelAsked, PersonSaid
from . import acts as a
from .apart import Apart
from .cutting import structured_page
from .opened import OpenApps
from .person import AtThePage
from .state import plain

if TYPE_CHECKING:
    from ..app import Host

MOST_NOTES = 5_000
BEGUN = (PersonSaid, ModelAsked)  # after these a turn is under way


class Mistake(Exception):
    """What was asked cannot be done; the words are for the person."""


class Doing:
    """Carries out acts for a host and the person at its page."""

    def __init__(self, host: Host, person: AtThePage, apart: Apart) -> None:
        self._host, self._person = host, person
        self._apps = OpenApps(host, apart)
        self._turns: set[asyncio.Task[Any]] = set()
        self._table: dict[type[a.Act], Callable[[Any], Awaitable[Any]]] = {
            a.Say: self._say,
            a.SayPrompt: self._say_prompt,
            a.Retry: self._retry,
            a.Cancel: self._cancel,
            a.NewSession: self._new,
            a.OpenSession: self._open,
            a.Resume: self._resume,
            a.GiveAnswer: self._answer,
            a.PreviewPrompt: self._preview,
            a.Complete: self._complete,
            a.Read: self._read,
            a.Expand: self._expand,
            a.Grant: self._grant,
            a.Revoke: self._revoke,
            a.Server: self._server,
            a.ServerLog: self._server_log,
            a.Forget: self._forget,
            a.SearchLog: self._search,
            a.ReadStructured: self._read_structured,
            a.Watch: self._watch,
            a.Unwatch: self._unwatch,
            a.CallTool: self._call_tool,
            a.AppResource: self._open_app,
            a.AppRead: self._app_read,
            a.AppLink: self._app_link,
            a.AppContext: self._app_context,
            a.CloseApp: self._close_app,
        }

    async def do(self, act: a.Act) -> Any:
        """Carry an act out; what comes of it, as JSON has it. Raises Mistake with words for the person."""
        function = self._table.get(type(act))
        if function is None:
            raise Mistake("This cannot be done here.")
        try:
            return await function(act)
        except (InterlockError, ValueError, OSError) as bad:
            raise Mistake(str(bad)) from None

    def close(self) -> None:
        """End what apps have under way."""
        self._apps.end()

    # -- conversations -----------------------------------------------------------------------------------------------

    async def _say(self, act: a.Say) -> None:
        if not act.text.strip():
            raise Mistake("The message is empty.")
        turn = self._session(act.session).say(act.text, attach=act.attach)
        await self._begin(turn, act.session)

    async def _say_prompt(self, act: a.SayPrompt) -> None:
        turn = self._session(act.session).prompt(
            act.server, act.name, act.arguments, attach=act.attach
        )
        await self._begin(turn, act.session)

    async def _retry(self, act: a.Retry) -> None:
        await self._begin(self._session(act.session).retry(), act.session)

    async def _begin(self, turn: Any, session: str) -> None:
        """Let a turn run by itself: an error before it has begun goes to the caller, what comes later is told as events."""
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def hear(noted: LogEntry) -> None:
            ours = isinstance(noted.event, BEGUN) and noted.event.session == session
            if ours and not begun.done():
                begun.set_result(None)

        end = self._host.listen(hear)
        task = asyncio.get_running_loop().create_task(turn)
        self._turns.add(task)
        task.add_done_callback(self._turns.discard)
        try:
            await asyncio.wait({task, begun}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            end()
        if task.done() and not begun.done():
            task.result()

    async def _cancel(self, act: a.Cancel) -> None:
        self._session(act.session).cancel()

    async def _new(self, act: a.NewSession) -> Any:
        return {"session": self._host.session(model=act.model, title=act.title).id}

    async def _open(self, act: a.OpenSession) -> Any:
        await self._host.log.flush()
        notes = await self._host.log.read(act.session, after=act.after, limit=MOST_NOTES)
        return {
            "notes": [plain(noted) for noted in notes],
            "live": act.session in self._host.sessions,
        }

    async def _resume(self, act: a.Resume) -> Any:
        return {"session": (await self._host.resume(act.session)).id}

    async def _answer(self, act: a.GiveAnswer) -> None:
        if not self._person.settle(act.question, act.answer):
            raise Mistake("This question is no longer open.")

    def _session(self, session: str) -> Any:
        found = self._host.sessions.get(session)
        if found is None:
            raise Mistake("This conversation is not open here. Start a new one.")
        return found

    # -- what servers offer ---------------------------------------------------------------------------------------------

    async def _preview(self, act: a.PreviewPrompt) -> Any:
        got = await self._host.get_prompt(act.server, act.name, act.arguments)
        return {"description": plain(got.description), "messages": plain(got.messages)}

    async def _complete(self, act: a.Complete) -> Any:
        found = await self._host.complete(
            act.server, act.ref, act.argument, act.value, act.arguments
        )
        return {"values": found.values, "total": found.total, "hasMore": bool(found.has_more)}

    async def _read(self, act: a.Read) -> Any:
        read = await self._host.read(act.server, act.uri)
        return {
            "contents": plain(read.contents),
            "size": sum(len(part.text or part.blob or "") for part in read.contents),
        }

    async def _expand(self, act: a.Expand) -> Any:
        return {"uri": self._host.expand(act.template, act.values)}

    async def _watch(self, act: a.Watch) -> None:
        await self._host.link(act.server).watch_uri(act.uri)

    async def _unwatch(self, act: a.Unwatch) -> None:
        await self._host.link(act.server).unwatch_uri(act.uri)

    # -- servers, folders, rules, the log -----------------------------------------------------------------------------------

    async def _grant(self, act: a.Grant) -> None:
        self._host.grant(act.folder, act.server)

    async def _revoke(self, act: a.Revoke) -> None:
        self._host.revoke(act.folder, act.server)

    async def _server(self, act: a.Server) -> None:
        self._host.link(act.server)
        do = {
            "start": self._host.hub.start,
            "stop": self._host.hub.stop,
            "restart": self._host.hub.restart,
        }[act.what]
        await do(act.server)

    async def _server_log(self, act: a.ServerLog) -> Any:
        return {"lines": [plain(line) for line in self._host.link(act.server).log]}

    async def _forget(self, act: a.Forget) -> None:
        rules = self._host.policy.learned
        if not 0 <= act.rule < len(rules) or not self._host.forget(rules[act.rule]):
            raise Mistake("There is no such rule.")

    async def _search(self, act: a.SearchLog) -> Any:
        await self._host.log.flush()
        notes = await self._host.log.search(
            act.words,
            session=act.session,
            server=act.server,
            kinds=act.kinds,
            before=act.before,
            limit=min(max(act.limit, 1), 500),
        )
        return {"notes": [plain(noted) for noted in notes]}

    async def _read_structured(self, act: a.ReadStructured) -> Any:
        page = await structured_page(self._host.log, act.session, act.call, act.page)
        if page is None:
            raise Mistake("This result is not in the log.")
        return page

    # -- apps of servers ------------------------------------------------------------------------------------------------------

    async def _open_app(self, act: a.AppResource) -> Any:
        return await self._apps.open(act.server, act.uri, act.session)

    async def _call_tool(self, act: a.CallTool) -> Any:
        if act.app:
            return {"call": self._apps.call(act.app, act.server, act.tool, act.arguments)}
        return {
            "call": self._apps.call_for_person(act.session, act.server, act.tool, act.arguments)
        }

    async def _app_read(self, act: a.AppRead) -> Any:
        return msgspec.to_builtins(await self._apps.read(act.app, act.uri))

    async def _app_link(self, act: a.AppLink) -> Any:
        return {"question": self._apps.link(act.app, act.url, act.call)}

    async def _app_context(self, act: a.AppContext) -> None:
        self._apps.context(act.app, act.content, act.structured_content)

    async def _close_app(self, act: a.CloseApp) -> None:
        self._apps.close(act.app)
