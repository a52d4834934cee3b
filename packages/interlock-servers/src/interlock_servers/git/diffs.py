"""Diff tools: files that differ between two states, and the patch in pages."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path as FilePath

from interlock import ToolResult
from interlock.untrusted.invisible import one_line as line
from interlock.untrusted.invisible import visible

from ..processes import both
from . import arguments
from .arguments import PageCursor, cursor_of, inside, read
from .output import Preamble
from .repositories import Repository
from .results import KINDS, Diff, FileDiff
from .runner import OutputWindow

MOST_PATCH = 48 * 1024  # bytes of a page of the patch
INDEX = "index"
WORK_TREE = "work tree"
# Passed with every comparison, because a configuration could change these defaults.
PLAIN = (
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--ignore-submodules=dirty",
    "--submodule=short",
    "--find-renames",
    "-l400",
)
LISTED = (
    "--raw",
    "--numstat",
    "-z",
    "--no-abbrev",
    *PLAIN,
)  # the files with their line counts


def patched(context: int) -> tuple[str, ...]:
    """Options for a patch with this many context lines."""
    return "--patch", f"--unified={context}", "--src-prefix=a/", "--dst-prefix=b/", "--full-index"


async def compare(
    repository: Repository,
    command: list[str],
    before: str,
    after: str,
    *,
    paths: list[str] | None = None,
    context: int = 3,
    place: PageCursor | None = None,
    most: int = MOST_PATCH,
) -> ToolResult[Diff]:
    """The differences between two states: all files as data, and a page of the patch as text.

    Raises ToolError.
    """
    place = place or PageCursor([], 0)
    where = ["--", *dict.fromkeys(map(inside, paths or ["."]))]
    revisions = place.revisions or [one for one in command if arguments.is_commit(one)]
    with own_index(repository, needed=after == WORK_TREE) as variables:
        if most and command:
            window = await repository.window(
                "diff",
                *LISTED,
                *patched(context),
                *command,
                *where,
                skip=place.skip,
                digest=place.digest,
                most=most,
                variables=variables,
                preamble=Preamble(),
            )
            if not window.cut:
                diff = diff_of(repository, before, after, window.preamble, cut=False)
                return ToolResult(diff, page_of(diff, window, revisions))
        # For files in conflict in the index, git prints only their names if both are requested in
        # one run.
        listing = repository.ask("diff", *LISTED, *command, *where, variables=variables)
        if not most:
            counted = await listing
            diff = diff_of(repository, before, after, counted.output, counted.cut)
            return ToolResult(diff, words_of_diff(diff))
        counted, window = await both(
            listing, patch_alone(repository, [*command, *where], context, place, most, variables)
        )
    diff = diff_of(repository, before, after, counted.output, counted.cut)
    return ToolResult(diff, page_of(diff, window, revisions))


async def patch_alone(
    repository: Repository,
    command: Sequence[str],
    context: int,
    place: PageCursor,
    most: int,
    variables: Mapping[str, str] | None = None,
) -> OutputWindow:
    """A page of a patch whose list of files is too long to be read before it.

    Raises ToolError.
    """
    return await repository.window(
        "diff",
        *PLAIN,
        *patched(context),
        *command,
        skip=place.skip,
        digest=place.digest,
        most=most,
        variables=variables,
    )


def diff_of(repository: Repository, before: str, after: str, output: bytes, cut: bool) -> Diff:
    """The files that differ, and whether the list is complete."""
    files, complete = files_of(output)
    listed = files[: repository.limits.listed]
    diff = Diff(
        before, after, listed, sum(f.added or 0 for f in files), sum(f.deleted or 0 for f in files)
    )
    diff.complete = complete and not cut and len(listed) == len(files)
    return diff


def page_of(diff: Diff, window: OutputWindow, revisions: list[str]) -> str:
    """A page of a patch as text. If there is more, `next` of the diff is set."""
    if window.more:
        diff.next = cursor_of(PageCursor(revisions, window.end, window.digest))
    end = f"\n... and more: continue with cursor {diff.next}" if diff.next else ""
    return (visible(read(window.data).replace("\r\n", "\n")) or words_of_diff(diff)) + end


@contextmanager
def own_index(repository: Repository, needed: bool) -> Iterator[Mapping[str, str]]:
    """A copy of the index for comparing the work tree: `git diff` would write to the real one."""
    index = repository.folders.git / "index"
    if not needed or not index.exists():
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="interlock-git-") as folder:
        copy = FilePath(folder, "index")
        shutil.copyfile(index, copy)
        there = index.stat()
        os.utime(
            copy, ns=(there.st_atime_ns, there.st_mtime_ns)
        )  # git uses it to detect a file that was changed at the same moment
        yield {"GIT_INDEX_FILE": str(copy)}


def files_of(output: bytes) -> tuple[list[FileDiff], bool]:
    """The files in the output of `git diff --raw --numstat -z`, and whether it is complete."""
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
                    found[path].added = int(added)
                    found[path].deleted = int(deleted)
    except (StopIteration, ValueError):
        return list(found.values()), False
    return list(found.values()), True


def words_of_diff(diff: Diff) -> str:
    """The files of a diff, one a line."""
    if not diff.files:
        return "Nothing differs."
    lines = [
        f"{one.change} "
        f"{line(one.path)}"
        f"{f' +{one.added} -{one.deleted}' if one.added is not None else ' (no text)'}"
        for one in diff.files
    ]
    return "\n".join(
        [
            *lines,
            f"{len(diff.files)} files, +{diff.added} -{diff.deleted}",
            *["There are more files."] * (not diff.complete),
        ]
    )
