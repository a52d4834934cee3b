"""Detects hostile repositories before git runs: links, alternates, and configuration that runs
programs.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from interlock import ToolError
from interlock.untrusted.invisible import one_line as line

from .arguments import read
from .runner import ROOT, Git, Settings, failed

MOST_CONFIGURATION = 1024 * 1024  # bytes
MOST_PROGRAMS = 1_000  # filters and drivers that a configuration names
# bytes of the key names in a configuration, in which a long section name can repeat
_MOST_KEYS = 16 * 1024 * 1024
_CAREFUL = sum(
    getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
)
_MOST_ENTRIES = 200_000  # entries of a .git folder, without its objects
_MOST_ALTERNATES = 50
_UNWALKED = frozenset(
    {"modules", "lfs", "annex"}
)  # data of other repositories and tools, which git must not access here

# Keys with names that a configuration can invent: the keys that run programs, and their harmless
# values. `git merge-file` is git's default driver; `cat` shows a file unchanged.
_PROGRAMS: tuple[tuple[re.Pattern[str], tuple[tuple[str, str], ...]], ...] = (
    (
        re.compile(r"filter\.(.+)\.[^.]+", re.DOTALL),
        (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")),
    ),
    (
        re.compile(r"diff\.(.+)\.(?:command|textconv)", re.DOTALL),
        (("command", ""), ("textconv", "cat")),
    ),
    (
        re.compile(r"merge\.(.+)\.(?:driver|recursive)", re.DOTALL),
        (("driver", "git merge-file --quiet %A %O %B"), ("recursive", "text")),
    ),
    (re.compile(r"credential\.(.+)\.helper", re.DOTALL), (("helper", ""),)),
    (re.compile(r"gpg\.(.+)\.program", re.DOTALL), (("program", "false"),)),
    (
        re.compile(r"hook\.(.+)\.[^.]+", re.DOTALL),
        (("enabled", "false"), ("event", ""), ("command", "false")),
    ),
)


class RepositoryConfig(NamedTuple):
    """A configuration of a repository: the name of its file, and its content."""

    name: str
    text: bytes


def configurations_in(folders: Iterable[Path]) -> list[RepositoryConfig]:
    """Read the current configurations in these git folders.

    Raises ToolError for one that is not a regular file.
    """
    names = (
        (folder / name, name)
        for folder in dict.fromkeys(folders)
        for name in ("config", "config.worktree")
    )
    return [
        RepositoryConfig(name, text) for path, name in names if (text := _plain(path)) is not None
    ]


async def disarmed(git: Git, configurations: Iterable[RepositoryConfig]) -> Settings:
    """The settings that override the programs named in these configurations.

    Results are cached by the content of a configuration, so that no timestamp has to be trusted.
    Raises ToolError for a configuration that includes other files.
    """
    found: dict[tuple[str, str], None] = {}
    for one in configurations:
        digest = sha256(one.text).digest()
        settings = git.disarmed.get(digest)
        if settings is None:
            settings = _instead(one.name, await _keys(git, one))
            git.disarmed.put(digest, settings)
        found |= dict.fromkeys(settings)
    if len(found) > 4 * MOST_PROGRAMS:
        raise ToolError(
            f"The repository's configuration names more than {MOST_PROGRAMS} filters and drivers."
        )
    return tuple(found)


def _instead(name: str, keys: Iterable[str]) -> Settings:
    """The settings that override the programs of a configuration with these keys.

    Raises ToolError if it includes other files.
    """
    found: dict[tuple[str, str], None] = {}
    for key in keys:
        section = key.partition(".")[0]
        if section in ("include", "includeif"):
            raise ToolError(
                f"The repository's {name} includes other files ({line(key)}), which is "
                "not supported. Remove the include."
            )
        for pattern, instead in _PROGRAMS:
            if match := pattern.fullmatch(key):
                found |= {(f"{section}.{match[1]}.{what}", value): None for what, value in instead}
    return tuple(found)


async def _keys(git: Git, configuration: RepositoryConfig) -> list[str]:
    """The keys of a configuration, with sections and variables in lower case."""
    command = ["config", "--file", "-", "--no-includes", "--null", "--name-only", "--list"]
    ended = await git.run(
        command,
        cwd=ROOT,
        variables={"GIT_DIR": os.devnull},
        feed=configuration.text,
        most=_MOST_KEYS,
    )
    if ended.code:
        raise failed(ended.code, ended.errors.replace("standard input", configuration.name))
    if ended.cut:  # programs after the cut would not be overridden
        raise ToolError(f"The repository's {configuration.name} has too many or too long names.")
    return [key for key in read(ended.output).split("\0") if key]


def _plain(path: Path) -> bytes | None:
    """The content of a file; None if there is none.

    Raises ToolError for a file that is not safe to read.
    """
    if not _is_plain(path):
        return None
    fd = os.open(path, os.O_RDONLY | _CAREFUL)  # the file may have been replaced by now
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise _no_plain(path)
        text = file.read(MOST_CONFIGURATION + 1)
    if len(text) > MOST_CONFIGURATION:
        raise _no_plain(path)
    return text


def _is_plain(path: Path) -> bool:
    """Whether a file exists. Raises ToolError for one that is not safe to read."""
    try:
        there = path.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(there.st_mode) or there.st_size > MOST_CONFIGURATION:
        raise _no_plain(path)
    return True


def _no_plain(path: Path) -> ToolError:
    return ToolError(f"{path.name} of the repository is not a plain file, or too large.")


def check_links(folder: Path, allowed: Iterable[Path]) -> None:
    """Check the links and alternates of a git folder.

    Raises ToolError if a link, or the objects that it borrows, are outside `allowed`.
    """
    within = [folder, *allowed]
    for link in _links(os.fspath(folder)):
        if not _lies_in(Path(link), within):
            raise ToolError(
                "The repository has a link that leads out of it "
                f"({line(os.path.relpath(link, folder))}), so it is not opened."
            )
    seen: set[Path] = set()
    waiting = [folder / "objects"]
    while waiting:
        for other in _alternates(waiting.pop()):
            if not _lies_in(other, within):
                raise ToolError(
                    "The repository borrows objects from elsewhere "
                    "(objects/info/alternates), so it is not opened."
                )
            if other not in seen:
                seen.add(other)
                waiting.append(other)
        if len(seen) > _MOST_ALTERNATES:
            raise ToolError("The repository borrows objects from too many places.")


def _links(folder: str) -> list[str]:
    """The symbolic links in a git folder. Of the objects only folders and packs are checked: the
    name of a loose object depends on its content.

    Raises ToolError if there are too many files. This runs for each call, so it must be fast.
    """
    found: list[str] = []
    waiting = [(folder, 0, False)]
    left = _MOST_ENTRIES
    while waiting:
        where, depth, objects = waiting.pop()
        with os.scandir(where) as entries:
            for entry in entries:
                left -= 1
                if not left:
                    raise ToolError(
                        "The repository has too many files in its git folder to check them."
                    )
                if entry.is_symlink():
                    found.append(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    name = entry.name
                    if name in ("pack", "info") if objects else depth or name not in _UNWALKED:
                        waiting.append(
                            (entry.path, depth + 1, objects or (not depth and name == "objects"))
                        )
    return found


def _alternates(objects: Path) -> list[Path]:
    path = objects / "info" / "alternates"
    try:
        names = (_plain(path) or b"").splitlines()
    except NotADirectoryError:
        return []
    # Git would unquote a quoted name first. Here it stays quoted, does not exist, and is refused.
    return [
        Path(objects, os.fsdecode(name)) for name in names if name and not name.startswith(b"#")
    ]


def _lies_in(path: Path, within: Iterable[Path]) -> bool:
    try:
        real = path.resolve()
    except (OSError, RuntimeError):  # a cycle of links
        return False
    return any(real.is_relative_to(one) for one in within)
