"""Reads the index file to find submodules and paths that would lead git out of the repository."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from interlock import ToolError
from interlock.untrusted.invisible import one_line as line

from .arguments import read
from .hostile_repositories import RepositoryConfig

if TYPE_CHECKING:
    from .repositories import Repository

_MOST_INDEX = 128 * 1024 * 1024  # bytes of the listing of an index
_MOST_READ = 16 * 1024 * 1024  # bytes of an index that is cached by its digest
_AT_ONCE = sum(
    getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
)  # never blocks on a FIFO
# A path component that is empty, `.`, `..` or `.git`, in the listing of an index: git uses the
# paths of an index unchecked.
_ASTRAY = re.compile(rb"[\t/](?:\.\.?|\.git)?[/\0]", re.IGNORECASE)
# An index that takes entries from another file, or folders from objects: its bytes do not determine
# its listing.
_ELSEWHERE = (b"link\0", b"sdir\0\0\0\0")


def digest_of(folder: Path, configurations: Iterable[RepositoryConfig]) -> bytes | None:
    """The digest of an index and of the configurations that affect how git reads it.

    None if its listing does not depend on these alone, if it is not a regular file, or if it is
    large.
    """
    try:
        fd = os.open(folder / "index", os.O_RDONLY | _AT_ONCE)
    except OSError:
        return None
    with open(fd, "rb") as file:
        there = os.fstat(fd)
        if not stat.S_ISREG(there.st_mode) or there.st_size > _MOST_READ:
            return None
        data = file.read(_MOST_READ + 1)
    if len(data) > _MOST_READ or any(mark in data for mark in _ELSEWHERE):
        return None
    texts = [sha256(one.text).digest() for one in configurations]
    return sha256(b"".join([len(texts).to_bytes(8, "big"), *texts, data])).digest()


async def submodules_in(repository: Repository, digest: bytes | None) -> tuple[str, ...]:
    """The paths of the submodules in the index of a repository, cached by its digest.

    Raises ToolError for an index with paths that lead out of the work tree, and for one that is too
    large.
    """
    known = repository.git.links.get(digest) if digest is not None else None
    if known is not None:
        return known
    listed = await repository.ask("ls-files", "--stage", "-z", most=_MOST_INDEX)
    if listed.cut:
        raise ToolError("The repository is too large to check its submodules.")
    if _ASTRAY.search(b"\0" + listed.output):
        raise ToolError(
            f"The index of {line(repository.name)} has paths that lead out of it or into "
            ".git, so it is not used."
        )
    found = tuple(
        read(entry).partition("\t")[2]
        for entry in listed.output.split(b"\0")
        if entry.startswith(b"160000 ")
    )
    if digest is not None:
        repository.git.links.put(digest, found)
    return found
