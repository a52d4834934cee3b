"""The files in requirements/ that pip installs from, read line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_PIN = re.compile(r"([A-Za-z0-9._-]+)==([^ ;]+)")


def problems(lock: Path) -> Iterator[str]:
    """Everything that is wrong with a lock, one line each: a missing pin or hash, or an address."""
    if not lock.exists():
        yield f"{lock.name}: is missing"
        return
    for entry in _entries(lock):
        at = f"{lock.name}: {entry.split(' --hash')[0]}"
        if "://" in entry:
            yield f"{at}: names an address"
        elif entry.startswith("#"):
            yield f"{at}: is a comment, which may say too much"
        elif entry.startswith("-"):
            yield f"{at}: is an option"
        elif not _PIN.match(entry):
            yield f"{at}: is not pinned"
        elif "--hash=sha256:" not in entry:
            yield f"{at}: has no hash"


def pins(lock: Path) -> dict[str, str]:
    """Each distribution of the lock and its version."""
    return {found[1]: found[2] for entry in _entries(lock) if (found := _PIN.match(entry))}


def _entries(lock: Path) -> list[str]:
    joined = re.sub(r"\s*\\\n\s*", " ", lock.read_text(encoding="utf-8"))
    return [line.strip() for line in joined.splitlines() if line.strip()]
