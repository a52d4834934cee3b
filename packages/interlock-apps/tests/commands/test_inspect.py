"""`interlock inspect`: a program that serves a page about the targets of its command line."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock import Server
from interlock.sandbox import unavailable_reason
from interlock.tape import Recorder, TapeFile
from tests.cli.conftest import Command
from tests.commands.hosting import hosting, is_alive, written


def connected(name: str) -> Any:
    """Fits a state in which a connection is open."""

    def fits(each: dict[str, Any]) -> Any:
        all = each["state"]["connections"] if each["kind"] == "state" else []
        return next((one for one in all if (one["name"], one["status"]) == (name, "open")), None)

    return fits


async def test_it_prints_an_address_and_ends_what_it_started(home: Path, everyday: Path) -> None:
    """A request reaches the server, and the recording is kept where --save says."""
    tape = home / "kept.tape"
    async with hosting("inspect", everyday, "--save", tape) as page:
        await page.enter()
        one = await page.until(connected("everyday.py"))
        assert one["words"] == [str(everyday)]
        params = '{"name":"add","arguments":{"a":1,"b":2}}'
        sent = await page.act("send", connection=one["name"], method="tools/call", params=params)
        message = await page.act("message", **sent)
        assert message["request"]["command"].startswith(f"interlock call {everyday} add --json")
        assert await page.ended(signal.SIGINT) == 0
        assert page.process.stderr is not None
        assert await page.process.stderr.read() == b""
    with TapeFile(tape) as file:
        assert "add" in [row.name for row in file.rows]
        assert file.verify() == []


async def test_a_command_gets_the_variables_that_were_named(home: Path) -> None:
    """A command is started as by `interlock call`; it ends with the inspector, and its secrets are
    not on the tape.
    """
    script = home / "server.py"
    script.write_text(
        "import os\n"
        "from interlock import Server\n"
        "server = Server('own')\n"
        "@server.tool\n"
        "def look() -> dict[str, str | int | None]:\n"
        "    return {'key': os.environ.get('SOME_API_KEY'), 'pid': os.getpid()}\n"
        "server.run()\n"
    )
    secret = "a-secret-of-the-command-line"
    words = ["--env", f"SOME_API_KEY={secret}", "--", sys.executable, script]
    async with hosting("inspect", *words) as page:
        await page.enter()
        one = await page.until(connected(Path(sys.executable).name))
        params = '{"name":"look","arguments":{}}'
        sent = await page.act("send", connection=one["name"], method="tools/call", params=params)
        row = (await page.act("message", **sent))["partner"]
        while row is None:
            row = (await page.act("message", **sent))["partner"]
        message = await page.act("message", recording="live", row=row["number"])
        assert secret not in msgspec.json.encode(message).decode()
        pid = msgspec.json.decode(message["raw"])["result"]["structuredContent"]["pid"]
        assert is_alive(pid)
        assert await page.ended(signal.SIGTERM) == 0
        assert not is_alive(pid)


async def test_a_command_is_confined(home: Path) -> None:
    """`--sandbox` as for `interlock call`; the equivalent command has it too."""
    if reason := unavailable_reason():
        # The kernel of this machine decides; nothing that could be installed helps.
        pytest.skip(f"NOT SHOWN HERE: {reason}")
    (home / "secret").write_text("a secret")
    work = home / "work"
    work.mkdir()
    script = work / "server.py"
    script.write_text(
        "from pathlib import Path\n"
        "from interlock import Server\n"
        "server = Server('own')\n"
        "@server.tool\n"
        "def look() -> bool:\n"
        f"    return Path({str(home / 'secret')!r}).exists()\n"
        "server.run()\n"
    )
    words = ["--sandbox-allow", "host=none", "--", sys.executable, script]
    async with hosting("inspect", *words) as page:
        await page.enter()
        one = await page.until(connected(Path(sys.executable).name))
        assert one["words"][0] == "--sandbox-allow=host=none"
        params = '{"name":"look","arguments":{}}'
        sent = await page.act("send", connection=one["name"], method="tools/call", params=params)
        message = await page.act("message", **sent)
        assert "--sandbox-allow=host=none --" in message["request"]["command"]
        row = message["partner"]
        while row is None:
            row = (await page.act("message", **sent))["partner"]
        answer = await page.act("message", recording="live", row=row["number"])
        found = msgspec.json.decode(answer["raw"])["result"]["structuredContent"]
        assert found == {"result": False}
        assert await page.ended(signal.SIGTERM) == 0


async def test_servers_of_a_configuration_and_a_tape(home: Path, everyday: Path) -> None:
    with Recorder(home / "old.tape") as recorder:
        recorder.connection()("client", b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    servers = written(home / "servers.json", {"one": everyday, "two": everyday})
    words = ["--config", servers, "--server", "one", "--server", "two", "--trust"]
    words += ["--save", home / "new.tape"]
    async with hosting("inspect", home / "old.tape", *words) as page:
        await page.enter()
        one = await page.until(connected("one"))
        assert one["words"] == ["--config", str(servers), "--server", "one"]
        await page.until(connected("two"))
        shown = await page.act("rows", recording="live", filter="http")
        assert shown["rows"] == []
        shown = await page.act("rows", recording="old.tape")
        assert [row["method"] for row in shown["rows"]] == ["ping"]
        assert await page.ended(signal.SIGINT) == 0
    with TapeFile(home / "new.tape") as file:
        assert {row.exchange for row in file.rows} == {0}  # it is not HTTP


async def test_the_heads_of_http_are_on_the_tape(home: Path) -> None:
    """Of a server that is named by its URL, and of one in a configuration."""
    async with Server("web").serve_http(port=0) as web:
        config = home / "servers.json"
        config.write_text(json.dumps({"mcpServers": {"web": {"url": web.url}}}))
        words = ["--config", config, "--server", "web", "--trust"]
        async with hosting("inspect", web.url, *words) as page:
            await page.enter()
            for name in ("web", web.url.partition("://")[2].partition("/")[0]):
                one = await page.until(connected(name))
                assert one["features"]["authorization"]["offered"]
                shown = await page.act("rows", recording="live", filter="http", connections=[name])
                summaries = [row["summary"] for row in shown["rows"]]
                assert summaries[0].startswith("POST ")
                assert "200" in summaries
            assert await page.ended(signal.SIGINT) == 0
            assert page.process.stderr is not None
            assert await page.process.stderr.read() == b""


@pytest.mark.parametrize(
    "words, said",
    [
        ([], "Look into servers"),
        (["--revision", "auto"], "Missing TARGET"),
        (["gone.py"], "There is no file gone.py"),
        (["gone.tape"], "There is no file gone.tape"),
        (["text.tape"], "is not a tape"),
        (["x", "--revision", "1999-01-01"], "is not one of"),
    ],
)
def test_a_wrong_command_line_is_explained(
    interlock: Command,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(home)
    (home / "text.tape").write_text("This is a text.\n")
    done = interlock("inspect", *words)
    assert said in done.output
