"""A whole host under test: servers of this package in memory, a scripted model, a person who
answers as told, and all that was heard.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import inspect
import json
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from interlock import Server
from interlock.configs import Entry
from interlock.models.scripted import Scripted
from interlock.types import (
    CreateMessageRequestParams,
    SamplingMessage,
    TextContent,
    ToolResultContent,
)
from interlock_apps.fleet.events import (
    CallDecided,
    CallEnded,
    CallProposed,
    Event,
    LogEntry,
    Notice,
    ServerState,
)
from interlock_apps.fleet.hub import HubOptions
from interlock_apps.fleet.policy import Policy
from interlock_apps.fleet.questions import Answer, AnyQuestion, Decision, NotAnswered
from interlock_apps.host.app import Host
from interlock_apps.host.options import HostOptions

YES = Decision(allow=True)
NO = Decision(allow=False)
ALLOW = Policy(default="allow")
SECONDS = 60  # a test that hangs has failed; none takes a tenth of it


class Sitting:
    """A person: by a question's kind ("call", "pin", ...) an answer, several to be given in turn,
    or a function of the question.

    What there is no answer for is not answered. `asked` is what was asked; `stirred` is set
    whenever something is.
    """

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[Any] = []
        self._stirred = asyncio.Event()

    async def answer(self, question: AnyQuestion) -> Answer:
        """See Person."""
        self.asked.append(question)
        self._stirred.set()
        answer = self.answers.get(kind(question), NotAnswered(words="I do not know."))
        if isinstance(answer, list):
            answer = answer.pop(0) if answer else NotAnswered(words="I have said all.")
        if callable(answer):
            answer = answer(question)
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, BaseException):
            raise answer
        given: Answer = answer
        return given

    def of(self, wanted: str) -> list[Any]:
        """What was asked of a kind."""
        return [question for question in self.asked if kind(question) == wanted]

    async def until(self, wanted: str, count: int = 1) -> Any:
        """Wait until something of a kind was asked so often; the last of these questions."""
        while len(self.of(wanted)) < count:
            self._stirred.clear()
            await self._stirred.wait()
        return self.of(wanted)[count - 1]


def kind(question: AnyQuestion) -> str:
    """The short name of a question's type."""
    return type(question).__name__.removesuffix("Question").lower()


class Scene:
    """A host, its person, its first model, and what it told."""

    def __init__(self, host: Host, person: Any, model: Any) -> None:
        self.host = host
        self.person = person
        self.model = model
        self.received: list[LogEntry] = []
        self._stirred = asyncio.Event()
        host.listen(self._receive)

    def _receive(self, noted: LogEntry) -> None:
        self.received.append(noted)
        self._stirred.set()

    @property
    def events(self) -> list[Event]:
        """All events so far."""
        return [noted.event for noted in self.received]

    def of(self, *kinds: type[Any]) -> list[Any]:
        """The events of these kinds."""
        return [event for event in self.events if isinstance(event, kinds)]

    def notices(self) -> list[str]:
        """The words of all notices."""
        return [notice.words for notice in self.of(Notice)]

    def ended(self) -> list[str]:
        """How calls went: what was proposed, who decided, and whether there was a result or an
        error.
        """
        lines = []
        for event in self.of(CallProposed, CallDecided, CallEnded):
            if isinstance(event, CallProposed):
                lines.append(f"proposed {event.name}")
            elif isinstance(event, CallDecided):
                lines.append(f"{'allowed' if event.allow else 'refused'} by {event.by}")
            else:
                lines.append("result" if event.result is not None else "error")
        return lines

    async def until(self, wanted: Callable[[], Any]) -> Any:
        """Wait until something holds that only an event can make true."""
        while not (found := wanted()):
            self._stirred.clear()
            await self._stirred.wait()
        return found

    async def state(self, server: str, state: str, count: int = 1) -> None:
        """Wait until a server has come to a state so often."""
        await self.until(
            lambda: (
                [e.state for e in self.of(ServerState) if e.server == server].count(state) >= count
            )
        )

    async def told(self, part: str) -> str:
        """Wait for a notice with these words in it."""
        found = await self.until(lambda: [words for words in self.notices() if part in words])
        return str(found[0])


@contextlib.asynccontextmanager
async def scene(
    servers: Mapping[str, Any], *answers: Any, person: Any = None, model: Any = None, **options: Any
) -> AsyncIterator[Scene]:
    """A host whose model gives these answers, for as long as the block lasts; afterwards no task
    and no thread of it may be left.

    `servers` by id: a Server, or an Entry whose target is its own. `trusted` has the ids of those
    that are trusted.
    """
    tasks = asyncio.all_tasks()
    threads = set(threading.enumerate())
    chosen = model or Scripted(*answers)
    trusted = options.pop("trusted", ())
    entries = [
        given
        if isinstance(given, Entry)
        else Entry(id=id, command=("in", "memory"), trusted=id in trusted)
        for id, given in servers.items()
    ]
    hub = {
        "target": lambda entry: (
            None if isinstance(servers.get(entry.id), Entry) else servers.get(entry.id)
        ),
        **options.pop("hub", {}),
    }
    bounds = {field.name for field in dataclasses.fields(HostOptions)} & options.keys()
    chosen_options = {name: options.pop(name) for name in bounds}
    models = [chosen, *options.pop("others", ())]
    opened = options.pop("opened", True)
    patience = options.pop("patience", SECONDS)
    host = Host(
        entries,
        models=models,
        person=person,
        options=HostOptions(**{"ask_to_start": False, "hub": HubOptions(**hub), **chosen_options}),
        **options,
    )
    one = Scene(host, person, chosen)
    async with asyncio.timeout(patience):
        try:
            if opened:
                await host.open(None)
            yield one
        finally:
            await host.aclose()
        await turns()
        left = asyncio.all_tasks() - tasks
        assert not left, left
        assert not [
            thread
            for thread in set(threading.enumerate()) - threads
            if thread.name == "interlock-store"
        ]


async def turns(number: int = 30) -> None:
    """Let everything that is ready to run do so, a few times over."""
    for _ in range(number):
        await asyncio.sleep(0)


def given(request: CreateMessageRequestParams) -> str:
    """All text that a model gets with a request: system prompt, messages, results, and the tools as
    JSON.
    """
    texts = [request.system_prompt or ""]
    for message in request.messages:
        texts += texts_of(message)
    for tool in request.tools or ():
        texts += [
            tool.name,
            tool.title or "",
            tool.description or "",
            json.dumps(tool.input_schema, ensure_ascii=False),
        ]
        texts += [] if tool.annotations is None else [tool.annotations.title or ""]
    return "\n".join(texts)


def texts_of(message: SamplingMessage) -> list[str]:
    """The texts of a message, those of results included."""
    texts: list[str] = []
    for block in message.content if isinstance(message.content, list) else [message.content]:
        if isinstance(block, TextContent):
            texts.append(block.text)
        elif isinstance(block, ToolResultContent):
            texts += [inner.text for inner in block.content if isinstance(inner, TextContent)]
    return texts


def last(one: Scene) -> str:
    """The texts of the last message that the model was given."""
    return "\n".join(texts_of(one.model.requests[-1].messages[-1]))


def adder(**options: Any) -> Server:
    """A server that adds."""
    server = Server("adder", **options)
    server.calls = []  # type: ignore[attr-defined]  # what it was called with, for a test to see

    @server.tool
    async def add(a: int, b: int) -> str:
        """Add two numbers."""
        server.calls.append((a, b))  # type: ignore[attr-defined]  # see above
        return f"it is {a + b}"

    return server
