"""Isolation between users: three users at three servers at once, with faults. No secret of one user
reaches another one, and no token of the gateway reaches a server."""

from __future__ import annotations

import asyncio
import itertools
import random
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock import (
    Answers,
    AnyResult,
    CallToolResult,
    Client,
    ClientTransport,
    Context,
    Exchange,
    InterlockError,
    Principal,
    Progress,
    Server,
    TextContent,
    TimedOut,
    ToolError,
    Unreachable,
)
from interlock.types import CreateMessageResult
from interlock.wire.revisions import R3, R4, R5
from interlock_issuer import User as Person
from tests.gateway.made import client, entries, made
from tests.gateway.test_identity import browser, town, visiting

USERS = ("ada", "bob", "eve")
SERVERS = ("board", "desk", "lab")
REVISIONS = {"ada": R5, "bob": R4, "eve": R3}
_MARK = re.compile(r"<<(\w+)-\d+>>")

SETTINGS = entries(
    {
        "board": "",  # one connection for all users
        "desk": "shared = false",  # a process for each user
        "lab": "",
    }
)


class Leak(AssertionError):
    """A secret of one user has reached another one."""


class User:
    """A user of the gateway: everything that reaches it is looked at."""

    def __init__(self, name: str, numbers: itertools.count[int]) -> None:
        self.name = name
        self.principal = Principal(subject=name, issuer="https://login.example")
        self._numbers = numbers
        self.received = 0

    def secret(self) -> str:
        """A new secret of this user."""
        return f"<<{self.name}-{next(self._numbers)}>>"

    def look(self, seen: object) -> None:
        """Look at something that has arrived. Raises Leak."""
        found = _MARK.findall(repr(seen))
        self.received += len(found)
        foreign = {owner for owner in found if owner != self.name}
        if foreign:
            raise Leak(f"{self.name} has received of {foreign}: {seen!r}"[:2000])

    def elicit(self, question: Any) -> dict[str, str]:
        """Answer a question with a secret."""
        self.look(question)
        return {"value": self.secret()}

    def sample(self, request: Any) -> CreateMessageResult:
        """Answer in place of a model with a secret."""
        self.look(request)
        content = TextContent(self.secret())
        return CreateMessageResult(role="assistant", content=content, model="m")


class Faulty:
    """A transport that fails now and then: before a request reaches the server, or after."""

    def __init__(self, inner: ClientTransport, chance: random.Random, rate: float) -> None:
        self._inner = inner
        self._chance = chance
        self._rate = rate

    async def open(self, hello: Any) -> Any:
        """Open it."""
        return await self._inner.open(hello)

    async def __call__(self, exchange: Exchange) -> AnyResult:
        """Send a request, or fail."""
        if exchange.method == "tools/call" and self._chance.random() < self._rate:
            raise Unreachable("the connection broke")
        result = await self._inner(exchange)
        if exchange.method == "tools/call" and self._chance.random() < self._rate:
            raise TimedOut("the answer is late")
        return result

    def send_notification(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._inner.send_notification(method, params)

    async def aclose(self) -> None:
        """Close it."""
        await self._inner.aclose()


def server_of(name: str, seen: set[str]) -> Server:
    """A server that answers with what it was given, by every way that an answer can take.

    Args:
        name: Its name.
        seen: The owners of the secrets that reach it.
    """
    server = Server(name)
    kept: list[str] = []

    def note(text: str) -> str:
        seen.update(_MARK.findall(text))
        return text

    @server.tool
    async def echo(secret: str) -> str:
        await asyncio.sleep(0)
        return note(secret)

    @server.tool
    async def keep(secret: str) -> list[str]:
        kept.append(note(secret))
        del kept[:-5]
        return kept if name == "desk" else [secret]

    @server.tool
    async def steps(secret: str) -> AsyncIterator[Progress | str]:
        for number in range(3):
            await asyncio.sleep(0)
            yield Progress(number, 3, note(secret))
        yield secret

    @server.tool
    async def say(secret: str, ctx: Context) -> str:
        ctx.log.info(note(secret))
        await asyncio.sleep(0)
        return secret

    @server.tool
    async def ask(secret: str, ctx: Context) -> str:
        answer = await ctx.elicit(note(secret), str)
        return f"{secret} {note(answer)}"

    @server.tool
    async def ponder(secret: str, ctx: Context) -> str:
        answer = await ctx.sample(note(secret), max_tokens=5)
        return f"{secret} {answer.content}"

    @server.tool
    async def folders(secret: str, ctx: Context) -> str:
        return f"{secret} {[root.uri for root in await ctx.roots()]}"

    @server.tool
    async def fail(secret: str) -> str:
        raise ToolError(note(secret))

    @server.tool
    async def hang(secret: str, ctx: Context) -> str:
        ctx.progress(1, 2, note(secret))
        await asyncio.Event().wait()
        return secret

    @server.tool
    async def touch(secret: str, ctx: Context) -> str:
        ctx.updated(f"{name}://{_MARK.findall(secret)[0]}")
        return note(secret)

    @server.resource(f"{name}://{{owner}}")
    async def page(owner: str) -> str:
        return f"<<{owner}-0>>"

    return server


TOOLS = ("echo", "keep", "steps", "say", "ask", "ponder", "folders", "fail", "touch")


class Round:
    """What the users do at the gateway."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        numbers = itertools.count(1)
        self.users = {name: User(name, numbers) for name in USERS}
        self.clients: dict[str, Client] = {}
        self.errors: dict[str, int] = defaultdict(int)
        self.done = 0

    async def act(self, user: User) -> None:
        """Do one thing as a user, and look at all that comes of it. Raises Leak."""
        chosen = self.chance.random()
        server = self.chance.choice(SERVERS)
        try:
            async with asyncio.timeout(30):
                if chosen < 0.75:
                    await self._call(user, f"{server}__{self.chance.choice(TOOLS)}")
                elif chosen < 0.85:
                    uri = f"{server}://{user.name}"
                    user.look(await self.clients[user.name].read_resource(uri))
                elif chosen < 0.92:
                    user.look(await self.clients[user.name].list_tools())
                else:
                    await self._cancel(user, server)
        except (InterlockError, ValueError) as bad:
            user.look(str(bad))
            self.errors[type(bad).__name__] += 1
        self.done += 1

    async def _call(self, user: User, name: str) -> None:
        secret = user.secret()
        result = await self.clients[user.name].call_tool(
            name, {"secret": secret}, on_progress=user.look
        )
        user.look(result)
        if not result.is_error:
            assert secret in repr(result), f"{user.name} did not get the answer to its own call"

    async def _cancel(self, user: User, server: str) -> None:
        running = asyncio.Event()

        def began(progress: Any) -> None:
            user.look(progress)
            running.set()

        call = asyncio.ensure_future(
            self.clients[user.name].call_tool(
                f"{server}__hang", {"secret": user.secret()}, on_progress=began
            )
        )
        waiting = asyncio.ensure_future(running.wait())
        await asyncio.wait({call, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        call.cancel()
        for ended in await asyncio.gather(call, return_exceptions=True):
            user.look(ended)


@asynccontextmanager
async def rounds(folder: Path, seed: int, fault_rate: float) -> AsyncIterator[Round]:
    """Users who are connected to a gateway with three servers that fail now and then."""
    made_round = Round(seed)
    owners: list[set[str]] = []
    shared = {name: server_of(name, set()) for name in ("board", "lab")}

    def target(name: str) -> Callable[[], Any]:
        def connect() -> Any:
            if name in shared:
                inner = shared[name].transport()
            else:
                owners.append(set())
                inner = server_of(name, owners[-1]).transport()
            return Faulty(inner, made_round.chance, fault_rate)

        return connect

    async with AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(
            made(folder, SETTINGS, {name: target(name) for name in SERVERS})
        )
        for name, user in made_round.users.items():
            made_round.clients[name] = await stack.enter_async_context(
                client(
                    gateway,
                    user.principal,
                    revision=REVISIONS[name],
                    answers=Answers(
                        elicit=user.elicit, sample=user.sample, roots=f"file:///<<{name}-0>>"
                    ),
                    on_log=user.look,
                    log_level="debug",
                )
            )
        yield made_round
    for seen in owners:
        assert len(seen) <= 1, f"one process has served {seen}"


async def play(folder: Path, count: int, seed: int, fault_rate: float) -> Round:
    """Run interleavings: in each, every user does one or two things at once with the others."""
    async with rounds(folder, seed, fault_rate) as made_round:
        for _ in range(count):
            acts: list[Awaitable[None]] = [
                made_round.act(user)
                for user in made_round.users.values()
                for _ in range(made_round.chance.randint(1, 2))
            ]
            made_round.chance.shuffle(acts)
            await asyncio.gather(*acts)
    return made_round


def check(done: Round, count: int) -> None:
    """The users have done much, and most of it went well: a test without traffic shows nothing."""
    assert done.done >= 3 * count
    assert all(user.received > count for user in done.users.values())
    assert sum(done.errors.values()) < done.done / 2, dict(done.errors)


async def test_nothing_crosses_between_users(tmp_path: Path) -> None:
    """A sample of the interleavings."""
    check(await play(tmp_path, 20, 1, 0.01), 20)


@pytest.mark.endurance(seconds=600)
async def test_nothing_crosses_in_ten_thousand_interleavings(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """Drawn anew by each seed."""
    check(await play(tmp_path, 10_000, pytestconfig.option.seed, 0.003), 10_000)


async def as_themselves(count: int, seed: int) -> None:
    """Let three users log in to one server, and call it at once under their own accounts."""
    chance = random.Random(seed)
    async with AsyncExitStack() as stack:
        there = await stack.enter_async_context(town())
        clients: dict[str, Client] = {}
        for name in USERS:
            there.people.person = Person(f"{name}-there", name, {})
            mine = await stack.enter_async_context(browser())
            caller = there.client(name, visiting(mine, []), revision=chance.choice((R4, R5)))
            clients[name] = await stack.enter_async_context(caller)
            assert (await clients[name].call_tool("crm__who")).text == f"{name}-there"

        async def call(name: str) -> None:
            found = await clients[name].call_tool("crm__who")
            assert found.text == f"{name}-there"

        for _ in range(count):
            names = chance.choices(USERS, k=6)
            await asyncio.gather(*(call(name) for name in names))


async def test_each_user_acts_under_their_own_account() -> None:
    """With real tokens: the server behind is guarded, and says whose token a call had."""
    await as_themselves(10, 1)


@pytest.mark.endurance(seconds=20)
async def test_nobody_acts_under_another_account(pytestconfig: pytest.Config) -> None:
    await as_themselves(2_000, pytestconfig.option.seed)


def test_a_leak_is_found() -> None:
    """The look at what arrives finds a secret of another user, wherever it is."""
    ada = User("ada", itertools.count(1))
    ada.look(CallToolResult(content=[TextContent(ada.secret())]))
    with pytest.raises(Leak):
        ada.look(CallToolResult(content=[TextContent("x <<bob-7>> y")]))
