"""The Context: a running call as the author of a tool, resource or prompt sees it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    Literal,
    TypeVar,
    Unpack,
    overload,
)

import msgspec
from msgspec import Struct

from ... import types as t
from ...deprecation import deprecated, warn_deprecated
from ...exchange import MUTE, Caller, Exchange, HttpRequest, Principal
from ...input_required import required_capability
from ...observe.spans import Attribute, current_tracing
from ...typed.forms import form
from ...types.lifecycle import LOGGING_LEVELS, LoggingLevel
from ..catalogue.scopes import check
from .environment import CallEnvironment, RunningServer
from .never_awaited import Started, to_be_awaited
from .session_state import SessionState, session_state

if TYPE_CHECKING:
    from types import UnionType
    from typing import (
        _SpecialForm,
    )  # the type that a type checker assigns to Literal[...] and similar expressions

    from ..server_options import FallbackModel
    from .sample_options import ToolSampleOptions, TypedSampleOptions
    from .sampling import Sampler

    State = TypeVar("State", default=Any)  # a `Context` without a parameter has a state of any type
else:
    State = TypeVar("State")  # type variables have defaults only from Python 3.13 on
T = TypeVar("T")
_HANDED_OVER_AT_ONCE = 256  # notifications of a thread before it waits for the loop
_PATIENCE = 10.0  # seconds that the thread waits
_INCLUDE_CONTEXT = (
    "include_context='thisServer' and 'allServers' are deprecated since 2025-11-25 (SEP-2596) and"
    " may be removed with sampling (SEP-2577) from 2027-07-28 on: leave the argument out."
)
_RANK = {level: n for n, level in enumerate(LOGGING_LEVELS)}


class Log:
    """Log messages for the client, one method for each level. The client sets the lowest level that
    it receives.
    """

    def __init__(self, context: Context[Any]) -> None:
        self._context = context

    def write(self, level: LoggingLevel, data: Any, logger: str | None = None) -> None:
        """Send `data` (any JSON value) at a level; `logger` names a part of the server (2026-07-28,
        "Logging").
        """
        wanted = self._context.caller.log_level
        if wanted is not None and _RANK[level] >= _RANK[wanted]:
            self._context._notify(
                "notifications/message",
                t.LoggingMessageNotificationParams(level=level, data=data, logger=logger),
            )

    def debug(self, data: Any, logger: str | None = None) -> None:
        """Details for debugging."""
        self.write("debug", data, logger)

    def info(self, data: Any, logger: str | None = None) -> None:
        """Normal operation."""
        self.write("info", data, logger)

    def notice(self, data: Any, logger: str | None = None) -> None:
        """Normal but worth noting."""
        self.write("notice", data, logger)

    def warning(self, data: Any, logger: str | None = None) -> None:
        """A condition that may become an error."""
        self.write("warning", data, logger)

    def error(self, data: Any, logger: str | None = None) -> None:
        """Something failed."""
        self.write("error", data, logger)

    def critical(self, data: Any, logger: str | None = None) -> None:
        """A part of the server failed."""
        self.write("critical", data, logger)

    def alert(self, data: Any, logger: str | None = None) -> None:
        """Immediate action is needed."""
        self.write("alert", data, logger)

    def emergency(self, data: Any, logger: str | None = None) -> None:
        """The server cannot be used."""
        self.write("emergency", data, logger)


_METHODS_OF_OTHER_SDKS: Final = {
    "request_context": "ctx.caller, ctx.request and ctx.lifespan_state",
    "lifespan_context": "ctx.lifespan_state",
    "session": "ctx.session_state for state, and the methods of ctx for questions",
    "get_state": "await ctx.session_state.get(key)",
    "set_state": "await ctx.session_state.set(key, value)",
    "list_roots": "await ctx.roots()",
    "client_id": "ctx.principal",
    "fastmcp": "ctx.server",
}
"""Attributes that a context has in other SDKs, and what replaces them."""


class Sent:
    """What methods return that send without waiting, and that other SDKs await: it may be awaited
    or not.
    """

    __slots__ = ()

    def __await__(self) -> Iterator[None]:
        """End at once."""
        return iter(())


_SENT: Final = Sent()
_LOGGING: Final = (
    "Logging is deprecated since 2026-07-28 (SEP-2577) and may be removed from revisions of"
    " 2027-07-28"
    " and later: log to stderr, which Python's logging does, or to OpenTelemetry."
)


class Context(Generic[State]):
    """A running call.

    A function gets it through a parameter annotated `Context`, or `Context[State]` for the type of
    the lifespan's state.

    Methods that wait are coroutines. A plain function runs in a thread, and waits with
    `ctx.wait(...)`.
    """

    if not TYPE_CHECKING:  # type checkers report an unknown attribute themselves

        def __getattr__(self, name: str) -> Any:
            """Say what replaces a method that other SDKs have."""
            instead = _METHODS_OF_OTHER_SDKS.get(name)
            hint = f". Use {instead}" if instead is not None else ""
            raise AttributeError(f"Context has no attribute {name!r}{hint}")

    _path = "ctx"
    _open_questions = 0  # the inactivity timeout of the call stands still meanwhile
    _made_progress = False  # since the last check of the inactivity timeout

    def __init__(
        self, exchange: Exchange, environment: CallEnvironment, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._exchange = exchange
        self._loop = loop
        self._handed_over = 0  # notifications of other threads that the loop has not sent yet
        self._thread = threading.get_ident()
        self._last_progress: float | None = None
        self._pauses: Callable[[bool], None] | None = None
        self._waits: list[asyncio.Task[Any]] = []
        self._is_declared = True
        self._sampler: Sampler | None = None
        self._started = Started()
        self._environment = environment
        # plain functions can check it: nobody waits for the result any more
        self.cancelled = False

    # -- caller and request ------------------------------------------------------------------------

    @property
    def server(self) -> RunningServer:
        """The server, to add and remove features and to announce changes."""
        return self._environment.server

    @property
    def caller(self) -> Caller:
        """The caller, with its revision and its capabilities."""
        return self._exchange.caller

    @property
    def principal(self) -> Principal | None:
        """The identity on whose behalf the call is made, as the guard verified it; None without a
        guard.
        """
        return self._exchange.caller.principal

    @property
    def request(self) -> HttpRequest | None:
        """The HTTP request that carried the call: headers, client address, method and path; None on
        every other transport.
        """
        return self._exchange.transport.request

    @property
    @deprecated(_LOGGING)
    def log(self) -> Log:
        """The client's log: `ctx.log.info("...")`."""
        return Log(self)

    def require(self, *scopes: str) -> None:
        """Require scopes of the caller.

        Use it if the scopes depend on the arguments, or if all callers may see the feature. Call it
        once, with all scopes of the call, before the call sends or changes anything. Over stdio and
        in memory the caller is the person at this machine, who has every permission. Over HTTP
        without a guard no caller has any scope (2026-07-28, "Scope Challenge Handling").

        Raises:
            Forbidden: A scope is missing. It ends the call and tells the client which scopes to
                request.
        """
        check(self._exchange.caller, scopes)

    @property
    def lifespan_state(self) -> State:
        """The value that the server's lifespan yielded. All calls of the server share it."""
        state: State = self.server.lifespan_state
        return state

    @property
    def session_state(self) -> SessionState:
        """The state that all calls of this client's session share: `await
        ctx.session_state.get("cart", [])`.

        Raises:
            NoSession: The call belongs to no session, like every call of 2026-07-28.
        """
        most = self._environment.session_state_bytes
        return session_state(self._exchange, most, self._started)

    @property
    def meta(self) -> dict[str, Any]:
        """The request's `_meta` without the protocol's own keys: the part that the client's author
        set.
        """
        decoded = msgspec.json.decode(self._exchange.params.meta)
        return decoded if isinstance(decoded, dict) else {}

    @property
    def input_responses(self) -> dict[str, Any]:
        """The answers of this round by key, for tools that return InputRequiredResult
        themselves.
        """
        return {
            key: msgspec.json.decode(raw)
            for key, raw in (self._exchange.params.input_responses or {}).items()
        }

    @property
    def request_state(self) -> str | None:
        """The state of the previous round, for tools that return InputRequiredResult themselves. It
        is sealed while the client holds it.
        """
        state: str | None = self._exchange.params.request_state
        return state

    # -- notifications -----------------------------------------------------------------------------

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Report the progress of the call. A value that does not grow is not sent (`PRG-02`).

        Args:
            progress: The value; it grows with each report.
            total: The value at the end, if known.
            message: A text for people.
        """
        self._made_progress = True
        token = self._exchange.progress_token
        if token is None or (self._last_progress is not None and progress <= self._last_progress):
            return
        self._last_progress = progress
        params = t.ProgressNotificationParams(
            progress_token=token, progress=progress, total=total, message=message
        )
        self._notify("notifications/progress", params)

    @deprecated(_LOGGING)
    def debug(self, message: Any, logger_name: str | None = None) -> Sent:
        """Do the same as `ctx.log.debug`, which other SDKs spell like this. It may be awaited."""
        Log(self).debug(message, logger_name)
        return _SENT

    @deprecated(_LOGGING)
    def info(self, message: Any, logger_name: str | None = None) -> Sent:
        """Do the same as `ctx.log.info`, which other SDKs spell like this. It may be awaited."""
        Log(self).info(message, logger_name)
        return _SENT

    @deprecated(_LOGGING)
    def warning(self, message: Any, logger_name: str | None = None) -> Sent:
        """Do the same as `ctx.log.warning`, which other SDKs spell like this. It may be awaited."""
        Log(self).warning(message, logger_name)
        return _SENT

    @deprecated(_LOGGING)
    def error(self, message: Any, logger_name: str | None = None) -> Sent:
        """Do the same as `ctx.log.error`, which other SDKs spell like this. It may be awaited."""
        Log(self).error(message, logger_name)
        return _SENT

    def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Sent:
        """Do the same as `progress`, which other SDKs spell like this. It may be awaited.

        Args:
            progress: The value; it grows with each report.
            total: The value at the end, if known.
            message: A text for people.
        """
        self.progress(progress, total, message)
        return _SENT

    def count(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to a counter of the server's metrics: `ctx.count("orders", country="it")`.

        Args:
            name: The name of the counter: letters, digits, underscores and dots.
            amount: What is added; 0 or more.
            labels: Properties to count by. Use few values: each combination is a counter.

        Raises:
            ValueError: The name or the amount is invalid.
        """
        self._environment.meters.count(name, amount, tuple(sorted(labels.items())))
        tracing = current_tracing.get()
        if tracing is not None:
            tracing.count(name, amount, labels)

    def span(self, name: str, **attributes: Attribute) -> AbstractContextManager[object]:
        """Return a block that is a span of the trace of this call: `with ctx.span("read"):`.

        Without a tracing system it does nothing. What the block yields is the span of that system,
        and None without one.

        Args:
            name: The name of the span.
            attributes: Its attributes. They leave this machine: give no secrets.
        """
        tracing = current_tracing.get()
        return nullcontext() if tracing is None else tracing.span(name, attributes)

    @to_be_awaited
    async def as_task(self) -> None:
        """Go on as a task, for a tool with `task=` and `after=math.inf`. Use it after the questions
        that decide whether there is any work.

        Nothing happens if the call is a task already, or if its client cannot have tasks.
        """
        become_task = getattr(self._exchange.asker, "become_task", None)
        if become_task is not None:
            await become_task()

    def updated(self, uri: str) -> None:
        """Announce that the content of a resource has changed, to every client that watches it."""
        self.server.updated(uri)

    def _notify(self, method: str, params: Any) -> None:
        if threading.get_ident() == self._thread:
            self._exchange.notify(method, params)
            return
        self._loop.call_soon_threadsafe(self._exchange.notify, method, params)
        self._handed_over += 1
        if self._handed_over % _HANDED_OVER_AT_ONCE == 0:
            taken = threading.Event()
            self._loop.call_soon_threadsafe(taken.set)
            taken.wait(
                _PATIENCE
            )  # without a limit, a fast thread could fill the memory with queued notifications

    async def disconnect(self, *, retry_ms: int | None = None) -> bool:
        """Close the client's event stream for now. The client resumes it later and receives the
        rest from the event log.

        Use it in long calls over HTTP, so that no connection stays open (2025-11-25, "Sending
        Messages to the Server").

        Args:
            retry_ms: The time after which the client should resume the stream, in milliseconds.

        Returns:
            Whether the stream was closed. It stays open on every other transport and revision.
        """
        return self._exchange.transport.release(retry_ms)

    async def drain(self) -> None:
        """Wait until the client has read most of the sent data. Use it in tools that send many
        notifications.
        """
        await self._exchange.drain()

    # -- questions ---------------------------------------------------------------------------------

    @overload
    async def elicit(
        self, message: str, kind: type[T], *, key: str | None = None, task_ttl: float | None = None
    ) -> T: ...

    @overload
    async def elicit(
        self,
        message: str,
        kind: Mapping[str, Any] | UnionType | _SpecialForm,
        *,
        key: str | None = None,
        task_ttl: float | None = None,
    ) -> Any: ...

    @to_be_awaited
    async def elicit(
        self, message: str, kind: Any, *, key: str | None = None, task_ttl: float | None = None
    ) -> Any:
        """Ask the person to fill in a form, and return a value of its type.

        The errors are ToolErrors: a tool that does not catch them ends with a message for the model
        (2026-07-28, "Elicitation").

        Args:
            message: The question to the person.
            kind: The type of the answer, or a flat JSON Schema.
            key: The name of the question on the wire.
            task_ttl: Let a client of 2025-11-25 run the question as a task, which it keeps for so
                many seconds, so that no request stays open while the person takes time. Needs the
                extension `Tasks`. Clients that do not offer this are asked as usual.

        Raises:
            Declined: The person declines.
            Cancelled: The person dismisses the question.
            Unanswerable: The client cannot ask a person.
        """
        asked = form(kind)
        answer = await self._ask(
            t.ElicitRequest(
                t.ElicitRequestParams(
                    message=message,
                    mode="form",
                    requested_schema=asked.schema,
                    task=_task(task_ttl),
                )
            ),
            key,
        )
        return asked.read(_accepted(answer, message).content)

    @to_be_awaited
    async def elicit_url(
        self,
        message: str,
        url: str,
        *,
        elicitation_id: str | None = None,
        key: str | None = None,
        task_ttl: float | None = None,
    ) -> None:
        """Ask the person to visit a page (to sign in, to pay), and return once they agree.

        Hazard: never put a secret or a pre-authenticated link into `url`, because the client and
        its user see it. When this method returns, the person has agreed but has not finished at the
        page (`ELI-17`, `ELI-27`).

        Args:
            message: The question to the person.
            url: The page.
            elicitation_id: Your own ID of the visit, for `elicitation_complete`; generated by
                default.
            key: The name of the question on the wire.
            task_ttl: See `elicit`.

        Raises:
            Declined: The person declines.
            Cancelled: The person dismisses the question.
            Unanswerable: The client cannot ask a person.
        """
        id = elicitation_id if self.caller.supports("elicitation_ids") else None  # `ELI-19`
        params = t.ElicitRequestParams(
            message=message, mode="url", url=url, elicitation_id=id, task=_task(task_ttl)
        )
        _accepted(await self._ask(t.ElicitRequest(params), key), message)

    def elicitation_complete(self, elicitation_id: str) -> None:
        """Notify the client that the person has finished at a page. Only 2025-11-25 has this
        notification; other clients get none.

        It goes to the client of this call, which must be the client that was asked (2025-11-25,
        "Elicitation"; `ELI-20`).
        """
        params = t.ElicitationCompleteNotificationParams(elicitation_id=elicitation_id)
        self._notify("notifications/elicitation/complete", params)

    @to_be_awaited
    async def confirm(
        self, message: str, *, key: str | None = None, task_ttl: float | None = None
    ) -> bool:
        """Ask the person for a confirmation; True only if the form was accepted with "yes".

        Args:
            message: The question to the person.
            key: The name of the question on the wire.
            task_ttl: See `elicit`.

        Raises:
            Unanswerable: The client cannot ask a person. A confirmation is never skipped.
        """
        schema = {
            "type": "object",
            "properties": {"confirm": {"type": "boolean", "title": "Yes", "default": False}},
            "required": ["confirm"],
        }
        answer = await self._ask(
            t.ElicitRequest(
                t.ElicitRequestParams(
                    message=message,
                    mode="form",
                    requested_schema=schema,
                    task=_task(task_ttl),
                )
            ),
            key,
        )
        return (
            isinstance(answer, t.ElicitResult)
            and answer.action == "accept"
            and (answer.content or {}).get("confirm") is True
        )

    @overload
    @deprecated(
        "Sampling is deprecated since 2026-07-28 (SEP-2577) and may be removed from revisions of"
        " 2027-07-28 and later: call the API of a model provider."
    )
    async def sample(
        self,
        messages: str | Sequence[str | t.SamplingMessage],
        *,
        result_type: None = None,
        **options: Unpack[ToolSampleOptions],
    ) -> t.CreateMessageResult: ...

    @overload
    @deprecated(
        "Sampling is deprecated since 2026-07-28 (SEP-2577) and may be removed from revisions of"
        " 2027-07-28 and later: call the API of a model provider."
    )
    async def sample(
        self,
        messages: str | Sequence[str | t.SamplingMessage],
        *,
        result_type: type[T],
        **options: Unpack[TypedSampleOptions],
    ) -> T: ...

    @overload
    @deprecated(
        "Sampling is deprecated since 2026-07-28 (SEP-2577) and may be removed from revisions of"
        " 2027-07-28 and later: call the API of a model provider."
    )
    async def sample(
        self,
        messages: str | Sequence[str | t.SamplingMessage],
        *,
        result_type: Mapping[str, Any] | UnionType | _SpecialForm,
        **options: Unpack[TypedSampleOptions],
    ) -> Any: ...

    @deprecated(
        "Sampling is deprecated since 2026-07-28 (SEP-2577) and may be removed from revisions of"
        " 2027-07-28 and later: call the API of a model provider."
    )
    @to_be_awaited
    async def sample(
        self,
        messages: str | Sequence[str | t.SamplingMessage],
        *,
        result_type: Any = None,
        retries: int = 2,
        max_tokens: int = 1024,
        system: str | None = None,
        temperature: float | None = None,
        stop: Sequence[str] | None = None,
        preferences: t.ModelPreferences | None = None,
        include_context: Literal["none", "thisServer", "allServers"] | None = None,
        tools: Sequence[t.Tool] | None = None,
        tool_choice: t.ToolChoice | None = None,
        metadata: dict[str, Any] | None = None,
        fallback_model: FallbackModel | None = None,
        prefer_fallback_model: bool | None = None,
        key: str | None = None,
        task_ttl: float | None = None,
    ) -> Any:
        """Ask the client's model (2026-07-28, "Sampling").

        Args:
            messages: The messages; a string is a message of the user.
            result_type: The type of the answer: `str` for its text, any type of a tool's argument,
                or a JSON Schema. Without it the whole CreateMessageResult is returned.
            retries: The maximum number of further requests after an answer that does not fit the
                type.
            max_tokens: The maximum number of tokens of one answer.
            system: The system prompt.
            temperature: The randomness of the answer.
            stop: Texts that end the answer.
            preferences: The preferred models.
            include_context: A preference, which is omitted if the client does not accept it
                (`SAM-17`; deprecated since 2025-11-25).
            tools: Tools that the model may call. The answer may contain tool uses, which you have
                to run. Do not combine it with `result_type`.
            tool_choice: Whether the model has to call a tool.
            metadata: Metadata for the client's provider.
            fallback_model: An async function that answers if the client has no model, or none that
                accepts the `tools`. The server's fallback model by default.
            prefer_fallback_model: Whether the fallback model answers even if the client has a
                model. The server's setting by default.
            key: The name of the question on the wire.
            task_ttl: See `elicit`.

        Returns:
            The model's message, or a value of `result_type`.

        Raises:
            Declined: The person refused. The fallback model is not asked then.
            Unanswerable: The client has no model, and there is no fallback model.
            ToolError: The model's answer does not fit the type.
        """
        if include_context not in (None, "none"):
            warn_deprecated(_INCLUDE_CONTEXT)
        given = [messages] if isinstance(messages, str) else messages
        params = t.CreateMessageRequestParams(
            messages=[
                t.SamplingMessage(role="user", content=t.TextContent(m))
                if isinstance(m, str)
                else m
                for m in given
            ],
            max_tokens=max_tokens,
            system_prompt=system,
            temperature=temperature,
            stop_sequences=list(stop) if stop is not None else None,
            model_preferences=preferences,
            include_context=include_context
            if include_context in (None, "none") or self._takes_context
            else None,
            tools=list(tools) if tools is not None else None,
            tool_choice=tool_choice,
            metadata=metadata,
            task=_task(task_ttl),
        )
        model = fallback_model or self._environment.questions.fallback_model
        preferred = (
            self._environment.questions.prefer_fallback_model
            if prefer_fallback_model is None
            else prefer_fallback_model
        )
        lacking = required_capability(t.CreateMessageRequest(params), self.caller.capabilities)
        fallback = model if preferred or lacking is not None else None
        if self._sampler is None:
            from .sampling import Sampler  # late: only for tools that ask a model

            self._sampler = Sampler(self._ask_model, self._exchange.asker.once)
        if result_type is None:
            return await self._sampler.ask(params, fallback, key)
        if tools is not None or tool_choice is not None:
            raise ValueError("sample takes tools or a result_type: the answer cannot be both")
        if result_type is str:
            return (await self._sampler.ask(params, fallback, key)).text
        sampling = self.caller.capabilities.sampling
        takes_tools = sampling is not None and sampling.tools is not None
        return await self._sampler.ask_typed(
            params, result_type, retries, fallback, key, takes_tools=takes_tools
        )

    async def _ask_model(
        self, params: t.CreateMessageRequestParams, key: str | None
    ) -> t.CreateMessageResult:
        answer = await self._ask(t.CreateMessageRequest(params), key)
        if not isinstance(answer, t.CreateMessageResult):
            raise t.ProtocolError("The client answered a sampling request with something else.")
        return answer

    @deprecated(
        "Roots are deprecated since 2026-07-28 (SEP-2577) and may be removed from revisions of"
        " 2027-07-28 and later: take folders as arguments of a tool, or from the configuration of"
        " the server."
    )
    @to_be_awaited
    async def roots(self, *, key: str | None = None) -> list[t.Root]:
        """The folders that the client lets the server work in (2026-07-28, "Roots").

        Raises Unanswerable if the client does not support roots.
        """
        answer = await self._ask(t.ListRootsRequest(t.ListRootsRequestParams()), key)
        if not isinstance(answer, t.ListRootsResult):
            raise t.ProtocolError(
                "The client answered a request for its roots with something else."
            )
        return answer.roots

    @to_be_awaited
    async def once(
        self,
        name: str,
        do: Callable[..., Any],
        *args: Any,
        idempotent: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Run a side effect once in a call.

        Hazard: a tool that asks a question may run again from the top. Put its side effects before
        a question into `ctx.once`.

        Args:
            name: The name of the effect, unique in the call.
            do: A plain or async function. Its result must be JSON: it travels with the answers
                (`MRT-24`).
            args: Positional arguments of the function.
            idempotent: Whether the effect may be repeated if the worker died before it recorded the
                result.
            kwargs: Keyword arguments of the function.

        Returns:
            The result of the first run.

        Raises:
            McpError: The effect may have happened in a worker that died, and it is not idempotent.
        """

        async def now() -> Any:
            result = do(*args, **kwargs)
            return await result if inspect.isawaitable(result) else result

        return await self._exchange.asker.once(name, now, idempotent=idempotent)

    @to_be_awaited
    async def read_resource(self, uri: str) -> list[t.ResourceContents]:
        """Read a resource of this server, like a client.

        Raises McpError if the resource does not exist.
        """
        result = await self._environment.read_resource(uri, self._exchange)
        return result.contents

    def wait(self, awaitable: Awaitable[T]) -> T:
        """Wait in this thread for a coroutine of the Context. Only plain functions use it.

        It raises what the coroutine raises, or asyncio.CancelledError if the call is cancelled.
        """
        if threading.get_ident() == self._thread:
            _drop(awaitable)
            raise RuntimeError(
                "ctx.wait is for plain functions that run in a thread; an async function uses await"
            )
        if self.cancelled:  # the event loop may be closed by now
            _drop(awaitable)
            raise asyncio.CancelledError
        try:
            return asyncio.run_coroutine_threadsafe(self._waited(awaitable), self._loop).result()
        except concurrent.futures.CancelledError:
            # an author's `except Exception` does not catch it
            raise asyncio.CancelledError from None

    async def _waited(self, awaitable: Awaitable[T]) -> T:
        task = asyncio.current_task()
        assert task is not None
        if self.cancelled:
            _drop(awaitable)
            raise asyncio.CancelledError
        self._waits.append(task)
        try:
            return await awaitable
        finally:
            self._waits.remove(task)

    def check_awaited(self) -> None:
        """Raise ToolError if the function has returned without awaiting a question or another
        coroutine of the Context.
        """
        forgotten = self._started.not_awaited()
        if not forgotten:
            return
        for _, coroutine in forgotten:
            coroutine.close()
        name, _ = forgotten[0]
        raise t.ToolError(
            f"{name}(...) was called but not awaited, so nothing came of it. Await it:"
            f" `await {name}(...)`, or `ctx.wait({name}(...))` in a plain function."
        )

    def abandon(self) -> None:
        """Cancel the call: wake the thread of a plain function that waits."""
        self.cancelled = True
        for task in self._waits:
            task.cancel()

    @property
    def _takes_context(self) -> bool:
        """Whether the client accepts includeContext. Before 2025-11-25 no client can declare that
        it does not.
        """
        sampling = self.caller.capabilities.sampling
        if not self.caller.supports("sampling_context_declared"):
            return True
        return sampling is not None and sampling.context is not None

    async def _ask(self, request: t.InputRequest, key: str | None) -> t.InputResponse:
        if self._exchange.asker is MUTE and not self._is_declared:
            raise RuntimeError(
                "A function that takes no Context asked a question through get_context(), and this"
                " call cannot be suspended for it. Give the tool, resource or prompt a parameter"
                " `ctx: Context`; its helpers can go on using get_context()."
            )
        lacking = required_capability(request, self.caller.capabilities)
        if lacking is not None:
            raise t.Unanswerable(
                "This tool needs to ask something that this client cannot be asked"
                f" ({lacking[0]}).",
                lacking[0],
            )
        if self._pauses is not None:
            self._pauses(True)
        self._open_questions += 1
        try:
            return await self._exchange.asker.ask(request, key)
        except t.McpError as bad:
            if bad.code == t.USER_REJECTED:
                raise t.Declined(f"The person refused: {bad.message}") from bad
            raise
        finally:
            if self._pauses is not None:
                self._pauses(False)
            self._open_questions -= 1


class RunningCall(Struct, kw_only=True, eq=False):
    """The call that get_context returns a Context of, if the author's function has no Context
    parameter.
    """

    exchange: Exchange
    environment: CallEnvironment
    loop: asyncio.AbstractEventLoop
    context: Context[Any] | None = None
    idle_ticks: int = 0  # checks of the inactivity timeout since the last progress
    expired: bool = False  # whether the inactivity timeout has cancelled it


# A Context is created at its first use, so that calls without one do not pay for it.
RUNNING: ContextVar[RunningCall] = ContextVar("interlock.running_call")


def get_context() -> Context[Any]:
    """Return the Context of the running call, in functions that a tool, resource or prompt calls.

    It is the same object as the tool's parameter. It also works in plain functions in threads and
    in tasks that the call starts. A tool that asks questions this way on a 2026-07-28 connection
    must declare `ctx: Context` itself, so that the call can be suspended.

    Returns:
        The Context.

    Raises:
        RuntimeError: No call is running here.
    """
    running = RUNNING.get(None)
    if running is None:
        raise RuntimeError(
            "get_context() found no running call. Use it in a tool, resource or prompt, or in what"
            " one calls; in middleware use the Exchange."
        )
    if running.context is None:
        running.context = Context(running.exchange, running.environment, running.loop)
        running.context._is_declared = False
    return running.context


def _drop(awaitable: Awaitable[Any]) -> None:
    """Close a coroutine that will never be awaited."""
    if inspect.iscoroutine(awaitable):
        awaitable.close()


def _task(ttl: float | None) -> t.TaskMetadata | None:
    """Return the metadata that makes a question a task of the client."""
    if ttl is None:
        return None
    if ttl <= 0:
        raise ValueError("task_ttl must be more than 0 seconds")
    return t.TaskMetadata(ttl=int(ttl * 1000))


def _accepted(answer: t.InputResponse, message: str) -> t.ElicitResult:
    if not isinstance(answer, t.ElicitResult):
        raise t.ProtocolError("The client answered an elicitation with something else.")
    if answer.action == "decline":
        raise t.Declined(f"The user declined to answer: {message}")
    if answer.action == "cancel":
        raise t.Cancelled(f"The user dismissed the question: {message}")
    return answer
