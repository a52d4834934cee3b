"""Authorization at the endpoint: the guard in front of it, the principal, 403 challenges, and the
expiry of tokens.

The guard is any ASGI middleware that puts a Principal, and a function that writes challenges, into
the scope (2026-07-28, "Authorization").
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol, TypeGuard, runtime_checkable

from ...exchange import Principal
from .requests import BearerToken, Challenge, Pairs, Receive, Scope, Send, is_direct

ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]
Guarding = Callable[[ASGIApp], ASGIApp]
"""The type of a guard: a function from an ASGI app to an ASGI app."""

_LONGEST_SLEEP = 86_400.0  # seconds; an expiry further in the future is checked once a day


@runtime_checkable
class EndpointAware(Protocol):
    """A guard that needs information about the endpoint behind it."""

    def learn(self, path: str, scopes: Callable[[], Iterable[str]]) -> None:
        """Set the endpoint's path, and the function that returns all scopes of its features."""
        ...


class DirectGuard(Protocol):
    """A guarded app that can also admit requests without ASGI."""

    def read_token(
        self, path: str, query: bytes, headers: Sequence[tuple[bytes, bytes]]
    ) -> tuple[BearerToken | None, list[tuple[bytes, bytes]]] | None:
        """Return the token of a POST, and its headers without credentials; no token if requests
        need none. None if the guard has to see the whole request.
        """
        ...


@runtime_checkable
class DrainedGuard(Protocol):
    """A guard that serves endpoints of its own besides the one that it protects."""

    async def drain(self, grace: float) -> None:
        """Refuse new requests there, and let calls finish for `grace` seconds."""
        ...


def is_direct_guard(guarded: object) -> TypeGuard[DirectGuard]:
    """Whether a guarded app admits requests without ASGI."""
    return is_direct(guarded, "read_token")


class ProtectedApp:
    """The endpoint as its guard sees it: an ASGI app with a path, and all the `paths` that it
    serves.
    """

    def __init__(
        self,
        app: ASGIApp,
        other: ASGIApp,
        path: str,
        others: Iterable[str] = (),
        *,
        knows: Callable[[str], bool] = lambda path: False,
    ) -> None:
        """`app` serves HTTP requests, `other` everything else. `knows` returns whether the app has
        a path besides the `others`.
        """
        self._app = app
        self._other = other
        self.path = path
        self.paths = frozenset({path, *others})
        self.knows = knows

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection that the guard has admitted."""
        await (self._app if scope["type"] == "http" else self._other)(scope, receive, send)


def missing_scopes(
    denied: Sequence[Sequence[str]], challenge: Challenge | None
) -> tuple[list[str], Pairs]:
    """Return all missing scopes, and the headers that request them at once if the guard provides
    them (`AUS-08`).
    """
    scopes = list(dict.fromkeys(name for names in denied for name in names))
    return scopes, tuple(challenge(scopes)) if challenge is not None and scopes else ()


class ExpiryTimer:
    """The expiry of a principal. A stream that outlasts it is closed, so that its client returns
    with a new token.
    """

    __slots__ = ("_clock", "_end", "_expires", "_timer")

    def __init__(
        self,
        principal: Principal | None,
        end: Callable[[], object],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`end` is called at the expiry. `clock` returns the wall clock in seconds."""
        self._end = end
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None
        self._expires = None if principal is None else principal.expires
        self._wait()

    def _wait(self) -> None:
        if self._expires is not None:
            left = min(max(self._expires - self._clock(), 0.0), _LONGEST_SLEEP)
            self._timer = asyncio.get_running_loop().call_later(left, self._look)

    def _look(self) -> None:
        if (
            self._expires is not None and self._clock() < self._expires
        ):  # the wall clock differs from the clock of the event loop
            self._wait()
        else:
            self._timer = None
            self._end()

    def renew(self, principal: Principal | None) -> None:
        """Use the expiry of a new token."""
        self.over()
        self._expires = None if principal is None else principal.expires
        self._wait()

    def over(self) -> None:
        """Stop the timer, because the stream has ended by itself."""
        self._expires = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
