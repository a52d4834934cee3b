"""`interlock host` and `interlock demo`: programs that serve a page, which these tests use as a
browser would.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.commands.hosting import CURIOUS, hosting, is_alive, noted, ran, seen, server_is, written
from tests.models.providers import Act, Answer, Site

ALLOW = '[[rules]]\ndecision = "allow"\nserver = "*"\n'


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """A provider that calls a tool once, and then says what it is."""
    async with Site(Answer((("everyday__add", {"a": 1, "b": 2}),)), "It is 3.") as site:
        yield site


@pytest.fixture
def curious(home: Path) -> Path:
    """A server that writes down which process it is."""
    (home / "curious.py").write_text(CURIOUS, encoding="utf-8")
    return home / "curious.py"


async def test_one_address_that_works_once(home: Path, curious: Path) -> None:
    """It lets in once, one browser; whoever has no cookie stays outside (`SEC-11`)."""
    servers = written(home / "servers.json", {"curious": curious})
    async with hosting("host", "-c", servers, "-m", "planner", "--port", "0") as page:
        assert (await page.client.get("/")).status_code == 401
        first = await page.client.get(page.address)
        assert first.status_code == 303
        place = first.headers["location"]
        assert "httponly" in first.headers["set-cookie"].lower()
        assert "samesite=strict" in first.headers["set-cookie"].lower()
        assert "used already" in (await page.client.get(page.address)).text
        assert (await page.client.get(place)).status_code == 200
        assert (await page.client.get("/")).status_code == 401
        page.client.cookies.clear()
        assert (await page.client.get(f"{place}api/events")).status_code == 401
        assert await page.ended(signal.SIGINT) == 0
        assert page.process.stdout is not None
        assert b"token" not in await page.process.stdout.read()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
async def test_it_ends_with_all_that_it_began(
    home: Path, everyday: Path, curious: Path, site: Site, number: signal.Signals
) -> None:
    """With a page that listens, a call that hangs and a turn under way: exit code 0, and no server
    is left (`STD-10`, `CAN-05`).
    """
    site.acts = [Act(Answer((("everyday__hang", {}),)))]
    (home / "policy.toml").write_text(ALLOW, encoding="utf-8")
    servers = written(
        home / "servers.json", {"everyday": everyday, "curious": curious}, TRACE=str(home / "trace")
    )
    words = ["-c", servers, "-m", f"openai:m@{site.openai}", "--policy", home / "policy.toml"]
    async with AsyncExitStack() as stack:
        page = await stack.enter_async_context(hosting("host", *words))
        await page.enter()
        events = await stack.enter_async_context(page.events())
        await _allow_all(page, events, {"everyday", "curious"})
        session = (await page.act("newSession"))["session"]
        await page.act("say", session=session, text="Hang.")
        said = await seen(events, noted("serverSaid", server="everyday", level="warning"))
        pids = [
            int(said["text"].rpartition(" ")[2]),
            int((home / "trace").read_text(encoding="utf-8")),
        ]
        assert all(is_alive(pid) for pid in pids)
        assert await page.ended(number) == 0
        assert not [pid for pid in pids if is_alive(pid)]
        assert page.process.stderr is not None
        assert await page.process.stderr.read() == b""


async def test_approvals_and_rules_last(home: Path, everyday: Path, site: Site) -> None:
    """What the person allowed, to be started and to be called, holds in the next host and in `ask`,
    by files of their own (`SEC-17`).
    """
    written(home / ".mcp.json", {"everyday": everyday})
    model = ["-m", f"openai:m@{site.openai}"]
    data = home / "data"
    async with hosting("host", *model, XDG_DATA_HOME=str(data)) as page:
        await page.enter()
        async with page.events() as events:
            await _allow_all(page, events, {"everyday"})
            session = (await page.act("newSession"))["session"]
            await page.act("say", session=session, text="1 + 2?")
            asked = await seen(events, noted("asked"))
            assert (asked["question"]["type"], asked["question"]["tool"]) == ("call", "add")
            await page.act(
                "answer",
                question=asked["question"]["id"],
                answer={"type": "decision", "allow": True, "remember": "always"},
            )
            assert (await seen(events, noted("turnEnded")))["reason"] == "done"
        assert await page.ended(signal.SIGTERM) == 0
    own = data / "interlock/host"
    assert json.loads((own / "rules.json").read_text(encoding="utf-8"))["rules"][0]["tool"] == "add"
    assert (
        "command"
        not in json.loads((home / "interlock.lock").read_text(encoding="utf-8"))["servers"][
            "everyday"
        ]
    )
    assert own.stat().st_mode & 0o077 == 0
    site.acts = [Act(Answer((("everyday__add", {"a": 1, "b": 2}),))), Act(Answer(("It is 3.",)))]
    ended = await ran("ask", "1 + 2?", *model, XDG_DATA_HOME=str(data))
    said = 'called: add of everyday {"a":1,"b":2}\n'
    assert (ended.code, ended.out, ended.err) == (0, "It is 3.\n", said)
    written(
        home / ".mcp.json", {"everyday": everyday}, NODE_OPTIONS="--require ./evil.js"
    )  # no longer what was approved
    ended = await ran("ask", "1 + 2?", *model, XDG_DATA_HOME=str(data))
    assert "everyday is not available" in ended.err


async def test_a_project_and_the_replay_of_its_conversation(
    home: Path, everyday: Path, site: Site
) -> None:
    """`--project` decides by the project's rules; `--replay` shows the exported conversation
    without any server, and writes to no log.
    """
    servers = written(home / "servers.json", {"everyday": everyday})
    project = home / "sums.toml"
    project.write_text(f'name = "Sums"\nservers = ["everyday"]\n\n{ALLOW}', encoding="utf-8")
    data = home / "data"
    words = ["-c", servers, "-m", f"openai:m@{site.openai}", "--project", project]
    async with hosting("host", *words, XDG_DATA_HOME=str(data)) as page:
        await page.enter()
        async with page.events() as events:
            await _allow_all(page, events, {"everyday"})
            session = (await page.act("newSession"))["session"]
            await page.act("say", session=session, text="1 + 2?")
            decided = await seen(events, noted("callDecided"))
            assert (decided["by"], decided["allow"]) == ("rule", True)
            await seen(events, noted("turnEnded"))
        exported = await page.client.get("/api/log.jsonl", params={"session": session})
        assert await page.ended(signal.SIGTERM) == 0
    (home / "sums.jsonl").write_bytes(exported.content)
    before = (data / "interlock/host/log.db").read_bytes()
    async with hosting("host", "--replay", home / "sums.jsonl", XDG_DATA_HOME=str(data)) as page:
        await page.enter()
        state = await page.until(lambda each: each.get("state"))
        assert "Nothing here is written to your log" in state["demo"]
        (listed,) = state["sessions"]
        assert (listed["id"], listed["past"], state["servers"]) == (session, True, [])
        opened = await page.act("openSession", session=session, turns=20)
        said = [one["event"]["type"] for one in opened["notes"]]
        assert {"personSaid", "callEnded", "turnEnded"} <= set(said)
        assert await page.ended(signal.SIGTERM) == 0
    assert (data / "interlock/host/log.db").read_bytes() == before


async def test_a_configuration_that_changes(home: Path, curious: Path, everyday: Path) -> None:
    """A server that is added appears and one that is removed goes; a file that is half written
    changes nothing (`HST-05`).
    """
    servers = written(home / "servers.json", {"curious": curious})
    async with hosting("host", "-c", servers, "-m", "planner", "--trust", "curious") as page:
        await page.enter()
        async with page.events() as events:
            await _allow_all(page, events, {"curious"})
            whole = servers.read_text(encoding="utf-8")
            for half in (whole[:-20], "", whole[:10]):
                servers.write_text(half, encoding="utf-8")
                notice = await seen(events, noted("notice", level="warning"))
                assert "the servers stay as they are" in notice["words"]
            written(servers, {"curious": curious, "everyday": everyday})
            await _allow_all(page, events, {"everyday"})
            assert await page.until(server_is("curious", "up"))
            written(servers, {"everyday": everyday})  # the one that --trust names has gone
            await seen(
                events,
                lambda each: (
                    each["kind"] == "state"
                    and [s["id"] for s in each["state"]["servers"]] == ["everyday"]
                ),
            )
            servers.unlink()
            assert (
                "the servers stay as they are"
                in (await seen(events, noted("notice", level="warning")))["words"]
            )
            assert await page.until(server_is("everyday", "up"))
        assert await page.ended(signal.SIGINT) == 0


async def test_what_was_asked_is_not_asked_again(home: Path, curious: Path, everyday: Path) -> None:
    """An `input` without an answer leaves its server out with words, and the others go on; defaults
    count without a terminal.
    """
    entry = {
        "type": "stdio",
        "command": sys.executable,
        "args": ["-P", "-m", "interlock", "run", str(curious)],
        "sandbox": False,
    }
    config = {
        "servers": {
            "default": {**entry, "env": {"A": "${input:a}"}},
            "open": {**entry, "env": {"A": "${input:b}"}},
        },
        "inputs": [
            {"id": "a", "type": "promptString", "default": "x"},
            {"id": "b", "type": "promptString", "description": "B"},
        ],
    }
    (home / "mcp.json").write_text(json.dumps(config), encoding="utf-8")
    async with hosting("host", "-m", "planner") as page:
        await page.enter()
        state = (await page.until(lambda each: each if each["kind"] == "state" else None))["state"]
        assert [server["id"] for server in state["servers"]] == ["default"]
        assert await page.ended(signal.SIGINT) == 0


async def _allow_all(page: Any, events: AsyncIterator[dict[str, Any]], servers: set[str]) -> None:
    """Allow these servers to be started, each when it asks, until all of them are up."""
    up: set[str] = set()
    answered: set[str] = set()
    async for each in events:
        if each["kind"] == "state":
            questions = [q for q in each["state"]["questions"] if q["type"] == "start"]
        else:
            event = each["noted"]["event"]
            questions = (
                [event["question"]]
                if event["type"] == "asked" and event["question"]["type"] == "start"
                else []
            )
        for question in questions:
            if question["server"] in servers and question["id"] not in answered:
                answered.add(question["id"])
                await page.act(
                    "answer", question=question["id"], answer={"type": "decision", "allow": True}
                )
        if each["kind"] == "state":
            up = {server["id"] for server in each["state"]["servers"] if server["state"] == "up"}
            if servers <= up:
                return
    raise AssertionError(f"the stream has ended, and these are up: {up}")


# -- what cannot be begun --------------------------------------------------------------------------


async def test_a_port_that_is_taken(home: Path, curious: Path) -> None:
    """Words, and exit code 1; the server that was begun is gone."""
    servers = written(home / "servers.json", {"curious": curious}, TRACE=str(home / "trace"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for words in (
            ["host", "-c", servers, "-m", "planner"],
            ["demo", "--folder", home / "demo"],
        ):
            ended = await ran(*words, "--port", port)
            assert (
                ended.code,
                f"cannot listen on 127.0.0.1:{port}" in ended.err,
                "token" in ended.out,
            ) == (1, True, False), ended.err
    assert not (home / "trace").exists() or not is_alive(
        int((home / "trace").read_text(encoding="utf-8"))
    )


async def test_a_log_that_cannot_be_kept(home: Path, curious: Path) -> None:
    """A host does not run without the log that was asked for: words before any address is shown,
    and exit code 1.
    """
    servers = written(home / "servers.json", {"curious": curious}, TRACE=str(home / "trace"))
    (home / "text.db").write_text("This is no database. " * 100, encoding="utf-8")
    ended = await ran("host", "-c", servers, "-m", "planner", "--log", home / "text.db")
    assert (ended.code, ended.out, "The log cannot be written" in ended.err) == (1, "", True), (
        ended.err
    )
    assert not (home / "trace").exists()


@pytest.mark.parametrize("package", ["starlette"])
@pytest.mark.parametrize(
    "words",
    [["host", "-c", "servers.json", "-m", "planner"], ["demo", "--folder", "demo"]],
    ids=lambda w: w[0],
)
async def test_without_the_extra(home: Path, curious: Path, package: str, words: list[str]) -> None:
    """Each says what to install, and leaves nothing behind."""
    written(home / "servers.json", {"curious": curious})
    ended = await _without(package, words)
    assert (ended[0], "pip install 'interlock[host]'" in ended[2], "Traceback" in ended[2]) == (
        1,
        True,
        False,
    ), ended[2]
    assert not (home / "demo").exists()


COMMANDS = ("host", "chat", "ask", "demo")


@pytest.mark.parametrize("package", ["starlette", "prompt_toolkit", "ruamel"])
async def test_what_needs_no_extra(home: Path, curious: Path, package: str) -> None:
    """`ask`, and the help of all of them, do without; a file in YAML says what it needs."""
    written(home / "servers.json", {"curious": curious})
    code, out, err = await _without(
        package, ["ask", "hello", "-c", "servers.json", "-m", "planner"]
    )
    assert (code, "I am not a language model" in out, err) == (0, True, "")
    assert (await _without(package, *([one, "--help"] for one in COMMANDS)))[0] == 0
    if package == "ruamel":
        (home / "goose.yaml").write_text("extensions: {}\n", encoding="utf-8")
        code, out, err = await _without(
            package, ["ask", "hello", "-c", "goose.yaml", "-m", "planner"]
        )
        assert (code, "interlock[install]" in err) == (2, True), err


async def _without(package: str, *lines: list[str]) -> tuple[int, str, str]:
    """The command in a Python that lacks a package: one line after the other, up to one that
    fails.
    """
    program = (
        f"import sys; sys.modules[{package!r}] = None\nfrom interlock.cli import main\n"
        f"for words in {list(lines)!r}:\n"
        "    try:\n        main(words)\n"
        "    except SystemExit as ended:\n"
        "        if ended.code:\n            raise\n"
    )
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdin=pipe, stdout=pipe, stderr=pipe
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


# -- the demo --------------------------------------------------------------------------------------


async def test_the_demo(home: Path) -> None:
    """Four servers without a question, a model that says that it is none, and everything kept in
    one folder of the person's data.
    """
    async with hosting("demo", XDG_DATA_HOME=str(home / "data")) as page:
        await page.enter()
        four = {"travel", "weather", "calendar", "mail"}
        state = await page.until(
            lambda each: (
                each["state"]
                if each["kind"] == "state"
                and {s["id"] for s in each["state"]["servers"] if s["state"] == "up"} == four
                else None
            )
        )
        assert "A demonstration" in state["demo"]
        assert [model["name"] for model in state["models"]] == ["planner"]
        assert "not a language model" in state["models"][0]["remark"]
        assert state["questions"] == []
        session = (await page.act("newSession"))["session"]
        await page.act("say", session=session, text="hello")
        assert await page.until(_ended_turn)
        assert await page.ended(signal.SIGINT) == 0
    place = home / "data/interlock/demo"
    assert {"travel.db", "log.db", "interlock.lock"} <= {path.name for path in place.iterdir()}
    assert not [path for path in home.rglob("*") if path.is_file() and place not in path.parents]


def _ended_turn(each: dict[str, Any]) -> Any:
    sessions = each["state"]["sessions"] if each["kind"] == "state" else []
    return next(
        (session for session in sessions if session["title"] == "hello" and not session["running"]),
        None,
    )


async def test_the_demo_begins_anew(home: Path) -> None:
    """--fresh removes what the demo made in a folder of its own, and nothing in a folder that was
    somebody's before.
    """
    place = home / "holiday"
    async with hosting("demo", "--folder", place) as page:
        await page.enter()
        await page.until(server_is("travel", "up"))
        assert await page.ended(signal.SIGINT) == 0
    made = {path.name for path in place.iterdir()}
    (place / "my notes.txt").write_text("mine", encoding="utf-8")
    (place / "calendar").mkdir(exist_ok=True)
    (place / "calendar/mine.ics").write_text("BEGIN:VCALENDAR\nEND:VCALENDAR\n", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as taken:  # so that nothing is made anew
        ended = await ran(
            "demo", "--folder", place, "--fresh", "--port", str(taken.getsockname()[1])
        )
    assert ended.code == 1
    left = {path.name for path in place.iterdir()}
    assert (
        {"my notes.txt", ".interlock-demo"}
        <= left
        <= {"my notes.txt", ".interlock-demo", "log.db", "log.db-wal", "log.db-shm", "calendar"}
    )
    assert not (place / "calendar/mine.ics").exists()
    assert {"travel.db", "interlock.lock"} <= made


def test_the_demo_leaves_what_is_not_its_own(home: Path, interlock: Command) -> None:
    """A folder with somebody's calendar and mail is not for --fresh."""
    (home / "calendar").mkdir()
    (home / "calendar/mine.ics").write_text("mine", encoding="utf-8")
    ended = interlock("demo", "--folder", home, "--fresh")
    assert (ended.exit_code, "was not made by the demo" in ended.stderr) == (2, True)
    assert (home / "calendar/mine.ics").read_text(encoding="utf-8") == "mine"
    file = home / "calendar/mine.ics"
    assert interlock("demo", "--folder", file).exit_code == 2
    below = interlock("demo", "--folder", file / "demo")
    assert (below.exit_code, "cannot be used" in below.stderr) == (1, True)
    alone = interlock("demo", "--terminal", "--folder", home / "new")
    assert (alone.exit_code, "needs a terminal" in alone.stderr, (home / "new").exists()) == (
        2,
        True,
        False,
    )
