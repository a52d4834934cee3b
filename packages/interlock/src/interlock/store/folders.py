"""The folder in which a program keeps data of its user."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import StoreError
from .vaults.user_folder import data_folder


def own_path(variable: str, *parts: str) -> Path:
    """The path that a variable of the environment names, else one in the user's own folder for
    data.

    Nothing is made there.

    `own_path("MY_NOTES", "notes.sqlite")` is what MY_NOTES says, where `~` stands for a home, and
    else `interlock/notes.sqlite` in $XDG_DATA_HOME or ~/.local/share, ~/Library/Application Support
    or %LOCALAPPDATA%. Raises StoreError, in words that name the variable, where there is no home to
    look in.
    """
    named = os.environ.get(variable)
    try:
        return Path(named).expanduser() if named else data_folder().parent.joinpath(*parts)
    except (RuntimeError, StoreError):
        raise StoreError(f"This user has no folder for data. Name a place in {variable}.") from None
