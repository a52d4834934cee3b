"""The slash commands of the chat that concern conversations: their list, branches and search."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from interlock.cli.screen import shown as seen

from ...fleet.events import LogEntry, PersonSaid
from ...host.conversations.branches import Branch, Fork
from ...host.conversations.search import said_text
from .actions import ChatActions
from .output import in_line

COMMANDS = {
    "sessions": "list all conversations",
    "resume": "continue an earlier conversation; /resume ID",
    "new": "start a new conversation",
    "project": "the projects; /project NAME starts a conversation in one, /project - in none",
    "rename": "give this conversation another title; /rename TITLE",
    "pin": "keep this conversation at the top of the list, or no longer",
    "delete": "erase a conversation from the log; /delete ID",
    "find": "search what was said; /find WORDS",
    "messages": "the messages of this conversation, with their numbers",
    "edit": "change message N and send it again; /edit N",
    "retry": "ask the model again after it gave no answer; /retry N for message N",
    "branch": "go on after message N, in a new branch; /branch N",
    "branches": "the branches of this conversation; /branches N K shows branch K at message N",
}
MOST_LISTED = 40
MOST_FOUND = 20
_SHOWN = 100  # characters of a message in the list


class CommandError(Exception):
    """The line is not a valid command; the message says what to type."""


class ConversationCommands:
    """Runs the commands that concern conversations."""

    def __init__(self, talk: ChatActions) -> None:
        self._talk = talk
        self._host = talk.host
        self._terminal = talk.terminal
        self.table: dict[str, Callable[[str], Awaitable[None]]] = {
            "sessions": self._sessions,
            "resume": self._resume,
            "new": self._new,
            "project": self._project,
            "rename": self._rename,
            "pin": self._pin,
            "delete": self._delete,
            "find": self._find,
            "messages": self._messages,
            "edit": self._edit,
            "retry": self._retry,
            "branch": self._branch,
            "branches": self._branches,
        }

    # -- the list ----------------------------------------------------------------------------------

    async def _sessions(self, rest: str) -> None:
        for row in (await self._host.conversations.rows())[:MOST_LISTED]:
            when = time.strftime("%d.%m.%Y %H:%M", time.localtime(max(row.began, row.spoke)))
            mark = "❯" if row.id == self._talk.session.id else " "
            pinned = "  pinned" if row.pinned else ""
            self._terminal.note(
                f"{mark} {row.id}  {when}  {row.model}  {row.turns} turns{pinned}  "
                f"{seen(row.title)}"
            )

    async def _resume(self, rest: str) -> None:
        if not rest:
            raise CommandError("/resume ID; /sessions lists them.")
        await self._must_be_there(rest)
        self._talk.begin(await self._host.resume(rest))

    async def _new(self, rest: str) -> None:
        now = self._talk.session
        project = now.project.name if now.project is not None else ""
        self._talk.begin(self._host.session(model=now.model.name, project=project))

    async def _project(self, rest: str) -> None:
        projects = self._host.projects.all
        if rest:
            if rest != "-" and rest not in projects:
                raise CommandError(f"There is no project {in_line(rest, 60)}.")
            model = self._talk.session.model.name
            name = "" if rest == "-" else rest
            self._talk.begin(self._host.session(model=model, project=name))
            return
        now = self._talk.session.project
        for project in projects.values():
            mark = "❯" if now is not None and project.name == now.name else " "
            servers = "all servers" if project.servers is None else ", ".join(project.servers)
            self._terminal.note(f"{mark} {in_line(project.name, 60)}  {in_line(servers)}")
        if not projects:
            self._terminal.note("There are no projects.")

    async def _rename(self, rest: str) -> None:
        if not rest:
            raise CommandError("/rename TITLE")
        await self._host.conversations.rename(self._talk.session.id, rest)

    async def _pin(self, rest: str) -> None:
        rows = await self._host.conversations.rows()
        pinned = any(row.pinned for row in rows if row.id == self._talk.session.id)
        await self._host.conversations.pin(self._talk.session.id, not pinned)
        self._terminal.note("No longer pinned." if pinned else "Pinned.")

    async def _delete(self, rest: str) -> None:
        if not rest:
            raise CommandError(
                "/delete ID erases a conversation from the log; /sessions lists them."
            )
        await self._must_be_there(rest)
        model = self._talk.session.model.name
        await self._host.conversations.delete(rest)
        self._terminal.note(f"{in_line(rest, 60)} is erased.")
        if rest == self._talk.session.id:
            self._talk.begin(self._host.session(model=model))

    async def _find(self, rest: str) -> None:
        if not rest:
            raise CommandError("/find WORDS")
        found = await self._host.conversations.find(rest, MOST_FOUND)
        for each in reversed(found):
            when = time.strftime("%d.%m.%Y %H:%M", time.localtime(each.at))
            who = "you" if each.by == "person" else "model"
            self._terminal.note(f"{each.session}  {when}  {in_line(each.title, 60)}", "bold")
            self._terminal.note(f"  {who}: {each.excerpt}")
        if not found:
            self._terminal.note("Nothing was found.")

    async def _must_be_there(self, session: str) -> None:
        if all(row.id != session for row in await self._host.conversations.rows()):
            raise CommandError(
                f"There is no conversation {in_line(session, 60)}; /sessions lists them."
            )

    # -- messages and branches ---------------------------------------------------------------------

    async def _messages(self, rest: str) -> None:
        branch = await self._chosen()
        forks = _forks(branch)
        for number, entry in enumerate(branch.messages, 1):
            who = "you" if isinstance(entry.event, PersonSaid) else "model"
            text = in_line(said_text(entry.event), _SHOWN) or "(only calls)"
            fork = forks.get(entry.seq)
            place = f"  branch {fork.chosen + 1} of {len(fork.ends)}" if fork else ""
            self._terminal.note(f"{number:>3} {who}: {text}{place}")

    async def _edit(self, rest: str) -> None:
        number, _, text = rest.partition(" ")
        entry = await self._message(number, "/edit N; /messages lists them.")
        if not isinstance(entry.event, PersonSaid):
            raise CommandError("You can edit your own messages; /retry N asks the model again.")
        if text.strip():
            await self._talk.turn(self._talk.session.edit(entry.seq, text.strip()))
        else:
            self._talk.write(f"/edit {number} {said_text(entry.event)}")

    async def _retry(self, rest: str) -> None:
        number = 0
        if rest:
            number = (await self._message(rest, "/retry, or /retry N")).seq
        await self._talk.turn(self._talk.session.retry(number))

    async def _branch(self, rest: str) -> None:
        entry = await self._message(rest, "/branch N; /messages lists them.")
        await self._talk.session.branch(entry.seq)
        self._terminal.note(f"Your next message goes on after message {rest}.")

    async def _branches(self, rest: str) -> None:
        branch = await self._chosen()
        words = rest.split()
        if not words:
            numbers = {entry.seq: number for number, entry in enumerate(branch.messages, 1)}
            for message, fork in _forks(branch).items():
                where = f"At message {numbers[message]}" if message else "At the end"
                self._terminal.note(f"{where}: branch {fork.chosen + 1} of {len(fork.ends)}")
            if not branch.forks:
                self._terminal.note("This conversation has one branch.")
            return
        usage = "/branches N K; /branches lists them."
        if len(words) != 2 or not words[1].isdecimal():
            raise CommandError(usage)
        entry = await self._message(words[0], usage)
        chosen = _forks(branch).get(entry.seq)
        if chosen is None or not 1 <= int(words[1]) <= len(chosen.ends):
            raise CommandError(usage)
        await self._talk.session.switch(chosen.ends[int(words[1]) - 1])
        self._talk.begin(self._talk.session)

    async def _chosen(self) -> Branch:
        return await self._host.conversations.branch(self._talk.session.id)

    async def _message(self, number: str, usage: str) -> LogEntry:
        messages = (await self._chosen()).messages
        if not (number.isdecimal() and 1 <= int(number) <= len(messages)):
            raise CommandError(usage)
        return messages[int(number) - 1]


def _forks(branch: Branch) -> dict[int, Fork]:
    """The forks by the number of the message that they are shown at; 0 for the end.

    An answer begins where the model was asked, before its message.
    """
    messages = branch.messages
    found: dict[int, Fork] = {}
    for fork in branch.forks:
        after = (each.seq for each in messages if fork.at and each.seq >= fork.at)
        found[next(after, 0)] = fork
    return found
