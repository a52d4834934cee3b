"""`python -m benchmarks.hosting`: starting 50 servers with 2,000 tools, finding one of these,
entries in a log of 100,000, and the page of a conversation of 5,000 messages with 500 tools."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

from interlock import Client, Server
from interlock.models.interface import ModelFacts
from interlock.types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    SamplingMessage,
    TextContent,
    ToolResultContent,
    ToolUseContent,
)
from interlock_apps.fleet.events import CallEnded
from interlock_apps.fleet.log import SqliteLog
from interlock_apps.fleet.policy import Policy
from interlock_apps.fleet.toolbox import Toolbox
from interlock_apps.host import Host, Scripted
from interlock_apps.host.loop.budget import Budget
from interlock_apps.host.options import HostOptions
from tests.host.catalogue import catalogue
from tests.host.test_finding import WANTED

from .long_conversation import measure_page

ENTRIES = 100_000
LENGTHS = (10, 100, 1_000, 5_000)  # messages of a conversation
STEPS = 30
NAME = "s__nothing"
ROUNDS = 5
# of each
SERVERS = 50
TOOLS = 40


def main() -> None:
    """Print the figures, in milliseconds; those of the toolbox are of the processor, which others
    may be using as well."""
    built = []
    changed = []
    asked = []
    for _ in range(ROUNDS):
        box = Toolbox()
        built.append(_took(lambda box=box: _fill(box)))
        tools = catalogue()["github"]
        changed.append(
            _took(lambda box=box, tools=tools: (box.put("github", tools[1:]), box.search("x")))
        )
        asked += [_took(lambda box=box, words=words: box.search(words)) for words in WANTED]
    print(f"index of 2,000 tools {_figures(built)}")
    print(f"one tool less        {_figures(changed)}")
    print(f"search for a tool    {_figures(asked)}")
    asyncio.run(_steps())
    asyncio.run(_starting())
    asyncio.run(_log())
    asyncio.run(measure_page())


async def _starting() -> None:
    """Measure the start of 50 servers in this process, which take up to a second each, beside the
    slowest of them alone."""

    def late(number: int) -> Server:
        @asynccontextmanager
        async def slow(server: Server) -> AsyncIterator[None]:
            await asyncio.sleep(number / (SERVERS - 1))
            yield

        made = Server(f"s{number}", lifespan=slow)
        for tool in range(TOOLS):
            made.tool(name=f"tool_{tool}", description=f"Tool {tool} of server {number}.")(_nothing)
        return made

    for what, servers in (
        (
            f"{SERVERS} servers, {SERVERS * TOOLS:,} tools",
            {f"s{n}": late(n) for n in range(SERVERS)},
        ),
        ("the slowest alone", {"s": late(SERVERS - 1)}),
    ):
        began = time.perf_counter()
        async with Host(servers, models=[Scripted("hello")]) as host:
            print(
                f"{what:20} {(time.perf_counter() - began) * 1000:.0f} ms, "
                f"{len(host.toolbox.items)} tools"
            )


async def _steps() -> None:
    """Measure a step of the loop (the model's answer, and the call that it asks for) in short and
    long conversations, beside a direct call of the same tool."""
    server = Server("s")
    server.tool("nothing")(_nothing)
    numbers = count()

    def answer(_: CreateMessageRequestParams) -> CreateMessageResult:
        number = next(numbers)
        use = ToolUseContent(id=f"use-{number}", name=NAME, input={"words": "x"})
        last = number % STEPS == STEPS - 1
        return CreateMessageResult(
            role="assistant",
            content=[TextContent(text="done")] if last else [use],
            model="m",
            stop_reason="endTurn" if last else "toolUse",
        )

    facts = ModelFacts(context=100_000_000)
    options = HostOptions(ask_to_start=False, budget=Budget(steps=STEPS, tokens=10**12))
    async with Client(server) as client:
        direct = []
        for _ in range(4 * ROUNDS):
            began = time.process_time()
            for _ in range(STEPS):
                await client.call_tool("nothing", {"words": "x"})
            direct.append((time.process_time() - began) / STEPS * 1000)
    print(f"a direct call              lowest {min(direct):.3f} ms   {_figures(direct)}")
    for length in LENGTHS:
        model = Scripted(answer, facts=facts, forever=True)
        async with Host(
            {"s": server}, models=[model], policy=Policy(default="allow"), options=options
        ) as host:
            assert [item.name for item in host.toolbox.items] == [NAME]
            session = host.session()
            session.messages += _conversation(length)
            steps = []
            for _ in range(4 * ROUNDS):
                began = time.process_time()
                ended = await session.say("go")
                steps.append((time.process_time() - began) / STEPS * 1000)
                assert ended.reason == "done", ended
                model.requests.clear()
        print(f"a step after {length:5,} messages lowest {min(steps):.3f} ms   {_figures(steps)}")


def _conversation(length: int) -> list[SamplingMessage]:
    """A conversation of calls and their results."""
    messages: list[SamplingMessage] = [
        SamplingMessage(role="user", content=[TextContent(text="go")])
    ]
    for number in range(length // 2):
        id = f"old-{number}"
        result = ToolResultContent(tool_use_id=id, content=[TextContent(text="words " * 20)])
        messages += (
            SamplingMessage(
                role="assistant",
                content=[ToolUseContent(id=id, name=NAME, input={"words": "x"})],
            ),
            SamplingMessage(role="user", content=[result]),
        )
    return messages


async def _nothing(words: str) -> str:
    return words


def _fill(box: Toolbox) -> None:
    for server, tools in catalogue().items():
        box.put(server, tools)
    box.search("x")


async def _log() -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = SqliteLog(Path(folder) / "log.db")
        await log.open()
        began = time.perf_counter()
        for number in range(ENTRIES):
            log.note(
                CallEnded(
                    session=f"s{number % 100}",
                    server="a",
                    call=str(number),
                    error=f"answer {number} needle{number % 1000}",
                )
            )
            if number % 1000 == 0:
                await log.flush()
        await log.flush()
        print(f"writing {ENTRIES:,} entries  {(time.perf_counter() - began) * 1000:.0f} ms")
        for words, where in (
            ("needle7", {}),
            ("answer", {}),
            ("answer", {"session": "s7"}),
            ("", {"session": "s7"}),
            ("answer needle99", {}),
        ):
            times = []
            for _ in range(ROUNDS):
                began = time.perf_counter()
                await log.search(words, **where)
                times.append((time.perf_counter() - began) * 1000)
            print(f"search for {words!r:18} {where or ''!s:18} {_figures(times)}")
        await log.aclose()


def _took(work: object) -> float:
    assert callable(work)
    began = time.thread_time()
    work()
    return (time.thread_time() - began) * 1000


def _figures(times: Sequence[float]) -> str:
    return f"median {statistics.median(times):8.2f} ms   most {max(times):8.2f} ms"


if __name__ == "__main__":
    main()
