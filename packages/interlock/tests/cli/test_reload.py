"""`interlock run --reload` as a client meets it: one pipe, and behind it always the newest version
of the file.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, McpError, Stdio
from interlock.cli.reload import watch
from interlock.cli.reload.child import ReloadedChild
from interlock.server.request_log import is_request_line

HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"
ERAS = pytest.mark.parametrize("revision", [HANDSHAKE, STATELESS])

SERVER = """
import asyncio, os
from interlock import Context, Server
from parts import PART

server = Server("reloaded")

@server.tool
def version() -> str:
    return "{version}" + PART

@server.tool
def process() -> int:
    return os.getpid()

@server.tool
async def wait(ctx: Context) -> str:
    ctx.log.warning("waiting")
    await asyncio.Event().wait()
    return "never"

@server.tool
async def ask(ctx: Context) -> str:
    return "{version} " + ("yes" if await ctx.confirm("Go on?") else "no")

@server.tool
def die() -> None:
    os._exit(7)

@server.resource("state://now")
def state() -> str:
    return "{version}"
"""


class Reloading:
    """A folder with a server in it, and how it is run."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "server.py"
        (folder / "parts.py").write_text("PART = ''\n")
        self.write("one")
        self.errors: list[str] = []
        self.spoke = asyncio.Event()

    def write(self, version: str, *, more: str = "") -> None:
        """Save a version of the file in one step, as editors do."""
        fresh = self.file.with_suffix(".new")
        fresh.write_text(SERVER.replace("{version}", version) + more)
        fresh.replace(self.file)

    @asynccontextmanager
    async def client(
        self, revision: str = STATELESS, *options: str, **given: Any
    ) -> AsyncIterator[Client]:
        """A client at the other end of the pipe."""
        command = [sys.executable, "-m", "interlock", "run", str(self.file), "--reload", *options]
        async with (
            asyncio.timeout(60),
            Client(
                Stdio(command, on_stderr=self.errors.append), revision=revision, **given
            ) as client,
        ):
            yield client


@pytest.fixture
def reloading(tmp_path: Path) -> Reloading:
    """A server that changes."""
    return Reloading(tmp_path)


async def until(says: Callable[[], Any], wanted: Any, seconds: float = 20.0) -> None:
    """Ask again and again, at the pace of the answers, until the wanted one comes."""
    async with asyncio.timeout(seconds):
        while True:
            if await says() == wanted:
                return
            await asyncio.sleep(0.02)  # the machine has other things to do as well


async def version(client: Client) -> str:
    """What the server says it is; or why it cannot say."""
    try:
        return str((await client.call_tool("version")).value())
    except McpError as bad:
        return bad.message


@ERAS
async def test_a_save_is_served_on_the_same_pipe(reloading: Reloading, revision: str) -> None:
    """The new version answers, the client is told that the lists have changed, and what it watches
    too.
    """
    async with (
        reloading.client(revision) as client,
        client.watch(tools=True, resources=["state://now"]) as changes,
    ):
        assert await version(client) == "one"
        reloading.write("two")
        received = {
            (change.kind, change.uri) for change in [await anext(changes), await anext(changes)]
        }
        assert received == {("tools", None), ("resource", "state://now")}
        assert await version(client) == "two"
        assert (await client.read_resource("state://now")).contents[0].text == "two"
        (reloading.file.parent / "parts.py").write_text("PART = ' and a half'\n")
        await anext(changes)
        assert await version(client) == "two and a half"


async def test_a_skill_that_is_saved_is_served(reloading: Reloading) -> None:
    """The client reads the new text of a skill after its file was saved."""
    skill = reloading.file.parent / "skills" / "refunds" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    text = "---\nname: refunds\ndescription: Refunds.\n---\n{}\n"
    skill.write_text(text.format("old"))
    more = f"server.skills({str(skill.parent.parent)!r})"
    reloading.write("one", more=more)
    async with reloading.client(STATELESS) as client, client.watch(resources=True) as changes:
        old = await client.read_resource("skill://refunds/SKILL.md")
        assert old.contents[0].text == text.format("old")
        skill.write_text(text.format("new"))
        await anext(changes)
        new = await client.read_resource("skill://refunds/SKILL.md")
        assert new.contents[0].text == text.format("new")


@ERAS
async def test_the_page_of_an_app_is_watched(reloading: Reloading, revision: str) -> None:
    """A host that watches the page is told of a save, and reads what was saved."""
    page = reloading.file.with_name("board.html")
    page.write_text("<!doctype html><p>one")
    reloading.write("one", more="app = server.app('board.html', tool=version)\n")
    uri = "ui://reloaded/board"
    async with (
        reloading.client(revision) as client,
        client.watch(resources=[uri]) as changes,
    ):
        assert (await client.read_resource(uri)).contents[0].text == "<!doctype html><p>one"
        page.write_text("<!doctype html><p>two")
        assert (await anext(changes)).uri == uri
        assert (await client.read_resource(uri)).contents[0].text == "<!doctype html><p>two"


@ERAS
async def test_a_mistake_is_told_and_the_next_save_repairs_it(
    reloading: Reloading, revision: str
) -> None:
    """The pipe stays open; requests get the error, its traceback goes to stderr."""
    async with reloading.client(revision) as client:
        assert await version(client) == "one"
        reloading.write("two", more="def broken(:\n")
        words = (
            "The server cannot start: SyntaxError: invalid syntax (exit code 1). It is started "
            "again when its file is saved."
        )
        await until(lambda: version(client), words)
        assert any("def broken(:" in line for line in reloading.errors)
        reloading.write("three")
        await until(lambda: version(client), "three")


async def test_a_mistake_at_the_start(reloading: Reloading) -> None:
    """Even the opening gets the error; and a client that tries again finds the repaired server."""
    reloading.write("one", more="1 / 0\n")
    command = [sys.executable, "-m", "interlock", "run", str(reloading.file), "--reload"]
    process = await asyncio.create_subprocess_exec(*command, stdin=-1, stdout=-1, stderr=-1)
    assert process.stdin is not None and process.stdout is not None  # noqa: PT018 - for the type checker

    async def initialize(id: int) -> Any:
        params = {
            "protocolVersion": HANDSHAKE,
            "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"},
        }
        process.stdin.write(
            json.dumps(
                {"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}
            ).encode()
            + b"\n"
        )
        answer = json.loads(await process.stdout.readline())
        assert answer["id"] == id
        return (
            answer.get("result", {}).get("serverInfo", {}).get("name") or answer["error"]["message"]
        )

    try:
        async with asyncio.timeout(60):
            assert "ZeroDivisionError: division by zero" in await initialize(1)
            reloading.write("one")
            count = iter(range(2, 10_000))
            await until(lambda: initialize(next(count)), "reloaded")
    finally:
        process.stdin.close()
        await process.communicate()
    assert process.returncode == 0


@ERAS
async def test_a_call_in_flight_when_the_child_dies(reloading: Reloading, revision: str) -> None:
    """It is answered with the cause, whether the child ended by itself or was killed; the next call
    finds a new one.
    """
    async with reloading.client(revision) as client:
        with pytest.raises(McpError, match="The server exited during this call: exit code 7"):
            await client.call_tool("die")
        pid = (await client.call_tool("process")).value()
        logged = asyncio.Event()
        waiting = asyncio.create_task(_call_and_log(client, "wait", logged))
        await logged.wait()
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(McpError, match="signal 9"):
            await waiting
        assert (await client.call_tool("process")).value() != pid


async def _call_and_log(client: Client, name: str, logged: asyncio.Event) -> Any:
    """Call a tool; `logged` is set once it runs."""
    client._on_log = lambda params: logged.set()
    await client.set_log_level("info")
    return await client.call_tool(name)


@ERAS
async def test_a_reload_comes_between_calls(reloading: Reloading, revision: str) -> None:
    """A call that runs too long is given up with words after its grace; calls that came meanwhile
    go to the new version.
    """
    async with reloading.client(revision, "--grace", "0.3") as client:
        logged = asyncio.Event()
        waiting = asyncio.create_task(_call_and_log(client, "wait", logged))
        await logged.wait()
        reloading.write("two")
        with pytest.raises(
            McpError, match="restarted with a newer version of its file during this call"
        ):
            await waiting
        assert await version(client) == "two"


@ERAS
async def test_a_question_outlives_a_save(reloading: Reloading, revision: str) -> None:
    """The person takes his time, meanwhile the file is saved: the call ends as it began, or goes on
    in the new version.
    """
    asked = asyncio.Event()
    may_answer = asyncio.Event()

    async def answer(params: Any) -> dict[str, bool]:
        asked.set()
        await may_answer.wait()
        return {"confirm": True}

    async with reloading.client(revision, elicit=answer) as client:
        call = asyncio.create_task(client.call_tool("ask"))
        await asked.wait()
        reloading.write("two")
        if revision == STATELESS:
            await until(
                lambda: version(client), "two"
            )  # between the rounds of one call the server may change
        else:
            await until(lambda: _said(reloading, "server.py changed"), True)
        may_answer.set()
        expected = "two yes" if revision == STATELESS else "one yes"
        assert (await call).value() == expected
        await until(lambda: version(client), "two")


async def _said(reloading: Reloading, words: str) -> bool:
    return any(words in line for line in reloading.errors)


def test_what_was_asked_before_the_end_is_answered(reloading: Reloading) -> None:
    """A client that sends everything at once and closes the pipe gets its answers, though the child
    was still starting.
    """
    lines = "".join(
        json.dumps({"jsonrpc": "2.0", "id": id, "method": "ping"}) + "\n" for id in range(3)
    )
    command = [sys.executable, "-m", "interlock", "run", str(reloading.file), "--reload"]
    result = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0
    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {"jsonrpc": "2.0", "id": id, "result": {}} for id in range(3)
    ]
    assert all(map(is_request_line, result.stderr.splitlines()))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
async def test_no_child_is_left_behind(reloading: Reloading, number: int) -> None:
    """Whatever ends the parent ends the child."""
    command = [sys.executable, "-m", "interlock", "run", str(reloading.file), "--reload"]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=-1, stdout=-1, stderr=asyncio.subprocess.DEVNULL
    )
    assert process.stdin is not None and process.stdout is not None  # noqa: PT018 - for the type checker
    meta = {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"_meta": meta, "name": "process"},
    }
    process.stdin.write(json.dumps(call).encode() + b"\n")
    async with asyncio.timeout(30):
        child = int(json.loads(await process.stdout.readline())["result"]["content"][0]["text"])
        process.send_signal(number)
        await process.wait()

        async def gone() -> bool:
            try:
                os.kill(child, 0)
            except ProcessLookupError:
                return True
            return False

        await until(gone, True)


# -- seeing changes --------------------------------------------------------------------------------


@pytest.mark.parametrize("poll", [False, True], ids=["told", "looking"])
async def test_changes_are_seen(
    tmp_path: Path, poll: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New, changed, replaced and removed Python files, pages and files of skills; nothing else
    stirs.
    """
    monkeypatch.setattr(watch, "_PAUSE", 0.02)
    if poll:
        monkeypatch.setitem(sys.modules, "watchfiles", None)
    (tmp_path / "refunds" / "templates").mkdir(parents=True)
    (tmp_path / "refunds" / "SKILL.md").write_text("1")
    (tmp_path / "a.py").write_text("1")
    (tmp_path / "inner").mkdir()
    seen: asyncio.Queue[set[str]] = asyncio.Queue()

    async def see() -> None:
        async for paths in watch.changes([tmp_path]):
            seen.put_nowait({Path(path).name for path in paths})

    seeing = asyncio.create_task(see())
    await asyncio.sleep(0)  # it looks for the first time before it waits
    try:
        async with asyncio.timeout(30):
            (tmp_path / "__pycache__").mkdir()
            (tmp_path / "__pycache__" / "x.py").write_text("1")
            (tmp_path / "notes.txt").write_text("1")
            (tmp_path / ".hidden.py").write_text("1")
            (tmp_path / "a.py").write_text("22")
            assert await seen.get() == {"a.py"}
            (tmp_path / "inner" / "b.py").write_text("1")
            assert await _until_seen(seen, "b.py")
            (tmp_path / "fresh").write_text("333")
            (tmp_path / "fresh").replace(tmp_path / "a.py")
            assert await _until_seen(seen, "a.py")
            (tmp_path / "inner" / "b.py").unlink()
            assert await _until_seen(seen, "b.py")
            (tmp_path / "refunds" / "templates" / "letter.txt").write_text("1")
            assert await _until_seen(seen, "letter.txt")
            (tmp_path / "board.html").write_text("<!doctype html>")
            assert await _until_seen(seen, "board.html")
    finally:
        seeing.cancel()
        await asyncio.gather(seeing, return_exceptions=True)


async def _until_seen(seen: asyncio.Queue[set[str]], name: str) -> bool:
    """Whether the next change but for echoes of the one before is this one."""
    while True:
        names = await seen.get()
        if name in names:
            return True


@pytest.mark.parametrize(
    "path, wanted",
    [
        ("a.py", True),
        ("in/ner/a.py", True),
        ("ui/board.html", True),
        ("board.HTM", True),
        ("a.pyc", False),
        ("board.html~", False),
        ("dist/board.html", False),
        (".a.py", False),
        (".venv/a.py", False),
        ("__pycache__/a.py", False),
        ("node_modules/x/a.py", False),
        ("../elsewhere/a.py", False),
        ("skills/refunds/SKILL.md", True),
        ("skills/refunds/templates/x.txt", True),
        ("skills/refunds/.git/x.txt", False),
        ("skills/new/SKILL.md", True),
        ("skills/README.md", False),
    ],
)
def test_whose_changes_count(tmp_path: Path, path: str, wanted: bool) -> None:
    """Python files, pages of apps and skills that somebody writes, below the folder."""
    (tmp_path / "top" / "skills" / "refunds").mkdir(parents=True)
    (tmp_path / "top" / "skills" / "refunds" / "SKILL.md").touch()
    file = tmp_path / "top" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    assert (os.path.normpath(file) in watch.look([tmp_path / "top"])) is wanted


async def test_a_child_whose_output_nobody_reads_is_ended() -> None:
    """Its pipe is full then, and asyncio would wait for the end of that pipe."""
    flood = "import os\nwhile True: os.write(1, b'x\\n' * 32768)"
    child = await ReloadedChild.start([sys.executable, "-c", flood], {})
    assert await child.receive()
    assert await child.close(0.1) == "signal 15"
