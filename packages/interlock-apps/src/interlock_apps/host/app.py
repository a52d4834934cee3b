"""The host: a model and a person in front of many servers."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Any, Literal

from msgspec.structs import replace

from interlock import Unreachable, __version__
from interlock.configs import Changes, Config, Entry
from interlock.models.interface import Model
from interlock.redaction import Redactor
from interlock.types import Completion, GetPromptResult, JSONObject, ReadResourceResult

from ..fleet.event_bus import EventBus, EventListener
from ..fleet.events import (
    Event,
    FeaturesChanged,
    LogEntry,
    ModelChosen,
    Notice,
    ProjectsChanged,
    RootsChanged,
    SessionBegan,
    SessionResumed,
    TaintCleared,
    Tainted,
)
from ..fleet.hub import Hub, ManagedServer
from ..fleet.hub.hub import DEFAULT_WAIT
from ..fleet.log import Log, MemoryLog
from ..fleet.pins import Pins
from ..fleet.policy import ConversationRules, Policy, Rule
from ..fleet.questions import AnyQuestion, NotAnswered, UserInterface
from ..fleet.toolbox import Toolbox
from ..fleet.tracing import AgentTracing
from .call_approval import CallApproval
from .call_explanation import CallExplanation
from .call_messages import CallMessages
from .call_plans import CallPlans
from .call_request import CallOutcome, CallRequest, RunningCalls
from .call_runner import CallRunner
from .calls import ToolCalls
from .consent import Consents, Taint
from .conversations.branches import Branches
from .conversations.conversations import Conversations
from .conversations.projects import Project, Projects
from .done_calls import DoneCall, DoneCalls
from .feature_approvals import FeatureApprovals
from .file_copies import FileCopies
from .fleet_owner import FleetOwner
from .loaded_skills import LoadedSkills
from .options import HostOptions
from .prompter import Prompter
from .replay import Replay
from .roots import GrantedRoots
from .rule_memory import RuleMemory
from .running_tasks import RunningTasks
from .runs import Run, Runs
from .server_access import ServerAccess, expand
from .server_requests import SamplingPermission, ServerRequests
from .session import Session, SessionServices
from .spending import Spending, spending
from .start_approval import StartApproval
from .targets import AnyServers, config_of
from .timeline import TimelineBuilder, TimelineTurn
from .uncallable_tools import UncallableTools

MOST_NOTES = 100_000  # events in one conversation
MOST_READ = 500  # events that are read at a time


class Host:
    """A model and a person in front of many servers (2026-07-28, "Architecture").

    Use it as an async context manager: entering it starts the servers, leaving it stops them.

    Args:
        servers: A Config, its entries, or the path of a configuration file. Or an object: its
            `mcpServers`, or a mapping from ids to targets of a Client, such as a Server of this
            process.
        models: The models, each with its own name. The first one is the default.
        person: Answers questions; also `host.prompter.person`. Without it every question is denied.
        policy: What may be called without asking, and what never may. By default the person is
            asked, except about tools that trusted servers call read-only.
        pins: The approvals. By default they are kept in memory.
        log: The log of all events. By default it is kept in memory.
        roots: Folders offered as roots, by server id; "" means all servers. Those of the entries
            are added.
        secrets: Removes secrets from user interfaces and the log (`SqliteLog(...,
            redact=secrets)`). The secrets of the entries are added to it.
        extensions: Extensions declared to every server, by id.
        projects: The projects that conversations can belong to.
        options: Limits and rules of the host.

    Attributes:
        conversations: The conversations in the log, open or not: their list, branches and search.
    """

    def __init__(
        self,
        servers: AnyServers,
        *,
        models: Sequence[Model],
        person: UserInterface | None = None,
        policy: Policy | None = None,
        pins: Pins | None = None,
        log: Log | None = None,
        roots: Mapping[str, Sequence[str | Path]] = {},
        secrets: Redactor | None = None,
        extensions: Mapping[str, JSONObject] = {},
        projects: Projects | None = None,
        options: HostOptions = HostOptions(),  # noqa: B008 - a frozen value
    ) -> None:
        self.options = options
        self.models = _by_name(models)
        self.config, targets = config_of(servers)
        self.policy = policy or Policy()
        self.pins = pins or Pins()
        self.sessions: dict[str, Session] = {}
        self.messages = CallMessages()
        """The last messages of the servers, by call."""
        self.projects = projects or Projects()
        self._secrets = secrets or Redactor()
        self._add_secrets(self.config)
        self.log = log or MemoryLog(redact=self._secrets)
        self.events = EventBus(
            self.log,
            self._secrets,
            log_required=options.log_required or self.policy.log_required,
        )
        self.prompter = Prompter(self.events.publish)
        if person is not None:
            self.prompter.person = person
        self.roots = GrantedRoots(roots, self.config.entries)
        self.toolbox = Toolbox(entry.id for entry in self.config.entries)
        self.features = FeatureApprovals(
            self.toolbox, self.pins, self.prompter, self.events.publish
        )
        self.running = RunningCalls()
        self._background: set[asyncio.Task[Any]] = set()  # first messages of runs
        tracing = AgentTracing(options.tracing, options.hub.name)
        self.requests = ServerRequests(
            self.prompter,
            self.events.publish,
            self.models,
            self.running,
            self.roots,
            options.requests,
            extensions,
            tracing,
        )
        self._starts = StartApproval(
            self.pins,
            self.prompter,
            ask=options.ask_to_start,
            in_process=targets.keys(),
            roots=self.roots.folders_of,
        )
        owner = FleetOwner(self.requests, self.features, self._starts, self.events)
        hub = dataclasses.replace(
            options.hub.with_targets(targets),
            tracing=options.tracing,
            messages=self.messages.buffer,
            roots=self.roots.folders_of,
        )
        self.hub = Hub(self.config.entries, owner, hub)
        self.servers = ServerAccess(self.hub, self.features, self.events)
        self.skills = LoadedSkills(self.hub, self.pins, self.prompter, self.events.publish)
        self.rules = RuleMemory(self.policy, self.events, options.save_rules, options.policy_file)
        reads = self.policy.trusted_read_only == "allow"
        self.consents = Consents("read" if reads else "ask", self.events.publish, time.monotonic)
        self.copies = FileCopies(options.file_copies, self.events.publish)
        self.done = DoneCalls()
        approval = CallApproval(
            self.hub,
            self.toolbox,
            self.policy,
            self.rules,
            self.features,
            self.skills,
            self.prompter,
            self.events,
            self.consents,
            self.roots,
        )
        self.consents.changed = approval.release
        self.rules.changed = approval.release
        self.approval = approval
        self.tasks = RunningTasks(
            self.hub,
            self.requests,
            self.toolbox,
            self.events,
            wait=options.task_wait,
            finish=self._end_task,
        )
        runner = CallRunner(
            self.hub, approval, self.requests, self.running, self.tasks, self.events, self.messages
        )
        self.calls = ToolCalls(
            approval,
            runner,
            self.skills,
            self.prompter,
            self.events,
            self.consents,
            self.copies,
            self.done,
            self.roots.granted_to,
        )
        branches = Branches(self.log, self.events)
        self.conversations = Conversations(
            self.log, self.events, branches, self.sessions, self.tasks, self.copies, self.end
        )
        self._services = SessionServices(
            events=self.events,
            branches=branches,
            prompter=self.prompter,
            calls=self.calls,
            consents=self.consents,
            plans=CallPlans(self.toolbox, self.features, self.prompter, self.consents),
            toolbox=self.toolbox,
            features=self.features,
            skills=self.skills,
            servers=self.servers,
            uncallable=UncallableTools(self.hub, self.events),
            tracing=tracing,
            budget=options.budget,
            discovery=options.discovery,
        )

        def judge_again(entry: LogEntry) -> None:
            if isinstance(entry.event, FeaturesChanged):
                approval.release()

        self.events.listen(judge_again)
        self._runs = Runs(self.sessions, self.prompter.open)
        self.events.listen(self._runs.receive)
        self.projects.changed = lambda: self.publish(ProjectsChanged())

    # -- start and end ---------------------------------------------------------------------------

    async def __aenter__(self) -> Host:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def open(self, wait: float | None = DEFAULT_WAIT) -> None:
        """Start every server at the same time.

        Args:
            wait: Seconds after which this returns even if a server is still starting. None: wait as
                long as it takes, including questions to the person.

        Raises:
            LogError: The log cannot be opened.
        """
        self.log.publish = self.publish
        await self.log.open()
        self._publish_problems(self.config)
        for words in self.projects.problems:
            self.publish(Notice(level="warning", words=words))
        try:
            await self.tasks.take_up(self.log)
            await self.hub.open(wait)
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Close every turn, server and model, and write the rest of the log.

        All of them are closed, even if one fails or this is cancelled.
        """
        async with AsyncExitStack() as ends:
            for end in (
                self.log.aclose,
                *(model.aclose for model in self.models.values()),
                self.hub.aclose,
                self.features.aclose,
            ):
                ends.push_async_callback(end)  # in reverse order
            await self.tasks.aclose()  # before the conversations that they give results to
            await asyncio.gather(*(session.aclose() for session in self.sessions.values()))

    async def reload(self, servers: Config) -> Changes:
        """Apply another configuration: servers are added, removed or restarted as needed.

        Unchanged servers keep running. If a server wants more than was approved, it gets that once
        the person allows it.
        """
        self._publish_problems(servers)
        self._add_secrets(servers)
        held = {}
        for entry in servers.entries:
            running = self.hub.servers.get(entry.id)
            allowed = self._starts.until_approved(entry, running.entry if running else None)
            if allowed is not entry:
                held[entry.id] = allowed
        entries = tuple(held.get(entry.id, entry) for entry in servers.entries)
        changes = await self._apply(replace(servers, entries=entries))
        for entry in servers.entries:
            if entry.id in held and await self._starts.admit(entry):
                now = tuple(
                    entry if each == held[entry.id] else each for each in self.config.entries
                )
                await self._apply(replace(self.config, entries=now))
        return changes

    async def _apply(self, servers: Config) -> Changes:
        if self.roots.reconfigure(self.config.entries, servers.entries):
            self.publish(RootsChanged(folders=self.roots.granted))
        changes = await self.hub.reload(servers.entries)
        self.config = servers
        for entry in changes.removed:
            self.features.gone(entry.id)
            self.skills.gone(entry.id)
        self.toolbox.arrange(entry.id for entry in servers.entries)
        return changes

    def _publish_problems(self, config: Config) -> None:
        for problem in config.problems:
            self.publish(Notice(level="warning", words=str(problem)))

    def _add_secrets(self, config: Config) -> None:
        secrets = [value for entry in config.entries for value in entry.secrets]
        self._secrets.add(*secrets)
        self.messages.buffer.redactor.add(*secrets)

    # -- events and questions ----------------------------------------------------------------------

    def publish(self, event: Event) -> None:
        """Log an event, and pass it to all listeners without secrets."""
        self.events.publish(event)

    def listen(self, listener: EventListener) -> Callable[[], None]:
        """Pass every event to a listener as it happens; call the returned function to stop."""
        return self.events.listen(listener)

    @property
    def questions(self) -> dict[str, AnyQuestion]:
        """The open questions to the person, by id."""
        return self.prompter.open

    # -- conversations -----------------------------------------------------------------------------

    def session(
        self,
        *,
        model: str = "",
        title: str = "",
        effort: str = "",
        project: str | None = None,
    ) -> Session:
        """Start a conversation.

        Args:
            model: The name of its model; "": the first one.
            effort: The effort of the model's reasoning; "": the provider's default.
            title: Its title; "": made from the person's first message.
            project: The name of its project; "": none; None: the chosen one of `projects`.

        Raises:
            ValueError: There is no such model or project, or the model does not have this effort.
        """
        chosen = self.model(model)
        belongs = self._project(self.projects.chosen if project is None else project)
        session = Session(
            self._services, f"s{token_hex(4)}", chosen, title, effort=effort, project=belongs
        )
        self.sessions[session.id] = session
        self._apply_project(session)
        self.publish(
            SessionBegan(
                session=session.id,
                title=title,
                model=chosen.name,
                remark=chosen.facts.remark,
                by=__version__,
                project=belongs.name if belongs is not None else "",
            )
        )
        if effort:
            self.publish(
                ModelChosen(
                    session=session.id,
                    model=chosen.name,
                    effort=effort,
                    remark=chosen.facts.remark,
                )
            )
        return session

    def start_run(self, text: str, *, model: str = "", title: str = "") -> Session:
        """Start a conversation in the background, and send its first message.

        It goes on by itself. Its questions come to the user interface of this host.

        Args:
            text: The message.
            model: The name of its model; "": the first one.
            title: Its title; "": made from the message.

        Raises:
            ValueError: The message is empty, or there is no such model.
        """
        if not text.strip():
            raise ValueError("The message is empty.")
        session = self.session(model=model, title=title)
        self._runs.background.add(session.id)
        work = asyncio.get_running_loop().create_task(session.say(text))
        self._background.add(work)
        work.add_done_callback(self._end_run)
        return session

    def _end_run(self, work: asyncio.Task[Any]) -> None:
        self._background.discard(work)
        if not work.cancelled() and (bad := work.exception()) is not None:
            self.publish(Notice(level="error", words=f"A run in the background failed: {bad}"))

    def runs(self) -> list[Run]:
        """The open conversations and what they are doing; those that changed last come first."""
        return self._runs.all()

    async def resume(self, session: str) -> Session:
        """Resume a conversation from the log, also one of an earlier run.

        Raises:
            LogError: It cannot be read.
            ValueError: There is no model, or its project is gone.
        """
        if session in self.sessions:
            return self.sessions[session]
        await self.log.flush()
        replay = Replay(await self.log.read(session, limit=MOST_NOTES), session)
        if session in self.sessions:
            return self.sessions[session]  # another caller has resumed it in the meantime
        model = self.models.get(replay.model.name) or self.model("")
        project = self._project(replay.project)
        self.consents.of(session).restore_taint(_taint_of(replay.all_events))
        found = self.sessions[session] = Session(
            self._services,
            session,
            model,
            replay.title,
            replay.messages,
            calls=replay.calls,
            queued=replay.queued,
            effort=replay.effort if replay.effort in model.facts.efforts else "",
            offer=replay.offer,
            project=project,
        )
        self._apply_project(found)
        self.publish(SessionResumed(session=session, model=model.name, remark=model.facts.remark))
        for ended in replay.tasks:
            found.take_task(ended)
        return found

    async def timeline(self, session: str, *, after: int = 0) -> list[TimelineTurn]:
        """Return the timeline of a conversation, also of an earlier one: each turn with its model
        steps, calls and questions, how long they took, and their tokens.

        Args:
            session: The conversation.
            after: Leave out the entries of the log up to this number.

        Raises:
            LogError: The log cannot be read.
        """
        await self.log.flush()
        builder = TimelineBuilder()
        while notes := await self.log.read(session, after=after, limit=MOST_READ):
            for noted in notes:
                builder.add(noted)
            after = notes[-1].seq
        return builder.result(time.time())

    async def _end_task(
        self, request: CallRequest, arguments: dict[str, Any], outcome: CallOutcome
    ) -> None:
        """Publish the outcome of a task, and give it to its conversation, which answers it. An
        earlier conversation gets it when it is resumed.
        """
        ended = await self.calls.end_task(request, arguments, outcome)
        if (session := self.sessions.get(request.session)) is not None:
            session.deliver(ended)

    async def spending(self, session: str) -> Spending:
        """Return the tokens and the price of a conversation so far. Raises LogError."""
        return await spending(self.log, session)

    def end(self, session: str) -> None:
        """Close a conversation, and drop its remembered rules. It stays in the log."""
        closed = self.sessions.pop(session, None)
        if closed is None:
            return
        closed.cancel()
        self.policy.end(session)
        self.consents.end(session)
        self.requests.end(session)
        self.done.end(session)
        for question in list(self.prompter.open.values()):
            if question.session == session:
                ended = NotAnswered(words="The conversation has ended.")
                self.prompter.withdraw(question.id, ended)

    def _project(self, name: str) -> Project | None:
        """The project of a name; None for "". Without it, its rules would be missing."""
        if not name:
            return None
        if (project := self.projects.all.get(name)) is None:
            raise ValueError(f"There is no project {name}. Create it again to continue.")
        return project

    def _apply_project(self, session: Session) -> None:
        """Apply the rules of a conversation's project, and offer its folders to its servers."""
        project = session.project
        if project is None:
            return
        self.policy.assign(
            session.id, ConversationRules(project.rules, project.review, project.default)
        )
        for folder in project.folders:
            for server in ("",) if project.servers is None else project.servers:
                try:
                    self.grant(Path(folder).expanduser(), server)
                except (Unreachable, ValueError, OSError) as bad:
                    words = f"The project {project.name} has a folder that cannot be used: {bad}"
                    self.publish(Notice(level="warning", words=words))

    def model(self, name: str = "") -> Model:
        """Return a model by its name; "" for the first one. Raises ValueError if there is none."""
        if not self.models:
            raise ValueError("No model is configured.")
        if not name:
            return next(iter(self.models.values()))
        if name not in self.models:
            raise ValueError(f"There is no model {name}. Models: {', '.join(self.models)}.")
        return self.models[name]

    # -- servers -----------------------------------------------------------------------------------

    def declare(self, extensions: Mapping[str, JSONObject]) -> None:
        """Declare extensions, by id, to every server that starts from now on.

        See 2026-07-28, "Extensions". The web interface does so for apps.
        """
        self.requests.extensions.update(extensions)

    def server(self, id: str) -> ManagedServer:
        """Return a server by its id. Raises Unreachable for one that is not configured."""
        return self.servers.server(id)

    async def read(
        self, server: str, uri: str, *, session: str = "", by: Literal["person", "app"] = "person"
    ) -> ReadResourceResult:
        """Read a resource for the person, or for an app. Raises McpError, Unreachable."""
        return await self.servers.read(server, uri, session=session, by=by)

    async def get_prompt(
        self, server: str, name: str, arguments: Mapping[str, str]
    ) -> GetPromptResult:
        """Fetch a prompt for the person. Raises McpError, also for a blocked one; Unreachable."""
        return await self.servers.get_prompt(server, name, arguments)

    async def complete(
        self,
        server: str,
        ref: Any,
        argument: str,
        value: str,
        arguments: Mapping[str, str] | None = None,
    ) -> Completion:
        """Return suggestions for an argument. Raises McpError, Unreachable."""
        return await self.servers.complete(server, ref, argument, value, arguments)

    def expand(self, template: str, values: Mapping[str, str]) -> str:
        """Expand a URI template. Raises ValueError for an invalid template."""
        return expand(template, values)

    def is_start_approved(self, entry: Entry) -> bool:
        """Return whether a server may be started or contacted without a question."""
        return self._starts.is_approved(entry)

    def approve_start(self, entry: Entry) -> None:
        """Record that the person has seen the whole command of a server, and allows its start.

        Args:
            entry: The server, exactly as it was shown.
        """
        self._starts.approve(entry)

    # -- roots and rules ---------------------------------------------------------------------------

    def grant(self, folder: str | Path, server: str = "") -> None:
        """Add a folder to the roots of a server, or of all servers.

        Raises:
            ValueError: It is not a folder.
            Unreachable: There is no such server.
        """
        if server:
            self.server(server)
        if self.roots.grant(folder, server):
            self._roots_changed(server)

    def revoke(self, folder: str | Path, server: str = "") -> None:
        """Remove a folder from the roots."""
        if self.roots.revoke(folder, server):
            self._roots_changed(server)

    def _roots_changed(self, server: str) -> None:
        self.publish(RootsChanged(folders=self.roots.granted))
        if not server:
            self.hub.roots_changed()
        elif server in self.hub.servers:
            self.hub.roots_changed([server])

    def sampling(self, session: str) -> dict[str, SamplingPermission]:
        """Return which servers may sample in a conversation without a question, and how much."""
        return self.requests.permissions(session)

    def revoke_sampling(self, session: str, server: str) -> bool:
        """Ask again about the sampling of a server; return whether that is a change."""
        return self.requests.revoke(server, session)

    def done_calls(self, session: str) -> tuple[DoneCall, ...]:
        """Return the calls of a conversation that ran, each with the files that it changed.

        Files are known only if the call named them, they are in a root of a server on this machine,
        and the host keeps copies (`HostOptions.file_copies`). What else a server changed is not
        known.
        """
        changed = self.copies.changed(session)
        return tuple(
            replace(done, files=changed.get(done.call, ())) for done in self.done.of(session)
        )

    async def restore(self, session: str, call: str, path: str) -> None:
        """Restore a file to its state before a call. Raises CannotRestore."""
        await self.copies.restore(session, call, path)

    def explain(
        self, server: str, tool: str, arguments: Mapping[str, Any], *, session: str = ""
    ) -> CallExplanation:
        """Return what would happen to a call, without making it."""
        return self.approval.explain(server, tool, dict(arguments), session)

    def forget(self, rule: Rule) -> bool:
        """Remove a remembered rule; return whether it existed."""
        return self.rules.forget(rule)


def _taint_of(events: Iterable[Event]) -> Taint | None:
    """The taint of a conversation in the log."""
    taint = None
    for event in events:
        if isinstance(event, Tainted):
            taint = Taint(call=event.call, server=event.server, tool=event.tool)
        elif isinstance(event, TaintCleared):
            taint = None
    return taint


def _by_name(models: Sequence[Model]) -> dict[str, Model]:
    named = {model.name: model for model in models}
    if len(named) != len(models):
        raise ValueError("Two models have the same name; give each model a unique name.")
    return named
