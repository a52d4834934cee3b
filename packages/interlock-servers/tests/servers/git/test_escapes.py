"""What leads out of a repository - paths, links, pointers, alternates - and what looks like an
option: none of it does.
"""

from __future__ import annotations

import os
import shutil
import struct
from hashlib import sha1
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Client, McpError, ToolError
from interlock.cursors import encode_cursor
from interlock.untrusted.invisible import visible
from interlock_servers.git import git_server
from interlock_servers.git.arguments import inside, place_of
from tests.servers.calls import refusal
from tests.servers.git.repos import AUTHOR, bytes_of, commit, git, repository, write

SECRET = "the secret"


# -- what is said ----------------------------------------------------------------------------------

OPTIONS = [
    "--output={out}",
    "-O{out}",
    "--exec=touch {out}",
    "--upload-pack=touch {out}",
    "--help",
    "--all",
    "-",
    "--",
    "--end-of-options",
]
REVISIONS = [
    ("git_show", "revision"),
    ("git_log", "revision"),
    ("git_diff", "old"),
    ("git_blame", "revision"),
    ("git_search", "revision"),
    ("git_search_history", "revision"),
    ("git_create_branch", "revision"),
    ("git_switch", "to"),
    ("git_restore", "revision"),
    ("git_add_worktree", "revision"),
    ("git_delete_branch", "name"),
    ("git_create_branch", "name"),
    ("git_add_worktree", "branch"),
]
REST = {
    "git_blame": {"path": "a.txt"},
    "git_search": {"text": "one"},
    "git_search_history": {"text": "one"},
    "git_create_branch": {"name": "x"},
    "git_restore": {"paths": ["a.txt"]},
    "git_add_worktree": {"name": "x"},
}


@pytest.mark.parametrize("tool, argument", REVISIONS)
async def test_no_revision_or_branch_is_an_option(
    client: Client, repo: Path, tmp_path: Path, tool: str, argument: str
) -> None:
    """What begins with a dash is no revision and no branch; nothing is written, and nothing in the
    repository changes.
    """
    write(repo, {"a.txt": "changed\n"})
    out = tmp_path / "out"
    before = bytes_of(repo)
    for option in OPTIONS:
        words = await refusal(
            client, tool, **{**REST.get(tool, {}), argument: option.format(out=out)}
        )
        assert "There is no" in words or "is not a valid name for a branch" in words, words
    assert not out.exists()
    assert bytes_of(repo) == before


@pytest.mark.parametrize(
    "revision",
    [
        "HEAD..HEAD",
        "HEAD^@",
        "^HEAD",
        "HEAD:a.txt",
        "HEAD\n--all",
        "HEAD\0",
        "a.txt",
        "@{-1}",
        ":/none",
        "HEAD^{tree}",
        " ",
    ],
)
async def test_a_revision_is_one_commit(client: Client, revision: str) -> None:
    """Ranges, files, several lines and what was never checked out are none."""
    assert await refusal(client, "git_show", revision=revision)


@pytest.mark.parametrize(
    "revision",
    [
        "HEAD~1..HEAD",
        "HEAD~1...HEAD",
        "..HEAD",
        "^HEAD~1",
        "HEAD^-",
        "HEAD^-1",
        "HEAD^!",
        "HEAD HEAD~1",
        "HEAD~2..side",
    ],
)
async def test_a_range_is_no_revision(client: Client, repo: Path, revision: str) -> None:
    """Git would list commits for most of these: what begins there is another thing than was asked
    for, and a page could not go on.
    """
    commit(repo, {"a.txt": "2\n"}, "Second")
    git(repo, "branch", "side")
    commit(repo, {"a.txt": "3\n"}, "Third")
    for tool in ("git_log", "git_show", "git_search_history", "git_read_file"):
        assert await refusal(
            client,
            tool,
            revision=revision,
            **REST.get(tool, {"path": "a.txt"} if tool == "git_read_file" else {}),
        )


async def test_a_text_that_begins_with_a_dash_is_looked_for(
    client: Client, repo: Path, tmp_path: Path
) -> None:
    """It is found where it is, in files, messages, authors and changes; files that are called so
    are found too.
    """
    out = tmp_path / "out"
    option = f"--output={out}"
    made = commit(
        repo,
        {option.replace("/", "_"): option, "-O": "dash\n"},
        f"--all {option}",
        GIT_AUTHOR_NAME="-n --all",
    )
    assert [
        hit["text"]
        for hit in (await client.call_tool("git_search", {"text": option})).structured_content[
            "hits"
        ]
    ] == [option]
    for filters in (
        {"grep": option},
        {"author": "-n --all"},
        {"paths": ["-O"]},
        {"paths": [option.replace("/", "_")]},
    ):
        found = (await client.call_tool("git_log", filters)).structured_content["commits"]
        assert [one["id"] for one in found] == [made], filters
    assert [
        one["id"]
        for one in (
            await client.call_tool("git_search_history", {"text": option})
        ).structured_content["commits"]
    ] == [made]
    blame = (await client.call_tool("git_blame", {"path": "-O"})).structured_content
    assert blame["parts"][0]["lines"] == ["dash"]
    write(repo, {"-O": "changed\n", "--all": "new\n"})
    staged = (await client.call_tool("git_add", {"paths": ["-O", "--all"]})).structured_content[
        "staged"
    ]
    assert [one["path"] for one in staged] == ["--all", "-O"]
    assert not (await client.call_tool("git_unstage", {"paths": ["--all"]})).is_error
    assert not (
        await client.call_tool("git_commit", {"message": "--amend", "author": "--amend <-n@x>"})
    ).is_error
    assert git(repo, "log", "-1", "--format=%an %ae %s") == "--amend -n@x --amend\n"
    assert git(repo, "rev-list", "--count", "HEAD") == "3\n"
    assert not (
        await client.call_tool("git_stash", {"message": "--all", "untracked": True})
    ).is_error
    assert git(repo, "stash", "list") == "stash@{0}: On main: --all\n"
    assert not out.exists()


PATHS = [
    "../secret",
    "src/../../secret",
    "/etc/passwd",
    "{top}/a.txt",
    "~/x",
    "C:\\x",
    "C:/x",
    "src//b.py",
    "a.txt\0b",
    ".git/config",
    ".GIT/config",
    ".Git/hooks/x",
    "src/.git/x",
    "git~1/config",
    ".g\u200cit/config",
    ".git /config",
    ".git./x",
    ".git::$INDEX/x",
    "src\\.git\\x",
    ".GIT",
]


@pytest.mark.parametrize("path", PATHS)
async def test_no_path_leads_out_or_into_gits_own_folder(
    client: Client, repo: Path, path: str
) -> None:
    """Neither upwards, from the root, nor by another way to write `.git`, in any tool that takes a
    path.
    """
    path = path.format(top=repo)
    (repo.parent / "secret").write_text(SECRET)
    before = bytes_of(repo)
    for tool in ("git_add", "git_unstage", "git_restore", "git_diff", "git_log", "git_stash"):
        words = await refusal(client, tool, paths=[path])
        assert SECRET not in words
    assert await refusal(client, "git_blame", path=path)
    assert await refusal(client, "git_search", text="x", paths=[path])
    assert await refusal(client, "git_search_history", text="x", paths=[path])
    assert bytes_of(repo) == before


@pytest.mark.parametrize(
    "path", [":(top)a.txt", ":/", ":!a.txt", ":(glob)**", "*.txt", ":(exclude)a.txt", "[a].txt"]
)
async def test_magic_of_paths_is_off(client: Client, repo: Path, path: str) -> None:
    """A path is a path, whatever git makes of it otherwise: there is no such file."""
    write(repo, {"a.txt": "changed\n"})
    assert (await client.call_tool("git_diff", {"paths": [path]})).structured_content["files"] == []
    assert (await client.call_tool("git_log", {"paths": [path]})).structured_content[
        "commits"
    ] == []
    assert "did not match" in await refusal(client, "git_add", paths=[path])


@given(st.text(alphabet="./\\-:~gGiItT \u200c\0ab", max_size=16))
def test_a_path_that_is_let_through_lies_inside(path: str) -> None:
    """Whatever it is: it stays below, names no folder of git's, and does not change when it is
    looked at again.
    """
    try:
        found = inside(path)
    except ToolError:
        return
    assert not os.path.isabs(found)
    assert os.path.normpath(os.path.join("/top", found)).startswith("/top")
    assert all(
        part.strip(" .").lower() != "git" or not part.startswith(".") for part in found.split("/")
    )
    assert inside(found) == found


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "-",
        *(
            encode_cursor(made_up, "git")
            for made_up in (
                [],
                [["--output=/tmp/x"], 0, ""],
                [["HEAD"], 0, ""],
                [["a" * 40 + "\n"], 0, ""],
                [[], -5, ""],
                [[], 1e99, ""],
            )
        ),
    ],
)
async def test_a_cursor_is_read_with_care(client: Client, cursor: str) -> None:
    """It is the caller's: nothing but commits and numbers is taken from it."""
    with pytest.raises(ToolError):
        place_of(cursor)
    for tool, more in (
        ("git_log", {}),
        ("git_diff", {}),
        ("git_show", {"revision": "HEAD"}),
        ("git_search", {"text": "x"}),
        ("git_branches", {}),
    ):
        assert "not a cursor" in await refusal(client, tool, cursor=cursor, **more)


async def test_control_characters_are_shown(client: Client, repo: Path) -> None:
    """In names and messages of others nothing is left that a terminal obeys, and no name makes two
    lines of one (`TOL-09`).
    """
    name = "new\nline\x1b[31m\t\u202e.txt"
    commit(
        repo, {name: "x\n"}, "Red \x1b[31m\u202e\n\nBody \x07", GIT_AUTHOR_NAME="Eve\x1b]0;x\x07"
    )
    write(repo, {name: "y\x1b[2J\n", "un\ntracked": "x"})
    for tool, arguments in (
        ("git_status", {}),
        ("git_diff", {}),
        ("git_log", {}),
        ("git_show", {"revision": "HEAD"}),
        ("git_search", {"text": "x"}),
        ("git_branches", {}),
        ("git_blame", {"path": name}),
    ):
        text = (await client.call_tool(tool, arguments)).text
        assert not set(text) & set("\x1b\x07\u202e"), tool
        assert "new\nline" not in text
    status = (await client.call_tool("git_status", {})).structured_content
    assert [one["path"] for one in status["unstaged"]] == [name]
    assert status["untracked"] == ["un\ntracked"]
    assert not (await client.call_tool("git_add", {"paths": [name]})).is_error
    assert visible("a\x00b\x9b") == "a⟨U+0000⟩b⟨U+009B⟩"
    assert "line breaks" in await refusal(client, "git_log", author="a\nb")
    assert "line breaks" in await refusal(client, "git_commit", message="x", author="a\nb <c@d>")


# -- what lies in the repository -------------------------------------------------------------------


async def test_links_in_the_work_tree_are_not_followed(
    client: Client, repo: Path, tmp_path: Path
) -> None:
    """A folder that has become a link to elsewhere: nothing of what lies there is shown, staged,
    searched or overwritten.
    """
    outside = tmp_path / "outside"
    write(outside, {"b.py": f"{SECRET}\n"})
    shutil.rmtree(repo / "src")
    (repo / "src").symlink_to(outside)
    (repo / "link").symlink_to(outside / "b.py")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("git_status", {}),
        ("git_diff", {}),
        ("git_diff", {"what": "all", "paths": ["src/b.py"]}),
        ("git_blame", {"path": "src/b.py"}),
        ("git_search", {"text": "secret"}),
        ("git_search", {"text": "secret", "staged": True}),
        ("git_add", {"paths": ["src/b.py"]}),
        ("git_add", {"paths": ["link"]}),
        ("git_add", {"paths": ["."]}),
        ("git_diff", {"what": "staged"}),
        ("git_commit", {"message": "Links"}),
        ("git_show", {"revision": "HEAD"}),
        ("git_search", {"text": "secret"}),
    ]
    for tool, arguments in calls:
        result = await client.call_tool(tool, arguments)
        assert SECRET not in result.text.replace("outside", "")
    assert git(repo, "show", "HEAD:link") == str(outside / "b.py")
    restored = await client.call_tool("git_restore", {"paths": ["src/b.py"], "revision": "HEAD~1"})
    assert not restored.is_error
    assert (outside / "b.py").read_text() == f"{SECRET}\n"
    assert not (repo / "src").is_symlink()


def _alternates(repo: Path, other: Path) -> None:
    (repo / ".git" / "objects" / "info" / "alternates").write_text(f"{other}/.git/objects\n")


def _alternates_within(repo: Path, other: Path) -> None:
    nested = repository(repo / "nested")
    _alternates(nested, other)
    (repo / ".git" / "objects" / "info" / "alternates").write_text("../../nested/.git/objects\n")


def _linked(name: str) -> Any:
    def arm(repo: Path, other: Path) -> None:
        path = repo / ".git" / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.symlink_to(other / ".git" / name)

    return arm


def _git_file(repo: Path, other: Path) -> None:
    shutil.rmtree(repo / ".git")
    (repo / ".git").write_text(f"gitdir: {other}/.git\n")


def _git_link(repo: Path, other: Path) -> None:
    shutil.rmtree(repo / ".git")
    (repo / ".git").symlink_to(other / ".git")


def _commondir(repo: Path, other: Path) -> None:
    (repo / ".git" / "commondir").write_text(f"{other}/.git\n")


def _false_worktree(repo: Path, other: Path) -> None:
    """A git folder of one's own that says that the rest of it is another's."""
    own = repo / "own" / "worktrees" / "x"
    own.mkdir(parents=True)
    shutil.move(repo / ".git" / "HEAD", own / "HEAD")
    shutil.rmtree(repo / ".git")
    (own / "commondir").write_text(f"{other}/.git\n")
    (own / "gitdir").write_text(f"{repo}/.git\n")
    (repo / ".git").write_text(f"gitdir: {own}\n")


def _fifo(repo: Path, other: Path) -> None:
    (repo / ".git" / "config").unlink()
    os.mkfifo(repo / ".git" / "config")


def _submodule_elsewhere(repo: Path, other: Path) -> None:
    (repo / "sub").mkdir()
    (repo / "sub" / ".git").write_text(f"gitdir: {other}/.git\n")
    git(
        repo,
        "update-index",
        "--add",
        "--cacheinfo",
        f"160000,{git(other, 'rev-parse', 'HEAD').strip()},sub",
    )


ELSEWHERE = [
    _alternates,
    _alternates_within,
    _linked("objects"),
    _linked("refs"),
    _linked("HEAD"),
    _linked("config"),
    _linked("index"),
    _linked("logs"),
    _linked("refs/heads"),
    _linked("objects/pack"),
    _git_file,
    _git_link,
    _commondir,
    _false_worktree,
    _fifo,
]


@pytest.mark.parametrize("arm", ELSEWHERE, ids=lambda arm: getattr(arm, "__qualname__", ""))
async def test_what_lies_elsewhere_is_not_opened(repo: Path, tmp_path: Path, arm: Any) -> None:
    """A git folder that leads to another one, wholly or in part, is refused before git is run in
    it, and that one stays as it is.
    """
    other = repository(tmp_path / "other", {"secret": SECRET})
    arm(repo, other)
    before = bytes_of(other)
    server = git_server(repo, author=AUTHOR)
    async with Client(server, elicit=lambda params: {"confirm": True}) as client:
        for tool, arguments in (
            ("git_status", {}),
            ("git_log", {}),
            ("git_search", {"text": "secret"}),
            ("git_commit", {"message": "x"}),
            ("git_create_branch", {"name": "x"}),
        ):
            words = await refusal(client, tool, **arguments)
            assert "git" in words or "repository" in words
            assert SECRET not in words
    assert bytes_of(other) == before


async def test_a_submodule_that_leads_elsewhere_is_not_looked_into(
    client: Client, repo: Path, tmp_path: Path
) -> None:
    """Nor is what it is at shown, which is another repository's business; git would run in it too,
    for what changes a repository.
    """
    other = repository(tmp_path / "other", {"secret": SECRET})
    _submodule_elsewhere(repo, other)
    assert "not followed" in await refusal(client, "git_add", paths=["."])
    for tool in ("git_stash", "git_status", "git_diff"):
        assert "not followed" in await refusal(client, tool)


def _index_of(path: bytes, blob: str) -> bytes:
    """An index with one entry, as nothing of git would write it."""
    entry = (
        struct.pack(">10I20sH", *[0] * 6, 0o100644, 0, 0, 1, bytes.fromhex(blob), len(path)) + path
    )
    data = b"DIRC" + struct.pack(">2I", 2, 1) + entry + bytes(8 - len(entry) % 8)
    return data + sha1(data, usedforsecurity=False).digest()


@pytest.mark.parametrize(
    "path",
    ["../secret", "{top}/secret", "src/../../secret", ".git/config", ".GIT/config", "src/.Git/x"],
)
async def test_an_index_that_leads_elsewhere_is_not_used(
    client: Client, repo: Path, path: str
) -> None:
    """Git takes the paths of an index as they are, and would show and overwrite what lies there."""
    (repo.parent / "secret").write_text(SECRET)
    blob = git(repo, "rev-parse", "HEAD:a.txt").strip()
    (repo / ".git" / "index").write_bytes(_index_of(path.format(top=repo.parent).encode(), blob))
    if path == "../secret":
        assert SECRET in git(repo, "diff"), "the attack is none"
    for tool, arguments in (
        ("git_status", {}),
        ("git_diff", {}),
        ("git_add", {"paths": ["."]}),
        ("git_stash", {}),
        ("git_switch", {"to": "main"}),
        ("git_restore", {"paths": ["a.txt"], "revision": "HEAD"}),
        ("git_commit", {"message": "x"}),
    ):
        words = await refusal(client, tool, **arguments)
        assert "lead out of it" in words, words
    assert (repo.parent / "secret").read_text() == SECRET


async def test_a_work_tree_that_is_said_to_lie_elsewhere(
    repo: Path, client: Client, tmp_path: Path
) -> None:
    """`core.worktree` is not heeded: the work tree is the one that was given."""
    outside = tmp_path / "outside"
    write(outside, {"a.txt": SECRET})
    git(repo, "config", "core.worktree", str(outside))
    write(repo, {"a.txt": "changed\n"})
    patch = (await client.call_tool("git_diff", {})).text
    assert "+changed" in patch
    assert SECRET not in patch
    assert not (await client.call_tool("git_restore", {"paths": ["a.txt"]})).is_error
    assert (outside / "a.txt").read_text() == SECRET


async def test_what_is_said_to_stand_in_place_of_something_else(client: Client, repo: Path) -> None:
    """A repository may name objects that replace others; what is shown is what was committed."""
    commit(repo, {"a.txt": "another\n"}, "Second")
    git(
        repo,
        "replace",
        "HEAD:a.txt",
        git(repo, "hash-object", "-w", "--stdin", feed="false\n").strip(),
    )
    git(repo, "replace", "HEAD", "HEAD~1")
    assert (
        git(repo, "cat-file", "blob", git(repo, "rev-parse", "HEAD:a.txt").strip()) != "another\n"
    ), "the attack is none"
    assert (await client.read_resource("git://repo/file/a.txt")).contents[0].text == "another\n"
    assert (await client.call_tool("git_show", {"revision": "HEAD"})).structured_content[
        "message"
    ] == "Second"


async def test_only_what_was_given(client: Client, repo: Path, tmp_path: Path) -> None:
    """By name, by path or by a path inside; a repository beside, above or within the given one is
    none.
    """
    other = repository(tmp_path / "other")
    nested = repository(repo / "src" / "nested")
    (tmp_path / "link").symlink_to(repo)
    for word in (
        "repo",
        str(repo),
        str(repo / "src"),
        str(repo / "src" / "b.py"),
        str(tmp_path / "link"),
    ):
        status = (await client.call_tool("git_status", {"repository": word})).structured_content
        assert status["repository"] == "repo"
    for word in (
        "other",
        str(other),
        str(nested),
        str(tmp_path),
        "/",
        "",
        ".",
        "..",
        f"{repo}/../other",
        "--all",
        str(repo / ".git"),
        f"{repo}\0",
    ):
        assert "not a repository" in await refusal(client, "git_status", repository=word)
    for word in ("other", "--all", "%2E%2E", "repo%00"):
        with pytest.raises(McpError):
            await client.read_resource(f"git://{word}/status")


@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "%2E%2E/secret",
        ".git/config",
        ".GIT/config",
        "%2Fetc%2Fpasswd",
        "nothing",
        "src",
        "a.txt%00",
    ],
)
async def test_resources_are_files_of_commits(client: Client, repo: Path, path: str) -> None:
    """What is not a file of a commit is no resource (`RES-08`)."""
    (repo.parent / "secret").write_text(SECRET)
    with pytest.raises(McpError, match="not found"):
        await client.read_resource(f"git://repo/file/{path}")
    with pytest.raises(McpError, match="not found"):
        await client.read_resource("git://repo/file/a.txt?revision=--output=x")


async def test_programs_of_the_repository_are_not_on_the_path(
    repo: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A PATH with the current folder on it does not lead into the repository; the rest of the
    environment stays outside too.
    """
    marker = tmp_path / "marker"
    for name in ("git", "cat", "sh", "false"):
        (repo / name).write_text(f"#!/bin/sh\n: > {marker}\n")
        (repo / name).chmod(0o755)
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(repo)
    for name in (
        "GIT_DIR",
        "GIT_EXTERNAL_DIFF",
        "GIT_SSH",
        "GIT_PROXY_COMMAND",
        "GIT_INDEX_FILE",
        "GIT_EXEC_PATH",
        "GIT_TRACE",
        "GIT_CONFIG_PARAMETERS",
    ):
        monkeypatch.setenv(name, str(repo / "cat"))
    write(repo, {"a.txt": "changed\n"})
    async with Client(git_server(repo, author=AUTHOR)) as client:
        assert "+changed" in (await client.call_tool("git_diff", {})).text
        assert not (await client.call_tool("git_add", {"paths": ["a.txt"]})).is_error
        assert not (await client.call_tool("git_commit", {"message": "x"})).is_error
    assert not marker.exists()
