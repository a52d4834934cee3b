"""Prevents path traversal: resolves a path one step at a time on opened folders.

A check of the path as text, followed by an open, is a TOCTOU race: a link may be swapped in
between. Here each step is opened relative to the folder before it, and links are followed by hand,
as long as they stay inside.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import os
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from urllib.parse import quote

from interlock import ToolError
from interlock.untrusted.invisible import visible_line as plain

from .limits import FilesystemLimits
from .openat import FOLDER, again, is_special, step, top

TRASH = ".trash"  # in each allowed folder; only the trash tools may access it
PART = ".interlock-part"  # a file being written; a leftover file with this name can be ignored
_MOST_LINKS = 40
_MOST_PATH = 4096  # bytes
_MOST_TRIES = 64  # while another process keeps changing the path
_KINDS = {
    stat.S_IFDIR: "folder",
    stat.S_IFREG: "file",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
}


class PathNotFound(ToolError):
    """Nothing exists at that path."""


class OutsideRoots(ToolError):
    """The path leads out of the allowed folders."""


def kind_of(mode: int) -> str:
    """The kind of a file, in a word: file, folder, link, fifo, socket or device."""
    return _KINDS.get(stat.S_IFMT(mode), "device")


def _escaped(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char) or (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    )


def without_bad_bytes(name: str) -> str:
    """A name as data: unchanged, except that invalid bytes are written as escapes."""
    return (
        name
        if name.isprintable()
        else "".join(_escaped(c) if 0xDC80 <= ord(c) <= 0xDCFF else c for c in name)
    )


def in_words(bad: OSError) -> str:
    """The system's error message, without the path."""
    return bad.strerror or os.strerror(bad.errno or 0)


class RootFolder:
    """An allowed folder, opened.

    It stays the same folder, even if it is renamed or its path is replaced.
    """

    def __init__(self, fd: int, path: str, given: str | None = None) -> None:
        self.fd = fd
        self.path = path
        self.parts = _parts(path)
        self.spellings = {self.parts, _parts(given)} if given else {self.parts}
        self.device = os.fstat(fd).st_dev

    @classmethod
    def at(cls, path: str) -> RootFolder:
        """Open a folder that the owner of this server configured. Raises ToolError."""
        absolute = os.path.abspath(path)
        real = os.path.realpath(absolute)
        try:
            fd = top(real)
        except OSError as bad:
            raise ToolError(
                f"The allowed folder {plain(path)} cannot be opened: {in_words(bad)}."
            ) from None
        if is_special(fd):
            os.close(fd)
            raise ToolError(f"{plain(path)} is a part of the kernel, not a folder of files.")
        return cls(fd, real, absolute)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.fd)

    def uri(self, parts: Sequence[str]) -> str:
        """The file:// URI of a path below the folder."""
        return self.uri_of("/" + "/".join((*self.parts, *parts)))

    @staticmethod
    def uri_of(path: str) -> str:
        """The file:// URI of an absolute path."""
        return "file://" + quote(os.fsencode(path))


class ResolvedPath:
    """A resolved path: an opened parent folder, and a name in it; the allowed folder itself has no
    name.
    """

    def __init__(
        self,
        folder: RootFolder,
        parts: tuple[str, ...],
        parent: int,
        shown: str,
        limits: FilesystemLimits,
    ) -> None:
        self.folder = folder
        self.parts = parts
        self.parent = parent
        self.shown = shown
        self.limits = limits

    @property
    def name(self) -> str | None:
        """The name within the parent folder."""
        return self.parts[-1] if self.parts else None

    @property
    def uri(self) -> str:
        """Its file:// URI."""
        return self.folder.uri(self.parts)

    def stat(self) -> os.stat_result | None:
        """The status of the file, or of a link itself; None if it does not exist."""
        if self.name is None:
            return os.fstat(self.parent)
        try:
            return os.stat(self.name, dir_fd=self.parent, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def missing(self, what: str) -> PathNotFound:
        """The error for a missing file, with similar names."""
        hint = near(self.parent, self.parts[:-1], self.name or "")
        return PathNotFound(f"There is no {what} {plain(self.shown[:300])}.{hint}")

    def open_file(self, *, changing: bool = False) -> int:
        """Open the file for reading.

        Raises ToolError if it is not a file or must not be accessed. It never blocks on FIFOs and
        devices.
        """
        for _ in range(_MOST_TRIES):
            found = self.stat()
            if found is None:
                raise self.missing("file")
            self.check_file(found)
            try:
                fd = step(self.name or "", os.O_RDONLY, self.parent, mounts=self.limits.mounts)
            except OSError as bad:
                if bad.errno in (errno.ELOOP, errno.ENOENT, errno.ENXIO):
                    continue  # another process has replaced the file
                raise refused(self.shown, bad) from None
            try:
                self.check_file(os.fstat(fd), changing=changing)
            except ToolError:
                os.close(fd)
                raise
            return fd
        raise ToolError(f"{plain(self.shown)} keeps changing. Try again.")

    def check_file(self, found: os.stat_result, *, changing: bool = False) -> None:
        """Raise ToolError if it is not a file, or must not be accessed."""
        if not stat.S_ISREG(found.st_mode):
            raise ToolError(f"{plain(self.shown)} is a {kind_of(found.st_mode)} and no file.")
        if found.st_dev != self.folder.device and not self.limits.mounts:
            raise OutsideRoots(
                f"{plain(self.shown)} is on another file system that is mounted here."
            )
        allowed = {"refuse": False, "read": not changing, "allow": True}[self.limits.hard_links]
        if found.st_nlink > 1 and not allowed:
            raise ToolError(
                f"{plain(self.shown)} has {found.st_nlink} names (hard links), and another one "
                "may be outside of the allowed folder. "
                "INTERLOCK_FILESYSTEM_HARD_LINKS=read or =allow permits such files."
            )

    def open_folder(self) -> int:
        """Open the folder, with a separate position. Raises ToolError."""
        if self.name is None:
            return again(self.parent)
        try:
            fd = step(self.name, FOLDER, self.parent, mounts=self.limits.mounts)
        except OSError as bad:
            if bad.errno == errno.ENOENT:
                raise self.missing("folder") from None
            if bad.errno in (errno.ENOTDIR, errno.ELOOP):
                raise ToolError(f"{plain(self.shown)} is not a folder.") from None
            raise refused(self.shown, bad) from None
        return checked_folder(fd, self.folder, self.shown, self.limits)


def checked_folder(fd: int, folder: RootFolder, shown: str, limits: FilesystemLimits) -> int:
    """Return the descriptor; close it if it is on another file system or an interface to the
    kernel.

    Raises OutsideRoots.
    """
    if os.fstat(fd).st_dev != folder.device and (not limits.mounts or is_special(fd)):
        os.close(fd)
        raise OutsideRoots(
            f"{plain(shown)} is another file system that is mounted here. "
            "INTERLOCK_FILESYSTEM_MOUNTS=1 allows it."
        )
    return fd


def refused(shown: str, bad: OSError) -> ToolError:
    """The error for a file that the system does not open."""
    if bad.errno == errno.EXDEV:
        return OutsideRoots(
            f"{plain(shown)} leads to another file system that is mounted here. "
            "INTERLOCK_FILESYSTEM_MOUNTS=1 allows it."
        )
    return ToolError(f"{plain(shown[:200])}: {in_words(bad)}.")


class _Descent:
    """The chain of opened folders from an allowed folder down to the path, so that `..` is resolved
    without a name.
    """

    def __init__(self, folder: RootFolder, shown: str, limits: FilesystemLimits) -> None:
        self.folder = folder
        self.shown = shown
        self.limits = limits
        self.fds = [again(folder.fd)]
        self.names = list[str]()
        self._links = 0

    def close(self) -> None:
        for fd in self.fds:
            os.close(fd)

    def restart(self) -> None:
        """Return to the allowed folder."""
        while self.names:
            self.up()

    def up(self) -> None:
        if not self.names:
            raise OutsideRoots(
                f"{plain(self.shown)} leads out of the allowed folder {plain(self.folder.path)}."
            )
        os.close(self.fds.pop())
        self.names.pop()

    def down(self, name: str) -> str | None:
        """Enter a folder; if it is a link, return the target.

        Raises ToolError.
        """
        for _ in range(_MOST_TRIES):
            try:
                fd = step(name, FOLDER, self.fds[-1], mounts=self.limits.mounts)
            except OSError as bad:
                if bad.errno not in (errno.ELOOP, errno.ENOTDIR):
                    raise (
                        self.missing(name)
                        if bad.errno == errno.ENOENT
                        else refused(self.shown, bad)
                    ) from None
            else:
                self.fds.append(checked_folder(fd, self.folder, self.shown, self.limits))
                self.names.append(name)
                if len(self.names) > 4 * self.limits.depth:
                    raise ToolError(f"{plain(self.shown[:200])} is too deep.")
                return None
            target = self.link(name)
            if target is not None:
                return target
            found = self.kind(name)
            if found not in ("folder", "link", None):
                raise ToolError(
                    f"{plain('/'.join([*self.names, name]))} is a {found} and no folder."
                )
        raise ToolError(f"{plain(self.shown)} keeps changing. Try again.")

    def kind(self, name: str) -> str | None:
        with contextlib.suppress(OSError):
            return kind_of(os.stat(name, dir_fd=self.fds[-1], follow_symlinks=False).st_mode)
        return None

    def link(self, name: str) -> str | None:
        """The target of a link; None if it is not a link."""
        try:
            target = os.readlink(name, dir_fd=self.fds[-1])
        except OSError:
            return None
        self._links += 1
        if self._links > _MOST_LINKS:
            raise ToolError(f"{plain(self.shown)} goes through more than {_MOST_LINKS} links.")
        return target

    def through(self, target: str, todo: deque[str]) -> None:
        """Put a link's steps before the remaining ones. Raises OutsideRoots if it leads out."""
        steps = target.split("/")
        if target.startswith("/"):
            own = self.folder.parts
            parts = tuple(part for part in steps if part)
            if parts[: len(own)] != own:
                raise OutsideRoots(
                    f"{plain(self.shown)} goes through a link that leads out of the allowed folder."
                )
            self.restart()
            steps = list(parts[len(own) :])
        todo.extendleft(reversed(steps))

    def missing(self, name: str) -> PathNotFound:
        """The error for a missing name, with similar names."""
        where = plain("/".join([*self.names, name])[:300])
        return PathNotFound(
            f"There is no {where} in "
            f"{plain(self.folder.path)}.{near(self.fds[-1], self.names, name)}"
        )


def near(fd: int, above: Sequence[str], name: str) -> str:
    """A hint with a similar name in an opened folder; empty if there is none."""
    found: list[str] = []
    with contextlib.suppress(OSError):
        by_fold = {other.casefold(): other for other in names_in(fd, 2_000)}
        found = [
            by_fold[one]
            for one in difflib.get_close_matches(name.casefold(), by_fold, n=3, cutoff=0.7)
        ]
    return (
        f" Did you mean {', '.join(plain('/'.join([*above, one])) for one in found)}?"
        if found
        else ""
    )


def names_in(fd: int, most: int) -> list[str]:
    """Some of the names in an opened folder, without the trash and unfinished files."""
    own = again(fd)
    try:
        with os.scandir(own) as found:
            return [entry.name for entry in islice(found, most) if not hidden_away(entry.name)]
    finally:
        os.close(own)


def hidden_away(name: str) -> bool:
    """Whether this is the trash, or an unfinished file."""
    return name == TRASH or name.startswith(PART)


@contextlib.contextmanager
def descend(
    folder: RootFolder,
    parts: Sequence[str],
    shown: str,
    limits: FilesystemLimits,
    *,
    follow: bool = True,
    trash: bool = False,
) -> Iterator[ResolvedPath]:
    """Resolve a path step by step.

    The last name need not exist; all others must. `follow` says whether a link at the end is
    followed. Raises ToolError: PathNotFound, OutsideRoots, and others.
    """
    at = _Descent(folder, shown, limits)
    try:
        todo = deque(parts)
        last = ""
        while todo:
            name = todo.popleft()
            if name in ("", "."):
                continue
            if name == "..":
                at.up()
                continue
            if hidden_away(name) and not trash:
                raise ToolError(
                    f"{plain(shown)} belongs to this server. list_trash shows the trash, "
                    "and restore_file restores from it."
                )
            if any(part not in ("", ".") for part in todo):
                target = at.down(name)
            elif follow and (target := at.link(name)) is not None:
                pass  # continues with the target, which may be a name in another folder
            else:
                last = name
                break
            if target is not None:
                at.through(target, todo)
        where = (*at.names, last) if last else tuple(at.names)
        if last or not where:
            yield ResolvedPath(folder, where, at.fds[-1], shown, limits)
        else:
            yield ResolvedPath(folder, where, at.fds[-2], shown, limits)
    finally:
        at.close()


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part and part != ".")


def parts_within(folder: RootFolder, path: str) -> tuple[str, ...] | None:
    """The steps from an allowed folder to an absolute path, compared as text; None if it is not
    below it.
    """
    parts = _parts(path)
    for own in folder.spellings:
        if parts[: len(own)] == own:
            return parts[len(own) :]
    return None


def checked_path(path: str) -> str:
    """Check a path. Raises ToolError if it is invalid."""
    if "\0" in path:
        raise ToolError("A path must not contain a NUL character.")
    try:
        size = len(os.fsencode(path))
    except UnicodeEncodeError:
        raise ToolError("A path must be valid text; this one contains a lone surrogate.") from None
    if size > _MOST_PATH:
        raise ToolError(f"A path can have at most {_MOST_PATH} bytes; this one has {size}.")
    return path
