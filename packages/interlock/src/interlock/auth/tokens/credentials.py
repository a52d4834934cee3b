"""Credentials of a request, read strictly: one header, one token (RFC 6750, 2; RFC 9449, 7.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote_plus

from msgspec import Struct

Pairs = Sequence[tuple[bytes, bytes]]

_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_SIGNS = _LETTERS + b"!#$%&'*+-.^_`|~"  # of a scheme (RFC 9110, 5.6.2)
_TOKEN68 = _LETTERS + b"-._~+/"  # of a token, except the equals signs at its end (RFC 9110, 11.2)
_LONGEST = 16 * 1024
SECRET_HEADERS = frozenset((b"authorization", b"dpop"))
"""The headers that the guard removes from a request; names in lower case, as in ASGI."""


class MalformedCredentials(Exception):
    """The request sends its token in a forbidden way (RFC 6750, 3.1, `invalid_request`)."""


class Credentials(Struct, frozen=True):
    """The credentials of a request.

    Attributes:
        scheme: The authentication scheme in lower case; empty if there is none.
        token: The token.
        proofs: The values of the DPoP headers.
    """

    scheme: str = ""
    token: str = ""
    proofs: tuple[str, ...] = ()


NONE = Credentials()


def read(
    headers: Pairs, query: bytes, schemes: Sequence[str]
) -> tuple[Credentials, list[tuple[bytes, bytes]]]:
    """Return the credentials of a request, and its headers without them.

    A scheme that is not among `schemes` counts as no credentials. Raises MalformedCredentials.
    """
    if query:
        _check_query(query)
    shown: list[bytes] = []
    proofs: list[bytes] = []
    kept: list[tuple[bytes, bytes]] = []
    for pair in headers:
        name = pair[0]
        if name == b"authorization":
            shown.append(pair[1])
        elif name == b"dpop":
            proofs.append(pair[1])
        else:
            kept.append(pair)
    if not shown:
        return NONE, kept
    if len(shown) > 1:
        raise MalformedCredentials("there is more than one Authorization header")
    name, _, rest = shown[0].strip(b" \t").partition(b" ")
    if not name or name.translate(None, _SIGNS):
        raise MalformedCredentials("the Authorization header cannot be read")
    scheme = name.decode("ascii").lower()
    if scheme not in schemes:
        return NONE, kept
    token = rest.strip(b" ")
    if not token.rstrip(b"=") or token.rstrip(b"=").translate(None, _TOKEN68):
        raise MalformedCredentials("the Authorization header must have one scheme and one token")
    if len(token) > _LONGEST:
        raise MalformedCredentials("the token is too long")
    return Credentials(
        scheme, token.decode("ascii"), tuple(proof.decode("latin-1") for proof in proofs)
    ), kept


def _check_query(query: bytes) -> None:
    """Raise MalformedCredentials if the URL contains a token: URLs are written to logs and browser
    histories (`AUT-04`).
    """
    for part in re.split(r"[&;]", query.decode("latin-1")):
        if unquote_plus(part.partition("=")[0]).strip().lower() == "access_token":
            raise MalformedCredentials(
                "a token must not be in the URL; send it in the Authorization header"
            )
