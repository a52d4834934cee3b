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
    """The files of some skills by their paths (with "/" between the segments), and the folders of
    the skills.
    """

    files: Mapping[str, bytes]
    folders: frozenset[str]


def read_folder(folder: str | os.PathLike[str]) -> SkillFiles:
    """Read all skills in a folder and its subfolders.

    A folder with a `SKILL.md` is a skill, with everything in it. Files outside of skills are not
    read. Names that begin with a dot and `__pycache__` are skipped. If the folder itself has a
    `SKILL.md`, it is the only skill.

    Raises:
        SkillError: The folder does not exist or has no skill; a skill exceeds the limits; or a
            skill contains a link or something else that is neither a file nor a folder.
    """
    top = Path(os.path.realpath(folder))
    if not top.is_dir():
        raise SkillError(f"{os.fspath(folder)} is not a folder.")
    is_one = (top / SKILL_MD).is_file()
    start = f"{top.name}/" if is_one else ""
    files: dict[str, bytes] = {}
    bounds = _Bounds()
    outer: dict[str, str] = {}  # each folder in a skill -> the outermost skill that contains it
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
    """Limits what is read into memory. The exact limits of each skill are checked later."""

    def __init__(self) -> None:
        self._sizes: dict[str, tuple[int, int]] = {}

    def read(self, path: str, skill: str, descriptor: int) -> bytes:
        """Read an opened file of a skill, which must be a regular file, and close it."""
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
    """Yield every folder below `top` with its names and a function that opens a file in it.

    If the system supports it, files are opened relative to the opened folder. So nobody can replace
    a folder by a link between the check and the read.
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
    """The same with paths, for systems without folder descriptors (Windows)."""
    for where, folders, files in os.walk(top, followlinks=False):
        names = _sorted_out(folders, files, lambda name, at=where: os.lstat(os.path.join(at, name)))

        def opened(name: str, at: str = where) -> int:
            return os.open(os.path.join(at, name), os.O_RDONLY | _BINARY | _NOT_FOLLOWED)

        yield _relative(where, top), names, opened


def _sorted_out(folders: list[str], files: list[str], status: Any) -> _Names:
    """Remove hidden names, and separate links from files. Changes `folders`, which guides the
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
    # Windows junctions also lead elsewhere, but are not symbolic links.
    reparse = getattr(status, "st_reparse_tag", 0)
    return stat.S_ISLNK(status.st_mode) or bool(reparse)


def _relative(where: str, top: Path) -> str:
    relative = Path(where).relative_to(top).as_posix()
    try:
        relative.encode()
    except UnicodeEncodeError:
        raise SkillError(f"the name of the folder {relative!r} is not UTF-8.") from None
    return "" if relative == "." else f"{relative}"
