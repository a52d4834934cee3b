"""Keyrings of the tests' own: one that keeps its entries in a folder, so that several processes
share it, and some that do not work.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError, PasswordSetError


class FolderRing(KeyringBackend):
    """A file for each entry; `most` is how many letters an entry may have, as on Windows."""

    priority = 1

    def __init__(self, folder: Path, most: int = 1_000_000) -> None:
        super().__init__()
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.most = most
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise KeyringLocked("it is locked")
        try:
            return self._entry(service, username).read_text()
        except FileNotFoundError:
            return None

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.locked:
            raise KeyringLocked("it is locked")
        if len(password) > self.most:
            raise PasswordSetError("it is too long")
        self._entry(service, username).write_text(password)

    def delete_password(self, service: str, username: str) -> None:
        try:
            self._entry(service, username).unlink()
        except FileNotFoundError:
            raise PasswordDeleteError("there is none") from None

    def _entry(self, service: str, username: str) -> Path:
        return self.folder / quote(f"{service} {username}", safe="")


class ForgetfulRing(FolderRing):
    """Takes everything and keeps nothing."""

    def set_password(self, service: str, username: str, password: str) -> None:
        pass


class LockedRing(FolderRing):
    """Its user is not there to unlock it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.locked = True
