"""The interface of verifiers: a token becomes a principal, or an error says why not."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from ...exchange import Principal


class BadToken(Exception):
    """The token is not good here.

    The words are told to whoever sent it, and never quote it (RFC 6750, 3.1, `invalid_token`).
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*args)


class Unverifiable(Exception):
    """Whether the token is good cannot be found out now, as who could say it is not there: try
    again in `seconds`.
    """

    def __init__(self, words: str, *, seconds: float = 5.0) -> None:
        super().__init__(words)
        self.seconds = seconds


class Verified(Struct, frozen=True):
    """A token that is good: for whom, and the thumbprint of the key to which it is bound, if it is
    (RFC 9449, 6).

    `seconds` is for how long this may be taken as true without asking again; never beyond the
    principal's end.
    """

    principal: Principal
    thumbprint: str | None = None
    seconds: float = 60.0


@runtime_checkable
class House(Protocol):
    """An authorization server in the same process, like `Issuer`: an ASGI app that can verify what
    it gives.
    """

    def verifier(self) -> Verifier:
        """What verifies its tokens."""
        ...

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Serve one request to it."""
        ...


@runtime_checkable
class Verifier(Protocol):
    """Says what tokens are worth.

    `issuers` are the authorization servers that a client may get them from (RFC 9728, 2).
    """

    issuers: Sequence[str]

    async def verify(self, token: str, *, resource: str, now: float) -> Verified:
        """The principal of a token that is for `resource` (the canonical URI of this server) and
        good at `now` (wall clock seconds).

        Raises BadToken, also where the token is for somebody else, and Unverifiable.
        """
        ...


def verifying(given: object) -> Verifier:
    """What was given, where it verifies tokens. Raises TypeError."""
    if isinstance(given, Verifier) and not isinstance(given, type):
        return given
    name = f"the class {given.__name__}" if isinstance(given, type) else f"a {type(given).__name__}"
    raise TypeError(
        "a guard needs what verifies tokens, such as Jwt(...), ApiKeys(...), Checked(function) "
        f"or preset.verifier(...); not {name}"
    )
