"""Logins of the user to servers: in a browser, with a code, or by pasting an address.

The tokens are stored in the vault that `interlock auth login` uses, so all commands have them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from interlock.store import Vault

from .jobs import SetupJob

# The client of OAuth is imported where it is used: most servers need no login.
if TYPE_CHECKING:
    from interlock.auth import Agent
    from interlock.cli.auth.saved_logins import Login

LoginWay = Literal["browser", "device", "paste"]


async def log_in_to(
    url: str,
    job: SetupJob,
    way: LoginWay,
    *,
    open_vault: Callable[[], Vault],
    hosts: Sequence[str] = (),
) -> bool:
    """Log in to a server, and store the tokens.

    The page follows the events of the job: `step`, `visit` with an address, `code` with a code and
    where it is entered, `paste` when the address at the end is wanted, `refused` with why a pasted
    text is not the answer, and at last `loggedIn`, `open` (the server requires no login) or
    `failed`.

    Args:
        url: The URL of the server.
        job: Receives the events, and gives the pasted text to `reply`.
        way: How the user logs in.
        open_vault: Opens the vault for the tokens.
        hosts: Hosts of authorization servers that may have private addresses.

    Returns:
        Whether the user is logged in now.

    Raises:
        Unauthorized: The login is not possible, or was denied.
        Unreachable: A server does not respond.
        StoreError: The vault cannot be used.
    """
    from interlock.cli.auth.logging_in import log_in  # late: most servers need no login
    from interlock.cli.auth.saved_logins import Login  # late: as above

    vault = open_vault()
    try:
        found = await log_in(
            url,
            vault,
            Login(hosts=tuple(hosts)),
            agent=lambda login: _agent(login, job, way),
            device=way == "device",
            on_step=lambda step: job.add("step", words=step.words),
        )
    finally:
        await vault.aclose()
    job.add("open" if found is None else "loggedIn")
    return found is not None


def _agent(login: Login, job: SetupJob, way: LoginWay) -> Agent:
    from interlock.auth import Browser, Pasting  # late: most servers need no login

    loop = asyncio.get_running_loop()
    if way == "browser":

        def show(url: str) -> None:  # called in a thread
            loop.call_soon_threadsafe(lambda: job.add("visit", url=url))

        return Browser(redirect_uri=login.redirect_uri, open=show, say=_quiet)

    pasted: asyncio.Queue[str] = asyncio.Queue()
    job.reply = pasted.put_nowait

    def ask(url: str, redirect_uri: str) -> None:
        job.add("visit", url=url)
        job.add("paste", starts=redirect_uri)

    return Pasting(
        show=ask,
        read=pasted.get,
        refuse=lambda words: job.add("refused", words=words),
        show_code=lambda code, url, complete, seconds: job.add(
            "code", code=code, url=url, complete=complete, seconds=seconds
        ),
        redirect_uri=login.redirect_uri,
    )


def _quiet(line: str) -> None:
    """Print nothing: the page shows the address."""
