"""How git is run: bounded, ended with all that it started, and on this machine at all; large
repositories and how they are served.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
import zlib
from collections.abc import Iterator
from hashlib import sha1
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from interlock import REVISIONS, Client, McpError, ToolError
from interlock_servers import git as package
from interlock_servers import processes
from interlock_servers.commands import serve
from interlock_servers.git import git_server, runner
from interlock_servers.git.limits import GitLimits
from interlock_servers.git.repositories import Repositories
from interlock_servers.git.runner import Git
from tests.servers.calls import done, refusal, words
from tests.servers.checkout import clone
from tests.servers.git.repos import AUTHOR, PEOPLE, git, repository, write
from tests.servers.roads import over, serving

ANSWER = 'for one in version config; do [ "$1" = $one ] && echo git version 9.9 && exit; done'


def script(path: Path, text: str) -> str:
    """A program that takes git's place."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


async def ended(*watches: int) -> bool:
    """Whether processes end; they are watched by descriptors, as their numbers may be given to
    others.
    """
    left = set(watches)
    while left:
        ready, _, _ = await asyncio.to_thread(select.select, list(left), [], [], 20)
        if not ready:
            return False
        left -= set(ready)
    return True


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes as Linux shows them")
@pytest.mark.parametrize(
    "answered", ["version", "version config"], ids=["at once", "while it works"]
)
async def test_cancelling_ends_git_and_what_it_started(tmp_path: Path, answered: str) -> None:
    """The whole group of processes: a program that git started does not outlive the call
    (`CAN-02`).
    """
    started = tmp_path / "started"
    os.mkfifo(started)
    program = script(
        tmp_path / "git",
        f'for one in {answered}; do [ "$1" = $one ] && echo git version 9.9 && exit; done\nsleep '
        f"600 &\necho $$ $! > {started}\nwait",
    )
    running = asyncio.create_task(Git(program).run(["status"], cwd=tmp_path))
    pids = [int(pid) for pid in (await asyncio.to_thread(started.read_text)).split()]
    watches = [os.pidfd_open(pid) for pid in pids]
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await ended(*watches)
    for watch in watches:
        os.close(watch)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes as Linux shows them")
async def test_cancelling_while_git_is_being_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of which nobody knows yet is ended as well (`CAN-02`)."""
    program = script(tmp_path / "git", f"{ANSWER}\nexec sleep 600")
    start = asyncio.create_subprocess_exec
    begun = asyncio.Event()
    known = asyncio.Event()
    watches: list[int] = []

    async def slowly(*command: str, **options: Any) -> asyncio.subprocess.Process:
        process = await start(*command, **options)
        if "status" in command:
            watches.append(os.pidfd_open(process.pid))
            begun.set()
            await known.wait()
        return process

    monkeypatch.setattr(
        processes, "_PIPES_ARE_POLLED", False
    )  # where processes are begun in the background
    monkeypatch.setattr(asyncio, "create_subprocess_exec", slowly)
    running = asyncio.create_task(Git(program).run(["status"], cwd=tmp_path))
    await begun.wait()
    running.cancel()
    await asyncio.sleep(0)
    known.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await ended(*watches)
    os.close(watches[0])


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes as Linux shows them")
async def test_git_may_clean_up_before_it_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes its lock away, so that nobody else is kept from the repository; who does not heed
    that is ended all the same (`CAN-02`).
    """
    monkeypatch.setattr(runner, "GRACE", 0.2)
    started = tmp_path / "started"
    lock = tmp_path / "lock"
    os.mkfifo(started)
    for heeds in (True, False):
        trap = f"trap 'rm {lock}; exit' TERM" if heeds else "trap '' TERM"
        program = script(
            tmp_path / f"git-{heeds}",
            f"{ANSWER}\n: > {lock}\n{trap}\necho $$ > {started}\nwhile :; do sleep 0.01; done",
        )
        running = asyncio.create_task(Git(program).run(["add"], cwd=tmp_path))
        watch = os.pidfd_open(int(await asyncio.to_thread(started.read_text)))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await ended(watch)
        os.close(watch)
        assert lock.exists() is not heeds


async def test_time_and_output_are_bounded(tmp_path: Path) -> None:
    """What takes too long is stopped, in words; of what never ends so much is kept as was asked
    for.
    """
    endless = Git(script(tmp_path / "git", f"{ANSWER}\nexec yes"))
    ended = await endless.run(["log"], cwd=tmp_path, most=100_000)
    assert (len(ended.output), ended.cut) == (100_000, True)
    window = await endless.window(["log"], cwd=tmp_path, skip=0, most=9)
    assert (window.data, window.more, window.end) == (b"y\ny\ny\ny\n", True, 8)
    silent = Git(script(tmp_path / "silent", f"{ANSWER}\nexec sleep 600"))
    with pytest.raises(ToolError, match="more than 0.05 seconds"):
        await silent.run(["log"], cwd=tmp_path, seconds=0.05)


@pytest.mark.parametrize("limit", [known.name for known in msgspec.structs.fields(GitLimits)])
def test_limits_are_as_stated(limit: str) -> None:
    """The page has each of them with what it is unless told otherwise."""
    page = (Path(__file__).parents[5] / "docs" / "servers" / "git.md").read_text(encoding="utf-8")
    assert f"| `{limit.upper()}` | {getattr(GitLimits(), limit):,.0f} |" in page


async def test_each_limit_holds(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is set in the environment is what is done at most, and what is more is said."""
    write(repo, {f"f{n}": "x\n" for n in range(9)})
    for name, value in (("LISTED", 7), ("FILE", 5), ("BLAMED", 5)):
        monkeypatch.setenv(f"INTERLOCK_GIT_{name}", str(value))
    async with Client(git_server(repo, author=AUTHOR)) as client:
        status = await done(client, "git_status")
        assert (len(status["untracked"]), status["complete"]) == (7, False)
        assert "more than 5 bytes" in await refusal(client, "git_blame", path="a.txt")
        with pytest.raises(McpError, match="the limit is 5"):
            await client.read_resource("git://repo/file/a.txt")
        await done(client, "git_add", paths=["."])
        diff = await done(client, "git_diff", what="staged")
        assert (len(diff["files"]), diff["added"], diff["complete"]) == (7, 9, False)
    for limits, why in (
        (GitLimits(output=60), "too large"),
        (GitLimits(seconds=1e-6), "does not answer"),
        (GitLimits(call=1e-6), "1e-06"),
    ):
        async with Client(git_server(repo, limits=limits)) as client:
            assert why in await refusal(client, "git_log")


@pytest.mark.skipif(sys.platform != "linux", reason="only there can another process be bounded")
async def test_memory_is_bounded(tmp_path: Path) -> None:
    """A git that wants more than it may have does not get it, and dumps no core."""
    program = script(
        tmp_path / "git", f"{ANSWER}\nread go; ulimit -d; ulimit -c"
    )  # nothing is fed before the bounds are set
    ended = await Git(program, GitLimits(memory=64 * 1024 * 1024)).run(
        ["log"], cwd=tmp_path, feed=b"go\n"
    )
    assert ended.output == b"65536\n0\n"


async def test_without_git(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server starts, and every tool says what is missing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    async with Client(git_server(repo)) as client:
        assert "needs git" in await refusal(client, "git_status")
    script(tmp_path / "git", "echo git version 2.20.1")
    async with Client(git_server(repo)) as client:
        assert "git 2.36 or later; this is git version 2.20.1" in await refusal(
            client, "git_status"
        )


async def test_a_huge_file_is_not_unpacked(client_of_bomb: Client) -> None:
    """An object of 16 GiB that takes 16 MB is told by its size; a comparison calls it no text, or
    fails in words.
    """
    assert "4194304 bytes" in await refusal(client_of_bomb, "git_blame", path="bomb")
    with pytest.raises(Exception, match="the limit is"):
        await client_of_bomb.read_resource("git://bomb/file/bomb")
    for tool, arguments in (
        ("git_show", {"revision": "HEAD"}),
        ("git_search", {"text": "x"}),
        ("git_switch", {"to": "main"}),
    ):
        await client_of_bomb.call_tool(
            tool, arguments
        )  # ends, and this process is as large as before


@pytest.fixture
async def client_of_bomb(tmp_path: Path) -> object:
    """A client of a server over a repository with a file that says it is very large, and is stored
    small.
    """
    repo = repository(tmp_path / "bomb")
    size = 16 * 1024**3
    head = f"blob {size}\0".encode()
    packed = zlib.compressobj(9)
    data_ = packed.compress(head + bytes(8 * 1024**2)) + packed.flush()
    name = sha1(
        head + bytes(8), usedforsecurity=False
    ).hexdigest()  # no true name: nobody unpacks it to find that out
    (repo / ".git" / "objects" / name[:2]).mkdir(exist_ok=True)
    (repo / ".git" / "objects" / name[:2] / name[2:]).write_bytes(data_)
    tree = git(repo, "mktree", feed=f"100644 blob {name}\tbomb\n").strip()
    made = git(repo, "commit-tree", tree, "-p", "HEAD", "-m", "Bomb").strip()
    git(repo, "update-ref", "refs/heads/main", made)
    async with Client(git_server(repo)) as opened:
        yield opened


def fast_import(commits: int) -> Iterator[bytes]:
    """So many commits for `git fast-import`, each of one file; the text `needle` comes and goes
    deep down.
    """
    yield b"blob\nmark :1\ndata 2\nx\n\nblob\nmark :2\ndata 7\nneedle\n\n"
    who = f"committer {PEOPLE['GIT_AUTHOR_NAME']} <{PEOPLE['GIT_AUTHOR_EMAIL']}>"
    for n in range(commits):
        text = f"Commit {n}"
        mark = 2 if n == 100 else 1
        yield (
            f"commit refs/heads/main\n{who} {1_500_000_000 + n * 60} +0000\ndata "
            f"{len(text)}\n{text}\nM 644 :{mark} dir{n % 50}/f{n % 500}\n\n"
        ).encode()
    yield b"done\n"


@pytest.mark.endurance(seconds=7)
async def test_a_hundred_thousand_commits(tmp_path: Path) -> None:
    """Every way to look into them ends soon and keeps little: pages from the top and from deep
    down, filters, blame, the history of a text.
    """
    count = 100_000
    repo = tmp_path / "large"
    repo.mkdir()
    git(repo, "init", "--quiet")
    git(repo, "fast-import", "--quiet", "--done", feed=b"".join(fast_import(count)))
    git(repo, "reset", "--quiet", "--hard")
    async with Client(git_server(repo, author=AUTHOR), timeout=300) as client:
        page = await done(client, "git_log", limit=200)
        assert page["commits"][0]["subject"] == f"Commit {count - 1}"
        assert (
            await done(client, "git_log", grep="Commit 17", until="2017-07-14T03:00:00Z", limit=5)
        )["commits"][-1]["subject"] == "Commit 17"
        assert (await done(client, "git_log", author="nobody"))["commits"] == []
        assert [
            one["subject"]
            for one in (await done(client, "git_log", paths=["dir0/f100"], limit=1))["commits"]
        ] == ["Commit 600"]
        first = git(repo, "rev-list", "--max-parents=0", "HEAD").strip()
        diff = await done(client, "git_diff", old=first, new="HEAD", most=2000)
        assert (len(diff["files"]), diff["next"] is not None) == (499, True)
        seen: list[float] = []
        found: list[str] = []
        cursor = None
        while True:
            arguments = {
                "text": "needle",
                "commits_to_look_at": 60_000,
                **({"cursor": cursor} if cursor else {}),
            }
            result = await client.call_tool(
                "git_search_history", arguments, on_progress=lambda p: seen.append(p.progress)
            )
            found += [one["subject"] for one in result.structured_content["commits"]]
            cursor = result.structured_content["next"]
            if cursor is None:
                break
        assert found == ["Commit 600", "Commit 100"]
        assert len(seen) >= 50
        assert (await done(client, "git_blame", path="dir0/f0"))["parts"]
        assert (await done(client, "git_status"))["clean"]
        searching = asyncio.create_task(
            client.call_tool("git_search_history", {"text": "nothing", "commits_to_look_at": count})
        )
        await asyncio.sleep(0)
        searching.cancel()
        await asyncio.gather(searching, return_exceptions=True)


# -- how it is served ------------------------------------------------------------------------------


@pytest.mark.matrix(seconds=0.5)
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("road", ["http", "stdio"])
async def test_every_revision(repo: Path, revision: str, road: str) -> None:
    """`interlock serve git REPOSITORY` over stdio, and the same server over HTTP, under every
    revision.
    """
    async with (
        over(road, git_server(repo), serving("git", repo)) as target,
        Client(target, revision=revision) as client,
    ):
        assert (await words(client, "git_status")).startswith("repo: on main")
        assert await words(client, "git_diff", old="HEAD", what="staged") == "Nothing differs."
        assert (await client.read_resource("git://repo/file/a.txt")).contents[
            0
        ].text == "one\ntwo\nthree\n"


def test_what_is_given(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments, else the environment, else the current folder; what is no repository is refused in
    one line.
    """
    other = repository(tmp_path / "elsewhere" / "repo")
    assert Repositories([repo / "src", other, repo]).names == ["repo", "repo-2"]
    monkeypatch.setenv("INTERLOCK_GIT_REPOSITORIES", f"{repo}{os.pathsep}{other}")
    assert {one.listing.uri for one in package.server.resources.all()} >= {
        "git://repo/status",
        "git://repo-2/log",
    }
    monkeypatch.delenv("INTERLOCK_GIT_REPOSITORIES")
    monkeypatch.chdir(repo / "src")
    assert package.server.info.name == "git"
    for wrong, why in (
        (str(tmp_path), "not in a git repository"),
        (str(tmp_path / "none"), "No such file"),
        (str(repo / ".git"), "not in a git repository"),
    ):
        ended = CliRunner().invoke(serve, ["git", wrong])
        assert ended.exit_code == 1
        assert why in ended.output
    ended = CliRunner().invoke(serve, ["mail", "x"])
    assert (ended.exit_code, "takes no arguments" in ended.output) == (2, True)


async def test_this_repository(tmp_path: Path) -> None:
    """Real use, over a clone of the repository that this test is in."""
    repo = clone(tmp_path / "clone")
    git(repo, "switch", "--quiet", "-C", "main")
    async with Client(
        git_server(repo, author=AUTHOR), elicit=lambda params: {"confirm": True}
    ) as client:
        (hit, *_) = (
            await done(client, "git_search", text="The Model Context Protocol", paths=["README.md"])
        )["hits"]
        blame = await done(
            client, "git_blame", path="README.md", first=hit["line"], last=hit["line"]
        )
        shown = await done(
            client, "git_show", revision=blame["parts"][0]["commit"], paths=["README.md"]
        )
        assert [one["path"] for one in shown["diff"]["files"]] == ["README.md"]
        await done(client, "git_switch", to="work", create=True)
        write(repo, {"README.md": "# Changed\n", "new.md": "new\n"})
        await done(client, "git_add", paths=["new.md"])
        await done(client, "git_commit", message="New")
        await done(client, "git_restore", paths=["README.md"])
        assert (await done(client, "git_status"))["clean"]
        assert len((await done(client, "git_log", limit=200))["commits"]) == min(
            200, int(git(repo, "rev-list", "--count", "HEAD"))
        )
