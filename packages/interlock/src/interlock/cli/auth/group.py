"""The command group `interlock auth`."""

from __future__ import annotations

from typing import Final

import click

from ..groups import LazyGroup, Row

_CLIENT = "Log in to servers"
_ISSUER = "Run an authorization server"

COMMANDS: Final[dict[str, Row]] = {
    "login": Row(
        "Log in to a server, and keep the tokens.", _CLIENT, "interlock.cli.auth.login:login"
    ),
    "logout": Row(
        "Revoke the tokens, and delete them.", _CLIENT, "interlock.cli.auth.logout:logout"
    ),
    "status": Row("Show the stored logins.", _CLIENT, "interlock.cli.auth.status:status"),
    "token": Row(
        "Print a valid access token, for scripts.", _CLIENT, "interlock.cli.auth.token:token"
    ),
    "explain": Row(
        "Diagnose the authorization of a server, and say who can fix it.",
        _CLIENT,
        "interlock.cli.auth.explain:explain",
    ),
    "serve": Row("Run a small authorization server.", _ISSUER, extra="issuer"),
    "account": Row("Manage the accounts of that server.", _ISSUER, extra="issuer"),
}


class AuthGroup(LazyGroup):
    """The commands of `interlock auth`."""

    rows = COMMANDS
    prefix = "auth."


@click.command("auth", cls=AuthGroup, no_args_is_help=True)
def auth() -> None:
    """Log in to servers that require it. All other commands then use the stored tokens.

    \b
    interlock auth explain https://shop.example/mcp
    interlock auth login https://shop.example/mcp
    interlock call https://shop.example/mcp search query=tea
    interlock auth status
    interlock auth logout https://shop.example/mcp
    """
