"""Branch tools: list, create, delete and switch."""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta

from interlock import Context, ToolError, ToolResult
from interlock.untrusted.invisible import one_line as line

from ..processes import both
from .arguments import Branch, Cursor, PageCursor, Revision, cursor_of, phrase, place_of, read
from .repositories import Repositories, Repository
from .results import ActionResult, Branches, BranchInfo
from .staging import done_in, touched

_FIELDS = (
    "refname",
    "objectname",
    "committerdate:iso-strict",
    "contents:subject",
    "upstream:short",
    "HEAD",
    "worktreepath",
)
_FORMAT = "".join(f"%({field})%00" for field in _FIELDS)
MOST_BRANCHES = 100

# Names that git reads as HEAD ("@"), as a full ref, as a pseudo ref such as FETCH_HEAD, or as a
# commit id.
_AMBIGUOUS = re.compile(
    r"@|(?:refs|heads|tags|remotes)/.*|(?:[A-Z]+_)*HEAD|stash|[0-9a-f]{40}|[0-9a-f]{64}"
)


async def git_branches(
    ctx: Context[Repositories],
    repository: str | None = None,
    remote: bool = False,
    contains: Revision | None = None,
    not_contains: Revision | None = None,
    limit: Annotated[int, Meta(ge=1, le=500)] = MOST_BRANCHES,
    cursor: Cursor | None = None,
) -> ToolResult[Branches]:
    """The branches by name, each with its last commit.

    Args:
        remote: the branches of remotes, as they were known last, in place of one's own.
        contains: only those in whose history this commit is.
        not_contains: only those in whose history it is not.
    """
    place = place_of(cursor) if cursor is not None else PageCursor([], 0)
    opened = await ctx.lifespan_state.open(repository)
    only = [f"--contains={await opened.object_of(contains)}"] if contains is not None else []
    only += (
        [f"--no-contains={await opened.object_of(not_contains)}"]
        if not_contains is not None
        else []
    )
    most = place.skip + limit + 1
    where = "refs/remotes" if remote else "refs/heads"
    listed, current = await both(
        opened.ask(
            "for-each-ref", f"--format={_FORMAT}", "--sort=refname", f"--count={most}", *only, where
        ),
        opened.branch(),
    )
    if listed.cut:
        raise ToolError("There are too many branches to list that far.")
    values = read(listed.output).split("\0")
    rows = [
        values[n : n + len(_FIELDS)] for n in range(0, len(values) - len(_FIELDS), len(_FIELDS))
    ]
    found = [_info(row) for row in rows[place.skip : place.skip + limit]]
    branches = Branches(
        current,
        found,
        cursor_of(PageCursor([], place.skip + limit)) if len(rows) > place.skip + limit else None,
    )
    lines = [
        f"{'*' if one.current else ' '} {line(one.name)} {one.commit[:12]} {one.date[:10]} "
        f"{line(one.subject)}"
        for one in found
    ]
    more = [f"... and more: continue with cursor {branches.next}"] if branches.next else []
    return ToolResult(
        branches,
        "\n".join(
            [*(lines or ["There is no such branch." if only else "There is no branch yet."]), *more]
        ),
    )


def _info(row: list[str]) -> BranchInfo:
    ref, commit, date, subject, upstream, mark, worktree = row
    name = ref.lstrip("\n").removeprefix("refs/heads/").removeprefix("refs/remotes/")
    return BranchInfo(
        name, commit, date, subject[:500], mark == "*", upstream or None, worktree or None
    )


async def git_create_branch(
    name: Branch,
    ctx: Context[Repositories],
    repository: str | None = None,
    revision: Revision = "HEAD",
) -> ToolResult[ActionResult]:
    """Create a branch at a revision; what is checked out stays."""
    opened = await ctx.lifespan_state.open(repository, deep=True)
    ref = await new_ref(opened, name)
    commit = await opened.object_of(revision)
    async with ctx.lifespan_state.lock(opened):
        await create(opened, ref, commit)
    touched(ctx, opened)
    return ToolResult(await done_in(opened), f"Created {line(name)} at {commit[:12]}.")


async def git_delete_branch(
    name: Branch, ctx: Context[Repositories], repository: str | None = None
) -> ToolResult[ActionResult]:
    """Delete a branch, once the user has agreed. One that is checked out anywhere stays."""
    opened = await ctx.lifespan_state.open(repository, deep=True)
    commit = await commit_of(opened, name)
    head = await opened.head()
    merged = (
        head is not None
        and (await opened.ask("merge-base", "--is-ancestor", commit, head, fine=(0, 1))).code == 0
    )
    lost = "" if merged else " Some of its commits are not in the current branch, and may be lost."
    if not await ctx.confirm(
        f"Delete the branch {line(name)} (at {commit[:12]}) of {line(opened.name)}?{lost}"
    ):
        raise ToolError("The user did not agree, and nothing was deleted.")
    async with ctx.lifespan_state.lock(opened):
        if await commit_of(opened, name) != commit:
            raise ToolError("The branch has changed in the meantime, so it was not deleted.")
        await opened.ask("branch", "--delete", "--force", "--quiet", "--", name)
    touched(ctx, opened)
    return ToolResult(await done_in(opened), f"Deleted {line(name)}, which was at {commit}.")


async def git_switch(
    to: Revision,
    ctx: Context[Repositories],
    repository: str | None = None,
    create: bool = False,
    detach: bool = False,
) -> ToolResult[ActionResult]:
    """Check out a branch. Where changes, untracked or ignored files would be lost, nothing happens.

    Args:
        to: the branch.
        create: create the branch first, at what is checked out now.
        detach: `to` may be any revision, and no branch is checked out then.
    """
    if create and detach:
        raise ToolError("Give either create or detach, not both.")
    opened = await ctx.lifespan_state.open(repository, deep=True)
    options = ["--no-guess", "--no-recurse-submodules", "--no-overwrite-ignore", "--progress"]
    async with ctx.lifespan_state.lock(opened):
        if detach:
            target = ["--detach", await opened.object_of(to)]
        elif create:
            await new_ref(opened, to)
            target = ["--create", to]
        else:
            await commit_of(opened, to)
            target = [to]
        await opened.ask(
            "switch",
            *options,
            *target,
            on_progress=lambda done, total: ctx.progress(done, total, "files"),
        )
    touched(ctx, opened)
    done = await done_in(opened)
    return ToolResult(done, f"Switched to {line(to)}, at {(done.commit or 'no commit yet')[:12]}.")


# -- shared helpers --------------------------------------------------------------------------------


async def ref_of(repository: Repository, name: str) -> str:
    """The full ref of a branch.

    Raises ToolError for an invalid name, and for a name that git would interpret differently.
    """
    phrase(name, "branch")
    ref = f"refs/heads/{name}"
    if (
        name.startswith("-")
        or name == "HEAD"
        or (await repository.ask("check-ref-format", ref, fine=(0, 1))).code
    ):
        raise ToolError(f"{line(name)!r} is not a valid name for a branch.")
    return ref


async def commit_of(repository: Repository, name: str) -> str:
    """The commit of a branch. Raises ToolError if there is no such branch."""
    ended = await repository.ask(
        "show-ref", "--verify", "--hash", "--", await ref_of(repository, name), fine=(0, 1, 128)
    )
    if ended.code:
        raise ToolError(f"There is no branch {line(name)!r} in {repository.name}.")
    return read(ended.output).strip()


def check_new(name: str) -> None:
    """Reject a name for a new branch that git would interpret differently. Raises ToolError."""
    if _AMBIGUOUS.fullmatch(name):
        raise ToolError(
            f"{line(name)!r} is not a valid name for a new branch: git reads it as "
            "another revision."
        )


async def new_ref(repository: Repository, name: str) -> str:
    """The full ref of a branch that does not exist yet.

    Raises ToolError, also for a name that git would interpret differently.
    """
    ref = await ref_of(repository, name)
    check_new(name)
    if not (
        await repository.ask("show-ref", "--verify", "--quiet", "--", ref, fine=(0, 1, 128))
    ).code:
        raise ToolError(f"The branch {line(name)} already exists.")
    return ref


async def create(repository: Repository, ref: str, commit: str) -> None:
    """Create a branch that does not exist yet. Raises ToolError."""
    await repository.ask(
        "update-ref", "--create-reflog", "-m", "branch: created", ref, commit, "0" * len(commit)
    )
