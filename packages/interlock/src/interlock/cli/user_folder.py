"""The user's own folder: rules, the trust record and the log, which no project can write."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from ..store import StoreError, data_folder


def user_folder() -> Path:
    """Return the folder of the user's own rules, trust record and log, and create it.

    Raises:
        click.UsageError: It cannot be created.
    """
    try:
        folder = data_folder().parent / "host"
    except StoreError as bad:
        raise click.UsageError(str(bad)) from None
    make_folder(folder)
    return folder


def trust_record_path() -> Path:
    """Return the file of the trust record.

    Raises:
        click.UsageError: Its folder cannot be created.
    """
    return user_folder() / "trusted.json"


REGISTRY_PINS: Final = "registry.json"
"""The file in the user's folder with the digests of what was added from the registry."""


def make_folder(folder: Path) -> None:
    """Create a folder that only the user may enter.

    Raises:
        click.UsageError: It cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as bad:
        raise click.UsageError(f"The folder {folder} cannot be created: {bad.strerror}.") from None
