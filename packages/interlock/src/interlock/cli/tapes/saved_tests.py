"""Saves a recording as a test: FILE.py for pytest, FILE.toml for `interlock test`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from ...redaction import shown_arguments, url_without_secrets
from ...tape import Tape, TapeError, TapeFile, suite_text
from ...tape.saved_test import write_test
from ..screen import WARNING

KINDS: Final = (".py", ".toml")
"""The endings of the files of saved tests."""


def saved_test_path(_: click.Context, __: click.Parameter, value: Path | None) -> Path | None:
    """Check the ending of the file of a saved test, as the callback of an option."""
    if value is not None and value.suffix not in KINDS:
        raise click.BadParameter(f"{value} ends with neither .py nor .toml.")
    return value


def load_conversations(path: Path, connection: str | None = None) -> dict[str, Tape]:
    """Return the messages of each connection of a tape, or of one, by its name.

    Raises:
        click.ClickException: The tape cannot be read, or has no such connection.
    """
    try:
        with TapeFile(path) as file:
            for problem in file.problems:
                click.echo(f"{WARNING}{path}: {problem}", err=True)
            known = list(dict.fromkeys(row.connection for row in file.rows if row.sender))
            if not known:
                raise click.ClickException(f"{path} has no messages.")
            if connection is not None and connection not in known:
                raise click.UsageError(
                    f"{path} has no connection {connection!r}; it has {', '.join(known)}."
                )
            chosen = known if connection is None else [connection]
            return {name: file.conversation(name) for name in chosen}
    except TapeError as bad:
        raise click.ClickException(str(bad)) from None


def save_test(
    path: Path,
    tape: Path,
    *,
    command: Sequence[str] = (),
    url: str = "",
    connection: str | None = None,
    volatile: Sequence[str] = (),
    ignore: Sequence[str] = (),
) -> None:
    """Write a test that repeats a recording.

    Args:
        path: The file of the test. It must not exist.
        tape: The tape.
        command: The command of the server; empty for one at a URL.
        url: The URL of the server; empty for a command.
        connection: The connection of the tape; None for all.
        volatile: More members whose values differ in each run.
        ignore: Paths that are not compared.

    Raises:
        click.ClickException: The test cannot be written, or the tape cannot be read.
    """
    try:
        if path.suffix == ".py":
            write_test(path, tape, command, url_without_secrets(url), connection, volatile, ignore)
        else:
            conversations = {
                f"connection {name}": each
                for name, each in load_conversations(tape, connection).items()
            }
            run = f" -- {shlex.join(shown_arguments(command))}" if command else ""
            text = suite_text(
                conversations,
                target=url_without_secrets(url),
                remark=f"Saved from {tape.name}. Run it: interlock test {path.name}{run}",
                volatile=volatile,
                ignore=ignore,
            )
            with open(path, "x", encoding="utf-8") as file:
                file.write(text)
    except OSError as bad:
        raise click.ClickException(f"{path}: {bad.strerror}") from None
    click.echo(f"Saved {path}.", err=True)
