"""Authorization of a server in the inspector: the steps of a login, logging in, and logging out.

The steps are those of `interlock auth explain`. The page sees requests and responses of the check,
which sends no credentials; of a login it sees the steps only, and of a stored login no secrets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from interlock import InterlockError, Request
from interlock.redaction import Redactor, redacted, url_without_secrets

from .events import InspectorEvent, Publish

# The client of OAuth is imported where it is used: most targets need no login, and the page opens
# sooner without it.
if TYPE_CHECKING:
    from interlock.auth import Browser
    from interlock.auth.diagnose import Got
    from interlock.cli.auth.saved_logins import Login

MOST_BODY = 20_000
"""Characters of a response that are shown."""
_HEADERS = ("content-type", "www-authenticate", "location", "cache-control")


class ServerAuthorization:
    """The authorization of one server.

    Args:
        connection: The name of the connection.
        url: The URL of the server; "" if it is not reached by one.
        publish: Publishes an event to the pages.
        account: The account, if there are several at the server.
    """

    def __init__(self, connection: str, url: str, publish: Publish, *, account: str = "") -> None:
        self.url = url
        self._account = account
        self._connection = connection
        self._publish = publish
        self._work: asyncio.Task[None] | None = None
        self._steps: list[dict[str, str]] = []
        self._address = ""
        self._outcome = ""

    def state(self) -> dict[str, Any]:
        """The running or last login as JSON values."""
        return {
            "offered": bool(self.url),
            "running": self._work is not None and not self._work.done(),
            "steps": self._steps,
            "address": self._address,
            "outcome": self._outcome,
        }

    async def explain(self) -> dict[str, Any]:
        """Check each step of a login, without logging in.

        Returns:
            The findings, and what was asked and answered, as JSON values without secrets.

        Raises:
            ValueError: The server is not reached by a URL.
        """
        from interlock.auth.diagnose import Report, diagnose  # late: few inspect a log-in

        self._check_url()
        report = Report()
        exchanges: list[dict[str, Any]] = []

        def add(request: Request, got: Got | InterlockError) -> None:
            exchanges.append(_exchange(request, got))

        await diagnose(self.url, report, on_exchange=add)
        return {
            "findings": [msgspec.to_builtins(finding) for finding in report.findings],
            "wrong": len(report.wrong),
            "exchanges": exchanges,
        }

    async def stored(self) -> dict[str, Any] | None:
        """The stored login without its secrets, as JSON values; None if there is none.

        Raises:
            StoreError: The vault cannot be used.
        """
        from interlock.cli.auth.saved_logins import kept_server, row, vault_at  # late: as above

        self._check_url()
        vault = vault_at(None)
        try:
            _, grant = await kept_server(vault, self.url, self._account)
            return None if grant is None else row(self.url, self._account, grant, None)
        finally:
            await vault.aclose()

    def start_login(self, done: Callable[[], Any]) -> None:
        """Start a login. The page shows the address that the user visits.

        Args:
            done: An async function that is called after a login.

        Raises:
            ValueError: The server is not reached by a URL, or a login is running.
        """
        self._check_url()
        if self._work is not None and not self._work.done():
            raise ValueError("A login is running. Finish or cancel it first.")
        self._steps = []
        self._address = ""
        self._outcome = ""
        self._work = asyncio.get_running_loop().create_task(self._log_in(done))
        self._changed()

    async def log_out(self) -> str:
        """Revoke the tokens at the authorization server, and delete them here.

        Returns:
            What was done, for the user.

        Raises:
            ValueError: No login is stored.
        """
        from interlock.cli.auth.saved_logins import (
            keep_login,
            kept_server,
            vault_at,
        )  # late: as above

        self._check_url()
        vault = vault_at(None)
        try:
            server, grant = await kept_server(vault, self.url, self._account)
            if grant is None:
                raise ValueError("No login is stored for this server.")
            try:
                is_revoked = await server.revoke()
                words = (
                    "The tokens were revoked and deleted."
                    if is_revoked
                    else "The tokens were deleted. The authorization server does not revoke them, "
                    "so they stay valid until they expire."
                )
            except InterlockError as bad:
                words = f"The tokens were deleted here, but not revoked: {bad}"
            await keep_login(vault, server, None)
            return words
        finally:
            await vault.aclose()

    async def aclose(self) -> None:
        """Cancel a running login."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)

    async def _log_in(self, done: Callable[[], Any]) -> None:
        from interlock.auth import Browser  # late: few inspect a log-in
        from interlock.cli.auth.logging_in import log_in  # late: few inspect a log-in
        from interlock.cli.auth.saved_logins import Login, vault_at  # late: few inspect a log-in

        loop = asyncio.get_running_loop()

        def show_address(url: str) -> None:  # called in a thread
            loop.call_soon_threadsafe(self._show, url)

        def agent(login: Login) -> Browser:
            return Browser(redirect_uri=login.redirect_uri, open=show_address, say=_quiet)

        def add_step(step: Any) -> None:
            shown = {"step": step.step, "words": step.words, "document": step.document}
            self._steps.append(shown)
            self._changed()

        try:
            vault = vault_at(None)
            try:
                found = await log_in(
                    self.url, vault, Login(), account=self._account, agent=agent, on_step=add_step
                )
            finally:
                await vault.aclose()
            self._outcome = "You are logged in." if found else "The server requires no login."
        except asyncio.CancelledError:
            self._outcome = "The login was cancelled."
        except (InterlockError, OSError, ValueError, ImportError) as bad:
            self._outcome = f"The login failed: {bad}"
        else:
            await done()
        finally:
            self._address = ""
            self._work = None
            self._changed()

    def _show(self, url: str) -> None:
        self._address = url
        self._changed()

    def _check_url(self) -> None:
        if not self.url:
            raise ValueError("Only servers at a URL have a login.")

    def _changed(self) -> None:
        self._publish(InspectorEvent("authorization", self._connection, changes_state=True))


def _quiet(line: str) -> None:
    """Print nothing: the page shows the address."""


def _exchange(request: Request, got: Got | InterlockError) -> dict[str, Any]:
    """A request and its response as JSON values, without secrets."""
    redactor = Redactor()
    shown = {"method": request.method, "url": url_without_secrets(request.url)}
    if isinstance(got, InterlockError):
        return {**shown, "status": None, "headers": {}, "body": redactor(str(got))}
    headers = {name: redactor(got.headers[name]) for name in _HEADERS if name in got.headers}
    text = got.body.decode("utf-8", "replace")
    try:
        value = redacted(msgspec.json.decode(text), redactor)
        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    except (msgspec.DecodeError, RecursionError):
        text = redactor(text)
    return {**shown, "status": got.status, "headers": headers, "body": text[:MOST_BODY]}
