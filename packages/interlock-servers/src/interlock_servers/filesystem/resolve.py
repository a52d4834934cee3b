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

TRASH = ".trash"  # in each allowed folder; only the tools for the trash go there
PART = ".interlock-part"  # what is being written; a file that is left of this name means nothing
_MOST_LINKS = 40
_MOST_PATH = 4096  # bytes
_MOST_TRIES = 64  # while somebody else changes what is being opened
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
    """What something is, in a word: file, folder, link, fifo, socket or device."""
    return _KINDS.get(stat.S_IFMT(mode), "device")


def _escaped(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char) or (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    )


def told(name: str) -> str:
    """A name as data: as it is, but for bytes that are no text, which are written out."""
    return (
        name
        if name.isprintable()
        else "".join(_escaped(c) if 0xDC80 <= ord(c) <= 0xDCFF else c for c in name)
    )


def in_words(bad: OSError) -> str:
    """What the system said, without the path that it names."""
    return bad.strerror or os.strerror(bad.errno or 0)


class RootFolder:
    """An allowed folder, opened.

    What it is called later, or what stands in its place then, changes nothing.
    """

    def __init__(self, fd: int, path: str, given: str | None = None) -> None:
        self.fd = fd
        self.path = path
        self.parts = _parts(path)
        self.spellings = {self.parts, _parts(given)} if given else {self.parts}
        self.device = os.fstat(fd).st_dev

    @classmethod
    def at(cls, path: str) -> RootFolder:
        """Open the folder of a path that the owner of this server named. Raises ToolError."""
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
            raise ToolError(f"{plain(path)} is a part of the kernel and no folder of files.")
        return cls(fd, real, absolute)

    def close(self) -> None:
        """Let go of it."""
        os.close(self.fd)

    def uri(self, parts: Sequence[str]) -> str:
        """The file:// URI of something below it."""
        return self.uri_of("/" + "/".join((*self.parts, *parts)))

    @staticmethod
    def uri_of(path: str) -> str:
        """The file:// URI of an absolute path."""
        return "file://" + quote(os.fsencode(path))


class ResolvedPath:
    """Where a path leads: a folder, opened, and a name in it; the allowed folder itself has no
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
        """Its name within the folder that holds it."""
        return self.parts[-1] if self.parts else None

    @property
    def uri(self) -> str:
        """Its file:// URI."""
        return self.folder.uri(self.parts)

    def stat(self) -> os.stat_result | None:
        """What is there, a link as a link; None where there is nothing."""
        if self.name is None:
            return os.fstat(self.parent)
        try:
            return os.stat(self.name, dir_fd=self.parent, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def missing(self, what: str) -> PathNotFound:
        """Say that there is no such thing, and what there is that is called almost so."""
        hint = near(self.parent, self.parts[:-1], self.name or "")
        return PathNotFound(f"There is no {what} {plain(self.shown[:300])}.{hint}")

    def open_file(self, *, changing: bool = False) -> int:
        """Open the file for reading.

        Raises ToolError for what is none, or must not be touched; FIFOs and devices are never
        waited for.
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
                    continue  # somebody has put something else into its place
                raise refused(self.shown, bad) from None
            try:
                self.check_file(os.fstat(fd), changing=changing)
            except ToolError:
                os.close(fd)
                raise
            return fd
        raise ToolError(f"{plain(self.shown)} keeps changing. Try again.")

    def check_file(self, found: os.stat_result, *, changing: bool = False) -> None:
        """Raise ToolError for what is not a file, or one that must not be touched."""
        if not stat.S_ISREG(found.st_mode):
            raise ToolError(f"{plain(self.shown)} is a {kind_of(found.st_mode)} and no file.")
        if found.st_dev != self.folder.device and not self.limits.mounts:
            raise OutsideRoots(
                f"{plain(self.shown)} lies on another file system that is mounted here."
            )
        allowed = {"refuse": False, "read": not changing, "allow": True}[self.limits.hard_links]
        if found.st_nlink > 1 and not allowed:
            raise ToolError(
                f"{plain(self.shown)} has {found.st_nlink} names (hard links), and another one "
                "may be outside of the allowed folder. "
                "INTERLOCK_FILESYSTEM_HARD_LINKS=read or =allow permits such files."
            )

    def open_folder(self) -> int:
        """Open the folder that is there, with a position of its own. Raises ToolError."""
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
    """The descriptor, unless it leads to another file system, or into the kernel; then it is
    closed.

    Raises Outside.
    """
    if os.fstat(fd).st_dev != folder.device and (not limits.mounts or is_special(fd)):
        os.close(fd)
        raise OutsideRoots(
            f"{plain(shown)} is another file system that is mounted here. "
            "INTERLOCK_FILESYSTEM_MOUNTS=1 lets such in."
        )
    return fd


def refused(shown: str, bad: OSError) -> ToolError:
    """What the system has against opening something, in words."""
    if bad.errno == errno.EXDEV:
        return OutsideRoots(
            f"{plain(shown)} leads to another file system that is mounted here. "
            "INTERLOCK_FILESYSTEM_MOUNTS=1 lets such in."
        )
    return ToolError(f"{plain(shown[:200])}: {in_words(bad)}.")


class _Descent:
    """The folders from an allowed one down to where a path leads, all opened, so that `..` needs no
    name.
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
        """Back to the allowed folder."""
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
        """Go into a folder; where there is a link in its place, say what it points to.

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
        """What a link points to; None if there is none."""
        try:
            target = os.readlink(name, dir_fd=self.fds[-1])
        except OSError:
            return None
        self._links += 1
        if self._links > _MOST_LINKS:
            raise ToolError(f"{plain(self.shown)} goes through more than {_MOST_LINKS} links.")
        return target

    def through(self, target: str, todo: deque[str]) -> None:
        """Put the steps of a link before those that are left. Raises Outside where it leads out."""
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
        """Say that there is nothing of a name, and what there is that is like it."""
        where = plain("/".join([*self.names, name])[:300])
        return PathNotFound(
            f"There is no {where} in "
            f"{plain(self.folder.path)}.{near(self.fds[-1], self.names, name)}"
        )


def near(fd: int, above: Sequence[str], name: str) -> str:
    """What there is in an opened folder that is called almost so, as a question; empty where there
    is nothing.
    """
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
    """Some of the names in an opened folder, but for the trash and what is being written."""
    own = again(fd)
    try:
        with os.scandir(own) as found:
            return [entry.name for entry in islice(found, most) if not hidden_away(entry.name)]
    finally:
        os.close(own)


def hidden_away(name: str) -> bool:
    """Whether this is the trash, or a file that is being written."""
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
    """Go down to where a path leads.

    The last name need not exist; all before it must. `follow` says whether a link at the end counts
    as what it points to. Raises ToolError: NotThere, Outside, and others.
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
                    f"{plain(shown)} is this server's own. What is in the trash list_trash shows, "
                    "and restore_file brings it back."
                )
            if any(part not in ("", ".") for part in todo):
                target = at.down(name)
            elif follow and (target := at.link(name)) is not None:
                pass  # goes on with what it points to, which may be a name in another folder
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
    """The steps from an allowed folder to an absolute path, as it is written; None where it does
    not begin with that folder.
    """
    parts = _parts(path)
    for own in folder.spellings:
        if parts[: len(own)] == own:
            return parts[len(own) :]
    return None


def checked_path(path: str) -> str:
    """The path, unless it can be none. Raises ToolError."""
    if "\0" in path:
        raise ToolError("A path has no NUL character.")
    try:
        size = len(os.fsencode(path))
    except UnicodeEncodeError:
        raise ToolError("A path is text, and this holds half a character.") from None
    if size > _MOST_PATH:
        raise ToolError(f"A path has at most {_MOST_PATH} bytes, and this one has {size}.")
    return path
