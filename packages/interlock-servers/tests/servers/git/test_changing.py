"""What the git server changes: commits, branches, worktrees, stashes; what it refuses to lose, and
what the person is asked about.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, McpError, Server
from interlock_servers.git import git_server
from tests.servers.calls import done, refusal
from tests.servers.git.repos import AUTHOR, bytes_of, commit, git, paths, repository, write


async def test_staging_and_committing(client: Client, repo: Path) -> None:
    """New, changed, gone and odd files; what is ignored stays out; the commit has the author and
    the message (`TOL-09`).
    """
    write(
        repo, {"a.txt": "changed\n", "new name/ü.txt": "n\n", ".gitignore": "*.log\n", "x.log": "x"}
    )
    (repo / "src" / "b.py").unlink()
    status = await done(client, "git_add", paths=["a.txt", "src/b.py", "new name"])
    assert paths(status["staged"]) == [
        ("modified", "a.txt"),
        ("added", "new name/ü.txt"),
        ("deleted", "src/b.py"),
    ]
    assert "ignored" in await refusal(client, "git_add", paths=["x.log"])
    assert "did not match" in await refusal(client, "git_add", paths=["nothing"])
    made = await done(
        client,
        "git_commit",
        message="Subject\n\n# not a comment\nBody",
        author="Bob <bob@example.com>",
    )
    assert git(repo, "log", "-1", "--format=%H|%an|%ae|%cn|%B").strip() == (
        f"{made['commit']}|Bob|bob@example.com|Ada Lovelace|Subject\n\n# not a comment\nBody"
    )
    assert "Nothing is staged" in await refusal(client, "git_commit", message="Again")
    assert "empty" in await refusal(client, "git_commit", message=" \n ")
    for author in ("Bob", "<bob@example.com>", "Bob <bob> <eve@x>"):
        assert "not an author" in await refusal(client, "git_commit", message="x", author=author)


async def test_who_commits(repo: Path, tmp_path: Path) -> None:
    """Who is said, else who is configured in the repository, else by the person; nobody is
    made up.
    """
    write(repo, {"a.txt": "1\n"})
    async with Client(git_server(repo)) as client:
        await done(client, "git_add", paths=["a.txt"])
        assert "Who is the author?" in await refusal(client, "git_commit", message="x")
    home = tmp_path / "home"
    write(
        home,
        {
            ".gitconfig": (
                "[user]\n\tname = Person\n\temail = person@example.com\n[core]\n\thooksPath = "
                "hooks\n\texcludesFile = ~/mine\n"
            ),
            "mine": "*.tmp\n",
        },
    )
    async with Client(git_server(repo)) as client:
        await done(client, "git_commit", message="1")
        write(repo, {"x.tmp": "ignored by the person's own list"})
        assert (await done(client, "git_status"))["untracked"] == []
        git(repo, "config", "user.name", "Here")
        git(repo, "config", "user.email", "here@example.com")
        write(repo, {"a.txt": "2\n"})
        await done(client, "git_add", paths=["a.txt"])
        await done(client, "git_commit", message="2")
    assert git(repo, "log", "-2", "--format=%an <%ae>").splitlines() == [
        "Here <here@example.com>",
        "Person <person@example.com>",
    ]


async def test_branches(client: Client, repo: Path) -> None:
    """New ones at any revision, listed by name in pages, deleted when the person agrees."""
    second = commit(repo, {"a.txt": "2\n"}, "Second")
    await done(client, "git_create_branch", name="feature/x")
    await done(client, "git_create_branch", name="old", revision="HEAD~1")
    found = await done(client, "git_branches")
    assert [
        (one["name"], one.get("current", False), one["subject"]) for one in found["branches"]
    ] == [
        ("feature/x", False, "Second"),
        ("main", True, "Second"),
        ("old", False, "First"),
    ]
    assert found["current"] == "main"
    page = await done(client, "git_branches", limit=2)
    assert [
        one["name"]
        for one in (await done(client, "git_branches", limit=2, cursor=page["next"]))["branches"]
    ] == ["old"]
    assert "already" in await refusal(client, "git_create_branch", name="old")
    for name in (
        "HEAD",
        "a..b",
        "a b",
        "x.lock",
        "@{-1}",
        "a\\b",
        "/x",
        "x/",
        ".x",
        "refs/heads/../x",
        "@",
        "refs/heads/refs/heads/x",
        "refs/heads/x",
        "heads/x",
        "tags/x",
        "FETCH_HEAD",
        "stash",
        "0123456789abcdef0123456789abcdef01234567",
    ):
        assert "not a valid name" in await refusal(client, "git_create_branch", name=name)
        assert "not a valid name" in await refusal(client, "git_switch", to=name, create=True)
        added = await refusal(client, "git_add_worktree", name="w", branch=name)
        assert "not a valid name" in added
    assert "checked out" in await refusal(client, "git_delete_branch", name="main")
    assert "There is no branch" in await refusal(client, "git_delete_branch", name="nothing")
    assert second in (await client.call_tool("git_delete_branch", {"name": "feature/x"})).text
    assert git(repo, "branch", "--format=%(refname:short)").split() == ["main", "old"]


async def test_switching_loses_nothing(client: Client, repo: Path) -> None:
    """Changes, files that git does not know and files that it ignores stay, or the branch does
    (`TOL-09`).
    """
    git(repo, "switch", "--quiet", "-c", "side")
    commit(repo, {"a.txt": "side\n", "extra.txt": "side\n", "local.cfg": "side\n"}, "Side")
    git(repo, "switch", "--quiet", "main")
    write(repo, {".git/info/exclude": "local.cfg\n"})
    for name in ("a.txt", "extra.txt", "local.cfg"):
        write(repo, {name: "mine\n"})
        assert name in await refusal(client, "git_switch", to="side")
        assert (repo / name).read_text() == "mine\n"
        git(repo, "checkout", "--quiet", "a.txt")
        if name != "a.txt":
            (repo / name).unlink()
    write(repo, {"src/b.py": "kept\n"})
    assert (await done(client, "git_switch", to="side"))["branch"] == "side"
    assert (repo / "src/b.py").read_text() == "kept\n"
    steps: list[tuple[float, float | None]] = []
    await client.call_tool(
        "git_switch", {"to": "main"}, on_progress=lambda p: steps.append((p.progress, p.total))
    )
    assert steps[-1][0] == steps[-1][1]
    assert (await done(client, "git_switch", to="side~1", detach=True))["branch"] is None
    assert (await done(client, "git_switch", to="new", create=True))["branch"] == "new"
    assert "There is no branch" in await refusal(client, "git_switch", to="origin/side")
    assert "There is no branch" in await refusal(client, "git_switch", to="a.txt")
    assert "not both" in await refusal(client, "git_switch", to="y", create=True, detach=True)


LOSING: list[tuple[str, dict[str, Any]]] = [
    ("git_restore", {"paths": ["a.txt"]}),
    ("git_restore", {"paths": ["a.txt"], "revision": "HEAD"}),
    ("git_unstage", {"paths": ["src/b.py"]}),
    ("git_unstage", {}),
    ("git_delete_branch", {"name": "side"}),
    ("git_drop_stash", {}),
    ("git_remove_worktree", {"name": "tree"}),
]


@pytest.fixture
async def full(repo: Path, server: Server) -> Path:
    """A repository in which there is something of everything to lose."""
    git(repo, "branch", "side")
    write(repo, {"a.txt": "stashed\n"})
    git(repo, "stash", "--quiet", "-m", "a \x1b[31mstash")
    write(repo, {"a.txt": "changed\n", "src/b.py": "staged\n"})
    git(repo, "add", "src/b.py")
    write(repo, {"src/b.py": "changed again\n"})
    async with Client(server) as client:
        await done(client, "git_add_worktree", name="tree", revision="side")
    return repo


@pytest.mark.parametrize(
    "tool, arguments", LOSING, ids=[f"{tool}-{n}" for n, (tool, _) in enumerate(LOSING)]
)
async def test_what_is_lost_is_asked_about(
    full: Path, server: Server, tool: str, arguments: dict[str, Any]
) -> None:
    """One question that names it harmlessly; a no, a dismissal or nobody to ask changes nothing
    (`ELI-01`).
    """
    before = bytes_of(full)
    asked: list[str] = []

    def answer(said: Any) -> Any:
        def reply(params: Any) -> Any:
            asked.append(params.message)
            return said

        return reply

    for said in ({"confirm": False}, False):
        async with Client(server, elicit=answer(said)) as client:
            assert "not" in await refusal(client, tool, **arguments)
    async with Client(server) as client:
        with pytest.raises(McpError, match="elicitation"):
            await client.call_tool(tool, arguments)
    assert bytes_of(full) == before
    async with Client(server, elicit=answer({"confirm": True})) as client:
        await done(client, tool, **arguments)
    assert bytes_of(full) != before
    assert len(asked) == 3
    assert "\x1b" not in asked[0]
    assert "repo" in asked[0]


async def test_only_single_files_are_put_back(client: Client, repo: Path) -> None:
    """A folder, or everything, is more than a question could name."""
    write(repo, {"src/b.py": "changed\n", "a.txt": "changed\n"})
    assert "is a folder" in await refusal(client, "git_restore", paths=["src"])
    assert "Name the files" in await refusal(client, "git_restore", paths=["."])
    git(repo, "add", ".")
    await done(client, "git_unstage", paths=["src/b.py"])
    assert git(repo, "status", "--porcelain") == "M  a.txt\n M src/b.py\n"
    await done(client, "git_restore", paths=["a.txt", "src/b.py"], revision="HEAD")
    assert git(repo, "status", "--porcelain") == ""


async def test_what_is_staged_is_taken_back_without_a_question(repo: Path, server: Server) -> None:
    """All of it, or a folder, by clients that cannot ask: where the files have it too, or nothing
    of it, none of it is lost (`ELI-01`).
    """
    write(repo, {"a.txt": "changed\n", "new ü.txt": "new\n", "src/c.py": "c\n", "other.txt": "o\n"})
    (repo / "src" / "b.py").unlink()
    git(repo, "add", "--all")
    files = {name: data for name, data in bytes_of(repo).items() if not name.startswith(".git/")}
    async with Client(server) as client:
        status = await done(client, "git_unstage", paths=["src"])
        assert paths(status["staged"]) == [
            ("modified", "a.txt"),
            ("added", "new ü.txt"),
            ("added", "other.txt"),
        ]
        status = await done(client, "git_unstage")
        assert (status["staged"], status["untracked"]) == (
            [],
            ["new ü.txt", "other.txt", "src/c.py"],
        )
        assert paths(status["unstaged"]) == [("modified", "a.txt"), ("deleted", "src/b.py")]
        assert (await client.call_tool("git_unstage", {})).text == "None of these files is staged."
        assert {
            name: data for name, data in bytes_of(repo).items() if not name.startswith(".git/")
        } == files
        git(repo, "add", "a.txt")
        write(repo, {"a.txt": "changed again\n"})
        with pytest.raises(
            McpError, match="elicitation"
        ):  # what was staged of this one stands nowhere else
            await client.call_tool("git_unstage", {})


async def test_what_is_staged_may_change_while_the_person_thinks(
    repo: Path, server: Server
) -> None:
    """What they agreed to lose is lost, and nothing else."""
    write(repo, {"a.txt": "staged\n"})
    git(repo, "add", "a.txt")
    write(repo, {"a.txt": "changed\n"})

    def meanwhile(params: Any) -> Any:
        write(repo, {"src/b.py": "staged too\n"})
        git(repo, "add", "src/b.py")
        write(repo, {"src/b.py": "and changed\n"})
        return {"confirm": True}

    async with Client(server, elicit=meanwhile) as client:
        assert "changed" in await refusal(client, "git_unstage")
    assert git(repo, "diff", "--cached", "--name-only").split() == ["a.txt", "src/b.py"]


async def test_before_the_first_commit_what_is_staged_is_taken_back(tmp_path: Path) -> None:
    """There is no HEAD to take it back to."""
    repo = tmp_path / "new"
    repo.mkdir()
    git(repo, "init", "--quiet")
    write(repo, {"a.txt": "a\n"})
    git(repo, "add", "a.txt")
    async with Client(git_server(repo)) as client:
        assert (await done(client, "git_unstage"))["untracked"] == ["a.txt"]


async def test_a_pattern_is_no_path(client: Client, repo: Path) -> None:
    """Whoever means one is told that paths are not taken so."""
    write(repo, {"a.txt": "changed\n"})
    assert "not patterns" in await refusal(client, "git_add", paths=["*.txt"])
    assert "not patterns" not in await refusal(client, "git_add", paths=["nothing"])
    write(repo, {"*.md": "a strange name\n"})
    assert paths((await done(client, "git_add", paths=["*.md"]))["staged"]) == [("added", "*.md")]


async def test_stashes(client: Client, repo: Path) -> None:
    """Put aside with or without what git does not know, listed, shown, applied, popped and dropped;
    conflicts keep the stash.
    """
    assert "nothing to stash" in (await client.call_tool("git_stash", {})).text
    write(repo, {"a.txt": "one\nmine\nthree\n", "new.txt": "n\n", "src/b.py": "other\n"})
    await done(client, "git_stash", message="first", paths=["src"])
    assert git(repo, "status", "--porcelain") == " M a.txt\n?? new.txt\n"
    await done(client, "git_stash", message="second", untracked=True)
    assert git(repo, "status", "--porcelain") == ""
    found = await done(client, "git_stashes")
    assert [(one["number"], one["subject"]) for one in found["stashes"]] == [
        (0, "On main: second"),
        (1, "On main: first"),
    ]
    page = await done(client, "git_stashes", limit=1)
    assert [
        one["number"] for one in (await done(client, "git_stashes", cursor=page["next"]))["stashes"]
    ] == [1]
    assert paths((await done(client, "git_show_stash", stash=1))["files"]) == [
        ("modified", "src/b.py")
    ]
    assert "+mine" in (await client.call_tool("git_show_stash", {})).text
    applied = await done(client, "git_apply_stash", stash=1)
    assert applied["paths"] == ["src/b.py"]
    await done(client, "git_apply_stash", drop=True)
    assert (repo / "new.txt").read_text() == "n\n"
    git(repo, "checkout", "--quiet", "--force", "HEAD")
    write(repo, {"a.txt": "one\nmine\nthree\n"})
    await done(client, "git_stash")
    commit(repo, {"a.txt": "one\nyours\nthree\n"}, "Yours")
    assert (await done(client, "git_apply_stash", drop=True))["conflicts"] == ["a.txt"]
    assert len((await done(client, "git_stashes"))["stashes"]) == 2
    assert "There is no stash 7" in await refusal(client, "git_drop_stash", stash=7)


async def test_worktrees(client: Client, repo: Path, tmp_path: Path) -> None:
    """Made at one place only, used by path, kept where something would be lost, removed when the
    person agrees.
    """
    made = await done(client, "git_add_worktree", name="tree", branch="side")
    path = Path(made["path"])
    assert path == tmp_path / "repo.worktrees" / "tree"
    assert (path / "a.txt").read_text() == "one\ntwo\nthree\n"
    found = await done(client, "git_worktrees", repository=str(path / "src"))
    assert [(one["path"], one["branch"], one["usable"]) for one in found["worktrees"]] == [
        (str(repo), "main", True),
        (str(path), "side", True),
    ]
    write(path, {"a.txt": "changed\n"})
    status = await done(client, "git_add", repository=str(path), paths=["a.txt"])
    assert (status["branch"], paths(status["staged"])) == ("side", [("modified", "a.txt")])
    assert git(repo, "status", "--porcelain") == ""
    assert "modified or untracked" in await refusal(client, "git_remove_worktree", name="tree")
    await done(client, "git_remove_worktree", name="tree", discard=True)
    assert not path.exists()
    for name in ("../x", "a/b", "-f", ".git", "GIT~1", "x\n", ""):
        assert await refusal(client, "git_add_worktree", name=name)
        assert await refusal(client, "git_remove_worktree", name=name)
    path.symlink_to(tmp_path)
    assert "already contains tree" in await refusal(client, "git_add_worktree", name="tree")
    git(repo, "worktree", "add", "--quiet", str(tmp_path / "elsewhere"))
    assert "not a repository" in await refusal(
        client, "git_status", repository=str(tmp_path / "elsewhere")
    )
    assert "no work tree" in await refusal(client, "git_remove_worktree", name="elsewhere")


async def test_a_worktree_or_submodule_can_be_given(repo: Path, tmp_path: Path) -> None:
    """Where its `.git` leads to a git folder that leads back, or that lies in a repository which is
    given too.
    """
    git(repo, "worktree", "add", "--quiet", str(tmp_path / "tree"))
    other = repository(tmp_path / "other")
    git(repo, "submodule", "--quiet", "add", str(other), "sub")
    async with Client(git_server(tmp_path / "tree", repo, repo / "sub", author=AUTHOR)) as client:
        assert (await done(client, "git_status", repository="tree"))["branch"] == "tree"
        assert (await done(client, "git_status", repository="sub"))["repository"] == "sub"
        assert "Which repository?" in await refusal(client, "git_status")
    async with Client(git_server(repo / "sub")) as client:
        assert "not a repository of this server" in await refusal(client, "git_status")


async def test_who_watches_is_told(client: Client, repo: Path) -> None:
    """Of changes of the status and the log (`SUB-01`)."""
    write(repo, {"a.txt": "changed\n"})
    async with client.watch(resources=["git://repo/status", "git://repo/log"]) as changes:
        await client.call_tool("git_add", {"paths": ["a.txt"]})
        assert (await asyncio.wait_for(anext(changes), 20)).uri == "git://repo/status"
        await client.call_tool("git_commit", {"message": "x"})
        assert {(await asyncio.wait_for(anext(changes), 20)).uri for _ in range(2)} == {
            "git://repo/status",
            "git://repo/log",
        }


async def test_only_one_of_two_puts_aside(client: Client, repo: Path) -> None:
    """Of several who put the same changes aside at once one has done it, and the others are told
    that there was nothing left.
    """
    write(repo, {"a.txt": "changed\n"})
    results = await asyncio.gather(*(client.call_tool("git_stash", {}) for _ in range(4)))
    assert sorted(result.text.partition(" ")[0] for result in results) == [
        "Stashed",
        "There",
        "There",
        "There",
    ]


async def test_two_at_once_take_turns(client: Client, repo: Path) -> None:
    """Calls that change a repository at the same time all come through."""
    results = await asyncio.gather(
        *(client.call_tool("git_create_branch", {"name": f"b{n}"}) for n in range(8))
    )
    assert not any(result.is_error for result in results)
    write(repo, {f"f{n}": "x\n" for n in range(8)})
    results = await asyncio.gather(
        *(client.call_tool("git_add", {"paths": [f"f{n}"]}) for n in range(8))
    )
    assert not any(result.is_error for result in results), [result.text for result in results]
    assert len((await done(client, "git_status"))["staged"]) == 8
