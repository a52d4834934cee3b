"""Servers in a sandbox, through the public API: files, hosts, variables, and what was refused."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, Stdio
from interlock.sandbox import Sandbox, SandboxUnavailable
from interlock.sandbox.namespace_ports import namespace_ports
from tests.sandbox.cells import MECHANISMS, need

SERVER = Path(__file__).with_name("confined_server.py")
ALL = pytest.mark.parametrize("mechanism", MECHANISMS)


@asynccontextmanager
async def confined(
    mechanism: Any, folder: Path, lines: list[str] | None = None, **policy: Any
) -> AsyncIterator[Any]:
    """A client of the server in a sandbox: `ask(tool, **arguments)` returns the text."""
    need(mechanism)
    stdio = Stdio(
        [sys.executable, str(SERVER)],
        cwd=folder,
        on_stderr=None if lines is None else lines.append,
        sandbox=Sandbox(mechanism=mechanism, **policy),
    )
    async with Client(stdio) as client:

        async def ask(tool: str, **arguments: Any) -> str:
            result = await client.call_tool(tool, arguments)
            return result.text

        yield ask


@asynccontextmanager
async def website(answer: bytes = b"hello") -> AsyncIterator[int]:
    """A web server on this machine; the port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(answer)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + answer)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        yield listening.sockets[0].getsockname()[1]


@ALL
async def test_the_default_profile(mechanism: str, tmp_path: Path) -> None:
    """A server writes to its working folder and its own home, reads nothing beside them, and
    reaches neither this machine nor private networks. What was refused is named, with the setting
    that allows it.
    """
    folder = tmp_path / "work"
    folder.mkdir()
    secret = tmp_path / "secret"
    secret.write_text("secret")
    lines: list[str] = []
    async with confined(mechanism, folder, lines) as ask:
        assert await ask("write", path=str(folder / "x")) == "written"
        home = await ask("home")
        assert home != os.path.expanduser("~")
        assert await ask("write", path=os.path.join(home, "x")) == "written"
        assert await ask("read", path=str(secret)) in ("FileNotFoundError", "PermissionError")
        await ask("write", path=str(secret))
        for host in ("127.0.0.1", "localhost", "10.0.0.1", "169.254.169.254", "[::1]"):
            assert (await ask("fetch", url=f"http://{host}:8080/")).startswith("403 "), host
    assert secret.read_text() == "secret"
    assert (folder / "x").read_text() == "written"
    refused = [line for line in lines if line.startswith("sandbox: ")]
    assert any(f'{{"allowRead": ["{secret}"]}}' in line for line in refused), lines


@ALL
async def test_granted_and_denied_paths(mechanism: str, tmp_path: Path) -> None:
    """What the policy names is open, to read or to write."""
    for name in ("work", "read", "write", "closed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").write_text(name)
    policy: dict[str, Any] = {
        "read": [tmp_path / "read", tmp_path / "closed"],
        "write": [tmp_path / "write"],
        "deny_read": [tmp_path / "closed"],
        "deny_write": [tmp_path / "work"],
    }
    async with confined(mechanism, tmp_path / "work", **policy) as ask:
        assert await ask("read", path=str(tmp_path / "read/x")) == "read"
        assert await ask("write", path=str(tmp_path / "read/x")) != "written"
        assert await ask("write", path=str(tmp_path / "write/x")) == "written"
        assert await ask("read", path=str(tmp_path / "closed/x")) != "closed"
        assert await ask("read", path=str(tmp_path / "work/x")) == "work"
        assert await ask("write", path=str(tmp_path / "work/x")) != "written"


async def test_a_helper_that_has_ended_is_started_again(tmp_path: Path) -> None:
    """The one that opens the port of the proxy in the namespace of a program. No zombie is left."""
    need("bubblewrap")
    helpers = []
    for _ in range(2):
        async with (
            website() as port,
            confined("bubblewrap", tmp_path, hosts=["127.0.0.1"]) as ask,
        ):
            assert await ask("fetch", url=f"http://127.0.0.1:{port}/") == "hello"
        link = namespace_ports()._link
        assert link is not None
        link.shutdown(socket.SHUT_RDWR)
        helpers.append(namespace_ports()._helper)
    first, second = helpers
    assert first != second
    assert not Path(f"/proc/{first}").exists()


async def test_a_hole_in_an_open_folder(tmp_path: Path) -> None:
    """bubblewrap makes it; Landlock cannot, and the start is refused with words."""
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden/x").write_text("hidden")
    (tmp_path / "fixed").write_text("fixed")
    policy: dict[str, Any] = {"deny_read": ["hidden"], "deny_write": ["fixed"]}
    async with confined("bubblewrap", tmp_path, **policy) as ask:
        assert await ask("read", path="hidden/x") == "FileNotFoundError"
        assert await ask("read", path="fixed") == "fixed"
        assert await ask("write", path="fixed") != "written"
    with pytest.raises(SandboxUnavailable, match="cannot keep .*hidden.*closed"):
        async with confined("landlock", tmp_path, **policy):
            pass


@ALL
async def test_hosts_by_name(mechanism: str, tmp_path: Path) -> None:
    """The proxy connects to the hosts of the policy alone, and the refusal says which setting
    allows another.
    """
    lines: list[str] = []
    async with (
        website() as port,
        confined(mechanism, tmp_path, lines, hosts=["127.0.0.1"]) as ask,
    ):
        assert await ask("fetch", url=f"http://127.0.0.1:{port}/") == "hello"
        refused = await ask("fetch", url=f"http://127.0.0.2:{port}/")
        assert refused.startswith("403 ")
        assert "not among the allowed hosts" in refused
    assert any('{"allowedDomains": ["127.0.0.2"]}' in line for line in lines), lines


@ALL
async def test_no_network_and_only_named_variables(
    mechanism: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without hosts there is no proxy and no connection. The server gets the variables of the
    policy besides the few that every child gets.
    """
    monkeypatch.setenv("OPEN_TOKEN", "1")
    monkeypatch.setenv("CLOSED_TOKEN", "1")
    async with (
        website() as port,
        confined(mechanism, tmp_path, hosts=(), env=["OPEN_TOKEN"]) as ask,
    ):
        assert "Error" in await ask("fetch", url=f"http://127.0.0.1:{port}/")
        names = (await ask("variables")).split()
    assert "OPEN_TOKEN" in names
    assert "CLOSED_TOKEN" not in names
    assert "HTTPS_PROXY" not in names


@ALL
async def test_the_network_of_the_machine(mechanism: str, tmp_path: Path) -> None:
    """The policy "all" opens it, to clients that use no proxy as well."""
    async with website() as port, confined(mechanism, tmp_path, hosts="all") as ask:
        assert await ask("fetch", url=f"http://127.0.0.1:{port}/") == "hello"


@ALL
async def test_variables_of_the_loader_act_inside_only(mechanism: Any, tmp_path: Path) -> None:
    """A variable such as LD_PRELOAD must not run code before the program is confined: here the
    loader would write a file.
    """
    need(mechanism)
    (tmp_path / "work").mkdir()
    stdio = Stdio(
        [sys.executable, str(SERVER)],
        env={"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(tmp_path / "outside")},
        cwd=tmp_path / "work",
        sandbox=Sandbox(mechanism=mechanism),
    )
    async with Client(stdio) as client:
        assert await client.list_tools()
    assert os.listdir(tmp_path) == ["work"]


def test_the_whole_environment_is_not_for_a_sandbox() -> None:
    """Two options that contradict each other are refused."""
    with pytest.raises(ValueError, match="named variables only"):
        Stdio(["x"], inherit_env=True, sandbox=Sandbox())


@pytest.mark.parametrize(
    "policy, cwd, words",
    [
        ({"write": ["/no/such/folder"]}, ".", "/no/such/folder, which does not exist"),
        ({"deny_read": ["missing"]}, ".", "missing of denyRead is within a folder that is open"),
        ({}, "/", 'does not open / as a working folder.*Set "cwd"'),
        ({}, "~", "as a working folder"),
        ({}, "missing", "missing does not exist"),
    ],
)
async def test_starts_that_are_refused(
    policy: dict[str, Any], cwd: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be enforced, or would open too much, stops the start with words."""
    monkeypatch.chdir(tmp_path)
    stdio = Stdio(
        [sys.executable, str(SERVER)],
        cwd=os.path.expanduser(cwd),
        sandbox=Sandbox(**policy),
    )
    with pytest.raises(SandboxUnavailable, match=words):
        async with Client(stdio):
            pass


async def test_a_link_that_an_earlier_run_left(tmp_path: Path) -> None:
    """A server that replaces a folder of its policy by a link gets nothing by it."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "work/data").symlink_to(tmp_path / "secret")
    stdio = Stdio(
        [sys.executable, str(SERVER)], cwd=tmp_path / "work", sandbox=Sandbox(write=["data"])
    )
    with pytest.raises(SandboxUnavailable, match="a link out of"):
        async with Client(stdio):
            pass


async def test_a_client_of_an_entry_is_confined(tmp_path: Path) -> None:
    """`sandbox` of an entry counts for `Client` too."""
    need("bubblewrap")
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (tmp_path / "work").mkdir()
    entry = {
        "command": sys.executable,
        "args": [str(SERVER)],
        "cwd": str(tmp_path / "work"),
        "sandbox": {"network": "none"},
    }
    async with Client(entry) as client:
        result = await client.call_tool("read", {"path": str(secret)})
    assert result.text == "FileNotFoundError"
    with pytest.raises(ValueError, match="unknown key"):
        Client({**entry, "sandbox": {"netwrok": "none"}})
