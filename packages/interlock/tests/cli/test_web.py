"""Talking over HTTP from the command line: every command in both eras, what is sent along, and
every way it can go wrong.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.sync import Client
from tests.cli.conftest import Command, Program
from tests.cli.programs import EVERYDAY, QUESTIONS
from tests.cli.sites import ODD, Site
from tests.transport.certificates import Authority

REVISIONS = ("2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"
IN_EACH_WAY = [["--revision", STATELESS], ["--revision", HANDSHAKE], ["--legacy-sse"]]


def served(file: Path, *options: str) -> tuple[subprocess.Popen[str], str]:
    """`interlock run FILE --http 127.0.0.1:0`, and the address that it names."""
    command = [sys.executable, "-m", "interlock", "run", str(file), "--http", ":0", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = process.stderr.readline()
    assert said.startswith("Serving at http://127.0.0.1:"), said + process.communicate()[1]
    return process, said.removeprefix("Serving at ").strip()


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The everyday server and the one that asks, each at an address of its own, for both eras and
    the transport before them.
    """
    folder = tmp_path_factory.mktemp("served")
    processes = []
    found = {}
    for name, text in (("everyday", EVERYDAY), ("questions", QUESTIONS)):
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
        process, found[name] = served(folder / f"{name}.py", "--serve-legacy-sse")
        processes.append(process)
    yield found
    for process in processes:
        process.terminate()
        process.communicate(timeout=30)
    assert [process.returncode for process in processes] == [0, 0]


@pytest.fixture
def url(addresses: dict[str, str]) -> str:
    """Where the everyday server is."""
    return addresses["everyday"]


def at(url: str, way: list[str]) -> str:
    """The address of a server for one way of talking to it."""
    return url.replace("/mcp", "/sse") if way == ["--legacy-sse"] else url


@pytest.fixture
def site() -> Iterator[Site]:
    """A server that owes nothing to Interlock, and addresses that are none."""
    made = Site()
    yield made
    made.close()


# -- every command ---------------------------------------------------------------------------------


@pytest.mark.parametrize("way", IN_EACH_WAY, ids=" ".join)
def test_every_command(interlock: Command, url: str, way: list[str]) -> None:
    """What each shows is what it shows over stdio, in both eras and over the older transport."""
    target = at(url, way)
    listed = interlock("list", target, *way).stdout
    assert "  add (a: integer, b?: integer)\n" in listed
    assert "  note://{name}\n" in listed
    assert interlock("call", target, "add", "a=1", *way).stdout == "3\n"
    assert interlock("read", target, "photo://one", *way).stdout_bytes == b"\xff\xd8\xff\x00"
    assert (
        interlock("prompt", target, "greet", "name=Bo", *way).stdout
        == "user:\nGreet Bo in a plain way.\n"
    )
    assert interlock("complete", target, "greet", "style", "pi", *way).stdout == "pirate\n"
    assert json.loads(interlock("schema", target, "add", *way).stdout)["inputSchema"][
        "required"
    ] == ["a"]
    assert interlock("call", target, "fail", *way).exit_code == 1
    assert interlock("call", target, "nothing", *way).exit_code == 3


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_revision(interlock: Command, url: str, revision: str) -> None:
    """One endpoint speaks all five (`HTM-01`, `HTL-01`)."""
    assert (
        interlock("ping", url, "--revision", revision).stdout
        == f"everyday 1.2 answered, speaking {revision}\n"
    )


@pytest.mark.parametrize("way", IN_EACH_WAY, ids=" ".join)
def test_progress_logs_and_questions(
    interlock: Command, addresses: dict[str, str], way: list[str]
) -> None:
    """What comes on the way of a call comes here too."""
    worked = interlock("call", at(addresses["everyday"], way), "work", *way)
    assert (worked.stdout, worked.stderr) == ("worked\n", "[error] {'part': 'done'}\n")
    answers = ["--answers", '[{"row": 3, "side": "aisle"}, true]']
    booked = interlock("call", at(addresses["questions"], way), "book", *answers, *way)
    assert booked.stdout == "3 aisle none False\n", booked.stderr
    assert interlock("call", at(addresses["questions"], way), "confirm", *way).exit_code == 2


@pytest.mark.parametrize("way", IN_EACH_WAY, ids=" ".join)
def test_verbose_shows_every_frame(interlock: Command, url: str, way: list[str]) -> None:
    """The messages, without the headers around them."""
    lines = interlock("call", at(url, way), "add", "a=1", "-v", *way).stderr.splitlines()
    sent = [json.loads(line[4:])["method"] for line in lines if line.startswith("-->")]
    opening = (
        ["server/discover"]
        if STATELESS in way
        else ["initialize", "notifications/initialized", "logging/setLevel"]
    )
    assert sent == [*opening, "tools/list", "tools/call"]
    assert json.loads(next(line for line in reversed(lines) if line.startswith("<--"))[4:])[
        "result"
    ]["structuredContent"] == {"result": 3}


def test_for_machines(interlock: Command, url: str) -> None:
    """`--json` writes what it writes over any transport."""
    assert json.loads(interlock("call", url, "add", "a=1", "--json").stdout)[
        "structuredContent"
    ] == {"result": 3}
    assert json.loads(interlock("ping", url, "--json").stdout)["revision"] == STATELESS


def test_a_call_that_takes_too_long(interlock: Command, url: str) -> None:
    """Code 4, as anywhere."""
    endless = interlock("call", url, "hang", "--timeout", "0.5")
    assert endless.exit_code == 4
    assert "No answer to tools/call came within 0.5 seconds" in endless.stderr


def test_the_older_transport_is_found_without_being_named(interlock: Command, url: str) -> None:
    """At an address that has nothing else (`ERA-12`)."""
    assert interlock("call", url.replace("/mcp", "/sse"), "add", "a=1").stdout == "3\n"


def test_a_server_of_another_maker(interlock: Command, site: Site) -> None:
    """Its era is found out (`ERA-10`)."""
    assert interlock("list", site.url).stdout == "stranger 0 speaks 2025-06-18\n\nTools\n  hello\n"
    assert interlock("call", site.url, "hello").stdout == "hello\n"


# -- what is sent along ----------------------------------------------------------------------------


def test_headers_reach_the_server(
    interlock: Command, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With each request; `$NAME` is filled in from the environment."""
    monkeypatch.setenv("KEY", "s3cret")
    result = interlock(
        "call",
        site.url,
        "hello",
        "--header",
        "Authorization: Bearer $KEY",
        "--header",
        "X-Team:blue",
    )
    assert result.exit_code == 0, result.stderr
    assert len(site.heads) > 3
    assert {(head.get("authorization"), head.get("x-team")) for head in site.heads} == {
        ("Bearer s3cret", "blue")
    }


def test_entries_of_configurations(
    interlock: Command, site: Site, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`url`, `headers` and `type: sse`; the command's own headers go before those of the entry."""
    monkeypatch.setenv("KEY", "s3cret")
    config = tmp_path / "c.json"
    entries = {
        "there": {
            "type": "http",
            "url": site.url,
            "headers": {"Authorization": "Bearer ${KEY}", "X-Team": "blue"},
        },
        "old": {"type": "sse", "url": url.replace("/mcp", "/sse")},
        "new": {"url": url},
    }
    config.write_text(json.dumps({"mcpServers": entries}))
    assert (
        interlock(
            "ping", "--config", config, "--server", "there", "--trust", "--header", "X-Team: red"
        ).exit_code
        == 0
    )
    assert {(head["authorization"], head["x-team"]) for head in site.heads} == {
        ("Bearer s3cret", "red")
    }
    for name in ("old", "new"):
        assert (
            interlock("call", "add", "a=1", "--config", config, "--server", name, "--trust").stdout
            == "3\n"
        )


def test_the_blocking_client(url: str, site: Site) -> None:
    """`interlock.sync` takes addresses, headers and a token as the other one does."""
    with Client(url) as client:
        assert (client.revision, client.call_tool("add", {"a": 1}).value()) == (STATELESS, 3)
        assert [contents.text for contents in client.read_resource("note://milk").contents] == [
            "a note on milk"
        ]
    with Client(url, revision=HANDSHAKE) as client:
        assert client.call_tool("add", {"a": 1}).value() == 3
    with Client(site.url, token="s3cret", headers={"X-Team": "blue"}) as client:
        assert client.call_tool("hello").text == "hello"
    assert {(head["authorization"], head["x-team"]) for head in site.heads} == {
        ("Bearer s3cret", "blue")
    }


# -- what goes wrong -------------------------------------------------------------------------------

WORDS = {
    "/missing": (
        "answered with status 404: nothing here. "
        "Is this the address of the server's MCP endpoint, path and all?"
    ),
    "/page": "Is http://{address}/page the address of an MCP endpoint?",
    "/locked": "The server requires a login",
    "/closed": "answered with status 403: not you. The server does not let this client in",
    "/ill": "answered with status 500",
    "/busy": "The server has too much to do: try again later.",
}


@pytest.mark.parametrize("path", ODD)
@pytest.mark.parametrize("way", [[], ["--revision", HANDSHAKE], ["--legacy-sse"]], ids=" ".join)
def test_an_address_that_is_no_server(
    interlock: Command, site: Site, path: str, way: list[str]
) -> None:
    """One line that says what came and what may be done, and the code of what cannot be reached (3
    where it answered nonsense).
    """
    result = interlock("ping", f"http://{site.address}{path}", *way)
    assert result.exit_code in ((3, 4) if path == "/page" else (4,)), result.stderr
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    if not way:
        assert WORDS[path].format(address=site.address) in line


def test_nobody_is_there(interlock: Command) -> None:
    """A port where nobody listens, and a name that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    result = interlock("ping", f"http://127.0.0.1:{port}/mcp")
    assert (result.exit_code, result.stderr.count("\n")) == (4, 1)
    assert f"Nothing listens on http://127.0.0.1:{port}" in result.stderr
    data = json.loads(interlock("ping", f"http://127.0.0.1:{port}/mcp", "--json").stdout)
    assert data["error"]["kind"] == "unreachable"
    assert "nowhere.invalid was not found" in interlock("ping", "http://nowhere.invalid/mcp").stderr


def test_https_where_there_is_none(interlock: Command, url: str) -> None:
    """Said in words that point to the scheme."""
    result = interlock("ping", url.replace("http:", "https:"))
    assert (result.exit_code, result.stderr.count("\n")) == (4, 1)
    assert "Check that the server there uses https." in result.stderr


def test_a_certificate_that_nobody_vouches_for(interlock: Command, tmp_path: Path) -> None:
    """Is refused, and the reason is said."""
    context = Authority(tmp_path).server("127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def greet() -> None:
            connection = listening.accept()[0]
            with (
                contextlib.suppress(OSError),
                context.wrap_socket(connection, server_side=True) as secure,
            ):
                secure.recv(1)

        greeting = threading.Thread(target=greet, daemon=True)
        greeting.start()
        result = interlock("ping", f"https://127.0.0.1:{listening.getsockname()[1]}/mcp")
        greeting.join(10)
    assert (result.exit_code, result.stderr.count("\n")) == (4, 1)
    assert "certificate" in result.stderr


@pytest.mark.parametrize(
    "words, expected",
    [
        (["ftp://127.0.0.1/mcp"], "is not an address"),
        (["http:///mcp"], "is no address of a server"),
        (["http://127.0.0.1:99999/mcp"], "is no address of a server"),
        (["http://x/mcp", "--header", "nothing"], "Write a header as NAME: VALUE"),
        (["http://a b/mcp"], "is no address of a server"),
        (["http://x/mcp", "--header", "Bad Name: 1"], "'Bad Name' is not the name of a header"),
        (["http://x/mcp", "--header", "Content-Length: 1"], "is written by the HTTP client itself"),
        (["http://x/mcp", "--header", "X: ${NOT_SET_AT_ALL}"], "needs the variable NOT_SET_AT_ALL"),
        (["http://x/mcp", "--header", "X: “1”"], "characters that a header cannot have"),
        (["tcp://127.0.0.1:1", "--header", "X: 1"], "are for http:// and https:// addresses"),
        (["--header", "X: 1", "--", "server"], "are for http:// and https:// addresses"),
        (["--legacy-sse", "--", "server"], "are for http:// and https:// addresses"),
    ],
)  # fmt: skip
def test_wrong_usage(interlock: Command, words: list[str], expected: str) -> None:
    """Code 2, before anything is sent."""
    result = interlock("ping", *words)
    assert result.exit_code == 2, result.output
    assert expected in result.stderr
    assert result.stdout == ""


def test_a_header_of_the_protocol_is_left_out_and_said_once(program_run: Program, url: str) -> None:
    """The protocol says what is in it."""
    result = program_run("call", url, "add", "a=1", "--header", "Mcp-Method: ping")
    assert (result.returncode, result.stdout) == (0, "3\n")
    assert result.stderr == "the header Mcp-Method is left out: the protocol says what is in it\n"


def test_without_the_extra_it_says_what_to_install(
    interlock: Command, program_run: Program
) -> None:
    """A client needs httptools; without it: one line, code 4."""
    program = (
        "import sys; sys.modules['httptools'] = None\nfrom interlock.cli import main\n"
        "main(['ping', 'http://127.0.0.1:1/mcp'])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert (result.returncode, result.stderr.count("\n")) == (4, 1), result.stderr
    assert "pip install 'interlock[http]'" in result.stderr
