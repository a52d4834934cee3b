"""The existing reference servers beside ours: the same calls, with the names in the guide's page,
have the same results and effects."""

from __future__ import annotations

import ast
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from interlock import CallToolResult
from interlock.sync import Client
from scripts import existing_servers
from tests.interop.existing import (
    Call,
    Same,
    Sides,
    changes,
    data,
    each,
    found,
    leaves,
    nothing,
    ours,
    picture,
    text,
)
from tests.servers.git.repos import git

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def sides(
    installed: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sides]:
    """All servers, one process for each server and side."""
    with ExitStack() as stack:
        yield Sides(stack, tmp_path_factory.mktemp("existing"), installed)


# -- files -----------------------------------------------------------------------------------------

FILES = {
    "read": Same(
        Call("read_text_file", {"path": "{place}/notes.txt"}, text),
        Call("read_file", {"path": "{place}/notes.txt"}, text),
    ),
    "the first lines": Same(
        Call("read_file", {"path": "{place}/notes.txt", "head": 2}, text),
        Call("read_file", {"path": "{place}/notes.txt", "last_line": 2}, text),
    ),
    "a picture": Same(
        Call("read_media_file", {"path": "{place}/pixel.png"}, picture),
        Call("read_file", {"path": "{place}/pixel.png"}, picture),
    ),
    "several, one of which is not there": Same(
        Call(
            "read_multiple_files",
            {"paths": ["{place}/notes.txt", "{place}/none", "{place}/deep/er/leaf.md"]},
            found("^two$|Ärger"),
        ),
        Call(
            "read_files",
            {"paths": ["{place}/notes.txt", "{place}/none", "{place}/deep/er/leaf.md"]},
            found("^two$|Ärger"),
        ),
    ),
    "a list": Same(
        Call("list_directory", {"path": "{place}"}, found(r"(?<=\] ).*")),
        Call("list_folder", {"path": "{place}"}, each("entries", "path")),
    ),
    "a list by size": Same(
        Call(
            "list_directory_with_sizes",
            {"path": "{place}", "sortBy": "size"},
            found(r"(?<=\[FILE\] )\S+"),
        ),
        Call(
            "list_folder",
            {"path": "{place}", "sort": "size"},
            lambda result: sorted(
                one["path"] for one in data("entries")(result) if one["kind"] == "file"
            ),
        ),
    ),
    "a tree": Same(
        Call("directory_tree", {"path": "{place}"}, found(r'(?<="name": ")[^"]+')),
        Call(
            "show_tree",
            {"path": "{place}"},
            lambda result: sorted(leaves(result.structured_content))[1:],
        ),
    ),
    "names": Same(
        Call(
            "search_files",
            {"path": "{place}", "pattern": "**/*.md"},
            found(r"[^/]+/[^/]+/[^/]+\.md"),
        ),
        Call("find_files", {"path": "{place}", "pattern": "**/*.md"}, each("entries", "path")),
    ),
    "facts": Same(
        Call(
            "get_file_info",
            {"path": "{place}/notes.txt"},
            found(r"(?<=^size: )\d+|(?<=^permissions: )\d+"),
        ),
        Call(
            "file_info",
            {"path": "{place}/notes.txt"},
            lambda result: sorted([str(data("size")(result)), data("mode")(result)[-3:]]),
        ),
    ),
    "allowed": Same(
        Call("list_allowed_directories", {}, lambda result: len(result.text.splitlines()) - 1),
        Call("list_allowed_folders", {}, lambda result: len(data("folders")(result))),
    ),
    "a file is written": Same(
        Call("write_file", {"path": "{place}/new.txt", "content": "größer\n"}, nothing),
        Call("write_file", {"path": "{place}/new.txt", "text": "größer\n"}, nothing),
    ),
    "a dry run": Same(
        Call(
            "edit_file",
            {
                "path": "{place}/notes.txt",
                "edits": [{"oldText": "two", "newText": "2"}],
                "dryRun": True,
            },
            changes,
        ),
        Call(
            "edit_file",
            {"path": "{place}/notes.txt", "edits": [{"old": "two", "new": "2"}], "dry_run": True},
            changes,
        ),
    ),
    "an edit": Same(
        Call(
            "edit_file",
            {
                "path": "{place}/notes.txt",
                "edits": [{"oldText": "two", "newText": "2"}, {"oldText": "one\n", "newText": ""}],
            },
            changes,
        ),
        Call(
            "edit_file",
            {
                "path": "{place}/notes.txt",
                "edits": [{"old": "two", "new": "2"}, {"old": "one\n", "new": ""}],
            },
            changes,
        ),
    ),
    "a folder": Same(
        Call("create_directory", {"path": "{place}/a/b"}, nothing),
        Call("create_folder", {"path": "{place}/a/b"}, nothing),
    ),
    "a move": Same(
        Call(
            "move_file",
            {"source": "{place}/new.txt", "destination": "{place}/a/b/old.txt"},
            nothing,
        ),
        Call("move_file", {"source": "{place}/new.txt", "target": "{place}/a/b/old.txt"}, nothing),
    ),
}


def contents(place: Path) -> dict[str, tuple[int, bytes]]:
    """All files below a folder, with modes and bytes."""
    return {
        str(path.relative_to(place)): (
            path.stat().st_mode,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in place.rglob("*")
        if ".git" not in path.parts
    }


def test_files(sides: Sides) -> None:
    """Reading, listing, searching, writing, editing and moving have the same results, and the
    folders are equal after each step."""
    for name, same in FILES.items():
        theirs, mine = sides.ask("filesystem", same)
        assert theirs == mine, name
        assert contents(sides.place("filesystem", "there")) == contents(
            sides.place("filesystem", "here")
        ), name
    assert (sides.place("filesystem", "here") / "notes.txt").read_text() == "2\nthree\n"


# -- repositories ----------------------------------------------------------------------------------

R = {"repo_path": "{place}"}
GIT = {
    "status": Same(
        Call("git_status", R, found(r"\b(?:beds|tools)\.txt")),
        Call(
            "git_status",
            {},
            lambda result: sorted(
                [*(one["path"] for one in data("unstaged")(result)), *data("untracked")(result)]
            ),
        ),
    ),
    "what is not staged": Same(
        Call("git_diff_unstaged", R, changes), Call("git_diff", {}, changes)
    ),
    "beside another branch": Same(
        Call("git_diff", {**R, "target": "spring"}, changes),
        Call("git_diff", {"old": "spring"}, changes),
    ),
    "with less around it": Same(
        Call("git_diff_unstaged", {**R, "context_lines": 0}, found("^ .*$")),
        Call("git_diff", {"context": 0}, found("^ .*$")),
    ),
    "staging": Same(
        Call("git_add", {**R, "files": ["beds.txt", "tools.txt"]}, nothing),
        Call("git_add", {"paths": ["beds.txt", "tools.txt"]}, nothing),
    ),
    "the staged changes": Same(
        Call("git_diff_staged", R, changes), Call("git_diff", {"what": "staged"}, changes)
    ),
    "unstaging": Same(Call("git_reset", R, nothing), Call("git_unstage", {}, nothing)),
    "staging again": Same(
        Call("git_add", {**R, "files": ["."]}, nothing), Call("git_add", {"paths": ["."]}, nothing)
    ),
    "a commit": Same(
        Call("git_commit", {**R, "message": "Peas\n\nAnd a spade."}, nothing),
        Call("git_commit", {"message": "Peas\n\nAnd a spade."}, nothing),
    ),
    "the log": Same(
        Call("git_log", {**R, "max_count": 5}, found("(?<=^Message: ).*")),
        Call("git_log", {"limit": 5}, each("commits", "subject")),
    ),
    "the log since": Same(
        Call("git_log", {**R, "start_timestamp": "2090-01-01"}, found("^Commit: ")),
        Call("git_log", {"since": "2090-01-01"}, each("commits", "id")),
    ),
    "a commit shown": Same(
        Call("git_show", {**R, "revision": "HEAD"}, changes),
        Call("git_show", {"revision": "HEAD"}, changes),
    ),
    "a branch": Same(
        Call("git_create_branch", {**R, "branch_name": "autumn", "base_branch": "spring"}, nothing),
        Call("git_create_branch", {"name": "autumn", "revision": "spring"}, nothing),
    ),
    "switching": Same(
        Call("git_checkout", {**R, "branch_name": "autumn"}, nothing),
        Call("git_switch", {"to": "autumn"}, nothing),
    ),
    "branches": Same(
        Call("git_branch", {**R, "branch_type": "local"}, found(r"\w+")),
        Call("git_branches", {}, each("branches", "name")),
    ),
}


def state(place: Path) -> list[str]:
    """The state of a repository: changes, all commits by tree, author and message, the branch."""
    return [
        git(place, "status", "--porcelain", "--branch"),
        " ".join(
            git(place, "log", "--all", "--format=%T %an %s %b").split()
        ),  # one of them ends messages with a newline
        git(place, "branch", "--format=%(refname) %(subject)"),
    ]


def test_repositories(sides: Sides) -> None:
    """Status, patches, commits, branches and switching have the same results, and the repositories
    are equal after each step."""
    for name, same in GIT.items():
        theirs, mine = sides.ask("git", same)
        assert theirs == mine, name
        assert state(sides.place("git", "there")) == state(sides.place("git", "here")), name


# -- memory ----------------------------------------------------------------------------------------

ADA = {"name": "Ada Ångström", "entityType": "person"}
GARDEN = {"name": 'the "garden"', "entityType": "place"}
SHED = {"name": "shed", "entityType": "place", "observations": ["has a spade"]}
TENDS = {"from": "Ada Ångström", "to": 'the "garden"', "relationType": "tends"}
LOST = {"from": "Ada Ångström", "to": "nobody yet", "relationType": "knows"}
MEMORY: list[tuple[str, dict[str, Any]]] = [
    (
        "create_entities",
        {
            "entities": [
                {**ADA, "observations": ["likes tea", "löves\nlines\tand 🌱"]},
                {**GARDEN, "observations": []},
            ]
        },
    ),
    ("create_entities", {"entities": [SHED, {**ADA, "observations": ["no"]}]}),
    ("create_relations", {"relations": [TENDS, LOST]}),
    (
        "create_relations",
        {"relations": [TENDS, {"from": "shed", "to": 'the "garden"', "relationType": "is_in"}]},
    ),
    (
        "add_observations",
        {"observations": [{"entityName": 'the "garden"', "contents": ["has beans", "has peas"]}]},
    ),
    (
        "add_observations",
        {"observations": [{"entityName": 'the "garden"', "contents": ["has peas", "has roses"]}]},
    ),
    ("read_graph", {}),
    ("search_nodes", {"query": "spade"}),
    ("search_nodes", {"query": "TEA"}),
    ("search_nodes", {"query": "no such thing"}),
    ("open_nodes", {"names": ["Ada Ångström", "not there"]}),
    (
        "delete_observations",
        {"deletions": [{"entityName": 'the "garden"', "observations": ["has beans", "never had"]}]},
    ),
    ("delete_relations", {"relations": [LOST]}),
    ("delete_entities", {"entityNames": ["shed", "not there"]}),
    ("read_graph", {}),
]
FIELDS = ("entities", "relations", "results", "success")  # the common fields; ours have more


def known(content: Any) -> dict[str, Any]:
    """The fields of a memory result that both sides have."""
    return {name: value for name, value in content.items() if name in FIELDS}


def graph(client: Client) -> Any:
    """The whole graph."""
    return known(client.call_tool("read_graph", {}).structured_content)


def test_memory(sides: Sides) -> None:
    """The nine tools return the same results for the same calls, and build the same graph."""
    theirs, mine = sides.both("memory")
    for tool, arguments in MEMORY:
        answers = [
            known(client.call_tool(tool, arguments).structured_content) for client in (theirs, mine)
        ]
        assert answers[0] == answers[1], (tool, arguments)
        assert graph(theirs) == graph(mine), (tool, arguments)


def moved(*words: str, place: Path) -> str:
    """The output of our command when it imports or exports a file."""
    command = [
        sys.executable,
        "-m",
        "interlock_servers.memory",
        "--graph",
        str(place / "moved.db"),
        *words,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_memory_moves_here_and_back(sides: Sides, tmp_path: Path) -> None:
    """Their file is imported without loss, byte for byte, and their server reads our export."""
    theirs, _ = sides.both("memory")
    for tool, arguments in MEMORY[:6]:
        theirs.call_tool(tool, arguments)
    whole = graph(theirs)
    assert len(whole["entities"]) == 3
    assert len(whole["relations"]) >= 2
    old = sides.place("memory", "there") / "memory.jsonl"
    new = tmp_path / "memory.jsonl"
    assert "3 entities" in moved("import", str(old), place=tmp_path)
    assert "0 entities" in moved("import", str(old), place=tmp_path)  # it may be repeated
    moved("export", str(new), place=tmp_path)
    assert new.read_bytes().rstrip() == old.read_bytes().rstrip()
    with Client(ours("memory", tmp_path)) as mine:
        mine.call_tool("import_graph", {"text": old.read_text(encoding="utf-8")})
        assert graph(mine) == whole
    with Client(existing_servers.started("memory", tmp_path)) as again:
        assert graph(again) == whole


# -- time and thinking -----------------------------------------------------------------------------

MOMENT = ("timezone", "datetime", "day_of_week", "is_dst")


@pytest.mark.parametrize(
    "zone", ["UTC", "Europe/Madrid", "Asia/Kathmandu", "Australia/Lord_Howe", "America/St_Johns"]
)
def test_the_time(sides: Sides, zone: str) -> None:
    """The current time, and a time of today in another zone; the existing server is asked before
    and after, so that no midnight is in between."""
    theirs, mine = sides.both("time")

    def now(client: Client) -> Any:
        return client.call_tool("get_current_time", {"timezone": zone}).structured_content

    def then(client: Client) -> Any:
        call = {"time": "18:05", "source_timezone": zone, "target_timezone": "Asia/Kathmandu"}
        return client.call_tool("convert_time", call).structured_content

    before = now(theirs)
    here = now(mine)
    after = now(theirs)
    times = [datetime.fromisoformat(one["datetime"]) for one in (before, here, after)]
    assert times == sorted(times)
    assert len({one.utcoffset() for one in times}) == 1
    rest = [
        [one[field] for field in MOMENT if field != "datetime"] for one in (before, here, after)
    ]
    assert rest[1] in (rest[0], rest[2])
    before = then(theirs)
    here = then(mine)
    after = then(theirs)
    pairs = [
        [{field: one[side][field] for field in MOMENT} for side in ("source", "target")]
        for one in (before, after)
    ]
    (target,) = here["targets"]
    assert [{field: side[field] for field in MOMENT} for side in (here["source"], target)] in pairs
    hours, minutes = map(int, target["time_difference"].split(":"))
    sign = -1 if target["time_difference"].startswith("-") else 1
    assert float(after["time_difference"].removesuffix("h")) == hours + sign * minutes / 60


THOUGHTS: list[dict[str, Any]] = [
    {
        "thought": "It needs power.",
        "thoughtNumber": 1,
        "totalThoughts": 3,
        "nextThoughtNeeded": True,
    },
    {
        "thought": "A panel.",
        "thoughtNumber": "2",
        "totalThoughts": "3",
        "nextThoughtNeeded": "true",
    },
    {
        "thought": "No, two.",
        "thoughtNumber": 3,
        "totalThoughts": 3,
        "nextThoughtNeeded": True,
        "isRevision": True,
        "revisesThought": 2,
    },
    {
        "thought": "Or wind.",
        "thoughtNumber": 2,
        "totalThoughts": 3,
        "nextThoughtNeeded": True,
        "branchFromThought": 1,
        "branchId": "wind",
    },
    {
        "thought": "Both.",
        "thoughtNumber": 7,
        "totalThoughts": 3,
        "nextThoughtNeeded": False,
        "needsMoreThoughts": False,
    },
]


def test_thinking(sides: Sides) -> None:
    """The five fields of each answer, with numbers as strings, a revision, a branch, and a number
    beyond the total."""
    theirs, mine = sides.both("sequentialthinking")
    for thought in THOUGHTS:
        there: Any = theirs.call_tool("sequentialthinking", thought).structured_content
        here: Any = mine.call_tool("sequentialthinking", thought).structured_content
        assert there == {name: here[name] for name in there}, thought


# -- pages and databases ---------------------------------------------------------------------------

PAGES: dict[str, tuple[str, str]] = {
    "/robots.txt": ("text/plain", "User-agent: *\nDisallow: /diary\n"),
    "/roses": (
        "text/html",
        (
            "<html><body><h1>Roses</h1><p>Plant them in <b>spring</b>, "
            "deep.</p><ul><li>Water</li></ul></body></html>"
        ),
    ),
    "/data": ("application/json", '{"roses": [1, 2]}'),
    "/diary": ("text/html", "<html><body><p>Nobody's business.</p></body></html>"),
}


class Garden(BaseHTTPRequestHandler):
    """A small site."""

    def do_GET(self) -> None:
        """Answer with a page, or with 404."""
        kind, body = PAGES.get(self.path, ("text/plain", ""))
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


def test_pages(sides: Sides) -> None:
    """A page as Markdown and unchanged, unchanged data, a page that robots.txt allows only to
    users, a missing page."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Garden) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{site.server_port}"
        theirs, mine = sides.both("fetch")
        words = [
            re.findall(
                r"\w+", one.call_tool("fetch", {"url": f"{url}/roses"}).text.partition("Roses")[2]
            )
            for one in (theirs, mine)
        ]
        assert (
            words[0]
            == words[1][: len(words[0])]
            == ["Plant", "them", "in", "spring", "deep", "Water"]
        )
        for path, here in (("/roses", {"format": "html"}), ("/data", {})):
            assert (
                PAGES[path][1] in theirs.call_tool("fetch", {"url": url + path, "raw": True}).text
            )
            assert PAGES[path][1] in mine.call_tool("fetch", {"url": url + path, **here}).text
        for client in (theirs, mine):
            assert "robots.txt" in refused(client, "fetch", {"url": f"{url}/diary"})
            assert "Nobody's business" in str(
                client.get_prompt("fetch", {"url": f"{url}/diary"}).messages
            )
            assert "404" in refused(client, "fetch", {"url": f"{url}/tulips"})
        site.shutdown()


def refused(client: Client, tool: str, arguments: Mapping[str, Any]) -> str:
    """The message of a rejection."""
    result = client.call_tool(tool, dict(arguments))
    assert result.is_error, result.text
    return result.text


def records(result: CallToolResult) -> list[dict[str, Any]]:
    """The rows of our query, as dictionaries."""
    names = [column["name"] for column in data("columns")(result)]
    return [dict(zip(names, row, strict=True)) for row in data("rows")(result)]


def literal(result: CallToolResult) -> Any:
    """The value of their text, which is a Python literal."""
    return ast.literal_eval(result.text)


ROWS = Same(
    Call("read_query", {"query": "SELECT * FROM people ORDER BY id"}, literal),
    Call("query", {"sql": "SELECT * FROM people ORDER BY id"}, records),
)
SQL = {
    "rows": ROWS,
    "tables": Same(
        Call("list_tables", {}, lambda result: [one["name"] for one in literal(result)]),
        Call("list_tables", {}, each("tables", "name")),
    ),
    "columns": Same(
        Call(
            "describe_table",
            {"table_name": "people"},
            lambda result: [one["name"] for one in literal(result)],
        ),
        Call(
            "describe_tables",
            {"tables": ["people"]},
            lambda result: [one["name"] for one in data("tables", 0, "columns")(result)],
        ),
    ),
    "a table": Same(
        Call("create_table", {"query": "CREATE TABLE beds (plant TEXT)"}, nothing),
        Call("execute", {"statements": [{"sql": "CREATE TABLE beds (plant TEXT)"}]}, nothing),
    ),
    "an insert": Same(
        Call("write_query", {"query": "INSERT INTO people (name) VALUES ('Zoë')"}, nothing),
        Call(
            "execute",
            {"statements": [{"sql": "INSERT INTO people (name) VALUES ('Zoë')"}]},
            nothing,
        ),
    ),
    "rows again": ROWS,
}


def test_databases(sides: Sides) -> None:
    """Rows, tables and columns; after a table and a row are created, both files have the same
    content."""
    for name, same in SQL.items():
        theirs, mine = sides.ask("sqlite", same)
        assert theirs == mine, name
    dumps = []
    for side in ("there", "here"):
        database = sqlite3.connect(sides.place("sqlite", side) / "existing.db")
        dumps.append(list(database.iterdump()))
        database.close()
    assert dumps[0] == dumps[1]


EVERYTHING = {
    "echo": Same(
        Call("echo", {"message": "héllo"}, lambda result: result.text.removeprefix("Echo: ")),
        Call("echo", {"text": "héllo"}, text),
    ),
    "sum": Same(
        Call("get-sum", {"a": 2, "b": 3}, lambda result: int(re.findall(r"\d+", result.text)[-1])),
        Call("add", {"a": 2, "b": 3}, data("result")),
    ),
    "a picture": Same(
        Call("get-tiny-image", {}, lambda result: picture(result)[0]),
        Call("picture", {}, lambda result: picture(result)[0]),
    ),
    "long work": Same(
        Call("trigger-long-running-operation", {"steps": 2, "duration": 0.1}, nothing),
        Call("work", {"steps": 2}, nothing),
    ),
}


def test_everything(sides: Sides) -> None:
    """The common features have the same results."""
    for name, same in EVERYTHING.items():
        theirs, mine = sides.ask("everything", same)
        assert theirs == mine, name
