"""What a hostile repository wants run: each program leaves a mark, and with this server none
does.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from interlock import Client
from interlock_servers.git import git_server
from tests.servers.git.repos import AUTHOR, git, repository, write


class Attack(NamedTuple):
    """How a repository is armed with a program, and what of plain git lets it off; whether the
    server refuses the repository.
    """

    name: str
    arm: Callable[[Path, str], None]
    trigger: Callable[[Path], None]
    refused: bool = False


def config(*pairs: tuple[str, str]) -> Callable[[Path, str], None]:
    """Arm by configuration; PROGRAM stands for the program."""

    def arm(repo: Path, program: str) -> None:
        for key, value in pairs:
            git(repo, "config", key, value.replace("PROGRAM", program))

    return arm


def with_attributes(
    attributes: str, *pairs: tuple[str, str], info: bool = False
) -> Callable[[Path, str], None]:
    """Arm by attributes, in the work tree or in .git/info, and by what they name."""

    def arm(repo: Path, program: str) -> None:
        (repo / (".git/info/attributes" if info else ".gitattributes")).write_text(
            attributes + "\n"
        )
        config(*pairs)(repo, program)

    return arm


def runs(*arguments: str) -> Callable[[Path], None]:
    """What lets a program off: git with these arguments."""

    def run(repo: Path) -> None:
        git(repo, *arguments, check=False)

    return run


def hook(name: str, folder: str = ".git/hooks") -> Callable[[Path, str], None]:
    """Arm by a hook."""

    def arm(repo: Path, program: str) -> None:
        (repo / folder).mkdir(exist_ok=True)
        (repo / folder / name).write_bytes(Path(program).read_bytes())
        (repo / folder / name).chmod(0o755)
        if folder != ".git/hooks":
            git(repo, "config", "core.hooksPath", folder)

    return arm


def promised(*pairs: tuple[str, str]) -> Callable[[Path, str], None]:
    """Arm by an object that is missing and promised by a remote, which git would fetch when it
    needs it.
    """

    def arm(repo: Path, program: str) -> None:
        config(
            ("core.repositoryformatversion", "1"),
            ("extensions.partialClone", "origin"),
            ("remote.origin.promisor", "true"),
            ("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"),
            *pairs,
        )(repo, program)
        blob = git(repo, "rev-parse", "HEAD:missing.txt").strip()
        (repo / ".git" / "objects" / blob[:2] / blob[2:]).unlink()

    return arm


def included(condition: str) -> Callable[[Path, str], None]:
    """Arm by a configuration that includes another."""

    def arm(repo: Path, program: str) -> None:
        (repo.parent / "more").write_text(f"[core]\n\tfsmonitor = {program}\n")
        git(repo, "config", condition, str(repo.parent / "more"))

    return arm


def of_a_worktree(repo: Path, program: str) -> None:
    """Arm by the configuration of the work tree, which stands beside the one of the repository."""
    git(repo, "config", "extensions.worktreeConfig", "true")
    (repo / ".git" / "config.worktree").write_text(
        f'[core]\n\tfsmonitor = {program}\n[filter "y"]\n\tclean = {program}\n'
    )
    (repo / ".gitattributes").write_text("* filter=y\n")


def of_a_submodule(repo: Path, program: str) -> None:
    """Arm by the configuration of a submodule, into which git looks for its status."""
    git(repo, "submodule", "--quiet", "add", str(repository(repo.parent / "other")), "sub")
    git(repo, "commit", "--quiet", "--no-verify", "-m", "Sub")
    git(repo / "sub", "config", "core.fsmonitor", program)
    git(repo / "sub", "config", "filter.z.clean", program)
    write(repo, {"sub/.gitattributes": "* filter=z\n", "sub/a.txt": "changed\n"})


def merged(repo: Path) -> None:
    """A merge for which a driver is asked."""
    git(repo, "checkout", "--quiet", "--force", "side")
    git(repo, "merge", "--quiet", "main", check=False)


FILTER = "* filter=x"
X = [
    ("filter.x.clean", "PROGRAM"),
    ("filter.x.smudge", "PROGRAM"),
    ("filter.x.process", "PROGRAM"),
    ("filter.x.required", "true"),
]
LAZILY = {"ssh-command", "upload-pack", "protocol-ext", "git-proxy"}
LAZY = runs("cat-file", "-p", "HEAD:missing.txt")
ATTACKS = [
    *(
        Attack(f"hook-{name}", hook(name), runs("commit", "-am", "x"))
        for name in ("pre-commit", "post-commit", "reference-transaction")
    ),
    Attack("hook-post-checkout", hook("post-checkout"), runs("checkout", "-f", "side")),
    Attack("hook-post-index-change", hook("post-index-change"), runs("add", "a.txt")),
    Attack("hooks-path", hook("prepare-commit-msg", "hooks"), runs("commit", "-am", "x")),
    Attack("fsmonitor", config(("core.fsmonitor", "PROGRAM")), runs("status")),
    Attack("diff-external", config(("diff.external", "PROGRAM")), runs("diff")),
    Attack(
        "diff-command", with_attributes("* diff=x", ("diff.x.command", "PROGRAM")), runs("diff")
    ),
    Attack(
        "diff-textconv", with_attributes("* diff=x", ("diff.x.textconv", "PROGRAM")), runs("diff")
    ),
    Attack(
        "textconv-of-blame",
        with_attributes("* diff=x", ("diff.x.textconv", "PROGRAM"), info=True),
        runs("blame", "a.txt"),
    ),
    Attack("filter-clean", with_attributes(FILTER, X[0]), runs("add", "a.txt")),
    Attack("filter-smudge", with_attributes(FILTER, X[1]), runs("checkout", "-f", "side")),
    Attack("filter-process", with_attributes(FILTER, X[2], X[3]), runs("add", "a.txt")),
    Attack("filter-required", with_attributes(FILTER, X[0], X[3], info=True), runs("diff")),
    Attack(
        "filter-odd-name",
        with_attributes("* filter=o=dd.Na'me", ("filter.o=dd.Na'me.clean", "PROGRAM")),
        runs("add", "a.txt"),
    ),
    Attack(
        "merge-driver",
        with_attributes("* merge=x", ("merge.x.driver", "PROGRAM"), info=True),
        merged,
    ),
    Attack(
        "gpg",
        config(("gpg.program", "PROGRAM"), ("commit.gpgSign", "true")),
        runs("commit", "-am", "x"),
    ),
    Attack(
        "gpg-ssh",
        config(
            ("gpg.format", "ssh"),
            ("gpg.ssh.program", "PROGRAM"),
            ("user.signingKey", "x"),
            ("commit.gpgSign", "true"),
        ),
        runs("commit", "-am", "x"),
    ),
    Attack("editor", config(("core.editor", "PROGRAM")), runs("commit", "-a")),
    Attack("alias", config(("alias.st", "!PROGRAM")), runs("st")),
    Attack(
        "credential-helper",
        config(("credential.helper", "PROGRAM")),
        lambda repo: _credential(repo),
    ),
    Attack(
        "ssh-command",
        promised(("remote.origin.url", "ssh://localhost/x"), ("core.sshCommand", "PROGRAM")),
        LAZY,
    ),
    Attack(
        "upload-pack",
        promised(("remote.origin.url", "."), ("remote.origin.uploadpack", "PROGRAM")),
        LAZY,
    ),
    Attack(
        "protocol-ext",
        promised(("remote.origin.url", "ext::PROGRAM"), ("protocol.ext.allow", "always")),
        LAZY,
    ),
    Attack(
        "git-proxy",
        promised(("remote.origin.url", "git://localhost/x"), ("core.gitProxy", "PROGRAM")),
        LAZY,
    ),
    Attack("include", included("include.path"), runs("status"), refused=True),
    Attack("include-if", included("includeIf.gitdir:**.path"), runs("status"), refused=True),
    Attack("worktree-config", of_a_worktree, runs("status")),
    Attack("submodule", of_a_submodule, runs("status")),
]


def _credential(repo: Path) -> None:
    git(
        repo,
        "credential",
        "fill",
        feed="protocol=https\nhost=localhost\n\n",
        check=False,
        GIT_TERMINAL_PROMPT="0",
    )


# `make endurance` runs these: each has a near relative that `make test` runs.
ALIKE = {
    "hook-pre-commit",
    "hook-post-index-change",
    "hooks-path",
    "filter-required",
    "filter-odd-name",
    "gpg-ssh",
    "upload-pack",
    "git-proxy",
    "include-if",
    "alias",
    "editor",
    "credential-helper",
}


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """What a program that was run leaves behind."""
    return tmp_path / "marker"


@pytest.fixture
def program(tmp_path: Path, marker: Path) -> str:
    """A program that must not be run."""
    path = tmp_path / "program"
    path.write_text(f"#!/bin/sh\n: > {marker}\nexit 1\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A repository in which there is something for each tool to do: two branches that differ, and
    changes.
    """
    repo = repository(
        tmp_path / "repo", {"a.txt": "one\ntwo\n", "b.txt": "b\n", "missing.txt": "promised\n"}
    )
    git(repo, "switch", "--quiet", "-c", "side")
    write(repo, {"a.txt": "one\nside\n", "b.txt": "side\n"})
    git(repo, "commit", "--quiet", "-am", "Side")
    git(repo, "switch", "--quiet", "main")
    write(repo, {"a.txt": "one\nmain\n"})
    git(repo, "commit", "--quiet", "-am", "Main")
    return repo


async def use(client: Client) -> dict[str, Any]:
    """Use every tool; the results by tool."""
    results = {}

    async def call(tool: str, **arguments: Any) -> None:
        results[tool] = await client.call_tool(tool, arguments)

    await call("git_status")
    await call("git_diff", what="all")
    await call("git_log", paths=["a.txt"])
    await call("git_show", revision="HEAD")
    await call("git_blame", path="a.txt")
    await call("git_search", text="one")
    await call("git_search_history", text="two")
    await call("git_branches")
    await call("git_stash", message="by path", paths=["a.txt"])
    await call("git_apply_stash", drop=True)
    await call("git_stash", message="mine")
    await call("git_stashes")
    await call("git_show_stash")
    await call("git_switch", to="side")
    await call("git_apply_stash")
    await call("git_diff")
    await call("git_restore", paths=["a.txt"], revision="HEAD")
    await call("git_switch", to="main")
    await call("git_drop_stash")
    await call("git_add", paths=["."])
    await call("git_unstage", paths=["new.txt"])
    await call("git_add", paths=["new.txt"])
    await call("git_commit", message="Mine")
    await call("git_create_branch", name="more", revision="HEAD~1")
    await call("git_add_worktree", name="tree", branch="more")
    await call("git_worktrees")
    await call("git_remove_worktree", name="tree", discard=True)
    await call("git_delete_branch", name="more")
    for uri in ("status", "log", "file/a.txt", "file/missing.txt?revision=HEAD~1"):
        try:
            await client.read_resource(f"git://repo/{uri}")
        except Exception as bad:  # what cannot be read is not the matter here
            results.setdefault(uri, bad)
    return results


@pytest.mark.parametrize(
    "attack",
    [
        pytest.param(
            one,
            id=one.name,
            marks=[pytest.mark.endurance(seconds=0.7)] if one.name in ALIKE else [],
        )
        for one in ATTACKS
    ],
)
async def test_no_program_of_a_repository_is_run(
    attack: Attack, victim: Path, program: str, marker: Path, tmp_path: Path
) -> None:
    """Plain git runs it; the server, with every tool that it has, does not."""
    attack.arm(victim, program)
    marker.unlink(missing_ok=True)
    write(victim, {"a.txt": "one\nchanged\n", "new.txt": "new\n"})
    beside = tmp_path / "beside"
    shutil.copytree(victim, beside, symlinks=True)
    attack.trigger(beside)
    assert marker.exists(), "the attack is none: plain git does not run the program"
    marker.unlink()
    async with Client(
        git_server(victim, author=AUTHOR), elicit=lambda params: {"confirm": True}
    ) as client:
        results = await use(client)
    assert not marker.exists()
    wrong = {
        tool: result.text for tool, result in results.items() if getattr(result, "is_error", False)
    }
    if attack.name in LAZILY:  # what these need is not there, and is not fetched
        wrong = {
            tool: words
            for tool, words in wrong.items()
            if tool in ("git_status", "git_diff", "git_log", "git_blame", "git_add")
        }
    if attack.refused:
        assert set(wrong) == {tool for tool in results if tool.startswith("git_")}
    else:
        assert not wrong
