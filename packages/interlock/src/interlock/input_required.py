"""Input requests (questions of the server) and their ways to the client: directly, in an
InputRequiredResult of a suspended call, or with a replay.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Protocol

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from . import types as t
from .caches import BoundedCache
from .eager import start_eagerly
from .exchange import (
    PLAIN_TRANSPORT,
    AnyResult,
    Caller,
    Exchange,
    ExchangeTransport,
    Handler,
    HttpRequest,
    NoAsker,
    Principal,
    ready,
    silent,
)
from .idempotency import (
    IDEMPOTENCY_KEY,
    KEY_SECONDS,
    Actions,
    Claim,
    EndedAction,
    NoPeers,
    Peers,
    in_doubt,
)
from .logs import limited
from .outcomes import outcome_of, record_error, record_result
from .protocol.journal import Journal
from .quotas import DEFAULT_SHARE, Quota, holder_of_exchange
from .store.bounds import CLOCK_TOLERANCE
from .store.errors import StoreError, store_unreachable
from .store.interface import RecordStore
from .wire.codec import decode
from .wire.jsonrpc import Malformed
from .wire.revisions import METHODS, Era
from .wire.seal import BadSeal, Seal

MOST_ROUNDS = 32
# The kinds of messages between the workers that share suspended calls. The subject of each message
# is the worker that it is addressed to.
_RETRY = "call-retry"
_NOTIFICATION = "call-notification"
_REFUSED = "call-refused"
_CANCELLED = "call-cancelled"

log = limited("interlock.server")
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_decode_json = msgspec.json.Decoder().decode


def required_capability(
    request: t.InputRequest, capabilities: t.ClientCapabilities
) -> tuple[str, t.ClientCapabilities] | None:
    """Return the capability that a client lacks for this question: its name, and the capabilities
    that the client would have to declare; None if it lacks none.
    """
    if isinstance(request, t.ListRootsRequest):
        return (
            None
            if capabilities.roots is not None
            else ("roots", t.ClientCapabilities(roots=t.RootsCapability()))
        )
    if isinstance(request, t.CreateMessageRequest):
        sampling = capabilities.sampling
        if sampling is None:
            return "sampling", t.ClientCapabilities(sampling=t.SamplingCapability())
        if (request.params.tools or request.params.tool_choice) and sampling.tools is None:
            return "sampling.tools", t.ClientCapabilities(sampling=t.SamplingCapability(tools={}))
        return None
    elicitation = capabilities.elicitation
    if request.params.mode == "url":
        if elicitation is None or elicitation.url is None:
            return "elicitation.url", t.ClientCapabilities(
                elicitation=t.ElicitationCapability(url={})
            )
    elif elicitation is None or (elicitation.form is None and elicitation.url is not None):
        return "elicitation.form", t.ClientCapabilities(
            elicitation=t.ElicitationCapability(form={})
        )
    return None


def _always(x: Exchange) -> bool:
    return True


def _never(x: Exchange) -> bool:
    return False


def _nothing(*_: object) -> None:
    """Do nothing."""


_UNASKABLE_METHOD = (
    "{} cannot ask: questions are possible in tools/call, prompts/get, resources/read and in "
    "methods of extensions whose params are InputResponseParams."
)
_ENDED_BY_OPERATOR = "An operator of the server has ended the call."
_MOST_FINISHED = 128  # finished calls whose last result is kept for clients that send a retry twice


def check_askable(request: t.InputRequest, capabilities: t.ClientCapabilities) -> None:
    """Raise Unanswerable if the client has not declared the capability for this question
    (`MRT-05`).
    """
    lacking = required_capability(request, capabilities)
    if lacking is not None:
        raise t.Unanswerable(f"This client cannot be asked: it has no {lacking[0]}.", lacking[0])


def _can_be_asked(capabilities: t.ClientCapabilities) -> bool:
    """Whether the client has declared any capability for questions."""
    return (
        capabilities.elicitation is not None
        or capabilities.sampling is not None
        or capabilities.roots is not None
    )


class SendServerRequest(Protocol):
    """Sends a request of the server to the client of a call."""

    async def __call__(self, request: Any, result: type[Any] | None = None) -> Any:
        """Send a request, and return its result.

        Args:
            request: An input request, or a request about a task that the client runs.
            result: The type of the result; None for the response to an input request.

        Raises:
            McpError: The client answered with an error, or with something malformed.
            ProtocolError: The call has ended.
        """
        ...


class Direct:
    """The asker of the handshake era: sends questions straight to the peer at the other end of the
    connection.

    Attributes:
        has_answers: Whether the run has used an answer or a `once` step.
    """

    def __init__(self, caller: Caller, send: SendServerRequest) -> None:
        self.has_answers = False
        self._caller = caller
        self._send = send
        self._once: dict[str, Any] = {}

    async def ask(self, request: t.InputRequest, key: str | None = None) -> t.InputResponse:
        """Send the question, and wait for the answer."""
        check_askable(request, self._caller.capabilities)
        self.has_answers = True
        if (
            isinstance(request, t.ElicitRequest)
            and request.params.mode == "url"
            and request.params.elicitation_id is None
        ):
            request = t.ElicitRequest(
                replace(request.params, elicitation_id=os.urandom(12).hex())
            )  # `ELI-18`
        if not isinstance(request, t.ListRootsRequest) and request.params.task is not None:
            from .question_tasks import ask_as_task, runs_task  # late: few questions are tasks

            if runs_task(self._caller, request):
                return await ask_as_task(request, self._send)
            params: Any = replace(request.params, task=None)
            request = replace(request, params=params)
        response: t.InputResponse = await self._send(request)
        return response

    async def once(
        self, name: str, do: Callable[[], Awaitable[Any]], *, idempotent: bool = False
    ) -> Any:
        """Run the side effect. In the handshake era the tool runs once, so the effect does too."""
        self.has_answers = True
        if name not in self._once:
            self._once[name] = _as_json(await do())
        return self._once[name]


class _Ticket(Struct, omit_defaults=True):
    """The content of a sealed `requestState`."""

    pending: list[str] = msgspec.field(default_factory=list)  # open questions of the last round
    journal: dict[str, Any] = msgspec.field(default_factory=dict)
    call: str = ""  # names the call in all its rounds
    round: int = 0
    holder: str = ""  # the worker that holds the suspended call
    records: str = ""  # the identity of the store that knows which states were used
    keyed: str = ""  # the record of the call's idempotency key
    author: str | None = None  # the state of a tool that writes its InputRequiredResult by hand
    by_hand: bool = False


_FIRST = _Ticket()
"""The ticket of a new call, without answers. It is shared and never modified."""


class HandlerRun:
    """One run of a handler that asks. An answer comes from the journal; otherwise the question
    joins the current round.

    A question without an answer waits in the task that asked it. If the run cannot wait for the
    answer, the whole run is cancelled (`unwind`). So no exception has to travel from the asking
    task to the task of the handler.
    """

    __slots__ = (
        "_journal",
        "_recorded",
        "asked",
        "capabilities",
        "malformed",
        "on_question",
        "over",
        "steps",
        "waiting",
    )

    def __init__(
        self,
        recorded: dict[str, Any],
        capabilities: t.ClientCapabilities,
        steps: OnceSteps | None = None,
    ) -> None:
        self._recorded = recorded
        self._journal: Journal | None = None
        self.steps = steps
        self.capabilities = capabilities
        self.waiting: dict[str, tuple[t.InputRequest, asyncio.Future[t.InputResponse]]] = {}
        self.asked: dict[str, t.InputRequest] = {}  # the same questions, and the abandoned ones
        # The error for a malformed answer. The client is at fault, so the handler does not see it.
        self.malformed: t.McpError | None = None
        self.on_question: Callable[[], object] = _nothing
        self.over = False  # the run is being unwound, or has been

    @property
    def journal(self) -> Journal:
        """The answers so far. The journal is created at first use, because most runs ask
        nothing.
        """
        if self._journal is None:
            self._journal = Journal(self._recorded)
        return self._journal

    @property
    def has_answers(self) -> bool:
        """Whether the run has used an answer or a `once` step."""
        return bool(self._recorded if self._journal is None else self._journal.entries)

    def share_journal(self, other: HandlerRun) -> None:
        """Continue the journal of another run of the same call."""
        self._journal = other.journal

    async def ask(self, request: t.InputRequest, key: str | None = None) -> t.InputResponse:
        """Return the answer in the journal, or wait until the client's retry brings it.

        Args:
            request: The question.
            key: Its key, which is unique in the call. By default it is made from the number and the
                content of the question.

        Raises:
            McpError: The client cannot answer this kind of question, or the answer does not fit.
        """
        if self.over:
            raise asyncio.CancelledError
        check_askable(request, self.capabilities)
        key = self.journal.key(request, key)
        if key in self.journal.entries:
            try:
                return _response(request, self.journal.entries[key])
            except t.McpError as bad:
                self.malformed = bad
        waiting: asyncio.Future[t.InputResponse] = asyncio.get_running_loop().create_future()
        self.waiting[key] = (request, waiting)
        self.asked[key] = request
        self.on_question()
        try:
            return await waiting
        finally:
            # A question whose handler stopped waiting is not asked again.
            self.waiting.pop(key, None)

    def answer(self, answers: Mapping[str, Any]) -> None:
        """Put answers, as JSON data, into the journal, and pass them to the questions that wait for
        them.

        Raises:
            McpError: An answer does not fit its question.
        """
        for key, value in answers.items():
            self.journal.entries.setdefault(key, value)
            if key not in self.waiting:
                continue
            request, waiting = self.waiting.pop(key)
            if not waiting.done():
                waiting.set_result(_response(request, value))

    def unwind(self, task: asyncio.Future[AnyResult]) -> None:
        """Cancel the task of the run, and the questions that wait in other tasks."""
        self.over = True
        for _, waiting in list(self.waiting.values()):
            waiting.cancel()
        task.cancel()

    async def once(
        self, name: str, do: Callable[[], Awaitable[Any]], *, idempotent: bool = False
    ) -> Any:
        """Run an action at its first call, and return the recorded result at later ones.

        Args:
            name: The name of the step, which is unique in the call.
            do: The action. Its result must be JSON data.
            idempotent: Whether the action may run again if its outcome is unknown.
        """
        key = self.journal.once_key(name)
        if key not in self.journal.entries:
            if self.steps is None:
                value = _as_json(await do())
            else:
                value = await self.steps.run(name, do, idempotent=idempotent)
            self.journal.entries[key] = value
        return self.journal.entries[key]


class OnceSteps:
    """The `once` steps of a call whose code may run again. Each step has its own record."""

    __slots__ = ("_account", "_actions", "_call", "_seconds")

    def __init__(self, actions: Actions, call: str, account: str, seconds: float) -> None:
        self._actions = actions
        self._call = call
        self._account = account
        self._seconds = seconds

    async def run(self, name: str, do: Callable[[], Awaitable[Any]], *, idempotent: bool) -> Any:
        """Run a step, or return its recorded result. Raises McpError if the step is in doubt."""
        claim = await self._actions.claim(
            f"once:{self._call}:{_digest(name)}",
            account=self._account,
            seconds=self._seconds,
            idempotent=idempotent,
        )
        if isinstance(claim, EndedAction):
            if claim.outcome is None:
                raise in_doubt("The step has ended, and its result is no longer kept.")
            return _decode_json(claim.outcome)
        try:
            value = msgspec.json.encode(await do())
        except asyncio.CancelledError:
            # Unknown how far the step came: its record stays "started", so the next run finds it in
            # doubt.
            self._actions.abandon(claim)
            raise
        except BaseException:
            await claim.release()
            raise
        if not await claim.settle(value):
            raise in_doubt("Another worker has taken it over.")
        return _decode_json(value)


class _CurrentTransport(ExchangeTransport):
    """Delegates to the transport of the request that the suspended call serves now."""

    __slots__ = ("_call",)

    def __init__(self, call: _SuspendedCall) -> None:
        self._call = call

    @property
    def request(self) -> HttpRequest | None:
        return self._call.request.transport.request

    @property
    def mirrored(self) -> Mapping[str, str] | None:
        return self._call.request.transport.mirrored

    def release(self, retry_ms: int | None = None) -> bool:
        return self._call.request.transport.release(retry_ms)

    @property
    def address(self) -> str | None:
        return self._call.request.transport.address

    @property
    def is_http(self) -> bool:
        return self._call.request.transport.is_http

    @property
    def held_bytes(self) -> int:
        return self._call.request.transport.held_bytes

    def pause_timeout(self) -> AbstractContextManager[object]:
        return self._call.request.transport.pause_timeout()


class _SuspendedCall:
    """A running handler that outlives the request that started it, with the rounds of its
    questions.

    Middleware may pass on copies of the exchange. So notifications of the handler go through this
    object, which sends them with the request that the call serves now.
    """

    __slots__ = (
        "exchange",
        "expiry",
        "held",
        "holder",
        "is_settling",
        "keyed",
        "layer",
        "name",
        "outcome",
        "outcomes",
        "request",
        "round",
        "run",
        "task",
    )

    def __init__(
        self,
        x: Exchange,
        ticket: _Ticket,
        layer: _Layer,
        *,
        steps: OnceSteps | None,
        again: _SuspendedCall | None,
    ) -> None:
        """`again` is a call of which a round was denied; this call replaces it."""
        self.name: str = ticket.call
        self.keyed = ticket.keyed
        self.layer = layer
        self.run = HandlerRun(ticket.journal, x.caller.capabilities, steps)
        self.request = x
        self.round: int = again.round if again is not None else ticket.round
        self.outcomes: dict[int, asyncio.Future[AnyResult]] = {}
        if again is not None:
            self.outcomes.update(again.outcomes)
            self.outcomes.pop(ticket.round, None)
        self.outcome: asyncio.Future[AnyResult]
        self.expiry: asyncio.TimerHandle | None = None
        self.holder = ""  # whom it counts for, once it is suspended
        self.held = 0  # bytes that it counts in the memory budget while it waits
        self.is_settling = False
        self.exchange = replace(
            x,
            params=_plain(x.params, ticket),
            notify=self._notify,
            asker=self.run,
            drain=self._drain,
            transport=_CurrentTransport(self),
            replayed=x.params.request_state is not None,
        )
        self.task: asyncio.Future[AnyResult]

    def was_denied(self, round: int) -> bool:
        """Whether a round ended because a scope was missing. The retry of such a round is a second
        attempt, not a repetition (2026-07-28, "Step-Up").
        """
        outcome = self.outcomes.get(round)
        return (
            outcome is not None
            and outcome.done()
            and not outcome.cancelled()
            and isinstance(outcome.exception(), t.Forbidden)
        )

    def has_result(self) -> bool:
        """Whether the handler has returned a result that can be sent as it is."""
        task = self.task
        return (
            task.done()
            and not task.cancelled()
            and task.exception() is None
            and self.run.malformed is None
            and not isinstance(task.result(), t.InputRequiredResult)
        )

    def is_waiting(self) -> bool:
        """Whether it waits for an answer, and no request for it."""
        return self.outcome.done() and not self.task.done()

    def hold(self, x: Exchange) -> None:
        """Bind the handler to this exchange: its notifications go with this request, and its
        principal is the one of this token.
        """
        self.request = x
        self.exchange.progress_token = x.progress_token
        if x.caller.principal is not None:
            self.exchange.caller = replace(self.exchange.caller, principal=x.caller.principal)

    def break_cycles(self) -> None:
        """Break the reference cycles of a call that has ended. Garbage collection of the cycles
        would cost more than the call.
        """
        self.run.on_question = _nothing
        del self.exchange

    def release_request(self) -> None:
        """Drop the bytes of the request of a call that has ended; its outcomes stay known."""
        self.request = replace(self.request, params=None, received=None)
        if self.has_result():  # a task holds its context variables, and with them the request
            ended: asyncio.Future[AnyResult] = asyncio.get_running_loop().create_future()
            ended.set_result(self.task.result())
            self.task = ended

    def read_answers(self, responses: dict[str, Raw]) -> dict[str, t.InputResponse]:
        """Decode the answers to the questions of this round, and ignore all others (`MRT-21`).
        Raises McpError for malformed answers.
        """
        return {
            key: _response(self.run.waiting[key][0], _json(raw))
            for key, raw in responses.items()
            if key in self.run.waiting
        }

    def answer(self, given: dict[str, t.InputResponse], responses: dict[str, Raw]) -> None:
        """Pass the answers to the questions that still wait for them."""
        for key, response in given.items():
            if key not in self.run.waiting:
                continue
            _, waiting = self.run.waiting.pop(key)
            self.run.journal.entries[key] = _json(responses[key])
            if not waiting.done():
                waiting.set_result(response)

    def _notify(self, method: str, params: Any) -> None:
        self.request.notify(method, params)

    async def _drain(self) -> None:
        await self.request.drain()


class _Layer(Struct, frozen=True):
    """A handler, and what the input-required layer has to know about its exchanges."""

    handler: Handler
    check: Callable[[Exchange], object]
    is_idempotent: Callable[[Exchange], bool]


class _ForwardedRetry(Struct, array_like=True):
    """A retry on its way to the worker that holds its suspended call."""

    name: str  # names this retry
    sender: str
    call: str
    round: int
    responses: dict[str, Raw]
    token: t.ProgressToken | None
    principal: Principal | None


class _Refusal(Struct, array_like=True):
    """The reason why the holder of a call does not resume it. Without an error, that worker does
    not hold the call.
    """

    name: str
    error: tuple[int, str, Any] | None = None
    scopes: list[str] | None = None  # the scopes of a Forbidden

    @classmethod
    def of(cls, name: str, bad: t.McpError | None) -> _Refusal:
        """The refusal of a retry."""
        if bad is None:
            return cls(name)
        scopes = list(bad.scopes) if isinstance(bad, t.Forbidden) else None
        return cls(name, (bad.code, bad.message, bad.data), scopes)

    def exception(self) -> t.McpError | None:
        """Return the error that answers the retry."""
        if self.error is None:
            return None
        if self.scopes is not None:
            return t.Forbidden(*self.scopes, message=self.error[1])
        return t.McpError(*self.error)


class SuspendedCalls:
    """Lets handlers ask questions in every revision: `around` wraps any handler in this layer.

    In the stateless era questions travel in results, and the answers come with a retry (MRTR). With
    `suspend`, a running call waits at its question for at most `seal.seconds` seconds; at most
    `most` calls wait at once, of which one caller may hold a `share`; the oldest waiting calls of
    larger holders make room for others. `memory` counts the bytes that waiting calls hold.

    A retry is forwarded to the worker that holds its call. If that worker is gone, the handler runs
    again from the top with the journal of answers. Each state is used once: the records, which all
    workers share, mark the used states and hold the outcomes.

    Hazard: without `suspend` a handler always runs again from the top, and a state that is sent
    twice may run the handler twice (at least once). A state is valid only at servers with the name
    `server`, even if others have the same key.
    """

    def __init__(
        self,
        seal: Seal,
        records: RecordStore,
        *,
        server: str = "",
        suspend: bool = True,
        most: int = 1000,
        memory: Quota | None = None,
        share: float = DEFAULT_SHARE,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.server = server
        self.seal = seal
        self.suspend = suspend
        self.quota = Quota(most, share)
        self._memory = memory
        self.wall_clock = wall_clock
        self._suspended: dict[str, _SuspendedCall] = {}
        self._finished_calls: BoundedCache[str, _SuspendedCall] = BoundedCache(_MOST_FINISHED)
        self._writing: set[asyncio.Future[Any]] = set()  # outcomes that are being recorded
        self._late: set[asyncio.Task[None]] = set()  # outcomes that wait for the store to come back
        self._forwarded: dict[str, Exchange] = {}  # retries that another worker runs
        self._refused: dict[str, _Refusal] = {}
        self._serving: dict[str, asyncio.Task[None]] = {}  # retries from other workers
        self.quota.on_pressure(self._evict)
        if memory is not None:
            memory.on_pressure(partial(self._evict, has_memory=True))
        self.share(records, NoPeers())

    def share(self, records: RecordStore, peers: Peers) -> None:
        """Share the records with other workers. Call it before the first call."""
        self._peers = peers
        self._actions = Actions(records, peers, wall_clock=self.wall_clock)
        peers.on(_RETRY, self._receive_retry)
        peers.on(_NOTIFICATION, self._receive_notification)
        peers.on(_REFUSED, self._receive_refusal)
        peers.on(_CANCELLED, self._receive_cancellation)

    def around(
        self,
        handler: Handler,
        *,
        could_ask: Callable[[Exchange], bool] = _always,
        check: Callable[[Exchange], object] = _nothing,
        is_idempotent: Callable[[Exchange], bool] = _never,
    ) -> Handler:
        """Return the handler with this layer around it: its exchanges can ask in every revision.

        Args:
            handler: The handler that may ask.
            could_ask: Whether an exchange can ask at all. Other exchanges cost nothing.
            check: Called before a retry resumes a suspended call, because the handler does not see
                the request of the retry. Raises McpError if the caller is not allowed to make the
                call.
            is_idempotent: Whether an exchange may run again if it is in doubt.
        """
        layer = _Layer(handler, check, is_idempotent)

        def handle(x: Exchange) -> Awaitable[AnyResult]:
            if x.method == "tools/call" and x.params.meta is not _NO_META:
                key = _idempotency_key(x)
                if key and not isinstance(x.asker, HandlerRun):
                    return self._handle_keyed(x, key, layer, can_ask=could_ask(x))
            if isinstance(x.asker, HandlerRun) or not could_ask(x):
                return handler(x)
            if x.caller.era is Era.HANDSHAKE:
                return ask_directly(x, handler)
            if not isinstance(x.params, t.InputResponseParams):
                words = _UNASKABLE_METHOD.format(x.method)
                return _answered(handler, replace(x, asker=NoAsker(words)))
            return self._carry(x, layer)

        return handle

    async def _handle_keyed(
        self, x: Exchange, key: str, layer: _Layer, *, can_ask: bool
    ) -> AnyResult:
        """Run a call that has an idempotency key. A repeated call gets the first outcome."""
        ticket = _Ticket(keyed=f"key:{_digest(repr((self.server, _account(x), key)))}")
        running: Callable[[], Awaitable[AnyResult]]
        if not can_ask:
            running = partial(layer.handler, x)
        elif x.caller.era is Era.HANDSHAKE:
            running = partial(ask_directly, x, layer.handler)
        elif x.params.request_state is not None:
            return await self._retry(x, layer)
        else:
            running = partial(self._begin, x, layer, ticket)
        asked = [x.caller.revision, _binding(x, self.server).decode()]
        is_idempotent = layer.is_idempotent(x)
        claim = await self._actions.claim(
            ticket.keyed,
            account=_account(x),
            seconds=KEY_SECONDS,
            idempotent=is_idempotent,
            digest=_digest(repr(asked)),
        )
        if isinstance(claim, EndedAction):
            layer.check(x)
            return outcome_of(claim, x.method)
        shared: asyncio.Future[AnyResult] = asyncio.get_running_loop().create_future()
        return await self._recorded(running(), [claim], x, shared, is_idempotent)

    async def aclose(self) -> None:
        """Cancel every suspended call."""
        tasks = [call.task for call in self._suspended.values()]
        for call in list(self._suspended.values()):
            self._forget(call)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*self._serving.values(), return_exceptions=True)
        for _ in range(3):  # until the waiting tasks have begun to record outcomes
            await asyncio.sleep(0)
        await asyncio.gather(*self._writing, return_exceptions=True)
        for late in self._late:
            late.cancel()

    def __len__(self) -> int:
        return len(self._suspended)

    def waiting(self) -> list[tuple[str, Exchange]]:
        """Return the calls that wait for answers here: their names, and their last requests."""
        return [
            (call.name, call.request) for call in self._suspended.values() if call.outcome.done()
        ]

    async def end(self, beginning: str) -> bool:
        """End the call that waits for an answer and whose name begins so. A later answer gets an
        error. Returns False if no such call waits here.

        Raises StoreError if the store fails.
        """
        for name, x in self.waiting():
            call = self._suspended.get(name)
            if not name.startswith(beginning) or call is None:
                continue
            claim = await self._actions.claim(
                _round_key(_Ticket(call=name, round=call.round)),
                account=_account(x),
                seconds=self.seal.seconds,
                idempotent=False,
            )
            if isinstance(claim, EndedAction):
                return False
            ended = t.McpError(t.INTERNAL_ERROR, _ENDED_BY_OPERATOR, {"reason": "ended"})
            await claim.settle(record_error(ended))
            self._expire(call)
            return True
        return False

    def _carry(self, x: Exchange, layer: _Layer) -> Awaitable[AnyResult]:
        """Run or resume a call of the stateless era."""
        if x.params.request_state is None:
            return self._begin(x, layer, _FIRST)
        return self._retry(x, layer)

    async def _retry(self, x: Exchange, layer: _Layer) -> AnyResult:
        ticket = self._open(x)
        responses: dict[str, Raw] = x.params.input_responses or {}
        if not self.suspend:
            _take_answers(ticket, responses)
            shared: asyncio.Future[AnyResult] = asyncio.get_running_loop().create_future()
            claims = await self._reclaim_key(ticket, x)
            return await self._recorded(
                self._begin(x, layer, ticket), claims, x, shared, layer.is_idempotent(x)
            )
        call = self._known(ticket.call)
        stale = ticket.holder != self._peers.worker
        if call is not None and stale and ticket.round not in call.outcomes:
            # Another worker took this one for dead and continued the call. A call that runs this
            # very round is none of these: an earlier retry brought it here from a dead worker.
            self._expire(call)
            call = None
        if call is not None and not call.was_denied(ticket.round):
            layer.check(x)
            return await self._resume(call, ticket, responses, x)
        if call is not None:
            ticket.journal.update(
                call.run.journal.entries
            )  # completed steps stay completed, although the round was denied
        elif await self._is_held_elsewhere(ticket):
            layer.check(x)
            await self._forward(x, ticket, responses)
        return await self._run_again(x, layer, ticket, responses, call)

    async def _run_again(
        self,
        x: Exchange,
        layer: _Layer,
        ticket: _Ticket,
        responses: dict[str, Raw],
        denied: _SuspendedCall | None,
    ) -> AnyResult:
        """Run a call again from the top, unless another retry has done so; then return the recorded
        outcome.
        """
        is_idempotent = layer.is_idempotent(x)
        if ticket.records != self._actions.records.identity and not is_idempotent:
            raise in_doubt("This server does not know whether the requestState was used before.")
        _take_answers(ticket, responses)
        claim = await self._claim(ticket, x, is_idempotent)
        if isinstance(claim, EndedAction):
            layer.check(x)
            return outcome_of(claim, x.method)
        shared: asyncio.Future[AnyResult] = asyncio.get_running_loop().create_future()
        claims = [claim, *await self._reclaim_key(ticket, x)]
        running = self._begin(x, layer, ticket, again=denied, shared=shared)
        return await self._recorded(running, claims, x, shared, is_idempotent)

    async def _claim(
        self, ticket: _Ticket, x: Exchange, is_idempotent: bool
    ) -> Claim | EndedAction:
        """Record that the code after a question begins."""
        return await self._actions.claim(
            _round_key(ticket),
            account=_account(x),
            seconds=self.seal.seconds,
            idempotent=is_idempotent,
        )

    async def _reclaim_key(self, ticket: _Ticket, x: Exchange) -> list[Claim]:
        """Claim the record of the call's idempotency key, whose outcome so far was a question."""
        if not ticket.keyed:
            return []
        claim = await self._actions.reclaim(ticket.keyed, account=_account(x), seconds=KEY_SECONDS)
        return [] if claim is None else [claim]

    async def _recorded(
        self,
        running: Awaitable[AnyResult],
        claims: list[Claim],
        x: Exchange,
        shared: asyncio.Future[AnyResult],
        is_idempotent: bool,
    ) -> AnyResult:
        """Record the outcome of a round, pass it to the other retries of the round, and return
        it.
        """
        try:
            result = await running
        except asyncio.CancelledError:
            if is_idempotent:
                shared.cancel()
                for claim in claims:
                    self._soon(claim.release())
            else:
                doubt = in_doubt("The call was cancelled.")
                _fail(shared, doubt)
                for claim in claims:
                    self._soon(claim.settle(record_error(doubt)))
            raise
        except BaseException as bad:
            for claim in claims:
                if isinstance(bad, t.Forbidden):  # a retry with more scopes is a second try
                    self._soon(claim.release())
                else:
                    await self._write(claim, record_error(bad))
            _fail(shared, bad)
            raise
        try:
            is_ours = True
            for claim in claims:
                outcome = record_result(result, x.method, x.caller.revision)
                is_ours = await self._write(claim, outcome) and is_ours
        except asyncio.CancelledError:
            _fail(shared, in_doubt("The call was cancelled."))
            raise
        if not is_ours:
            bad_luck = in_doubt("Another worker has taken it over.")
            _fail(shared, bad_luck)
            raise bad_luck
        if not shared.done():
            shared.set_result(result)
        return result

    async def _write(self, claim: Claim, outcome: bytes) -> bool:
        """Record an outcome; False if another worker has taken over the action.

        If the store is unavailable, the caller gets the outcome anyway, because the action has
        happened. The outcome is recorded when the store is back.
        """
        task = self._soon(claim.settle(outcome))
        try:
            return bool(await asyncio.shield(task))
        except asyncio.CancelledError:
            raise
        except Exception:
            log.warning("the store has failed; the outcome of a call is recorded when it is back")
            self._keep_trying(claim, outcome)
            return True

    def _keep_trying(self, claim: Claim, outcome: bytes) -> None:
        task = asyncio.get_running_loop().create_task(claim.settle_later(outcome))
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    def _soon(self, work: Coroutine[Any, Any, Any]) -> asyncio.Future[Any]:
        """Write in the background until the write has ended, even if the requester disconnects."""
        task = start_eagerly(work, asyncio.get_running_loop())
        if task.done():
            self._written(task)
        else:
            self._writing.add(task)
            task.add_done_callback(self._written)
        return task

    def _written(self, task: asyncio.Future[Any]) -> None:
        self._writing.discard(task)
        if not task.cancelled():
            task.exception()

    def _begin(
        self,
        x: Exchange,
        layer: _Layer,
        ticket: _Ticket,
        *,
        again: _SuspendedCall | None = None,
        shared: asyncio.Future[AnyResult] | None = None,
    ) -> Awaitable[AnyResult]:
        """Run a handler from the top. `shared` is the future that the other retries of the round
        wait for.
        """
        run = layer.handler
        if not _can_be_asked(x.caller.capabilities):
            return self._run_unasked(x, run, ticket)
        if not self.suspend or not self._has_room(x):
            return self._replay(x, run, ticket)
        loop = asyncio.get_running_loop()
        call = _SuspendedCall(x, ticket, layer, steps=self._steps(ticket, x), again=again)
        call.run.on_question = lambda: self._settle_soon(call)
        if shared is not None:
            call.outcomes[ticket.round] = shared
        call.task = start_eagerly(_answered(run, call.exchange), loop)
        if again is None and call.has_result():
            call.break_cycles()
            return call.task
        call.outcome = loop.create_future()
        if call.task.done() and again is None:
            self._conclude(call)
            return call.outcome
        outcome = self._open_round(call, x)
        if call.task.done():
            self._settle(call)
        else:
            call.task.add_done_callback(lambda _: self._settle(call))
        return outcome

    async def _run_unasked(self, x: Exchange, run: Handler, ticket: _Ticket) -> AnyResult:
        """Run a handler for a client that cannot be asked: no task has to outlive the request."""
        asker = HandlerRun(ticket.journal, x.caller.capabilities, self._steps(ticket, x))
        params = _plain(x.params, ticket)
        inner = replace(x, asker=asker, params=params, replayed=x.params.request_state is not None)
        return self._finished(await _answered(run, inner), x, asker, _next(ticket))

    def _steps(self, ticket: _Ticket, x: Exchange) -> OnceSteps | None:
        """Return the recorder of the call's `once` steps. None before the first question, and if
        the records are elsewhere; then only the journal has the steps.
        """
        actions = self._actions
        if not ticket.call or (not self.suspend and ticket.records != actions.records.identity):
            return None
        return OnceSteps(actions, ticket.call, _account(x), self.seal.seconds)

    # -- suspended ---------------------------------------------------------------------------------

    def _known(self, name: str) -> _SuspendedCall | None:
        return self._suspended.get(name) or self._finished_calls.get(name)

    async def _resume(
        self, call: _SuspendedCall, ticket: _Ticket, responses: dict[str, Raw], x: Exchange
    ) -> AnyResult:
        earlier = call.outcomes.get(ticket.round)
        if earlier is not None:  # a retry of a retry: it shares the outcome, and nothing runs twice
            return await _shared(earlier)
        given = call.read_answers(responses)
        shared: asyncio.Future[AnyResult] = asyncio.get_running_loop().create_future()
        call.outcomes[ticket.round] = shared
        is_idempotent = call.layer.is_idempotent(x)
        try:
            claim = await self._claim(ticket, x, is_idempotent)
            if isinstance(claim, EndedAction):  # another worker ended the call
                self._expire(call)
                result = outcome_of(claim, x.method)
                shared.set_result(result)
                return result
            claims = [claim, *await self._reclaim_key(ticket, x)]
        except BaseException as bad:
            call.outcomes.pop(ticket.round, None)
            _fail(shared, bad)
            raise
        call.outcome = asyncio.get_running_loop().create_future()
        if call.run.steps is None:
            call.run.steps = self._steps(ticket, x)
        call.answer(given, responses)
        outcome = self._open_round(call, x)
        if call.task.done():
            self._settle(call)
        elif call.run.waiting:
            self._settle_soon(call)  # some questions are still unanswered
        return await self._recorded(outcome, claims, x, shared, is_idempotent)

    # -- suspended at another worker ---------------------------------------------------------------

    async def _is_held_elsewhere(self, ticket: _Ticket) -> bool:
        """Whether another living worker holds the call of a ticket."""
        return (
            ticket.holder not in ("", self._peers.worker)
            and ticket.records == self._actions.records.identity
            and await self._peers.is_alive(ticket.holder)
        )

    async def _forward(self, x: Exchange, ticket: _Ticket, responses: dict[str, Raw]) -> None:
        """Send a retry to the worker that holds its call. Wait until the round has ended, or until
        that worker does not have the call.

        Notifications of the call go with this retry. Raises McpError if that worker rejected it.
        """
        actions = self._actions
        key = _round_key(ticket)
        name = f"{key}:{_new_name()}"
        retry = _ForwardedRetry(
            name,
            self._peers.worker,
            ticket.call,
            ticket.round,
            responses,
            x.progress_token,
            x.caller.principal,
        )
        self._forwarded[name] = x
        try:
            if await actions.has_ended(key):
                return
            self._peers.publish(_RETRY, ticket.holder, msgspec.json.encode(retry).decode())
            while (
                name not in self._refused
                and not await actions.has_ended(key)
                and await self._peers.is_alive(ticket.holder)
            ):
                await actions.wait(key)
        except asyncio.CancelledError:
            self._peers.publish(_CANCELLED, ticket.holder, name)
            raise
        finally:
            del self._forwarded[name]
            refusal = self._refused.pop(name, None)
        bad = refusal.exception() if refusal is not None else None
        if bad is not None:
            raise bad

    def _receive_retry(self, worker: str, payload: str) -> None:
        if worker != self._peers.worker:
            return
        retry = msgspec.json.decode(payload, type=_ForwardedRetry)
        task = asyncio.get_running_loop().create_task(self._serve_retry(retry))
        self._serving[retry.name] = task
        task.add_done_callback(lambda _: self._serving.pop(retry.name, None))

    async def _serve_retry(self, retry: _ForwardedRetry) -> None:
        """Resume a call for a retry that another worker received. That worker finds the outcome in
        the record.
        """
        call = self._suspended.get(retry.call)
        if call is None or call.was_denied(retry.round):
            self._refuse(retry, None)
            return
        held = call.request
        x = replace(
            held,
            notify=lambda method, params: self._publish_notification(retry, method, params),
            caller=replace(held.caller, principal=retry.principal or held.caller.principal),
            progress_token=retry.token,
            drain=ready,
            transport=PLAIN_TRANSPORT,
        )
        ticket = _Ticket(
            call=retry.call,
            round=retry.round,
            records=self._actions.records.identity,
            keyed=call.keyed,
        )
        try:
            await self._resume(call, ticket, retry.responses, x)
        except t.McpError as bad:
            self._refuse(retry, bad)
        except StoreError:  # the call still waits, and the next retry resumes it
            self._refuse(retry, store_unreachable())
        except Exception as bad:
            log.warning("a retry from another worker failed", exc_info=bad)
            self._refuse(retry, None)

    def _refuse(self, retry: _ForwardedRetry, bad: t.McpError | None) -> None:
        payload = msgspec.json.encode(_Refusal.of(retry.name, bad)).decode()
        self._peers.publish(_REFUSED, retry.sender, payload)

    def _publish_notification(self, retry: _ForwardedRetry, method: str, params: Any) -> None:
        payload = msgspec.json.encode((retry.name, method, params)).decode()
        self._peers.publish(_NOTIFICATION, retry.sender, payload)

    def _receive_notification(self, worker: str, payload: str) -> None:
        if worker != self._peers.worker:
            return
        name, method, raw = msgspec.json.decode(payload, type=tuple[str, str, Raw])
        x = self._forwarded.get(name)
        row = METHODS.get(method)
        if x is not None and row is not None:
            x.notify(method, decode(raw, row.params))

    def _receive_refusal(self, worker: str, payload: str) -> None:
        if worker != self._peers.worker:
            return
        refusal = msgspec.json.decode(payload, type=_Refusal)
        if refusal.name in self._forwarded:
            self._refused[refusal.name] = refusal
            self._actions.wake(refusal.name.rpartition(":")[0])

    def _receive_cancellation(self, worker: str, name: str) -> None:
        task = self._serving.get(name)
        if worker == self._peers.worker and task is not None:
            task.cancel()

    def _open_round(self, call: _SuspendedCall, x: Exchange) -> asyncio.Future[AnyResult]:
        """Let the call serve a request until it ends or asks. Its notifications go with that
        request.

        Returns:
            The outcome of the round. Cancelling the outcome cancels the call.
        """
        if call.expiry is not None:
            call.expiry.cancel()
        call.hold(x)
        call.name = call.name or _new_name()
        older = self._suspended.get(call.name)
        if older is not call:
            if older is not None:
                self._forget(older)
            self._suspended[call.name] = call
            call.holder = holder_of_exchange(x)
            self.quota.take(call.holder)
        self._release_memory(call)  # the request counts it now
        call.outcome.add_done_callback(lambda outcome: self._close_round(call, outcome))
        return call.outcome

    def _close_round(self, call: _SuspendedCall, outcome: asyncio.Future[AnyResult]) -> None:
        if not outcome.cancelled():
            outcome.exception()  # mark the exception as retrieved: possibly no request waits for it
            return
        self._forget(call)
        call.task.cancel()

    def _settle_soon(self, call: _SuspendedCall) -> None:
        """Conclude the round in the next turn of the loop, so that questions asked together travel
        together.
        """
        if not call.is_settling:
            call.is_settling = True
            asyncio.get_running_loop().call_soon(self._settle, call)

    def _settle(self, call: _SuspendedCall) -> None:
        """Conclude the round if the call has ended or waits for an answer."""
        call.is_settling = False
        outcome = call.outcome
        run = call.run
        if call.task.done():
            self._conclude(call)
        elif outcome.done() or not run.waiting:
            return
        elif run.malformed is not None:
            run.unwind(call.task)
        else:
            call.hold(replace(call.request, notify=silent))
            call.round += 1
            self._hold_memory(call)
            # In a context of its own: a cancelled timer stays in the loop for a while, and would
            # keep the context variables of the call, and with them its arguments.
            call.expiry = asyncio.get_running_loop().call_later(
                self.seal.seconds, self._expire, call, context=contextvars.Context()
            )
            questions = {key: request for key, (request, _) in run.waiting.items()}
            ticket = _Ticket(
                call=call.name, round=call.round, holder=self._peers.worker, keyed=call.keyed
            )
            outcome.set_result(self._questions(questions, run, call.request, ticket))

    def _conclude(self, call: _SuspendedCall) -> None:
        """Make the outcome of the handler, which has ended, the outcome of the round, if a request
        waits for it.
        """
        task = call.task
        outcome = call.outcome
        bad = None if task.cancelled() else task.exception()
        if outcome.done():
            return  # between two rounds, or abandoned; the next retry collects it
        self._forget(call)
        call.break_cycles()
        if call.round:  # clients have tickets of this call, and may retry with one of them
            self._finished_calls.put(call.name, call)
        if call.run.malformed is not None:
            outcome.set_exception(call.run.malformed)
        elif task.cancelled():
            outcome.cancel()
        elif bad is not None:
            outcome.set_exception(bad)
        else:
            try:
                ticket = _Ticket(
                    call=call.name or _new_name(), round=call.round + 1, keyed=call.keyed
                )
                outcome.set_result(self._finished(task.result(), call.request, call.run, ticket))
            except t.McpError as refusal:  # a handwritten question that the client cannot answer
                outcome.set_exception(refusal)
        call.release_request()

    def _forget(self, call: _SuspendedCall) -> None:
        if self._suspended.get(call.name) is call:
            del self._suspended[call.name]
            self.quota.release(call.holder)
            self._release_memory(call)
        if call.expiry is not None:
            call.expiry.cancel()

    def _has_room(self, x: Exchange) -> bool:
        """Whether one more call may be suspended."""
        quota = self.quota
        if quota.used < quota.limit // 2:  # there is room for every holder
            return True
        holder = holder_of_exchange(x)
        if not quota.acquire(holder):
            return False
        quota.release(holder)  # the call is counted when its round opens, within this turn
        return True

    def _hold_memory(self, call: _SuspendedCall) -> None:
        """Count the bytes of a call that begins to wait, which its request counted until now."""
        held = call.request.transport.held_bytes
        if self._memory is not None and held:
            call.held = held
            self._memory.take(call.holder, held)

    def _release_memory(self, call: _SuspendedCall) -> None:
        if self._memory is not None and call.held:
            self._memory.release(call.holder, call.held)
            call.held = 0

    def _evict(self, holder: str, *, has_memory: bool = False) -> bool:
        """End the oldest call of a holder that waits for an answer. Its retry runs again from the
        top.
        """
        for call in self._suspended.values():
            if call.holder == holder and call.is_waiting() and (call.held or not has_memory):
                self._expire(call)
                return True
        return False

    def _expire(self, call: _SuspendedCall) -> None:
        self._forget(call)
        call.task.cancel()

    # -- replayed ----------------------------------------------------------------------------------

    async def _replay(self, x: Exchange, run: Handler, ticket: _Ticket) -> AnyResult:
        """Run a handler up to its first questions. Ignore what it raises or returns while it is
        cancelled there.
        """
        asking = HandlerRun(ticket.journal, x.caller.capabilities, self._steps(ticket, x))
        params = _plain(x.params, ticket)
        inner = replace(x, asker=asking, params=params, replayed=x.params.request_state is not None)
        stirred = asyncio.Event()
        asking.on_question = stirred.set
        task = start_eagerly(_answered(run, inner), asyncio.get_running_loop())
        task.add_done_callback(lambda _: stirred.set())
        try:
            await stirred.wait()
            await asyncio.sleep(0)  # questions asked together travel together
            questions = {} if task.done() else dict(asking.asked)
            if questions:
                asking.unwind(task)
                await asyncio.wait({task})
                if not task.cancelled():
                    task.exception()  # ignore what it raised or returned while it was cancelled
            if asking.malformed is not None:
                raise asking.malformed
            if questions:
                return self._questions(questions, asking, x, _next(ticket))
            return self._finished(await task, x, asking, _next(ticket))
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise

    # -- tickets -----------------------------------------------------------------------------------

    def _questions(
        self, questions: dict[str, t.InputRequest], run: HandlerRun, x: Exchange, ticket: _Ticket
    ) -> t.InputRequiredResult:
        ticket.pending = list(questions)
        ticket.journal = run.journal.entries
        ticket.records = self._actions.records.identity
        return t.InputRequiredResult(
            result_type="input_required",
            input_requests=questions,
            request_state=self._close(ticket, x),
        )

    def _finished(
        self, result: AnyResult, x: Exchange, run: HandlerRun, ticket: _Ticket
    ) -> AnyResult:
        """Return the result of a handler. Check handwritten questions, and seal their state."""
        if not isinstance(result, t.InputRequiredResult):
            return result
        for request in (result.input_requests or {}).values():
            lacking = required_capability(request, x.caller.capabilities)
            if lacking is not None:
                raise missing_capability(*lacking)
        ticket.journal = run.journal.entries
        ticket.author = result.request_state
        ticket.by_hand = True
        ticket.records = self._actions.records.identity
        return replace(result, result_type="input_required", request_state=self._close(ticket, x))

    def _close(self, ticket: _Ticket, x: Exchange) -> str:
        return self.seal.close(
            msgspec.to_builtins(ticket), _binding(x, self.server), self.wall_clock()
        )

    def _open(self, x: Exchange) -> _Ticket:
        state = x.params.request_state
        if state is None:
            return _Ticket()
        try:
            binding = _binding(x, self.server)
            opened = self.seal.open(state, binding, self.wall_clock(), tolerance=CLOCK_TOLERANCE)
            return msgspec.convert(opened, _Ticket)
        except (BadSeal, msgspec.ValidationError) as bad:
            raise t.McpError(t.INVALID_PARAMS, f"Invalid requestState: {bad}") from None


async def ask_directly(x: Exchange, run: Handler) -> AnyResult:
    """Run a handler in the handshake era: questions go straight to the peer, and handwritten
    questions are asked on behalf of the tool.

    A state and answers that the peer itself put into its request are removed, because this server
    never issued them (`MRT-06`).
    """
    may_ask_by_hand = isinstance(x.params, t.InputResponseParams)
    if may_ask_by_hand and _brings_answers(x):
        x = replace(x, params=replace(x.params, input_responses=None, request_state=None))
    result = await _answered(run, x)
    return await ask_by_hand(x, run, result) if may_ask_by_hand else result


async def ask_by_hand(x: Exchange, run: Handler, result: AnyResult) -> AnyResult:
    """Ask the questions of a handwritten InputRequiredResult on behalf of its tool, and run the
    tool with the answers until it returns another result.
    """
    for _ in range(MOST_ROUNDS):
        if not isinstance(result, t.InputRequiredResult):
            return result
        requests = result.input_requests or {}
        try:
            for request in requests.values():
                check_askable(request, x.caller.capabilities)
            answers = await asyncio.gather(*(x.asker.ask(request) for request in requests.values()))
        except t.Unanswerable as bad:
            return result_without_answer(bad, x)
        responses = {
            key: Raw(msgspec.json.encode(answer))
            for key, answer in zip(requests, answers, strict=True)
        }
        params = replace(x.params, input_responses=responses, request_state=result.request_state)
        result = await _answered(run, replace(x, params=params, replayed=True))
    raise t.McpError(t.INTERNAL_ERROR, f"The tool asked more than {MOST_ROUNDS} times in one call.")


def is_unwound(x: Exchange) -> bool:
    """Whether a handler is being cancelled at its question, to run again later. Ignore what it
    raises meanwhile.
    """
    return getattr(x.asker, "over", False) is True


async def _answered(run: Handler, x: Exchange) -> AnyResult:
    """Run a handler. A question that the client cannot be asked becomes a result or a protocol
    error.
    """
    try:
        return await run(x)
    except t.Unanswerable as bad:
        return result_without_answer(bad, x)


def result_without_answer(bad: t.Unanswerable, x: Exchange) -> AnyResult:
    """Return the result of an exchange whose question could not be asked. Raises McpError if it
    must be a protocol error.
    """
    error = unanswerable(bad, x)
    if error is not None:
        raise error from None
    if x.method == "tools/call":
        return t.CallToolResult(content=[t.TextContent(str(bad))], is_error=True)
    raise t.McpError(t.INVALID_REQUEST, str(bad)) from None


async def _shared(outcome: asyncio.Future[AnyResult]) -> AnyResult:
    """Wait for the outcome of a round that another request runs."""
    try:
        return await asyncio.shield(outcome)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if outcome.cancelled() and task is not None and not task.cancelling():
            raise t.McpError(t.INTERNAL_ERROR, "The call was cancelled.") from None
        raise


def unanswerable(bad: t.Unanswerable, exchange: Exchange) -> t.McpError | None:
    """Return the protocol error for a question that the client cannot be asked: only in the
    stateless era; otherwise None, and the call ends like any ToolError.
    """
    if exchange.caller.era is not Era.STATELESS or not bad.capability:
        return None
    name, _, mode = bad.capability.partition(".")
    wanted: dict[str, Any] = {name: {mode: {}} if mode else {}}
    return missing_capability(bad.capability, msgspec.convert(wanted, t.ClientCapabilities))


def missing_capability(name: str, capabilities: t.ClientCapabilities) -> t.McpError:
    """Return the error of the stateless era for a question whose capability the client has not
    declared (`ERR-08`).
    """
    words = f"The request needs a client capability that was not declared: {name}"
    return t.McpError(t.MISSING_CLIENT_CAPABILITY, words, {"requiredCapabilities": capabilities})


def _new_name() -> str:
    return os.urandom(12).hex()


def _round_key(ticket: _Ticket) -> str:
    """Return the key of the record for the code after a question."""
    return f"round:{ticket.call}:{ticket.round}"


def _next(ticket: _Ticket) -> _Ticket:
    """Return the ticket of the next round of a call that runs again from the top."""
    return _Ticket(call=ticket.call or _new_name(), round=ticket.round + 1, keyed=ticket.keyed)


_NO_META = t.NOTHING  # a module global, because every call compares with it
_KEY_BYTES = IDEMPOTENCY_KEY.encode()
_LONGEST_KEY = 255


def _idempotency_key(x: Exchange) -> str | None:
    """Return the idempotency key of a call; None if the client sent none. Raises McpError for a
    malformed key.
    """
    meta = bytes(x.params.meta)
    if _KEY_BYTES not in meta:
        return None
    key = _json(x.params.meta).get(IDEMPOTENCY_KEY)
    if not isinstance(key, str) or not 1 <= len(key) <= _LONGEST_KEY:
        words = f"{IDEMPOTENCY_KEY} must be a string of 1 to {_LONGEST_KEY} characters"
        raise t.McpError(t.INVALID_PARAMS, words)
    return key


def _take_answers(ticket: _Ticket, responses: dict[str, Raw]) -> None:
    """Put the answers to the questions of the last round into the journal."""
    given = {key: _json(raw) for key, raw in responses.items() if key in ticket.pending}
    ticket.journal.update(given)


def _digest(text: str) -> str:
    import hashlib  # late: only for calls that ask

    return hashlib.blake2s(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _account(x: Exchange) -> str:
    """Return the account that the bytes of an outcome count against: the principal's or the
    address's.
    """
    if x.caller.principal is None and x.transport.address is None:
        return ""
    return _digest(holder_of_exchange(x))


def _fail(shared: asyncio.Future[AnyResult], bad: BaseException) -> None:
    """Pass a failure to the requests that share a round, if there are any."""
    if shared.done():
        return
    if isinstance(bad, Exception):
        shared.set_exception(bad)
        shared.exception()
    else:
        shared.cancel()


def _plain(params: Any, ticket: _Ticket) -> Any:
    """Return the params as the handler may see them: with its own state if it wrote the question by
    hand; without state and answers in all other retries.
    """
    if ticket.by_hand:
        return replace(params, request_state=ticket.author)
    return (
        params
        if params.request_state is None
        else replace(params, request_state=None, input_responses=None)
    )


def _brings_answers(x: Exchange) -> bool:
    return x.params.input_responses is not None or x.params.request_state is not None


def _binding(x: Exchange, server: str) -> bytes:
    """Return what a state is bound to: the server, the principal, the method and the params
    (`MRT-08`).
    """
    asked = replace(x.params, meta=t.NOTHING, input_responses=None, request_state=None)
    principal = x.caller.principal.key if x.caller.principal else None
    return _encode_sorted([server, principal, x.method, _decode_json(msgspec.json.encode(asked))])


def _json(raw: Raw) -> Any:
    try:
        return _decode_json(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise t.McpError(t.INVALID_PARAMS, "Invalid inputResponses: not valid JSON") from None


def _as_json(value: Any) -> Any:
    """Return the result of `once` as JSON data, so that it is the same whether the tool continues
    or runs again.
    """
    return _decode_json(msgspec.json.encode(value))


def _response(request: t.InputRequest, value: Any) -> t.InputResponse:
    try:
        response: t.InputResponse = decode(
            msgspec.json.encode(value), t.RESPONSE_TYPES[type(request)]
        )
    except Malformed as bad:
        raise t.McpError(t.INVALID_PARAMS, f"Invalid inputResponses: {bad}") from None
    return response
