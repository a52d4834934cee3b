"""Seeing that Python files change: told by the system where watchfiles is installed, by looking again and again elsewhere."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

_NOT_OURS = {"__pycache__", "node_modules", "site-packages", "venv", "build", "dist"}
_PAUSE = 0.4  # seconds between two looks

Snapshot = dict[str, tuple[int, int]]


def is_source(path: str, folders: Sequence[Path]) -> bool:
    """Whether a path is a Python file that somebody writes: nothing hidden, nothing installed or built."""
    if not path.endswith(".py"):
        return False
    for folder in folders:
        if Path(path).is_relative_to(folder):
            parts = Path(path).relative_to(folder).parts
            return not any(part.startswith(".") or part in _NOT_OURS for part in parts)
    return False


async def changes(folders: Sequence[Path], *, poll: bool = False) -> AsyncIterator[set[str]]:
    """The paths that have changed, as often as some have; `poll` looks by itself even where the system could tell."""
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
    """The Python files in folders, with the time and size of each."""
    found: Snapshot = {}
    for folder in folders:
        for where, names, files in os.walk(folder):
            names[:] = [
                name for name in names if not name.startswith(".") and name not in _NOT_OURS
            ]
            for file in files:
                path = os.path.join(where, file)
                if file.endswith(".py") and not file.startswith("."):
                    try:
                        status = os.stat(path)
                    except OSError:
                        continue  # it has just gone
                    found[path] = (status.st_mtime_ns, status.st_size)
    return found
