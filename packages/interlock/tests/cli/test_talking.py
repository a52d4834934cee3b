"""Talking to servers from the command line: every command, every kind of target, and every way it
can go wrong.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command, Program
from tests.cli.programs import LACKING, STRANGER
from tests.cli.sites import Site
from tests.transport.programs import asking_server

HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """A script with a server that is not Interlock's."""
    path = tmp_path / "stranger.py"
    path.write_text(STRANGER, encoding="utf-8")
    return path


# -- what is shown ---------------------------------------------------------------------------------


def test_list_for_people(interlock: Command, everyday: Path) -> None:
    """Names, what goes in, and the first line of what each is for."""
    shown = interlock("list", everyday).stdout
    assert shown.startswith("everyday 1.2 speaks 2026-07-28\nUse it every day.\n\nTools\n")
    assert (
        "  add (a: integer, b?: integer)\n      Add two numbers.\n  echo (text: string)\n" in shown
    )
    assert "The second line." not in shown
    assert "Resource templates\n  note://{name}\n" in shown
    assert "Resources\n  photo://one (image/jpeg)\n" in shown
    assert "Prompts\n  greet (name, style?)\n      Greet somebody.\n" in shown


@pytest.mark.parametrize("revision", [HANDSHAKE, STATELESS])
def test_list_for_machines(interlock: Command, everyday_address: str, revision: str) -> None:
    """The protocol's own JSON, the same in both eras but for the revision."""
    result = interlock("list", everyday_address, "--json", "--revision", revision)
    assert (result.exit_code, result.stderr) == (0, "")
    data = json.loads(result.stdout)
    assert data["server"] == {"name": "everyday", "version": "1.2"}
    assert (data["revision"], data["instructions"]) == (revision, "Use it every day.")
    assert {
        "tools",
        "resources",
        "resourceTemplates",
        "prompts",
        "capabilities",
        "server",
        "revision",
        "instructions",
    } == data.keys()
    assert data["tools"][0]["inputSchema"]["required"] == ["a"]


def test_list_of_one_kind(interlock: Command, everyday_address: str) -> None:
    """Only what is asked for is asked of the server."""
    result = interlock("list", everyday_address, "--prompts", "-v")
    assert "Tools" not in result.stdout
    assert "greet (name, style?)" in result.stdout
    assert "prompts/list" in result.stderr
    assert "tools/list" not in result.stderr


@pytest.fixture
def lacking(tmp_path: Path) -> list[str]:
    """The command of a server that declares all capabilities and has no list of templates."""
    path = tmp_path / "lacking.py"
    path.write_text(LACKING, encoding="utf-8")
    return [sys.executable, str(path)]


def test_lists_that_a_server_lacks_hide_no_others(interlock: Command, lacking: list[str]) -> None:
    """A list that is answered with -32601 is left out, and said only where it was asked for."""
    result = interlock("list", "--", *lacking)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "query" in result.stdout
    assert "memo://insights" in result.stdout
    assert "demo" in result.stdout
    named = interlock("list", "--resources", "--", *lacking)
    assert named.exit_code == 0
    assert named.stderr == "The server does not list resource templates.\n"
    assert "memo://insights" in named.stdout
    data = json.loads(interlock("list", "--json", "--", *lacking, "prompts/list").stdout)
    assert "resourceTemplates" not in data
    assert "prompts" not in data
    assert [tool["name"] for tool in data["tools"]] == ["query"]
    neither = interlock("list", "--resources", "--", *lacking, "resources/list")
    assert neither.stderr == "The server does not list resources or resource templates.\n"
    assert "It offers none of these." in neither.stdout


def test_a_tool_can_be_called_where_no_tools_are_listed(
    interlock: Command, lacking: list[str]
) -> None:
    """The list only helps with the types of arguments; `schema` has nothing to show."""
    called = interlock("call", "query", "--", *lacking, "tools/list")
    assert (called.exit_code, called.stdout) == (0, "called\n")
    assert json.loads(interlock("schema", "--", *lacking, "tools/list").stdout) == {}


def test_schema(interlock: Command, everyday_address: str) -> None:
    """Of one tool, or of all by name; one that is not there is the server's refusal."""
    one = json.loads(interlock("schema", everyday_address, "add").stdout)
    assert one["inputSchema"]["properties"]["b"] == {"type": "integer", "default": 2}
    assert one["outputSchema"]["properties"]["result"] == {"type": "integer"}
    assert json.loads(interlock("schema", everyday_address).stdout)["add"] == one
    missing = interlock("schema", everyday_address, "nothing")
    assert missing.exit_code == 3
    assert "lists no tool nothing; it lists add, echo" in missing.stderr


def test_ping(interlock: Command, everyday: Path) -> None:
    """Who answered, in what time."""
    result = interlock("ping", everyday)
    assert result.stdout == "everyday 1.2 answered, speaking 2026-07-28\n"
    assert re.fullmatch(r"\d+\.\d ms\n", result.stderr)
    data = json.loads(interlock("ping", everyday, "--json", "--revision", HANDSHAKE).stdout)
    assert data["revision"] == HANDSHAKE
    assert data["milliseconds"] > 0


CALLS: list[tuple[list[str], str]] = [
    (["add", "a=1"], "3\n"),
    (["add", "a=1", "b=5"], "6\n"),
    (["add", "--json", '{"a": 40}'], "42\n"),
    (["add", "--json={}", "a=1"], "3\n"),
    (["add", "--arguments", '{"a": 40, "b": 0}', "b=1"], "41\n"),
    (["echo", "text=7"], "7\n"),
    (["echo", "text=a b=c"], "a b=c\n"),
    (["picture"], "[image/png, 6 bytes; -o FILE saves it]\n"),
    (["work"], "worked\n"),
]


@pytest.mark.parametrize(
    "words, shown", CALLS, ids=lambda given: " ".join(given) if isinstance(given, list) else ""
)
def test_call(interlock: Command, everyday_address: str, words: list[str], shown: str) -> None:
    """A tool's words, and only these, on stdout; code 0."""
    result = interlock("call", everyday_address, *words)
    assert (result.exit_code, result.stdout) == (0, shown), result.stderr


def test_call_for_machines(interlock: Command, everyday_address: str) -> None:
    """The result as the protocol has it; an object after --json is arguments, --json alone is the
    output.
    """
    result = interlock(
        "call", everyday_address, "tagged", "--json", '{"depth": 2}', "tags=1", "tags=two", "--json"
    )
    assert json.loads(result.stdout)["structuredContent"] == {"tags": ["1", "two"], "depth": 2}
    assert json.loads(result.stdout).keys() == {"content", "structuredContent"}


def test_structured_content_is_shown_once(interlock: Command, everyday_address: str) -> None:
    """Its text is the same in other words, so that one is enough."""
    assert json.loads(interlock("call", everyday_address, "tagged", "tags=a").stdout) == {
        "tags": ["a"],
        "depth": 0,
    }


def test_a_picture_is_saved(interlock: Command, everyday_address: str) -> None:
    """Its bytes, where -o says."""
    result = interlock("call", everyday_address, "picture", "-o", "p.png")
    assert Path("p.png").read_bytes() == b"\x89PNG\r\n"
    assert "Wrote 6 bytes to p.png." in result.stderr


@pytest.mark.parametrize("revision", [HANDSHAKE, STATELESS])
def test_logs_go_to_stderr(interlock: Command, everyday: Path, revision: str) -> None:
    """From the wanted level on, one line each; stdout is the result alone."""
    result = interlock("call", everyday, "work", "--revision", revision)
    assert (result.stdout, result.stderr) == ("worked\n", "[error] {'part': 'done'}\n")
    assert (
        "[debug] unheard"
        in interlock(
            "call", everyday, "work", "--log-level", "debug", "--revision", revision
        ).stderr
    )


@pytest.mark.parametrize("revision", [HANDSHAKE, STATELESS])
def test_verbose_shows_every_frame(interlock: Command, everyday: Path, revision: str) -> None:
    """Both ways, whole, with the opening."""
    lines = interlock(
        "call", everyday, "add", "a=1", "-v", "--revision", revision
    ).stderr.splitlines()
    frames = [(line[:3], json.loads(line[4:])) for line in lines if line.startswith(("-->", "<--"))]
    sent = [frame["method"] for arrow, frame in frames if arrow == "-->"]
    opening = (
        ["server/discover"]
        if revision == STATELESS
        else ["initialize", "notifications/initialized", "logging/setLevel"]
    )
    assert sent == [*opening, "tools/list", "tools/call"]
    answers = {frame["id"]: frame["result"] for arrow, frame in frames if arrow == "<--"}
    assert answers[frames[-1][1]["id"]]["structuredContent"] == {"result": 3}


def test_a_call_without_arguments_sends_an_empty_object(
    interlock: Command, everyday_address: str
) -> None:
    """Many servers refuse a call that lacks the member."""
    result = interlock("call", everyday_address, "work", "-v")
    (sent,) = [line for line in result.stderr.splitlines() if '"method":"tools/call"' in line]
    assert '"arguments":{}' in sent


def test_roots(interlock: Command, everyday_address: str, tmp_path: Path) -> None:
    """The folders that a server may work in are those that were named."""
    result = interlock("call", everyday_address, "folders", "--root", tmp_path, "--root", ".")
    assert json.loads(result.stdout) == [tmp_path.as_uri(), Path.cwd().as_uri()]


def test_read(interlock: Command, everyday_address: str) -> None:
    """Text and bytes as they are, where no terminal is; -o to a file; JSON for machines."""
    assert interlock("read", everyday_address, "note://milk").stdout == "a note on milk"
    assert interlock("read", everyday_address, "photo://one").stdout_bytes == b"\xff\xd8\xff\x00"
    assert interlock("read", everyday_address, "photo://one", "-o", "one.jpg").exit_code == 0
    assert Path("one.jpg").read_bytes() == b"\xff\xd8\xff\x00"
    (contents,) = json.loads(interlock("read", everyday_address, "photo://one", "--json").stdout)[
        "contents"
    ]
    assert contents == {"uri": "photo://one", "mimeType": "image/jpeg", "blob": "/9j/AA=="}


def test_prompt(interlock: Command, everyday_address: str) -> None:
    """Its messages; numbers are strings too."""
    assert (
        interlock("prompt", everyday_address, "greet", "name=7", "style=odd").stdout
        == "user:\nGreet 7 in a odd way.\n"
    )
    assert interlock("prompt", everyday_address, "greet").exit_code == 3
    data = json.loads(interlock("prompt", everyday_address, "greet", "name=Bo", "--json").stdout)
    assert data["messages"][0]["content"]["text"] == "Greet Bo in a plain way."


def test_complete(interlock: Command, everyday_address: str) -> None:
    """Suggestions by what was typed and by what is known besides."""
    assert interlock("complete", everyday_address, "greet", "style", "p").stdout.split() == [
        "plain",
        "polite",
        "pirate",
    ]
    assert interlock("complete", everyday_address, "greet", "style").stdout.split() == [
        "plain",
        "polite",
        "pirate",
    ]
    assert (
        interlock(
            "complete", everyday_address, "greet", "style", "po", "--with", "name=king"
        ).stdout
        == "polite\n"
    )
    assert json.loads(
        interlock("complete", everyday_address, "greet", "style", "pi", "--json").stdout
    )["values"] == ["pirate"]


# -- targets ---------------------------------------------------------------------------------------


def test_the_object_of_a_file(interlock: Command, tmp_path: Path) -> None:
    """`FILE:OBJECT` is the server of that name."""
    (tmp_path / "two.py").write_text(
        "from interlock import Server\na = Server('first')\nb = Server('second')\n"
    )
    assert interlock("ping", f"{tmp_path / 'two.py'}:b").stdout.startswith("second ")
    assert interlock("ping", tmp_path / "two.py").exit_code == 2


def test_another_script_is_run_as_it_is(interlock: Command, stranger: Path) -> None:
    """One that does not import interlock; its era is found out."""
    result = interlock("list", stranger)
    assert result.stdout == "stranger 0 speaks 2024-11-05\n\nTools\n  arguments\n"
    assert interlock("read", stranger, "a://b").exit_code == 3


def test_a_command_after_two_dashes(
    interlock: Command, stranger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its words are its own, dashes too; it has no variable that nobody gave it."""
    monkeypatch.setenv("SECRET", "known")
    result = interlock(
        "call",
        "arguments",
        "x=1",
        "--json",
        "--",
        sys.executable,
        str(stranger),
        "--json",
        "-v",
        "a b",
    )
    arguments, words, secret = json.loads(json.loads(result.stdout)["content"][0]["text"])
    assert (arguments, words, secret) == ({"x": 1}, ["--json", "-v", "a b"], None)


CONFIGS: dict[str, tuple[str, str]] = {
    "mcpServers": ("c.json", '{{"mcpServers": {{"s": {entry}, "t": {{"command": "x"}}}}}}'),
    "servers with comments": (
        "mcp.json",
        '// mine\n{{"servers": {{"s": {entry}, "t": {{}},}},}}\n',
    ),
    "context_servers": (
        "settings.json",
        '\ufeff{{"context_servers": {{"s": {entry}, "t": {{}}}}}}',
    ),
}


@pytest.mark.parametrize("name, text", CONFIGS.values(), ids=CONFIGS)
def test_an_entry_of_a_configuration(
    interlock: Command,
    stranger: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    text: str,
) -> None:
    """Started as its client would: with its own variables, and without those that may hold
    secrets.
    """
    monkeypatch.setenv("SECRET", "known")
    entry: dict[str, Any] = {"command": sys.executable, "args": [str(stranger), "a"]}
    config = tmp_path / name
    for env, expected in (({}, None), ({"SECRET": "told"}, "told")):
        config.write_text(text.format(entry=json.dumps({**entry, "env": env})), encoding="utf-8")
        result = interlock("call", "arguments", "--config", config, "--server", "s", "--trust")
        assert json.loads(result.stdout) == [{}, ["a"], expected], result.stderr
    assert "has 2 servers" in interlock("list", "--config", config).stderr
    assert (
        f"{config} has no server u; it has s, t."
        in interlock("list", "--config", config, "--server", "u").stderr
    )


def test_what_a_client_does_not_know_is_said(interlock: Command, tmp_path: Path) -> None:
    """An entry is read as its client reads it, and what that leaves out is no surprise."""
    config = tmp_path / "settings.json"
    entry = {"command": "no-such-program-anywhere", "cwd": "/"}
    config.write_text(json.dumps({"context_servers": {"s": entry}}))
    result = interlock("ping", "--config", config, "--trust")
    assert result.exit_code == 4
    assert "The server s: its cwd is unknown and not used." in result.stderr


def test_a_toml_configuration(interlock: Command, stranger: Path, tmp_path: Path) -> None:
    """As Codex has it; the only entry needs no name."""
    config = tmp_path / "config.toml"
    config.write_text(f"[mcp_servers.s]\ncommand = '{sys.executable}'\nargs = ['{stranger}']\n")
    assert (
        interlock("ping", "--config", config, "--trust").stdout
        == "stranger 0 answered, speaking 2024-11-05\n"
    )


def test_a_configuration_in_the_folder(interlock: Command, stranger: Path) -> None:
    """--server alone looks into the files that projects have."""
    Path(".mcp.json").write_text(
        json.dumps({"mcpServers": {"s": {"command": sys.executable, "args": [str(stranger)]}}})
    )
    assert interlock("ping", "--server", "s", "--trust").exit_code == 0


@pytest.mark.parametrize(
    "text, words",
    [
        ("{", "cannot be read"),
        ("{}", "it holds no servers"),
        ('{"mcpServers": {"s": {}}}', "it has neither a command nor a url"),
    ],
)
def test_a_configuration_that_leads_nowhere(
    interlock: Command, tmp_path: Path, text: str, words: str
) -> None:
    """Code 2, and why."""
    (tmp_path / "c.json").write_text(text)
    result = interlock("list", "--config", tmp_path / "c.json")
    assert result.exit_code == 2
    assert words in result.stderr


@pytest.fixture
def listening(everyday: Path, tmp_path: Path) -> Iterator[list[str]]:
    """The everyday server at a Unix and at a TCP socket."""
    processes = []
    addresses = []
    for options in (["unix", "--path", str(tmp_path / "s")], ["tcp", "--port", "0"]):
        command = [sys.executable, "-m", "interlock", "run", str(everyday), "--transport", *options]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stderr is not None
        addresses.append(process.stderr.readline().removeprefix("Listening at ").strip())
    yield addresses
    for process in processes:
        process.terminate()
        process.communicate(timeout=20)


def test_sockets(interlock: Command, listening: list[str], tmp_path: Path) -> None:
    """`unix://` and `tcp://`, as themselves and in a configuration."""
    for address in listening:
        assert interlock("call", address, "add", "a=1").stdout == "3\n"
        (tmp_path / "c.json").write_text(json.dumps({"mcpServers": {"s": {"url": address}}}))
        words = ["add", "a=1", "-v", "--trust"]
        result = interlock("call", "--config", tmp_path / "c.json", *words)
        assert result.stdout == "3\n"
        assert "--> " in result.stderr


# -- what goes wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", [HANDSHAKE, STATELESS])
def test_exit_codes(interlock: Command, everyday_address: str, revision: str) -> None:
    """1: the tool failed. 3: the server refused. Words for people on stderr."""
    failed = interlock("call", everyday_address, "fail", "--revision", revision)
    assert (failed.exit_code, failed.stdout, failed.stderr) == (
        1,
        "no luck\n",
        "The tool failed:\n",
    )
    refused = interlock("call", everyday_address, "ad", "a=1", "--revision", revision)
    assert refused.exit_code == 3
    assert refused.stderr == (
        "The server lists no tool 'ad'. Did you mean 'add'?\n"
        "Error: Unknown tool: ad (code -32602)\n"
    )
    assert interlock("read", everyday_address, "no://where", "--revision", revision).exit_code == 3


def test_errors_for_machines(interlock: Command, everyday_address: str, tmp_path: Path) -> None:
    """One JSON document on stdout, whatever happens, with the same codes."""
    failed = interlock("call", everyday_address, "fail", "--json")
    assert failed.exit_code == 1
    assert json.loads(failed.stdout)["isError"] is True
    refused = interlock("call", everyday_address, "nothing", "--json")
    assert refused.exit_code == 3
    assert json.loads(refused.stdout) == {
        "error": {"kind": "refused", "message": "Unknown tool: nothing", "code": -32602}
    }
    gone = interlock("ping", f"unix://{tmp_path}/nobody", "--json")
    assert gone.exit_code == 4
    assert json.loads(gone.stdout)["error"]["kind"] == "unreachable"


def test_a_server_that_dies_is_explained(interlock: Command) -> None:
    """Code 4, its exit code and its last words."""
    result = interlock("list", "--", sys.executable, "-c", "import sys; sys.exit('out of coffee')")
    assert result.exit_code == 4
    assert "exit code 1" in result.stderr
    assert "out of coffee" in result.stderr
    assert interlock("list", "--", "no-such-program-anywhere").exit_code == 4


def test_a_server_that_shares_no_revision(interlock: Command, stranger: Path) -> None:
    """Code 3, and which it speaks."""
    result = interlock("list", stranger, "--revision", STATELESS)
    assert result.exit_code == 3
    assert "does not speak 2026-07-28" in result.stderr


def test_timeouts(interlock: Command) -> None:
    """A silent server and a call that never ends: code 4, after the time that was given.

    The server with the endless call runs here already, so that the time is not over before the call
    begins.
    """
    silent = interlock(
        "ping", "--timeout", "0.3", "--", sys.executable, "-c", "import sys; sys.stdin.read()"
    )
    assert silent.exit_code == 4
    assert "within 0.3 seconds" in silent.stderr
    with contextlib.closing(Site()) as site:
        endless = interlock("call", f"{site.root}/endless", "hello", "--timeout", "3")
    assert endless.exit_code == 4
    assert "No answer to tools/call came within 3 seconds" in endless.stderr
    port = socket.create_server(("127.0.0.1", 0))  # accepts, and never says a word
    with port:
        assert (
            interlock(
                "ping", f"tcp://127.0.0.1:{port.getsockname()[1]}", "--timeout", "0.3"
            ).exit_code
            == 4
        )


def test_an_interrupt_is_130_and_leaves_nothing_running(everyday: Path, home: Path) -> None:
    """Ctrl-C in the middle of a call: the call is given up and the child is gone."""
    command = [sys.executable, "-m", "interlock", "call", str(everyday), "hang"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = process.stderr.readline()  # the tool runs now
        process.send_signal(signal.SIGINT)
        try:
            rest = process.communicate(timeout=30)[1]
        finally:
            process.kill()
    assert (process.returncode, rest.strip()) == (130, "Interrupted.")
    child = int(said.rpartition(" ")[2])
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_a_reader_that_goes_away_is_no_traceback(
    program_run: Program, everyday_address: str, home: Path
) -> None:
    """`interlock ... | head -1`."""
    command = f"'{sys.executable}' -m interlock schema '{everyday_address}' | head -1"
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert result.stdout == "{\n"
    assert result.stderr == ""


def test_a_server_that_can_ask_only_under_an_older_revision(
    interlock: Command, tmp_path: Path
) -> None:
    """What only reads is called again; for the rest it is said how to speak the older revision from
    the start.
    """
    command = asking_server(tmp_path)
    answers = '{"size": "L"}'
    read = interlock("call", "look", "--answers", answers, "--", *command)
    assert '{"size": "L"}' in read.stdout, read.stderr
    order = interlock("call", "order", "--answers", answers, "--", *command)
    assert order.exit_code != 0
    assert "--revision 2025-11-25" in order.stderr
    again = interlock(
        "call", "order", "--answers", answers, "--revision", "2025-11-25", "--", *command
    )
    assert '{"size": "L"}' in again.stdout, again.stderr
