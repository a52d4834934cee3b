"""Maildir folders for drafts and sent mail, readable by other mail programs."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import sys
import time
from collections.abc import Iterator
from email.message import EmailMessage
from email.policy import default as plain
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from interlock import ToolError
from interlock.store import StoreError, own_path, try_lock, write_new

from .messages import HOW, MailMessage, letter_of

FOLDER_VARIABLE = "INTERLOCK_MAIL_FOLDER"
MOST_BYTES = 4 * 1024 * 1024  # of one message
MOST_SEARCHED = 2000
Box = Literal["drafts", "sent"]

_NAMES: dict[Box, str] = {"drafts": ".Drafts", "sent": ".Sent"}
_FLAGS: dict[Box, str] = {"drafts": "DS", "sent": "S"}
_COLON = "!" if sys.platform == "win32" else ":"  # separates a message's name from its flags


class Maildir:
    """The folders of one Maildir, created on first use.

    Raises ToolError in words for the model.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._folder = Path(folder) if folder is not None else None

    @property
    def folder(self) -> Path:
        """The path of the Maildir: the one given, the environment's, or the user's default."""
        if self._folder is None:
            try:
                self._folder = own_path(FOLDER_VARIABLE, "mail")
            except StoreError as bad:
                raise ToolError(str(bad)) from None
        return self._folder

    def put(self, box: Box, message: EmailMessage, how: str = "") -> MailMessage:
        """Store a message atomically, and write into it `how` it was sent."""
        data = message.as_bytes(policy=plain)
        if how:
            data = f"{HOW}: {how}\n".encode() + data
        seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
        # Sortable by time of creation, and unique among all programs that write.
        id_ = f"{seconds}.M{nanoseconds // 1000:06}P{os.getpid()}R{secrets.token_hex(6)}.interlock"
        try:
            place = self._made(box)
            new = place / "tmp" / id_
            try:
                write_new(new, data)
                os.replace(new, place / "cur" / f"{id_}{_COLON}2,{_FLAGS[box]}")
            except OSError:
                with contextlib.suppress(OSError):
                    new.unlink()
                raise
        except OSError as bad:
            raise ToolError(f"The mail folder cannot be written to ({bad.strerror}).") from None
        return self._letter(box, id_, data, whole=True)

    def get(self, box: Box, id_: str) -> MailMessage | None:
        """A message with its body; None if there is no such id."""
        path = self._paths(box).get(id_)
        data = _read(path) if path is not None else None
        return self._letter(box, id_, data, whole=True) if data is not None else None

    def ids(self, box: Box) -> list[str]:
        """The ids of the messages, latest first."""
        return sorted(self._paths(box), key=_age, reverse=True)

    def letters(self, box: Box, *, whole: bool = False) -> Iterator[MailMessage]:
        """The messages, latest first."""
        paths = self._paths(box)
        for id_ in sorted(paths, key=_age, reverse=True):
            data = _read(paths[id_])
            if data is not None:  # it may have been removed in the meantime
                yield self._letter(box, id_, data, whole=whole)

    def remove(self, box: Box, id_: str) -> None:
        """Remove a message. Raises KeyError for an unknown id."""
        path = self._paths(box)[id_]
        try:
            path.unlink()
        except FileNotFoundError:
            raise KeyError(id_) from None
        except OSError as bad:
            raise ToolError(f"The message cannot be removed ({bad.strerror}).") from None

    @contextlib.contextmanager
    def claimed(self, id_: str) -> Iterator[bytes | None]:
        """Claim a draft for sending, among all threads and processes; its bytes, or None if it is
        gone.

        Raises ToolError if another process has claimed it.
        """
        path = self._paths("drafts").get(id_)
        try:
            file = path.open("rb") if path is not None else None
        except FileNotFoundError:
            file = None
        if file is None:
            yield None
            return
        with file:
            if not try_lock(file.fileno()):
                raise ToolError("This draft is already being sent.")
            # The process that held the claim may have removed the file while it was being opened.
            yield file.read() if os.fstat(file.fileno()).st_nlink else None

    # -- the folders -------------------------------------------------------------------------------

    def _made(self, box: Box) -> Path:
        """The folder of a box, created with its subfolders if missing."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        place = self.folder / _NAMES[box]
        for whole in (self.folder, place):
            for part in ("tmp", "new", "cur"):
                (whole / part).mkdir(parents=True, exist_ok=True, mode=0o700)
        (place / "maildirfolder").touch(0o600)
        return place

    def _paths(self, box: Box) -> dict[str, Path]:
        """The files of the messages by id; nothing is created."""
        found: dict[str, Path] = {}
        for part in ("new", "cur"):
            try:
                names = os.listdir(self.folder / _NAMES[box] / part)
            except FileNotFoundError:
                continue
            except OSError as bad:
                raise ToolError(f"The mail folder cannot be read ({bad.strerror}).") from None
            found |= {
                name.partition(_COLON)[0]: self.folder / _NAMES[box] / part / name
                for name in names
                if not name.startswith(".")
            }
        return found

    def _letter(self, box: Box, id_: str, data: bytes, *, whole: bool) -> MailMessage:
        return letter_of(data, id_, f"mail://{box}/{quote(id_, safe='')}", whole=whole)


def _read(path: Path) -> bytes | None:
    """A message's bytes, up to the limit; None if it is gone."""
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES)
    except FileNotFoundError:
        return None
    except OSError as bad:
        raise ToolError(f"The mail folder cannot be read ({bad.strerror}).") from None


def _age(key: str) -> tuple[int, int, str]:
    """When a message was stored, from its name: seconds, and microseconds if it has them."""
    found = re.match(r"(\d{1,15})(?:\.M(\d{1,6}))?", key)
    return (int(found[1]), int(found[2] or 0), key) if found is not None else (0, 0, key)
