"""`interlock auth token`: print a valid access token, for scripts."""

from __future__ import annotations

import sys
import time

import click

from ...store import Vault
from .. import exits
from ..screen import note
from .outcomes import NOT_LOGGED_IN, address, carry_out
from .saved_logins import account_option, kept_server, login_words, vault_at, vault_option


@click.command("token")
@click.argument("url", callback=address)
@click.option("--refresh", is_flag=True, help="Renew it first, even if it is still valid.")
@click.option("--header", is_flag=True, help="Print it as a header.")
@account_option
@vault_option
def token(url: str, refresh: bool, header: bool, account: str, place: str | None) -> None:
    """Print the access token for the server at URL, renewed if it expires soon.

    The exit code is 1 if no login is stored, or if the token has expired and cannot be renewed.

    \b
    curl -H "$(interlock auth token https://shop.example/mcp --header)" https://shop.example/mcp
    """
    vault = vault_at(place)
    carry_out(lambda: _print(vault, url, account, refresh, header), url=url)


async def _print(vault: Vault, url: str, account: str, refresh: bool, header: bool) -> int:
    try:
        server, grant = await kept_server(vault, url, account)
        again = f"Log in: {login_words(url, account)}"
        if grant is None:
            note(f"Error: No login is stored for {url}. {again}", fg="red")
            return NOT_LOGGED_IN
        stale = grant.is_stale(time.time())
        if stale or refresh:
            if grant.refresh_token is None:
                note(
                    f"Error: The token {'has ended' if stale else 'is good'} and cannot be "
                    f"renewed. {again}",
                    fg="red",
                )
                return NOT_LOGGED_IN
            grant = await server.renew()
    finally:
        await vault.aclose()
    if sys.stdout.isatty():
        note("This is a secret: whoever has it can act as you until it expires.", fg="yellow")
    if grant.key is not None:
        note(
            "The token is bound to a key that stays here. Without the key it is useless (DPoP).",
            fg="yellow",
        )
    click.echo(
        f"Authorization: {grant.token_type} {grant.access_token}" if header else grant.access_token
    )
    return exits.OK
