"""What a repository may bring along against whoever looks into it, found before git is run: links, alternates, configuration."""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from interlock import ToolError

from .engine import ROOT, Git, Settings, failed
from .words import line, read

MOST_CONFIGURATION = 1024 * 1024  # bytes
MOST_PROGRAMS = 1_000  # filters and drivers that a configuration names
_MOST_ENTRIES = 200_000  # of a .git folder, its objects left out
_MOST_ALTERNATES = 50
_UNWALKED = frozenset({"modules", "lfs", "annex"})  # other repositories' own, which git is not let into here

# The names that a configuration makes up: what a program of it is called, and what stands there instead. `git merge-file` is
# what git itself does where no driver is named; `cat` shows a file as it is.
_PROGRAMS: tuple[tuple[re.Pattern[str], tuple[tuple[str, str], ...]], ...] = (
    (re.compile(r"filter\.(.+)\.[^.]+", re.DOTALL), (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false"))),
    (re.compile(r"diff\.(.+)\.(?:command|textconv)", re.DOTALL), (("command", ""), ("textconv", "cat"))),
    (re.compile(r"merge\.(.+)\.(?:driver|recursive)", re.DOTALL), (("driver", "git merge-file --quiet %A %O %B"), ("recursive", "text"))),
    (re.compile(r"credential\.(.+)\.helper", re.DOTALL), (("helper", ""),)),
    (re.compile(r"gpg\.(.+)\.program", re.DOTALL), (("program", "false"),)),
    (re.compile(r"hook\.(.+)\.[^.]+", re.DOTALL), (("enabled", "false"), ("event", ""), ("command", "false"))),
)


async def disarmed(git: Git, folders: Iterable[Path]) -> Settings:
    """The settings that stand over the programs which the configurations in these git folders name.

    Raises ToolError for a configuration that includes other files, and for one that is no plain file.
    """
    found: dict[tuple[str, str], None] = {}
    for folder in dict.fromkeys(folders):
        for name in ("config", "config.worktree"):
            for key in await _keys(git, folder / name):
                section = key.partition(".")[0]
                if section in ("include", "includeif"):
                    raise ToolError(
                        f"The repository's {name} includes other files ({line(key)}), which is not followed. Take that out of it."
                    )
                for pattern, instead in _PROGRAMS:
                    if match := pattern.fullmatch(key):
                        found |= {(f"{section}.{match[1]}.{what}", value): None for what, value in instead}
    if len(found) > 4 * MOST_PROGRAMS:
        raise ToolError(f"The repository's configuration names more than {MOST_PROGRAMS} filters and drivers.")
    return tuple(found)


async def _keys(git: Git, path: Path) -> list[str]:
    """The keys of a configuration, sections and variables in lower case."""
    if not await asyncio.to_thread(_is_plain, path):
        return []
    command = ["config", "--file", str(path), "--no-includes", "--null", "--name-only", "--list"]
    ended = await git.run(command, cwd=ROOT, variables={"GIT_DIR": os.devnull})
    if ended.code:
        raise failed(ended.code, ended.errors)
    return [key for key in read(ended.output).split("\0") if key]


def _is_plain(path: Path) -> bool:
    """Whether a file is there. Raises ToolError where it is none that can be read without harm."""
    try:
        there = path.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(there.st_mode) or there.st_size > MOST_CONFIGURATION:
        raise ToolError(f"{path.name} of the repository is no plain file, or too large.")
    return True


def check_links(folder: Path, allowed: Iterable[Path]) -> None:
    """Look through a git folder. Raises ToolError where a link of it or the objects that it borrows lie elsewhere than in `allowed`."""
    within = [folder, *allowed]
    for entry in _entries(folder):
        if entry.is_symlink() and not _lies_in(Path(entry.path), within):
            raise ToolError(
                f"The repository has a link that leads out of it ({line(os.path.relpath(entry.path, folder))}), and is not opened."
            )
    seen: set[Path] = set()
    waiting = [folder / "objects"]
    while waiting:
        for other in _alternates(waiting.pop()):
            if not _lies_in(other, within):
                raise ToolError("The repository borrows objects from elsewhere (objects/info/alternates), and is not opened.")
            if other not in seen:
                seen.add(other)
                waiting.append(other)
        if len(seen) > _MOST_ALTERNATES:
            raise ToolError("The repository borrows objects from too many places.")


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """What lies in a git folder; of the objects only the folders and packs, for each of the others is named by what it holds."""
    waiting = [(os.fspath(folder), 0, False)]
    left = _MOST_ENTRIES
    while waiting:
        where, depth, objects = waiting.pop()
        with os.scandir(where) as found:
            for entry in found:
                left -= 1
                if not left:
                    raise ToolError("The repository has too many files in its git folder to be looked through.")
                yield entry
                walked = entry.name in ("pack", "info") if objects else not (depth == 0 and entry.name in _UNWALKED)
                if walked and entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, depth + 1, objects or (depth == 0 and entry.name == "objects")))


def _alternates(objects: Path) -> list[Path]:
    path = objects / "info" / "alternates"
    try:
        if not _is_plain(path):
            return []
        names = path.read_bytes().splitlines()
    except NotADirectoryError:
        return []
    # A name in quotes is one that git would unquote first: as it stands it lies nowhere, and is refused.
    return [Path(objects, os.fsdecode(name)) for name in names if name and not name.startswith(b"#")]


def _lies_in(path: Path, within: Iterable[Path]) -> bool:
    try:
        real = path.resolve()
    except (OSError, RuntimeError):  # a ring of links
        return False
    return any(real.is_relative_to(one) for one in within)
