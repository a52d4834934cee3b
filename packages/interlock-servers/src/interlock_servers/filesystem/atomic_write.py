"""Writes files atomically, under a lock that other processes respect.

New content is written to a file with a fixed name beside the target, which is then renamed over it.
The writer holds a lock on the folder, which the system releases when a process dies. So one name is
enough, and the next writer overwrites what a killed process left.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator

from interlock import ToolError
from interlock.store import try_lock
from interlock.untrusted.invisible import visible_line as plain

from .limits import FilesystemLimits
from .openat import again, rename_new, step
from .resolve import PART, ResolvedPath, in_words
from .results import version_of

_CHUNK = 1024 * 1024
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EBADF, errno.EINVAL}  # file systems without locks
Fill = Callable[[int], None]  # writes to a descriptor


@contextlib.contextmanager
def locked(folder: int, limits: FilesystemLimits) -> Iterator[None]:
    """Lock a folder for writing, among all processes of this server.

    Raises ToolError if others hold the lock too long.
    """
    own = again(folder)  # the lock belongs to this descriptor, so it also separates threads
    try:
        end = time.monotonic() + limits.waiting
        pause = 0.0005
        while not _has(own):
            if time.monotonic() > end:
                raise ToolError("Another program keeps writing to this folder. Try again later.")
            time.sleep(pause)
            pause = min(pause * 2, 0.01)
        yield
    finally:
        os.close(own)


def _has(folder: int) -> bool:
    try:
        return try_lock(folder)
    except OSError as bad:
        if bad.errno in _NO_LOCKS:
            return True
        raise ToolError(f"The folder cannot be locked: {in_words(bad)}.") from None


def put(
    place: ResolvedPath,
    fill: Fill,
    limits: FilesystemLimits,
    *,
    new: bool = False,
    like: os.stat_result | None = None,
) -> os.stat_result:
    """Write a whole file in a locked folder.

    Mode, owner and extended attributes stay as they were. With `new` the file must not exist yet;
    `like` gives the mode of a new file. Raises ToolError, and then nothing is changed.
    """
    assert place.name is not None
    before = None if new else place.stat()
    part, fd = _part(place, before or like)
    try:
        try:
            fill(fd)
            if before is not None:
                _keep(place, fd, before)
            elif like is not None:
                os.fchmod(fd, stat.S_IMODE(like.st_mode) & 0o777)
            if limits.sync:
                os.fsync(fd)
            written = os.fstat(fd)
        finally:
            os.close(fd)
        if before is None:
            rename_new(part, place.parent, place.name, place.parent)
        else:
            os.rename(part, place.name, src_dir_fd=place.parent, dst_dir_fd=place.parent)
    except BaseException as bad:
        with contextlib.suppress(OSError):
            os.unlink(part, dir_fd=place.parent)
        if isinstance(bad, FileExistsError):
            raise ToolError(
                f"{plain(place.shown)} already exists. Use write_file to replace it."
            ) from None
        if isinstance(bad, OSError):
            raise ToolError(
                f"{plain(place.shown[:200])} cannot be written: {in_words(bad)}."
            ) from None
        raise
    if limits.sync:
        with contextlib.suppress(OSError):  # some file systems cannot do this for folders
            os.fsync(place.parent)
    return written


def _part(place: ResolvedPath, like: os.stat_result | None) -> tuple[str, int]:
    """The temporary file in the same folder, with its name."""
    mode = 0o666 if like is None else 0o600
    for name in (PART, f"{PART}-{secrets.token_hex(8)}"):
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=place.parent)  # left by a killed process
            return name, step(
                name,
                os.O_RDWR | os.O_CREAT | os.O_EXCL,
                place.parent,
                mode=mode,
                mounts=place.limits.mounts,
            )
        except OSError as bad:
            if name != PART or bad.errno in (errno.EACCES, errno.EROFS, errno.ENOSPC, errno.ENOENT):
                raise ToolError(
                    f"{plain(place.shown[:200])} cannot be written: {in_words(bad)}."
                ) from None
    raise AssertionError


def _keep(place: ResolvedPath, fd: int, before: os.stat_result) -> None:
    """Copy the owner, the extended attributes and the mode of the replaced file.

    Raises ToolError if that fails.
    """
    now = os.fstat(fd)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        try:
            os.fchown(fd, before.st_uid, before.st_gid)
        except OSError:
            raise ToolError(
                f"{plain(place.shown)} belongs to another user or group, and replacing it "
                "would change that. It was not changed."
            ) from None
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            old = step(place.name or "", os.O_RDONLY, place.parent, mounts=place.limits.mounts)
            try:
                if os.fstat(old).st_ino == before.st_ino:
                    for name in set(os.listxattr(old)) - {"security.capability"}:
                        with contextlib.suppress(OSError):  # system attributes cannot be set
                            os.setxattr(fd, name, os.getxattr(old, name))
            finally:
                os.close(old)
    os.fchmod(
        fd, stat.S_IMODE(before.st_mode) & ~(stat.S_ISUID | stat.S_ISGID)
    )  # without setuid bits: new content must not run as another user


def write_all(fd: int, data: bytes) -> None:
    """Write all bytes, in as many calls as needed."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view[:_CHUNK]) :]


def filled(data: bytes) -> Fill:
    """A function that writes these bytes."""
    return lambda fd: write_all(fd, data)


def check_version(place: ResolvedPath, found: os.stat_result | None, version: str | None) -> None:
    """Raise ToolError if the file is not the version that was read."""
    if version is not None and (found is None or version_of(found) != version):
        raise ToolError(
            f"{plain(place.shown)} has changed since it was read. Read it again before you change "
            "it."
        )


def check_size(place: ResolvedPath, size: int, limits: FilesystemLimits) -> None:
    """Raise ToolError if the size exceeds the limit."""
    if size > limits.written:
        raise ToolError(
            f"{plain(place.shown)} would have {size:,} bytes; at most {limits.written:,} are "
            "written."
        )
