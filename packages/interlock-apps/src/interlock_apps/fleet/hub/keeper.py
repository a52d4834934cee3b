"""Keeping one server up: starts it, watches it, and restarts it after a loss."""

from __future__ import annotations

import asyncio
import logging

from interlock import Client, InterlockError, Unreachable
from interlock.configs import Entry, confinement_of
from interlock.redaction import Redactor

from ..events import Event, Notice, ResourceUpdated, ServerState
from .connect import transport_for
from .log_buffer import ServerLogBuffer
from .options import HubOptions
from .owner import HubOwner, OfferedFeatures, State
from .revision import ServerRevision
from .status import ServerStatus
from .supervised_client import SupervisedClient
from .timeouts import CleanupTasks, cancelled, within

log = logging.getLogger("interlock_apps.host")

STOPPED = "It was stopped."
_MOST_WORDS = 2_000  # characters of the reason for a state
_MOST_OF_A_LINE = 400  # characters of one line of stderr in that reason


class ServerKeeper:
    """Starts one server, and restarts it with a backoff when it is lost.

    Attributes:
        entry: The server's configuration.
        status: The server's state.
        log: The last log messages and lines of stderr.
        client: The client of the server, from when it accepts requests until it is lost; else None.
    """

    def __init__(
        self,
        entry: Entry,
        owner: HubOwner,
        options: HubOptions,
        cleanup: CleanupTasks,
        *,
        after: asyncio.Task[None] | None = None,
    ) -> None:
        self.entry = entry
        self.status = ServerStatus()
        self.client: SupervisedClient | None = None
        self.redactor = Redactor(entry.secrets)
        self.log = ServerLogBuffer(
            entry.id,
            self.redactor,
            self._publish,
            options.clock,
            options.limits.lines_a_second,
        )
        self._owner = owner
        self._options = options
        self._cleanup = cleanup
        self._after = after  # closing of the server that had this id before
        self._revision = ServerRevision(entry, options.revisions, cleanup)
        self._watched: dict[str, None] = {}
        self._admitted = False
        self._needs_login = False
        self._is_closed = False
        self._lock = asyncio.Lock()  # held while starting or stopping
        self._keeping: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._changing_revision: asyncio.Task[None] | None = None

    # -- starting and stopping -----------------------------------------------------------------

    def begin(self) -> None:
        """Start the server in the background, unless the configuration switches it off."""
        if self.entry.disabled:
            self._enter("off", "It is switched off in the configuration.")
        elif self._keeping is None:
            self._start_keeping()

    async def start(self) -> None:
        """Start the server in the background, also if it is off, refused, or to be retried."""
        async with self._lock:
            done = self._keeping is None or self._keeping.done()
            if done or self.status.state == "down":
                await self._end("Started.")
                self._start_keeping()

    async def stop(self, words: str = STOPPED) -> None:
        """Stop the server and wait until its process has exited."""
        async with self._lock:
            await self._end(words)

    async def close(self, words: str = "The host has ended.") -> None:
        """Stop the server for good."""
        self._is_closed = True
        await self.stop(words)

    async def restart(self) -> None:
        """Stop the server, and start it in the background."""
        async with self._lock:
            await self._end("It is started again.")
            self._start_keeping()

    def adopt(self, entry: Entry) -> None:
        """Replace the entry by one that does not need a restart."""
        before = self.entry
        self.entry = entry
        if entry.secrets != before.secrets:
            self.redactor.learn(entry.secrets)
        if entry.roots != before.roots:
            self.roots_changed()
        self._publish_features()

    @property
    def start_seconds(self) -> float:
        """The timeout of a start, in seconds."""
        own = self.entry.start_seconds
        return self._options.limits.start if own is None else own

    @property
    def call_seconds(self) -> float | None:
        """The timeout of a request, in seconds; None: no timeout."""
        own = self.entry.timeout
        return self._options.limits.call if own is None else own

    def _start_keeping(self) -> None:
        if self._is_closed:
            return
        self._enter("starting")
        self._keeping = asyncio.get_running_loop().create_task(self._keep())

    async def _end(self, words: str) -> None:
        keeping = self._keeping
        self._keeping = None
        changing = self._changing_revision
        if changing is not None and changing is not asyncio.current_task():
            changing.cancel()
        self._lose("off", words)
        if keeping is not None:
            keeping.cancel()
            await asyncio.wait({keeping})
        before = {task for task in (self._closing, self._after) if task is not None}
        if before:  # the server that had this id before may still be closing
            await asyncio.wait(before)

    async def _keep(self) -> None:
        """Start the server, watch it, and restart it after each loss."""
        options = self._options
        if self._after is not None:
            await asyncio.wait({self._after})
        if not await self._is_admitted():
            return
        failed = 0
        while True:
            attempts = "attempt" if failed == 1 else "attempts"
            self._enter("starting", f"Retrying after {failed} failed {attempts}." if failed else "")
            seconds_up, why = await self._run_once()
            if self._needs_login and options.await_login:
                return self._lose("login", why)
            failed = 1 if seconds_up >= options.backoff.steady else failed + 1
            seconds = options.backoff.seconds(failed, options.chance())
            retry = f"Retrying in {round(seconds, 1):g} s."
            self._lose("down", f"{why} {retry}{self._last_stderr()}")
            if self._closing is not None:
                await asyncio.wait({self._closing})
            await options.sleep(seconds)

    async def _is_admitted(self) -> bool:
        """Ask for permission to start, before the first start."""
        if self._admitted:
            return True
        try:
            self._admitted = self._owner.may_start(self.entry)
            if not self._admitted:
                self._enter("waiting", "Permission to start is needed.")
                self._admitted = await self._owner.admit(self.entry)
        except Exception as bad:
            log.exception("asking for permission to start %s failed", self.entry.id)
            words = self._in_words(bad)
            self._enter("refused", f"Asking for permission to start it failed: {words}")
            return False
        if not self._admitted:
            self._enter("refused", "Permission to start was denied.")
        return self._admitted

    async def _run_once(self) -> tuple[float, str]:
        """Run the server from its start to its loss.

        Returns:
            How many seconds the server was up, and why it ended.
        """
        clock = self._options.clock
        client: SupervisedClient | None = None
        since: float | None = None
        self.log.process_started()
        try:
            client = self._new_client()
            await client.open(self.start_seconds)
            self._revision.opened(client.client)
            self.client = client
            self.status.notify()
            await client.fetch()
            if not client.is_over:
                since = clock()
                self._enter("up")
                self._publish_features()
                for uri in self._watched:
                    client.watch_again(uri)
            why: BaseException = await client.wait_until_lost()
        except Exception as bad:
            why = bad
            if client is None or not client.opened:
                self._revision.forget()
        finally:
            if client is not None:
                self._closing = self._cleanup.start(client.aclose())
        self._needs_login = isinstance(why, Unreachable) and why.status == 401
        return (0.0 if since is None else clock() - since), self._in_words(why)

    def _new_client(self) -> SupervisedClient:
        options = self._options
        entry = self.entry
        target = None if options.target is None else options.target(entry)
        if target is None:
            target = transport_for(
                entry,
                on_stderr=self.log.add_line,
                auth=None if options.auth is None else options.auth(entry),
                patience=options.limits.patience,
                sandbox=confinement_of(
                    entry, () if options.roots is None else options.roots(entry.id)
                ).sandbox,
            )
        if options.record is not None:
            options.record.redactor.add(*entry.secrets)
        if options.messages is not None:
            options.messages.redactor.add(*entry.secrets)
        return SupervisedClient(
            entry.id,
            target,
            self,
            options,
            answers=self._owner.answers(entry),
            log_buffer=self.log,
            revision=entry.revision or None,
            known=self._revision.known,
        )

    # -- what the client reports -----------------------------------------------------------------

    def lists_changed(self) -> None:
        """Publish the features after a list has changed."""
        self._publish_features()

    def resource_updated(self, uri: str) -> None:
        """Publish that a watched resource has changed."""
        self._publish(ResourceUpdated(server=self.entry.id, uri=uri))

    def failed(self, words: str) -> None:
        """Publish that something could not be fetched."""
        self._publish(Notice(level="warning", words=words, server=self.entry.id))

    # -- watched resources and roots ---------------------------------------------------------------

    async def watch_uri(self, uri: str) -> bool:
        """Publish each change of a resource; return whether the server announces changes."""
        self._watched[uri] = None
        return await self.client.watch(uri) if self.client is not None else False

    async def unwatch_uri(self, uri: str) -> None:
        """Stop publishing changes of a resource."""
        self._watched.pop(uri, None)
        if self.client is not None:
            self.client.unwatch(uri)

    def roots_changed(self) -> None:
        """Tell the server that its roots have changed."""
        if self.client is not None and self.client.client.connected:
            self.client.client.roots_changed()

    # -- an older revision for questions -----------------------------------------------------------

    def use_older_revision(self, client: SupervisedClient, revision: str) -> None:
        """Restart under the only revision that lets the server ask questions, once it is idle."""
        if self._changing_revision is not None and not self._changing_revision.done():
            return
        self._revision.require(revision)
        words = (
            f"It can ask you questions only under {revision} or an older revision. "
            "It is started again, and used under that revision from now on."
        )
        self.failed(words)
        self._changing_revision = asyncio.get_running_loop().create_task(
            self._restart_when_idle(client)
        )

    async def _restart_when_idle(self, client: SupervisedClient) -> None:
        await client.until_idle()
        if client is self.client:  # otherwise it was restarted already
            await self.restart()

    async def restarted_for_questions(self) -> bool:
        """Wait for a restart under an older revision; return whether the server is up after one.

        A request that failed because the server could not ask a question can be repeated then.
        """
        task = self._changing_revision
        if task is None:
            return False
        await asyncio.wait({task})
        if task.cancelled() or task.exception() is not None:
            return False
        starting = asyncio.ensure_future(
            self.status.wait_while(lambda: self.status.state == "starting")
        )
        try:
            seconds = self.start_seconds + self._options.limits.lists
            await within(starting, seconds, self._options.sleep)
        finally:
            await cancelled(starting)
        return self.status.state == "up"

    async def reached(self) -> SupervisedClient | None:
        """Wait while the server is starting; return its client, or None if it is not up."""
        if self._is_starting():
            waiting = asyncio.ensure_future(self.status.wait_while(self._is_starting))
            try:
                await within(waiting, self.start_seconds, self._options.sleep)
            finally:
                await cancelled(waiting)
        return self.client

    def _is_starting(self) -> bool:
        return self.status.state == "starting" and self.client is None

    # -- states ----------------------------------------------------------------------------------

    def _enter(self, state: State, words: str = "") -> None:
        if not self.status.set(state, words):
            return
        features = self._features()
        spoken = self.client.client if self.client is not None else None
        resources = self.client.lists.resources if self.client is not None else ()
        event = ServerState(
            server=self.entry.id,
            state=state,
            words=words,
            revision=_revision(spoken),
            tools=len(features.tools),
            resources=len(resources) if state == "up" else 0,
            prompts=len(features.prompts),
        )
        self._publish(event)

    def _lose(self, state: State, words: str) -> None:
        """Enter a state in which the server is not up and offers nothing."""
        was_up = self.client is not None and self.status.state == "up"
        self.client = None
        self._enter(state, words)
        if was_up:
            self._publish_features()

    def _features(self) -> OfferedFeatures:
        state = self.status.state
        client = self.client
        if client is None or state != "up":
            return OfferedFeatures(entry=self.entry, state=state)
        return OfferedFeatures(
            entry=self.entry,
            state=state,
            tools=client.lists.tools,
            prompts=client.lists.prompts,
            instructions=client.client.instructions,
        )

    def _publish(self, event: Event) -> None:
        try:
            self._owner.publish(event)
        except Exception:
            log.exception("a listener for events failed")

    def _publish_features(self) -> None:
        try:
            self._owner.features_changed(self._features())
        except Exception:
            log.exception("a listener for changes of %s failed", self.entry.id)

    def _in_words(self, bad: BaseException) -> str:
        """An error in one or two sentences, without secrets."""
        self.redactor.hide(bad)
        words = f"{bad.args[0]}" if isinstance(bad, Unreachable) else str(bad)
        if not isinstance(bad, InterlockError):
            words = f"{type(bad).__name__}: {words}"
        code = ""
        if isinstance(bad, Unreachable) and bad.exit_code is not None:
            code = f" (exit code {bad.exit_code})"
        return self.redactor.beginning(f"{words.strip().rstrip('.')}{code}.", _MOST_WORDS)

    def _last_stderr(self) -> str:
        """The last lines of the process's stderr."""
        lines = "\n".join(
            self.redactor.beginning(line, _MOST_OF_A_LINE) for line in self.log.last_stderr
        )
        return f"\nLast lines of stderr:\n{lines}" if lines else ""


def _revision(client: Client | None) -> str:
    return client.revision if client is not None and client.connected else ""
