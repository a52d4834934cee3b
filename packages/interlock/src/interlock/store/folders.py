"""The data folder of a program's user."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import StoreError
from .vaults.user_folder import data_folder


def own_path(variable: str, *parts: str) -> Path:
    """Return the path in an environment variable, or else a path in the user's data folder.

    This creates nothing. `own_path("MY_NOTES", "notes.sqlite")` is the value of MY_NOTES, where `~`
    is a home folder, or else `interlock/notes.sqlite` in $XDG_DATA_HOME or ~/.local/share,
    ~/Library/Application Support or %LOCALAPPDATA%. Raises StoreError with the name of the variable
    if the user has no home folder.
    """
    named = os.environ.get(variable)
    try:
        return Path(named).expanduser() if named else data_folder().parent.joinpath(*parts)
    except (RuntimeError, StoreError):
        raise StoreError(f"This user has no folder for data. Name a place in {variable}.") from None
