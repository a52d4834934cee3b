"""The command group `interlock admin`."""

from __future__ import annotations

from typing import Final

import click

from ..groups import LazyGroup, Row

_SEE = "See"
_DO = "Do"

COMMANDS: Final[dict[str, Row]] = {
    "workers": Row("Show the processes.", _SEE, "interlock.cli.admin.commands:workers"),
    "sessions": Row("Show the sessions.", _SEE, "interlock.cli.admin.commands:sessions"),
    "calls": Row("Show the calls that run.", _SEE, "interlock.cli.admin.commands:calls"),
    "suspended": Row(
        "Show the calls that wait for an answer.", _SEE, "interlock.cli.admin.commands:suspended"
    ),
    "upstreams": Row("Show the mounted servers.", _SEE, "interlock.cli.admin.commands:upstreams"),
    "end": Row("End a session or a call.", _DO, "interlock.cli.admin.commands:end"),
    "drain": Row(
        "End a worker, or the whole server, after its calls.",
        _DO,
        "interlock.cli.admin.commands:drain",
    ),
    "log-level": Row("Change the log level.", _DO, "interlock.cli.admin.commands:log_level"),
}


class AdminGroup(LazyGroup):
    """The commands of `interlock admin`."""

    rows = COMMANDS
    prefix = "admin."


@click.command("admin", cls=AdminGroup, no_args_is_help=True)
def admin() -> None:
    """See what a running server does, and end it in parts or as a whole.

    SERVER is the folder of the admin sockets, which the server was given with --admin and only its
    owner can use, or the URL of the path that it was given with --admin-path. For a URL, the secret
    is in INTERLOCK_ADMIN_SECRET.

    \b
    interlock run shop.py --http :8000 --workers 4 --admin /run/shop
    interlock admin calls /run/shop
    interlock admin end /run/shop 4711-12
    interlock admin calls https://shop.example.com/admin
    """
