"""`interlock auth serve`: a small authorization server."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sys
from collections.abc import MutableMapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from interlock import Limits, listening_socket, serve_http
from interlock.cli.screen import note
from interlock.store import StoreError, open_vault

from .accounts import accounts_in, done, file_option, folder, new_password

if TYPE_CHECKING:
    from interlock_issuer import Accounts, Issuer

_LOOPBACK = "127.0.0.1"


@click.command("serve")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8800,
    show_default=True,
    help="The port; 0 picks a free one.",
)
@click.option(
    "--host",
    default=_LOOPBACK,
    show_default=True,
    help="The address to listen on; if it is not a loopback address, --url is required.",
)
@click.option(
    "--url",
    help="The public address of the server; https if a reverse proxy in front of it does TLS.",
)
@click.option(
    "--account",
    "names",
    multiple=True,
    metavar="NAME",
    help="Create this account first if there are none; asks for a password.",
)
@file_option
@click.option(
    "--store",
    metavar="URL",
    help=(
        "Where log-ins, clients and keys are kept: sqlite:///path, redis://host, memory:.  [a file]"
    ),
)
@click.option(
    "--resource",
    "resources",
    multiple=True,
    metavar="URL",
    help="Issue tokens only for this server; repeat it for several.",
)
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    metavar="NAME=SENTENCE",
    help="A scope, and its description for the consent page.",
)
@click.option("--no-registration", is_flag=True, help="Turn off dynamic client registration.")
@click.option(
    "--dpop",
    type=click.Choice(["off", "allowed", "required"]),
    default="allowed",
    show_default=True,
    help="Whether tokens can or must be bound to keys (DPoP).",
)
@click.option(
    "--proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="Trust X-Forwarded-For from this proxy.",
)
def serve(
    port: int,
    host: str,
    url: str | None,
    names: Sequence[str],
    file: Path | None,
    store: str | None,
    **given: Any,
) -> None:
    """Run an authorization server for MCP servers and clients, where users log in with accounts.

    It supports logins with PKCE, refresh tokens, device codes, consent pages, client registration,
    revocation and key rotation. Its data survives a restart, unless --store is memory:. Stop it
    with Ctrl-C.

    \b
    interlock auth serve --account ada
    interlock auth serve --scope notes:read='Read your notes' --resource http://127.0.0.1:8000/mcp
    interlock auth account list
    """
    if find_spec("httptools") is None:
        raise click.ClickException("Serving needs the HTTP server: pip install 'interlock[http]'")
    accounts = accounts_in(file)
    done(lambda: _prepared(accounts, names))
    try:
        door = listening_socket(host, port)
    except OSError as bad:
        raise click.ClickException(bad.strerror or str(bad)) from None
    with contextlib.closing(door):
        issuer = _issuer(url or _address(door), accounts, store, given)
        asyncio.run(_until_signalled(issuer, door, given["proxies"]))


async def _prepared(accounts: Accounts, names: Sequence[str]) -> None:
    """Make the accounts that are missing. Raises click.UsageError where there are none at all."""
    known = {account.name for account in await accounts.list()}
    for name in names:
        if name.casefold().strip() not in known:
            await accounts.add(name, new_password(name))
    if not known and not names:
        raise click.UsageError(
            "Nobody can log in: there are no accounts. Create one with --account NAME, "
            "or `interlock auth account add NAME`."
        )


def _issuer(url: str, accounts: Accounts, store: str | None, given: dict[str, Any]) -> Issuer:
    """The authorization server. Raises click.UsageError for what cannot be."""
    from interlock_issuer import Issuer, LocalUsers  # late: they need the extra `issuer`

    try:
        return Issuer(
            url,
            LocalUsers(accounts),
            vault=open_vault(store or f"sqlite://{folder()}/issuer.db"),
            resources=given["resources"] or None,
            scopes=_sentences(given["scopes"]),
            registration=not given["no_registration"],
            dpop=given["dpop"],
        )
    except ImportError as bad:
        raise click.ClickException(
            f"The authorization server needs more packages: pip install 'interlock[issuer]' ({bad})"
        ) from None
    except ValueError as bad:
        raise click.UsageError(f"{str(bad)[0].upper()}{str(bad)[1:]}.") from None
    except StoreError as bad:
        raise click.ClickException(str(bad)) from None


def _sentences(scopes: Sequence[str]) -> dict[str, str]:
    """Scopes with what the consent page says of each. Raises click.UsageError."""
    found = {}
    for scope in scopes:
        name, mark, sentence = scope.partition("=")
        if not name or not mark or not sentence:
            raise click.UsageError(f"A scope is written NAME=SENTENCE, not {scope!r}.")
        found[name] = sentence
    return found


def _address(door: socket.socket) -> str:
    host, port = door.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


async def _until_signalled(issuer: Issuer, door: socket.socket, proxies: Sequence[str]) -> None:
    """Serve until a signal says that it is enough."""
    app: Any = _App(issuer)  # which is an endpoint as far as the web server needs one
    serving = asyncio.ensure_future(
        serve_http(
            app,
            door,
            grace=1.0,
            proxies=proxies,
            on_ready=lambda _: _print_instructions(issuer.settings.url),
        )
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM) if sys.platform != "win32" else ():
        loop.add_signal_handler(number, serving.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await serving


def _print_instructions(url: str) -> None:
    note(f"The authorization server is at {url}", fg="green")
    note("To accept its tokens in a server:")
    note(
        '    from interlock.auth import Guard, Jwt\n    server.run("http", '
        f'guard=Guard(Jwt("{url}")))'
    )
    note("To log in as a user of that server: interlock auth login http://127.0.0.1:8000/mcp")


class _App:
    """The issuer as the web server wants its apps: with bounds, opened and closed."""

    limits = Limits()

    def __init__(self, issuer: Issuer) -> None:
        self._issuer = issuer

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Answer a request."""
        await self._issuer(scope, receive, send)

    async def open(self) -> None:
        """Nothing has to be there before the first request."""

    async def drain(self, grace: float) -> None:
        """No request takes long."""

    async def aclose(self) -> None:
        """Let go of files and connections."""
        await self._issuer.aclose()
        await self._issuer.vault.aclose()
