"""Skills (SEP-2640) with third-party software: our client reads and verifies the skills of their
servers, and their clients and the official inspector read and verify ours.

These pinned peers do not support skills: the official Python SDK 2.3 and the older SDKs, the agent
frameworks and bridges of the farm. `@llmindset/hf-mcp-server` 0.4.23 lists files without their
sizes, which the final specification requires; `agentskills-mcp-server` and `fast-agent-mcp` need a
newer Python.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, McpError, SkillError, types
from interlock.wire.revisions import R4, R5
from scripts import peers
from tests.interop.driver import PATIENCE, PEERS, on_the_web, put_programs
from tests.ports import free_port

pytestmark = pytest.mark.interop

ROADS = ("stdio", "http")
SERVERS = ("fastmcp", "nimblebrain", "typescript-2")
DAILY = "skill://reports/daily/SKILL.md"
"""The skill of our server whose files are generated on each read."""

FILES = {
    "refunds/SKILL.md": b"---\nname: refunds\ndescription: Refund an order - by our rules.\n"
    b'license: MIT\nmetadata:\n  version: "1.10"\n---\n\nUse templates/letter.md.\n',
    "refunds/templates/letter.md": "Sehr geehrte Käuferin, ...\n".encode(),
    "refunds/seal.bin": bytes(range(256)),
    "greeting/SKILL.md": (
        b"---\nname: greeting\ndescription: How we say hello.\n---\n\nSay hello.\n"
    ),
}
"""The files of two skills: text, non-ASCII text, and binary data."""

FRONTMATTER = {
    "skill://refunds/SKILL.md": {
        "name": "refunds",
        "description": "Refund an order - by our rules.",
        "license": "MIT",
        "metadata": {"version": "1.10"},
    },
    "skill://greeting/SKILL.md": {"name": "greeting", "description": "How we say hello."},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the skills."""
    for path, data in FILES.items():
        file = tmp_path / "skills" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return tmp_path / "skills"


def files_of(uri: str) -> dict[str, bytes]:
    """The files of one skill by their paths in it."""
    start = uri.removeprefix("skill://").removesuffix("SKILL.md")
    return {path.removeprefix(start): FILES[path] for path in FILES if path.startswith(start)}


def program_of(name: str, installed: Callable[[str], Path]) -> list[str]:
    """The command of a peer's program of this name, which ends with its maker."""
    maker = name.rpartition("/")[2]
    program = name.replace("/", "_").replace("-", "_")
    if maker == "typescript-2":
        place = installed("typescript")
        put_programs(place)
        return [str(peers.node()), str(place / f"{program}.mjs")]
    place = installed({"nimblebrain": "skills"}.get(maker, maker))
    return [str(place), str(PEERS / f"{program}.py")]


@contextlib.asynccontextmanager
async def served(command: Sequence[str], road: str) -> AsyncIterator[Any]:
    """The target of a server program: its command, or its URL while it listens."""
    if road == "stdio":
        yield list(command)
        return
    port = free_port()
    async with on_the_web([*command, str(port)], port):
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.mark.parametrize("road", ROADS)
@pytest.mark.parametrize("maker", SERVERS)
async def test_our_client_reads_their_skills(
    maker: str, road: str, folder: Path, installed: Callable[[str], Path]
) -> None:
    """The listing over all pages, entries by URI, and every file verified (`SKL-01`, `SKL-20`,
    `SKL-25`, `SKL-27`, `SKL-36`, `SKL-38`, `SKL-40`, `SKL-43`, `SKL-45`)."""
    command = [*program_of(f"skill_server/{maker}", installed), str(folder)]
    async with served(command, road) as target, Client(target, revision=R5) as client:
        skills = await client.list_skills()
        assert skills.refused == []
        assert {skill.uri: skill.frontmatter for skill in skills} == FRONTMATTER
        for listed in skills:
            skill = await client.skill(listed.uri)
            assert skill.fingerprint == listed.fingerprint is not None
            files = files_of(skill.uri)
            assert {path: await skill.read_bytes(path) for path in skill.files} == files
            with pytest.raises(SkillError, match="not a file of"):
                await skill.read("another.md")
        with pytest.raises(McpError) as unknown:
            await client.skill("skill://nothing/SKILL.md")
        assert unknown.value.code == types.INVALID_PARAMS


@pytest.mark.parametrize("maker", SERVERS)
async def test_our_client_finds_that_their_file_has_changed(
    maker: str, folder: Path, installed: Callable[[str], Path]
) -> None:
    """A file that has changed since its entry was fetched is rejected, by the server that noticed
    it or by us (`SKL-43`)."""
    command = [*program_of(f"skill_server/{maker}", installed), str(folder)]
    letter = "refunds/templates/letter.md"
    async with Client(command, revision=R5) as client:
        skill = await client.skill("skill://refunds/SKILL.md")
        (folder / letter).write_text("Send me your password.\n")
        if maker == "nimblebrain":  # which serves the content that it read at its start
            assert await skill.read_bytes("templates/letter.md") == FILES[letter]
            return
        with pytest.raises((SkillError, McpError)):
            await skill.read("templates/letter.md")


@pytest.mark.parametrize("maker", SERVERS)
async def test_our_client_asks_no_server_of_an_older_revision(
    maker: str, folder: Path, installed: Callable[[str], Path]
) -> None:
    """In the handshake era their skills are resources (`SKL-05`, `SKL-06`)."""
    command = [*program_of(f"skill_server/{maker}", installed), str(folder)]
    async with Client(command, revision=R4) as client:
        with pytest.raises(McpError) as refused:
            await client.list_skills()
        assert refused.value.code == types.METHOD_NOT_FOUND
        read = await client.read_resource("skill://greeting/SKILL.md")
        assert (read.contents[0].text or "").encode() == FILES["greeting/SKILL.md"]


async def output_of(command: Sequence[str]) -> str:
    """The output of a program, which must exit with 0."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert process.returncode == 0, (out + err).decode()[-3000:]
    return out.decode()


@contextlib.asynccontextmanager
async def ours(folder: Path, road: str) -> AsyncIterator[list[str]]:
    """The arguments that point a peer's client at our server."""
    program = [sys.executable, str(Path(__file__).parent / "skill_server.py"), str(folder)]
    async with served(program, road) as target:
        yield target if road == "stdio" else [target]


def decoded(files: dict[str, str]) -> dict[str, bytes]:
    """Files as a peer's client printed them."""
    return {path: base64.b64decode(data) for path, data in files.items()}


@pytest.mark.parametrize("road", ROADS)
async def test_the_typescript_client_reads_our_skills(
    road: str, folder: Path, installed: Callable[[str], Path]
) -> None:
    """It verifies every entry and every file (`SKL-01`, `SKL-07`, `SKL-20`, `SKL-25`, `SKL-27`,
    `SKL-37`, `SKL-38`, `SKL-40`, `SKL-49`)."""
    client = program_of("skill_client/typescript-2", installed)
    async with ours(folder, road) as target:
        seen = json.loads(await output_of([*client, "auto", *target]))
    assert seen["supported"]
    assert seen["directoryRead"]
    assert seen["invalid"] == []
    daily = seen["skills"].pop(DAILY)
    assert not daily["verified"]
    assert daily["frontmatter"]["description"] == "Write the report of the day."
    assert {uri: it["frontmatter"] for uri, it in seen["skills"].items()} == FRONTMATTER
    for uri, skill in seen["skills"].items():
        root = uri.removesuffix("SKILL.md")
        assert all(verified for _, verified in skill["files"].values())
        files = {path.removeprefix(root): data for path, (data, _) in skill["files"].items()}
        assert decoded(files) == files_of(uri)
    assert seen["unknown"] == types.INVALID_PARAMS
    assert seen["unlisted"] == "unlisted"
    assert seen["directory"] == [["skill://greeting/SKILL.md", "text/markdown"]]


@pytest.mark.parametrize("road", ROADS)
async def test_the_fastmcp_client_reads_our_skills(
    road: str, folder: Path, installed: Callable[[str], Path]
) -> None:
    """It verifies every file (`SKL-01`, `SKL-20`, `SKL-25`, `SKL-27`, `SKL-38`)."""
    client = program_of("skill_client/fastmcp", installed)
    async with ours(folder, road) as target:
        seen = json.loads(await output_of([*client, "auto", *target]))
    daily = seen["skills"].pop(DAILY)
    assert daily["files"] == {}
    assert {uri: it["frontmatter"] for uri, it in seen["skills"].items()} == FRONTMATTER
    for uri, skill in seen["skills"].items():
        root = uri.removesuffix("SKILL.md")
        files = {path.removeprefix(root): data for path, data in skill["files"].items()}
        assert decoded(files) == files_of(uri)
    assert seen["unknown"] == types.INVALID_PARAMS


NO_SKILLS = {
    "fastmcp": {"refused": "The Skills extension requires a modern MCP connection"},
    "typescript-2": {"supported": False, "directoryRead": False},
}
"""What the clients see in the handshake era."""


@pytest.mark.parametrize("maker", NO_SKILLS)
async def test_clients_of_an_older_revision_see_no_skills(
    maker: str, folder: Path, installed: Callable[[str], Path]
) -> None:
    """In the handshake era our server does not declare skills (`SKL-06`)."""
    client = program_of(f"skill_client/{maker}", installed)
    async with ours(folder, "stdio") as target:
        seen = json.loads(await output_of([*client, "legacy", *target]))
    assert seen == NO_SKILLS[maker]


@pytest.mark.parametrize("road", ROADS)
async def test_the_inspector_verifies_our_skills(
    road: str, folder: Path, installed: Callable[[str], Path]
) -> None:
    """It checks the rules of the extension and every digest (`SKL-01`, `SKL-20`, `SKL-25`,
    `SKL-27`, `SKL-37`, `SKL-40`)."""
    place = installed("npm-inspector") / "node_modules/@modelcontextprotocol/inspector"
    inspector = [
        str(peers.node(peers.OLDEST_NODE_OF_THE_SUITE)),
        str(place / "clients/launcher/build/index.js"),
        "--cli",
    ]
    how = ["--method", "skills/list", "--verify", "--protocol-era", "modern", "--format", "json"]
    async with ours(folder, road) as target:
        lines = (await output_of([*inspector, *target, *how])).splitlines()
    reports = {report["uri"]: report for report in map(json.loads, lines)}
    daily = reports.pop(DAILY)
    assert (daily["ok"], daily["outcome"]) == (True, "unverifiable")
    assert [remark["code"] for remark in daily["conformance"]] == ["dynamic-resources"]
    assert reports.keys() == FRONTMATTER.keys()
    for uri, report in reports.items():
        assert (report["ok"], report["outcome"]) == (True, "verified")
        assert report["conformance"] == report["frontmatter"] == []
        assert len(report["files"]) == len(files_of(uri))
        assert {file["status"] for file in report["files"]} == {"verified"}
