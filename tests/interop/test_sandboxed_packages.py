"""`uvx` and `npx` in a sandbox: they install a server into a home folder of its own, from a package
index that they reach through the proxy, and start it.

The index is on this machine, at an address of the loopback that `NO_PROXY` does not name.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import io
import json
import shutil
import sys
import tarfile
import zipfile
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, Stdio, Unreachable
from interlock.sandbox import Sandbox
from scripts import peers
from tests.sandbox.cells import MECHANISMS, need

pytestmark = pytest.mark.interop

ADDRESS = "127.0.0.2"
PYTHON_SERVER = """
import json, sys

def answer(method):
    if method == "initialize":
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "tiny", "version": "1"}}
    if method == "tools/list":
        return {"tools": [{"name": "hello", "inputSchema": {"type": "object"}}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": "hello from python"}]}

def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            found = answer(message["method"])
            what = ({"result": found} if found else
                    {"error": {"code": -32601, "message": "unknown"}})
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **what}), flush=True)
"""
NODE_SERVER = """#!/usr/bin/env node
const results = {
  initialize: {
    protocolVersion: "2025-06-18",
    capabilities: { tools: {} },
    serverInfo: { name: "tiny", version: "1" },
  },
  "tools/list": { tools: [{ name: "hello", inputSchema: { type: "object" } }] },
  "tools/call": { content: [{ type: "text", text: "hello from node" }] },
};
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (id === undefined) return;
  const result = results[method];
  const answer = result ? { result } : { error: { code: -32601, message: "unknown" } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...answer })}\\n`);
});
"""


def wheel() -> bytes:
    """A wheel with the server as a program."""
    info = "tiny_server-1.0.dist-info"
    files = {
        "tiny_server.py": PYTHON_SERVER,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tiny-server\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\ntiny-server = tiny_server:main\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return made.getvalue()


def tarball() -> bytes:
    """An npm package with the server as a program."""
    manifest = {"name": "tiny-server", "version": "1.0.0", "bin": {"tiny-server": "tiny.js"}}
    files = {"package.json": json.dumps(manifest), "tiny.js": NODE_SERVER}
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(text)
            member.mode = 0o755
            archive.addfile(member, io.BytesIO(text.encode()))
    return made.getvalue()


def pages(url: str) -> dict[str, tuple[str, bytes]]:
    """The pages of both indexes at a URL, by path, with their content types."""
    package = tarball()
    name = "tiny_server-1.0-py3-none-any.whl"
    digest = base64.b64encode(hashlib.sha512(package).digest()).decode()
    version = {
        "name": "tiny-server",
        "version": "1.0.0",
        "bin": {"tiny-server": "tiny.js"},
        "dist": {"tarball": f"{url}/tiny.tgz", "integrity": f"sha512-{digest}"},
    }
    document = {
        "name": "tiny-server",
        "dist-tags": {"latest": "1.0.0"},
        "versions": {"1.0.0": version},
    }
    return {
        "/simple/tiny-server/": ("text/html", f'<a href="/{name}">{name}</a>'.encode()),
        f"/{name}": ("application/zip", wheel()),
        "/tiny-server": ("application/json", json.dumps(document).encode()),
        "/tiny.tgz": ("application/gzip", package),
    }


@contextlib.asynccontextmanager
async def index() -> AsyncIterator[tuple[str, list[str]]]:
    """Serve the indexes. Yields the URL, and the paths that were asked for."""
    asked: list[str] = []
    known: dict[str, tuple[str, bytes]] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        path = head.split(" ", 2)[1]
        asked.append(path)
        kind, body = known.get(path, ("", b""))
        status = "200 OK" if body else "404 Not Found"
        lines = [
            f"HTTP/1.1 {status}",
            f"Content-Type: {kind or 'text/plain'}",
            f"Content-Length: {len(body)}",
            "Connection: close",
        ]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        if not head.startswith("HEAD"):
            writer.write(body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, ADDRESS, 0) as listening:
        url = f"http://{ADDRESS}:{listening.sockets[0].getsockname()[1]}"
        known.update(pages(url))
        yield url, asked


def commands(installed: Callable[[str], Path]) -> Mapping[str, list[str]]:
    """The commands that install and start the server."""
    npx = shutil.which("npx", path=str(peers.node().parent))
    assert npx is not None
    return {
        "uvx": [str(installed("uv").with_name("uvx")), "tiny-server"],
        "npx": [npx, "-y", "tiny-server"],
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("program", ["uvx", "npx"])
async def test_a_package_is_installed_and_served(
    program: str, mechanism: Any, installed: Callable[[str], Path], tmp_path: Path
) -> None:
    """It comes through the proxy. Without the host it is not there."""
    need(mechanism)
    (tmp_path / "work").mkdir()
    async with index() as (url, asked):
        env = {
            "UV_INDEX_URL": f"{url}/simple/",
            "UV_PYTHON": sys.executable,
            "UV_PYTHON_DOWNLOADS": "never",
            "UV_NO_CONFIG": "1",
            "NPM_CONFIG_REGISTRY": url,
            "NPM_CONFIG_UPDATE_NOTIFIER": "false",
            "NPM_CONFIG_AUDIT": "false",
            "NPM_CONFIG_FETCH_RETRIES": "0",
            "PATH": f"{peers.node().parent}:/usr/bin:/bin",
        }

        def server(home: str, *hosts: str) -> Stdio:
            lines: list[str] = []
            sandbox = Sandbox(
                mechanism=mechanism,
                hosts=hosts,
                read=[sys.base_prefix, sys.prefix],
                home=str(tmp_path / home),
            )
            return Stdio(
                commands(installed)[program],
                cwd=tmp_path / "work",
                env=env,
                on_stderr=lines.append,
                sandbox=sandbox,
            )

        async with Client(server("home", ADDRESS), timeout=120) as client:
            said = await client.call_tool("hello")
            assert said.text.startswith("hello from ")
        assert [path for path in asked if path.endswith((".whl", ".tgz"))]
        asked.clear()
        with pytest.raises(Unreachable):
            async with Client(server("other"), timeout=120):
                pass
        assert asked == []
