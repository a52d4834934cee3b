"""Credentials of a request, read strictly: one header, one token (RFC 6750, 2; RFC 9449, 7.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote_plus

from msgspec import Struct

Pairs = Sequence[tuple[bytes, bytes]]

_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_SIGNS = _LETTERS + b"!#$%&'*+-.^_`|~"  # of a scheme (RFC 9110, 5.6.2)
_TOKEN68 = _LETTERS + b"-._~+/"  # of a token, but for the equals signs at its end (RFC 9110, 11.2)
_LONGEST = 16 * 1024
SECRET_HEADERS = frozenset((b"authorization", b"dpop"))
"""What the server behind a guard never sees; names in lower case, as ASGI has them."""


class MalformedCredentials(Exception):
    """The request shows its token in a way that no request may (RFC 6750, 3.1,
    `invalid_request`)."""


class Credentials(Struct, frozen=True):
    """A token, the scheme under which it was sent in lower case (empty: there is none), and the
    DPoP proofs beside it.
    """

    scheme: str = ""
    token: str = ""
    proofs: tuple[str, ...] = ()


NONE = Credentials()


def read(
    headers: Pairs, query: bytes, schemes: Sequence[str]
) -> tuple[Credentials, list[tuple[bytes, bytes]]]:
    """What a request shows, and its headers without that.

    Schemes that are not among those given are as nothing. Raises MalformedCredentials.
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
        raise MalformedCredentials("the Authorization header has not one scheme and one token")
    if len(token) > _LONGEST:
        raise MalformedCredentials("the token is too long")
    return Credentials(
        scheme, token.decode("ascii"), tuple(proof.decode("latin-1") for proof in proofs)
    ), kept


def _check_query(query: bytes) -> None:
    """Raise MalformedCredentials where the address has a token:
    addresses are written to logs and histories (`AUT-04`).
    """
    for part in re.split(r"[&;]", query.decode("latin-1")):
        if unquote_plus(part.partition("=")[0]).strip().lower() == "access_token":
            raise MalformedCredentials(
                "a token must not be in the address; send it in the Authorization header"
            )
