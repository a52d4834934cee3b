"""Servers that hang, die, shout and flood while a conversation goes on: the host stays usable, and
says what happened.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from interlock import Context, Server
from interlock.models.scripted import call
from interlock.types import Tool
from interlock_apps.fleet.events import CallEnded, CallProgress, FeaturesChanged, ServerLogLine
from interlock_apps.fleet.hub import HubLimits
from interlock_apps.fleet.pins import ServerFeatures
from tests.fleet.hub.keeping import QUICK, alive, misbehaving, pids
from tests.host.scene import ALLOW, adder, last, scene

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="watches processes through /proc, which only Linux has"
)

ADD = call("adder__add", a=1, b=2)
NAMES = ("pid", "die", "kill", "hang", "block", "garbage", "lines")


async def odd(
    folder: Path, tool: str, limits: HubLimits = QUICK, **arguments: Any
) -> tuple[list[str], str]:
    """A conversation in which a tool of a misbehaving process is called beside one of a good
    server: how the calls went, and the last words.
    """
    async with scene(
        {"x": misbehaving(folder), "adder": adder()}, policy=ALLOW, hub={"limits": limits}
    ) as one:
        tools = [Tool(name=name, input_schema={"type": "object"}) for name in NAMES]
        one.host.pins.forget("x")
        one.host.pins.first("x", ServerFeatures(tools=tools))
        one.host.toolbox.put("x", tools)
        one.model.add([(f"x__{tool}", arguments), ADD], "done", ADD, "done")
        session = one.host.session()
        ended = await session.say("go")
        assert ended.reason == "done"
        first = "\n".join(
            block.content[0].text for block in one.model.requests[1].messages[-1].content
        )
        assert (await session.say("and again")).reason == "done"  # the host is as usable as before
        assert "it is 3" in last(one)
        lines = [event.error or "result" for event in one.of(CallEnded)]
    assert not [pid for pid in pids(folder) if alive(pid)]
    return lines, first


@pytest.mark.parametrize("tool, code", [("die", 7), ("kill", -9)])
async def test_a_server_that_dies_in_mid_call(tool: str, code: int, tmp_path: Path) -> None:
    """The model and the person hear how it ended.

    The other call of the same step has its result.
    """
    lines, words = await odd(tmp_path, tool)
    assert "The call failed." in words
    assert f"exit code {code}" in words
    assert "it is 3" in words
    assert sorted(line == "result" for line in lines) == [False, True, True]


@pytest.mark.parametrize("tool", ["hang", "block"])
async def test_a_server_that_hangs(tool: str, tmp_path: Path) -> None:
    """Its call ends when its time is over, and the conversation goes on."""
    lines, words = await odd(tmp_path, tool, limits=HubLimits(call=0.2, patience=0.05))
    assert [line == "result" for line in lines].count(False) == 1
    assert "gave no answer in time" in words
    assert "it is 3" in words


async def test_a_server_that_prints_garbage(tmp_path: Path) -> None:
    """What is no message is passed over, and the answer that follows is taken."""
    lines, words = await odd(tmp_path, "garbage")
    assert lines == ["result"] * 3
    assert str(pids(tmp_path)[0]) in words


async def test_a_server_that_shouts(tmp_path: Path) -> None:
    lines, words = await odd(tmp_path, "lines", count=5_000)
    assert lines == ["result"] * 3
    assert "line 1" not in words


async def test_a_server_that_floods_messages_and_progress() -> None:
    """What is beyond the bound is dropped with a notice; the call and the conversation go on, and
    the log does not fill with it.
    """
    server = Server("flood")

    @server.tool
    async def flood(ctx: Context) -> str:
        """Shout."""
        for number in range(3_000):
            ctx.log.warning(f"line {number}")
            ctx.progress(number, 3_000, "x" * 5_000)
            if not number % 100:
                await asyncio.sleep(0)
        return "done shouting"

    async with scene(
        {"flood": server, "adder": adder()}, [call("flood__flood"), ADD], "done", policy=ALLOW
    ) as one:
        assert (await one.host.session().say("go")).reason == "done"
        assert one.ended().count("result") == 2
        assert len(one.of(ServerLogLine)) < 1_000
        assert one.notices()
        assert all(len(event.message) <= 1_000 for event in one.of(CallProgress))
        kept = await one.host.log.read(limit=10_000)
        assert len(kept) < 100


async def test_a_server_that_floods_changes() -> None:
    """However often it says so, its lists are fetched now and then; a conversation at another
    server goes on.
    """
    server = adder()
    async with scene({"flood": server, "adder": adder()}, ADD, "done", policy=ALLOW) as one:
        before = len(one.of(FeaturesChanged))
        for number in range(1_000):
            server.add_tool(lambda: "x", name="more", description=f"{number}", replace=bool(number))
        assert (await one.host.session().say("go")).reason == "done"
        assert len(one.of(FeaturesChanged)) - before < 10


# -- many servers ----------------------------------------------------------------------------------


def office(number: int, tools: int) -> Server:
    """One of many servers."""
    server = Server(f"office {number}")

    def add(index: int) -> None:
        async def run(value: int = 0) -> str:
            return f"office {number} case {index}: {value}"

        server.add_tool(
            run, name=f"case_{index}", description=f"Look into case {index} of office {number}."
        )

    for index in range(tools):
        add(index)
    return server


def _first_when(ready: Callable[[], Awaitable[Any]]) -> Any:
    """A server that lists its tools when something has come about, and from then on at once."""
    waited = False

    def layer(handler: Any) -> Any:
        async def handle(exchange: Any) -> Any:
            nonlocal waited
            if exchange.method == "tools/list" and not waited:
                waited = True
                await ready()
            return await handler(exchange)

        return handle

    return layer


async def test_fifty_servers_with_two_thousand_tools() -> None:
    """All are connected at the same time: each start waits until all have begun.

    Then each tool can be found and used.
    """
    met = asyncio.Barrier(50)

    servers: dict[str, Any] = {f"office{number}": office(number, 40) for number in range(50)}
    for server in servers.values():
        server.use(_first_when(met.wait))
    answers = [
        call("interlock__find_tools", words="case 17 of office 33", limit=2),
        call("interlock__use_tool", name="office33__case_17", arguments={"value": 4}),
        "done",
    ]
    async with scene(servers, *answers, policy=ALLOW) as one:
        assert len(one.host.toolbox.items) == 2_000
        session = one.host.session()
        assert (await session.say("look")).reason == "done"
        assert len(one.model.requests[0].tools) == 4
        assert "office33__case_17" in str(session.messages[2].content)
        assert "office 33 case 17: 4" in last(one)


async def test_one_slow_server_holds_nobody_up() -> None:
    """While it still starts the others are there, and a conversation with them goes on."""
    gate = asyncio.Event()

    slow = Server("slow", middleware=[_first_when(gate.wait)])
    slow.add_tool(lambda: "at last", name="work", description="Work.")
    async with scene(
        {"slow": slow, "adder": adder()},
        ADD,
        "done",
        call("slow__work"),
        "done",
        policy=ALLOW,
        opened=False,
    ) as one:
        opening = asyncio.ensure_future(one.host.open(None))
        await one.state("adder", "up")
        session = one.host.session()
        assert (await session.say("add")).reason == "done"
        assert "it is 3" in last(one)
        assert one.host.server("slow").state == "starting"
        assert not opening.done()
        gate.set()
        await opening
        assert (await session.say("work")).reason == "done"
        assert "at last" in last(one)


async def test_a_server_that_never_answers_is_opened_without(tmp_path: Path) -> None:
    """After `wait` seconds the host is there, with what has come up until then."""
    entry = misbehaving(tmp_path, "mute", start="mute")
    async with scene(
        {"mute": entry, "adder": adder()},
        ADD,
        "done",
        policy=ALLOW,
        opened=False,
        hub={"limits": QUICK},
    ) as one:
        await one.host.open(0.5)
        assert (one.host.server("mute").state, one.host.server("adder").state) == ("starting", "up")
        assert (await one.host.session().say("add")).reason == "done"
    assert not [pid for pid in pids(tmp_path, "mute") if alive(pid)]
