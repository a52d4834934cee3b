"""The compatibility farm: each row of the table, over each of its transports.

A server's row is tested with our client with its defaults, which detects the revision, and with our
command. A client's row is driven through `interlock serve everything`. A bridge is tested between
our client and a third-party server, and between a third-party client and our server.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock import Client, ClientSettings, Exchange, Http, McpError, Stdio
from interlock import types as t
from interlock.configs import Entry
from interlock.doctor import ExamineOptions, examine
from interlock.models.scripted import call as said
from interlock.wire.revisions import NEWEST, R4
from interlock_apps.fleet.events import CallEnded
from scripts import peers
from tests.host.scene import ALLOW, scene
from tests.interop import farm
from tests.interop.driver import PEERS, Driver, led, on_the_web, put_programs
from tests.interop.farm import BridgePeer, Call, ClientPeer, Offer, Peer, ServerPeer, Words
from tests.loopback import Loopback, Quiet
from tests.ports import free_port
from tests.servers.git.repos import git

pytestmark = pytest.mark.interop

SECONDS = 110.0  # for a whole row: it only catches hangs, and measures nothing
EVERYTHING = [sys.executable, "-m", "interlock", "serve", "everything"]
PAGE = (
    b"<!doctype html><html><head><title>A page for peers</title></head><body><h1>A page for "
    b"peers</h1><p>Read it.</p></body></html>"
)
KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: nowhere, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: nobody, user: {}}]
contexts: [{name: nowhere, context: {cluster: nowhere, user: nobody}}]
current-context: nowhere
"""


READS_AHEAD = """
import itertools, subprocess, sys
first = [sys.stdin.buffer.readline() for _ in range(2)]
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)
for line in itertools.chain(first, iter(sys.stdin.buffer.readline, b"")):
    server.stdin.write(line)
    server.stdin.flush()
server.stdin.close()
server.wait()
"""


class Site(Quiet, BaseHTTPRequestHandler):
    """One page, and nothing else."""

    def do_GET(self) -> None:
        """Answer."""
        found = self.path == "/page"
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(PAGE) if found else 0))
        self.end_headers()
        self.wfile.write(PAGE if found else b"")


@dataclass(frozen=True)
class Reach:
    """The target of a client: a command and its environment, or the URL of a running server."""

    command: tuple[str, ...] = ()
    env: Mapping[str, str] | None = None
    url: str = ""

    @property
    def target(self) -> Stdio | str:
        """The target for our client, which detects the transport of a URL."""
        return self.url or Stdio([*self.command], env=self.env)

    @property
    def words(self) -> list[str]:
        """The target as arguments of our command."""
        if self.url:
            return []
        return [
            "--",
            "env",
            *(f"{key}={value}" for key, value in (self.env or {}).items()),
            *self.command,
        ]


class Stage:
    """The test environment of rows: it installs peers at first use, and has the files that they
    read."""

    def __init__(self, installed: Callable[[str], Path], folder: Path, site: str) -> None:
        self.installed = installed
        self.folder = folder
        self.site = site

    def filled(self, peer: Peer, words: Sequence[str], **more: str) -> list[str]:
        """A command with its placeholders replaced."""
        found = self.installed(peer.lock)
        in_python = found.name == "python"
        place = found.parent.parent if in_python else found
        values = {
            "python": str(found),
            "place": str(place),
            "modules": str(place / "node_modules"),
            "drivers": str(PEERS),
            "folder": str(self.folder),
            "site": self.site,
            **more,
        }
        if not in_python:
            put_programs(place)
            values["node"] = str(peers.node())
        for need in peer.needs if isinstance(peer, ServerPeer) else ():
            values[need] = str(self.installed(need))
        return [word.format_map(values) for word in words]

    def environment(self, peer: Peer, **more: str) -> dict[str, str]:
        """The environment variables of a peer's program: common ones, and those of the row."""
        more = {"port": "0", **more}
        given = peer.env if isinstance(peer, ServerPeer) else {}
        ours = {name: self.filled(peer, [value], **more)[0] for name, value in given.items()}
        home = {name: str(self.folder) for name in ("HOME", "MCP_REMOTE_CONFIG_DIR")}
        return {"PATH": os.environ["PATH"], **home, **ours}

    @contextlib.asynccontextmanager
    async def served(self, peer: ServerPeer, road: str) -> AsyncIterator[Reach]:
        """The target of a client for a peer's server over a transport; over HTTP the server runs
        during the block."""
        port = free_port()
        more = {"port": str(port)}
        command = self.filled(peer, peer.start[road], **more)
        env = self.environment(peer, **more)
        if road == "stdio":
            yield Reach(tuple(command), env)
            return
        async with on_the_web(command, port, env=env):
            yield Reach(url=f"http://{peer.name_of_host}:{port}{farm.PATHS[road]}")


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """A web site on loopback."""
    loopback = Loopback(Site)
    yield loopback.root.replace("127.0.0.1", "localhost")
    loopback.close()


@pytest.fixture
def stage(installed: Callable[[str], Path], tmp_path: Path, site: str) -> Stage:
    """A stage with the test's own folder."""
    (tmp_path / "notes.txt").write_text("roses\n", encoding="utf-8")
    (tmp_path / "kubeconfig").write_text(KUBECONFIG, encoding="utf-8")
    (tmp_path / "repository").mkdir()
    git(tmp_path / "repository", "init", "--quiet")
    git(
        tmp_path / "repository",
        "-c",
        "user.name=Ada",
        "-c",
        "user.email=ada@example.com",
        "commit",
        "--quiet",
        "--allow-empty",
        "-m",
        "A first commit",
    )
    return Stage(installed, tmp_path, site)


def rows(of: Sequence[Peer]) -> Any:
    """Each row with each of its transports, as parameters of a test."""
    found = [*farm.one_by_one(of)]
    return pytest.mark.parametrize(
        "peer, road", found, ids=[farm.label(peer, road) for peer, road in found]
    )


# -- servers -----------------------------------------------------------------------------------


async def answered(client: Client, call: Call, stage: Stage, aside: bool) -> None:
    """Make a call, and compare its answer with the row."""
    progress: list[float] = []
    arguments = json.loads(inside(json.dumps(dict(call.arguments)), stage))
    try:
        result = await client.call_tool(
            call.tool, arguments, on_progress=lambda params: progress.append(params.progress)
        )
    except McpError as bad:
        failed = True
        text = str(bad)
    else:
        failed = bool(result.is_error)
        text = f"{result.text}\n{result.structured_content}"
    assert failed is call.fails, (call, text)
    assert inside(call.says, stage).lower() in text.lower(), (call, text)
    if aside:
        assert set(progress) <= set(call.progress), (call, progress)
    elif call.progress:
        assert tuple(progress) == call.progress, call


def inside(text: str, stage: Stage) -> str:
    """A text of a row, with the folder and the site filled in."""
    return text.replace("{folder}", str(stage.folder)).replace("{site}", stage.site)


async def offered(client: Client, offer: Offer, stage: Stage, aside: bool = False) -> None:
    """List everything, and test all features that the row names."""
    names = [tool.name for tool in await client.list_tools()]
    assert set(offer.listed) <= set(names), names
    assert len(set(names)) == len(names)
    for call in offer.calls:
        await answered(client, call, stage, aside)
    if offer.read:
        assert await client.list_resources()
        for uri, says in offer.read:
            read = await client.read_resource(uri)
            assert says in str(read.contents[0]), read
    if offer.prompt is not None:
        name, arguments, says = offer.prompt
        assert name in [prompt.name for prompt in await client.list_prompts()]
        filled = {key: inside(value, stage) for key, value in arguments.items()}
        prompt = await client.get_prompt(name, filled)
        assert says in str(prompt.messages), prompt


@rows(farm.SERVERS)
async def test_server(peer: ServerPeer, road: str, stage: Stage) -> None:
    """Our client, in its default mode: lists, calls with and without arguments, progress, an
    error, resources and prompts, in the revision that the row says."""
    # A server of both eras that starts slowly would be used in the older one, which is right too.
    settings = ClientSettings(probe_timeout=SECONDS if peer.revisions[road] == NEWEST else None)
    async with (
        asyncio.timeout(SECONDS),
        stage.served(peer, road) as reach,
        Client(reach.target, settings=settings) as client,
    ):
        assert client.revision == peer.revisions[road]
        await offered(client, peer.offer, stage, road in peer.aside)


@pytest.mark.parametrize(
    "peer",
    [peer for peer in farm.SERVERS if peer.revisions.get("stdio") == NEWEST],
    ids=lambda peer: farm.label(peer, "stdio"),
)
async def test_a_server_that_gets_the_probe_and_initialize_at_once(
    peer: ServerPeer, stage: Stage
) -> None:
    """As behind a program that reads for a server while it starts. Whatever the server makes of it,
    it is started once, and used in the revision that its answers have."""
    async with asyncio.timeout(SECONDS), stage.served(peer, "stdio") as reach:
        command = [sys.executable, "-c", READS_AHEAD, *reach.command]
        async with Client(Stdio(command, env=dict(reach.env or {}))) as client:
            await offered(client, peer.offer, stage)
            tools = await client.send(
                Exchange("tools/list", t.ListToolsRequestParams(), client.caller)
            )
            assert isinstance(tools, t.ListToolsResult)
            assert (tools.ttl_ms is not None) is (client.revision == NEWEST)


def _sdk_servers() -> list[ServerPeer]:
    """Servers of the official SDKs and of FastMCP."""
    return [peer for peer in farm.SERVERS if peer.name in (farm.SDK, farm.TS, "FastMCP")]


def _known_faults(peer: ServerPeer, road: str) -> set[str]:
    """The faults that an SDK really has over a transport."""
    if road == "sse":
        return {"legacy-sse"}
    if road == "stdio":
        ends = {"probe-ends-server"} if "ends at a request" in peer.remark else set()
        stays = {"stays-running"} if (peer.name, peer.version) == (farm.SDK, "1.6.0") else set()
        return ends | stays  # 1.6.0 does not end with its stdin
    if peer.name == farm.SDK:
        old = {"redirect-same-host", "origin-unchecked", "unknown-session", "session-end"}
        return old if peer.year < 2026 else set()
    unknown = {"unknown-session"} if peer.name == farm.TS and peer.version < "2" else set()
    return {"origin-unchecked"} | unknown


@rows(_sdk_servers())
async def test_doctor(peer: ServerPeer, road: str, stage: Stage) -> None:
    """The doctor raises no error and no warning but the faults that an SDK really has."""
    stays = "stays-running" in _known_faults(peer, road)
    options = ExamineOptions(
        timeout=SECONDS,
        slow_seconds=SECONDS,
        exit_seconds=2 if stays else 60,
        keep_alive_seconds=0.2,
    )
    async with asyncio.timeout(SECONDS), stage.served(peer, road) as reach:
        options = msgspec.structs.replace(options, env=dict(reach.env or {}))
        report = await examine(reach.url or list(reach.command), options)
    raised = {found.rule for found in report.diagnostics if found.severity != "note"}
    if "session-end" in _known_faults(peer, road) and "opening-fails" in raised:
        raised ^= {"session-end", "opening-fails"}  # it breaks a moment after the session's end
    assert raised == _known_faults(peer, road), msgspec.json.encode(report).decode()


@rows(farm.SERVERS)
async def test_command(peer: ServerPeer, road: str, stage: Stage) -> None:
    """Our command, in its default mode: `interlock list` shows the tools, `interlock call` the
    answers, and the exit code says which calls failed."""
    async with asyncio.timeout(SECONDS), stage.served(peer, road) as reach:
        url = [reach.url] if reach.url else []
        code, out, err = await command("list", "--json", *url, *reach.words)
        assert code == 0, (out, err)
        found = json.loads(out)
        slow = {R4} if peer.revisions[road] == NEWEST else set()  # as a slow server agrees
        assert found["revision"] in {peer.revisions[road], *slow}
        assert set(peer.offer.listed) <= {tool["name"] for tool in found["tools"]}
        bare = next((call for call in peer.offer.calls if not call.arguments), None)
        failing = next((call for call in peer.offer.calls if call.fails), None)
        for call in filter(None, (bare, failing)):
            arguments = inside(json.dumps(dict(call.arguments)), stage)
            code, out, err = await command(
                "call", *url, call.tool, "--arguments", arguments, *reach.words
            )
            assert (code in (1, 3)) is call.fails, (call, code, out, err)
            assert inside(call.says, stage).lower() in (out + err).lower(), (call, out, err)


async def command(*words: str) -> tuple[int, str, str]:
    """Run our command to its end: its exit code, and what it wrote."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "interlock",
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
    )
    try:
        out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize(
    "peer, road",
    [(peer, "stdio") for peer in farm.SERVERS if peer.host],
    ids=[farm.label(peer, "stdio") for peer in farm.SERVERS if peer.host],
)
async def test_host(peer: ServerPeer, road: str, stage: Stage) -> None:
    """Our host starts the server as a configuration names it, and a model calls each of its tools
    that the row names, without arguments too."""
    program, *words = stage.filled(peer, peer.start[road])
    entry = Entry(id="it", command=(program, *words), env=stage.environment(peer))
    calls = [call for call in peer.offer.calls if call.tool in peer.offer.listed]
    script = [
        said(f"it__{call.tool}", **json.loads(inside(json.dumps(dict(call.arguments)), stage)))
        for call in calls
    ]
    async with scene({"it": entry}, *script, "done", policy=ALLOW, patience=SECONDS) as one:
        await one.state("it", "up")
        await one.host.session().say("Go on.")
        ended = one.of(CallEnded)
        assert len(ended) == len(calls)
        for call, event in zip(calls, ended, strict=True):
            result = event.result
            assert (result is None or bool(result.is_error)) is call.fails, event
            text = event.error if result is None else result.text
            assert result is None or inside(call.says, stage).lower() in text.lower(), event


# -- clients -----------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def everything(road: str) -> AsyncIterator[dict[str, Any]]:
    """`interlock serve everything` over a transport, in the words of the client programs."""
    if road == "stdio":
        yield {"command": EVERYTHING}
        return
    port = free_port()
    listening = [*EVERYTHING, "--http", f"127.0.0.1:{port}", "--serve-legacy-sse"]
    async with on_the_web(listening, port):
        yield {"url": f"http://127.0.0.1:{port}{farm.PATHS[road]}", "road": road}


def ours(target: Mapping[str, Any]) -> Client:
    """Our own client for the same server."""
    if "command" in target:
        return Client(Stdio(target["command"]))
    return Client(Http(target["url"]) if target["road"] == "http" else target["url"])


async def walked(client: Driver, listed: set[str], without: Words = (), lossy: bool = False) -> str:
    """Lead a client through our server; return what the server says of who asks."""
    tools = (await client.do("list_tools")).result["tools"]
    assert {tool["name"] for tool in tools} == listed
    assert len(tools) == len(listed)
    assert "3" in (await client.call("add", {"a": 1, "b": 2})).text
    failed = await client.call("fail")
    assert failed.result["isError"]
    assert "This was meant to fail." in failed.text
    read = await client.do("read", uri="everything://docs/readme.md")
    assert "everything" in json.dumps(read.result).lower()
    prompt = await client.do("prompt", name="repeat", arguments={"word": "ha", "times": "3"})
    assert "ha ha ha" in json.dumps(prompt.result)
    if "progress" not in without:
        counted = await client.do("call", name="count_up", arguments={"to": 3}, progress=True)
        assert "Counted to 3." in counted.text
        reported = [step[0] for step in counted.result["reported"]]
        assert set(reported) <= {1, 2, 3}
        assert lossy or reported == [1, 2, 3]
    return (await client.call("who_am_i")).text


@rows(farm.CLIENTS)
async def test_client(peer: ClientPeer, road: str, stage: Stage) -> None:
    """A client of others and our server: the whole list, calls with and without arguments, an
    error, a resource, a prompt and progress, in the revision that the row says."""
    async with asyncio.timeout(SECONDS), everything(road) as target:
        async with ours(target) as client:
            listed = {tool.name for tool in await client.list_tools()}
        program = stage.filled(peer, peer.program)
        async with led(program, mode=peer.mode, log_level=None, **target) as driver:
            who = await walked(driver, listed, peer.without, road in peer.lossy)
        assert peer.revisions[road] in who


# -- bridges -----------------------------------------------------------------------------------

NEWEST_1 = next(peer for peer in farm.CLIENTS if peer.lock == "python-1")
THEIRS = next(peer for peer in farm.SERVERS if peer.lock == "python-1")


_BRIDGE = (sys.executable, "-m", "interlock", "bridge")
OURS = tuple(
    farm.bridge(
        "interlock", "", 2026, "python-1", "mcp", behind, front, farm.R5, (*_BRIDGE, *words)
    )
    for behind, front, words in (
        ("stdio", "http", ("--http", "127.0.0.1:{port}", "--", "{words}")),
        ("http", "stdio", ("{url}",)),
        ("sse", "stdio", ("{url}", "--legacy-sse")),
        ("sse", "http", ("{url}", "--legacy-sse", "--http", "127.0.0.1:{port}")),
    )
)
"""Our own bridge, which has to pass what the others are measured by."""


@contextlib.asynccontextmanager
async def bridged(peer: BridgePeer, stage: Stage, behind: Reach) -> AsyncIterator[dict[str, Any]]:
    """A bridge before a server, in the words of the client programs."""
    port = free_port()
    more = {"port": str(port)}
    words = [*behind.command]
    more |= {"url": behind.url, "command": shlex.join(words)}
    command: list[str] = []
    for word in peer.start:
        command += words if word == "{words}" else stage.filled(peer, [word], **more)
    if peer.in_front == "stdio":
        yield {"command": command}
        return
    async with on_the_web(command, port, env=stage.environment(peer)):
        yield {
            "url": f"http://127.0.0.1:{port}{farm.PATHS[peer.in_front]}",
            "road": peer.in_front,
        }


@rows((*farm.BRIDGES, *OURS))
async def test_bridge_to_theirs(peer: BridgePeer, road: str, stage: Stage) -> None:
    """Our client, in its default mode, reaches a server of others through the bridge."""
    async with (
        asyncio.timeout(SECONDS),
        stage.served(THEIRS, peer.behind) as behind,
        bridged(peer, stage, behind) as target,
        ours(target) as client,
    ):
        assert client.revision == peer.revisions[road]
        await offered(client, THEIRS.offer, stage, peer.lossy)


@rows((*farm.BRIDGES, *OURS))
async def test_bridge_to_ours(peer: BridgePeer, road: str, stage: Stage) -> None:
    """A client of others reaches our server through the bridge."""
    async with asyncio.timeout(SECONDS), everything(peer.behind) as target:
        async with ours(target) as client:
            listed = {tool.name for tool in await client.list_tools()}
        behind = Reach(tuple(target.get("command", ())), url=target.get("url", ""))
        program = stage.filled(NEWEST_1, NEWEST_1.program)
        async with (
            bridged(peer, stage, behind) as before,
            led(program, mode="legacy", log_level=None, **before) as driver,
        ):
            await walked(driver, listed, ("progress",) if peer.lossy else ())
