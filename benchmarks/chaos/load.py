"""The mixed load of the chaos test: stateless calls, sessions, event streams, confirmations,
idempotency keys, large arguments and cancellations."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from typing import Any

from interlock import types as t
from interlock.idempotency import IDEMPOTENCY_KEY

from ..roster import HANDSHAKE
from .ledger import Ledger, Outcome
from .wire import MOST, YES, WireClient, events, refusal, text_of

PAUSE = 0.3  # the longest pause of a client between two operations, in seconds
RETRY = (0.2, 1.5)  # the shortest and longest pause after a failure, in seconds
COPIES = 5  # how often a retry is sent at most
GIVES_UP = 180.0  # seconds after which an action that was never settled is given up
LARGE = 2_000_000  # characters of the largest argument
IN_DOUBT = "may_have_happened"


class LoadClient:
    """One client that repeats one kind of operation until it is told to stop."""

    def __init__(self, number: int, kind: str, wire: WireClient, seed: int) -> None:
        self.wire = wire
        self.kind = kind
        self.rng = random.Random(f"{seed}-{number}")
        self.stopping = asyncio.Event()
        self._name = f"{kind}-{number}"
        self._numbers = itertools.count(1)

    @property
    def ledger(self) -> Ledger:
        """Where outcomes are recorded."""
        return self.wire.ledger

    async def run(self) -> None:
        """Repeat the operation."""
        operation = OPERATIONS[self.kind]
        try:
            while not self.stopping.is_set():
                await operation(self)
                failed = self.wire.last_end == "cut"
                await asyncio.sleep(
                    self.rng.uniform(*RETRY) if failed else self.rng.uniform(0, PAUSE)
                )
        finally:
            await self.wire.aclose()

    def name(self) -> str:
        """A name for one action."""
        return f"{self._name}-{next(self._numbers)}"

    def expect(self, outcome: Outcome, text: str) -> None:
        """Record a wrong answer."""
        if outcome.end == "answered" and text_of(outcome.result) != text:
            self.ledger.wrong.append(f"{self.kind}: {text_of(outcome.result)[:60]!r}, not {text!r}")

    async def settled(self, send: Callable[[], Awaitable[Outcome]]) -> Outcome:
        """Repeat a request that may be repeated, until it is answered or refused for good."""
        loop = asyncio.get_running_loop()
        end = loop.time() + GIVES_UP
        while True:
            outcome = await send()
            final = outcome.end == "refused" and not outcome.temporary
            if final or outcome.end == "answered" or loop.time() > end:
                return outcome
            await asyncio.sleep(self.rng.uniform(*RETRY))

    async def copies(self, send: Callable[[], Awaitable[Outcome]]) -> list[Outcome]:
        """Send the same request up to five times, at about the same time."""

        async def copy() -> Outcome:
            await asyncio.sleep(self.rng.uniform(0, 0.2))
            return await self.settled(send)

        return await asyncio.gather(*(copy() for _ in range(self.rng.randint(1, COPIES))))

    def settle(self, name: str, outcomes: list[Outcome]) -> None:
        """Record how an action ended, after all its copies have."""
        for outcome in outcomes:
            self.expect(outcome, f"did {name}")
        ends = {_end_of(outcome) for outcome in outcomes}
        for end in ("did", "unsettled", "in doubt", "refused"):
            if end in ends:
                return self.ledger.settle(self.kind, name, end)

    async def open_session(self) -> bool:
        """Open a session if there is none; whether there is one now."""
        if self.wire.session:
            return True
        params = {
            "protocolVersion": HANDSHAKE,
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "chaos", "version": "1.0.0"},
        }
        outcome = await self.wire.request(self.kind, "initialize", params)
        if outcome.end != "answered" or not self.wire.session:
            self.wire.session = ""
            return False
        await self.wire.notify({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return True

    def keep_session(self, outcome: Outcome) -> None:
        """Forget the session if it has ended."""
        if outcome.end == "refused" and "404" in outcome.reason:
            self.wire.session = ""


def _end_of(outcome: Outcome) -> str:
    if outcome.end == "answered":
        return "did"
    if outcome.end != "refused" or outcome.temporary:
        return "unsettled"
    return "in doubt" if outcome.reason.endswith(IN_DOUBT) else "refused"


async def stateless(client: LoadClient) -> None:
    """A call that is sent once."""
    a = client.rng.randint(0, 1000)
    client.expect(await client.wire.call(client.kind, "add", {"a": a, "b": 1}), str(a + 1))


async def session(client: LoadClient) -> None:
    """Some calls in a session, then its end."""
    for _ in range(client.rng.randint(3, 15)):
        if client.stopping.is_set() or not await client.open_session():
            return
        outcome = await client.wire.call(client.kind, "add", {"a": 1, "b": 2})
        client.expect(outcome, "3")
        client.keep_session(outcome)
        await asyncio.sleep(client.rng.uniform(0, PAUSE))
    await client.wire.end_session()


async def progress(client: LoadClient) -> None:
    """A call in a session that is answered by an event stream, half a second long."""
    if await client.open_session():
        meta = {"progressToken": 1}
        outcome = await client.wire.call(client.kind, "count", {"to": 10}, _meta=meta)
        client.expect(outcome, "counted to 10")
        client.keep_session(outcome)


async def get_stream(client: LoadClient) -> None:
    """A GET stream of a session, which is opened again after it was cut."""
    if not await client.open_session():
        return
    loop = asyncio.get_running_loop()
    began = loop.time()
    fault = client.ledger.fault
    outcome = Outcome("answered")
    try:
        async with asyncio.timeout(client.rng.uniform(1, 5)):
            response = await client.wire.stream()
            if response.status >= 400:
                outcome = refusal(response.status, await response.read(MOST))
            else:
                try:
                    async for _ in events(response):
                        pass
                finally:
                    await response.aclose()
    except TimeoutError:
        pass
    except t.InterlockError:
        outcome = Outcome("cut", reason="the GET stream was cut")
    client.ledger.record(client.kind, outcome, loop.time() - began, fault)
    client.keep_session(outcome)


async def confirmation(client: LoadClient) -> None:
    """An action after a question, in the stateless era; the retry is sent up to five times."""
    name = client.name()
    padding = "x" * client.rng.choice([0, 0, 0, 200_000])
    arguments = {"name": name, "padding": padding}

    async def ask() -> Outcome:
        return await client.wire.call(client.kind, "act", arguments)

    asked = await client.settled(ask)
    if "inputRequests" not in asked.result:
        return client.settle(name, [asked])
    params = {
        "requestState": asked.result.get("requestState"),
        "inputResponses": dict.fromkeys(asked.result["inputRequests"], YES),
    }
    given: dict[str, Any] = {key: value for key, value in params.items() if value is not None}

    async def retry() -> Outcome:
        return await client.wire.call(client.kind, "act", arguments, **given)

    client.settle(name, await client.copies(retry))


async def session_question(client: LoadClient) -> None:
    """An action after a question that arrives on the call's event stream."""
    if not await client.open_session():
        return
    name = client.name()

    async def answer(question: dict[str, object]) -> None:
        message = {"jsonrpc": "2.0", "id": question["id"], "result": YES}
        while True:
            if await client.wire.notify(message) not in (0, 503):
                return
            await asyncio.sleep(client.rng.uniform(*RETRY))

    outcome = await client.wire.call(client.kind, "act", {"name": name}, question=answer)
    client.expect(outcome, f"did {name}")
    client.keep_session(outcome)


async def key(client: LoadClient) -> None:
    """An action with an idempotency key, repeated until its outcome is known."""
    name = client.name()
    meta = {IDEMPOTENCY_KEY: name}

    async def send() -> Outcome:
        return await client.wire.call(client.kind, "charge", {"name": name}, _meta=meta)

    client.settle(name, await client.copies(send))


async def large(client: LoadClient) -> None:
    """A call with large arguments."""
    size = client.rng.randint(1, LARGE)
    client.expect(await client.wire.call(client.kind, "length", {"text": "x" * size}), str(size))


async def cancellation(client: LoadClient) -> None:
    """A call that the client cancels."""
    seconds = client.rng.uniform(0.1, 0.6)
    await client.wire.call(client.kind, "wait", {"name": client.name()}, cancel_after=seconds)


OPERATIONS = {
    "stateless": stateless,
    "session": session,
    "progress": progress,
    "get-stream": get_stream,
    "confirmation": confirmation,
    "session-question": session_question,
    "key": key,
    "large": large,
    "cancellation": cancellation,
}
"""Each kind of load."""

SHARES = {
    "stateless": 6,
    "session": 5,
    "progress": 4,
    "get-stream": 3,
    "confirmation": 8,
    "session-question": 3,
    "key": 4,
    "large": 2,
    "cancellation": 3,
}
"""The number of clients of each kind."""


class Load:
    """All clients, and their end.

    Args:
        urls: The endpoints; the clients are spread over them.
        ledger: Where outcomes are recorded.
        deadline: The time after which an unanswered request is lost, in seconds.
        seed: Draws what each client does.
        without: Kinds of load that the server cannot take.
    """

    def __init__(
        self,
        urls: list[str],
        ledger: Ledger,
        deadline: float,
        seed: int,
        without: frozenset[str] = frozenset(),
    ) -> None:
        kinds = [kind for kind, many in SHARES.items() if kind not in without for _ in range(many)]
        self.clients = [
            LoadClient(
                n,
                kind,
                WireClient(urls[n % len(urls)], f"10.0.0.{n + 1}", ledger, deadline),
                seed,
            )
            for n, kind in enumerate(kinds)
        ]
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start all clients."""
        self._tasks = [asyncio.create_task(client.run()) for client in self.clients]

    async def stop(self) -> None:
        """Let each client end what it has begun."""
        for client in self.clients:
            client.stopping.set()
        await asyncio.gather(*self._tasks)
