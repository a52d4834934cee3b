"""Skills of a server: entries, digests, directories, paging, and what peers without the extension
see.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from interlock import Caller, Client, Context, Principal, Server, ServerLimits, SkillError
from interlock import types as t
from interlock.exchange import Exchange, RawResult
from interlock.wire.codec import decode
from tests.server.by_hand import R4
from tests.server.wire import Peer

EXTENSION = "io.modelcontextprotocol/skills"
REFUNDS = "---\nname: refunds\ndescription: Process refunds.\nlicense: MIT\n---\n\n# Refunds\n"
ESCALATION = "---\nname: escalation\ndescription: Hand over.\n---\n"
PIXEL = bytes([0x89, 0x50, 0x4E, 0x47, 0xFF, 0x00])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two skills, one nested in the other, with text, bytes, an odd name and an empty folder."""
    write(tmp_path, "README.md", "No part of a skill.")
    write(tmp_path, "acme/refunds/SKILL.md", REFUNDS)
    write(tmp_path, "acme/refunds/templates/a letter é.md", "Dear ...")
    write(tmp_path, "acme/refunds/assets/pixel.png", PIXEL)
    write(tmp_path, "acme/refunds/escalation/SKILL.md", ESCALATION)
    write(tmp_path, "acme/refunds/.git/config", "hidden")
    (tmp_path / "acme/refunds/empty").mkdir()
    return tmp_path


def write(top: Path, path: str, data: str | bytes) -> None:
    file = top / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data.encode() if isinstance(data, str) else data)


def served(folder: Path, **options: Any) -> Server:
    server = Server("shop", **options)
    server.skills(folder)
    return server


async def asked(server: Server, method: str, params: dict[str, Any] | None = None) -> Any:
    """The answer of a server to one request of the newest revision: its result, or its error."""
    peer = await Peer.of(server)
    answer = await peer.ask(method, params or {})
    await peer.aclose()
    return answer.get("result") or answer["error"]


async def test_entries_are_complete(folder: Path):
    """Every file with its digest and size, those of nested skills too, and each skill by itself
    (SKL-01, SKL-17, SKL-20, SKL-25, SKL-27, SKL-28).
    """
    result = await asked(served(folder), "skills/list")
    refunds, nested = sorted(result["skills"], key=lambda skill: len(skill["uri"]))
    assert refunds["uri"] == "skill://acme/refunds/SKILL.md"
    assert refunds["frontmatter"] == {
        "name": "refunds",
        "description": "Process refunds.",
        "license": "MIT",
    }
    raw = {
        "skill://acme/refunds/SKILL.md": REFUNDS.encode(),
        "skill://acme/refunds/assets/pixel.png": PIXEL,
        "skill://acme/refunds/escalation/SKILL.md": ESCALATION.encode(),
        "skill://acme/refunds/templates/a%20letter%20%C3%A9.md": b"Dear ...",
    }
    assert {file["uri"]: (file["digest"], file["size"]) for file in refunds["resources"]} == {
        uri: (f"sha256:{hashlib.sha256(data).hexdigest()}", len(data)) for uri, data in raw.items()
    }
    assert len(refunds["resources"]) == len(raw)
    assert nested["uri"] == "skill://acme/refunds/escalation/SKILL.md"
    assert [file["uri"] for file in nested["resources"]] == [nested["uri"]]
    assert result["resultType"] == "complete"  # SKL-34
    assert (result["ttlMs"], result["cacheScope"]) == (0, "public")  # SKL-37


async def test_what_is_declared(folder: Path):
    """The extension with its one setting, and the resources capability beside it (SKL-02,
    SKL-04).
    """
    async with Client(served(folder)) as client:
        capabilities = client.server_capabilities
    assert capabilities.extensions == {EXTENSION: {"directoryRead": True}}
    assert capabilities.resources is not None


async def test_resources_of_a_skill(folder: Path):
    """SKILL.md is Markdown under the skill's name and description, other files are what they are
    (SKL-08, SKL-13, SKL-14).
    """
    async with Client(served(folder)) as client:
        listed = {resource.uri: resource for resource in await client.list_resources()}
        skill_md = listed["skill://acme/refunds/SKILL.md"]
        assert (skill_md.name, skill_md.description) == ("refunds", "Process refunds.")
        assert (skill_md.mime_type, skill_md.size) == ("text/markdown", len(REFUNDS))
        assert all(resource.meta is None for resource in listed.values())
        assert not any("README" in uri or ".git" in uri for uri in listed)
        pixel = await client.read_resource("skill://acme/refunds/assets/pixel.png")
        assert pixel.contents[0].mime_type == "image/png"
        assert pixel.contents[0].blob is not None


async def test_get_one_skill(folder: Path):
    """The entry has the same shape and says the same as the listed one, without a cursor (SKL-39,
    SKL-40).
    """
    server = served(folder)
    listed = (await asked(server, "skills/list"))["skills"]
    for entry in listed:
        result = await asked(server, "skills/get", {"uri": entry["uri"]})
        assert result["skill"] == entry
        assert (result["resultType"], result["ttlMs"], result["cacheScope"]) == (
            "complete",
            0,
            "public",
        )
        assert "nextCursor" not in result


@pytest.mark.parametrize(
    "method, uri, words",
    [
        ("skills/get", "skill://acme/chargebacks/SKILL.md", "No skill is served at"),
        ("skills/get", "skill://acme/refunds", "No skill is served at"),
        ("skills/get", "skill://acme/refunds/assets/pixel.png", "No skill is served at"),
        ("resources/directory/read", "skill://acme/refunds/SKILL.md", "is not a directory"),
        ("resources/directory/read", "skill://acme/refunds/nothing", "does not exist"),
        ("resources/directory/read", "skill://acme/refunds/", "does not exist"),
        ("resources/read", "skill://acme/refunds/nothing.md", "Resource not found"),
        ("resources/read", "skill://acme/refunds/../../README.md", "Resource not found"),
        ("resources/read", "skill://acme/refunds/.git/config", "Resource not found"),
    ],
)
async def test_what_is_not_served(folder: Path, method: str, uri: str, words: str):
    """-32602 and a sentence (SKL-38, SKL-50, SKL-53, SKL-54)."""
    error = await asked(served(folder), method, {"uri": uri})
    assert error["code"] == t.INVALID_PARAMS
    assert words in error["message"]


DIRECTORIES = {
    "skill://acme": ["skill://acme/refunds/"],
    "skill://acme/refunds": [
        "skill://acme/refunds/SKILL.md",
        "skill://acme/refunds/assets/",
        "skill://acme/refunds/empty/",
        "skill://acme/refunds/escalation/",
        "skill://acme/refunds/templates/",
    ],
    "skill://acme/refunds/templates": ["skill://acme/refunds/templates/a%20letter%20%C3%A9.md"],
    "skill://acme/refunds/empty": [],
}


@pytest.mark.parametrize("uri, children", DIRECTORIES.items(), ids=DIRECTORIES)
async def test_directories(folder: Path, uri: str, children: list[str]):
    """Direct children only; folders are inode/directory and an empty one has none (SKL-49,
    SKL-51).
    """
    result = await asked(served(folder), "resources/directory/read", {"uri": uri})
    found = [
        one["uri"] + ("/" if one.get("mimeType") == "inode/directory" else "")
        for one in result["resources"]
    ]
    assert found == children
    assert result["resultType"] == "complete"
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")  # the official client insists


async def test_paging(tmp_path: Path):
    """Entries and directories come in pages, and no entry is split (SKL-36)."""
    for number in range(5):
        text = f"---\nname: skill-{number}\ndescription: One of five.\n---\n"
        write(tmp_path, f"many/skill-{number}/SKILL.md", text)
    server = served(tmp_path, limits=ServerLimits(page_size=2))
    for method, params, member in (
        ("skills/list", {}, "skills"),
        ("resources/directory/read", {"uri": "skill://many"}, "resources"),
    ):
        sizes = []
        uris = []
        cursor: dict[str, Any] = {}
        while True:
            result = await asked(server, method, {**params, **cursor})
            sizes.append(len(result[member]))
            uris += [one["uri"] for one in result[member]]
            if "nextCursor" not in result:
                break
            cursor = {"cursor": result["nextCursor"]}
        assert (sizes, len(set(uris))) == ([2, 2, 1], 5)
        bad = await asked(server, method, {**params, "cursor": "nonsense"})
        assert bad["code"] == t.INVALID_PARAMS


@pytest.mark.parametrize("revision", ["2024-11-05", R4])
async def test_older_peers_see_plain_resources(folder: Path, revision: str):
    """The extension is of 2026-07-28; under the older revisions its methods are unknown and the
    files are resources (SKL-06).
    """
    server = served(folder)
    async with Client(server, revision=revision) as client:
        assert client.server_capabilities.extensions is None
        text = await client.read_resource("skill://acme/refunds/SKILL.md")
        assert text.contents[0].text == REFUNDS
    peer = await Peer.of(server, revision)
    for method in ("skills/list", "skills/get", "resources/directory/read"):
        answer = await peer.ask(method, {"uri": "skill://acme/refunds/SKILL.md"})
        assert answer["error"]["code"] == t.METHOD_NOT_FOUND
    await peer.aclose()


async def test_one_skill_folder(folder: Path):
    """A folder that has a SKILL.md itself is the one skill; a prefix stands before its path."""
    server = Server("shop")
    server.skills(folder / "acme" / "refunds", prefix="v2/billing")
    result = await asked(server, "skills/get", {"uri": "skill://v2/billing/refunds/SKILL.md"})
    assert len(result["skill"]["resources"]) == 4


BAD = {
    "no frontmatter": ({"refunds/SKILL.md": "# Refunds"}, "must begin with YAML frontmatter"),
    "no description": ({"refunds/SKILL.md": "---\nname: refunds\n---\n"}, "no description"),
    "another name": (
        {"refunds/SKILL.md": "---\nname: money\ndescription: x\n---\n"},
        "its folder 'refunds'",
    ),
    "a name that is none": (
        {"Refunds/SKILL.md": "---\nname: Refunds\ndescription: x\n---\n"},
        "cannot be the name of a skill",
    ),
    "not UTF-8": ({"refunds/SKILL.md": b"---\nname: \xff\n---\n"}, "not UTF-8"),
    "a long description": (
        {"refunds/SKILL.md": f"---\nname: refunds\ndescription: {'x' * 1025}\n---\n"},
        "more than 1024",
    ),
    "too many files": (
        {"refunds/SKILL.md": REFUNDS, **{f"refunds/{n}.md": "" for n in range(512)}},
        "513 files",
    ),
    "too many bytes": (
        {"refunds/SKILL.md": REFUNDS, "refunds/big.bin": bytes(16 * 1024 * 1024)},
        "at most 16,777,216",
    ),
    "a backslash in a name": (
        {"refunds/SKILL.md": REFUNDS, "refunds/a\\b.md": ""},
        "a separator or a control character",
    ),
    "no skill": ({"refunds/README.md": ""}, "has no skill"),
}


@pytest.mark.parametrize("files, words", BAD.values(), ids=BAD)
def test_skills_that_break_a_rule(tmp_path: Path, files: dict[str, Any], words: str):
    """They are refused when they are added, and nothing is served (SKL-07, SKL-09, SKL-32)."""
    for path, data in files.items():
        write(tmp_path, path, data)
    server = Server("shop")
    with pytest.raises(SkillError, match=words):
        server.skills(tmp_path)
    assert len(server.resources) == 0


@pytest.mark.parametrize("target", ["/etc/hosts", "templates", "SKILL.md"])
def test_links_are_refused(tmp_path: Path, target: str):
    """A link could lead out of the folder, now or later."""
    write(tmp_path, "refunds/SKILL.md", REFUNDS)
    os.symlink(target, tmp_path / "refunds" / "link")
    with pytest.raises(SkillError, match="link is a link"):
        Server("shop").skills(tmp_path)


def test_what_is_not_a_file(tmp_path: Path):
    """A named pipe is refused, and does not hold the server up."""
    write(tmp_path, "refunds/SKILL.md", REFUNDS)
    os.mkfifo(tmp_path / "refunds" / "pipe")
    with pytest.raises(SkillError, match="not a regular file"):
        Server("shop").skills(tmp_path)


async def test_a_skill_from_code():
    """`add_skill` serves files from memory and from disk, with digests; another one can take its
    place.
    """
    server = Server("shop")
    server.add_skill("acme/refunds", {"SKILL.md": REFUNDS, "a/x.md": "one"})
    with pytest.raises(ValueError, match="already"):
        server.add_skill("acme/refunds", {"SKILL.md": REFUNDS})
    with pytest.raises(ValueError, match="lie within each other"):
        server.add_skill("acme/refunds/escalation", {"SKILL.md": ESCALATION})
    first = await asked(server, "skills/get", {"uri": "skill://acme/refunds/SKILL.md"})
    server.add_skill("acme/refunds", {"SKILL.md": REFUNDS, "b.md": "two"}, replace=True)
    second = await asked(server, "skills/get", {"uri": "skill://acme/refunds/SKILL.md"})
    assert [file["uri"] for file in first["skill"]["resources"]][1:] == [
        "skill://acme/refunds/a/x.md"
    ]
    assert [file["uri"] for file in second["skill"]["resources"]][1:] == [
        "skill://acme/refunds/b.md"
    ]
    gone = await asked(server, "resources/read", {"uri": "skill://acme/refunds/a/x.md"})
    assert gone["code"] == t.INVALID_PARAMS
    server.remove_skill("acme/refunds")
    assert (await asked(server, "skills/list"))["skills"] == []


async def test_a_generated_skill():
    """Its entry says "dynamic"; its files, and their directories, are what the function gives each
    time (SKL-29).
    """
    server = Server("shop")
    calls = []

    @server.skill("reports/daily", frontmatter={"license": "MIT"})
    async def daily(ctx: Context) -> dict[str, str | bytes]:
        """Assemble today's report."""
        calls.append(ctx.caller.revision)
        return {"SKILL.md": f"# Report {len(calls)}\n", "data/today.csv": "a,b\n"}

    [entry] = (await asked(server, "skills/list"))["skills"]
    assert entry == {
        "uri": "skill://reports/daily/SKILL.md",
        "frontmatter": {
            "name": "daily",
            "description": "Assemble today's report.",
            "license": "MIT",
        },
        "resources": "dynamic",
    }
    assert not calls
    read = await asked(server, "resources/read", {"uri": entry["uri"]})
    assert read["contents"][0]["text"] == (
        '---\nname: "daily"\ndescription: "Assemble today\'s report."\nlicense: "MIT"\n---\n\n'
        "# Report 1\n"
    )
    csv = await asked(server, "resources/read", {"uri": "skill://reports/daily/data/today.csv"})
    assert (csv["contents"][0]["text"], csv["contents"][0]["mimeType"]) == ("a,b\n", "text/csv")
    top = await asked(server, "resources/directory/read", {"uri": "skill://reports/daily"})
    assert [one["uri"] for one in top["resources"]] == [
        "skill://reports/daily/SKILL.md",
        "skill://reports/daily/data",
    ]
    for uri in ("skill://reports/daily/none.md", "skill://reports/daily/../x"):
        assert (await asked(server, "resources/read", {"uri": uri}))["code"] == t.INVALID_PARAMS


async def test_a_generated_skill_that_contradicts_its_entry():
    """The file is not served: clients would refuse it, and the author finds the reason in the
    log.
    """
    server = Server("shop")

    @server.skill("daily", description="Reports.")
    def daily() -> dict[str, str]:
        return {"SKILL.md": "---\nname: daily\ndescription: Something else.\n---\n"}

    error = await asked(server, "resources/read", {"uri": "skill://daily/SKILL.md"})
    assert error["code"] == t.INTERNAL_ERROR


async def test_skills_behind_scopes(folder: Path):
    """Whoever lacks the scope sees neither the entry nor a directory, and may not read."""
    server = Server("shop")
    server.skills(folder, scopes="skills:read")
    server.add_skill("open", {"SKILL.md": "---\nname: open\ndescription: For all.\n---\n"})

    async def ask(method: str, params: t.Params, *scopes: str) -> Any:
        caller = Caller(
            "2026-07-28",
            t.ClientCapabilities(),
            principal=Principal(subject="ada", scopes=frozenset(scopes)),
        )
        result = await server.handle(Exchange(method, params, caller))
        return decode(result.body, dict) if isinstance(result, RawResult) else result

    from interlock.skills import DirectoryParams, GetSkillParams, ListSkillsParams

    every = await ask("skills/list", ListSkillsParams(), "skills:read")
    some = await ask("skills/list", ListSkillsParams())
    assert (len(every["skills"]), len(some["skills"])) == (3, 1)
    assert every["cacheScope"] == "private"
    with pytest.raises(t.Forbidden):
        await ask("skills/get", GetSkillParams(uri="skill://acme/refunds/SKILL.md"))
    with pytest.raises(t.McpError, match="does not exist"):
        await ask("resources/directory/read", DirectoryParams(uri="skill://acme/refunds"))


async def test_a_hidden_skill_is_unknown(tmp_path: Path):
    """What the visibility hook hides is in no list and no directory, and cannot be fetched; errors
    are those of what does not exist.
    """
    write(tmp_path, "open/refunds/SKILL.md", REFUNDS)
    write(tmp_path, "closed/escalation/SKILL.md", ESCALATION)
    server = served(tmp_path)
    server.visible(lambda caller: "")(
        lambda key, feature: not feature.name.startswith("skill://closed")
    )
    entries = (await asked(server, "skills/list"))["skills"]
    assert [entry["uri"] for entry in entries] == ["skill://open/refunds/SKILL.md"]
    for method, shown, hidden, missing in (
        (
            "skills/get",
            "skill://open/refunds/SKILL.md",
            "skill://closed/escalation/SKILL.md",
            "skill://closed/missing/SKILL.md",
        ),
        (
            "resources/directory/read",
            "skill://open/refunds",
            "skill://closed/escalation",
            "skill://closed/missing",
        ),
    ):
        assert "code" not in await asked(server, method, {"uri": shown})
        error = await asked(server, method, {"uri": hidden})
        unknown = await asked(server, method, {"uri": missing})
        assert error["code"] == unknown["code"]
        assert error["message"].replace("escalation", "missing") == unknown["message"]


REG_NAME = re.compile(r"([A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-F]{2})+")
SEGMENT = re.compile(r"([A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-F]{2})+")
PREFIXES = [
    "acme",
    "Zwei & Drei",
    "localhost:80",
    "user@host",
    "[::1]",
    "größe",
    "a?b#c",
    "50%/x:y@z",
]


@pytest.mark.parametrize("prefix", PREFIXES)
async def test_uris_are_valid_whatever_folders_are_called(prefix: str):
    """The first segment is a reg-name without a port or a user, and the others are path segments
    (SKL-10).
    """
    server = Server("shop")
    server.add_skill(f"{prefix}/refunds", {"SKILL.md": REFUNDS, "é [1]/what?.md": "x"})
    [entry] = (await asked(server, "skills/list"))["skills"]
    for uri in (entry["uri"], *(file["uri"] for file in entry["resources"])):
        first, *others = uri.removeprefix("skill://").split("/")
        assert REG_NAME.fullmatch(first)
        assert all(SEGMENT.fullmatch(segment) for segment in others)
        assert unquote(uri).startswith(f"skill://{prefix}/refunds/")
    async with Client(server) as client:
        skill = await client.skill(entry["uri"])
        assert await skill.read("é [1]/what?.md") == "x"


async def test_two_skills_of_one_name_are_warned_of(caplog: pytest.LogCaptureFixture):
    """The author is told both URIs; both are served, and a skill that is replaced is no second one
    (SKL-22).
    """
    server = Server("shop")
    server.add_skill("acme/refunds", {"SKILL.md": REFUNDS})
    server.add_skill("acme/refunds", {"SKILL.md": REFUNDS}, replace=True)
    assert not caplog.records
    server.add_skill("other/refunds", {"SKILL.md": REFUNDS})
    [record] = caplog.records
    assert "skill://acme/refunds/SKILL.md and skill://other/refunds/SKILL.md" in record.message
    assert len((await asked(server, "skills/list"))["skills"]) == 2
