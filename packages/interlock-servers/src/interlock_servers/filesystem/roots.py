"""Allowed folders: those that the owner of the server named, narrowed by the roots of a client."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import time
from collections.abc import Iterator, Sequence
from urllib.parse import unquote_to_bytes, urlsplit

from interlock import Context, ToolError, settings_of
from interlock.untrusted.invisible import visible_line as plain

from .limits import PREFIX, FilesystemLimits
from .openat import again, check_platform
from .resolve import (
    OutsideRoots,
    ResolvedPath,
    RootFolder,
    checked_path,
    descend,
    in_words,
    parts_within,
)

FOLDERS_VARIABLE = "INTERLOCK_FILESYSTEM_FOLDERS"
"""The environment variable with the allowed folders if there are no arguments, separated as in
PATH.
"""
_NONE = (
    "No folder is allowed. Name at least one: `interlock serve filesystem FOLDER...`, or "
    f"{FOLDERS_VARIABLE} with {os.pathsep!r} between them."
)


class CallRoots:
    """The folders that one call may access; they are open during the call."""

    def __init__(self, folders: Sequence[RootFolder], limits: FilesystemLimits) -> None:
        self.folders = folders
        self.limits = limits

    @contextlib.contextmanager
    def find(self, path: str, *, follow: bool = True) -> Iterator[ResolvedPath]:
        """Resolve a path.

        Raises ToolError if it leads outside, or through a missing folder.
        """
        folder, parts = self.split(path)
        with descend(folder, parts, path or ".", self.limits, follow=follow) as place:
            yield place

    def split(self, path: str) -> tuple[RootFolder, Sequence[str]]:
        """The allowed folder of a path, and the remaining steps, which are not resolved yet.

        Raises ToolError.
        """
        checked_path(path)
        if path.startswith("/"):
            for folder in sorted(self.folders, key=lambda folder: -len(folder.parts)):
                parts = parts_within(folder, path)
                if parts is not None:
                    return folder, parts
            raise OutsideRoots(
                f"{plain(path[:300])} is outside of the allowed folders: {self.names()}."
            )
        if len(self.folders) == 1:
            return self.folders[0], path.split("/")
        raise ToolError(
            f"Several folders are allowed, so a path must begin with one of them: {self.names()}."
        )

    def names(self) -> str:
        """The allowed folders in words."""
        return ", ".join(plain(folder.path) for folder in self.folders) or "nothing"

    def shown(self, folder: RootFolder, parts: Sequence[str]) -> str:
        """A path for results, which callers can send again: relative if there is one allowed
        folder, else absolute.
        """
        relative = "/".join(parts)
        return (
            relative or "."
            if len(self.folders) == 1
            else "/".join((folder.path.rstrip("/"), *parts))
        )


class AllowedRoots:
    """The folders that the owner of the server allowed.

    `folders` are paths; by default those of the environment.
    """

    def __init__(
        self,
        folders: Sequence[str | os.PathLike[str]] | None = None,
        limits: FilesystemLimits | None = None,
    ) -> None:
        self._named = [os.fspath(folder) for folder in folders] if folders is not None else None
        self._limits = limits
        self.folders: list[RootFolder] = []
        self.limits = limits or FilesystemLimits()
        self.problems: list[str] = []  # why some folders are unavailable
        self.watcher: object = None  # set while the server runs

    def open(self) -> None:
        """Open the folders.

        Errors are kept in `problems`; the other folders are served.
        """
        self.problems = []
        found: dict[str, RootFolder] = {}
        try:
            check_platform()
            self.limits = self._limits or settings_of(FilesystemLimits, PREFIX)
        except (OSError, ValueError) as bad:
            self.problems.append(str(bad))
            return
        named = self._named
        if named is None:
            named = [
                part for part in os.environ.get(FOLDERS_VARIABLE, "").split(os.pathsep) if part
            ]
        for name in named:
            try:
                folder = RootFolder.at(name)
            except ToolError as bad:
                self.problems.append(str(bad))
                continue
            if folder.path in found:
                found[folder.path].spellings |= folder.spellings
                folder.close()
            else:
                found[folder.path] = folder
        self.folders = list(found.values())

    def close(self) -> None:
        """Close the folders."""
        for folder in self.folders:
            folder.close()
        self.folders = []

    @contextlib.contextmanager
    def call_roots(self, ctx: Context[AllowedRoots] | None) -> Iterator[CallRoots]:
        """The folders that a call may access. For plain functions.

        A client with roots is asked for them in every call: they may have changed, and earlier
        roots could allow too much. Roots narrow what the owner allowed, and never widen it.

        Raises ToolError if no folder is left.
        """
        if not self.folders:
            raise ToolError(" ".join(self.problems) or _NONE)
        folders = [self._alive(folder) for folder in self.folders]
        opened: list[RootFolder] = []
        try:
            if ctx is not None and ctx.caller.capabilities.roots is not None:
                roots = ctx.wait(ctx.roots())
                opened = folders = _narrowed(folders, [root.uri for root in roots], self.limits)
                if not folders:
                    raise ToolError(
                        "None of the client's roots is inside an allowed folder, so no "
                        "file can be accessed."
                    )
            yield CallRoots(folders, self.limits)
        except OSError as bad:  # errors that no lower layer has explained
            raise ToolError(f"The system refused this: {in_words(bad)}.") from None
        finally:
            for folder in opened:
                folder.close()

    def _alive(self, folder: RootFolder) -> RootFolder:
        """The folder; if it was removed, the new folder at its path.

        Raises ToolError if there is none.
        """
        if os.fstat(folder.fd).st_nlink:
            return folder
        anew = RootFolder.at(folder.path)
        if anew.path != folder.path:
            anew.close()
            raise ToolError(
                f"The allowed folder {plain(folder.path)} was removed, and a link took its place."
            )
        folder.device = anew.device
        os.dup2(anew.fd, folder.fd, inheritable=False)
        anew.close()
        return folder


def _narrowed(
    folders: Sequence[RootFolder], uris: Sequence[str], limits: FilesystemLimits
) -> list[RootFolder]:
    """The parts of the folders inside the roots, opened again: for each root a whole folder or a
    part of it.
    """
    found: dict[str, RootFolder] = {}
    for path in filter(None, map(_path_of, uris)):
        for folder in folders:
            above = tuple(part for part in path.split("/") if part and part != ".")
            if any(own[: len(above)] == above for own in folder.spellings):
                found.setdefault(
                    folder.path, RootFolder(again(folder.fd), folder.path, _spelled(folder))
                )
                continue
            parts = parts_within(folder, path)
            if parts is not None:
                with (
                    contextlib.suppress(ToolError, OSError),
                    descend(folder, parts, path, limits) as place,
                ):
                    now = place.stat()
                    if now is not None and stat.S_ISDIR(now.st_mode):
                        real = "/".join((folder.path.rstrip("/"), *place.parts))
                        if real not in found:
                            found[real] = RootFolder(place.open_folder(), real, path)
    return list(found.values())


def _spelled(folder: RootFolder) -> str | None:
    """The other spelling of its path, if there is one."""
    return next(
        ("/" + "/".join(parts) for parts in folder.spellings if parts != folder.parts), None
    )


def _path_of(uri: str) -> str | None:
    """The path in a local file:// URI."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    path = os.fsdecode(unquote_to_bytes(parts.path))
    return path if path.startswith("/") and "\0" not in path else None


class CallProgress:
    """Progress and deadline of a long call. It ends when the call is cancelled."""

    def __init__(
        self, ctx: Context[AllowedRoots] | None, limits: FilesystemLimits, unit: str = "entries"
    ) -> None:
        self._ctx = ctx
        self._unit = unit
        self._end = time.monotonic() + limits.seconds
        self._most = limits.walked
        self.count = 0
        self.late = False

    def step(self, message: str = "") -> bool:
        """Count one step.

        Returns False after too many steps, or too much time. Raises CancelledError if the call was
        cancelled.
        """
        self.count += 1
        if self.count % 64 == 0:
            if self._ctx is not None and self._ctx.cancelled:
                raise asyncio.CancelledError
            if time.monotonic() > self._end:
                self.late = True
            if self.count % 1024 == 0 and self._ctx is not None:
                self._ctx.progress(self.count, None, message or f"{self.count} {self._unit}")
        if self.count > self._most:
            self.late = True
        return not self.late

    def report(self, done: int, total: int | None, message: str) -> None:
        """Report progress. Raises CancelledError if the call was cancelled."""
        if self._ctx is not None:
            if self._ctx.cancelled:
                raise asyncio.CancelledError
            self._ctx.progress(done, total, message)
        self.late = self.late or time.monotonic() > self._end
