"""Public keys of clients: registered ones, and those at a jwks_uri."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from interlock import Fetch
from interlock.auth.tokens import ASYMMETRIC, BadSignature, KeySet, RemoteKeys, Unverifiable

from ..http.error_responses import unavailable
from ..interfaces import Client

_LONGEST = 128 * 1024  # bytes of a document
_KEPT = 1000
_AT_ONCE = 16
_FRESH = 300.0  # seconds: who has lost a key wants it gone soon


class ClientKeys:
    """Verifies signatures of clients."""

    def __init__(self, fetch: Fetch, clock: Callable[[], float]) -> None:
        self._fetch = fetch
        self._clock = clock
        self._kept: OrderedDict[str, RemoteKeys] = OrderedDict()

    async def claims(self, client: Client, token: str, types: Sequence[str]) -> dict[str, Any]:
        """The claims of a token that the client has signed.

        Raises BadSignature; Refusal (503) where its keys cannot be had.
        """
        if client.jwks is not None:
            return KeySet.read(client.jwks).verify(token, algorithms=ASYMMETRIC, typ=types)[1]
        if client.jwks_uri is None:
            raise BadSignature("the client has no keys")
        try:
            return await self._at(client.jwks_uri).claims(
                token, self._clock(), algorithms=ASYMMETRIC, types=types
            )
        except Unverifiable:
            raise unavailable("the keys of the client are not available now") from None

    def _at(self, url: str) -> RemoteKeys:
        """The keys at an address; the ones that were not asked for longest make room."""
        if (known := self._kept.get(url)) is None:
            known = self._kept[url] = RemoteKeys(
                url,
                jwks_uri=url,
                fetch=self._fetch,
                fresh=_FRESH,
                limit=_LONGEST,
                room=self._has_room,
            )
            while len(self._kept) > _KEPT:
                del self._kept[
                    next(each for each, keys in self._kept.items() if not keys.is_asking)
                ]
        self._kept.move_to_end(url)
        return known

    def _has_room(self) -> bool:
        return sum(keys.is_asking for keys in self._kept.values()) < _AT_ONCE

    async def aclose(self) -> None:
        """Fetch nothing more."""
        for keys in self._kept.values():
            await keys.aclose()
