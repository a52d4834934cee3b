"""What a request shows to be let in, read strictly: one header, one token, and none in the address (RFC 6750, 2; RFC 9449, 7.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote_plus

from msgspec import Struct

Pairs = Sequence[tuple[bytes, bytes]]

_CREDENTIALS = re.compile(rb"([A-Za-z0-9!#$%&'*+.^_`|~-]+)(?: +([A-Za-z0-9._~+/-]+=*))? *")
_SCHEME = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_LONGEST = 16 * 1024
SECRET_HEADERS = frozenset((b"authorization", b"dpop"))
"""What the server behind a guard never sees."""


class Malformed(Exception):
    """The request shows its token in a way that no request may (RFC 6750, 3.1, `invalid_request`)."""


class Credentials(Struct, frozen=True):
    """A token, the scheme under which it was sent in lower case (empty: there is none), and the DPoP proofs beside it."""

    scheme: str = ""
    token: str = ""
    proofs: tuple[str, ...] = ()


NONE = Credentials()


def read(headers: Pairs, query: bytes, schemes: Sequence[str]) -> tuple[Credentials, list[tuple[bytes, bytes]]]:
    """What a request shows, and its headers without that. Schemes that are not among those given are as nothing. Raises Malformed."""
    if query and b"access" in unquote_plus(query.decode("latin-1")).lower().encode("latin-1", "replace"):
        _check_query(query)
    kept = [pair for pair in headers if pair[0] not in SECRET_HEADERS]
    if len(kept) == len(headers):
        return NONE, kept
    shown = [value for name, value in headers if name == b"authorization"]
    if not shown:
        return NONE, kept
    if len(shown) > 1:
        raise Malformed("there is more than one Authorization header")
    value = shown[0].strip(b" \t")
    scheme = _SCHEME.match(value)
    name = scheme[0].decode("ascii").lower() if scheme is not None else ""
    if name not in schemes:
        if scheme is None:
            raise Malformed("the Authorization header cannot be read")
        return NONE, kept
    found = _CREDENTIALS.fullmatch(value)
    if found is None or found[2] is None:
        raise Malformed("the Authorization header has not one scheme and one token")
    if len(found[2]) > _LONGEST:
        raise Malformed("the token is too long")
    proofs = tuple(value.decode("latin-1") for name, value in headers if name == b"dpop")
    return Credentials(name, found[2].decode("ascii"), proofs), kept


def _check_query(query: bytes) -> None:
    """Raise Malformed where the address has a token: addresses are written to logs and histories (`AUT-04`)."""
    for part in re.split(r"[&;]", query.decode("latin-1")):
        if unquote_plus(part.partition("=")[0]).strip().lower() == "access_token":
            raise Malformed("a token must not be in the address; send it in the Authorization header")
