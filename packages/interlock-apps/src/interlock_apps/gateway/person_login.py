"""The login of a person at the authorization server that guards the gateway (authorization code
with PKCE), so that the connect page knows who is in front of the browser.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import msgspec

from interlock import Fetch, HttpFetch, Request, Response, SafeFetch, Unreachable
from interlock.auth import Denied, OAuth, Unauthorized
from interlock.auth.oauth import is_loopback
from interlock.auth.tokens import BadToken, Jwt, Unverifiable
from interlock.store import StoreError, Vault

from .identity import (
    POLL_SECONDS,
    ConnectAgent,
    ConnectRecords,
    Person,
    StartedLogin,
    digest,
)

log = logging.getLogger("interlock_apps.gateway")

CLIENT_ID_VARIABLE = "INTERLOCK_CONNECT_CLIENT_ID"
"""The environment variable with the client ID of the gateway at its authorization server, if it was
registered there by hand."""

CLIENT_SECRET_VARIABLE = "INTERLOCK_CONNECT_CLIENT_SECRET"
"""The environment variable with the secret of that client."""

REDIRECT_PATH = "/connect/-/callback"
"""The path of the redirect URI. No server can have the name "-"."""

_METADATA = "/.well-known/oauth-protected-resource"
_DOCUMENT_BYTES = 256 * 1024
_SECONDS = 20.0  # for a request to the authorization server
_PATIENCE = 45.0  # seconds for the exchange of the code, in this or in another worker


class PersonLogin:
    """Finds out who is in front of a browser.

    The person logs in at the authorization server whose tokens the gateway accepts. The gateway
    gets a token for itself, verifies it as it verifies the tokens of its callers, takes the subject
    from it, and gives it up.

    Args:
        records: The records of logins, which all workers share.
        vault: Stores the registration of the gateway at the authorization server.
        issuer: The authorization server.
        resource: The URL of the default view, which the token is issued for.
        public_url: The URL of the gateway for browsers, without a slash at its end.
        client_id: The ID of the gateway at the authorization server; empty to register.
        client_secret: The secret of that client; empty for none.
    """

    def __init__(
        self,
        records: ConnectRecords,
        vault: Vault,
        *,
        issuer: str,
        resource: str,
        public_url: str,
        client_id: str = "",
        client_secret: str = "",
    ) -> None:
        self.issuer = issuer
        self._records = records
        self._vault = vault
        self._resource = resource
        self._public_url = public_url
        self._client_id = client_id
        self._client_secret = client_secret
        self._verifier = Jwt(issuer)
        self._running: dict[str, asyncio.Task[None]] = {}

    async def start(self, ticket: str, browser: str) -> str:
        """Begin a login. An earlier one for the same ticket in this process ends.

        Args:
            ticket: The digest of the ticket.
            browser: The cookie of the browser.

        Returns:
            The authorization request that the browser has to visit.

        Raises:
            Unreachable: The authorization server cannot be used.
        """
        before = self._running.pop(ticket, None)
        if before is not None:
            before.cancel()
        offered: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        login = StartedLogin(server="", ticket=ticket, browser=digest(browser))
        task = asyncio.create_task(self._run(ticket, login, offered))
        self._running[ticket] = task
        task.add_done_callback(lambda done: self._ended(ticket, done))
        waiting: set[asyncio.Future[Any]] = {task, offered}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if not offered.done():
            raise Unauthorized("log-in", "the login ended before the person was asked")
        return offered.result()

    def _ended(self, ticket: str, task: asyncio.Task[None]) -> None:
        if self._running.get(ticket) is task:
            del self._running[ticket]

    async def _run(self, ticket: str, login: StartedLogin, offered: asyncio.Future[str]) -> None:
        """Run one login in this process, and publish who has logged in."""
        states: list[str] = []

        async def offer(url: str, state: str) -> None:
            await self._records.expect(state, login)
            states.append(state)
            offered.set_result(url)

        agent = ConnectAgent(self._records, f"{self._public_url}{REDIRECT_PATH}", offer, _no_lease)
        fetch = _IssuerFetch(self._resource, self.issuer)
        access = OAuth(
            client_id=self._client_id or None,
            client_secret=self._client_secret or None,
            issuer=self.issuer if self._client_id else None,
            vault=self._vault,
            account=f"connect page {ticket}",
            agent=lambda: agent,
            name="Interlock gateway",
            uri=self._public_url if self._public_url.startswith("https://") else None,
            fetch=fetch,
        ).to(self._resource)
        person = Person(problem="The login failed. The log of the gateway says why.")
        try:
            grant = await access.renew(fresh=True)
            verified = await self._verifier.verify(
                grant.access_token, resource=self._resource, now=time.time()
            )
            principal = verified.principal
            person = Person(issuer=principal.issuer, subject=principal.subject)
        except Denied:
            person = Person(problem="The login was declined, or was not finished in time.")
        except (Unreachable, Unverifiable, BadToken, StoreError) as bad:
            log.warning("the login of a person at %s failed: %s", self.issuer, bad)
        finally:
            with contextlib.suppress(StoreError):
                if states:
                    await self._records.identify(states[0], person)
            # The token has said who the person is; nobody needs it any more.
            with contextlib.suppress(Unreachable, StoreError):
                await access.revoke()
            await fetch.aclose()

    async def person(self, state: str) -> Person:
        """Return who has logged in with a state, which any worker may have begun.

        Raises:
            StoreError: The vault cannot be used.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + _PATIENCE
        while loop.time() < until:
            person = await self._records.person(state)
            if person is not None:
                return person
            await asyncio.sleep(POLL_SECONDS / 2)
        return Person(problem="The login was interrupted.")

    async def aclose(self) -> None:
        """End all logins of this process, and close the connections that fetch keys."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
        await self._verifier.aclose()


async def _no_lease() -> None:
    """Do nothing: a login of a person in this browser keeps nobody else from one."""


class _IssuerFetch:
    """Sends the requests of a login. The metadata of the gateway itself are answered here, because
    a container often cannot reach its own public URL. The authorization server that the operator
    configured may have a private address; all other hosts must be public.
    """

    def __init__(self, resource: str, issuer: str) -> None:
        parts = urlsplit(resource)
        self._own = f"{parts.scheme}://{parts.netloc}{_METADATA}"
        self._document = msgspec.json.encode(
            {"resource": resource, "authorization_servers": [issuer]}
        )
        self._configured = urlsplit(issuer).hostname
        self._fetch: Fetch = HttpFetch(head_seconds=_SECONDS)
        self._safe_fetch: Fetch = SafeFetch(
            loopback=is_loopback(issuer), limit=_DOCUMENT_BYTES, seconds=_SECONDS
        )

    async def __call__(self, request: Request) -> Response:
        """See Fetch."""
        if request.url.startswith(self._own):
            return _Document(self._document)
        is_configured = urlsplit(request.url).hostname == self._configured
        return await (self._fetch if is_configured else self._safe_fetch)(request)

    async def aclose(self) -> None:
        """See Fetch."""
        await self._fetch.aclose()
        await self._safe_fetch.aclose()


class _Document:
    """A response that is known already."""

    status = 200

    def __init__(self, body: bytes) -> None:
        self.headers = {"content-type": "application/json"}
        self._body = body

    async def read(self, limit: int) -> bytes:
        """See Response."""
        return self._body

    async def chunks(self) -> AsyncIterator[bytes]:
        """See Response."""
        yield self._body

    async def aclose(self) -> None:
        """See Response."""
