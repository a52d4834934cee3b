"""Stash tools: put changes aside and apply them again."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from interlock import Context, ToolError, ToolResult
from interlock.untrusted.invisible import one_line as line

from .arguments import AnyPaths, Cursor, PageCursor, Text, cursor_of, inside, phrase, place_of, read
from .diffs import MOST_PATCH, compare
from .repositories import Repositories, Repository
from .results import ActionResult, Diff, Stash, Stashes
from .staging import done_in, touched
from .status import Bytes, status_of

Number = Annotated[int, Meta(ge=0, le=100_000)]
_FORMAT = "--format=%H%x00%gd%x00%aI%x00%gs"
_FIELDS = 4
# A stash is a commit and needs an author. This one is used if none is configured.
_SOMEBODY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Interlock"), ("EMAIL", "interlock@localhost"))
}


async def git_stash(
    ctx: Context[Repositories],
    repository: str | None = None,
    message: Text | None = None,
    untracked: bool = False,
    paths: AnyPaths | None = None,
) -> ToolResult[ActionResult]:
    """Stash changes: the work tree and the index are then as HEAD has them.

    Args:
        message: what it is.
        untracked: also files that git does not know.
        paths: only these files or folders.
    """
    opened = await ctx.lifespan_state.open(repository, deep=True)
    options = [f"--message={phrase(message, 'message')}"] if message else []
    options += ["--include-untracked"] * untracked
    # Without paths git uses its own pathspec `:/`, which must not be taken literally.
    magic = {} if paths else {"GIT_LITERAL_PATHSPECS": "0"}
    async with ctx.lifespan_state.lock(opened):
        before = await _newest(opened)
        await opened.ask(
            "stash",
            "push",
            "--quiet",
            "--no-keep-index",
            *options,
            "--",
            *map(inside, paths or ()),
            variables={**_SOMEBODY, **magic},
        )
        made = await _newest(opened) != before
    done = await done_in(opened)
    if not made:
        return ToolResult(done, "There is nothing to stash.")
    touched(ctx, opened, commits=False)
    return ToolResult(
        done, "Stashed as stash 0. The numbers of the other stashes increased by one."
    )


async def git_stashes(
    ctx: Context[Repositories],
    repository: str | None = None,
    limit: Annotated[int, Meta(ge=1, le=200)] = 50,
    cursor: Cursor | None = None,
) -> ToolResult[Stashes]:
    """What was put aside, the newest first."""
    place = place_of(cursor) if cursor is not None else PageCursor([], 0)
    found = await _stashes(await ctx.lifespan_state.open(repository), place.skip, limit + 1)
    stashes = Stashes(
        found[:limit], cursor_of(PageCursor([], place.skip + limit)) if len(found) > limit else None
    )
    lines = [f"{one.number}: {one.date[:10]} {line(one.subject)}" for one in stashes.stashes]
    return ToolResult(stashes, "\n".join(lines or ["Nothing was stashed."]))


async def git_show_stash(
    ctx: Context[Repositories],
    repository: str | None = None,
    stash: Number = 0,
    cursor: Cursor | None = None,
    most: Bytes = MOST_PATCH,
) -> ToolResult[Diff]:
    """What a stash changes, as against the commit it was made at; files that git did not know are
    left out.

    Args:
        stash: its number.
    """
    opened = await ctx.lifespan_state.open(repository)
    place = place_of(cursor) if cursor is not None else PageCursor([], 0)
    if len(place.revisions) not in (0, 2):
        raise ToolError("This cursor belongs to another call.")
    commits = place.revisions
    if not commits:
        commit = (await _stash(opened, stash)).commit
        commits = [await opened.object_of(f"{commit}^1"), commit]
    return await compare(opened, commits, *commits, place=place, most=most)


async def git_apply_stash(
    ctx: Context[Repositories], repository: str | None = None, stash: Number = 0, drop: bool = False
) -> ToolResult[ActionResult]:
    """Make the changes of a stash again.

    Where they meet others, git marks the conflicts, and the stash stays.

    Args:
        stash: its number.
        drop: drop the stash once its changes are made without conflicts (what git calls pop).
    """
    opened = await ctx.lifespan_state.open(repository, deep=True)
    async with ctx.lifespan_state.lock(opened):
        found = await _stash(opened, stash)
        ended = await opened.ask(
            "stash",
            "pop" if drop else "apply",
            "--quiet",
            f"stash@{{{stash}}}",
            variables=_SOMEBODY,
            fine=(0, 1),
        )
    done = await done_in(opened)
    status = await status_of(opened, untracked=False)
    done.conflicts = status.conflicts
    done.paths = [one.path for one in [*status.staged, *status.unstaged]]
    touched(ctx, opened, commits=False)
    if done.conflicts:
        return ToolResult(
            done,
            f"Applied with conflicts in {', '.join(map(line, done.conflicts))}. The stash stays.",
        )
    if ended.code:
        raise ToolError(
            line(ended.errors.removeprefix("error: "), 500) or "The stash could not be applied."
        )
    return ToolResult(done, f"Applied {line(found.subject)}{' and dropped it' if drop else ''}.")


async def git_drop_stash(
    ctx: Context[Repositories], repository: str | None = None, stash: Number = 0
) -> ToolResult[ActionResult]:
    """Drop a stash, once the user has agreed: its changes are lost.

    Args:
        stash: its number.
    """
    opened = await ctx.lifespan_state.open(repository, deep=True)
    found = await _stash(opened, stash)
    if not await ctx.confirm(
        f"Drop stash {stash} of {line(opened.name)} ({line(found.subject)}, {found.date[:10]})? "
        "Its changes are lost."
    ):
        raise ToolError("The user did not agree, and nothing was dropped.")
    async with ctx.lifespan_state.lock(opened):
        if (await _stash(opened, stash)).commit != found.commit:
            raise ToolError("The stashes have changed in the meantime, so none was dropped.")
        await opened.ask("stash", "drop", "--quiet", f"stash@{{{stash}}}")
    return ToolResult(
        await done_in(opened), f"Dropped {line(found.subject)}, which was {found.commit}."
    )


async def _newest(repository: Repository) -> str | None:
    found = await _stashes(repository, 0, 1)
    return found[0].commit if found else None


async def _stash(repository: Repository, number: int) -> Stash:
    found = await _stashes(repository, number, 1)
    if not found:
        raise ToolError(f"There is no stash {number} in {repository.name}.")
    return found[0]


async def _stashes(repository: Repository, skip: int, most: int) -> list[Stash]:
    if (
        await repository.ask(
            "show-ref", "--verify", "--quiet", "--", "refs/stash", fine=(0, 1, 128)
        )
    ).code:
        return []
    ended = await repository.ask(
        "log",
        "-z",
        "--walk-reflogs",
        "--no-show-signature",
        "--no-notes",
        "--no-patch",
        f"--skip={skip}",
        f"--max-count={most}",
        _FORMAT,
        "refs/stash",
        "--",
    )
    values = read(ended.output).split("\0")
    rows = [values[n : n + _FIELDS] for n in range(0, len(values) - _FIELDS, _FIELDS)]
    return [Stash(skip + n, row[0], row[2], row[3][:500]) for n, row in enumerate(rows)]
