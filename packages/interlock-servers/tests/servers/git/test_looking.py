"""Looking at a repository: times in words, branches by their commits, files as they were, lists
that are too long, conflicts.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, ToolError
from interlock_servers.git import git_server
from interlock_servers.git.dates import moment
from interlock_servers.git.limits import GitLimits
from tests.servers.calls import done, refusal
from tests.servers.git.repos import commit, git, paths

NOW = datetime(2026, 3, 31, 12, 30, tzinfo=UTC)  # a Tuesday


@pytest.mark.parametrize(
    "text, begin",
    [
        ("now", "2026-03-31T12:30:00"), ("today", "2026-03-31T00:00:00"),
            ("Yesterday", "2026-03-30T00:00:00"),
        ("monday", "2026-03-30T00:00:00"), ("last tuesday", "2026-03-24T00:00:00"),
            ("wednesday", "2026-03-25T00:00:00"),
        ("2 weeks ago", "2026-03-17T12:30:00"), ("2.weeks.ago", "2026-03-17T12:30:00"),
            ("2 weeks", "2026-03-17T12:30:00"),
        ("an hour ago", "2026-03-31T11:30:00"), ("90 seconds ago", "2026-03-31T12:28:30"),
            ("last week", "2026-03-24T12:30:00"),
        ("1 month ago", "2026-02-28T12:30:00"), ("1 year, 1 month ago", "2025-02-28T12:30:00"),
            ("3 years ago", "2023-03-31T12:30:00"),
        ("2026-01-31", "2026-01-31T00:00:00"), ("2026-01-31T10:00:00+02:00", "2026-01-31T08:00:00"),
    ],
)  # fmt: skip
def test_times_in_words(text: str, begin: str) -> None:
    """Days and times as people and git write them, in UTC; a day ends with its last second."""
    wanted = datetime.fromisoformat(begin).replace(tzinfo=UTC)
    assert datetime.fromtimestamp(moment(text, now=NOW), UTC) == wanted
    whole = begin.endswith("T00:00:00")
    assert moment(text, end=True, now=NOW) - moment(text, now=NOW) == (86_399 if whole else 0)


@pytest.mark.parametrize(
    "text", ["whenever", "2 fortnights ago", "ago", "weeks ago", "last", "tomorrow", "-1 day",
        "999999 years ago", "2026-02-30", "noon", "all", "never"]
)  # fmt: skip
def test_what_is_no_time(text: str) -> None:
    """Git would take it for now, or for some other time, and nobody would notice."""
    with pytest.raises(ToolError, match="is not a date"):
        moment(text, now=NOW)


async def test_the_log_of_late(client: Client, repo: Path) -> None:
    """By words, as git has them."""
    day = datetime.now(UTC) - timedelta(days=10)
    commit(
        repo,
        {"a.txt": "new\n"},
        "Of late",
        GIT_AUTHOR_DATE=day.isoformat(),
        GIT_COMMITTER_DATE=day.isoformat(),
    )
    for since, until, subjects in (
        ("2 weeks ago", None, ["Of late"]),
        ("yesterday", None, []),
        (None, "3 days ago", ["Of late", "First"]),
    ):
        times = {name: value for name, value in (("since", since), ("until", until)) if value}
        found = await done(client, "git_log", paths=["a.txt"], **times)
        assert [
            one["subject"] for one in found["commits"] if one["subject"] != "First" or not since
        ] == subjects


async def test_branches_by_what_they_contain(client: Client, repo: Path) -> None:
    """Those with a commit in their history, those without; what is no commit is none."""
    git(repo, "branch", "old")
    commit(repo, {"a.txt": "new\n"}, "Second")
    git(repo, "branch", "new")

    async def names(**arguments: Any) -> list[str]:
        return [
            one["name"] for one in (await done(client, "git_branches", **arguments))["branches"]
        ]

    assert await names() == ["main", "new", "old"]
    assert await names(contains="HEAD") == ["main", "new"]
    assert await names(not_contains="HEAD") == ["old"]
    assert await names(contains="HEAD~1", not_contains="new") == ["old"]
    assert await names(contains="new", limit=1) == ["main"]
    for words in ("nothing", "--all", "HEAD..HEAD"):
        assert "There is no commit" in await refusal(client, "git_branches", contains=words)
    git(repo, "switch", "--quiet", "--detach", "HEAD~1")
    commit(repo, {"b.txt": "b\n"}, "Apart")
    assert (
        await client.call_tool("git_branches", {"contains": "HEAD"})
    ).text == "There is no such branch."


async def test_a_file_as_it_was(client: Client, repo: Path) -> None:
    """Its text at a revision, some lines of it; whoever asks for it as git writes it is told where
    it is.
    """
    commit(repo, {"a.txt": "".join(f"{n}\n" for n in range(1, 31)), "blob": "a\0b"}, "Second")
    assert (
        await client.call_tool("git_read_file", {"path": "a.txt", "revision": "HEAD~1"})
    ).text == "one\ntwo\nthree"
    found = await done(client, "git_read_file", path="a.txt", first=3, last=5)
    assert (found["lines"], found["first"], found["last"], found["next"], found["size"]) == (
        30,
        3,
        5,
        None,
        81,
    )
    assert (
        await client.call_tool("git_read_file", {"path": "a.txt", "first": 29})
    ).text == "29\n30"
    commit(repo, {"long.txt": "x" * 99 + "\n" + ("y" * 99 + "\n") * 1000}, "Third")
    page = await done(client, "git_read_file", path="long.txt")
    rest = await done(client, "git_read_file", path="long.txt", first=page["next"])
    assert (page["first"], rest["first"], page["lines"]) == (1, page["last"] + 1, 1001)
    for arguments, words in (
        ({"path": "blob"}, "not text"),
        ({"path": "nothing"}, "no file"),
        ({"path": "src"}, "no file"),
        ({"path": "a.txt", "first": 31}, "has 30 lines"),
        ({"path": "a.txt", "first": 3, "last": 2}, "30 lines"),
        ({"path": ".git/config"}, "own folder"),
        ({"path": "a.txt", "revision": "--all"}, "There is no"),
    ):
        assert words in await refusal(client, "git_read_file", **arguments)
    assert "Call git_read_file with path 'a.txt' and revision 'HEAD~1'" in await refusal(
        client, "git_show", revision="HEAD~1:a.txt"
    )


async def test_where_the_list_of_files_is_too_long(repo: Path) -> None:
    """What git says of the files is cut, which the answer says, and the patch is all there."""
    commit(repo, {f"file {n}.txt": "x\n" for n in range(30)}, "Many")
    async with Client(git_server(repo, limits=GitLimits(output=2000))) as client:
        for tool, arguments in (
            ("git_diff", {"old": "HEAD~1", "new": "HEAD"}),
            ("git_show", {"revision": "HEAD"}),
        ):
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, result.text
            diff = (
                result.structured_content["diff"]
                if tool == "git_show"
                else result.structured_content
            )
            assert diff["complete"] is False
            assert 0 < len(diff["files"]) < 30
            assert result.text.count("+++ b/file") == 30


async def test_conflicts_are_shown(client: Client, repo: Path) -> None:
    """A file in conflict is told as such, with its lines from both sides, also in pages."""
    git(repo, "switch", "--quiet", "-c", "side")
    commit(repo, {"a.txt": "one\nside\nthree\n"}, "Side")
    git(repo, "switch", "--quiet", "main")
    commit(repo, {"a.txt": "one\nmain\nthree\n"}, "Main")
    git(repo, "merge", "side", check=False)
    result = await client.call_tool("git_diff", {})
    assert result.text == git(repo, "diff", "--full-index")
    assert "++<<<<<<< HEAD" in result.text
    assert ("unmerged", "a.txt") in paths(result.structured_content["files"]) or (
        "modified",
        "a.txt",
    ) in paths(result.structured_content["files"])
    assert "* Unmerged path a.txt" in (await client.call_tool("git_diff", {"what": "staged"})).text
