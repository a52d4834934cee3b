"""Upstream identity: whose credentials go to a server, and how a user connects an account of their
own.

The token of the gateway's caller never goes to a server. A user's tokens are kept in a vault under
the key of the principal, and are obtained on the connect page.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from urllib.parse import parse_qsl, urlsplit
from weakref import WeakValueDictionary

import msgspec
from msgspec import Struct

from interlock import Caller, Exchange, McpError, Unreachable
from interlock import types as t
from interlock.auth import Denied, Headless, OAuth, Unauthorized
from interlock.configs import Entry
from interlock.store import StoreError, Vault

from .asked import client_of

log = logging.getLogger("interlock_apps.gateway")

LOCAL = "local"
"""The key of the person at this machine, and of all callers of a gateway without a guard."""

LOGIN_SECONDS = 600.0
"""How long a person has to log in, in seconds."""

POLL_SECONDS = 0.25
"""The time between two looks at what a browser, or another worker, has brought."""

DONE = b"done"
"""The outcome of a login that has succeeded."""

SECRET_HEADERS = frozenset({"authorization", "cookie", "x-api-key", "proxy-authorization"})
"""Headers of an entry that are credentials."""

_TICKETS = "gateway connect"  # kinds of records in the vault
_STATES = "gateway connect state"
_ANSWERS = "gateway connect answer"
_PENDING = "gateway connect pending"
_OUTCOMES = "gateway connect outcome"
_PEOPLE = "gateway connect person"
_LEASE = 20.0  # seconds after which the login of a worker that has died can begin again
_OUTCOME_SECONDS = 120.0
_encode = msgspec.json.encode


def principal_key(caller: Caller) -> str:
    """Return the key under which the credentials and connections of a caller are kept."""
    return LOCAL if caller.principal is None else caller.principal.key


def subject_of(caller: Caller) -> str:
    """Return the name of a caller for people."""
    return "the person at this machine" if caller.principal is None else caller.principal.subject


class ConnectTicket(Struct, frozen=True, kw_only=True):
    """One request to log in, from the moment at which the person is asked.

    Attributes:
        server: The server.
        principal: The key of the principal whose account it becomes.
        issuer: The authorization server that vouches for the principal; empty without one.
        subject: The name of the principal, which the page shows.
        client: The program of the principal that asks.
        url: The authorization request, at the server's authorization server.
        state: The `state` of the authorization request.
    """

    server: str
    principal: str
    issuer: str = ""
    subject: str
    client: str = ""
    url: str
    state: str


class StartedLogin(Struct, frozen=True, kw_only=True):
    """A login whose person is at an authorization server.

    Attributes:
        server: The server; empty for the authorization server that guards the gateway.
        ticket: The digest of the ticket that the login belongs to.
        browser: The digest of the cookie of the browser that began it.
    """

    server: str
    ticket: str
    browser: str


class Person(Struct, frozen=True, kw_only=True):
    """Who has logged in at the authorization server that guards the gateway.

    Attributes:
        issuer: The authorization server.
        subject: The person.
        problem: Why nobody has logged in; empty if somebody has.
    """

    issuer: str = ""
    subject: str = ""
    problem: str = ""


_read_ticket = msgspec.json.Decoder(ConnectTicket).decode
_read_login = msgspec.json.Decoder(StartedLogin).decode
_read_person = msgspec.json.Decoder(Person).decode


def digest(secret: str) -> str:
    """Return the digest under which a secret is stored."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class ConnectRecords:
    """The records of logins in a vault, which all workers share. Each can be used once.

    Args:
        vault: The vault.
        wall_clock: The wall clock, in seconds.
    """

    def __init__(self, vault: Vault, wall_clock: Callable[[], float] = time.time) -> None:
        self._vault = vault
        self._wall = wall_clock

    def _until(self, seconds: float = LOGIN_SECONDS) -> float:
        return self._wall() + seconds

    async def offer(self, ticket: str, record: ConnectTicket) -> None:
        """Store what the connect page needs."""
        value = _encode(record)
        await self._vault.put(_TICKETS, digest(ticket), value, until=self._until())

    async def look(self, ticket: str) -> ConnectTicket | None:
        """Return the record of a ticket, which stays usable; None if it is not valid.

        Args:
            ticket: The digest of the ticket.
        """
        found = await self._vault.get(_TICKETS, ticket)
        return None if found is None else _read_ticket(found)

    async def start(self, ticket: str, browser: str) -> ConnectTicket | None:
        """Use a ticket up: the person goes to the authorization server in this browser.

        Args:
            ticket: The digest of the ticket.
            browser: The cookie of the browser.

        Returns:
            The record; None if the ticket was used already or has expired.
        """
        found = await self._vault.pop(_TICKETS, ticket)
        if found is None:
            return None
        record = _read_ticket(found)
        login = StartedLogin(server=record.server, ticket=ticket, browser=digest(browser))
        await self.expect(record.state, login)
        return record

    async def expect(self, state: str, login: StartedLogin) -> None:
        """Store that a browser is at an authorization server, and will come back with a state."""
        await self._vault.put(_STATES, digest(state), _encode(login), until=self._until())

    async def finish(
        self, state: str, browser: str, server: str, query: str
    ) -> StartedLogin | None:
        """Receive the redirect of the browser, and use the state up.

        Returns:
            The login, if this browser began it for this server; None otherwise.
        """
        found = await self._vault.get(_STATES, digest(state))
        if found is None:
            return None
        login = _read_login(found)
        if login.server != server or not secrets.compare_digest(login.browser, digest(browser)):
            return None
        if await self._vault.pop(_STATES, digest(state)) is None:
            return None
        until = self._until()
        is_first = await self._vault.add(_ANSWERS, digest(state), query.encode(), until=until)
        return login if is_first else None

    async def identify(self, state: str, person: Person) -> None:
        """Publish who has logged in with a state."""
        until = self._until(_OUTCOME_SECONDS)
        await self._vault.put(_PEOPLE, digest(state), _encode(person), until=until)

    async def person(self, state: str) -> Person | None:
        """Return who has logged in with a state, once; None while that is not known."""
        found = await self._vault.pop(_PEOPLE, digest(state))
        return None if found is None else _read_person(found)

    async def answer(self, state: str) -> str | None:
        """Return the query of the redirect, once."""
        found = await self._vault.pop(_ANSWERS, digest(state))
        return None if found is None else found.decode()

    # -- one login at a time, over all workers -----------------------------------------------------

    async def begin(self, key: str, ticket: str) -> bool:
        """Begin a login; False if another worker has begun one."""
        return await self._vault.add(_PENDING, key, ticket.encode(), until=self._until(_LEASE))

    async def renew(self, key: str, ticket: str) -> None:
        """Say that the login goes on."""
        value = ticket.encode()
        await self._vault.swap(_PENDING, key, value, value, until=self._until(_LEASE))

    async def pending(self, key: str) -> str | None:
        """Return the ticket of the login that goes on."""
        found = await self._vault.get(_PENDING, key)
        return None if found is None else found.decode()

    async def end(self, key: str, ticket: str, outcome: bytes) -> None:
        """Publish the outcome of a login."""
        until = self._until(_OUTCOME_SECONDS)
        await self._vault.put(_OUTCOMES, digest(ticket), outcome, until=until)
        await self._vault.remove(_PENDING, key)
        await self._vault.remove(_TICKETS, digest(ticket))

    async def outcome(self, ticket: str) -> bytes | None:
        """Return the outcome of a login, if it has ended.

        Args:
            ticket: The digest of the ticket.
        """
        return await self._vault.get(_OUTCOMES, ticket)


class ConnectAgent:
    """The agent of a login on the connect page; it implements `interlock.auth.Agent`.

    Args:
        records: The records of logins.
        redirect_uri: The address of the gateway that the browser comes back to.
        offer: Called with the authorization request and its state: the person can begin.
        beat: Called now and then while the person logs in.
    """

    def __init__(
        self,
        records: ConnectRecords,
        redirect_uri: str,
        offer: Callable[[str, str], Awaitable[None]],
        beat: Callable[[], Awaitable[None]],
    ) -> None:
        self._records = records
        self._redirect_uri = redirect_uri
        self._offer = offer
        self._beat = beat

    async def listen(self, preferred: Sequence[str]) -> str:
        """Return the redirect URI."""
        return self._redirect_uri

    async def visit(self, url: str, redirect_uri: str) -> str:
        """Offer the address to the person, and return the query of the redirect."""
        state = dict(parse_qsl(urlsplit(url).query)).get("state", "")
        if not state:
            raise Unauthorized("log-in", "the authorization request has no state")
        await self._offer(url, state)
        loop = asyncio.get_running_loop()
        until = loop.time() + LOGIN_SECONDS
        beaten = loop.time()
        while loop.time() < until:
            query = await self._records.answer(state)
            if query is not None:
                return query
            if loop.time() - beaten > _LEASE / 4:
                beaten = loop.time()
                await self._beat()
            await asyncio.sleep(POLL_SECONDS)
        raise Denied("log-in", "nobody logged in in time", culprit="person")

    async def show_code(self, step: object) -> None:
        """Refuse: the connect page shows no codes."""
        raise Unauthorized("log-in", "the connect page cannot show a device code")

    async def aclose(self) -> None:
        """Do nothing: nothing is open."""


class Accounts:
    """The accounts of all principals at all servers with `identity = "user"`.

    Args:
        vault: Stores the tokens, and the records of logins. All workers share it.
        public_url: The URL of the gateway for browsers, without a slash at its end.
        wall_clock: The wall clock, in seconds.
    """

    def __init__(
        self, vault: Vault, public_url: str, wall_clock: Callable[[], float] = time.time
    ) -> None:
        self.vault = vault
        self.public_url = public_url
        self.records = ConnectRecords(vault, wall_clock)
        # An account lives as long as a connection uses it or its login goes on, so the bound on
        # known connections (`PersonalUpstreams`) is the bound on accounts.
        self._accounts: WeakValueDictionary[tuple[str, str], UserAccount] = WeakValueDictionary()

    def of(self, entry: Entry, principal: str) -> UserAccount:
        """Return the account of a principal at a server."""
        known = self._accounts.get((entry.id, principal))
        if known is None or known.url != entry.url:
            known = UserAccount(self, entry, principal)
            self._accounts[entry.id, principal] = known
        return known

    async def aclose(self) -> None:
        """End all logins."""
        for account in list(self._accounts.values()):
            account.close()

    def __len__(self) -> int:
        """Return the number of accounts in memory."""
        return len(self._accounts)


class UserAccount:
    """The account of one principal at one server.

    Args:
        accounts: All accounts.
        entry: The server.
        principal: The key of the principal.
    """

    def __init__(self, accounts: Accounts, entry: Entry, principal: str) -> None:
        self.url = entry.url
        self.server = entry.id
        self.principal = principal
        self._accounts = accounts
        self._agent: ConnectAgent | None = None
        self._login: _Login | None = None
        self.auth = OAuth(
            vault=accounts.vault,
            account=f"{entry.id} {principal}",
            agent=lambda: self._agent or Headless(),
            name="Interlock gateway",
            uri=accounts.public_url if accounts.public_url.startswith("https://") else None,
            hosts=_own_hosts(entry.url),
        )

    @property
    def key(self) -> str:
        """Identifies the account over all workers."""
        return f"{self.server} {self.principal}"

    async def has_login(self) -> bool:
        """Whether the vault has a token. It may have expired."""
        access = OAuth(vault=self._accounts.vault, account=self.auth.account).to(self.url)
        return await access.grant() is not None

    async def connect(self, x: Exchange) -> None:
        """Ask the caller of an exchange to log in on the connect page, and wait until that is done.

        Raises:
            McpError: The caller cannot be asked, declines, or the login fails.
        """
        try:
            login = await self._started(x.caller)
        except (Unreachable, StoreError) as bad:
            log.warning("%s: the login cannot begin: %s", self.server, bad)
            words = f"It is not possible to log in to {self.server} now."
            raise McpError(t.INTERNAL_ERROR, words) from bad
        address = f"{self._accounts.public_url}/connect/{self.server}?ticket={login.ticket}"
        await _ask(x, self.server, address, digest(login.ticket)[:32])
        outcome = await login.wait()
        if outcome != DONE:
            raise McpError(t.INTERNAL_ERROR, f"Not connected to {self.server}: {outcome.decode()}")
        if x.caller.supports("elicitation_ids"):
            ended = t.ElicitationCompleteNotificationParams(
                elicitation_id=digest(login.ticket)[:32]
            )
            x.notify("notifications/elicitation/complete", ended)

    def close(self) -> None:
        """End the login of this process, if one goes on."""
        if self._login is not None:
            self._login.cancel()

    async def _started(self, caller: Caller) -> _Login:
        """Return the login that goes on, here or in another worker, or a new one."""
        if self._login is None or self._login.is_over:
            records = self._accounts.records
            ticket = await records.pending(self.key)
            if ticket is None:
                ticket = secrets.token_urlsafe(32)
                if not await records.begin(self.key, ticket):
                    ticket = await records.pending(self.key) or ticket
                    self._login = _Login(ticket, records, None)
                else:
                    self._login = _Login(ticket, records, self._run(ticket, caller))
            else:
                self._login = _Login(ticket, records, None)
        login = self._login
        await login.offered()
        return login

    async def _run(self, ticket: str, caller: Caller) -> None:
        """Run one login in this process, and publish its outcome."""
        records = self._accounts.records
        login = self._login

        async def offer(url: str, state: str) -> None:
            record = ConnectTicket(
                server=self.server,
                principal=self.principal,
                issuer="" if caller.principal is None else caller.principal.issuer,
                subject=subject_of(caller),
                client=client_of(caller),
                url=url,
                state=state,
            )
            await records.offer(ticket, record)
            if login is not None:
                login.note_offered()

        async def beat() -> None:
            await records.renew(self.key, ticket)

        redirect = f"{self._accounts.public_url}/connect/{self.server}/callback"
        self._agent = ConnectAgent(records, redirect, offer, beat)
        outcome = b"The login was interrupted."
        try:
            await self.auth.to(self.url).renew(fresh=True)
            outcome = DONE
        except Denied:
            outcome = b"The login was declined, or was not finished in time."
        except (Unreachable, StoreError) as bad:
            log.warning("%s: a login failed: %s", self.server, bad)
            outcome = b"The login failed. The log of the gateway says why."
        finally:
            self._agent = None
            with contextlib.suppress(StoreError):
                await records.end(self.key, ticket, outcome)


class _Login:
    """A login that goes on, in this process or in another worker."""

    def __init__(self, ticket: str, records: ConnectRecords, work: Awaitable[None] | None) -> None:
        self.ticket = ticket
        self._records = records
        self._offered = asyncio.Event()
        self._task = None if work is None else asyncio.ensure_future(work)
        self._over = False

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._over or (self._task is not None and self._task.done())

    def note_offered(self) -> None:
        """The connect page can be opened."""
        self._offered.set()

    def cancel(self) -> None:
        """End it."""
        if self._task is not None:
            self._task.cancel()

    async def offered(self) -> None:
        """Wait until the connect page can be opened, or the login has failed.

        Raises:
            Unauthorized: It has failed, or the other worker does not offer the page.
        """
        if self._task is None:
            return  # another worker publishes the page
        waiting = asyncio.ensure_future(self._offered.wait())
        try:
            await asyncio.wait({waiting, self._task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if not self._offered.is_set():
            raise Unauthorized("log-in", "the login ended before the person was asked")

    async def wait(self) -> bytes:
        """Wait for the outcome."""
        until = asyncio.get_running_loop().time() + LOGIN_SECONDS
        while asyncio.get_running_loop().time() < until:
            outcome = await self._records.outcome(digest(self.ticket))
            if outcome is not None:
                self._over = True
                return outcome
            await asyncio.sleep(POLL_SECONDS)
        self._over = True
        return b"Nobody logged in in time."


async def _ask(x: Exchange, server: str, address: str, id: str) -> None:
    """Ask a caller to open the connect page. Raises McpError if that is impossible."""
    message = f"Log in to {server}, so that the gateway can use your account there."
    elicitation = x.caller.capabilities.elicitation
    if elicitation is None or elicitation.url is None or not x.caller.supports("elicitation_urls"):
        raise McpError(
            t.INVALID_REQUEST,
            f"You are not connected to {server}. Log in at {address} and try again.",
            {"url": address, "server": server},
        )
    has_id = x.caller.supports("elicitation_ids")
    params = t.ElicitRequestParams(
        message=message, mode="url", url=address, elicitation_id=id if has_id else None
    )
    answer = await x.asker.ask(t.ElicitRequest(params=params), f"connect {server}")
    if not isinstance(answer, t.ElicitResult) or answer.action != "accept":
        words = f"Not connected to {server}: you declined to log in."
        raise McpError(t.INVALID_REQUEST, words)


def _own_hosts(url: str) -> tuple[str, ...]:
    """Return the host of a server that the operator configured, which may be private."""
    host = urlsplit(url).hostname
    return () if host is None else (host,)


def without_credentials(entry: Entry) -> Mapping[str, str]:
    """Return the headers of an entry without credentials, for `identity = "none"` and "user"."""
    return {
        name: value for name, value in entry.headers.items() if name.lower() not in SECRET_HEADERS
    }
