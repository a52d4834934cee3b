"""The interface of agents, and the checks that all of them share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Protocol
from urllib.parse import parse_qsl, urlsplit

from ..oauth.addresses import usable
from ..oauth.steps import ShowCode

Say = Callable[[str], object]
"""A function that shows the user one line."""

_MOST_FIELDS = 100  # parameters of one query string


class Agent(Protocol):
    """Reaches the user who logs in.

    It handles one login at a time. After `aclose` it can be used for the next login.
    """

    async def listen(self, preferred: Sequence[str]) -> str:
        """Prepare for the redirect of the browser, and return the redirect URI.

        Args:
            preferred: The redirect URIs at which the client is registered. The result is one of
                them if possible.

        Raises:
            Unauthorized: The user cannot be reached.
        """
        ...

    async def visit(self, url: str, redirect_uri: str) -> str:
        """Send the user to `url`; return the query string of the redirect to `redirect_uri`.

        A redirect with a `state` other than that of `url` is ignored. Otherwise anyone could end a
        login by sending a request first.

        Raises:
            Unauthorized: `url` is not safe to visit.
            Denied: The user cancels.
            TimedOut: No redirect arrived in time.
        """
        ...

    async def show_code(self, step: ShowCode) -> None:
        """Show the user a code and the address where it is entered (RFC 8628, 3.3); return at once.

        Raises Unauthorized like `visit`.
        """
        ...

    async def aclose(self) -> None:
        """Stop waiting for the browser. May be called at any time, and more than once."""
        ...


def to_stderr(line: str) -> None:
    """Print a line for the user to stderr. stdout belongs to the program."""
    print(line, file=sys.stderr, flush=True)


def visitable(url: str) -> str:
    """Return the URL.

    Raises Unauthorized unless it is https, or http to this machine, and in plain notation (`SEC-20`
    to `SEC-22`).
    """
    return usable(url, what="the address to visit", step="log-in", document="")


def fields(query: str) -> list[tuple[str, str]]:
    """The parameters of a query string, in order; an empty list if it is not a query string."""
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        return []


def state_of(url: str) -> str | None:
    """The `state` parameter of a URL."""
    return dict(fields(urlsplit(url).query)).get("state")


def is_answer(query: str) -> bool:
    """Whether a query string is an authorization response: whether it has a code or an error."""
    return any(name in ("code", "error") and value for name, value in fields(query))


def is_refusal(query: str) -> bool:
    """Whether an authorization response is an error."""
    return any(name == "error" for name, _ in fields(query))


def belongs(query: str, state: str | None) -> bool:
    """Whether an authorization response has the `state` of the request. Only the recipient of the
    request knows it.
    """
    return state is None or any(name == "state" and value == state for name, value in fields(query))


def code_words(step: ShowCode) -> list[str]:
    """The lines that show the user a device code, without characters that control a terminal.

    Raises Unauthorized.
    """
    code = "".join(c if c.isprintable() else "?" for c in step.user_code[:64])
    words = [
        f"To log in, visit {visitable(step.verification_uri)} on any device, and enter the code "
        f"{code}"
    ]
    if step.complete is not None:
        words.append(f"or visit {visitable(step.complete)} and compare the code.")
    minutes = max(1, round(step.seconds / 60))
    return [*words, f"It is valid for {minutes} minute{'' if minutes == 1 else 's'}."]
