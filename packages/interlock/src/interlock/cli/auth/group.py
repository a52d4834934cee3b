"""The group `interlock auth`, whose commands are imported when one is called."""

from __future__ import annotations

from typing import Final

import click

from ..program import Row, Table

_CLIENT, _ISSUER = "Log in to servers", "Be an authorization server"
COMMANDS: Final[dict[str, Row]] = {
    "login": Row(".auth.login", "login", "Log in to a server, and keep the tokens.", _CLIENT),
    "logout": Row(".auth.logout", "logout", "Give the tokens back, and forget them.", _CLIENT),
    "status": Row(".auth.status", "status", "Show what is kept of log-ins.", _CLIENT),
    "token": Row(".auth.token", "token", "Print a token that is good now, for scripts.", _CLIENT),
    "explain": Row(
        ".auth.explain",
        "explain",
        "Say what is wrong with a server's authorization, and who has to repair it.",
        _CLIENT,
    ),
    "serve": Row("", "serve", "Run a small authorization server.", _ISSUER, "issuer"),
    "account": Row("", "account", "Manage the people who may log in there.", _ISSUER, "issuer"),
}


class Group(Table):
    """The commands of `interlock auth`."""

    rows = COMMANDS
    prefix = "auth."


@click.command("auth", cls=Group, no_args_is_help=True)
def auth() -> None:
    """Log in to servers that ask who is there; all other commands then use what is kept.

    \b
    interlock auth explain https://shop.example/mcp
    interlock auth login https://shop.example/mcp
    interlock call https://shop.example/mcp search query=tea
    interlock auth status
    interlock auth logout https://shop.example/mcp
    """
