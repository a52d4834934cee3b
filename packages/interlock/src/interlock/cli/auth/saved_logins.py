"""Stored logins in the user's own vault, and the tokens that all commands take from it."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import click
import msgspec
from msgspec import Struct

from ... import types as t
from ...auth import OAuth
from ...auth.client import Access
from ...auth.oauth.challenges import find, read_challenges
from ...auth.oauth.errors import Unauthorized
from ...auth.oauth.members import Grant, Source
from ...auth.oauth.steps import Note, ShowCode
from ...http11.fetch import Authorized, Request, Response
from ...store import Vault, open_vault
from ...store.errors import StoreError

if TYPE_CHECKING:
    from ...auth.agents import Agent

_LOGINS = "oauth login"  # the kind of records in the vault
vault_option = click.option(
    "--vault",
    "place",
    metavar="URL",
    help=(
        "Where tokens are stored: file:///path, sqlite:///path, keyring:, redis://host.  "
        "[INTERLOCK_VAULT, or a file of your own]"
    ),
)
account_option = click.option(
    "--account",
    default="",
    metavar="NAME",
    help="The account, if there are several logins to the server.",
)


class Login(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The client settings of a login, stored with its tokens, because only the same client can
    refresh them.
    """

    client_id: str | None = None
    client_secret: str | None = None
    issuer: str | None = None
    document: str | None = None
    redirect_uri: str | None = None
    dpop: bool = False
    assume_pkce: bool = False
    hosts: tuple[str, ...] = ()


def vault_at(place: str | None) -> Vault:
    """The vault at this location, or the user's own. Raises click.UsageError, StoreError."""
    try:
        return open_vault(place)
    except ValueError as bad:
        raise click.UsageError(f"--vault: {bad}.") from None


def server_of(
    vault: Vault,
    url: str,
    account: str,
    login: Login,
    *,
    agent: Callable[[], Agent] | None = None,
    scopes: Sequence[str] = (),
    device: bool = False,
    on_step: Callable[[Note], None] | None = None,
) -> Access:
    """The authorization for a server, with the client settings of a login. Without `agent`, the
    user cannot be asked to log in.
    """
    whole = OAuth(
        client_id=login.client_id,
        client_secret=login.client_secret,
        issuer=login.issuer,
        document=login.document,
        name="Interlock command line",
        device=device,
        agent=agent or (lambda: NobodyAsked(url, account)),
        scopes=scopes,
        vault=vault,
        account=account,
        dpop=login.dpop,
        hosts=login.hosts,
        assume_pkce=login.assume_pkce,
        on_step=on_step,
    )
    return whole.to(url)


async def login_kept(vault: Vault, server: Access) -> Login | None:
    """The client settings of the last login."""
    kept = await vault.get(_LOGINS, server.name)
    try:
        return None if kept is None else msgspec.json.decode(kept, type=Login)
    except msgspec.DecodeError:  # written by a newer version
        return None


async def keep_login(vault: Vault, server: Access, login: Login | None) -> None:
    """Store the client settings of a login; None deletes them."""
    if login is None or login == Login():
        await vault.remove(_LOGINS, server.name)
    else:
        await vault.put(_LOGINS, server.name, msgspec.json.encode(login))


async def kept_server(vault: Vault, url: str, account: str) -> tuple[Access, Grant | None]:
    """The authorization for a server with the settings of the last login, and its grant."""
    server = server_of(vault, url, account, Login())
    login = await login_kept(vault, server)
    if login is not None:
        server = server_of(vault, url, account, login)
    return server, await server.grant()


def login_words(url: str, account: str = "", scopes: Sequence[str] = ()) -> str:
    """The command that logs in."""
    words = ["interlock", "auth", "login", url]
    for scope in scopes:
        words += ["--scope", scope]
    return shlex.join([*words, *(["--account", account] if account else [])])


def lasts(grant: Grant, now: float | None = None) -> str:
    """How long an access token is valid, in words."""
    if grant.expires is None:
        return "it does not say when it expires"
    seconds = grant.expires - (time.time() if now is None else now)
    return f"ended {duration(-seconds)} ago" if seconds < 0 else duration(seconds)


def duration(seconds: float) -> str:
    """A time span in words, in the unit that suits it."""
    for size, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= 2 * size or (seconds >= size and name == "minute"):
            count = round(seconds / size)
            return f"{count} {name}{'' if count == 1 else 's'}"
    return f"{round(seconds)} second{'' if round(seconds) == 1 else 's'}"


class NobodyAsked:
    """An agent for commands that only use stored logins: it refuses each login."""

    def __init__(self, url: str, account: str) -> None:
        self._url = url
        self._account = account

    async def listen(self, preferred: Sequence[str]) -> str:
        """Raises Unauthorized."""
        self._refuse()

    async def visit(self, url: str, redirect_uri: str) -> str:
        """Raises Unauthorized."""
        self._refuse()

    async def show_code(self, step: ShowCode) -> None:
        """Raises Unauthorized."""
        self._refuse()

    async def aclose(self) -> None:
        """Do nothing: nothing is open."""

    def _refuse(self) -> NoReturn:
        raise Unauthorized(
            "log-in",
            "the stored login is no longer valid",
            advice=f"Log in again: {login_words(self._url, self._account)}",
            culprit="person",
        )


class KeptTokens:
    """Authorizes the requests of the other commands with stored logins. It never asks the user to
    log in.
    """

    def __init__(self, account: str = "") -> None:
        self._account = account

    def to(self, url: str) -> Authorized:
        """See Authorizer."""
        return _Kept(url, self._account)


class _Kept:
    def __init__(self, url: str, account: str) -> None:
        self._url = url
        self._account = account
        self._server: Access | None = None
        self._loaded = False

    async def sign(self, request: Request) -> Request:
        """See Authorized."""
        if not self._loaded:
            try:
                server, grant = await kept_server(open_vault(None), self._url, self._account)
            except (StoreError, ValueError) as bad:
                raise t.Unreachable(
                    f"The vault with the stored logins cannot be used: {bad}"
                ) from None
            self._server = server if grant is not None else None
            self._loaded = True
            if grant is None and self._account:
                raise t.Unreachable(
                    f"No login is stored for the account {self._account}. Log in: "
                    f"{login_words(self._url, self._account)}"
                )
        return request if self._server is None else await self._server.sign(request)

    async def handle_response(self, request: Request, response: Response, tries: int) -> bool:
        """See Authorized. If only the user can fix an error, the message names the command for
        it.
        """
        if response.status == 401 and self._server is None:
            raise t.Unreachable(
                "The server requires a login. Log in with "
                f"`{login_words(self._url, self._account)}`, or give a token with "
                "--header.",
                status=401,
            )
        challenge = None
        if response.status == 403:
            named = read_challenges(response.headers.get("www-authenticate", ""))
            challenge = find(named, "bearer", "dpop")
        if challenge is not None and challenge.error == "insufficient_scope":
            raise t.Unreachable(
                "The server requires scopes that were not granted. Log in with "
                f"`{login_words(self._url, self._account, challenge.scopes or ())}`.",
                status=403,
            )
        return self._server is not None and await self._server.handle_response(
            request, response, tries
        )


def row(url: str, account: str, grant: Grant, login: Login | None) -> dict[str, Any]:
    """The data of a stored login, without secrets."""
    return {
        "server": url,
        **({"account": account} if account else {}),
        "resource": grant.resource,
        "issuer": grant.issuer,
        "client": grant.client_id,
        "registration": _source(grant, login),
        "scopes": list(grant.scopes),
        "bound": grant.key is not None,
        "expires": grant.expires,
        "refreshable": grant.refresh_token is not None,
    }


def _source(grant: Grant, login: Login | None) -> Source:
    if login is not None and login.client_id == grant.client_id:
        return "given"
    return "document" if login is not None and login.document == grant.client_id else "dynamic"
