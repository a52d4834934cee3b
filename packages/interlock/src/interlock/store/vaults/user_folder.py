"""The folder for a user's own vaults, by the conventions of the platform."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ..errors import StoreError

VARIABLE = "INTERLOCK_VAULT"
"""The environment variable that names the user's vault."""


def default_path() -> Path:
    """The user's own file. Raises StoreError if the user has no folder for data."""
    return data_folder() / "secrets"


def data_folder() -> Path:
    """The folder for a user's vaults: `interlock/vault` in $XDG_DATA_HOME, ~/Library/Application
    Support or %LOCALAPPDATA%.
    """
    try:
        if sys.platform == "win32":
            data = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        elif sys.platform == "darwin":
            data = Path.home() / "Library" / "Application Support"
        else:
            named = Path(os.environ.get("XDG_DATA_HOME") or "")  # a relative path is ignored
            data = named if named.is_absolute() else Path.home() / ".local" / "share"
    except RuntimeError:
        raise StoreError(
            f"this user has no home, and so no vault of their own: name one in {VARIABLE}, or "
            "`memory:`"
        ) from None
    return data / "interlock" / "vault"
