"""What a client can be pointed at, what it refuses in clear words, and that nothing is left of what
could not be opened.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock import (
    Client,
    Duplex,
    McpError,
    Server,
    Socket,
    Stdio,
    Unreachable,
    UnsupportedRevision,
)
from interlock.client.targets import transport_to
from interlock.testing import channel_pair
from interlock.transport.memory import Memory
from tests.client.peers import GREETER, SECONDS, ByHand, is_gone, script
from tests.contracts.makers import served
from tests.transport.programs import old_server

COMMANDS: dict[str, tuple[Any, list[str]]] = {
    # what is given, and the command that is run
    "a list": (["uvx", "thing", "--flag"], ["uvx", "thing", "--flag"]),
    "a list with a path": ([Path("/opt/thing"), "x y"], ["/opt/thing", "x y"]),
    "a tuple": (("uvx", "thing"), ["uvx", "thing"]),
    "a string": ("uvx thing --name 'two words'", ["uvx", "thing", "--name", "two words"]),
    "a string that ends in a script": (
        "python -X utf8 server.py",
        ["python", "-X", "utf8", "server.py"],
    ),
    "a string that ends in another script": (
        "node --no-warnings server.mjs",
        ["node", "--no-warnings", "server.mjs"],
    ),
    "a string with a URL in it": (
        "bridge https://example.com/mcp",
        ["bridge", "https://example.com/mcp"],
    ),
    "a script of node": ("/srv/server.js", ["node", "/srv/server.js"]),
    "a module of node": (Path("/srv/server.mjs"), ["node", "/srv/server.mjs"]),
    "a program whose path has spaces": (Path("/opt/my servers/one"), ["/opt/my servers/one"]),
    "an entry": ({"command": "uvx", "args": ["thing", "--n", 3]}, ["uvx", "thing", "--n", "3"]),
    "an entry without arguments": ({"type": "stdio", "command": "thing"}, ["thing"]),
    "a configuration": ({"mcpServers": {"one": {"command": "thing", "args": None}}}, ["thing"]),
    "a configuration of another host": ({"servers": {"one": {"command": "thing"}}}, ["thing"]),
}


@pytest.mark.parametrize("target, command", COMMANDS.values(), ids=COMMANDS)
def test_what_is_run(target: Any, command: list[str]):
    """Scripts, commands and entries of a configuration lead to a child process."""
    transport = transport_to(target)
    assert isinstance(transport, Stdio)
    assert transport.command == command


async def test_an_entry_names_the_revision(tmp_path: Path):
    """It is the only one that is spoken, unless another is asked for by name; a whole configuration
    has it too.
    """
    entry = {"command": old_server(tmp_path)[0], "args": old_server(tmp_path)[1:]}
    older = {**entry, "revision": "2024-11-05"}
    for target in (older, {"mcpServers": {"one": older}}):
        async with Client(target) as client:
            assert client.revision == "2024-11-05"
    with pytest.raises(UnsupportedRevision, match="allowed here are 2025-11-25"):
        await Client({**entry, "revision": "2025-11-25"}).open()
    async with Client({**entry, "revision": "2025-11-25"}, revision="2024-11-05") as client:
        assert client.revision == "2024-11-05"


@pytest.mark.parametrize(
    "revision, kind, words",
    [("2025-13-01", ValueError, "unknown revisions: 2025-13-01"), (20251125, TypeError, "a text")],
)
def test_an_entry_names_a_revision_that_there_is_not(revision: Any, kind: Any, words: str):
    """It is found before anything is started."""
    with pytest.raises(kind, match=words):
        Client({"command": "thing", "revision": revision})


@pytest.mark.parametrize("kind", [str, Path])
def test_a_script_is_run_by_this_python(kind: type[Any], tmp_path: Path):
    """Also one whose name has spaces."""
    path = tmp_path / "my server.py"
    path.touch()
    transport = transport_to(kind(path))
    assert isinstance(transport, Stdio)
    assert transport.command == [sys.executable, str(path)]


ADDRESSES: dict[str, tuple[Any, Any]] = {
    "unix": ("unix:///run/house.sock", "/run/house.sock"),
    "tcp": ("tcp://localhost:8765", ("localhost", 8765)),
    "tcp of six": ("tcp://[::1]:8765", ("::1", 8765)),
    "an entry": ({"url": "tcp://127.0.0.1:1"}, ("127.0.0.1", 1)),
}


@pytest.mark.parametrize("target, address", ADDRESSES.values(), ids=ADDRESSES)
def test_where_a_socket_is(target: Any, address: Any):
    transport = transport_to(target)
    assert isinstance(transport, Socket)
    assert transport.address == address


def test_what_is_at_hand_already():
    """A server, a channel, a transport."""
    assert isinstance(transport_to(Server("house")), Memory)
    channel = channel_pair()[0]
    duplex = transport_to(channel)
    assert isinstance(duplex, Duplex)
    assert duplex.channel is channel
    ready = ByHand()
    assert transport_to(ready) is ready


NOWHERE: dict[str, tuple[Any, type[Exception], str]] = {
    "a page without a host": ("https:///mcp", ValueError, "is no address of a server"),
    "another scheme": ("ws://localhost:1/mcp", ValueError, "ws://localhost:1/mcp"),
    "tcp without a port": ("tcp://localhost", ValueError, "host and a port"),
    "tcp without a host": ("tcp://:8765", ValueError, "host and a port"),
    "tcp with an odd port": ("tcp://localhost:99999", ValueError, "range"),
    "unix without a path": ("unix://", ValueError, "path"),
    "unix with a host": ("unix://run/house.sock", ValueError, "path"),
    "a script that is not there": (
        "/nowhere/server.py",
        ValueError,
        "no script /nowhere/server.py",
    ),
    "nothing in a string": ("  ", ValueError, "empty"),
    "nothing in a list": ([], ValueError, "command"),
    "quotes that do not end": ("thing 'x", ValueError, "quotation"),
    "no servers": ({"mcpServers": {}}, ValueError, "0 servers"),
    "an empty entry": ({}, ValueError, "a command or a url"),
    "an entry without sense": ({"mcpServers": {"a": "thing"}}, TypeError, "'thing'"),
    "arguments without sense": ({"command": "thing", "args": "--flag"}, TypeError, "'--flag'"),
    "nobody": (None, TypeError, "None"),
    "a number": (7, TypeError, "7"),
    "a handler that cannot be opened": (lambda x: x, TypeError, "a client cannot connect to"),
    "a list of numbers": ([1, 2], TypeError, "int"),
}


@pytest.mark.parametrize("target, kind, words", NOWHERE.values(), ids=NOWHERE)
def test_what_leads_nowhere(target: Any, kind: type[Exception], words: str):
    """It is said when the client is made, and names what was given."""
    with pytest.raises(kind, match=words):
        Client(target)


async def test_what_an_entry_says_of_the_child(tmp_path: Path):
    """`env` is added to the few variables that are inherited, `cwd` is where the child stands."""
    path = script(
        tmp_path,
        GREETER + "greet()\nm = read()\nanswer(m['id'], result={'tools': [], '_meta': {'env':"
        " dict(os.environ), 'cwd': os.getcwd()}})",
    )
    os.environ["HOUSE_SECRET"] = "x"
    try:
        entry = {
            "command": sys.executable,
            "args": [path],
            "env": {"HOUSE_KEY": "k", "HOUSE_NUMBER": 7},
            "cwd": str(tmp_path),
        }
        async with Client({"mcpServers": {"one": entry}}, revision="2025-11-25") as client:
            from interlock import types as t

            said = (await client.request("tools/list", t.ListToolsRequestParams())).meta
    finally:
        del os.environ["HOUSE_SECRET"]
    assert said is not None
    assert (said["env"]["HOUSE_KEY"], said["env"]["HOUSE_NUMBER"], said["cwd"]) == (
        "k",
        "7",
        str(tmp_path),
    )
    assert "PATH" in said["env"]
    assert "HOUSE_SECRET" not in said["env"]


@pytest.mark.parametrize("kind", ["unix", "tcp"])
async def test_a_server_behind_a_socket(kind: str, tmp_path: Path):
    server = Server("behind")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    async with served(server, tmp_path / "s" if kind == "unix" else ("127.0.0.1", 0)) as address:
        url = f"unix://{address}" if kind == "unix" else f"tcp://127.0.0.1:{address[1]}"  # type: ignore[index]  # host and port
        async with Client(url) as client:
            assert (await client.call_tool("add", {"a": 1, "b": 2})).value() == 3


# -- opening that fails ---------------------------------------------------------------------------

FAILING: dict[str, tuple[str, dict[str, Any], type[Exception], str]] = {
    # what the script does, what the client is told, what it raises, and the words
    "ends at once": (
        "import sys; sys.exit('no key')",
        {},
        Unreachable,
        r"exit code 1[\s\S]*no key",
    ),
    "prints and ends": ("print('hello'); print('{}'); print('[')", {}, Unreachable, "exit code 0"),
    "refuses": (
        GREETER
        + "while True: answer(read()['id'], error={'code': -32603, 'message': 'not today'})",
        {},
        McpError,
        "not today",
    ),
    "speaks another revision": (
        GREETER
        + "m = read()\nanswer(m['id'], result={'protocolVersion': '2024-11-05', 'capabilities': {},"
        " 'serverInfo': {'name': 's', 'version': '1'}})\nread()",
        {"revision": "2025-11-25"},
        UnsupportedRevision,
        "2024-11-05",
    ),
    "refuses the log level": (
        GREETER
        + "greet({'logging': {}})\nanswer(read()['id'], error={'code': -32602, 'message': 'no"
        " such level'})\nread()",
        {"revision": "2025-11-25", "log_level": "info"},
        McpError,
        "no such level",
    ),
}


@pytest.mark.parametrize("body, options, kind, words", FAILING.values(), ids=FAILING)
async def test_nothing_is_left_of_a_server_that_could_not_be_opened(
    body: str, options: dict[str, Any], kind: type[Exception], words: str, tmp_path: Path
):
    """One clear error, and the child is gone; the client is not open."""
    client = Client(script(tmp_path, body), **options)
    with pytest.raises(kind, match=words):
        await client.open()
    assert is_gone(tmp_path)
    assert not client.connected
    with pytest.raises(Unreachable, match="not open"):
        await client.list_tools()


async def test_a_log_level_that_is_left_unanswered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The time for an answer is over, which the clock says once the child has read the request,
    however late that was.
    """
    asked = asyncio.Event()
    body = GREETER + "greet({'logging': {}})\nread()\nprint('asked', file=sys.stderr)\nread()"
    loop = asyncio.get_running_loop()
    real = loop.time
    ahead = 0.0
    monkeypatch.setattr(loop, "time", lambda: real() + ahead)
    client = Client(
        script(tmp_path, body),
        revision="2025-11-25",
        log_level="info",
        timeout=3600,
        on_stderr=lambda line: asked.set(),
    )
    opening = asyncio.create_task(client.open())
    async with asyncio.timeout(SECONDS):
        await asked.wait()
    ahead = 3600.0
    with pytest.raises(Unreachable, match="logging/setLevel"):
        await opening
    assert is_gone(tmp_path)
    assert not client.connected


async def test_a_command_that_is_not_there():
    with pytest.raises(
        Unreachable, match="could not be started: no-such-program-here --x: No such file"
    ):
        async with Client("no-such-program-here --x"):
            raise AssertionError("it was opened")


async def test_a_command_that_is_not_there_keeps_its_secrets():
    with pytest.raises(Unreachable) as raised:
        await Client(["no-such-program-here", "--api-key=sk-0123456789abcdef"]).open()
    assert "no-such-program-here --api-key=" in str(raised.value)
    assert "sk-0123456789abcdef" not in str(raised.value)


async def test_nobody_listens(tmp_path: Path):
    with pytest.raises(Unreachable, match="Nobody answers at"):
        await Client(f"unix://{tmp_path}/nobody").open()


async def test_an_opening_that_is_given_up(tmp_path: Path):
    """Whoever opens is cancelled in the middle of it: the child goes too."""
    begun = asyncio.Event()
    path = script(
        tmp_path, "import sys; print('up', file=sys.stderr, flush=True); sys.stdin.read()"
    )
    opening = asyncio.create_task(Client(path, on_stderr=lambda line: begun.set()).open())
    async with asyncio.timeout(SECONDS):
        await begun.wait()
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert is_gone(tmp_path)


async def test_an_opening_that_is_given_up_before_the_child_runs(tmp_path: Path):
    """The start happens in a thread, which cannot be called back: the child is ended when it is
    there.
    """
    path = script(tmp_path, "import sys; sys.stdin.read()")
    opening = asyncio.create_task(Client(path).open())
    await asyncio.sleep(0)  # it has begun, and waits for the thread
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    assert not (tmp_path / "pid").exists() or is_gone(tmp_path)


def test_lines_of_stderr_are_heard(tmp_path: Path):
    """`on_stderr` gets each line; what it says is no failure (`STD-05`)."""
    lines: list[str] = []
    path = script(
        tmp_path,
        "import sys\nprint('one\\ntwo', file=sys.stderr)\n"
        + GREETER
        + "greet()\nanswer(read()['id'], result={})\nread()",
    )

    async def talk() -> None:
        async with Client(path, revision="2025-11-25", on_stderr=lines.append) as client:
            await client.ping()

    asyncio.run(talk())
    assert lines == ["one", "two"]
    assert json.dumps(lines)
