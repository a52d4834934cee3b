"""The client's end of a shared channel: sends requests, assigns responses to them, and answers the
server's questions.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, Protocol

from msgspec import Raw, Struct
from msgspec.structs import replace

from .. import types as t
from ..exchange import (
    MUTE,
    AnyResult,
    Asker,
    Caller,
    Exchange,
    ExchangeTransport,
    Notify,
    PauseTimeout,
    TraceContext,
    silent,
)
from ..logs import limited
from ..protocol.client import (
    CAPABILITIES_KEY,
    INFO_KEY,
    LOG_LEVEL_KEY,
    VERSION_KEY,
    ClientConnection,
    ProgressReceived,
    SubscriptionReceived,
)
from ..protocol.events import (
    NotificationReceived,
    QuestionReceived,
    RequestCancelled,
    ResponseReceived,
    TaskRequestReceived,
)
from ..protocol.extensions import NO_EXTENSIONS, ExtensionMessages
from ..protocol.handshake.messages import OPENED, OPENED_PARAMS, OPENING, opening_params
from ..protocol.opening import (
    READ_SECONDS,
    CannotRestart,
    Discover,
    Handshake,
    Opened,
    Outcome,
    Restart,
    Silence,
    Step,
    answered_late,
    is_opening_result,
    opening,
)
from ..protocol.pass_through import passed_params, passed_result, passes
from ..types.lifecycle import LOGGING_LEVELS
from ..wire.codec import decode, encode
from ..wire.jsonrpc import Frame, Malformed, encode_id, encode_json
from ..wire.revisions import METHODS, REVISIONS, Era, era
from .list_pages import LARGE, LISTS, ListLimits, read_page

log = limited("interlock.client")
_LOOK = 0.05  # seconds between two checks whether a request has been read


GONE = {"reason": "session"}
"""The data of the error for a cursor whose session has ended."""


class TaskReceiver(Protocol):
    """Runs the server's questions as tasks of this client (2025-11-25, "Tasks")."""

    def accepts(self, request: t.InputRequest) -> bool:
        """Whether a question becomes a task."""
        ...

    def create(self, request: t.InputRequest, ask: Callable[[], Awaitable[Any]]) -> bytes:
        """Start the answer to a question as a task, and return the encoded task. Raises
        McpError.
        """
        ...

    async def answer(self, method: str, params: Any) -> bytes:
        """Return the encoded result of a request about a task. Raises McpError."""
        ...


class Hello(Struct, kw_only=True):
    """The client's information for opening a connection.

    Attributes:
        known: A revision that this server is known to support.
        probe_seconds: The maximum wait for the response to `server/discover`, in seconds, if the
            handshake can be tried next; None for the default of `opening`.
        open_seconds: The maximum of all other waits, in seconds.
        asker: Answers the server's questions that belong to no request.
        notify: Called with the server's notifications that belong to no request.
        lost: Called once when no more responses can arrive.
        extensions: The messages of the client's extensions.
        tasks: Runs the server's questions as tasks, if it asks for that; None if the client does
            not.
    """

    info: t.Implementation
    capabilities: t.ClientCapabilities
    asker: Asker
    notify: Notify
    lost: Callable[[Exception], None] = lambda why: None
    revisions: tuple[str, ...] = REVISIONS
    known: str | None = None
    probe_seconds: float | None = None
    open_seconds: float = 60.0
    list_limits: ListLimits = ListLimits()
    extensions: ExtensionMessages = NO_EXTENSIONS
    tasks: TaskReceiver | None = None

    def capabilities_in(self, revision: str) -> t.ClientCapabilities:
        """Return the client's capabilities under a revision, which may lack some of its
        extensions.

        In the handshake era a client declares the tasks that it runs itself.
        """
        capabilities = self.capabilities
        if self.tasks is not None and era(revision) is Era.HANDSHAKE:
            from ..types.tasks import TASKS_EXTENSION  # late: no server needs it

            declared = {TASKS_EXTENSION: {}, **(capabilities.extensions or {})}
            capabilities = replace(capabilities, extensions=declared)
        return self.extensions.shown(capabilities, revision)


class ClientTransport(Protocol):
    """The transport to one server: a Handler that must be opened first and closed at the end."""

    async def open(self, hello: Hello) -> Opened:
        """Connect to the server and negotiate a revision. Raises Unreachable, UnsupportedRevision
        or McpError.
        """
        ...

    async def __call__(self, exchange: Exchange) -> AnyResult:
        """Send one exchange and return its result. Raises McpError for an error response,
        Unreachable if no response can arrive.
        """
        ...

    def send_notification(self, method: str, params: Any) -> None:
        """Send a notification that belongs to no request."""
        ...

    async def aclose(self) -> None:
        """Close the connection. Waiting calls raise Unreachable. You can call it twice."""
        ...


class _Waiting(Struct):
    future: asyncio.Future[Any]
    exchange: Exchange


class Conversation:
    """The open requests by ID. `transmit` queues frames and never waits."""

    def __init__(self, transmit: Callable[[list[Frame]], None]) -> None:
        self.connection = ClientConnection()
        self._hello: Hello | None = None
        self.broken: Exception | None = None  # set once no more responses can arrive
        self.transmit = transmit
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[t.RequestId, _Waiting] = {}
        self._answering: dict[t.RequestId, asyncio.Task[None]] = {}
        self._asked_for: dict[
            t.RequestId, list[t.RequestId]
        ] = {}  # by request: the questions that belong to it
        self._flush_is_due = False
        self._still: contextlib.ExitStack | None = None  # closes what `pause_timeout` has opened
        # By identity: a caller is encoded once for many requests. A reference to the caller is
        # kept, so that its id() is not reused.
        self._heads: dict[Any, tuple[Caller, bytes]] = {}

    @property
    def hello(self) -> Hello | None:
        """The client's information, once the connection is being opened."""
        return self._hello

    @hello.setter
    def hello(self, hello: Hello) -> None:
        self._hello = hello
        self.connection.extensions = hello.extensions
        self.connection.runs_tasks = hello.tasks is not None

    # -- requests ----------------------------------------------------------------------------------

    async def carry(self, x: Exchange) -> AnyResult:
        """Send a request and wait for its response. Cancelling the wait cancels the request at the
        server too.
        """
        id, future = self.start_request(x)
        self._flush_soon()
        return await self.finish(id, future, x)

    def start_request(self, x: Exchange) -> tuple[t.RequestId, asyncio.Future[Any]]:
        """Queue a request. Returns its ID and the future of its undecoded response."""
        if self.broken is not None:
            raise self.broken.with_traceback(
                None
            )  # otherwise it would grow with each failed call, and keep references to its objects
        own = x.params.meta
        params = None if x.received is None else passed_params(x)
        if params is None:
            plain = x.params if own is t.NOTHING else replace(x.params, meta=t.NOTHING)
            params = encode(plain, x.caller.revision)
        meta = self._meta(x, own)
        if meta:
            params = (
                b'{"_meta":{%b}}' % meta
                if params == b"{}"
                else b"".join((b'{"_meta":{', meta, b"},", memoryview(params)[1:]))
            )
        id = self.connection.request(x.method, params)
        future = self._loop.create_future()
        self._waiting[id] = _Waiting(future, x)
        if self._still is not None:
            self._still.enter_context(x.transport.pause_timeout())
        return id, future

    async def finish(self, id: t.RequestId, future: asyncio.Future[Any], x: Exchange) -> AnyResult:
        """Wait for the response to a started request, and decode it."""
        try:
            raw = await future
        except asyncio.CancelledError:
            self.give_up(id, "the client no longer waits for the answer")
            raise
        if x.method in LISTS or x.received is not None:
            return await self.read(x, raw)
        return self._read(x.method, raw)

    async def read(self, x: Exchange, raw: Raw) -> AnyResult:
        """Decode a result. A large page of a list is decoded in pieces. A forwarded result is not
        decoded.

        Raises:
            ProtocolError: The result does not have the type of the method.
        """
        passed = passed_result(x.method, raw, x.caller.revision) if passes(x) else None
        if passed is not None and x.method in self.connection.extensions.results:
            passed = replace(passed, kind=self.connection.extensions.results[x.method])
        if x.method not in LISTS:
            return passed or self._read(x.method, raw)
        page: AnyResult | None = None
        if len(raw) > LARGE:
            limits = self.hello.list_limits if self.hello is not None else ListLimits()
            page = await read_page(x.method, raw, limits)
        page = page or self._read(x.method, raw)
        if passed is not None and isinstance(page, t.Result):
            return replace(passed, read=page)  # lists update what the client knows of the server
        return page

    def _read(self, method: str, raw: Raw) -> AnyResult:
        return read_result(method, raw, self.connection.extensions)

    def give_up(self, id: t.RequestId, reason: str) -> None:
        """Cancel a request."""
        if self._waiting.pop(id, None) is not None:
            self.connection.cancel(id, reason)
            self._flush_soon()

    def forget(self, id: t.RequestId) -> None:
        """Remove a request without notifying the server. The server's questions that belong to it
        are not answered.
        """
        if self._waiting.pop(id, None) is not None:
            self.connection.forget(id)
        for asked in self._asked_for.pop(id, ()):
            if asked in self._answering:
                self._answering.pop(asked).cancel()

    def _meta(self, x: Exchange, own: Raw) -> bytes:
        """Return the members of `_meta`, without braces: the required keys of the revision (encoded
        once for each caller), the progress token, and `own`.
        """
        caller = x.caller
        key: Any = id(caller)
        trace = b""
        if caller.trace is not None:
            trace = _trace(caller.trace)
        if caller.trace is not None or x.received is not None:
            # In this case each request has a new caller.
            key = (caller.revision, caller.log_level, id(caller.info), id(caller.capabilities))
        known = self._heads.get(key)
        if known is None:
            if len(self._heads) > 64:
                self._heads.clear()
            known = self._heads[key] = (caller, _head(caller))
        head = known[1]
        if own is t.NOTHING and x.notify is silent and not trace:
            return head
        token = (
            b'"progressToken":' + encode_id(self.connection.next_id())
            if _wants_progress(x)
            else b""
        )
        return b",".join(
            part for part in (head, token, trace, bytes(own).strip()[1:-1].strip()) if part
        )

    # -- receiving ---------------------------------------------------------------------------------

    def receive(
        self, frame: Frame, asker: Asker | None = None, call: t.RequestId | None = None
    ) -> None:
        """Receive one frame of the server. A frame that is not a message is logged and skipped.

        `asker` answers a question if its channel shows which request (`call`) it belongs to.
        """
        try:
            events = self.connection.receive(frame)
        except Malformed as bad:
            log.warning(
                "the server sent something that is no message (%s): %.200r",
                bad,
                bytes(frame[:200]),
            )
            return
        for event in events:
            self._process_event(event, asker, call)
        if self.connection.has_outgoing:  # an automatic response, such as to a ping
            self._flush_soon()

    def _process_event(self, event: Any, asker: Asker | None, call: t.RequestId | None) -> None:
        match event:
            case ResponseReceived(id, answer):
                waiting = self._waiting.pop(id, None)
                if waiting is None or waiting.future.done():
                    return
                if isinstance(answer, Exception):
                    waiting.future.set_exception(answer)
                    # not an error if the waiting call has just been cancelled
                    waiting.future.exception()
                else:
                    waiting.future.set_result(answer)
            case ProgressReceived(id, params) if id in self._waiting:
                self._call_notify(
                    self._waiting[id].exchange.notify, "notifications/progress", params
                )
            case SubscriptionReceived(id, method, params) if id in self._waiting:
                self._call_notify(self._waiting[id].exchange.notify, method, params)
            case NotificationReceived(method, params) if self.hello is not None:
                is_log = method == "notifications/message"
                belongs = is_log or method in self.connection.extensions.notifications
                x = self._asked_by(call) if belongs else None
                if x is None or x.received is None:
                    self._call_notify(self.hello.notify, method, params)
                elif not is_log or _wants_log(x, params.level):
                    self._call_notify(x.notify, method, params)
            case TaskRequestReceived(id, method, params):
                self._answering[id] = self._loop.create_task(
                    self._answer_about_task(id, method, params)
                )
            case QuestionReceived(id, request):
                x = self._asked_by(call, request)
                pause_timeout = (
                    x.transport.pause_timeout if x is not None else contextlib.nullcontext
                )
                if asker:
                    chosen = asker
                elif x is not None:
                    chosen = x.asker
                elif self.hello is not None:
                    chosen = self.hello.asker
                else:
                    chosen = MUTE
                self._answering[id] = self._loop.create_task(
                    self._answer(id, request, chosen, pause_timeout)
                )
                if call is not None:
                    self._asked_for.setdefault(call, []).append(id)
            case RequestCancelled(id) if id in self._answering:
                self._answering.pop(id).cancel()
            case _:
                pass

    @staticmethod
    def _call_notify(notify: Notify, method: str, params: Any) -> None:
        try:
            notify(method, params)
        except Exception:
            log.exception("a listener for %s failed", method)

    async def _answer(
        self, id: t.RequestId, request: t.InputRequest, asker: Asker, pause_timeout: PauseTimeout
    ) -> None:
        tasks = self.hello.tasks if self.hello is not None else None
        try:
            if tasks is not None and self.connection.has_tasks and tasks.accepts(request):
                ask = partial(asker.ask, request)
                self.connection.respond_encoded(id, tasks.create(request, ask))
                return
            with pause_timeout():
                answer = await asker.ask(request)
            if (about := task_of(request)) is not None:
                from ..types.tasks import related_to  # late: few questions belong to tasks

                answer = related_to(answer, about)  # `TK4-15`
            self.connection.respond(id, answer)
        except t.McpError as bad:
            self.connection.fail(id, bad.code, bad.message, bad.data)
        except (
            t.ToolError
        ) as bad:  # for example of a tool that asks its own caller; the message is for the peer
            self.connection.fail(id, t.INTERNAL_ERROR, str(bad))
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                self.connection.drop(id)
                raise
            # The question was cancelled locally. Without a response the server would wait forever.
            self.connection.fail(id, t.INTERNAL_ERROR, "The question could not be answered.")
        except BaseException as bad:
            log.exception("answering the server's question failed")
            self.connection.fail(id, t.INTERNAL_ERROR, "The question could not be answered.")
            if isinstance(bad, KeyboardInterrupt | SystemExit):
                raise
        finally:
            self._answering.pop(id, None)
            self._flush_soon()

    async def _answer_about_task(self, id: t.RequestId, method: str, params: Any) -> None:
        """Answer a request of the server about a task that the client runs."""
        tasks = self.hello.tasks if self.hello is not None else None
        try:
            if tasks is None:
                raise t.McpError(t.METHOD_NOT_FOUND, f"Method not found: {method}")
            self.connection.respond_encoded(id, await tasks.answer(method, params))
        except t.McpError as bad:
            self.connection.fail(id, bad.code, bad.message, bad.data)
        except asyncio.CancelledError:
            self.connection.drop(id)
            raise
        except Exception:
            log.exception("answering the server's request about a task failed")
            self.connection.fail(id, t.INTERNAL_ERROR, "Internal error")
        finally:
            self._answering.pop(id, None)
            self._flush_soon()

    def _asked_by(
        self, call: t.RequestId | None, request: t.InputRequest | None = None
    ) -> Exchange | None:
        """Return the exchange that a question belongs to. A shared channel does not show it, so the
        result is the exchange about the task that the question names, else the only running
        exchange, or None if there are several.
        """
        task = None if request is None else task_of(request)
        if task is not None:
            for waiting in self._waiting.values():
                x = waiting.exchange
                if x.method == "tasks/result" and x.params.task_id == task:
                    return x
        if call is not None:
            return self._waiting[call].exchange if call in self._waiting else None
        running = [
            w.exchange
            for w in self._waiting.values()
            if w.exchange.method in ("tools/call", "prompts/get", "resources/read", "tasks/result")
        ]
        return running[0] if len(running) == 1 else None

    @contextlib.contextmanager
    def pause_timeout(self) -> Iterator[None]:
        """Pause the timeouts of all waiting calls, including later ones, because the question may
        belong to any of them.
        """
        with contextlib.ExitStack() as self._still:
            for waiting in list(self._waiting.values()):
                self._still.enter_context(waiting.exchange.transport.pause_timeout())
            try:
                yield
            finally:
                self._still = None

    # -- opening and closing -----------------------------------------------------------------------

    async def open(self, hello: Hello) -> Opened:
        """Negotiate a revision with the server, and send the client's information."""
        self.hello = hello
        steps = OpeningSteps(hello, self.connection, self.carry)
        try:
            opened = await agree(hello, steps.run_step)
        finally:
            await steps.aclose()
        self.settle(opened)
        return opened

    def settle(self, opened: Opened) -> None:
        """Use the negotiated revision from now on. A server of the handshake era is notified
        (`LIF-08`).
        """
        self.connection.revision = opened.revision
        if era(opened.revision) is Era.HANDSHAKE:
            self.connection.notify(OPENED, OPENED_PARAMS)
            self._flush_soon()

    def send_notification(self, method: str, params: Any) -> None:
        """Send a notification that belongs to no request."""
        if self.broken is None:
            self.connection.notify(method, params)
            self._flush_soon()

    def flush(self) -> None:
        """Send queued frames now."""
        self._flush_is_due = False
        out = self.connection.outgoing()
        if out:
            self.transmit(out)

    def _flush_soon(self) -> None:
        if not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self.flush)

    def fail_all(self, why: Exception) -> None:
        """Fail all waiting requests and all later ones with this error."""
        if self.broken is None:
            self.broken = why
            if self.hello is not None:
                self.hello.lost(why)
        self.connection.close()
        waiting = self._waiting
        self._waiting = {}
        for call in waiting.values():
            if not call.future.done():
                call.future.set_exception(why)
                call.future.exception()  # mark as retrieved: possibly no call waits for it

    async def close(self, why: Exception) -> None:
        """Fail all waiting requests, because no more responses can arrive."""
        self.fail_all(why)
        tasks = list(self._answering.values())
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task


@contextlib.contextmanager
def pause_timeout(bound: asyncio.Timeout) -> Iterator[None]:
    """Pause a timeout."""
    loop = asyncio.get_running_loop()
    end = bound.when()
    if end is None or bound.expired():
        yield
        return
    left = end - loop.time()
    bound.reschedule(None)
    try:
        yield
    finally:
        with contextlib.suppress(RuntimeError):  # the call has ended meanwhile
            bound.reschedule(loop.time() + left)


class _Bounded(ExchangeTransport):
    """The transport of a request that has its own timeout."""

    __slots__ = ("_pause",)

    def __init__(self, pause: PauseTimeout) -> None:
        self._pause = pause

    def pause_timeout(self) -> contextlib.AbstractContextManager[object]:
        """Pause the timeout."""
        return self._pause()


async def agree(hello: Hello, take: Callable[[Step], Awaitable[Outcome]]) -> Opened:
    """Negotiate a revision: run `opening`, with `take` for each step. Raises whatever these
    raise.
    """
    steps = opening(hello.revisions, known=hello.known, seconds=hello.probe_seconds)
    step = next(steps)
    while True:
        outcome = await take(step)
        try:
            step = steps.send(outcome)
        except StopIteration as done:
            opened: Opened = done.value
            return opened


class OpeningSteps:
    """Runs the steps of `opening` on one connection. It cannot restart a server.

    Args:
        hello: The client's information.
        connection: The protocol state, which gets the revision of each step.
        carry: Sends one exchange. Its exceptions are raised, except for error responses of the
            server.
        unread: Returns whether the server has unread data; None if that cannot be found out.
        keeps: Whether an unanswered request stays open after its timeout, so that a late response
            counts.
    """

    def __init__(
        self,
        hello: Hello,
        connection: ClientConnection,
        carry: Callable[[Exchange], Awaitable[AnyResult]],
        *,
        unread: Callable[[], bool | None] = lambda: None,
        keeps: bool = True,
    ) -> None:
        self._hello = hello
        self._connection = connection
        self._carry = carry
        self._unread = unread
        self._keeps = keeps
        self._open: dict[str, asyncio.Task[Outcome]] = {}  # by method, until the response arrives
        self._bound: asyncio.Timeout | None = None
        self._left: float | None = None  # seconds that are left of a paused `_bound`

    async def run_step(self, step: Step) -> Outcome:
        """Run one step; see `opening` for the outcomes."""
        if isinstance(step, Restart):
            return CannotRestart()
        self._connection.revision = step.revision
        method = "server/discover" if isinstance(step, Discover) else OPENING
        if method in self._open:
            self._open.pop(method).cancel()
        task = asyncio.ensure_future(self._send(step))
        self._open[method] = task
        task.add_done_callback(_seen)
        outcome = await self._answered(task, step)
        if isinstance(outcome, Silence) and not self._keeps:
            await self.aclose()
        return outcome

    @property
    def waits_for_handshake(self) -> bool:
        """Whether the handshake was sent and its response can still arrive."""
        task = self._open.get(OPENING)
        return task is not None and not task.done()

    async def late(self) -> Outcome:
        """Wait, without a time limit, for a late response to the handshake. The outcomes are those
        of `run_step`.
        """
        return await self._first_result(self._open[OPENING])

    async def aclose(self) -> None:
        """Cancel unanswered requests."""
        tasks = list(self._open.values())
        self._open = {}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _answered(self, task: asyncio.Task[Outcome], step: Discover | Handshake) -> Outcome:
        """Return the outcome of a step: its response, the late response of the previous step, or
        Silence.
        """
        answer = asyncio.ensure_future(self._first_result(task))
        answer.add_done_callback(_seen)
        try:
            async with asyncio.timeout(self._hello.open_seconds) as self._bound:
                seconds = await self._remaining_seconds(answer, step)
                if seconds is not None and self._left is not None:
                    self._left = seconds  # a person logs in: the wait begins after that
                elif seconds is not None:
                    self._bound.reschedule(asyncio.get_running_loop().time() + seconds)
                return await asyncio.shield(answer)
        except TimeoutError:
            return self._late_discovery() or Silence()
        finally:
            self._bound = self._left = None
            answer.cancel()

    async def _remaining_seconds(
        self, answer: asyncio.Future[Outcome], step: Discover | Handshake
    ) -> float | None:
        """Return the remaining seconds to wait; None for no limit. Returns once the server has read
        the request.
        """
        if step.read_seconds is not None:
            await asyncio.wait({answer}, timeout=_LOOK)
            if self._unread() is not None:
                while not answer.done() and self._unread():
                    await asyncio.wait({answer}, timeout=_LOOK)
                return step.read_seconds
        return step.seconds if isinstance(step, Discover) else None

    async def _first_result(self, task: asyncio.Task[Outcome]) -> Outcome:
        """Return the outcome of the handshake, or a DiscoverResult that arrives earlier: alone if
        the handshake is not answered soon after it, or is refused.
        """
        probe = self._open.get("server/discover")
        if probe is None or probe is task:
            return await asyncio.shield(task)
        await asyncio.wait({task, probe}, return_when=asyncio.FIRST_COMPLETED)
        late = self._late_discovery()
        if late is None:
            return await asyncio.shield(task)
        await asyncio.wait({task}, timeout=READ_SECONDS)
        return answered_late(late, _result(task))

    def _late_discovery(self) -> t.DiscoverResult | None:
        """Return the response to the probe, if it has arrived."""
        probe = self._open.get("server/discover")
        late = _result(probe) if probe is not None else None
        return late if isinstance(late, t.DiscoverResult) else None

    async def _send(self, step: Discover | Handshake) -> Outcome:
        hello = self._hello
        capabilities = hello.capabilities_in(step.revision)
        caller = Caller(step.revision, capabilities, hello.info)
        if isinstance(step, Discover):
            x = Exchange("server/discover", t.DiscoverRequestParams(), caller)
        else:
            params = opening_params(step.revision, capabilities, hello.info)
            x = Exchange(OPENING, params, caller)
        x.transport = _Bounded(self._pause_timeout)
        try:
            result = await self._carry(x)
        except t.McpError as bad:
            return bad
        except t.ProtocolError as bad:
            return t.McpError(t.INTERNAL_ERROR, str(bad))
        if is_opening_result(result):
            return result
        return t.McpError(t.INTERNAL_ERROR, "The server answered with something else.")

    @contextlib.contextmanager
    def _pause_timeout(self) -> Iterator[None]:
        bound = self._bound
        end = None if bound is None else bound.when()
        if bound is None or end is None or bound.expired():
            yield
            return
        now = asyncio.get_running_loop().time
        self._left = end - now()
        bound.reschedule(None)
        try:
            yield
        finally:
            if bound is self._bound and self._left is not None:
                bound.reschedule(now() + self._left)
                self._left = None


def _seen(task: asyncio.Task[Any]) -> None:
    """Mark an exception as retrieved, because no call waits for it any more."""
    if not task.cancelled():
        task.exception()


def _result(task: asyncio.Task[Outcome]) -> Outcome | None:
    """Return what a task has returned; None if it has not, or has failed."""
    if not task.done() or task.cancelled() or task.exception() is not None:
        return None
    return task.result()


def _wants_progress(x: Exchange) -> bool:
    """Whether the sender of an exchange receives progress. For a forwarded request the original
    sender decides.
    """
    if x.notify is silent or x.method == "subscriptions/listen":
        return False
    return x.received is None or x.progress_token is not None


def _wants_log(x: Exchange, level: t.LoggingLevel) -> bool:
    """Whether the sender of a forwarded request wants log messages of a level (`LOG-05`,
    `LOG-06`).
    """
    wanted = x.caller.log_level
    return wanted is not None and LOGGING_LEVELS.index(level) >= LOGGING_LEVELS.index(wanted)


def task_of(request: t.InputRequest) -> str | None:
    """The id of the task that a question belongs to; None if it names none (2025-11-25)."""
    if request.params is None or request.params.meta is t.NOTHING:
        return None
    from ..types.tasks import RELATED_TASK  # late: few questions have metadata

    try:
        named = decode(request.params.meta, dict[str, Any]).get(RELATED_TASK)
    except Malformed:
        return None
    id = named.get("taskId") if isinstance(named, dict) else None
    return id if isinstance(id, str) else None


def _head(caller: Caller) -> bytes:
    if caller.era is Era.HANDSHAKE:
        return b""
    members: dict[str, Any] = {VERSION_KEY: caller.revision}
    if caller.info is not None:
        members[INFO_KEY] = caller.info
    members[CAPABILITIES_KEY] = Raw(encode(caller.capabilities, caller.revision))
    if caller.log_level is not None:
        members[LOG_LEVEL_KEY] = caller.log_level
    return encode_json(members)[1:-1]


def signed(params: t.Params, caller: Caller) -> t.Params:
    """Return the params of a notification with the sender's keys, which every request of the
    stateless era has.
    """
    own = b"" if params.meta is t.NOTHING else bytes(params.meta).strip()[1:-1].strip()
    members = [part for part in (_head(caller), own) if part]
    return replace(params, meta=Raw(b"{%b}" % b",".join(members))) if members else params


def _trace(trace: TraceContext) -> bytes:
    """Return the members of `_meta` for the trace of a request (`OTL-01`)."""
    members = {
        "traceparent": trace.traceparent,
        "tracestate": trace.tracestate,
        "baggage": trace.baggage,
    }
    return encode_json({name: value for name, value in members.items() if value is not None})[1:-1]


def read_result(method: str, raw: Raw, extensions: ExtensionMessages = NO_EXTENSIONS) -> AnyResult:
    """Decode a result as the type of its method, as the type of an extension, or as an
    InputRequiredResult.

    (`RPC-20`, `RPC-21`, `RPC-22`)

    Raises:
        ProtocolError: The result has none of these types.
    """
    row = METHODS.get(method)
    kind: type[t.Result] = t.EmptyResult
    if row is None:
        kind = extensions.results.get(method, kind)
    elif row.result is not None:
        kind = extensions.result_of(method) or row.result
    trouble = ""
    try:
        result: t.Result = decode(raw, kind)
        if result.result_type is None or result.result_type == "complete":
            return result
    except Malformed as bad:
        trouble = str(bad)
    result_type: str | None = None
    try:
        result_type = decode(raw, t.Result).result_type
        if result_type == "input_required":
            asking: t.InputRequiredResult = decode(raw, t.InputRequiredResult)
            return asking
        claim = extensions.claimed.get((method, result_type or ""))
        if claim is not None:
            claimed: t.Result = decode(raw, claim[0])
            return claimed
        trouble = trouble or f"its resultType is {result_type!r}"
    except Malformed as bad:
        # Without a type it was meant for the method, whatever an extension made of it.
        trouble = str(bad) if result_type is not None or not trouble else trouble
    raise t.ProtocolError(f"The server's answer to {method} cannot be read: {trouble}")
