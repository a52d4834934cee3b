"""What the git server remembers between calls, and how a repository that changes meanwhile does not
get by with it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from interlock import Client
from interlock_servers.git import git_server
from interlock_servers.git.hostile_repositories import configurations_in
from interlock_servers.git.index import digest_of
from interlock_servers.git.repositories import Repositories
from interlock_servers.git.runner import Git
from tests.servers.calls import done, refusal
from tests.servers.git.repos import AUTHOR, git, repository, write
from tests.servers.git.test_escapes import _index_of


def rewritten(path: Path, data: bytes) -> None:
    """Write other bytes into a file, as many as it has, so that neither its size, its number nor
    its times tell.
    """
    before = path.stat()
    assert len(data) == before.st_size
    with path.open("r+b") as file:
        file.write(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (
        before.st_ino,
        before.st_size,
        before.st_mtime_ns,
    )


async def runs(git_: Git, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The first words of all that git is run with from now on."""
    said: list[str] = []
    run = git_.run

    async def counted(arguments: Any, **options: Any) -> Any:
        said.append(arguments[0])
        return await run(arguments, **options)

    monkeypatch.setattr(git_, "run", counted)
    return said


async def test_git_is_run_once_where_nothing_has_changed(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was found out about configurations and the index is not found out again."""
    repositories = Repositories([repo])
    said = await runs(repositories.git, monkeypatch)
    for _ in range(3):
        await (await repositories.open(None, deep=True)).ask("status")
    assert said == ["config", "ls-files", "status", "status", "status"]
    git(repo, "config", "a.b", "c")
    await repositories.open(None)
    assert said[5:] == ["config"]


async def test_a_configuration_that_looks_the_same_is_read_anew(
    repo: Path, client: Client, tmp_path: Path
) -> None:
    """A filter that takes the place of another one in the same bytes' room, within the same moment,
    is not run.
    """
    marker = tmp_path / "marker"
    config = repo / ".git" / "config"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n: > {marker}\ncat\n")
    program.chmod(0o755)
    (repo / ".gitattributes").write_text("* filter=evil\n")
    git(repo, "config", "filter.good.clean", str(program))
    await done(client, "git_status")
    rewritten(config, config.read_bytes().replace(b'"good"', b'"evil"'))
    write(repo, {"a.txt": "changed\n"})
    await done(client, "git_status")
    await done(client, "git_add", paths=["a.txt"])
    assert not marker.exists()
    git(repo, "add", ".gitattributes", "src")
    git(repo, "-c", "core.safecrlf=false", "hash-object", "a.txt")
    assert marker.exists(), "the attack is none"


async def test_an_index_that_looks_the_same_is_listed_anew(repo: Path, client: Client) -> None:
    """A path that leads out, and a submodule that leads elsewhere, in the place of a path that does
    not.
    """
    blob = git(repo, "rev-parse", "HEAD:a.txt").strip()
    index = repo / ".git" / "index"
    (repo.parent / "secret").write_text("the secret")
    index.write_bytes(_index_of(b"ab/secret", blob))
    await done(client, "git_status")
    rewritten(index, _index_of(b"../secret", blob))
    assert "lead out of it" in await refusal(client, "git_status")


async def test_submodules_are_looked_at_each_time(
    repo: Path, client: Client, tmp_path: Path
) -> None:
    """The index is the same, and what it names leads elsewhere by now."""
    other = repository(tmp_path / "other", {"secret": "the secret"})
    nested = repository(repo / "sub")
    git(
        repo,
        "update-index",
        "--add",
        "--cacheinfo",
        f"160000,{git(nested, 'rev-parse', 'HEAD').strip()},sub",
    )
    await done(client, "git_status")
    os.rename(nested / ".git", tmp_path / "away")
    (nested / ".git").write_text(f"gitdir: {other}/.git\n")
    assert "not followed" in await refusal(client, "git_status")


async def test_an_index_in_two_files_is_not_remembered(
    repo: Path, client: Client, tmp_path: Path
) -> None:
    """The one that is shared is swapped for one with a submodule elsewhere, whose checksum says
    that it is the same.
    """
    git(repo, "update-index", "--split-index")
    (shared,) = (repo / ".git").glob("sharedindex.*")
    await done(client, "git_status")
    other = repository(tmp_path / "other")
    twin = repository(tmp_path / "twin")
    write(repo, {"sub/.git": f"gitdir: {other}/.git\n"})
    git(
        twin,
        "update-index",
        "--add",
        "--cacheinfo",
        f"160000,{git(other, 'rev-parse', 'HEAD').strip()},sub",
    )
    shared.chmod(0o644)
    shared.write_bytes((twin / ".git" / "index").read_bytes()[:-20] + shared.read_bytes()[-20:])
    assert "sub" in git(repo, "ls-files"), "the attack is none"
    assert "not followed" in await refusal(client, "git_status")


def test_which_indexes_are_known_again(repo: Path) -> None:
    """Those whose list stands in them, and depends on nothing but them and the configurations."""
    folder = repo / ".git"
    plain = digest_of(folder, configurations_in([folder]))
    assert plain is not None
    assert digest_of(folder, configurations_in([folder])) == plain
    git(repo, "config", "a.b", "c")
    assert digest_of(folder, configurations_in([folder])) != plain
    git(repo, "update-index", "--split-index")
    assert digest_of(folder, []) is None
    git(repo, "update-index", "--no-split-index")
    assert digest_of(folder, []) is not None
    git(repo, "sparse-checkout", "init", "--cone", "--sparse-index")
    assert digest_of(folder, []) is None
    (folder / "index").unlink()
    assert digest_of(folder, []) is None
    os.mkfifo(folder / "index")
    assert digest_of(folder, []) is None


async def test_a_list_of_names_that_is_cut_is_none(repo: Path) -> None:
    """A name that is long, and comes often: what stands behind it in the configuration would not be
    known.
    """
    text = (
        f'[filter "{"x" * 100_000}"]\n'
        + "\tclean = cat\n" * 200
        + '[filter "evil"]\n\tclean = false\n'
    )
    with (repo / ".git" / "config").open("a") as file:
        file.write(text)
    async with Client(git_server(repo, author=AUTHOR)) as client:
        assert "too many or too long names" in await refusal(client, "git_status")
