"""Login at a terminal: the user opens the address anywhere and pastes the answer."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import TextIO

from ... import types as t
from ..oauth.addresses import checked_url
from ..oauth.errors import Denied, Unauthorized
from ..oauth.steps import ShowCode
from .interface import Say, code_words, state_of, to_stderr, visitable
from .keyboard import read_line
from .pasting import pasted_query, quiet_redirect


class Terminal:
    """Prints the URL, and reads the code, or the URL that the browser was redirected to, from the
    terminal.

    Args:
        redirect_uri: The redirect URI of a client that was registered beforehand. By default a
            loopback address without a listener, so that the browser stops there and shows it.
        stdin: The terminal; sys.stdin by default.
        say: Gets lines for the person.
        show: Gets what the person types; stderr by default.
        seconds: The time limit of a login.
    """

    def __init__(
        self,
        *,
        redirect_uri: str | None = None,
        stdin: TextIO | None = None,
        say: Say = to_stderr,
        show: Say | None = None,
        seconds: float = 300.0,
    ) -> None:
        self._redirect_uri = (
            None if redirect_uri is None else checked_url(redirect_uri, what="a redirect URI")
        )
        self._stdin = stdin
        self._say = say
        self._show = show or _to_screen
        self._seconds = seconds

    async def listen(self, preferred: Sequence[str]) -> str:
        """See Agent; it opens no port."""
        if self._redirect_uri is not None:
            return self._redirect_uri
        return quiet_redirect(preferred)

    async def visit(self, url: str, redirect_uri: str) -> str:
        """See Agent."""
        self._say(f"To log in, visit this address in any browser:\n\n{visitable(url)}\n")
        self._say(
            "Afterwards the browser goes to an address that it cannot open. That is "
            f"expected. The address begins with {redirect_uri}\nPaste the whole address "
            "here, and press Enter:"
        )
        try:
            async with asyncio.timeout(self._seconds):
                return await self._pasted(state_of(url))
        except TimeoutError:
            raise t.TimedOut(
                f"Nobody logged in within {self._seconds:g} seconds: nothing was pasted at the "
                "terminal. Try again."
            ) from None
        except EOFError:
            raise Denied(
                "log-in", "the input ended before anything was pasted", culprit="person"
            ) from None

    async def show_code(self, step: ShowCode) -> None:
        """See Agent."""
        for line in code_words(step):
            self._say(line)

    async def aclose(self) -> None:
        """Do nothing: nothing is open."""

    async def _pasted(self, state: str | None) -> str:
        """The query string of the pasted text, as soon as it is a response to this login."""
        fd = self._descriptor()
        while True:
            text = await read_line(fd, self._show)
            try:
                query = pasted_query(text, state)
            except ValueError as bad:
                self._say(str(bad))
                continue
            if query:
                return query

    def _descriptor(self) -> int:
        given = sys.stdin if self._stdin is None else self._stdin
        try:
            return given.fileno()
        except (AttributeError, OSError, ValueError):
            raise Unauthorized(
                "log-in",
                "there is no terminal to paste the answer into",
                advice="Run this in a terminal, or log in with a browser.",
                culprit="client",
            ) from None


def _to_screen(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
