"""`interlock data rotate-key`: key rotation of vaults."""

from __future__ import annotations

import asyncio
from typing import Final

import click

from ...store import FileVault, RedisVault, SqliteVault, open_vault
from ...store.errors import StoreError
from ..screen import note, say

_FAILED: Final = 1


@click.command("rotate-key")
@click.option(
    "--vault",
    "place",
    metavar="URL",
    help=(
        "The vault: file:///path, sqlite:///path, redis://host.  "
        "[INTERLOCK_VAULT, or a file of your own]"
    ),
)
def rotate_key(place: str | None) -> None:
    """Encrypt a vault anew.

    The variable INTERLOCK_VAULT_KEY holds the new key and the old one, with a comma between them:
    the first one encrypts, all of them decrypt. Without the variable, the vault gets a new key in
    the system's keyring. Programs that know only the old key cannot open the vault from then on, so
    give them both keys first. The exit code is 1 if it fails.

    \b
    INTERLOCK_VAULT_KEY=NEW,OLD interlock data rotate-key --vault sqlite:///srv/vault.db
    """
    try:
        vault = open_vault(place)
        if not isinstance(vault, FileVault | SqliteVault | RedisVault):
            raise click.UsageError("--vault: a vault in memory or in the keyring has no such key.")
        asyncio.run(_rotate(vault))
    except ValueError as bad:
        raise click.UsageError(f"{bad}.") from None
    except StoreError as bad:
        note(f"Error: {bad}", fg="red")
        click.get_current_context().exit(_FAILED)
    say("The vault is encrypted with the new key.")


async def _rotate(vault: FileVault | SqliteVault | RedisVault) -> None:
    try:
        await vault.rotate_key()
    finally:
        await vault.aclose()
