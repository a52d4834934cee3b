"""The command group `interlock data`."""

from __future__ import annotations

from typing import Final

import click

from ..groups import LazyGroup, Row

_FILES = "Data files"
_KEYS = "Keys"

COMMANDS: Final[dict[str, Row]] = {
    "backup": Row(
        "Copy a data file, also while it is in use.", _FILES, "interlock.cli.data.files:backup"
    ),
    "restore": Row(
        "Put a backup where a program expects its file.",
        _FILES,
        "interlock.cli.data.files:restore",
    ),
    "check": Row(
        "Check that data files are complete and undamaged.",
        _FILES,
        "interlock.cli.data.files:check",
    ),
    "rotate-key": Row(
        "Encrypt a vault with another key.", _KEYS, "interlock.cli.data.keys:rotate_key"
    ),
}


class DataGroup(LazyGroup):
    """The commands of `interlock data`."""

    rows = COMMANDS
    prefix = "data."


@click.command("data", cls=DataGroup, no_args_is_help=True)
def data() -> None:
    """Back up, restore and check what Interlock stores in files: stores, vaults, the accounts of an
    authorization server, the log of the host. Redis has tools of its own.

    \b
    interlock data backup store.db store-monday.db
    interlock data check store-monday.db
    interlock data restore store-monday.db store.db
    """
