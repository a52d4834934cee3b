"""The request handlers of a server, one for each method of the protocol."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from .. import types as t
from ..exchange import AnyResult, Exchange, Handler, RawResult, ready
from ..extension import Extension, ListenKeys, handlers_of
from ..input_required import is_unwound, unanswerable
from ..logs import limited
from ..meta_keys import SINCE
from ..protocol.identity import Identity
from ..protocol.server import MOST_SUBSCRIPTIONS
from ..typed.content import prompt_result, resource_result
from ..typed.output import LONG_LIST, OutputError, ToolResult
from ..typed.signature import ArgumentsError
from ..types.errors import InterlockError
from ..wire.revisions import INPUT_REQUIRED_METHODS, METHODS, Era, error_code
from .calls.calling import FunctionRunner
from .calls.context import RUNNING, RunningCall
from .calls.environment import CallEnvironment
from .calls.header_parameters import check_mirrors
from .calls.inactivity import InactivityTimeouts
from .catalogue.catalogue import Catalogue
from .catalogue.features import Call, PromptFeature, ResourceFeature, TemplateFeature, ToolFeature
from .changes import Listener
from .server_options import ServerLimits

log = limited("interlock.server")

MOST_COMPLETIONS = 100
AnyFeature = ToolFeature | ResourceFeature | TemplateFeature | PromptFeature
_NOT_OURS = (asyncio.CancelledError, KeyboardInterrupt)
"""The exceptions that end a call or the program, in contrast to errors of a tool.

SystemExit is not one of them: a tool must not stop the server for all others.
"""


class Handlers:
    """The handlers of one server, by method."""

    def __init__(
        self,
        catalogue: Catalogue,
        identity: Identity,
        environment: CallEnvironment,
        extensions: Sequence[Extension],
        limits: ServerLimits,
    ) -> None:
        self._catalogue = catalogue
        self._visibility = catalogue.visibility
        self._identity = identity
        self._environment = environment
        self._limits = limits
        self._runner: FunctionRunner | None = None
        self._inactivity: InactivityTimeouts | None = None
        # whether results go straight to an encoder, so that no code reads their structured content
        self.encodes_results = False
        self.dev = False  # whether responses contain the details of errors in authors' functions
        has_keys = any(extension.listens for extension in extensions)
        self._listen_keys = ListenKeys(extensions) if has_keys else None
        self._by_method: dict[str, Handler] = {
            "tools/call": self.call_tool,
            "tools/list": partial(self._list, "tools"),
            "resources/list": partial(self._list, "resources"),
            "resources/templates/list": partial(self._list, "resource_templates"),
            "prompts/list": partial(self._list, "prompts"),
            "resources/read": self.read_resource,
            "prompts/get": self.get_prompt,
            "completion/complete": self.complete,
            "subscriptions/listen": self.listen,
            "server/discover": self.discover,
            **handlers_of(extensions),
        }

    def handle(self, x: Exchange) -> Awaitable[AnyResult]:
        """Handle one exchange. Raises McpError for an error response."""
        return self._by_method.get(x.method, _find_nothing)(x)

    def put(self, handlers: Mapping[str, Handler]) -> None:
        """Put other handlers in the place of those of some methods."""
        self._by_method.update(handlers)

    def method(self, method: str) -> Handler:
        """Return the handler of a method."""
        return self._by_method[method]

    def add_extension(self, extension: Extension) -> None:
        """Add the methods of an extension."""
        self._by_method.update(handlers_of([extension]))

    async def run_for(self, what: str, call: Call, x: Exchange) -> Any:
        """Run an author's function for an extension. Raises McpError like other features."""
        return await self._guarded(what, self._run(call, {}, x), x)

    def close(self) -> None:
        """End the threads and the clock."""
        if self._inactivity is not None:
            self._inactivity.close()
            self._inactivity = None
        self._close_runner()

    def _close_runner(self) -> None:
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    # -- questions ---------------------------------------------------------------------------------

    def could_ask(self, x: Exchange) -> bool:
        """Whether an exchange can ask a question: its feature takes a Context, or belongs to an
        extension.
        """
        if x.method == "tools/call":
            tool = self._catalogue.tools.get(x.params.name)
            return tool is not None and tool.call.context is not None
        if x.method in INPUT_REQUIRED_METHODS:
            feature = self._feature(x)
            call = feature.call if feature is not None else None
            return call is not None and call.context is not None
        return x.method not in METHODS

    def is_idempotent(self, x: Exchange) -> bool:
        """Whether an exchange may be repeated: it is a read, or its tool is declared idempotent."""
        if x.method != "tools/call":
            return x.method in INPUT_REQUIRED_METHODS
        tool = self._catalogue.tools.get(x.params.name)
        return tool is not None and tool.is_idempotent

    def check_known(self, x: Exchange) -> None:
        """Check whether the caller may use the feature of an exchange. Features that this server
        does not have are left to its middleware.

        Raises McpError.
        """
        if self._feature(x) is not None:
            self._visibility.check(x)

    def _feature(self, x: Exchange) -> AnyFeature | None:
        """The feature that an exchange names, regardless of visibility."""
        if x.method == "tools/call":
            return self._catalogue.tools.get(x.params.name)
        if x.method == "prompts/get":
            return self._catalogue.prompts.get(x.params.name)
        if x.method != "resources/read":
            return None
        found = self._visibility.behind(x.params.uri)
        return found.feature if found is not None else None

    # -- tools -------------------------------------------------------------------------------------

    def find_tool(self, x: Exchange) -> ToolFeature:
        """Return the tool of a call, if the caller may use it and the headers of the call agree
        with its arguments. Raises McpError.
        """
        tool = self._visibility.tool(x)
        if tool.mirrors and (mirrored := x.transport.mirrored) is not None:
            check_mirrors(tool.mirrors, mirrored, x.params.arguments)
        return tool

    async def call_tool(self, x: Exchange) -> AnyResult:
        """`tools/call`.

        Everything is in one coroutine: a further one would cost each call 0.4 us, and each task
        that sleeps 0.3 KB.
        """
        tool = self._visibility.tool(x)  # as in `find_tool`, without a further call
        if tool.mirrors and (mirrored := x.transport.mirrored) is not None:
            check_mirrors(tool.mirrors, mirrored, x.params.arguments)
        try:
            values = tool.signature.decode(x.params.arguments)
        except ArgumentsError as bad:
            words = f"Invalid arguments for tool {x.params.name}: {bad}"
            if not x.caller.supports("argument_errors_as_results"):  # `TOL-16`
                raise t.McpError(t.INVALID_PARAMS, words) from None
            return _failed(words)
        try:
            value = await self._run(tool.call, values, x)
            output = tool.output
            kind = type(value)
            if (kind is list and len(value) > LONG_LIST) or kind is ToolResult:
                value = await output.prepare(value)
            result = output.result(
                value,
                structured=x.caller.supports("structured_content"),
                encoded=self.encodes_results,
            )
            if tool.call.context is None and isinstance(result, t.InputRequiredResult):
                raise OutputError(
                    "it asks for input, but takes no Context, by which alone it could read the"
                    " answers"
                )
            return result
        except _NOT_OURS:
            raise
        except BaseException as bad:
            if is_unwound(x) or _is_closing(bad):
                raise
            return self._error_result(tool, _relevant_error(bad, x), x)

    def _error_result(self, tool: ToolFeature, bad: BaseException, x: Exchange) -> t.CallToolResult:
        """Return the result of a tool that raised. Raises again if the exception is an error
        response.
        """
        if isinstance(bad, t.McpError | t.ProtocolError):
            raise bad
        if isinstance(bad, t.Unanswerable) and (error := unanswerable(bad, x)) is not None:
            raise error from None
        if isinstance(bad, t.ToolError | t.TimedOut):
            return _failed(str(bad))
        if isinstance(bad, OutputError):
            words = f"The tool {tool.key} gave a result that does not fit what it declares"
            return self._masked_error(tool, bad, words)
        return self._masked_error(tool, bad, f"The tool {tool.key} failed")

    def _masked_error(self, tool: ToolFeature, bad: BaseException, words: str) -> t.CallToolResult:
        """Return the result of a tool with an unexpected error: a plain sentence with a reference.
        The log has the details under the same reference (`ERR-20`).

        In development mode the result contains the error itself.
        """
        reference = os.urandom(4).hex()
        log.error("tool %s failed (reference %s)", tool.key, reference, exc_info=bad)
        return _failed(f"{words} (reference {reference}){self._explained(bad, tool.call.function)}")

    def _explained(self, bad: BaseException, function: Callable[..., Any] | None) -> str:
        """Return the end of a masked sentence: the error in development mode, otherwise a full
        stop.
        """
        if not self.dev:
            return "."
        from .calls.development import (  # late: only for authors who try a server out
            describe,
            place_of,
        )

        if not isinstance(bad, OutputError):
            return f": {describe(bad, function)}"
        place = place_of(function)  # the function has returned: no line of it raised
        return f": {bad} ({place})" if place else f": {bad}"

    async def _run(self, call: Call, values: dict[str, Any], x: Exchange) -> Any:
        loop = asyncio.get_running_loop()
        running = RunningCall(exchange=x, environment=self._environment, loop=loop)
        timeouts = None
        if call.timeout is None and x.transport.is_http:
            timeouts = self._inactivity
            if timeouts is None or timeouts.loop is not loop:
                timeouts = self._new_timeouts(loop)
            if timeouts is not None:
                timeouts.add(running)
        outer = RUNNING.set(running)
        try:
            if call.waits and call.context is None and call.gate is None and call.timeout is None:
                value = await call.function(**values)
            else:
                runner = self._runner
                if runner is None or runner.loop is not loop:
                    self._close_runner()  # a server may outlive its event loop, as between tests
                    runner = FunctionRunner(self._environment, self._limits.threads)
                    self._runner = runner
                value = await runner.run(call, values, running)
            if running.context is not None:
                running.context.check_awaited()
            return value
        except asyncio.CancelledError:
            if timeouts is not None and running.expired:
                late = timeouts.discard_expired(running)
                if late is not None:
                    raise late from None
            raise
        finally:
            RUNNING.reset(outer)
            if timeouts is not None:
                if running.expired:
                    timeouts.discard_expired(running)
                else:
                    del timeouts.calls[running]

    def _new_timeouts(self, loop: asyncio.AbstractEventLoop) -> InactivityTimeouts | None:
        """Return the inactivity timeouts of calls over HTTP in an event loop, if there are any."""
        seconds = self._limits.http_inactivity
        if seconds is not None:
            self._inactivity = InactivityTimeouts(seconds, loop)
        return self._inactivity

    # -- resources ---------------------------------------------------------------------------------

    async def read_resource(self, x: Exchange) -> AnyResult:
        """`resources/read`."""
        return self._by_hand(await self._read_resource(x), x)

    async def _read_resource(self, x: Exchange) -> AnyResult:
        feature, values = self._visibility.resource(x)
        if isinstance(feature, TemplateFeature):
            strings = feature.strings.read(values)
            return await self._read(feature, feature.call, strings, feature.listing.mime_type, x)
        if feature.content is not None:
            return _kept(t.ReadResourceResult(contents=[feature.content]), feature)
        assert feature.call is not None  # a resource is data or a function
        return await self._read(feature, feature.call, {}, feature.listing.mime_type, x)

    async def read_for(self, uri: str, exchange: Exchange) -> t.ReadResourceResult:
        """Read a resource on behalf of a running exchange. Raises McpError."""
        x = replace(
            exchange,
            method="resources/read",
            params=t.ReadResourceRequestParams(uri=uri),
            progress_token=None,  # only the feature of the request itself reports progress
        )
        result = await self._read_resource(x)
        if not isinstance(result, t.ReadResourceResult):
            raise t.McpError(
                t.INTERNAL_ERROR,
                f"The resource {uri} asks for input by hand, which another feature cannot give it.",
            )
        return result

    async def _read(
        self,
        feature: ResourceFeature | TemplateFeature,
        call: Call,
        values: dict[str, Any],
        mime_type: str | None,
        x: Exchange,
    ) -> AnyResult:
        uri = x.params.uri
        value = await self._guarded(f"the resource {uri}", self._run(call, values, x), x)
        if isinstance(value, t.InputRequiredResult):
            return value
        if value is None:
            code = error_code("resource_not_found", x.caller.revision)
            raise t.McpError(code, f"Resource not found: {uri}", {"uri": uri})
        return _kept(resource_result(value, uri, mime_type), feature)

    # -- prompts and completion --------------------------------------------------------------------

    async def get_prompt(self, x: Exchange) -> AnyResult:
        """`prompts/get`."""
        p: t.GetPromptRequestParams = x.params
        prompt = self._visibility.prompt(x)
        values = prompt.strings.read(p.arguments or {})
        value = await self._guarded(f"the prompt {p.name}", self._run(prompt.call, values, x), x)
        if isinstance(value, t.InputRequiredResult):
            return self._by_hand(value, x)
        return prompt_result(value, prompt.listing.description)

    def _by_hand(self, result: AnyResult, x: Exchange) -> AnyResult:
        """Return a result that may be a handwritten InputRequiredResult.

        Raises McpError if the author's function could not read the answers.
        """
        if isinstance(result, t.InputRequiredResult) and not self.could_ask(x):
            words = (
                "%s asks for input, but takes no Context, by which alone it could read the answers"
            )
            log.error(words, x.method)
            raise t.McpError(t.INTERNAL_ERROR, "Internal error")
        return result

    async def _guarded(self, what: str, running: Awaitable[Any], x: Exchange) -> Any:
        """Run a function outside of tools, where every error is a JSON-RPC error. Details of
        unexpected errors go to the log only.
        """
        try:
            return await running
        except _NOT_OURS:
            raise
        except BaseException as bad:
            if is_unwound(x) or _is_closing(bad):
                raise
            raise self._error(what, _relevant_error(bad, x), x) from None

    def _error(self, what: str, bad: BaseException, x: Exchange) -> Exception:
        """Return the error response for an exception outside of tools."""
        if isinstance(bad, t.Unanswerable):
            return unanswerable(bad, x) or t.McpError(t.INVALID_REQUEST, str(bad))
        if isinstance(bad, t.ToolError | t.TimedOut):
            return t.McpError(t.INTERNAL_ERROR, str(bad))
        if isinstance(bad, InterlockError):
            return bad
        reference = os.urandom(4).hex()
        log.error("%s failed (reference %s)", what, reference, exc_info=bad)
        words = f"{what[0].upper()}{what[1:]} failed (reference {reference})"
        return t.McpError(t.INTERNAL_ERROR, f"{words}{self._explained(bad, None)}")

    async def complete(self, x: Exchange) -> AnyResult:
        """`completion/complete`."""
        p: t.CompleteRequestParams = x.params
        choices = _choices(p, self._visibility.completed(x))
        given = (
            p.context.arguments if p.context is not None and p.context.arguments is not None else {}
        )
        call = self._catalogue.completions.get(p.ref, p.argument.name)
        if call is not None:
            values = call.values(p, given)
            found = await self._guarded("the completion", self._run(call.call, values, x), x)
        else:
            found = _matching(choices or [], p.argument.value)
        return t.CompleteResult(completion=_completion(found))

    # -- lists, discovery, subscriptions -----------------------------------------------------------

    async def _list(self, what: str, x: Exchange) -> AnyResult:
        self._visibility.require("resources" if what == "resource_templates" else what, x)
        kind: Any = METHODS[x.method].result
        return RawResult(self._catalogue.page(what, x.params.cursor, x.caller), kind=kind)

    async def discover(self, x: Exchange) -> AnyResult:
        """`server/discover`."""
        identity = self._identity
        return t.DiscoverResult(
            supported_versions=list(reversed(identity.revisions)),
            capabilities=identity.offered(x.caller),
            instructions=identity.instructions,
            ttl_ms=self._limits.list_ttl_ms,
            cache_scope="private" if self._visibility.has_hook else "public",
        )

    def listen(
        self, x: Exchange, joined: Callable[[Listener], None] | None = None
    ) -> Awaitable[AnyResult]:
        """`subscriptions/listen`: stays open until the client or the server ends it.

        `joined` is called with the listener of the subscription, which may be given more changes.
        """
        if self._listen_keys is None or not self._listen_keys.wanted(x):
            return self._listen(x, joined=joined)
        return self._listen_with_keys(x, self._listen_keys, joined)

    async def _listen_with_keys(
        self, x: Exchange, keys: ListenKeys, joined: Callable[[Listener], None] | None
    ) -> AnyResult:
        """Serve a subscription to events of extensions too."""
        async with keys.granted(x, self._watchable(x)) as (granted, acknowledged):
            return await self._listen(x, granted, acknowledged, joined)

    def _watchable(self, x: Exchange) -> t.SubscriptionFilter:
        """Return the part of a subscription filter that can be served. Raises McpError."""
        if (
            x.caller.era is not Era.HANDSHAKE
            and len(x.params.notifications.resource_subscriptions or ()) > MOST_SUBSCRIPTIONS
        ):
            raise t.McpError(
                t.INVALID_PARAMS,
                f"At most {MOST_SUBSCRIPTIONS} resources can be subscribed to at once",
            )
        # the notification stream of a session
        again = x.caller.era is Era.HANDSHAKE and x.params.notifications.tools_list_changed is True
        offered = self._identity.capabilities(x.caller)
        granted = self._catalogue.granted(x.params.notifications, offered, x.caller)
        return self._visibility.watchable(granted, x.caller, again=again)

    async def _listen(
        self,
        x: Exchange,
        wanted: t.SubscriptionFilter | None = None,
        acknowledged: Callable[[], None] | None = None,
        joined: Callable[[Listener], None] | None = None,
    ) -> AnyResult:
        """Send notifications of the subscribed changes, until the client or the server ends the
        subscription. What this coroutine refers to is kept for every silent subscription.
        """
        if wanted is None:
            wanted = self._watchable(x)
        listener = Listener(wanted, self._catalogue.bus, self._visibility.concerns(x.caller))
        stop = self._catalogue.bus.listen(listener.receive)
        self._catalogue.listeners.add(listener)
        try:
            if x.caller.era is Era.HANDSHAKE and (
                since := resumed_from(x.params.meta)
            ):  # a resumed stream
                await listener.catch_up(since)
            if joined is not None:
                joined(listener)
            x.notify(
                "notifications/subscriptions/acknowledged",
                t.SubscriptionsAcknowledgedNotificationParams(
                    notifications=wanted, meta=listener.meta
                ),
            )
            wanted = None
            if acknowledged is not None:
                acknowledged()
            if x.caller.era is Era.HANDSHAKE and not listener.wants_anything:
                return (
                    t.SubscriptionsListenResult()
                )  # opened on the peer's behalf, so that no request ever ends it
            while True:
                await listener.wait()
                while (notice := listener.next_notice()) is not None:
                    await self._send_notice(x, *notice)
                if listener.is_closed:
                    return t.SubscriptionsListenResult()
        finally:
            stop()
            self._catalogue.listeners.discard(listener)

    def _send_notice(self, x: Exchange, method: str, params: t.Params) -> Awaitable[None]:
        """Send a notice of a change. The result waits until the client has read enough."""
        if isinstance(params, t.ResourceUpdatedNotificationParams) and self._visibility.hides(
            params.uri, x.caller
        ):
            return ready()  # a part of a watched resource may require more scopes than the whole
        x.notify(method, params)
        return x.drain()


async def _find_nothing(x: Exchange) -> AnyResult:
    """The handler of an unknown method."""
    raise t.McpError(t.METHOD_NOT_FOUND, f"Method not found: {x.method}")


def resumed_from(meta: Raw) -> str:
    """Return the position after which an internal listener wants to receive changes; empty if it
    sent none.
    """
    return "" if meta is t.NOTHING else str(msgspec.json.decode(meta).get(SINCE) or "")


def _kept(
    result: t.ReadResourceResult, feature: ResourceFeature | TemplateFeature
) -> t.ReadResourceResult:
    """Return the result with the feature's caching hints, unless the author set other ones
    (`CAC-01`).
    """
    scope = (
        "private" if feature.scopes else result.cache_scope or feature.cache_scope
    )  # a result that not every caller may read is cached for one principal only
    if result.ttl_ms is not None and result.cache_scope == scope:
        return result
    return t.ReadResourceResult(
        contents=result.contents,
        meta=result.meta,
        ttl_ms=result.ttl_ms if result.ttl_ms is not None else feature.ttl_ms,
        cache_scope=scope,
    )


def _failed(words: str) -> t.CallToolResult:
    return t.CallToolResult(content=[t.TextContent(words)], is_error=True)


def _is_closing(bad: BaseException) -> bool:
    """Whether a coroutine is being closed outside of any task. Otherwise it raised
    GeneratorExit.
    """
    if not isinstance(bad, GeneratorExit):
        return False
    try:
        return asyncio.current_task() is None
    except RuntimeError:
        return True


def _relevant_error(bad: BaseException, x: Exchange) -> BaseException:
    """Return the error itself, or the error that represents the errors of a task group.

    If all errors of the group are messages for the model, that is one message. If there is an error
    response, it is that. Otherwise it is the whole group.
    """
    if not isinstance(bad, BaseExceptionGroup):
        return bad
    group: BaseExceptionGroup[Any] = bad
    leaves = _leaves(group)
    for leaf in leaves:
        if isinstance(leaf, t.Unanswerable) and unanswerable(leaf, x) is not None:
            return leaf
    if refused := [
        scope for leaf in leaves if isinstance(leaf, t.Forbidden) for scope in leaf.scopes
    ]:
        return t.Forbidden(
            *refused
        )  # all scopes at once, so that the client requests them in one step (`AUS-08`)
    if all(isinstance(leaf, t.ToolError) for leaf in leaves):
        return t.ToolError("\n".join(dict.fromkeys(map(str, leaves))))
    return next((leaf for leaf in leaves if isinstance(leaf, t.McpError)), group)


def _leaves(group: BaseExceptionGroup[Any]) -> list[BaseException]:
    return [
        leaf
        for e in group.exceptions
        for leaf in (_leaves(e) if isinstance(e, BaseExceptionGroup) else [e])
    ]


def _choices(
    p: t.CompleteRequestParams, feature: PromptFeature | TemplateFeature | None
) -> list[str] | None:
    """Return the values of an argument whose type lists them.

    Raises McpError if the argument does not exist (`CMP-04`).
    """
    if feature is None:
        return None
    if p.argument.name not in feature.strings.names:
        what = (
            f"prompt: {p.ref.name}"
            if isinstance(p.ref, t.PromptReference)
            else f"resource template: {p.ref.uri}"
        )
        raise t.McpError(t.INVALID_PARAMS, f"Unknown argument {p.argument.name} of {what}")
    return feature.strings.choices.get(p.argument.name)


def _matching(choices: list[str], typed: str) -> list[str]:
    """Return the choices that begin with the typed text, then those that contain it,
    case-insensitively (`CMP-05`).
    """
    low = typed.casefold()
    first = [choice for choice in choices if choice.casefold().startswith(low)]
    return first + [
        choice for choice in choices if choice not in first and low in choice.casefold()
    ]


def _completion(found: Any) -> t.Completion:
    """Return the result of a completion function, cut to the protocol's limit (`CMP-02`)."""
    if isinstance(found, t.Completion):
        if len(found.values) <= MOST_COMPLETIONS:
            return found
        return t.Completion(
            values=found.values[:MOST_COMPLETIONS],
            total=found.total or len(found.values),
            has_more=True,
        )
    values = [found] if isinstance(found, str) else [str(value) for value in found or ()]
    return t.Completion(
        values=values[:MOST_COMPLETIONS], total=len(values), has_more=len(values) > MOST_COMPLETIONS
    )
