"""Runs the acts of a page that concern conversations: their list, branches and search."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ...web.page_site import ActError
from ..conversations.projects import Project, rules_text
from ..spending import spending
from . import acts as a
from .history import MOST_NOTES, read_history
from .state import plain

if TYPE_CHECKING:
    from ..app import Host
    from ..session import Session

MOST_FOUND = 200

StartTurn = Callable[[Any, str], Awaitable[None]]


class ConversationActs:
    """Runs acts on the conversations of a host.

    Args:
        host: The host.
        start: Runs a turn of a conversation in the background.
        session: Returns a conversation that is open.
    """

    def __init__(self, host: Host, start: StartTurn, session: Callable[[str], Session]) -> None:
        self._host = host
        self._start = start
        self._session = session
        self.table: dict[type[a.HostAct], Callable[[Any], Awaitable[Any]]] = {
            a.OpenSessionAct: self._open,
            a.EditMessageAct: self._edit,
            a.SpendingAct: self._spending,
            a.RetryAct: self._retry,
            a.BranchAct: self._branch,
            a.SwitchBranchAct: self._switch,
            a.ShowMessageAct: self._show,
            a.FindMessagesAct: self._find,
            a.ChangeSessionAct: self._change,
            a.DeleteSessionAct: self._delete,
            a.ReadProjectAct: self._read_project,
            a.SaveProjectAct: self._save_project,
            a.RemoveProjectAct: self._remove_project,
        }

    async def _open(self, act: a.OpenSessionAct) -> Any:
        live = act.session in self._host.sessions
        if act.turns:
            history = await read_history(
                self._host, act.session, turns=act.turns, before=act.before
            )
            if act.before:
                return {**history, "live": live}
            queued = self._host.sessions[act.session].queued if live else ()
            return {
                **history,
                "live": live,
                "queued": plain(queued),
            }
        await self._host.log.flush()
        notes = await self._host.log.read(act.session, after=act.after, limit=MOST_NOTES)
        return {"notes": [plain(noted) for noted in notes], "live": live}

    async def _spending(self, act: a.SpendingAct) -> Any:
        return plain(await spending(self._host.log, act.session))

    async def _edit(self, act: a.EditMessageAct) -> None:
        if not act.text.strip():
            raise ActError("The message is empty.")
        await self._start(self._session(act.session).edit(act.message, act.text), act.session)

    async def _retry(self, act: a.RetryAct) -> None:
        await self._start(self._session(act.session).retry(act.message), act.session)

    async def _branch(self, act: a.BranchAct) -> None:
        await self._session(act.session).branch(act.message)

    async def _switch(self, act: a.SwitchBranchAct) -> None:
        await self._host.conversations.switch(act.session, act.end)

    async def _show(self, act: a.ShowMessageAct) -> None:
        await self._host.conversations.show(act.session, act.message)

    async def _find(self, act: a.FindMessagesAct) -> Any:
        limit = min(max(act.limit, 1), MOST_FOUND)
        found = await self._host.conversations.find(act.words, limit)
        return {"found": [plain(message) for message in found]}

    async def _change(self, act: a.ChangeSessionAct) -> None:
        if act.title is not None:
            await self._host.conversations.rename(act.session, act.title)
        if act.pinned is not None:
            await self._host.conversations.pin(act.session, act.pinned)

    async def _read_project(self, act: a.ReadProjectAct) -> Any:
        text = self._host.projects.text(act.name)
        return {"text": text, "rules": rules_text(text)}

    async def _save_project(self, act: a.SaveProjectAct) -> Any:
        project = Project(
            name=act.name.strip(),
            instructions=act.instructions,
            servers=act.servers,
            folders=act.folders,
        )
        saved = self._host.projects.save(project, act.rules, act.was)
        return {"name": saved.name, "file": str(saved.source)}

    async def _remove_project(self, act: a.RemoveProjectAct) -> None:
        self._host.projects.remove(act.name)

    async def _delete(self, act: a.DeleteSessionAct) -> None:
        await self._host.conversations.delete(act.session)
