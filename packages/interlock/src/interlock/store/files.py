"""Files that several processes change: file locks and atomic writes."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_HELD = {
    errno.EACCES,
    errno.EAGAIN,
    errno.EWOULDBLOCK,
    errno.EDEADLK,
}  # errors that mean that another process holds the lock
# seconds between two attempts to acquire the lock
_SHORTEST = 0.0005
_LONGEST = 0.02
_PATIENCE = 2.0  # seconds to wait for readers, on systems where an open file cannot be replaced


def open_private(path: Path, flags: int) -> int:
    """Open a file, and create it with mode 0600 if `flags` say so. Symbolic links are not followed.

    Returns the descriptor. Raises OSError.
    """
    # The flags that the system supports. Non-blocking, because the path may be a pipe.
    for each in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
        flags |= getattr(os, each, 0)
    return os.open(path, flags, 0o600)


# -- turns -----------------------------------------------------------------------------------------

# A child that is forked while a thread of its parent holds a lock would hold the lock too, for the
# rest of its life.
_GATE = threading.Lock()
_OPEN: set[int] = set()


def _release_inherited_locks() -> None:
    """Release the parent's locks in a forked child."""
    for descriptor in _OPEN:
        os.close(descriptor)
    _OPEN.clear()
    _GATE.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_GATE.acquire, after_in_parent=_GATE.release, after_in_child=_release_inherited_locks
    )


@contextmanager
def file_lock(path: Path, *, patience: float) -> Iterator[None]:
    """Hold an exclusive lock on a file, among all threads and processes. The file is created if it
    is missing.

    The system releases the lock when the process ends. Waits at most `patience` seconds. Raises
    TimeoutError after that, and OSError if the file cannot be opened or locked.
    """
    with _GATE:
        descriptor = open_private(path, os.O_RDWR | os.O_CREAT)
        _OPEN.add(descriptor)
    try:
        try_lock_for(descriptor, path, patience=patience)
        yield
    finally:
        with _GATE:
            _OPEN.discard(descriptor)
            os.close(descriptor)  # closing the file releases the lock


def try_lock_for(descriptor: int, path: Path, *, patience: float) -> None:
    """Lock an open file until it is closed. Raises TimeoutError if another one holds the lock for
    `patience` seconds, and OSError if the file cannot be locked.
    """
    end = time.monotonic() + patience
    pause = _SHORTEST
    while not try_lock(descriptor):
        if time.monotonic() > end:
            raise TimeoutError(
                errno.ETIMEDOUT,
                f"somebody else has held it for {patience:g} seconds",
                str(path),
            )
        time.sleep(random.uniform(0.5, 1.0) * pause)
        pause = min(2 * pause, _LONGEST)


def try_lock(descriptor: int) -> bool:
    """Lock an open file until it is closed, among all threads and processes that use this function.

    False if another one holds the lock. Raises OSError if the file cannot be locked at all.
    """
    try:
        if sys.platform == "win32":
            import msvcrt  # late: on Windows only

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # late: not on Windows

            # The lock belongs to the open file, not to the process, so it excludes other threads
            # too.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as bad:
        if bad.errno not in _HELD:
            raise
        return False
    return True


# -- atomic writes ---------------------------------------------------------------------------------


def write_new(path: Path, data: bytes) -> None:
    """Write a new file of mode 0600, and flush it to the disk.

    Raises OSError: FileExistsError if the file exists.
    """
    with open(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def write_atomic(path: Path, data: bytes, *, still: Callable[[], bool] = lambda: True) -> bool:
    """Replace a file atomically, or create it. The mode of an existing file is kept.

    Hazard: call it while holding a `file_lock`.

    Neither a reader nor a crash leaves half a file. A symbolic link is followed, and stays a link.
    `still` is called when everything is written but nothing is replaced yet; if it returns False,
    the old file stays, and the result is False. Raises OSError; then the old file is unchanged.
    """
    target = Path(os.path.realpath(path))
    new = target.with_name(f".{target.name}.new")
    with contextlib.suppress(FileNotFoundError):
        new.unlink()  # left by a process that died: this process holds the lock
    try:
        write_new(new, data)
        if not still():
            new.unlink()
            return False
        with contextlib.suppress(FileNotFoundError):
            os.chmod(new, target.stat().st_mode & 0o7777)
        _replace(new, target)
    except OSError:
        with contextlib.suppress(OSError):
            new.unlink()
        raise
    settle_folder(target.parent)
    return True


def _replace(new: Path, old: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            os.replace(new, old)
            return
        except PermissionError:
            # On Windows an open file cannot be replaced. Readers have it open for a moment only.
            if sys.platform != "win32" or time.monotonic() > end:
                raise
            time.sleep(0.005)


def settle_folder(folder: Path) -> None:
    """Flush a folder, so that the new name of a file survives a power failure, if the platform
    supports it.
    """
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
