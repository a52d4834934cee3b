"""Private files and folders (modes 0600 and 0700), and the file lock of a vault."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .. import files
from ..errors import StoreError

_OTHERS = 0o077  # permissions of the group and of others
_MAY_WRITE = 0o022
_MODES = sys.platform != "win32"  # on Windows the folder for user data is private anyway


def make_folder(folder: Path, *, private: bool) -> None:
    """Create a folder and its missing parents, with access only for the owner.

    An existing folder must not have wider permissions than allowed: with `private`, others must not
    read it; otherwise others must not write in it. Raises StoreError.
    """
    for missing in [each for each in reversed((folder, *folder.parents)) if not each.exists()]:
        try:
            with contextlib.suppress(FileExistsError):  # another process created it first
                missing.mkdir(mode=0o700)
        except OSError as bad:
            raise StoreError(
                f"the folder {missing} for the vault cannot be made: {bad.strerror}"
            ) from None
    try:
        mode = stat.S_IMODE(folder.stat().st_mode)
    except OSError as bad:
        raise StoreError(
            f"the folder {folder} of the vault cannot be used: {bad.strerror}"
        ) from None
    if _MODES and mode & (_OTHERS if private else _MAY_WRITE):
        what, less = ("look into", "700") if private else ("write in", "go-w")
        raise StoreError(
            f"others may {what} the folder of the vault, {folder} (its mode is {mode:04o}): run "
            f"`chmod {less} {folder}`, "
            "or choose a folder of its own, which will be made"
        )


def check_file(found: os.stat_result, path: Path) -> None:
    """Raise StoreError unless this is a regular file that others can neither read nor write."""
    if not stat.S_ISREG(found.st_mode):
        raise StoreError(
            f"{path} is no file, as a vault must be, but a link, a folder or the like: choose "
            "another place"
        )
    mode = stat.S_IMODE(found.st_mode)
    if _MODES and mode & _OTHERS:
        raise StoreError(
            f"others may read or write the vault {path} (its mode is {mode:04o}): run `chmod 600 "
            f"{path}`; "
            "if somebody else uses this machine, have the tokens in it revoked"
        )


@contextmanager
def file_lock(path: Path, *, patience: float) -> Iterator[None]:
    """The file lock of a vault. Raises StoreError."""
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(files.file_lock(path, patience=patience))
            held = stack.pop_all()
    except TimeoutError:
        raise StoreError(
            f"another process has held the lock {path} for {patience:g} seconds: end it, and try "
            "again"
        ) from None
    except OSError as bad:
        raise StoreError(
            f"{path} cannot be locked, as a vault must be ({bad.strerror}): choose a local disk "
            "for it"
        ) from None
    with held:
        yield
