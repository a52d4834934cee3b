"""Grants of a client as records in a vault."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from .oauth.members import Grant

if TYPE_CHECKING:
    from ..store import Vault

GRANTS = "oauth grant"
"""The kind of these records."""


def read_grant(kept: bytes | None) -> Grant | None:
    """Read a record; None if it cannot be read."""
    try:
        return None if kept is None else msgspec.json.decode(kept, type=Grant)
    except (
        msgspec.DecodeError,
        UnicodeDecodeError,
    ):  # written by a newer version: logging in again does no harm
        return None


async def kept_grants(vault: Vault) -> list[tuple[str, str, Grant]]:
    """The stored grants: the server's address, the account, and the grant."""
    found = []
    for name in await vault.keys(GRANTS):
        if (grant := read_grant(await vault.get(GRANTS, name))) is not None:
            place, _, account = name.partition(" ")
            found.append((place, account, grant))
    return found
