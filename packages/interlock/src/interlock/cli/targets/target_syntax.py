"""Parses targets and headers as they are typed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click


def split_target(text: str) -> tuple[Path, str | None]:
    """`FILE[:object]` as a file and a name; the colon of a Windows drive is none of ours."""
    path, colon, name = text.rpartition(":")
    if colon and name.isidentifier() and path.endswith(".py"):
        return Path(path), name
    return Path(text), None


def header_lines(headers: Sequence[str]) -> dict[str, str]:
    """Headers as they were typed, by their names. Raises click.UsageError for what is none."""
    given: dict[str, str] = {}
    for header in headers:
        name, colon, value = header.partition(":")
        if not colon or not name.strip():
            raise click.UsageError(f"Write a header as NAME: VALUE, not {header!r}.")
        given[name.strip()] = value.strip()
    return given
