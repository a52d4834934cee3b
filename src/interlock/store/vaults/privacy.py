"""Files and folders that nobody but their owner may look into, and the lock by which processes take turns."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import stat
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...protocol.sessions import StoreError

_OTHERS = 0o077  # what the group and the world may do
_MAY_WRITE = 0o022
_MODES = sys.platform != "win32"  # elsewhere the folder of a user's data is private by itself
_HELD = {errno.EACCES, errno.EAGAIN, errno.EWOULDBLOCK, errno.EDEADLK}  # how systems say that somebody else has the lock
_SHORTEST, _LONGEST = 0.0005, 0.02  # seconds between two attempts to have the lock


def make_folder(folder: Path, *, private: bool) -> None:
    """Make a folder, and those above it that are missing, for its owner's eyes only; one that is there must be no opener than it may.

    `private`: nobody else may look into it; otherwise nobody else may write in it. Raises StoreError.
    """
    for missing in [each for each in reversed((folder, *folder.parents)) if not each.exists()]:
        try:
            with contextlib.suppress(FileExistsError):  # another process was quicker
                missing.mkdir(mode=0o700)
        except OSError as bad:
            raise StoreError(f"the folder {missing} for the vault cannot be made: {bad.strerror}") from None
    try:
        mode = stat.S_IMODE(folder.stat().st_mode)
    except OSError as bad:
        raise StoreError(f"the folder {folder} of the vault cannot be used: {bad.strerror}") from None
    if _MODES and mode & (_OTHERS if private else _MAY_WRITE):
        what, less = ("look into", "700") if private else ("write in", "go-w")
        raise StoreError(
            f"others may {what} the folder of the vault, {folder} (its mode is {mode:04o}): run `chmod {less} {folder}`, "
            "or choose a folder of its own, which will be made"
        )


def check_file(found: os.stat_result, path: Path) -> None:
    """Refuse what is no file, or one that others may read or write. Raises StoreError."""
    if not stat.S_ISREG(found.st_mode):
        raise StoreError(f"{path} is no file, as a vault must be, but a link, a folder or the like: choose another place")
    mode = stat.S_IMODE(found.st_mode)
    if _MODES and mode & _OTHERS:
        raise StoreError(
            f"others may read or write the vault {path} (its mode is {mode:04o}): run `chmod 600 {path}`; "
            "if somebody else uses this machine, have the tokens in it revoked"
        )


def open_private(path: Path, flags: int) -> int:
    """Open a file, which is made with mode 0600 where `flags` say so; never through a link. The descriptor. Raises OSError."""
    # As far as the system has them; not blocking, for somebody may have put a pipe there.
    for each in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
        flags |= getattr(os, each, 0)
    return os.open(path, flags, 0o600)


# A child that is forked while a thread of its parent has a lock would have it too, for as long as it lives.
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
def turn(path: Path, *, patience: float) -> Iterator[None]:
    """Be the only one, among all threads and processes, that holds the lock on this file; it is let go by itself when a process ends.

    Waits for `patience` seconds at the most. Raises StoreError.
    """
    try:
        with _GATE:
            descriptor = open_private(path, os.O_RDWR | os.O_CREAT)
            _OPEN.add(descriptor)
    except OSError as bad:
        raise StoreError(f"the lock {path} of the vault cannot be opened: {bad.strerror}") from None
    try:
        end, pause = time.monotonic() + patience, _SHORTEST
        while not _lock(descriptor, path):
            if time.monotonic() > end:
                raise StoreError(f"another process has held the lock {path} for {patience:g} seconds: end it, and try again")
            time.sleep(random.uniform(0.5, 1.0) * pause)
            pause = min(2 * pause, _LONGEST)
        yield
    finally:
        with _GATE:
            _OPEN.discard(descriptor)
            os.close(descriptor)  # and with it the lock


def _lock(descriptor: int, path: Path) -> bool:
    """Whether the lock could be had."""
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
            raise StoreError(f"{path} cannot be locked, as a vault must be ({bad.strerror}): choose a local disk for it") from None
        return False
    return True
