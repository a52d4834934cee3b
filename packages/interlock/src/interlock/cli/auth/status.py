"""`interlock auth status`: show the stored logins, and never a token."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import click

from ...auth.oauth.addresses import canonical
from ...auth.oauth.members import Grant
from ...auth.records import kept_grants
from ...store import Vault
from .. import exits
from ..screen import note, print_json, say, shown
from .login import place_of
from .outcomes import NOT_LOGGED_IN, address, carry_out
from .saved_logins import (
    Login,
    lasts,
    login_kept,
    login_words,
    row,
    server_of,
    vault_at,
    vault_option,
)

_HEADINGS = ("SERVER", "ACCOUNT", "ISSUER", "CLIENT", "SCOPES", "GOOD FOR", "THEN")


@click.command("status")
@click.argument("url", required=False, callback=address)
@vault_option
@click.option("--json", "machine", is_flag=True, help="Write JSON for programs.")
def status(url: str | None, place: str | None, machine: bool) -> None:
    """Show the stored logins: all of them, or those to the server at URL. Makes no request, and
    shows no token.

    The exit code is 1 if no login to that server is stored.

    \b
    interlock auth status
    interlock auth status https://shop.example/mcp --json
    """
    vault = vault_at(place)
    carry_out(lambda: _status(vault, url, machine), machine=machine)


async def _status(vault: Vault, url: str | None, machine: bool) -> int:
    try:
        found = [
            (
                server,
                account,
                grant,
                await login_kept(vault, server_of(vault, server, account, Login())),
            )
            for server, account, grant in await kept_grants(vault)
            if url is None or server == canonical(url)
        ]
        where = place_of(vault)
    finally:
        await vault.aclose()
    code = NOT_LOGGED_IN if url is not None and not found else exits.OK
    if machine:
        now = time.time()
        print_json(
            [
                {
                    **row(*one),
                    "seconds": None if one[2].expires is None else round(one[2].expires - now),
                }
                for one in found
            ]
        )
    elif not found:
        if url is None:
            say("No logins are stored. Log in: interlock auth login URL")
        else:
            say(f"No login is stored for {url}. Log in: {login_words(url)}")
    else:
        _table([_cells(server, account, grant) for server, account, grant, _ in found])
        note(f"Kept in {where}.", dim=True)
    return code


def _cells(server: str, account: str, grant: Grant) -> tuple[str, ...]:
    if grant.refresh_token is not None:
        then = "renewed"
    elif grant.expires is not None:
        then = "log in again"
    else:
        then = "-"
    bound = " (DPoP)" if grant.key is not None else ""
    return (
        server,
        account,
        grant.issuer,
        grant.client_id,
        " ".join(grant.scopes) or "-",
        lasts(grant) + bound,
        then,
    )


def _table(rows: Sequence[tuple[str, ...]]) -> None:
    """Print rows under headings. Each column is as wide as its content; empty columns are left
    out.
    """
    used = [n for n in range(len(_HEADINGS)) if any(row[n] for row in rows)]
    lines: list[Any] = [_HEADINGS, *[tuple(shown(cell) for cell in row) for row in rows]]
    widths = [max(len(line[n]) for line in lines) for n in used]
    for number, line in enumerate(lines):
        text = "  ".join(
            line[n].ljust(width) for n, width in zip(used, widths, strict=True)
        ).rstrip()
        say(text, **({"bold": True} if number == 0 else {}))
