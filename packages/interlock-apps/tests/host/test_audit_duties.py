"""Duties of a host that have no room of their own: what servers say is kept apart, bounded, and
shown to the person.
"""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import pytest

from interlock import Client, Context, Server, ServerInfo
from interlock.configs import Entry
from interlock.models.scripted import call
from interlock.redaction import Redactor
from interlock.types import CallToolResult, Icon, TextContent
from interlock_apps.fleet.events import QuestionAsked, ServerLogLine
from interlock_apps.fleet.log import MemoryLog
from interlock_apps.fleet.policy import Policy, Rule
from interlock_apps.fleet.questions import Decision
from interlock_apps.host.app import Host
from interlock_apps.host.loop.budget import Budget
from tests.host.scene import ALLOW, YES, Sitting, given, last, scene

SOURCE = Path(__file__).parents[2] / "src" / "interlock_apps"
SCRIPTS = [*SOURCE.glob("web/kit/*.js"), *SOURCE.glob("host/pages/static/*.js")]


async def test_a_prompt_that_nobody_could_read_is_given_in_pages() -> None:
    """A prompt is the person's word as far as the person can have seen it; beyond that it is data
    of a server (`PRM-10`).
    """
    server = Server("s")

    @server.prompt
    async def short() -> str:
        """Be short."""
        return "be brief"

    @server.prompt
    async def long() -> str:
        """Be long."""
        return "x" * 10_000

    async with scene({"s": server}, "one", "two", budget=Budget(page=1_000)) as s:
        session = s.host.session()
        await session.prompt("s", "short", {})
        assert last(s) == "be brief"
        await session.prompt("s", "long", {})
        assert "Page 1 of 10" in last(s)
        assert len(last(s)) < 1_500


async def test_what_a_server_says_is_shown_and_not_given_to_a_model() -> None:
    """Log messages go to the person, with the server's name and their level (`LOG-11`)."""
    server = Server("s")

    @server.tool
    async def work(context: Context) -> str:
        """Work."""
        context.log.warning("the disk is nearly full")
        return "done"

    async with scene({"s": server}, call("s__work"), "ended", policy=ALLOW) as s:
        await s.host.session().say("go")
        said = await s.until(lambda: s.of(ServerLogLine))
        assert (said[0].server, said[0].level) == ("s", "warning")
        assert "nearly full" in said[0].text
        assert [line.text for line in s.host.server("s").log] == [said[0].text]
        assert all("nearly full" not in given(request) for request in s.model.requests)


async def test_a_sample_leaves_nothing_behind() -> None:
    """Each sampling request stands alone, and no secret of the host's is in what is noted of it
    (`SAM-20`, `SAM-22`).
    """
    server = Server("s")

    @server.tool
    async def ask(context: Context, what: str) -> str:
        """Ask a model."""
        said = await context.sample(what, max_tokens=50)
        return said.text

    log = MemoryLog(redact=(secrets := Redactor()))
    secrets.add("hunter2-hunter2")
    answers = [
        call("s__ask", what="first hunter2-hunter2"),
        "one",
        call("s__ask", what="second"),
        "two",
        "ended",
    ]
    async with scene(
        {"s": server}, *answers, person=Sitting(sample=YES, sampled=YES), policy=ALLOW, log=log
    ) as s:
        session = s.host.session()
        await session.say("go")
        samples = [
            request
            for request in s.model.requests
            if len(request.messages) == 1 and not request.tools
        ]
        assert [given(request) for request in samples] == ["\nfirst hunter2-hunter2", "\nsecond"]
        exported: list[bytes] = []
        await log.export(exported.append)
    assert b"hunter2" not in b"".join(exported)
    assert s.of(QuestionAsked)


async def test_folders_are_the_persons_to_grant(tmp_path: Path) -> None:
    """What is no folder is not granted, one that has gone is told to nobody, and servers see only
    their own (`ROO-07`).
    """
    (tmp_path / "file").write_text("x")
    (mine := tmp_path / "mine").mkdir()
    async with scene({"a": Server("a"), "b": Server("b")}) as s:
        host: Host = s.host
        for wrong in (tmp_path / "file", tmp_path / "nothing"):
            with pytest.raises(ValueError, match="is not a folder"):
                host.grant(wrong, "a")
        host.grant(mine, "a")
        assert [root.uri for root in host.roots.of("a")] == [mine.as_uri()]
        assert host.roots.of("b") == []
        mine.rmdir()
        assert host.roots.of("a") == []


async def test_what_an_extension_says_is_data() -> None:
    """Whatever stands in `_meta` and in declarations of extensions, tools work as ever
    (`EXT-07`).
    """
    odd = {
        "ui": {"resourceUri": ["ui://x"], "visibility": "everybody", "csp": 5},
        "io.modelcontextprotocol/ui": None,
        "x/y": "\x1b[2J",
    }
    server = Server("s")

    @server.tool(
        meta=odd, icons=[Icon(src="http://127.0.0.1:1/x.png"), Icon(src="javascript:alert(1)")]
    )
    async def work() -> CallToolResult:
        """Work."""
        return CallToolResult(content=[TextContent(text="here", meta=odd)], meta=odd)

    async with scene({"s": server}, call("s__work"), "ended", policy=ALLOW) as s:
        assert (await s.host.session().say("go")).reason == "done"
        assert "here" in last(s)
        assert all(
            "\x1b" not in given(request) and "127.0.0.1:1" not in given(request)
            for request in s.model.requests
        )


async def test_no_icon_is_fetched() -> None:
    """Neither a client nor a host connects to where an icon of a server lies, whatever its URI
    (`ICO-02`, `ICO-03`).
    """
    fetched: list[int] = []

    async def noted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        fetched.append(1)
        writer.close()

    listening = await asyncio.start_server(noted, "127.0.0.1", 0)
    place = f"127.0.0.1:{listening.sockets[0].getsockname()[1]}/x.svg"
    icons = [Icon(src=f"{scheme}://{place}") for scheme in ("http", "https", "ws", "ftp")]
    icons += [Icon(src="javascript:alert(1)"), Icon(src="file:///etc/passwd")]
    server = Server("s", info=ServerInfo(icons=icons))
    server.tool(name="work", icons=icons)(lambda: "done")
    server.prompt(name="ask", icons=icons)(lambda: "ask")
    server.resource("a://b", icons=icons)(lambda: "b")
    async with listening:
        async with Client(server) as client:
            listed = [
                *await client.list_tools(),
                *await client.list_prompts(),
                *await client.list_resources(),
            ]
            assert [one.icons for one in listed] == [icons] * 3
            await client.call_tool("work")
        async with scene({"s": server}, call("s__work"), "ended", policy=ALLOW) as s:
            assert (await s.host.session().say("go")).reason == "done"
            assert all(place not in given(request) for request in s.model.requests)
    assert fetched == []


async def test_instructions_reach_the_model_as_words_of_their_server() -> None:
    """Between the markers of the conversation, under the name of the server (`LIF-07`)."""
    server = Server("s", instructions="Add before you multiply.")
    server.tool(name="work")(lambda: "done")
    async with scene({"s": server}, "ended", policy=ALLOW) as s:
        await s.host.session().say("go")
        system = s.model.requests[-1].system_prompt or ""
    assert "Add before you multiply." in system
    assert "instructions of s" in system


async def test_a_server_outlives_the_conversations_that_use_it(tmp_path: Path) -> None:
    """Two conversations share one process, which is still the same after both have ended (`RPC-27`,
    `RPC-26`).
    """
    program = tmp_path / "counting.py"
    program.write_text(
        "import os\n"
        "from interlock import Server\n"
        "server = Server('counting')\n"
        "server.tool(name='who')(lambda: f'pid {os.getpid()}')\n"
        "server.run()\n"
    )
    entry = Entry(id="s", command=(sys.executable, str(program)), trusted=True)
    answers = [step for _ in range(3) for step in (call("s__who"), "ended")]
    pids = set()
    async with scene({"s": entry}, *answers, policy=ALLOW) as s:
        for _ in range(3):
            session = s.host.session()
            assert (await session.say("go")).reason == "done"
            pids.update(re.findall(r"pid (\d+)", last(s)))
            await session.aclose()
    assert len(pids) == 1


def test_icons_of_servers_are_not_drawn() -> None:
    """No icon of a server is fetched or drawn, so that none can tell on anybody or run anything
    (`ICO-01`, `ICO-02`, `ICO-03`, `ICO-04`).
    """
    for module in SCRIPTS:
        assert not re.search(r"\.icons\b", module.read_text(encoding="utf-8")), module


async def test_a_held_result_that_is_refused_reaches_no_model() -> None:
    """Also where a server has put the same into its structured content (`TOL-25`)."""
    server = Server("s")

    @server.tool
    async def tell() -> CallToolResult:
        """Tell."""
        return CallToolResult(
            content=[TextContent(text="the-secret")], structured_content={"it": "the-secret"}
        )

    policy = Policy(default="allow", review=(Rule(decision="ask"),))
    person = Sitting(result=Decision(allow=False, reason="not this"))
    async with scene({"s": server}, call("s__tell"), "ended", policy=policy, person=person) as s:
        await s.host.session().say("go")
        assert person.of("result")
        assert all("the-secret" not in given(request) for request in s.model.requests)
        assert "not this" in last(s)
