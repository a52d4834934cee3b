"""The compatibility farm: third-party servers, clients and bridges of each year, as one table.

    python -m tests.interop.farm            # run every row, and print the table with the results
    python -m tests.interop.farm --facts    # print the rows alone
    python -m tests.interop.farm --write    # write the rows into docs/guide/compatibility.md

A new peer is one row here. `scripts/peers.py` and a lock describe its installation; a row may name
a small program in `tests/interop/peers/`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "guide" / "compatibility.md"
BEGIN = "<!-- the farm's table begins -->"
END = "<!-- the farm's table ends -->"

R1 = "2024-11-05"
R2 = "2025-03-26"
R3 = "2025-06-18"
R4 = "2025-11-25"
R5 = "2026-07-28"
ROADS = {"stdio": "stdio", "http": "Streamable HTTP", "sse": "HTTP+SSE"}
PATHS = {"http": "/mcp", "sse": "/sse"}

Words = tuple[str, ...]
"""A command. `{python}`, `{node}`, `{place}` (where the peer is installed), `{modules}` (its
node_modules), `{drivers}` (`tests/interop/peers`), `{folder}` (a folder with two files and a
repository), `{site}` (a web site on loopback), `{chromium}` and `{port}` are filled in."""


@dataclass(frozen=True)
class Call:
    """A tool call and the answer that is expected.

    `says` is a part of the answer's text, in which `{folder}` is replaced. `fails` means that the
    answer is an error, of the tool or of the protocol. `progress` is the progress that the tool
    reports.
    """

    tool: str
    arguments: Mapping[str, Any]
    says: str
    fails: bool = False
    progress: tuple[float, ...] = ()


@dataclass(frozen=True)
class Offer:
    """The features of a server that a row checks.

    `listed` are tools that must be in its list, `read` are resources and part of their text, and
    `prompt` is a prompt, its arguments and part of its text.
    """

    listed: Words
    calls: tuple[Call, ...]
    read: tuple[tuple[str, str], ...] = ()
    prompt: tuple[str, Mapping[str, str], str] | None = None


@dataclass(frozen=True)
class Peer:
    """The common fields of every row.

    `lock` is the name in `scripts/peers.py`, `package` the package in that lock that determines the
    version, and `revisions` has the negotiated revision for each transport.
    """

    name: str
    version: str
    year: int
    lock: str
    package: str
    revisions: Mapping[str, str]
    remark: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class ServerPeer(Peer):
    """A third-party server, for our client, our command and our host.

    `start` has the command for each transport. `host` means that our host is tested with it too,
    and `needs` names other peers from `scripts/peers.py`. `aside` are the transports on which it
    sends progress on another stream than the answer, so that a quick answer can overtake it.
    """

    start: Mapping[str, Words]
    offer: Offer
    env: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    name_of_host: str = field(default="127.0.0.1", kw_only=True)
    host: bool = field(default=False, kw_only=True)
    needs: Words = field(default=(), kw_only=True)
    aside: Words = field(default=(), kw_only=True)


@dataclass(frozen=True)
class ClientPeer(Peer):
    """A third-party client, for our server: the program that drives it, and its abilities.

    `mode` is passed to the program. `without` lists abilities that the client lacks: "progress".
    `lossy` are the transports on which it drops progress that it reads together with the answer.
    """

    program: Words
    mode: str = field(default="auto", kw_only=True)
    without: Words = field(default=(), kw_only=True)
    lossy: Words = field(default=(), kw_only=True)


@dataclass(frozen=True)
class BridgePeer(Peer):
    """A bridge between transports: from `behind`, the server's transport, to the transports in
    `revisions`.

    `start` is its command, in which `{url}`, `{command}` (one word) or `{words}` is the server
    behind it. `lossy` means that it loses progress, or sends it on another stream than the answer.
    """

    behind: str
    start: Words
    in_front: str
    lossy: bool = field(default=False, kw_only=True)


# -- the features of servers -------------------------------------------------------------------

ADD = Call("add", {"a": 1, "b": 2}, "3")
SMALL = Offer(
    listed=("add", "touch", "fail", "count"),
    calls=(
        ADD,
        Call("touch", {}, "touched"),
        Call("fail", {}, "It is broken.", fails=True),
        Call("count", {"to": 3}, "counted to 3", progress=(1, 2, 3)),
    ),
    read=(("note://board", "Nothing new."), ("note://people/Ada", "This is Ada.")),
    prompt=("greet", {"name": "Ada"}, "Greet Ada."),
)
"""`server_small.*`, and the catalogue that `server_*` of the newest SDKs serve."""

MEMORY = Offer(
    listed=("create_entities", "read_graph", "search_nodes"),
    calls=(
        Call("read_graph", {}, '"entities"'),
        Call(
            "create_entities",
            {"entities": [{"name": "Ada", "entityType": "person", "observations": ["counts"]}]},
            "",
        ),
        Call("search_nodes", {"query": "Ada"}, "counts"),
        Call("delete_nothing", {}, "delete_nothing", fails=True),
    ),
)
FILES = Offer(
    listed=("read_file", "list_directory", "list_allowed_directories"),
    calls=(
        Call("list_allowed_directories", {}, "{folder}"),
        Call("read_file", {"path": "{folder}/notes.txt"}, "roses"),
        Call("read_file", {"path": "/etc/hostname"}, "denied", fails=True),
    ),
)
EVERYTHING_OLD = Offer(
    listed=("echo", "add", "longRunningOperation", "getTinyImage"),
    calls=(
        Call("echo", {"message": "hello"}, "hello"),
        ADD,
        Call("getTinyImage", {}, "tiny image"),
        Call(
            "longRunningOperation",
            {"duration": 0.2, "steps": 2},
            "completed",
            progress=(1, 2),
        ),
        Call("echo", {"message": 1}, "message", fails=True),
    ),
    read=(("test://static/resource/1", "Resource 1"),),
    prompt=("complex_prompt", {"temperature": "0.5", "style": "plain"}, "temperature=0.5"),
)
EVERYTHING = Offer(
    listed=("echo", "get-sum", "trigger-long-running-operation", "get-tiny-image"),
    calls=(
        Call("echo", {"message": "hello"}, "hello"),
        Call("get-sum", {"a": 1, "b": 2}, "3"),
        Call("get-tiny-image", {}, "image"),
        Call(
            "trigger-long-running-operation",
            {"duration": 0.2, "steps": 2},
            "completed",
            progress=(1, 2),
        ),
        Call("get-sum", {"a": "one", "b": 2}, "number", fails=True),
    ),
    prompt=("args-prompt", {"city": "Oslo"}, "Oslo"),
)


def of(kind: str, *transports: str) -> dict[str, Words]:
    """The commands of `server_small.*`: `kind` is "py", or the SDK's folder in node_modules."""
    start = (
        ("{python}", "{drivers}/server_small.py")
        if kind == "py"
        else ("{node}", "{place}/server_small.mjs", kind)
    )
    return web(start, *transports)


def web(start: Words, *transports: str) -> dict[str, Words]:
    """The commands of one of our programs: over stdio, or with a kind of transport and a port."""
    kinds: dict[str, Words] = {
        "stdio": (),
        "http": ("streamable-http", "{port}"),
        "sse": ("sse", "{port}"),
    }
    return {name: (*start, *kinds[name]) for name in transports}


def spoken(revision: str, *transports: str) -> dict[str, str]:
    """The same revision over each transport."""
    return dict.fromkeys(transports, revision)


def npm(name: str, *arguments: str) -> dict[str, Words]:
    """The command of a server from npm, over stdio."""
    return {"stdio": ("{node}", "{modules}/" + name + "/dist/index.js", *arguments)}


SDK = "Python SDK"
TS = "TypeScript SDK"

SERVERS: tuple[ServerPeer, ...] = (
    ServerPeer(
        SDK,
        "1.2.0",
        2025,
        "python-1.2",
        "mcp",
        spoken(R1, "stdio", "sse"),
        of("py", "stdio", "sse"),
        SMALL,
        host=True,
        remark="ends at a request before the handshake",
    ),
    ServerPeer(
        SDK,
        "1.6.0",
        2025,
        "python-1.6",
        "mcp",
        spoken(R1, "stdio", "sse"),
        of("py", "stdio", "sse"),
        SMALL,
        remark="ends at a request before the handshake",
    ),
    ServerPeer(
        SDK,
        "1.8.1",
        2025,
        "python-1.8",
        "mcp",
        spoken(R1, "stdio", "http", "sse"),
        of("py", "stdio", "http", "sse"),
        SMALL,
        aside=("http",),
        remark="ends at a request before the handshake",
    ),
    ServerPeer(
        SDK,
        "1.9.4",
        2025,
        "python-1.9",
        "mcp",
        spoken(R2, "stdio", "http", "sse"),
        of("py", "stdio", "http", "sse"),
        SMALL,
        aside=("http",),
        remark="over Streamable HTTP, a quick answer overtakes progress",
    ),
    ServerPeer(
        SDK,
        "1.30.0",
        2026,
        "python-1",
        "mcp",
        spoken(R4, "stdio", "http", "sse"),
        of("py", "stdio", "http", "sse"),
        SMALL,
    ),
    ServerPeer(
        SDK,
        "2.3.0",
        2026,
        "python-2",
        "mcp",
        spoken(R5, "stdio", "http"),
        web(("{python}", "{drivers}/server_python_2.py"), "stdio", "http"),
        SMALL,
    ),
    ServerPeer(
        "FastMCP",
        "2.14.7",
        2026,
        "fastmcp-2",
        "fastmcp",
        spoken(R4, "stdio", "http", "sse"),
        of("py", "stdio", "http", "sse"),
        SMALL,
    ),
    ServerPeer(
        "FastMCP",
        "3.4.10",
        2026,
        "fastmcp-3",
        "fastmcp",
        spoken(R4, "stdio", "http", "sse"),
        of("py", "stdio", "http", "sse"),
        SMALL,
    ),
    ServerPeer(
        "FastMCP",
        "4.1.2",
        2026,
        "fastmcp",
        "fastmcp",
        {"stdio": R5, "http": R5, "sse": R4},
        of("py", "stdio", "http", "sse"),
        SMALL,
        host=True,
    ),
    ServerPeer(
        TS,
        "0.6.0",
        2024,
        "npm-old",
        "sdk-0.6",
        spoken(R1, "stdio", "sse"),
        of("sdk-0.6", "stdio", "sse"),
        SMALL,
        host=True,
        remark="its tools refuse a call without arguments, as was usual then",
    ),
    ServerPeer(
        TS,
        "1.0.4",
        2024,
        "npm-old",
        "sdk-1.0",
        spoken(R1, "stdio", "sse"),
        of("sdk-1.0", "stdio", "sse"),
        SMALL,
    ),
    ServerPeer(
        TS,
        "1.9.0",
        2025,
        "npm-old",
        "sdk-1.9",
        spoken(R1, "stdio", "sse"),
        of("sdk-1.9", "stdio", "sse"),
        SMALL,
    ),
    ServerPeer(
        TS,
        "1.12.3",
        2025,
        "npm-old",
        "sdk-1.12",
        spoken(R2, "stdio", "http", "sse"),
        of("sdk-1.12", "stdio", "http", "sse"),
        SMALL,
    ),
    ServerPeer(
        TS,
        "1.32.2",
        2026,
        "typescript",
        "@modelcontextprotocol/sdk",
        spoken(R4, "stdio", "http", "sse"),
        of("@modelcontextprotocol/sdk", "stdio", "http", "sse"),
        SMALL,
    ),
    ServerPeer(
        TS,
        "2.4.0",
        2026,
        "typescript",
        "@modelcontextprotocol/server",
        spoken(R5, "stdio", "http"),
        web(("{node}", "{place}/server_typescript_2.mjs"), "stdio", "http"),
        SMALL,
    ),
    ServerPeer(
        "server-memory",
        "0.6.2",
        2024,
        "npm-old",
        "memory-0.6",
        spoken(R1, "stdio"),
        npm("memory-0.6"),
        MEMORY,
        host=True,
        remark="keeps its graph beside its program",
    ),
    ServerPeer(
        "server-memory",
        "2025.4.25",
        2025,
        "npm-old",
        "memory-2025",
        spoken(R1, "stdio"),
        npm("memory-2025"),
        MEMORY,
        env={"MEMORY_FILE_PATH": "{folder}/memory.json"},
    ),
    ServerPeer(
        "server-memory",
        "2026.8.31",
        2026,
        "servers-npm",
        "@modelcontextprotocol/server-memory",
        spoken(R4, "stdio"),
        npm("@modelcontextprotocol/server-memory"),
        MEMORY,
        env={"MEMORY_FILE_PATH": "{folder}/memory.json"},
    ),
    ServerPeer(
        "server-filesystem",
        "0.6.2",
        2024,
        "npm-old",
        "filesystem-0.6",
        spoken(R1, "stdio"),
        npm("filesystem-0.6", "{folder}"),
        FILES,
    ),
    ServerPeer(
        "server-filesystem",
        "2025.3.28",
        2025,
        "npm-old",
        "filesystem-2025",
        spoken(R1, "stdio"),
        npm("filesystem-2025", "{folder}"),
        FILES,
    ),
    ServerPeer(
        "server-filesystem",
        "2026.8.31",
        2026,
        "servers-npm",
        "@modelcontextprotocol/server-filesystem",
        spoken(R4, "stdio"),
        npm("@modelcontextprotocol/server-filesystem", "{folder}"),
        FILES,
    ),
    ServerPeer(
        "server-everything",
        "0.6.2",
        2024,
        "npm-old",
        "everything-0.6",
        spoken(R1, "stdio"),
        npm("everything-0.6"),
        EVERYTHING_OLD,
    ),
    ServerPeer(
        "server-everything",
        "2025.5.12",
        2025,
        "npm-old",
        "everything-2025",
        spoken(R4, "stdio"),
        npm("everything-2025"),
        EVERYTHING_OLD,
    ),
    ServerPeer(
        "server-everything",
        "2026.8.31",
        2026,
        "servers-npm",
        "@modelcontextprotocol/server-everything",
        spoken(R4, "stdio", "http", "sse"),
        {
            name: (
                "{node}",
                "{modules}/@modelcontextprotocol/server-everything/dist/index.js",
                kind,
            )
            for name, kind in (("stdio", "stdio"), ("http", "streamableHttp"), ("sse", "sse"))
        },
        EVERYTHING,
        env={"PORT": "{port}"},
        host=True,
    ),
    ServerPeer(
        "mcp-server-sqlite",
        "2025.4.25",
        2025,
        "servers-archived",
        "mcp-server-sqlite",
        spoken(R4, "stdio"),
        {
            "stdio": (
                "{python}",
                "-c",
                "from mcp_server_sqlite import main; main()",
                "--db-path",
                "{folder}/shop.db",
            )
        },
        Offer(
            listed=("read_query", "list_tables", "create_table", "append_insight"),
            calls=(
                Call("list_tables", {}, "[]"),
                Call("create_table", {"query": "CREATE TABLE beds (name TEXT)"}, "created"),
                Call("list_tables", {}, "beds"),
                Call("read_query", {"query": "SELECT * FROM nowhere"}, "no such table"),
                Call("read_query", {}, "query", fails=True),
            ),
            read=(("memo://insights", "No business insights"),),
            prompt=("mcp-demo", {"topic": "roses"}, "roses"),
        ),
        host=True,
        remark="lists resources, and knows no templates of them",
    ),
    ServerPeer(
        "mcp-server-git",
        "2026.10.19",
        2026,
        "servers",
        "mcp-server-git",
        spoken(R5, "stdio"),
        {"stdio": ("{python}", "-m", "mcp_server_git")},
        Offer(
            listed=("git_status", "git_log"),
            calls=(
                Call("git_status", {"repo_path": "{folder}/repository"}, "branch"),
                Call("git_log", {"repo_path": "{folder}/repository"}, "A first commit"),
                Call("git_show", {"repo_path": "{folder}", "revision": "x"}, "", fails=True),
            ),
        ),
    ),
    ServerPeer(
        "mcp-server-time",
        "2026.10.19",
        2026,
        "servers",
        "mcp-server-time",
        spoken(R5, "stdio"),
        {"stdio": ("{python}", "-m", "mcp_server_time")},
        Offer(
            listed=("get_current_time", "convert_time"),
            calls=(
                Call("get_current_time", {"timezone": "UTC"}, "UTC"),
                Call("get_current_time", {"timezone": "Nowhere"}, "Nowhere", fails=True),
            ),
        ),
    ),
    ServerPeer(
        "mcp-server-fetch",
        "2026.10.24",
        2026,
        "servers",
        "mcp-server-fetch",
        spoken(R5, "stdio"),
        {"stdio": ("{python}", "-m", "mcp_server_fetch", "--allow-private-ips")},
        Offer(
            listed=("fetch",),
            calls=(
                Call("fetch", {"url": "{site}/page"}, "A page for peers"),
                Call("fetch", {"url": "{site}/none"}, "404", fails=True),
            ),
            prompt=("fetch", {"url": "{site}/page"}, "A page for peers"),
        ),
        env={"PATH": "{folder}"},
    ),
    ServerPeer(
        "@playwright/mcp",
        "0.0.83",
        2026,
        "npm-playwright",
        "@playwright/mcp",
        spoken(R4, "stdio", "http", "sse"),
        {
            name: (
                "{node}",
                "{modules}/@playwright/mcp/cli.js",
                "--headless",
                "--no-sandbox",
                "--isolated",
                "--executable-path",
                "{chromium}",
                "--output-dir",
                "{folder}",
                *(() if name == "stdio" else ("--port", "{port}")),
            )
            for name in ("stdio", "http", "sse")
        },
        Offer(
            listed=("browser_navigate", "browser_snapshot", "browser_close"),
            calls=(
                Call("browser_navigate", {"url": "{site}/page"}, "A page for peers"),
                Call("browser_snapshot", {}, "Page URL"),
                Call("browser_click", {"target": "e99"}, "e99", fails=True),
                Call("browser_close", {}, ""),
            ),
        ),
        name_of_host="localhost",
        needs=("chromium",),
        remark="drives a real Chromium",
    ),
    ServerPeer(
        "kubernetes-mcp-server",
        "0.0.67",
        2026,
        "npm-kubernetes",
        "kubernetes-mcp-server-linux-amd64",
        spoken(R5, "stdio"),
        {
            "stdio": (
                "{modules}/kubernetes-mcp-server-linux-amd64/bin/kubernetes-mcp-server-linux-amd64",
                "--kubeconfig",
                "{folder}/kubeconfig",
            )
        },
        Offer(
            listed=("configuration_view", "pods_list"),
            calls=(
                Call("configuration_view", {}, "nowhere"),
                Call("pods_list", {}, "127.0.0.1:9", fails=True),
            ),
            prompt=("cluster-health-check", {}, "Cluster Health Check"),
        ),
        remark="in Go, with the official Go SDK",
    ),
    ServerPeer(
        "mcp-grafana",
        "2.1.1",
        2026,
        "grafana",
        "mcp-grafana",
        {"stdio": R5, "http": R5, "sse": R4},
        {
            "stdio": ("{python}", "{place}/bin/mcp-grafana"),
            "http": (
                "{python}",
                "{place}/bin/mcp-grafana",
                "-t",
                "streamable-http",
                "--address",
                "127.0.0.1:{port}",
            ),
            "sse": (
                "{python}",
                "{place}/bin/mcp-grafana",
                "-t",
                "sse",
                "--address",
                "127.0.0.1:{port}",
            ),
        },
        Offer(
            listed=("search_dashboards", "list_datasources"),
            calls=(Call("list_datasources", {}, "127.0.0.1:9", fails=True),),
        ),
        env={"GRAFANA_URL": "http://127.0.0.1:9"},
        remark="in Go, with mcp-go",
    ),
)


def client(name: str, *more: str) -> Words:
    """The command of one of our programs that drive a client."""
    if name.endswith(".mjs"):
        return ("{node}", "{place}/" + name, *more)
    return ("{python}", "{drivers}/" + name)


CLIENTS: tuple[ClientPeer, ...] = (
    ClientPeer(
        SDK,
        "1.2.0",
        2025,
        "python-1.2",
        "mcp",
        spoken(R1, "stdio", "sse"),
        client("client_python_old.py"),
        without=("progress",),
        remark="audio reaches it as text",
    ),
    ClientPeer(
        SDK,
        "1.6.0",
        2025,
        "python-1.6",
        "mcp",
        spoken(R1, "stdio", "sse"),
        client("client_python_old.py"),
        without=("progress",),
    ),
    ClientPeer(
        SDK,
        "1.8.1",
        2025,
        "python-1.8",
        "mcp",
        spoken(R1, "stdio", "http", "sse"),
        client("client_python_old.py"),
        without=("progress",),
    ),
    ClientPeer(
        SDK,
        "1.9.4",
        2025,
        "python-1.9",
        "mcp",
        spoken(R2, "stdio", "http", "sse"),
        client("client_python_old.py"),
    ),
    ClientPeer(
        SDK,
        "1.30.0",
        2026,
        "python-1",
        "mcp",
        spoken(R4, "stdio", "http", "sse"),
        client("client_python_1.py"),
    ),
    ClientPeer(
        SDK,
        "2.3.0",
        2026,
        "python-2",
        "mcp",
        {"stdio": R5, "http": R5},
        client("client_python_2.py"),
    ),
    ClientPeer(
        "FastMCP",
        "2.14.7",
        2026,
        "fastmcp-2",
        "fastmcp",
        spoken(R4, "stdio", "http", "sse"),
        client("client_fastmcp.py"),
    ),
    ClientPeer(
        "FastMCP",
        "3.4.10",
        2026,
        "fastmcp-3",
        "fastmcp",
        spoken(R4, "stdio", "http", "sse"),
        client("client_fastmcp.py"),
    ),
    ClientPeer(
        "FastMCP",
        "4.1.2",
        2026,
        "fastmcp",
        "fastmcp",
        {"stdio": R5, "http": R5, "sse": R4},
        client("client_fastmcp.py"),
    ),
    ClientPeer(
        TS,
        "0.6.0",
        2024,
        "npm-old",
        "sdk-0.6",
        spoken(R1, "stdio", "sse"),
        client("client_typescript_old.mjs", "sdk-0.6"),
        lossy=("sse",),
        remark="over HTTP+SSE, drops progress that it reads together with the answer",
    ),
    ClientPeer(
        TS,
        "1.0.4",
        2024,
        "npm-old",
        "sdk-1.0",
        spoken(R1, "stdio", "sse"),
        client("client_typescript_old.mjs", "sdk-1.0"),
        lossy=("sse",),
        remark="over HTTP+SSE, drops progress that it reads together with the answer",
    ),
    ClientPeer(
        TS,
        "1.9.0",
        2025,
        "npm-old",
        "sdk-1.9",
        spoken(R1, "stdio", "sse"),
        client("client_typescript_old.mjs", "sdk-1.9"),
        lossy=("sse",),
        remark="over HTTP+SSE, drops progress that it reads together with the answer",
    ),
    ClientPeer(
        TS,
        "1.12.3",
        2025,
        "npm-old",
        "sdk-1.12",
        spoken(R2, "stdio", "http", "sse"),
        client("client_typescript_old.mjs", "sdk-1.12"),
        lossy=("sse",),
        remark="over HTTP+SSE, drops progress that it reads together with the answer",
    ),
    ClientPeer(
        TS,
        "1.32.2",
        2026,
        "typescript",
        "@modelcontextprotocol/sdk",
        spoken(R4, "stdio", "http", "sse"),
        client("client_typescript_1.mjs"),
        lossy=("sse",),
        remark="over HTTP+SSE, drops progress that it reads together with the answer",
    ),
    ClientPeer(
        TS,
        "2.4.0",
        2026,
        "typescript",
        "@modelcontextprotocol/client",
        {"stdio": R5, "http": R5},
        client("client_typescript_2.mjs"),
    ),
    ClientPeer(
        TS,
        "2.4.0",
        2026,
        "typescript",
        "@modelcontextprotocol/client",
        spoken(R4, "stdio", "http", "sse"),
        client("client_typescript_2.mjs"),
        mode="legacy",
        lossy=("sse",),
        remark=(
            "with the handshake; over HTTP+SSE, drops progress that it reads together with the "
            "answer"
        ),
    ),
    ClientPeer(
        "LangChain adapters",
        "0.3.2",
        2026,
        "langchain",
        "langchain-mcp-adapters",
        spoken(R4, "stdio", "http", "sse"),
        client("client_langchain.py"),
    ),
    ClientPeer(
        "Pydantic AI",
        "2.68.0",
        2026,
        "pydantic-ai",
        "pydantic-ai-slim",
        {"stdio": R5, "http": R5, "sse": R4},
        client("client_pydantic_ai.py"),
        without=("progress",),
    ),
    ClientPeer(
        "OpenAI Agents",
        "0.24.0",
        2026,
        "openai-agents",
        "openai-agents",
        spoken(R5, "stdio", "http", "sse"),
        client("client_openai_agents.py"),
        without=("progress",),
    ),
    ClientPeer(
        "LlamaIndex",
        "0.6.0",
        2026,
        "llama-index",
        "llama-index-tools-mcp",
        spoken(R4, "stdio", "http", "sse"),
        client("client_llama_index.py"),
        remark="reads only the first page of a list, and cannot use boolean schemas",
    ),
)

_GATEWAY = ("{node}", "{modules}/supergateway/dist/index.js", "--logLevel", "none")
_GATEWAY_3 = ("{node}", "{modules}/supergateway-3/dist/index.js", "--logLevel", "none")
_REMOTE = ("{node}", "{modules}/mcp-remote/dist/proxy.js", "{url}", "--allow-http")
_PROXY = ("{python}", "-m", "mcp_proxy", "--pass-environment")


def bridge(
    name: str,
    version: str,
    year: int,
    lock: str,
    package: str,
    behind: str,
    in_front: str,
    revision: str,
    start: Words,
    remark: str = "",
    lossy: bool = False,
) -> BridgePeer:
    """A row of the bridges."""
    return BridgePeer(
        name,
        version,
        year,
        lock,
        package,
        {in_front: revision},
        behind,
        start,
        in_front,
        remark=remark,
        lossy=lossy,
    )


BRIDGES: tuple[BridgePeer, ...] = (
    *(
        bridge(
            "supergateway",
            version,
            year,
            "npm-bridges",
            package,
            behind,
            in_front,
            R4,
            (*program, *arguments),
            remark,
            lossy,
        )
        for version, year, package, program in (
            ("3.4.3", 2025, "supergateway-3", _GATEWAY_3),
            ("4.0.0", 2026, "supergateway", _GATEWAY),
        )
        for behind, in_front, arguments, remark, lossy in (
            ("stdio", "sse", ("--stdio", "{command}", "--port", "{port}"), "", False),
            (
                "stdio",
                "http",
                (
                    "--stdio",
                    "{command}",
                    "--outputTransport",
                    "streamableHttp",
                    "--stateful",
                    "--port",
                    "{port}",
                ),
                "with sessions",
                version < "4",
            ),
            (
                "stdio",
                "http",
                (
                    "--stdio",
                    "{command}",
                    "--outputTransport",
                    "streamableHttp",
                    "--port",
                    "{port}",
                ),
                "without sessions",
                version < "4",
            ),
            ("sse", "stdio", ("--sse", "{url}"), "passes no progress on", True),
            (
                "http",
                "stdio",
                ("--streamableHttp", "{url}"),
                "opens its session at any request; passes no progress on",
                True,
            ),
        )
    ),
    bridge(
        "mcp-proxy",
        "0.13.0",
        2026,
        "mcp-proxy",
        "mcp-proxy",
        "stdio",
        "http",
        R4,
        (*_PROXY, "--port", "{port}", "--", "{words}"),
        "sends progress on another stream, which a quick answer overtakes",
        True,
    ),
    bridge(
        "mcp-proxy",
        "0.13.0",
        2026,
        "mcp-proxy",
        "mcp-proxy",
        "stdio",
        "sse",
        R4,
        (*_PROXY, "--port", "{port}", "--", "{words}"),
    ),
    bridge(
        "mcp-proxy",
        "0.13.0",
        2026,
        "mcp-proxy",
        "mcp-proxy",
        "http",
        "stdio",
        R4,
        (*_PROXY, "--transport", "streamablehttp", "{url}"),
    ),
    bridge(
        "mcp-proxy",
        "0.13.0",
        2026,
        "mcp-proxy",
        "mcp-proxy",
        "sse",
        "stdio",
        R4,
        (*_PROXY, "--transport", "sse", "{url}"),
    ),
    bridge(
        "mcp-remote",
        "0.15.1",
        2026,
        "npm-bridges",
        "mcp-remote",
        "http",
        "stdio",
        R4,
        (*_REMOTE, "--transport", "http-only"),
    ),
    bridge(
        "mcp-remote",
        "0.15.1",
        2026,
        "npm-bridges",
        "mcp-remote",
        "sse",
        "stdio",
        R4,
        (*_REMOTE, "--transport", "sse-only"),
    ),
)

ROLES: dict[str, Sequence[Peer]] = {"server": SERVERS, "client": CLIENTS, "bridge": BRIDGES}


# -- the table ---------------------------------------------------------------------------------


def one_by_one(peers: Sequence[Peer]) -> Iterator[tuple[Any, str]]:
    """Each row with each of its transports."""
    return ((peer, road) for peer in peers for road in peer.revisions)


def label(peer: Peer, road: str) -> str:
    """The name of the test of a row over a transport."""
    role = type(peer).__name__.removesuffix("Peer").lower()
    parts = [role, peer.name, peer.version]
    if isinstance(peer, BridgePeer):
        parts.append(f"{peer.behind} to")
    if isinstance(peer, ClientPeer) and peer.mode != "auto":
        parts.append(peer.mode)
    note = peer.remark if isinstance(peer, BridgePeer) and peer.remark.startswith("with") else ""
    return " ".join([*parts, road, *([note] if note else [])])


HEADINGS = ("peer", "version", "year", "role", "transport", "revision", "remark")


def facts() -> list[tuple[str, ...]]:
    """The rows, one for each transport: the cells of HEADINGS, and the name of its test."""
    return [
        (
            peer.name,
            peer.version,
            str(peer.year),
            role,
            f"{ROADS[peer.behind]} to {ROADS[road]}"
            if isinstance(peer, BridgePeer)
            else ROADS[road],
            peer.revisions[road],
            peer.remark,
            label(peer, road),
        )
        for role, peers in ROLES.items()
        for peer, road in one_by_one(peers)
    ]


def markdown() -> str:
    """The rows as a table of Markdown."""
    lines = [HEADINGS, ("---",) * len(HEADINGS), *(row[:-1] for row in facts())]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def page_with(table: str) -> str:
    """The guide's page with this table in its place."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    return f"{before}{BEGIN}\n\n{table}\n{END}{rest.split(END)[1]}"


def table(results: Mapping[str, str]) -> str:
    """The rows for printing, with their results by label if there are any."""
    headings = (*HEADINGS[:-1], *(("result",) if results else ()), HEADINGS[-1])
    rows = [
        (*row[:-2], *((results.get(row[-1], "did not run"),) if results else ()), row[-2])
        for row in facts()
    ]
    widths = [max(len(row[n]) for row in [headings, *rows]) for n in range(len(headings))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [headings, *rows]
    )


class Recorder:
    """A pytest plugin that keeps the outcome of each test of the farm, by its label."""

    def __init__(self) -> None:
        self.failed: dict[str, list[str]] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep which tests of a label failed, or were skipped."""
        test, _, name = report.nodeid.partition("::")[2].partition("[")
        failed = self.failed.setdefault(name.removesuffix("]"), [])
        if not report.passed:
            failed.append(f"{test.removeprefix('test_')}: {report.outcome}")


def run() -> dict[str, str]:
    """Run every row; return its result by label, "ok" or what failed."""
    import pytest  # imported late: printing the rows needs no pytest

    recorder = Recorder()
    options = [
        "-q",
        "--workers",
        "2",
        "--no-header",
        "-p",
        "no:warnings",
        "tests/interop/test_farm.py",
    ]
    pytest.main(options, plugins=[recorder])
    return {label: "; ".join(found) or "ok" for label, found in recorder.failed.items()}


def main(arguments: Sequence[str]) -> int:
    """Print the table, or write it into the guide; return 0 if no row failed."""
    if "--write" in arguments:
        PAGE.write_text(page_with(markdown()), encoding="utf-8")
        return 0
    results = {} if "--facts" in arguments else run()
    print(table(results))
    return 0 if all(result == "ok" for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
