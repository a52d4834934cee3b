"""Tools that read, list and find files. They change nothing."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from interlock import Context, Server, TextContent, ToolAnnotations, ToolError, ToolResult
from interlock.types import ContentBlock
from interlock.untrusted.invisible import visible_line as plain

from .encodings import Encoding, type_of
from .reading import ReadRange, read_place
from .resolve import ResolvedPath, kind_of, without_bad_bytes
from .results import (
    AllowedFolders,
    FileInfo,
    FolderEntries,
    LineMatches,
    ReadAttempt,
    ReadResult,
    ReadResults,
    version_of,
    when,
)
from .roots import AllowedRoots, CallProgress
from .search import TextQuery, find_names, search_text
from .walk import TreeNode, listed, tree_of, without

Path = Annotated[str, Meta(min_length=1, max_length=4096, examples=["src/main.py"])]
Line = Annotated[int, Meta(ge=1)]
FirstLine = Annotated[int, Meta(ge=-1_000_000)]
Bytes = Annotated[int, Meta(ge=0)]
Glob = Annotated[str, Meta(min_length=1, max_length=500, examples=["*.py", "src/**/*.{ts,tsx}"])]
Globs = Annotated[
    list[Glob], Meta(max_length=50, examples=[["node_modules", "build/**", "*.min.js"]])
]
Files = Annotated[list[Path], Meta(min_length=1, max_length=1000)]
Ctx = Context[AllowedRoots]

READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


def list_allowed_folders(ctx: Ctx) -> ToolResult[AllowedFolders]:
    """The folders that may be touched, and the limits of this server."""
    with ctx.lifespan_state.call_roots(ctx) as call_roots:
        folders = [without_bad_bytes(folder.path) for folder in call_roots.folders]
    problems = ctx.lifespan_state.problems
    return ToolResult(
        AllowedFolders(folders, msgspec.to_builtins(ctx.lifespan_state.limits), problems),
        "\n".join(map(plain, [*folders, *problems])),
    )


def read_file(
    path: Path,
    ctx: Ctx,
    first_line: FirstLine | None = None,
    last_line: Line | None = None,
    offset: Bytes | None = None,
    length: Bytes | None = None,
    encoding: Encoding | None = None,
) -> ToolResult[ReadResult]:
    """Read a file: text as text, a picture or a sound as such, and anything else by bytes.

    A long text is cut; `complete` says whether there is more, and `nextLine` or `nextOffset` where
    to read on.

    Args:
        path: of the file.
        first_line: the first line to read, from 1; -20 is the last 20 lines.
        last_line: the last line to read, which belongs to it.
        offset: the first byte to read, from 0, in place of lines.
        length: how many bytes to read.
        encoding: of a text that is neither UTF-8 nor says itself what it is.
    """
    window = ReadRange(first_line, last_line, offset, length)
    with ctx.lifespan_state.call_roots(ctx) as call_roots, call_roots.find(path) as place:
        answer, content = read_place(
            place,
            without_bad_bytes(call_roots.shown(place.folder, place.parts)),
            window,
            encoding,
            call_roots.limits,
        )
    if not answer.cut:
        return ToolResult(answer, content)
    onward = (
        f"first_line {answer.next_line}"
        if answer.next_line is not None
        else f"offset {answer.next_offset}, for the line is long"
    )
    note = f"[cut in {plain(answer.path)}: read on with {onward}]"
    return ToolResult(answer, content, note)


def read_files(paths: Files, ctx: Ctx) -> ToolResult[ReadResults]:
    """Read several files at once. One that cannot be read does not keep the others from being read.

    Args:
        paths: of the files; each is read as read_file does, and together they may be as long as one
            answer.
    """
    limits = ctx.lifespan_state.limits
    if len(paths) > limits.files:
        raise ToolError(f"At most {limits.files} files can be read at once; you sent {len(paths)}.")
    answers: list[ReadAttempt] = []
    blocks: list[ContentBlock] = []
    left = limits.read + limits.media
    with ctx.lifespan_state.call_roots(ctx) as call_roots:
        for number, path in enumerate(paths):
            if ctx.cancelled:
                break
            ctx.progress(number, len(paths), plain(path))
            try:
                if left <= 0:
                    raise ToolError("This answer is full. Read the file on its own.")
                with call_roots.find(path) as place:
                    shown = without_bad_bytes(call_roots.shown(place.folder, place.parts))
                    room = msgspec.structs.replace(
                        limits, read=min(limits.read, left), media=min(limits.media, left)
                    )
                    answer, content = read_place(place, shown, ReadRange(), None, room)
            except ToolError as bad:
                answers.append(ReadAttempt(path, error=str(bad)))
                blocks.append(TextContent(f"== {plain(path)}: {bad}"))
            else:
                answers.append(ReadAttempt(path, answer))
                blocks += [
                    TextContent(
                        f"== {plain(shown)}{'' if answer.complete else ' (the beginning of it)'}"
                    ),
                    content,
                ]
                left -= (
                    len(content.text.encode()) if isinstance(content, TextContent) else answer.size
                )
    return ToolResult(ReadResults(answers), *blocks)


def list_folder(
    ctx: Ctx,
    path: Path = ".",
    sort: Literal["name", "size", "modified"] = "name",
    hidden: bool = True,
    skip: Annotated[int, Meta(ge=0)] = 0,
) -> ToolResult[FolderEntries]:
    """What is in a folder: names, kinds, sizes and times.

    Links are shown as links, with what they point to.

    Args:
        path: of the folder; without it the allowed folder.
        sort: by name, or the largest or the latest first.
        hidden: whether names that begin with a dot are shown.
        skip: so many are left out at the beginning, to get the next ones of a large folder.
    """
    with ctx.lifespan_state.call_roots(ctx) as call_roots, call_roots.find(path) as place:
        found = listed(
            call_roots,
            place,
            CallProgress(ctx, call_roots.limits),
            hidden=hidden,
            sort=sort,
            skip=skip,
        )
    return ToolResult(found, found.words())


def show_tree(
    ctx: Ctx,
    path: Path = ".",
    depth: Annotated[int, Meta(ge=1, le=64)] = 3,
    hidden: bool = False,
    exclude: Globs | None = None,
) -> ToolResult[TreeNode]:
    """A folder and what is below it, as a tree.

    Args:
        path: of the folder; without it the allowed folder.
        depth: how many levels are shown.
        hidden: whether names that begin with a dot are shown.
        exclude: patterns of what is left out with all that is in it, as for find_files.
    """
    with ctx.lifespan_state.call_roots(ctx) as call_roots, call_roots.find(path) as place:
        top, complete = tree_of(
            call_roots,
            place,
            CallProgress(ctx, call_roots.limits),
            depth,
            hidden=hidden,
            without=without(exclude),
        )
    return ToolResult(
        top,
        "\n".join(
            [*_drawn(top, ""), *([] if complete else ["... there is more: list a subfolder"])]
        ),
    )


def _drawn(branch: TreeNode, indent: str) -> list[str]:
    lines = [indent + branch.line() + (" ..." if branch.more else "")]
    for one in branch.entries or ():
        lines += _drawn(one, indent + "  ")
    return lines


def find_files(
    pattern: Glob,
    ctx: Ctx,
    path: Path = ".",
    kind: Literal["file", "folder"] | None = None,
    hidden: bool = False,
    exclude: Globs | None = None,
) -> ToolResult[FolderEntries]:
    """Find files and folders by their names.

    Args:
        pattern: `*.py` is any name that ends so, in whatever folder; `src/**/test_*` is a way from
            the folder that is looked in.
        path: the folder to look in; without it the allowed folder.
        kind: only files, or only folders.
        hidden: whether to look at names that begin with a dot.
        exclude: such patterns of what is left out; of a folder all that is in it.
    """
    with ctx.lifespan_state.call_roots(ctx) as call_roots, call_roots.find(path) as place:
        found = find_names(
            call_roots,
            place,
            pattern,
            kind,
            CallProgress(ctx, call_roots.limits),
            hidden=hidden,
            without=without(exclude),
        )
    return ToolResult(found, found.words())


def search_files(
    text: Annotated[str, Meta(min_length=1, max_length=1000)],
    ctx: Ctx,
    path: Path = ".",
    regex: bool = False,
    ignore_case: bool = False,
    glob: Glob | None = None,
    context: Annotated[int, Meta(ge=0, le=10)] = 0,
    hidden: bool = False,
    exclude: Globs | None = None,
) -> ToolResult[LineMatches]:
    """Find lines of text files by what is in them.

    Args:
        text: what to look for in a line, as it stands, or as a regular expression.
        path: the folder to look in, or the file; without it the allowed folder.
        regex: whether the text is a regular expression.
        ignore_case: whether A and a are the same.
        glob: only files whose name or way fits, as for find_files.
        context: how many lines before and after each are shown.
        hidden: whether to look at names that begin with a dot.
        exclude: patterns of what is left out with all that is in it, as for find_files.
    """
    wanted = TextQuery(text, regex, ignore_case, glob, context, hidden, without(exclude))
    with ctx.lifespan_state.call_roots(ctx) as call_roots, call_roots.find(path) as place:
        found = search_text(call_roots, place, wanted, CallProgress(ctx, call_roots.limits))
    return ToolResult(found, found.words())


def file_info(path: Path, ctx: Ctx, checksum: bool = False) -> ToolResult[FileInfo]:
    """Show the metadata of a file or a folder. A link is shown as a link.

    Args:
        path: of the file or folder.
        checksum: whether to work out the SHA-256 of a file.
    """
    with (
        ctx.lifespan_state.call_roots(ctx) as call_roots,
        call_roots.find(path, follow=False) as place,
    ):
        found = place.stat()
        if found is None:
            raise place.missing("file or folder")
        info = _info(place, without_bad_bytes(call_roots.shown(place.folder, place.parts)), found)
        if info.kind == "file":
            fd = place.open_file()
            try:
                info.mime_type = type_of(place.name or "", os.pread(fd, 4096, 0))
                if checksum:
                    info.sha256 = _checksum(
                        fd, CallProgress(ctx, call_roots.limits), call_roots.limits.copied
                    )
            finally:
                os.close(fd)
    members = msgspec.to_builtins(info)
    return ToolResult(
        info, "\n".join(f"{name}: {plain(str(value))}" for name, value in members.items())
    )


def _info(place: ResolvedPath, shown: str, found: os.stat_result) -> FileInfo:
    born = getattr(found, "st_birthtime", None)
    info = FileInfo(
        shown,
        place.uri,
        kind_of(found.st_mode),
        found.st_size,
        when(found.st_mtime),
        when(born) if born is not None else None,
        f"{stat.S_IMODE(found.st_mode):04o}",
        found.st_uid,
        found.st_gid,
        found.st_nlink,
        version_of(found),
    )
    if info.kind == "link" and place.name is not None:
        info.target = without_bad_bytes(os.readlink(place.name, dir_fd=place.parent))
    return info


def _checksum(fd: int, progress: CallProgress, most: int) -> str:
    digest = hashlib.sha256()
    at = 0
    while chunk := os.pread(fd, 1024 * 1024, at):
        digest.update(chunk)
        at += len(chunk)
        progress.report(at, None, f"{at:,} bytes")
        if progress.late or at > most:
            raise ToolError("The file is too large for a checksum.")
    return digest.hexdigest()


def add_looking(made: Server) -> None:
    """Add the read-only tools.

    Their internal time limit is shorter than the call's, so that they can return what they found so
    far.
    """
    made.add_tool(list_allowed_folders, title="List the allowed folders", annotations=READS)
    made.add_tool(read_file, title="Read a file", annotations=READS)
    made.add_tool(read_files, title="Read several files", annotations=READS)
    made.add_tool(list_folder, title="List a folder", annotations=READS)
    made.add_tool(show_tree, title="Show a tree of folders", annotations=READS)
    made.add_tool(find_files, title="Find files by name", annotations=READS)
    made.add_tool(search_files, title="Search text in files", annotations=READS)
    made.add_tool(file_info, title="Describe a file", annotations=READS)
