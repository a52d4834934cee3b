"""Tools that stage, commit and restore files."""

from __future__ import annotations

import os
import re
from typing import Annotated

from msgspec import Meta

from interlock import Context, ToolError, ToolResult
from interlock.untrusted.invisible import one_line as line

from ..processes import both
from .arguments import WHOLE, Message, Paths, Revision, inside, phrase, read, stored
from .diffs import files_of, own_index
from .repositories import Repositories, Repository
from .results import ActionResult, Status
from .status import status_of

Author = Annotated[
    str, Meta(min_length=3, max_length=300, examples=["Ada Lovelace <ada@example.com>"])
]
_AUTHOR = re.compile(r"\s*([^<>]*[^<>\s])\s*<([^<>\s]+)>\s*")
_MOST_NAMED = 20  # files named in a question


async def git_add(
    paths: Paths, ctx: Context[Repositories], repository: str | None = None
) -> ToolResult[Status]:
    """Stage files for the next commit, as they are now; of a file that is gone its going.

    Args:
        paths: files or folders; "." for everything. Files that are ignored are not staged.
    """
    opened = await ctx.lifespan_state.open(repository, deep=True)
    wanted = list(dict.fromkeys(map(inside, paths)))
    async with ctx.lifespan_state.lock(opened):
        try:
            await opened.ask("add", "--", *wanted)
        except ToolError as bad:
            if not any(set(path) & set("*?[") for path in wanted):
                raise
            raise ToolError(
                f"{bad} Paths are literal, not patterns: name files or folders."
            ) from None
    touched(ctx, opened, commits=False)
    status = await status_of(opened)
    return ToolResult(
        status,
        f"Staged: {', '.join(line(one.path) for one in status.staged[:_MOST_NAMED]) or 'nothing'}",
    )


async def git_commit(
    message: Message,
    ctx: Context[Repositories],
    repository: str | None = None,
    author: Author | None = None,
) -> ToolResult[ActionResult]:
    """Commit the staged changes. Hooks are not run, and nothing is signed.

    Args:
        message: a line of summary, and after an empty line whatever else there is to say.
        author: the name and address, where they are others than those that are configured.
    """
    text = stored(message)
    opened = await ctx.lifespan_state.open(repository, deep=True)
    people = await _people(ctx.lifespan_state, opened, author)
    async with ctx.lifespan_state.lock(opened):
        ended = await opened.ask(
            "commit",
            "--quiet",
            "--no-verify",
            "--no-gpg-sign",
            "--no-status",
            "--no-edit",
            "--cleanup=whitespace",
            "--file=-",
            feed=text,
            variables=people,
            fine=(0, 1),
        )
    if ended.code:
        raise ToolError(
            line(ended.errors.strip(), 500)
            or "Nothing is staged, so there is nothing to commit. Stage files with git_add."
        )
    touched(ctx, opened)
    done = await done_in(opened)
    branch = line(done.branch or "a detached HEAD")
    subject = line(message.strip().partition("\n")[0])
    return ToolResult(done, f"Committed {(done.commit or '')[:12]} on {branch}: {subject}")


async def git_unstage(
    ctx: Context[Repositories], repository: str | None = None, paths: Paths | None = None
) -> ToolResult[Status]:
    """Take files out of the staged changes; the files themselves stay as they are.

    The user is asked first if something is staged that exists nowhere else, because the file
    has changed since.

    Args:
        paths: only these files or folders; all without it.
    """
    opened = await ctx.lifespan_state.open(repository, deep=True)
    where = list(dict.fromkeys(map(inside, paths or ["."])))
    staged = await _staged(opened, where)
    lost = _named([path for path, is_lost in staged.items() if is_lost])
    if lost and not await ctx.confirm(
        f"Unstage {lost} in {line(opened.name)}? The staged versions are lost: the files "
        "have changed since."
    ):
        raise ToolError("The user did not agree, and nothing was changed.")
    if staged:
        async with ctx.lifespan_state.lock(opened):
            if await _staged(opened, where) != staged:
                raise ToolError(
                    "The index has changed in the meantime, so nothing was unstaged. See "
                    "git_status."
                )
            base = [head] if (head := await opened.head()) else []
            listed = "".join(f"{path}\0" for path in staged).encode("utf-8", "surrogateescape")
            await opened.ask(
                "reset",
                "--quiet",
                "--pathspec-from-file=-",
                "--pathspec-file-nul",
                *base,
                feed=listed,
            )
        touched(ctx, opened, commits=False)
    status = await status_of(opened)
    return ToolResult(
        status, f"Unstaged: {_named(list(staged))}" if staged else "None of these files is staged."
    )


async def _staged(repository: Repository, where: list[str]) -> dict[str, bool]:
    """The staged files, each with whether its staged content exists neither in HEAD nor in the
    file.

    Raises ToolError.
    """
    options = [
        "--porcelain=v2",
        "-z",
        "--untracked-files=no",
        "--no-renames",
        "--ignore-submodules=dirty",
    ]
    ended = await repository.ask("status", *options, "--", *where)
    if ended.cut:
        raise ToolError("Too many files differ. Name the files, or fewer of them.")
    found: dict[str, bool] = {}
    for entry in os.fsdecode(ended.output).split("\0"):
        kind, _, rest = entry.partition(" ")
        if kind == "u":
            found[rest.split(" ", 9)[9]] = True
        elif kind == "1" and rest[0] != ".":
            found[rest.split(" ", 7)[7]] = rest[0] != "D" and rest[1] != "."
    return found


async def git_restore(
    paths: Paths,
    ctx: Context[Repositories],
    repository: str | None = None,
    revision: Revision | None = None,
) -> ToolResult[Status]:
    """Restore single files of the work tree to the staged versions, or to a revision, once the
    user has agreed: their changes are lost.

    Args:
        paths: the files, each by its whole path.
        revision: take them from this one, into the index too.
    """
    opened = await ctx.lifespan_state.open(repository, deep=True)
    source = await opened.object_of(revision) if revision is not None else None
    wanted = await _differing(opened, paths, [source] if source else [])
    if wanted:
        to = f"to the versions at {source[:12]}" if source else "to the staged versions"
        if not await ctx.confirm(
            f"Restore {_named(wanted)} in {line(opened.name)} {to}? Later changes are lost."
        ):
            raise ToolError("The user did not agree, and nothing was changed.")
        into = [f"--source={source}", "--staged", "--worktree"] if source else ["--worktree"]
        async with ctx.lifespan_state.lock(opened):
            await opened.ask("restore", *into, "--no-recurse-submodules", "--", *wanted)
        touched(ctx, opened, commits=False)
    status = await status_of(opened)
    return ToolResult(status, f"Restored: {_named(wanted)}" if wanted else "None of these differs.")


async def _differing(repository: Repository, paths: list[str], command: list[str]) -> list[str]:
    """The files that differ, among single files.

    Raises ToolError for a folder, because nobody could tell what would be lost.
    """
    wanted = list(dict.fromkeys(map(inside, paths)))
    if WHOLE & set(wanted):
        raise ToolError("Name the files, each with its full path.")
    options = [
        "--raw",
        "--numstat",
        "-z",
        "--no-renames",
        "--no-ext-diff",
        "--no-textconv",
        "--ignore-submodules=all",
    ]
    with own_index(repository, needed="--cached" not in command) as variables:
        ended = await repository.ask("diff", *options, *command, "--", *wanted, variables=variables)
    found = [one.path for one in files_of(ended.output)[0]]
    if folders := [one for one in wanted if any(path.startswith(f"{one}/") for path in found)]:
        raise ToolError(
            f"{line(folders[0])} is a folder. Name the files in it, each with its full path."
        )
    return found


def _named(paths: list[str]) -> str:
    more = len(paths) - _MOST_NAMED
    return ", ".join(map(line, paths[:_MOST_NAMED])) + (f" and {more} more" if more > 0 else "")


async def _people(
    state: Repositories, repository: Repository, author: str | None
) -> dict[str, str]:
    """The author and the committer: from the call, from the server's settings, or from git's
    configuration.

    Raises ToolError if there is none.
    """
    own = state.author and _parsed(state.author)
    if not own:
        found = []
        for key in ("user.name", "user.email"):
            ended = await repository.ask("config", "--null", "--get", key, fine=(0, 1))
            found.append(read(ended.output).rstrip("\0") or await state.git.own(key) or "")
        own = (phrase(found[0], "name"), phrase(found[1], "address")) if all(found) else None
    said_ = _parsed(author) if author is not None else own
    if said_ is None:
        raise ToolError(
            "Who is the author? Pass `author`, such as Ada Lovelace <ada@example.com>, "
            "or configure user.name and user.email."
        )
    names = {"AUTHOR": said_, "COMMITTER": own or said_}
    return {
        f"GIT_{who}_{what}": value
        for who, pair in names.items()
        for what, value in zip(("NAME", "EMAIL"), pair, strict=True)
    }


def _parsed(author: str) -> tuple[str, str]:
    found = _AUTHOR.fullmatch(phrase(author, "author"))
    if found is None:
        raise ToolError(
            f"{line(author)} is not an author. Write it so: Ada Lovelace <ada@example.com>"
        )
    return found[1], found[2]


async def done_in(repository: Repository, paths: list[str] | None = None) -> ActionResult:
    """The result of a change: what is checked out now."""
    branch, head = await both(repository.branch(), repository.head())
    return ActionResult(repository.name, branch, head, paths or [])


def touched(ctx: Context[Repositories], repository: Repository, commits: bool = True) -> None:
    """Notify clients that are subscribed to a repository."""
    for uri in ("status", "log") if commits else ("status",):
        ctx.updated(f"git://{repository.name}/{uri}")
