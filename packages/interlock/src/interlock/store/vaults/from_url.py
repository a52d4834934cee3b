"""Opens the vault that a URL names, or the user's default vault."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import unquote

from ..urls import path_in
from .interface import Vault
from .user_folder import VARIABLE, default_path

_WHAT_THERE_IS = (
    "there are memory:, file:///absolute/path, file:relative/path, sqlite:///absolute/path, "
    "sqlite:relative/path, keyring:, "
    "redis://host:port/db, rediss:// and unix:///path/of/socket"
)


def open_vault(url: str | Path | None = None) -> Vault:
    """Open the vault at a URL or a file path.

    None opens the vault that the variable INTERLOCK_VAULT names, or the user's own file in the
    platform's folder for user data (`default_path`). Nothing is created before it is needed.

    Raises:
        ValueError: The URL does not name a vault.
        StoreError: The package for it is not installed, or the user has no folder for data.
    """
    if isinstance(url, Path):
        return _file(url)
    given = url if url is not None else os.environ.get(VARIABLE) or None
    if given is None:
        return _file(default_path())
    scheme, colon, rest = given.partition(":")
    match scheme.lower():
        case "memory" if colon and not rest:
            from .memory import (
                MemoryVault,  # imported late: each kind of vault loads only its own dependencies
            )

            return MemoryVault()
        case "file" if path := path_in(rest):
            return _file(Path(_plain(unquote(path))))
        case "sqlite" if path := path_in(rest):
            from .sqlite import SqliteVault  # imported late: as above

            return SqliteVault(_plain(path))
        case "keyring" if colon and not rest:
            from .keyring import KeyringVault  # imported late: as above

            return KeyringVault()
        case "redis" | "rediss" | "unix" if rest.startswith("//"):
            from .redis import RedisVault  # imported late: as above

            return RedisVault(given)
    # Do not quote the URL: it may contain a password.
    whose = "" if url is not None else f" (in {VARIABLE})"
    raise ValueError(
        f"{scheme + colon if colon else 'that'}{whose} names no vault: {_WHAT_THERE_IS}"
    )


def _file(path: Path) -> Vault:
    from .file import FileVault  # imported late: as above

    return FileVault(path)


def _plain(path: str) -> str:
    """The path without the slash that a URL has before a drive letter."""
    return path[1:] if sys.platform == "win32" and path[2:3] == ":" else path
