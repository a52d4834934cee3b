"""The Host: a model and a person in front of many servers."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Any, Literal

import msgspec

from interlock import InterlockError, McpError, Template, Unreachable, __version__
from interlock.configs import Changes, Config, Entry, approval_of, load_config, read_config
from interlock.configs import changes as changes_of
from interlock.models.interface import Model
from interlock.redaction import Redactor
from interlock.types import Completion, GetPromptResult, JSONObject, ReadResourceResult, Root

from ..fleet import threat_scan
from ..fleet.event_redaction import redacted_event
from ..fleet.events import (
    CallDecided,
    CallEnded,
    CallProposed,
    Event,
    FeaturesChanged,
    LogEntry,
    Notice,
    PromptFetched,
    ResourceRead,
    RootsChanged,
    SessionBegan,
    SessionResumed,
)
from ..fleet.hub import Hub, ManagedServer
from ..fleet.hub.hub import DEFAULT_WAIT
from ..fleet.log import Log, LogError, MemoryLog, Replay
from ..fleet.naming import server_part, tool_name
from ..fleet.pins import BadPins, Pins
from ..fleet.policy import Policy, Rule
from ..fleet.questions import AnyQuestion, NotAnswered, UserInterface
from ..fleet.start_questions import start_question
from ..fleet.toolbox import Toolbox
from .calls import ToolCalls
from .feature_approvals import FeatureApprovals
from .loop.budget import Budget
from .prompter import Prompter
from .server_requests import RequestLimits, ServerRequests
from .session import Session
from .skills.acting import LoadedSkills

log = logging.getLogger("interlock_apps.host")

EventListener = Callable[[LogEntry], None]
MOST_NOTES = 100_000  # of one conversation
DISCOVERY = 0.05  # share of a model's context that the list of tools may take


class Host:
    """A model and a person in front of many servers (2026-07-28, "Architecture").

    Parameters:
        servers: a Config, entries of one, the path of a configuration file, or an object: the `mcpServers` of one, or by id what a Client
            can be pointed at, a Server of this process for instance.
        models: the models that there are, each with a name of its own; the first is the one that is used unless another is chosen.
        person: who is asked; also `host.prompter.person`. Without it, what has to be asked is refused.
        policy: what may be called unasked, and what never; asks about everything but what trusted servers call read-only, unless given.
        pins: what was approved; kept in memory unless given.
        log: where everything is noted; in memory unless given.
        budget: bounds of a turn. asking: bounds of what servers may ask.
        roots: folders that servers may be told of, by server id; "" for all servers. Those of the entries are added.
        ask_to_start: whether the person is asked before a server is started, or reached, by a command or an address that was not approved.
        discovery: the share of a model's context that the list of tools may take; beyond it the model gets a search for tools instead.
        log_required: whether a call is refused unless the log has written what was decided about it (also `Policy.log_required`).
        secrets: takes secrets out of what faces show and what the log keeps (`SqliteLog(..., redact=secrets)`); those of the servers'
            entries are added to it.
        saved: called with all rules that the person wants remembered for good, whenever one comes or goes.
        extensions: what is declared to every server beyond the core protocol, by id (see `declare`).
        hub: options of the Hub (target, auth, backoff, ...).

    Use it as an async context manager: entering it starts the servers, leaving it ends them.
    """

    def __init__(
        self,
        servers: Config | Iterable[Entry] | Mapping[str, Any] | str | Path,
        *,
        models: Sequence[Model],
        person: UserInterface | None = None,
        policy: Policy | None = None,
        pins: Pins | None = None,
        log: Log | None = None,
        budget: Budget = Budget(),  # noqa: B008 - a frozen value
        asking: RequestLimits = RequestLimits(),  # noqa: B008 - a frozen value
        roots: Mapping[str, Sequence[str | Path]] = {},
        ask_to_start: bool = True,
        discovery: float = DISCOVERY,
        log_required: bool = False,
        secrets: Redactor | None = None,
        saved: Callable[[Sequence[Rule]], None] | None = None,
        extensions: Mapping[str, JSONObject] = {},
        hub: Mapping[str, Any] = {},
    ) -> None:
        self.models = _by_name(models)
        self.config, targets = _configured(servers)
        self._inside = frozenset(targets)
        self.budget, self.discovery = budget, discovery
        self.policy = policy or Policy()
        self.log_required = log_required or self.policy.log_required
        self.pins = pins or Pins()
        self._secrets = secrets or Redactor()
        self._secrets.add(*(value for entry in self.config.entries for value in entry.secrets))
        self.log = log or MemoryLog(redact=self._secrets)
        self.sessions: dict[str, Session] = {}
        self._listeners: list[EventListener] = []
        self._ask_to_start, self._saved = ask_to_start, saved
        self._granted: dict[str, list[Path]] = {
            server: [_folder(f) for f in folders] for server, folders in roots.items()
        }
        for entry in self.config.entries:
            self._granted.setdefault(entry.id, []).extend(_folder(folder) for folder in entry.roots)
        self.prompter = Prompter(self.tell)
        if person is not None:
            self.prompter.person = person
        self.toolbox = Toolbox(entry.id for entry in self.config.entries)
        self.register = FeatureApprovals(self.toolbox, self.pins, self.prompter, self.tell)
        running: dict[str, Any] = {}
        self.answering = ServerRequests(
            self.prompter,
            self.tell,
            self.models,
            running,
            self.roots_of,
            self._address,
            asking,
            extensions,
        )
        self.hub = Hub(
            self.config.entries,
            answers=self.answering.of,
            tell=self.tell,
            changed=self._changed,
            admit=self._admit,
            **{"target": lambda entry: targets.get(entry.id), **hub},
        )
        self.skills = LoadedSkills(self.hub, self.pins, self.prompter, self.tell)
        self.calls = ToolCalls(
            self.hub,
            self.toolbox,
            self.policy,
            self.prompter,
            self.tell,
            lambda rule: self._save(),
            running,
            self.answering.of,
            self._unlogged,
            self.register.warnings_of,
            self.skills,
        )

    # -- beginning and ending -----------------------------------------------------------------------------------

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
        """Start every server, side by side; returns when each is up or has failed once, or after `wait` seconds
        (None: however long that is, persons who have to allow a start included). Raises LogError."""
        self.log.tell = self.tell
        await self.log.open()
        for problem in self.config.problems:
            self.tell(Notice(level="warning", words=str(problem)))
        try:
            await self.hub.open(wait)
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """End every turn, server and model, and write the log to its end; all of them, also where one fails or this is cancelled."""
        async with AsyncExitStack() as ends:
            for end in (
                self.log.aclose,
                *(model.aclose for model in self.models.values()),
                self.hub.aclose,
                self.register.aclose,
            ):
                ends.push_async_callback(end)  # the last one first
            await asyncio.gather(*(session.aclose() for session in self.sessions.values()))

    async def reload(self, servers: Config) -> Changes:
        """Take another configuration: servers are added, ended, or begun again, and those that are as they were are left alone."""
        for problem in servers.problems:
            self.tell(Notice(level="warning", words=str(problem)))
        self._secrets.add(*(value for entry in servers.entries for value in entry.secrets))
        held = {
            entry.id: kept for entry in servers.entries if (kept := self._held(entry)) is not entry
        }
        changes = await self._reload(
            msgspec.structs.replace(
                servers, entries=tuple(held.get(e.id, e) for e in servers.entries)
            )
        )
        for entry in servers.entries:
            if entry.id in held and await self._admit(entry):
                now = tuple(
                    entry if each == held[entry.id] else each for each in self.config.entries
                )
                await self._reload(msgspec.structs.replace(self.config, entries=now))
        return changes

    async def _reload(self, servers: Config) -> Changes:
        self._regrant(servers.entries)
        changes = await self.hub.reload(servers.entries)
        self.config = servers
        for entry in changes.removed:
            self.register.gone(entry.id)
            self.skills.gone(entry.id)
        self.toolbox.arrange(entry.id for entry in servers.entries)
        return changes

    def _held(self, entry: Entry) -> Entry:
        """An entry that wants more than was approved, as it may be until the person has said yes: a new start would ask by itself."""
        link = self.hub.links.get(entry.id)
        if (
            link is None
            or not self._ask_to_start
            or entry.id in self._inside
            or self.pins.approved_command(entry.id, approval_of(entry))
        ):
            return entry
        was = link.entry
        if changes_of(Config(entries=(was,)), Config(entries=(entry,))).reached_anew:
            return entry
        roots = tuple(root for root in entry.roots if root in was.roots)
        return (
            msgspec.structs.replace(entry, trusted=entry.trusted and was.trusted, roots=roots)
            if _wants_more(entry, was)
            else entry
        )

    # -- what is told ------------------------------------------------------------------------------------------------

    def tell(self, event: Event) -> None:
        """Note an event, and let all listeners hear it, without secrets."""
        noted = self.log.note(event)  # type: ignore[arg-type]  # every Event is one of AnyEvent
        if isinstance(event, FeaturesChanged):
            self.calls.release()
        shown = redacted_event(noted.event, self._secrets)
        if shown is not noted.event:
            noted = msgspec.structs.replace(noted, event=shown)
        for hear in list(self._listeners):
            try:
                hear(noted)
            except Exception:  # a face that fails takes nothing with it
                log.exception("a listener failed at %s", type(event).__name__)

    async def _unlogged(self) -> str:
        """Why nothing may be called, where the log has to be written first and cannot be; "" where it may."""
        if not self.log_required:
            return ""
        try:
            await self.log.flush()
        except LogError as bad:
            return f"Nothing is called while the log cannot be written. {bad}"
        return ""

    def listen(self, hear: EventListener) -> Callable[[], None]:
        """Hear every event as it happens; what is returned ends it."""
        self._listeners.append(hear)
        return lambda: self._listeners.remove(hear) if hear in self._listeners else None

    def stopped(self, name: str) -> str:
        """The id of the stopped server whose tool has this name; "" where no stopped server has such names."""
        begins = server_part(name)
        for link in self.hub.links.values():
            if link.state in ("off", "refused") and server_part(tool_name(link.id, "x")) == begins:
                return link.id
        return ""

    def tell_stopped(
        self, session: str, call: str, name: str, arguments: dict[str, Any], server: str
    ) -> None:
        """A model wanted a tool of a server that is stopped."""
        tool = name.removeprefix(server_part(name)).lstrip("_")
        words = f"The server {server} is stopped."
        self.tell(
            CallProposed(
                session=session,
                call=call,
                name=name,
                server=server,
                tool=tool,
                title=threat_scan.visible(tool),
                arguments=arguments,
            )
        )
        self.tell(CallDecided(session=session, call=call, allow=False, by="stopped", why=words))
        self.tell(CallEnded(session=session, call=call, server=server, tool=tool, error=words))

    def tell_unknown(
        self, session: str, call: str, name: str, arguments: dict[str, Any], words: str
    ) -> None:
        """A model wanted something that is no tool."""
        self.tell(CallProposed(session=session, call=call, name=name, arguments=arguments))
        self.tell(CallDecided(session=session, call=call, allow=False, by="host", why=words))
        self.tell(CallEnded(session=session, call=call, error=words))

    @property
    def questions(self) -> dict[str, AnyQuestion]:
        """What the person is being asked, by id."""
        return self.prompter.open

    # -- conversations -----------------------------------------------------------------------------------------------

    def session(self, *, model: str = "", title: str = "") -> Session:
        """Begin a conversation with a model, the first one unless it is named. Raises ValueError for a model that there is not."""
        if not self.models:
            raise ValueError("There is no model; configure one.")
        if model and model not in self.models:
            raise ValueError(f"There is no model {model}; there are {', '.join(self.models)}.")
        chosen = self.models[model] if model else next(iter(self.models.values()))
        session = Session(self, f"s{token_hex(4)}", chosen, title)
        self.sessions[session.id] = session
        self.tell(
            SessionBegan(
                session=session.id,
                title=title,
                model=chosen.name,
                remark=chosen.facts.remark,
                by=__version__,
            )
        )
        return session

    async def resume(self, session: str) -> Session:
        """Go on with a conversation that the log has, also one of an earlier run. Raises LogError where it cannot be read."""
        if session in self.sessions:
            return self.sessions[session]
        await self.log.flush()
        replay = Replay(await self.log.read(session, limit=MOST_NOTES), session)
        if session in self.sessions:
            return self.sessions[session]  # somebody was quicker
        model = self.models.get(replay.model.name) or next(iter(self.models.values()), None)
        if model is None:
            raise ValueError("There is no model; configure one.")
        calls = sum(isinstance(event, CallProposed) for event in replay.events)
        found = self.sessions[session] = Session(
            self, session, model, replay.title, replay.messages, calls=calls
        )
        self.tell(SessionResumed(session=session, model=model.name, remark=model.facts.remark))
        return found

    def end(self, session: str) -> None:
        """Let go of a conversation, and of what was remembered for it; it stays in the log."""
        if (gone := self.sessions.pop(session, None)) is not None:
            gone.cancel()
            self.policy.end(session)
            for question in list(self.prompter.open.values()):
                if question.session == session:
                    words = "The conversation has ended."
                    self.prompter.withdraw(question.id, NotAnswered(words=words))

    def declare(self, extensions: Mapping[str, JSONObject]) -> None:
        """Declare extensions, by id, to every server that starts from now on (2026-07-28, "Extensions"); the web face does so for apps."""
        self.answering.extensions.update(extensions)

    # -- what a person does with servers -----------------------------------------------------------------------------------

    def link(self, server: str) -> ManagedServer:
        """The client kept for a server. Raises Unreachable for one that is not configured."""
        link = self.hub.links.get(server)
        if link is None:
            raise Unreachable(
                f"There is no server {server}; there are {', '.join(self.hub.links) or 'none'}."
            )
        return link

    async def read(
        self, server: str, uri: str, *, session: str = "", by: Literal["person", "app"] = "person"
    ) -> ReadResourceResult:
        """Read a resource, as the person wants it, or an app of that server. Raises McpError, Unreachable."""
        try:
            result = await self.link(server).read(uri)
        except InterlockError as bad:
            self.tell(
                ResourceRead(
                    session=session,
                    server=server,
                    uri=uri,
                    by=by,
                    error=threat_scan.visible(str(bad)),
                )
            )
            raise
        size = sum(len(part.text or part.blob or "") for part in result.contents)
        self.tell(ResourceRead(session=session, server=server, uri=uri, by=by, size=size))
        return result

    async def get_prompt(
        self, server: str, name: str, arguments: Mapping[str, str]
    ) -> GetPromptResult:
        """Get a prompt, as the person wants it. Raises McpError, Unreachable; McpError also where it is blocked."""
        given = dict(arguments)
        try:
            if why := self.register.blocked.get(server, {}).get(("prompt", name)):
                raise McpError(-32602, f"{name} is blocked: {why}")
            result = await self.link(server).get_prompt(name, given)
        except InterlockError as bad:
            self.tell(
                PromptFetched(
                    server=server, prompt=name, arguments=given, error=threat_scan.visible(str(bad))
                )
            )
            raise
        self.tell(PromptFetched(server=server, prompt=name, arguments=given))
        return result

    async def complete(
        self,
        server: str,
        ref: Any,
        argument: str,
        value: str,
        arguments: Mapping[str, str] | None = None,
    ) -> Completion:
        """Suggestions for an argument. Raises McpError, Unreachable."""
        return await self.link(server).complete(ref, argument, value, arguments)

    def expand(self, template: str, values: Mapping[str, str]) -> str:
        """The URI that a template makes of values. Raises ValueError for one that is none."""
        return Template(template).expand({name: value for name, value in values.items() if value})

    # -- roots ---------------------------------------------------------------------------------------------------------------

    @property
    def granted(self) -> dict[str, tuple[str, ...]]:
        """The folders that servers may be told of, by server id; "" for all."""
        return {
            server: tuple(str(folder) for folder in folders)
            for server, folders in self._granted.items()
            if folders
        }

    def roots_of(self, server: str) -> list[Root]:
        """What a server is told when it asks for roots: its own folders and those for all, as far as they are there (`ROO-06`)."""
        folders = dict.fromkeys([*self._granted.get("", ()), *self._granted.get(server, ())])
        return [
            Root(uri=folder.as_uri(), name=folder.name or str(folder))
            for folder in folders
            if folder.is_dir()
        ]

    def grant(self, folder: str | Path, server: str = "") -> None:
        """Let a server, or all, be told of a folder. Raises ValueError for what is no folder, Unreachable for no server."""
        path = _folder(folder)
        if not path.is_dir():
            raise ValueError(f"{path} is no folder.")
        if server:
            self.link(server)
        if path not in self._granted.setdefault(server, []):
            self._granted[server].append(path)
            self._roots_changed(server)

    def revoke(self, folder: str | Path, server: str = "") -> None:
        """Take a folder back."""
        path = _folder(folder)
        if path in self._granted.get(server, ()):
            self._granted[server].remove(path)
            self._roots_changed(server)

    def _regrant(self, entries: Sequence[Entry]) -> None:
        """Grant the folders that a new configuration names, and take back those that only the old one did."""
        before, granted = {entry.id: entry for entry in self.config.entries}, self.granted
        for id in before.keys() - {entry.id for entry in entries}:
            self._granted.pop(id, None)
        for entry in entries:
            was = (
                [_folder(folder) for folder in before[entry.id].roots] if entry.id in before else []
            )
            now = [_folder(folder) for folder in entry.roots]
            had = self._granted.get(entry.id, [])
            kept = [folder for folder in had if folder in now or folder not in was]
            self._granted[entry.id] = [
                *kept,
                *(folder for folder in now if folder not in was and folder not in had),
            ]
        if self.granted != granted:
            self.tell(RootsChanged(folders=self.granted))

    def _roots_changed(self, server: str) -> None:
        self.tell(RootsChanged(folders=self.granted))
        for link in self.hub.links.values():
            if link.id == server or not server:
                link.roots_changed()

    # -- rules -----------------------------------------------------------------------------------------------------------------

    def forget(self, rule: Rule) -> bool:
        """Let go of a rule that was remembered; whether there was one."""
        found = self.policy.forget(rule)
        if found:
            self._save()
        return found

    def _save(self) -> None:
        if self._saved is not None:
            try:
                self._saved(self.policy.saved)
            except OSError as bad:
                self.tell(
                    Notice(
                        level="warning",
                        words=f"What you decided could not be saved, and holds until the end: {bad}",
                    )
                )

    # -- servers -----------------------------------------------------------------------------------------------------------------

    def _changed(self, link: ManagedServer) -> None:
        try:
            self.register.changed(link)
        except BadPins as bad:
            self.register.unusable(link, str(bad))

    def _address(self, server: str) -> str:
        link = self.hub.links.get(server)
        return "" if link is None else link.entry.url

    async def _admit(self, entry: Entry) -> bool:
        """Whether a server may be started, or reached (`SEC-17`)."""
        wanted = approval_of(entry)
        if (
            not self._ask_to_start
            or entry.id in self._inside
            or self.pins.approved_command(entry.id, wanted)
        ):
            return True
        question = start_question(self.prompter.name(), entry)
        decision = await self.prompter.decide(question)
        if decision.allow:
            self.pins.approve_command(entry.id, wanted)
        return decision.allow


def _configured(
    servers: Config | Iterable[Entry] | Mapping[str, Any] | str | Path,
) -> tuple[Config, dict[str, Any]]:
    """The configuration that was given, and what its servers are where that is no part of one."""
    if isinstance(servers, Config):
        return servers, {}
    if isinstance(servers, str | Path):
        return load_config(Path(servers)), {}
    if not isinstance(servers, Mapping):
        return Config(entries=tuple(servers)), {}
    written = servers.get("mcpServers", servers)
    targets = {id: given for id, given in written.items() if not isinstance(given, Mapping)}
    text = msgspec.json.encode(
        {"mcpServers": {id: given for id, given in written.items() if id not in targets}}
    ).decode()
    config = (
        read_config(text, env=os.environ, format="mcpServers")
        if len(targets) < len(written)
        else Config(entries=())
    )
    here = {
        id: Entry(id=id, command=(f"{type(given).__name__} in this process",))
        for id, given in targets.items()
    }
    read = {entry.id: entry for entry in config.entries}
    return Config(
        entries=tuple(here.get(id) or read[id] for id in written if id in here or id in read),
        problems=config.problems,
    ), targets


def _wants_more(entry: Entry, was: Entry) -> bool:
    return (entry.trusted and not was.trusted) or not set(entry.roots) <= set(was.roots)


def _by_name(models: Sequence[Model]) -> dict[str, Model]:
    named = {model.name: model for model in models}
    if len(named) != len(models):
        raise ValueError("Each model needs a name of its own.")
    return named


def _folder(folder: str | Path) -> Path:
    return Path(folder).expanduser().absolute()
