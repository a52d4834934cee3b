"""File watcher for Python files, pages of apps and skills: events if watchfiles is installed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from ...skills import SKILL_MD

_NOT_OURS = {"__pycache__", "node_modules", "site-packages", "venv", "build", "dist"}
_SUFFIXES = (".py", ".html", ".htm")  # Python, and the pages of apps (`Server.app`)
_PAUSE = 0.4  # seconds between two looks

Snapshot = dict[str, tuple[int, int]]


def is_source(path: str, folders: Sequence[Path]) -> bool:
    """Whether a path is a Python file, a page or a skill's file that somebody writes: nothing
    hidden, installed or built.
    """
    for folder in folders:
        if Path(path).is_relative_to(folder):
            parts = Path(path).relative_to(folder).parts
            if any(part.startswith(".") or part in _NOT_OURS for part in parts):
                return False
            return path.lower().endswith(_SUFFIXES) or _is_of_a_skill(Path(path), folder)
    return False


def _is_of_a_skill(path: Path, folder: Path) -> bool:
    """Whether a file is a SKILL.md, or lies within a folder that has one."""
    if path.name == SKILL_MD:
        return True
    around = [parent for parent in path.parents if parent.is_relative_to(folder)]
    return any((parent / SKILL_MD).is_file() for parent in around)


async def changes(folders: Sequence[Path], *, poll: bool = False) -> AsyncIterator[set[str]]:
    """The paths that have changed, as often as some have; `poll` looks by itself even where the
    system could tell.
    """
    watched = real(folders)
    if not poll:
        try:
            from watchfiles import awatch
        except ImportError:
            pass
        else:
            async for found in awatch(
                *watched,
                watch_filter=lambda _, path: is_source(path, watched),
                debounce=400,
                step=50,
            ):
                yield {path for _, path in found}
            return
    async for seen in _looking(watched):
        yield seen


def real(folders: Sequence[Path]) -> list[Path]:
    """Folders by the paths under which the system tells of them."""
    return [Path(os.path.realpath(folder)) for folder in folders]


async def _looking(folders: Sequence[Path]) -> AsyncIterator[set[str]]:
    before = look(folders)
    while True:
        await asyncio.sleep(_PAUSE)
        now = await asyncio.to_thread(look, folders)
        if different := {
            path for path in before.keys() | now.keys() if before.get(path) != now.get(path)
        }:
            yield different
        before = now


def look(folders: Sequence[Path]) -> Snapshot:
    """The Python files, pages and skills in folders, with the time and size of each."""
    found: Snapshot = {}
    for folder in folders:
        skills: set[str] = set()
        for where, names, files in os.walk(folder):
            names[:] = [
                name for name in names if not name.startswith(".") and name not in _NOT_OURS
            ]
            if SKILL_MD in files or os.path.dirname(where) in skills:
                skills.add(where)
            for file in files:
                path = os.path.join(where, file)
                wanted = file.lower().endswith(_SUFFIXES) or where in skills
                if wanted and not file.startswith("."):
                    try:
                        status = os.stat(path)
                    except OSError:
                        continue  # it has just gone
                    found[path] = (status.st_mtime_ns, status.st_size)
    return found
