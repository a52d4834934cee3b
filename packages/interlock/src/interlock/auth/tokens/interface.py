"""The interface of token verifiers: a verifier turns a token into a principal, or raises an
error.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from ...exchange import Principal


class BadToken(Exception):
    """The token is not valid for this server.

    The message is sent to the client, and never quotes the token (RFC 6750, 3.1, `invalid_token`).
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*args)


class Unverifiable(Exception):
    """The token cannot be verified now, because the authorization server is not reachable: try
    again in `seconds`.
    """

    def __init__(self, words: str, *, seconds: float = 5.0) -> None:
        super().__init__(words)
        self.seconds = seconds


class Verified(Struct, frozen=True):
    """A valid token.

    Attributes:
        principal: Its principal.
        thumbprint: The thumbprint of the key that the token is bound to, if it is (RFC 9449, 6).
        seconds: How long the result may be cached; never beyond the principal's expiry.
    """

    principal: Principal
    thumbprint: str | None = None
    seconds: float = 60.0


@runtime_checkable
class LocalIssuer(Protocol):
    """An authorization server in the same process, like `Issuer`: an ASGI app that verifies the
    tokens it issues.
    """

    def verifier(self) -> Verifier:
        """The verifier of its tokens."""
        ...

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Serve one request."""
        ...


@runtime_checkable
class Verifier(Protocol):
    """Verifies tokens.

    Attributes:
        issuers: The authorization servers that a client may get tokens from (RFC 9728, 2).
    """

    issuers: Sequence[str]

    async def verify(self, token: str, *, resource: str, now: float) -> Verified:
        """Return the principal of a token.

        Args:
            token: The token.
            resource: The canonical URI of this server, which the token must be issued for.
            now: The time, in seconds of the wall clock.

        Raises:
            BadToken: The token is invalid, or is for another server.
            Unverifiable: The token cannot be verified now.
        """
        ...


def verifying(given: object) -> Verifier:
    """Return the argument if it is a verifier. Raises TypeError."""
    if isinstance(given, Verifier) and not isinstance(given, type):
        return given
    name = f"the class {given.__name__}" if isinstance(given, type) else f"a {type(given).__name__}"
    raise TypeError(
        "a guard needs a verifier of tokens, such as Jwt(...), ApiKeys(...), "
        f"Checked(function) or preset.verifier(...); not {name}"
    )
