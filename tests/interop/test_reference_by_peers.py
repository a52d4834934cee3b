"""The official SDKs' clients use the reference servers, over stdio and HTTP: they list and use
everything, and the effects are on the disk."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.everything import DOT
from tests.interop.walking import WAYS, Walk, accepted, walk_by
from tests.servers.fetch.site import HTML, PLAIN, moved, running
from tests.servers.git.repos import AUTHOR, git, repository, write
from tests.transport.http_peers import ok

pytestmark = pytest.mark.interop

# Each combination once, with the Python SDK's handshake, and also the current TypeScript SDK over
# HTTP.
ROADS = [(*way, "http" if way == ("python-2", "legacy") else "stdio") for way in WAYS] + [
    ("typescript-2", "auto", "http")
]
YES = {"elicitation/create": accepted({"confirm": True})}
NO = {"elicitation/create": {"action": "decline"}}


@pytest.fixture(params=ROADS, ids=" ".join)
def walk(request: pytest.FixtureRequest, installed: Callable[[str], Path]) -> Walk:
    """Connects this combination's client to a server, with given environment variables."""
    maker, mode, road = request.param
    return walk_by((maker, mode), installed, road=road)


async def test_filesystem(walk: Walk, tmp_path: Path) -> None:
    """Files are written, read, edited, searched, moved, trashed and restored within the client's
    root, and no other file changes (`TOL-09`, `TOL-15`, `ROO-08`, `RES-03`, `ELI-04`)."""
    mine = tmp_path / "allowed" / "mine"
    mine.mkdir(parents=True)
    (tmp_path / "allowed" / "theirs").write_text("beside the root\n")
    (mine / "pixel").write_bytes(b"\x89PNG\r\n\x1a\n")
    roots = {"roots/list": {"roots": [{"uri": mine.as_uri()}]}}
    async with walk(
        "filesystem", {"INTERLOCK_FILESYSTEM_FOLDERS": str(mine.parent)}, roots
    ) as walker:
        assert (await walker.use("list_allowed_folders", {}))["folders"] == [str(mine)]
        assert "leads out" in await walker.refused("read_file", {"path": "../theirs"})
        assert "outside" in await walker.refused(
            "write_file", {"path": f"{mine.parent}/theirs", "text": "x"}
        )
        await walker.use("write_file", {"path": "notes.txt", "text": "tea\nbread\norange\n"})
        read, step = await walker.asked(
            "read_file", {"path": "notes.txt", "first_line": 2, "last_line": 2}
        )
        assert (step.text, read["firstLine"], read["complete"]) == ("bread\n", 2, False)
        edit = {
            "path": "notes.txt",
            "edits": [{"old": "orange", "new": "oranges"}],
            "version": read["version"],
        }
        _, step = await walker.asked("edit_file", {**edit, "dry_run": True})
        assert "-orange\n+oranges\n" in step.text
        assert (await walker.use("edit_file", edit))["replacements"] == 1
        assert "has changed since" in await walker.refused("edit_file", edit)
        _, step = await walker.asked("read_files", {"paths": ["notes.txt", "pixel", "none"]})
        assert [block["type"] for block in step.result["content"]].count("image") == 1
        assert [
            hit["line"] for hit in (await walker.use("search_files", {"text": "ea"}))["hits"]
        ] == [1, 2]
        await walker.use("create_folder", {"path": "old/papers"})
        await walker.use("move_file", {"source": "notes.txt", "target": "old/papers/notes.txt"})
        assert [
            one["path"] for one in (await walker.use("find_files", {"pattern": "*.txt"}))["entries"]
        ] == ["old/papers/notes.txt"]
        assert (await walker.use("show_tree", {}))["entries"]
        uri = (await walker.use("file_info", {"path": "old/papers/notes.txt"}))["uri"]
        assert await walker.read(uri) == "tea\nbread\noranges\n"
        assert mine.parent.as_uri() in await walker.uris()
        # If a completion cannot request the roots, it reveals nothing to a client with roots.
        typed = f"{mine}/old/"[1:]
        assert await walker.complete("path", typed, template="file:///{+path}") == (
            [] if walker.stateless else [f"{typed}papers/"]
        )
        one = await walker.use("trash_file", {"path": "pixel"})
        two = await walker.use("trash_file", {"path": "old"})
        assert "did not agree" in await walker.refused("empty_trash", {}, NO)
        await walker.use("restore_file", {"id": two["id"]})
        assert (await walker.use("empty_trash", {}, YES))["removed"] == [one["id"]]
    assert (mine / "old" / "papers" / "notes.txt").read_text() == "tea\nbread\noranges\n"
    assert (mine.parent / "theirs").read_text() == "beside the root\n"
    assert {path.name for path in mine.iterdir()} == {".trash", "old"}


async def test_git(walk: Walk, tmp_path: Path) -> None:
    """Changes are shown, staged, committed, stashed and, if the user agrees, discarded, and the
    repository has the same state (`TOL-09`, `RES-03`, `PRM-01`, `CMP-01`, `ELI-04`)."""
    repo = repository(tmp_path / "garden", {"beds.txt": "roses\nbeans\n"})
    write(repo, {"beds.txt": "roses\npeas\n", "tools.txt": "spade\n"})
    async with walk(
        "git", {"INTERLOCK_GIT_REPOSITORIES": str(repo), "INTERLOCK_GIT_AUTHOR": AUTHOR}
    ) as walker:
        status = await walker.use("git_status", {})
        assert ([one["path"] for one in status["unstaged"]], status["untracked"]) == (
            ["beds.txt"],
            ["tools.txt"],
        )
        diff, step = await walker.asked("git_diff", {})
        assert ("-beans\n+peas\n" in step.text, diff["added"]) == (True, 1)
        await walker.use("git_add", {"paths": ["tools.txt"]})
        assert "+spade" in await walker.prompt("commit_message")
        made = await walker.use("git_commit", {"message": "A spade"})
        assert (await walker.use("git_log", {}))["commits"][0]["id"] == made["commit"]
        assert (await walker.use("git_show", {"revision": "HEAD"}))["message"] == "A spade"
        assert "no commit" in await walker.refused("git_show", {"revision": "--output=stolen"})
        assert "not a valid path" in await walker.refused("git_diff", {"paths": ["../secret"]})
        assert (await walker.use("git_blame", {"path": "tools.txt"}))["parts"][0]["lines"] == [
            "spade"
        ]
        assert (await walker.use("git_search", {"text": "roses"}))["hits"][0]["line"] == 1
        assert len((await walker.use("git_search_history", {"text": "spade"}))["commits"]) == 1
        await walker.use("git_stash", {"message": "peas"})
        assert (await walker.use("git_stashes", {}))["stashes"][0]["number"] == 0
        await walker.use("git_switch", {"to": "spring", "create": True})
        await walker.use("git_apply_stash", {"drop": True})
        tree = await walker.use("git_add_worktree", {"name": "plan", "branch": "plan"})
        assert (await walker.use("git_status", {"repository": tree["path"]}))["branch"] == "plan"
        assert len((await walker.use("git_branches", {}))["branches"]) == 3
        assert await walker.read("git://garden/file/beds.txt?revision=HEAD~1") == "roses\nbeans\n"
        assert "git://garden/status" in await walker.uris()
        assert await walker.complete(
            "repository", "g", template="git://{repository}/log{?revision}"
        ) == ["garden"]
        assert "did not agree" in await walker.refused("git_restore", {"paths": ["beds.txt"]}, NO)
        assert (repo / "beds.txt").read_text() == "roses\npeas\n"
        await walker.use("git_restore", {"paths": ["beds.txt"]}, YES)
        await walker.use("git_remove_worktree", {"name": "plan"}, YES)
    assert (repo / "beds.txt").read_text() == "roses\nbeans\n"
    assert git(repo, "log", "--format=%an %s") == "Ada Lovelace A spade\nAda Lovelace First\n"
    assert git(repo, "branch", "--show-current") == "spring\n"
    assert git(repo, "status", "--porcelain") == ""
    assert not Path(tree["path"]).exists()


async def test_time(walk: Walk) -> None:
    """Times are returned, converted over a clock change, shifted and compared; zones are found,
    read and completed (`TOL-09`, `RES-03`, `PRM-03`, `CMP-02`)."""
    async with walk("time", {"INTERLOCK_TIME_ZONE": "Europe/Madrid"}) as walker:
        assert (await walker.use("get_current_time", {}))["timezone"] == "Europe/Madrid"
        spring = await walker.use(
            "convert_time",
            {"time": "2024-03-31T02:30", "target_timezone": ["UTC", "Asia/Kathmandu"]},
        )
        assert [one["datetime"] for one in spring["targets"]] == [
            "2024-03-31T01:30:00+00:00",
            "2024-03-31T07:15:00+05:45",
        ]
        assert "There is no 02:30" in spring["note"]
        assert (await walker.use("add_to_time", {"time": "2024-01-31", "duration": "P1M"}))["end"][
            "datetime"
        ].startswith("2024-02-29")
        assert (
            await walker.use(
                "time_between", {"start": "2024-03-30T12:00", "end": "2024-03-31T12:00"}
            )
        )["total_seconds"] == 23 * 3600
        changes = await walker.use("next_clock_changes", {"after": "2024-01-01", "count": 1})
        assert changes["changes"][0]["after"] == "2024-03-31T03:00:00+02:00"
        assert (await walker.use("find_timezones", {"query": "Barcelona"}))["zones"][0][
            "timezone"
        ] == "Europe/Madrid"
        assert "no time zone 'CST'" in await walker.refused("get_current_time", {"timezone": "CST"})
        assert "time://zones" in await walker.uris()
        assert json.loads(await walker.read("time://now/Asia/Tokyo"))["utc_offset"] == "+09:00"
        assert await walker.complete("zone", "kath", template="time://now/{+zone}") == [
            "Asia/Kathmandu"
        ]
        assert "Asia/Tokyo" in await walker.prompt(
            "plan_meeting", zone="Asia/Tokyo", day="2024-06-15"
        )


async def test_thinking(walk: Walk, tmp_path: Path) -> None:
    """A chain with a revision and a branch is reviewed, and another one is forgotten; the first
    survives the server (`TOL-09`, `RES-03`, `PRM-03`)."""
    store = f"sqlite:{tmp_path}/thoughts.db"
    async with walk("thinking", {"INTERLOCK_THINKING_STORE": store}) as walker:
        step = {"totalThoughts": 3, "nextThoughtNeeded": True}
        chain = (
            await walker.use(
                "sequentialthinking", {"thought": "Solar panels.", "thoughtNumber": 1, **step}
            )
        )["chain"]
        step["chain"] = chain
        second = {
            "thought": "Too heavy.",
            "thoughtNumber": 2,
            "isRevision": True,
            "revisesThought": 1,
            **step,
        }
        assert (await walker.use("sequentialthinking", second))["revised"] == [1]
        other = {
            "thought": "On the ground.",
            "thoughtNumber": 2,
            "branchFromThought": 1,
            "branchId": "ground",
            **step,
        }
        assert (await walker.use("sequentialthinking", other))["branches"] == ["ground"]
        assert "no thought 9" in await walker.refused(
            "sequentialthinking", {**second, "thoughtNumber": 3, "revisesThought": 9}
        )
        last = {**other, "thought": "That is it.", "thoughtNumber": 3, "nextThoughtNeeded": False}
        del last["branchFromThought"]
        assert (await walker.use("sequentialthinking", last))["thoughtHistoryLength"] == 4
        assert (await walker.use("review_chain", {"chain": chain}))["finished"]
        assert "On the ground." in await walker.read(f"thinking://chains/{chain}")
        assert "a riddle" in await walker.prompt("think_through", problem="a riddle")
        gone = (
            await walker.use(
                "sequentialthinking", {"thought": "?", "thoughtNumber": 1, **step, "chain": None}
            )
        )["chain"]
        listed = {one["chain"] for one in (await walker.use("list_chains", {}))["chains"]}
        assert listed == (
            {chain, gone} if walker.mine or not walker.stateless else set()
        )  # an anonymous caller without a session is identified only by the id
        assert (await walker.use("forget_chain", {"chain": gone}))["forgotten"]
    with contextlib.closing(sqlite3.connect(tmp_path / "thoughts.db")) as kept:
        text = "\n".join(kept.iterdump()).lower()
    assert [one.encode().hex() in text for one in (chain, gone)] == [True, False]


async def test_fetch(walk: Walk) -> None:
    """Pages in parts, their links and headings, redirects and rejections; the site gets only these
    requests (`TOL-09`, `TOL-15`, `RES-03`, `PRM-03`)."""
    page = (
        b"<title>Roses</title><h1>Roses</h1><p>Plant them in <a "
        b"href='/spring'>spring</a>.</p><h2>Water</h2><p>Every evening.</p>"
    )
    async with (
        running() as site,
        walk("fetch", {"INTERLOCK_FETCH_LOOPBACK": "1", "NO_PROXY": "127.0.0.1"}) as walker,
    ):
        site.pages |= {
            "/robots.txt": ok(b"User-agent: *\nDisallow: /diary\n", PLAIN),
            "/roses": ok(page, HTML),
            "/flowers": moved("/roses"),
            "/diary": ok(b"private", PLAIN),
            "/shed": moved("http://169.254.169.254/latest/meta-data/"),
            "/dot": ok(DOT, "Content-Type: image/png"),
        }

        def at(path: str) -> dict[str, str]:
            return {"url": site.url(path, "127.0.0.1")}

        found, step = await walker.asked("fetch", at("/flowers"))
        assert (
            step.text.startswith("# Roses"),
            [one["status"] for one in found["source"]["redirects"]],
        ) == (True, [302])
        outline = await walker.use("fetch_outline", at("/roses"))
        water = next(one for one in outline["sections"] if one["title"] == "Water")
        _, step = await walker.asked("fetch", {**at("/roses"), "cursor": water["cursor"]})
        assert "Every evening." in step.text
        assert "Plant them" not in step.text
        assert [
            one["text"] for one in (await walker.use("fetch_links", at("/roses")))["links"]
        ] == ["spring"]
        _, step = await walker.asked("fetch", at("/dot"))
        assert step.result["content"][0]["type"] == "image"
        assert "robots.txt does not allow" in await walker.refused("fetch", at("/diary"))
        assert "metadata" in await walker.refused("fetch", at("/shed"))
        assert "status 404" in await walker.refused("fetch", at("/tulips"))
        assert "http" in await walker.refused("fetch", {"url": "file:///etc/passwd"})
        uri = f"web://{at('/roses')['url']}"
        assert "Every evening." in await walker.read(uri, uri.replace("http://", "http//"))
        assert "private" in await walker.prompt("fetch", **at("/diary"))  # which a person asks for
        if walker.mine:
            assert at("/roses")["url"] in await walker.complete("url", "http://127", prompt="fetch")
    assert site.paths().count("/diary") == 1
    assert "/spring" not in site.paths()


async def test_memory(walk: Walk, tmp_path: Path) -> None:
    """A graph is created, searched, traversed, changed and restored, and the file contains it
    (`TOL-09`, `RES-03`, `CMP-02`)."""
    file = tmp_path / "graph.db"
    async with walk("memory", {"INTERLOCK_MEMORY_DB": str(file)}) as walker:
        people = [
            {"name": name, "entityType": "person", "observations": ["likes roses"]}
            for name in ("Ada", "Ben")
        ]
        made = await walker.use(
            "create_entities",
            {"entities": [*people, {"name": "Acme", "entityType": "firm", "observations": []}]},
        )
        assert [one["name"] for one in made["entities"]] == ["Ada", "Ben", "Acme"]
        works = [
            {"from": name, "to": "Acme", "relationType": "works_at"} for name in ("Ada", "Ben")
        ]
        assert (await walker.use("create_relations", {"relations": works}))["relations"] == works
        await walker.use(
            "add_observations",
            {"observations": [{"entityName": "Ada", "contents": ["plays chess"]}]},
        )
        assert [
            one["name"]
            for one in (await walker.use("search_nodes", {"query": "chess"}))["entities"]
        ] == ["Ada"]
        assert (await walker.use("open_nodes", {"names": ["Ada"]}))["entities"][0][
            "observations"
        ] == ["likes roses", "plays chess"]
        assert len((await walker.use("read_graph", {}))["relations"]) == 2
        gone = await walker.use("delete_entities", {"entityNames": ["Ben"]})
        assert [
            one["name"]
            for one in (await walker.use("search_nodes", {"query": "roses"}))["entities"]
        ] == ["Ada"]
        await walker.use("undo", {"change": gone["change"]})
        assert await walker.refused("undo", {"change": 999})
        assert "Ada" in await walker.read("memory://entity/Ada")
        assert "memory://knowledge-graph" in await walker.uris()
        assert await walker.complete("name", "A", template="memory://entity/{+name}") == [
            "Acme",
            "Ada",
        ]
    with contextlib.closing(sqlite3.connect(file)) as kept:
        dump = "\n".join(kept.iterdump())
    assert all(word in dump for word in ("plays chess", "works_at", "Ben"))


async def test_database(walk: Walk, tmp_path: Path) -> None:
    """An SQLite file is described, queried in pages and explained, and changed only if that is
    allowed (`TOL-09`, `TOL-15`, `RES-03`, `PRM-01`, `CMP-02`)."""
    for name in ("shop", "stock"):
        with contextlib.closing(sqlite3.connect(tmp_path / f"{name}.db")) as made, made:
            made.execute("CREATE TABLE beds (id INTEGER PRIMARY KEY, plant TEXT NOT NULL)")
            made.executemany(
                "INSERT INTO beds (plant) VALUES (?)", [("roses",), ("beans",), ("peas",)]
            )
    before = (tmp_path / "shop.db").read_bytes()
    env = {
        "INTERLOCK_DATABASE_URLS": f"{tmp_path}/shop.db {tmp_path}/stock.db",
        "INTERLOCK_DATABASE_WRITE": "stock",
    }
    async with walk("database", env) as walker:
        assert {
            one["name"]: one["writable"]
            for one in (await walker.use("list_databases", {}))["databases"]
        } == {
            "shop": False,
            "stock": True,
        }
        assert [
            one["name"] for one in (await walker.use("list_tables", {"database": "shop"}))["tables"]
        ] == ["beds"]
        described = await walker.use("describe_tables", {"database": "shop", "tables": ["beds"]})
        assert [column["name"] for column in described["tables"][0]["columns"]] == ["id", "plant"]
        select = {
            "database": "shop",
            "sql": "SELECT plant FROM beds WHERE id > ? ORDER BY id",
            "parameters": [0],
            "limit": 2,
        }
        page = await walker.use("query", select)
        assert page["rows"] == [["roses"], ["beans"]]
        assert (await walker.use("query", {**select, "cursor": page["next"]}))["rows"] == [["peas"]]
        assert (await walker.use("explain", {"database": "shop", "sql": "SELECT * FROM beds"}))[
            "steps"
        ]
        drop = {"sql": "DELETE FROM beds WHERE plant = 'peas'"}
        assert await walker.refused("query", {"database": "shop", **drop})
        assert await walker.refused("execute", {"database": "shop", "statements": [drop]})
        assert (await walker.use("execute", {"database": "stock", "statements": [drop]}))[
            "outcomes"
        ][0]["changed"] == 1
        assert "plant" in await walker.read("database://shop/schema")
        assert await walker.complete(
            "database", "sh", template="database://{database}/tables/{+table}"
        ) == ["shop"]
        assert "How many beds?" in await walker.prompt(
            "ask_database", question="How many beds?", database="shop"
        )
    assert (tmp_path / "shop.db").read_bytes() == before
    with contextlib.closing(sqlite3.connect(tmp_path / "stock.db")) as kept:
        assert kept.execute("SELECT plant FROM beds").fetchall() == [("roses",), ("beans",)]
