"""The one client kept for a configured server: started, watched, and begun again when it has gone."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeVar

from msgspec import Struct

from interlock import (
    Answers,
    CallToolResult,
    Client,
    Implementation,
    InterlockError,
    McpError,
    ProtocolError,
    Skill,
    TimedOut,
    Unreachable,
)
from interlock.configs import Entry
from interlock.redaction import Redactor
from interlock.skills import EXTENSION, SkillEntry
from interlock.types import (
    Completion,
    GetPromptResult,
    ProgressNotificationParams,
    Prompt,
    PromptReference,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    ResourceTemplateReference,
    ServerCapabilities,
    Tool,
)

from ..events import Event, Notice, ResourceUpdated, ServerLogLine, ServerState
from ..nesting import too_deep
from .backoff import Backoff
from .connect import transport_for
from .known_revisions import KnownRevisions, said
from .limits import HubLimits
from .log_buffer import ServerLogBuffer
from .supervised_client import SupervisedClient
from .timeouts import CleanupTasks, Sleep, cancelled, within

log = logging.getLogger("interlock_apps.host")

State = Literal["waiting", "starting", "up", "down", "off", "refused"]
R = TypeVar("R")
STOPPED = "It was stopped."
_MOST_WORDS = 2_000  # characters of why a server is in a state
_MOST_OF_A_LINE = 400  # characters of a line of stderr in it


class HubServices(Struct, frozen=True, kw_only=True):
    """What all links of a hub have in common; see Hub for what it means."""

    answers: Callable[[str], Answers]
    tell: Callable[[Event], None]
    changed: Callable[[ManagedServer], None]
    admit: Callable[[Entry], Awaitable[bool]] | None
    name: str
    auth: Callable[[Entry], Any] | None
    target: Callable[[Entry], Any] | None
    backoff: Backoff
    bounds: HubLimits
    verdicts: KnownRevisions
    clock: Callable[[], float]
    sleep: Sleep
    chance: Callable[[], float]
    endings: CleanupTasks


class ManagedServer:
    """A server as the host sees it, by the id of its entry, never by what it calls itself (`TOL-21`, `HST-04`).

    Attributes:
        entry: As it is configured.
        state: "waiting" for the person's leave, "starting", "up", "down" (it is tried again), "off" or "refused".
        words: Why it is in that state.
        settled: Set once it has been up, has failed, or is not to be started.
    """

    def __init__(
        self, entry: Entry, surroundings: HubServices, *, after: asyncio.Task[None] | None = None
    ) -> None:
        self.entry, self._around, self._after = entry, surroundings, after
        self.state: State = "off"
        self.words = "It was not started yet."
        self.settled = asyncio.Event()
        self._redactor = Redactor(entry.secrets)
        self._voice = ServerLogBuffer(
            entry.id,
            self._redactor,
            self._tell,
            surroundings.clock,
            surroundings.bounds.lines_a_second,
        )
        self._life: SupervisedClient | None = None  # from when it can be asked until it is lost
        self._keeper: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()  # starting and stopping, one after another
        self._moved = asyncio.Event()  # set, and replaced, when something is different
        self._watched: dict[str, None] = {}
        self._admitted = self._is_closed = False
        self._known: str | None = None  # the revision that was spoken
        self._going_back: asyncio.Task[None] | None = None  # to a revision under which it can ask

    # -- what it offers -----------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The server's name in the configuration."""
        return self.entry.id

    @property
    def tools(self) -> list[Tool]:
        """Its tools, as last fetched; [] while it is not up. So are the other lists."""
        return self._life.lists.tools if self._life is not None and self.state == "up" else []

    @property
    def prompts(self) -> list[Prompt]:
        """Its prompts."""
        return self._life.lists.prompts if self._life is not None and self.state == "up" else []

    @property
    def resources(self) -> list[Resource]:
        """Its resources."""
        return self._life.lists.resources if self._life is not None and self.state == "up" else []

    @property
    def templates(self) -> list[ResourceTemplate]:
        """Its resource templates."""
        return self._life.lists.templates if self._life is not None and self.state == "up" else []

    @property
    def skills(self) -> list[Skill]:
        """The skills that it lists. It may have more, which `skill` finds by their URIs."""
        return self._life.lists.skills if self._life is not None and self.state == "up" else []

    @property
    def offers_skills(self) -> bool:
        """Whether it is up and declares the skills extension."""
        if self._life is None or self.state != "up":
            return False
        return EXTENSION in (self._life.client.server_capabilities.extensions or {})

    @property
    def instructions(self) -> str | None:
        """Its hint on how to use it, which is not to be trusted; None while it is not up."""
        return self._life.client.instructions if self._life is not None else None

    @property
    def info(self) -> Implementation | None:
        """What it says it is, for display only; None while it is not up."""
        return self._life.client.server_info if self._life is not None else None

    @property
    def revision(self) -> str:
        """The revision that is spoken with it; empty while it is not up."""
        return (
            self._life.client.revision
            if self._life is not None and self._life.client.connected
            else ""
        )

    @property
    def capabilities(self) -> ServerCapabilities:
        """What it says it can do."""
        return (
            self._life.client.server_capabilities
            if self._life is not None
            else ServerCapabilities()
        )

    @property
    def log(self) -> deque[ServerLogLine]:
        """The last 1,000 of its log messages and lines of stderr."""
        return self._voice.log

    # -- requests ------------------------------------------------------------------------------------------

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        on_progress: Callable[[ProgressNotificationParams], None] | None = None,
        timeout: float | None = None,
        asker: Any = None,
    ) -> CallToolResult:
        """Call a tool, as Client.call_tool does; `timeout` in seconds, else the entry's, else that of the bounds.

        Where the server is just starting the call waits for it. Raises Unreachable, with words, where it is not up or goes away,
        TimedOut, McpError and ProtocolError; secrets of the entry do not stand in them.
        """
        seconds = self._seconds(timeout)
        return await self._ask(
            lambda client: client.call_tool(
                tool, arguments, timeout=seconds, on_progress=on_progress, asker=asker
            )
        )

    async def read(
        self, uri: str, *, timeout: float | None = None, asker: Any = None
    ) -> ReadResourceResult:
        """Read what stands behind a URI. Raises what `call` raises."""
        seconds = self._seconds(timeout)
        return await self._ask_harmless(
            lambda client: client.read_resource(uri, timeout=seconds, asker=asker)
        )

    async def skill(self, uri: str) -> Skill:
        """A skill as the server describes it now. Raises what `call` raises, and SkillError."""
        return await self._ask(lambda client: client.skill(uri))

    async def read_skill(self, entry: SkillEntry, path: str) -> bytes:
        """A file of a skill, compared with the entry that is given. Raises what `skill` raises."""
        return await self._ask_harmless(lambda client: Skill(client, entry).read_bytes(path))

    async def list_skill(self, entry: SkillEntry, path: str) -> list[str]:
        """The names in a folder of a skill. Raises what `skill` raises."""
        return await self._ask_harmless(lambda client: Skill(client, entry).directory(path))

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        asker: Any = None,
    ) -> GetPromptResult:
        """A prompt with its arguments filled in. Raises what `call` raises."""
        seconds = self._seconds(timeout)
        return await self._ask_harmless(
            lambda client: client.get_prompt(name, arguments, timeout=seconds, asker=asker)
        )

    async def complete(
        self,
        ref: PromptReference | ResourceTemplateReference | str,
        argument: str,
        value: str = "",
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
    ) -> Completion:
        """Suggestions for an argument, of which `value` was typed so far. Raises what `call` raises."""
        seconds = self._seconds(timeout)
        return await self._ask(
            lambda client: client.complete(
                ref, argument, value, arguments=arguments, timeout=seconds
            )
        )

    async def watch_uri(self, uri: str) -> bool:
        """Tell ResourceUpdated when what stands behind a URI is another, until `unwatch_uri`, also when the server has been away.

        Returns whether the server tells of it; False while it is not up, and then it is asked when it is.
        """
        self._watched[uri] = None
        return await self._life.watch(uri) if self._life is not None else False

    async def unwatch_uri(self, uri: str) -> None:
        """Tell no more of it."""
        self._watched.pop(uri, None)
        if self._life is not None:
            self._life.unwatch(uri)

    def roots_changed(self) -> None:
        """Say to the server that the folders it may be told of are others."""
        if self._life is not None and self._life.client.connected:
            self._life.client.roots_changed()

    def _seconds(self, timeout: float | None) -> float | None:
        return next(
            (given for given in (timeout, self.entry.timeout) if given is not None),
            self._around.bounds.call,
        )

    async def _ask_harmless(self, do: Callable[[Client], Awaitable[R]]) -> R:
        """As `_ask`, for what only reads: again where the server could not ask and was started again under a revision where it can."""
        try:
            return await self._ask(do)
        except McpError as bad:
            if not Client.could_not_ask(bad) or not await self.gone_back():
                raise
        return await self._ask(do)

    async def _ask(self, do: Callable[[Client], Awaitable[R]]) -> R:
        life = await self._reached()
        try:
            return await self._ask_life(life, do)
        finally:
            if life.client.asks_under is not None and life is self._life:
                self._go_back(life, life.client.asks_under)

    async def _ask_life(self, life: SupervisedClient, do: Callable[[Client], Awaitable[R]]) -> R:
        with life.busy():
            try:
                got = await do(life.client)
                if too_deep(got):
                    raise ProtocolError("The answer is nested too deeply.")
                return got
            except InterlockError as bad:
                self._redactor.hide(bad)
                if isinstance(bad, Unreachable) and not isinstance(bad, TimedOut):
                    if (
                        life.is_closing and bad.exit_code is None
                    ):  # it was ended by us, who know more about it
                        raise self._unreachable() from None
                    life.doubt(bad)
                raise

    async def _reached(self) -> SupervisedClient:
        """The client that can be asked, once the server has started. Raises Unreachable."""
        if self.state == "starting" and self._life is None:
            waiting: asyncio.Future[None] = asyncio.ensure_future(self._until_reached())
            try:
                await within(waiting, self._start_seconds, self._around.sleep)
            finally:
                await cancelled(waiting)
        if self._life is None:
            raise self._unreachable()
        return self._life

    async def _until_reached(self) -> None:
        while self.state == "starting" and self._life is None:
            await self._moved.wait()

    def _unreachable(self) -> Unreachable:
        known: dict[State, str] = {
            "waiting": "has not been started",
            "starting": "is just being started",
            "up": "was started again meanwhile",
            "down": "is not reachable",
            "off": "is stopped",
            "refused": "may not be started",
        }
        why = "" if self.words == STOPPED else self.words
        return Unreachable(f"The server {self.id} {known[self.state]}. {why}".rstrip())

    @property
    def _start_seconds(self) -> float:
        return (
            self.entry.start_seconds
            if self.entry.start_seconds is not None
            else self._around.bounds.start
        )

    # -- starting and stopping ----------------------------------------------------------------------------------

    def begin(self) -> None:
        """Start it in the background, unless it is switched off in the configuration or begun already."""
        if self.entry.disabled:
            self._set("off", "It is switched off in the configuration.")
        elif self._keeper is None:
            self._keep_it()

    async def start(self) -> None:
        """Start it in the background, also where it is switched off, was refused, or waits to be tried again."""
        async with self._turn:
            if self._keeper is None or self._keeper.done() or self.state == "down":
                await self._end("Started.")
                self._keep_it()

    async def stop(self, words: str = STOPPED) -> None:
        """End it and leave it at that; returns when its process has gone."""
        async with self._turn:
            await self._end(words)

    async def close(self, words: str = "The host has ended.") -> None:
        """End it for good."""
        self._is_closed = True
        await self.stop(words)

    async def restart(self) -> None:
        """End it, and start it in the background."""
        async with self._turn:
            await self._end("It is started again.")
            self._keep_it()

    def adopt(self, entry: Entry) -> None:
        """Take an entry that differs only in what needs no new start."""
        before, self.entry = self.entry, entry
        if entry.secrets != before.secrets:
            self._redactor.learn(entry.secrets)
        if entry.roots != before.roots:
            self.roots_changed()
        self._tell_changed()

    def _keep_it(self) -> None:
        if self._is_closed:
            return
        self._set("starting")
        self._keeper = asyncio.get_running_loop().create_task(self._keep())

    async def _end(self, words: str) -> None:
        keeper, self._keeper = self._keeper, None
        if self._going_back is not None and self._going_back is not asyncio.current_task():
            self._going_back.cancel()
        self._lose("off", words)
        if keeper is not None:
            keeper.cancel()
            await asyncio.wait({keeper})
        before = {task for task in (self._closing, self._after) if task is not None}
        if before:  # the one that had its place before may not have gone yet
            await asyncio.wait(before)

    async def _keep(self) -> None:
        """Keep it up: start it, look after it, and start it again when it has gone."""
        around = self._around
        if self._after is not None:
            await asyncio.wait({self._after})  # the one that had its place before
        if not await self._is_admitted():
            return
        failed = 0
        while True:
            self._set(
                "starting",
                f"Retrying after {failed} failed {'attempt' if failed == 1 else 'attempts'}."
                if failed
                else "",
            )
            was_up, why = await self._live()
            failed = 1 if was_up >= around.backoff.steady else failed + 1
            seconds = around.backoff.seconds(failed, around.chance())
            self._lose(
                "down",
                f"{why} Retrying in {round(seconds, 1):g} s.{self._last_words()}",
            )
            if self._closing is not None:
                await asyncio.wait({self._closing})
            await around.sleep(seconds)

    async def _is_admitted(self) -> bool:
        """Ask for leave, before the first start."""
        admit = self._around.admit
        if admit is None or self._admitted:
            return True
        self._set("waiting", "Permission to start is needed.")
        try:
            self._admitted = await admit(self.entry)
        except Exception as bad:
            log.exception("asking whether %s may be started failed", self.id)
            self._set(
                "refused", f"It could not be asked whether it may be started: {self._worded(bad)}"
            )
            return False
        if not self._admitted:
            self._set("refused", "Permission to start was denied.")
        return self._admitted

    async def _live(self) -> tuple[float, str]:
        """One life of it, from the start to the end: how many seconds it was up, and why it ended."""
        around = self._around
        life: SupervisedClient | None = None
        since: float | None = None
        self._voice.begin()
        try:
            life = self._new_life()
            await life.open(self._start_seconds)
            self._remember(life.client)
            self._life = life
            self._stir()
            await life.fetch()
            if not life.is_over:
                since = around.clock()
                self._set("up")
                self._tell_changed()
                for uri in self._watched:
                    life.watch_again(uri)
            why: BaseException = await life.stay()
        except Exception as bad:
            why = bad
            if life is None or not life.opened:
                self._forget()
        finally:
            if life is not None:
                self._closing = around.endings.begin(life.aclose())
        return (around.clock() - since if since is not None else 0.0), self._worded(why)

    def _new_life(self) -> SupervisedClient:
        around, entry = self._around, self.entry
        target = around.target(entry) if around.target is not None else None
        if target is None:
            auth = around.auth(entry) if around.auth is not None else None
            target = transport_for(
                entry, hear=self._voice.hear_line, auth=auth, patience=around.bounds.patience
            )
        return SupervisedClient(
            target,
            name=around.name,
            answers=around.answers(entry.id),
            voice=self._voice,
            changed=self._tell_changed,
            updated=lambda uri: self._tell(ResourceUpdated(server=self.id, uri=uri)),
            complain=lambda words: self._tell(Notice(level="warning", words=words, server=self.id)),
            revision=entry.revision or None,
            known=self._known_revision(),
            bounds=around.bounds,
            backoff=around.backoff,
            sleep=around.sleep,
            clock=around.clock,
            chance=around.chance,
        )

    # -- which revision it needs -----------------------------------------------------------------------------

    def _known_revision(self) -> str | None:
        """What was spoken with it before, in this run or in an earlier one (`ERA-13`, `ERA-14`)."""
        if self._known is None and (verdict := self._around.verdicts.of(self.entry)) is not None:
            return verdict.revision
        return self._known

    def _remember(self, client: Client) -> None:
        """It is open: note what was found out, and drop what was remembered of another version of it."""
        self._known = client.revision
        verdicts = self._around.verdicts
        verdict = verdicts.of(self.entry)
        if client.probe_failed:
            self._around.endings.begin(
                verdicts.learn(self.entry, client.revision, "probe", client.server_info)
            )
        elif verdict is None:
            return
        elif not client.caller.supports("ping"):
            self._forget()
        elif not verdict.server:
            self._around.endings.begin(
                verdicts.learn(self.entry, client.revision, verdict.why, client.server_info)
            )
        elif verdict.server != said(client.server_info):
            self._forget()

    def _go_back(self, life: SupervisedClient, revision: str) -> None:
        """It can ask only under an older revision: start it again under that one, once nothing else is under way."""
        if self._going_back is not None and not self._going_back.done():
            return
        self._known = revision
        # Which version of it this holds for is noted when it is open: not all give the same name in both eras.
        self._around.endings.begin(
            self._around.verdicts.learn(self.entry, revision, "questions", None)
        )
        self._tell(
            Notice(
                level="warning",
                server=self.id,
                words=f"It can ask you questions only under {revision} or an older revision. "
                "It is started again, and used under that revision from now on.",
            )
        )
        self._going_back = asyncio.get_running_loop().create_task(self._restart_when_idle(life))

    async def _restart_when_idle(self, life: SupervisedClient) -> None:
        await life.until_idle()
        if life is self._life:  # else it was started again meanwhile
            await self.restart()

    async def gone_back(self) -> bool:
        """Whether it is being, or was, started again under an older revision because it could not ask; waits for the start.

        A request that has failed for that reason can be sent again then.
        """
        task = self._going_back
        if task is None:
            return False
        await asyncio.wait({task})
        if task.cancelled() or task.exception() is not None:
            return False
        starting = asyncio.ensure_future(self._until_started())
        try:
            seconds = self._start_seconds + self._around.bounds.lists
            await within(starting, seconds, self._around.sleep)
        finally:
            await cancelled(starting)
        return self.state == "up"

    async def _until_started(self) -> None:
        while self.state == "starting":
            await self._moved.wait()

    def _forget(self) -> None:
        """The next start finds out anew."""
        self._known = None
        self._around.endings.begin(self._around.verdicts.forget(self.entry))

    # -- states ------------------------------------------------------------------------------------------------

    def _set(self, state: State, words: str = "") -> None:
        if state not in ("starting", "waiting"):
            self.settled.set()
        if (state, words) != (self.state, self.words):
            self.state, self.words = state, words
            self._stir()
            told = ServerState(
                server=self.id, state=state, words=words, revision=self.revision,
                tools=len(self.tools), resources=len(self.resources), prompts=len(self.prompts),
            )  # fmt: skip
            self._tell(told)

    def _lose(self, state: State, words: str) -> None:
        """It is not up any more, and offers nothing."""
        had, self._life = self._life is not None and self.state == "up", None
        self._set(state, words)
        if had:
            self._tell_changed()

    def _stir(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def _tell(self, event: Event) -> None:
        try:
            self._around.tell(event)
        except Exception:
            log.exception("a listener for events failed")

    def _tell_changed(self) -> None:
        try:
            self._around.changed(self)
        except Exception:
            log.exception("a listener for changes of %s failed", self.id)

    def _worded(self, bad: BaseException) -> str:
        """A misfortune as a sentence or two, without secrets."""
        self._redactor.hide(bad)
        words = f"{bad.args[0]}" if isinstance(bad, Unreachable) else str(bad)
        if not isinstance(bad, InterlockError):
            words = f"{type(bad).__name__}: {words}"
        code = (
            f" (exit code {bad.exit_code})"
            if isinstance(bad, Unreachable) and bad.exit_code is not None
            else ""
        )
        return self._redactor.beginning(f"{words.strip().rstrip('.')}{code}.", _MOST_WORDS)

    def _last_words(self) -> str:
        """The last lines that a process wrote to stderr."""
        lines = "\n".join(
            self._redactor.beginning(line, _MOST_OF_A_LINE) for line in self._voice.last
        )
        return f"\nThe last that it wrote to stderr:\n{lines}" if lines else ""
