"""Login at a terminal: the user opens the address anywhere and pastes the answer."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Sequence
from typing import TextIO
from urllib.parse import urlencode, urlsplit

from ... import types as t
from ..oauth.addresses import checked_url, is_loopback
from ..oauth.errors import Denied, Unauthorized
from ..oauth.steps import ShowCode
from .interface import Say, belongs, code_words, is_answer, state_of, to_stderr, visitable
from .keyboard import read_line


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
        known = next(
            (uri for uri in preferred if uri.startswith("http://") and is_loopback(uri)), None
        )
        return known or f"http://127.0.0.1:{_quiet_port()}/callback"

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
            text = "".join((await read_line(fd, self._show)).split())
            query = query_in(text)
            if not text:
                continue
            if not is_answer(query) and "://" not in text and not {"&", "?"} & set(text):
                return urlencode(
                    {"code": text, **({} if state is None else {"state": state})}
                )  # the user has chosen the login that the code belongs to
            if not is_answer(query):
                self._say(
                    "That has no code in it. Paste the whole address that the browser "
                    "shows at the end:"
                )
            elif not belongs(query, state):
                self._say(
                    "That is the answer to another log-in. Visit the address above, and "
                    "paste the address that the browser shows at the end:"
                )
            else:
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


def _to_screen(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
