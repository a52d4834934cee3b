"""The interface of agents, and the checks that all of them share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Protocol
from urllib.parse import parse_qsl, urlsplit

from ..oauth.addresses import usable
from ..oauth.steps import ShowCode

Say = Callable[[str], object]
"""Takes a line for the person."""

_MOST_FIELDS = 100  # parameters of one query string


class Agent(Protocol):
    """Reaches the person who logs in.

    One log-in at a time; it may be used for the next once it is closed.
    """

    async def listen(self, preferred: Sequence[str]) -> str:
        """Be ready for the browser to come back.

        Return the redirect URI, one of `preferred` where that can be had.

        `preferred` are those at which the client is registered. Raises Unauthorized where nobody
        can be reached.
        """
        ...

    async def visit(self, url: str, redirect_uri: str) -> str:
        """Let the person visit `url`.

        Return the query string with which the browser came back to `redirect_uri`.

        Answers with another `state` than that of `url` are passed over, so that nobody can end a
        log-in by knocking first. Raises Unauthorized where `url` is not to be visited, Denied where
        the person gives up, TimedOut where nothing came.
        """
        ...

    async def show_code(self, step: ShowCode) -> None:
        """Show the person a code and where to enter it (RFC 8628, 3.3); return at once.

        Raises Unauthorized as `visit` does.
        """
        ...

    async def aclose(self) -> None:
        """Wait for the browser no more. May be called at any time, and twice."""
        ...


def to_stderr(line: str) -> None:
    """Tell the person at the terminal, and leave stdout to the program."""
    print(line, file=sys.stderr, flush=True)


def visitable(url: str) -> str:
    """The address.

    Raises Unauthorized unless it is https, or http to this machine, and written plainly (`SEC-20`
    to `SEC-22`).
    """
    return usable(url, what="the address to visit", step="log-in", document="")


def fields(query: str) -> list[tuple[str, str]]:
    """The parameters of a query string in their order; none where it is no such."""
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        return []


def state_of(url: str) -> str | None:
    """The `state` that an address sends along."""
    return dict(fields(urlsplit(url).query)).get("state")


def is_answer(query: str) -> bool:
    """Whether a query string says how a log-in went: a code or an error."""
    return any(name in ("code", "error") and value for name, value in fields(query))


def is_refusal(query: str) -> bool:
    """Whether an answer is an error."""
    return any(name == "error" for name, _ in fields(query))


def belongs(query: str, state: str | None) -> bool:
    """Whether an answer is to the question with this state,
    which nobody knows who was not asked."""
    return state is None or any(name == "state" and value == state for name, value in fields(query))


def code_words(step: ShowCode) -> list[str]:
    """What the person is told of a code for another device; nothing of it can steer a terminal.

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
    return [*words, f"It holds for {minutes} minute{'' if minutes == 1 else 's'}."]
