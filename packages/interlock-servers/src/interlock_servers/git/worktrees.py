"""Worktree tools: list them, add them in the one allowed place, and remove them."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from interlock import Context, ToolError, ToolResult
from interlock.untrusted.invisible import one_line as line

from .arguments import Branch, Revision, read
from .branches import check_new, commit_of, create, ref_of
from .repositories import Repositories, Repository
from .results import ActionResult, Worktree, Worktrees
from .staging import done_in, touched

Name = Annotated[str, Meta(min_length=1, max_length=80, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


async def git_worktrees(
    ctx: Context[Repositories], repository: str | None = None
) -> ToolResult[Worktrees]:
    """The work trees of a repository, and where new ones are made."""
    opened = await ctx.lifespan_state.open(repository)
    found = await worktrees_of(ctx.lifespan_state, opened)
    lines = [
        f"{line(one.path, 1000)}: {line(one.branch or 'detached')}, "
        f"{(one.commit or '')[:12]}{', missing' * one.missing}"
        for one in found.worktrees
    ]
    return ToolResult(
        found, "\n".join([*lines, f"New work trees are created in {line(found.place, 1000)}"])
    )


async def worktrees_of(state: Repositories, repository: Repository) -> Worktrees:
    """The work trees of a repository. Raises ToolError."""
    place = state.place_of_worktrees(repository)
    found: list[Worktree] = []
    for block in read((await repository.ask("worktree", "list", "--porcelain", "-z")).output).split(
        "\0\0"
    ):
        about = dict(part.partition(" ")[::2] for part in block.split("\0") if part)
        if "worktree" in about:
            path = Path(about["worktree"])
            usable = path.is_relative_to(place) or state.is_given(path)
            branch = about.get("branch", "").removeprefix("refs/heads/") or None
            found.append(
                Worktree(
                    str(path),
                    usable,
                    branch,
                    about.get("HEAD"),
                    "locked" in about,
                    "prunable" in about,
                )
            )
    return Worktrees(found, str(place))


async def git_add_worktree(
    name: Name,
    ctx: Context[Repositories],
    repository: str | None = None,
    branch: Branch | None = None,
    revision: Revision = "HEAD",
) -> ToolResult[Worktree]:
    """Make a work tree at the repository's place for them; its path is then the name of a
    repository for the other tools.

    Args:
        name: of its folder.
        branch: what is checked out in it; created at `revision` where there is none. Without it no
            branch is checked out.
        revision: what is checked out where no branch is named, or where the branch is new.
    """
    opened = await ctx.lifespan_state.open(repository, deep=True)
    path = await asyncio.to_thread(_free, ctx.lifespan_state.place_of_worktrees(opened), name)
    async with ctx.lifespan_state.lock(opened):
        commit = await opened.object_of(revision)
        target = ["--detach", "--", str(path), commit]
        if branch is not None:
            ref = await ref_of(opened, branch)
            if (
                await opened.ask("show-ref", "--verify", "--quiet", "--", ref, fine=(0, 1, 128))
            ).code:
                check_new(branch)
                await create(opened, ref, commit)
            commit = await commit_of(opened, branch)
            target = ["--", str(path), branch]
        ctx.progress(0, 2, "creating the work tree")
        # Without files at first: the filters in its own configuration are known only once it
        # exists.
        await opened.ask("worktree", "add", "--no-checkout", "--no-guess-remote", *target)
        ctx.progress(1, 2, "checking out its files")
        try:
            made = await ctx.lifespan_state.open(str(path), deep=True)
            await made.ask("reset", "--hard", "--quiet", "--no-recurse-submodules", "HEAD", "--")
        except ToolError:
            await opened.ask("worktree", "remove", "--force", "--", str(path))
            raise
    touched(ctx, opened)
    return ToolResult(
        Worktree(str(path), usable=True, branch=branch, commit=commit),
        f"Made {line(str(path), 1000)} at {commit[:12]}.",
    )


def _free(place: Path, name: str) -> Path:
    """The path of a new worktree. Raises ToolError."""
    if not _NAME.fullmatch(name) or name.lower().startswith(("git~", ".git")):
        raise ToolError(
            "The name of a work tree may contain only letters, digits, dots, dashes and "
            "underscores."
        )
    place.mkdir(parents=True, exist_ok=True)
    if place.resolve() != place:
        raise ToolError("The folder for work trees is a link, which is not followed.")
    path = place / name
    if path.exists() or path.is_symlink():
        raise ToolError(f"The folder for work trees already contains {name}.")
    return path


async def git_remove_worktree(
    name: Name, ctx: Context[Repositories], repository: str | None = None, discard: bool = False
) -> ToolResult[ActionResult]:
    """Remove a work tree from the folder for work trees, once the user has agreed.

    Its branch stays.

    Args:
        name: of its folder.
        discard: also where changes and untracked files in it are lost.
    """
    opened = await ctx.lifespan_state.open(repository, deep=True)
    path = ctx.lifespan_state.place_of_worktrees(opened) / name
    known = {one.path for one in (await worktrees_of(ctx.lifespan_state, opened)).worktrees}
    if not _NAME.fullmatch(name) or str(path) not in known:
        raise ToolError(f"There is no work tree {line(name)} in the folder for work trees.")
    if path == opened.top:
        raise ToolError("A work tree cannot remove itself: name the main one as the repository.")
    lost = " Changes in it are lost." if discard else ""
    if not await ctx.confirm(
        f"Remove the work tree {line(str(path), 1000)} of {line(opened.name)}?{lost}"
    ):
        raise ToolError("The user did not agree, and nothing was removed.")
    there = (
        await ctx.lifespan_state.open(str(path), deep=True)
        if await asyncio.to_thread(path.exists)
        else opened
    )
    async with ctx.lifespan_state.lock(opened):
        # The settings for its own configuration are combined with those of the main repository.
        await opened.beside(there).ask(
            "worktree", "remove", *(["--force"] if discard else []), "--", str(path)
        )
    touched(ctx, opened)
    return ToolResult(await done_in(opened), f"Removed {line(str(path), 1000)}.")
