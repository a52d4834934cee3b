"""Reading skill folders from disk without following symbolic links."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from ...skills.entries import MOST_BYTES, check_size
from ...skills.names import SKILL_MD
from ...types.errors import SkillError

_NOT_FOLLOWED = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK"))
_BINARY = getattr(os, "O_BINARY", 0)


class SkillFiles(Struct, frozen=True):
    """The files of some skills, by their paths with "/" between the segments, and their folders."""

    files: Mapping[str, bytes]
    folders: frozenset[str]


def read_folder(folder: str | os.PathLike[str]) -> SkillFiles:
    """Read every skill beneath a folder whole.

    A folder with a `SKILL.md` is a skill, with everything beneath it; other files are no part of
    any skill and are not read. Names that begin with a dot and `__pycache__` are left out. Where
    the folder itself has a `SKILL.md`, it is the one skill.

    Raises:
        SkillError: There is no such folder or no skill in it, a skill exceeds the limits, or one
            has a link, or something else that is not a file or a folder.
    """
    top = Path(os.path.realpath(folder))
    if not top.is_dir():
        raise SkillError(f"{os.fspath(folder)} is not a folder.")
    is_one = (top / SKILL_MD).is_file()
    start = f"{top.name}/" if is_one else ""
    files: dict[str, bytes] = {}
    bounds = _Bounds()
    outer: dict[str, str] = {}  # each folder within a skill -> the outermost skill around it
    for where, names, opened in _walk(top):
        place = f"{start}{where}".rstrip("/")
        around = outer.get(place.rpartition("/")[0])
        if around is None and SKILL_MD not in names.files:
            continue
        outer[place] = around or place
        if names.links:
            raise SkillError(
                f"{top / where / sorted(names.links)[0]} is a link. Skills are served without "
                "following links; put the file itself there."
            )
        for name in names.files:
            path = f"{place}/{name}" if place else name
            files[path] = bounds.read(path, outer[place], opened(name))
    if not files:
        raise SkillError(
            f"{os.fspath(folder)} has no skill: no folder beneath it has a {SKILL_MD}."
        )
    return SkillFiles(files, frozenset(outer))


class _Names(Struct):
    files: list[str]
    links: list[str]


class _Bounds:
    """Stops the reading of files before they fill the memory; the limits of each skill are checked
    later.
    """

    def __init__(self) -> None:
        self._sizes: dict[str, tuple[int, int]] = {}

    def read(self, path: str, skill: str, descriptor: int) -> bytes:
        """Read one opened file of a skill, which must be a regular one, and close it."""
        count, size = self._sizes.get(skill, (0, 0))
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise SkillError(f"{path} is not a regular file, so it cannot be part of a skill.")
            count = count + 1
            size = size + status.st_size
            try:
                check_size(count, size)
            except SkillError as bad:
                raise SkillError(f"The skill {skill} cannot be served: {bad}") from None
            self._sizes[skill] = (count, size)
            with os.fdopen(os.dup(descriptor), "rb") as file:
                return file.read(MOST_BYTES + 1)
        finally:
            os.close(descriptor)


def _walk(top: Path) -> Iterator[tuple[str, _Names, Any]]:
    """Every folder beneath `top` with its names and a function that opens one of them.

    Where the system allows it, files are opened relative to the opened folder, so that nobody can
    put a link in the place of a folder between the look and the reading.
    """
    if not hasattr(os, "fwalk"):
        yield from _walk_by_path(top)
        return
    for where, folders, files, descriptor in os.fwalk(top, follow_symlinks=False):
        names = _sorted_out(
            folders,
            files,
            lambda name, at=descriptor: os.stat(name, dir_fd=at, follow_symlinks=False),
        )

        def opened(name: str, at: int = descriptor) -> int:
            return os.open(name, os.O_RDONLY | _NOT_FOLLOWED, dir_fd=at)

        yield _relative(where, top), names, opened


def _walk_by_path(top: Path) -> Iterator[tuple[str, _Names, Any]]:
    """The same by paths, for systems without descriptors of folders (Windows)."""
    for where, folders, files in os.walk(top, followlinks=False):
        names = _sorted_out(folders, files, lambda name, at=where: os.lstat(os.path.join(at, name)))

        def opened(name: str, at: str = where) -> int:
            return os.open(os.path.join(at, name), os.O_RDONLY | _BINARY | _NOT_FOLLOWED)

        yield _relative(where, top), names, opened


def _sorted_out(folders: list[str], files: list[str], status: Any) -> _Names:
    """Leave out hidden names, and tell links from files; `folders` is changed, which guides the
    walk.
    """
    names = _Names([], [])
    kept: list[str] = []
    for name in sorted(folders):
        if _is_left_out(name):
            continue
        if _is_link(status(name)):
            names.links.append(name)
        else:
            kept.append(name)
    folders[:] = kept
    for name in sorted(files):
        if not _is_left_out(name):
            (names.links if _is_link(status(name)) else names.files).append(name)
    return names


def _is_left_out(name: str) -> bool:
    return name.startswith(".") or name == "__pycache__"


def _is_link(status: os.stat_result) -> bool:
    # Junctions of Windows lead elsewhere too, and are not symbolic links.
    reparse = getattr(status, "st_reparse_tag", 0)
    return stat.S_ISLNK(status.st_mode) or bool(reparse)


def _relative(where: str, top: Path) -> str:
    relative = Path(where).relative_to(top).as_posix()
    try:
        relative.encode()
    except UnicodeEncodeError:
        raise SkillError(f"the name of the folder {relative!r} is not UTF-8.") from None
    return "" if relative == "." else f"{relative}"
