"""`interlock auth login`: log in with a browser, a pasted address or a code; keep the tokens."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import click

from ...auth.agents import Agent, Headless, Terminal, default_agent
from ...auth.oauth.members import Grant
from ...auth.oauth.registration import check_document
from ...auth.oauth.steps import Note
from ...store import Vault
from .. import exits
from ..screen import note, print_json, say
from .logging_in import log_in
from .outcomes import address, carry_out
from .saved_logins import (
    Login,
    account_option,
    lasts,
    row,
    vault_at,
    vault_option,
)

_SOURCES = {
    "given": "registered before",
    "document": "by its metadata document",
    "dynamic": "registered for this login",
}


@click.command("login")
@click.argument("url", callback=address)
@click.option(
    "--scope",
    "-s",
    "scopes",
    multiple=True,
    metavar="NAME",
    help="Request this scope too, besides those that the server requires.",
)
@click.option(
    "--client-id",
    metavar="ID",
    help="The client id, for servers that do not register clients dynamically.",
)
@click.option(
    "--client-secret-file", type=click.File(), help="A file with the client secret; - for stdin."
)
@click.option(
    "--client-secret-env",
    metavar="NAME",
    help="The environment variable that holds the client secret.",
)
@click.option("--issuer", metavar="URL", help="The authorization server where it is registered.")
@click.option(
    "--document",
    metavar="URL",
    help="The URL of the client's metadata document, for authorization servers that support it.",
)
@click.option(
    "--redirect-uri", metavar="URL", help="The redirect URI that the client is registered with."
)
@click.option("--device", is_flag=True, help="Show a code to enter on another device.")
@click.option(
    "--paste",
    is_flag=True,
    help="Do not open a browser: paste the final address of one on another machine.",
)
@click.option(
    "--dpop",
    is_flag=True,
    help="Bind the tokens to a key (DPoP), so that a stolen token is useless.",
)
@click.option(
    "--assume-pkce",
    is_flag=True,
    help="Accept an authorization server that supports PKCE without declaring it.",
)
@click.option(
    "--private-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Allow this host of the authorization server to have a private address.",
)
@account_option
@vault_option
@click.option("--json", "machine", is_flag=True, help="Write JSON for programs, errors too.")
@click.option("-v", "--verbose", is_flag=True, help="Show each step.")
def login(url: str, **given: Any) -> None:
    """Log in to the server at URL, and store the tokens for all other commands.

    A browser opens. Without one, the terminal shows an address to visit, and you paste the final
    address. The command first checks whether the server requires a login. Options about the client
    (--client-id and the like) are stored too, and apply to the next login.

    The exit code is 3 if the login was denied, 4 if it is not possible; `interlock auth
    explain URL` then says why.

    \b
    interlock auth login https://shop.example/mcp
    interlock auth login https://shop.example/mcp --scope orders:write
    interlock auth login https://shop.example/mcp --device
    interlock auth login https://hub.example/mcp --client-id 123 --client-secret-env HUB_SECRET
    """
    if given["device"] and given["paste"]:
        raise click.UsageError("--device and --paste exclude each other: give one of them.")
    login = _login_of(given)
    vault = vault_at(given["place"])
    carry_out(lambda: _log_in(url, login, vault, given), machine=given["machine"], url=url)


def _login_of(given: dict[str, Any]) -> Login:
    """The client settings from the command line. Raises click.UsageError."""
    secret = _secret(given["client_secret_file"], given["client_secret_env"])
    if given["client_id"] is None and (secret is not None or given["issuer"] is not None):
        raise click.UsageError(
            "A secret and an issuer belong to a client: give its --client-id too."
        )
    if given["document"] is not None:
        try:
            check_document(given["document"])
        except ValueError as bad:
            raise click.UsageError(f"--document: {bad}.") from None
    same = {
        name: given[name]
        for name in (
            "client_id",
            "issuer",
            "document",
            "redirect_uri",
            "dpop",
            "assume_pkce",
            "hosts",
        )
    }
    login = Login(client_secret=secret, **same)
    try:
        Terminal(redirect_uri=login.redirect_uri)
    except ValueError as bad:
        raise click.UsageError(f"--redirect-uri: {bad}.") from None
    return login


def _secret(file: Any, variable: str | None) -> str | None:
    """The client secret, from a source that the process list does not show. Raises
    click.UsageError.
    """
    if file is not None and variable is not None:
        raise click.UsageError(
            "--client-secret-file and --client-secret-env name two secrets: give one of them."
        )
    secret: str | None = None
    if file is not None:
        secret = file.read().strip()
    elif variable is not None:
        secret = os.environ.get(variable)
    if (file is not None or variable is not None) and not secret:
        raise click.UsageError(
            "The secret is missing from "
            f"{f'the variable {variable}' if file is None else file.name}."
        )
    return secret


async def _log_in(url: str, login: Login, vault: Vault, given: dict[str, Any]) -> int:
    def agent(whole: Login) -> Agent:
        return _agent(whole, device=given["device"], paste=given["paste"])

    try:
        done = await log_in(
            url,
            vault,
            login,
            account=given["account"],
            agent=agent,
            scopes=given["scopes"],
            device=given["device"],
            on_step=_print_step if given["verbose"] else None,
        )
        if done is None:
            _nothing_to_do(url, given["machine"])
        else:
            _show(url, given["account"], *done, vault, given["machine"])
        return exits.OK
    finally:
        await vault.aclose()


def _agent(login: Login, *, device: bool, paste: bool) -> Agent:
    if paste:
        return Terminal(redirect_uri=login.redirect_uri)
    agent = default_agent(redirect_uri=login.redirect_uri)
    if device and isinstance(agent, Headless):
        return Terminal()  # a code only has to be shown, so no terminal input is needed
    return agent


def _print_step(step: Note) -> None:
    note(
        f"  {step.step}: {step.words}" + (f" ({step.document})" if step.document else ""), dim=True
    )


def _nothing_to_do(url: str, machine: bool) -> None:
    if machine:
        print_json({"server": url, "authorization": False})
    else:
        say(f"{url} does not require a login.")


def _show(url: str, account: str, grant: Grant, login: Login, vault: Vault, machine: bool) -> None:
    data = row(url, account, grant, login)
    if machine:
        print_json({**data, "authorization": True})
        return
    say(f"Logged in to {url}" + (f" as {account}" if account else ""), fg="green")
    renewed = "; renewed automatically after that" if grant.refresh_token is not None else ""
    lines = {
        "at": grant.issuer,
        "client": f"{grant.client_id} ({_SOURCES[data['registration']]})",
        "scopes": " ".join(grant.scopes) or "none in particular",
        "good for": lasts(grant, time.time()) + renewed,
        "bound": "to a key of this log-in (DPoP)" if grant.key is not None else "",
        "kept in": place_of(vault),
    }
    for name, words in lines.items():
        if words:
            say(f"  {name:9} {words}")


def place_of(vault: Vault) -> str:
    """The location of a vault, in words."""
    path = getattr(vault, "path", None)
    kind = type(vault).__name__.removesuffix("Vault").lower()
    where = str(path) if isinstance(path, str | Path) else f"the vault in {kind}"
    if vault.sealed:
        return f"{where} (sealed)"
    if path is not None:
        return f"{where} (not encrypted, readable only by you)"
    return f"{where} (not sealed)"
