"""Copies of files that calls may change, so that the user can undo a change.

Only a file that the arguments name, in a folder that the user shares with a server on this machine,
is copied. The host cannot know what else a server changes.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

from msgspec import Struct

from interlock import InterlockError
from interlock.store import write_atomic

from ..fleet.argument_paths import paths_in
from ..fleet.events import Event, FileRestored, FilesChanged
from .call_request import CallRequest

MOST_FILES = 20
"""The files of one call that are copied."""
MOST_BYTES = 16 * 1024 * 1024
"""The size of one file that is copied, in bytes."""
MOST_TOTAL = 256 * 1024 * 1024
"""The size of all copies, in bytes. The oldest are deleted first."""
DAYS = 7
"""The days after which copies are deleted, when a host starts."""

How = Literal["changed", "created", "deleted"]


class CannotRestore(InterlockError):
    """A file cannot be restored; the message says why."""


class CopiedFile(Struct, frozen=True, kw_only=True, rename="camel"):
    """A file that a call has changed.

    Attributes:
        path: The file.
        how: What happened to it.
        restorable: Whether a copy from before the call is kept, or none is needed.
        before: The name of the copy; "" if there was no file, or none was kept.
        after: The digest of the file after the call; "" if there is none.
    """

    path: str
    how: How
    restorable: bool = True
    before: str = ""
    after: str = ""


class _State(Struct, frozen=True):
    """A file before a call: its digest ("" for none), and the name of its copy ("" for none)."""

    path: Path
    digest: str
    copy: str


class FileCopies:
    """Keeps copies of files before calls, and restores them.

    Args:
        folder: Where the copies are kept; None: no copies are kept.
        publish: Receives events.
    """

    def __init__(self, folder: Path | None, publish: Callable[[Event], None]) -> None:
        self._folder = folder
        self._publish = publish
        self._changed: dict[str, dict[str, tuple[CopiedFile, ...]]] = {}

    def changed(self, session: str) -> dict[str, tuple[CopiedFile, ...]]:
        """Return the files that calls of a conversation have changed, by call."""
        return dict(self._changed.get(session, {}))

    async def before(
        self, request: CallRequest, arguments: Mapping[str, Any], folders: Sequence[str]
    ) -> tuple[_State, ...]:
        """Copy the files that a call names, as far as they are in these folders."""
        if self._folder is None or not folders or not request.session:
            return ()
        named = [path.value for path in paths_in(arguments) if path.absolute]
        if not named:
            return ()
        return await asyncio.to_thread(self._keep, request.call, named, folders)

    async def after(self, request: CallRequest, states: tuple[_State, ...]) -> None:
        """Compare the files with those before the call, and publish which have changed."""
        if not states:
            return
        files = await asyncio.to_thread(_compare, states)
        if files:
            self._changed.setdefault(request.session, {})[request.call] = files
            self._publish(
                FilesChanged(
                    session=request.session,
                    call=request.call,
                    server=request.item.server,
                    tool=request.item.tool.name,
                    files=files,
                )
            )

    async def restore(self, session: str, call: str, path: str) -> None:
        """Restore a file to its state before a call.

        Raises:
            CannotRestore: There is no copy, or the file has changed since the call.
        """
        files = self._changed.get(session, {}).get(call, ())
        file = next((each for each in files if each.path == path), None)
        if file is None or not file.restorable:
            raise CannotRestore(f"No copy of {path} from before this call is kept.")
        await asyncio.to_thread(self._restore, file)
        left = tuple(each for each in files if each != file)
        self._changed[session][call] = left
        self._publish(FileRestored(session=session, call=call, path=path))

    def forget(self, session: str) -> None:
        """Delete the copies of a conversation: its files can no longer be restored."""
        self._changed.pop(session, None)
        if self._folder is not None and self._folder.is_dir():
            for each in self._folder.iterdir():
                if each.name.startswith(f"{session}."):
                    each.unlink(missing_ok=True)

    def clean(self) -> None:
        """Delete old copies, and the oldest if all are too large."""
        if self._folder is None or not self._folder.is_dir():
            return
        kept = sorted(self._folder.iterdir(), key=lambda each: each.lstat().st_mtime, reverse=True)
        oldest = time.time() - DAYS * 86_400
        total = 0
        for each in kept:
            total += each.lstat().st_size
            if each.lstat().st_mtime < oldest or total > MOST_TOTAL:
                each.unlink(missing_ok=True)

    def _keep(self, call: str, named: Iterable[str], folders: Sequence[str]) -> tuple[_State, ...]:
        states: dict[Path, _State] = {}
        for text in named:
            path = _inside(text, folders)
            if path is None or path in states or len(states) >= MOST_FILES:
                continue
            digest = _digest(path)
            if digest is None:
                continue  # no ordinary file, or too large
            name = f"{call}.{len(states)}" if digest else ""
            if name and not self._copy(path, name):
                name = ""
            states[path] = _State(path, digest, name)
        return tuple(states.values())

    def _copy(self, path: Path, name: str) -> bool:
        assert self._folder is not None
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.clean()
            with path.open("rb") as source:
                descriptor = os.open(
                    self._folder / name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600
                )
                with os.fdopen(descriptor, "wb") as copy:
                    shutil.copyfileobj(source, copy)
        except OSError:
            return False
        return True

    def _restore(self, file: CopiedFile) -> None:
        path = Path(file.path)
        if (_digest(path) or "") != file.after:
            raise CannotRestore(f"{path} has changed since this call. Nothing was restored.")
        try:
            if file.how == "created":
                path.unlink(missing_ok=True)
                return
            assert self._folder is not None
            copy = self._folder / file.before
            mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644
            write_atomic(path, copy.read_bytes())
            path.chmod(mode)
        except OSError as bad:
            raise CannotRestore(f"{path} cannot be restored: {bad.strerror or bad}.") from None


def _inside(text: str, folders: Sequence[str]) -> Path | None:
    """The file that a path leads to, links followed, if it is in one of the folders."""
    if text[:7].lower() == "file://":
        text = unquote(text[7:])
    try:
        path = Path(os.path.realpath(Path(text).expanduser()))
        inside = any(path.is_relative_to(os.path.realpath(folder)) for folder in folders)
    except (OSError, ValueError, RuntimeError):
        return None
    return path if inside else None


def _digest(path: Path) -> str | None:
    """The digest of an ordinary file; "" if there is no file; None for anything else."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return ""
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
        return None
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def _compare(states: Iterable[_State]) -> tuple[CopiedFile, ...]:
    files = []
    for state in states:
        now = _digest(state.path)
        if now == state.digest:
            continue
        how: How = "changed"
        if not state.digest:
            how = "created"
        elif now == "":
            how = "deleted"
        restorable = now is not None and (bool(state.copy) or not state.digest)
        files.append(
            CopiedFile(
                path=str(state.path),
                how=how,
                restorable=restorable,
                before=state.copy,
                after=now or "",
            )
        )
    return tuple(files)
