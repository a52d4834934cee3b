"""`interlock data backup`, `restore` and `check`: backups of data files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import click

from ...store.backups import DataFile, back_up_data, check_data, restore_data
from ...store.errors import StoreError
from ..screen import note, say

_FAILED: Final = 1
_path = click.Path(path_type=Path)


@click.command("backup")
@click.argument("file", type=_path)
@click.argument("copy", type=_path)
def backup(file: Path, copy: Path) -> None:
    """Copy the data file FILE to COPY, which must not exist.

    Programs may go on writing to FILE: the copy is as FILE was at one point in time. A vault that
    is encrypted stays encrypted, so keep its key too. The exit code is 1 if it fails.

    \b
    interlock data backup store.db store-monday.db
    """
    _run(lambda: back_up_data(file, copy), f"{copy} is a backup of {file}")


@click.command("restore")
@click.argument("copy", type=_path)
@click.argument("file", type=_path)
def restore(copy: Path, file: Path) -> None:
    """Copy the backup COPY to FILE, which must not exist.

    Stop the programs that use FILE first, and move FILE away. A restored store refuses
    confirmations that were asked for before, because it may have forgotten that they were used. The
    exit code is 1 if it fails.

    \b
    interlock data restore store-monday.db store.db
    """
    _run(lambda: restore_data(copy, file), f"{file} is restored from {copy}")


@click.command("check")
@click.argument("files", nargs=-1, required=True, type=_path)
def check(files: tuple[Path, ...]) -> None:
    """Check that each of FILES is a complete data file that this version reads.

    The exit code is 1 if one is not.

    \b
    interlock data check store.db vault.db
    """
    failed = False
    for path in files:
        try:
            found = check_data(path)
        except StoreError as bad:
            note(f"Error: {bad}", fg="red")
            failed = True
        else:
            say(f"{path} is in order ({_words(found)})")
    if failed:
        click.get_current_context().exit(_FAILED)


def _run(work: Callable[[], DataFile], done: str) -> None:
    try:
        found = work()
    except StoreError as bad:
        note(f"Error: {bad}", fg="red")
        click.get_current_context().exit(_FAILED)
    say(f"{done} ({_words(found)})")


def _words(found: DataFile) -> str:
    words = f"{found.kind}, version {found.version}"
    if found.newest is not None and found.version < found.newest:
        words += f"; it becomes version {found.newest} when it is next used"
    return words
