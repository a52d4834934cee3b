"""Tools for the status, the differences and a commit."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from interlock import Context, ToolError, ToolResult
from interlock.untrusted.invisible import one_line as line
from interlock.untrusted.invisible import visible

from .arguments import Cursor, PageCursor, Paths, Revision, inside, place_of, read
from .commits import FIELDS, FORMAT, commit_in
from .diffs import (
    INDEX,
    LISTED,
    MOST_PATCH,
    WORK_TREE,
    compare,
    diff_of,
    page_of,
    patch_alone,
    patched,
    words_of_diff,
)
from .output import Preamble
from .repositories import Repositories, Repository
from .results import KINDS, ChangedFile, CommitDetails, Diff, Status
from .runner import OutputWindow

MOST_MESSAGE = 20_000  # characters
Bytes = Annotated[int, Meta(ge=1_000, le=512 * 1024)]
Lines = Annotated[int, Meta(ge=0, le=100)]
Which = Literal["unstaged", "staged", "all"]

# A commit with its committer and message, followed by its diff against the first parent; git ends
# the commit's own part with an extra NUL.
_DETAILS = (
    "--no-notes",
    "--no-show-signature",
    "--decorate=short",
    "--diff-merges=first-parent",
    f"{FORMAT}%x00%cn <%ce>%x00%cI%x00%B%x00",
)
_PREAMBLE_FIELDS = FIELDS + 4
EMPTY_TREES = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}


async def git_status(
    ctx: Context[Repositories], repository: str | None = None, untracked: bool = True
) -> ToolResult[Status]:
    """What is checked out, the staged changes, what has changed since, and which files git does not
    know.

    Args:
        repository: its name, or the path of it or of anything in it; not needed where there is only
            one.
        untracked: also list files that git does not know and does not ignore.
    """
    status = await status_of(await ctx.lifespan_state.open(repository, deep=True), untracked)
    return ToolResult(status, words_of_status(status))


async def git_diff(
    ctx: Context[Repositories],
    repository: str | None = None,
    what: Which = "unstaged",
    old: Revision | None = None,
    new: Revision | None = None,
    paths: Paths | None = None,
    context: Lines = 3,
    patch: bool = True,
    cursor: Cursor | None = None,
    most: Bytes = MOST_PATCH,
) -> ToolResult[Diff]:
    """What differs: the files with their counts as data, and the patch as text, in pages.

    Args:
        what: unstaged: the work tree as against the index; staged: the index as against HEAD; all:
            the work tree as against HEAD.
        old: compare from this revision, to `new`, or else to what `what` compares.
        new: compare up to this revision; then `old` is needed.
        paths: only these files or folders.
        context: lines around each change.
        patch: false for the counts alone.
        cursor: the `next` of the page before, with the same arguments otherwise.
        most: bytes of the patch in a page.
    """
    place = place_of(cursor) if cursor is not None else PageCursor([], 0)
    opened = await ctx.lifespan_state.open(repository, deep=True)
    if new is not None and old is None:
        raise ToolError("Pass `old` together with `new`: the revision to compare with.")
    commits = place.revisions or [
        await opened.object_of(one) for one in (old, new) if one is not None
    ]
    if place.revisions and len(commits) != (
        (old is not None) + (new is not None) or what != "unstaged"
    ):
        raise ToolError("This cursor belongs to another comparison.")
    command, before, after = await _compared(opened, what, commits)
    return await compare(
        opened,
        command,
        before,
        after,
        paths=paths,
        context=context,
        place=place,
        most=most if patch else 0,
    )


async def git_show(
    revision: Revision,
    ctx: Context[Repositories],
    repository: str | None = None,
    paths: Paths | None = None,
    context: Lines = 3,
    patch: bool = True,
    cursor: Cursor | None = None,
    most: Bytes = MOST_PATCH,
) -> ToolResult[CommitDetails]:
    """A commit: its message, which files it changes, and its patch as text, in pages; of a merge,
    as against its first parent.

    Args:
        paths: only these files or folders.
        cursor: the `next` of the page before.
    """
    place = place_of(cursor) if cursor is not None else PageCursor([], 0)
    opened = await ctx.lifespan_state.open(repository)
    before, colon, path = revision.partition(":")
    if colon and before and path and "{" not in revision:
        raise ToolError(
            f"{line(revision)} names a file, not a commit. Call git_read_file with path "
            f"{line(path)!r} and revision {line(before)!r}."
        )
    where = ["--", *dict.fromkeys(map(inside, paths or ["."]))]

    async def show(commit: str) -> OutputWindow:
        command = [
            "show",
            *_DETAILS,
            *LISTED,
            *(patched(context) if patch else ()),
            "--end-of-options",
            commit,
            *where,
        ]
        if patch:
            return await opened.window(
                *command,
                skip=place.skip,
                digest=place.digest,
                most=most,
                preamble=Preamble(_PREAMBLE_FIELDS),
            )
        listed = await opened.ask(*command)
        return OutputWindow(b"", "", 0, more=False, preamble=listed.output, cut=listed.cut)

    window = await (show(place.revisions[0]) if place.revisions else opened.run_at(revision, show))
    fields = window.preamble.split(b"\0", _PREAMBLE_FIELDS)
    if len(fields) <= _PREAMBLE_FIELDS:
        raise ToolError("The commit is too large to show.")
    *about, committer, committed, message = map(read, fields[: _PREAMBLE_FIELDS - 1])
    commit = commit_in(about)
    base = commit.parents[0] if commit.parents else EMPTY_TREES[len(commit.id)]
    diff = diff_of(
        opened, base, commit.id, fields[_PREAMBLE_FIELDS].removeprefix(b"\n"), window.cut
    )
    if window.cut and patch:
        window = await patch_alone(opened, [base, commit.id, *where], context, place, most)
    text = page_of(diff, window, [commit.id]) if patch else words_of_diff(diff)
    shown = CommitDetails(commit, committer, committed, message.strip("\n")[:MOST_MESSAGE], diff)
    author = line(f"{commit.author} <{commit.email}>")
    head = (
        f"commit {commit.id}\nAuthor: {author}\nDate: "
        f"{line(commit.date)}\n\n{visible(shown.message)}\n\n"
    )
    return ToolResult(shown, ("" if place.skip else head) + text)


# -- shared helpers --------------------------------------------------------------------------------


async def status_of(repository: Repository, untracked: bool = True) -> Status:
    """The status of a repository. Raises ToolError."""
    ended = await repository.ask(
        "status",
        "--porcelain=v2",
        "--branch",
        "-z",
        "--no-ahead-behind" if not untracked else "--ahead-behind",
        f"--untracked-files={'normal' if untracked else 'no'}",
        "--ignore-submodules=dirty",
        "--find-renames",
    )
    return _status(repository.name, ended.output, ended.cut, repository.limits.listed)


def _status(name: str, output: bytes, cut: bool, most: int) -> Status:
    found = Status(name, None, None, clean=False, complete=not cut)
    entries = iter(read(output).split("\0")[: -1 if not cut else -2])
    listed = 0
    for entry in entries:
        kind, _, rest = entry.partition(" ")
        if kind == "#":
            _head(found, rest)
            continue
        listed += 1
        if kind == "?":
            found.untracked.append(rest)
        elif kind == "u":
            found.conflicts.append(rest.split(" ", 9)[9])
        elif kind in "12":
            parts = rest.split(" ", 7 if kind == "1" else 8)
            old = next(entries, None) if kind == "2" else None
            for mark, there in ((parts[0][0], found.staged), (parts[0][1], found.unstaged)):
                if mark != ".":
                    there.append(
                        ChangedFile(
                            parts[-1], KINDS.get(mark, "changed"), old if mark in "RC" else None
                        )
                    )
    found.clean = listed == 0 and not cut
    for files in (found.staged, found.unstaged, found.conflicts, found.untracked):
        found.complete = found.complete and len(files) <= most
        del files[most:]
    return found


def _head(found: Status, rest: str) -> None:
    what, _, value = rest.partition(" ")
    if what == "branch.oid":
        found.commit = None if value == "(initial)" else value
    elif what == "branch.head":
        found.branch = None if value == "(detached)" else value
    elif what == "branch.upstream":
        found.upstream = value
    elif what == "branch.ab" and "?" not in value:
        ahead, behind = value.split(" ")
        found.ahead = int(ahead)
        found.behind = -int(behind)


def words_of_status(status: Status) -> str:
    """A status, one file a line."""
    at = f"on {line(status.branch)}" if status.branch else "detached"
    lines = [
        f"{line(status.repository)}: {at}, "
        f"{status.commit[:12] if status.commit else 'no commit yet'}"
    ]
    if status.upstream:
        apart = (
            f", {status.ahead} ahead, {status.behind} behind" if status.ahead is not None else ""
        )
        lines.append(f"upstream {line(status.upstream)}{apart}")
    for title, changes in (("staged", status.staged), ("unstaged", status.unstaged)):
        lines += [
            f"{title}: {one.change} "
            f"{line(one.path)}{f' (from {line(one.old_path)})' if one.old_path else ''}"
            for one in changes
        ]
    lines += [f"conflict: {line(path)}" for path in status.conflicts] + [
        f"untracked: {line(path)}" for path in status.untracked
    ]
    lines += ["Nothing to commit."] * status.clean + ["There is more than is listed."] * (
        not status.complete
    )
    return "\n".join(lines)


async def _compared(
    repository: Repository, what: Which, commits: list[str]
) -> tuple[list[str], str, str]:
    """The arguments of `git diff`, and the names of both sides."""
    if len(commits) == 2:
        return commits, *commits  # type: ignore[return-value]  # there are two
    if not commits and what == "unstaged":
        return [], INDEX, WORK_TREE
    commit = commits[0] if commits else await repository.head()
    commit = commit or await empty_tree(repository)  # before the first commit everything is new
    if what == "staged":
        return ["--cached", commit], commit, INDEX
    return [commit], commit, WORK_TREE


async def empty_tree(repository: Repository) -> str:
    """The empty tree, in the object format of the repository."""
    found = await repository.ask("rev-parse", "--show-object-format")
    return EMPTY_TREES[64 if read(found.output).strip() == "sha256" else 40]
