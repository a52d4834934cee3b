"""Switches of single tools, and the patterns in an entry that they stand for."""

from __future__ import annotations

import glob
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase

from interlock.configs import RawEntry


def switched(
    raw: RawEntry,
    listed: Sequence[str],
    on: Collection[str],
    *,
    offers_later: bool,
    names: tuple[str, str] = ("tools", "without"),
) -> RawEntry:
    """Return an entry that offers exactly these tools.

    Args:
        raw: The entry.
        listed: The names of all tools that the server lists now.
        on: The names of those that are offered.
        offers_later: Whether tools that the server adds later are offered. If not, the entry names
            the tools that are; otherwise it names those that are not.
        names: The keys of the format for the offered and for the excluded tools.
    """
    only, without = names
    entry = {key: value for key, value in raw.items() if key not in (only, without)}
    if not offers_later:
        entry[only] = [glob.escape(name) for name in listed if name in on]
        return entry
    before = raw.get(without)
    unrelated = [
        pattern
        for pattern in (before if isinstance(before, list) else [])
        if isinstance(pattern, str) and not any(fnmatchcase(name, pattern) for name in listed)
    ]
    excluded = [glob.escape(name) for name in listed if name not in on]
    if excluded or unrelated:
        entry[without] = [*unrelated, *excluded]
    return entry


def is_offered(name: str, tools: Sequence[str] | None, without: Sequence[str]) -> bool:
    """Return whether a tool passes the patterns of an entry."""
    wanted = tools is None or any(fnmatchcase(name, pattern) for pattern in tools)
    return wanted and not any(fnmatchcase(name, pattern) for pattern in without)
