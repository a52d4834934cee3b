"""The host as a whole: configured anew while it runs, listened to, and ended at any moment without
leaving anything.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock import Context, McpError, Server, Unreachable
from interlock.configs import Config, Entry
from interlock.models.scripted import Scripted, call
from interlock_apps.fleet.events import (
    CallEnded,
    LogEntry,
    Notice,
    QuestionAsked,
    ResourceRead,
    RootsChanged,
    ServerLogLine,
    ServerState,
    SessionBegan,
    TurnEnded,
)
from interlock_apps.fleet.hub import HubOptions
from interlock_apps.fleet.log import BodyLimits, SqliteLog
from interlock_apps.fleet.pins import Pins
from interlock_apps.fleet.policy import Policy, Rule
from interlock_apps.fleet.questions import Answer
from interlock_apps.host.app import Host
from interlock_apps.host.options import HostOptions
from tests.fleet.hub.keeping import QUICK, alive, misbehaving, pids
from tests.fleet.hub.test_lists import Shop
from tests.host.scene import ALLOW, NO, YES, Scene, Sitting, adder, last, scene, turns

ADD = call("adder__add", a=1, b=2)
linux = pytest.mark.skipif(
    sys.platform != "linux", reason="watches processes through /proc, which only Linux has"
)


def entry(id: str = "adder", **more: Any) -> Entry:
    return Entry(id=id, **{"command": ("in", "memory"), **more})


def config(*entries: Entry) -> Config:
    return Config(entries=entries)


# -- starting a server -----------------------------------------------------------------------------


async def test_the_person_sees_the_whole_command_before_it_is_started(tmp_path: Path) -> None:
    """`SEC-17`: and is asked again when it, its trust or its folders are others; not for what was
    approved.
    """
    pins = Pins(tmp_path / "interlock.lock")
    asked: list[Any] = []
    for more, again in [
        ({}, True),
        ({}, False),
        ({"trusted": True}, True),
        ({"roots": (str(tmp_path),)}, True),
        ({"command": ("in", "x")}, True),
    ]:
        sitting = Sitting(start=YES)
        async with scene(
            {"adder": entry(**more)},
            "x",
            person=sitting,
            pins=pins,
            ask_to_start=True,
            hub={"target": lambda _: adder()},
        ) as one:
            assert one.host.server("adder").state == "up"
        assert len(sitting.asked) == again, more
        asked += sitting.asked
    assert [question.command for question in asked] == ["in memory"] * 3 + ["in x"]
    assert [question.trusted for question in asked] == [False, True, False, False]
    assert asked[2].roots == (str(tmp_path),)


@pytest.mark.parametrize("answer", [NO, None, RuntimeError("no screen")])
async def test_what_was_not_allowed_is_not_started(answer: Any, tmp_path: Path) -> None:
    """A no is for this time: the next host asks again."""
    pins = Pins(tmp_path / "interlock.lock")
    for _ in range(2):
        sitting = Sitting(start=answer)
        async with scene(
            {"x": misbehaving(tmp_path)}, "x", person=sitting, pins=pins, ask_to_start=True
        ) as one:
            assert one.host.server("x").state == "refused"
            assert not one.host.toolbox.items
            assert len(sitting.asked) == 1
    assert not pids(tmp_path)


@linux
async def test_a_server_of_a_configuration_is_heard_and_ends_with_its_last_words(
    tmp_path: Path,
) -> None:
    """Its stderr is told as it comes, and why it is down says the last of it (`STD-04`)."""
    server = misbehaving(tmp_path, "x")
    host = Host(
        [server], models=[], options=HostOptions(ask_to_start=False, hub=HubOptions(limits=QUICK))
    )
    received: list[Any] = []
    down = asyncio.Event()

    def receive(noted: LogEntry) -> None:
        received.append(noted.event)
        if isinstance(noted.event, ServerState) and noted.event.state == "down":
            down.set()

    host.listen(receive)
    async with host:
        with pytest.raises(Unreachable):
            await host.hub.servers["x"].call("die")
        async with asyncio.timeout(30):
            await down.wait()
        assert "before the end" in host.hub.servers["x"].words
    assert "before the end" in [each.text for each in received if isinstance(each, ServerLogLine)]


async def test_a_server_on_the_web_gets_the_authorization_that_the_host_was_given() -> None:
    """What authorizes its requests is chosen by its entry."""
    asked: list[str] = []

    def authorizer(entry: Entry) -> None:
        asked.append(entry.id)

    web = Entry(id="web", url="http://127.0.0.1:9/mcp")
    async with Host(
        [web], models=[], options=HostOptions(ask_to_start=False, hub=HubOptions(auth=authorizer))
    ):
        assert asked == ["web"]


async def test_servers_of_this_process_need_no_leave() -> None:
    sitting = Sitting(call=YES)
    host = Host({"adder": adder()}, models=[Scripted(ADD, "done")], person=sitting)
    async with host:
        assert (await host.session().say("add")).reason == "done"
        assert [type(question).__name__ for question in sitting.asked] == ["CallQuestion"]


# -- another configuration -------------------------------------------------------------------------


async def test_another_configuration_while_a_call_runs() -> None:
    """The call goes on where its server is as it was; others come and go meanwhile."""
    server = Server("slow")
    began = asyncio.Event()
    gate = asyncio.Event()

    @server.tool
    async def wait() -> str:
        """Wait."""
        began.set()
        await gate.wait()
        return "waited"

    servers = {"slow": server, "old": adder(), "new": adder()}
    entries = {id: entry(id) for id in servers}
    async with scene(
        {id: entries[id] for id in ("slow", "old")},
        call("slow__wait"),
        "done",
        policy=ALLOW,
        hub={"target": lambda e: servers[e.id]},
    ) as one:
        turn = asyncio.ensure_future(one.host.session().say("wait"))
        await began.wait()
        changes = await one.host.reload(config(entries["new"], entries["slow"]))
        assert ([e.id for e in changes.added], [e.id for e in changes.removed]) == (
            ["new"],
            ["old"],
        )
        await one.state("new", "up")
        await one.until(lambda: [item.server for item in one.host.toolbox.items] == ["new", "slow"])
        gate.set()
        assert (await turn).reason == "done"
        assert "waited" in last(one)


async def test_a_server_that_is_taken_away_in_mid_call() -> None:
    """The call ends with words, and the conversation goes on."""
    server = Server("slow")
    began = asyncio.Event()

    @server.tool
    async def wait() -> str:
        """Wait."""
        began.set()
        await asyncio.Event().wait()
        return ""

    async with scene(
        {"slow": server}, call("slow__wait"), call("slow__wait"), "done", policy=ALLOW
    ) as one:
        turn = asyncio.ensure_future(one.host.session().say("wait"))
        await began.wait()
        await one.host.reload(config())
        assert (await turn).reason == "done"
        assert [bool(event.error) for event in one.of(CallEnded)] == [True, True]
        with pytest.raises(Unreachable, match="There is no server slow"):
            one.host.server("slow")


async def test_folders_of_another_configuration(tmp_path: Path) -> None:
    """Those that it names are granted, those that only the old one named are not any more, and
    those that the person granted stay.
    """
    old, new, own = (tmp_path / name for name in ("old", "new", "own"))
    for folder in (old, new, own):
        folder.mkdir()
    server = adder()
    async with scene(
        {"adder": entry(roots=(str(old),))}, "x", hub={"target": lambda _: server}
    ) as one:
        one.host.grant(own, "adder")
        await one.host.reload(config(entry(roots=(str(new),))))
        assert one.host.roots.granted == {"adder": (str(own), str(new))}
        assert [root.name for root in one.host.roots.of("adder")] == ["own", "new"]
        assert one.of(RootsChanged)[-1].folders == one.host.roots.granted
        one.host.revoke(new, "adder")
        await one.host.reload(config(entry(roots=(str(new),), timeout=3.0)))
        assert one.host.roots.granted == {
            "adder": (str(own),)
        }  # what the person took back stays so
        await one.host.reload(config())
        assert one.host.roots.granted == {}


@pytest.mark.parametrize("answer", [YES, NO])
async def test_a_configuration_that_wants_more_than_was_approved(
    answer: Answer, tmp_path: Path
) -> None:
    """`SEC-17`: trust and folders that a file gives a server while the host runs hold when the
    person has said so, and not before.
    """
    server = adder()
    gate = asyncio.Event()

    async def decide(question: Any) -> Answer:
        if question.trusted:
            await gate.wait()
            return answer
        return YES

    more = entry(trusted=True, roots=(str(tmp_path),))
    sitting = Sitting(start=decide)
    async with scene(
        {"adder": entry()}, "x", person=sitting, ask_to_start=True, hub={"target": lambda _: server}
    ) as one:
        reloading = asyncio.ensure_future(one.host.reload(config(more, entry("other"))))
        await one.until(lambda: any(q.trusted for q in sitting.asked))
        question = next(q for q in sitting.asked if q.trusted)
        assert (question.server, question.roots) == ("adder", (str(tmp_path),))
        assert not one.host.server("adder").entry.trusted
        assert not one.host.roots.of("adder")
        assert "other" in one.host.hub.servers
        gate.set()
        await reloading
        assert one.host.server("adder").entry.trusted == (answer is YES)
        assert bool(one.host.roots.of("adder")) == (answer is YES)
        assert one.host.server("adder").state == "up"


# -- roots -----------------------------------------------------------------------------------------


async def test_servers_hear_that_their_folders_are_others(tmp_path: Path) -> None:
    """`ROO-02`: of the handshake era, which has a notification for it.

    Only those that it is about.
    """
    shops = {"one": Shop("2025-11-25"), "two": Shop("2025-11-25"), "three": Shop()}
    async with scene({}, "x", hub={"target": lambda each: shops[each.id]()}) as one:
        await one.host.reload(config(*(entry(id) for id in shops)))
        for id in shops:
            await one.state(id, "up")

        def received() -> list[int]:
            return [
                len(shop.peer.all("notifications/roots/list_changed")) for shop in shops.values()
            ]

        one.host.grant(tmp_path, "one")
        await turns()
        assert received() == [1, 0, 0]
        one.host.grant(tmp_path)
        await turns()
        assert received() == [2, 1, 0]
        one.host.revoke(tmp_path)
        await turns()
        assert received() == [3, 2, 0]
        changed = [event.folders for event in one.of(RootsChanged)]
        assert changed == [
            {"one": (str(tmp_path),)},
            {"one": (str(tmp_path),), "": (str(tmp_path),)},
            {"one": (str(tmp_path),)},
        ]
    for shop in shops.values():
        await shop.aclose()


# -- the log ---------------------------------------------------------------------------------------


async def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    """The host goes on, and says so: once while it lasts, and at the end what is lost."""
    log = SqliteLog(tmp_path / "log.db", again=3600, bodies=BodyLimits(inline=1_000_000))
    async with scene({"adder": adder()}, ADD, "done", ADD, "done", policy=ALLOW, log=log) as one:
        await log._ask(lambda db: db.execute("PRAGMA max_page_count = 1").fetchall())  # a full disk
        session = one.host.session()
        assert (await session.say("x" * 100_000)).reason == "done"
        await one.until(one.notices)
        assert (await session.say("y" * 100_000)).reason == "done"
        assert len(one.notices()) == 1
    assert "are lost" in one.notices()[-1]


async def test_a_listener_that_fails_takes_nothing_with_it() -> None:
    """Others hear everything, the turn is done, and the log has it."""
    async with scene({"adder": adder()}, ADD, "done", policy=ALLOW) as one:

        def fail(noted: LogEntry) -> None:
            raise RuntimeError("no screen")

        one.host.events._listeners.insert(0, fail)
        session = one.host.session()
        assert (await session.say("add")).reason == "done"
        assert one.of(SessionBegan)
        assert one.of(TurnEnded)
        kept = [noted.event for noted in await one.host.log.read(session.id)]
        assert kept == [event for event in one.events if event.session == session.id and event.kept]


async def test_who_listens_no_more_hears_no_more() -> None:
    async with scene({}, "x") as one:
        received: list[LogEntry] = []
        stop = one.host.listen(received.append)
        one.host.publish(Notice(level="info", words="one"))
        stop()
        stop()
        one.host.publish(Notice(level="info", words="two"))
        assert [noted.event.words for noted in received if isinstance(noted.event, Notice)] == [
            "one"
        ]


# -- models and sessions ---------------------------------------------------------------------------


async def test_models_by_name() -> None:
    with pytest.raises(ValueError, match="a unique name"):
        Host([], models=[Scripted(), Scripted()])
    async with scene({}, "x", others=[Scripted("y", name="second")]) as one:
        assert one.host.session().model.name == "scripted"
        assert one.host.session(model="second").model.name == "second"
        with pytest.raises(ValueError, match="There is no model third. Models: scripted, second."):
            one.host.session(model="third")
        one.host.models.clear()
        with pytest.raises(ValueError, match="No model is configured"):
            one.host.session()


async def test_what_the_person_reads_is_told_too() -> None:
    server = adder()

    @server.resource("a://b")
    def text() -> str:
        """A text."""
        return "text"

    async with scene({"adder": server}, "x") as one:
        assert (await one.host.read("adder", "a://b")).contents[0].text == "text"
        with pytest.raises(McpError):
            await one.host.read("adder", "a://c\u202e")
        good, bad = one.of(ResourceRead)
        assert (good.by, good.size, good.error) == ("person", 4, "")
        assert bad.error
        assert "\u202e" not in bad.error


# -- the end ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["model", "tool", "question", "review", "sample"])
async def test_ended_at_any_moment(moment: str, tmp_path: Path) -> None:
    """The turn ends and is in the log, nothing of it goes on, and who waited for it has its end."""
    never = asyncio.Event()
    reached = asyncio.Event()
    server = Server("slow")

    @server.tool
    async def wait() -> str:
        """Wait."""
        reached.set()
        if moment == "tool":
            await never.wait()
        return "x"

    async def hang(_: Any) -> Any:
        reached.set()
        await never.wait()

    answers: list[Any] = [hang if moment == "model" else call("slow__wait"), "done"]
    sitting = Sitting(call=hang, result=hang)
    policy = Policy(
        default="ask" if moment == "question" else "allow",
        review=[Rule(decision="ask")] if moment == "review" else [],
    )
    log = SqliteLog(tmp_path / "log.db")
    async with scene({"slow": server}, *answers, person=sitting, policy=policy, log=log) as one:
        session = one.host.session()
        turn = asyncio.ensure_future(session.say("go"))
        await (one.until(lambda: one.of(TurnEnded)) if moment == "sample" else reached.wait())
        if moment == "review":
            await sitting.until("result")
        await one.host.aclose()
        ended = await turn
        assert ended.reason == ("done" if moment == "sample" else "cancelled")
        assert not one.host.questions
    async with scene({}, "x", log=SqliteLog(tmp_path / "log.db")) as one:
        noted = await one.host.log.read(session.id, limit=1000)
        assert noted[-1].event == ended


class Breaking(Scripted):
    """A model that cannot be closed."""

    async def aclose(self) -> None:
        raise RuntimeError("cannot close")


@linux
@pytest.mark.parametrize("how", ["breaking", "cancelled", "opening"])
async def test_no_process_is_left(how: str, tmp_path: Path) -> None:
    """Whatever fails on the way, and wherever the end is cancelled."""
    entries = [
        misbehaving(tmp_path, "a"),
        misbehaving(tmp_path, "b", start="mute" if how == "opening" else "well"),
    ]
    log = SqliteLog(tmp_path / "log.db")
    given = HostOptions(ask_to_start=False, hub=HubOptions(limits=QUICK))
    host = Host(entries, models=[Breaking("x")], log=log, options=given)
    opening = asyncio.ensure_future(host.open(None))
    received = Scene(host, None, None)
    await received.state("a", "up")
    if how == "opening":
        opening.cancel()
        with pytest.raises((asyncio.CancelledError, RuntimeError)):
            await opening
    else:
        await opening
        closing = asyncio.ensure_future(host.aclose())
        if how == "cancelled":
            await turns(1)
            closing.cancel()
        with pytest.raises((asyncio.CancelledError, RuntimeError)):
            await closing
    started = pids(tmp_path, "a") + pids(tmp_path, "b")
    assert started
    assert not [pid for pid in started if alive(pid)]
    assert not [thread for thread in threading.enumerate() if thread.name == "interlock-store"]


async def test_who_ends_a_conversation_ends_its_turn() -> None:
    async with scene({}, lambda request: asyncio.Event().wait()) as one:
        session = one.host.session()
        turn = asyncio.ensure_future(session.say("go"))
        await turns()
        one.host.end(session.id)
        one.host.end(session.id)
        assert (await turn).reason == "cancelled"
        assert not one.host.sessions


async def test_a_question_of_a_server_that_ends_is_withdrawn() -> None:
    """Nobody is left with a form that leads nowhere."""
    server = Server("asker")
    never = asyncio.Event()

    @server.tool
    async def form(ctx: Context) -> str:
        """Ask."""
        return str(
            await ctx.elicit("?", {"type": "object", "properties": {"a": {"type": "string"}}})
        )

    async def hang(_: Any) -> Any:
        await never.wait()

    sitting = Sitting(form=hang)
    async with scene(
        {"asker": server}, call("asker__form"), "done", person=sitting, policy=ALLOW
    ) as one:
        turn = asyncio.ensure_future(one.host.session().say("ask"))
        await sitting.until("form")
        await one.host.hub.stop("asker")
        assert (await turn).reason == "done"
        assert not one.host.questions
        assert one.of(QuestionAsked)


def test_a_configuration_may_be_written_in_place(tmp_path: Path) -> None:
    """A path, an object with `mcpServers`, what a Client takes, or entries: all come to the
    same.
    """
    path = tmp_path / ".mcp.json"
    written = {"mcpServers": {"a": {"command": "python", "args": ["a.py"]}}}
    path.write_bytes(msgspec.json.encode(written))
    for given in (path, str(path), written, written["mcpServers"]):
        host = Host(given, models=[])
        assert [(e.id, e.command) for e in host.config.entries] == [("a", ("python", "a.py"))]
    mixed = Host({"b": adder(), "a": {"command": "python"}}, models=[])
    assert [e.id for e in mixed.config.entries] == ["b", "a"]
