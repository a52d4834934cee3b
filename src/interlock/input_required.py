"""How a question of the server travels to whoever can answer it: straight, suspended, or by running the tool again."""

from __future__ import annotations

import asyncio
import os
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from . import types as t
from .exchange import AnyResult, Caller, Exchange, Handler, silent
from .protocol.journal import Journal
from .wire.codec import decode
from .wire.jsonrpc import Malformed
from .wire.revisions import Era
from .wire.seal import BadSeal, Seal

MOST_ROUNDS = 32
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_decode_json = msgspec.json.Decoder().decode


def required_capability(
    request: t.InputRequest, capabilities: t.ClientCapabilities
) -> tuple[str, t.ClientCapabilities] | None:
    """What a client lacks to be asked this: its name, and the capabilities that it would have to declare; None where it lacks nothing."""
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


class Direct:
    """Straight to the peer, which waits on the other end of the connection (handshake era)."""

    def __init__(
        self, caller: Caller, put: Callable[[t.InputRequest], Awaitable[t.InputResponse]]
    ) -> None:
        self._caller, self._put = caller, put
        self._once: dict[str, Any] = {}

    async def ask(self, request: t.InputRequest, key: str | None = None) -> t.InputResponse:
        """Ask, and wait for the answer."""
        if (
            isinstance(request, t.ElicitRequest)
            and request.params.mode == "url"
            and request.params.elicitation_id is None
        ):
            request = t.ElicitRequest(
                replace(request.params, elicitation_id=os.urandom(12).hex())
            )  # `ELI-18`
        return await self._put(request)

    async def once(self, name: str, do: Callable[[], Awaitable[Any]]) -> Any:
        """Do it; the tool runs once, and so does this."""
        if name not in self._once:
            self._once[name] = _as_json(await do())
        return self._once[name]


class _Ticket(Struct, omit_defaults=True):
    """What is sealed into `requestState`."""

    pending: list[str] = msgspec.field(default_factory=list)  # the questions of the last round
    journal: dict[str, Any] = msgspec.field(default_factory=dict)
    suspended: str | None = None
    round: int = 0
    author: str | None = None  # the state of a tool that writes its InputRequiredResult by hand
    by_hand: bool = False


class _Run:
    """One run of a handler that asks: answers from the journal, else a question of this round.

    A question without an answer waits, in whichever task it is asked. Where the run is not to wait for it, the run as a
    whole is cancelled (`unwind`): no exception has to find its way from the asking task to the handler's own.
    """

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.waiting: dict[str, tuple[t.InputRequest, asyncio.Future[t.InputResponse]]] = {}
        self.asked: dict[str, t.InputRequest] = {}  # the same, and those that were given up
        # An answer that cannot be read: the client's fault, and none of the author's business.
        self.malformed: t.McpError | None = None
        self.stirred = asyncio.Event()
        self.over = False  # it is being unwound, or has been

    async def ask(self, request: t.InputRequest, key: str | None = None) -> t.InputResponse:
        if self.over:
            raise asyncio.CancelledError
        key = self.journal.key(request, key)
        if key in self.journal.entries:
            try:
                return _response(request, self.journal.entries[key])
            except t.McpError as bad:
                self.malformed = bad
        waiting: asyncio.Future[t.InputResponse] = asyncio.get_running_loop().create_future()
        self.waiting[key] = (request, waiting)
        self.asked[key] = request
        self.stirred.set()
        try:
            return await waiting
        finally:
            # A question that its author has given up is not put again.
            self.waiting.pop(key, None)

    async def unwind(self, task: asyncio.Future[AnyResult]) -> None:
        """Cancel the task of the run and what it has asked in others; return once it has put things in order."""
        self.over = True
        for _, waiting in list(self.waiting.values()):
            waiting.cancel()
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # whatever it raised or returned meanwhile counts for nothing

    async def once(self, name: str, do: Callable[[], Awaitable[Any]]) -> Any:
        key = self.journal.once_key(name)
        if key not in self.journal.entries:
            self.journal.entries[key] = _as_json(await do())
        return self.journal.entries[key]


class _SuspendedCall:
    """A running handler that outlives the request that began it, and the rounds it has gone through."""

    def __init__(
        self, x: Exchange, run: Handler, ticket: _Ticket, *, again: _SuspendedCall | None = None
    ) -> None:
        """`again` is one of whom a round was denied, and whose place this one takes."""
        self.name: str = again.name if again is not None else os.urandom(12).hex()
        self.run = _Run(Journal(ticket.journal))
        self.round: int = again.round if again is not None else 0
        earlier = again.outcomes.items() if again is not None else ()
        self.outcomes: dict[int, asyncio.Future[AnyResult]] = {
            round: outcome for round, outcome in earlier if round != ticket.round
        }
        self.expiry: asyncio.TimerHandle | None = None
        self.exchange = replace(x, asker=self.run, params=_plain(x.params, ticket))
        self.task = asyncio.ensure_future(run(self.exchange))
        self.task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Future[AnyResult]) -> None:
        if not task.cancelled():
            task.exception()  # whether anybody comes back for it is open
        self.run.stirred.set()

    def was_denied(self, round: int) -> bool:
        """Whether a round ended because a scope was lacking; the retry is no repetition then, but a second try (2026-07-28, "Step-Up")."""
        outcome = self.outcomes.get(round)
        return (
            outcome is not None and outcome.done() and isinstance(outcome.exception(), t.Forbidden)
        )

    def hold(self, x: Exchange) -> None:
        """What the handler sends from now on goes the way of this exchange, and what it may do is what this one's token allows."""
        self.exchange.notify = x.notify
        self.exchange.drain = x.drain
        self.exchange.progress_token = x.progress_token
        self.exchange.transport = x.transport
        if x.caller.principal is not None:
            self.exchange.caller = replace(self.exchange.caller, principal=x.caller.principal)

    def answer(self, responses: dict[str, Raw]) -> None:
        """Hand the answers to the questions of this round; others are ignored (`MRT-21`). Raises McpError for malformed ones."""
        given = {
            key: _response(self.run.waiting[key][0], _json(raw))
            for key, raw in responses.items()
            if key in self.run.waiting
        }
        for key, response in given.items():
            _, waiting = self.run.waiting.pop(key)
            self.run.journal.entries[key] = _json(responses[key])
            if not waiting.done():
                waiting.set_result(response)


class SuspendedCalls:
    """Questions in the stateless era: they travel inside results, and the answers come with a retry (MRTR).

    With `suspend` a running tool waits where it stands, for `seal.seconds` at the most and up to `most` at once; a ticket that
    this process does not know (a restart, another worker) makes the tool run again from the top with the journal of answers,
    as it always does without `suspend`. A state is good at servers of the name `server` only, though others have the same key.
    """

    def __init__(
        self,
        seal: Seal,
        *,
        server: str = "",
        suspend: bool = True,
        most: int = 1000,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.server = server
        self.seal, self.suspend, self.most = seal, suspend, most
        self.wall = wall
        self._suspended: dict[str, _SuspendedCall] = {}
        self._done: OrderedDict[str, _SuspendedCall] = OrderedDict()

    async def carry(self, x: Exchange, run: Handler) -> AnyResult:
        """Run a handler that may ask, in the way that the caller's era has for it."""
        if x.caller.era is Era.HANDSHAKE:
            return await _carry_direct(x, run)
        ticket = self._open(x)
        responses: dict[str, Raw] = x.params.input_responses or {}
        call = self._known(ticket.suspended)
        if call is not None and not call.was_denied(ticket.round):
            return await self._resume(call, ticket, responses, x)
        if call is not None:
            ticket.journal.update(
                call.run.journal.entries
            )  # what was done once is done, though the rest was not allowed
        ticket.journal.update(
            {key: _json(raw) for key, raw in responses.items() if key in ticket.pending}
        )
        if self.suspend and len(self._suspended) < self.most:
            if call is not None:
                return await self._resume(_SuspendedCall(x, run, ticket, again=call), ticket, {}, x)
            return await self._turn(_SuspendedCall(x, run, ticket), x)
        return await self._replay(x, run, ticket)

    async def aclose(self) -> None:
        """Give up every suspended call."""
        tasks = [call.task for call in self._suspended.values()]
        for call in list(self._suspended.values()):
            self._forget(call)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def __len__(self) -> int:
        return len(self._suspended)

    # -- suspended ------------------------------------------------------------------------------------

    def _known(self, name: str | None) -> _SuspendedCall | None:
        return None if name is None else self._suspended.get(name) or self._done.get(name)

    async def _resume(
        self, call: _SuspendedCall, ticket: _Ticket, responses: dict[str, Raw], x: Exchange
    ) -> AnyResult:
        earlier = call.outcomes.get(ticket.round)
        if earlier is not None:  # a retry of a retry: it shares the answer, and nothing runs twice
            return await asyncio.shield(earlier)
        call.answer(responses)
        if call.expiry is not None:
            call.expiry.cancel()
        outcome = call.outcomes[ticket.round] = asyncio.get_running_loop().create_future()
        try:
            result = await self._turn(call, x)
        except BaseException as bad:
            if not outcome.done():
                outcome.set_exception(
                    bad
                    if isinstance(bad, Exception)
                    else t.McpError(t.INTERNAL_ERROR, "The call was cancelled.")
                )
                outcome.exception()  # whether anybody else waits for it is open
            raise
        outcome.set_result(result)
        return result

    async def _turn(self, call: _SuspendedCall, x: Exchange) -> AnyResult:
        """Let it run until it is done or asks; what it sends meanwhile goes to whoever holds the ticket now."""
        call.hold(x)
        run = call.run
        self._suspended[call.name] = call
        try:
            while True:
                while not call.task.done() and not run.waiting:
                    run.stirred.clear()
                    await run.stirred.wait()
                await asyncio.sleep(0)  # questions asked together travel together
                if call.task.done() or run.waiting:
                    break
            if run.malformed is not None:
                await run.unwind(call.task)
        except asyncio.CancelledError:
            self._forget(call)
            call.task.cancel()
            raise
        if call.task.done():
            self._forget(call)
            if call.round:  # there are tickets of it, and with one of them somebody may ask again
                self._done[call.name] = call
                while len(self._done) > 128:
                    self._done.popitem(last=False)
            if run.malformed is not None:
                raise run.malformed
            return self._finished(await call.task, x, run)
        call.hold(replace(x, notify=silent))
        call.round += 1
        call.expiry = asyncio.get_running_loop().call_later(self.seal.seconds, self._expire, call)
        questions = {key: request for key, (request, _) in run.waiting.items()}
        return self._questions(questions, run, x, _Ticket(suspended=call.name, round=call.round))

    def _forget(self, call: _SuspendedCall) -> None:
        self._suspended.pop(call.name, None)
        if call.expiry is not None:
            call.expiry.cancel()

    def _expire(self, call: _SuspendedCall) -> None:
        self._forget(call)
        call.task.cancel()

    # -- replayed -----------------------------------------------------------------------------------

    async def _replay(self, x: Exchange, run: Handler, ticket: _Ticket) -> AnyResult:
        """Run it up to its first questions; whatever it does while it is unwound from them counts for nothing."""
        asking = _Run(Journal(ticket.journal))
        inner = replace(x, asker=asking, params=_plain(x.params, ticket))
        task = asyncio.ensure_future(run(inner))
        task.add_done_callback(lambda _: asking.stirred.set())
        try:
            await asking.stirred.wait()
            await asyncio.sleep(0)  # questions asked together travel together
            questions = {} if task.done() else dict(asking.asked)
            if questions:
                await asking.unwind(task)
            if asking.malformed is not None:
                raise asking.malformed
            if questions:
                return self._questions(questions, asking, x, _Ticket())
            return self._finished(await task, x, asking)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise

    # -- tickets -------------------------------------------------------------------------------------

    def _questions(
        self, questions: dict[str, t.InputRequest], run: _Run, x: Exchange, ticket: _Ticket
    ) -> t.InputRequiredResult:
        ticket.pending, ticket.journal = list(questions), run.journal.entries
        return t.InputRequiredResult(
            result_type="input_required",
            input_requests=questions,
            request_state=self._close(ticket, x),
        )

    def _finished(self, result: AnyResult, x: Exchange, run: _Run) -> AnyResult:
        """What the handler gave; questions written by hand are checked and their state is sealed as ours is."""
        if not isinstance(result, t.InputRequiredResult):
            return result
        for request in (result.input_requests or {}).values():
            lacking = required_capability(request, x.caller.capabilities)
            if lacking is not None:
                raise missing_capability(*lacking)
        ticket = _Ticket(journal=run.journal.entries, author=result.request_state, by_hand=True)
        return replace(result, result_type="input_required", request_state=self._close(ticket, x))

    def _close(self, ticket: _Ticket, x: Exchange) -> str:
        return self.seal.close(msgspec.to_builtins(ticket), _binding(x, self.server), self.wall())

    def _open(self, x: Exchange) -> _Ticket:
        state = x.params.request_state
        if state is None:
            return _Ticket()
        try:
            return msgspec.convert(
                self.seal.open(state, _binding(x, self.server), self.wall()), _Ticket
            )
        except (BadSeal, msgspec.ValidationError) as bad:
            raise t.McpError(t.INVALID_PARAMS, f"Invalid requestState: {bad}") from None


async def _carry_direct(x: Exchange, run: Handler) -> AnyResult:
    """The handshake era: questions go straight to the peer; those written by hand are asked on the tool's behalf.

    A state and answers that the peer itself put into its request are nothing of ours: the tool never sees them (`MRT-06`).
    """
    result = await run(
        replace(x, params=replace(x.params, input_responses=None, request_state=None))
        if _brings(x)
        else x
    )
    for _ in range(MOST_ROUNDS):
        if not isinstance(result, t.InputRequiredResult):
            return result
        requests = result.input_requests or {}
        for request in requests.values():
            lacking = required_capability(request, x.caller.capabilities)
            if lacking is not None:
                raise t.Unanswerable(
                    f"This client cannot be asked: it has no {lacking[0]}.", lacking[0]
                )
        answers = await asyncio.gather(*(x.asker.ask(request) for request in requests.values()))
        responses = {
            key: Raw(msgspec.json.encode(answer))
            for key, answer in zip(requests, answers, strict=True)
        }
        result = await run(
            replace(
                x,
                params=replace(
                    x.params, input_responses=responses, request_state=result.request_state
                ),
            )
        )
    raise t.McpError(t.INTERNAL_ERROR, f"The tool asked more than {MOST_ROUNDS} times in one call.")


def is_unwound(x: Exchange) -> bool:
    """Whether a handler is being cancelled at its question, to run again later: what it raises meanwhile counts for nothing."""
    return isinstance(x.asker, _Run) and x.asker.over


def missing_capability(name: str, capabilities: t.ClientCapabilities) -> t.McpError:
    """The stateless era's error for a question that the client has not declared to take (`ERR-08`)."""
    words = f"The request needs a client capability that was not declared: {name}"
    return t.McpError(t.MISSING_CLIENT_CAPABILITY, words, {"requiredCapabilities": capabilities})


def _plain(params: Any, ticket: _Ticket) -> Any:
    """The params as the handler may see them: its own state if it wrote one by hand, answers without any state as they came."""
    if ticket.by_hand:
        return replace(params, request_state=ticket.author)
    return (
        params
        if params.request_state is None
        else replace(params, request_state=None, input_responses=None)
    )


def _brings(x: Exchange) -> bool:
    return x.params.input_responses is not None or x.params.request_state is not None


def _binding(x: Exchange, server: str) -> bytes:
    """What a state is bound to: the server, the principal, the method and what was asked of it (`MRT-08`)."""
    p = x.params
    arguments = getattr(p, "arguments", None)
    asked = _decode_json(arguments) if isinstance(arguments, Raw) else arguments
    principal = x.caller.principal.key if x.caller.principal else None
    return _encode_sorted(
        [server, principal, x.method, getattr(p, "name", None) or getattr(p, "uri", None), asked]
    )


def _json(raw: Raw) -> Any:
    try:
        return _decode_json(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise t.McpError(t.INVALID_PARAMS, "Invalid inputResponses: not valid JSON") from None


def _as_json(value: Any) -> Any:
    """What is kept of the result of `once`: the same whether the tool runs on or runs again."""
    return _decode_json(msgspec.json.encode(value))


def _response(request: t.InputRequest, value: Any) -> t.InputResponse:
    try:
        response: t.InputResponse = decode(
            msgspec.json.encode(value), t.RESPONSE_TYPES[type(request)]
        )
    except Malformed as bad:
        raise t.McpError(t.INVALID_PARAMS, f"Invalid inputResponses: {bad}") from None
    return response
