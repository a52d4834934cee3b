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
}  # how systems say that somebody else has the lock
# seconds between two attempts to have the lock
_SHORTEST = 0.0005
_LONGEST = 0.02
_PATIENCE = 2.0  # seconds to wait for readers, where what is being read cannot be replaced


def open_private(path: Path, flags: int) -> int:
    """Open a file, which is made with mode 0600 where `flags` say so; never through a link.

    The descriptor. Raises OSError.
    """
    # As far as the system has them; not blocking, for somebody may have put a pipe there.
    for each in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
        flags |= getattr(os, each, 0)
    return os.open(path, flags, 0o600)


# -- turns -----------------------------------------------------------------------------------------

# A child that is forked while a thread of its parent has a lock would have it too, for as long as
# it lives.
_GATE = threading.Lock()
_OPEN: set[int] = set()


def _let_go() -> None:
    """In a child that was forked: the locks are its parent's."""
    for descriptor in _OPEN:
        os.close(descriptor)
    _OPEN.clear()
    _GATE.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_GATE.acquire, after_in_parent=_GATE.release, after_in_child=_let_go)


@contextmanager
def file_lock(path: Path, *, patience: float) -> Iterator[None]:
    """Be the only one, among all threads and processes, that holds the lock on this file, which is
    made where it is missing.

    It is let go by itself when a process ends. Waits for `patience` seconds at the most. Raises
    TimeoutError where somebody held it for longer, and OSError where the file cannot be opened or
    locked.
    """
    with _GATE:
        descriptor = open_private(path, os.O_RDWR | os.O_CREAT)
        _OPEN.add(descriptor)
    try:
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
        yield
    finally:
        with _GATE:
            _OPEN.discard(descriptor)
            os.close(descriptor)  # and with it the lock


def try_lock(descriptor: int) -> bool:
    """Lock an open file until it is closed, among all threads and processes that do so.

    False where somebody else has it.

    Raises OSError where it cannot be locked at all.
    """
    try:
        if sys.platform == "win32":
            import msvcrt  # late: only there

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # late: not there

            # Of the open file and not of the process, so that threads take turns, too.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as bad:
        if bad.errno not in _HELD:
            raise
        return False
    return True


# -- whole, or not at all --------------------------------------------------------------------------


def write_new(path: Path, data: bytes) -> None:
    """Write a file of mode 0600 down to the disk.

    Raises OSError: FileExistsError where there is one already.
    """
    with open(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def write_atomic(path: Path, data: bytes, *, still: Callable[[], bool] = lambda: True) -> bool:
    """Put a file with these bytes in the place of one, which keeps its mode, or where there is
    none.

    To be done in a `file_lock`.

    No reader, and nobody after a crash, finds half of it. A link is followed, and stays one.
    `still` is asked when all is written but nothing changed yet; where it says no, the old file
    stays, and False is returned. Raises OSError; the old file is as it was then.
    """
    target = Path(os.path.realpath(path))
    new = target.with_name(f".{target.name}.new")
    with contextlib.suppress(FileNotFoundError):
        new.unlink()  # left by one who died: the turn is ours
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
    _settle(target.parent)
    return True


def _replace(new: Path, old: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            os.replace(new, old)
            return
        except PermissionError:
            # On Windows a file that is being read cannot be replaced; it is read for a moment only.
            if sys.platform != "win32" or time.monotonic() > end:
                raise
            time.sleep(0.005)


def _settle(folder: Path) -> None:
    """Have the new name of a file outlive a power cut, where the platform can do that."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
