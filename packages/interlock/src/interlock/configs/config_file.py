"""Edits a configuration file atomically, keeps a backup, and shows the difference."""

from __future__ import annotations

import contextlib
import difflib
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from .text_edits import Uneditable

_BOM = b"\xef\xbb\xbf"
_ATTEMPTS = 5
TextChange = Callable[[str | None], str | None]
"""Returns the new text of a file for the old one; None means that there is no file."""


class ConfigFile:
    """One configuration file. A symbolic link is followed: its target changes, the link stays."""

    def __init__(self, path: Path) -> None:
        self.path = Path(os.path.realpath(path.expanduser()))

    def read(self) -> bytes | None:
        """Return the bytes of the file; None if it does not exist.

        Raises:
            Uneditable: It is not an ordinary file, or you may not read it.
        """
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as bad:
            raise Uneditable(str(bad.strerror or bad)) from None

    def planned(self, change: TextChange) -> tuple[bytes | None, bytes | None]:
        """Return the present bytes, and the bytes after a change. Nothing is written.

        Raises:
            Uneditable: The file cannot be read, or the change cannot be made.
        """
        before = self.read()
        return before, _changed(before, change)

    def make(self, change: TextChange) -> tuple[bool, Path | None]:
        """Make a change.

        The new file has the mode of the old one and replaces it in one step. If another program
        writes the file meanwhile, the change is made again on the newer text.

        Args:
            change: Makes the new text from the old one.

        Returns:
            Whether anything changed, and the path of the backup, if there was a file before.

        Raises:
            Uneditable: The change cannot be made, or another program keeps changing the file.
            OSError: The file cannot be written.
        """
        for _ in range(_ATTEMPTS):
            before, after = self.planned(change)
            if before == after:
                return False, None
            backup = self._keep(before) if before is not None else None
            if self._replace(before, after):
                return True, backup
            if backup is not None:
                backup.unlink()
        raise Uneditable("another program keeps changing it")

    def backups(self) -> list[str]:
        """Return the texts of the backups, the newest first, without unreadable ones."""
        found = sorted(
            self.path.parent.glob(f"{_escaped(self.path.name)}.interlock-*.bak"), reverse=True
        )
        texts = []
        for path in found:
            with contextlib.suppress(OSError, UnicodeDecodeError):
                texts.append(path.read_bytes().removeprefix(_BOM).decode())
        return texts

    def _keep(self, data: bytes) -> Path:
        """Write a backup next to the file, readable by the same users, with the time in its
        name.
        """
        stamp = time.strftime("%Y%m%d-%H%M%S")
        for n in range(1000):
            path = self.path.with_name(f"{self.path.name}.interlock-{stamp}-{n:03}.bak")
            with contextlib.suppress(FileExistsError):
                fd = os.open(
                    path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600
                )
                with open(fd, "wb") as file:
                    file.write(data)
                os.chmod(path, self.path.stat().st_mode & 0o7777)
                return path
        raise Uneditable("there are too many copies of it already")

    def _replace(self, before: bytes | None, after: bytes | None) -> bool:
        """Replace the file with the new bytes; False if it has changed since it was read."""
        if after is None:
            if self.read() == before:
                self.path.unlink()
                return True
            return False
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fd, name = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
        try:
            with open(fd, "wb") as file:
                file.write(after)
                file.flush()
                os.fsync(file.fileno())
            if before is not None:
                status = self.path.stat()
                os.chmod(name, status.st_mode & 0o7777)
                if hasattr(os, "chown"):
                    with contextlib.suppress(OSError):
                        os.chown(name, status.st_uid, status.st_gid)
            if self.read() != before:
                return False
            os.replace(name, self.path)
            return True
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)


def _changed(before: bytes | None, change: TextChange) -> bytes | None:
    if before is None:
        after = change(None)
        return None if after is None else after.encode()
    bom = _BOM if before.startswith(_BOM) else b""
    try:
        text = before[len(bom) :].decode()
    except UnicodeDecodeError:
        raise Uneditable("it is not UTF-8") from None
    after = change(text)
    return None if after is None else bom + after.encode()


def _escaped(name: str) -> str:
    """Return a name with the special characters of glob patterns escaped."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def difference(path: Path, before: bytes | None, after: bytes | None) -> str:
    """Return the change of a file as a unified diff.

    Args:
        path: The file.
        before: Its content before the change; None if it did not exist.
        after: Its content after the change; None if it is removed.
    """
    old, new = (
        ((data or b"").decode("utf-8", "replace")).splitlines(keepends=True)
        for data in (before, after)
    )
    names = (
        "/dev/null" if before is None else str(path),
        "/dev/null" if after is None else str(path),
    )
    lines = []
    for line in difflib.unified_diff(old, new, *names):
        lines.append(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n")
    return "".join(lines)
