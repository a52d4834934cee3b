"""Tools that change files: write, edit, move, copy and trash."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Annotated

from msgspec import Meta

from interlock import Server, ToolAnnotations, ToolError, ToolResult
from interlock.untrusted.invisible import visible_line as plain

from .atomic_write import check_size, check_version, filled, locked, put
from .edits import Edit, LineEdit, edited, line_edited, unified
from .encodings import Encoding, decoded, encoded
from .moving import CopyJob, make_folder, move
from .read_tools import READS, Ctx, Path
from .reading import whole
from .resolve import ResolvedPath, without_bad_bytes
from .results import (
    MoveResult,
    TrashContents,
    TrashedItem,
    TrashEmptied,
    WriteResult,
    version_of,
    when,
)
from .roots import CallProgress, CallRoots
from .trash import empty, list_trash, restore, sweep, throw_away

Version = Annotated[str, Meta(max_length=100)]
Text = Annotated[str, Meta(max_length=64 * 1024 * 1024)]
Id = Annotated[str, Meta(min_length=1, max_length=100)]


def _hints(*, destructive: bool, idempotent: bool) -> ToolAnnotations:
    return ToolAnnotations(
        read_only_hint=False,
        destructive_hint=destructive,
        idempotent_hint=idempotent,
        open_world_hint=False,
    )


def write_file(
    path: Path, text: Text, ctx: Ctx, encoding: Encoding = "utf-8", version: Version | None = None
) -> ToolResult[WriteResult]:
    """Write a file as a whole: a new one, or in place of one that is there, whose mode and owner
    stay.

    Args:
        path: of the file; its folder has to be there.
        text: all that is in it then.
        encoding: of the text.
        version: what read_file gave; the file is left alone where it is not the same any more.
    """
    with ctx.lifespan_state.call_roots(ctx) as call_roots, call_roots.find(path) as place:
        data = encoded(text, encoding, b"", place.shown)
        return _written(ctx, call_roots, place, data, version=version)


def create_file(
    path: Path, text: Text, ctx: Ctx, encoding: Encoding = "utf-8"
) -> ToolResult[WriteResult]:
    """Create a file that is not there yet; one that is there is left alone.

    Args:
        path: of the file; its folder has to be there.
        text: all that is in it.
        encoding: of the text.
    """
    with ctx.lifespan_state.call_roots(ctx) as call_roots, call_roots.find(path) as place:
        data = encoded(text, encoding, b"", place.shown)
        return _written(ctx, call_roots, place, data, new=True)


def append_file(
    path: Path, text: Text, ctx: Ctx, encoding: Encoding | None = None
) -> ToolResult[WriteResult]:
    """Put text at the end of a file, in its own encoding; a file that is not there is created.

    Args:
        path: of the file.
        text: what comes at its end, as it is: no line feed is put before it.
        encoding: of a text that is neither UTF-8 nor says itself what it is, and of a file that is
            created.
    """

    def longer(text_before: str) -> tuple[str, int | None]:
        return text_before + text, None

    return _changed(path, ctx, longer, encoding=encoding, missing=True)


def edit_file(
    path: Path,
    edits: Annotated[list[Edit], Meta(min_length=1, max_length=1000)],
    ctx: Ctx,
    dry_run: bool = False,
    version: Version | None = None,
    encoding: Encoding | None = None,
) -> ToolResult[WriteResult]:
    """Replace texts in a file.

    Each has to stand there exactly once, or as often as it says; else nothing is changed.

    Args:
        path: of the file.
        edits: what to replace by what; one after the other, all or none.
        dry_run: whether only to show what would change.
        version: what read_file gave; the file is left alone where it is not the same any more.
        encoding: of a text that is neither UTF-8 nor says itself what it is.
    """
    return _changed(
        path,
        ctx,
        lambda text: edited(text, edits, path),
        dry_run=dry_run,
        version=version,
        encoding=encoding,
    )


def edit_lines(
    path: Path,
    edits: Annotated[list[LineEdit], Meta(min_length=1, max_length=1000)],
    ctx: Ctx,
    dry_run: bool = False,
    version: Version | None = None,
    encoding: Encoding | None = None,
) -> ToolResult[WriteResult]:
    """Replace, insert or take away whole lines of a file.

    Send the version that was read, so that the numbers are right.

    Args:
        path: of the file.
        edits: which lines to replace by what; numbers are those of the file as it is.
        dry_run: whether only to show what would change.
        version: what read_file gave; the file is left alone where it is not the same any more.
        encoding: of a text that is neither UTF-8 nor says itself what it is.
    """
    return _changed(
        path,
        ctx,
        lambda text: line_edited(text, edits, path),
        dry_run=dry_run,
        version=version,
        encoding=encoding,
    )


def create_folder(path: Path, ctx: Ctx) -> ToolResult[WriteResult]:
    """Create a folder, and those above it that are missing; one that is there is left as it is.

    Args:
        path: of the folder.
    """
    with ctx.lifespan_state.call_roots(ctx) as call_roots:
        folder, parts = call_roots.split(path)
        made = make_folder(folder, parts, path, call_roots.limits)
        with call_roots.find(path) as place:
            if made:
                ctx.updated(place.uri)
            answer = WriteResult(
                without_bad_bytes(call_roots.shown(place.folder, place.parts)), place.uri, made, 0
            )
    return ToolResult(
        answer, f"{plain(answer.path)} {'was created' if made else 'already existed'}."
    )


def move_file(source: Path, target: Path, ctx: Ctx) -> ToolResult[MoveResult]:
    """Move or rename a file or a folder.

    Nothing that is there is replaced; a link is moved as a link.

    Args:
        source: what to move.
        target: where it is then, with its new name.
    """
    with (
        ctx.lifespan_state.call_roots(ctx) as call_roots,
        call_roots.find(source, follow=False) as one,
        call_roots.find(target, follow=False) as other,
    ):
        move(one, other)
        ctx.updated(one.uri)
        ctx.updated(other.uri)
        answer = MoveResult(
            without_bad_bytes(call_roots.shown(one.folder, one.parts)),
            without_bad_bytes(call_roots.shown(other.folder, other.parts)),
        )
    return ToolResult(answer, f"{plain(answer.source)} is now {plain(answer.target)}.")


def copy_file(source: Path, target: Path, ctx: Ctx) -> ToolResult[MoveResult]:
    """Copy a file, or a folder with all that is in it.

    Nothing that is there is replaced; links are left out.

    Args:
        source: what to copy.
        target: where the copy is, with its name.
    """
    with (
        ctx.lifespan_state.call_roots(ctx) as call_roots,
        call_roots.find(source) as one,
        call_roots.find(target, follow=False) as other,
    ):
        answer = CopyJob(call_roots, CallProgress(ctx, call_roots.limits)).make(one, other)
        ctx.updated(other.uri)
    left = f" Left out: {plain(', '.join(answer.left_out))}." if answer.left_out else ""
    words = (
        f"{plain(answer.target)} is a copy of {plain(answer.source)}: {answer.files} files, "
        f"{answer.bytes} bytes.{left}"
    )
    return ToolResult(answer, words)


def trash_file(path: Path, ctx: Ctx) -> ToolResult[TrashedItem]:
    """Put a file or a folder into the trash of its allowed folder; restore_file brings it back.

    Args:
        path: of the file or folder; a link is thrown away as a link.
    """
    with (
        ctx.lifespan_state.call_roots(ctx) as call_roots,
        call_roots.find(path, follow=False) as place,
    ):
        id_, kind = throw_away(place, call_roots.limits)
        ctx.updated(place.uri)
        answer = TrashedItem(
            id_,
            without_bad_bytes(call_roots.shown(place.folder, place.parts)),
            kind,
            when(int(id_[:16], 16) / 1e9),
        )
    return ToolResult(answer, f"{plain(answer.path)} is in the trash, as {id_}.")


def list_trashed(ctx: Ctx) -> ToolResult[TrashContents]:
    """What is in the trash, the latest first, with where it was."""
    with ctx.lifespan_state.call_roots(ctx) as call_roots:
        found = list_trash(call_roots)
    lines = [f"{one.id}  {plain(one.path)}  ({one.kind}, {one.trashed})" for one in found.items]
    return ToolResult(
        found, "\n".join([*(lines or ["The trash is empty."]), *map(plain, found.problems)])
    )


def restore_file(id: Id, ctx: Ctx, target: Path | None = None) -> ToolResult[WriteResult]:
    """Bring something back from the trash, to where it was or to another place.

    Nothing that is there is replaced.

    Args:
        id: what list_trash says.
        target: where it is then; without it where it was.
    """
    with ctx.lifespan_state.call_roots(ctx) as call_roots:
        path = restore(call_roots, id, target)
        with call_roots.find(path, follow=False) as place:
            found = place.stat()
            ctx.updated(place.uri)
            answer = WriteResult(
                without_bad_bytes(path), place.uri, True, found.st_size if found is not None else 0
            )
    return ToolResult(answer, f"{plain(answer.path)} is back.")


def empty_trash(
    ctx: Ctx, ids: Annotated[list[Id], Meta(min_length=1, max_length=1000)] | None = None
) -> ToolResult[TrashEmptied]:
    """Delete what is in the trash permanently, once the user has agreed.

    Args:
        ids: what to remove, as list_trash has it; without it all of it.
    """
    with ctx.lifespan_state.call_roots(ctx) as call_roots:
        if ids is None:
            sweep(call_roots)
        items = [one for one in list_trash(call_roots).items if ids is None or one.id in ids]
        unknown = sorted(set(ids or ()) - {one.id for one in items})
        if unknown:
            raise ToolError(
                f"There is no {plain(', '.join(unknown[:5]))} in the trash. list_trash has the ids."
            )
        if not items:
            return ToolResult(TrashEmptied([]), "The trash is empty.")
        names = ", ".join(plain(one.path[-100:]) for one in items[:5]) + (
            ", ..." if len(items) > 5 else ""
        )
        if not ctx.wait(
            ctx.confirm(
                f"Delete {len(items)} from the trash permanently ({names})? They cannot "
                "be restored."
            )
        ):
            raise ToolError("The user did not agree, and nothing was removed.")
        removed = empty(call_roots, [one.id for one in items], CallProgress(ctx, call_roots.limits))
    return ToolResult(TrashEmptied(removed), f"{len(removed)} were deleted permanently.")


# -- shared helpers --------------------------------------------------------------------------------


def _written(
    ctx: Ctx,
    call_roots: CallRoots,
    place: ResolvedPath,
    data: bytes,
    *,
    version: str | None = None,
    new: bool = False,
) -> ToolResult[WriteResult]:
    """Write a whole file, and return the result."""
    if place.name is None:
        raise ToolError(f"{plain(place.shown)} is an allowed folder, not a file.")
    check_size(place, len(data), call_roots.limits)
    with locked(place.parent, call_roots.limits):
        before = place.stat()
        if before is not None and not new:
            place.check_file(before, changing=True)
        check_version(place, before, version)
        found = put(place, filled(data), call_roots.limits, new=new or before is None)
    return _notified_result(ctx, call_roots, place, found, created=before is None)


def _changed(
    path: str,
    ctx: Ctx,
    change: Callable[[str], tuple[str, int | None]],
    *,
    dry_run: bool = False,
    version: str | None = None,
    encoding: Encoding | None = None,
    missing: bool = False,
) -> ToolResult[WriteResult]:
    """Change the text of a file, and return the result.

    Other calls of this server cannot write to it between reading and writing.
    """
    with (
        ctx.lifespan_state.call_roots(ctx) as call_roots,
        call_roots.find(path) as place,
        locked(place.parent, call_roots.limits),
    ):
        before = place.stat()
        check_version(place, before, version)
        text = ""
        name = str(encoding or "utf-8")
        mark = b""
        if before is not None or not missing:
            fd = place.open_file(changing=True)
            try:
                before = os.fstat(fd)
                text, name, mark = decoded(
                    whole(fd, call_roots.limits.written, place.shown), encoding, place.shown
                )
            finally:
                os.close(fd)
        after, places = change(text)
        data = encoded(after, name, mark, place.shown)
        check_size(place, len(data), call_roots.limits)
        diff = (
            unified(text, after, without_bad_bytes(call_roots.shown(place.folder, place.parts)))
            if places is not None
            else ""
        )
        if dry_run:
            shown = without_bad_bytes(call_roots.shown(place.folder, place.parts))
            answer = WriteResult(shown, place.uri, False, len(data), None, places, dry_run=True)
            return ToolResult(answer, diff or "Nothing would change.")
        found = put(place, filled(data), call_roots.limits, new=before is None)
    return _notified_result(
        ctx, call_roots, place, found, created=before is None, diff=diff, places=places
    )


def _notified_result(
    ctx: Ctx,
    call_roots: CallRoots,
    place: ResolvedPath,
    found: os.stat_result,
    *,
    created: bool,
    diff: str | None = None,
    places: int | None = None,
) -> ToolResult[WriteResult]:
    """The result of a change, after clients were notified."""
    ctx.updated(place.uri)
    shown = without_bad_bytes(call_roots.shown(place.folder, place.parts))
    answer = WriteResult(shown, place.uri, created, found.st_size, version_of(found), places)
    words = f"{plain(shown)} was {'created' if created else 'written'}: {found.st_size} bytes."
    return ToolResult(answer, f"{words}\n{diff}" if diff else words)


def add_changing(made: Server) -> None:
    """Add the tools that write."""
    adds = _hints(destructive=False, idempotent=False)
    alters = _hints(destructive=True, idempotent=False)
    made.add_tool(
        write_file, title="Write a file", annotations=_hints(destructive=True, idempotent=True)
    )
    made.add_tool(create_file, title="Create a file", annotations=adds)
    made.add_tool(append_file, title="Append to a file", annotations=adds)
    made.add_tool(edit_file, title="Edit a file", annotations=alters)
    made.add_tool(edit_lines, title="Edit lines of a file", annotations=alters)
    made.add_tool(
        create_folder,
        title="Create a folder",
        annotations=_hints(destructive=False, idempotent=True),
    )
    made.add_tool(move_file, title="Move a file", annotations=alters)
    made.add_tool(copy_file, title="Copy a file", annotations=adds)
    made.add_tool(trash_file, title="Put a file into the trash", annotations=alters)
    made.add_tool(list_trashed, name="list_trash", title="List the trash", annotations=READS)
    made.add_tool(restore_file, title="Restore a file from the trash", annotations=adds)
    made.add_tool(
        empty_trash, title="Empty the trash", annotations=_hints(destructive=True, idempotent=True)
    )
