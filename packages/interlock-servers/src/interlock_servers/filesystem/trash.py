"""Trash: deleted files go to `.trash` in their allowed folder and can be restored from there."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from typing import Any

from interlock import ToolError
from interlock.store import try_lock
from interlock.untrusted.invisible import visible_line as plain

from .atomic_write import locked, write_all
from .limits import FilesystemLimits
from .moving import make_folder, remove_all
from .openat import FOLDER, again, rename_new, step
from .reading import whole
from .resolve import (
    TRASH,
    PathNotFound,
    ResolvedPath,
    RootFolder,
    checked_path,
    descend,
    in_words,
    kind_of,
    without_bad_bytes,
)
from .results import TrashContents, TrashedItem, when
from .roots import CallProgress, CallRoots

_INFO = "info.json"
_ITEM = "item"
_IGNORED = ".gitignore"
_ID = re.compile(r"[0-9a-f]{16}-[0-9a-f]{8}")
_MOST_INFO = 64 * 1024


def throw_away(place: ResolvedPath, limits: FilesystemLimits) -> tuple[str, str]:
    """Move something into the trash; return its id there, and its kind.

    A symbolic link is moved as a link. Raises ToolError.
    """
    if place.name is None:
        raise ToolError("An allowed folder itself cannot be put into the trash.")
    found = place.stat()
    if found is None:
        raise place.missing("file or folder")
    id_ = f"{time.time_ns():016x}-{secrets.token_hex(4)}"
    kind = kind_of(found.st_mode)
    try:
        _made(place.folder)
        with _opened(TRASH, place.folder.fd) as trash:
            os.mkdir(id_, 0o700, dir_fd=trash)
            with _opened(id_, trash) as box, locked(box, limits):
                info = {"path": list(place.parts), "kind": kind, "trashed": time.time()}
                fd = step(_INFO, os.O_WRONLY | os.O_CREAT | os.O_EXCL, box, mode=0o600)
                try:
                    write_all(fd, json.dumps(info).encode())
                    if limits.sync:
                        os.fsync(fd)
                finally:
                    os.close(fd)
                try:
                    with locked(place.parent, limits):
                        rename_new(place.name, place.parent, _ITEM, box)
                except BaseException:
                    os.unlink(_INFO, dir_fd=box)
                    os.rmdir(id_, dir_fd=trash)
                    raise
    except OSError as bad:
        raise ToolError(
            f"{plain(place.shown[:200])} cannot be put into the trash: {in_words(bad)}."
        ) from None
    return id_, kind


def _made(folder: RootFolder) -> None:
    """Create the trash of an allowed folder if it is missing, ignored by git."""
    try:
        os.mkdir(TRASH, 0o700, dir_fd=folder.fd)
    except FileExistsError:
        return
    with _opened(TRASH, folder.fd) as trash:
        fd = step(_IGNORED, os.O_WRONLY | os.O_CREAT, trash, mode=0o600)
        try:
            write_all(fd, b"*\n")
        finally:
            os.close(fd)


@contextlib.contextmanager
def _opened(name: str, fd: int) -> Iterator[int]:
    own = step(name, FOLDER, fd)
    try:
        yield own
    finally:
        os.close(own)


def list_trash(call_roots: CallRoots) -> TrashContents:
    """The content of the trash of all allowed folders, latest first."""
    found: list[TrashedItem] = []
    problems: list[str] = []
    for folder in call_roots.folders:
        for id_ in _ids(folder):
            try:
                info = _info(folder, id_)
            except PathNotFound:
                continue  # another process is working on it, or was killed
            except (ToolError, OSError, ValueError, KeyError, TypeError):
                problems.append(f"{id_} in {without_bad_bytes(folder.path)} cannot be read.")
                continue
            found.append(
                TrashedItem(
                    id_,
                    without_bad_bytes(call_roots.shown(folder, info["path"])),
                    info["kind"],
                    when(info["trashed"]),
                )
            )
    found.sort(key=lambda one: one.id, reverse=True)
    return TrashContents(found[: call_roots.limits.entries], problems[:100])


def _ids(folder: RootFolder) -> list[str]:
    """The ids in the trash of one folder."""
    try:
        with _opened(TRASH, folder.fd) as trash:
            own = again(trash)
            try:
                with os.scandir(own) as entries:
                    return [entry.name for entry in entries if _ID.fullmatch(entry.name)]
            finally:
                os.close(own)
    except OSError:
        return []


def _info(folder: RootFolder, id_: str) -> dict[str, Any]:
    """Read the record of an item in the trash. Raises an exception if it is missing or invalid."""
    with _opened(TRASH, folder.fd) as trash, _opened(id_, trash) as box:
        if not _is_full(box):
            raise PathNotFound(f"{id_} in the trash is empty.")
        fd = step(_INFO, os.O_RDONLY, box)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise ValueError
            info = json.loads(whole(fd, _MOST_INFO, _INFO))
        finally:
            os.close(fd)
    path = info["path"]
    if (
        not isinstance(path, list)
        or not path
        or not all(
            isinstance(part, str) and part not in ("", ".", "..") and "/" not in part
            for part in path
        )
    ):
        raise ValueError
    checked_path("/".join(path))
    return {"path": tuple(path), "kind": str(info["kind"]), "trashed": float(info["trashed"])}


def _holder(call_roots: CallRoots, id_: str) -> RootFolder:
    """The allowed folder whose trash contains the item. Raises ToolError."""
    if _ID.fullmatch(id_):
        for folder in call_roots.folders:
            with (
                contextlib.suppress(OSError),
                _opened(TRASH, folder.fd) as trash,
                _opened(id_, trash),
            ):
                return folder
    raise PathNotFound(f"There is no {plain(id_[:100])} in the trash. list_trash has the ids.")


def restore(call_roots: CallRoots, id_: str, target: str | None) -> str:
    """Restore something to its original path, or to another path; return the path.

    Raises ToolError.
    """
    folder = _holder(call_roots, id_)
    try:
        info = _info(folder, id_)
    except (OSError, ValueError, KeyError, TypeError):
        raise ToolError(f"The record of {id_} cannot be read, so it cannot be restored.") from None
    shown = target or call_roots.shown(folder, info["path"])
    to, parts = call_roots.split(target) if target else (folder, info["path"])
    if target is None:
        make_folder(folder, parts[:-1], shown, call_roots.limits)
    with descend(to, parts, shown, call_roots.limits, follow=False) as place:
        if place.name is None:
            raise ToolError(f"{plain(shown)} is an allowed folder.")
        try:
            with _opened(TRASH, folder.fd) as trash, _opened(id_, trash) as box:
                rename_new(_ITEM, box, place.name, place.parent)
                with contextlib.suppress(OSError):
                    os.unlink(_INFO, dir_fd=box)
                    os.rmdir(id_, dir_fd=trash)
        except FileExistsError:
            raise ToolError(f"{plain(shown)} already exists. Name another target.") from None
        except OSError as bad:
            raise ToolError(f"{plain(shown[:200])} cannot be restored: {in_words(bad)}.") from None
        return call_roots.shown(place.folder, place.parts)


def sweep(call_roots: CallRoots) -> None:
    """Remove empty boxes, which processes killed while trashing or restoring have left."""
    for folder in call_roots.folders:
        with contextlib.suppress(OSError), _opened(TRASH, folder.fd) as trash:
            for id_ in _ids(folder):
                with contextlib.suppress(OSError), _opened(id_, trash) as box:
                    if try_lock(box) and not _is_full(box):  # otherwise another process uses it
                        with contextlib.suppress(FileNotFoundError):
                            os.unlink(_INFO, dir_fd=box)
                        os.rmdir(id_, dir_fd=trash)


def _is_full(box: int) -> bool:
    try:
        os.stat(_ITEM, dir_fd=box, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def empty(call_roots: CallRoots, ids: list[str], progress: CallProgress) -> list[str]:
    """Delete these items for good; those that are gone already are left out. Raises ToolError."""
    removed: list[str] = []
    for id_ in ids:
        try:
            folder = _holder(call_roots, id_)
        except PathNotFound:
            continue
        try:
            with _opened(TRASH, folder.fd) as trash:
                remove_all(trash, id_, folder.device, progress)
        except OSError as bad:
            raise ToolError(
                f"{id_} could not be removed completely: {in_words(bad)}. Removed before "
                f"it: {len(removed)}."
            ) from None
        removed.append(id_)
        progress.report(len(removed), len(ids), id_)
    return removed
