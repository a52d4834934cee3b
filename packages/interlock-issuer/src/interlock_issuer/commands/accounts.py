"""`interlock auth account`: the people who may log in at `interlock auth serve`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlock.cli import exits
from interlock.cli.screen import note, print_json, say, shown
from interlock.store import StoreError, data_folder, make_folder

if TYPE_CHECKING:
    from interlock_issuer import Accounts

file_option = click.option(
    "--accounts",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file with the accounts.  [a file of your own]",
)


def folder() -> Path:
    """Where an authorization server of this user keeps what it has to keep.

    Made where it is missing. Raises StoreError.
    """
    place = data_folder().parent / "issuer"
    make_folder(place, private=True)
    return place


def accounts_in(file: Path | None) -> Accounts:
    """The accounts in a file, or in the user's own.

    Raises click.ClickException where they cannot be had.
    """
    from interlock_issuer import Accounts  # late: it needs argon2

    try:
        return Accounts(file or folder() / "accounts.db")
    except ImportError:
        raise click.ClickException(
            "Accounts need argon2-cffi: pip install 'interlock[issuer]'"
        ) from None
    except StoreError as bad:
        raise click.ClickException(str(bad)) from None


def new_password(name: str) -> str:
    """A password, typed twice at a terminal, or the next line of stdin; never an argument.

    Raises click.UsageError.
    """
    if sys.stdin.isatty():
        password: str = click.prompt(
            f"Password for {name}", hide_input=True, confirmation_prompt=True, err=True
        )
        return password
    line = sys.stdin.readline().rstrip("\r\n")
    if not line:
        raise click.UsageError(
            f"The password of {name} is missing: write it to stdin, on a line of its own."
        )
    return line


def done(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Do something with accounts; what cannot be done is said in a sentence,
    with the exit code 1."""
    from interlock.store import StoreError  # late: as above
    from interlock_issuer import BadAccount  # late: as above

    try:
        asyncio.run(work())
    except BadAccount as bad:
        raise click.ClickException(f"{str(bad)[0].upper()}{str(bad)[1:]}.") from None
    except StoreError as bad:
        raise click.ClickException(f"{str(bad)[0].upper()}{str(bad)[1:]}.") from None


@click.group("account")
def account() -> None:
    """Manage the accounts that can log in at `interlock auth serve`.

    Passwords are asked for, or read from stdin.
    """


@account.command("add")
@click.argument("name")
@click.option("--display", metavar="TEXT", help="The full name of the user.")
@file_option
def add(name: str, display: str | None, file: Path | None) -> None:
    """Create an account for NAME."""
    accounts = accounts_in(file)
    password = new_password(name)

    async def work() -> None:
        made = await accounts.add(name, password, display=display)
        say(f"{made.name} can log in now.")

    done(work)


@account.command("remove")
@click.argument("name")
@file_option
def remove(name: str, file: Path | None) -> None:
    """Remove the account of NAME and end its sessions."""
    accounts = accounts_in(file)

    async def work() -> None:
        if not await accounts.remove(name):
            raise click.ClickException(f"There is no account {name}.")
        say(f"{name} can no longer log in.")

    done(work)


@account.command("passwd")
@click.argument("name")
@file_option
def passwd(name: str, file: Path | None) -> None:
    """Change the password of NAME and end the account's sessions."""
    accounts = accounts_in(file)
    password = new_password(name)

    async def work() -> None:
        await accounts.passwd(name, password)
        say(f"{name} has a new password.")

    done(work)


@account.command("list")
@file_option
@click.option("--json", "machine", is_flag=True, help="Write JSON for machines.")
def list_(file: Path | None, machine: bool) -> None:
    """List the accounts."""
    accounts = accounts_in(file)

    async def work() -> None:
        found = await accounts.list()
        if machine:
            print_json(
                [
                    {
                        "name": each.name,
                        "subject": each.subject,
                        "display": each.display,
                        "created": each.created,
                    }
                    for each in found
                ]
            )
            return
        for each in found:
            say(
                each.name
                + (f"  {shown(each.display)}" if each.display and each.display != each.name else "")
            )
        if not found:
            note("There are no accounts. Create one: interlock auth account add NAME")

    done(work)
    click.get_current_context().exit(exits.OK)
