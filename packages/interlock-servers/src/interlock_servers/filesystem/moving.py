"""Moves and copies files and folders. Nothing is ever replaced."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence

from interlock import ToolError
from interlock.untrusted.invisible import visible_line as plain

from .atomic_write import locked, put, write_all
from .limits import FilesystemLimits
from .openat import FOLDER, again, rename_new, step
from .resolve import ResolvedPath, RootFolder, checked_folder, descend, in_words, without_bad_bytes
from .results import MoveResult
from .roots import CallProgress, CallRoots
from .walk import Walk

_CHUNK = 1024 * 1024
_MOST_DEEP = 400  # nested folders that are open at the same time


def move(source: ResolvedPath, target: ResolvedPath) -> None:
    """Rename something, or move it to another folder.

    A symbolic link is moved as a link. Raises ToolError.
    """
    if source.name is None or target.name is None:
        raise ToolError("An allowed folder itself cannot be moved or replaced.")
    found = source.stat()
    if found is None:
        raise source.missing("file or folder")
    try:
        with locked(source.parent, source.limits):  # nobody writes into the folder meanwhile
            rename_new(source.name, source.parent, target.name, target.parent)
    except FileExistsError:
        raise ToolError(
            f"{plain(target.shown)} already exists and is not replaced. Trash it first, "
            "or choose another name."
        ) from None
    except OSError as bad:
        if bad.errno == errno.EXDEV:
            raise ToolError(
                "The two are on different disks. Copy it, and trash the original."
            ) from None
        if bad.errno == errno.EINVAL:
            raise ToolError(f"{plain(source.shown)} cannot be moved into itself.") from None
        raise ToolError(f"{plain(source.shown[:200])} cannot be moved: {in_words(bad)}.") from None


class CopyJob:
    """A copy in progress: its counts, and what was left out."""

    def __init__(self, call_roots: CallRoots, progress: CallProgress) -> None:
        self._reach = call_roots
        self._progress = progress
        self.files = self.bytes = 0
        self.left_out: list[str] = []

    def make(self, source: ResolvedPath, target: ResolvedPath) -> MoveResult:
        """Copy a file, or a folder with its content; links and special files are left out.

        Raises ToolError.
        """
        if target.name is None:
            raise ToolError("A copy cannot replace an allowed folder itself. Give a name in it.")
        found = source.stat()
        if found is None:
            raise source.missing("file or folder")
        if stat.S_ISDIR(found.st_mode):
            own = (
                *source.folder.parts,
                *source.parts,
            )  # from the root, because one allowed folder may be inside another
            if (*target.folder.parts, *target.parts)[: len(own)] == own:
                raise ToolError(f"{plain(source.shown)} cannot be copied into itself.")
            self._folder(source, target)
        else:
            self._file(source, target)
        shown = self._reach.shown
        return MoveResult(
            without_bad_bytes(shown(source.folder, source.parts)),
            without_bad_bytes(shown(target.folder, target.parts)),
            self.files,
            self.bytes,
            self.left_out[:100],
        )

    def _folder(self, source: ResolvedPath, target: ResolvedPath) -> None:
        """Copy a folder with its content. A copy that fails stays incomplete."""
        fd = source.open_folder()
        made = _made(target, target.name or "", source.limits)
        opened = {source.parts: made}
        way: list[tuple[str, ...]] = [source.parts]
        try:
            walk = Walk(source.folder, self._reach.limits, self._progress)
            for found in walk.below(fd, source.parts):
                while way[-1] != found.steps[: len(way[-1])]:  # a finished folder
                    os.close(opened.pop(way.pop()))
                parent = opened[found.steps[:-1]]
                to = ResolvedPath(
                    target.folder,
                    (*target.parts, *found.steps[len(source.parts) :]),
                    parent,
                    "/".join(found.steps),
                    source.limits,
                )
                if found.is_folder:
                    opened[found.steps] = _made(to, found.name, source.limits)
                    way.append(found.steps)
                elif stat.S_ISREG(found.stat.st_mode):
                    origin = ResolvedPath(
                        source.folder,
                        found.steps,
                        found.parent,
                        "/".join(found.steps),
                        source.limits,
                    )
                    self._one(origin, to)
                else:
                    self.left_out.append(without_bad_bytes("/".join(found.steps)))
            if walk.cut or self._progress.late:
                raise ToolError(
                    "The copy was not finished: it is too large for one call. "
                    f"{self.files} files are copied."
                )
        finally:
            os.close(fd)
            for descriptor in opened.values():
                os.close(descriptor)

    def _one(self, source: ResolvedPath, target: ResolvedPath) -> None:
        """Copy a file in a folder; an unreadable one is left out."""
        try:
            fd = source.open_file()
        except ToolError:
            self.left_out.append(without_bad_bytes(source.shown))
            return
        try:
            self._contents(fd, target)
        finally:
            os.close(fd)

    def _file(self, source: ResolvedPath, target: ResolvedPath) -> None:
        fd = source.open_file()
        try:
            self._contents(fd, target)
        finally:
            os.close(fd)

    def _contents(self, fd: int, target: ResolvedPath) -> None:
        found = os.fstat(fd)
        most = self._reach.limits.copied
        if self.bytes + found.st_size > most:
            raise ToolError(f"More than {most:,} bytes cannot be copied at once.")

        def fill(out: int) -> None:
            at = 0
            while chunk := os.pread(fd, _CHUNK, at):
                at += len(chunk)
                self.bytes += len(chunk)
                if self.bytes > most:
                    raise ToolError(
                        f"More than {most:,} bytes cannot be copied at once."
                    )  # it has grown in the meantime
                if chunk.count(0) == len(chunk):
                    os.lseek(out, len(chunk), os.SEEK_CUR)  # holes in sparse files stay holes
                else:
                    write_all(out, chunk)
                self._progress.report(self.bytes, None, f"{self.files} files, {self.bytes:,} bytes")
                if self._progress.late:
                    raise ToolError("The copy took too long, and was not finished.")
            os.ftruncate(out, at)

        with locked(target.parent, target.limits):
            put(target, fill, target.limits, new=True, like=found)
        self.files += 1


def _made(target: ResolvedPath, name: str, limits: FilesystemLimits) -> int:
    """Create a folder, and open it.

    Raises ToolError if the name is taken.
    """
    try:
        os.mkdir(name, dir_fd=target.parent)
        return checked_folder(
            step(name, FOLDER, target.parent, mounts=limits.mounts),
            target.folder,
            target.shown,
            limits,
        )
    except FileExistsError:
        raise ToolError(f"{plain(target.shown)} already exists and is not replaced.") from None
    except OSError as bad:
        raise ToolError(
            f"{plain(target.shown[:200])} cannot be created: {in_words(bad)}."
        ) from None


def make_folder(
    folder: RootFolder, parts: Sequence[str], shown: str, limits: FilesystemLimits
) -> bool:
    """Create a folder and its missing parents; False if it existed.

    Raises ToolError.
    """
    wanted = [part for part in parts if part not in ("", ".")]
    if len(wanted) > limits.depth:
        raise ToolError(
            f"{plain(shown[:200])} is too deep: at most {limits.depth} nested folders are created."
        )
    made = False
    for end in range(1, len(wanted) + 1):
        with descend(folder, wanted[:end], shown, limits) as place:
            found = place.stat()
            if found is None and place.name is not None:
                try:
                    os.mkdir(place.name, dir_fd=place.parent)
                    made = True
                except FileExistsError:
                    pass  # another process created it first
                except OSError as bad:
                    raise ToolError(
                        f"{plain(shown[:200])} cannot be created: {in_words(bad)}."
                    ) from None
            elif found is not None and not stat.S_ISDIR(found.st_mode):
                raise ToolError(
                    f"{plain('/'.join(wanted[:end]))} already exists and is not a folder."
                )
    return made


def remove_all(fd: int, name: str, device: int, progress: CallProgress) -> None:
    """Remove something with all of its content, using descriptors only; mounted file systems are
    left.

    Raises OSError, CancelledError.
    """
    if not _is_left(fd, name):
        return
    stack = [(fd, name, *_opened(fd, name, device))]
    try:
        while stack:
            parent, own, here, names = stack[-1]
            one = next(names, None)
            if one is None:
                os.close(here)
                stack.pop()
                os.rmdir(own, dir_fd=parent)
            elif not progress.step():
                raise OSError(errno.EBUSY, "it has too many files to remove in one call")
            elif _is_left(here, one):
                if len(stack) > _MOST_DEEP:
                    raise OSError(errno.ENAMETOOLONG, "it is nested too deeply to remove")
                stack.append((here, one, *_opened(here, one, device)))
    finally:
        for _, _, here, _ in stack:
            os.close(here)


def _is_left(fd: int, name: str) -> bool:
    """Remove anything except a folder; return whether it is a folder and still exists."""
    try:
        os.unlink(name, dir_fd=fd)
    except FileNotFoundError:
        return False
    except (IsADirectoryError, PermissionError):  # the errors of various systems for a folder
        return stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
    return False


def _opened(fd: int, name: str, device: int) -> tuple[int, Iterator[str]]:
    """Open a folder to be removed, with an iterator over its names."""
    here = step(name, FOLDER, fd)
    if os.fstat(here).st_dev != device:
        os.close(here)
        raise OSError(errno.EXDEV, "another file system is mounted there")
    own = again(here)
    with os.scandir(own) as entries:
        names = [entry.name for entry in entries]
    os.close(own)
    return here, iter(names)
