"""API keys of models in the OS keyring (extra `keyring`)."""

from __future__ import annotations

import re
from typing import Final

from ..store import StoreError
from ..store.vaults import os_keyring

PREFIX: Final = "keyring:"
"""The beginning of a `key` in a configuration of models that names an entry of the keyring."""
SERVICE: Final = "interlock models"
"""The name under which the keyring has the keys."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def check_key_name(name: str) -> str:
    """Return the name of a key. Raises ValueError unless it is short and plain."""
    if not _NAME.fullmatch(name):
        raise ValueError(
            "the name of a key has up to 64 letters, digits, dots, hyphens and underscores"
        )
    return name


def keyring_problem() -> str:
    """Return why no key can be kept in the keyring of this machine; empty if it can."""
    try:
        os_keyring.find(True)
    except StoreError as bad:
        return str(bad)
    return ""


def read_key(name: str) -> str:
    """Return a key.

    Raises:
        StoreError: There is no keyring, it fails, or it has no such key.
    """
    found = os_keyring.read(os_keyring.find(True), check_key_name(name), SERVICE)
    if not found:
        raise StoreError(f"the keyring has no key {name}")
    return found


def write_key(name: str, key: str) -> None:
    """Keep a key; an earlier one with the name is replaced.

    Raises:
        StoreError: There is no keyring, or it fails.
        ValueError: The name is not valid.
    """
    os_keyring.write(os_keyring.find(True), check_key_name(name), key, SERVICE)


def delete_key(name: str) -> None:
    """Delete a key, if there is one.

    Raises:
        StoreError: There is no keyring, or it fails.
    """
    ring = os_keyring.find(True)
    if os_keyring.read(ring, check_key_name(name), SERVICE) is not None:
        os_keyring.drop(ring, name, SERVICE)
