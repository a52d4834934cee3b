"""The agent of programs without a user: it refuses each login and says what to do instead."""

from __future__ import annotations

from collections.abc import Sequence

from ..oauth.errors import Unauthorized
from ..oauth.steps import ShowCode

_ADVICE = (
    "Give a token, or the credentials of a client that is registered for programs "
    "without a user. Or log in once where there is a terminal or a browser: interlock "
    "auth login URL."
)


class Headless:
    """The agent of services, jobs and continuous integration, which have no user to log in."""

    async def listen(self, preferred: Sequence[str]) -> str:
        """Raises Unauthorized."""
        raise _no_user_error()

    async def visit(self, url: str, redirect_uri: str) -> str:
        """Raises Unauthorized."""
        raise _no_user_error()

    async def show_code(self, step: ShowCode) -> None:
        """Raises Unauthorized."""
        raise _no_user_error()

    async def aclose(self) -> None:
        """Do nothing: nothing is open."""


def _no_user_error() -> Unauthorized:
    return Unauthorized(
        "log-in",
        "a user has to log in, and this program has neither a browser nor a terminal",
        advice=_ADVICE,
        culprit="client",
    )
