"""Where a server is: a Python file, and the object in it."""

from __future__ import annotations

from pathlib import Path


def split_target(text: str) -> tuple[Path, str | None]:
    """`FILE[:object]` as a file and a name; the colon of a Windows drive is none of ours."""
    path, colon, name = text.rpartition(":")
    if colon and name.isidentifier() and path.endswith(".py"):
        return Path(path), name
    return Path(text), None
