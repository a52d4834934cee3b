"""File watcher for Python files, pages of apps and skills."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from pathlib import Path

from ...skills import SKILL_MD
from ...watching import Stamp, file_changes, stamps

_NOT_OURS = {"__pycache__", "node_modules", "site-packages", "venv", "build", "dist"}
_SUFFIXES = (".py", ".html", ".htm")  # Python, and the pages of apps (`Server.app`)
_PAUSE = 0.4  # the poll interval in seconds, if the system sends no events


def changes(folders: Sequence[Path]) -> AsyncIterator[set[str]]:
    """The paths of changed source files, each time some have changed."""
    # the real paths, which the system's events contain
    watched = [Path(os.path.realpath(folder)) for folder in folders]
    return file_changes(partial(look, watched), every=_PAUSE, folders=watched)


def look(folders: Sequence[Path]) -> dict[str, Stamp]:
    """The files that an author writes in these folders: Python files, pages of apps and skills,
    without hidden, installed and built files.
    """
    return stamps(_sources(folders))


def _sources(folders: Sequence[Path]) -> Iterator[str]:
    for folder in folders:
        skills: set[str] = set()
        for where, names, files in os.walk(folder):
            names[:] = [
                name for name in names if not name.startswith(".") and name not in _NOT_OURS
            ]
            if SKILL_MD in files or os.path.dirname(where) in skills:
                skills.add(where)
            for file in files:
                wanted = file.lower().endswith(_SUFFIXES) or where in skills
                if wanted and not file.startswith("."):
                    yield os.path.join(where, file)
