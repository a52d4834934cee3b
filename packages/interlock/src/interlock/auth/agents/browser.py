"""Login with a browser on this machine, through a loopback redirect (RFC 8252, 7.3)."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from ... import types as t
from ..oauth.addresses import checked_url, is_loopback
from ..oauth.errors import Unauthorized
from ..oauth.steps import ShowCode
from .interface import Say, code_words, state_of, to_stderr, visitable
from .redirect_listener import RedirectListener

_OPEN = "import sys, webbrowser; sys.exit(not webbrowser.open(sys.argv[1]))"


class Browser:
    """Opens a browser, and listens at a port of this machine for its redirect.

    Args:
        host: The host to listen at.
        port: The port to listen at. 0 uses a port that the client is already registered with, if it
            is free, else any.
        path: The path of the redirect URI.
        redirect_uri: The redirect URI of a client that was registered beforehand. One with http on
            this machine determines host, port and path. One with https has to be forwarded here by
            you.
        open: Opens a browser at a URL; returns False on failure.
        say: Gets lines for the person.
        seconds: The time limit of a login.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        path: str = "/callback",
        redirect_uri: str | None = None,
        open: Callable[[str], object] | None = None,
        say: Say = to_stderr,
        seconds: float = 300.0,
    ) -> None:
        self._redirect_uri = (
            None if redirect_uri is None else checked_url(redirect_uri, what="a redirect URI")
        )
        self._host = host
        self._port = port
        self._path = path if path.startswith("/") else f"/{path}"
        self._open = open or open_browser
        self._say = say
        self._seconds = seconds
        self._landing: RedirectListener | None = None
        self._at = ""

    async def listen(self, preferred: Sequence[str]) -> str:
        """See Agent. Raises Unauthorized if no port can be opened."""
        await self.aclose()
        if self._redirect_uri is not None:
            return await self._listen_for(self._redirect_uri)
        for known in preferred if self._port == 0 else ():
            if known.startswith("http://") and is_loopback(known):
                with contextlib.suppress(OSError, ValueError):
                    return await self._listen_there(known)
        try:
            return await self._listen_at(self._host, self._port, self._path)
        except OSError as bad:
            raise self._cannot(f"{self._host} port {self._port}", bad) from None

    async def visit(self, url: str, redirect_uri: str) -> str:
        """See Agent."""
        visitable(url)
        if self._landing is None or redirect_uri != self._at:
            raise RuntimeError("visit() follows listen(), with the redirect URI that it gave")
        listener = self._landing
        arrival = listener.expect(state_of(url))
        self._say(f"To log in, visit {url}")
        try:
            self._start(url)
            async with asyncio.timeout(self._seconds):
                return await arrival
        except TimeoutError:
            others = f" (to other log-ins: {listener.others})" if listener.others else ""
            raise t.TimedOut(
                f"Nobody logged in within {self._seconds:g} seconds: no answer came to "
                f"{redirect_uri}{others}. Try again, and finish in the newest window. If "
                "the browser cannot connect back to this machine, log in at a terminal "
                "and paste the address that the browser shows at the end."
            ) from None
        finally:
            arrival.cancel()

    async def show_code(self, step: ShowCode) -> None:
        """See Agent; opens the browser too."""
        for line in code_words(step):
            self._say(line)
        self._start(step.complete or step.verification_uri)

    async def aclose(self) -> None:
        """See Agent."""
        listener = self._landing
        self._landing = None
        if listener is not None:
            await listener.aclose()

    async def _listen_for(self, redirect_uri: str) -> str:
        """Listen for redirects to this URI."""
        parts = urlsplit(redirect_uri)
        try:
            if parts.scheme == "http":
                return await self._listen_there(redirect_uri)
            return await self._listen_at(self._host, self._port, parts.path, redirect_uri)
        except OSError as bad:
            raise self._cannot(redirect_uri, bad) from None

    async def _listen_there(self, redirect_uri: str) -> str:
        """Listen at the host and port of a loopback redirect URI."""
        parts = urlsplit(redirect_uri)
        return await self._listen_at(
            parts.hostname or "", parts.port or 80, parts.path, redirect_uri
        )

    async def _listen_at(
        self, host: str, port: int, path: str, redirect_uri: str | None = None
    ) -> str:
        listener = RedirectListener(path or "/")
        try:
            await listener.open(
                host, port, () if redirect_uri is None else (urlsplit(redirect_uri).netloc,)
            )
        except BaseException:
            await listener.aclose()
            raise
        self._landing = listener
        name = f"[{host}]" if ":" in host else host
        own = (
            f"http://{name if is_loopback(f'http://{name}') else '127.0.0.1'}:{listener.port}{path}"
        )
        self._at = own if redirect_uri is None else redirect_uri
        return self._at

    def _cannot(self, where: str, bad: OSError) -> Unauthorized:
        return Unauthorized(
            "log-in",
            f"cannot listen on {where} for the browser's redirect ({bad.strerror or bad})",
            advice=(
                "Stop the program that uses this port, or choose another port that is "
                "registered for the client."
            ),
            culprit="client",
        )

    def _start(self, url: str) -> None:
        """Open the browser in a thread: the call may not return before the browser exits."""
        loop = asyncio.get_running_loop()

        def work() -> None:
            try:
                opened = self._open(url) is not False
            except Exception:  # whatever fails, the user can still open the URL
                opened = False
            if not opened:
                with contextlib.suppress(RuntimeError):  # the event loop has been closed meanwhile
                    loop.call_soon_threadsafe(
                        self._say, "No browser could be opened. Open the address yourself."
                    )

        threading.Thread(target=work, name="interlock-browser", daemon=True).start()


def open_browser(url: str) -> bool:
    """Open a browser at a checked URL, never through a shell. Return False on failure (`SEC-22`).

    A child process does it, so that output of the browser does not appear in the output of this
    program, and Ctrl-C in the terminal does not reach the browser.
    """
    plain = url.replace(
        "%action", "%ACtion"
    )  # the same URL; `webbrowser` replaces `%action` itself
    if getattr(sys, "frozen", False):  # a bundled program has no separate interpreter
        return webbrowser.open(plain)
    quiet = subprocess.DEVNULL
    done = subprocess.run(
        [sys.executable, "-I", "-c", _OPEN, plain],
        stdin=quiet,
        stdout=quiet,
        stderr=quiet,
        start_new_session=True,
        check=False,
    )
    return done.returncode == 0
