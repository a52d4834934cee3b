"""Login through any user interface: it shows an address, and the user pastes the answer."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import urlencode, urlsplit

from ... import types as t
from ..oauth.addresses import checked_url, is_loopback
from ..oauth.steps import ShowCode
from .interface import belongs, is_answer, state_of, visitable


class Pasting:
    """Shows the address of a login, and takes the address of the page at its end.

    The browser may run on another machine: no port of this one is opened.

    Args:
        show: Called with the address to visit, and with the beginning of the address at the end.
        read: Returns the next text that the user pastes.
        refuse: Called with the reason why a pasted text is not the answer.
        show_code: Called with a code, the address where it is entered, an address that contains the
            code (or None), and the lifetime of the code in seconds.
        redirect_uri: The redirect URI of a client that was registered beforehand.
        seconds: The time limit of a login.
    """

    def __init__(
        self,
        *,
        show: Callable[[str, str], object],
        read: Callable[[], Awaitable[str]],
        refuse: Callable[[str], object],
        show_code: Callable[[str, str, str | None, float], object],
        redirect_uri: str | None = None,
        seconds: float = 300.0,
    ) -> None:
        self._show = show
        self._read = read
        self._refuse = refuse
        self._show_code = show_code
        self._redirect_uri = (
            None if redirect_uri is None else checked_url(redirect_uri, what="a redirect URI")
        )
        self._seconds = seconds

    async def listen(self, preferred: Sequence[str]) -> str:
        """See Agent; it opens no port."""
        return self._redirect_uri or quiet_redirect(preferred)

    async def visit(self, url: str, redirect_uri: str) -> str:
        """See Agent."""
        state = state_of(url)
        self._show(visitable(url), redirect_uri)
        try:
            async with asyncio.timeout(self._seconds):
                while True:
                    try:
                        query = pasted_query(await self._read(), state)
                    except ValueError as bad:
                        self._refuse(str(bad))
                        continue
                    if query:
                        return query
        except TimeoutError:
            raise t.TimedOut(
                f"Nobody logged in within {self._seconds:g} seconds: nothing was pasted. Try again."
            ) from None

    async def show_code(self, step: ShowCode) -> None:
        """See Agent."""
        code = "".join(sign if sign.isprintable() else "?" for sign in step.user_code[:64])
        complete = None if step.complete is None else visitable(step.complete)
        self._show_code(code, visitable(step.verification_uri), complete, step.seconds)

    async def aclose(self) -> None:
        """Do nothing: nothing is open."""


def quiet_redirect(preferred: Sequence[str]) -> str:
    """Return a loopback redirect URI without a listener, so that the browser stops there and shows
    its address. One that the client is registered with is preferred.
    """
    known = next((uri for uri in preferred if uri.startswith("http://") and is_loopback(uri)), None)
    return known or f"http://127.0.0.1:{_quiet_port()}/callback"


def pasted_query(text: str, state: str | None) -> str:
    """Return the query string of the redirect in a pasted text; empty if the text is.

    Args:
        text: The address at the end of the login, its query string, or only the code in it.
        state: The `state` of the request.

    Raises:
        ValueError: The text is not the answer to this login. The message is for the user.
    """
    text = "".join(text.split())
    if not text:
        return ""
    query = query_in(text)
    if not is_answer(query) and "://" not in text and not {"&", "?"} & set(text):
        # the user has chosen the login that the code belongs to
        return urlencode({"code": text, **({} if state is None else {"state": state})})
    if not is_answer(query):
        raise ValueError(
            "That has no code in it. Paste the whole address that the browser shows at the end:"
        )
    if not belongs(query, state):
        raise ValueError(
            "That is the answer to another log-in. Visit the address above, and paste the address "
            "that the browser shows at the end:"
        )
    return query


def query_in(text: str) -> str:
    """The query string of pasted text: that of a URL, or the text itself."""
    try:
        return urlsplit(text).query or text.partition("#")[0].removeprefix("?")
    except ValueError:
        return ""


def _quiet_port() -> int:
    """A port of this machine at which no program listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
