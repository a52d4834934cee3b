"""The Client class: one API over every server, whatever its revision and transport."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import msgspec
from msgspec import UNSET, Raw

from .. import types as t
from ..exchange import (
    AnyResult,
    Asker,
    Caller,
    Exchange,
    Handler,
    Middleware,
    Notify,
    silent,
    stack,
)
from ..extension import Extension, layers_of, lifespan_of
from ..keywords import check_keywords
from ..lifespan import Lifespan
from ..logs import limited
from ..meta_keys import check_keys
from ..observe.spans import Tracing
from ..protocol.metadata import PROTOCOL_KEYS, TRACE_KEYS
from ..protocol.opening import Opened
from ..protocol.pass_through import without_protocol_keys
from ..protocol.response_cache import CACHEABLE, ResponseCache
from ..transport.conversation import GONE, ClientTransport, Hello
from ..transport.list_pages import LARGE, ListLimits
from ..version import VERSION
from ..wire.codec import encode
from ..wire.revisions import HANDSHAKE_REVISIONS, METHODS, REVISIONS, Era, Side, speaks
from .answers import Answers, ElicitFunction
from .backchannel import BackChannel, lacks_back_channel
from .caching import caching
from .callbacks import Callbacks
from .extensions import ClientExtensions
from .incoming import IncomingNotifications
from .options import (
    ClientOptions,
    ClientSettings,
    OnLog,
    OnNotification,
    OnProgress,
    Seconds,
    TaskCallOptions,
    TransportOptions,
)
from .output_validation import OutputValidator
from .request_timeout import RequestTimeout
from .rounds import Asking, rounds
from .session_tracing import SessionTracing
from .targets import Target, add_tap, label_of, revision_in, server_of_many, transport_to
from .watch import Watch, listening, watching, without_place

if TYPE_CHECKING:
    from .skills import Skill, SkillListing
    from .source import ClientSource
    from .tasks.calls import ServerTasks
    from .tasks.handle import TaskHandle
    from .tasks.receiver import QuestionTasks

log = limited("interlock.client")
R = TypeVar("R", bound=t.Result)
MOST_PAGES = 10_000
DEFAULT_TIMEOUT = 300.0
MOST_OPEN_SECONDS = 60.0  # no server takes longer to answer the handshake


class Client:
    """A client of one server.

    Use it as an async context manager, from any task of one event loop.

    Args:
        target: A Server in this process; the path of a script (.py, .js); a command (a list, or a
            string that is split like in a shell); an entry of an `mcpServers` configuration;
            `https://host/path`, `unix:///path` or `tcp://host:port`; a Channel; or a transport such
            as `Http(url, ...)`.
        elicit: Answers the server's questions to the person (see Answers).
        answers: Answers all kinds of questions, in place of `elicit`. The client declares the
            matching capabilities to the server.
        on_log: Called with each log message.
        on_notification: Called with every other notification that belongs to no request. These
            callbacks may be plain or async. They are called in order; their errors are logged.
        info: The name, version and title of the client.
        revision: The revision to use, or the allowed revisions. The default is the revision of the
            configuration entry, or else all: the client and the server negotiate one.
        log_level: The lowest level of log messages that the server sends.
        timeout: The maximum duration of a request in seconds, unless the request has its own; None
            for no limit.
        middleware: Middleware around every exchange, the outermost first. Notifications of the
            server that belong to no request are exchanges too; their `received` is set. An
            extension in the list stands for its own middleware at that position; the middleware of
            other extensions follows.
        extensions: The extensions that the client supports; it declares them to the server.
        settings: Further timeouts and limits, the response cache, validation.
        tracing: A tracing system, such as `interlock.observe.opentelemetry.OpenTelemetry`: a span
            for each request, outside of the other middleware, and the duration of each session.
        transport: Options of the transport to the target, as in TransportOptions.

    Raises:
        TypeError, ValueError: The target or an option is invalid.
    """

    def __init__(
        self,
        target: Target,
        *,
        elicit: ElicitFunction | None = None,
        answers: Answers | None = None,
        on_log: OnLog | None = None,
        on_notification: OnNotification | None = None,
        info: t.Implementation | None = None,
        revision: str | Sequence[str] | None = None,
        log_level: t.LoggingLevel | None = None,
        timeout: float | None = DEFAULT_TIMEOUT,
        middleware: Sequence[Middleware | Extension] = (),
        extensions: Sequence[Extension] = (),
        settings: ClientSettings | None = None,
        tracing: Tracing | None = None,
        **transport: Unpack[TransportOptions],
    ) -> None:
        check_keywords(transport, ClientOptions.__annotations__, "Client()")
        if elicit is not None and answers is not None:
            raise TypeError("give either elicit or answers: Answers(elicit=...) has both")
        self._many = server_of_many(target)
        if self._many is not None:
            target = self._many
        allowed = _allowed_revisions(revision_in(target) if revision is None else revision)
        settings = settings or ClientSettings()
        self.label = label_of(target)
        """The target for error messages and logs, without anything secret."""
        self.info = info or t.Implementation(name="interlock", version=VERSION)
        self.timeout = timeout
        self.settings = settings
        self.log_level = log_level
        self._answers_nothing = answers is None and elicit is None
        self._is_source = False
        self._alive = False
        self._callbacks = Callbacks()
        on_stderr = transport.pop("on_stderr", None)
        record = transport.pop("record", None)
        self._transport: ClientTransport = transport_to(
            target,
            on_stderr=partial(self._callbacks.call, on_stderr) if on_stderr is not None else None,
            web={name: value for name, value in transport.items() if value is not None},
        )
        if record is not None:
            add_tap(self._transport, record.connection())
        self._on_log = on_log
        self._on_notification = on_notification
        self._allowed = allowed
        self._list_limits = ListLimits(settings.max_list_items, settings.max_list_bytes)
        self._output_validator = OutputValidator()
        self._response_cache = ResponseCache()
        self._watches: set[Watch] = set()
        self._asking: Asking = set()
        self._opening = asyncio.Lock()
        self._opened: Opened | None = None
        self._caller: Caller | None = None
        self._tasks: ServerTasks | None = None  # if the server offers tasks
        self._tasks_caller: Caller | None = None  # with the tasks extension declared
        self._known: str | None = None  # the revision of the last connection (`ERA-13`)
        self._introduced = asyncio.Event()  # once the caller is known, or never will be
        self._middleware = tuple(middleware)
        self._session_tracing: SessionTracing | None = None
        if tracing is not None:
            self._session_tracing = SessionTracing(tracing, self._transport)
            self._middleware = (self._session_tracing.middleware, *self._middleware)
        self._declare(answers or Answers(elicit=elicit), extensions)

    def _declare(self, answers: Answers, extensions: Sequence[Extension]) -> None:
        """Set what the client declares to the server, and what depends on it."""
        settings = self.settings
        allowed = self._allowed
        self._answers = answers
        self._extensions = ClientExtensions(extensions, answers.capabilities)
        self._lifespan = Lifespan(lifespan_of(self._extensions.all, self, None))
        self._question_tasks: QuestionTasks | None = None  # if the client can answer questions
        if self._extensions.runs_tasks:
            from .tasks.receiver import QuestionTasks  # late: many clients answer no questions

            self._question_tasks = QuestionTasks(answers.capabilities)
        handshake = [r for r in HANDSHAKE_REVISIONS if r in allowed]
        self._back: BackChannel | None = None
        may = self._answers.capabilities
        answers_any = (may.elicitation, may.sampling, may.roots) != (None, None, None)
        older = settings.older_for_questions
        if answers_any and handshake and len(handshake) < len(allowed):
            self._back = BackChannel(
                handshake[-1],
                can_ask=self._can_ask,
                reopen=self._reopen,
                tools=self.list_tools,
                say=self._say,
                may_repeat=older if callable(older) else None,
                goes_back=bool(older),
            )
        self._handler: Handler = stack(
            self._extensions.sending(self._transport),
            rounds(
                settings.max_rounds, self._asking
            ),  # the outermost of our layers, so that it sees retries (`MRT-19`)
            *([caching(self._response_cache, settings.clock)] if settings.cache else []),
        )
        self._incoming: IncomingNotifications | None = None
        if layers := layers_of(self._middleware, self._extensions.all):
            self._incoming = IncomingNotifications(self._caller_of_notifications, self._deliver)
            self._handler = self._incoming.around(self._handler, layers)

    # -- opening and closing -----------------------------------------------------------------------

    async def __aenter__(self) -> Client:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def open(self) -> None:
        """Connect to the server and negotiate a revision.

        Raises:
            ValueError: A requirement of an extension is not met.
            Unreachable, ProtocolError, McpError: The server is unreachable or rejects the client.
        """
        async with self._opening:
            if self._opened is None:
                self._extensions.check_requirements()
                await self._lifespan.enter()
                self._alive = True
                await self._open()

    async def _open(self) -> None:
        hello = Hello(
            info=self.info,
            capabilities=self._extensions.capabilities,
            asker=self._answers,
            notify=self._receive_notification,
            lost=self._lose,
            revisions=self._allowed,
            known=self._known,
            probe_seconds=self.settings.probe_timeout,
            open_seconds=min(self.timeout or MOST_OPEN_SECONDS, MOST_OPEN_SECONDS),
            list_limits=self._list_limits,
            extensions=self._extensions.messages,
            tasks=self._question_tasks,
        )
        try:
            opened = await self._transport.open(hello)
            declared = self._extensions.messages.with_core(
                opened.capabilities, opened.capabilities, opened.revision
            )
            self._opened = msgspec.structs.replace(opened, capabilities=declared)
            self._known = self._opened.revision
            if self._session_tracing is not None:
                self._session_tracing.start(self._known)
            self._caller = Caller(
                self._opened.revision,
                hello.capabilities_in(self._opened.revision),
                self.info,
                self.log_level,
            )
            self._find_tasks()
            self._introduced.set()
            if (
                self.log_level is not None
                and self._caller.era is Era.HANDSHAKE
                and self._opened.capabilities.logging is not None
            ):
                await self.set_log_level(self.log_level)
        except BaseException:
            self._known = None  # the server may have changed since
            await self.aclose()
            raise

    def _find_tasks(self) -> None:
        """Use the tasks of the server, if it offers them under the negotiated revision.

        Only calls that can wait for a task declare the extension, so that the server makes no task
        for any other request.
        """
        self._tasks = None
        self._tasks_caller = None
        settings = self._extensions.tasks_settings(self.server_capabilities, self.revision)
        if settings is not None:
            from .tasks.calls import ServerTasks  # late: few servers offer tasks

            self._tasks_caller = self._extensions.as_tasks_caller(self.caller)
            link = _TasksLink(self)
            self._tasks = ServerTasks(link, settings, self._output_validator.check, self._answers)

    async def aclose(self) -> None:
        """Close the connection, and stop the server if it is a child process. You can call it
        twice.
        """
        opened = self._opened
        self._opened = None
        if opened is not None:
            for watch in list(self._watches):
                watch.lose(t.Unreachable("The client was closed."))
        if self._back is not None:
            await self._back.aclose()
        for question in self._asking - {asyncio.current_task()}:
            # between two rounds the transport has no request that it could end
            question.cancel()
        await self._transport.aclose()
        if self._session_tracing is not None:
            self._session_tracing.end()
        if self._question_tasks is not None:
            await self._question_tasks.aclose()
        if self._incoming is not None:
            self._introduced.set()
            await self._incoming.aclose()
        await self._callbacks.aclose()
        if self._alive:
            self._alive = False
            await self._lifespan.leave()

    async def _reopen(self, revision: str) -> bool:
        """Open the server again under an older revision; True if it accepts that revision."""
        async with self._opening:
            if self._opened is None:
                raise t.Unreachable("The client was closed.")
            self._opened = None
            for watch in list(self._watches):
                watch.lose(t.Unreachable("The client speaks an older revision now; watch again."))
            await self._transport.aclose()
            if self._session_tracing is not None:
                self._session_tracing.end()
            if self._question_tasks is not None:
                await self._question_tasks.aclose()
            self._known = revision
            await self._open()
            return self._can_ask()

    def _can_ask(self) -> bool:
        """Whether servers of the negotiated revision send requests."""
        return self._caller is not None and self._caller.era is Era.HANDSHAKE

    def _say(self, words: str) -> None:
        """Pass a log message of the client itself to the user."""
        log.warning("%s", words)
        if self._on_log is not None:
            message = t.LoggingMessageNotificationParams(
                level="warning", logger="interlock", data=words
            )
            self._callbacks.call(self._on_log, message)

    async def _caller_of_notifications(self) -> Caller:
        """The caller of the server's notifications; a guess if the client was never open."""
        if self._caller is None:
            await self._introduced.wait()
        return self._caller or Caller(
            self._allowed[-1], self._extensions.capabilities, self.info, self.log_level
        )

    def as_source(self) -> ClientSource:
        """Return this client as a source, as `Server.mount` uses it: it then belongs to the source.

        A client that is not open, and was given no answers, declares that it can be asked
        everything. The questions go to the callers of the server.

        Raises:
            ValueError: The client has a source already.
        """
        from .source import ClientSource, forwarding_answers  # late: few clients are mounted

        if self._is_source:
            raise ValueError(f"the client of {self.label} is mounted already; make another client")
        self._is_source = True

        if self._answers_nothing and not self.connected:
            self._declare(forwarding_answers(self.extensions), self.extensions)
        return ClientSource(self)

    @property
    def unreachable(self) -> dict[str, str]:
        """Of a client of several targets: why some of them cannot be used now, by their names."""
        mounts = () if self._many is None else self._many.mounts
        problems = {m.prefix: getattr(m.source, "problem", None) for m in mounts}
        return {name: why for name, why in problems.items() if why is not None}

    @property
    def token_refreshes(self) -> Mapping[str, int]:
        """How often the OAuth tokens of the server were refreshed by this program, by outcome: ok,
        refused (a new login is necessary), failed. Empty without `auth`.
        """
        found: Mapping[str, int] = getattr(self._transport, "token_refreshes", {})
        return found

    @property
    def offers_tasks(self) -> bool:
        """Whether the server makes tool calls tasks under the negotiated revision."""
        return self._tasks is not None

    @property
    def connected(self) -> bool:
        """Whether the client is open."""
        return self._opened is not None

    @property
    def caller(self) -> Caller:
        """The client's information and capabilities, which each request includes."""
        if self._caller is None or self._opened is None:
            raise t.Unreachable(
                "The client is not open; use it in `async with Client(...) as client`."
            )
        return self._caller

    @property
    def revision(self) -> str:
        """The negotiated revision."""
        return self.caller.revision

    @property
    def server_info(self) -> t.Implementation | None:
        """The name and version of the server; for display only."""
        return self._opened.info if self._opened is not None else None

    @property
    def server_capabilities(self) -> t.ServerCapabilities:
        """The capabilities of the server."""
        return self._opened.capabilities if self._opened is not None else t.ServerCapabilities()

    @property
    def extensions(self) -> tuple[Extension, ...]:
        """The extensions of this client."""
        return self._extensions.all

    @property
    def instructions(self) -> str | None:
        """The server's instructions for models on how to use it."""
        return self._opened.instructions if self._opened is not None else None

    @property
    def probe_failed(self) -> bool:
        """Whether `server/discover` broke the server, so that a new process was started for the
        handshake.

        In this case store `revision`: a client with this revision avoids the failure.
        """
        return self._opened is not None and self._opened.probe_failed

    @staticmethod
    def could_not_ask(outcome: t.Result | t.McpError) -> bool:
        """Whether a request failed because the server cannot ask questions under the negotiated
        revision (`asks_under`).
        """
        return lacks_back_channel(outcome)

    @property
    def asks_under(self) -> str | None:
        """The older revision under which the server can ask questions, once the server has reported
        that it cannot ask under the current one; else None.
        """
        return self._back.older if self._back is not None and self._back.missing else None

    # -- tools -------------------------------------------------------------------------------------

    async def list_tools(self, *, timeout: Seconds = UNSET) -> list[t.Tool]:
        """Return all tools, over all pages; `timeout` is for each page. Raises McpError,
        Unreachable.
        """
        tools: list[t.Tool] = await self._all("tools/list", "tools", timeout)
        if self._tasks is not None:
            self._tasks.learn(tools)
        if self.settings.validate:
            self._output_validator.learn(tools)
        return tools

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: Seconds = UNSET,
        max_timeout: Seconds = UNSET,
        on_progress: OnProgress | None = None,
        asker: Asker | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> t.CallToolResult:
        """Call a tool and return its result (2026-07-28, "Tools").

        A result may say that the tool failed (`is_error`); its `value()` raises then.

        If the server makes the call a task, this method waits for the task. The client's own
        timeout then applies to each request about the task, not to the task. If the wait ends
        early, the task is cancelled. `start_tool` returns a handle instead.

        Args:
            name: The name of the tool.
            arguments: The arguments of the call.
            timeout: The maximum duration of the call in seconds, also of its task; None for no
                limit.
            max_timeout: The maximum duration in total, in seconds, if progress restarts `timeout`.
            on_progress: Called with each progress notification, always before this method returns.
            asker: Answers the questions of this call in place of the client's own.
            meta: The author's part of the request's `_meta`.

        Raises:
            McpError: The server answers with an error.
            ProtocolError: The structured content does not fit the tool's output schema.
            TaskCancelled: The call became a task, and the task was cancelled.
            TimedOut: The call takes too long.
            Unreachable: The server does not respond, or the connection is lost.
        """
        # The member is always sent, even if empty: many deployed servers reject a call without it
        # (`if (!arguments) throw`), and no known server rejects an empty object.
        raw = Raw(msgspec.json.encode(arguments if arguments is not None else {}))
        params = t.CallToolRequestParams(name=name, arguments=raw, meta=_meta(meta))
        if self._tasks is not None:
            return await self._tasks.call(
                params, self._call_options(timeout, max_timeout, on_progress, asker)
            )
        result = await self._request(
            "tools/call", params, t.CallToolResult, timeout, on_progress, asker, max_timeout
        )
        self._output_validator.check(name, result)
        return result

    # -- tasks -------------------------------------------------------------------------------------

    async def start_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        ttl: float | None = None,
        timeout: Seconds = UNSET,
        max_timeout: Seconds = UNSET,
        on_progress: OnProgress | None = None,
        asker: Asker | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> TaskHandle:
        """Call a tool without waiting for its task (2026-07-28, extension
        `io.modelcontextprotocol/tasks`; 2025-11-25, "Tasks").

        Under 2026-07-28 the server decides which calls become tasks. Under 2025-11-25 the client
        asks for a task if the tool can be one. Every other call has ended when this method returns,
        and its handle has the result.

        Args:
            name: The name of the tool.
            arguments: The arguments of the call.
            ttl: The time for which the server should keep the task, in seconds; only 2025-11-25
                has it.
            timeout: The maximum duration of the request in seconds; None for no limit. It does not
                apply to the task.
            max_timeout: The maximum duration of the request in total, in seconds, if progress
                restarts `timeout`.
            on_progress: Called with the progress of the request.
            asker: Answers the questions of the call and of its task in place of the client's own.
            meta: The author's part of the request's `_meta`.

        Raises:
            McpError: The server answers with an error.
            TimedOut: The request takes too long.
            Unreachable: The server does not respond, or the connection is lost.
        """
        if self._tasks is None:
            from .tasks.handle import TaskHandle  # late: few clients use it

            answer = await self.call_tool(
                name,
                arguments,
                timeout=timeout,
                max_timeout=max_timeout,
                on_progress=on_progress,
                asker=asker,
                meta=meta,
            )
            return TaskHandle.answered(answer, asker or self._answers)
        raw = Raw(msgspec.json.encode(arguments if arguments is not None else {}))
        params = t.CallToolRequestParams(name=name, arguments=raw, meta=_meta(meta))
        options = self._call_options(timeout, max_timeout, on_progress, asker)
        return await self._tasks.start(params, options, ttl)

    def task(self, id: str, *, asker: Asker | None = None) -> TaskHandle:
        """Return a handle for a task by its id, for example one that was stored before a restart.

        This sends no request.

        Args:
            id: The id of the task.
            asker: Answers the questions of the task in place of the client's own.

        Raises:
            McpError: The server does not offer tasks (-32601).
            Unreachable: The client is not open.
        """
        return self._offered_tasks("the task was not requested").handle(id, asker)

    async def tasks(self) -> list[TaskHandle]:
        """Return handles for all tasks that the server lists. Only 2025-11-25 has such a list.

        Raises:
            McpError: The revision or the server has no list of tasks (-32601), or the server
                answers with an error.
            Unreachable: The server does not respond, or the connection is lost.
        """
        return await self._offered_tasks("the list was not requested").list()

    def _offered_tasks(self, what: str) -> ServerTasks:
        if self._tasks is None:
            raise t.McpError(
                t.METHOD_NOT_FOUND,
                f"The server does not offer tasks under {self.revision}; {what}.",
            )
        return self._tasks

    def _call_options(
        self,
        timeout: Seconds,
        max_timeout: Seconds,
        on_progress: OnProgress | None,
        asker: Asker | None,
    ) -> TaskCallOptions:
        return TaskCallOptions(
            timeout=timeout,
            max_timeout=max_timeout,
            on_progress=on_progress,
            asker=asker or self._answers,
        )

    # -- resources ---------------------------------------------------------------------------------

    async def list_resources(self, *, timeout: Seconds = UNSET) -> list[t.Resource]:
        """Return all resources, over all pages."""
        resources: list[t.Resource] = await self._all("resources/list", "resources", timeout)
        return resources

    async def list_resource_templates(
        self, *, timeout: Seconds = UNSET
    ) -> list[t.ResourceTemplate]:
        """Return all resource templates, over all pages."""
        templates: list[t.ResourceTemplate] = await self._all(
            "resources/templates/list", "resource_templates", timeout
        )
        return templates

    async def read_resource(
        self,
        uri: str,
        *,
        timeout: Seconds = UNSET,
        asker: Asker | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> t.ReadResourceResult:
        """Read a resource.

        Args:
            uri: The URI of the resource.
            timeout: The maximum duration of the request in seconds; None for no limit.
            asker: Answers the questions of this request in place of the client's own.
            meta: The author's part of the request's `_meta`.

        Raises:
            McpError: The resource does not exist (-32602, or -32002 from older servers).
        """
        params = t.ReadResourceRequestParams(uri=uri, meta=_meta(meta))
        return await self._request(
            "resources/read", params, t.ReadResourceResult, timeout, None, asker
        )

    def watch(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool | str | Sequence[str] = False,
        filter: Mapping[str, Any] | None = None,
    ) -> contextlib.AbstractAsyncContextManager[Watch]:
        """Subscribe to changes while a block runs (2026-07-28, "Subscriptions").

        Use it as `async with client.watch(tools=True) as changes: async for change in changes:
        ...`.

        Args:
            tools: Whether to watch the list of tools.
            prompts: Whether to watch the list of prompts.
            resources: True for the list of resources, or the URIs of resources to watch.
            filter: Further keys of the filter, from extensions of this client.

        Raises:
            McpError: The server rejects the subscription.
            TimedOut: The server does not acknowledge it in time.
            Unreachable: The server does not respond, or the connection is lost.
        """
        return watching(
            self,
            self._watches,
            tools=tools,
            prompts=prompts,
            resources=resources,
            filter=filter or {},
            extensions=self._extensions,
            unasked=self._pass_on,
        )

    # -- skills ------------------------------------------------------------------------------------

    @property
    def list_limits(self) -> ListLimits:
        """The maximum size of a list over all its pages."""
        return self._list_limits

    async def list_skills(self) -> SkillListing:
        """Return all skills that the server lists (2026-07-28, extension
        `io.modelcontextprotocol/skills`).

        This fetches no files. Invalid entries are omitted; the attribute `refused` of the result
        contains them.

        Raises:
            McpError: The server does not offer skills (-32601), or answers with an error.
            Unreachable: The server does not respond, or the connection is lost.
        """
        from .skills import list_skills  # late: few clients use skills

        return await list_skills(self)

    async def skill(self, uri: str) -> Skill:
        """Return one skill by the URI of its `SKILL.md`, even if the server does not list it.

        This fetches no files.

        Raises:
            SkillError: The entry breaks a rule of the extension.
            McpError: The server has no such skill (-32602), or does not offer skills (-32601).
            Unreachable: The server does not respond, or the connection is lost.
        """
        from .skills import get_skill  # late: few clients use skills

        return await get_skill(self, uri)

    async def read_directory(self, uri: str) -> list[t.Resource]:
        """Return the direct children of a directory resource. Folders have the MIME type
        `inode/directory`.

        Raises:
            McpError: The directory does not exist (-32602), or the server cannot list directories
                (-32601).
            Unreachable: The server does not respond, or the connection is lost.
        """
        from .skills import read_directory  # late: few clients use skills

        return await read_directory(self, uri)

    # -- prompts and completion --------------------------------------------------------------------

    async def list_prompts(self, *, timeout: Seconds = UNSET) -> list[t.Prompt]:
        """Return all prompts, over all pages."""
        prompts: list[t.Prompt] = await self._all("prompts/list", "prompts", timeout)
        return prompts

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: Seconds = UNSET,
        asker: Asker | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> t.GetPromptResult:
        """Get a prompt with its arguments filled in.

        Args:
            name: The name of the prompt.
            arguments: The arguments of the prompt. Values other than strings are sent as JSON
                (`PRM-05`).
            timeout: The maximum duration of the request in seconds; None for no limit.
            asker: Answers the questions of this request in place of the client's own.
            meta: The author's part of the request's `_meta`.

        Raises:
            McpError: The server answers with an error.
        """
        given = {
            key: v if isinstance(v, str) else msgspec.json.encode(v).decode()
            for key, v in (arguments or {}).items()
        }
        params = t.GetPromptRequestParams(name=name, arguments=given, meta=_meta(meta))
        return await self._request("prompts/get", params, t.GetPromptResult, timeout, None, asker)

    async def complete(
        self,
        ref: t.PromptReference | t.ResourceTemplateReference | str,
        argument: str,
        value: str = "",
        *,
        arguments: Mapping[str, str] | None = None,
        timeout: Seconds = UNSET,
    ) -> t.Completion:
        """Suggest values for an argument of a prompt or a resource template.

        Args:
            ref: The prompt or template. A string with a scheme is a URI template, any other string
                is the name of a prompt.
            argument: The name of the argument.
            value: The text typed so far.
            arguments: The other arguments that are known already.
            timeout: The maximum duration of the request in seconds; None for no limit.

        Raises:
            McpError: The server answers with an error.
        """
        if isinstance(ref, str):
            ref = (
                t.ResourceTemplateReference(uri=ref)
                if "://" in ref
                else t.PromptReference(name=ref)
            )
        params = t.CompleteRequestParams(
            ref=ref,
            argument=t.CompletionArgument(name=argument, value=value),
            context=t.CompletionContext(arguments=dict(arguments)) if arguments else None,
        )
        return (
            await self._request("completion/complete", params, t.CompleteResult, timeout)
        ).completion

    # -- other requests ----------------------------------------------------------------------------

    async def ping(self, *, timeout: Seconds = UNSET) -> None:
        """Check that the server responds. The stateless era has no ping, so this sends
        `server/discover` there (`PNG-04`).
        """
        if self.caller.era is Era.HANDSHAKE:
            await self._request("ping", t.PingRequestParams(), t.EmptyResult, timeout)
        else:
            self._response_cache.forget("server/discover")
            await self._request(
                "server/discover", t.DiscoverRequestParams(), t.DiscoverResult, timeout
            )

    async def set_log_level(self, level: t.LoggingLevel) -> None:
        """Set the lowest level of log messages that the server sends."""
        caller = self.caller
        self.log_level = level
        if caller.era is Era.HANDSHAKE:
            await self._request(
                "logging/setLevel", t.SetLevelRequestParams(level=level), t.EmptyResult
            )
        self._caller = Caller(
            caller.revision,
            caller.capabilities,
            caller.info,
            level,
            caller.principal,
            caller.session,
        )
        if self._tasks_caller is not None:
            self._tasks_caller = self._extensions.as_tasks_caller(self._caller)

    def roots_changed(self) -> None:
        """Notify the server that the roots have changed, in the handshake era only. In the
        stateless era the server asks for the roots each time.
        """
        if (
            self.caller.era is Era.HANDSHAKE and self._answers.capabilities.roots is not None
        ):  # `LIF-12`
            self._transport.send_notification(
                "notifications/roots/list_changed", t.RootsListChangedNotificationParams()
            )

    async def request(
        self,
        method: str,
        params: t.Params,
        kind: type[R] = t.Result,  # type: ignore[assignment]  # without it any result will do
        *,
        timeout: Seconds = UNSET,
        max_timeout: Seconds = UNSET,
        on_progress: OnProgress | None = None,
        asker: Asker | None = None,
    ) -> R:
        """Send any request of the protocol or of this client's extensions, and return its result.

        A request of an extension is sent only to a server that offers the extension.

        Args:
            method: The method.
            params: The params.
            kind: The type of the result.
            timeout: The maximum duration in seconds.
            max_timeout: The maximum duration in total, in seconds, if progress restarts `timeout`.
            on_progress: Called with the progress of the request.
            asker: Answers the questions of this request in place of the client's own.

        Raises:
            ValueError: The method is unknown.
            McpError: The server answers with an error, or does not offer the extension (-32601).
            ProtocolError: The result has another type.
            Unreachable: The server does not respond, or the connection is lost.
        """
        row = METHODS.get(method)
        if row is None:
            self._extensions.check_request(method, params, self.caller, self.server_capabilities)
        elif row.result is None or row.sender is Side.SERVER:
            raise ValueError(f"{method} is not a request that a client sends")
        return await self._request(
            method, params, kind, timeout, on_progress, asker, max_timeout=max_timeout
        )

    async def notify(self, method: str, params: t.Params) -> None:
        """Send a notification of an extension, through all middleware. It has no response.

        Raises:
            ValueError: No extension of this client has the notification.
            McpError: The server does not offer the extension (-32601).
        """
        caller = self.caller
        self._extensions.check_notification(method, params, caller, self.server_capabilities)
        await self._handler(Exchange(method, params, caller))

    async def send(self, exchange: Exchange) -> AnyResult:
        """Send an exchange through all middleware to the server. This makes the client a handler,
        for gateways and tests.

        The request always has the client's own revision, capabilities and name. The trace and the
        log level of the exchange are forwarded. Progress, logs and questions go back to the sender
        of the exchange. A subscription (`subscriptions/listen`) lasts until it is cancelled, under
        every revision.

        Returns:
            The result. It is a `RawResult`, which `decode` reads, if the exchange came from a peer
            of the same revision; then unchanged parts are forwarded as bytes, in both directions.

        Raises:
            McpError: The server's answer is an error.
            Unreachable: The server does not respond, or the connection is lost.
        """
        return await self._forward(exchange, self.caller)

    async def request_raw(self, method: str, params: bytes) -> AnyResult:
        """Send a request whose params are sent as they are written, also unknown members and values
        of a wrong type. For inspectors and for tests of servers.

        The client sets the keys of the protocol in `_meta`. There is no time limit.

        Args:
            method: The method; it may be unknown.
            params: A JSON object.

        Raises:
            ValueError: The params are not a JSON object.
            McpError: The server answers with an error.
            Unreachable: The server does not respond, or the connection is lost.
        """
        from .raw_request import raw_exchange  # late: few clients use it

        return await self._carry(raw_exchange(method, params, self.caller, self._answers))

    async def send_call(
        self, exchange: Exchange, *, as_task: bool = True, ttl: float | None = None
    ) -> AnyResult | TaskHandle:
        """Send a tool call as `send` does, and let the server make it a task. For gateways.

        Args:
            exchange: The exchange of a `tools/call`. Its asker also answers the questions of the
                task.
            as_task: Whether a call that can be a task should be one. Otherwise it becomes a task
                only if the server requires that.
            ttl: The time for which the server should keep the task, in seconds; only 2025-11-25
                has it.

        Returns:
            The result, or a handle if the call has become a task.

        Raises:
            McpError: The server's answer is an error.
            Unreachable: The server does not respond, or the connection is lost.
        """
        if self._tasks is not None:
            return await self._tasks.forward(exchange, as_task=as_task, ttl=ttl)
        if exchange.params.task is not None:
            params = msgspec.structs.replace(exchange.params, task=None)
            exchange = msgspec.structs.replace(exchange, params=params)
        return await self.send(exchange)

    async def task_support(self, tool: str) -> str | None:
        """Return whether a tool can be called as a task: "forbidden", "optional" or "required"
        (2025-11-25, "Tasks"). None means that the server decides it for each call (2026-07-28).

        Raises:
            McpError: The server answers with an error.
            Unreachable: The server does not respond, or the connection is lost.
        """
        return "forbidden" if self._tasks is None else await self._tasks.support(tool)

    async def _forward(self, exchange: Exchange, caller: Caller) -> AnyResult:
        if exchange.caller is not caller:
            theirs = exchange.caller
            # The response cache gives a private answer only to the principal that got it.
            principal = theirs.principal if exchange.method in CACHEABLE else None
            if (theirs.trace, theirs.log_level, principal) != (None, caller.log_level, None):
                caller = msgspec.structs.replace(
                    caller, trace=theirs.trace, log_level=theirs.log_level, principal=principal
                )
            exchange = msgspec.structs.replace(exchange, caller=caller)
        if exchange.method == "subscriptions/listen":
            exchange = without_place(exchange)
            if not speaks(caller.revision, exchange.method):
                return await listening(self, self._watches, exchange)
        if self._incoming is not None and exchange.notify is not silent:
            exchange = msgspec.structs.replace(
                exchange, notify=self._incoming.ordered(exchange.notify)
            )
        result = await self._carry(exchange)
        return without_protocol_keys(result) if isinstance(result, t.Result) else result

    # -- internals ---------------------------------------------------------------------------------

    async def _request(
        self,
        method: str,
        params: Any,
        kind: type[R],
        timeout: Seconds = UNSET,
        on_progress: OnProgress | None = None,
        asker: Asker | None = None,
        max_timeout: Seconds = UNSET,
        with_tasks: bool = False,
    ) -> R:
        send = partial(
            self._request_once,
            method,
            params,
            kind,
            timeout,
            on_progress,
            asker,
            max_timeout,
            with_tasks,
        )
        if self._back is None:
            return await send()
        return await self._back.carry(method, params, send)

    async def _carry(self, x: Exchange) -> AnyResult:
        """Send an exchange. Its response is delivered after all notifications that arrived before
        it.

        The waiting happens outside of the middleware, which may hold a lock that a notification
        needs.
        """
        if self._incoming is None or self._opening.locked():
            return await self._handler(x)
        try:
            result = await self._handler(x)
        except Exception:
            await self._incoming.caught_up()
            raise
        await self._incoming.caught_up()
        return result

    async def _request_once(
        self,
        method: str,
        params: Any,
        kind: type[R],
        timeout: Seconds,
        on_progress: OnProgress | None,
        asker: Asker | None,
        max_timeout: Seconds,
        with_tasks: bool,
    ) -> R:
        caller = self.caller
        if with_tasks and self._tasks_caller is not None:
            caller = self._tasks_caller
        wait = self._wait(method, timeout, max_timeout)
        restart = wait.restart if wait is not None and wait.restarts_on_progress else None
        callbacks = Callbacks() if on_progress is not None else None
        notify = (
            silent
            if on_progress is None and restart is None
            else _progress(on_progress, callbacks, restart, self._incoming)
        )
        x = Exchange(method, params, caller, notify=notify, asker=asker or self._answers)
        if wait is not None:
            x.transport = wait
        work = self._carry(x) if self._incoming is not None else self._handler(x)
        try:
            result = await (work if wait is None else wait.run(work))
        except (asyncio.CancelledError, t.TimedOut):
            if callbacks is not None:
                callbacks.close()
            raise
        finally:
            if callbacks is not None:
                await callbacks.finished()
        if not isinstance(result, kind):
            words = f"The server answered {method} with something else: {type(result).__name__}"
            if isinstance(result, t.Result) and result.result_type is not None:
                words += ", a result of an extension; client.request returns such results"
            raise t.ProtocolError(words)
        return result

    def _wait(self, method: str, timeout: Seconds, max_timeout: Seconds) -> RequestTimeout | None:
        seconds = self.timeout if timeout is UNSET else timeout
        most = self.settings.max_timeout if max_timeout is UNSET else max_timeout
        if seconds is None:
            seconds = most
            most = None
        return None if seconds is None else RequestTimeout(method, seconds, most)

    async def _all(self, method: str, field: str, timeout: Seconds) -> list[Any]:
        """Return all pages of a list (`TOL-29`). Starts again if a cached page has an expired
        cursor (`CAC-10`).
        """
        try:
            return await self._pages(method, field, timeout)
        except t.McpError as bad:
            kept = self._response_cache.forget(method)
            if bad.code != t.INVALID_PARAMS or not (kept or bad.data == GONE):
                raise
        return await self._pages(method, field, timeout)

    async def _pages(self, method: str, field: str, timeout: Seconds) -> list[Any]:
        """Return the items of all pages, one page after the other. A repeated cursor is an error
        (`PAG-03`: an empty cursor is valid).
        """
        items: list[Any] = []
        cursor: str | None = None
        seen: set[str] = set()
        size = 0
        for _ in range(MOST_PAGES):
            page: Any = await self._request(
                method, METHODS[method].params(cursor=cursor), t.PaginatedResult, timeout
            )
            items += getattr(page, field)
            cursor = page.next_cursor
            # A single page was measured on arrival, unless it was small.
            if seen or cursor is not None or self._list_limits.bytes < LARGE:
                size += len(encode(page))
            self._list_limits.check(method, len(items), size)
            if cursor is None:
                return items
            if cursor in seen:
                raise t.ProtocolError(
                    f"The server gives the same cursor of {method} again and again."
                )
            seen.add(cursor)
        raise t.ProtocolError(f"The server's {method} has more than {MOST_PAGES} pages.")

    def invalidate(self, method: str, params: Any) -> None:
        """Handle a change notification: drop the cached results and the output schemas of the
        list.
        """
        self._response_cache.invalidate(method, params)
        if method == "notifications/tools/list_changed":
            self._output_validator.forget()
            if self._tasks is not None:
                self._tasks.forget()

    def _lose(self, why: Exception) -> None:
        """Handle the loss of the connection to the server.

        This ends subscriptions of the handshake era, because they are not requests that fail by
        themselves.
        """
        if self._caller is not None and self._caller.era is Era.HANDSHAKE:
            watches = list(self._watches)

            def lose() -> None:
                for watch in watches:
                    watch.lose(why)

            if self._incoming is None:
                lose()
            else:
                self._incoming.after_all(lose)

    def _receive_notification(self, method: str, params: Any) -> None:
        self.invalidate(method, params)  # even if middleware drops the notification
        if self._incoming is None:
            self._deliver(method, params)
        else:
            self._incoming.receive(method, params)

    def _deliver(self, method: str, params: Any) -> None:
        if method == "notifications/message":
            if self._on_log is not None:
                self._callbacks.call(self._on_log, params)
            return
        for watch in list(self._watches):
            watch.receive(method, params)
        self._pass_on(method, params)

    def _pass_on(self, method: str, params: Any) -> None:
        """Pass a notification to the handler of its extension, or else to `on_notification`."""
        handled = self._extensions.receive(method, params, self._callbacks, lambda: self.caller)
        if self._tasks is not None and self._tasks.receive(method, params):
            handled = True
        if not handled and self._on_notification is not None:
            self._callbacks.call(self._on_notification, method, params)


class _TasksLink:
    """The client as its tasks use it: a caller that has declared the tasks extension."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @property
    def caller(self) -> Caller:
        """The client's information and capabilities."""
        return self._client.caller

    @property
    def connected(self) -> bool:
        """Whether the client is open."""
        return self._client.connected

    @property
    def max_timeout(self) -> float | None:
        """The default maximum duration of a request in total, in seconds."""
        return self._client.settings.max_timeout

    async def list_tools(self) -> list[t.Tool]:
        """Return all tools."""
        return await self._client.list_tools()

    async def request(
        self, method: str, params: t.Params, kind: type[R], options: TaskCallOptions
    ) -> R:
        """Send a request, and return its result."""
        return await self._client._request(
            method,
            params,
            kind,
            options.timeout,
            options.on_progress,
            options.asker,
            options.max_timeout,
            with_tasks=True,
        )

    async def carry(self, exchange: Exchange) -> AnyResult:
        """Send an exchange."""
        exchange.caller = self._client._tasks_caller or self._client.caller
        return await self._client._carry(exchange)

    async def forward(self, exchange: Exchange, *, declares: bool) -> AnyResult:
        """Send an exchange on behalf of its sender."""
        client = self._client
        caller = client._tasks_caller if declares else None
        return await client._forward(exchange, caller or client.caller)

    def filter_of(self, ids: list[str]) -> t.SubscriptionFilter:
        """The filter of `subscriptions/listen` for some tasks."""
        fields: dict[str, Any] = {"taskIds": ids}
        return self._client._extensions.messages.filter(**fields)


def _allowed_revisions(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the revisions that the client may use. Raises ValueError for an unknown one."""
    if given is None:
        return tuple(REVISIONS)
    allowed = (given,) if isinstance(given, str) else tuple(given)
    if unknown := [r for r in allowed if r not in REVISIONS]:
        raise ValueError(
            f"unknown revisions: {', '.join(unknown)}; known are {', '.join(REVISIONS)}"
        )
    return allowed


def _progress(
    on_progress: OnProgress | None,
    callbacks: Callbacks | None,
    restart: Callable[[], None] | None,
    incoming: IncomingNotifications | None,
) -> Notify:
    def notify(method: str, params: Any) -> None:
        if method == "notifications/progress":
            if restart is not None:
                restart()
            if on_progress is None or callbacks is None:
                return
            if incoming is None:
                callbacks.call(on_progress, params)
            else:
                incoming.in_turn(partial(callbacks.call, on_progress), params)

    return notify


def _meta(meta: Mapping[str, Any] | None) -> Raw:
    """Return the author's part of a request's `_meta`.

    Raises:
        ValueError: A key is malformed or reserved for the protocol (`MET-02`, `MET-04`).
    """
    if not meta:
        return t.NOTHING
    check_keys(meta)
    if taken := sorted((PROTOCOL_KEYS - TRACE_KEYS).intersection(meta)):
        raise ValueError(
            f"{', '.join(taken)} in meta: the client writes the protocol's own keys itself"
        )
    return Raw(msgspec.json.encode(meta))
