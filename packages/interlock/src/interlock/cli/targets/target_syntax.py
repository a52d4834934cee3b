"""Parses targets and headers as they are typed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click


def split_target(text: str) -> tuple[Path, str | None]:
    """Split `FILE[:object]` into a file and a name. The colon of a Windows drive does not count."""
    path, colon, name = text.rpartition(":")
    if colon and name.isidentifier() and path.endswith(".py"):
        return Path(path), name
    return Path(text), None


def header_lines(headers: Sequence[str]) -> dict[str, str]:
    """The headers from the command line, by name. Raises click.UsageError for an invalid header."""
    given: dict[str, str] = {}
    for header in headers:
        name, colon, value = header.partition(":")
        if not colon or not name.strip():
            raise click.UsageError(f"Write a header as NAME: VALUE, not {header!r}.")
        given[name.strip()] = value.strip()
    return given
