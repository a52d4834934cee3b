"""Looking at a repository as it is: status, differences, a commit."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import Annotated, Literal

from msgspec import Meta

from interlock import CallToolResult, Context, TextContent, ToolError

from . import words
from .commits import commits_of
from .places import Repositories, Repository
from .records import KINDS, Change, Diff, FileDiff, Shown, Status
from .words import Cursor, Paths, Place, Revision, cursor_of, inside, line, place_of, read, visible

MOST_PATCH = 48 * 1024  # bytes of a page
MOST_MESSAGE = 20_000  # characters
Bytes = Annotated[int, Meta(ge=1_000, le=512 * 1024)]
Lines = Annotated[int, Meta(ge=0, le=100)]
Which = Literal["unstaged", "staged", "all"]

INDEX, WORK_TREE = "index", "work tree"
EMPTY_TREES = {40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904", 64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"}
# Said with every comparison, for what a configuration says of these comes first otherwise.
PLAIN = ("--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty", "--submodule=short", "--find-renames", "-l400")


async def git_status(ctx: Context[Repositories], repository: str | None = None, untracked: bool = True) -> Status | CallToolResult:
    """What is checked out, what is staged, what has changed since, and which files git does not know.

    Args:
        repository: its name, or the path of it or of anything in it; not needed where there is only one.
        untracked: also list files that git does not know and does not ignore.
    """
    status = await status_of(await ctx.state.open(repository, deep=True), untracked)
    return said(words_of_status(status), status)


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
) -> Diff | CallToolResult:
    """What differs: the files with their counts as data, and the patch as text, in pages.

    Args:
        what: unstaged: the work tree as against the index; staged: the index as against HEAD; all: the work tree as against HEAD.
        old: compare from this revision, to `new`, or else to what `what` compares.
        new: compare up to this revision; then `old` is needed.
        paths: only these files or folders.
        context: lines around each change.
        patch: false for the counts alone.
        cursor: the `next` of the page before, with the same arguments otherwise.
        most: bytes of the patch in a page.
    """
    place = place_of(cursor) if cursor is not None else Place([], 0)
    opened = await ctx.state.open(repository, deep=True)
    if new is not None and old is None:
        raise ToolError("With `new` say `old` too: what to compare it with.")
    commits = place.revisions or [await opened.object_of(one) for one in (old, new) if one is not None]
    if place.revisions and len(commits) != ((old is not None) + (new is not None) or what != "unstaged"):
        raise ToolError("This cursor is of another comparison.")
    command, before, after = await _compared(opened, what, commits)
    return await compare(opened, command, before, after, paths=paths, context=context, place=place, most=most if patch else 0)


async def git_show(
    revision: Revision,
    ctx: Context[Repositories],
    repository: str | None = None,
    paths: Paths | None = None,
    context: Lines = 3,
    patch: bool = True,
    cursor: Cursor | None = None,
    most: Bytes = MOST_PATCH,
) -> Shown | CallToolResult:
    """A commit: its message, which files it changes, and its patch as text, in pages; of a merge, as against its first parent.

    Args:
        paths: only these files or folders.
        cursor: the `next` of the page before.
    """
    place = place_of(cursor) if cursor is not None else Place([], 0)
    opened = await ctx.state.open(repository)
    commit = place.revisions[0] if place.revisions else await opened.object_of(revision)
    (found, *_) = await commits_of(opened, [commit])
    details = await opened.ask(
        "show", "--no-patch", "--no-notes", "--no-show-signature", "--format=%cn <%ce>%x00%cI%x00%B", commit, "--", most=8 * MOST_MESSAGE
    )
    committer, committed, message = [*read(details.output).split("\0", 2), "", ""][:3]
    base = found.parents[0] if found.parents else EMPTY_TREES[len(commit)]
    place.revisions = [commit]
    compared = await compare(opened, [base, commit], base, commit, paths=paths, context=context, place=place, most=most if patch else 0)
    diff = compared.structured_content
    assert isinstance(diff, Diff)
    shown = Shown(found, committer, committed, message.strip("\n")[:MOST_MESSAGE], diff)
    head = f"commit {found.id}\nAuthor: {line(f'{found.author} <{found.email}>')}\nDate: {line(found.date)}\n\n{visible(shown.message)}\n\n"
    text = compared.content[0]
    assert isinstance(text, TextContent)
    return said(("" if place.skip else head) + text.text, shown)


# -- what they have in common ------------------------------------------------------------------------------------------


def said(text: str, value: object) -> CallToolResult:
    """A result whose text is for reading, and whose data is in the structured content."""
    return CallToolResult(content=[TextContent(text)], structured_content=value)


async def status_of(repository: Repository, untracked: bool = True) -> Status:
    """The status of a repository. Raises ToolError."""
    ended = await repository.ask(
        "status", "--porcelain=v2", "--branch", "-z", "--no-ahead-behind" if not untracked else "--ahead-behind",
        f"--untracked-files={'normal' if untracked else 'no'}", "--ignore-submodules=dirty", "--find-renames",
    )  # fmt: skip
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
                    there.append(Change(parts[-1], KINDS.get(mark, "changed"), old if mark in "RC" else None))
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
        found.ahead, found.behind = int(ahead), -int(behind)


def words_of_status(status: Status) -> str:
    """A status in lines."""
    at = f"on {line(status.branch)}" if status.branch else "detached"
    lines = [f"{line(status.repository)}: {at}, {status.commit[:12] if status.commit else 'no commit yet'}"]
    if status.upstream:
        apart = f", {status.ahead} ahead, {status.behind} behind" if status.ahead is not None else ""
        lines.append(f"upstream {line(status.upstream)}{apart}")
    for title, changes in (("staged", status.staged), ("unstaged", status.unstaged)):
        lines += [f"{title}: {one.change} {line(one.path)}{f' (from {line(one.old_path)})' if one.old_path else ''}" for one in changes]
    lines += [f"conflict: {line(path)}" for path in status.conflicts] + [f"untracked: {line(path)}" for path in status.untracked]
    lines += ["Nothing to commit."] * status.clean + ["There is more than is listed."] * (not status.complete)
    return "\n".join(lines)


async def _compared(repository: Repository, what: Which, commits: list[str]) -> tuple[list[str], str, str]:
    """What `git diff` is told to compare, and what both sides are called."""
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
    """What there is before the first commit, by the repository's way to name objects."""
    found = await repository.ask("rev-parse", "--show-object-format")
    return EMPTY_TREES[64 if read(found.output).strip() == "sha256" else 40]


async def compare(
    repository: Repository, command: list[str], before: str, after: str, *, paths: list[str] | None = None, context: int = 3,
    place: Place | None = None, most: int = MOST_PATCH,
) -> CallToolResult:  # fmt: skip
    """The differences between two states: all files as data, and a page of the patch as text. Raises ToolError."""
    place = place or Place([], 0)
    where = ["--", *dict.fromkeys(map(inside, paths or ["."]))]
    with own_index(repository, needed=after == WORK_TREE) as variables:
        counted = await repository.ask("diff", "--raw", "--numstat", "-z", "--no-abbrev", *PLAIN, *command, *where, variables=variables)
        files, complete = files_of(counted.output)
        listed = files[: repository.limits.listed]
        diff = Diff(before, after, listed, sum(f.added or 0 for f in files), sum(f.deleted or 0 for f in files))
        diff.complete = complete and not counted.cut and len(listed) == len(files)
        if not most:
            return said(words_of_diff(diff), diff)
        window = await repository.window(
            "diff", "--patch", f"--unified={context}", "--src-prefix=a/", "--dst-prefix=b/", "--full-index", *PLAIN, *command, *where,
            skip=place.skip, digest=place.digest, most=most, variables=variables,
        )  # fmt: skip
    if window.more:
        diff.next = cursor_of(Place(place.revisions or [one for one in command if words.is_commit(one)], window.end, window.digest))
    end = f"\n... and more: go on with cursor {diff.next}" if diff.next else ""
    return said((visible(read(window.data).replace("\r\n", "\n")) or words_of_diff(diff)) + end, diff)


@contextmanager
def own_index(repository: Repository, needed: bool) -> Iterator[Mapping[str, str]]:
    """A copy of the index to compare the work tree with: `git diff` would write what it finds out into the real one."""
    index = repository.folders.git / "index"
    if not needed or not index.exists():
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="interlock-git-") as folder:
        copy = FilePath(folder, "index")
        shutil.copyfile(index, copy)
        there = index.stat()
        os.utime(copy, ns=(there.st_atime_ns, there.st_mtime_ns))  # git goes by it where a file was changed in the same moment
        yield {"GIT_INDEX_FILE": str(copy)}


def files_of(output: bytes) -> tuple[list[FileDiff], bool]:
    """The files that `git diff --raw --numstat -z` lists, and whether nothing is cut off of it."""
    found: dict[str, FileDiff] = {}
    parts = iter(read(output).split("\0"))
    try:
        for part in parts:
            if part.startswith(":"):
                mark = part.rpartition(" ")[2][:1]
                path = next(parts)
                old, path = (path, next(parts)) if mark in "RC" else (None, path)
                found[path] = FileDiff(path, KINDS.get(mark, "changed"), old_path=old)
            elif part:
                added, deleted, path = part.split("\t", 2)
                if not path:
                    next(parts)
                    path = next(parts)
                if path in found and added != "-":
                    found[path].added, found[path].deleted = int(added), int(deleted)
    except (StopIteration, ValueError):
        return list(found.values()), False
    return list(found.values()), True


def words_of_diff(diff: Diff) -> str:
    """The files of a comparison in lines."""
    if not diff.files:
        return "Nothing differs."
    lines = [
        f"{one.change} {line(one.path)}{f' +{one.added} -{one.deleted}' if one.added is not None else ' (no text)'}" for one in diff.files
    ]
    return "\n".join([*lines, f"{len(diff.files)} files, +{diff.added} -{diff.deleted}", *["There are more files."] * (not diff.complete)])
