"""`interlock auth logout`: revoke the tokens at the authorization server, and delete them."""

from __future__ import annotations

import click

from ... import types as t
from ...auth.records import kept_grants
from ...store import Vault
from .. import exits
from ..screen import note, say
from .outcomes import NOT_LOGGED_IN, address, carry_out
from .saved_logins import account_option, keep_login, kept_server, vault_at, vault_option


@click.command("logout")
@click.argument("url", required=False, callback=address)
@click.option("--all", "everything", is_flag=True, help="Log out of all servers.")
@click.option(
    "--client",
    "forget_client",
    is_flag=True,
    help="Delete the client registration too.",
)
@account_option
@vault_option
def logout(
    url: str | None, everything: bool, forget_client: bool, account: str, place: str | None
) -> None:
    """Log out of the server at URL: revoke its tokens at the authorization server, and delete them
    here.

    If they cannot be revoked, they are still deleted here and stay valid until they expire; then
    the exit code is 4. It is 1 if nothing was stored.

    \b
    interlock auth logout https://shop.example/mcp
    interlock auth logout --all
    """
    if everything == (url is not None):
        raise click.UsageError("Give the URL of a server, or --all.")
    vault = vault_at(place)
    carry_out(lambda: _log_out(vault, url, account, forget_client))


async def _log_out(vault: Vault, url: str | None, account: str, forget_client: bool) -> int:
    try:
        wanted = (
            [(url, account)]
            if url is not None
            else [(server, whose) for server, whose, _ in await kept_grants(vault)]
        )
        code = exits.OK
        for server, whose in wanted:
            code = max(code, await _leave(vault, server, whose, forget_client))
        if not wanted:
            say("No logins are stored.")
        return code
    finally:
        await vault.aclose()


async def _leave(vault: Vault, url: str, account: str, forget_client: bool) -> int:
    server, grant = await kept_server(vault, url, account)
    if grant is None:
        note(f"No login is stored for {url}.")
        return NOT_LOGGED_IN
    code = exits.OK
    try:
        if await server.revoke():
            say(f"Logged out of {url}; the tokens were revoked at {grant.issuer}.")
        else:
            say(
                f"Logged out of {url}; {grant.issuer} does not revoke tokens, so they "
                "stay valid until they expire."
            )
    except t.Unreachable as bad:
        note(f"Deleted here, but not revoked at {grant.issuer}: {bad}", fg="yellow")
        code = exits.UNREACHABLE
    await keep_login(vault, server, None)
    if forget_client:
        await vault.remove("oauth client", grant.issuer)
    return code
