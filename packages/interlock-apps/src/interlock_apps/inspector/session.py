"""The session of an inspector: connections to servers, and the tapes that their messages are on.

Every connection is a `Client` whose messages go to one tape. The timeline reads the rows of tapes
only, so that a live conversation and a recorded one are shown by the same code.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, Literal

from interlock import REVISIONS, Client, ClientSettings, Implementation, InterlockError
from interlock.tape import RecordedConnection, Recorder

from ..web.app_sandbox import AppSandbox
from .events import InspectorEvent, InspectorEvents, Publish
from .features import ConnectionFeatures
from .model_replies import ModelReplies
from .questions import ConnectionQuestions
from .recorded_answers import RecordedAnswers, find_recorded
from .recordings import LIVE, Recording, Recordings
from .saved_calls import SavedCalls
from .targets import AUTO, InspectorTarget
from .timeline import Timelines

MOST_LIVE = 40
"""Connections to servers."""

MOST_CONNECTIONS = 500
"""Connections that are listed. The rows of further connections of a tape are shown too."""

Status = Literal["closed", "opening", "open", "failed", "recorded"]
"""The status of a connection. A connection of a tape is "recorded" and never opened."""


class Connection:
    """One connection of the inspector: a live one to a target, or a recorded one.

    Args:
        name: Its unique name.
        target: The server or tape.
        recording: The name of the recording that has its messages.
        record: Starts to record a new connection, and returns its tap; None for a recorded one.
        publish: Publishes an event to the pages.
        questions: Its questions, the rules for them, and the roots.
    """

    def __init__(
        self,
        name: str,
        target: InspectorTarget,
        recording: str,
        record: Callable[[], RecordedConnection] | None,
        publish: Publish,
        questions: ConnectionQuestions,
    ) -> None:
        self.name = name
        self.target = target
        self.recording = recording
        self.client: Client | None = None
        """The client, while the connection is open."""
        self.asked = target.revision
        """The revision that was asked for: "auto", or one of the five."""
        self.revision = ""
        """The revision in use; "" while there is none."""
        self.status: Status = "recorded" if record is None else "closed"
        self.words = ""
        """Why the connection failed."""
        self.opened = 0
        """How often it was opened."""
        self.questions = questions
        self.features = ConnectionFeatures(name, target.url, target.account, publish)
        self._record = record
        self._publish = publish
        self._changing = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def open(self, revision: str | None = None) -> None:
        """Connect, or connect again. Errors are kept in `words`.

        Args:
            revision: "auto" or a revision; None for the same as before.
        """
        async with self._changing:
            await self._close()
            self.asked = revision or self.asked
            self._set("opening")
            try:
                client = self._client()
                await client.open()
            except (InterlockError, OSError, ValueError, TypeError, ImportError) as bad:
                self._set("failed", str(bad))
            except BaseException:
                self._set("closed")
                raise
            else:
                self.client = client
                self.revision = client.revision
                self.opened += 1
                self._set("open")

    async def close(self) -> None:
        """Close the connection, and stop the server if it is a child process."""
        async with self._changing:
            await self._close()
            if self.status != "recorded":
                self._set("closed")

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a coroutine in a task that is cancelled when the connection closes."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def settled(self) -> None:
        """Wait until everything that `spawn` started has ended."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def state(self) -> dict[str, Any]:
        """The connection as JSON values."""
        client = self.client
        info = client.server_info if client is not None else None
        return {
            "name": self.name,
            "target": self.target.shown,
            "words": self.target.words,
            "recording": self.recording,
            "status": self.status,
            "failure": self.words,
            "asked": self.asked,
            "revision": self.revision,
            "opened": self.opened,
            "server": info,
            "instructions": client.instructions if client is not None else None,
            "capabilities": client.server_capabilities if client is not None else None,
            "questions": self.questions.state(),
            "features": self.features.state(self.questions),
        }

    def _client(self) -> Client:
        assert self._record is not None and self.target.transport is not None
        return Client(
            self.target.transport(self._record()),
            answers=self.questions.answers,
            info=Implementation(name="interlock-inspector", version="1"),
            revision=None if self.asked == AUTO else self.asked,
            # Each act of the page is to be seen as a message, and so is each wrong result.
            settings=ClientSettings(cache=False, validate=False),
        )

    async def _close(self) -> None:
        self.questions.cancel()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        client = self.client
        self.client = None
        self.revision = ""
        if client is not None:
            with contextlib.suppress(InterlockError, OSError):
                await client.aclose()

    def _set(self, status: Status, words: str = "") -> None:
        self.status = status
        self.words = words
        self._publish(InspectorEvent("connection", self.name, changes_state=True))


class Inspector:
    """The connections of an inspector, its tapes, and the events for its pages.

    Args:
        targets: What the command line named.
        recorder: The tape of the live connections.
        calls: The file of the saved calls.

    Raises:
        OSError: A tape cannot be read.
        TapeError: A target is not a tape, or its version is not supported.
    """

    def __init__(
        self, targets: Iterable[InspectorTarget], recorder: Recorder, *, calls: Path
    ) -> None:
        self.events = InspectorEvents()
        self.recordings = Recordings(self.publish)
        self.connections: dict[str, Connection] = {}
        self.saved = SavedCalls(calls)
        self.timelines = Timelines()
        self.sandbox: AppSandbox | None = None
        """The frames of MCP Apps; None until a page is served."""
        self.replies = ModelReplies()
        """Answers questions with the configured model."""
        self._answers: dict[str, RecordedAnswers] = {}
        self._tapes: dict[str, InspectorTarget] = {}
        self._opening: set[asyncio.Task[None]] = set()
        self._recorder = recorder
        try:
            self.tape = self.recordings.add(LIVE, recorder.path)
            """The tape of the live connections."""
            while self.tape.refresh():
                pass  # an earlier recording in the same file: its sections are counted
            sections = sum(1 for header in self.tape.file.headers if header.version)
            self._section = f"{sections}:" if sections > 1 else ""  # as the index names it
            for target in targets:
                if target.tape is None:
                    self._add_live(target, target.name)
                else:
                    self._tapes[self.recordings.add(target.name, target.tape).name] = target
        except BaseException:
            self.recordings.close()
            raise
        for recording in self.recordings:
            self._name_connections(recording)

    def publish(self, event: InspectorEvent) -> None:
        """Tell the open pages of an event."""
        self.events.publish(event)

    def connection(self, name: str) -> Connection:
        """Return a connection, open or not. Raises InterlockError if there is none of that name."""
        found = self.connections.get(name)
        if found is None:
            raise InterlockError(f"There is no connection {name}.")
        return found

    def connected(self, name: str) -> Connection:
        """Return an open connection. Raises InterlockError if there is none of that name."""
        found = self.connections.get(name)
        if found is None or found.client is None:
            raise InterlockError(f"{name} is not connected.")
        return found

    async def open(self) -> None:
        """Open the live connections, each in its own time."""
        opening = [one.open() for one in self.connections.values() if one.target.transport]
        await asyncio.gather(*opening)

    async def follow(self) -> None:
        """Index the tapes as they grow, until cancelled."""
        await self.recordings.follow(self._name_connections)

    def refresh(self) -> None:
        """Index what was written to the tapes since the last time, one piece of each."""
        self.recordings.refresh(self._name_connections)

    async def aclose(self) -> None:
        """Close all connections, and the tapes."""
        for task in self._opening:
            task.cancel()
        await asyncio.gather(*self._opening, return_exceptions=True)
        await asyncio.gather(*(one.close() for one in self.connections.values()))
        for one in self.connections.values():
            await one.features.authorization.aclose()
        await self.replies.aclose()
        self.recordings.close()

    def state(self) -> dict[str, Any]:
        """Everything but the rows, as JSON values."""
        return {
            "revisions": [AUTO, *REVISIONS],
            "saved": self.saved.state(),
            "appsOrigin": self.sandbox.origin if self.sandbox is not None else "",
            "connections": [one.state() for one in self.connections.values()],
            "recordings": [
                {
                    "name": one.name,
                    "path": str(one.path),
                    "count": len(one.rows),
                    "complete": one.is_complete,
                }
                for one in self.recordings
            ],
        }

    def duplicate(self, connection: Connection) -> Connection:
        """Add another connection to the target of a connection, and open it.

        Raises InterlockError if there are too many connections.
        """
        live = [one for one in self.connections.values() if one.target.transport is not None]
        if len(live) >= MOST_LIVE:
            raise InterlockError(f"There are {MOST_LIVE} connections, which is the maximum.")
        number = 2
        while f"{connection.target.name} ({number})" in self.connections:
            number += 1
        made = self._add_live(connection.target, f"{connection.target.name} ({number})")
        made.asked = connection.asked
        self._opening.add(task := asyncio.get_running_loop().create_task(made.open()))
        task.add_done_callback(self._opening.discard)
        return made

    def saved_changed(self) -> None:
        """Tell the pages that the saved calls have changed."""
        self.publish(InspectorEvent("saved", changes_state=True))

    def _add_live(self, target: InspectorTarget, name: str) -> Connection:

        def record() -> RecordedConnection:
            tap = self._recorder.connection()
            self.tape.connections[self._section + tap.name] = name
            return tap

        questions = self._questions(name)
        made = Connection(name, target, LIVE, record, self.publish, questions)
        self.connections[name] = made
        return made

    def _questions(self, name: str) -> ConnectionQuestions:
        return ConnectionQuestions(name, self.publish, self._find_recorded, self.replies)

    def _find_recorded(self, method: str, params: Any) -> Any:
        """The answer of a tape to the same question; None if no tape has one."""
        self.refresh()
        for recording in self.recordings:
            if recording.name not in self._answers:
                self._answers[recording.name] = RecordedAnswers(recording.file)
        return find_recorded(self._answers.values(), method, params)

    def _name_connections(self, recording: Recording) -> None:
        """Add the connections of a tape that were found since the last time."""
        target = self._tapes.get(recording.name)
        for number in recording.new_connections():
            shown = target or InspectorTarget(recording.path.name, str(recording.path))
            name = f"{shown.name}/{number}" if number else shown.name
            recording.connections[number] = name
            if len(self.connections) < MOST_CONNECTIONS:
                made = Connection(
                    name, shown, recording.name, None, self.publish, self._questions(name)
                )
                self.connections[name] = made
                self.publish(InspectorEvent("connection", name, changes_state=True))
