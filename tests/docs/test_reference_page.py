"""The page that compares the reference servers covers every existing tool, and names only tools of
ours that exist."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import pytest

from tests.docs.pages import TOP

PAGE = (TOP / "docs" / "guide" / "reference.md").read_text(encoding="utf-8")
THEIRS: dict[str, Any] = json.loads(
    (TOP / "packages/interlock-servers/tests/servers/existing.json").read_text(encoding="utf-8")
)
OURS = {
    **{name: name for name in THEIRS},
    "postgres": "database",
    "sqlite": "database",
    "sequentialthinking": "thinking",
}
"""The server of ours for each existing server."""

CLAUSE = re.compile(
    r"`(?P<old>[\w-]+)` is `(?P<new>[\w-]+)`|no (?P<lost>`[\w-]+`(?:, `[\w-]+`)*)|also "
    r"(?P<fresh>`[\w-]+`(?:, `[\w-]+`)*)"
)


class Row(NamedTuple):
    """A row of a table: tools or prompts of both sides, and the changes of arguments."""

    there: list[str]
    here: list[str]
    renamed: dict[str, str]
    lost: list[str]
    fresh: list[str]


def words(cell: str) -> list[str]:
    """The texts in backticks."""
    return re.findall(r"`([^`]+)`", cell)


def section(server: str) -> str:
    """The section of the page for an existing server."""
    _, _, rest = PAGE.partition(f"\n## {server}\n")
    return rest.partition("\n## ")[0]


def rows(server: str, head: str) -> list[Row]:
    """The rows of the table in a server's section whose first column has this head.

    Raises ValueError for arguments that it cannot parse.
    """
    found = []
    for table in re.findall(
        rf"^\| {head} \|.*\n\|[-|]+\n((?:\|.*\n)+)", section(server), re.MULTILINE
    ):
        for line in table.splitlines():
            there, here, arguments, *_ = (cell.strip() for cell in line.strip("|").split("|"))
            clauses = (
                [CLAUSE.fullmatch(part) for part in arguments.split("; ")] if arguments else []
            )
            if not all(clauses):
                raise ValueError(f"{server}: arguments that cannot be read: {arguments}")
            said = [clause for clause in clauses if clause]
            found.append(
                Row(
                    words(there),
                    words(here),
                    {clause["old"]: clause["new"] for clause in said if clause["old"]},
                    [word for clause in said for word in words(clause["lost"] or "")],
                    [word for clause in said for word in words(clause["fresh"] or "")],
                )
            )
    return found


def catalogue(server: str) -> Any:
    """The catalogue snapshot of our server for an existing one."""
    (path,) = (TOP / "packages/interlock-servers/tests/servers").rglob(
        f"{OURS[server]}_catalogue.json"
    )
    return json.loads(path.read_text(encoding="utf-8"))


def taken(tools: Any, names: list[str]) -> set[str]:
    """The arguments of these tools of ours."""
    return {
        argument for name in names for argument in tools[name]["inputSchema"].get("properties", {})
    }


@pytest.mark.parametrize("server", THEIRS)
def test_no_tool_is_left_out(server: str) -> None:
    """Each existing tool and prompt has one row, and each template is named."""
    assert sorted(name for row in rows(server, "there") for name in row.there) == sorted(
        THEIRS[server]["tools"]
    )
    assert (
        sorted(name for row in rows(server, "prompt there") for name in row.there)
        == THEIRS[server]["prompts"]
    )
    assert all(f"`{template}`" in section(server) for template in THEIRS[server]["templates"])


@pytest.mark.parametrize("server", THEIRS)
def test_tools_of_ours_are_there_with_their_arguments(server: str) -> None:
    """Each existing argument is renamed to one of ours, is listed as missing, or has the same name
    in a tool of ours in that row."""
    tools = catalogue(server)["tools"]
    for row in rows(server, "there"):
        assert set(row.here) <= set(tools), row
        theirs = {
            argument
            for name in row.there
            for argument in THEIRS[server]["tools"][name]["arguments"]
        }
        ours = taken(tools, row.here)
        assert set(row.renamed) | set(row.lost) <= theirs, row
        assert set(row.renamed.values()) | set(row.fresh) <= ours, row
        assert not set(row.fresh) & theirs, row
        assert theirs - set(row.renamed) - set(row.lost) <= ours, row
        assert not set(row.lost) & (ours - set(row.renamed.values())), row


@pytest.mark.parametrize("server", [server for server in THEIRS if THEIRS[server]["prompts"]])
def test_prompts_of_ours_are_there(server: str) -> None:
    """They have the arguments that the page names."""
    prompts = catalogue(server)["prompts"]
    for row in rows(server, "prompt there"):
        assert set(row.here) <= set(prompts), row
        assert set(row.fresh) <= {
            one["name"] for name in row.here for one in prompts[name].get("arguments", [])
        }, row


@pytest.mark.parametrize("server", THEIRS)
def test_what_prose_calls_a_tool_is_one(server: str) -> None:
    """Names that look like those of tools are names of tools, prompts, arguments or fields, of
    theirs or of ours, in any section."""
    known = {*OURS.values(), *THEIRS}
    for other in THEIRS:
        ours = catalogue(other)
        known |= {
            *ours["tools"],
            *ours["prompts"],
            *THEIRS[other]["tools"],
            *THEIRS[other]["prompts"],
        }
        known |= {
            argument for tool in THEIRS[other]["tools"].values() for argument in tool["arguments"]
        }
        known |= set(re.findall(r'"(\w+)": ', json.dumps(ours)))
    prose = "\n".join(line for line in section(server).splitlines() if not line.startswith("|"))
    assert {word for word in words(prose) if re.fullmatch(r"[a-z]+(?:_[a-z]+)+", word)} <= known


def test_versions_are_those_of_the_locks() -> None:
    """The page names the tested versions; a change of a lock requires a new test of the page."""
    lock = (TOP / "tests" / "interop" / "reference" / "package.json").read_text(encoding="utf-8")
    pins = {
        name: version
        for name, version in re.findall(
            r"@modelcontextprotocol/server-([\w-]+)\": \"([\d.]+)\"", lock
        )
    }
    for file in ("peers-servers.txt", "peers-servers-archived.txt"):
        text = (TOP / "requirements" / file).read_text(encoding="utf-8")
        pins |= dict(re.findall(r"^mcp-server-(\w+)==([\d.]+)", text, re.MULTILINE))
    intro = " ".join(PAGE.partition("\n| |")[0].split())
    assert len(pins) == len(THEIRS)
    for name, version in pins.items():
        assert re.search(rf"\b{name}\b[^.]*? {re.escape(version)}", intro), (name, version)
