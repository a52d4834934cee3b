"""The public keys of others: those that were told, or those at an address, fetched again when a token names one that is new."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ..keys import ASYMMETRIC, BadSignature, KeySet, UnknownKey
from .clients import document_problem
from .papers import NoPaper, Papers
from .refusals import Refusal
from .settings import is_loopback_host

_LONGEST = 128 * 1024
_AGAIN = 30.0  # seconds after which an unknown key is worth another look


class RemoteKeys:
    """Verifies signatures with keys of clients and of trusted issuers (EMA-14)."""

    def __init__(self, papers: Papers, clock: Callable[[], float]) -> None:
        self._papers, self._clock = papers, clock

    async def verify(
        self,
        token: str,
        *,
        jwks: Mapping[str, Any] | None,
        jwks_uri: str | None,
        typ: Sequence[str] | None,
        algorithms: Sequence[str] = ASYMMETRIC,
    ) -> dict[str, Any]:
        """The claims of a token that one of the keys has signed. Raises BadSignature; Refusal (503) where the keys cannot be had."""
        if jwks is not None:
            return KeySet.read(jwks).verify(token, algorithms=algorithms, typ=typ)[1]
        if jwks_uri is None:
            raise BadSignature("there are no keys to know it by")
        try:
            return (await self._keys(jwks_uri)).verify(token, algorithms=algorithms, typ=typ)[1]
        except UnknownKey:
            if self._clock() - self._papers.fetched(jwks_uri) < _AGAIN:
                raise
        return (await self._keys(jwks_uri, newer_than=self._clock())).verify(token, algorithms=algorithms, typ=typ)[1]

    async def jwks_uri_of(self, issuer: str) -> str:
        """Where an issuer says that its keys are (OpenID Connect Discovery 1.0, 4). Raises Refusal."""
        try:
            body = await self._papers.get(f"{issuer.rstrip('/')}/.well-known/openid-configuration", _LONGEST)
            document = msgspec.json.decode(body, type=dict[str, Any])
        except (NoPaper, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise _away() from None
        found = document.get("jwks_uri")
        if document.get("issuer") != issuer or not isinstance(found, str) or address_problem(found):
            raise _away()
        return found

    async def _keys(self, url: str, newer_than: float | None = None) -> KeySet:
        try:
            body = await self._papers.get(url, _LONGEST, newer_than=newer_than)
        except NoPaper:
            kept = self._papers.last(url)  # while it is away the keys that it had are still its keys
            if kept is None:
                raise _away() from None
            body = kept
        try:
            return KeySet.read(body)
        except ValueError:
            raise _away() from None


def address_problem(url: str) -> str:
    """What is wrong with an address of keys; nothing where it is https, or on a loopback address (EMA-14, WIF-04)."""
    host = url.removeprefix("http://").partition("/")[0].rpartition(":")[0].strip("[]")
    return "" if url.startswith("http://") and is_loopback_host(host) else document_problem(url)


def _away() -> Refusal:
    words = "the keys of who signed it cannot be had now"
    return Refusal("temporarily_unavailable", words, status=503, headers=[("retry-after", "30")])
