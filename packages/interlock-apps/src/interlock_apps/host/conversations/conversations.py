"""The conversations in the log of a host: their list, and what the person does with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from ...fleet.event_bus import EventBus
from ...fleet.events import SessionChanged, SessionDeleted
from ...fleet.log import Log, SessionRow
from ...fleet.log.interface import no_conversation
from ..file_copies import FileCopies
from ..running_tasks import RunningTasks
from .branches import Branch, Branches
from .html_export import to_html
from .markdown_export import to_markdown
from .search import MOST_FOUND, FoundMessage, find_messages
from .transcript import Transcript, transcript_of

LONGEST_TITLE = 200
"""Characters of a title."""


class OpenConversation(Protocol):
    """A conversation that is open in this host; see `Session`."""

    title: str

    async def switch(self, end: int) -> None:
        """Go on after an entry of another branch."""
        ...

    async def aclose(self) -> None:
        """Cancel the running turn, and wait for its end."""
        ...


class Conversations:
    """The conversations in the log, open or not.

    A message is named by the number of its entry in the log; `branch` returns the entries.

    Args:
        journal: The log.
        events: Receives changes.
        branches: Reads branches.
        open: The conversations that are open in this host, by id.
        tasks: The tasks of their calls.
        copies: Copies of files that their calls changed.
        end: Closes a conversation of this host.
    """

    def __init__(
        self,
        journal: Log,
        events: EventBus,
        branches: Branches,
        open: Mapping[str, OpenConversation],
        tasks: RunningTasks,
        copies: FileCopies,
        end: Callable[[str], None],
    ) -> None:
        self._journal = journal
        self._events = events
        self._branches = branches
        self._open = open
        self._tasks = tasks
        self._copies = copies
        self._end = end

    async def rows(self) -> Sequence[SessionRow]:
        """All conversations: the pinned ones first, each group by the person's last message.

        Raises:
            LogError: The log cannot be read.
        """
        await self._journal.flush()
        return in_order(await self._journal.sessions())

    async def rename(self, session: str, title: str) -> None:
        """Give a conversation another title.

        Raises:
            LogError: There is no such conversation.
            ValueError: The title is empty.
        """
        title = " ".join(title.split())[:LONGEST_TITLE]
        if not title:
            raise ValueError("The title is empty.")
        await self._must_be_there(session)
        if (open := self._open.get(session)) is not None:
            open.title = title
        self._events.publish(SessionChanged(session=session, title=title))

    async def pin(self, session: str, pinned: bool = True) -> None:
        """Keep a conversation at the top of the list, or no longer.

        Raises:
            LogError: There is no such conversation.
        """
        await self._must_be_there(session)
        self._events.publish(SessionChanged(session=session, pinned=pinned))

    async def delete(self, session: str) -> SessionDeleted:
        """End a conversation, cancel its tasks, and erase its content from the log, with the copies
        of files that its calls changed.

        Its entries stay in the hash chain of the log, without their content (see `Log.delete`).

        Raises:
            LogError: There is no such conversation, or the log cannot be written.
        """
        await self._must_be_there(session)
        open = self._open.get(session)
        self._end(session)
        if open is not None:
            await open.aclose()
        await self._tasks.abandon(session)
        self._copies.forget(session)
        noted = await self._journal.delete(session)
        self._events.pass_on(noted)
        assert isinstance(noted.event, SessionDeleted)
        return noted.event

    async def branch(self, session: str, at: int = 0) -> Branch:
        """The chosen branch of a conversation, or the newest one through an entry.

        Raises:
            LogError: The log cannot be read.
            ValueError: There is no such conversation, or no such entry.
        """
        return await self._branches.of(session, at)

    async def switch(self, session: str, end: int) -> None:
        """Choose another branch of a conversation: it goes on after this entry.

        Raises:
            Busy: A turn runs.
            LogError: The log cannot be read.
            ValueError: There is no such conversation, or no such entry.
        """
        if (open := self._open.get(session)) is not None:
            await open.switch(end)
        else:
            (await self._branches.of(session, end)).until(end)
            self._branches.choose(session, end)

    async def show(self, session: str, message: int) -> None:
        """Choose the branch that has a message, unless the chosen one has it.

        Raises:
            Busy: The message is in another branch, and a turn runs.
            LogError: The log cannot be read.
            ValueError: There is no such conversation or message.
        """
        with_message = await self._branches.of(session, message)
        chosen = await self._branches.of(session)
        if all(entry.seq != message for entry in chosen.entries):
            await self.switch(session, with_message.entries[-1].seq)

    async def find(self, words: str, limit: int = MOST_FOUND) -> Sequence[FoundMessage]:
        """The messages of all conversations that contain every word, newest first.

        A word also stands for longer words that begin with it.

        Raises:
            LogError: The log cannot be read.
        """
        return await find_messages(self._journal, words, limit)

    async def to_markdown(self, session: str) -> str:
        """The chosen branch of a conversation as Markdown, with untrusted texts inert.

        Raises:
            LogError: The log cannot be read.
            ValueError: There is no such conversation.
        """
        return to_markdown(await self._transcript(session))

    async def to_html(self, session: str) -> str:
        """The chosen branch of a conversation as one HTML file that loads nothing.

        Raises:
            LogError: The log cannot be read.
            ValueError: There is no such conversation.
        """
        return to_html(await self._transcript(session))

    async def _transcript(self, session: str) -> Transcript:
        branch = await self._branches.of(session)
        title = next((row.title for row in await self.rows() if row.id == session), "")
        return transcript_of(branch, title)

    async def _must_be_there(self, session: str) -> None:
        if all(row.id != session for row in await self.rows()):
            raise no_conversation(session)


def in_order(rows: Iterable[SessionRow]) -> list[SessionRow]:
    """The pinned conversations first, each group by the person's last message, newest first."""
    return sorted(rows, key=lambda row: (not row.pinned, -max(row.began, row.spoke)))
