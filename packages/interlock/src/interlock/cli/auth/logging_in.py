"""Logging in to a server: for the command, and for pages that let the user log in."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ... import types as t
from ...auth import Unauthorized
from ...auth.agents import Agent
from ...auth.client import Access
from ...auth.errors import useless
from ...auth.oauth.challenges import Challenge, find, read_challenges
from ...auth.oauth.discovery import find_resource
from ...auth.oauth.members import Grant
from ...auth.oauth.probe import ProbeResult, modern, probe
from ...auth.oauth.steps import Note
from ...auth.sender import HttpClients, perform
from ...redaction.urls import url_without_secrets
from ...store import Vault
from .saved_logins import Login, keep_login, login_kept, server_of

_IDENTITY = ("client_id", "client_secret", "issuer", "document", "redirect_uri")


async def log_in(
    url: str,
    vault: Vault,
    login: Login,
    *,
    account: str = "",
    agent: Callable[[Login], Agent],
    scopes: Sequence[str] = (),
    device: bool = False,
    on_step: Callable[[Note], None] | None = None,
) -> tuple[Grant, Login] | None:
    """Log in to the server at a URL, store the tokens and the client settings, and try the token.

    Without a client in the settings, those of the last login are used.

    Args:
        url: The URL of the server.
        vault: Where the tokens are stored.
        login: The client settings.
        account: The account, if there are several logins to the server.
        agent: Returns what reaches the user, for the settings that are used.
        scopes: Scopes besides those that the server requires.
        device: Whether the user enters a code on another device.
        on_step: Called with each step.

    Returns:
        The grant and the settings; None if the server requires no login.

    Raises:
        Unauthorized: The login is not possible, or was denied.
        Unreachable: A server does not respond.
        StoreError: The vault cannot be used.
    """
    kept = await login_kept(vault, server_of(vault, url, account, Login()))
    if kept is not None and all(getattr(login, name) is None for name in _IDENTITY):
        login = Login(
            **{name: getattr(kept, name) for name in _IDENTITY},
            dpop=login.dpop or kept.dpop,
            assume_pkce=login.assume_pkce or kept.assume_pkce,
            hosts=login.hosts or kept.hosts,
        )
    clients = HttpClients(url, login.hosts)
    try:
        challenge = await _challenge(url, clients)
        if challenge is None:
            return None
        person = agent(login)
        server = server_of(
            vault,
            url,
            account,
            login,
            agent=lambda: person,
            scopes=scopes,
            device=device,
            on_step=on_step,
        )
        grant = await server.renew(challenge, fresh=True)
        await keep_login(vault, server, login)
        await _tried(url, server, clients)
    finally:
        await clients.aclose()
    return grant, login


async def _challenge(url: str, clients: HttpClients) -> Challenge | None:
    """The challenge of the server; None if it needs no authorization. Raises Unauthorized,
    Unreachable.
    """
    answer: ProbeResult = await perform(probe(url), clients)
    status = answer.got.status
    if status == 401:
        return find(answer.challenges, "bearer", "dpop") or Challenge("bearer")
    if answer.open:
        try:
            protected, _ = await perform(find_resource(url, None), clients)
        except Unauthorized:
            return None
        return (
            None if protected is None else Challenge("bearer")
        )  # it may refuse only some requests
    if status == 403:
        raise Unauthorized(
            "request",
            "the server answers 403 to requests without a token",
            document=url,
            expected="401, which asks for a log-in",
            advice="The operator of the server must fix it.",
            status=403,
        )
    leads = answer.got.headers.get("location")
    where = (
        f" and redirects to {url_without_secrets(leads)}; use that address if it is the right one"
        if 300 <= status < 400 and leads
        else ""
    )
    raise t.Unreachable(
        f"{url_without_secrets(url)} answers with status {status}{where}. `interlock auth "
        "explain` says more.",
        status=status,
    )


async def _tried(url: str, server: Access, clients: HttpClients) -> None:
    """Send one request with the token. Raises Unauthorized if the server refuses it."""
    fetch = clients.of(url)
    tries = 0
    while True:
        request = await server.sign(modern(url, "server/discover"))
        response = await fetch(request)
        tries += 1
        # the server may require a nonce
        again = (
            response.status == 401
            and tries == 1
            and await server.handle_response(request, response, tries)
        )
        await response.aclose()
        if again:
            continue
        if response.status == 401:
            raise useless(
                url,
                find(
                    read_challenges(response.headers.get("www-authenticate", "")), "bearer", "dpop"
                ),
            )
        return
